"""What an attempt's error says, in which line, and what to look at."""

import ast
import functools
import linecache
import re
import traceback
from pathlib import Path

HELPERS = Path(__file__).resolve().parents[1]
LIBRARIES = {"np": "import numpy as np", "torch": "import torch", "F": "from torch.nn import functional as F",
             "nn": "from torch import nn", "math": "import math", "plt": "import matplotlib.pyplot as plt"}
# Torch's words for two kinds of numbers.
TWO_KINDS = "same dtype|expected .*(Float|Double)|Float and Double|Double and Float|dtypes match|mixed dtype"
NUDGES = (  # what an error says, and what to look at
    (TWO_KINDS, "Two tensors hold numbers of two kinds, float32 and float64, and torch multiplies no such pair. Give what "
     "you make the kind of the input, with dtype=x.dtype or .to(x)."),
    (r"^TypeError: (mean|std|var|sum|max|min|argmax|argsort|cumsum)\(\) (received an invalid|got an unexpected)",
     "NumPy's functions hand a tensor on to torch, whose arguments have other names. Take an array, np.asarray(x), or "
     "torch's own, such as x.mean(dim=-1, keepdim=True); in var and std correction=0 divides by the number itself."),
    (r"softmax\(\) got an unexpected keyword argument '(axis|dim)'", "The course's softmax has no axis to "
     "choose. It runs over the last one, so that every row sums to 1: in scores these are the keys."),
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
     "In a matrix product the inner sizes must agree. Is a transpose missing, or one too many? (.T turns all axes round, "
     ".swapaxes(-1, -2) only the last two.)"),
    ("could not be broadcast|must match the size",
     "Two shapes do not line up. Print them; keepdims=True or [:, None] "
     "often helps."),
    ("axis .* out of bounds|Dimension out of range",
     "There is no axis of that number here: print the shapes. axis=-1 is always the last one."),
    ("axes don't match array", "NumPy's transpose wants all axes, as many as the input has. To swap two there is "
     "np.swapaxes, with the numbers of both."),
    ("does not support item assignment", "This cannot be changed in place, as a tuple or a text cannot: make a new one."),
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


def error_text(error, function):
    """The exception, where the course has a name that is missing, and the line of the attempt that raised it."""
    text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else '(no message)'}"
    if type(error) is NameError and (home := whereabouts(error.name)):
        text += f"\n{home}"
    file = getattr(getattr(getattr(function, "func", function), "__code__", None), "co_filename", None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if frames:
        number = frames[-1].lineno
        line = linecache.getline(file, number).strip()
        text += f"\nin line {number} of the cell: {line}" if line else f"\nin line {number}"
    return text


def same_error(one, other):
    """Are two results errors of one type, and the same in words, numbers apart? Of a ValueError that ``one`` raises itself,
    as a caller's mistake, the words are free."""
    words = [re.sub(r"\d+", "", result.value.split("\n")[0]) for result in (one, other)]
    raised = one.error is ValueError and " of the cell: raise " in one.value
    return one.error is other.error and (words[0] == words[1] or raised)


def nudged(text, nudges):
    """What an error says, and below it the first of ``nudges`` that fits its first line."""
    nudge = next((nudge for pattern, nudge in nudges if re.search(pattern, text.split("\n")[0])), None)
    return f"{text}\n{nudge}" if nudge else text


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
