"""Do the stored outputs hold elsewhere? make stability [NB="notebooks/05*.ipynb"] [SETTING ...]

Runs the strict comparison of every notebook once for each setting below; pytest says which cells differ, and how. An
output that does not hold is made robust at its source: print what the argument needs, or a verdict.

The settings "oldest" and "newest" make environments of their own in build/environments. torch is the one of
constraints.txt there too, because another may be gigabytes of GPU packages; ATTENTION_COURSE_TORCH="torch==2.6.*"
asks for another.
"""

import argparse
import os
import re
import subprocess
import sys

from helpers.measure import jitter
from scripts import ROOT, setup

THREADS = ("ATTENTION_COURSE_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # conftest.py turns the first into OMP's
SETTINGS = {  # name: (what the kernels see, in words)
    "one-thread": (dict.fromkeys(THREADS, "1") | {"PYTHONHASHSEED": "1"}, "one thread"),
    "two-threads": (dict.fromkeys(THREADS, "2") | {"PYTHONHASHSEED": "2"}, "two threads, another order of sets"),
    "old-processor": ({"OPENBLAS_CORETYPE": "Nehalem", "ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
                       "PYTHONHASHSEED": "3"}, "no AVX in NumPy's and torch's matrix products"),
    **{f"jitter-{draw}": ({jitter.VARIABLE: str(draw), "PYTHONHASHSEED": str(10 + draw)},
                          f"first weights that differ in their last bit, draw {draw}: as on another processor")
       for draw in jitter.DRAWS},
    "oldest": ({}, "the oldest packages that pyproject.toml admits"),
    "newest": ({}, "the newest packages that there are"),
}
JITTER = [name for name in SETTINGS if name.startswith("jitter")]  # what the word "jitter" stands for
RESOLUTION = {"oldest": "lowest-direct", "newest": "highest"}  # uv's words for those two


def pinned(package):
    """Its line in constraints.txt."""
    return re.search(rf"^{package}==.*$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)[0]


def interpreter(name):
    """The Python of a setting's environment, which is made anew: with uv's cache that takes seconds."""
    if name not in RESOLUTION:
        return sys.executable
    folder = ROOT / "build" / "environments" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    print(f"Installing {SETTINGS[name][1]} into {folder.relative_to(ROOT)} ...", flush=True)
    venv = [sys.executable, "-m", "uv", "venv", "--quiet", "--clear", "--python", sys.executable, folder]
    subprocess.run(venv, check=True)
    override = folder / "torch.txt"
    override.write_text(f"{os.environ.get('ATTENTION_COURSE_TORCH') or pinned('torch')}\n")
    what = ["--resolution", RESOLUTION[name], "--override", override, "-e", ".[maintain]"]
    where = {"python": python, "constraints": ""}
    setup.uv([*setup.torch_build(what, **where), *what], **where)
    setup.uv(["--no-deps", *map(pinned, setup.MODELS)], **where)
    return python


def holds(name, notebooks):
    """Compare the outputs of these notebooks under one setting: whether all are as stored. pytest prints what is not."""
    variables, python = SETTINGS[name][0], interpreter(name)
    workers = "0" if len(notebooks) == 1 and notebooks[0].endswith(".ipynb") else "3"
    command = [python, "-m", "pytest", "--nbval", "--dist", "loadfile", "-n", workers, "-q", "-p", "no:cacheprovider"]
    return subprocess.run([*command, *notebooks], cwd=ROOT, env={**os.environ, **variables}).returncode == 0


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=f"notebooks, or settings: {', '.join(SETTINGS)}, or jitter for "
                        "its draws (default: all of both)")
    what = parser.parse_args(arguments).what
    what = [name for word in what for name in (JITTER if word == "jitter" else [word])]
    settings = [name for name in SETTINGS if name in what] or list(SETTINGS)
    notebooks = [name for name in what if name not in SETTINGS] or ["notebooks"]
    for name in notebooks:
        if not (ROOT / name).exists():
            parser.error(f"{name} is neither a notebook nor a setting ({', '.join(SETTINGS)})")
    differing = []
    try:
        for name in settings:
            print(f"{name}: {SETTINGS[name][1]}", flush=True)
            if not holds(name, notebooks):
                differing.append(name)
    except setup.Stop as stop:
        print(stop, file=sys.stderr)
        return 1
    print(f"Outputs differ under {', '.join(differing)}." if differing else "Every stored output holds.")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
