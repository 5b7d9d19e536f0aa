"""CPU-seconds for each submission: ours against nbgrader's autograder in one process, on the same notebook.

    python tests/bench/grading.py [NUMBER]   # 30 of them by default

A benchmark, not a test. Ours is the CPU time of the grader's processes and what the kernel says that each sandbox used,
imports and calls included; theirs is that of their process and its kernels. One thread each.
"""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "classroom"))
NAME = "assignment1"


def spent(run):
    """CPU-seconds of this process and those it waited for that ``run()`` takes."""
    def cpu():
        both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(used.ru_utime + used.ru_stime for used in both)

    before = cpu()
    run()
    return cpu() - before


def hand_in(folder, notebook, numbers):
    for i in numbers:
        path = folder / f"student{i:04}" / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(notebook)


def compare(top, number):
    from submissions import data, solved

    from classroom import batch
    notebook = data(solved(whole=True))
    hand_in(top / "submitted", notebook, range(number))
    outside = spent(lambda: batch.grade(NAME, top / "submitted", top / "out", workers=1, progress=False))
    results = list(batch.read(top / "out")[0])
    assert all(sum(t["points"] for t in r["tests"]) == 26 for r in results), results[0]
    inside = sum(r["cpu_seconds"] for r in results)
    print(f"ours      {(outside + inside) / number:6.2f} s of CPU a submission ({inside / number:.2f} in the sandbox)")

    path = Path("source") / NAME / f"{NAME}.ipynb"
    (top / path).parent.mkdir(parents=True)
    (top / path).write_bytes((ROOT / "notebooks" / "assignments" / path).read_bytes())

    def nbgrader(*words):
        programs = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        subprocess.run([sys.executable, "-m", "nbgrader", *words], env={**os.environ, "PATH": programs}, cwd=top, check=True,
                       capture_output=True)

    nbgrader("generate_assignment", NAME, "--create")
    hand_in(top / "submitted", notebook, [number])
    nbgrader("autograde", NAME, "--student", f"student{number:04}")  # Python compiles what it imports, as for ours
    theirs = spent(lambda: nbgrader("autograde", NAME))
    print(f"nbgrader  {theirs / number:6.2f} s of CPU a submission, in one process")


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 30)
