"""Predict, then run: say what you expect before a cell shows it.

``predict`` asks, ``reveal`` compares with what the cell measured. The questions and their options are in
``data/predictions.toml``. Nothing waits for an answer: a learner who runs everything at once loses nothing.
"""

import functools
from html import escape
from pathlib import Path

from helpers.page import course, show
from helpers.store import progress

FILE = Path(__file__).resolve().parents[2] / "data" / "predictions.toml"


@functools.cache
def load():
    """{key: {"question": …, "options": […], "spoilers": […]}} of data/predictions.toml."""
    return course.tomllib.loads(FILE.read_text(encoding="utf-8"))


def options(key):
    """What can be chosen in the prediction ``key``: a list of strings. Raises ValueError for an unknown key."""
    if key not in load():
        raise ValueError(f"There is no prediction {key!r} in data/{FILE.name}: enter its question and options there.")
    return load()[key]["options"]


def predict(key, **numbers):
    """Ask the learner to choose one of the options of the prediction ``key``, such as "01-bears".

    ``numbers``: what the question has in braces, as for str.format. With a learner present the options are radio buttons;
    otherwise they are plain text. Raises ValueError for a key that is not in data/predictions.toml.
    """
    choices = options(key)
    question = load()[key]["question"]
    question = question.format(**numbers) if numbers else question
    heading = f"<b>Predict.</b> {escape(question)}"
    if progress.live():
        show.note(heading)
        _show_buttons(key, choices)
        return
    items = "".join(f"<li>{escape(option)}</li>" for option in choices)
    show.note(f"{heading}<ul style='margin:4px 0 0 0'>{items}</ul>", "\n  - ".join([f"Predict. {question}", *choices]))


def reveal(key, measured):
    """Compare the learner's choice with ``measured``, the option that the cell computed.

    ``measured``: the option itself, its number from 0, or a dict from each option to a computed boolean of which one is
    true. Shows one line. Raises ValueError when ``measured`` is not one of the options of ``predict``.
    """
    if hasattr(measured, "__index__"):
        measured = options(key)[measured]
    if isinstance(measured, dict):
        true = [option for option, holds in measured.items() if holds]
        if len(true) != 1:
            raise ValueError(f"{len(true)} of the options of {key!r} came out true, and it should be one.")
        measured = true[0]
    if measured not in options(key):
        raise ValueError(f"{measured!r} is not one of the options of {key!r}: {', '.join(options(key))}.")
    chosen = progress.load("predictions").get(key)
    answer = f"{measured}."
    if chosen == measured:
        answer += " You predicted that."
    elif chosen:
        answer += f" You predicted: {chosen}."
    show.note(f"<b>Measured:</b> {escape(answer)}", kind="good" if chosen == measured else "info")


def _show_buttons(key, choices):
    import ipywidgets
    from IPython.display import display

    earlier = progress.load("predictions").get(key)
    buttons = ipywidgets.RadioButtons(options=choices, value=earlier if earlier in choices else None,
                                      layout={"width": "max-content"})
    buttons.observe(lambda change: progress.record("predictions", key, change["new"]), names="value")
    display(buttons)
