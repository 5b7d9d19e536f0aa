"""The tables of docs/syllabus.md: plans with the minutes behind them, and the assignments.

``scripts/pages.py`` writes them between two comments, <!-- computed: NAME --> and <!-- end of NAME -->.
"""

import re
from collections import namedtuple

import nbformat

from helpers.page import course
from scripts import ROOT, minutes

PLACE = re.compile(r"(?<=<!-- computed: )([\w -]+?)( -->\n).*?(?=<!-- end of \1 -->)", re.DOTALL)
ASSIGNMENTS = "notebooks/assignments/source/assignment*/assignment*.ipynb"


# A line of a plan: what is done together, what at home before, what else happens. Names as in data/syllabus.toml.
Unit = namedtuple("Unit", "together home besides")
Plan = namedtuple("Plan", "name unit limit taught")  # ``taught``: its lines


def plans():
    """The plans of data/syllabus.toml, {name: Plan}. Raises ValueError, in one sentence, where a line is not one."""
    listed = course.tomllib.loads((ROOT / "data/syllabus.toml").read_text(encoding="utf-8"))["plan"]
    for entry in listed:
        for line in entry["taught"]:
            if len(line) != 3:
                raise ValueError(f"data/syllabus.toml, {entry['name']}: {line} is not [together, at home, besides].")
    return {entry["name"]: Plan(entry["name"], entry["unit"], entry["limit"], [
        Unit(together.split(), home.split(), besides) for together, home, besides in entry["taught"]]) for entry in listed}


def assignments():
    """{"A1": (title, points, minutes)}: 10 minutes a task or question, and words, code and figures as a lesson's."""
    by_name = {}
    for path in sorted(ROOT.glob(ASSIGNMENTS), key=lambda path: int(path.stem.removeprefix("assignment"))):
        book = nbformat.read(path, as_version=4)
        words = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
        tasks = re.findall(r"^#+ (?:Task|Question) \d.* (\d+) points", words, re.MULTILINE)
        title = re.search(r"^# Assignment \d+ · (.+)", words, re.MULTILINE)[1]
        by_name[f"A{path.stem.removeprefix('assignment')}"] = (
            title, sum(map(int, tasks)), minutes.rounded(minutes.needed(book.cells) + 10 * len(tasks)))
    return by_name


def takes():
    """{what a plan may name: its minutes}."""
    return ({number: lesson.minutes for number, lesson in course.LESSONS.items()}
            | {"inventory": minutes.rounded(minutes.INVENTORY)}
            | {name: needed for name, (_, _, needed) in assignments().items()})


def hours(total):
    return f"{total // 60} h {total % 60:02}" if total >= 60 else f"{total} min" if total else ""


def plan_table(plan, takes):
    """The head and rows of a plan: a line a unit, and the sums."""
    def total(names):
        return sum(takes[name] for name in names)

    def said(names):
        return ", ".join(name.replace("A", "assignment ") for name in names)

    rows = [[str(number) if unit.together else "Afterwards", said(unit.together),
             f"{total(unit.together)} of {plan.limit}" if unit.together else "",
             f"{said(unit.home)} ({hours(total(unit.home))})" if unit.home else "", unit.besides]
            for number, unit in enumerate(plan.taught, 1)]
    together, home = (sum(total(names) for names in column)
                      for column in zip(*((unit.together, unit.home) for unit in plan.taught), strict=True))
    rows.append(["**Sum**", "", hours(together), hours(home), ""])
    head = [plan.unit, "Together", "Minutes", "At home before", "Besides"]
    if not home:
        head, rows = [plan.unit, "Lessons", "Minutes", "Besides"], [[*row[:3], row[4]] for row in rows]
    return head, rows


def computed(text):
    """``text`` with every place filled with the table that it asks for."""
    tables, needed = {}, takes()
    for name, plan in plans().items():
        tables[name] = plan_table(plan, needed)
    tables["assignments"] = ["Assignment", "About", "Points", "Takes"], [
        [name.removeprefix("A"), title, str(points), hours(needed[name])]
        for name, (title, points, _) in assignments().items()]
    return PLACE.sub(lambda place: f"{place[1]}{place[2]}\n{table(*tables[place[1]])}\n\n", text)


def table(head, rows):
    """A table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, [":--"] * len(head), *rows]).replace("  |", " |")
