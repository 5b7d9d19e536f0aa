"""The figures of lesson 18: teach a chat model something new."""

import json
import textwrap

import matplotlib.pyplot as plt

from helpers import plots, smollm2

INK, PROSE = "#1a1a1a", "#4a545c"


def two_lanes(d=576, r=8):
    """A frozen matrix ``(d, d)`` and the pair ``(d, r)``, ``(r, d)`` beside it, to scale: two lanes that part at x and meet
    at a plus."""
    _, ax = plt.subplots(figsize=(6.6, 5.2))
    high, low = 310, -400  # the heights of the two lanes
    for x, y, width, height, colour in [
            (240, high - d / 2, d, d, "#c8d3dc"), (300, low - d / 2, r, d, plots.ORANGE),
            (480, low - r / 2, d, r, plots.ORANGE)]:
        ax.add_patch(plt.Rectangle((x, y), width, height, facecolor=colour, linewidth=0))
    for x, y, text, colour in [
            (240 + d / 2, high, f"W, frozen\n{d} × {d}\n{d * d:,} numbers", INK),
            (304, low - d / 2 - 45, f"A: {d} × {r}", INK), (768, low + 50, f"B: {r} × {d}", INK),
            (395, low + 62, f"{r} wide", INK), (1180, low - 48, "· α / r", INK),
            (768, low - 95, f"{2 * d * r:,} numbers\nthat learn", plots.RED)]:
        ax.text(x, y, text, ha="center", va="center", fontsize=13, color=colour)
    plus = (1330, (high + low) / 2)
    for points in [[(-60, plus[1]), (40, plus[1]), (40, high), (228, high)],
                   [(40, plus[1]), (40, low), (288, low)], [(316, low), (470, low)],
                   [(240 + d, high), (plus[0], high), (plus[0], plus[1] + 52)],
                   [(480 + d, low), (plus[0], low), (plus[0], plus[1] - 52)],
                   [(plus[0] + 52, plus[1]), (1500, plus[1])]]:
        *way, last, end = points
        ax.plot(*zip(*way, last, strict=True), color="black", linewidth=2, solid_joinstyle="round")
        ax.annotate("", end, last, arrowprops={"arrowstyle": "->", "linewidth": 2, "shrinkA": 0})
    ax.plot(*plus, "o", markersize=25, color="white", markeredgecolor="black", markeredgewidth=2)
    for x, text in [(-85, "x"), (plus[0], "+"), (1565, "out")]:
        ax.text(x, plus[1], text, ha="center", va="center", fontsize=16, style="italic")
    ax.set(xlim=(-110, 1660), ylim=(low - d / 2 - 80, high + d / 2 + 10), aspect="equal")
    ax.axis("off")
    plt.show()


def what_counts(tokens, ids, first):
    """The tokens of one example as boxes: those of the answer, from place ``first`` on, are orange.

    ``tokens``: of the chat model; ``ids``: a list.
    """
    signs = {smollm2.START: "‹start›", smollm2.END: "‹end›"}
    pieces = [signs.get(i) or tokens.text_of(i).replace("\n", "⏎").replace(" ", "␣") for i in ids]
    _, ax = plt.subplots(figsize=(6.8, 3.3))
    x, y = 0.0, 0.0
    for place, piece in enumerate(pieces):
        width = 0.62 * len(piece) + 0.7
        if x + width > 36:
            x, y = 0.0, y - 1.25
        ax.add_patch(plt.Rectangle((x, y), width - 0.18, 1, linewidth=0,
                                   facecolor="#f3c97a" if place >= first else "#e3e7ea"))
        plots.as_written(ax.text(x + width / 2 - 0.09, y + 0.46, piece, ha="center", va="center", fontsize=12))
        x += width
    ax.set(xlim=(-0.3, 36.3), ylim=(y - 0.3, 1.2))
    ax.axis("off")
    plt.show()


def three_columns(test, answers, rows=(0, 2, 4, 5, 6, 7)):
    """The same questions asked in three ways, side by side: what is right is green, what is wrong crossed out.

    ``test``: pairs (question, right answer); ``answers``: {title of a column: an answer to each question}; ``rows``: the
    questions that are written out, and the marks above each column are of all.
    """
    figure, ax = plt.subplots(figsize=(7.6, 7.4), layout="none")
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
    ax.set(xlim=(0, 9.6), ylim=(2.3, 11.4))
    ax.axis("off")
    for column, (title, said) in enumerate(answers.items()):
        x = 3.2 * column + 0.1
        right = [answer == wanted for answer, (_, wanted) in zip(said, test, strict=True)]
        ax.text(x, 11.05, title, fontsize=14, weight="bold", color=INK)
        ax.text(x, 10.65, f"{sum(right)} of {len(right)} right", fontsize=13, color=INK)
        for n, hit in enumerate(right):
            ax.plot(x + 0.1 + 0.235 * n, 10.3, "o" if hit else "x", markersize=8, markeredgewidth=1.8,
                    color=plots.GREEN if hit else plots.RED)
    for line, row in enumerate(rows):
        y = 9.85 - 1.27 * line
        ax.axhspan(y - 1.0, y + 0.22, color="#f3f6f8" if line % 2 else "#ffffff", linewidth=0)
        ax.text(0.1, y, f"{row + 1}  {test[row][0]}", fontsize=12, color=INK, va="center", weight="bold")
        for column, said in enumerate(answers.values()):
            _entry(ax, 3.2 * column + 0.1, y - 0.4, said[row], test[row][1])
    plots.as_written(figure)
    plt.show()


def _entry(ax, x, y, answer, wanted):
    """One answer: its facts with the wrong ones crossed, or the beginning of its prose."""
    facts, true = _facts(answer), _facts(wanted)
    if facts is None:
        for n, line in enumerate(textwrap.wrap(" ".join(answer.split()), 23)[:2]):
            ax.text(x, y - 0.36 * n, line, color=PROSE, fontsize=11, va="center", style="italic")
        return
    for n, pair in enumerate([(0, 1), (2, 3)]):
        at = x
        for i in pair:
            at = 0.22 + _fact(ax, at, y - 0.36 * n, facts[i], facts[i] == true[i])


def _facts(answer):
    """The four facts of an answer, or None if it is not JSON of this form."""
    try:
        facts = json.loads(answer)
        return [str(facts[name]) for name in ("who", "whom", "where", "when")]
    except (ValueError, KeyError, TypeError):
        return None


def _fact(ax, x, y, text, right):
    """Write one fact, with a line through it where it is wrong; returns where it ends."""
    words = plots.as_written(ax.text(x, y, text, color="#00785a" if right else plots.RED, fontsize=12.5, va="center"))
    box = words.get_window_extent().transformed(ax.transData.inverted())
    if not right:
        ax.plot([box.x0, box.x1], [y, y], color=plots.RED, linewidth=1.3)
    return box.x1
