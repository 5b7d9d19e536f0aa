"""The plans of docs/syllabus.md can be taught in their order and in their time, and the page says what the data say."""

import functools
import re
from pathlib import Path

import nbformat
import pytest

from helpers.page.course import LESSONS
from scripts import plans

ROOT = Path(__file__).resolve().parents[2]
PLANS, TAKES = plans.plans(), plans.takes()


@functools.cache
def needs(name):
    """The lessons that a lesson's, or an assignment's, own paragraph *You need* names."""
    path = (ROOT / "notebooks" / LESSONS[name].file if name in LESSONS else
            ROOT / plans.ASSIGNMENTS.replace("*", name.removeprefix("A")))
    book = nbformat.read(path, as_version=4)
    said = next(part for cell in book.cells for part in cell.source.split("\n\n") if "**You need**" in part)
    said = said.partition("**You need**")[2]
    return set(re.findall(r"\((\d\d)_\w+\.ipynb\)" if name in LESSONS else r"\b(\d\d)\b", said))


def wrong(plan):
    """What cannot be taught so, a sentence each."""
    had = set()
    for number, unit in enumerate(plan.taught, 1):
        where = f"{plan.name}, {plan.unit} {number}"
        for name in (*unit.home, *unit.together):
            if name not in TAKES:
                yield f"{where}: there is no {name}"
                continue
            if name != "inventory" and name in had:
                yield f"{where}: {name} comes twice"
            lacks = needs(name) - had if name != "inventory" else set()
            yield from (f"{where}: {name} needs {one} before it" for one in sorted(lacks) if one not in unit.besides)
            had.add(name)
        if (total := sum(TAKES.get(name, 0) for name in unit.together)) > plan.limit:
            yield f"{where}: {total} minutes of lessons, and it has {plan.limit}"


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_can_be_taught_in_its_order_and_its_time(name):
    assert list(wrong(PLANS[name])) == []


def test_the_inventory_is_taken_twice_or_not_at_all_and_self_study_leaves_nothing_out():
    for plan in PLANS.values():
        taken = [i for i, unit in enumerate(plan.taught) for name in (*unit.home, *unit.together) if name == "inventory"]
        assert len(taken) in (0, 2), plan.name
        learned = [i for i, unit in enumerate(plan.taught) if "17" in unit.together]
        assert not taken or (taken[0] == 0 and taken[1] >= learned[0]), f"{plan.name}: before lesson 01 and after 17"
    assert {name for unit in PLANS["self-study"].taught for name in unit.together} == {*LESSONS, "inventory"}
    assert len([unit for unit in PLANS["a term"].taught if unit.together]) == 12 and PLANS["a term"].limit == 90


def test_every_place_for_a_table_is_filled_from_the_data():
    text = (ROOT / "docs/syllabus.md").read_text(encoding="utf-8")
    assert text.count("<!-- computed: ") == len(plans.PLACE.findall(text)) >= 1
    assert plans.computed(text) == text
    emptied = plans.PLACE.sub(r"\1\2", text)
    assert emptied != text and plans.computed(emptied) == text
