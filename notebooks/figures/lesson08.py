"""The figures of lesson 08: positional encoding.

All hands of its clocks begin at the top and turn clockwise.
"""

import json

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba_array
from matplotlib.lines import Line2D

from helpers import attention, plots
from helpers.page import claims, steps
from helpers.words import shown

SPEEDS = 10000.0 ** (-np.arange(0, 16, 2) / 16)  # radians per place, for eight clocks
COLOURS = to_rgba_array("#3f62d9 #6a55d6 #8f47c9 #ad3bae #c1378a #cb4064 #cb5238 #b96a00".split())  # of one lightness
RIM = "#9aa5ad"
PLACES = [*range(100), *range(100, 10_001, 100)]  # of the slider
SCHEMES = ["learned", "sinusoidal", "RoPE", "ALiBi", "no positions"]
TASKS = ["last place", "first place", "one before", "eight before"]


def looks_of(word, weights):
    """Where one word of each sentence looks: an arc to each of its words, the thicker the larger its weight.

    ``weights``: {a sentence: weights (T,) of the query ``word``}; each sentence gets a line of its own.
    """
    _, rows = plt.subplots(len(weights), 1, figsize=(5.6, 2.3 * len(weights)))
    for ax, (sentence, shares) in zip(rows, weights.items(), strict=True):
        words = sentence.split()
        start = words.index(word)
        for end, (other, share) in enumerate(zip(words, shares, strict=True)):
            colour = plots.BLUE if share > 0.1 else plots.SKY
            if end == start:
                ax.plot(start, 0.52, "o", markersize=26 * share + 4, color=colour)
            else:
                plots.arc(ax, start, end, 0.62, base=0.3, linewidth=1 + 12 * share, color=colour, alpha=0.8)
            ax.text(end, -0.12, other, ha="center", va="center", fontsize=14, weight="bold" if end == start else "normal")
            ax.text(end, -0.5, f"{share:.2f}", ha="center", va="center", fontsize=13, color=plots.BLUE)
        ax.set(xlim=(-0.6, len(words) - 0.4), ylim=(-0.7, 1.7))
        ax.axis("off")
    plt.show()


def _dials(ax, centres, angles, colours):
    """Clocks of radius 1 with one hand each, its shade the way since it last pointed up.

    ``centres``: ``(n, 2)``; ``angles``: ``(n,)``, clockwise from the top; ``colours``: n of them. Few artists, so that a
    wall of 56 is drawn in a twentieth of a second.
    """
    around = np.linspace(0, 2 * np.pi, 60)[:, None]  # (60, 1)
    middles = centres[:, None]  # (n, 1, 2)
    ways = middles + 0.97 * _tips(np.linspace(0, 1, 60)[:, None] * (angles % (2 * np.pi)))  # (n, 60, 2)
    hands = np.concatenate([middles, middles + 0.9 * _tips(angles[None])], axis=1)  # (n, 2, 2)
    ax.add_collection(PolyCollection(middles + _tips(around), facecolors="white", edgecolors=RIM, linewidths=1.2))
    ax.add_collection(PolyCollection(np.concatenate([middles, ways], axis=1), facecolors=colours, alpha=0.22, linewidths=0))
    ax.add_collection(LineCollection(hands, colors=colours, linewidths=3.2, capstyle="round"))
    ax.scatter(*centres.T, s=16, c=colours, zorder=3)
    ax.set_aspect("equal")
    ax.axis("off")


def _tips(angles):
    """The tips of hands: angles ``(steps, n)``, clockwise from the top -> ``(n, steps, 2)``."""
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).swapaxes(0, 1)


def _turn_in(i):
    """How many places the hand i needs for a turn, in words."""
    turn = 2 * np.pi / SPEEDS[i]
    return f"{turn:.1f}" if turn < 10 else f"{turn:,.0f}"


def _canvas(width, height):
    """One drawing area that fills its figure."""
    figure = plt.figure(figsize=(width, height), layout="none")
    return figure.add_axes((0, 0, 1, 1))


def wall_of_clocks(yours):
    """Eight clocks, a row each from fast to slow, at seven places, a column each; the last column is the place ``yours``."""
    places = np.array([0, 1, 2, 3, 10, 100, yours])
    ax = _canvas(6.6, 6.6)
    hands, columns = np.divmod(np.arange(8 * 7), 7)
    centres = np.stack([2.25 * columns, -2.25 * hands], axis=1)
    _dials(ax, centres, places[columns] * SPEEDS[hands], COLOURS[hands])
    for i in range(8):
        ax.text(-1.5, -2.25 * i, f"a turn in\n{_turn_in(i)} places", ha="right", va="center", fontsize=12)
    for column, place in enumerate(places):
        ax.text(2.25 * column, 1.35, f"{place:,}", ha="center", fontsize=14, weight="bold")
    ax.text(6.75, 2.35, "What time is it at place …", ha="center", fontsize=14)
    ax.set(xlim=(-5.2, 14.8), ylim=(-17, 3))


def clocks(place):
    """The eight clocks of one place, each with the number of places that its hand needs for a turn."""
    ax = _canvas(6.4, 3.9)
    lines, columns = np.divmod(np.arange(8), 4)
    centres = np.stack([2.6 * columns, -3 * lines], axis=1)
    _dials(ax, centres, place * SPEEDS, COLOURS)
    for i, (x, y) in enumerate(centres):
        ax.text(x, y + 1.2, f"a turn in {_turn_in(i)}", ha="center", fontsize=13)
    ax.set(xlim=(-1.3, 9.1), ylim=(-4.2, 1.8))
    plt.show()


def walls(rows):
    """Walls of eight clocks below each other. ``rows``: {name: wall (16,), in pairs (up, right)}."""
    ax = _canvas(7.2, 2.7)
    for row, (name, wall) in enumerate(rows.items()):
        up, right = wall.reshape(8, 2).T
        centres = np.stack([2.3 * np.arange(8), np.full(8, -2.5 * row)], axis=1)
        _dials(ax, centres, np.arctan2(right, up), COLOURS)
        ax.text(-1.5, -2.5 * row, name, ha="right", va="center", fontsize=14)
    ax.set(xlim=(-6.3, 17.4), ylim=(-2.5 * len(rows) + 1.2, 1.3))
    plt.show()


def query_and_key(scores):
    """A query and a key as hands of one dial, the angle between them shaded; between two dials, whether their scores agree.

    ``scores``: {(place of the query, place of the key): their score}, a dial for each.
    """
    ax = _canvas(6.4, 3.6)
    for column, ((i, j), score) in enumerate(scores.items()):
        middle = np.array([3.5 * column, 0])
        ax.add_patch(plt.Circle(middle, 1, facecolor="white", edgecolor=RIM, linewidth=1.2))
        between = np.linspace(j, i, 60)[:, None]
        ax.fill(*np.vstack([middle, middle + 0.5 * _tips(between)[0]]).T, color="#f3cf80")
        for place, name, colour in [(i, "q", plots.BLUE), (j, "k", plots.RED)]:
            tip = _tips(np.array([[place]]))[0, 0]
            plots.arrow(ax, middle, middle + tip, colour)
            ax.text(*middle + 1.58 * tip, f"{name}\nat {place}", color=colour, ha="center", va="center", fontsize=14,
                    linespacing=0.95)
        ax.text(middle[0], 1.3, f"{i - j} places apart", ha="center", fontsize=14)
        ax.text(middle[0], 1.95, f"{score:.2f}", ha="center", fontsize=18, weight="bold")
        if column:
            same = abs(score - list(scores.values())[column - 1]) < 0.005
            ax.text(middle[0] - 1.75, 1.95, "=" if same else "≠", ha="center", fontsize=20)
    ax.text(-1.95, 2.75, "score", fontsize=14)
    ax.set(xlim=(-2.1, 3.5 * len(scores) - 1.4), ylim=(-2.1, 3.2), aspect="equal")
    ax.axis("off")
    plt.show()


def measured_shares():
    """The shares of right answers at 16, 32 and 64 tokens that the lesson's experiment has stored.

    Models with four heads after 160 steps, the mean of five: {task: {scheme: (3,)}}.
    """
    stored = json.loads((claims.REGISTER.parent / "experiments" / "08.json").read_text("utf-8"))
    runs = {task: [item["result"] for item in stored[f"C36 {task}"]] for task in TASKS}
    means = {task: np.array(run)[-5:].mean(axis=1) for task, run in runs.items()}  # (kind, run, length) -> (5, 3)
    return {task: dict(zip(SCHEMES, mean, strict=True)) for task, mean in means.items()}


def distances_past_training(shares):
    """The distances in texts of 16, 32 and 64 tokens, a bar each, split where training ended, and how many are right.

    ``shares``: ``(3,)``, of right answers at these lengths.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.2))
    for row, (tokens, share) in enumerate(zip([16, 32, 64], shares, strict=True)):
        ax.barh(row, 15, color=plots.BLUE, height=0.62)
        ax.barh(row, tokens - 16, left=15, facecolor="#f3cf80", hatch="//", edgecolor="white", linewidth=0, height=0.62)
        ax.text(-1.5, row, f"{tokens} tokens", ha="right", va="center", fontsize=14)
        ax.text(65.5, row, f"{share:.0%}", va="center", fontsize=18, weight="bold",
                color=plots.RED if share < 0.9 else "black")
    for x, words, colour, ha in [(7.5, "seen in\ntraining", plots.BLUE, "center"),
                                 (39, "never seen", plots.ink(plots.ORANGE), "center"), (65.5, "right", "black", "left")]:
        ax.text(x, -0.5, words, color=colour, ha=ha, va="bottom", fontsize=14, linespacing=1)
    ax.set(xlim=(-0.5, 73), ylim=(2.5, -1.25), yticks=[], xticks=[0, 15, 31, 63])
    ax.set_xlabel("distance from the query, in places", fontsize=13, loc="left")
    ax.tick_params(labelsize=13)
    ax.spines[["left", "bottom"]].set_visible(False)
    plt.show()


def words_in_front(alone, moved, front, whose):
    """What becomes of each score when words are put in front: a line from the score before to the score after.

    ``alone``, ``moved``: {"clocks added": scores (T, T), "RoPE": scores}; ``front``: the words; ``whose``: rotate that runs.
    """
    figure, panels = plt.subplots(1, 2, figsize=(7, 4.3), sharey=True)
    for ax, name in zip(panels, alone, strict=True):
        for before, after in zip(alone[name].ravel(), moved[name].ravel(), strict=True):
            change = after - before
            colour = plots.GREY if abs(change) < 0.005 else plots.ORANGE if change > 0 else plots.PURPLE
            ax.plot([0, 1], [before, after], "o-", color=colour, linewidth=1.8, markersize=4, alpha=0.8)
        ax.set_xticks([0, 1], ["alone", "with words\nin front"], fontsize=13)
        ax.set_title(name if name == "clocks added" else f"RoPE, {whose}", fontsize=13)
        ax.set_xlim(-0.15, 1.15)
        ax.tick_params(labelsize=12)
    panels[0].set_ylabel("score", fontsize=13)
    key = [Line2D([], [], color=colour, lw=3, label=words) for colour, words in [
        (plots.ORANGE, "rises"), (plots.PURPLE, "falls"), (plots.GREY, "stays")]]
    figure.legend(handles=key, loc="outside lower center", ncols=3, fontsize=13)
    title = f"Each score, alone and after “{shown(' '.join(front), 40)[1:-1]}”" if front else "No words in front yet"
    plots.as_written(figure.suptitle(title, fontsize=13))
    plt.show()


def rope_number_by_number(turn):
    """A query and a key of four numbers, turned and multiplied, number by number. ``turn``: a function like `rotate`."""
    q, k = np.array([1.0, 0, 1, 0]), np.array([0.0, 1, 1, 0])
    columns = "x₀ y₀ x₁ y₁".split()
    speeds = np.array([1, 0.01])

    def grid(values, name="", rows=None, decimals=2):
        return steps.grid(values, name, rows, columns, groups=[1, 1, 2, 2], decimals=decimals)

    def at(x, place):
        return turn(x[None], np.array([place]))[0]

    def score(title, i, j, words):
        a, b = at(q, i), at(k, j)
        return (title, [grid(np.stack([a, b]), "turned", [f"q at {i}", f"k at {j}"]), "→", grid(a * b, "products"), "sum =",
                        steps.grid((a * b).sum(), "score", mark=True)], words)

    steps.show(
        ("Query and key", [grid(np.stack([q, k]), "", ["q", "k"], decimals=0)],
         "Two pairs: x₀ y₀ turns with ω = 1, and x₁ y₁ with ω = 0.01."),
        ("Angles", [steps.grid(np.outer([5, 3], speeds), "position · ω", ["q at 5", "k at 3"], ["pair 0", "pair 1"],
                               groups=[1, 2])],
         "The query is at position 5, the key at position 3."),
        ("Turn the query", [grid(q, "q", decimals=0), "→", grid(at(q, 5), "q at 5")],
         "Pair 0: (cos 5, sin 5). Pair 1 has hardly moved."),
        ("Turn the key", [grid(k, "k", decimals=0), "→", grid(at(k, 3), "k at 3")],
         "Pair 0 was (0, 1), so it becomes (-sin 3, cos 3)."),
        score("Score", 5, 3, "The dot product, product by product."),
        score("Both 100 places later", 105, 103,
              "Different numbers in every cell, the same score: the distance is still 2."),
        score("Another distance", 5, 2, "The key has moved one place away: a different score."))


def near_and_far_sighted(weights):
    """A row for each head, a disc for each key, its area the weight of the last query. ``weights``: ``(h, T)``."""
    heads, T = weights.shape
    _, ax = plt.subplots(figsize=(6.8, 4.4))
    rows, keys = np.indices(weights.shape)
    ax.scatter(keys.ravel(), rows.ravel(), s=1500 * weights.ravel(), c=plots.BLUE, alpha=0.75, linewidths=0)
    ax.set_yticks(range(heads), [f"slope 1/{2 ** (head + 1)}" for head in range(heads)], fontsize=12)
    ticks = range(T - 1, -1, -3)
    ax.set_xticks(ticks, [f"{T - 1 - key} back" if key < T - 1 else "itself" for key in ticks], fontsize=12)
    ax.set(xlim=(-0.7, T - 0.3), ylim=(heads - 0.4, -0.7))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    plt.show()


def change_by_distance(changes):
    """How much positions change the score of two equal words, a dot for each pair, by their distance.

    ``changes``: {scheme: (T, T)}; pairs in which the key comes after the query are left out.
    """
    _, ax = plt.subplots(figsize=(6.4, 4.4))
    styles = {"sinusoidal": (plots.ORANGE, "o", ""), "RoPE": (plots.BLUE, "s", "-"), "ALiBi": (plots.GREEN, "^", "-")}
    for scheme, change in changes.items():
        i, j = np.nonzero(attention.causal_mask(len(change)))
        colour, marker, line = styles[scheme]
        ax.plot(i - j, change[i, j], marker, markersize=5, color=colour, alpha=0.7, markeredgewidth=0)
        ax.plot(change[-1][::-1], marker + line, markersize=5, color=colour, linewidth=2, label=scheme)  # of the last query
    ax.axhline(0, color="black", linewidth=0.8, zorder=0)
    ax.set_xlabel("distance i - j", fontsize=13)
    ax.set_ylabel("change of the score", fontsize=13)
    ax.tick_params(labelsize=12)
    ax.legend(fontsize=13, loc="lower left")
    plt.show()


def past_the_training_length(shares):
    """The share of right answers with 16 tokens (hollow) and with 64 (full), an arrow for each scheme in each task.

    ``shares``: {task: {scheme: (3,)}}, as `measured_shares` gives them.
    """
    figure, panels = plt.subplots(4, 1, figsize=(5, 8.2), sharex=True, sharey=True)
    for ax, (task, measured) in zip(panels, shares.items(), strict=True):
        guess = 1 / 4 if task.endswith("place") else 1 / 6
        ax.axvline(guess, color=plots.GREY, linestyle=":", linewidth=1.5)
        for row, (before, _, after) in enumerate(measured.values()):
            colour = plots.RED if after < before - 0.1 else plots.BLUE
            if abs(after - before) > 0.03:
                plots.arrow(ax, (before, row), (after, row), colour)
            ax.plot(before, row, "o", markersize=9, mfc="white", color=colour)
            ax.plot(after, row, "o", markersize=6, color=colour)
        ax.set_title(task, fontsize=14, weight="bold")
        ax.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 % right"], fontsize=13)
        ax.set_yticks(range(len(measured)), list(measured), fontsize=13)
        ax.set(xlim=(-0.05, 1.1), ylim=(len(measured) - 0.5, -0.5))
        ax.tick_params(axis="y", length=0)
    key = [Line2D([], [], **look, label=words) for look, words in [
        ({"ls": "", "marker": "o", "ms": 9, "mfc": "white", "color": "black"}, "16 tokens"),
        ({"ls": "", "marker": "o", "ms": 6, "color": "black"}, "64 tokens"),
        ({"ls": ":", "color": plots.GREY}, "guessing"), ({"color": plots.RED, "lw": 2}, "loses over 10 points")]]
    figure.legend(handles=key, loc="outside upper left", ncols=2, fontsize=13, columnspacing=1.2, handlelength=1.4)
    plt.show()
