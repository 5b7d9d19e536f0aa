"""CPU-seconds for each submission: ours, and nbgrader's autograder in one process, on the same notebooks.

    python tests/bench/grading.py [NUMBER]

A benchmark, not a test. Ours is the CPU time of the grader's processes and what each sandbox says that it used,
imports and calls included; nbgrader's is that of its process and its kernels. One thread each.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
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


def main(number):
    from submissions import data, solved

    from helpers.classroom import batch
    notebook = data(solved(whole=True))
    with tempfile.TemporaryDirectory() as top:
        top = Path(top)
        for i in range(number):
            (top / "submitted" / f"student{i}" / NAME).mkdir(parents=True)
            (top / "submitted" / f"student{i}" / NAME / f"{NAME}.ipynb").write_bytes(notebook)
        source = top / "source" / NAME
        source.mkdir(parents=True)
        (source / f"{NAME}.ipynb").write_bytes((ROOT / "notebooks/assignments/source" / NAME / f"{NAME}.ipynb").read_bytes())
        run = {"env": {**os.environ, "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
                       "OMP_NUM_THREADS": "1"}, "cwd": top, "check": True, "capture_output": True}
        clock, cpu = spent(lambda: batch.grade(NAME, top / "submitted", top / "out", workers=1, progress=False))
        results, _ = batch.read(top / "out")
        assert all(sum(t["points"] for t in r["tests"]) == 26 for r in results), json.dumps(results[0])
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        inside = sum(r["seconds"]["cpu inside"] for r in results)
        ours = (cpu + inside) / number
        print(f"ours      {clock / number:6.2f} s by the clock, {ours:6.2f} s of CPU a submission "
              f"({inside / number:.2f} in the sandbox); largest process {memory:.0f} MB")
        subprocess.run([sys.executable, "-m", "nbgrader", "generate_assignment", NAME, "--create"], **run)
        clock, cpu = spent(lambda: subprocess.run([sys.executable, "-m", "nbgrader", "autograde", NAME], **run))
        print(f"nbgrader  {clock / number:6.2f} s by the clock, {cpu / number:6.2f} s of CPU a submission, in one process")
        print(f"ours / nbgrader: {ours / (cpu / number):.2f} of the CPU time")


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
