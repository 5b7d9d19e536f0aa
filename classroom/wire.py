"""Values that travel in and out of the sandbox as JSON: arrays as bytes in base64, never pickle.

Used on both sides, so it imports nothing of the course. ``decode`` trusts nothing: what comes out of the
sandbox was written by a submission.
"""

import base64
import re
import sys

import numpy as np
import numpy.random  # NumPy would load it on first use, once again in each call's fork

LARGEST = 2_000_000  # bytes of one array
MOST = 200  # members of a tuple or list, and depth times ten
DTYPES = {kind + str(size) for kind, sizes in
          {"b": [1], "i": [1, 2, 4, 8], "u": [1, 2, 4, 8], "f": [2, 4, 8], "c": [8, 16]}.items() for size in sizes}


class Malformed(ValueError):
    """What arrived is not a value that ``encode`` wrote."""


class Opaque:
    """Stands for a value of a kind that does not travel."""


def encode(value, depth=0):
    """A JSON-able form of numbers, arrays, tensors, strings, None, NumPy generators, and tuples and lists of them.
    Anything else, and what is too large, becomes its description."""
    torch = sys.modules.get("torch")
    if value is None or type(value) is str and len(value) < 10_000:
        return {"plain": value}
    if type(value) is np.random.Generator and type(value.bit_generator) is np.random.PCG64:
        return {"generator": value.bit_generator.state}
    if isinstance(value, tuple | list):
        if len(value) <= MOST and depth < MOST // 10:
            return {"tuple" if isinstance(value, tuple) else "list": [encode(member, depth + 1) for member in value]}
        return {**_array(np.asarray(value)), "is": "list"}
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return {**_array((value.float() if value.dtype == torch.bfloat16 else value).numpy()), "is": "tensor"}
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
    if array.nbytes > LARGEST:
        return {"large": f"an array of shape {array.shape}"[:200]}
    native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {"dtype": native.dtype.kind + str(native.dtype.itemsize), "shape": list(array.shape),
            "data": base64.b64encode(native.tobytes()).decode("ascii")}


def decode(form, depth=0):
    """The value that ``encode`` wrote. Raises Malformed, and OverflowError for a value that was too large to travel."""
    if not isinstance(form, dict) or depth > MOST // 10:
        raise Malformed("not a value")
    if "large" in form:
        raise OverflowError(str(form["large"])[:200])
    if "plain" in form:
        if form["plain"] is None or isinstance(form["plain"], str):
            return form["plain"]
        raise Malformed("not plain")
    if "other" in form:
        return type(re.sub(r"[^\w .,()'-]", "?", str(form["other"])[:60]) or "object", (Opaque,), {})()
    if "generator" in form:
        try:
            bits = np.random.PCG64()
            bits.state = form["generator"]
            return np.random.Generator(bits)
        except Exception:
            raise Malformed("not a generator") from None
    for name, kind in (("tuple", tuple), ("list", list)):
        if name in form:
            if not isinstance(form[name], list) or len(form[name]) > MOST:
                raise Malformed("not a sequence")
            return kind(decode(member, depth + 1) for member in form[name])
    array = _read_array(form)
    if form.get("is") == "tensor":
        import torch
        return torch.from_numpy(array)
    if form.get("is") == "list":
        return array.tolist()
    if form.get("is") == "number" and array.shape == ():
        return array.item() if array.dtype.kind + str(array.itemsize) in ("b1", "i8", "f8", "c16") else array[()]
    return array


def _read_array(form):
    dtype, shape, data = form.get("dtype"), form.get("shape"), form.get("data")
    if not (isinstance(dtype, str) and dtype in DTYPES and isinstance(data, str)
            and isinstance(shape, list) and len(shape) <= 32
            and all(type(n) is int and 0 <= n <= LARGEST for n in shape)):
        raise Malformed("not an array")
    try:
        raw = base64.b64decode(data, validate=True)
        return np.frombuffer(raw, dtype=np.dtype("<" + dtype)).reshape(shape).copy()
    except (ValueError, OverflowError):
        raise Malformed("not an array") from None
