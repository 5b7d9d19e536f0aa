"""What a class did with an assignment: points, questions, mistakes, who is missing."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from classroom import Problem, marks
from classroom.grading import FAILED

ENDS = ("all points", "some", "none", "not started", "no points yet")  # how a question ended for a student


@dataclass
class Question:
    """How a question ended for a class. ``ends``: how many students for each of ENDS; ``share``: of its points that were
    given, or None where nobody has any yet; ``mistakes``: how many students made each that the checkers know."""

    item: str
    most: float
    ends: Counter = field(default_factory=Counter)
    share: float | None = None
    mistakes: Counter = field(default_factory=Counter)

    @property
    def numbers(self):
        """How many students for each of ENDS."""
        return [self.ends[end] for end in ENDS]


def questions(results, grades):
    """The ``Question`` of each test and each written answer, in their order. ``grades``: {key: ``marks.Grade``}."""
    questions_by_id, given = {}, Counter()
    for result in results:
        rows = {row.item: row for row in grades[result["key"]].rows}
        for one in (*result["tests"], *result["answers"]):
            question = questions_by_id.setdefault(one["grade_id"], Question(one["grade_id"], one["most"]))
            row = rows.get(question.item)  # none where a person gave points for the whole
            question.ends[_end(row)] += 1
            if row and row.points is not None:
                given[question.item] += row.points
            if one.get("misconception"):
                question.mistakes[one["misconception"]] += 1
    for question in questions_by_id.values():
        number = sum(question.ends.values()) - question.ends["no points yet"]
        if number and question.most:
            question.share = given[question.item] / (number * question.most)
    return list(questions_by_id.values())


def _end(row):
    if not row or row.points is None:
        return "no points yet"
    if row.points >= row.most:
        return "all points"
    return "not started" if row.status == "not started" else "some" if row.points > 0 else "none"


def totals(results, grades):
    """The points of everybody whose notebook could be graded, as far as they are known, from the lowest."""
    return sorted(grades[result["key"]].known for result in results
                  if result["status"] not in FAILED or grades[result["key"]].total is not None)


def absent(out):
    """The names of those on the list of the class who handed in nothing; [] where there was no list."""
    try:
        rows = marks.read_csv(Path(out) / "roster.csv")
    except (Problem, OSError):
        return []
    return [row["name"] for row in rows if row.get("name") and not row.get("handed in")]


def columns(points, most):
    """How many have how many of ``most`` points, in ten steps: (from, to, number) of each; [] where nobody has any."""
    if not points or not most:
        return []
    numbers, ends = np.histogram(points, bins=10, range=(min(0, points[0]), max(most, points[-1])))
    return [(float(low), float(high), int(n)) for low, high, n in zip(ends, ends[1:], numbers, strict=False)]
