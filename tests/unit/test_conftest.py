"""conftest.py: how notebooks and tests are run, by pytest in a process of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

REPO = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture
def folder():
    """A folder below the repository, so that its conftest.py counts; it is taken away afterwards."""
    path = REPO / "build" / f"conftest-test-{os.getpid()}"
    path.mkdir(parents=True)
    yield path
    shutil.rmtree(path)


def pytest_on(*arguments):
    """pytest in a process of its own: its exit code and what it wrote."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *map(str, arguments)], cwd=REPO,
                          capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout


def write(path, *cells):
    """A notebook of (source, printed or None, execution count)."""
    nbformat.write(new_notebook(cells=[
        new_code_cell(source, execution_count=count, outputs=[] if text is None else [new_output("stream", text=text)])
        for source, text, count in cells]), path)


def test_a_notebook_runs_as_in_jupyter_without_any_option(folder):
    """Also with workers, which must not tear the cells of a notebook apart."""
    write(folder / "a.ipynb", ("x = 1", None, 1), ("x;", None, 2), ("print(x, len(In))", "1 4\n", 3))
    write(folder / "b.ipynb", ("y = 1", None, 1), ("y", None, 2))
    for options in ([], ["-n", "2"]):
        code, said = pytest_on("--nbval", folder, *options)
        assert code == 1 and "4 passed" in said and "1 failed" in said and "b.ipynb::Cell 1" in said, said


def test_a_notebook_that_was_never_run_is_refused(folder):
    write(folder / "a.ipynb", ("x = 1", None, None))
    code, said = pytest_on("--nbval", folder)
    assert code == 1 and "was never run, so it proves nothing" in said
