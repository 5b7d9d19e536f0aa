"""Grade one submission: a file in, a JSON-able result out. No shared state, nothing written.

The submission's functions live in the sandbox. Here they are callables that send inputs in and get raw values
back, and the course's checkers judge those, on inputs drawn after the submission has run.
"""

import os
import re
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from classroom import code_cells, flags, notebook, own, tasks
from classroom.assignment import ANSWER
from classroom.sandbox import ROOT, Slow, at_most
from classroom.session import FAILED, NotJudged, Remote, Session
from helpers.checks import core

# How a test can end. Only one that was judged has points; others end as one of FAILED and have None and a reason.
JUDGED = ("passed", "partly", "wrong", "error", "not started")
FOLDERS = sorted({(str(folder), instead) for folder, instead in (
    (ROOT, "course"), (sys.prefix, "environment"), (sys.base_prefix, "python"), (os.path.expanduser("~"), "home"))
    if len(Path(folder).parts) > 2 or str(folder) == "/root"}, key=lambda pair: -len(pair[0]))  # what a message may name
MOST_FIGURES = 4  # pictures of a notebook that are kept for the person who marks it
OTHERS_SECONDS = 5  # of CPU time, to find out for whom a wrong answer would be right


@dataclass(frozen=True)
class Judged:
    """How a test ended. ``points``: None where it could not be judged; ``is_right_for``: where it is not passed, maybe a
    function that says whether it is right with other details; ``more``: what only some kinds of tests have."""

    status: str
    message: str
    points: float | None = None
    misconception: str | None = None
    is_right_for: Callable | None = None
    more: dict = field(default_factory=dict)

    def of(self, test):
        """The part of a submission's result that is about this test."""
        return {"grade_id": test.grade_id, "function": test.function, "status": self.status, "points": self.points,
                "most": test.points, "misconception": self.misconception, "message": _clean(self.message)[:4000],
                "words": test.words, **self.more}


NOT_STARTED = Judged("not started", "The function is still as it was handed out.", 0)


def grade_one(data, assignment, *, seed=None, trusted=False, stubs=False):
    """Grade a notebook, the bytes ``data`` of a file, for an ``Assignment``.

    Returns a dict: ``status`` ("graded", "partly graded", or one of FAILED), ``reason``, ``tests`` (for each test
    ``grade_id``, ``status``, ``points`` or None, ``message`` ...), ``answers`` (the written ones), ``figures``, ``flags``,
    ``notes``, ``right_for`` (functions that are wrong here, and the details of the variant for which they are right),
    ``code`` (the cells that were run).
    ``seed`` draws the inputs, and no submission may know it; by default it is drawn after the submission has run.
    ``trusted=True`` runs it without a sandbox; ``stubs=True`` tries what is as it was handed out too. Raises NoSandbox, and
    nothing else on account of what is in the file.
    """
    start = time.monotonic()
    try:
        book = notebook.read(data)
    except notebook.Unreadable as error:
        return failed(assignment, error.status, str(error))
    functions = {test.function for test in assignment.tests}
    sources, split = code_cells.joined(code_cells.plain_cells(book.code), book.code)
    more, in_text = code_cells.in_text_cells(book, sources, functions)
    sources = code_cells.without_stubs(sources + code_cells.plain_cells(more))
    session, tests, wrong = Session(sources, assignment.limits, trusted, assignment.import_cells), [], []
    room = _room(assignment, session, code_cells.definitions(sources)) if assignment.file else None
    try:
        session.run()
        seed = secrets.randbits(64) if seed is None else seed
        defined = code_cells.definitions(sources)
        broken = code_cells.given_by_broken(sources, session.broken(), assignment.import_cells)
        for test in assignment.tests:
            places = [] if stubs else defined.get(test.function, [])
            if isinstance(exercise := assignment.task(test).exercise, own.Tests):
                untouched = not stubs and _as_handed_out(exercise, sources, defined)
                judged = _hidden(assignment, test, exercise, untouched, room, session, seed)
            else:
                judged = _judge(assignment, test, places, session, seed)
            tests.append(_unless_broken(judged.of(test), sources, broken, session))
            wrong += [(test, judged.is_right_for)] if judged.is_right_for else []
        right_for = _right_for_others(assignment, wrong)
    finally:
        session.close()
    complaints = [_clean(f"Code cell {n} {words}") for n, words in sorted(session.complaints.items())][:20]
    status, reason = _summary(tests)
    return _written(assignment, book) | {
        "status": status, "reason": reason, "tests": tests, "right_for": right_for, "seed": seed,
        "flags": _flags(assignment, book, sources), "notes": [*book.notes, *in_text, *split, *complaints],
        "code": [source or "" for source in sources],
        "clock_seconds": round(time.monotonic() - start, 2), "cpu_seconds": round(session.cpu, 2)}


def _flags(assignment, book, sources):
    """What a teacher should look at: names that a task forbids, code from elsewhere, characters that nobody sees."""
    tasks_of = {test.function: assignment.task(test) for test in assignment.tests}
    used = [f"{function} uses {name} (code cell {number})" for function, task in tasks_of.items()
            for name, number in code_cells.uses(sources, function, task.forbidden)]
    written = ["" if (source or "").strip() in assignment.handed_out else source for source in sources]
    made = [f"{what} (code cell {number})" for what, number in flags.made_elsewhere(written)][:20]
    return [*used, *made, *map(_clean, flags.to_look_at(book))]


def failed(assignment, status, reason, data=b""):
    """The result of a submission whose code was not judged, in the form of ``grade_one``. What can be read of the notebook,
    the bytes ``data``, is there for a person to mark; its code is not even parsed, since that may be what cannot be done."""
    try:
        book = notebook.read(data)
    except notebook.Unreadable:
        book = None
    return _written(assignment, book, parse=False) | {
        "status": status, "reason": reason, "flags": [], "notes": [], "raw_code": book.code if book else [],
        "tests": [Judged(status, reason).of(test) for test in assignment.tests]}


def _written(assignment, book, parse=True):
    """What a person looks at: the written answers, and the pictures in the notebook as it was saved."""
    figures = [figure for cell in book.cells for figure in cell.figures] if book else []
    return {"figures": figures[:MOST_FIGURES],
            "answers": [_answer(question, book, parse, assignment.handed_out) for question in assignment.questions]}


def _unless_broken(test, sources, broken, session):
    """The result of a test that is not passed is for a person to decide where the function, or one that it uses, is
    written in a cell that is not Python; ``broken``: name -> that cell's number from 0."""
    function = test["function"]
    needs = function if function in broken else next(
        (name for name, _ in code_cells.uses(sources, function, broken)), None)
    if not needs or test["status"] == "passed" or test["points"] is None:
        return test
    number = broken[needs] + 1
    words = "The cell that defines" if needs == function else f"{function} needs {needs}, and the cell that gives"
    why = f"{words} {needs} did not run: code cell {number} {session.complaints.get(number, 'is not Python')}."
    return test | {"status": "function missing", "points": None, "misconception": None, "message": _clean(why)[:4000]}


def _right_for_others(assignment, wrong):
    """Function -> the details of another variant for which it is right. ``wrong``: of each test that is not passed (the
    test, a function that says whether it is right with other details). All points are given by now: what stops, fails or
    is slow here costs a flag and nothing else."""
    right_for, end = {}, time.monotonic() + 4 * OTHERS_SECONDS
    with suppress(Slow, NotJudged, Exception), at_most(OTHERS_SECONDS):  # whatever a value makes a comparison raise
        for test, is_right_for in wrong:
            mine = tasks.without_sheet(assignment.details.get(test.function)
                                       or tasks.tasks_of(assignment.file or assignment.name)[test.function].own)
            for details in assignment.given.get(test.function, ()):
                other = tasks.without_sheet(details)
                if (other != mine and test.function not in right_for and time.monotonic() < end
                        and is_right_for(details)):
                    right_for[test.function] = other
    return right_for


def _judge(assignment, test, places, session, seed):
    """How a test with the course's checker ended. ``places``: where its function is defined."""
    untouched = places and all(core.is_stub(function) for _, function in places)
    exercise = assignment.task(test).exercise
    remote = Remote(test.function, exercise.parameters, session,
                    code_cells.signature(places[-1][1]) if places and not untouched else None)
    if isinstance(exercise, tasks.Forecasts):
        return NOT_STARTED if untouched else _forecast(assignment, test, remote)
    try:
        cases = core.draw_cases(exercise, seed)
        remote.fetch([case.args for case in cases],
                     told=[contract.make(np.random.default_rng(0)) for contract in exercise.contracts])
        outcome = core.evaluate(exercise, remote, seed=seed, seconds=3600, more=True)  # the session has the real limits
    except NotJudged as stop:
        return NOT_STARTED if untouched else Judged(stop.status, stop.reason)
    except Exception as error:  # a value on which a checker itself stumbles
        return Judged("crashed", f"The result of {test.function} could not be compared ({type(error).__name__}).")
    if untouched and not outcome:  # nor is it defined in another way, such as f = lambda x: ...
        return NOT_STARTED
    if outcome.status == "error" and (why := session.why_unknown(outcome.message)):
        return Judged("function missing", f"{test.function} {why}")
    public = None if assignment.file else tasks.tasks_of(assignment.name).get(test.function)
    has_variants = public and not outcome and not test.grade_id.endswith("-extreme")
    return Judged(outcome.status, outcome.message, test.points if outcome else 0, outcome.misconception,
                  partial(_right_for, public, remote, cases, seed) if has_variants else None)


def _room(assignment, session, defined):
    """The ``own.Room`` in which the hidden tests of a teacher's own notebook call what the session has."""
    def student(name, solution):
        return Remote(name, (), session) if callable(solution) else session.value(name)

    def where(name, error):
        line = re.search(r"\(in line (\d{1,6}) of the cell", str(error))
        number = defined[name][-1][0] if name in defined else None
        lines = session.sources[number].split("\n") if number is not None else []
        return f", at this line: {lines[int(line[1]) - 1].strip()}" if line and 0 < int(line[1]) <= len(lines) else ""

    return own.Room(assignment.notebook(), student, where)


def _as_handed_out(tests, sources, defined):
    """Whether nothing was written of all that a hidden test asks for."""
    def untouched(name, handed_out):
        places = defined.get(name, [])
        if places and all(core.is_stub(function) for _, function in places):
            return True
        cells = [source for source in sources if source and name in code_cells.names_of(source)]
        return any(source and source.strip() == handed_out.strip() for source in sources) and all(
            source.strip() == handed_out.strip() for source in cells)
    return bool(tests.names) and all(untouched(*pair) for pair in tests.names.items())


TOLD = {"time limit": "did not end in time", "memory limit": "needed more memory than it may use"}


def _hidden(assignment, test, exercise, untouched, room, session, seed):
    """As _judge, for a test cell of the teacher, of which no input is told to anybody but the teacher: ``trace``."""
    if untouched:
        return replace(NOT_STARTED, message="The cell is still as it was handed out.")
    try:
        outcome = room.judge(exercise, seed)
    except Slow:
        return Judged("time limit", f"A test of this question did not end within {own.SECONDS} seconds."
                      + _passed(test, exercise, room.passed))
    except NotJudged as stop:
        missing = stop.status == "function missing"  # of which the session knew before any input was made
        words = f"{test.function} {TOLD.get(stop.status, 'could not be called to the end')}, when a test of it ran."
        return Judged(stop.status, (stop.reason if missing else words) + _passed(test, exercise, room.passed))
    trace = _clean(room.trace)[:2000]
    if not outcome and (why := session.why_unknown(room.trace)):
        return Judged("function missing", f"{test.function} {why}", more={"trace": trace})

    def is_right_for(details):
        other = replace(assignment, details={test.function: details})
        return bool(_room(other, session, {}).judge(other.task(test).exercise, seed))

    return Judged(outcome.status, outcome.message, round(test.points * outcome.share, 2),
                  is_right_for=None if outcome else is_right_for, more={"trace": trace})


def _passed(test, exercise, parts):
    """A sentence on the parts of a test that had passed when it was stopped, for whoever marks the test."""
    share = sum(part.points for part in parts) / (sum(part.points for part in exercise.parts) or 1)
    words = "; ".join(part.words or "a test" for part in parts)
    return f" Until then tests of {test.points * share:g} of {test.points:g} points had passed: {words}." if parts else ""


def _forecast(assignment, test, remote):
    """As _judge, for a function that returns forecasts: it is called once, and has a share of the points."""
    task, answers = assignment.task(test), []

    def once():
        answers.append(remote())
        return answers[0]

    try:
        outcome = task.exercise.evaluate(once)
    except NotJudged as stop:
        return Judged(stop.status, stop.reason)
    if outcome.status == "error" and (why := remote.session.why_unknown(outcome.message)):
        return Judged("function missing", f"{test.function} {why}")
    is_right_for = None if outcome or not answers else lambda details: task.variant(details).exercise.outcome(answers[0])
    return Judged(outcome.status, outcome.message, round(test.points * outcome.share, 2), outcome.misconception,
                  is_right_for, {"detail": outcome.detail})


def _right_for(task, remote, cases, seed, details):
    """Is a wrong function right with other details? On the inputs that it had already, or, where these do not suit the
    other task, on inputs made for that."""
    exercise = task.variant(details).exercise
    for inputs in (cases, None):
        try:
            if inputs is None:
                inputs = core.draw_cases(exercise, seed)
                remote.fetch([case.args for case in inputs])
            inputs = [case for case in inputs if not case.probe.extreme]
            pairs = [(core.call(exercise.reference, case.args, 3600, exercise.use),
                      core.call(remote, case.args, 3600, exercise.use)) for case in inputs]
            if all(wanted.kind == got.kind == "value" for wanted, got in pairs):
                return not any(core.compare(wanted.value, got.value, case.probe)
                               for case, (wanted, got) in zip(inputs, pairs, strict=True))
        except (NotJudged, Exception):
            return False
    return False


def _clean(text):
    """Without characters that move a terminal's cursor or end a file, with those that nobody sees as their numbers, and
    without the names of this machine's folders."""
    for folder, instead in FOLDERS:
        text = text.replace(folder, instead)
    text = flags.shown(text)
    return re.sub("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", "?", text.replace("\r\n", "\n"))


def _answer(question, book, parse, handed_out):
    """What was written in the cells with the question's id, of which a copied notebook has several. ``untouched``: they are
    as they were handed out, and nothing is written in cells that were added."""
    cells = [cell.source.strip() for cell in book.cells if cell.grade_id == question.grade_id] if book else []
    blank = "", ANSWER, question.handed_out.strip()
    text = "\n\n".join(dict.fromkeys(source for source in cells if not {source, source.strip("*_# ")} & {*blank}))
    added = code_cells.added_text(book, parse, handed_out) if cells and not text else ""
    if added:
        text = f"(Nothing is in its cell. In cells that were added:)\n{added}"
    if book and not cells and (below := notebook.text_below(book, question.text).replace(ANSWER, "").strip("*_# \n")):
        text = f"(Its cell has lost its name. Below the question:)\n{below}"
    return {"grade_id": question.grade_id, "most": question.points, "question": question.words,
            "text": _clean(text)[:20_000] or None, "untouched": bool(cells and not text and not question.task)}


def _summary(tests):
    """Status and reason of the whole submission."""
    failed = [test for test in tests if test["status"] in FAILED]
    reason = "; ".join(dict.fromkeys(f"{t['function']}: {t['status']}" for t in failed))
    if not failed:
        return "graded", ""
    if len(failed) < len(tests):
        return "partly graded", reason
    return failed[0]["status"], failed[0]["message"].split("\n")[0] if len(failed) == 1 else reason
