"""Check an exercise: ``from helpers.checks import check``, then ``check(softmax)``."""

import difflib
import importlib.util
import itertools

from helpers.checks.adopt import adopt, adopt_all, name_of, on_tensors, yours_or_ours
from helpers.checks.core import Outcome, evaluate
from helpers.page import show
from helpers.page.course import LESSONS
from helpers.store import progress
from helpers.words import Unknown

__all__ = ["INDEX", "Outcome", "adopt", "adopt_all", "check", "evaluate", "exercise", "show_progress",
           "usual_mistakes", "yours_or_ours"]

# exercise -> lesson; the checker is in helpers/checks/lessonNN.py
INDEX = {name: lesson.number for lesson in LESSONS.values() for name in lesson.exercises}


def check(attempt, name=None, more=True):
    """Check a learner's function and say what is wrong with it.

    ``attempt``: the function itself; ``name``: the exercise, when the function is called otherwise; ``more``: say of a
    right one also which mistakes of a caller it does not notice.
    Shows and returns an ``Outcome``; a passed exercise is kept in the progress file.
    Raises KeyError, with the closest known names, when there is no such exercise, and TypeError
    when ``attempt`` is not a function.
    """
    if not callable(attempt):
        raise TypeError("check takes the function itself, such as check(softmax), without calling it; "
                        f"it got {type(attempt).__name__}.")
    found = exercise(name or name_of(attempt, INDEX))
    outcome = evaluate(found, attempt, more=more)
    if outcome.status == "error" and (same := on_tensors(found, attempt)):  # of an earlier lesson, written for this one
        outcome = min(outcome, evaluate(found, same, more=more), key=lambda told: told.status == "error")
    outcome.show()
    if outcome:
        progress.record("exercises", found.name, "passed")
    return outcome


def exercise(name):
    """The ``Exercise`` called ``name``. Raises KeyError: the closest known names, or that the checker is
    missing."""
    if name not in INDEX:
        close = difflib.get_close_matches(str(name), INDEX, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(close)}?" if close else "show_progress() lists the exercises."
        raise Unknown(f"There is no exercise called {name!r}. {hint} "
                           "If your function has another name, pass the exercise's: "
                           'check(my_function, "softmax").')
    home = f"helpers.checks.lesson{INDEX[name]}"
    known = importlib.import_module(home).EXERCISES if importlib.util.find_spec(home) else []
    for found in known:
        if found.name == name:
            return found
    raise Unknown(f"data/course.toml has the exercise {name}, and {home} has no checker for it: "
                       "write it there.")


def usual_mistakes(name):
    """Show the mistakes that the checker of exercise ``name`` recognises, with their hints."""
    show.table(["Mistake", "What the checker says"],
               [(m.id, m.hint) for m in exercise(name).misconceptions])


def show_progress():
    """Show which exercises have been passed and how many predictions were made, for each lesson that has been begun."""
    passed, predicted = progress.load("exercises"), progress.load("predictions")
    rows = []
    for lesson, names in ((lesson.number, list(lesson.exercises)) for lesson in LESSONS.values()):
        done, guessed = [name in passed for name in names], sum(key.startswith(f"{lesson}-") for key in predicted)
        if not any(done) and not guessed:
            continue
        said = [f"{what}: {', '.join(itertools.compress(names, those))}"
                for what, those in (("passed", done), ("open", [not one for one in done])) if any(those)]
        rows.append((lesson, "; ".join([*said, f"{guessed} prediction{'s' * (guessed != 1)} made"])))
    if rows:
        show.table(["Lesson", "Exercises and predictions"], rows)
    else:
        show.note("Nothing yet: make a prediction or pass an exercise, then run this cell again.", kind="idle")
