"""What the functions of each assignment have to do: one module an assignment, in the form of
helpers/checks. A task whose details may change, so that last year's answer is wrong this year, is a
family.

The notebooks have the form of a teacher's own, and a copy under another name is graded as one (own.py). What stays here
that form cannot hold: a wrong function is recognised by what it computes, and its hint says so; and a detail changes
reference, mistakes, inputs and computed examples together, where ``{{name}}`` only puts a value into text and code."""

import functools
import importlib
import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from helpers.checks.core import Exercise, Misconception, Outcome, evaluate, is_stub


@dataclass(frozen=True)
class Family:
    """A task and its neighbours, which differ in details that change the right answer and not the difficulty.

    ``details``: what may change -> its values, the assignment's own first. ``make(**details)``: the
    ``Exercise``. ``words(**details)``: the passages of the task's cells in which the details show (text,
    stub, example, solution), name -> passage. The source notebook holds those of its own details, and a
    variant's take their places. ``keyed``: names of details that are drawn from the teacher's key, for each
    code of a variant, and from no list; tasks of one assignment that have some share all their details.
    ``sheet(**details)``: where the right answers take seconds to compute, these as a JSON-able value, which
    ``make(**details, sheet=...)`` takes; the teacher's list holds it, so that no grade waits for it.
    """

    details: dict
    make: Callable
    words: Callable
    keyed: tuple = ()
    sheet: Callable | None = None
    public = True  # the solution with its own details
    shared = property(lambda self: bool(self.keyed))  # all tasks of an assignment have the same details

    @property
    def own(self):
        """The details of the assignment as it is in the source notebook."""
        return {name: values[0] for name, values in self.details.items()}

    @functools.cached_property
    def others(self):
        """The details of every variant: all combinations but the assignment's own, whose solution is
        public."""
        combinations = (dict(zip(self.details, values, strict=True))
                        for values in itertools.product(*self.details.values()))
        return [details for details in combinations if details != self.own]

    def listed(self, details):
        """Details as ``others`` lists them: with the own values of what the key draws."""
        return {**details, **{name: self.own[name] for name in self.keyed}}


@dataclass(frozen=True)
class Scored(Outcome):
    """An ``Outcome`` with a share of the points, from 0 to 1: passed with 0.9, below it ``status`` may be "partly".
    ``detail``: what was answered and measured, in lines, for a page that is given back when nobody can hand in again."""

    share: float = 0.0
    detail: str = ""


@dataclass(frozen=True)
class Forecasts:
    """What stands in the place of an ``Exercise`` where a function takes nothing and returns forecasts.

    ``judge(value)``: (share of the points from 0 to 1, words for the student, id of a mistake or None), or
    ValueError, in a sentence, for what is not a forecast; ``detail(value)``: see ``Scored``."""

    name: str
    judge: Callable
    detail: Callable
    parameters = ()

    def evaluate(self, function):
        """The ``Scored`` outcome of calling ``function``."""
        if is_stub(function):
            return Scored(self.name, "not started", None, "The function is still as it was handed out.")
        try:
            return self.outcome(function())
        except Exception as error:
            return Scored(self.name, "error", None, f"Your function stopped with {type(error).__name__}: {error}")

    def outcome(self, value):
        """The ``Scored`` outcome of what the function returned."""
        try:
            share, words, mistake = self.judge(value)
        except ValueError as error:
            return Scored(self.name, "wrong", None, str(error))
        status = "passed" if share >= 0.9 else "partly" if share > 0 else "wrong"
        return Scored(self.name, status, mistake, words, share, self.detail(value))


@dataclass(frozen=True)
class Task:
    """One tested function; its ``exercise`` may be ``Forecasts``. ``forbidden``: names that the code should
    not mention, reported to the teacher; ``family``: its variants, if it has any."""

    exercise: Exercise
    forbidden: tuple = ()
    family: Family | None = None

    @property
    def own(self):
        """The details of the assignment as it is in the source notebook."""
        return self.family.own if self.family else {}

    def variant(self, details=None):
        """The ``Task`` with other details; without any it is this one. The detail "private" is the teacher's own."""
        details = dict(details or {})
        private = details.pop("private", None)
        task = replace(self, exercise=self.family.make(**details)) if details else self
        return replace(task, exercise=with_private(task.exercise, private)) if private else task


def without_sheet(details):
    """Details as somebody was given them."""
    return {name: value for name, value in details.items() if name != "sheet"}


def with_private(exercise, private):
    """The ``Exercise`` of a function that runs the lines ``private["first"]`` on its arguments before anything else, and
    goes on as before. Its mistakes do so too, and to leave the lines out is one more."""
    lines = compile(private["first"], "<private>", "exec")
    signature = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                                   for name in exercise.parameters])

    def changed(function):
        def attempt(*args):
            space = {"np": np} | dict(zip(exercise.parameters, args, strict=True))
            exec(lines, space)
            return function(*(space[name] for name in exercise.parameters))
        attempt.__name__, attempt.__signature__ = exercise.name, signature
        return attempt

    left_out = Misconception("own-text", "You do what the public text asks. Your own text asks for something more, first.",
                             exercise.reference)
    return replace(exercise, reference=changed(exercise.reference), misconceptions=(left_out, *(
        replace(mistake, function=changed(mistake.function)) for mistake in exercise.misconceptions)))


class Like:
    """The reference of a variant, and of its neighbours: ``like(**others)`` is a function of what an attempt is given, under
    the same name, with these details instead of its own. With those that are its defaults it is the reference itself."""

    def __init__(self, reference, own):
        self.reference, self.own = reference, own

    def __call__(self, **others):
        details = self.own | others
        if details == self.reference.__kwdefaults__:
            return self.reference
        bound = functools.partial(self.reference, **details)
        bound.__name__ = self.reference.__name__
        return bound

    def others(self, detail, rows):
        """The misconceptions that are another value of a detail. ``rows``: value -> (id, hint)."""
        return tuple((id, hint, self(**{detail: value})) for value, (id, hint) in rows.items() if value != self.own[detail])


def in_variants(reference, details, forbidden=()):
    """Makes a ``Task`` that is a family of a function ``build(like, **details)``, which gives its ``Exercise`` and the
    passages."""
    def task(build):
        def built(own):
            return build(Like(reference, own), **own)
        family = Family(details, lambda **own: built(own)[0], lambda **own: built(own)[1])
        return Task(family.make(**family.own), forbidden, family)
    return task


def by_name(*tasks):
    """Name of the function -> ``Task``."""
    return {task.exercise.name: task for task in tasks}


def mistakes(*rows):
    """A table of misconceptions: its rows, (id, hint, function) each, one by one or in tables, without those that are
    False: a variant lacks them."""
    tables = ((row,) if row and isinstance(row[0], str) else row or () for row in rows)
    return tuple(row for table in tables for row in table if row)


def rounded(values, digits):
    """A tensor, a list or a number as a test cell or a text shows it, and never -0."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return [rounded(value, digits) for value in values] if isinstance(values, list) else round(values, digits) + 0.0


def is_own(assignment):
    """Whether an assignment is a teacher's own notebook, and none of the course's modules here."""
    return not (Path(__file__).parent / f"{Path(assignment).name}.py").is_file()


def tasks_of(assignment):
    """Name of the function -> ``Task``, for every task of an assignment."""
    if is_own(assignment):
        from classroom import assignment as assignments
        from classroom import own
        return own.tasks_of(assignments.template(assignment), assignments.strip)
    return importlib.import_module(f"classroom.tasks.{assignment}").TASKS


def find(assignment, grade_id, details=None):
    """The ``Task`` behind the test cell ``grade_id`` of an assignment: ``test-NAME`` calls NAME on ordinary
    inputs, ``test-NAME-extreme`` on extreme ones alone. ``details``: those of a variant. Raises KeyError
    where there is none."""
    name, _, part = grade_id.removeprefix("test-").partition("-")
    tasks = tasks_of(assignment)
    if name not in tasks or part not in ("", "extreme"):
        raise KeyError(f"The assignment {assignment} has no task for the test cell {grade_id!r}.")
    task = tasks[name].variant(details)
    if isinstance(task.exercise, Forecasts):
        return task
    probes = tuple(p for p in task.exercise.probes if p.extreme == (part == "extreme"))
    return replace(task, exercise=replace(task.exercise, probes=probes))


def judge(function, assignment, part="", details=None):
    """The ``Outcome`` for a function, for the hidden tests of nbgrader. ``part``: "" or "extreme";
    ``details``: those of a variant."""
    name = f"test-{function.__name__}-{part}".rstrip("-")
    exercise = find(assignment, name, details).exercise
    return exercise.evaluate(function) if isinstance(exercise, Forecasts) else evaluate(exercise, function)
