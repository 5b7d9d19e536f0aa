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
