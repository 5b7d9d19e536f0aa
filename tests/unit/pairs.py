"""Two mistakes at once: attempts made of two of an exercise's misconceptions, wrong in both ways.

Where one calls the reference, the other takes the reference's place: the learner's code with both mistakes. Where both
come from one template with different settings, it gets the settings of both. Any other two are laid over one another: what
comes out differs from the reference by what both differ by, so each shows alone where the other does not.
"""

import collections
import functools
import itertools
import types
from unittest import mock

import numpy as np
from mistakes import _once

from helpers.checks import core
from helpers.checks.comparison import array_of, differs_in_form, is_ids

RIGHT_FORM = "The result does not have the right form yet"


def ends(exercise, each=1, seed=0):
    """What the checker says of pairs of misconceptions: (how, "a + b", the ``Outcome``), of every ``each``-th pair."""
    cases = core.draw_cases(exercise, seed)
    remembered = _once(core.call)

    def call(function, args, *others):
        return function.results[id(args)] if isinstance(function, LaidOver) else remembered(function, args, *others)

    with mock.patch.multiple(core, call=call, draw_cases=lambda *_: cases, _in_float32=lambda *_: None):
        for one, other in list(itertools.combinations(exercise.misconceptions, 2))[::each]:
            how, function = both(exercise, one.function, other.function, cases, remembered)
            yield how, f"{one.id} + {other.id}", core.evaluate(exercise, function)


def both(exercise, one, other, cases, call):
    """(how it was made, a function that is wrong in both ways)."""
    for a, b in ((one, other), (other, one)):
        if _calls(a, exercise.reference) and not _calls(b, exercise.reference):
            return "one around the other", _with_names(a, {exercise.name: b})
    if _calls(one, exercise.reference) and _calls(other, exercise.reference):
        return "one around the other", _with_names(one, {exercise.name: other})
    if merged := _of_one_template(exercise, one, other):
        return "one template", merged
    return "laid over one another", _laid_over(exercise, one, other, cases, call)


def _calls(function, reference):
    return (isinstance(function, types.FunctionType) and reference.__name__ in function.__code__.co_names
            and function.__globals__.get(reference.__name__) is reference)


def _with_names(function, names):
    made = types.FunctionType(function.__code__, function.__globals__ | names, function.__name__, function.__defaults__,
                              function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _of_one_template(exercise, one, other):
    """Both settings in one function, where both were made by one function from settings that differ in different places."""
    if isinstance(one, functools.partial) and isinstance(other, functools.partial) and one.func is other.func:
        apart = not one.keywords.keys() & other.keywords.keys()
        return functools.partial(one.func, **one.keywords, **other.keywords) if apart else None
    code = getattr(one, "__code__", None)
    if code is None or not one.__closure__ or getattr(other, "__code__", None) is not code:
        return None
    family = [m.function for m in exercise.misconceptions if getattr(m.function, "__code__", None) is code]
    settings = [[_value(cell) for cell in function.__closure__] for function in family]
    usual = [max(values, key=values.count) for values in zip(*settings, strict=True)]
    mine, theirs = ([_value(cell) for cell in function.__closure__] for function in (one, other))
    changed = [[v is not u and v != u for v, u in zip(values, usual, strict=True)] for values in (mine, theirs)]
    if not all(map(any, changed)) or any(map(all, zip(*changed, strict=True))):
        return None
    cells = [o if c else m for c, m, o in zip(changed[1], one.__closure__, other.__closure__, strict=True)]
    return types.FunctionType(code, one.__globals__, one.__name__, one.__defaults__, tuple(cells))


def _value(cell):
    value = cell.cell_contents
    return str(value) if isinstance(value, np.ndarray) or hasattr(value, "detach") else value


class LaidOver:
    """Stands for a function that gives, for some cases, the reference's results with the deviations of two others."""

    def __init__(self, results):
        self.results = results

    def __call__(self, *args):
        raise AssertionError("It has results for the cases alone.")


def _laid_over(exercise, one, other, cases, call):
    results = {}
    for case in cases:
        a, b = (call(function, case.args, core.SECONDS, exercise.use) for function in (one, other))
        results[id(case.args)] = _deviations(case, a, b)
    return LaidOver(results)


def _same(case, result):
    return result.kind == "value" and core.compare(case.expected, result.value, case.probe) is None


def _deviations(case, a, b):
    if _same(case, a):
        return b
    if _same(case, b):
        return a
    if a.kind != "value":
        return a
    if b.kind != "value":
        return b
    if differs_in_form(case.expected, a.value) or not differs_in_form(case.expected, b.value):
        first, second = a, b
    else:
        first, second = b, a  # the one whose form is wrong gives the form
    return core.Result("value", _added(first.value, second.value, case.expected))


def _added(first, second, expected):
    """``first`` plus what ``second`` has more than ``expected``, in the form of ``first``."""
    if isinstance(first, (tuple, list)) and not is_ids(first):
        if isinstance(second, (tuple, list)) and isinstance(expected, (tuple, list)) \
                and len(first) == len(second) == len(expected):
            return type(first)(map(_added, first, second, expected)) if type(first) in (tuple, list) else first
        return type(first)(_added(part, None, None) for part in first) if type(first) in (tuple, list) else first
    x, y, e = (array_of(value) if value is not None else None for value in (first, second, expected))
    if x is None:
        if isinstance(first, dict) and isinstance(second, dict):
            return {key: first.get(key, second.get(key)) for key in second} | {key: v for key, v in first.items()
                                                                              if key not in (expected or ())}
        return first[::-1] if isinstance(first, (str, bytes)) else first
    with np.errstate(all="ignore"):
        if y is not None and e is not None and x.shape == y.shape == e.shape:
            if {x.dtype.kind, y.dtype.kind, e.dtype.kind} == {"b"}:
                return x ^ y ^ e
            return x + (y.astype(float) - e).astype(x.dtype if x.dtype.kind != "b" else float)
        return x[..., ::-1] if x.ndim else x + 1  # wrong in another way as well, in the same form


def kind(outcome, pair):
    """How helpful the outcome of ``pair`` is."""
    if outcome.misconception:
        return "named" if outcome.misconception in pair.split(" + ") else "another"
    if outcome.status != "wrong":
        return outcome.status
    return "form alone" if outcome.message.startswith(RIGHT_FORM) else "probe"


def count(exercise, each=1, seed=0):
    """(Counter of kinds, the pairs told the right form alone)."""
    kinds, alone = collections.Counter(), []
    for how, pair, outcome in ends(exercise, each, seed):
        kinds[kind(outcome, pair)] += 1
        if kind(outcome, pair) == "form alone":
            alone.append(f"{exercise.name}: {pair} ({how})")
    return kinds, alone
