"""How an exercise is checked.

An exercise is a reference, probes and known misconceptions. The attempt is called on random
inputs and compared with the reference, never with one frozen example. A misconception is code:
the wrong function itself. An attempt that behaves like it everywhere gets its hint.
"""

import contextlib
import functools
import inspect
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape

import numpy as np

from helpers.checks.calls import Result, call, copied, plain_use
from helpers.checks.comparison import (
    agree,
    compare,
    describe,
    differs_in_form,
    form_of,
    lost_axes,
    right_numbers,
    size_of,
)
from helpers.checks.errors import NUDGES, TWO_KINDS, nudged, same_error
from helpers.checks.stubs import is_stub, signature_problem
from helpers.page import show
from helpers.store import settings

PART = 0.5  # of the cases in which a misconception is wrong
SEVERAL = "There seems to be more than one mistake. One of them:"
SAME_FORM = "The result has the form that this usual mistake gives it:"
SECONDS = 5.0  # of computing, for one call of an attempt


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


def inputs(draw):
    """Of a function that draws arguments of some sizes, what makes a ``Probe.make``: where ``texts(rng, B, T)`` is the
    function, ``texts(2, 3)`` is the maker of such arguments."""
    return lambda *sizes, **options: lambda rng: draw(rng, *sizes, **options)


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


def two_at_once(mistakes):
    """Of pairs (what to tell, function): for each two variants of one template that change different steps, what to tell
    of the first, and both at once."""
    made = [(told, function) for told, function in mistakes if isinstance(function, functools.partial)]
    for (told, one), (_, other) in itertools.combinations(made, 2):
        if one.func is other.func and not one.keywords.keys() & other.keywords.keys():
            yield told, functools.partial(one, **other.keywords)


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
    behind a ``*`` are details of the task, and no attempt is given them. ``learns``: for how many of its first arguments
    the gradient of a loss, a number, has to be the reference's too. ``nudges``: what an error says in
    this exercise, as a pattern, and what to look at; they go before ``NUDGES``. ``results``: what a message calls the
    results, where there are several and "the second result" would say little.
    """

    reference: Callable
    probes: tuple
    misconceptions: tuple
    contracts: tuple = ()
    use: Callable = plain_use
    nudges: tuple = ()
    results: tuple = ()
    learns: int = 0
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

# ---------------------------------------------------------------- what is judged


@dataclass(frozen=True, eq=False)
class Case:
    """One call that an attempt is judged by: its probe, arguments, and what the reference gives for them."""

    probe: Probe
    args: tuple
    expected: object

    def difference(self, result, names=()):
        """How the ``Result`` of a call differs from what is expected, in words, or None."""
        return compare(self.expected, result.value, self.probe, names=names) if result.kind == "value" else "no value"


@dataclass(frozen=True, eq=False)
class Trial:
    """A case, what came of it when the attempt was called, and how that differs from what is expected, or None."""

    case: Case
    result: Result
    difference: str | None


@settings.usual()
def draw_cases(exercise, seed):
    """The list of ``Case`` for ``exercise``, each probe's inputs drawn from ``seed``."""
    cases = []
    for number, probe in enumerate(exercise.probes):
        rng = np.random.default_rng([seed, number])
        for _ in range(probe.draws):
            args = tuple(probe.make(rng))
            cases.append(Case(probe, args, exercise.use(exercise.reference, *copied(args))))
    return cases


def _trials(exercise, attempt, cases, seconds):
    """The ``Trial`` of each case, up to the first that takes too long."""
    trials = []
    for case in cases:
        result = call(attempt, case.args, seconds, exercise.use)
        trials.append(Trial(case, result, case.difference(result, exercise.results)))
        if result.kind == "timeout":
            break
    return trials


def _in_float32(exercise, cases):
    """The cases with tensors of float32 for those of float64: what an attempt makes with torch.zeros is float32, as all
    that torch makes by itself, and stops beside another kind. None where the reference itself does not work so."""
    def narrow(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(narrow, value))
        return value.float() if str(getattr(value, "dtype", "")) == "torch.float64" else value

    try:
        inputs = [narrow(copied(case.args)) for case in cases]
        return [Case(case.probe, args, exercise.use(exercise.reference, *copied(args)))
                for case, args in zip(cases, inputs, strict=True)]
    except Exception:
        return None


# ---------------------------------------------------------------- the judgement


@settings.usual()
def evaluate(exercise, attempt, seed=0, seconds=SECONDS, more=True):
    """Judge ``attempt`` and return an ``Outcome``; shows and records nothing.

    ``more``: say also which mistakes of a caller a right attempt does not notice.
    ``seed`` draws the inputs; ``seconds`` of computing limit each call, so a busy machine changes nothing.
    """
    outcome = functools.partial(Outcome, exercise.name)
    if is_stub(attempt):
        return outcome("not started", None, "Replace the ... with your code, then run the cell again.")
    cases = draw_cases(exercise, seed)
    if problem := signature_problem(attempt, exercise.parameters, cases[0].args):
        return outcome("error", None, problem)

    trials = _trials(exercise, attempt, cases, seconds)
    if any(t.result.error and re.search(TWO_KINDS, t.result.value) for t in trials):
        trials = _trials(exercise, attempt, _in_float32(exercise, cases) or cases, seconds)
    last = trials[-1]
    if last.result.kind == "timeout":
        return outcome("error", None, f"Your function {last.result.value}\n"
                                      f"It was called with {describe(exercise.parameters, last.case.args)}.")
    if any(t.difference for t in trials):
        return _wrong(exercise, trials, seconds)
    return _right(exercise, attempt, trials, seconds, more)


def _wrong(exercise, trials, seconds):
    """The ``Outcome`` of an attempt that fails in some of its trials: the first of these reasons that there is."""
    outcome = functools.partial(Outcome, exercise.name)
    if all(t.result.kind == "value" and t.result.value is None for t in trials):
        return outcome("wrong", "no-return",
                       "Your function gives back None: its last line needs a return. "
                       "(Functions such as print, and methods such as sort, give back None themselves.)")

    # From here on the words are about one failing case: a plain one, and the smallest.
    failing = sorted((t for t in trials if t.difference),
                     key=lambda t: (t.case.probe.special or t.case.probe.extreme, size_of(t.case.args)))
    first = failing[0]

    @functools.cache
    def mistaken(misconception, trial):
        """The ``Result`` of a misconception in a trial."""
        return call(misconception.function, trial.case.args, seconds, exercise.use)

    if misconception := _misconception_of_all(exercise, trials, mistaken):
        stopped = f"{first.result.value}\n" if first.result.kind == "error" else ""
        return outcome("wrong", misconception.id, f"{misconception.hint}\n{stopped}{_case_text(exercise, first)}")
    if first.result.kind == "error":
        nudges = (*exercise.nudges, *_none_nudge(exercise, first.case), *NUDGES)
        return outcome("error", None, f"Your function stopped with {nudged(first.result.value, nudges)}\n"
                                      f"{_case_text(exercise, first)}")
    words, misconception, shown = _one_of_several(exercise, trials, failing, mistaken, seconds)
    if misconception:
        return outcome("wrong", misconception.id, f"{words} {misconception.hint}\n{_case_text(exercise, shown)}".lstrip())
    hint = first.case.probe.hint
    if changing := next((t for t in failing if t.result.changed), None):
        return outcome("wrong", "changes-input", f"Your function {_changes(exercise, changing)}. That may be why the result "
                                                 f"is wrong, too. {hint}\n{_case_text(exercise, changing)}")
    if _is_formless(trials):
        lost = lost_axes(first.case.expected, first.result.value)
        hint = f"The result does not have the right form yet. {lost}Compare it with what is expected:"
    return outcome("wrong", None, f"{hint}\n{_case_text(exercise, first)}")


def _right(exercise, attempt, trials, seconds, more):
    """The ``Outcome`` of an attempt whose values are right."""
    for trial in trials:
        if trial.result.changed:
            return Outcome(exercise.name, "wrong", "changes-input",
                           f"The values are right, but your function {_changes(exercise, trial)}.\n"
                           f"It was called with {describe(exercise.parameters, trial.case.args)}.")
    untaught = _untaught(exercise, attempt, [t.case for t in trials], seconds) if exercise.learns else None
    if untaught is not None:  # an outcome that is not "passed" counts as False
        return untaught
    lines = ["Your function agrees with the reference on every random input."]
    losses = [t for t in trials if hasattr(t.case.expected, "detach") and t.case.expected.ndim == 0
              and t.case.expected.is_floating_point()]
    if not all(hasattr(t.result.value, "detach") for t in losses):  # a number is right, and nothing can learn from it
        lines.append("One more thing: yours gives a plain number and no tensor, so no gradient comes back through it, and "
                     "nothing can be trained with it. Leave out .item() or float(…).")
    missed = [contract.words for contract in exercise.contracts
              if more and call(attempt, tuple(contract.make(np.random.default_rng(0))), seconds,
                               exercise.use).error is not ValueError]
    if missed:
        lines.append("One more thing: the course's version also raises ValueError for "
                     f"{' and for '.join(missed)}, so that a caller's mistake is noticed.")
    return Outcome(exercise.name, "passed", None, "\n".join(lines))


def _untaught(exercise, attempt, cases, seconds):
    """The ``Outcome`` where other gradients come back through a loss than through the reference, or None."""
    def gradients(function):
        back = functools.partial(_back_through, function, exercise.learns)
        return [call(back, case.args, seconds).value for case in cases]

    def is_right(function):
        return not any(case.difference(call(function, case.args, seconds, exercise.use)) for case in cases)

    names = [f"the gradient with respect to {name}" for name in exercise.parameters]
    mine, probes = gradients(attempt), [case.probe for case in cases]
    differences = [compare(*three, names=names) for three in zip(gradients(exercise.reference), mine, probes, strict=True)]
    failing = [(case, difference) for case, difference in zip(cases, differences, strict=True) if difference]
    if not failing:
        return None
    case, difference = min(failing, key=lambda pair: (pair[0].probe.extreme, size_of(pair[0].args)))
    mistake = next((m for m in exercise.misconceptions if all(map(agree, gradients(m.function), mine, probes))
                    and is_right(m.function)), None)
    hint = mistake.hint if mistake else ("The number is right, but its gradient is not, so it teaches something else. Does "
                                         "your function leave torch somewhere, or round, or divide 0 by 0?")
    return Outcome(exercise.name, "wrong", mistake and mistake.id,
                   f"{hint}\nCalled with {describe(exercise.parameters, case.args)}, {difference}.")


def _back_through(function, n, *args):
    """The gradient of a loss for each of its first ``n`` arguments, zeros where none comes back."""
    leaves = [arg.clone().requires_grad_() for arg in args[:n]]
    with contextlib.suppress(Exception):  # such as "Can't call numpy() on Tensor that requires grad"
        function(*(leaf * 1 for leaf in leaves), *args[n:]).backward()
    return [leaf.detach() * 0 if leaf.grad is None else leaf.grad for leaf in leaves]


def _gives_the_same(one, other, probe):
    """Are the results of a misconception and of an attempt the same?"""
    if one.kind != other.kind:
        return False
    return same_error(one, other) if one.kind == "error" else agree(one.value, other.value, probe)


def _explains(mistaken, trials):
    """Does the attempt give in each of these trials what a misconception gives, ``mistaken(trial)``, and is that wrong?"""
    return (all(_gives_the_same(mistaken(t), t.result, t.case.probe) for t in trials)
            and any(t.case.difference(mistaken(t)) for t in trials))


def _misconception_of_all(exercise, trials, mistaken):
    """The misconception that gives what the attempt gives in every trial, or else in every one that is not extreme."""
    for looked_at in (trials, [t for t in trials if not t.case.probe.extreme]):
        for misconception in exercise.misconceptions:
            if _explains(functools.partial(mistaken, misconception), looked_at):
                return misconception
    return None


def _one_of_several(exercise, trials, failing, mistaken, seconds):
    """(What is said of one of several mistakes, the misconception or None, the failing trial to show.)

    Only a misconception that is right wherever the attempt is comes into question. Where one of two mistakes is not to be
    seen, the attempt gives what the other gives: so it is the misconception that gives the same in most cases, if these are
    at least ``PART`` of the cases in which it is wrong, and half as large a part of those in which the attempt is. Where the
    attempt gives nothing in all the others, as after a loop without a turn, no second mistake is spoken of. Failing
    that, where every result has a wrong form, it is one that gives the right numbers in it, or that alone gives it. At last
    come two variants of one template at once.
    """
    def is_wrong(misconception, trial):
        return trial.case.difference(mistaken(misconception, trial))

    possible = [m for m in exercise.misconceptions if not any(is_wrong(m, t) for t in trials if not t.difference)]
    most, shared = None, []  # the misconception that explains most, and the trials in which it gives the same
    for m in possible:
        wrong = [t for t in failing if is_wrong(m, t)]
        same = [t for t in wrong if _gives_the_same(mistaken(m, t), t.result, t.case.probe)]
        if len(same) > len(shared) and len(same) >= max(PART * len(wrong), PART / 2 * len(failing)):
            most, shared = m, same
    if most:
        values = [t for t in failing if t.result.kind == "value" and t.result.value is not None]
        return "" if all(t in shared for t in values) else SEVERAL, most, shared[0]
    if _is_formless(trials):
        of_this_form = [m for m in possible
                        if all(form_of(t.result.value) == form_of(mistaken(m, t).value) for t in trials)]
        with_right_numbers = [m for m in of_this_form if all(_has_right_numbers(mistaken(m, t), t.case) for t in trials)]
        if with_right_numbers or len(of_this_form) == 1:
            return SAME_FORM, (with_right_numbers or of_this_form)[0], failing[0]
    for misconception, both in two_at_once((m, m.function) for m in exercise.misconceptions):
        if _explains(lambda trial, both=both: call(both, trial.case.args, seconds, exercise.use), trials):
            return SEVERAL, misconception, next((t for t in failing if is_wrong(misconception, t)), failing[0])
    return "", None, failing[0]


def _has_right_numbers(result, case):
    """Has a ``Result`` the numbers that are expected, in whatever form?"""
    return result.kind == "value" and right_numbers(case.expected, result.value, case.probe)


def _is_formless(trials):
    """Is every result a value in a wrong form?"""
    return all(t.result.kind == "value" and differs_in_form(t.case.expected, t.result.value) for t in trials)


# ---------------------------------------------------------------- words


def _case_text(exercise, trial):
    text = f"Called with {describe(exercise.parameters, trial.case.args)}"
    text += "." if trial.result.kind == "error" else f", {trial.difference}."
    if trial.difference.endswith(" and is nan"):
        text += ("\nnan, not a number, is what 0 / 0, inf - inf, 0 · inf and the log or root of a negative number give: "
                 "which of them does your function compute?")
    if trial.result.printed.strip():
        text += f"\nIt printed: {trial.result.printed.strip()[:300]}"
    return text


def _changes(exercise, trial):
    """What an attempt does to arguments that it changed in place, and what to write."""
    name = exercise.parameters[trial.result.changed[0]]
    also = f", {name}.append(…)" if isinstance(trial.case.args[trial.result.changed[0]], list) else ""
    return (f"changes its input in place, so the caller's data is lost: {name} += …{also} and {name}[…] = … write into what "
            f"it was given. Work on a copy, or make something new: {name} = {name} + …")


def _none_nudge(exercise, case):
    """What to look at where an argument is None and the attempt stops over it: none or one of ``Exercise.nudges``."""
    names = [name for name, arg in zip(exercise.parameters, case.args, strict=False) if arg is None]
    if names:
        yield ("NoneType|does not have enough dimensions",
               f"{' and '.join(names)} is None here: treat that case apart, with `{names[0]} is None`.")
