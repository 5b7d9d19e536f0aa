"""The figures of lesson 13: run a real pretrained model with your own code."""

import re

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.nn import functional as F

from helpers import plots
from helpers.course_text import stems
from helpers.page import show
from notebooks.figures.lesson12 import arrows_to_nearest


def heap_of_notes(question, notes, cosine):
    """The notes as dots heaped up over their cosine with a question; the nearest is written out. ``cosine``: ``(n,)``."""
    _, ax = plt.subplots(figsize=(6.4, 3.1))
    best = int(cosine.argmax())
    heap = {}
    for i in cosine.argsort().tolist():
        column = round(float(cosine[i]) / 0.018)
        heap[column] = heap.get(column, 0) + 1
        if i != best:
            ax.plot(0.018 * column, heap[column], "o", markersize=10, color="#aab6bf")
    ax.plot(cosine[best], 1, "o", markersize=16, color=plots.ORANGE)
    ax.plot([cosine[best]] * 2, [1.6, 4.7], color=plots.ORANGE, linewidth=1.5)
    winner = notes[best].split()
    middle = len(winner) // 2 + 1
    ax.text(float(cosine[best]) + 0.01, 4.8, " ".join(winner[:middle]) + "\n" + " ".join(winner[middle:]), fontsize=14,
            ha="right", va="bottom")
    ax.set(ylim=(0.3, 6.4), yticks=[], xlim=(-0.15, 0.4))
    ax.set_xlabel("cosine of question and note", fontsize=14)
    ax.set_title(question, fontsize=14)
    ax.tick_params(labelsize=13)
    ax.spines["left"].set_visible(False)
    plots.as_written(ax.figure)
    plt.show()


def names(named, theirs):
    """A table of our names beside the file's. ``named``: {our name: tensor}; ``theirs``: the file's, in the same order."""
    theirs_of = dict(zip(named, theirs, strict=True))
    some = ["word", "position", "token_type", "norm.gain", "norm.bias",
            *(f"0.{name}" for name in ("W_q", "b_q", "W_o", "norm1.gain", "W1", "W2"))]
    show.table(["our name", "shape in the file", "name in the file"],
               [[name, " × ".join(f"{n:,}" for n in named[name].shape), theirs_of[name]] for name in some],
               caption="The embedding, and some of layer 0")


def gelu():
    """Above, the share of the bell curve below 1, Φ(1); below, the GELU, x Φ(x), beside the ReLU."""
    _, (top, low) = plt.subplots(2, 1, figsize=(5.4, 4.8), height_ratios=[1, 1.5])
    x = torch.linspace(-3.2, 3.2, 400)
    bell = torch.exp(-x**2 / 2) / (2 * torch.pi) ** 0.5
    top.plot(x, bell, color="black", linewidth=1.5)
    top.fill_between(x[x <= 1], bell[x <= 1], color=plots.SKY, alpha=0.6, linewidth=0)
    top.text(-0.15, 0.13, "Φ(1)\n= 0.84", ha="center", va="center", fontsize=16)
    top.set(xlim=(-3.2, 3.2), xticks=[-1, 0, 1], yticks=[], ylim=(0, None))
    top.set_title("84 % of the bell is below 1 …", fontsize=14)
    top.spines["left"].set_visible(False)
    low.plot(x, F.relu(x), color=plots.GREY, linewidth=2, linestyle="--")
    low.plot(x, F.gelu(x), color=plots.BLUE, linewidth=3.5)
    low.plot([1, -1], F.gelu(torch.tensor([1.0, -1.0])), "o", color=plots.ORANGE, markersize=10, zorder=3)
    low.text(1.2, 0.62, "0.84", fontsize=14)
    low.text(-1.0, -0.68, "\N{MINUS SIGN}0.16", fontsize=14, ha="center")
    low.text(2.25, 1.6, "GELU", color=plots.BLUE, fontsize=15)
    low.text(1.35, 1.75, "ReLU", color=plots.GREY, fontsize=15, ha="right")
    low.axhline(0, color="black", linewidth=0.8, zorder=0)
    low.set(xlim=(-3.2, 3.2), ylim=(-0.8, 3.2), xticks=[-3, -1, 0, 1, 3], yticks=[0, 1, 2, 3])
    low.set_title("… so 1 becomes 0.84", fontsize=14)
    for ax in (top, low):
        ax.tick_params(labelsize=13)
    plt.show()


TWINS = {  # name: (label, colour, its label moved by a factor)
    "norms before, not after": ("pre-norm", plots.RED, 1.0),
    "scores not scaled": ("no scaling", plots.PURPLE, 0.85),
    "no positions": ("no positions", plots.ORANGE, 3.0),
    "W_o of layer 3 not turned": ("W_o of layer 3\nnot turned", "black", 0.14),
    "GELU with tanh": ("GELU with tanh", "#3f7d20", 1.7),
    "eps = 1e-5": ("eps = 1e-5", plots.GREY, 0.6),
}


def sea_of_rounding(yours, heights):
    """How far from the reference after each layer: yours in the sea of rounding, each faulty twin above it.

    ``yours``: ``(7,)``; ``heights``: {name of a twin: seven numbers}.
    """
    _, ax = plt.subplots(figsize=(6.6, 6.4))
    ax.axhspan(1e-8, 1e-5, color="#cfe6f4", zorder=0, linewidth=0)
    wave = np.linspace(-0.3, 9, 400)
    ax.fill_between(wave, 1e-5, 1e-5 * np.exp(0.28 * np.sin(4.5 * wave) + 0.28), color="#cfe6f4", linewidth=0, zorder=0)
    ax.text(0.05, 2e-8, "sea of rounding", color="#33658a", fontsize=17, style="italic", va="bottom")
    depth = np.arange(7)
    for name, values in heights.items():
        label, colour, moved = TWINS[name]
        ax.plot(depth, values, "-o", color=colour, linewidth=2.2, markersize=5.5)
        ax.text(6.2, values[-1] * moved, label, color=plots.ink(colour), fontsize=14, va="center")
    ax.plot(depth, yours, "-o", color=plots.BLUE, linewidth=5, markersize=10)
    ax.text(6.2, yours[-1], "yours", color=plots.BLUE, fontsize=19, weight="bold", va="center")
    ax.set(yscale="log", ylim=(1e-8, 2e3), xlim=(-0.3, 9), xticks=depth, yticks=[1e-6, 1e-4, 1e-2, 1, 100])
    ax.set_yticklabels(["0.000001", "0.0001", "0.01", "1", "100"])
    ax.minorticks_off()
    ax.set_xticklabels(["words", *map(str, range(6))])
    ax.set_xlabel("after layer", fontsize=14, loc="left")
    ax.set_title("How far from the real model?", fontsize=16)
    ax.tick_params(labelsize=13)
    plt.show()


def partners(texts, nearest):
    """From each text an arrow to the nearest one, on the left by one measure and on the right by another: blue to its
    partner, red to another. Words that pairs share are red.

    ``texts``: 2n strings, partners in neighbouring places; ``nearest``: {measure: 2n row numbers}, two of them.
    """
    figure, ax = plt.subplots(figsize=(6.4, 5.2), layout="none")
    figure.subplots_adjust(0, 0, 1, 1)
    pair = np.arange(len(texts)) // 2
    ys = np.arange(len(texts)) + 0.7 * pair
    ax.set(xlim=(-1.6, 4.8), ylim=(ys[-1] + 1.8, -1.7))
    ax.axis("off")
    for text, own, y in zip(texts, pair, ys, strict=True):
        others = {word for other, n in zip(texts, pair, strict=True) if n != own for word in other.split()}
        x = 0.0
        for word in text.split():
            colour = plots.RED if word in others else "black"
            drawn = plots.as_written(ax.text(x, y, word, color=colour, fontsize=14, va="center"))
            x = drawn.get_window_extent().transformed(ax.transData.inverted()).x1 + 0.08
        if x < 2.7:  # from the end of a short text to its arrow on the right
            ax.plot([x, 2.85], [y, y], color=plots.GREY, linestyle=":", linewidth=1)
    for (name, rows), x, side in zip(nearest.items(), (-0.12, 2.95), ("left", "right"), strict=True):
        arrows_to_nearest(ax, ys, rows, pair, (x, x - 0.36))  # the red ones further out, so that every head is seen
        edge = -1.5 if side == "left" else 4.7
        right = sum(pair[i] == pair[j] for i, j in enumerate(rows))
        ax.text(edge, -1.2, name, fontsize=14, weight="bold", ha=side, va="center")
        ax.text(edge, ys[-1] + 1.3, f"{right} of {len(rows)} partners found", fontsize=14, ha=side, va="center")
    plots.as_written(figure)
    plt.show()


def right_shelves(right, chance):
    """A bar for each way: how many of forty new questions come to the right shelf. ``right``: {way: number}."""
    _, ax = plt.subplots(figsize=(6.6, 3.2))
    ax.barh(list(right), list(right.values()), height=0.62, color=[plots.BLUE, *["#b8c4cc"] * (len(right) - 1)])
    for place, n in enumerate(right.values()):
        ax.text(max(n, chance) + 0.5, place, str(n), va="center", fontsize=14)  # beside the dotted line, not on it
    ax.axvline(chance, color="black", linestyle=":", linewidth=1.5)
    ax.text(chance, 1.01, "chance", fontsize=13, ha="center", va="bottom", transform=ax.get_xaxis_transform())
    ax.invert_yaxis()
    ax.set(xlim=(0, 40), xticks=[0, 10, 20, 30, 40])
    ax.set_title("New questions on the right shelf, of 40", fontsize=14, pad=22)
    ax.tick_params(labelsize=13)
    plt.show()


def far_apart(sets, ranks):
    """A table of questions whose text one search puts first and the other far down: three of each kind.

    ``sets``: {kind: (questions, texts, numbers of the right texts)}; ``ranks``: {(search, kind): places of these},
    the encoder's first, then those by keywords.
    """
    by = list(dict.fromkeys(search for search, _ in ranks))[:2]
    rows = []
    for kind, at_once, missed in [("no shared word", 0, 1), ("about the course", 1, 0)]:
        asked, passages, own = sets[kind]
        places = [ranks[search, kind] for search in by]
        furthest = (places[missed] * (places[at_once] == 1)).argsort(descending=True, stable=True)
        for i in furthest[:3]:
            sentences = re.split(r"(?<=[.!?]) |(?<=[.!?]\)) ", passages[own[i]])
            nearest = max(sentences, key=lambda sentence: len({*stems(sentence)} & {*stems(asked[i])}))
            rows.append([asked[i], nearest, *(str(int(place[i])) for place in places)])
    show.table(["question", "from its text", "rank by encoder", "rank by keywords"], rows,
               caption="First by one search, furthest down by the other: three of each kind")
