"""Predict, then run: say what you expect before a cell shows it.

``predict`` asks, ``reveal`` compares with what the cell measured. Nothing waits for an
answer: a learner who runs everything at once loses nothing.
"""

from html import escape

from helpers.page import show
from helpers.store import progress

_options = {}  # key -> the options that this kernel has offered


def predict(key, question, options):
    """Ask the learner to choose one of ``options`` (at least two different strings).

    ``key`` names the prediction in the progress file, for instance ``"01-bears"``. With a learner present the options
    are radio buttons; otherwise they are plain text.
    Raises ValueError when there are fewer than two options or two are alike.
    """
    options = tuple(options)
    if len(options) < 2 or len(set(options)) < len(options):
        raise ValueError(f"predict needs at least two different options, and {key!r} has {list(options)}.")
    _options[key] = options
    heading = f"<b>Predict.</b> {escape(question)}"
    if progress.live():
        show.note(heading, f"Predict. {question}")
        _show_buttons(key, options)
        return
    items = "".join(f"<li>{escape(option)}</li>" for option in options)
    show.note(f"{heading}<ul style='margin:4px 0 0 0'>{items}</ul>",
              "\n  - ".join([f"Predict. {question}", *options]))


def reveal(key, measured):
    """Compare the learner's choice with ``measured``, the option that the cell computed.

    ``measured``: the option itself, or a dict from each option to a computed boolean of which one is true.
    Shows one line. Raises ValueError when ``measured`` is not one of the options of ``predict``.
    """
    if isinstance(measured, dict):
        true = [option for option, holds in measured.items() if holds]
        if len(true) != 1:
            raise ValueError(f"{len(true)} of the options of {key!r} came out true, and it should be one.")
        measured = true[0]
    options = _options.get(key, (measured,))
    if measured not in options:
        raise ValueError(f"{measured!r} is not one of the options of {key!r}: {', '.join(options)}.")
    chosen = progress.load("predictions").get(key)
    answer = f"{measured}."
    if chosen == measured:
        answer += " You predicted that."
    elif chosen:
        answer += f" You predicted: {chosen}."
    show.note(f"<b>Measured:</b> {escape(answer)}", f"Measured: {answer}",
              "good" if chosen == measured else "info")


def _show_buttons(key, options):
    import ipywidgets
    from IPython.display import display

    earlier = progress.load("predictions").get(key)
    buttons = ipywidgets.RadioButtons(options=options, value=earlier if earlier in options else None,
                                      layout={"width": "max-content"})
    buttons.observe(lambda change: progress.record("predictions", key, change["new"]), names="value")
    display(buttons)
