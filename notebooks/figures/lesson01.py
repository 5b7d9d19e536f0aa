"""The figures of lesson 01: word embeddings and similarity."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import plots
from helpers.embeddings import cosine_similarity


def dot_products(words, X):
    """Words as arrows with two questions as axes, their shadows on the line of the first word, and the products as bars.

    ``words``: four names, the first is compared with the others; ``X``: ``(4, 2)``.
    """
    _, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.9))
    direction = X[0] / np.linalg.norm(X[0])
    left.axline((0, 0), X[0], color="#c9d2d8", linewidth=1, zorder=0)
    colours = [plots.GREY, plots.BLUE, plots.GREEN, plots.RED]
    shifts = [(-6, -17), (14, 8), (0, 7), (0, 7)]
    beside = 0.16 * np.array([[direction[1]], [-direction[0]]])  # so that the first arrow hides no shadow
    for number, (word, x, colour, shift) in enumerate(zip(words, X, colours, shifts, strict=True)):
        shadow = np.c_[[0, 0], x @ direction * direction] + beside
        if number:
            left.plot(*np.c_[x, shadow[:, 1]], ":", color=colour, linewidth=1.5)
            left.plot(*shadow, color=colour, linewidth=9, alpha=0.3, solid_capstyle="butt")
        plots.arrow(left, (0, 0), x, colour)
        left.annotate(word, x, shift, textcoords="offset points", color=plots.ink(colour), ha="center", size=13)
    left.set(xlim=(-3.4, 4), ylim=(-3, 4), xticks=[-2, 0, 2], yticks=[-2, 0, 2], aspect="equal")
    left.set_xlabel("animal", fontsize=13)
    left.set_ylabel("flies", fontsize=13)
    for row, x in enumerate(X[1:]):
        for part, colour in enumerate([plots.SKY, plots.ORANGE]):
            bar = right.barh(2.6 * row + part, X[0, part] * x[part], color=colour, height=0.95)
            right.bar_label(bar, [f"{X[0, part] * x[part]:+d}"], label_type="center", fontsize=13)
        right.text(14.5, 2.6 * row + 0.5, X[0] @ x, va="center", ha="right", fontsize=17, weight="bold")
    right.set_yticks([0.5, 3.1, 5.7], words[1:], fontsize=13)
    right.text(1, -1, "animal × animal", color=plots.ink(plots.SKY), fontsize=13)
    right.text(1, 7.2, "flies × flies", color=plots.ink(plots.ORANGE), fontsize=13)
    right.axvline(0, color="black", linewidth=0.8)
    right.set(xlim=(-8, 15), ylim=(7.3, -1.6), xticks=[])
    right.spines[:].set_visible(False)
    right.tick_params(length=0)
    plt.show()


def neighbours_of(word, vectors, neighbours):
    """The six words nearest to a word, as bars. ``neighbours``: a function like ``embeddings.nearest_neighbours``."""
    near = neighbours(vectors[word], vectors.vectors, 7)[1:]  # the nearest is the word itself
    cosines = cosine_similarity(vectors[word][None, :], vectors.vectors[near])[0]
    ax = plots.bars([vectors.words[row] for row in near], cosines, xlabel="cosine", title=f"Nearest neighbours of {word!r}")
    ax.figure.set_size_inches(6.4, 3.2)
    ax.tick_params(axis="y", labelsize=13)


def famous_step(a, b, c, d, vectors, neighbours):
    """The step from a to b, taken from c: where it ends beside d, at true distances, and which words are nearest there.

    ``neighbours``: a function like ``embeddings.nearest_neighbours``. Two equal words ``a``, ``b`` get a sentence instead.
    """
    if a == b:
        print(f"From {a} to {b} there is no step: take two different words.")
        return
    _, (plane, bars) = plt.subplots(2, 1, figsize=(5.6, 6.4), height_ratios=[1.15, 1])
    A, B, C, D = vectors.rows([a, b, c, d])
    step, end = B - A, C + B - A
    _step_beside_the_answer(plane, (a, b, c, d), step, C, D)
    near = neighbours(end, vectors.vectors, 5)
    names = [vectors.words[row] for row in near]
    colours = [plots.BLUE if name in (a, b, c) else plots.RED if name == d else "#c3ccd2" for name in names]
    plots.bars(names, cosine_similarity(end[None, :], vectors.vectors[near])[0], ax=bars, colours=colours)
    bars.set_title("Nearest to the circle, by the cosine\n(blue: the words of the question)", fontsize=14)
    bars.tick_params(labelsize=14, length=0)
    for number in bars.texts:
        number.set_fontsize(14)
    bars.set_xticks([])
    bars.spines["bottom"].set_visible(False)
    plt.show()


def _step_beside_the_answer(ax, words, step, C, D):
    """The plane through C, D and the end of the step from C, with the step from a to b drawn parallel beside it."""
    a, b, c, d = words
    up = step / np.linalg.norm(step)
    side = D - C - (D - C) @ up * up  # what of c -> d is at a right angle to the step
    plane = np.stack([side / max(np.linalg.norm(side), 1e-9), up])  # (2, d)
    start, goal, answer, beside = np.zeros(2), plane @ step, plane @ (D - C), np.array([-0.5, 0])
    ax.fill(*np.array([start, goal, goal + beside, beside]).T, color=plots.SKY, alpha=0.2)
    for place, row in ((start, C), (goal, C + step)):
        ax.plot(*np.array([place, answer]).T, ":", color=plots.RED, linewidth=1.8)
        ax.text(*(place + answer) / 2, f"{np.linalg.norm(D - row):.2f}", c=plots.RED, size=14,
                ha="center", va="center", bbox={"fc": "white", "ec": "none", "pad": 1})
    for word, place, shift, align in [
            (a, beside, (10, -19), "right"), (b, goal + beside, (10, 10), "right"),
            (c, start, (-10, -19), "left"), (d, answer, (9, -5), "left"),
            (f"{d} should\nbe here", goal, (-4, 11), "left")]:
        colour, hollow = plots.RED if word == d else plots.BLUE, "\n" in word
        ax.plot(*place, "o", color=colour, mfc="w" if hollow else colour, ms=11 if hollow else 8)
        plots.as_written(ax.annotate(word, place, shift, textcoords="offset points", size=14, c=colour, ha=align))
    plots.arrow(ax, beside, goal + beside, plots.BLUE)
    plots.arrow(ax, start, goal, plots.BLUE)
    ax.text(-0.56, goal[1] / 2, f"{goal[1]:.2f}", color=plots.BLUE, fontsize=14, ha="right", va="center")
    ax.set(aspect="equal", xlim=(-1.1, answer[0] + 0.75), ylim=(-0.3, goal[1] + 0.4))
    ax.axis("off")


def four_ways(shares):
    """How many riddles each way of answering gets right, a bar each. ``shares``: {way: share}."""
    _, ax = plt.subplots(figsize=(5.4, 2.8))
    bars = ax.barh(range(len(shares)), shares.values(), height=0.7,
                   color=[plots.RED if "without the rule" in way else plots.BLUE if way.startswith("the step")
                          else "#b8c4cc" for way in shares])
    ax.bar_label(bars, [f"{share:.0%}" for share in shares.values()], padding=4, fontsize=15, weight="bold")
    ax.set_yticks(range(len(shares)), [way.replace(", ", ",\n") for way in shares], fontsize=13)
    ax.set_title("Riddles answered right", fontsize=14)
    ax.set(xlim=(0, 1), xticks=[])
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.spines["bottom"].set_visible(False)
    plt.show()


def senses(measured):
    """How far words lie along their sense axes. ``measured``: {(word, sense): (cosine, share of all words behind it)}; a bar
    is blue where the share is over 95 %."""
    words = list(dict.fromkeys(word for word, _ in measured))
    _, panels = plt.subplots(len(words), 1, figsize=(5.4, 5.6), sharex=True)
    for ax, word in zip(panels, words, strict=True):
        bars = {sense: value for (other, sense), value in measured.items() if other == word}
        plots.bars(list(bars), [cosine for cosine, _ in bars.values()], ax=ax, title=word,
                   colours=[plots.BLUE if share > 0.95 else "#b8c4cc" for _, share in bars.values()])
        ax.tick_params(labelsize=13)
    panels[-1].set_xlabel("cosine with the sense axis", fontsize=13)
    plt.show()
