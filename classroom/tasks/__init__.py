"""What the functions of each assignment have to do: one module an assignment, in the form of
helpers/checks."""

import importlib
from dataclasses import dataclass, replace

from helpers.checks.core import Exercise, evaluate


@dataclass(frozen=True)
class Task:
    """One tested function. ``forbidden``: names that the code should not mention, reported to the teacher."""

    exercise: Exercise
    forbidden: tuple = ()


def find(assignment, grade_id):
    """The ``Task`` behind the test cell ``grade_id`` of an assignment: ``test-NAME`` calls NAME on ordinary
    inputs, ``test-NAME-extreme`` on extreme ones alone. Raises KeyError where there is none."""
    module = importlib.import_module(f"classroom.tasks.{assignment}")
    name, _, part = grade_id.removeprefix("test-").partition("-")
    if name not in module.TASKS or part not in ("", "extreme"):
        raise KeyError(f"The assignment {assignment} has no task for the test cell {grade_id!r}.")
    task = module.TASKS[name]
    probes = tuple(p for p in task.exercise.probes if p.extreme == (part == "extreme"))
    return replace(task, exercise=replace(task.exercise, probes=probes))


def judge(function, assignment, part=""):
    """The ``Outcome`` for a function, for the hidden tests of nbgrader. ``part``: "" or "extreme"."""
    name = f"test-{function.__name__}-{part}".rstrip("-")
    return evaluate(find(assignment, name).exercise, function)
