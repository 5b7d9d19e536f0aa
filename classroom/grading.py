"""Grade one submission: a file in, a JSON-able result out. No shared state, nothing written.

The submission's functions live in the sandbox. Here they are callables that send inputs in and get raw values
back, and the course's checkers judge those, on inputs drawn after the submission has run.
"""

import builtins
import functools
import json
import os
import re
import secrets
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from classroom import code_cells, flags, notebook, own, tasks, wire
from classroom.assignment import ANSWER
from classroom.sandbox import ROOT, Sandbox, SandboxStopped, Slow, at_most
from helpers.checks import core

# How a submission or a test can end. Only a test that was judged has points; the others have None and a reason.
JUDGED = ("passed", "partly", "wrong", "error", "not started")
FAILED = ("unreadable", "refused", "function missing", "time limit", "memory limit", "crashed")
SHORT = 10_000  # bytes of what the sandbox says of a cell: an error in words
FOLDERS = sorted({(str(folder), instead) for folder, instead in (
    (ROOT, "course"), (sys.prefix, "environment"), (sys.base_prefix, "python"), (os.path.expanduser("~"), "home"))
    if len(Path(folder).parts) > 2 or str(folder) == "/root"}, key=lambda pair: -len(pair[0]))  # what a message may name
GRACE = 3.0  # seconds more than the limit for an answer to arrive
MOST_FIGURES = 4  # pictures of a notebook that are kept for the person who marks it
RESTARTS = 12  # of the sandbox, for one submission
OTHERS_SECONDS = 5  # of CPU time, to find out for whom a wrong answer would be right


class NotJudged(BaseException):
    """A call that could not be judged. Not an Exception, so that no checker takes it for the function's error."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status, self.reason = status, reason


def grade_one(submission, assignment, *, seed=None, trusted=False, stubs=False):
    """Grade the notebook ``submission`` (a path, or the bytes of a file) for an ``Assignment``.

    Returns a dict: ``status`` ("graded", "partly graded", or one of FAILED), ``reason``, ``tests`` (for each test
    ``grade_id``, ``status``, ``points`` or None, ``message`` ...), ``answers`` (the written ones), ``figures``, ``flags``,
    ``notes``, ``right_for`` (functions that are wrong here, and the details of the variant for which they are right),
    ``code`` (the cells that were run).
    ``seed`` draws the inputs, and no submission may know it; by default it is drawn after the submission has run.
    ``trusted=True`` runs it without a sandbox; ``stubs=True`` tries what is as it was handed out too. Raises NoSandbox, and
    nothing else on account of what is in the file.
    """
    start = time.monotonic()
    result = {"assignment": assignment.name, "status": "", "reason": "", "tests": [], "answers": [], "figures": [],
              "flags": [], "notes": [], "seed": None, "right_for": {}, "code": []}
    try:
        data = submission if isinstance(submission, bytes) else _bytes(Path(submission))
        book = notebook.read(data)
    except notebook.Unreadable as error:
        return result | not_judged(assignment, error.status, str(error))
    functions = {test.function for test in assignment.tests}
    sources, split = code_cells.joined(code_cells.plain_cells(book.code), book.code)
    more, in_text = code_cells.in_text_cells(book, sources, functions)
    sources = code_cells.without_stubs(sources + code_cells.plain_cells(more))
    session, wrong = Session(sources, assignment.limits, trusted, assignment.import_cells), []
    room = _room(assignment, session, code_cells.definitions(sources)) if assignment.file else None
    try:
        session.run()
        result["seed"] = seed = secrets.randbits(64) if seed is None else seed
        defined = code_cells.definitions(sources)
        broken = code_cells.given_by_broken(sources, session.broken(), assignment.import_cells)
        for test in assignment.tests:
            places = [] if stubs else defined.get(test.function, [])
            if isinstance(exercise := assignment.task(test).exercise, own.Tests):
                untouched = not stubs and _as_handed_out(exercise, sources, defined)
                judged, is_right_for = _hidden(assignment, test, exercise, untouched, room, session, seed)
            else:
                judged, is_right_for = _judge(assignment, test, places, session, seed)
            result["tests"].append(_unless_broken(judged, sources, broken, session))
            wrong += [(test, is_right_for)] if is_right_for else []
        result["right_for"] = _right_for_others(assignment, wrong)
    finally:
        session.close()
    complaints = [_clean(f"Code cell {n} {words}") for n, words in sorted(session.complaints.items())][:20]
    status, reason = _summary(result["tests"])
    return result | _written(assignment, book) | {
        "status": status, "reason": reason, "flags": _flags(assignment, book, sources),
        "notes": [*book.notes, *in_text, *split, *complaints], "code": [source or "" for source in sources],
        "clock_seconds": round(time.monotonic() - start, 2), "cpu_seconds": round(session.cpu, 2)}


def _flags(assignment, book, sources):
    """What a teacher should look at: names that a task forbids, code from elsewhere, characters that nobody sees."""
    tasks_of = {test.function: assignment.task(test) for test in assignment.tests}
    used = [f"{function} uses {name} (code cell {number})" for function, task in tasks_of.items()
            for name, number in code_cells.uses(sources, function, task.forbidden)]
    written = ["" if (source or "").strip() in assignment.handed_out else source for source in sources]
    made = [f"{what} (code cell {number})" for what, number in flags.made_elsewhere(written)][:20]
    return [*used, *made, *map(_clean, flags.to_look_at(book))]


def not_judged(assignment, status, reason, data=b""):
    """What of a result there is when no code was judged. What can be read of the notebook, the bytes ``data``, is there
    for a person to mark; its code is not even parsed, since that may be what cannot be done."""
    try:
        book = notebook.read(data)
    except notebook.Unreadable:
        book = None
    return _written(assignment, book, parse=False) | {
        "status": status, "reason": reason, "raw_code": book.code if book else [],
        "tests": [_test(test, status, reason) for test in assignment.tests]}


def _written(assignment, book, parse=True):
    """What a person looks at: the written answers, and the pictures in the notebook as it was saved."""
    figures = [figure for cell in book.cells for figure in cell.figures] if book else []
    return {"answers": [_answer(question, book, parse, assignment.handed_out) for question in assignment.questions],
            "figures": figures[:MOST_FIGURES]}


def _bytes(path):
    try:
        with path.open("rb") as file:
            return file.read(notebook.LARGEST + 1)
    except OSError as error:
        raise notebook.Unreadable(f"The file cannot be read ({error.strerror}).") from None


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
    try:
        with at_most(OTHERS_SECONDS):
            for test, is_right_for in wrong:
                mine = tasks.without_sheet(assignment.details.get(test.function)
                                           or tasks.tasks_of(assignment.file or assignment.name)[test.function].own)
                for details in assignment.given.get(test.function, ()):
                    other = tasks.without_sheet(details)
                    if (other != mine and test.function not in right_for and time.monotonic() < end
                            and is_right_for(details)):
                        right_for[test.function] = other
    except (Slow, NotJudged, Exception):
        pass
    return right_for


def _judge(assignment, test, places, session, seed):
    """The result of one test, and, where it is not passed, a function that says whether it is right with other details."""
    untouched = places and all(core.is_stub(function) for _, function in places)
    task = assignment.task(test)
    exercise = task.exercise
    remote = Remote(test.function, exercise.parameters, session,
                    code_cells.signature(places[-1][1]) if places and not untouched else None)
    if isinstance(exercise, tasks.Forecasts):
        return _forecast(assignment, test, untouched, remote)
    try:
        cases = core.draw_cases(exercise, seed)
        remote.fetch([case.args for case in cases],
                     told=[contract.make(np.random.default_rng(0)) for contract in exercise.contracts])
        outcome = core.evaluate(exercise, remote, seed=seed, seconds=3600, more=True)  # the session has the real limits
    except NotJudged as stop:
        outcome = None
        if not untouched:
            return _test(test, stop.status, stop.reason), None
    except Exception as error:  # a value on which a checker itself stumbles
        words = f"The result of {test.function} could not be compared ({type(error).__name__})."
        return _test(test, "crashed", words), None
    if not untouched and outcome.status == "error" and (why := session.why_unknown(outcome.message)):
        return _test(test, "function missing", f"{test.function} {why}"), None
    if untouched and not outcome:  # nor is it defined in another way, such as f = lambda x: ...
        return _test(test, "not started", "The function is still as it was handed out.", points=0), None
    public = None if assignment.file else tasks.tasks_of(assignment.name).get(test.function)
    is_right_for = None if outcome or untouched or not public or test.grade_id.endswith("-extreme") else functools.partial(
        _right_for, public, remote, cases, seed)
    return _test(test, outcome.status, outcome.message, test.points if outcome else 0, outcome.misconception), is_right_for


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
        return _test(test, "not started", "The cell is still as it was handed out.", points=0), None
    try:
        outcome = room.judge(exercise, seed)
    except Slow:
        return _test(test, "time limit", f"A test of this question did not end within {own.SECONDS} seconds."
                     + _passed(test, exercise, room.passed)), None
    except NotJudged as stop:
        missing = stop.status == "function missing"  # of which the session knew before any input was made
        words = f"{test.function} {TOLD.get(stop.status, 'could not be called to the end')}, when a test of it ran."
        words = (stop.reason if missing else words) + _passed(test, exercise, room.passed)
        return _test(test, stop.status, words), None
    if not outcome and (why := session.why_unknown(room.trace)):
        return _test(test, "function missing", f"{test.function} {why}") | {"trace": _clean(room.trace)}, None

    def is_right_for(details):
        other = replace(assignment, details={test.function: details})
        return bool(_room(other, session, {}).judge(other.task(test).exercise, seed))

    points = round(test.points * outcome.share, 2)
    judged = _test(test, outcome.status, outcome.message, points) | {"trace": _clean(room.trace)[:2000]}
    return judged, None if outcome else is_right_for


def _passed(test, exercise, parts):
    """A sentence on the parts of a test that had passed when it was stopped, for whoever marks the test."""
    share = sum(part.points for part in parts) / (sum(part.points for part in exercise.parts) or 1)
    words = "; ".join(part.words or "a test" for part in parts)
    return f" Until then tests of {test.points * share:g} of {test.points:g} points had passed: {words}." if parts else ""


def _forecast(assignment, test, untouched, remote):
    """As _judge, for a function that returns forecasts: it is called once, and has a share of the points."""
    if untouched:
        return _test(test, "not started", "The function is still as it was handed out.", points=0), None
    task, answers = assignment.task(test), []

    def once():
        answers.append(remote())
        return answers[0]

    try:
        outcome = task.exercise.evaluate(once)
    except NotJudged as stop:
        return _test(test, stop.status, stop.reason), None
    if outcome.status == "error" and (why := remote.session.why_unknown(outcome.message)):
        return _test(test, "function missing", f"{test.function} {why}"), None
    is_right_for = None if outcome or not answers else lambda details: task.variant(details).exercise.outcome(answers[0])
    points = round(test.points * outcome.share, 2)
    return (_test(test, outcome.status, outcome.message, points, outcome.misconception) | {"detail": outcome.detail},
            is_right_for)


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


def _test(test, status, message, points=None, misconception=None):
    return {"grade_id": test.grade_id, "function": test.function, "status": status, "points": points,
            "most": test.points, "misconception": misconception, "message": _clean(message)[:4000], "words": test.words}


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


class Remote:
    """A function of the submission: calling it calls the one in the sandbox. Answers fetched before are used."""

    def __init__(self, name, parameters, session, signature=None):
        self.__name__, self.parameters, self.session, self.fetched, self.told = name, parameters, session, {}, []
        if signature is not None:
            self.__signature__ = signature

    def fetch(self, calls, told=()):
        """Make all these calls at once, in one process with one limit; keep the answers for when they are asked for.
        ``told``: more calls, with inputs that the task excludes. What they do is told and costs nothing."""
        self.told = [[wire.encode(a) for a in args] for args in told]
        forms = [[wire.encode(a) for a in args] for args in calls] + self.told
        answers = self.session.call(self.__name__, forms)
        self.fetched |= {json.dumps(form): answer for form, answer in zip(forms, answers, strict=False)}

    def __call__(self, *args, **named):
        form = [wire.encode(a) for a in args]
        form += [{"named": {name: wire.encode(a) for name, a in named.items()}}] if named else []
        try:
            return self._answer(form, args)
        except NotJudged as stop:
            if form in self.told:
                raise RuntimeError(stop.reason) from None
            raise

    def _answer(self, form, args):
        answer = self.fetched.get(json.dumps(form)) or next(iter(self.session.call(self.__name__, [form])), None)
        if not isinstance(answer, dict):
            raise NotJudged("crashed", f"{self.__name__} gave back something that cannot be read as a value.")
        if "stopped" in answer:
            status = answer["stopped"] if answer["stopped"] in FAILED else "crashed"
            raise NotJudged(status, f"{self.__name__} {_words(answer.get('reason'), 200)}.\n"
                                 f"It was called with {core.describe(self.parameters, args)}.")
        printed = answer.get("printed")
        print(printed[:2000] if isinstance(printed, str) else "", end="")
        if "error" in answer:
            raise _exception(answer)
        try:
            for index, after in _items(answer.get("changed"), len(args)):
                _put(args[index], wire.decode(after))
            return wire.decode(answer.get("value"))
        except OverflowError as error:
            raise ValueError(f"{self.__name__} gave back {error}, far more than was asked for") from None
        except wire.Malformed:
            raise NotJudged("crashed", f"{self.__name__} gave back something that cannot be read as a value.") from None


def _items(changed, number):
    return [(i, changed[str(i)]) for i in range(number) if str(i) in changed] if isinstance(changed, dict) else []


def _put(argument, after):
    """Let the caller's argument change as the one inside did, so that the checker notices."""
    if isinstance(argument, tuple | list) and isinstance(after, tuple | list):
        for mine, theirs in zip(argument, after, strict=False):
            _put(mine, theirs)
    elif isinstance(argument, np.ndarray) and isinstance(after, np.ndarray) and argument.shape == after.shape:
        np.copyto(argument, after, casting="unsafe")
    elif hasattr(argument, "copy_") and getattr(after, "shape", None) == argument.shape:
        argument.copy_(after)


def _words(value, most):
    """What should be words, however large the value is that came in their place."""
    return value[:most] if isinstance(value, str) else f"(a {type(value).__name__} and no words)"


def _exception(answer):
    """The exception that the function raised, of the same class where that is a plain one."""
    words, name = _words(answer["error"], 600), _words(answer.get("type"), 60)
    kind = getattr(builtins, name, None) or getattr(np.exceptions, name, None) or getattr(np.linalg, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception) and kind not in (UnicodeDecodeError, UnicodeEncodeError):
        try:
            return kind(words.removeprefix(f"{name}: "))
        except Exception:
            pass
    return RuntimeError(words)


class Session:
    """A submission in its sandbox. When the sandbox dies it is started again, without the cell that killed it.

    ``complaints``: number of the code cell from 1 -> what it did.
    """

    def __init__(self, sources, limits, trusted, import_cells=()):
        self.sources, self.limits, self.trusted = sources, limits, trusted
        self.imports = code_cells.handed_out_imports(import_cells, sources)
        self.end = time.monotonic() + limits.total_seconds
        self.left_out, self.complaints = set(), {}
        self.starts, self.cpu, self.sandbox = 0, 0.0, None

    def run(self):
        """Run the cells, each with its own limit. Those that missed a name are run once more at the end."""
        while self.sandbox is None and self.starts <= RESTARTS and time.monotonic() < self.end:
            self.sandbox = Sandbox(self.limits, self.trusted)
            self.starts += 1
            self._load()
            numbers = [n for n, source in enumerate(self.sources, 1) if source is not None and n not in self.left_out]
            missed = [n for n in numbers if self._cell(n) == "NameError"]
            for number in missed:
                self._cell(number)

    def _load(self):
        """Let the sandbox import the large libraries that the notebook mentions."""
        text = "\n".join(source for source in [self.imports, *self.sources] if source)
        modules = [m for m in ("torch", "matplotlib.pyplot", "IPython")
                   if re.search(rf"^[ \t]*(import|from)[ \t]+{m}\b", text, re.MULTILINE)]
        try:
            self.sandbox.ask({"do": "import", "modules": modules}, min(120, self._left()), most=SHORT)
            if self.imports:  # what was handed out, in case its cell is another one now; then the student's, which counts
                self.sandbox.ask({"do": "cell", "number": 0, "source": self.imports, "seconds": self.limits.cell_seconds},
                                 min(120, self._left()), most=SHORT)
        except SandboxStopped:
            self.close()

    def _cell(self, number):
        if self.sandbox is None:
            return ""
        question = {"do": "cell", "number": number, "source": self.sources[number - 1], "seconds": self.limits.cell_seconds}
        try:
            answer = self.sandbox.ask(question, min(self.limits.clock(self.limits.cell_seconds), self._left()),
                                      self.limits.cell_seconds, SHORT)
        except SandboxStopped as stop:
            self.complaints[number] = stop.reason
            self.left_out.add(number)
            self.close()
            return ""
        self.complaints.pop(number, None)
        if answer.get("error"):
            self.complaints[number] = _words(answer["error"], 400)
        return answer.get("kind")

    def call(self, name, calls, value=False):
        """Call a function inside with each of several lists of encoded arguments, or give a ``value``. Returns the answers,
        fewer if the process was stopped; the last then says so. Raises NotJudged."""
        self.run()  # only where the sandbox has died
        if self.sandbox is None:
            status = "time limit" if time.monotonic() >= self.end else "crashed"
            raise NotJudged(status, self._why(name) or "The notebook ended its own process again and again.")
        seconds = self.limits.call_seconds
        clock = self.limits.clock(seconds)
        try:
            answer = self.sandbox.ask({"do": "call", "name": name, "calls": calls, "seconds": seconds, "clock": clock,
                                       "value": value},
                                      min(clock + GRACE, self._left()), seconds)
        except SandboxStopped as stop:
            self.close()
            raise NotJudged(stop.status, f"{name} {stop.reason}.") from None
        if answer.get("missing"):
            what = "value" if value else "function"
            raise NotJudged("function missing", self._why(name) or f"There is no {what} called {name} in the notebook.")
        if "stopped" in answer:
            return [answer]
        return answer["answers"] if isinstance(answer.get("answers"), list) else []

    def value(self, name):
        """What the notebook has under a name. Raises NotJudged."""
        answer = next(iter(self.call(name, [[]], value=True)), None)
        try:
            return wire.decode(answer["value"])
        except (KeyError, TypeError, OverflowError, wire.Malformed):
            raise NotJudged("crashed", f"{name} cannot be read as a value.") from None

    def broken(self):
        """The numbers from 0 of the cells that are not Python, by the parser or by the compiler."""
        compiler = ("SyntaxError", "IndentationError", "TabError")
        return {n for n, source in enumerate(self.sources)
                if code_cells.is_broken(source) or self.complaints.get(n + 1, "").startswith(compiler)}

    def why_unknown(self, message):
        """Why a name that the message says is not defined is not there, if a cell that gives it did not run: ""."""
        if name := re.search(r"NameError: name '(\w+)' is not defined", message):
            for number, complaint in self.complaints.items():
                if name[1] in code_cells.names_of(self.sources[number - 1]):
                    return f"needs {name[1]}, and the cell that gives it did not run: code cell {number} {complaint}."
        return ""

    def _why(self, name):
        """Why a function that is written in the notebook is not there."""
        for number, source in enumerate(self.sources, 1):
            if number in self.complaints and name in code_cells.names_of(source):
                return f"The cell that defines {name} did not run: code cell {number} {self.complaints[number]}."
        return ""

    def _left(self):
        return max(0.1, self.end - time.monotonic())

    def close(self):
        if self.sandbox is not None:
            self.cpu += self.sandbox.used()[1]
            self.sandbox.close()
            self.sandbox = None
