"""Every bad submission in one batch with good ones: nobody's points depend on anybody else's file."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import submissions
from commands import command
from jobs import judged_at_any_cost
from submissions import CASES, EVERY_TIME, FULL, NAME, gone, needs_sandbox, put, read

from classroom import assignment, batch, grading, sandbox, variants
from classroom.__main__ import main
from classroom.assignment import imports
from classroom.sandbox import Limits

psutil = pytest.importorskip("psutil")
LIMITS = Limits(cell_seconds=1, call_seconds=1, total_seconds=317, patience=1)  # 317 marks our processes


@pytest.fixture(scope="module")
def graded(tmp_path_factory, pytestconfig):
    """The cases of this run graded in one batch: name -> result, and the folder that they were graded into."""
    top = tmp_path_factory.mktemp("class")
    for name in CASES if pytestconfig.getoption("weekly", False) else EVERY_TIME:
        put(top / "handed in", {f"{name}/{name} final(2).ipynb": submissions.data(CASES[name][0])})
    results = batch.grade(NAME, top / "handed in", top / "out", limits=LIMITS, workers=2, progress=False)
    return {result["student"]: result for result in results}, top


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("name", [name if name in EVERY_TIME else pytest.param(name, marks=pytest.mark.weekly)
                                  for name in CASES])
def test_ends_as_it_should(graded, name):
    result = graded[0][name]
    _, points, status, words = CASES[name]
    told = "\n".join([result["reason"], *result["notes"], *(t["message"] for t in result["tests"])])
    known = [t["points"] for t in result["tests"] if t["points"] is not None]
    assert result["status"] == status, told
    assert (sum(known) if known else None) == points, told
    assert any(one in told for one in words.split("|")), told
    assert all(t["message"] for t in result["tests"])


def test_what_a_notebook_imports_is_compiled_once(tmp_path, monkeypatch):
    """A sandbox cannot keep compiled modules, and a new environment has none."""
    assert {"matplotlib.pyplot", "numpy", "helpers.plots", "helpers.embeddings"} <= set(imports(NAME))
    (tmp_path / "freshly").mkdir()
    for module in ("__init__", "installed", "other"):
        (tmp_path / "freshly" / f"{module}.py").write_text("from freshly import other\n" * (module == "installed"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    batch.compile_once(["freshly.installed", "freshly.installed.name", "json", "no_such_module"])
    assert {path.name.partition(".")[0] for path in (tmp_path / "freshly" / "__pycache__").iterdir()} == {
        "__init__", "installed", "other"}


@pytest.mark.slow
@needs_sandbox
def test_nothing_is_left_behind(graded):
    results, top = graded
    assert EVERY_TIME <= set(results)
    assert sorted(p.name for p in top.iterdir()) == ["handed in", "out"]
    assert {p.name for p in (top / "out").iterdir()} - {"figures"} == {"batch.json", "results"}
    gone(lambda: [p for p in Path("/proc").glob("[0-9]*/cmdline") if b'"CPU": 317' in read(p)])


@pytest.mark.slow
@needs_sandbox
def test_graded_again_only_what_is_missing(graded):
    _, top = graded
    results = top / "out" / "results"
    (results / "good.json").unlink()
    (results / "bombs.json").write_text("{cut off")
    before = {p.name: p.stat().st_mtime_ns for p in results.iterdir()}
    again = batch.grade(NAME, top / "handed in", top / "out", limits=LIMITS, workers=1, progress=False)
    changed = {p.name for p in results.iterdir() if before.get(p.name) != p.stat().st_mtime_ns}
    assert changed == {"good.json", "bombs.json"}
    assert len(again) == len(graded[0])
    assert sum(t["points"] for t in next(r for r in again if r["student"] == "good")["tests"]) == FULL


@pytest.mark.slow
@needs_sandbox
def test_an_interrupt_stops_everything_and_the_rest_is_graded_later(tmp_path):
    for number in range(4):
        content = submissions.solved("import time; time.sleep(5)" if number % 2 else None)
        put(tmp_path / "in", {f"s{number}.ipynb": submissions.data(content)})
    code = ("import signal, sys; from classroom.__main__ import main; "
            "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main(sys.argv[1:]))")
    command = [sys.executable, "-c", code, "grade", NAME, tmp_path / "in", tmp_path / "out", "--workers", "1"]
    grader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=sandbox.ROOT)
    results = tmp_path / "out" / "results"
    while grader.poll() is None and not list(results.glob("*.json")):
        time.sleep(0.1)
    mine = {p.pid for p in psutil.Process(grader.pid).children(recursive=True)}
    grader.send_signal(signal.SIGINT)
    _, said = grader.communicate()
    assert grader.returncode == 1 and said.strip().endswith("goes on where it was.")
    gone(lambda: {p.pid for p in psutil.process_iter() if p.pid in mine and p.status() != psutil.STATUS_ZOMBIE})
    before = {p.name: p.stat().st_mtime_ns for p in results.glob("*.json")}
    again = batch.grade(NAME, tmp_path / "in", tmp_path / "out", workers=1, progress=False)
    assert 1 <= len(before) < 4 and len(again) == 4
    assert all((results / name).stat().st_mtime_ns == stamp for name, stamp in before.items())


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A copy of the course that can be changed, and two students' notebooks, with the results, which are nobody's, among
    them. ``course.graded(...)``: who is graded by the next command; nothing is run. ``course.options``: what it hands on."""
    for room in ("classroom", "helpers", "notebooks/assignments/source"):
        shutil.copytree(sandbox.ROOT / room, tmp_path / "course" / room, ignore=shutil.ignore_patterns("__pycache__"))
    put(tmp_path / "in", {f"{name}.ipynb": submissions.data(submissions.solved(f"# {name}")) for name in ("ada", "ben")})
    monkeypatch.setattr(assignment, "ROOT", tmp_path / "course", raising=False)
    monkeypatch.setattr(assignment, "SOURCES", tmp_path / "course" / "notebooks/assignments/source")
    monkeypatch.setattr(sandbox, "problem", lambda: None)

    class Course:
        root, source, out, options, asked, stop = tmp_path / "course", tmp_path / "in", tmp_path / "in/graded", {}, [], False

        def graded(self, **options):
            self.asked.clear()
            batch.grade(NAME, self.source, self.out, progress=False, **options)
            return [about["student"] for about in self.asked]

    def run(todo, name, keep, workers, options, progress):
        Course.options = options
        for about, _ in todo:
            Course.asked.append(about)
            keep(about, grading.failed(assignment.load(name), "crashed", "It was not run."))
            if Course.stop:
                raise KeyboardInterrupt

    monkeypatch.setattr(batch, "_run", run)
    return Course()


BOTH = ["ada", "ben"]


@pytest.mark.parametrize("file", [
    "helpers/checks/core.py", "helpers/attention.py", "classroom/grading.py", f"classroom/tasks/{NAME}.py",
    f"notebooks/assignments/source/{NAME}/{NAME}.ipynb"])
def test_graded_again_when_what_decides_a_grade_has_changed(course, file):
    assert course.graded() == BOTH and course.graded() == []
    with (course.root / file).open("a") as changed:
        changed.write("\n")
    assert course.graded() == BOTH and course.graded() == []


def test_graded_again_with_other_limits_or_when_told_so(course):
    assert course.graded() == BOTH and course.graded(limits=Limits()) == []
    assert course.graded(limits=Limits(call_seconds=9)) == BOTH and course.graded(limits=Limits(call_seconds=9)) == []
    assert course.graded() == BOTH
    assert course.graded(trusted=True) == BOTH  # without a sandbox a submission may have changed anything
    assert course.graded() == BOTH
    (course.source / "ben.ipynb").write_bytes(submissions.data(submissions.solved("# Ben again")))
    (course.root / "notebooks/assignments/source/assignment2/assignment2.ipynb").write_bytes(b"{}")  # another assignment
    assert course.graded() == ["ben"]
    assert course.graded(again=True) == BOTH and course.graded() == []


def test_one_notebook_always_has_the_same_grade(course):
    course.graded()
    kept, data = course.options["secret"], b"a notebook"
    assert len(kept) == 32 and batch.seed_of(data, kept) == batch.seed_of(data, kept) != batch.seed_of(b"another", kept)
    assert course.graded(again=True) == BOTH and course.options["secret"] == kept
    given = variants.Variants(NAME, "autumn", "the teacher's key")
    assert course.graded(given=given) == BOTH and course.options["secret"] == given.key, "nor does it hang on the folder"
    assert given.key not in (course.out / "batch.json").read_text(encoding="utf-8")
    assert course.graded() == BOTH and course.options["secret"] != given.key
    seeds = [batch._job(NAME, submissions.data(submissions.solved("# Ada")), (), trusted=True, limits=Limits(),
                        secret=secret)["seed"] for secret in (kept, kept, "another")]
    assert seeds[0] == seeds[1] != seeds[2]


def test_grading_again_can_be_stopped_and_goes_on(course):
    assert course.graded() == BOTH
    type(course).stop = True
    assert command("grade", NAME, course.source, course.out, "--again", fails=True) == (
        "Stopped. The same command, without --again, goes on where it was.\n")
    type(course).stop = False
    assert course.graded() == ["ben"] and course.graded() == []


def test_limits_on_the_command_line(course, capsys):
    words = ["grade", NAME, str(course.source), str(course.out)]
    command(*words)
    assert course.options["limits"] == Limits()
    command(*words, "--cell-seconds", 40, "--call-seconds", 1.5, "--total-seconds", 600, "--memory", 3)
    assert course.options["limits"] == Limits(40, 1.5, 600, memory=3 * 2**30, together=6 * 2**30)
    assert len(course.asked) == 4, "other limits, and nobody was graded again"
    for wrong in ("0", "-1", "x", "nan", "inf", "1e9"):
        with pytest.raises(SystemExit):
            main([*words, "--memory", wrong])
        assert f"{wrong!r} is not a number between 1 and 99,999" in capsys.readouterr().err


def test_as_many_workers_as_processors_that_may_be_used(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5, 7}, raising=False)
    assert batch.cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")        # as on macOS and Windows
    assert batch.cores() == 64
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert batch.cores() == 1


@pytest.mark.slow
def test_a_submission_that_cannot_be_judged_costs_nobody_else_anything(tmp_path, monkeypatch):
    """The grader's own limits: the others have their results, and the next run does not try that one again."""
    monkeypatch.setattr(batch, "_job", judged_at_any_cost)
    for student in ("ada", "for ever", "room", "zoe"):
        put(tmp_path / "in", {f"{student}.ipynb": submissions.data(submissions.solved(f"# {student}"))})
    for _ in range(2):
        results = batch.grade(NAME, tmp_path / "in", tmp_path / "out", workers=2, trusted=True, progress=False)
        assert {result["student"]: result["reason"] for result in results} == {
            "ada": "It was not run, and had 1 byte.", "zoe": "It was not run, and had 1 byte.", "for ever": batch.LOST,
            "room": "The grader itself stopped: MemoryError: "}
        monkeypatch.setattr(batch, "_run", lambda todo, *rest: pytest.fail(str(todo)) if todo else None)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the grader has limits on Linux, where there is a sandbox")
def test_the_graders_limits_end_with_the_submission():
    import resource
    kinds = (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_CORE)
    before = [resource.getrlimit(kind) for kind in kinds]
    with sandbox.limited(batch.JUDGING_MEMORY, batch.JUDGING_SECONDS):
        inside = [resource.getrlimit(kind) for kind in kinds]
        assert 50 < inside[0][0] - time.process_time() < 70 and 2**31 < inside[1][0] < 2**40 and inside[2][0] == 0
        assert [hard for _, hard in inside] == [hard for _, hard in before], "a sandbox could not have more"
    assert [resource.getrlimit(kind) for kind in kinds] == before


def test_a_folder_of_a_team_is_said(course):
    """Silently it would be one student, and the others of the team would have nothing."""
    for path in ("Team 3/w.ipynb", "Group A/Ada/w.ipynb", "Group A/Ben/w.ipynb", "Carl & Dora/w.ipynb", "Emil/try 1/w.ipynb",
                 "Emil/w.ipynb", "Teammann, Fay/w.ipynb", "Gus/a.ipynb", "Gus/b.ipynb"):
        put(course.source, {path: submissions.data(submissions.solved(f"# {path}"))})
    told = [line for line in command("grade", NAME, course.source, course.out).splitlines() if "may be a team" in line]
    assert [line.partition(" may")[0] for line in told] == ["Carl & Dora", "Group A", "Team 3"]
    assert "in the folders Ada, Ben; it was graded as one student" in told[1] and "list of students" in told[1]
    given = variants.Variants(NAME, "autumn", "00" * 16)
    for student in ("Ada", "Ben"):
        given.give(student)
    one = batch.collect(course.source, NAME, set())[0][0]
    one.variant, one.earlier = given.students["Ada"], [replace(one, variant=given.students["Ben"])]
    assert "holds notebooks of Ada and Ben" in batch._teams([one], given)[0]


def test_no_sandbox_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "problem", lambda: "The sandbox needs the program bubblewrap.")
    (tmp_path / "a.ipynb").write_bytes(submissions.data(submissions.solved()))
    with pytest.raises(sandbox.NoSandbox, match="bubblewrap"):
        batch.grade(NAME, tmp_path, tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name != "posix", reason="submissions are run on POSIX systems only")
def test_without_sandbox_for_those_who_trust_every_student(tmp_path):
    put(tmp_path / "in", {"a.ipynb": submissions.data(submissions.solved("while True: pass"))})
    [result] = batch.grade(NAME, tmp_path / "in", tmp_path / "out", limits=LIMITS, trusted=True, workers=1, progress=False)
    assert (result["status"], sum(t["points"] for t in result["tests"])) == ("graded", FULL)
