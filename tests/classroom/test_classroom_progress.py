"""What takes more than a few seconds says how far it is: a bar on a terminal, a plain line elsewhere."""

import io
import sys

import pytest

import classroom


@pytest.mark.parametrize(("terminal", "patience", "said"), [
    (True, 0, ["Grading:", "2/2"]), (False, 0, ["Grading: 1 of 2 so far.\n"]), (True, 60, []), (False, 60, [])])
def test_how_far_it_is(monkeypatch, terminal, patience, said):
    class Output(io.StringIO):
        def isatty(self):
            return terminal
    output = Output()
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setattr(classroom, "PATIENCE", patience)
    with classroom.Progress("Grading", 2) as progress:
        progress.update()
        progress.update()
    assert all(words in output.getvalue() for words in said)
    assert terminal and patience == 0 or output.getvalue() == "".join(said)
