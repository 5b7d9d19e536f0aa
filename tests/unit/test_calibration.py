"""scripts/calibration.py: what a run and the processes below it cost."""

import re
import subprocess
import sys

import pytest

from scripts import calibration, verbs


@pytest.mark.skipif(calibration.resource is None, reason="Windows adds up nothing")
def test_what_children_and_theirs_used_is_counted():
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    before = calibration.spent()
    subprocess.run([sys.executable, "-c", child], check=True)
    assert calibration.spent() - before >= 0.3


@pytest.mark.parametrize("verb", ["check", "test"])
def test_a_run_ends_with_its_cost(verb, monkeypatch, capsys):
    measured, spent = [1.0, 3.0], [100.0, 140.0]
    monkeypatch.setattr(calibration, "measured", lambda environment: measured.pop(0))
    monkeypatch.setattr(calibration, "spent", lambda: spent.pop(0))
    monkeypatch.setitem(verbs.VERBS, verb, lambda arguments: print("green") or 7)
    assert verbs.main(verb) == 7
    assert re.fullmatch(rf"green\nmake {verb}: 40 CPU-seconds; .* 1\.00 .* before and 3\.00 after: 20 calibrations\.\n",
                        capsys.readouterr().out)


def test_where_nothing_can_be_counted_it_says_so(monkeypatch):
    monkeypatch.setattr(calibration, "resource", None)
    assert calibration.spent() is None
    assert "cannot be counted" in calibration.sentence(None, 1.0, 2.0)
