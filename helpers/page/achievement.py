"""A record of what a learner has done, as one page to read or to print, from the file that remembers it.

It is written on the learner's own computer, so it proves nothing by itself, and it says so; there is a line for a teacher.
"""

import hashlib
import os
from datetime import date
from html import escape
from pathlib import Path

from helpers.page import course, inventory, pictures, questions, show
from helpers.store import progress
from helpers.store.files import write_whole
from helpers.words import NotUsable, page_in, shown

STYLE = Path(__file__).with_name("record.css")
HONEST = ("A program wrote this page on the learner's own computer, from a file that anybody can change. By itself it "
          "proves nothing: it is worth what the person who signs has seen.")


def save(file="my_record.html", name="", made=()):
    """Write the record to ``file``, whole or not at all, and say where it is; with no learner there, say what it is.

    ``name``: as it is to be on the page; ``made``: what the learner has made, a list of sentences or names of files, of
    which the page gives size and SHA-256. Raises NotUsable for a file that does not end in .html, a ``name`` that is no
    text and a ``made`` that is no list of texts.
    """
    path = page_in(file, like="my_record.html")
    if not isinstance(name, str):
        raise NotUsable(f'Your name is a text in quotation marks, or "" to leave it open; {shown(name)} came.')
    if isinstance(made, str) or not isinstance(made, (list, tuple)) or not all(isinstance(one, str) for one in made):
        raise NotUsable("What you have made is a list of texts, even if it is one thing, as in ['my_find.html']; "
                        f"{shown(made)} came.")
    if not progress.live():
        of = sum(len(lesson.exercises) for lesson in course.LESSONS.values())
        show.note(f"<b>A record on one page:</b> which of the {of} exercises in {len(course.LESSONS)} lessons passed, what "
                  "was guessed and made, what was gained, and a line for a teacher who has seen it. In your own copy of the "
                  "lesson (<code>make lab</code>) this cell writes yours.", kind="idle")
        return
    write_whole(path, page(name, made))
    show.note(f"Your record is in <code>{escape(str(path))}</code>: open it in a browser, and print it there.", kind="good")


def page(name="", made=(), today=None):
    """The record as HTML. ``today``: a date, by default today's."""
    today = today or date.today()
    passed, guesses = progress.load("exercises"), progress.load("predictions")
    lessons = [(lesson, [one for one in lesson.exercises if one in passed],
                sum(key.startswith(f"{lesson.number}-") for key in guesses)) for lesson in course.LESSONS.values()]
    whole = [len(done) == len(lesson.exercises) for lesson, done, _ in lessons if lesson.exercises]
    total, of = sum(len(done) for _, done, _ in lessons), sum(len(lesson.exercises) for lesson, *_ in lessons)
    summary = (f"<b>{total} of {of}</b> exercises passed, all of them in {sum(whole)} of {len(whole)} lessons; "
               f"<b>{sum(n for *_, n in lessons)}</b> predictions made.")
    version = f", version {course.version()}" if course.version() else ""
    things = "".join(f"<li>{_thing(one)}</li>" for one in made)
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>A record of what I have done</title>
<style>{STYLE.read_text(encoding="utf-8")}</style>
<main><header><p>Attention and transformers, from similar words to a chat model in your own code{version}</p>
<h1>{escape(name) or "<span class='blank' role='img' aria-label='a line for a name'></span>"}</h1>
<p>{summary} {today.day} {today:%B %Y}.</p></header>
<section><h2>Lessons and exercises passed</h2><ul class="lessons">{"".join(map(_lesson, lessons))}</ul></section>
{f'<section><h2>Made on the way</h2><ul>{things}</ul></section>' if things else ""}
<section><h2>The attention inventory</h2>{_gain()}</section>
<footer><p>{HONEST}</p>
<div class="signature"><span>Place and date</span><span>Signature of a teacher, and what was seen</span></div></footer>
</main></html>
"""


def _lesson(entry):
    lesson, done, guesses = entry
    count = f"{len(done)} of {len(lesson.exercises)}" if lesson.exercises else ""
    guessed = f"{guesses} prediction{'s' * (guesses != 1)}" if guesses else ""
    details = " · ".join(filter(None, [f"<b>{count}</b>" if done else count, guessed]))
    begun = "" if done or guesses else " class='open'"
    return (f"<li{begun}>{pictures.picture(lesson.number, 34)}<div>{lesson.number} · {escape(lesson.title)}"
            f"<small>{details if done or guesses else 'not begun'}</small>"
            f"<small class='names'>{', '.join(done)}</small></div></li>")


def _thing(made):
    """A sentence as it is; a file with its size and SHA-256, so that a teacher can tell whether this is the one."""
    try:
        contents = Path(os.path.expanduser(made)).read_bytes()
    except (OSError, ValueError):
        return escape(str(made))
    return (f"{escape(Path(made).name)} <small>{max(1, round(len(contents) / 1000)):,} kB, SHA-256 "
            f"{hashlib.sha256(contents).hexdigest()}</small>")


def _gain():
    """The inventory before and after, theme by theme; or what is missing."""
    section = progress.load(inventory.SECTION)
    times = [when for when in inventory.TIMES if section.get(when) == "done"]
    if inventory.AFTER not in times:
        return "<p>Not taken twice, so there is no gain to tell.</p>"
    themes = [inventory.right_by_theme(when, section) for when in times]
    rows = ""
    for name in questions.load()[0].values():
        marks = "".join(f"<td>{sum(right[name])} of {len(right[name])}</td>" for right in themes)
        rows += f"<tr><th scope='row'>{escape(name)}</th>{marks}</tr>"
    most, totals = len(inventory.items()), [sum(map(sum, right.values())) for right in themes]
    rows += "<tr><th scope='row'>all</th>" + "".join(f"<td><b>{n} of {most}</b></td>" for n in totals) + "</tr>"
    share = inventory.normalised(*totals, most) if len(times) == 2 else None
    gain = (f"The normalised gain is {share:.0%}: the share of what was not right yet that has become right."
            if share is not None and share > 0 else "")
    return (f"<table><thead><tr><td></td>{''.join(f'<th>{when}</th>' for when in times)}</tr></thead>{rows}</table>"
            f"<p>{gain} Guessing alone gets {inventory.by_chance():.0f} right, and the questions were never validated.</p>")
