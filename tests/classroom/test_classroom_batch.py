"""Every bad submission in one batch with good ones: nobody's points depend on anybody else's file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import submissions
from submissions import CASES, FULL, NAME

from classroom import batch, sandbox
from classroom.sandbox import Limits

psutil = pytest.importorskip("psutil")
needs_sandbox = pytest.mark.skipif(sandbox.problem() is not None, reason=str(sandbox.problem()))
LIMITS = Limits(cell_seconds=2, call_seconds=1, total_seconds=117, patience=1)  # 117 marks our processes


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """All cases graded in one batch: name -> result, and the folder that they were graded into."""
    top = tmp_path_factory.mktemp("class")
    for name, (content, *_) in CASES.items():
        (top / "handed in" / name).mkdir(parents=True)
        (top / "handed in" / name / f"{name} final(2).ipynb").write_bytes(submissions.data(content))
    results = batch.grade(NAME, top / "handed in", top / "out", limits=LIMITS, workers=2, progress=False)
    return {result["student"]: result for result in results}, top


@needs_sandbox
@pytest.mark.parametrize("name", CASES)
def test_ends_as_it_should(graded, name):
    result = graded[0][name]
    _, points, status, word = CASES[name]
    told = "\n".join([result["reason"], *result["notes"], *(t["message"] for t in result["tests"])])
    known = [t["points"] for t in result["tests"] if t["points"] is not None]
    assert result["status"] == status, told
    assert (sum(known) if known else None) == points, told
    assert word in told
    assert all(t["message"] for t in result["tests"])


@needs_sandbox
def test_nothing_is_left_behind(graded):
    results, top = graded
    assert set(results) == set(CASES)
    assert sorted(p.name for p in top.iterdir()) == ["handed in", "out"]
    assert sorted(p.name for p in (top / "out").iterdir()) == ["batch.json", "results"]
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if b"worker.py" in _read(p) and b'"CPU": 117' in _read(p)]
    assert not left, "a sandboxed process outlived its batch"


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


@needs_sandbox
def test_graded_again_only_what_is_missing(graded):
    _, top = graded
    results = top / "out" / "results"
    (results / "good.json").unlink()
    (results / "untouched.json").write_text("{cut off")
    before = {p.name: p.stat().st_mtime_ns for p in results.iterdir()}
    again = batch.grade(NAME, top / "handed in", top / "out", limits=LIMITS, workers=1, progress=False)
    changed = {p.name for p in results.iterdir() if before.get(p.name) != p.stat().st_mtime_ns}
    assert changed == {"good.json", "untouched.json"}
    assert len(again) == len(CASES)
    assert sum(t["points"] for t in next(r for r in again if r["student"] == "good")["tests"]) == FULL


@needs_sandbox
def test_an_interrupt_stops_everything_and_the_rest_is_graded_later(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(6):
        content = submissions.solved("while True: pass" if number % 2 else None)
        (tmp_path / "in" / f"s{number}.ipynb").write_bytes(submissions.data(content))
    code = ("import signal, sys; from classroom.__main__ import main; "
            "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main(sys.argv[1:]))")
    grader = subprocess.Popen([sys.executable, "-c", code, "grade", NAME, tmp_path / "in", tmp_path / "out"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=sandbox.ROOT)
    results = tmp_path / "out" / "results"
    end = time.monotonic() + 60
    while time.monotonic() < end and not list(results.glob("*.json")):
        time.sleep(0.1)
    mine = {p.pid for p in psutil.Process(grader.pid).children(recursive=True)}
    grader.send_signal(signal.SIGINT)
    _, said = grader.communicate(timeout=60)
    assert grader.returncode == 1 and said.strip().endswith("goes on where it was.")
    time.sleep(1)
    left = {p.pid for p in psutil.process_iter() if p.pid in mine and p.status() != psutil.STATUS_ZOMBIE}
    assert not left, "processes are left"
    before = {p.name: p.stat().st_mtime_ns for p in results.glob("*.json")}
    again = batch.grade(NAME, tmp_path / "in", tmp_path / "out", limits=LIMITS, progress=False)
    assert 1 <= len(before) < 6 and len(again) == 6
    assert all((results / name).stat().st_mtime_ns == stamp for name, stamp in before.items())


def test_no_sandbox_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "problem", lambda: "The sandbox needs the program bubblewrap.")
    (tmp_path / "a.ipynb").write_bytes(submissions.data(submissions.solved()))
    with pytest.raises(sandbox.NoSandbox, match="bubblewrap"):
        batch.grade(NAME, tmp_path, tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name != "posix", reason="submissions are run on POSIX systems only")
def test_without_sandbox_for_those_who_trust_every_student(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.ipynb").write_bytes(submissions.data(submissions.solved("while True: pass")))
    [result] = batch.grade(NAME, tmp_path / "in", tmp_path / "out", limits=LIMITS, trusted=True, progress=False)
    assert (result["status"], sum(t["points"] for t in result["tests"])) == ("graded", FULL)


@needs_sandbox
@pytest.mark.slow
def test_on_a_cluster(tmp_path):
    """A dask.distributed scheduler with two workers gives what this machine gives."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed: pip install distributed")
    (tmp_path / "in").mkdir()
    for name in ("good", "empty", "function_exit", "untouched", "stripped"):
        (tmp_path / "in" / f"{name}.ipynb").write_bytes(submissions.data(CASES[name][0]))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        there = batch.grade(NAME, tmp_path / "in", tmp_path / "there", scheduler=cluster.scheduler_address, progress=False)
    here = batch.grade(NAME, tmp_path / "in", tmp_path / "here", workers=1, progress=False)
    assert [(r["student"], r["status"], [t["points"] for t in r["tests"]]) for r in there] == [
        (r["student"], r["status"], [t["points"] for t in r["tests"]]) for r in here]
