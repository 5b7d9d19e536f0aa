"""Grade a whole class, several at a time. Each result is a file; what is there already is not graded again."""

import copy
import hmac
import itertools
import multiprocessing
import os
import re
import secrets
import subprocess
import sys
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path

from pebble import ProcessExpired, ProcessPool

from classroom import attempts, clock, first_few, progress_bar, proof, roster, sandbox, tasks, variants
from classroom.assignment import called_by, fingerprint, imports, load, path_of
from classroom.collecting import NothingFound, collect
from classroom.files import read_json, write_json
from classroom.grading import FAILED, failed, grade_one
from classroom.names import MOODLE
from classroom.notebook import Unreadable
from classroom.sandbox import Limits
from classroom.teams import one_variant, shared
from helpers.store.files import write_whole

# What the grader itself may use for one submission: to read what the functions gave back, and to judge it. An honest one
# takes half a second. Sandboxes have limits of their own.
JUDGING_SECONDS, JUDGING_MEMORY = 60, 2 * 2**30
TEAM = re.compile(r"^(team|gro?upp?[eo]?)\b|\b(team|group)[ _-]?\w{0,3}$|\w (and|und|&|\+) \w|\w[&+]\w",
                  re.IGNORECASE)
MOST_TEAMS = 10  # that are told
MOST_SHOWN = 6  # students of one kind that are named where people read a summary
LOST = ("The grader's own process was killed at this submission: what it gave back may take far too much time or memory to "
        "judge.")


def grade(name, source, out, *, workers=None, trusted=False, limits=None, again=False, progress=True, given=None, people=(),
          teams=(), only="", count="last", secret="", zone=None):
    """Grade every submission of assignment ``name`` in ``source`` into ``out/results``; returns the results.

    ``workers``: processes on this machine (default: its cores); ``limits``: other ``Limits``; ``again``: also grade what has
    a result that still holds; ``given``: the ``Variants`` that were given out; ``people``: the class, as ``roster.read``
    gives it, and its ``teams``; ``only``: one student, and everybody else's result stays as it is; ``count``: which of
    several notebooks of a student counts, one of ``attempts.HOW``; ``secret``: what the random inputs follow from, beside
    the notebook, so that one notebook has one grade (default: the key of ``given``, or one that is kept in ``out``);
    ``zone``: of the clock by which all dates are (default: that of ``out``, or at first this machine's). Raises
    AssignmentError, NothingFound, VariantError and NoSandbox, before anything is graded.
    """
    assignment, limits = load(name), limits or Limits()
    functions, zone = {test.function for test in assignment.tests}, zone or clock.of(out)
    submissions, refused = collect(source, assignment.name, functions, leave_out=Path(out), zone=zone)
    label = f"{assignment.name}.ipynb" if assignment.file else name  # a copy of a teacher's own is kept with the results
    _hold_against(submissions, name, label, given, Path(out))
    if not trusted and sandbox.problem():
        raise sandbox.NoSandbox(sandbox.problem())
    decides = fingerprint(name, limits, trusted)
    submissions, team_of = shared(submissions, people, teams)
    whose, told = roster.who(submissions, people, given)
    whose = one_variant(submissions, whose, team_of)
    told = _teams([one for one in submissions if one.key not in team_of], given) + told
    names = {id(person): name for name, person in roster.label([person for person, *_ in whose if person])}
    one = _one(only, submissions, whose)
    graded_now = [(submission, *mine) for submission, mine in zip(submissions, whose, strict=True)
                  if one in (None, submission.key)]
    folder, todo = Path(out) / "results", []
    folder.mkdir(parents=True, exist_ok=True)
    for submission, person, code, flag in graded_now:
        if again:  # forget the old result at once, so that an interruption leaves none that looks new
            attempts.forget(out, submission.key)
        for attempt, variant, details, words in _attempts(submission, given, code, flag, count):
            about = {"student": names.get(id(person), submission.student), "person": asdict(person) if person else {},
                     "id": submission.id, "folder": submission.folder, "key": submission.key, "digest": attempt.digest,
                     "file": attempt.file, "modified": attempt.modified,
                     "found": [note for note in submission.notes if count == "last" or note != submission.which],
                     "variant": variant, "details": details, "team": team_of.get(submission.key, ""),
                     "fingerprint": f"{decides} {attempt.digest or attempt.problem} {details} {words}"}
            if not _still_holds(out, about):
                todo.append(({**about, "flag": words}, attempt))

    def keep(about, result):
        result["flags"] += _more_flags(about.pop("flag"), result, given)
        keep_figures(out, about, result.pop("figures"))
        attempts.keep(out, {**about, **result})

    before = (read_json(Path(out) / "batch.json") or {}).get("secret")
    secret = secret or given and given.key or before or secrets.token_hex(16)
    if given and todo:
        given.compute_sheets(progress)  # of lists that an earlier version released
    options = {"trusted": trusted, "limits": limits, "given": given and given.given(), "secret": secret}
    if assignment.file and todo:
        proof.prove(name, list(given.details.values())[:1] if given else ())
    if len(todo) > 1:
        compile_once(imports(name))
    _run(todo, name, keep, workers, options, progress)
    for submission, *_ in graded_now:
        attempts.settle(out, submission.key, submission.digest, count)
    keys = sorted((submission.key for submission in submissions), key=str.casefold)
    others = [path.stem for path in sorted(folder.glob("*.json")) if path.stem not in keys]
    if assignment.file:
        write_whole(Path(out) / label, path_of(name).read_text(encoding="utf-8"))
    about = {"assignment": label, "keys": keys, "refused": refused, "others": others, "told": told, "only": one or "",
             "zone": str(zone), **({} if given and given.key else {"secret": secret})}
    write_json(Path(out) / "batch.json", about)
    return read(out)[0]


def _attempts(submission, given, code, flag, count):
    """What is graded of a student: each notebook, with the code of its variant, the details and a flag."""
    yield submission, *_variant(submission, given, code, flag)
    if count == "best" and submission.problem != roster.UNCERTAIN:
        for attempt in submission.earlier:
            code_and_flag = given.find(submission.student, attempt.variant, code) if given else ("", "")
            yield attempt, *_variant(attempt, given, *code_and_flag)


def _still_holds(out, about):
    """Is there a result of this notebook that still holds? What is known of its student by now is written into it."""
    for result in attempts.graded(out, about["key"]):
        if result.get("fingerprint") == about["fingerprint"]:
            if result != {**result, **about}:
                attempts.keep(out, {**result, **about})
            return True
    return False


def _more_flags(flag, result, given):
    """The flag that a student's variant has, and one for each function that is right for another's."""
    mistakes = {test["function"]: f", or simply the mistake {test['misconception']!r}"
                for test in result["tests"] if test["misconception"]}
    return [flag] * bool(flag) + [
        f"{function} is right for another variant: {given.whose(function, details)}{mistakes.get(function, '')}"
        for function, details in result.pop("right_for", {}).items()]


def _teams(submissions, given):
    """Sentences on folders that look like a team's: each was graded as one student, and silently that would be wrong."""
    owners, told = {code: student for student, code in (given.students if given else {}).items()}, []
    for one in submissions:
        attempts_of = [one, *one.earlier]
        folders = {attempt.file.split("/")[1] for attempt in attempts_of if attempt.file.count("/") > 1}
        several = sorted({owners[attempt.variant] for attempt in attempts_of if attempt.variant in owners})
        if len(several) > 1:
            why = f"holds notebooks of {' and '.join(several[:4])}"
        elif len(folders) > 1 and not one.id:
            why = f"holds notebooks in the folders {', '.join(sorted(folders)[:4])}"
        elif TEAM.search(one.student) and (not one.id or MOODLE.match(one.folder)):
            why = "is called like one"
        else:
            continue
        told.append(f"{one.student} may be a team, because it {why}; it was graded as one student, by one notebook. For a "
                    "grade each, name the team in the list of students, as in 'Team 3: Ada Lovelace; Ben Okri', and give "
                    "grade --roster this list, or in Moodle its grading worksheet.")
    return told[:MOST_TEAMS] + [f"{len(told) - MOST_TEAMS} more may be teams."] * (len(told) > MOST_TEAMS)


def compile_once(modules):
    """Let Python keep these modules compiled, and what they import. A sandbox writes nothing, so in a new environment, where
    the installer compiled nothing, it would compile them for each submission: most of the time that one takes."""
    code = "".join(f"try:\n    import {module}\nexcept Exception:\n    pass\n" for module in modules)
    seen = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "MPLBACKEND": "Agg"}
    with suppress(OSError, subprocess.SubprocessError):  # then it is slow, and that is all
        subprocess.run([sys.executable, "-c", code], cwd=sandbox.ROOT, env=seen, timeout=300, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _one(only, submissions, whose):
    """The key of the one student to be graded, or None for all. Raises NothingFound."""
    people = [(submission.key, roster.called({"key": submission.key, "student": submission.student, "id": submission.id,
                                              "person": person and asdict(person)}))
              for submission, (person, *_) in zip(submissions, whose, strict=True)]
    keys = roster.find(only, people) if only else []
    if len(keys) > 1:
        raise NothingFound(roster.which(only, keys))
    if only and not keys:
        near = get_close_matches(only, {word: "" for _, words in people for word in words}, 3, 0.5)
        raise NothingFound(f"Nobody called {only} is among the submissions: give a name, number or login as it is there"
                           f"{', such as ' if near else ''}{'; '.join(near)}.")
    return keys[0] if only else None


def _hold_against(submissions, name, label, given, out):
    """Raises NothingFound or VariantError when ``out``, most submissions or the list of variants are of something else,
    which one hostile student alone cannot bring about."""
    half, carry = max(1, len(submissions) / 2), [submission for submission in submissions if submission.variant]
    before = (read_json(out / "batch.json") or {}).get("assignment", label)
    if before != label:
        raise NothingFound(f"{out} holds the results of {before}: name another folder for those of {label}.")
    others = [submission.problem for submission in submissions if submission.problem.startswith("No notebook of")]
    if len(others) > half:
        raise NothingFound(f"{len(others)} of {len(submissions)} submissions are of something else: {others[0]} Name the "
                           "assignment that was handed in.")
    if given and given.assignment != str(name):
        raise variants.VariantError(f"The list of variants is one of {given.assignment}, and {name} is to be graded: give "
                                    f"that of {name}.")
    if given and len(strange := [one.variant for one in carry if one.variant not in given.details]) > half:
        raise variants.VariantError(f"{len(strange)} of {len(submissions)} notebooks carry variants that this list does not "
                                    f"know, such as {strange[0]!r}: it is the list of {given.variant!r}. Give the one that "
                                    "was released with them.")
    if not given and len(carry) > half:
        raise variants.VariantError(f"{len(carry)} of {len(submissions)} notebooks carry a variant, such as "
                                    f"{carry[0].variant!r}: say --variants and the list that release wrote, "
                                    f"{called_by(name)}-variants.json.")


def _variant(submission, given, code, flag):
    """(code, details, flag) of a submission. What cannot be told becomes its problem."""
    if submission.problem:
        return "", {}, flag if submission.problem == roster.UNCERTAIN else ""
    if not given:
        public = submission.variant and (f"the notebook carries the variant {submission.variant!r}, and was graded as the "
                                         "course's own: no list of variants was given")
        return "", {}, "; ".join(filter(None, (flag, public)))
    if not code:
        submission.problem, submission.status, flag = flag, "refused", ""
    return code, given.details.get(code, {}), flag


def read(out):
    """The ``Results`` that the last ``grade`` into ``out`` covered, and what it was about. Raises NothingFound."""
    about = read_json(Path(out) / "batch.json")
    if not (Path(out) / "batch.json").exists():
        raise NothingFound(f"Nothing was graded into {out} yet: run grade first, or name the folder that it wrote to.")
    if not about or not {"assignment", "keys"} <= about.keys():
        raise NothingFound(f"{Path(out) / 'batch.json'} is not as grade writes it: give the command of grade once more.")
    if about["assignment"].endswith(".ipynb"):
        about["assignment"] = str(Path(out) / about["assignment"])
    return Results(Path(out) / "results", about["keys"]), about


class Results:
    """The results of a class, in order. Each is read when it is looked at, so that memory does not grow with the class."""

    def __init__(self, folder, keys):
        self.paths = [path for key in keys if read_json(path := folder / f"{key}.json")]

    def once(self):
        """These without the others of a team, who have the notebook of its first."""
        alone = copy.copy(self)
        alone.paths = [path for path, result in zip(self.paths, self, strict=True)
                       if result.get("team") in (None, "", result["key"])]
        return alone

    def __len__(self):
        return len(self.paths)

    def __iter__(self):
        return filter(None, map(read_json, self.paths))


def keep_figures(out, result, figures):
    """The pictures of a submission are kept beside its result, which is read far more often: those of each attempt."""
    path = attempts.place(out, result, "figures")
    if figures:
        write_json(path, figures)
    else:
        path.unlink(missing_ok=True)


def read_figures(out, result):
    """Pictures as base64; none where none were kept."""
    return "digest" in result and read_json(attempts.place(out, result, "figures"), list) or []


def _run(todo, name, keep, workers, options, progress):
    """Grade ``todo`` and ``keep`` each result as it comes. A file that takes its worker down costs only itself, and only a
    few submissions are in memory at a time."""
    workers, left, waiting = min(workers or cores(), len(todo)) or 1, iter(todo), {}
    with (progress_bar("Grading", len(todo), progress) as bar,
          ProcessPool(workers, context=multiprocessing.get_context("spawn")) as pool):
        try:
            while True:
                for about, submission in itertools.islice(left, 3 * workers - len(waiting)):
                    job = pool.schedule(_job, (name, *_data(submission), about["details"]), options)
                    waiting[job] = about, submission
                if not waiting:
                    return
                for job in wait(waiting, return_when=FIRST_COMPLETED).done:
                    about, submission = waiting.pop(job)
                    keep(about, _result(job, name, submission))
                    bar.update()
        except BaseException:
            pool.stop()  # with each worker its sandbox ends
            raise


def _result(job, name, submission):
    """What a job gave, or what is said of a submission where the grader stopped at it. Raises NoSandbox."""
    try:
        return job.result()
    except ProcessExpired:
        words = LOST
    except sandbox.NoSandbox:
        raise
    except Exception as error:
        words = f"The grader itself stopped: {type(error).__name__}: {error}"[:300]
    return failed(load(name), "crashed", words, _data(submission)[0])


def _data(submission):
    """The bytes of the submission and (), or nothing and (how it ends, why)."""
    if not submission.problem:
        try:
            return submission.read(), ()
        except (Unreadable, OSError, MemoryError) as error:
            return b"", (getattr(error, "status", "unreadable"), str(error))
    return b"", (submission.status, submission.problem)


def cores():
    """How many processors this process may use, at least 1: a container or a batch system may give it fewer than there
    are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _job(name, data, unreadable, details=None, *, trusted, limits, secret, given=None):
    """Runs in a worker: everything it needs is in its arguments and in the course."""
    if unreadable:
        return failed(load(name), *unreadable)
    with_sheets = {function: next((one for one in (given or {}).get(function, ()) if tasks.without_sheet(one) == mine), mine)
                   for function, mine in (details or {}).items()}
    with sandbox.limited(JUDGING_MEMORY, JUDGING_SECONDS):
        return grade_one(data, replace(load(name, with_sheets), limits=limits, given=given or {}),
                         seed=seed_of(data, secret), trusted=trusted)


def seed_of(data, secret):
    """The seed of the inputs on which a notebook, the bytes ``data``, is tried: always the same, and nobody who has not the
    ``secret`` can know it."""
    return int.from_bytes(hmac.digest(secret.encode(), data, "sha256")[:8], "big")


def summary(results, only=""):
    """In plain text: how many ended how, and who has flags. ``only``: the key of the one student who was graded, whose line
    it is then, and a sentence on the others."""
    if only:
        others = sum(result["key"] != only for result in results)
        return "\n".join([*(_line(result) for result in results if result["key"] == only),
                          *[f"The results of the others, {others} in all, stay as they were."] * bool(others)])
    counts = {}
    for result in results:
        counts.setdefault(result["status"], []).append((result["student"], result["reason"][:200]))
    lines = []
    for status, students in sorted(counts.items(), key=lambda pair: -len(pair[1])):
        lines.append(f"{len(students):5}  {status}")
        lines += [f"         {student}: {reason}" for student, reason in students[:MOST_SHOWN] if reason]
        lines += [f"         and {len(students) - MOST_SHOWN} more"] * (status != "graded" and len(students) > MOST_SHOWN)
    if flagged := [result["student"] for result in results if result["flags"]]:
        lines.append(f"With flags, which feedback writes into class.html: {first_few(flagged, MOST_SHOWN)}.")
    return "\n".join(lines)


def _line(result):
    """One student in a line: how it ended, the points of the tests or why there are none, and the flags."""
    points, most = attempts.points(result), sum(test["most"] for test in result["tests"])
    words = f"{points:g} of {most:g} points for code" + (f" ({result['reason']})" if result["reason"] else "")
    ended = f"{result['status']}. {result['reason']}" if result["status"] in FAILED else f"{result['status']}, {words}."
    return " ".join([f"{result['student']}: {ended}", *(f"Flag: {flag}." for flag in result["flags"])])
