"""Take over a learner's own solution of an exercise, or the course's version where it does not pass."""

import functools

import numpy as np

from helpers.checks.core import evaluate


def adopt(attempt, course, name=None):
    """Return (a function on tensors, "yours" or why not): a learner's solution, or else the course's version.

    ``attempt``: a function as it stood in its lesson, on NumPy arrays or on tensors; ``course``: a function
    on tensors; ``name``: of the exercise, by default the attempt's. The attempt is taken if the exercise's
    checker accepts it. Raises KeyError when there is no such exercise.
    """
    from helpers.checks import exercise

    found = exercise(name or attempt.__name__)
    for arrays in (True, False):
        function = functools.wraps(attempt)(_on_tensors(attempt, arrays))
        outcome = evaluate(found, function)
        if outcome:
            return function, "yours"
    reason = "is not started" if outcome.status == "not started" else "has not passed"
    return course, f"the course's (yours {reason})"


def _on_tensors(function, arrays):
    """``function``, called with NumPy arrays or else with tensors; it gives tensors where it gets tensors."""
    import torch

    def into(value):
        if isinstance(value, tuple):
            return tuple(map(into, value))
        if arrays:
            return value.numpy() if torch.is_tensor(value) else value
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    def back(value, dtype):
        if isinstance(value, tuple):
            return tuple(back(part, dtype) for part in value)
        value = torch.as_tensor(value)
        return value.to(dtype) if value.is_floating_point() else value

    def call(*args):
        out = function(*map(into, args))
        tensors = [a for a in args if torch.is_tensor(a)]
        return back(out, tensors[0].dtype) if tensors else out

    return call
