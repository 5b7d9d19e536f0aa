"""Commands as a teacher types them: the classroom's, in this process, and nbgrader's."""

import contextlib
import io
import os
import subprocess
import sys

import pytest

from classroom.__main__ import main
from classroom.sandbox import ROOT


def command(*words, fails=False):
    """What ``python -m classroom`` says with these words; with ``fails``, the one sentence that it ends with."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(word) for word in words])
    said, problem = out.getvalue(), err.getvalue()
    assert status == fails, problem or said
    if fails:
        assert problem.count("\n") == 1 and not said, problem + said
    return problem if fails else said


def nbgrader(folder, *words):
    """What ``nbgrader`` says with these words in the folder of its course."""
    pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install nbgrader")
    here = {"PATH": os.path.dirname(sys.executable), "PYTHONPATH": str(ROOT)}  # it calls alembic by name
    paths = {name: os.pathsep.join(filter(None, [path, os.environ.get(name)])) for name, path in here.items()}
    done = subprocess.run([sys.executable, "-m", "nbgrader", *words], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, **paths})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
