"""Is a teacher's own notebook sound: do its solutions pass every test, and what is handed out none?"""

import json
import re
from dataclasses import replace

from classroom import assignment, grading, own, sandbox, variants


def prove(name, listed=()):
    """Try a teacher's own notebook as submissions are tried: with its solutions, in each variant of ``listed`` (details of
    its functions), and once as it is handed out. Nothing is done for the course's own assignments. Raises OwnError."""
    task = assignment.load(name)
    if not task.file:
        return
    different = {str(details): details for details in listed} or {"": {}}
    for number, details in enumerate(different.values()):
        raw = variants.render({}, name, details)
        given = replace(task, details=details)
        _check_solutions(trial(raw, given), details)
        if not number:
            _check_stubs(trial(assignment.strip(raw), given, stubs=True))


def trial(raw, task, stubs=False):
    """The result of a notebook as ``grade_one`` gives it; what a teacher wrote may run without a sandbox too."""
    return grading.grade_one(json.dumps(raw).encode(), task, seed=0, trusted=bool(sandbox.problem()), stubs=stubs)


def _check_solutions(result, details):
    where = f" in the variant {_words(details)}" if details else ""
    for test in result["tests"]:
        if test["points"] != test["most"]:
            why = test.get("trace") or test["message"]
            complaints = [note for note in result["notes"] if note.startswith("Code cell")]
            strange = [f"({own.TRAVELS}.)"] if re.search("not callable|has no attr|object is not", why) else []
            words = f"The solution{where} does not pass {test['grade_id']}: {why.rstrip('.')}."
            raise own.OwnError(" ".join([words, *strange, *complaints]))


def _words(details):
    return ", ".join(f"{name} = {value}" for name, value in next(iter(details.values())).items())


def _check_stubs(result):
    for test in result["tests"]:
        if test["points"]:
            raise own.OwnError(f"{test['grade_id']} gives {test['points']:g} of {test['most']:g} points to who has written "
                               "nothing: a test has to call what a solution defines, in its own cell and not in one above.")
