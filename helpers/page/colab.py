"""The course on Google Colab: what the first code cell of every lesson runs there.

Colab opens a notebook without the files beside it. So that cell clones the course and runs this file; anywhere else it
does nothing. ``scripts/address.py`` writes it.
"""

import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def missing():
    """The requirements of pyproject.toml that are not met here, as pip takes them; JupyterLab and nbval do not count."""
    import tomllib  # Python 3.11; Colab has it
    from packaging.requirements import Requirement

    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    unmet = []
    for requirement in map(Requirement, dependencies):
        try:
            met = requirement.specifier.contains(importlib.metadata.version(requirement.name), prereleases=True)
        except importlib.metadata.PackageNotFoundError:
            met = False
        here = not requirement.marker or requirement.marker.evaluate()
        if here and not met and requirement.name not in ("jupyterlab", "nbval"):
            unmet.append(str(requirement))
    return unmet


def set_up():
    """Install what the lessons import and this machine lacks. Raises SystemExit, with one sentence, if pip cannot."""
    packages = missing()
    if packages:
        print("Installing what Colab does not have:", ", ".join(packages), "...", flush=True)
        pip = subprocess.run([sys.executable, "-m", "pip", "install", "-q", *packages], capture_output=True, text=True)
        if pip.returncode:
            last = (pip.stderr.strip() or "nothing").splitlines()[-1]
            raise SystemExit(f"The packages could not be installed, run this cell again; pip's last words were: {last}")
        importlib.invalidate_caches()
    print("The course is ready. Colab forgets it, your answers and your progress when this machine is given back:"
          " save a copy of the notebook (File > Save a copy in Drive).")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    set_up()
