"""The figures of lesson 06: masking."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import attention, plots
from helpers.page import steps

FLOOR = np.log(20)  # nats a word: nobody predicts one of twenty words picked by dice for less


def two_windows():
    """The same text in training, where the next words are there, and in a chat window, where the next is not written yet."""
    _, ax = plt.subplots(figsize=(6.2, 3.3))
    text = "time flies like an arrow".split()
    for y, words, name in [(1.35, text, "in training"), (0, [*text[:3], "?"], "in a chat window")]:
        ax.text(-0.4, y + 0.62, name, va="center", fontsize=13, color=plots.GREY)
        for i, word in enumerate(words):
            colour, ground, line = (plots.RED, "white", "--") if word == "?" else (plots.BLUE, "#eef5fa", "-")
            ax.text(i, y, f" {word} " if word == "?" else word, ha="center", va="center", fontsize=14,
                    color=plots.RED if word == "?" else "black",
                    bbox={"boxstyle": "round,pad=0.35", "fc": ground, "ec": colour, "linestyle": line})
        for i in range(len(words) - 1):
            ax.annotate("", (i + 0.92, y + 0.22), (i + 0.08, y + 0.22), arrowprops={
                "arrowstyle": "-|>", "color": plots.ORANGE, "linewidth": 1.8, "connectionstyle": "arc3,rad=-0.45"})
    ax.set(xlim=(-0.5, 4.5), ylim=(-0.3, 2.1), xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    plt.show()


def losses(curves):
    """Curves of the loss over the ground below the floor, which is marked as impossible. ``curves``: {name: losses}."""
    _, ax = plt.subplots(figsize=(6.6, 4.4))
    ax.axhspan(0, FLOOR, color="#f7d9cc", linewidth=0)
    ax.axhline(FLOOR, color=plots.RED, linewidth=1.2, linestyle="--")
    ax.text(92, 1.62, "IMPOSSIBLE", fontsize=31, color=plots.RED, alpha=0.42, weight="bold", ha="center", va="center")
    ax.text(148, FLOOR - 0.09, "the floor: ln 20 = 3.0", fontsize=12, color=plots.RED, ha="right", va="top")
    places = [(29, 0.62), (60, 3.24)]
    for place, colour, (name, values) in zip(places, [plots.PURPLE, plots.BLUE], curves.items(), strict=False):
        ax.plot(values, color=colour, linewidth=3)
        ax.text(*place, name, color=colour, fontsize=14, weight="bold")
    ax.set(ylim=(0, 3.65), xlim=(0, 150))
    ax.set_title("Predicting words picked by dice", fontsize=13)
    ax.set_xlabel("steps of training", fontsize=13)
    ax.set_ylabel("loss, nats per word", fontsize=13)
    ax.tick_params(labelsize=12)
    plt.show()


def where_it_looks(weights):
    """The mean weights of a model as a map, with the diagonal dotted. ``weights``: ``(16, 16)``."""
    _, ax = plt.subplots(figsize=(5.6, 4.7))
    plots.heatmap(weights, range(16), ax=ax, limits=(0, 1), axis_names=(
        "query: this place predicts the next", "key: the place it looks at"))
    ax.plot([-0.5, 15.5], [-0.5, 15.5], color=plots.ORANGE, linewidth=1.5, linestyle=":")
    ax.set_xticks(range(0, 16, 3), range(0, 16, 3), rotation=0, ha="center", fontsize=12)
    ax.set_yticks(range(0, 16, 3), range(0, 16, 3), fontsize=12)
    ax.xaxis.label.set_size(12)
    ax.yaxis.label.set_size(12)
    plt.show()


def ways_to_hide(ways, keys):
    """The weights of one query as bars, after each way to hide its last key. ``ways``: {way: weights (4,)}."""
    _, panels = plt.subplots(2, 2, figsize=(7.2, 4.6), sharex=True, sharey=True)
    for ax, (way, weights) in zip(panels.flat, ways.items(), strict=True):
        plots.bars(keys, weights, ax=ax, colours=[*[plots.BLUE] * (len(keys) - 1), plots.ORANGE])
        ax.set_title(f"{way}: sum {weights.sum():.2f}", fontsize=13)
        ax.tick_params(labelsize=12)
    for ax in panels[1]:
        ax.set_xlabel("weight", fontsize=12)
    panels[0, 0].set(xlim=(0, 0.9), xticks=[0, 0.4, 0.8], ylim=(3.6, -0.6))  # the first key on top
    plt.show()


def mask_step_by_step():
    """The causal mask on invented scores of four words: scores and mask, minus infinity, weights."""
    words = "time flies like arrows".split()
    scores = np.array([[1.0, 2, 0, 1], [0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1]])
    causal = attention.causal_mask(4)
    masked = np.where(causal, scores, -np.inf)
    seen = causal.astype(int)
    steps.show(
        ("Scores and mask", [steps.grid(scores, "scores", words, words, decimals=0), "with",
                             steps.grid(seen, "mask, 1 = may attend", words, words, groups=seen)],
         "Queries are rows, keys are columns. Above the diagonal lies the future."),
        ("Hide", [steps.grid(scores, "scores", words, words, decimals=0), "→",
                  steps.grid(masked, "masked scores", words, words, decimals=0, groups=seen)],
         "Where the mask says no, the score becomes -∞."),
        ("Softmax", [steps.grid(masked, "masked scores", words, words, decimals=0, groups=seen), "→",
                     steps.grid(attention.softmax(masked), "weights", words, words, shade=True)],
         "Each row sums to 1, the future has weight 0, and “time” sees only itself."))


def x_rays(rays, leak):
    """How far each output of a model moves when a word is changed: blue where it may, orange where it reads the future.

    ``rays``: {name: movements (T, T), output down, changed word across}; ``leak``: {name: whether it leaks}.
    """
    _, panels = plt.subplots(3, 2, figsize=(5.6, 8.8))
    for ax, (name, moved) in zip(panels.flat, rays.items(), strict=True):
        strength = (moved / moved.max()) ** 0.3  # so that a faint movement is seen
        future = np.triu(np.ones(moved.shape, dtype=bool), k=1)
        colours = plt.get_cmap("Blues")(0.85 * strength)
        colours[future] = plt.get_cmap("Oranges")(0.25 + 0.65 * strength)[future]
        colours[moved <= 1e-6 * moved.max()] = (1, 1, 1, 1)
        ax.imshow(colours)
        ax.plot([-0.5, len(moved) - 0.5], [-0.5, len(moved) - 0.5], color=plots.GREY, linewidth=1, linestyle=":")
        ax.set_title(f"{name}\n{'leaks ✗' if leak[name] else 'shows no leak ✓'}", fontsize=13, loc="center",
                     color=plots.RED if leak[name] else plots.ink(plots.GREEN))
        ax.set(xticks=[], yticks=[])
    for ax in panels[:, 0]:
        ax.set_ylabel("output that moves", fontsize=12)
    for ax in panels[-1]:
        ax.set_xlabel("word that was changed", fontsize=12)
    plt.show()


def share_of_the_padding(words, without, masked):
    """What each word of a sentence looks at, as a bar cut into shares: its words, and the padding behind them (hatched).

    ``without``, ``masked``: weights ``(T, T)`` without a mask and with it; the first n of the T tokens are ``words``.
    """
    _, panels = plt.subplots(2, 1, figsize=(6, 4.8), sharex=True)
    tints = ["#0072B2", "#56B4E9", "#a9d5f2"]
    for ax, weights, title in zip(panels, (without, masked), ("no mask", "padding mask"), strict=True):
        for row, shares in enumerate(weights[:len(words)]):
            left = 0
            for key, share in enumerate(shares):
                pad = key >= len(words)
                ax.barh(row, share, left=left, height=0.72, color="#f3cf80" if pad else tints[key % 3], edgecolor="white",
                        hatch="//" if pad else "")
                if share > 0.09:
                    ax.text(left + share / 2, row, "<pad>" if pad else words[key], ha="center", va="center", fontsize=12,
                            color="white" if key == 0 else "black")
                left += share
        ax.set_title(title, fontsize=13)
        ax.set_yticks(range(len(words)), words, fontsize=13)
        ax.set(xlim=(0, 1), ylim=(len(words) - 0.5, -0.5), xticks=[])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    panels[1].set_xticks([0, 0.5, 1], ["0", "0.5", "1"], fontsize=12)
    panels[1].set_xlabel("share of the weight of each query", fontsize=12)
    plt.show()
