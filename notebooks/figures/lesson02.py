"""The figures of lesson 02: attention as a weighted average."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import plots
from helpers.page import steps
from helpers.words import NotUsable, pairs_in, shown, words_in

_SENSES = ("calendar", "romance", "fruit")
_COLOURS = [plots.BLUE, plots.RED, plots.GREEN]  # of three words, and of the three senses
_CORNERS = np.array([[-0.87, -0.5], [0.0, 1.0], [0.87, -0.5]])  # of the three senses
_TAGS = [("kissed, dinner", 8, 2, "left"), ("romantic dinner", -6, 6, "right"),
         ("deadline, month", 14, -18, "right"), ("calendar", 4, -18, "center"),
         ("dried fig", 8, -10, "left"), ("fruit, banana", 8, -4, "left"), ("letter", -8, 0, "right"),
         ("ate, lunch", 16, -6, "left")]  # of the lesson's eight sentences, and where each is written


def mixture(words, X, weights):
    """Three words as corners of a triangle, and a part of each, end to end from 0: they lead to the mixture, inside it.

    ``X``: ``(3, 2)``; ``weights``: ``(3,)``, which sum to 1.
    """
    _, ax = plt.subplots(figsize=(6.4, 4.6))
    ax.fill(*X.T, color=plots.SKY, alpha=0.2)
    moves = [(10, 2, "left"), (8, 8, "left"), (-9, 5, "right")]
    start = np.zeros(2)
    for word, point, weight, colour, (right, up, side) in zip(words, X, weights, _COLOURS, moves, strict=True):
        ax.plot(*point, "o", markersize=9, color=colour)
        ax.annotate(word, point, (right, up), textcoords="offset points", fontsize=14, ha=side, color=plots.ink(colour))
        ax.plot(*np.array([[0, 0], point]).T, ":", color=colour, linewidth=1)
        end = start + weight * point
        ax.annotate("", end, start, arrowprops={
            "arrowstyle": "-|>,head_width=0.3,head_length=0.6", "color": colour, "linewidth": 3, "shrinkA": 0, "shrinkB": 0})
        start = end
    ax.plot(*start, "X", markersize=12, color="black", zorder=4)
    ax.text(0.31, 0.36, "0.5 date", fontsize=13, color=_COLOURS[0])
    ax.text(0.78, 0.79, "0.3 kissed", fontsize=13, color=_COLOURS[1], ha="center")
    ax.text(1.27, 0.68, "0.2 dinner", fontsize=13, color=plots.ink(_COLOURS[2]))
    ax.annotate("the mixture", start, (10, 4), textcoords="offset points", fontsize=14)
    ax.set(xlim=(-0.1, 2.4), ylim=(-0.15, 1.7), xticks=[0, 1, 2], yticks=[0, 0.5, 1, 1.5])
    ax.set_xlabel("romance", fontsize=13)
    ax.set_ylabel("calendar", fontsize=13)
    plt.show()


def softmax_by_hand(dinner):
    """Three scores, of which one can be moved, e raised to them, and the shares of one whole, downwards."""
    words = ["kissed", "dinner", "after"]
    scores = np.array([2.0, dinner, 0.0])
    powers = np.exp(scores)
    shares = powers / powers.sum()
    _, panels = plt.subplots(3, 1, figsize=(6, 5.4), height_ratios=[3, 3, 1.2])
    for ax, title, values, limits, form in [(panels[0], "score s", scores, (-5.5, 6.5), ".1f"),
                                            (panels[1], "raised: $e^s$", powers, (0, 1.2 * powers.max()), ".2f")]:
        drawn = ax.barh(range(3), values, color=_COLOURS, height=0.7)
        ax.bar_label(drawn, [format(value, form) for value in values], padding=4, fontsize=13)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_yticks(range(3), words, fontsize=13)
        ax.invert_yaxis()
        ax.set(xlim=limits, xticks=[])
        ax.set_title(title, fontsize=14)
    starts = np.cumsum(shares) - shares
    for word, start, share, colour in zip(words, starts, shares, _COLOURS, strict=True):
        panels[2].barh(0, share, left=start, color=colour, height=0.9, edgecolor="white", linewidth=2)
        if share > 0.07:
            panels[2].text(start + share / 2, 0, f"{share:.2f}", ha="center", va="center", color="white", fontsize=13)
        if share > 0.14:
            panels[2].text(start + share / 2, 0.72, word, ha="center", va="center", fontsize=12, color=colour)
    panels[2].set(xlim=(0, 1), ylim=(1, -0.5), xticks=[], yticks=[])
    panels[2].set_title(f"divided by their sum, {powers.sum():.2f}: shares of one whole", fontsize=14)
    for ax in panels:
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)


def date_asks(X, words, scores, weights):
    """Attention in seven steps for the first of three words. ``X``: ``(3, 2)``; ``scores``, ``weights``: ``(3,)``."""
    grid = steps.grid
    asks = np.array([[True], [False], [False]])
    exponentials = np.exp(scores - scores.max())
    total = f"{exponentials.sum():.2f}"
    columns = ["romance", "calendar"]
    parts = weights[:, None] * X
    steps.show(
        ("Words become vectors", [grid(X, "X", words, columns)], "Three words, one row each: X is (3, 2)."),
        ("One word asks", [grid(X, "X", words, columns, mark=asks), "→", grid(X[0], "query", columns=columns, mark=True)],
         "The query is the row of date."),
        ("Scores", [grid(X, "keys", words), "·", grid(X[0][:, None], "query"), "=", grid(scores[:, None], "scores", words)],
         "The dot product of the query with each key. The largest is that of date with itself."),
        ("Exponentials", [grid(scores, "scores", columns=words), "→",
                          grid(exponentials, "e^(score - 3.25)", columns=words)],
         f"The largest score is subtracted first. The sum is {total}."),
        ("Weights", [grid(exponentials, "exponentials", columns=words), f"÷ {total} =",
                     grid(weights, "weights", columns=words, shade=True)],
         "Positive, and they sum to 1. Both steps together are the softmax."),
        ("Weight times vector", [grid(weights[:, None], "weights", words, shade=True), "×", grid(X, "X", columns=columns),
                                 "=", grid(parts, "weighted rows", words, columns)],
         "How much of each word goes into the mixture."),
        ("Output", [grid(parts, "weighted rows", words, columns), "sum →",
                    grid(parts.sum(axis=0), "output", columns=columns, mark=True)],
         "The columns are added up (before rounding). date has gained romance and lost calendar."))


def one_whole_shared(words, weights, temperatures):
    """At each temperature one whole, shared out among the words, the second of which asks. ``weights``: ``(n, T)``."""
    _, ax = plt.subplots(figsize=(6.6, 3.9))
    tints = ["#b9d9ec", plots.BLUE, "#f3cf7f", "#cfe8df", "#dcc7da", "#f0b48a"]
    for row, (shares, temperature) in enumerate(zip(weights, temperatures, strict=True)):
        starts = np.cumsum(shares) - shares
        ax.barh(row, shares, left=starts, color=tints, height=0.76, edgecolor="white", linewidth=1.5)
        ax.text(starts[1] + shares[1] / 2, row, words[1], color="white", ha="center", va="center", fontsize=13)
        ax.text(-0.02, row, f"{temperature:g}", ha="right", va="center", fontsize=13)
    for word, share, start in zip(words, weights[-1], np.cumsum(weights[-1]) - weights[-1], strict=True):
        ax.text(start + share / 2, len(weights) - 0.45, word, ha="center", va="top", fontsize=13)
    ax.text(-0.02, -0.62, "temperature", ha="left", va="center", fontsize=13)
    ax.set(xlim=(-0.1, 1), ylim=(len(weights) + 0.1, -0.9))
    ax.axis("off")
    plt.show()


def triangle(pulls, title="", names=_SENSES, mine=False):
    """From one point in a triangle of three senses, an arrow for each sentence: its pulls added up. ``pulls``: ``(n, 3)``.

    With ``mine`` the last is a reader's own, and the others are grey.
    """
    _, ax = plt.subplots(figsize=(6.4, 5.9))
    ax.fill(*_CORNERS.T, facecolor="#f3f6f8", edgecolor="#9aa5ad", zorder=0)
    if tuple(names) == _SENSES:
        for corner, icon in zip(_CORNERS, (_calendar, _heart, _fruit), strict=True):
            icon(ax, *(1.12 * corner + [0, 0.02]), 0.1)
        ax.text(0, -0.07, "date", ha="center", va="top", fontsize=15)
    for corner, name in zip(_CORNERS, names, strict=True):
        ax.text(*(1.12 * corner + [0, 0.16 if corner[1] > 0 else -0.2]), name, fontsize=16, weight="bold",
                ha="center", va="center")
    for number, (gains, tip) in enumerate(zip(pulls, 5.2 * pulls @ _CORNERS, strict=True)):
        colour = _COLOURS[gains.argmax()]
        if mine:
            colour = plots.PURPLE if number == len(pulls) - 1 else "#c3cad0"
        ax.annotate("", tip, (0, 0), zorder=2, arrowprops={
            "arrowstyle": "-|>,head_width=0.35,head_length=0.7", "color": colour, "lw": 2.8, "shrinkA": 2, "shrinkB": 0})
        if not mine:
            tag, right, up, side = _TAGS[number]
            ax.annotate(tag, tip, (right, up), textcoords="offset points", fontsize=14, color=plots.ink(colour), ha=side)
    ax.plot(0, 0, "o", color="black", markersize=5, zorder=3)
    ax.set(xlim=(-1.25, 1.25), ylim=(-0.92, 1.4), aspect="equal")
    ax.axis("off")
    ax.set_title(title, loc="center", fontsize=16, color=plots.PURPLE if mine else "black")
    plots.as_written(ax.figure)
    plt.show()


def my_arrow(sentence, pull, pulls, vectors, senses, word="date"):
    """The arrow of a reader's sentence; for *date* with its own three senses, among the grey ones of ``pulls``, ``(8, 3)``.

    ``pull``: a function of (sentence, word, senses) -> (3,); ``senses``: {sense: typical words}. Raises NotUsable for a
    sentence without the word, and for anything but three senses with typical words of their own.
    """
    words = words_in(sentence, vectors, most=30, like=f"we had a {word}")
    if word not in words:
        raise NotUsable(f"The word {word!r} has to be in the sentence (its plural is another word), and in "
                        f"{shown(sentence)} it is not: put it in.")
    if len(pairs_in(senses, ("season", "summer winter"))) != 3:
        raise NotUsable(f"A triangle has a corner for each of three senses, not for {len(senses)}.")
    senses = {sense: " ".join(words_in(typical, vectors)) for sense, typical in senses.items()}
    for sense, typical in senses.items():
        if not set(typical.split()) - set(words):
            raise NotUsable(f"{sense} needs a typical word that is not in the sentence itself.")
    if set(words) == {word}:
        print(f"{word!r} is alone here, and without company nothing moves it.")
    others = pulls if (word, tuple(senses)) == ("date", _SENSES) else np.empty((0, 3))
    triangle(np.vstack([others, pull(" ".join(words), word, senses)]), " ".join(words), tuple(senses), mine=True)


def _calendar(ax, x, y, size):
    ax.add_patch(plt.Rectangle((x - size, y - size), 2 * size, 1.8 * size, fill=False, lw=2.5, edgecolor=plots.BLUE))
    ax.fill_between([x - size, x + size], y + 0.35 * size, y + 0.8 * size, color=plots.BLUE, lw=0)
    dots = [(x + a * size, y + b * size) for a in (-0.55, 0, 0.55) for b in (-0.55, -0.05)]
    ax.plot(*zip(*dots, strict=True), "s", color=plots.BLUE, markersize=4)


def _heart(ax, x, y, size):
    t = np.linspace(0, 2 * np.pi, 100)
    up = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    ax.fill(x + size * np.sin(t)**3, y + size * up / 16, color=plots.RED, lw=0)


def _fruit(ax, x, y, size):
    green = {"color": plots.GREEN, "lw": 0}
    for side in (-0.45, 0.45):
        ax.add_patch(plt.Circle((x + side * size, y - 0.4 * size), 0.52 * size, **green))
        ax.plot([x + side * size, x + 0.3 * size], [y, y + size], color=plots.GREEN, lw=2.5)
    ax.add_patch(plt.Polygon([(x + 0.3 * size, y + size), (x + size, y + 1.2 * size), (x + 1.1 * size, y + 0.6 * size)],
                             **green))


def similar_and_relevant(words, S):
    """A sentence with its similarities as arcs above it, and below it, drawn by hand, which word a reader needs for which.

    ``S``: ``(8, 8)``, the dot products; *bear* and *country* are red.
    """
    strong = np.abs(S - np.diag(S.diagonal())).max()  # the largest similarity of two words
    _, ax = plt.subplots(figsize=(7.4, 4.7))
    for i, j in zip(*np.triu_indices(8, 1), strict=True):
        if S[i, j] > 0:
            share = S[i, j] / strong
            seen = (words[i], words[j]) == ("bear", "country")
            plots.arc(ax, i, j, 0.42, 0.35, linewidth=1.2 + 8 * share**2, zorder=3 + seen,
                      alpha=1 if seen else 0.2 + 0.6 * share, color=plots.RED if seen else plots.BLUE)
    for asks, gives, colour in [(1.9, 1.15, plots.BLUE), (2.95, 2.15, plots.BLUE),  # trail -> hiking, led -> trail
                                (5, 7.2, plots.BLUE), (6.9, 6.1, plots.RED)]:  # through -> country, country -> bear
        plots.arc(ax, asks, gives, -0.6, -0.35, head=18, linewidth=5, color=colour)
    for x, word in enumerate(words):
        ax.text(x, 0, word, ha="center", va="center", fontsize=15)
    ax.text(-0.4, 3.65, "similarity: as broad one way as back", fontsize=14, color="#444444")
    ax.text(-0.4, -1.75, "relevance: it has a direction", fontsize=14, color="#444444")
    ax.set(xlim=(-0.6, 7.5), ylim=(-2, 4))
    ax.axis("off")
    plt.show()


def fixed_and_computed(learned, short, long):
    """A dense layer and attention on a short text and a long one: words on the left, outputs on the right, lines as weights.

    ``learned``: ``(3, 3)``, fits three words only; ``short``, ``long``: (words, their weights ``(T, T)``).
    """
    _, panels = plt.subplots(2, 2, figsize=(6.6, 5.8))
    for (top, below), (words, weights) in zip(panels.T, (short, long), strict=True):
        _weight_lines(top, words, learned)
        _weight_lines(below, words, weights)
    panels[0, 0].set_title("Dense layer\nblue adds, orange subtracts", fontsize=14)
    panels[0, 1].set_title("three words more: no weights", fontsize=14)
    panels[1, 0].set_title("Attention", fontsize=14)
    panels[1, 1].set_title("as many weights as it takes", fontsize=14)
    plt.show()


def _weight_lines(ax, words, weights):
    """Lines from the words that go in, on the left, to the outputs; words beyond the weights stand alone."""
    for (i, j), weight in np.ndenumerate(weights):  # to output i from input j
        ax.plot([0, 1], [-j, -i], color=plots.BLUE if weight > 0 else plots.ORANGE, lw=10 * abs(weight), alpha=0.75,
                solid_capstyle="butt")
    for i, word in enumerate(words):
        lost = i >= len(weights)
        ax.text(-0.06, -i, word, ha="right", va="center", fontsize=13, color=plots.RED if lost else "black")
        ax.plot([0, 1], [-i, -i], "o", color="black", markersize=6, mfc="white" if lost else "black")
    ax.set(xlim=(-0.75, 1.1), ylim=(-5.5, 0.5))
    ax.axis("off")
