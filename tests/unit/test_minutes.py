"""The minutes of a lesson are counted as scripts/minutes.py says."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from helpers.course import LESSONS
from scripts.minutes import ROOT, minutes

FOLDED = {"jupyter": {"source_hidden": True}}
SECONDS = dict.fromkeys(("10", "11", "15", "16", "17"), 60)  # of running time; the other lessons get 20


@pytest.mark.parametrize(("cells", "exercises", "seconds", "wanted"), [
    ([], 0, 0, 0),
    ([new_markdown_cell("word " * 825)], 0, 0, 5),
    ([new_markdown_cell("word " * 826)], 0, 0, 10),
    ([new_markdown_cell("[word](a_long_link.ipynb) <b>" * 825)], 0, 0, 5),
    ([new_code_cell("x = 1\n\n" * 60)], 0, 0, 5),
    ([new_code_cell("x = 1\n" * 61)], 0, 0, 10),
    ([new_code_cell("x = 1\n" * 61, metadata=FOLDED)], 0, 0, 0),
    ([new_code_cell('predict("a")')], 3, 0, 35),
    ([], 0, 301, 10),
])
def test_minutes(cells, exercises, seconds, wanted):
    assert minutes(new_notebook(cells=cells), exercises, seconds) == wanted


def most_of(lesson):
    """60 minutes up to lesson 08, then 75, and 90 where there are five exercises."""
    return 60 if lesson.number <= "08" else 90 if len(lesson.exercises) >= 5 else 75


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_a_lesson_states_the_minutes_that_it_takes(lesson):
    """Computed with no running time and with two minutes of it, which is more than any lesson needs on an idle machine."""
    book = nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4)
    least, most = (minutes(book, len(lesson.exercises), seconds) for seconds in (0, 120))
    if least <= most_of(lesson):  # otherwise it has to be cut, as the test below says
        assert least <= lesson.minutes <= most, (
            f"{lesson.file} takes {least} minutes or more and data/course.toml says {lesson.minutes}: correct it, then run "
            "`python -m scripts.course`.")


@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_keeps_its_time(number):
    """The running time is counted."""
    lesson = LESSONS[number]
    most = most_of(lesson)
    book = nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4)
    takes = minutes(book, len(lesson.exercises), SECONDS.get(number, 20))
    assert takes <= lesson.minutes <= most, (
        f"{lesson.file} takes {takes} minutes with its running time, data/course.toml says {lesson.minutes}, and {most} are "
        "allowed: cut it. An exercise counts 10, a prediction, 165 words or 12 visible lines of code count 1.")
