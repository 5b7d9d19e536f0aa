"""CPU-seconds for each submission: ours against nbgrader's autograder in one process and `otter run`, on the same notebook.

    python tests/bench/grading.py [NUMBER]         # 30 of them by default
    python tests/bench/grading.py --otter PROGRAM  # otter-grader too: `otter` of an environment of its own
    python tests/bench/grading.py --growth         # 1,000 small submissions: does time or memory grow?
    python tests/bench/grading.py --variants       # a class with a variant for each student against one without

A benchmark, not a test. Ours is the CPU time of the grader's processes and what the kernel says that each sandbox used,
imports and calls included; theirs is that of their process and its kernels. One thread each. The environment of
otter needs this course's packages too: a .pth file that names this environment's site-packages and this folder will do.
"""

import argparse
import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "classroom"))
NAME = "assignment1"


def spent(run):
    """Seconds by the clock and of CPU, of this process and those it waited for, that ``run()`` takes."""
    def cpu():
        both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(used.ru_utime + used.ru_stime for used in both)

    start, before = time.perf_counter(), cpu()
    run()
    return time.perf_counter() - start, cpu() - before


def submissions(folder, notebook, numbers):
    for i in numbers:
        path = folder / f"student{i:04}" / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(notebook)


def largest():
    """MB of the largest process waited for so far."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def ours(top, workers=1):
    """Grade what is in ``top``: seconds by the clock, CPU-seconds outside the sandboxes and in them, new results."""
    from classroom import batch
    known = set(os.listdir(top / "out" / "results")) if (top / "out").exists() else set()
    clock, cpu = spent(lambda: batch.grade(NAME, top / "submitted", top / "out", workers=workers, progress=False))
    results = [result for result in batch.read(top / "out")[0] if f"{result['key']}.json" not in known]
    assert all(sum(t["points"] for t in r["tests"]) == 26 for r in results), json.dumps(results[0])
    return clock, cpu, sum(r["cpu_seconds"] for r in results), len(results)


def compare(top, number, otter):
    from submissions import data, solved
    notebook = data(solved(whole=True))
    submissions(top / "submitted", notebook, range(number))
    run = {"env": {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
                   "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}, "cwd": top, "check": True, "capture_output": True}
    clock, outside, inside, _ = ours(top)
    mine = (outside + inside) / number
    print(f"ours      {clock / number:6.2f} s by the clock, {mine:6.2f} s of CPU a submission "
          f"({inside / number:.2f} in the sandbox); largest process {largest():.0f} MB", flush=True)

    source = top / "source" / NAME
    source.mkdir(parents=True)
    (source / f"{NAME}.ipynb").write_bytes((ROOT / "notebooks/assignments/source" / NAME / f"{NAME}.ipynb").read_bytes())
    subprocess.run([sys.executable, "-m", "nbgrader", "generate_assignment", NAME, "--create"], **run)
    autograde = [sys.executable, "-m", "nbgrader", "autograde", NAME]
    submissions(top / "submitted", notebook, [number])
    subprocess.run([*autograde, "--student", f"student{number:04}"], **run)  # Python compiles what it imports, as for ours
    clock, cpu = spent(lambda: subprocess.run(autograde, **run))
    print(f"nbgrader  {clock / number:6.2f} s by the clock, {cpu / number:6.2f} s of CPU a submission, in one process")
    ratio = mine / (cpu / number)
    print(f"ours / nbgrader: {ratio:.2f} of the CPU time; at most 0.6 s: {mine <= 0.6}, at most a third: {ratio <= 1 / 3}",
          flush=True)

    if otter:
        (top / "one.ipynb").write_bytes(notebook)
        otter_tests(top / "tests.zip")
        few = min(number, 5)
        command = [otter, "run", "one.ipynb", "-a", "tests.zip", "-o", str(top)]
        clock, cpu = spent(lambda: [subprocess.run(command, **run) for _ in range(few)])
        scores = json.loads((top / "results.json").read_text())["tests"]
        assert sum(test.get("score", 0) for test in scores) == 26, scores
        print(f"otter     {clock / few:6.2f} s by the clock, {cpu / few:6.2f} s of CPU a submission, without isolation")
        print(f"ours / otter: {mine / (cpu / few):.2f} of the CPU time")


def otter_tests(path):
    """The hidden tests of the assignment in otter's form."""
    from classroom.assignment import load
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("otter_config.json", json.dumps({"lang": "python"}))
        for test in load(NAME).tests:
            part = "extreme" if test.grade_id.endswith("extreme") else ""
            code = (">>> from classroom.tasks import judge\n"
                    f">>> bool(judge({test.function}, {NAME!r}, {part!r}))\nTrue")
            suite = {"cases": [{"code": code, "hidden": False, "locked": False}], "scored": True, "setup": "",
                     "teardown": "", "type": "doctest"}
            file.writestr(f"tests/{test.grade_id}.py", "OK_FORMAT = True\ntest = "
                          + repr({"name": test.grade_id, "points": test.points, "suites": [suite]}))


def growth(top, steps=(100, 200, 300, 400)):
    from submissions import data, solved
    notebook, begin = data(solved()), 0
    for step in steps:
        submissions(top / "submitted", notebook, range(begin, begin + step))
        begin += step
        clock, outside, inside, number = ours(top, workers=2)
        assert number == step, number
        print(f"{number} more, {begin} in all: {clock / number:.2f} s by the clock, {outside / number:.3f} s of CPU outside "
              f"and {inside / number:.2f} in the sandbox each; largest process so far {largest():.0f} MB", flush=True)


def with_variants(top, number):
    """The same class three times: without variants, each with their own, and each with the public solution instead."""
    from classroom import assignment, batch, trial, variants
    public = trial.solved(assignment.source(NAME), {})
    listed = variants.release(NAME, top / "handout", "bench", [f"student{i:04}" for i in range(number)])
    given, each = variants.read(listed), {}

    def own(student):
        path = top / "handout" / f"{NAME}-solutions" / given.file_of(student)
        return trial.solved(json.loads(path.read_text(encoding="utf-8")), given.details[given.students[student]])

    kinds = {"without variants": (lambda student: public, None), "a variant for each": (own, given),
             "wrong, since public": (lambda student: public | {"metadata": own(student)["metadata"]}, given)}
    for kind, (notebook, given_out) in kinds.items():
        for student in given.students:
            path = top / kind / student / f"{NAME}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(notebook(student)), encoding="utf-8")
        out = top / f"{kind}, graded"
        grade = functools.partial(batch.grade, NAME, top / kind, out, workers=1, progress=False, given=given_out)
        _, outside = spent(grade)
        results = list(batch.read(out)[0])
        full = sum(all(test["points"] == test["most"] for test in result["tests"]) for result in results)
        inside = sum(result["cpu_seconds"] for result in results)
        each[kind] = (outside + inside) / number
        print(f"{kind:20} {each[kind]:.2f} s of CPU a submission ({inside / number:.2f} in the sandbox), {full} of {number} "
              f"with full points; {each[kind] / each['without variants']:.2f} times", flush=True)


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("number", nargs="?", type=int, default=30)
    parser.add_argument("--otter", metavar="PROGRAM")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--variants", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        if options.growth:
            growth(Path(top))
        elif options.variants:
            with_variants(Path(top), options.number)
        else:
            compare(Path(top), options.number, options.otter)
