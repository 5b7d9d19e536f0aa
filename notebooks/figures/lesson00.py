"""The figures of lesson 00: start here."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import plots


def fork(bears, sentences):
    """The word *bears* of six sentences, layer by layer, as six paths that part.

    ``bears``: ``(6, 7, 384)``; the height is the place along the direction in which they differ most.
    """
    apart = bears / np.linalg.norm(bears, axis=2, keepdims=True)
    apart = apart - apart.mean(axis=0)  # (6, 7, 384): how far each is from the middle of the six
    direction = np.linalg.svd(apart.reshape(-1, 384), full_matrices=False)[2][0]
    height = apart @ direction * np.sign(apart[0, -1] @ direction)  # (6, 7)
    _, ax = plt.subplots(figsize=(7.6, 4.2))
    for path in height:
        colour = plots.BLUE if path[-1] > 0 else plots.RED
        ax.plot(path, "o-", color=colour, linewidth=2.5, markersize=8)
    for side, colour in ((height[:, -1] > 0, plots.BLUE), (height[:, -1] < 0, plots.RED)):
        ends = np.flatnonzero(side)[np.argsort(-height[side, -1])]
        middle = height[ends, -1].mean()
        for place, i in enumerate(ends):
            ax.text(6.3, middle + 0.11 * ((len(ends) - 1) / 2 - place), sentences[i], va="center", color=colour, fontsize=13)
    ax.plot(0, height[:, 0].mean(), "o", color="black", markersize=11)
    ax.text(-0.3, height[:, 0].mean(), "bears", ha="right", va="center", fontsize=15, weight="bold")
    ax.set(xlim=(-1.4, 10.6), ylim=(-0.58, 0.52), yticks=[])
    ax.set_xticks(range(7), ["0\ntable", 1, 2, 3, 4, 5, 6], fontsize=13)
    ax.text(3.5, -0.088, "layers with attention", ha="center", va="top", fontsize=13,
            transform=ax.get_xaxis_transform())
    ax.set_ylabel("place along the direction\nof most difference", fontsize=13)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    plt.show()


def six_uses():
    """The same fan for six uses of attention: something asks, several things can be looked at, one matters most."""
    patches = ["#d8c08a", "#8ab6d8", "#9ac79a", "#4f86ad", "#c9ced2"]
    uses = {"translation": ("zone (French)", ["european", "economic", "area"], 2),
            "summary": ("headline", ["¶", "¶", "¶", "¶", "¶"], 1),
            "question": ("where?", ["anna", "met", "ben", "rome"], 3),
            "image": ("■", ["■", "■", "■", "■", "■"], 3),
            "sound": ("▅", ["▁", "▅", "▂", "█", "▃"], 1),
            "what to buy next": ("tent?", ["boots", "novel", "lamp"], 0)}
    _, panels = plt.subplots(3, 2, figsize=(6.6, 6.4))
    for ax, (use, (asks, items, best)) in zip(panels.flat, uses.items(), strict=True):
        size = 22 if use == "image" else 14
        for i, (x, item) in enumerate(zip(np.linspace(-1.4, 1.4, len(items)), items, strict=True)):
            colour, width = (plots.BLUE, 5) if i == best else ("#aab5bc", 1.2)
            ax.plot([0, x], [1, 0], color=colour, linewidth=width)
            ax.text(x, -0.12, item, ha="center", va="top", size=size, color=patches[i] if use == "image" else "black")
        ax.text(0, 1.1, asks, ha="center", size=size, weight="bold", color=patches[best] if use == "image" else plots.BLUE)
        ax.set(xlim=(-1.9, 1.9), ylim=(-0.6, 1.6))
        ax.set_title(use, color="#5f6871", fontsize=14)
        ax.axis("off")
    plt.show()
