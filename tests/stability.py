"""Do the stored outputs hold elsewhere? make stability [NB="notebooks/05*.ipynb"] [SETTING ...]

Runs the strict comparison of every notebook once for each setting below and reports, cell by cell, what differed.
An output that does not hold is made robust at its source: print what the argument needs, or a verdict.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THREADS = ("ATTENTION_COURSE_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # conftest.py turns the first into OMP's
SETTINGS = {  # name: (what the kernels see, in words)
    "one-thread": (dict.fromkeys(THREADS, "1") | {"PYTHONHASHSEED": "1"}, "one thread"),
    "two-threads": (dict.fromkeys(THREADS, "2") | {"PYTHONHASHSEED": "2"}, "two threads, another order of sets"),
    "old-processor": ({"OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
                       "PYTHONHASHSEED": "3"}, "no AVX in NumPy's and torch's matrix products"),
}


def compare(name, notebooks):
    """Run one setting. Returns (cells compared, [(notebook, cell, what differed)], seconds)."""
    variables, _ = SETTINGS[name]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--nbval-cell-timeout=300", "-n", "2",
             "--dist", "loadfile", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *notebooks],
            cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if done.returncode not in (0, 1) or not report.exists():
            raise RuntimeError(f"pytest could not run: {(done.stdout + done.stderr)[-1500:]}")
        cases = list(ET.parse(report).getroot().iter("testcase"))
    different = [(case.get("classname"), case.get("name"), problem.text or problem.get("message") or "")
                 for case in cases for problem in [*case.findall("failure"), *case.findall("error")]]
    return len(cases), different, seconds


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=f"notebooks, or settings: {', '.join(SETTINGS)} (default: all of both)")
    what = parser.parse_args(arguments).what
    settings = [name for name in SETTINGS if name in what] or list(SETTINGS)
    notebooks = [name for name in what if name not in SETTINGS]
    for name in notebooks:
        if not (ROOT / name).exists():
            parser.error(f"{name} is neither a notebook nor a setting ({', '.join(SETTINGS)})")
    found = {}
    for name in settings:
        cells, different, seconds = compare(name, notebooks or ["notebooks"])
        print(f"{name} ({SETTINGS[name][1]}): {cells - len(different)} of {cells} cells hold, {seconds:.0f} s", flush=True)
        for notebook, cell, problem in different:
            found.setdefault((notebook, cell), []).append((name, problem))
    for (notebook, cell), problems in sorted(found.items()):
        print(f"\n{notebook}, {cell} differs under {', '.join(name for name, _ in problems)}:\n{problems[0][1][:1500]}")
    print(f"\n{len(found)} cells differ." if found else "\nEvery stored output holds.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
