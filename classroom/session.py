"""A submission in its sandbox, and its functions as ones that can be called here: inputs go in, raw values come back."""

import builtins
import json
import re
import time
from contextlib import suppress

import numpy as np

from classroom import code_cells, wire
from classroom.sandbox import Sandbox, SandboxStopped
from helpers.checks import core

# How a submission or a test can end where nothing was judged.
FAILED = ("unreadable", "refused", "function missing", "time limit", "memory limit", "crashed")
SHORT = 10_000  # bytes of what the sandbox says of a cell: an error in words
GRACE = 3.0  # seconds more than the limit for an answer to arrive
RESTARTS = 12  # of the sandbox, for one submission


class NotJudged(BaseException):
    """A call that could not be judged. Not an Exception, so that no checker takes it for the function's error."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status, self.reason = status, reason


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
            changed = answer["changed"] if isinstance(answer.get("changed"), dict) else {}
            for index, arg in enumerate(args):
                if str(index) in changed:
                    _put(arg, wire.decode(changed[str(index)]))
            return wire.decode(answer.get("value"))
        except OverflowError as error:
            raise ValueError(f"{self.__name__} gave back {error}, far more than was asked for") from None
        except wire.Malformed:
            raise NotJudged("crashed", f"{self.__name__} gave back something that cannot be read as a value.") from None


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
    if isinstance(kind, type) and issubclass(kind, Exception):
        with suppress(Exception):  # such as UnicodeDecodeError, which is not made of words alone
            return kind(words.removeprefix(f"{name}: "))
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
