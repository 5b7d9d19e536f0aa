"""The classroom's command line as a teacher types it, in this process."""

import contextlib
import io

from classroom.__main__ import main


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
