"""The question bank: three quick questions at the top of a lesson, about the lessons before it.

``data/questions.toml`` says what an entry means. Questions of the attention inventory never appear in a warm-up.
The choice counts in lessons. What was answered wrong comes first, from the next lesson on, two at most. What was answered
right may come back after 2 lessons, and after 4, 8, … when it was right 2, 3, … times in a row. The rest is drawn from
what is new or may come back, each from another lesson, and lessons just past more often than those long ago.
"""

import functools
import random
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path

from helpers.page import course, show
from helpers.store import progress

TITLE, INTRO = "Warm-up, from memory.", "Three questions about earlier lessons."
FILE = Path(__file__).resolve().parents[2] / "data" / "questions.toml"
WRONG, OPEN, LATER = range(3)  # in this order: last answered wrong; new, or right long ago; right not long ago
STYLE = ("<style>.warm-up.jupyter-button{white-space:normal;text-align:left;line-height:1.4;padding:6px 12px}"
         ".warm-up.jupyter-button:focus-visible{outline:2px solid currentColor;outline-offset:-3px}</style>")
SECTION = "questions"  # of the progress file: id -> {"lesson": "07", "in_a_row": 0, "missed": ["no-exp"]}


@dataclass(frozen=True)
class Option:
    """``why``: the sentence that explains it; ``misconception``: what is behind it, None if it is right."""

    text: str
    why: str
    misconception: str | None


@dataclass(frozen=True)
class Question:
    """An entry; the head of the file says what each field means."""

    id: str
    lesson: str
    theme: str
    ask: str
    options: tuple[Option, ...]
    key: str
    inventory: bool = False
    reasons: tuple[Option, ...] = ()
    reason_key: str = ""


@functools.cache
def load():
    """(themes ``{id: name}``, questions ``{id: Question}``), in the order of the file."""
    data, by_id = course.tomllib.loads(FILE.read_text(encoding="utf-8")), {}
    for entry in data["question"]:
        for tier in ("options", "reasons"):
            entry[tier] = tuple(Option(text, why, None if name == "right" else name)
                                for name, text, why in entry.get(tier, ()))
        by_id[entry["id"]] = Question(**entry)
    return data["themes"], by_id


def choose(lesson, known, n=3):
    """The ``n`` questions that lesson ``lesson`` (such as "07") opens with: a list of ``Question``, the same each time for
    the same ``known``, the answers so far ``{id: entry}``. Damaged entries, and those of questions that are gone, count as
    none. Raises ValueError when no lesson stands before this one."""
    now = int(lesson) if str(lesson).isdecimal() else 0
    pool = [q for q in load()[1].values() if int(q.lesson) < now and not q.inventory]
    if not pool:
        raise ValueError(f'A warm-up asks about earlier lessons, and {lesson!r} has none; say for example warm_up("07").')
    ranked = []
    for question in pool:
        entry = _entry(known.get(question.id))
        chance = random.Random(f"{now} {len(known)} {question.id}").random()  # its own, so a new question moves no other
        luck = chance ** (1.3 ** (now - int(question.lesson)))  # smaller for a lesson long ago: chosen more rarely
        due = int(entry["lesson"]) + 2 ** entry["in_a_row"] if entry else 0
        order = LATER if due > now else WRONG if entry and not entry["in_a_row"] else OPEN
        ranked.append((order, due if order == LATER else -luck, question))
    ranked.sort(key=lambda item: item[:2])
    chosen, again = [], 0
    for order, _, question in ranked:  # at most two that were wrong, and different lessons, as long as there is a choice
        if len(chosen) < n and not (order == WRONG and again == 2) and question.lesson not in {q.lesson for q in chosen}:
            chosen.append(question)
            again += order == WRONG
    return (chosen + [q for *_, q in ranked if q not in chosen])[:n]


def _entry(value):
    """An entry of the progress file, or None where it is damaged or of another version."""
    try:
        lesson, row, missed = str(value["lesson"]), int(value["in_a_row"]), [str(name) for name in value["missed"]]
        return {"lesson": f"{int(lesson):02d}", "in_a_row": min(max(row, 0), 9), "missed": missed}
    except (TypeError, KeyError, ValueError, OverflowError):
        return None


def answer(question, option, lesson):
    """Keep an answer, given in lesson ``lesson``: in the progress file, and nowhere else."""
    old = _entry(progress.load(SECTION).get(question.id)) or {"in_a_row": 0, "missed": []}
    missed = sorted({*old["missed"], *([option.misconception] if option.misconception else [])})
    progress.record(SECTION, question.id, {
        "lesson": lesson, "in_a_row": 0 if option.misconception else old["in_a_row"] + 1, "missed": missed})


def warm_up(lesson):
    """Ask three questions about the lessons before ``lesson``, such as "07": buttons with a learner at the keyboard, and
    otherwise text in which each option unfolds. Raises ValueError when there is no earlier lesson."""
    known = progress.load(SECTION) if progress.live() else {}
    chosen = choose(lesson, known)
    if not progress.live():  # always the same three, and in each lesson others
        for earlier in range(2, int(lesson)):
            known |= {q.id: {"lesson": earlier, "in_a_row": 9, "missed": []} for q in choose(earlier, known)}
        chosen = choose(lesson, known)
    asked = [(q, random.Random(f"{q.id} {int(lesson)}").sample(q.options, len(q.options))) for q in chosen]
    if progress.live():
        _show_buttons(asked, f"{int(lesson):02d}")
        return
    html = [f"<b>{TITLE}</b> {INTRO} Open the option that you believe in: it says whether it is right, and why."]
    text, answers = [f"{TITLE} {INTRO}"], ["", "Answers:"]
    for n, (question, options) in enumerate(asked, 1):
        html.append(f"<p style='margin:12px 0 4px 0'><b>{n}.</b> {as_html(question.ask)}</p>")
        text += ["", f"{n}. {as_plain(question.ask)}"]
        for letter, option in zip("abcde", options, strict=False):  # book.css knows these folds by their margin
            html.append(f"<details style='margin:2px 0 2px 16px'><summary style='cursor:pointer'>{as_html(option.text)}"
                        f"</summary><div style='margin:2px 0 8px 16px'>{_said(option)}</div></details>")
            text.append(f"   {letter}) {as_plain(option.text)}")
            if not option.misconception:
                answers.append(f"{n} {letter}: {as_plain(option.why)}")
    show.note("".join(html), "\n".join(text + answers))


def as_html(text):
    """A text of the bank as HTML, with *emphasis* in italics."""
    return re.sub(r"\*(.+?)\*", r"<i>\1</i>", escape(text))


def as_plain(text):
    """The same without marks: what is emphasised is in quotation marks."""
    return re.sub(r"\*(.+?)\*", r"'\1'", text)


def _said(option):
    return f"<b>{'Not quite.' if option.misconception else 'Right.'}</b> {as_html(option.why)}"


def buttons(texts, click):
    """A button for each text, a list; when one is pressed, ``click(number)`` is called with its number."""
    import ipywidgets

    made = [ipywidgets.Button(description=text, layout={"width": "auto", "height": "auto"}) for text in texts]
    for number, button in enumerate(made):
        button.on_click(lambda _, number=number: click(number))
        button.add_class("warm-up")
    return made


def _show_buttons(asked, lesson):
    import ipywidgets
    from IPython.display import display

    def box(question, options, n):
        answered, told = [], ipywidgets.HTML()

        def click(number):
            option = options[number]
            if not answered:  # the first choice counts; the others are there to be read
                answered.append(option)
                answer(question, option, lesson)
            row[number].description = f"{'✗' if option.misconception else '✓'} {as_plain(option.text)}"
            told.value = show.box(_said(option), "bad" if option.misconception else "good", "alert")

        row = buttons([as_plain(option.text) for option in options], click)
        heading = f"<div style='line-height:1.45;margin-top:8px'><b>{n}.</b> {as_html(question.ask)}</div>"
        return ipywidgets.VBox([ipywidgets.HTML(heading), *row, told])

    style = (f"{STYLE}<div style='line-height:1.45'><b>{TITLE}</b> {INTRO} "
             "Your first choice counts; then try the others.</div>")
    display(ipywidgets.VBox([ipywidgets.HTML(style), *(box(q, options, n) for n, (q, options) in enumerate(asked, 1))],
                            layout={"max_width": "820px"}))
