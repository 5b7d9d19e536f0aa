"""How an exercise is checked.

An exercise is a reference, probes and known misconceptions. The attempt is called on random
inputs and compared with the reference, never with one frozen example. A misconception is code:
the wrong function itself. An attempt that behaves like it everywhere gets its hint.
"""

import ast
import contextlib
import copy
import ctypes
import functools
import inspect
import io
import linecache
import re
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from numbers import Integral
from pathlib import Path

import numpy as np

from helpers.page import show
from helpers.store import settings

PART = 0.5  # of the cases in which a misconception is wrong
SEVERAL = "There seems to be more than one mistake. One of them:"
SAME_FORM = "The result has the form that this usual mistake gives it:"
SECONDS = 5.0  # of computing, for one call of an attempt
HELPERS = Path(__file__).resolve().parents[1]
LIBRARIES = {"np": "import numpy as np", "torch": "import torch", "F": "from torch.nn import functional as F",
             "nn": "from torch import nn", "math": "import math", "plt": "import matplotlib.pyplot as plt"}
PATIENCE = 12  # times as many on the clock, for an attempt that sleeps or waits


@dataclass(frozen=True)
class Probe:
    """Inputs that isolate one mechanism.

    ``make(rng)`` returns the tuple of arguments; ``hint`` says in one or two sentences what it means to fail
    here and what to look at next. ``special`` marks one whose hint is true only where plainer inputs give what they should:
    it is said where nothing else fails. ``extreme`` marks inputs (huge values, masked rows) that an attempt may
    fail on top of another fault: a misconception is still recognised without them. ``tolerance`` is
    relative, ``absolute`` is a difference that does not count; they are wide where the result is drawn at
    random, in an order that is free.
    """

    name: str
    make: Callable
    hint: str
    draws: int = 2
    extreme: bool = False
    special: bool = False
    tolerance: float = 1e-4
    absolute: float = 0.0


def example(name, inputs, hint, **options):
    """A ``Probe`` of inputs that are always the same, given as the tuple of arguments; ``options``: of ``Probe``."""
    return Probe(name, lambda rng: inputs, hint, draws=1, **options)


def larger(make, extreme=False, draws=1):
    """The last ``Probe`` of an exercise: every axis is longer than in those before, so that a size shows
    that was written into the code as a number."""
    return Probe("larger", make,
                 "Every axis is longer here than in the other inputs. Is there a number in your code that "
                 "should come from a shape?", draws, extreme)


@dataclass(frozen=True)
class Misconception:
    """A wrong function that learners really write, with the hint that it deserves."""

    id: str
    hint: str
    function: Callable


def variants(template):
    """Of a function whose keyword arguments say how it goes wrong, what makes its variants: where ``attend(Q, K, V, *,
    scale=…)`` is the template, ``attend(scale=1.0)`` is the function with that fault."""
    return lambda **faults: functools.partial(template, **faults)


@dataclass(frozen=True)
class Contract:
    """Arguments that a caller would pass by mistake: the reference raises ValueError.
    An attempt that is right otherwise passes, and is told."""

    words: str
    make: Callable


@dataclass(frozen=True)
class Exercise:
    """A function that the learner writes. Order ``probes`` from the smallest to the largest. A row of ``misconceptions``
    is the tuple that makes one: (id, hint, function).

    ``use(function, *args)`` says what is compared; by default it is ``function(*args)``. A sampler is
    compared by the frequencies of many calls, since one call says nothing. Arguments of the reference
    behind a ``*`` are details of the task, and no attempt is given them. ``nudges``: what an error says in
    this exercise, as a pattern, and what to look at; they go before ``NUDGES``. ``results``: what a message calls the
    results, where there are several and "the second result" would say little.
    """

    reference: Callable
    probes: tuple
    misconceptions: tuple
    contracts: tuple = ()
    use: Callable = lambda function, *args: function(*args)
    nudges: tuple = ()
    results: tuple = ()
    parameters: tuple = field(init=False)

    def __post_init__(self):
        given = [name for name, parameter in inspect.signature(self.reference).parameters.items()
                 if parameter.kind is not parameter.KEYWORD_ONLY]
        object.__setattr__(self, "parameters", tuple(given))
        rows = (row if isinstance(row, Misconception) else Misconception(*row) for row in self.misconceptions)
        object.__setattr__(self, "misconceptions", tuple(rows))

    @property
    def name(self):
        return self.reference.__name__


@dataclass(frozen=True)
class Outcome:
    """What a check found. ``status``: "passed", "partly", "wrong", "error" or "not started".

    ``misconception`` is a short id or None. ``bool(outcome)`` is True only for "passed".
    """

    exercise: str
    status: str
    misconception: str | None
    message: str

    def __bool__(self):
        return self.status == "passed"

    def show(self):
        """Show the outcome as a coloured note, or print it outside a notebook."""
        kind, word = {"passed": ("good", "✓ Passed"), "partly": ("bad", "✗ Partly"), "wrong": ("bad", "✗ Not yet"),
                      "error": ("bad", "✗ Error"), "not started": ("idle", "… Not started")}[self.status]
        first, *rest = self.message.split("\n")
        style = "font-family:monospace;white-space:pre-wrap;margin-top:4px"
        detail = "".join(f"<div style='{style}'>{escape(line)}</div>"
                         for line in rest)
        show.note(f"<b>{word}: {escape(self.exercise)}.</b> {escape(first)}{detail}",
                  f"{word}: {self.exercise}. {self.message}", kind)

    def _ipython_display_(self):
        """``check`` has shown the outcome already, so the last line of a cell shows nothing more."""


class TimeLimit(BaseException):
    """Raised inside an attempt that computes for too long."""


class Waiting(TimeLimit):
    """Raised inside an attempt that does not come back and hardly computes."""


@settings.usual()
def evaluate(exercise, attempt, seed=0, seconds=SECONDS, more=False):
    """Judge ``attempt`` and return an ``Outcome``; shows and records nothing.

    ``more``: say also which mistakes of a caller a right attempt does not notice.
    ``seed`` draws the inputs; ``seconds`` of computing limit each call, so a busy machine changes nothing.
    """
    name = exercise.name
    if is_stub(attempt):
        return Outcome(name, "not started", None, "Replace the ... with your code, then run the cell again.")
    cases = draw_cases(exercise, seed)
    problem = _signature_problem(attempt, exercise.parameters, cases[0].args)
    if problem:
        return Outcome(name, "error", None, problem)

    results = _results(exercise, attempt, cases, seconds)
    if any(r.error and re.search(TWO_KINDS, r.value) for r in results) and (narrow := _in_float32(exercise, cases)):
        cases, results = narrow, _results(exercise, attempt, narrow, seconds)
    if results[-1].kind == "timeout":
        return Outcome(name, "error", None,
                       f"Your function {results[-1].value}\n"
                       f"It was called with {describe(exercise.parameters, cases[len(results) - 1].args)}.")
    differences = [compare(case.expected, result.value, case.probe, names=exercise.results)
                   if result.kind == "value" else "crash"
                   for case, result in zip(cases, results, strict=True)]
    failing = [i for i, difference in enumerate(differences) if difference]
    if not failing:
        changed = next((c for c, r in zip(cases, results, strict=True) if r.changed), None)
        if changed:
            return Outcome(name, "wrong", "changes-input",
                           "The values are right, but your function changes its input in "
                           "place, so the caller's data is lost. Work on a copy, or use x = x - m instead "
                           "of x -= m."
                           f"\nIt was called with {describe(exercise.parameters, changed.args)}.")
        praise = "Your function agrees with the reference on every random input."
        notes = [*_tensor_note(cases, results), *(_contract_notes(exercise, attempt, seconds) if more else [])]
        return Outcome(name, "passed", None, "\n".join([praise, *notes]))

    if all(r.kind == "value" and r.value is None for r in results):
        return Outcome(name, "wrong", "no-return",
                       "Your function gives back None: its last line needs a return. "
                       "(Functions such as print, and methods such as sort, give back None themselves.)")
    failing.sort(key=lambda i: (cases[i].probe.special or cases[i].probe.extreme, _size(cases[i].args)))
    first = failing[0]
    case_text = _case_text(exercise, cases[first], results[first], differences[first])
    for core_only in (False, True):
        for misconception in exercise.misconceptions:
            if _behaves_like(misconception, cases, results, core_only, exercise.use, seconds):
                stopped = f"{results[first].value}\n" if results[first].kind == "error" else ""
                return Outcome(name, "wrong", misconception.id, f"{misconception.hint}\n{stopped}{case_text}")
    if results[first].kind == "error":
        none = [name for name, arg in zip(exercise.parameters, cases[first].args, strict=False) if arg is None]
        absent = [("NoneType|does not have enough dimensions",
                   f"{' and '.join(none)} is None here: treat that case apart, with `{none[0]} is None`.")] if none else []
        stopped = _nudged(results[first].value, (*exercise.nudges, *absent, *NUDGES))
        return Outcome(name, "error", None, f"Your function stopped with {stopped}\n{case_text}")
    one, first = _one_of_several(exercise, cases, results, failing, seconds)
    case_text = _case_text(exercise, cases[first], results[first], differences[first])
    if one:
        words, misconception = one
        return Outcome(name, "wrong", misconception.id, f"{words} {misconception.hint}\n{case_text}")
    hint = cases[first].probe.hint
    if _formless(cases, results):
        lost = _lost_axes(cases[first].expected, results[first].value)
        hint = f"The result does not have the right form yet. {lost}Compare it with what is expected:"
    return Outcome(name, "wrong", None, f"{hint}\n{case_text}")


# ---------------------------------------------------------------- inputs and calls


@dataclass(frozen=True)
class Case:
    """One call that an attempt is judged by: its probe, arguments, and what the reference gives for them."""

    probe: Probe
    args: tuple
    expected: object


@dataclass(frozen=True)
class Result:
    """What one call of an attempt came to. ``changed``: did it change its arguments?"""

    kind: str  # "value", "error" or "timeout"
    value: object = None  # the value returned, or in words the error or what took too long
    error: type | None = None
    changed: bool = False
    printed: str = ""


@settings.usual()
def draw_cases(exercise, seed):
    """The list of ``Case`` for ``exercise``, each probe's inputs drawn from ``seed``."""
    cases = []
    for number, probe in enumerate(exercise.probes):
        rng = np.random.default_rng([seed, number])
        for _ in range(probe.draws):
            args = tuple(probe.make(rng))
            cases.append(Case(probe, args, exercise.use(exercise.reference, *_copy(args))))
    return cases


def _results(exercise, attempt, cases, seconds):
    """The ``Result`` of each case, up to the first that takes too long."""
    results = []
    for case in cases:
        results.append(call(attempt, case.args, seconds, exercise.use))
        if results[-1].kind == "timeout":
            break
    return results


def _in_float32(exercise, cases):
    """The cases with tensors of float32 for those of float64: what an attempt makes with torch.zeros is float32, as all
    that torch makes by itself, and stops beside another kind. None where the reference itself does not work so."""
    def narrow(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(narrow, value))
        return value.float() if str(getattr(value, "dtype", "")) == "torch.float64" else value

    try:
        inputs = [narrow(_copy(case.args)) for case in cases]
        return [Case(case.probe, args, exercise.use(exercise.reference, *_copy(args)))
                for case, args in zip(cases, inputs, strict=True)]
    except Exception:
        return None


def _copy(args):
    """A deep copy, also of a ``torch.Generator``, which ``copy`` cannot copy."""
    return tuple(a.clone_state() if hasattr(a, "clone_state") else copy.deepcopy(a) for a in args)


@settings.usual()
def call(function, args, seconds, use=Exercise.use):
    """The ``Result`` of ``use(function, *args)`` on a copy of ``args``, silently and within ``seconds`` of
    computing. torch gets one thread: on a busy machine, several compute while they wait for one another."""
    mine = _copy(args)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), _one_thread():
            value = _within(seconds, lambda: use(function, *mine))
    except TimeLimit as limit:
        return Result("timeout", _took_too_long(limit, seconds), printed=printed.getvalue())
    except (Exception, SystemExit) as error:
        return Result("error", _error_text(error, function), type(error), printed=printed.getvalue())
    return Result("value", value, changed=not _same_input(args, mine), printed=printed.getvalue())


def _one_thread():
    if "torch" not in sys.modules:
        return contextlib.nullcontext()
    from helpers.training import one_thread

    return one_thread()


def _took_too_long(limit, seconds):
    if isinstance(limit, Waiting):
        return (f"did not come back within {PATIENCE * seconds:g} seconds, and computed for less than "
                f"{seconds:g} of them. Does it sleep, or wait for something?")
    of_what = "" if sys.platform == "emscripten" else " of computing"
    return f"did not finish within {seconds:g} seconds{of_what}. Is there a loop that never ends?"


def _computing():
    """A clock, to be read in any thread, of the seconds for which this thread has computed. Where the system
    has none, as on macOS and Windows, all threads of the process count; a browser names one that cannot be
    read, and there the process' goes on by itself."""
    try:
        mine = time.pthread_getcpuclockid(threading.get_ident())
        time.clock_gettime(mine)
    except (AttributeError, OSError):
        return time.process_time
    return lambda: time.clock_gettime(mine)


def _within(seconds, function):
    """``function()``. Raise TimeLimit in it when it has computed for more than ``seconds``, and Waiting when
    PATIENCE times as many have gone by on the clock; the interrupt is repeated, so that a loop that catches
    everything does not survive it for long. Where no thread can start, as in a browser, the limits are looked
    at before every line instead, and such a loop survives. Locks of threading.Event are avoided: an interrupt
    inside one would leave it locked for ever."""
    thread = ctypes.c_ulong(threading.get_ident())
    over, sending, ended = [], threading.Lock(), threading.Lock()
    ended.acquire()
    limits = _limits(seconds)

    def watch():
        wait = seconds
        while not ended.acquire(timeout=wait):
            with sending:  # so this thread's clock is still there
                if over:
                    return
                limit, wait = limits()
                if limit:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(limit))

    calm = False
    try:
        try:
            threading.Thread(target=watch, daemon=True).start()
        except RuntimeError:
            calm = True  # nothing will be on its way
            return _watched(limits, function)
        return function()
    finally:
        while not calm:
            try:
                over.append(True)
                with sending:  # nothing is on its way after this
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)
                    calm = True
            except TimeLimit:
                pass
        ended.release()


def _limits(seconds):
    """A function that gives the exception to raise, or None within the limits, and when to ask again."""
    clock = _computing()
    begun, begun_on_clock = clock(), time.monotonic()

    def look():
        left = seconds - (clock() - begun)
        left_on_clock = PATIENCE * seconds - (time.monotonic() - begun_on_clock)
        if left > 0 and left_on_clock > 0:
            return None, max(min(left, left_on_clock), 0.0005)  # nothing computes faster than the clock goes
        return (TimeLimit if left <= 0 else Waiting), 0.01

    return look


def _watched(limits, function):
    """``function()``; what ``limits`` gives is raised at the first line of Python that begins after it."""
    before = sys.gettrace()

    def look(frame, event, arg):
        limit, _ = limits()
        if limit:
            raise limit
        return look

    sys.settrace(look)
    try:
        return function()
    finally:
        sys.settrace(before)


def is_stub(function):
    """True for a body that is only a docstring, ``...``, ``pass`` or ``raise NotImplementedError``.

    ``function``: a function, or its syntax tree (``ast.FunctionDef``). ``return None`` and ``return ...``
    count as nothing too. Where a function's source cannot be found, because it is a lambda or was run from a
    string, its compiled code is compared with that of stubs. Anything else that can be called is not a stub.
    """
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return all(map(_is_empty, function.body))
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if not inspect.iscode(code):
        return False
    tree = _tree(function, code.co_name)
    return is_stub(tree) if tree else any(_same_code(code, stub) for stub in _stubs(code))


def _is_empty(node):
    """Does a statement do nothing?"""
    if isinstance(node, ast.Raise):
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant) and node.value.value in (None, ...)
    return isinstance(node, ast.Pass) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _tree(function, name):
    """The syntax tree of a function written with ``def``; None where its source cannot be found."""
    try:
        node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name else None


def _stubs(code):
    """What this Python makes of stubs with as many arguments."""
    names = [name for name in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
             if name.isidentifier()]
    for body in ("pass", "return ...", "raise NotImplementedError", "raise NotImplementedError('words')"):
        for docstring in ("", "'more words'; "):
            stub = {}
            exec(f"def stub({', '.join(names)}): {docstring}{body}", stub)
            yield stub["stub"].__code__


def _same_code(code, stub):
    """The same instructions, names and constants, whatever the words."""
    def parts(c):
        return c.co_code, c.co_names, [str if isinstance(constant, str) else constant
                                       for constant in c.co_consts]

    return parts(code) == parts(stub)


def _signature_problem(attempt, parameters, args):
    try:
        signature = inspect.signature(attempt)
    except (TypeError, ValueError):  # built-ins without a readable signature
        return None
    try:
        signature.bind(*args)
    except TypeError:
        name = getattr(attempt, "__name__", "your function")
        return (f"The exercise passes ({', '.join(parameters)}), in this order; "
                f"{name} takes {signature}. Keep the signature of the stub.")
    return None


# Torch's words for two kinds of numbers.
TWO_KINDS = "same dtype|expected .*(Float|Double)|Float and Double|Double and Float|dtypes match|mixed dtype"
NUDGES = (  # what an error says, and what to look at
    (TWO_KINDS, "Two tensors hold numbers of two kinds, float32 and float64, and torch multiplies no such pair. Give what "
     "you make the kind of the input, with dtype=x.dtype or .to(x)."),
    (r"^TypeError: (mean|std|var|sum|max|min|argmax|argsort|cumsum)\(\) (received an invalid|got an unexpected)",
     "NumPy's functions hand a tensor on to torch, whose arguments have other names. Take an array, np.asarray(x), or "
     "torch's own, such as x.mean(dim=-1, keepdim=True); in var and std correction=0 divides by the number itself."),
    ("values to unpack", "You name more or fewer values than there are. A shape has a number for each axis, and the input "
     "may have another number of axes: count them from the back, x.shape[-1], x.shape[-2]."),
    ("einstein sum|subscripts", "The letters of an einsum name a fixed number of axes. An ellipsis, ..., stands for any "
     "axes in front."),
    ("step must be greater than zero", "A tensor cannot be read backwards with [::-1]. It has .flip(0), and sort and "
     "argsort have descending=True."),
    ("single memory location", "You read from a tensor while you write into it, and the caller's data is lost as well. "
     "Make a new one, with .clone() or torch.cat."),
    ("does not have enough dimensions|(?<!dtype=)(?<!out=)NoneType",
     "Something that you use is None or a single number. Does a function "
     "that you call return nothing yet? The course's versions always work."),
    ("mismatch in its core dimension|shapes .* not aligned|mat1 and mat2",
     "In a matrix product the inner sizes must agree. Is a transpose missing?"),
    ("could not be broadcast|must match the size",
     "Two shapes do not line up. Print them; keepdims=True or [:, None] "
     "often helps."),
    ("axis .* out of bounds|Dimension out of range",
     "The input may have any number of axes. axis=-1 is always the last one."),
    ("axes don't match array", "NumPy's transpose wants all axes, as many as the input has. To swap two there is "
     "np.swapaxes, with the numbers of both."),
    ("'tuple' object", "A function that you call returns two things. Take the one you need, such as [0]."),
    ("truth value of an array|Boolean value of Tensor",
     "An array is neither true nor false, so Python's own `max`, `min`, `if` and `and` cannot work on it. To cut off "
     "below 0 there are np.maximum(x, 0) and torch.relu(x). Join two conditions with & and not with `and`, each in "
     "brackets; to ask whether a mask was given, use `is not None`."),
    ("'float' object cannot be interpreted as an integer|slice indices must be integers",
     "Sizes are whole numbers: divide them with //."),
    ("received an invalid combination of arguments",
     "torch may want a tensor where NumPy takes a number, or the "
     "arguments in another order. To cut off below 0 there is x.clamp(min=0)."),
    ("only .* arrays can be converted", "A function of math takes one number. Use NumPy's, such as np.exp."),
    (r"(min|max)\(\) .*empty", "There may be nothing to choose from. What should your function give then?"),
    ("^KeyError", "The dict has no such key. `key in d` asks for it, and d.get(key, other) gives other "
     "where it is missing."),
)


def _error_text(error, function):
    """The exception, and the line of the attempt that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    home = getattr(getattr(getattr(function, "func", function), "__code__", None), "co_filename", None)
    mine = [frame for frame in frames if frame.filename == home]
    text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else '(no message)'}"
    if type(error) is NameError and (home := whereabouts(error.name)):
        text += f"\n{home}"
    if mine:
        line = linecache.getline(mine[-1].filename, mine[-1].lineno).strip()
        text += f"\nin line {mine[-1].lineno} of the cell: {line}" if line else f"\nin line {mine[-1].lineno}"
    return text


def whereabouts(name):
    """Where the course has what a missing name means, in one sentence, or "" when it has nothing of this name.

    Usual names of libraries come first, then modules of ``helpers``, an exercise's own reference, and what modules define.
    """
    from helpers.checks import INDEX, exercise

    if name in LIBRARIES:
        return f"{name} is missing: {LIBRARIES[name]}"
    for path in HELPERS.rglob(f"{name}.py"):
        room = ".".join(path.relative_to(HELPERS.parent).parent.parts)
        return f"{name} is a module of the course: from {room} import {name}"
    home = exercise(name).reference.__module__ if name in INDEX else _homes().get(name)
    return f"{name} is in {home}: from {home} import {name}" if home else ""


@functools.cache
def _homes():
    """Public function or class -> the module of ``helpers`` that defines it, read from their sources."""
    homes = {}
    for path in sorted(HELPERS.rglob("*.py"), reverse=True):
        if "checks" in path.parts:
            continue
        module = ".".join(path.relative_to(HELPERS.parent).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                homes[node.name] = module
    return homes


def _nudged(text, nudges):
    """What an error says, and below it the first of ``nudges`` that fits its first line."""
    nudge = next((nudge for pattern, nudge in nudges if re.search(pattern, text.split("\n")[0])), None)
    return f"{text}\n{nudge}" if nudge else text


# ---------------------------------------------------------------- comparing


def _array(value):
    """A NumPy array of a result: array, torch tensor, number or list. None when it is none of these."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float().numpy() if str(value.dtype) == "torch.bfloat16" else value.numpy()
    try:
        array = np.asarray(value)
    except Exception:
        return None
    return array if array.dtype.kind in "biufc" else None


_ORDINALS = "first second third fourth fifth sixth".split()  # in words: an index beside it counts from 0


def compare(expected, got, probe, path="the result", names=()):
    """None when ``got`` agrees with ``expected`` within the tolerances of ``probe``, else one sentence about
    ``path``. ``names``: of several results."""
    if isinstance(expected, dict):
        return _difference_of_dicts(expected, got, path)
    if _ids(expected) and _ids(got) and len(expected) + len(got) < 20:
        e, g = ([int(i) for i in value] for value in (expected, got))
        return None if e == g else f"{path} should be {e}, and is {g}"
    if isinstance(expected, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(expected):
            what = f"{len(got)} values" if isinstance(got, (tuple, list)) else _kind(got)
            return f"{path} should be {len(expected)} values, and is {what}"
        for i, (e, g) in enumerate(zip(expected, got, strict=True)):
            of = "result" if path == "the result" else f"part of {path}"  # such as K of a cache: (output, (K, V))
            which = [*names, *(f"the {word} {of}" for word in _ORDINALS[len(names):])][i:i + 1]
            which = which[0] if which else f"{of} {i + 1}"
            difference = compare(e, g, probe, which)
            if difference:
                return difference
        return None
    if expected is None or isinstance(expected, (str, bytes)):
        same = isinstance(got, (type(None), str, bytes, bytearray)) and expected == got
        return None if same else f"{path} should be {expected!r}, and is {_short(got)}"
    e, g = _array(expected), _array(got)
    if g is None:
        return f"{path} should be an array of numbers, and is {_kind(got)}"
    if e.shape != g.shape:
        return f"{path} should have shape {e.shape}, and has {g.shape}"
    if e.dtype.kind == "b" and g.dtype.kind != "b":
        return f"{path} should hold True and False (dtype bool), and has dtype {g.dtype}"
    if e.dtype.kind in "iu" and g.dtype.kind not in "iu":
        return f"{path} should hold whole numbers (dtype int), and has dtype {g.dtype}"
    if e.dtype.kind == "f" and g.dtype.kind not in "fiu":
        return f"{path} should hold real numbers (dtype float), and has dtype {g.dtype}"
    wrong = ~_close(e, g, probe)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f" at {list(index)}" if index else ""
    return f"{path}{where} should be {_number(e[index])}, and is {_number(g[index])}"


def _difference_of_dicts(expected, got, path):
    if not isinstance(got, dict):
        return f"{path} should be a dict, and is {_kind(got)}"
    for key in [*expected, *got]:
        if key not in got:
            return f"{path} should have {expected[key]} for {key}, and has no {key}"
        if key not in expected:
            return f"{path} should have no {key}, and has {got[key]} for it"
        if expected[key] != got[key]:
            return f"{path} should have {expected[key]} for {key}, and has {got[key]}"
    return None


def _ids(value):
    """Is it a list of whole numbers?"""
    return isinstance(value, (list, tuple)) and all(isinstance(i, Integral) for i in value)


def _lists_of_ids(*values):
    return all(isinstance(value, (list, tuple)) and all(map(_ids, value)) for value in values)


def _form(expected, got):
    """True when ``got`` differs in kind, number of values or shape, so that its numbers say nothing."""
    if _ids(expected) and _ids(got) or _lists_of_ids(expected, got):
        return False
    if isinstance(expected, (tuple, list)):
        return (not isinstance(got, (tuple, list)) or len(got) != len(expected)
                or any(map(_form, expected, got)))
    if isinstance(expected, (str, dict, bytes)):
        return not isinstance(got, type(expected))
    e, g = _array(expected), _array(got)
    return g is None or (e is not None and e.shape != g.shape)


def _lost_axes(expected, got):
    """A sentence on what became of the axes of a result in a wrong form, or ""."""
    if isinstance(expected, (tuple, list, str, dict, bytes)) or isinstance(got, (tuple, list)):
        return ""
    e, g = (_array(value).shape for value in (expected, got)) if _array(got) is not None else ((), ())
    if len(g) < len(e):
        return "An axis is missing: was it summed or averaged away, or lost by an index such as [0]? "
    if len(g) > len(e):
        return "There is an axis too many: should it be summed over, or did [None] or a list of one thing add it? "
    return "The axes have changed places: look at each transpose. " if g != e and sorted(g) == sorted(e) else ""


def _close(e, g, probe):
    """Element by element: equal for whole numbers and booleans, else within the probe's tolerances."""
    if e.dtype.kind in "biu":
        return e == g
    finite = np.abs(e[np.isfinite(e)])
    scale = finite.max() if finite.size else 0.0
    with np.errstate(all="ignore"):
        return np.isclose(g, e, rtol=probe.tolerance, atol=max(2e-6 * scale, 1e-7, probe.absolute),
                          equal_nan=True)


def _same_input(before, after):
    if isinstance(before, (tuple, list)):
        return len(before) == len(after) and all(map(_same_input, before, after))
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(_same_input(value, after[key]) for key, value in before.items())
    if isinstance(before, np.ndarray) or hasattr(before, "detach"):
        b, a = _array(before), _array(after)
        return b.shape == a.shape and (b.tobytes() == a.tobytes() or np.array_equal(b, a, equal_nan=b.dtype.kind == "f"))
    return before == after if isinstance(before, (int, str, bytes)) else True


def _behaves_like(misconception, cases, results, core_only, use, seconds):
    """Does the attempt give what the misconception gives, everywhere it is looked at? One that takes too long
    gives nothing."""
    told_apart = False
    for case, result in zip(cases, results, strict=True):
        if core_only and case.probe.extreme:
            continue
        wrong = call(misconception.function, case.args, seconds, use)
        if wrong.kind == "timeout" or wrong.kind != result.kind:
            return False
        if wrong.kind == "value" and _difference_of_attempts(wrong.value, result.value, case.probe):
            return False
        if wrong.kind == "error" and not _same_error(wrong, result):
            return False
        told_apart = told_apart or wrong.kind == "error" or compare(
            case.expected, wrong.value, case.probe) is not None
    return told_apart


def _one_of_several(exercise, cases, results, failing, seconds):
    """(What is said of one of several mistakes and the misconception, or None; the failing case to show.)

    Where one of two mistakes is not to be seen, the attempt gives what the other gives. So a misconception explains part
    of an attempt that gives the same in at least ``PART`` of the cases in which it is wrong, if these are at least half as
    large a part of those in which the attempt is, and the attempt is right in none of them. Of several it is the one that
    explains most. Where every result has a wrong form, that of a misconception is enough which gives the right numbers in
    it, or alone gives it.
    """
    best, shown, most, formed = None, failing[0], 0, []
    formless = _formless(cases, results)
    for misconception in exercise.misconceptions:
        others, wrong, same = {}, 0, []
        for i in [i for i in range(len(cases)) if i not in failing] + failing:
            others[i] = call(misconception.function, cases[i].args, seconds, exercise.use)
            if others[i].kind == "value" and compare(cases[i].expected, others[i].value, cases[i].probe) is None:
                continue
            wrong += 1
            same += [i] * _gives(results[i], others[i], cases[i].probe)
            hopeless = not formless and wrong - len(same) > (1 - PART) * len(cases)
            if others[i].kind == "timeout" or i not in failing or hopeless:
                break
        else:
            if len(same) > most and len(same) >= max(PART * wrong, PART / 2 * len(failing)):
                best, shown, most = misconception, same[0], len(same)
            if formless and all(_form_of(results[i].value) == _form_of(other.value) for i, other in others.items()):
                formed.append((misconception, all(_right_numbers(cases[i], other) for i, other in others.items())))
    if best:
        return (SEVERAL, best), shown
    pure = [misconception for misconception, right in formed if right]
    one = pure[0] if pure else formed[0][0] if len(formed) == 1 else None
    return (one and (SAME_FORM, one)), shown


def _gives(result, other, probe):
    """Are the results of an attempt and of a misconception the same?"""
    if result.kind != other.kind:
        return False
    return _same_error(other, result) if other.kind == "error" else not _difference_of_attempts(
        other.value, result.value, probe)


def _formless(cases, results):
    """Is every result a value in a wrong form?"""
    return all(r.kind == "value" and _form(case.expected, r.value) for case, r in zip(cases, results, strict=True))


def _form_of(value):
    if isinstance(value, (tuple, list)) and not _ids(value):
        return tuple(map(_form_of, value))
    array = None if value is None or isinstance(value, (str, bytes, dict)) else _array(value)
    return type(value) if array is None else array.shape


def _right_numbers(case, other):
    """Are the numbers of a result those of what is expected, or of a part of it, in whatever form?"""
    parts = [case.expected, *(case.expected if isinstance(case.expected, tuple) else ())]
    arrays = [_array(part) for part in (other.value, *parts) if other.kind == "value" and part is not None]
    if not arrays or arrays[0] is None:
        return other.kind == "value" and isinstance(case.expected, (str, bytes, dict, list))
    got, *wanted = (np.sort(array, axis=None) if array is not None else None for array in arrays)
    return any(e is not None and e.size == got.size and bool(_close(e, got, case.probe).all()) for e in wanted)


def _same_error(wrong, result):
    """Of one type, and the same in words, numbers apart. Of a ValueError that the misconception itself raises, as a
    caller's mistake, the words are free."""
    one, other = (re.sub(r"\d+", "", r.value.split("\n")[0]) for r in (wrong, result))
    return wrong.error is result.error and (
        one == other or wrong.error is ValueError and " of the cell: raise " in wrong.value)


def _difference_of_attempts(a, b, probe):
    if a is None or b is None:
        return a is not b
    for kind in (str, bytes, dict):
        if isinstance(a, kind) or isinstance(b, kind):
            return not (isinstance(a, kind) and isinstance(b, kind) and a == b)
    for one, other in ((a, b), (b, a)):  # two arrays in a tuple are not one array that stacks them
        if isinstance(one, tuple) and hasattr(other, "shape") and any(hasattr(part, "shape") for part in one):
            return True
    if not isinstance(a, (tuple, list)) and (_array(a) is None or _array(b) is None):
        return True
    return compare(a, b, probe) is not None


# ---------------------------------------------------------------- words


def _case_text(exercise, case, result, difference):
    text = f"Called with {describe(exercise.parameters, case.args)}"
    text += "." if result.kind == "error" else f", {difference}."
    if difference and difference.endswith(" and is nan"):
        text += "\nnan, not a number, is what 0 / 0 and inf - inf give: where does your function divide by 0?"
    if result.printed.strip():
        text += f"\nIt printed: {result.printed.strip()[:300]}"
    return text


def _contract_notes(exercise, attempt, seconds):
    missed = [contract.words for contract in exercise.contracts
              if call(attempt, tuple(contract.make(np.random.default_rng(0))),
                      seconds, exercise.use).error is not ValueError]
    if not missed:
        return []
    return [f"The reference also raises ValueError for {' and for '.join(missed)}, so that a caller's mistake is noticed."]


def _tensor_note(cases, results):
    """What is told of a plain number in the place of a tensor of one: it is right, and nothing can learn from it."""
    loss = [hasattr(case.expected, "detach") and case.expected.ndim == 0 and case.expected.is_floating_point()
            for case in cases]
    if all(hasattr(result.value, "detach") for of_loss, result in zip(loss, results, strict=True) if of_loss):
        return []
    return ["One more thing: yours gives a plain number and no tensor, so no gradient comes back through it, and nothing "
            "can be trained with it. Leave out .item() or float(…)."]


def describe(parameters, args):
    """The arguments in words, such as "x of shape (2, 3), k = 4"."""
    return ", ".join(f"{name} {_short(value)}" for name, value in zip(parameters, args, strict=False))


def _short(value):
    if callable(value):
        return "a function"
    if any(kind.__name__ == "Generator" for kind in type(value).__mro__):  # of NumPy or of torch, or made from one
        return "a generator"
    if _ids(value) or isinstance(value, dict):
        kind = "ids" if _ids(value) else "entries"
        return f"= {value!r}" if len(repr(value)) < 80 else f"of {len(value)} {kind}"
    if isinstance(value, (list, tuple)) and value and all(map(callable, value)):
        return f"of {len(value)} function{'s' * (len(value) > 1)}"
    array = None if isinstance(value, (str, type(None))) else _array(value)
    if array is None:
        return repr(value) if len(repr(value)) < 60 else _kind(value)
    if array.ndim == 0:
        return f"= {_number(array[()])}"
    if array.size <= 6:
        tiny = array.dtype.kind == "f" and bool((np.abs(array[array != 0]) < 1e-3).any())  # else 0
        return "= " + np.array2string(array, precision=3, separator=", ",
                                      suppress_small=not tiny).replace("\n", "")
    return f"of shape {array.shape}"


def _kind(value):
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype}"
    if inspect.isgenerator(value):
        return "a generator: use return, not yield"
    return "None" if value is None else f"of type {type(value).__name__}"


def _number(value):
    return f"{value + 0.0:.4g}" if np.asarray(value).dtype.kind in "fc" else str(value)  # + 0.0: never -0


def _size(args):
    arrays = [_array(a) for a in args if not isinstance(a, (str, dict, type(None)))]
    return (sum(len(a) for a in args if isinstance(a, dict))
            + sum(array.size for array in arrays if array is not None))
