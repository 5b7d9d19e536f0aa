"""An autograder for Gradescope, in its documented form: a zip with setup.sh and run_autograder, which writes results.json.

The zip holds the course and one assignment. Of variants it holds the details by their code, and for each e-mail address a
hash that leads to a code: no name, no address, and not the key from which variants are drawn.
"""

import hashlib
import hmac
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
import zipfile
from dataclasses import asdict
from pathlib import Path

from classroom import Problem, assignment, batch, names, proof, sandbox, variants
from classroom.files import write_json
from classroom.grading import JUDGED

ROOMS = ("classroom", "helpers", "scripts", "data")
FILES = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE")
SETTINGS = "autograder.json"
SETUP = """#!/usr/bin/env bash
# Runs once, when Gradescope builds the image.
set -e
apt-get update
apt-get install -y bubblewrap util-linux python3 python3-venv
cd "${AUTOGRADER:-/autograder}/source/course"
python3 scripts/environment.py classroom --help
.venv/bin/python -m classroom.gradescope  # Python keeps compiled what each submission would compile again
"""
RUN = """#!/usr/bin/env bash
# Runs for each submission.
cd "${AUTOGRADER:-/autograder}/source/course"
exec .venv/bin/python -m classroom.gradescope "${AUTOGRADER:-/autograder}"
"""


class PackError(Problem):
    """One sentence: why there is no autograder."""


def pack(name, path, given=None, people=(), trusted=False):
    """Write the autograder of an assignment to ``path``, a zip. ``given``: the ``Variants`` that were given out; ``people``:
    the class, whose e-mail addresses say whose a submission is; ``trusted``: grade without a sandbox where there is none.
    Returns how many of the variants have an address. Raises AssignmentError, PackError."""
    proof.prove(name)
    called = assignment.called_by(name)  # a teacher's own takes its place among the course's
    if given and given.assignment != name:
        raise PackError(f"The list of variants is one of {given.assignment}, and {name} is to be packed.")
    salt = secrets.token_hex(16)
    known = {_hash(salt, one.email): one.variant for one in people if one.email and given and one.variant in given.details}
    if given:
        given.compute_sheets()
    listed = given and {**asdict(given), "assignment": called, "key": "", "students": sorted(set(given.students.values()))}
    settings = {"assignment": called, "trusted": trusted, "salt": salt, "known": known, "variants": listed}
    root, path = sandbox.ROOT, Path(path)
    files = [root / file for file in FILES]
    for room in ROOMS:
        files += [file for file in sorted((root / room).rglob("*")) if file.is_file() and "__pycache__" not in file.parts]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for script, text in (("setup.sh", SETUP), ("run_autograder", RUN)):
            member = zipfile.ZipInfo(script, (2020, 1, 1, 0, 0, 0))
            member.external_attr = (stat.S_IFREG | 0o755) << 16
            archive.writestr(member, text)
        archive.writestr(f"course/{SETTINGS}", json.dumps(settings, indent=1))
        archive.write(assignment.path_of(name), f"course/notebooks/assignments/source/{called}/{called}.ipynb")
        for file in files:
            archive.write(file, f"course/{file.relative_to(root).as_posix()}")
    part.replace(path)
    return len(known)


def _hash(salt, address):
    return hmac.new(bytes.fromhex(salt), address.strip().casefold().encode(), hashlib.sha256).hexdigest()


def run(home):
    """Grade the submission in ``home/submission`` and write ``home/results/results.json``, as Gradescope reads it. What is
    for the teacher alone is printed, which Gradescope shows to nobody else."""
    home, root = Path(home), sandbox.ROOT
    settings = json.loads((root / SETTINGS).read_text(encoding="utf-8"))
    try:
        answer = _graded(home, settings)
    except (Problem, sandbox.NoSandbox) as error:
        print(error)
        answer = {"output": "This could not be graded automatically. Your teacher will look at it.", "tests": []}
    write_json(home / "results" / "results.json", answer)


def _owner(home, settings):
    """The code of the variant that was given to the one address of those who handed in that has one; or "student"."""
    try:
        users = json.loads((home / "submission_metadata.json").read_text(encoding="utf-8"))["users"]
        mails = [str(user["email"]) for user in users]
    except (OSError, ValueError, KeyError, TypeError):
        mails = []
    codes = {settings["known"].get(_hash(settings["salt"], mail)) for mail in mails} - {None}
    return codes.pop() if len(codes) == 1 else "student"


def _graded(home, settings):
    """What Gradescope reads of a submission, a dict: scores only where every test was judged."""
    given, whose = settings["variants"], _owner(home, settings)
    if given:
        given = variants.Variants(**{**given, "students": {code: code for code in given["students"]}})
    with tempfile.TemporaryDirectory() as folder:
        mine = Path(folder) / "in" / whose
        mine.mkdir(parents=True)
        for number, file in enumerate(sorted((home / "submission").rglob("*"))):
            if names.kind_of(file.name) and file.is_file() and not file.is_symlink():
                shutil.copy2(file, mine / f"{number}-{file.name}"[-100:])
        [result] = batch.grade(settings["assignment"], Path(folder) / "in", Path(folder) / "out", workers=1, given=given,
                               secret=settings["salt"],
                               trusted=settings["trusted"] and bool(sandbox.problem()), progress=False)
    for words in [*result["flags"], *result["notes"]]:
        print(words)
    judged = all(test["status"] in JUDGED for test in result["tests"])
    extreme = {test["grade_id"]: " (extreme inputs)" * test["grade_id"].endswith("-extreme") for test in result["tests"]}
    tests = [{"name": test["words"] or test["function"] + extreme[test["grade_id"]],
              "max_score": test["most"], "output": test["message"],
              **({"score": test["points"]} if judged else {})} for test in result["tests"]]
    words = [] if judged else [f"{result['reason']} Your teacher will look at it."]
    words += [f"{len(result['answers'])} written answers are marked by your teacher."] if result["answers"] else []
    return {"output": "\n".join(words), "tests": tests, "execution_time": result.get("clock_seconds", 0),
            **({"score": sum(test["points"] for test in result["tests"])} if judged else {})}


def compile_once():
    """Let Python keep compiled what the assignment imports, while the image is built."""
    settings = json.loads((sandbox.ROOT / SETTINGS).read_text(encoding="utf-8"))
    batch.compile_once(assignment.imports(settings["assignment"]))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    run(sys.argv[1]) if sys.argv[1:] else compile_once()
