"""Does what an attempt gives agree with what is expected, and how does it differ, in words?"""

import inspect
from numbers import Integral

import numpy as np

ORDINALS = "first second third fourth fifth sixth".split()  # in words: an index beside it counts from 0


def array_of(value):
    """A NumPy array of a result: array, torch tensor, number or list. None when it is none of these."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float().numpy() if str(value.dtype) == "torch.bfloat16" else value.numpy()
    try:
        array = np.asarray(value)
    except Exception:
        return None
    return array if array.dtype.kind in "biufc" else None


def compare(expected, got, probe, path="the result", names=()):
    """None when ``got`` agrees with ``expected`` within the tolerances of ``probe``, else one sentence about
    ``path``. ``names``: of several results."""
    if isinstance(expected, dict):
        return _difference_of_dicts(expected, got, path)
    if is_ids(expected) and is_ids(got) and len(expected) + len(got) < 20:
        e, g = ([int(i) for i in value] for value in (expected, got))
        return None if e == g else f"{path} should be {e}, and is {g}"
    if isinstance(expected, (tuple, list)):
        return _difference_of_parts(expected, got, probe, path, names)
    if expected is None or isinstance(expected, (str, bytes)):
        same = isinstance(got, (type(None), str, bytes, bytearray)) and expected == got
        return None if same else f"{path} should be {expected!r}, and is {_short(got)}"
    return _difference_of_arrays(array_of(expected), got, probe, path)


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


def _difference_of_parts(expected, got, probe, path, names):
    if not isinstance(got, (tuple, list)) or len(got) != len(expected):
        what = f"{len(got)} values" if isinstance(got, (tuple, list)) else _kind(got)
        return f"{path} should be {len(expected)} values, and is {what}"
    of = "result" if path == "the result" else f"part of {path}"  # such as K of a cache: (output, (K, V))
    names = [*names, *(f"the {word} {of}" for word in ORDINALS[len(names):])]
    for i, (e, g) in enumerate(zip(expected, got, strict=True)):
        difference = compare(e, g, probe, names[i] if i < len(names) else f"{of} {i + 1}")
        if difference:
            return difference
    return None


def _difference_of_arrays(e, got, probe, path):
    g = array_of(got)
    if g is None:
        return f"{path} should be an array of numbers, and is {_kind(got)}"
    if e.shape != g.shape:
        return f"{path} should have shape {e.shape}, and has {g.shape}"
    for kinds, allowed, words in (("b", "b", "True and False (dtype bool)"), ("iu", "iu", "whole numbers (dtype int)"),
                                  ("f", "fiu", "real numbers (dtype float)")):
        if e.dtype.kind in kinds and g.dtype.kind not in allowed:
            return f"{path} should hold {words}, and has dtype {g.dtype}"
    wrong = ~is_close(e, g, probe)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    where = f" at {list(index)}" if index else ""
    for digits in range(4, 18):  # as many as tell them apart
        right, mine = _number(e[index], digits), _number(g[index], digits)
        if right != mine:
            break
    return f"{path}{where} should be {right}, and is {mine}"


def is_close(e, g, probe):
    """Element by element: equal for whole numbers and booleans, else within the probe's tolerances."""
    if e.dtype.kind in "biu":
        return e == g
    finite = np.abs(e[np.isfinite(e)])
    scale = finite.max() if finite.size else 0.0
    with np.errstate(all="ignore"):
        return np.isclose(g, e, rtol=probe.tolerance, atol=max(2e-6 * scale, 1e-7, probe.absolute),
                          equal_nan=True)


def is_ids(value):
    """Is it a list of whole numbers?"""
    return isinstance(value, (list, tuple)) and all(isinstance(i, Integral) for i in value)


def agree(one, other, probe):
    """Do two attempts give the same, which may be any value?"""
    if one is None or other is None:
        return one is other
    for kind in (str, bytes, dict):
        if isinstance(one, kind) or isinstance(other, kind):
            return isinstance(one, kind) and isinstance(other, kind) and one == other
    for a, b in ((one, other), (other, one)):  # two arrays in a tuple are not one array that stacks them
        if isinstance(a, tuple) and hasattr(b, "shape") and any(hasattr(part, "shape") for part in a):
            return False
    if not isinstance(one, (tuple, list)) and (array_of(one) is None or array_of(other) is None):
        return False
    return compare(one, other, probe) is None


# ---------------------------------------------------------------- the form of a result


def differs_in_form(expected, got):
    """True when ``got`` differs in kind, number of values or shape, so that its numbers say nothing."""
    if is_ids(expected) and is_ids(got) or all(isinstance(value, (list, tuple)) and all(map(is_ids, value))
                                               for value in (expected, got)):
        return False
    if isinstance(expected, (tuple, list)):
        return (not isinstance(got, (tuple, list)) or len(got) != len(expected)
                or any(map(differs_in_form, expected, got)))
    if isinstance(expected, (str, dict, bytes)):
        return not isinstance(got, type(expected))
    e, g = array_of(expected), array_of(got)
    return g is None or (e is not None and e.shape != g.shape)


def form_of(value):
    """What two results of one form share: a shape, a type, or a tuple of the forms of the parts."""
    if isinstance(value, (tuple, list)) and not is_ids(value):
        return tuple(map(form_of, value))
    array = None if value is None or isinstance(value, (str, bytes, dict)) else array_of(value)
    return type(value) if array is None else array.shape


def lost_axes(expected, got):
    """A sentence on what became of the axes of a result in a wrong form, or ""."""
    if isinstance(expected, (tuple, list, str, dict, bytes)) or isinstance(got, (tuple, list)):
        return ""
    e, g = (array_of(value).shape for value in (expected, got)) if array_of(got) is not None else ((), ())
    if len(g) < len(e):
        return "An axis is missing: was it summed or averaged away, or lost by an index such as [0]? "
    if len(g) > len(e):
        return "There is an axis too many: should it be summed over, or did [None] or a list of one thing add it? "
    return "The axes have changed places: look at each transpose. " if g != e and sorted(g) == sorted(e) else ""


def right_numbers(expected, got, probe):
    """Are the numbers of ``got`` those of ``expected``, or of a part of it, in whatever form?"""
    parts = [expected, *(expected if isinstance(expected, tuple) else ())]
    if got is None or (numbers := array_of(got)) is None:
        return got is not None and isinstance(expected, (str, bytes, dict, list))
    arrays = [array_of(part) for part in parts if part is not None]
    return any(e is not None and e.size == numbers.size
               and bool(is_close(np.sort(e, axis=None), np.sort(numbers, axis=None), probe).all()) for e in arrays)


# ---------------------------------------------------------------- values in words


def describe(parameters, args):
    """The arguments in words, such as "x of shape (2, 3), k = 4"."""
    return ", ".join(f"{name} {_short(value)}" for name, value in zip(parameters, args, strict=False))


def size_of(args):
    """How many numbers and entries the arguments hold, so that the smallest of several inputs can be shown."""
    arrays = [array_of(a) for a in args if not isinstance(a, (str, dict, type(None)))]
    return (sum(len(a) for a in args if isinstance(a, dict))
            + sum(array.size for array in arrays if array is not None))


def _short(value):
    if callable(value):
        return "a function"
    if any(kind.__name__ == "Generator" for kind in type(value).__mro__):  # of NumPy or of torch, or made from one
        return "a generator"
    if is_ids(value) or isinstance(value, dict):
        kind = "ids" if is_ids(value) else "entries"
        return f"= {value!r}" if len(repr(value)) < 80 else f"of {len(value)} {kind}"
    if isinstance(value, (list, tuple)) and value and all(map(callable, value)):
        return f"of {len(value)} function{'s' * (len(value) > 1)}"
    array = None if isinstance(value, (str, type(None))) else array_of(value)
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


def _number(value, digits=4):
    return f"{value + 0.0:.{digits}g}" if np.asarray(value).dtype.kind in "fc" else str(value)  # + 0.0: never -0
