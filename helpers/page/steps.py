"""A computation shown step by step: a slider when a learner is present, else all steps in a strip.

    steps.show(("Scores", [steps.grid(q, "query"), "·", steps.grid(K, "keys", rows=words)], "One dot product a key."),
               ("Weights", [steps.grid(w, "softmax", columns=words, shade=True)], "They sum to 1."))

A step is a title, a list of grids and signs, and a sentence. Every number is text, so it can be read aloud and copied.
"""

from html import escape

import numpy as np

from helpers.page import show as showing
from helpers.store import progress

_TINTS = ("none", "rgba(86,180,233,.3)", "rgba(230,159,0,.3)", "rgba(0,158,115,.24)", "rgba(213,94,0,.24)",
          "rgba(142,69,133,.24)")  # for groups 0, 1, 2 …
_LETTERS = "font-family:sans-serif;"
_LABEL = _LETTERS + "padding:1px 6px;font-weight:normal;text-align:"


def grid(values, name="", rows=None, columns=None, mark=False, shade=False, groups=0, decimals=2):
    """A table for a step: (html, text).

    ``values``: a number or string, a vector (one row) or a matrix ``(n, m)`` of them; NaN stands for a place that is still
    empty; ``rows``, ``columns``: labels; ``mark``: booleans that broadcast to the values: these cells get a frame and bold
    letters, which GitHub leaves; ``shade``: the larger a number, the darker its cell; ``groups``: whole numbers from 0 to 5
    that broadcast to the values, each with a tint (0: white). Raises ValueError when labels and values do not fit.
    """
    values = np.atleast_2d(np.asarray(values))
    for labels, size, what in [(rows, values.shape[0], "rows"), (columns, values.shape[1], "columns")]:
        if labels is not None and len(labels) != size:
            raise ValueError(f"grid {name!r} got {len(labels)} labels for the {size} {what} of its values {values.shape}.")
    words = [[_words(value, decimals) for value in row] for row in values]
    mark, groups = np.broadcast_to(mark, values.shape), np.broadcast_to(groups, values.shape)
    most = np.abs(values[np.isfinite(values)]).max() or 1 if shade else 1
    head = "" if columns is None else "<tr>" + "<td style='border:none'></td>" * (rows is not None) + "".join(
        f"<th style='{_LABEL}center'>{escape(str(column))}</th>" for column in columns) + "</tr>"
    body = ""
    for i, row in enumerate(words):
        cells = "" if rows is None else f"<th style='{_LABEL}right'>{escape(str(rows[i]))}</th>"
        for j, word in enumerate(row):
            tint = _blue(float(values[i, j]) / most) if shade else _TINTS[groups[i, j]]
            frame = "2px solid #b34700" if mark[i, j] else "1px solid #9aa5ad"
            inside = f"<strong>{escape(word)}</strong>" if mark[i, j] else escape(word)
            cells += (f"<td style='{_LETTERS}text-align:center;padding:2px 7px;border:{frame};background:{tint};"
                      f"font-variant-numeric:tabular-nums'>{inside}</td>")
        body += f"<tr style='background:none'>{cells}</tr>"
    html = (f"<div style='margin:2px 0'><div style='{_LETTERS}font-style:italic;text-align:center'>{escape(name)}</div>"
            f"<table style='border-collapse:collapse;font-size:inherit;margin:2px auto'>{head}{body}"
            "</table></div>")
    lines = [" ".join([*([] if rows is None else [f"{rows[i]}:"]), *row]) for i, row in enumerate(words)]
    if columns is not None:
        lines.insert(0, "columns " + ", ".join(map(str, columns)))
    return html, f"{name}: " + "; ".join(lines)


def show(*steps):
    """Show ``steps``, each (title, parts, words): ``parts`` is a list of grids and signs such as "·", ``words`` a sentence.

    When a learner is present a slider shows one at a time; on a page without a kernel all of them stand side by side.
    """
    steps = [(f"{number} · {title}", parts, words) for number, (title, parts, words) in enumerate(steps, 1)]
    cards = [_card(*step) for step in steps]
    if not progress.live():
        text = "\n".join("\n   ".join([title, *(part if isinstance(part, str) else part[1] for part in parts), words])
                         for title, parts, words in steps)
        showing.display("<div style='display:flex;flex-wrap:wrap;gap:10px;align-items:stretch;margin:6px 0'>"
                        + "".join(cards) + "</div>", text)
        return
    import ipywidgets
    from IPython.display import display

    handle = ipywidgets.IntSlider(1, 1, len(cards), description="step", layout={"width": "460px"})
    page = ipywidgets.HTML(cards[0])
    handle.observe(lambda change: setattr(page, "value", cards[change["new"] - 1]), "value")
    display(ipywidgets.VBox([handle, page]))


def _card(title, parts, words):
    """The parts are cells of a table, so that they stand in a row even where styles are taken out, as on GitHub. A sign is
    in one cell with the grid after it, so that no line ends with it on a telephone."""
    inside, sign = "", ""
    for part in [*parts, ("", "")] if isinstance(parts[-1], str) else parts:
        if isinstance(part, str):
            sign += f"<div style='font-size:18px;padding-right:8px'>{escape(part)}</div>"
            continue
        inside += (f"<td style='{_LETTERS}border:none;padding:0 4px;text-align:center;font-size:inherit;display:flex;"
                   f"align-items:center'>{sign}{part[0]}</td>")
        sign = ""
    return (f"<div style='border:1px solid #9aa5ad;border-radius:6px;padding:8px 12px;max-width:940px;"
            f"font-size:13px;line-height:1.4'><p style='{_LETTERS}margin:0'><strong>{escape(title)}</strong></p>"
            f"<table style='border:none;margin:4px 0;font-size:inherit'><tr style='display:flex;flex-wrap:wrap;"
            f"align-items:center;background:none'>{inside}</tr></table>"
            f"<p style='{_LETTERS}margin:0;max-width:440px'>{escape(words)}</p></div>")


def _words(value, decimals):
    """A value as it stands in its cell."""
    if isinstance(value, (str, np.integer, np.bool_)):
        return str(value)
    return "" if np.isnan(value) else ("∞" if value > 0 else "-∞") if np.isinf(value) else f"{value:.{decimals}f}"


def _blue(share):
    """Nothing for 0, half a blue for 1, so that letters stay readable on a light page and on a dark one."""
    share = 0 if not np.isfinite(share) else min(abs(share), 1)
    return f"rgba(0,114,178,{share / 2:.3g})"
