"""scripts/stability.py finds an output that depends on the number of threads, and no other."""

import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from scripts import stability


@pytest.fixture
def notebook():
    """Make notebooks of sources that print 1, below the repository, so that its conftest.py counts."""
    folder = stability.ROOT / "build" / "stability-test"
    folder.mkdir(parents=True, exist_ok=True)

    def make(name, *sources):
        path = folder / f"{name}.ipynb"
        cells = [new_code_cell(source, execution_count=number, outputs=[new_output("stream", text="1\n")])
                 for number, source in enumerate(sources, 1)]
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3",
                                                                          "language": "python"}}), path)
        return path.relative_to(stability.ROOT).as_posix()
    yield make
    shutil.rmtree(folder)


@pytest.mark.weekly
def test_a_cell_that_depends_on_the_threads_is_reported(notebook, capsys):
    made = notebook("made", "print(1)", "import os\nprint(os.environ['OMP_NUM_THREADS'])")
    assert stability.main([made, "one-thread", "two-threads"]) == 1
    said = capsys.readouterr().out
    assert "one-thread (one thread): 2 of 2 cells hold" in said
    assert "1 of 2 cells hold" in said and "differs under two-threads" in said and "Cell 1" in said
    assert "1 cells differ." in said


DIGIT = """import torch
weight = torch.nn.Parameter(torch.tensor([1.0]))
torch.optim.SGD([weight], lr=0.1)
print(1 if weight.item() == 1 else weight.item())"""


@pytest.mark.weekly
def test_a_digit_of_what_is_trained_is_reported(notebook, capsys, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # or the run would take itself for a part of this one
    assert stability.main([notebook("trains", DIGIT, "print(1)"), "jitter-1", "jitter-2"]) == 1
    told = capsys.readouterr().out
    assert re.findall(r"^(jitter-\d) .*: (\d of \d cells) hold", told, re.M) == [("jitter-1", "1 of 2 cells"),
                                                                                ("jitter-2", "1 of 2 cells")]
    assert "trains.ipynb" in told and "Cell 0 differs under jitter-1, jitter-2" in told and "1 cells differ." in told
