"""The figures of lesson 03: soft lookup, and where attention came from."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import attention, plots
from helpers.page import steps


def stairs_and_slope(temperature, hard_attention, soft_attention, keys, values, films):
    """Minutes answered while the wish turns from adventure to romance: hard as stairs, soft as a slope, and a ball on each.

    ``keys``: ``(4, 2)``; ``values``: ``(4, 1)``; the two functions are as in ``helpers.attention``.
    """
    turn = np.linspace(0, np.pi / 2, 361)
    wishes = np.stack([np.cos(turn), np.sin(turn)], axis=1)  # (361, 2)
    soft = [soft_attention(wish / temperature, keys, values)[0][0] for wish in wishes]
    hard = [hard_attention(wish, keys, values)[0] for wish in wishes]
    percent, here = 100 * turn / turn[-1], 322  # one of the 361 wishes
    _, ax = plt.subplots(figsize=(6.4, 5.6))
    ax.fill_between(percent, 60, hard, color="#eef1f4", lw=0)
    ax.plot(percent, hard, color="black", lw=2.4, label="hard: stairs")
    ax.plot(percent, soft, color=plots.BLUE, lw=4.5, label="soft: a slope")
    slope = (soft[here + 1] - soft[here - 1]) / (percent[here + 1] - percent[here - 1])
    x, up, down, steep = percent[here], hard[here], soft[here], abs(slope) > 0.05
    _short_arrow(ax, (x - 9, up), (x + 9, up), "<|-|>")
    if steep:
        _short_arrow(ax, (x, down), (x - 15, down - 15 * slope), "-|>")
    ax.plot(x, up, "o", color="black", markersize=14, zorder=5)
    ax.plot(x, down, "o", color=plots.BLUE, markersize=14, zorder=5)
    ax.text(x, up - 5, "which way?", fontsize=15, ha="center")
    ax.text(68, 104, "longer: this way" if steep else "flat here too", fontsize=15, color=plots.BLUE)
    for film, place in zip(films, [(2, 121), (29, 111), (51, 91), (79, 61.2)], strict=True):
        ax.text(*place, film, fontsize=12, color=plots.GREY)
    ax.set(xlim=(0, 101), ylim=(60, 125), xticks=[0, 50, 100])
    ax.set_xticklabels(["all adventure", "the wish turns →", "all romance"], fontsize=14)
    for label, side in zip(ax.get_xticklabels(), ["left", "center", "right"], strict=True):
        label.set_ha(side)
    ax.set_ylabel("answer: minutes", fontsize=14)
    ax.legend(fontsize=14, loc="upper right")


def _short_arrow(ax, start, end, style):
    ax.annotate("", end, start, zorder=4, arrowprops={
        "arrowstyle": f"{style},head_width=0.4,head_length=0.8", "color": plots.ORANGE, "lw": 3.5,
        "shrinkA": 0, "shrinkB": 0})


def desk(names, weights, words):
    """What a help desk answers: a bar for each name, ``(n,)`` weights, above them the words that were heard."""
    heard = " ".join(words) or "nothing that counts, so all weights are equal"
    _, ax = plt.subplots(figsize=(6.4, 0.36 * len(names) + 1.3))
    plots.bars(names, weights, ax=ax, title=f"heard: {heard}", xlabel="weight",
               colours=[plots.BLUE if weight == weights.max() else "#b8c4cc" for weight in weights])
    ax.tick_params(labelsize=12)
    ax.set_xlim(0, 1.1)
    plt.show()


def one_lookup(H, source, target):
    """A decoder asks an encoder, in seven steps. ``H``: ``(3, 2)``, the encoder's states; the decoder's are invented."""
    grid = steps.grid
    S = np.array([[-0.5, 0.9], [-0.9, -0.6], [0.9, -0.5]])  # (3, 2): the decoder's states
    scores = S @ H.T  # (3, 3)
    w = attention.softmax(scores)
    context = w @ H
    shares = w[0][:, None] * H
    best = w == w.max(axis=1, keepdims=True)
    steps.show(
        ("The encoder has read", [grid(H, "H: keys, and values", source)],
         "One state for each word, and all of them are kept."),
        ("The decoder asks", [grid(S[0], "query s₁", mark=True)],
         "Its first state is the query. It is about to write the first word."),
        ("Scores", [grid(H, "keys", source), "·", grid(S[0][:, None], "s₁"), "=",
                    grid(scores[0][:, None], "scores", source)],
         "The dot product of the query with each key."),
        ("Weights", [grid(scores[0], "scores", columns=source), "softmax →",
                     grid(w[0], "weights", columns=source, shade=True)],
         "Positive, and they sum to 1. area has the largest."),
        ("Weight times value", [grid(w[0][:, None], "weights", source, shade=True), "×", grid(H, "values"), "=",
                                grid(shares, "weighted rows", source)],
         "How much of each state goes into the context."),
        ("Context", [grid(shares, "weighted rows", source), "sum →", grid(context[0], "c₁", mark=True), "with",
                     grid(S[0], "s₁"), "→", grid("zone", "word")],
         "The first word is written from the context and the state."),
        ("The same at every word", [grid(S, "queries", ["s₁", "s₂", "s₃"]), "→",
                                    grid(w, "weights", target, source, best, True), "→",
                                    grid(context, "contexts", ["c₁", "c₂", "c₃"])],
         "s₂ has read zone, so it asks for something else. Each word gets its own context."))


def forgetting(lengths, with_attention, without):
    """The share of right words against the length of the sentence, with attention and without."""
    _, ax = plt.subplots(figsize=(6.4, 4.4))
    for shares, name, colour, marker in [(with_attention, "with attention", plots.BLUE, "o"),
                                         (without, "without", plots.ORANGE, "s")]:
        ax.plot(lengths, shares, marker=marker, color=colour, linewidth=3, markersize=8)
        ax.text(12.2, shares[-1], name, color=plots.ink(colour), fontsize=13, va="center")
    ax.axhline(1 / 12, color=plots.GREY, linewidth=1, linestyle="--")
    ax.text(2, 0.1, "a random word", color=plots.GREY, fontsize=12)
    ax.axvspan(8.3, 12, color="#f3f6f8", zorder=0)
    ax.text(8.45, 0.2, "longer than in training", fontsize=12)
    ax.set(xlim=(1.7, 15.4), ylim=(0, 1.04), xticks=lengths, title="One vector forgets long sentences (100 steps)")
    ax.set_xlabel("words in the sentence", fontsize=12)
    ax.set_ylabel("share of words right", fontsize=12)
    plt.show()


def alignments(looks, phrase):
    """Where two translators look, word by word, with a red frame around the word being translated.

    ``looks``: {who asks: (the words written, weights ``(6, 6)``)}; ``phrase``: the six words read.
    """
    figure, panels = plt.subplots(1, 2, figsize=(6.6, 3.8))
    for ax, (title, (written, weights)) in zip(panels, looks.items(), strict=True):
        plots.heatmap(weights, written, phrase, ax=ax, limits=(0, 1), numbers=False, colorbar=False,
                      axis_names=("", ""))
        ax.set_title(title, fontsize=14)
        ax.tick_params(labelsize=13, length=0)
        if ax is panels[1] and written == list(looks.values())[0][0]:  # the same words as on the left
            ax.set_yticklabels([])
        for row in range(6):
            ax.add_patch(plt.Rectangle((4.5 - row, row - 0.5), 1, 1, fill=False, edgecolor=plots.RED, linewidth=2.5))
    figure.suptitle("In a red frame: the word that is being translated", fontsize=14, color=plots.RED)
    plt.show()
