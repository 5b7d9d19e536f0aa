"""What a class did with an assignment: points, questions, mistakes, who is missing; and a picture for each."""

import io
import re
import textwrap
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from classroom import Problem, marks
from classroom.grading import FAILED

ENDS = ("all points", "some", "none", "not started", "no points yet")  # how a question ended for a student
WIDTH, LETTERS = 5, 60  # of a picture: inches, so that its letters are readable on a phone, and how many of them fit


@dataclass
class Question:
    """How a question ended for a class. ``ends``: how many students for each of ENDS; ``share``: of its points that were
    given, or None where nobody has any yet; ``mistakes``: how many students made each that the checkers know."""

    item: str
    most: float
    ends: Counter = field(default_factory=Counter)
    share: float | None = None
    mistakes: Counter = field(default_factory=Counter)


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


# ---------------------------------------------------------------- pictures


def picture_of_totals(points, most):
    """How many students have how many points of ``most``, as SVG; "" where nobody has any."""
    if not points or not most:
        return ""
    from matplotlib.ticker import MaxNLocator

    from helpers import plots  # a second, which the other commands need not wait for

    figure, ax = plots.plt.subplots(figsize=(WIDTH, 2.4))
    ax.hist(points, bins=10, range=(min(0, points[0]), max(most, points[-1])), color=plots.BLUE, rwidth=0.92)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="points", ylabel="students")
    return _svg(figure)


def picture_of_questions(questions, name):
    """How each question ended, as SVG: a bar of all students for each. ``name``: a function that gives a question's name."""
    from helpers import plots

    colours = (plots.BLUE, plots.SKY, plots.ORANGE, plots.GREY, "#c9c9c9")
    return _bars([name(question.item) for question in questions],
                 {end: (colour, [question.ends[end] for question in questions])
                  for end, colour in zip(ENDS, colours, strict=True) if any(question.ends[end] for question in questions)})


def picture_of_mistakes(rows):
    """How many students made each mistake, as SVG. ``rows``: (words, number) of each."""
    from helpers import plots

    return _bars([words for words, _ in rows], {"students": (plots.RED, [number for _, number in rows])})


def _bars(labels, parts):
    """Horizontal bars, each below its label and with its numbers in it, as SVG. ``parts``: {word: (colour, numbers)}, one
    behind the other in a bar."""
    if not labels or not parts:
        return ""
    from helpers import plots

    figure, ax = plots.plt.subplots(figsize=(WIDTH, 0.55 * len(labels) + (0.7 if len(parts) > 1 else 0.2)))
    left = [0] * len(labels)
    for word, (colour, numbers) in parts.items():
        drawn = ax.barh(range(len(labels)), numbers, left=left, height=0.42, color=colour, label=word)
        dark = colour in (plots.BLUE, plots.GREY, plots.RED)
        ax.bar_label(drawn, [number or "" for number in numbers], label_type="center", fontsize=9,
                     color="#ffffff" if dark else "#111111")
        left = [before + number for before, number in zip(left, numbers, strict=True)]
    for place, label in enumerate(labels):
        short = textwrap.shorten(label, LETTERS, placeholder=" ...")
        ax.text(0, place - 0.28, short, fontsize=10, va="bottom").set_in_layout(False)
    ax.set(xlim=(0, max(left)), ylim=(len(labels) - 0.6, -0.8), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    if len(parts) > 1:
        figure.legend(loc="outside lower left", ncols=len(parts), fontsize=9, handlelength=0.8, handleheight=0.8,
                      columnspacing=0.9, handletextpad=0.4)
    return _svg(figure)


def _svg(figure):
    """A figure as SVG inside a page: its text is text, and what is black has the page's own colour, light or dark."""
    from helpers import plots

    plots.as_written(figure)
    figure.patch.set_alpha(0)
    for ax in figure.axes:
        ax.patch.set_alpha(0)
    buffer = io.StringIO()
    with plots.plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "class"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    plots.plt.close(figure)
    picture = buffer.getvalue()
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture[picture.index("<svg"):], flags=re.DOTALL)
    picture = re.sub(r' id="[a-zA-Z0-9.]+_\d+"', "", picture)  # names of parts, which would be there once for each picture
    return picture.replace('<text style="', '<text style="fill: currentColor; ').replace(": #000000", ": currentColor")
