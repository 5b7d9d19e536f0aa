"""The figures of lesson 09: the transformer block."""

import matplotlib.pyplot as plt
import numpy as np
import torch

from helpers import plots
from helpers.page import show, steps
from helpers.words import NotUsable

DEPTHS = [0, 1, 2, 4, 12]
ARROWS = [plots.BLUE, plots.ORANGE, plots.GREEN, plots.RED, plots.PURPLE]
STREAM, SAND, SKY = "#9ec9e6", "#fbe3c0", "#d6e9f5"


def fans(runs, words, alike):
    """A row for each run, a fan of arrows for each depth, as wide as the mean angle of two words.

    ``runs``: {name: 13 states (T, d)}; ``words``: T of them; ``alike``: a function (T, d) -> the mean cosine of two words.
    """
    if any(not np.any(np.asarray(state)) for states in runs.values() for state in states):
        raise NotUsable("Every word has become a row of zeros, which has no direction to draw: let something of x remain.")
    _, ax = plt.subplots(figsize=(6.6, 2.2 * len(runs)))
    for row, (name, states) in enumerate(runs.items()):
        ax.text(-1.1, -3.1 * row + 1.75, name, fontsize=15, weight="bold", va="bottom")
        for column, depth in enumerate(DEPTHS):
            foot = np.array([1.8 * column + 0.35 * bool(column), -3.1 * row])
            angle = np.arccos(min(alike(states[depth]), 1.0))
            for i, place in enumerate(np.linspace(-1, 1, len(words))):
                colour = ARROWS[i % len(ARROWS)]
                way = np.array([np.sin(angle / 2 * place), np.cos(angle / 2 * place)])
                ax.annotate("", foot + way, foot, arrowprops={
                    "arrowstyle": "-|>", "linewidth": 2.2, "color": colour, "shrinkA": 0, "shrinkB": 0})
                if depth == 0:
                    x, y = foot + (1.06 + 0.36 * (i % 2)) * way
                    plots.as_written(ax.text(x, y, words[i], color=plots.ink(colour), fontsize=13, ha="center", va="bottom"))
            after = f"after {depth}" if depth else "at first"
            ax.text(*(foot - [0, 0.12]), f"{np.degrees(angle):.0f}°\n{after}", fontsize=14, ha="center", va="top")
    ax.set(xlim=(-1.2, 8.3), ylim=(-3.1 * len(runs) + 2.3, 2.15), aspect="equal")
    ax.axis("off")
    plt.show()


def stream_step_by_step(x0, weights, V, hidden, written):
    """What two sublayers pour into the stream of *the fruit flies*, number by number.

    ``x0``, ``V``, ``written``: ``(3, 4)``; ``weights``: ``(3, 3)``; ``hidden``: ``(3, 1)``.
    """
    words = ["the", "fruit", "flies"]
    a = weights @ V
    x1 = x0 + a

    def table(x, name, rows=None, mark=False, columns=("fruit", "moves", "found", "insect")):
        return steps.grid(x + 0.0, name, rows, columns, decimals=0, mark=np.asarray(mark))

    def bare(x, name, rows=None):
        return table(x, name, rows, columns=None)

    steps.show(
        ("The stream", [table(x0, "x₀", words)],
         "A row of d = 4 numbers for each word. Whatever happens, the stream keeps this shape."),
        ("Attention reads", [steps.grid(weights, "weights", words, words, decimals=1), "·", table(V, "V"), "=",
                             table(a, "a", mark=a > 0)],
         "(3, 3) times (3, 4) gives (3, 4). fruit and flies each find half of a 2."),
        ("Attention writes", [table(x0, "x₀", words), "+", table(a, "a", mark=a > 0), "=", table(x1, "x₁", mark=a > 0)],
         "Added, not replaced: flies still moves, and now knows of a fruit."),
        ("The second reads", [table(x1, "x₁", words), "→", steps.grid(hidden, "hidden", decimals=0)],
         "Row by row max(0, moves + found - 2): max(0, -2), then max(0, -1), then max(0, 1)."),
        ("The second writes", [table(x1, "x₁", words), "+", table(written, "w", mark=written != 0), "=",
                               table(x1 + written, "x₂", mark=written != 0)],
         "flies moves less now, and is an insect. The other rows are as they were."),
        ("All that was written", [bare(x0, "x₀", words), "+", bare(a, "a"), "+", bare(written, "w"), "=",
                                  bare(x1 + written, "x₂")],
         "The end is the beginning plus what each sublayer wrote. (The same four columns.)"))


def numpy_and_torch():
    """A small dictionary from NumPy to torch; its last column is computed."""
    X = np.random.default_rng(0).normal(size=(2, 3, 4))
    x = torch.from_numpy(X)
    pairs = [("np.swapaxes(X, -1, -2)", "x.transpose(-1, -2)"),
             ("X.mean(axis=-1, keepdims=True)", "x.mean(dim=-1, keepdim=True)"),
             ("np.maximum(X, 0)", "torch.relu(x)"),
             ("np.where(X > 0, X, -np.inf)", "x.masked_fill(x <= 0, -torch.inf)"),
             ("X.std(axis=-1)", "x.std(dim=-1)"),
             ("X.std(axis=-1)", "x.std(dim=-1, correction=0)")]
    names = {"np": np, "torch": torch, "X": X, "x": x}
    same = [np.allclose(eval(a, names), eval(b, names).numpy()) for a, b in pairs]
    show.table(["NumPy", "torch", "same numbers"],
               [[*pair, "yes" if equal else "no"] for pair, equal in zip(pairs, same, strict=True)])


def sum_and_bend():
    """The average of two numbers, and max(0, their sum - 2), as maps over both, with three words marked."""
    moves, found = np.meshgrid(np.linspace(0, 2, 81), np.linspace(0, 2, 81))
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.5), sharey=True)
    maps = {"the average of the two": (moves + found) / 2, "max(0, moves + found - 2)": np.maximum(0, moves + found - 2)}
    for ax, (title, values) in zip(panels, maps.items(), strict=True):
        image = ax.contourf(moves, found, values, levels=np.linspace(0, 2, 11), cmap="Blues")
        ax.set(aspect="equal", xticks=[0, 1, 2], yticks=[0, 1, 2])
        ax.set_title(title, fontsize=13)
        ax.set_xlabel("moves", fontsize=13)
        ax.tick_params(labelsize=12)
        for name, place, side in [("flies", (2, 1), "right"), ("fruit", (0, 1), "left"), ("only moves", (2, 0), "right")]:
            value = values[np.isclose(moves, place[0]) & np.isclose(found, place[1])][0]
            ax.plot(*place, "o", color=plots.ORANGE, clip_on=False, markersize=9, zorder=3)
            ax.annotate(f"{name}: {value:g}", place, xytext=(-9 if side == "right" else 9, 7), ha=side, fontsize=12,
                        textcoords="offset points", bbox={"fc": "white", "ec": "none", "alpha": 0.75, "pad": 1})
    panels[0].set_ylabel("found", fontsize=13)
    figure.colorbar(image, ax=panels, label="result", shrink=0.85)
    plt.show()


def _box(ax, x, y, text, colour, width=0.0):
    """A box with a text; with a width it is drawn as wide as that."""
    if width:
        ax.add_patch(plt.Rectangle((x - width / 2, y - 0.42), width, 0.84, fc=colour, ec="#555555", zorder=3))
    box = None if width else {"boxstyle": "round,pad=0.3", "fc": colour, "ec": "#555555"}
    ax.text(x, y, text, ha="center", va="center", fontsize=12, zorder=4, bbox=box)


def _stream(ax, x, top, width=1.0):
    ax.annotate("", (x, top), (x, -0.6), arrowprops={
        "arrowstyle": f"simple,head_width={1.7 * width},head_length=0.7,tail_width={width}",
        "facecolor": STREAM, "edgecolor": "white", "linewidth": 2}, zorder=3.5)  # above a box that it only passes


def _plus(ax, x, y):
    ax.text(x, y, "+", ha="center", va="center", fontsize=13, zorder=4, bbox={"boxstyle": "circle,pad=0.2", "fc": "white"})


def block():
    """The block for three words: each has a stream of its own, and attention is the only box that they share."""
    _, ax = plt.subplots(figsize=(6.4, 6.2))
    lanes = [0, 3.4, 6.8]
    for x, word in zip(lanes, ["the", "fruit", "flies"], strict=True):
        _stream(ax, x, 10.4)
        ax.text(x, -1, word, ha="center", va="center", fontsize=14)
        for low in (0, 5):
            ax.plot([x, x + 1.5, x + 1.5], [low, low, low + 3.6], color=plots.BLUE, linewidth=2)
            ax.annotate("", (x, low + 3.6), (x + 1.5, low + 3.6), arrowprops={
                "arrowstyle": "-|>", "color": plots.BLUE, "linewidth": 2, "shrinkA": 0, "shrinkB": 8})
            _box(ax, x + 1.5, low + 0.95, f"norm {1 if low == 0 else 2}", SAND)
            _plus(ax, x, low + 3.6)
        _box(ax, x + 1.5, 7.4, "MLP", SKY)
    _box(ax, 4.9, 2.4, "attention", SKY, width=8.4)
    ax.set(xlim=(-1, 9.3), ylim=(-1.5, 10.6))
    ax.axis("off")
    plt.show()


def two_blocks():
    """The block of 2017, with its norms on the stream, beside the pre-norm block, with its norms on the branches."""
    _, panels = plt.subplots(1, 2, figsize=(6.4, 5.4))
    for ax, title, pre in [(panels[0], "post-norm (2017)", False), (panels[1], "pre-norm", True)]:
        _stream(ax, 0, 10.6)
        for number, name in [(1, "attention"), (2, "MLP")]:
            low = 5 * (number - 1)
            ax.plot([0, 2.1, 2.1], [low, low, low + 3], color=plots.BLUE, linewidth=2)
            ax.annotate("", (0, low + 3), (2.1, low + 3), arrowprops={
                "arrowstyle": "-|>", "color": plots.BLUE, "linewidth": 2, "shrinkA": 0, "shrinkB": 8})
            _box(ax, 2.1 if pre else 0, low + (0.8 if pre else 4.1), f"norm {number}", SAND)
            _box(ax, 2.1, low + (2.05 if pre else 1.5), name, SKY)
            _plus(ax, 0, low + 3)
        ax.set_title(title, fontsize=14, loc="center")
        ax.set(xlim=(-1.3, 3.5), ylim=(-0.8, 10.8))
        ax.axis("off")
    plt.show()


def next_words(text, vocabulary, probabilities):
    """A ribbon from a text to each of the likeliest next words, as thick as its probability.

    ``vocabulary``: V words; ``probabilities``: ``(V,)``; at most ten words are drawn.
    """
    shares = np.asarray(probabilities)
    best = np.argsort(-shares)[:10]
    _, ax = plt.subplots(figsize=(6.4, 0.48 * len(best) + 0.6))
    thickness = 0.4 * len(best) * shares  # the same at both ends: nothing is lost on the way
    top = 0.5 * thickness[best].sum()
    for row, index in enumerate(best):
        thick, middle = thickness[index], len(best) / 2 - row - 0.5
        plots.ribbon(ax, (0, top, top - thick), (1, middle + thick / 2, middle - thick / 2),
                     alpha=0.35 + 0.5 * shares[index] / shares[best[0]])
        top -= thick
        ax.text(1.02, middle, f"{shares[index]:.2f}  {vocabulary[index]}", va="center", fontsize=14)
    end = text[-22:]
    begin = text if len(text) <= 24 else f"… {end.partition(' ')[2] or end}"  # whole words, if there are any
    ax.text(-0.02, 0, begin, ha="right", va="center", fontsize=14)
    ax.set(xlim=(-0.95, 1.75), ylim=(-len(best) / 2 - 0.2, len(best) / 2 + 0.2))
    ax.axis("off")
    plots.as_written(ax.figure)
    plt.show()
