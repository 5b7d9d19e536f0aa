"""The minutes of a lesson are counted as scripts/minutes.py says, and stated."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.page.course import LESSONS
from scripts.minutes import ROOT, SECONDS, deeper, minutes, needed, parts, rounded

FOLDED = {"jupyter": {"source_hidden": True}}
FIGURE = [new_output("display_data", {"image/png": ""}), new_output("display_data", {"image/png": ""})]


@pytest.mark.parametrize(("cells", "seconds", "wanted"), [
    ([], 0, 0),
    ([new_markdown_cell("word " * 575)], 0, 5),
    ([new_markdown_cell("word " * 576)], 0, 10),
    ([new_markdown_cell("[word](a_long_link.ipynb) <b>" * 575)], 0, 5),
    ([new_code_cell("x = 1\n\n" * 30)], 0, 5),
    ([new_code_cell("x = 1\n# said\n" * 31)], 0, 10),
    ([new_code_cell("x = 1\n" * 61, metadata=FOLDED)], 0, 0),
    ([new_code_cell("x = 1\n" * 61, metadata=FOLDED, outputs=FIGURE)], 0, 5),
    ([new_code_cell('predict("a")'), *[new_markdown_cell("### Exercise 1") for _ in range(3)]], 0, 35),
    ([], 301, 10),
    ([new_markdown_cell("## Going deeper"), new_markdown_cell("word " * 1000)], 0, 0),
])
def test_minutes(cells, seconds, wanted):
    assert minutes(new_notebook(cells=cells), seconds) == wanted


def test_each_section_that_goes_deeper_has_minutes_of_its_own():
    cells = [new_markdown_cell("## 1. Core"), new_markdown_cell("## Going deeper\n\nNobody needs this to go on."),
             new_markdown_cell("### History"), new_markdown_cell("word " * 600), new_markdown_cell("### Counting"),
             new_markdown_cell("### Exercise 4 · `count(x)`"), new_code_cell("x = 1\n" * 12)]
    assert deeper(new_notebook(cells=cells)) == {"History": 10, "Counting": 15}


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_a_lesson_states_the_minutes_that_it_takes(lesson):
    """Computed with no running time and with two minutes of it, which is more than any lesson needs on an idle machine."""
    book = nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4)
    least, most = (minutes(book, seconds) for seconds in (0, 120))
    assert least <= lesson.minutes <= most, (
        f"{lesson.file} takes {least} minutes or more and data/course.toml says {lesson.minutes}: correct it, then run "
        "`python -m scripts.pages`.")


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_each_section_that_goes_deeper_states_its_minutes(lesson):
    for title, cells in parts(nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4))[1].items():
        if title != "Going further":  # a list to come back to
            assert f"**Time:** {rounded(needed(cells))} minutes" in cells[0].source, f"{lesson.file}: {title}"


@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_keeps_its_time(number):
    """70 minutes up to lesson 08, then 90. The running time is counted."""
    lesson, most = LESSONS[number], 70 if number <= "08" else 90
    takes = minutes(nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4), SECONDS.get(number, 20))
    assert takes <= most, (
        f"{lesson.file} takes {takes} minutes with its running time, and {most} are allowed: cut it, or move what is "
        "not needed next below *Going deeper*. An exercise counts 10, a prediction 2, a figure, 115 words or 6 visible "
        "lines of code count 1.")
