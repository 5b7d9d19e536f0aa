"""The figures of lesson 14: efficient attention."""

import math

import matplotlib.pyplot as plt
import numpy as np
import torch

from helpers import attention, plots
from helpers.page import steps


def two_waits(slow, fast):
    """When each token of an answer is there, with everything read again and with the cache: two rows of dots.

    ``slow``, ``fast``: the time of each token, in seconds since the question.
    """
    _, ax = plt.subplots(figsize=(6.6, 2.5))
    for y, name, stamps, colour in [(1, "everything\nread again", slow, plots.GREY),
                                    (0, "with\nthe cache", fast, plots.ORANGE)]:
        ax.plot([0, stamps[-1]], [y, y], color=colour, linewidth=2, zorder=0)
        ax.scatter(stamps, [y] * len(stamps), s=90, color=colour)
        ax.text(-0.02 * slow[-1], y, name, ha="right", va="center", fontsize=13, color=plots.ink(colour))
    ax.set(xlim=(0, 1.02 * slow[-1]), ylim=(-0.5, 1.5), yticks=[])
    ax.set_xlabel("seconds", fontsize=13)
    ax.set_title("When each of the seven tokens arrives", fontsize=14)
    ax.spines["left"].set_visible(False)
    plt.show()


def prefill_and_decode():
    """Steps: *bears won the* is read at once, its keys and values stay, and *game* attends with one row of scores."""
    words = "bears won the game".split()
    Q = np.array([[1, 0], [0, 1], [2, 0], [1, 2.0]])  # (T, d_k)
    K = np.array([[2, 1], [0, 2], [1, 0], [1, 1.0]])
    V = np.array([[1, 0], [0, 1], [0, 0], [0, 0.0]])
    scores = np.where(np.tri(4, dtype=bool), Q @ K.T / np.sqrt(2), -np.inf)
    weights = attention.softmax(scores)
    output = weights @ V
    prompt, new, last = words[:3], words[3:], np.arange(4)[:, None] == 3

    def projected(rows, names):
        return [steps.grid(M[rows], name, names if name == "Q" else None, decimals=0)
                for name, M in [("Q", Q), ("K", K), ("V", V)]]

    def cached(rows, names, mark=False):
        return [steps.grid(M[rows], f"{name} cache", names if name == "K" else None, mark=mark, groups=1,
                           decimals=0)
                for name, M in [("K", K), ("V", V)]]

    steps.show(
        ("Prefill: project", projected(slice(3), prompt), "The prompt is there: three rows at once."),
        ("Prefill: attend", [steps.grid(scores[:3, :3], "Q Kᵀ / √2, masked", prompt, prompt), "→",
                             steps.grid(weights[:3, :3], "weights", columns=prompt, shade=True), "· V =",
                             steps.grid(output[:3], "output")],
         "The output says how much of bears and of won is read. Its last row leads to game."),
        ("Keep", cached(slice(3), prompt), "Keys and values stay in the cache. The queries can go."),
        ("Decode: project", projected(slice(3, 4), new), "One new token, so one row each."),
        ("Decode: append", cached(slice(4), words, mark=last), "Its key and its value join the cache."),
        ("Decode: attend", [steps.grid(scores[3], "q Kᵀ / √2", new, words), "→",
                            steps.grid(weights[3], "weights", columns=words, shade=True), "· V =",
                            steps.grid(output[3], "output", mark=True)],
         "One row of scores over four keys. No mask: nothing later is in the cache."),
        ("Without a cache", [steps.grid(weights, "weights", words, words, mark=last, shade=True), "· V =",
                             steps.grid(output, "output", mark=last)],
         "The last row is the same. The three rows above it are computed again for nothing."))


def narrow_place(bandwidth, arithmetic):
    """The large slow memory of a GPU, the small fast one and the arithmetic: areas and widths of the pipes are to scale.

    ``bandwidth``: of the thin pipe, in TB a second; ``arithmetic``: trillions of multiply-adds a second.
    """
    _, ax = plt.subplots(figsize=(6.6, 4.6))
    ax.add_patch(plt.Rectangle((0, -1.7), 3.4, 3.4, linewidth=2, ec=plots.GREY, fc="#e4e4e4"))  # 40 GB
    speck = 3.4 / math.sqrt(40_000 / 20)  # the side of 20 MB
    broad = 2.4  # of the pipe of 19 TB a second
    thin = broad * bandwidth / 19
    for start, end, width in [(3.43, 6, thin), (6.23, 7.9, broad)]:
        ax.add_patch(plt.Rectangle((start, -width / 2), end - start, width, color=plots.ORANGE, linewidth=0))
    ax.add_patch(plt.Rectangle((6.115 - speck / 2, -speck / 2), speck, speck, color="black", linewidth=0))
    ax.plot(9.4, 0, "o", markersize=112, color="#dcebf5", markeredgecolor=plots.BLUE, markeredgewidth=2)
    for place, words, to in [((4.75, -1.35), f"all comes\nthrough here:\n{bandwidth} TB\na second", (4.8, -thin / 2)),
                             ((6.115, 1.9), "fast memory\n20 MB", (6.115, speck / 2))]:
        ax.annotate(words, to, place, ha="center", va="center", fontsize=14, arrowprops={"arrowstyle": "-", "lw": 1.2})
    for x, y, words in [(1.7, 0, "slow memory\n40 GB"), (7.07, 0, "19 TB\na second"), (9.4, 1.75, "arithmetic"),
                        (9.4, 0, f"{arithmetic} trillion\nmultiply-adds\na second")]:
        ax.text(x, y, words, ha="center", va="center", fontsize=14)
    ax.set(xlim=(-0.1, 10.9), ylim=(-2.1, 2.3), aspect="equal")
    ax.axis("off")
    plt.show()


def shared_keys():
    """Steps: four query heads with four, two and one heads of keys and values."""
    def heads(g):
        used = [1 + i // (4 // g) for i in range(4)]  # tints
        return [steps.grid([[f"q{i}" for i in range(4)]], "query heads", groups=[used]), "use",
                steps.grid([[f"K{j} V{j}" for j in range(g)]], "heads of keys and values, cached",
                           groups=[range(1, g + 1)])]

    steps.show(("Multi-head: h = 4, g = 4", heads(4), "Every query head has its own keys and values."),
               ("Grouped: h = 4, g = 2", heads(2), "q0 and q1 use K0, q2 and q3 use K1. Half the cache."),
               ("Multi-query: h = 4, g = 1", heads(1), "All four use K0. A quarter of the cache."))


def largest_so_far():
    """Steps: the online softmax of one query and four keys in blocks of two: add up, shrink, add up, divide."""
    scores, values = np.log([1, 4, 8, 2]), np.array([10.0, 20, 30, 40])
    names, one, two = [f"key {i}" for i in range(4)], slice(0, 2), slice(2, 4)
    first, second = np.exp(scores[one] - scores[1]), np.exp(scores[two] - scores[2])
    total, output = first.sum(), first @ values[one]  # 1.25, 22.5
    less = np.exp(scores[1] - scores[2])  # 0.5

    def state(largest, total, output, name="so far"):
        return steps.grid([largest, total, output], name, columns=["largest", "total", "output"], decimals=3,
                          groups=1)

    def block(of, weights, largest):
        return [steps.grid([scores[of], values[of]], f"block {of.start // 2 + 1}", ["score", "value"], names[of]),
                "→", steps.grid(weights, f"e^(score - {largest})", columns=names[of])]

    nothing, before = state(-np.inf, 0, 0), state(scores[1], total, output)
    shrunk = state(scores[2], less * total, less * output, "shrunk")
    total, output = less * total + second.sum(), less * output + second @ values[two]  # 1.875, 51.25
    after = state(scores[2], total, output)
    steps.show(
        ("Before the first key", [nothing], "Three numbers are kept. Nothing is read yet."),
        ("Block 1 is read", block(one, first, "1.39"),
         "Its largest score is 1.39 = ln 4. Subtracted, the exponentials are 1/4 and 4/4."),
        ("Add it up", [nothing, "→", before], "total: 0.25 + 1. output: 0.25 × 10 + 1 × 20."),
        ("Block 2 is read", block(two, second, "2.08"),
         "2.08 = ln 8 is larger than 1.39. The exponentials are 8/8 and 2/8."),
        ("Shrink what was there", [before, "× e^(1.39 - 2.08) = × 0.5 →", shrunk],
         "largest becomes 2.08. Both sums shrink by e^(old largest - new largest) = 4/8."),
        ("Add it up", [shrunk, "→", after], "total: 0.625 + 1 + 0.25. output: 11.25 + 1 × 30 + 0.25 × 40."),
        ("Divide once", [after, "→", steps.grid(output / total, "output / total", mark=True)],
         "In one go: (1 × 10 + 4 × 20 + 8 × 30 + 2 × 40) / (1 + 4 + 8 + 2) = 410 / 15 = 27.33."))


SIDE, ROW = 8, 22  # of the ghost: the edge of a tile, and the query whose gauges are drawn


def scores_of_the_ghost():
    """The scores that `ghost_of_the_table` draws, ``(32, 32)``, of tokens that resemble their neighbours."""
    generator = torch.Generator().manual_seed(125)
    walk = torch.randn(32, 6, generator=generator).cumsum(0)
    walk = walk - walk.mean(0)
    asking, asked = (walk + 0.8 * torch.randn(32, 6, generator=generator) for _ in range(2))
    return (0.16 * asking @ asked.T / math.sqrt(6)).numpy()


def gauges(scores, tiles):
    """After so many tiles: the largest score of query ROW, what was left of its total, and the total."""
    largest, left, total = -math.inf, 0.0, 0.0
    for t in range(tiles):
        block = scores[ROW, t * SIDE:(t + 1) * SIDE]
        new = max(largest, block.max())
        left = total * math.exp(largest - new)
        largest, total = new, left + np.exp(block - new).sum()
    return largest, left, total


def ghost_of_the_table():
    """Four moments of attention in tiles, from left to right: the table of scores as a ghost with one tile lit, and below
    each the two numbers that one query keeps."""
    scores = scores_of_the_ghost()
    largest, left, total = np.array([gauges(scores, tiles) for tiles in range(1, 5)]).T
    figure = plt.figure(figsize=(6.6, 6.2))
    grid = figure.add_gridspec(3, 4, height_ratios=[1.5, 1, 2.2])
    for tile in range(4):
        _ghost(figure.add_subplot(grid[0, tile]), scores, tile + 1)
    high, sums = (figure.add_subplot(grid[row, :], xlim=(-0.5, 3.5), xticks=[]) for row in (1, 2))
    high.bar(range(4), largest, 0.5, color=plots.BLUE)
    sums.bar(range(4), left, 0.5, color="#9ad3bf")
    sums.bar(range(4), total - left, 0.5, left, color=plots.ink(plots.GREEN))
    for tile in range(4):
        high.text(tile, largest[tile] + 0.08, f"{largest[tile]:.1f}", ha="center", fontsize=14)
        sums.text(tile, total[tile] + 0.15, f"{total[tile]:.1f}", ha="center", fontsize=14)
        if tile and left[tile] < total[tile - 1]:  # it has been shrunk
            sums.plot([tile - 0.75, tile + 0.25], [total[tile - 1]] * 2, color="black", linestyle="--", linewidth=1.3)
            sums.annotate("", (tile - 0.32, left[tile]), (tile - 0.32, total[tile - 1]), arrowprops={
                "arrowstyle": "-|>", "lw": 2, "shrinkA": 0, "shrinkB": 0})
            sums.text(tile, left[tile] / 2, f"{left[tile]:.1f}", ha="center", va="center", fontsize=14)
            sums.text(tile - 0.25, total[tile - 1] + 0.15, "shrinks", ha="center", fontsize=14)
    sums.text(3, left[3] / 2, "carried\nover", ha="center", va="center", fontsize=13)
    sums.text(3, (left[3] + total[3]) / 2, "new", ha="center", va="center", fontsize=13, color="white")
    high.set(yticks=[0, 1, 2], ylim=(0, 2.6))
    sums.set(yticks=[0, 2, 4, 6, 8], ylim=(0, 8.4))
    for ax, title in ((high, "largest score so far"), (sums, "total of the exponentials so far")):
        ax.set_title(title, fontsize=14)
        ax.tick_params(labelsize=13)
    plt.show()


def _ghost(ax, scores, tiles):
    """The ghost of the table, with one tile lit."""
    top, left = ROW // SIDE * SIDE, SIDE * (tiles - 1)
    lit = np.full_like(scores, np.nan)
    lit[top:top + SIDE, left:left + SIDE] = scores[top:top + SIDE, left:left + SIDE]
    low, high = scores.min(), scores.max()
    ax.imshow(scores, cmap="Greys", vmin=low, vmax=low + 2.4 * (high - low))
    ax.imshow(lit, cmap="YlOrBr", vmin=low, vmax=high)
    for t in range(tiles):
        look = {"ec": "black", "lw": 2} if t == tiles - 1 else {"ec": "#555555", "ls": ":"}
        ax.add_patch(plt.Rectangle((t * SIDE - 0.5, top - 0.5), SIDE, SIDE, fc="none", **look))
    ax.plot([-0.5, left + SIDE - 0.5], [ROW, ROW], color=plots.BLUE, linewidth=2)
    if tiles == 1:
        ax.text(-0.5, top + SIDE + 3.5, "one query", color=plots.BLUE, fontsize=13)
        ax.set_ylabel("queries", fontsize=13)
    ax.set(xticks=[], yticks=[])
    ax.set_xlabel("keys", fontsize=13)
    ax.set_title(f"tile {tiles}", fontsize=14, loc="center")
    ax.spines[:].set(visible=True, color="#bbbbbb")


def never_made(n, held):
    """The table of n × n weights as a dashed square, and to the same scale what was held, ``held`` bytes."""
    table = 4 * n * n
    small = math.sqrt(held / table)
    _, ax = plt.subplots(figsize=(4.6, 4.6))
    ax.add_patch(plt.Rectangle((0, 0), 1, 1, fc="#f4f4f4", ec="#bbbbbb", ls="--"))
    ax.add_patch(plt.Rectangle((0, 1 - small), small, small, fc=plots.ORANGE))
    ax.text(0.5, 0.2, f"{n:,} × {n:,}\n{table / 1e6:,.0f} MB\nnever made", ha="center", va="center",
            fontsize=16, color="#777777")
    ax.text(min(small, 0.75) + 0.03, 1 - small / 2, f"held: {held / 1e6:,.1f} MB", va="center", fontsize=14,
            color=plots.ink(plots.ORANGE))
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.axis("off")
    plt.show()


def news(patterns, start, layers=4):
    """How the news of one token gets about, layer by layer, where a query sees few keys: who told whom, how many know it.

    ``patterns``: {name: ``(n, n)`` bool, query by key}, four; ``start``: the token that knows it in layer 0.
    """
    _, panels = plt.subplots(2, 2, figsize=(6.6, 6.6), sharex=True, sharey=True)
    for ax, (name, may) in zip(panels.flat, patterns.items(), strict=True):
        heard, n = heard_by(may, start, layers), len(may)  # (layers + 1, n)
        for layer in range(1, layers + 1):
            new = heard[layer] & ~heard[layer - 1]
            for query, key in (may & new[:, None] & heard[layer - 1]).nonzero().tolist():
                ax.plot([key, query], [layer - 1, layer], color=plots.SKY, linewidth=1.2, zorder=1)
        for layer, known in enumerate(heard.tolist()):
            ax.scatter(range(n), [layer] * n, s=26, color=[plots.BLUE if one else "#d5d9dc" for one in known], zorder=2)
            ax.text(n + 1.2, layer, sum(known), ha="center", va="center", fontsize=14,
                    weight="bold" if all(known) else None)
        ax.text(n + 2, layers + 0.42, "know it", ha="right", fontsize=13)
        ax.set_title(f"{name}\n{int(may.sum())} of {may.numel()} pairs", fontsize=14)
        ax.set(xticks=[], xlim=(-0.6, n + 2.2), ylim=(-0.3, layers + 0.8), yticks=range(layers + 1))
        ax.set_yticklabels(["start", *(f"layer {layer}" for layer in range(1, layers + 1))])
        ax.tick_params(axis="y", length=0, labelsize=13)
        ax.spines[:].set_visible(False)
    plt.show()


def heard_by(may, start, layers):
    """Which tokens know what token ``start`` knew, after each layer: ``(layers + 1, n)`` bool. ``may``: ``(n, n)``.

    What a token has heard it keeps, in its residual stream.
    """
    known = [torch.arange(len(may)) == start]
    for _ in range(layers):
        known.append(known[-1] | (may & known[-1]).any(dim=1))
    return torch.stack(known)


def compared_pairs(masks, row):
    """Four masks ``(n, n)``, a square for each pair that is compared, with the keys of query ``row`` drawn stronger.

    ``masks``: {name: mask}.
    """
    n = len(next(iter(masks.values())))
    _, panels = plt.subplots(2, 2, figsize=(7.2, 7.4))
    for ax, (name, mask) in zip(panels.flat, masks.items(), strict=True):
        picture = mask.float()
        picture[row] *= 2
        ax.imshow(picture, cmap="Blues", vmin=0, vmax=2.4)
        ax.set(xticks=range(0, n, 3), yticks=[0, 3, 6, 9, row])
        ax.set_xlabel("key", fontsize=12)
        ax.set_ylabel("query", fontsize=12)
        ax.set_title(f"{name}: {int(mask.sum())} pairs", fontsize=13)
        ax.set_xticks(np.arange(n + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="white", linewidth=1)
        ax.tick_params(which="minor", length=0)
    plt.show()


def trained_from_the_start(losses, lowest):
    """Loss curves of three models. ``losses``: {kind: loss of each step}; ``lowest``: what the language allows, in nats."""
    _, ax = plt.subplots(figsize=(6.6, 3.6))
    looks = [("-", 5, plots.SKY), ("--", 1.8, plots.RED), ("-", 1.5, plots.GREEN)]
    for (kind, loss), (line, width, colour) in zip(losses.items(), looks, strict=True):
        smooth = np.convolve(loss, np.ones(5) / 5, mode="valid")
        ax.plot(range(3, 3 + len(smooth)), smooth, line, linewidth=width, color=colour, label=kind)
    ax.axhline(lowest, color=plots.GREY, linestyle=":", label="lowest possible")
    ax.set(ylim=(1, None))
    ax.set_xlabel("step", fontsize=12)
    ax.set_ylabel("loss in nats, mean of five steps", fontsize=12)
    ax.set_title("Trained from the start", fontsize=13)
    ax.legend(loc="upper right", fontsize=12)
    plt.show()
