"""What you wrote is what runs: a learner's functions go into a model, the course's where they do not pass."""

import functools
import itertools
import sys
import time
from html import escape

import numpy as np

from helpers.checks.calls import call
from helpers.checks.core import SECONDS, evaluate
from helpers.page import show
from helpers.store import settings

SLOWEST = 30  # times the course's computing time: a training with loops in it must still end


def name_of(attempt, names):
    """Which of these exercises a function is: the one that is called as it is, or as the notebook's name for it, such as
    ``softmax = my_softmax`` or a lambda has. Its own name if it is none of them."""
    own = getattr(attempt, "__name__", type(attempt).__name__)
    notebook = getattr(attempt, "__globals__", {})
    return own if own in names else next((name for name in names if notebook.get(name) is attempt), own)


def adopt(attempt, course, name=None, trains=None):
    """Return (a function on tensors, "yours" or why not): a learner's solution, or else the course's version.

    ``attempt``: a function as it stood in its lesson, on NumPy arrays or on tensors; ``course``: a function
    on tensors; ``name``: of the exercise, by default the attempt's. The attempt is taken if the exercise's
    checker accepts it. ``trains``: arguments, a tuple with tensors of the sizes that the model has, where the
    function is to be trained through: then gradients have to come back as through the course's, in at most
    ``SLOWEST`` times its computing time. Raises KeyError when there is no such exercise.
    """
    function, why, _ = _taken(attempt, course, name, trains)
    return (course, f"the course's (yours {why})") if why else (function, "yours")


def adopt_all(attempts, courses, trains=None):
    """Adopt several functions and say in one note whose pieces run: a dict, name -> function on tensors.

    ``attempts``: functions of the learner, called like their exercises; ``courses``: name -> the course's
    function on tensors, for all pieces of the model, also those that the learner was not asked for;
    ``trains``: name -> arguments, see `adopt`. A wrong piece is refused with what its checker says.
    """
    pieces, mine, theirs, refused = dict(courses), [], [], []
    for attempt in attempts:
        name = name_of(attempt, courses)
        if name not in courses:
            refused.append(f"{name} is no name of an exercise here: give your function the name that its exercise has.")
            continue
        function, why, message = _taken(attempt, courses[name], name, (trains or {}).get(name))
        if why:
            theirs.append(f"{name} (yours {why})")
            refused += [f"{name}: {message}"] if message else []
        else:
            pieces[name] = function
            mine.append(name)
    said = " ".join([f"Yours run: {', '.join(mine)}."] * bool(mine)
                    + [f"The course's run: {'; '.join(theirs)}."] * bool(theirs))
    kind = "bad" if refused else "info" if theirs else "good"
    show.note("<br>".join(map(escape, [said, *refused])), kind=kind)
    return pieces


def yours_or_ours(attempt, course, trial=None):
    """The learner's function if its checker accepts it, else the course's; one printed line says which runs.

    For lessons without tensors: torch is not imported. ``trial``: arguments of the kind that follow in the lesson;
    a right function that takes more than ``SLOWEST`` times the course's computing time on them, and more than a
    quarter of a second, does not run either. Raises KeyError when there is no exercise of that name.
    """
    from helpers.checks import INDEX, exercise

    name = name_of(attempt, INDEX)
    outcome = evaluate(exercise(name), attempt) if attempt is not course else None
    why = " Yours has not passed its check." if outcome is not None and outcome.status in ("wrong", "error") else ""
    mine = bool(outcome)
    if mine and trial is not None:
        start = time.process_time()
        course(*trial)
        tried = call(attempt, trial, max(SLOWEST * (time.process_time() - start), 0.25))
        mine = tried.kind == "value"
        why = {"value": "", "error": f" Yours passed its check, but stopped here: {tried.value}"}.get(
            tried.kind, f" Yours is right, but takes more than {SLOWEST} times as long: what follows would not end soon.")
    print("From here on", "your" if mine else "the course's", name, f"runs.{why}")
    return attempt if mine else course


def _taken(attempt, course, name, trains):
    """(The attempt on tensors, "", "") if it may run, else (None, why not, what its checker says)."""
    from helpers.checks import INDEX, exercise

    found, outcomes = exercise(name or name_of(attempt, INDEX)), []
    args = found.probes[0].make(np.random.default_rng(0))
    example = call(found.reference, args, SECONDS).value
    tensors = any(hasattr(arg, "detach") for arg in args)
    for arrays in (False, True) if tensors else (True, False):
        function = functools.wraps(attempt)(_on_tensors(attempt, arrays, example))
        outcomes.append(evaluate(found, function))
        if outcomes[-1]:
            why = "" if trains is None else _untrainable(_on_tensors(attempt, False, example), course, trains)
            if trains is not None and not why:
                function = functools.wraps(attempt)(_on_tensors(attempt, False, example))
            return (None if why else function), why, ""
        if tensors and outcomes[-1].status == "wrong":
            break  # as check says; a checker may see less of what is done in NumPy
    if outcomes[0].status == "not started":
        return None, "is not started", ""
    told = min(outcomes, key=lambda told: (told.status == "error", told.misconception is None))  # maybe of the other kind
    return None, "has not passed", told.message.split("\n")[0]


def on_tensors(found, attempt):
    """An attempt at an ``Exercise`` with inputs of NumPy, called with tensors instead, once torch is there; else None."""
    args = found.probes[0].make(np.random.default_rng(0))
    if "torch" not in sys.modules or not any(isinstance(arg, np.ndarray) for arg in args):
        return None
    example = call(found.reference, args, SECONDS).value
    return functools.wraps(attempt)(_on_tensors(attempt, False, example))


def _untrainable(function, course, args):
    """Why a right function cannot be trained through, or ""."""
    _gradients(course, args)  # the first gradients of a process are slow, and would make any loop look quick
    wanted, course_seconds = _gradients(course, args)
    try:
        got, seconds = _gradients(function, args)
    except RuntimeError as error:  # such as "element 0 of tensors does not require grad" or "Can't call numpy() on ..."
        if "grad" not in str(error):
            return _not_on_tensors(error)
        got, seconds = None, 0.0
    except Exception as error:  # such as "transpose() takes 2 positional arguments but 4 were given"
        return _not_on_tensors(error)
    if got is None or any(g is None and w is not None for g, w in zip(got, wanted, strict=True)):
        return ("is right, but no gradient comes back through it: it leaves torch, by NumPy or .item() or "
                ".detach()")
    if not all(w is None or np.allclose(g, w, rtol=1e-3, atol=1e-3 * float(w.abs().max()))
               for g, w in zip(got, wanted, strict=True)):
        return "is right, but other gradients come back through it"
    if seconds > SLOWEST * course_seconds:
        return (f"is right, but takes more than {SLOWEST} times as long, as loops do, and the training would "
                "not end soon")
    return ""


def _not_on_tensors(error):
    said = str(error).splitlines() or [type(error).__name__]  # a bare raise says nothing
    return f"is right on NumPy's arrays, but torch says: {said[0]}"


@settings.usual()
def _gradients(function, args):
    """The gradient of a fixed sum of what comes out for each tensor of floats that goes in, and the computing
    time of a call: of as many as fill 50 ms, because some clocks go on in steps; on one thread, because threads that wait
    for each other compute too."""
    import torch

    from helpers import training

    with training.one_thread():
        start, runs = time.process_time(), 0
        while (took := time.process_time() - start) < 0.05:
            mine = [a.detach().clone().requires_grad_() if torch.is_tensor(a) and a.is_floating_point() else a
                    for a in args]
            out = function(*mine)
            out = out[0] if isinstance(out, tuple) else out
            weights = torch.linspace(-1, 1, out.numel()).view(out.shape)
            (out * weights).sum().backward()
            runs += 1
    return [a.grad for a in mine if torch.is_tensor(a) and a.requires_grad], took / runs


def _on_tensors(function, arrays, example):
    """``function``, called with NumPy arrays or else with tensors; it gives tensors where it gets tensors: a list of them
    is a tuple where ``example``, what the reference gave for some arguments, is one, and else a tensor that stacks them."""
    import torch

    def into(value):
        if isinstance(value, (tuple, list)):
            return (tuple if isinstance(value, tuple) else list)(map(into, value))
        if arrays:
            return value.detach().numpy() if torch.is_tensor(value) else value
        return torch.from_numpy(value) if isinstance(value, np.ndarray) else value

    def back(value, dtype, like):
        if isinstance(value, (tuple, list)) and isinstance(like, (tuple, list)):
            return tuple(back(part, dtype, of) for part, of in itertools.zip_longest(value, like[:len(value)]))
        if isinstance(value, (tuple, list)) and any(map(torch.is_tensor, value)):
            value = torch.stack(value)
        value = torch.as_tensor(value)
        return value.to(dtype) if dtype and value.is_floating_point() else value

    def call(*args, **named):
        out = function(*map(into, args), **{name: into(value) for name, value in named.items()})
        tensors = [a for a in (*args, *named.values()) if torch.is_tensor(a)]
        floats = [a.dtype for a in tensors if a.is_floating_point()]  # the first argument may be ids
        return back(out, floats[0] if floats else None, example) if tensors else out

    return call
