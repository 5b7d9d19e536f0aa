"""What a class answers in the attention inventory, as platforms write it down."""

import csv
import io

import numpy as np

from classroom import quiz
from helpers.page import inventory, questions

ITEMS = inventory.items()


def answers(right, rng, open_=0.05):
    """A list with {id as platforms ask it: option or None} for each row of ``right``. Who is not right chooses a wrong
    option, the first of them most often, or leaves the question open."""
    found = []
    for row in right:
        given = {}
        for one in quiz.asked():
            good = next(o for o in one.options if not o.misconception)
            bad = [o for o in one.options if o.misconception]
            weights = np.array([3, 2, 1, 1][:len(bad)], float)
            wrong = bad[rng.choice(len(bad), p=weights / weights.sum())] if rng.random() > open_ else None
            given[one.id] = good if row[ITEMS.index(one.question)] else wrong
        found.append(given)
    return found


def moodle(students, given, grade="7.00", language="en", separator=","):
    """The *Responses* report as CSV: ``students`` are (last, first, number, address)."""
    words = {"en": "Last name,First name,ID number,Email address,Status,Started,Response,Right answer",
             "de": "Nachname,Vorname,ID-Nummer,E-Mail-Adresse,Status,Begonnen,Antwort,Richtige Antwort"}
    heads, numbers = words[language].split(","), range(1, 1 + len(quiz.asked()))
    lines = [[*heads[:6], f"Grade/{len(quiz.asked())}.00", *(f"{heads[k]} {n}" for n in numbers for k in (6, 7))]]
    for who, mine in zip(students, given, strict=True):
        cells = [cell for one in quiz.asked() for cell in (
            _text(mine[one.id], "-"), next(_text(o) for o in one.options if not o.misconception))]
        lines.append([*who, "Finished", "1 October 2026 10:00 AM", grade, *cells])
    return _csv(lines, separator)


def canvas(students, given):
    """*Student Analysis* as CSV: ``students`` are (name, id)."""
    heads = [cell for one in quiz.asked() for cell in (f"{70000 + one.number}: {_html(one.ask)}", "1.0")]
    lines = [["name", "id", "sis_id", "section", "section_id", "section_sis_id", "submitted", "attempt", *heads, "n correct",
              "n incorrect", "score"]]
    for (name, number), mine in zip(students, given, strict=True):
        cells = [cell for one in quiz.asked() for cell in (_text(mine[one.id]), "1.0")]
        lines.append([name, number, "", "Group A", "12", "", "2026-10-01 10:00:00 UTC", "1", *cells, 7, 21, "7.0"])
    return _csv(lines)


def _text(option, blank=""):
    return questions.as_plain(option.text) if option else blank


def _html(text):
    return text.replace("<i>", "").replace("</i>", "")


def _csv(lines, separator=","):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator).writerows(lines)
    return "\ufeff" + buffer.getvalue()
