"""The figures of lesson 12: looking inside."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import plots
from helpers.grammars import NAMES

LINES = {(0, 3): "#1d9467", (1, 1): "#dd9a00", (1, 2): "#c2307d"}  # the circuit's heads, here and on the first page
INKS = {(0, 3): "#14724f", (1, 1): "#8a5a00", (1, 2): "#b02a70"}  # the same, for letters
THIN = "#b9bfc4"


def head_lines(weights, tokens, second=None):
    """One head as the head view has it: a line from each token, on the left, to each that it looks at, the broader the more.

    ``weights``: ``(T, T)``; ``tokens``: T strings; ``second``: where the second sentence begins, if there is one.
    """
    _, ax = plt.subplots(figsize=(5.4, 0.27 * len(tokens) + 1.5))
    _lines(ax, weights, plots.BLUE, width=5)
    for y, token in enumerate(tokens):
        ax.text(-0.04, y, token, ha="right", va="center", fontsize=14)
        ax.text(1.04, y, token, ha="left", va="center", fontsize=14)
    for x, ha, word in ((-0.04, "right", "query"), (1.04, "left", "key")):
        ax.text(x, -1.1, word, ha=ha, va="center", fontsize=12, style="italic", color=plots.GREY)
    if second is not None:
        ax.axhline(second - 0.5, color=THIN, linewidth=1, linestyle=":")
    ax.set(xlim=(-0.5, 1.5), ylim=(len(tokens) - 0.5, -1.5))
    ax.axis("off")
    plots.as_written(ax.figure)
    plt.show()


def _lines(ax, weights, colour, width):
    """A line for each weight above 0.1, from its query at x = 0 to its key at x = 1."""
    for (query, key), weight in np.ndenumerate(np.asarray(weights)):
        if weight > 0.1:
            ax.plot([0, 1], [query, key], color=colour, linewidth=width * weight, alpha=0.3 + 0.7 * weight,
                    solid_capstyle="round")


def all_heads(weights, words):
    """Every head of a small model as the model view has it: a row for each layer, in each picture the query on the left.

    ``weights``: for each layer ``(h, T, T)``; ``words``: T strings.
    """
    fig, panels = plt.subplots(len(weights), len(weights[0]), figsize=(7, 6.6))
    for layer, row in enumerate(panels):
        for head, ax in enumerate(row):
            _lines(ax, weights[layer][head], LINES.get((layer, head), "#7b858c"), width=3)
            ax.set_title(f"({layer}, {head})", fontsize=13, loc="center")
            ax.set(xlim=(-0.05, 1.05), ylim=(len(words) - 0.5, -0.5), xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        row[0].set_yticks(range(len(words)), words, fontsize=11)
        row[0].tick_params(length=0)
    plots.as_written(fig)
    plt.show()


def where_thanks_looks(weights, words):
    """Where the last word looks, in all heads: arcs of layer 0 on the left of the words, of layer 1 on the right.

    ``weights``: for each of two layers ``(h, T, T)``; ``words``: T strings. An arc is as broad as its weight; a ring is the
    weight on the last word itself.
    """
    _, ax = plt.subplots(figsize=(6.2, 6.2))
    last = len(words) - 1
    for y, word in enumerate(words):
        ax.text(0, y, word, ha="center", va="center", fontsize=14, weight="bold" if word in ("emma", "ben") else None)
    for layer, side in ((0, -1), (1, 1)):
        ax.text(side * 2.2, -1.2, f"layer {layer}", ha="center", va="center", fontsize=14, weight="bold")
        order = sorted(range(len(weights[layer])), key=lambda head, layer=layer: (layer, head) in LINES)  # those on top
        for head in order:
            _arcs(ax, weights[layer][head, -1].tolist(), side, LINES.get((layer, head), THIN), head)
    for (layer, head), y in {(0, 3): 9, (1, 1): 6.2, (1, 2): 9.2}.items():
        key = int(weights[layer][head, -1].argmax())
        ax.text((-4.3, 3.7)[layer], y, f"({layer}, {head})\n{weights[layer][head, -1, key]:.2f} on {words[key]}",
                ha=("right", "left")[layer], va="center", fontsize=13, weight="bold", color=INKS[layer, head])
    ax.set(xlim=(-6.8, 6.2), ylim=(last + 1.2, -1.8))
    ax.axis("off")
    plots.as_written(ax.figure)
    plt.show()


def _arcs(ax, weights, side, colour, shift):
    """Arcs from the last word to those before it, on one side (-1 or 1), and a ring for the last word itself."""
    last, turn = len(weights) - 1, np.linspace(0, np.pi, 50)
    for key, weight in enumerate(weights):
        if weight < 0.05:
            continue
        reach = 0.2 * (last - key) + 0.25 * shift
        if key == last:
            xs, ys = 1.3 + 0.32 * (1 - np.cos(2 * turn)), last + 0.35 * np.sin(2 * turn)
        else:
            xs, ys = 1.15 + reach * np.sin(turn), key + (last - key) * (1 + np.cos(turn)) / 2
        ax.plot(side * xs, ys, color=colour, linewidth=0.6 + 5 * weight, alpha=0.9, zorder=2 + (colour != THIN))


def with_another_away(both, labels, other):
    """Right names without one head, and without one more: a line for each head, from one to the other.

    ``both``: ``(h, h)``, the share without heads a and b, on the diagonal without one; ``other``: number of the one more.
    """
    _, ax = plt.subplots(figsize=(6, 4.6))
    inks = {str(head): ink for head, ink in INKS.items()}
    heads = [head for head in range(len(both)) if head != other]
    worst = min(heads, key=lambda head: both[head, other] - both[head, head])
    for head in heads:
        name, ends = str(labels[head]), (both[head, head], both[head, other])
        colour, look = inks.get(name, plots.GREY), {"weight": "bold"} if head == worst else {}
        ax.plot([0, 1], ends, "o-", color=colour, linewidth=5 if head == worst else 1.8, zorder=2 + (head == worst))
        for x, share, align in zip((-0.07, 1.07), ends, ("right", "left"), strict=True) if name in inks else ():
            ax.text(x, share, f"{name}  {share:.2f}", ha=align, va="center", fontsize=14, color=colour, **look)
    rest = both[[head for head in heads if str(labels[head]) not in inks], other]
    words = f"the others\n{rest.min():.2f} to {rest.max():.2f}"
    ax.text(1.07, rest.mean(), words, va="center", fontsize=14, color=plots.GREY)
    ax.set(xlim=(-0.72, 1.6), ylim=(0, 1.05), yticks=[0, 0.5, 1], xticks=[0, 1])
    ax.set_xticklabels(["without\none head", f"and without\n{labels[other]}"], fontsize=14)
    ax.set_ylabel("share of right names", fontsize=14)
    ax.tick_params(labelsize=14, length=0)
    ax.spines["bottom"].set_visible(False)
    plt.show()


def subway(words, seen, wires, vocabulary, cut=(), exchanged=()):
    """The circuit as a map: a track for each word, the wires of one run with their weights, the marks, and the next word.

    ``words``: 13 strings; ``seen``: an ``inside.Trace`` of them, batch of one; ``wires``: {number: (layer, head, place where
    it arrives)}; ``cut``: numbers of wires; ``exchanged``: two places whose marks have changed places. The last word asks.
    """
    _, ax = plt.subplots(figsize=(6.4, 6.4))
    other = dict([exchanged, exchanged[::-1]]) if exchanged else {}
    for y, word in enumerate(words):
        ax.plot([0, 1, 2], [y] * 3, "o-", color="#e6e6e6", linewidth=4, markersize=6, zorder=1)
        ax.text(-0.09, y, word, ha="right", va="center", fontsize=14,
                weight="bold" if word in (*NAMES, words[-1]) else None)
    for number, (layer, head, place) in wires.items():
        end = other.get(place, place) if layer == 0 else place
        signs = []
        for key, weight in enumerate(seen.weights[layer][0, head, place].tolist()):
            if weight > 0.2:
                signs.append(_wire(ax, number, wires, key, end, weight, number in cut))
                ax.plot([layer, layer + 1], [key, end], "o", color="white", zorder=5,
                        markeredgecolor="black", markersize=11)
        if layer == 0 and place < len(words) - 1 and number not in cut:
            y = end + (0.37 if place <= end + 1 else -0.37)
            mark = "full stop" if words[place - 1] == "." else words[place - 1]
            ax.text(0.97, y, mark, fontsize=12, ha="right", va="center", style="italic", color=INKS[0, 3])
        for x, y, colour in signs[:1]:
            _sign(ax, x, y, "✕" if number in cut else number, colour)
    for x, station in enumerate(["words", "after\nlayer 0", "after\nlayer 1"]):
        ax.text(x, -0.8, station, ha="center", va="bottom", fontsize=13, color="#444444")
    _next_word(ax, seen, vocabulary, len(words) - 1)
    ax.set(xlim=(-0.75, 4.3), ylim=(12.6, -2.2))
    ax.axis("off")
    plt.show()


def _wire(ax, number, wires, start, end, weight, cut):
    """A line of the map, from track to track. Returns where its number is, and in which colour."""
    layer, head, _ = wires[number]
    side = {5: -0.13, 6: 0.13}.get(number, 0)
    bend = layer + 0.34 - side + 0.07 * (end > start + 1 and not layer)
    xs = [layer, bend, bend + 0.22, layer + 1]
    ys = [start + side, start + side, end + side, end + side]
    colour = "#999999" if cut else LINES[layer, head]
    ax.plot(xs, ys, color="#c9c9c9" if cut else colour, linewidth=1.5 + 5 * weight,
            linestyle=(0, (1, 1)) if cut else "-", solid_joinstyle="round", zorder=3)
    down = {5: 0.4, 6: 0.6}.get(number)  # how far down its slope the number is
    if down:
        return bend + 0.22 * down, start + down * (end - start), colour
    return layer + 0.2, start, colour


def _sign(ax, x, y, sign, colour):
    ink = "white" if colour in (LINES[0, 3], LINES[1, 2]) else "black"
    ax.text(x, y, sign, color=ink, fontsize=12, ha="center", va="center", weight="bold", zorder=6,
            bbox={"boxstyle": "circle,pad=0.2", "fc": colour, "ec": "white"})


def _next_word(ax, seen, vocabulary, last):
    """The names at the right, a bar for each probability, and which head each number is."""
    p = seen.logits[0, -1].softmax(-1)
    ax.text(2.45, 1.5, "next word?", fontsize=14, weight="bold")
    for y, name in enumerate(NAMES, 3):
        share = float(p[vocabulary[name]])
        ax.barh(y, 0.75 * share, left=3.15, height=0.62, color=plots.PURPLE)
        ax.text(3.1, y, name, ha="right", va="center", fontsize=14, weight="bold" if share > 0.5 else None)
        if share > 0.005:
            ax.text(3.2 + 0.75 * share, y, f"{share:.0%}", va="center", fontsize=12)
    ax.plot([2.1, 2.85, 2.85], [last, last, 9.4], color=plots.PURPLE, linewidth=4, zorder=1)
    ax.plot(2.85, 9.2, "^", color=plots.PURPLE, markersize=12)
    for y, (numbers, head) in enumerate([("1 to 4", (0, 3)), ("5", (1, 1)), ("6", (1, 2))]):
        ax.text(3.05, 10.4 + 0.8 * y, f"{numbers}: head {head}", fontsize=12, color=INKS[head], weight="bold")


def thirty_stories(answers, wires):
    """A row for each set of wires that are cut: which run, and whom the stories' answers name.

    ``answers``: {tuple of wires: [how many name the teller, the listener, a third]}; ``wires``: {number: (layer, head, …)}.
    """
    _, ax = plt.subplots(figsize=(6.4, 6))
    for y, (cut, counts) in enumerate(answers.items()):
        for n, (layer, head, _) in wires.items():
            colour = "#b5b5b5" if n in cut else LINES[layer, head]
            ax.plot([n - 0.5, n + 0.5], [y, y], color=colour, linewidth=4, zorder=1,
                    linestyle=(0, (0.6, 0.8)) if n in cut else "-")
            _sign(ax, n, y, "✕" if n in cut else n, colour)
        left = 7.2
        for count, colour in zip(counts, [plots.PURPLE, plots.SKY, "#d9d9d9"], strict=True):
            ink = "white" if colour == plots.PURPLE else "black"
            ax.barh(y, count / 5, left=left, height=0.66, color=colour)
            if count:
                ax.text(left + count / 10, y, count, ha="center", va="center", color=ink, fontsize=13)
            left += count / 5
    for x, y, heading, colour in [(0.6, -1.6, "wires that run", "black"), (7.2, -1.6, "whom 30 stories name", "black"),
                                  (7.2, -0.85, "teller", plots.PURPLE), (9.15, -0.85, "listener", plots.ink(plots.SKY)),
                                  (11.6, -0.85, "a third", "#5f5f5f")]:
        ax.text(x, y, heading, fontsize=14, weight="bold", color=colour)
    ax.set(xlim=(0.3, 13.5), ylim=(len(answers) - 0.5, -2.3))
    ax.axis("off")
    plt.show()


def staircases(products, weights, tokens):
    """How a query's products with each key add up, number by number: a staircase a key, that of the winner with its steps.

    ``products``: ``(T, d_k)``; ``weights``: ``(T,)``, after the softmax; ``tokens``: T strings.
    """
    n = products.shape[1]
    paths = np.hstack([np.zeros((len(products), 1)), products.cumsum(axis=1)])  # (T, d_k + 1): the sums so far
    winner = paths[:, -1].argmax()
    _, ax = plt.subplots(figsize=(6.6, 5))
    for path in np.delete(paths, winner, axis=0):
        ax.stairs(path[1:], range(n + 1), baseline=None, color=THIN, linewidth=1.2)
    up = products[winner]
    ax.stairs(paths[winner, 1:], range(n + 1), baseline=None, color=plots.ORANGE, linewidth=1.2)
    ax.bar(np.arange(n) + 0.5, up, 0.92, paths[winner, :-1], zorder=3, color=np.where(up > 0, plots.ORANGE, plots.PURPLE))
    last = -np.inf
    for key in np.argsort(paths[:, -1]):  # from the lowest, so that no label covers another
        last = max(paths[key, -1], last + 2.1)
        ax.text(n + 0.6, last, f"{tokens[key]} {paths[key, -1]:.1f}, weight {weights[key]:.2f}", va="center", fontsize=14,
                weight="bold" if key == winner else None, color="black" if key == winner else "#5f6871")
    ax.plot([0, n], [0, 0], color="black", linewidth=0.8, zorder=1)
    ax.set(xlim=(0, n + 21), xticks=[0.5, 8.5, 16.5, 24.5, 31.5], yticks=[0, 10, 20])
    ax.set_xticklabels([0, 8, 16, 24, 31])
    ax.set_xlabel("number n of query and key", loc="left", fontsize=14)
    ax.set_ylabel("sum of the products so far", fontsize=14)
    ax.tick_params(labelsize=13)
    plots.as_written(ax.figure)
    plt.show()


def nearest_sentences(sentences, nearest, groups):
    """From each sentence an arrow to the one nearest to it: on the left within its own group, on the right into another.

    ``sentences``: n strings, group by group; ``nearest``: n row numbers; ``groups``: (name, how many sentences) of each.
    """
    _, ax = plt.subplots(figsize=(5.8, 5.4))
    group = np.repeat(np.arange(len(groups)), [size for _, size in groups])
    ys = np.arange(len(sentences)) + 1.3 * group
    for y, sentence in zip(ys, sentences, strict=True):
        ax.text(0, y, sentence, va="center", fontsize=15)
    for number, (name, _) in enumerate(groups):
        ax.text(0, ys[group == number][0] - 0.95, name, va="center", fontsize=14, weight="bold", color=plots.GREY)
    arrows_to_nearest(ax, ys, nearest, group, (-0.05, 3.35))
    for x, words, colour in [(-0.85, "nearest: the same sense", plots.BLUE), (2.2, "the other sense", plots.RED)]:
        ax.text(x, -2.2, words, va="center", fontsize=14, color=colour)
    ax.set(xlim=(-0.85, 4.3), ylim=(ys[-1] + 0.7, -2.6))
    ax.axis("off")
    plots.as_written(ax.figure)
    plt.show()


def arrows_to_nearest(ax, ys, nearest, group, places):
    """An arrow from each line to the one nearest to it, blue within its group and red out of it.

    ``ys``: heights of n lines; ``nearest``: n row numbers; ``group``: n numbers; ``places``: x of the blue and of the red.
    """
    for i, j in enumerate(nearest):
        alike, both_ways = group[i] == group[j], nearest[j] == i
        if both_ways and j < i:
            continue  # drawn with two heads already
        x = places[0 if alike else 1]
        ax.annotate("", (x, ys[j]), (x, ys[i]), arrowprops={
            "arrowstyle": "<|-|>" if both_ways else "-|>", "color": plots.BLUE if alike else plots.RED, "linewidth": 2,
            "mutation_scale": 14, "connectionstyle": f"arc3,rad={(-1 if x > 0 else 1) * np.sign(ys[j] - ys[i]) * 0.45}"})


def ranks(measures, effect):
    """Do the heads of a layer that rank high by a measure rank high by effect? A dot a head; the lines are means.

    ``measures``: {name: (layers, h)}; ``effect``: ``(layers, h)``. Rank 1 is the lowest of a layer.
    """
    figure, panels = plt.subplots(2, 1, figsize=(5.6, 7.6), sharey=True)
    rank = np.argsort(np.argsort(effect, axis=1), axis=1) + 1  # (layers, h)
    h = effect.shape[1]
    for ax, (name, values) in zip(panels, measures.items(), strict=True):
        order = np.argsort(values, axis=1)  # (layers, h): the heads from the lowest measure to the highest
        along = np.take_along_axis(rank, order, axis=1)  # (layers, h)
        ax.plot([1, h], [1, h], color=plots.ORANGE, linewidth=7, alpha=0.45, label="a measure that tells the need")
        ax.plot([1, h], [(h + 1) / 2] * 2, color="black", linewidth=1, linestyle=":", label="one that tells nothing")
        ax.plot(range(1, h + 1), along.T, "o", color=plots.BLUE, markersize=7, alpha=0.3, markeredgewidth=0)
        ax.plot(range(1, h + 1), along.mean(axis=0), color=plots.BLUE, linewidth=3)
        ax.set_title(f"heads in order of {name}", fontsize=14, color=plots.BLUE, weight="bold")
        ax.set(xticks=[1, h], yticks=[1, h], ylim=(0.3, h + 0.7))
        ax.set_xticklabels(["smallest of its layer", "largest"], fontsize=13)
        ax.set_yticklabels(["least\nneeded", "most\nneeded"], fontsize=13)
        ax.tick_params(length=0)
        for label, align in zip(ax.get_xticklabels(), ("left", "right"), strict=True):
            label.set_horizontalalignment(align)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper left", fontsize=13)
    plt.show()


def two_paths(takes):
    """Two tokens, two layers, and what each takes from which: the paths from A at the start to B at the end are orange.

    ``takes``: {(who takes, from whom): share}.
    """
    _, ax = plt.subplots(figsize=(6.4, 3.3))
    height = {"A": 1, "B": 0}
    ways = {(0, "A", "A"), (0, "B", "A"), (1, "B", "A"), (1, "B", "B")}
    for x in (0, 1):
        for (end, start), share in takes.items():
            ax.plot([x, x + 1], [height[start], height[end]], linewidth=1 + 6 * share, zorder=1,
                    color=plots.ORANGE if (x, end, start) in ways else "#d0d0d0")
            ax.text(x + 0.36, 0.09 + height[start] + 0.36 * (height[end] - height[start]), f"{share:g}", fontsize=16,
                    ha="left", va="bottom")
    for x, station in enumerate(["at the start", "after layer 0", "at the end"]):
        for token, y in height.items():
            ax.plot(x, y, "o", markersize=32, color="white", markeredgecolor="black", zorder=2)
            ax.text(x, y, token, ha="center", va="center", fontsize=17, zorder=3)
        ax.text(x, -0.45, station, ha="center", fontsize=15)
    ax.set(xlim=(-0.35, 2.35), ylim=(-0.6, 1.4))
    ax.axis("off")
    plt.show()


def nearer_to_animal(gaps, groups):
    """A dot for each adjective: by how much the vector of *it* is nearer to *animal* than to *street*.

    ``gaps``: ``(n, 3)``, differences of two cosines; ``groups``: {what they are said of: its n adjectives}, three.
    """
    _, ax = plt.subplots(figsize=(5, 6.6))
    y = 0
    for (of, words), column, colour, marker in zip(groups.items(), gaps.T, [plots.BLUE, plots.RED, plots.GREY], "osD",
                                                   strict=True):
        ax.text(0.005, y, f"said of {of}", va="center", fontsize=14, weight="bold", color=colour)
        rows = y + 1 + np.arange(len(words))
        for row, word, gap in zip(rows, words, column, strict=True):
            ax.plot([0, gap], [row, row], color="#dfe3e6", linewidth=1.5, zorder=0)
            ax.plot(gap, row, marker, color=colour, markersize=9)
            ax.text(-0.012 if gap >= 0 else 0.012, row, word, ha="right" if gap >= 0 else "left", va="center", fontsize=13)
        y = rows[-1] + 1.5
    ax.axvline(0, color="black", linewidth=1)
    low, high = min(0, gaps.min()), max(0.1, gaps.max())
    ax.set(ylim=(y - 0.7, -0.7), xlim=(low - 0.05 if low else -0.01, high + 0.03), yticks=[])
    ax.set_xlabel("nearer to animal than to street by\n(difference of two cosines)", fontsize=13)
    ax.tick_params(labelsize=13)
    ax.spines["left"].set_visible(False)
    plt.show()
