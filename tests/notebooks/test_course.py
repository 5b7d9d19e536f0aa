"""data/course.toml is the one list of lessons: what is made from it is up to date, what stands beside it agrees."""

import ast
import importlib
import inspect
from pathlib import Path

import hygiene
import pytest

from helpers.checks import INDEX, exercise
from helpers.page.claims import register
from helpers.page.course import LESSONS
from scripts import pages

ROOT = Path(__file__).resolve().parents[2]


def test_every_lesson_has_a_notebook_and_every_notebook_is_a_lesson():
    found = [book.path.name for book in hygiene.books() if book.kind == "lessons"]
    assert found == [lesson.file for lesson in LESSONS.values()], "notebooks/ and data/course.toml differ."


def test_lessons_and_claims_are_counted_through():
    assert list(LESSONS) == [f"{i:02d}" for i in range(len(LESSONS))]
    claims = [claim for lesson in LESSONS.values() for claim in lesson.claims]
    claims += [id for id, entry in register().items() if "withdrawn" in entry]  # such a number never means anything else
    waiting = set()  # numbers that are taken, of claims that are not measured yet
    wanted = {f"C{i:02d}" for i in range(1, len(claims) + len(waiting) + 1)} - waiting
    wrong = set(claims) ^ wanted or {c for c in claims if claims.count(c) > 1}
    assert not wrong, f"data/course.toml: {', '.join(sorted(wrong))} is missing, doubled or not the next number."


@pytest.mark.parametrize("lesson", LESSONS.values(), ids=LESSONS)
def test_an_entry_is_complete(lesson):
    assert lesson.minutes % 5 == 0 and lesson.title and lesson.afterwards
    if lesson.number != "00":
        assert lesson.you_write and len(lesson.exercises) >= 2 and (lesson.claims or lesson.number == "20")
    for name, parameters in lesson.exercises.items():
        (function,) = ast.parse(f"def {name}({parameters}): ...").body
        assert parameters == hygiene.parameters(function), f"{name}: write ({hygiene.parameters(function)})."


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS.values() if lesson.exercises],
                         ids=[lesson.number for lesson in LESSONS.values() if lesson.exercises])
def test_every_exercise_has_a_checker_with_its_signature_and_every_checker_is_an_exercise(lesson):
    module = importlib.import_module(f"helpers.checks.lesson{lesson.number}")
    names = {found.name for found in module.EXERCISES}
    assert names == set(lesson.exercises), f"helpers/checks/lesson{lesson.number}.py and data/course.toml differ."
    for name, parameters in lesson.exercises.items():
        assert str(inspect.signature(exercise(name).reference)) == f"({parameters})", f"{name}: reference and list differ."
        assert INDEX[name] == lesson.number


@pytest.mark.parametrize("number", ["99", "01"])
def test_an_exercise_without_a_checker_is_told(monkeypatch, number):
    monkeypatch.setitem(INDEX, "count_pairs", number)
    with pytest.raises(KeyError, match=f"helpers.checks.lesson{number} has no checker for it"):
        exercise("count_pairs")


def test_every_page_says_what_the_list_says():
    old = [path.name for path in pages.revised()]
    assert not old, f"{', '.join(old)} and data/course.toml differ: run `python -m scripts.pages`."
    places = (ROOT / "README.md").read_text(encoding="utf-8").count("<!-- end of the map -->")
    assert places == 1, f"README.md has {places} places for the map, not one."
    first = (ROOT / "notebooks" / LESSONS["00"].file).read_text(encoding="utf-8")
    for lesson in LESSONS.values():
        assert lesson.afterwards in first and lesson.file in first, "the map of lesson 00 is old: run the lesson again"
