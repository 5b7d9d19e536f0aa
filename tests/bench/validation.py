"""How long does it take to validate the course: as `make test` does it, against plain nbval, notebook after notebook?

    python tests/bench/validation.py                        # everything: a quarter of an hour
    python tests/bench/validation.py notebooks/0[1-3]*      # some

A benchmark, not a test. Ours: two notebooks at a time, the longest first, one thread a kernel, helped by conftest.py.
Plain: `pytest --nbval` without conftest.py and with the number of threads that torch chooses. Plain nbval also reports
differences where a line ends in a semicolon, say; here only its time counts.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NBVAL = [sys.executable, "-m", "pytest", "-q", "--nbval", "--nbval-current-env"]


def seconds(command, **more):
    """Seconds by the clock; and the command's last line."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **more})
    return time.perf_counter() - start, (done.stdout.strip().splitlines() or ["nothing"])[-1]


def main(notebooks):
    ours, said = seconds([*NBVAL, "-n", "2", "--dist", "loadfile", *notebooks])
    print(f"ours   {ours:7.1f} s: {said}", flush=True)
    plain = 0
    for notebook in notebooks:
        took, said = seconds([*NBVAL, "--noconftest", "-p", "no:cacheprovider", "-p", "no:xdist", notebook])
        plain += took
        print(f"       {took:7.1f} s plain: {notebook}: {said}", flush=True)
    print(f"plain  {plain:7.1f} s\nours / plain: {ours / plain:.2f}")


if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.pop(name, None)
    main(sys.argv[1:] or sorted(str(path.relative_to(ROOT)) for path in (ROOT / "notebooks").rglob("*.ipynb")
                                if ".ipynb_checkpoints" not in path.parts))
