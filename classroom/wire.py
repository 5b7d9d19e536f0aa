"""Values that travel in and out of the sandbox as JSON: arrays as bytes in base64, never pickle.

Used on both sides, so it imports nothing of the course. ``decode`` trusts nothing: what comes out of the
sandbox was written by a submission.
"""

import base64
import math
import re
import sys
from itertools import accumulate
from operator import mul

import numpy as np
import numpy.random  # NumPy would load it on first use, once again in each call's fork

LARGEST = 2_000_000  # bytes of one array; an axis of length 0 counts as one of length 1, or it would hide the others
MOST = 200  # members of a tuple or list that are kept one by one, and depth times ten
MEMBERS = 100_000  # of all tuples and lists of one value together, at every level
DTYPES = {kind + str(size) for kind, sizes in
          {"b": [1], "i": [1, 2, 4, 8], "u": [1, 2, 4, 8], "f": [2, 4, 8], "c": [8, 16]}.items() for size in sizes}


class Malformed(ValueError):
    """What arrived is not a value that ``encode`` wrote."""


class Opaque:
    """Stands for a value of a kind that does not travel."""


class _Room:
    """How many members the tuples and lists of one value may still have. ``take`` raises OverflowError."""

    def __init__(self):
        self.left = MEMBERS

    def take(self, number):
        self.left -= number
        if self.left < 0:
            raise OverflowError(f"tuples or lists of more than {MEMBERS:,} members")

    def take_shape(self, shape):
        """As many as the nested lists of an array of this shape have: 5 and 5 · 3 for (5, 3)."""
        self.take(sum(accumulate((max(n, 1) for n in shape), mul)))


def encode(value):
    """A JSON-able form of numbers, arrays, tensors, strings, None, NumPy generators, and tuples, lists, dicts and sets of
    them. Anything else, and what is too large, becomes its description."""
    try:
        return _encode(value, 0, _Room())
    except OverflowError as error:
        return {"large": str(error)}


def _encode(value, depth, room):
    torch = sys.modules.get("torch")
    if value is None or type(value) is str and len(value) < 10_000:
        return {"plain": value}
    if type(value) is np.random.Generator and type(value.bit_generator) is np.random.PCG64:
        return {"generator": value.bit_generator.state}
    if isinstance(value, tuple | list):
        if len(value) <= MOST and depth < MOST // 10:
            room.take(len(value))
            return {"tuple" if isinstance(value, tuple) else "list": [_encode(member, depth + 1, room) for member in value]}
        array = np.asarray(value)
        room.take_shape(array.shape)
        return {**_array(array), "is": "list"}
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return {**_array((value.float() if value.dtype == torch.bfloat16 else value).numpy()), "is": "tensor"}
    if isinstance(value, dict | set | frozenset) and depth < MOST // 10:
        room.take(len(value))
        if isinstance(value, dict):
            return {"dict": [[_encode(one, depth + 1, room) for one in pair] for pair in value.items()]}
        return {"set": [_encode(one, depth + 1, room) for one in value]}
    if isinstance(value, np.ndarray):
        return {**_array(np.asarray(value)), "is": "array"}
    if isinstance(value, bool | int | float | complex | np.generic):
        return {**_array(np.asarray(value)), "is": "number"}
    return {"other": type(value).__name__[:60]}


def _array(array):
    if array.dtype == np.longdouble:  # of 16 bytes on some machines and not on others
        array = array.astype(np.float64)
    if array.dtype.kind + str(array.dtype.itemsize) not in DTYPES:
        return {"other": f"array of dtype {array.dtype}"[:60]}
    if _bytes(array.shape, array.itemsize) > LARGEST:
        return {"large": f"an array of shape {array.shape}"[:200]}
    native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {"dtype": native.dtype.kind + str(native.dtype.itemsize), "shape": list(array.shape),
            "data": base64.b64encode(native.tobytes()).decode("ascii")}


def _bytes(shape, itemsize):
    """Of an array, if each axis of length 0 had length 1."""
    return math.prod(max(n, 1) for n in shape) * itemsize


def decode(form):
    """The value that ``encode`` wrote. Raises Malformed, and OverflowError for a value that was too large to travel."""
    return _decode(form, 0, _Room())


def _decode(form, depth, room):
    if not isinstance(form, dict) or depth > MOST // 10:
        raise Malformed("not a value")
    if "large" in form:
        raise OverflowError(form["large"][:200] if isinstance(form["large"], str) else "a value")
    if "plain" in form:
        if form["plain"] is None or isinstance(form["plain"], str):
            return form["plain"]
        raise Malformed("not plain")
    if "other" in form:
        name = form["other"][:60] if isinstance(form["other"], str) else ""
        return type(re.sub(r"[^\w .,()'-]", "?", name) or "object", (Opaque,), {})()
    if "generator" in form:
        return _read_generator(form["generator"])
    for name, kind in (("tuple", tuple), ("list", list)):
        if name in form:
            if not isinstance(form[name], list) or len(form[name]) > MOST:
                raise Malformed("not a sequence")
            room.take(len(form[name]))
            return kind(_decode(member, depth + 1, room) for member in form[name])
    if "dict" in form or "set" in form:
        return _hashed(form.get("dict"), form.get("set"), depth, room)
    array = _read_array(form)
    if form.get("is") == "tensor":
        import torch
        return torch.from_numpy(array)
    if form.get("is") == "list":
        room.take_shape(array.shape)
        return array.tolist()
    if form.get("is") == "number" and array.shape == ():
        return array.item() if array.dtype.kind + str(array.itemsize) in ("b1", "i8", "f8", "c16") else array[()]
    return array


def _hashed(pairs, members, depth, room):
    """A dict, or without ``pairs`` a set."""
    inside = members if pairs is None else pairs
    if not isinstance(inside, list):
        raise Malformed("not a dict or set")
    room.take(len(inside))
    try:
        if pairs is None:
            return {_decode(member, depth + 1, room) for member in members}
        return {_decode(key, depth + 1, room): _decode(value, depth + 1, room) for key, value in pairs}
    except (TypeError, ValueError) as error:  # a key that has no hash, or no pair
        raise Malformed("not a dict or set") from error


def _read_generator(state):
    """A generator in this state, whose numbers are whole and as large as PCG64's."""
    try:
        numbers = [state["state"]["state"], state["state"]["inc"], state["has_uint32"], state["uinteger"]]
        if not all(type(n) is int and 0 <= n < 2 ** most for n, most in zip(numbers, (128, 128, 1, 32), strict=True)):
            raise ValueError
        bits = np.random.PCG64(0)
        bits.state = state
        return np.random.Generator(bits)
    except (ValueError, TypeError, KeyError):
        raise Malformed("not a generator") from None


def _read_array(form):
    dtype, shape, data = form.get("dtype"), form.get("shape"), form.get("data")
    if not (isinstance(dtype, str) and dtype in DTYPES and isinstance(data, str)
            and isinstance(shape, list) and len(shape) <= 32
            and all(type(n) is int and 0 <= n <= LARGEST for n in shape)
            and _bytes(shape, int(dtype[1:])) <= LARGEST and len(data) <= 2 * LARGEST):
        raise Malformed("not an array")
    try:
        raw = base64.b64decode(data, validate=True)
        return np.frombuffer(raw, dtype=np.dtype("<" + dtype)).reshape(shape).copy()
    except (ValueError, OverflowError):
        raise Malformed("not an array") from None
