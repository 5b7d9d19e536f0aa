"""The figures of lesson 17: inside a chat model."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from helpers import inside, plots
from helpers.page import steps

INK = plots.ink(plots.ORANGE)
NIGHT, GLOW = "#0b1420", "#fff6d8"
FRUIT, NUMBERS = ["plum", "fig", "pear", "plum"], np.eye(3)[[0, 1, 2, 0]]  # (4, 3): one-hot


def where_attention_goes(weights, tokens=48):
    """The first tokens of a text with an arc for each weight, the mean over all heads; and by layer who gets the weight.

    ``weights``: ``(layers, h, T, T)``.
    """
    _, (text, ax) = plt.subplots(2, 1, figsize=(6.6, 6), height_ratios=[1, 1.25])
    mean = weights.mean((0, 1))[:tokens, :tokens].numpy()  # query, key
    for query, key in zip(*np.nonzero(np.tril(mean, -1) > 0.02), strict=True):
        plots.arc(text, query, key, 0.2, color=plots.ORANGE if key == 0 else "#8d979f",
                  linewidth=4 * mean[query, key], alpha=0.75)
    text.plot(range(tokens), [0] * tokens, "o", color="#555555", markersize=4)
    text.plot(0, 0, "o", color=plots.ORANGE, markersize=15)
    text.text(0, -1.9, "the first token", fontsize=13, color=INK, ha="left")
    second = 1 + int(np.argmax(np.tril(mean, -2)[:, 1:].sum(0)))  # not counting what its neighbour sends it
    text.annotate(f"token {second}", (second, 0), (tokens / 2, -1.9), fontsize=13, ha="center", color="#333333",
                  va="baseline", arrowprops={"arrowstyle": "-", "color": "#555555"})
    text.text(tokens - 1, -1.9, f"token {tokens - 1}", fontsize=13, color="#333333", ha="right")
    text.set(xlim=(-2, tokens + 0.5), ylim=(-2.2, 0.205 * tokens))
    text.axis("off")
    queries = weights[:, :, 2:]  # from token 2 on each has all three
    shares = [queries[..., 0], weights.diagonal(0, -2, -1)[..., 2:], weights.diagonal(-1, -2, -1)[..., 1:]]
    shares = np.stack([share.mean((1, 2)).numpy() for share in shares])  # (3, layers)
    layers, floor = np.arange(shares.shape[1]), np.zeros(shares.shape[1])
    colours = [plots.ORANGE, plots.BLUE, plots.SKY, "#e6eaed"]
    for share, colour in zip([*shares, 1 - shares.sum(0)], colours, strict=True):
        ax.fill_between(layers, floor, floor + share, color=colour, linewidth=0)
        floor = floor + share
    ax.text(21, 0.22, "to the first token", fontsize=14, ha="center")
    ax.text(5.5, 0.5, "to all the others", fontsize=14, ha="center")
    ax.annotate("to itself", (20, shares[0][20] + shares[1][20] / 2), (11.4, 0.78), fontsize=12, ha="right", va="center",
                color=plots.BLUE, arrowprops={"arrowstyle": "-", "color": plots.BLUE})
    ax.annotate("to the one before", (20, shares[:2, 20].sum() + shares[2][20] / 2), (11.4, 0.91), fontsize=12, ha="right",
                va="center", color=plots.ink(plots.SKY), arrowprops={"arrowstyle": "-", "color": plots.ink(plots.SKY)})
    ax.set(xlim=(0, layers[-1]), ylim=(0, 1), xticks=range(0, 30, 5), yticks=[0, 0.5, 1])
    ax.set_xlabel("layer, mean of its nine heads", fontsize=13)
    ax.set_ylabel("share of the weight", fontsize=13)
    plt.show()


def how_copying_works():
    """Step by step: a head marks each word with the word before it, and another looks for the present word's mark."""
    back = np.eye(4, k=-1)
    back[0, 0] = 1
    marks = np.vstack([np.zeros(3), NUMBERS[:-1]])  # what the word before was
    steps.show(
        ("The text", [steps.grid(FRUIT, "words", groups=[1, 0, 0, 1])],
         "Which word comes after the last plum? Last time it was fig."),
        ("The vectors before", [_stream(np.zeros((4, 3)))],
         "Each vector says which word it is. The part for the mark is empty."),
        ("A previous-token head looks", [steps.grid(back, "weights", FRUIT, FRUIT, shade=True, decimals=0)],
         "Each word looks at the one before it. The first has only itself, and gets no mark here."),
        ("It writes marks", [_stream(marks)],
         "It writes the word before into the part for the mark. Fig: after plum."),
        ("An induction head looks for the mark", _lookup(marks),
         "The last plum asks: who came after plum? Fig did. It gets most weight, and is copied."))


def marks_one_place_too_late():
    """Step by step: what the induction head of `how_copying_works` copies when every mark arrives one place too late."""
    marks = np.vstack([np.zeros((2, 3)), NUMBERS[[0, 2]]])  # in the first round alone
    steps.show(
        ("The test: marks one place too late", [_stream(marks)],
         "Now pear carries the mark that belongs to fig. The words have not changed."),
        ("What should follow", _lookup(marks),
         "If both steps are right, pear is copied instead of fig."))


def _stream(marks):
    """The vectors of the four words with their marks ``(4, 3)``, as a grid (4, 6)."""
    parts = [*FRUIT[:3], *(f"…{word}" for word in FRUIT[:3])]
    return steps.grid(np.hstack([NUMBERS, marks]), "in the stream (…plum: comes after plum)", FRUIT, parts, decimals=0,
                      groups=[[1] * 3 + [2] * 3] * 4, mark=np.pad(marks > 0, ((0, 0), (3, 0))))


def _lookup(marks):
    """What the last word finds by the marks ``(4, 3)``: its scores, its weights and the word copied."""
    scores = 4 * marks @ NUMBERS[-1]  # (4,)
    weights = np.exp(scores) / np.exp(scores).sum()
    return [steps.grid(scores, "scores of the last plum", columns=FRUIT, decimals=0), "softmax →",
            steps.grid(weights, "weights", columns=FRUIT, shade=True), "→",
            steps.grid(weights @ NUMBERS, "copied", columns=FRUIT[:3], shade=True)]


def who_looks_where(induction, previous, weights):
    """What the best induction head and the best previous-token head look at in a text that comes twice, and below it both
    scores of all heads.

    ``induction``, ``previous``: scores ``(layers, h)``; ``weights``: ``(layers, B, h, T, T)``, of which the first text is
    drawn.
    """
    T = weights.shape[-1]
    _, panels = plt.subplots(3, 1, figsize=(5.2, 7.8), height_ratios=[1.2, 0.75, 1.5])
    *texts, ax = panels
    for text, scores, height, colour, ink, said in [
            (texts[0], induction, 0.085, plots.BLUE, plots.BLUE, "to what came next\nthe last time"),
            (texts[1], previous, 1.1, plots.ORANGE, INK, "one token back")]:
        best = layer, head = inside.ranked(scores)[0]
        seen = weights[layer][0, head]  # (T, T)
        for query, key in (seen > 0.2).nonzero().tolist():
            if 0 < key < query:  # token 0 is the sink
                plots.arc(text, query, key, height, color=colour, alpha=0.6, linewidth=2 * float(seen[query, key]))
        text.plot(range(T), [0] * T, "o", color="#555555", markersize=3)
        text.set_title(f"head {best}: {said}", color=ink, fontsize=14)
        for start, words in [(0, f"{T // 2} random tokens"), (T // 2, f"the same {T // 2} again")]:
            text.plot([start, start + T // 2 - 1], [-0.45] * 2, color="#555555", linewidth=1)
            text.text(start + T / 4 - 0.5, -0.65, words, ha="center", va="top", fontsize=13, color="#333333")
        text.set(xlim=(-1.5, T + 0.5), ylim=(-1.7, 3.9 if height < 1 else 1.5))
        text.axis("off")
        layers = np.arange(30)[:, None] + np.linspace(-0.3, 0.3, 9)  # the heads of a layer side by side
        ax.scatter(layers, scores.numpy(), s=24, color=colour, marker="o" if height < 1 else "D", linewidth=0)
        side = 1 if height < 1 else -1
        ax.text(layers[best] + 0.5 * side, scores[best] + 0.02, str(best), color=ink, fontsize=13,
                ha="left" if side > 0 else "right")
    ax.text(25, 0.6, "what came\nnext", color=plots.BLUE, fontsize=13)
    ax.text(2.7, 0.66, "one token\nback", color=INK, fontsize=13)
    ax.set_title("how much each of the 270 heads does so", fontsize=14)
    ax.set(xlim=(-1, 31), ylim=(-0.03, 1.1), xticks=range(0, 30, 5), yticks=[0, 0.5, 1])
    ax.tick_params(labelsize=13)
    ax.set_xlabel("layer; nine heads side by side", fontsize=13)
    ax.set_ylabel("score", fontsize=13)
    plt.show()


def first_guesses(right):
    """A dot for each token of a text that comes twice, the second time below the first: blue where it was the likeliest one.

    ``right``: {what was taken away: booleans (T - 1,)}, for a text of T tokens whose second half repeats the first.
    """
    _, ax = plt.subplots(figsize=(6, 1.15 * len(right) + 0.3))
    half = (len(next(iter(right.values()))) + 1) // 2
    for group, (name, hits) in enumerate(right.items()):
        y, hits = 3.6 * group, hits.tolist()
        ax.text(-0.5, y, f"taken away: {name}", va="center", fontsize=14, weight="bold")
        for row, said, part in [(y + 1.1, "first time", [False] + hits[:half - 1]), (y + 2, "again", hits[half - 1:])]:
            ax.text(-0.8, row, said, ha="right", va="center", fontsize=13)
            colours = [plots.BLUE if hit else "#d5dadd" for hit in part]
            ax.scatter(range(half), [row] * half, s=42, linewidth=0, color=colours)
        ax.text(half + 0.6, y + 2, f"{sum(hits[half - 1:])} right", va="center", fontsize=14, weight="bold")
    ax.set(xlim=(-8, half + 6.5), ylim=(3.6 * len(right) - 1, -0.8))
    ax.axis("off")
    plt.show()


def where_paris_comes_back(by_place, words):
    """A track for each word and a stop for each layer, as large as the effect of the state put there; the way of the best.

    ``by_place``: effects ``(layers, places)``; ``words``: their names.
    """
    best = by_place.argmax(dim=1).tolist()  # a place for each layer
    _, ax = plt.subplots(figsize=(7.6, 3.6))
    for place, word in enumerate(words):
        ax.plot([0, 29], [place, place], color="#dfe3e6", linewidth=5, zorder=1, solid_capstyle="round")
        ax.text(-0.9, place, word, ha="right", va="center", fontsize=15)
        for layer, effect in enumerate(by_place[:, place].tolist()):
            ax.scatter(layer, place, s=12 + 90 * max(0, effect), color="white", linewidth=1.8, zorder=4,
                       edgecolor="black" if effect > 0.5 else "#b4bbc2")
    ax.plot(range(30), best, color=plots.ORANGE, linewidth=9, zorder=3, solid_joinstyle="round")
    for layer in range(29):
        if best[layer] != best[layer + 1]:
            ax.text(layer, best[layer] - 0.5, f"crosses in layer {layer}", ha="right", fontsize=14, color=INK, va="center")
    ax.text(29.8, best[-1], "Paris", va="center", fontsize=15, weight="bold", color=INK)
    ax.set(xlim=(-0.6, 33), ylim=(4.5, -0.9), xticks=range(0, 30, 5), yticks=[])
    ax.set_title("Put the state of France at one stop: where does Paris come back?", fontsize=14)
    ax.set_xlabel("layer that it goes into", fontsize=13)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    plt.show()


def night_sky(by_head, words):
    """A dot for each head at each word, the larger and brighter the more what it brought there brings Paris back.

    ``by_head``: effects ``(places, layers, h)``; ``words``: the names of the five places.
    """
    plots.as_drawn(night(by_head, words))


def night(by_head, words, named=True):
    """The figure of `night_sky`. The brightest dot gets its glow, and if ``named`` its name, where the effect is above a
    half."""
    figure, ax = plt.subplots(figsize=(7.6, 5.4), facecolor=NIGHT)
    places, layers, heads = np.indices(by_head.shape).reshape(3, -1)
    light = np.clip(by_head.numpy().ravel(), 0, None)  # an effect below 0 stays dark
    rows = 11 * places + 5 * (places == len(words) - 1) + heads
    ax.scatter(layers, rows, s=11 + 90 * light, c=light, cmap=_glow(), vmin=0, vmax=1, linewidth=0)
    place, layer, head = np.unravel_index(by_head.argmax(), by_head.shape)
    top = rows[light.argmax()]
    if light.max() > 0.5:
        for size in (200, 480, 960, 1750):
            ax.scatter(layer, top, s=size, color="#ffb000", alpha=0.13, linewidth=0)
    if named and light.max() > 0.5:
        ax.annotate(f"layer {layer}, head {head}: effect {light.max():.2f}", (layer, top), (layer - 2, 44.9), color=GLOW,
                    fontsize=16, ha="right", va="center", arrowprops={"arrowstyle": "-", "color": GLOW, "linewidth": 1.2})
    ax.set_yticks([4, 15, 26, 37, 53], words, fontsize=15, color="white")
    ax.set_xticks(range(0, 30, 5), range(0, 30, 5), fontsize=13, color="white")
    ax.set(facecolor=NIGHT, xlim=(-0.8, 29.8), ylim=(59.5, -1.5))
    ax.set_xlabel("layer; the nine heads of a layer are below each other", fontsize=13, color="white")
    ax.set_title("1,350 places to reach in: which turns Rome into Paris?", fontsize=15, color="white")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return figure


def _glow():
    """From a dim star to a bright one."""
    return LinearSegmentedColormap.from_list("glow", ["#33475f", "#a8761a", "#ffb000", GLOW])


def rank_of_paris(rank, said):
    """How the answer rises through the layers: its rank among all tokens at the last word, asked about France or another.

    ``rank``: ``(layers + 1, questions)``, for the input and after each layer, France first; ``said``: the tokens that come
    first after the last few layers, with France.
    """
    _, ax = plt.subplots(figsize=(7, 4.8))
    layers = np.arange(len(rank)) - 1  # -1 is the input
    rank = rank.numpy()
    ax.plot(layers, rank[:, 1:], color="#b4bbc2", linewidth=1.3)
    ax.plot(layers, rank[:, 0], color=plots.ORANGE, linewidth=4, zorder=3)
    ax.axvspan(22, 23, color=plots.ORANGE, alpha=0.15, linewidth=0)
    ax.text(22.3, 14, "layer 23,\nwith head (23, 4)", fontsize=13, color=INK, ha="right", va="center")
    for row, word in zip(range(len(rank) - len(said), len(rank)), said, strict=True):
        ax.plot(layers[row], rank[row, 0], "o", color=plots.ORANGE, markersize=8, zorder=4)
        plots.as_written(ax.annotate(word.strip(), (layers[row], rank[row, 0]), (10, 6), fontsize=12,
                                     textcoords="offset points", va="center", color=INK, weight="bold"))
    ax.text(8, 1500, "asked about France", fontsize=14, color=INK, ha="center")
    ax.text(8, 9000, "asked about eleven others", fontsize=14, color="#5c6770", ha="center")
    ax.set_yscale("log")
    ax.set(xlim=(-1.5, 32), ylim=(20_000, 0.75), xticks=[-1, 4, 9, 14, 19, 24, 29])
    ax.set_xticklabels(["input", *range(4, 30, 5)])
    ax.set_yticks([1, 10, 100, 1000, 10_000], ["first", "10th", "100th", "1,000th", "10,000th"], fontsize=12)
    ax.set_xlabel("read after layer", fontsize=13)
    ax.set_title("The place of Paris among 49,152 tokens", fontsize=14)
    plt.show()
