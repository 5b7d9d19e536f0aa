"""The figures of lesson 10: encoder-decoder and translation."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import plots
from helpers.page import show
from helpers.translation import lexicon, spelt

TINTS = ["#0072B2", "#E69F00", "#009E73", "#B34700", "#8E4585", "#56B4E9"]
PALE = ["#b8d5e8", "#f8e3b8", "#b8e2d7", "#e8cab8", "#ddc9da", "#cfe8f7"]


def known_words():
    """A table of the English words that the translator knows, by kind."""
    kinds = {"articles, pronouns": ["determiner", "pronoun"], "adjectives": ["adjective"], "nouns": ["noun"],
             "verbs": ["verb"], "prepositions": ["preposition"]}
    show.table(["", "words"], [[name, ", ".join(word for kind in those for word in lexicon()[kind])]
                               for name, those in kinds.items()])


def encoder_and_decoder():
    """Two columns of boxes: the encoder's memory of the English text goes to the decoder's cross-attention."""
    _, ax = plt.subplots(figsize=(6.4, 5.4))
    columns = {0: ["word vectors", "self-attention", "MLP"],
               3.6: ["word vectors", "self-attention\n(causal)", "cross-attention", "MLP"]}
    for x, boxes in columns.items():
        for y, text in enumerate(boxes):
            colour = plots.ORANGE if text == "cross-attention" else plots.RED if x else plots.BLUE
            ax.add_patch(plt.Rectangle((x, 1.3 * y), 2.5, 0.85, edgecolor=colour, linewidth=2.5, facecolor="white"))
            ax.text(x + 1.25, 1.3 * y + 0.42, text, ha="center", va="center", fontsize=14)
            plots.arrow(ax, (x + 1.25, 1.3 * y - 0.45), (x + 1.25, 1.3 * y))
        top = 1.3 * len(boxes)
        ax.add_patch(plt.Rectangle((x - 0.15, 1.1), 2.8, top - 1.35, fill=False, linestyle="--", edgecolor=plots.GREY))
    plots.arrow(ax, (4.85, 4.75), (4.85, 5.2))
    plots.arrow(ax, (1.25, 3.45), (1.25, 3.9))
    ax.add_patch(plt.Rectangle((0.6, 3.9), 1.3, 0.6, edgecolor=plots.BLUE, linewidth=2.5, facecolor="white"))
    ax.text(1.25, 4.2, "norm", ha="center", va="center", fontsize=14)
    ax.plot([1.9, 3.1, 3.1], [4.2, 4.2, 3.02], color=plots.ORANGE, linewidth=3)
    plots.arrow(ax, (3.1, 3.02), (3.6, 3.02), plots.ORANGE)
    for x, y, text in [(1.25, -0.72, "the european\neconomic area"), (4.85, -0.72, "<bos> la zone"),
                       (4.85, 5.45, "next: économique")]:
        ax.text(x, y, text, ha="center", va="center", fontsize=14)
    ax.text(2.65, 4.4, "memory", ha="center", fontsize=14, color=plots.RED)
    for x, text in [(1.25, "encoder"), (4.85, "decoder")]:
        ax.text(x, -1.45, text, ha="center", fontsize=15, weight="bold")
    ax.set(xlim=(-0.3, 6.5), ylim=(-1.6, 5.75))
    ax.axis("off")
    plt.show()


def three_tributaries():
    """The residual stream of a decoder's block, and three branches, each with a norm and a sublayer, that are added."""
    _, ax = plt.subplots(figsize=(6, 6.4))
    style = {"ha": "center", "va": "center", "zorder": 3, "fontsize": 14}
    sand, sky, gold = ({"boxstyle": "round", "fc": colour, "ec": "#555555"} for colour in ["#fbe3c0", "#d6e9f5", "#f7c873"])
    ax.annotate("", (0, 14.2), (0, -0.8), arrowprops={
        "arrowstyle": "simple,head_width=1.9,head_length=0.8,tail_width=1.1", "color": "#9ec9e6"})
    for number, name in enumerate(["self-attention", "cross-attention", "MLP"]):
        low = 4.5 * number
        ax.plot([0, 2.7, 2.7], [low, low, low + 3.2], color=plots.BLUE, linewidth=2)
        ax.annotate("", (0.3, low + 3.2), (2.7, low + 3.2),
                    arrowprops={"arrowstyle": "-|>", "color": plots.BLUE, "linewidth": 2})
        ax.text(2.7, low + 0.9, f"norm {number + 1}", bbox=sand, **style)
        ax.text(2.7, low + 2.2, name, bbox=gold if number == 1 else sky, **style)
        ax.text(0, low + 3.2, "+", bbox={"boxstyle": "circle", "fc": "white"}, **style)
    ax.annotate("", (3.8, 6.7), (5.2, 6.7), arrowprops={"arrowstyle": "-|>", "color": plots.ORANGE, "linewidth": 3})
    ax.text(6.1, 6.7, "memory\n(B, T_s, d)", **style)
    ax.text(0, -1.3, "x  (B, T, d)", **style)
    ax.text(0, 14.7, "x  (B, T, d)", **style)
    ax.set(xlim=(-1.6, 7.2), ylim=(-1.8, 15.1))
    ax.axis("off")
    plt.show()


def descent(losses, diary):
    """The loss, a running mean over ten steps, with pages of the diary at the steps where they were written.

    ``losses``: a number a step; ``diary``: a text every 50 steps.
    """
    _, ax = plt.subplots(figsize=(6.4, 4.8))
    smooth = np.convolve(losses, np.ones(10) / 10, mode="valid")  # entry i: the mean of steps i … i + 9
    steps = np.arange(len(smooth)) + 10
    ax.semilogy(losses, color="#cfdde6", linewidth=0.8)
    ax.semilogy(steps, smooth, color=plots.BLUE, linewidth=2)
    pages = [(50 * (i + 1), " ".join(text.split()[:4] + ["…"] * (len(text.split()) > 4))) for i, text in enumerate(diary)]
    changed = [page for page, before in zip(pages, [(0, ""), *pages], strict=False) if page[1] != before[1]]
    for step, text in [*changed[:4], pages[-1]]:
        height = smooth[step - 10]
        last = step == len(losses)
        ax.plot(step, height, "o", color=plots.ORANGE, markersize=9)
        ax.text(step + (10 if last else 16), 0.36 if last else height * 1.6, f"{step}: {spelt(text)}", fontsize=13,
                ha="right" if last else "left", va="center")
    ax.plot([len(losses), len(losses)], [0.27, smooth[-1]], color=plots.ORANGE, linewidth=1)
    ax.set(xlim=(-10, 770), ylim=(2e-3, 12), yticks=[0.01, 0.1, 1, 10])
    ax.set_yticklabels(["0.01", "0.1", "1", "10"])
    ax.minorticks_off()
    ax.set_xlabel("step", fontsize=13)
    ax.set_ylabel("loss in nats per word", fontsize=13)
    ax.tick_params(labelsize=13)
    plots.as_written(ax.figure)
    plt.show()


def ribbons(above, below, weights):
    """From each French word a ribbon to the English words it looked at, as broad as the weight; long texts stand in columns.

    ``above``: English words; ``below``: n French words; ``weights``: ``(n, len(above))``.
    """
    longest = max(len(" ".join(above)), len(" ".join(below)))
    if longest <= 46:
        _, ax = plt.subplots(figsize=(6.4, 2.6))
        _across(ax, above, below, weights, size=min(14, 640 / (longest + 8)))
    else:
        _, ax = plt.subplots(figsize=(5.4, 0.36 * max(len(above), len(below)) + 0.4))
        _columns(ax, above, below, weights)
    plots.as_written(ax.figure)
    plt.show()


def growing_ribbons(above, below, weights):
    """A picture for each French word, below each other: the newest position asks, its ribbon is the bright one.

    Arguments as for `ribbons`.
    """
    _, panels = plt.subplots(len(below), 1, figsize=(6.2, 2.1 * len(below)))
    for number, ax in enumerate(np.atleast_1d(panels), 1):
        _across(ax, above, below, weights, number)
        reads = below[number - 2] if number > 1 else "<bos>"
        ax.set_title(f"reads {reads}, writes {below[number - 1]}", fontsize=13, color=plots.GREY)
    plots.as_written(ax.figure)
    plt.show()


def _middles(words, gap=1.6):
    """The middles of words that are written in one line, from 0 to 1."""
    widths = np.array([len(word) + gap for word in words])
    return (widths.cumsum() - widths / 2) / widths.sum()


def _curve():
    """(parts of the way, how far a ribbon has bent by then), both from 0 to 1."""
    t = np.linspace(0, 1, 60)
    part = np.clip(1.3 * t - 0.15, 0, 1)
    return t, part**2 * (3 - 2 * part)


def _strands(weights, number, total):
    """(French place, English place, weight, colour) of each ribbon of the first words, the broadest of a word last."""
    for i, row in enumerate(weights[:number]):
        tints = TINTS if i == number - 1 or number == total else PALE
        for j in np.argsort(row):
            if row[j] > 0.1:
                yield i, j, row[j], tints[j % len(tints)]


def _across(ax, above, below, weights, number=None, size=14):
    """The English words in a line above, the first ``number`` French ones in a line below."""
    number = len(below) if number is None else number
    top = _middles(above)
    bottom = _middles(below)
    t, bend = _curve()
    for i, j, weight, colour in _strands(weights, number, len(below)):
        for extra, tint in [(3, "white"), (0, colour)]:
            ax.plot(bottom[i] + (top[j] - bottom[i]) * bend, t, color=tint, zorder=2 + i, linewidth=20 * weight + extra,
                    solid_capstyle="butt")
    for x, word in zip(top, above, strict=True):
        ax.text(x, 1.1, word, ha="center", va="bottom", fontsize=size)
    for i, (x, word) in enumerate(zip(bottom, below, strict=True)):
        ax.text(x, -0.1, word if i < number else "·", ha="center", va="top", fontsize=size,
                weight="bold" if i == number - 1 and number < len(below) else "normal")
    ax.set(xlim=(0, 1), ylim=(-0.5, 1.5))
    ax.axis("off")


def _columns(ax, above, below, weights):
    """The English words in a column on the left, the French ones on the right."""
    t, bend = _curve()
    for i, j, weight, colour in _strands(weights, len(below), len(below)):
        for extra, tint in [(3, "white"), (0, colour)]:
            ax.plot(1 - t, i + (j - i) * bend, color=tint, zorder=2 + i, linewidth=14 * weight + extra,
                    solid_capstyle="butt")
    for x, words, side in ((-0.05, above, "right"), (1.05, below, "left")):
        for y, word in enumerate(words):
            ax.text(x, y, word, ha=side, va="center", fontsize=14)
    ax.set(xlim=(-0.8, 1.8), ylim=(max(len(above), len(below)) - 0.5, -0.5))
    ax.axis("off")


def by_length(curves, lengths):
    """How much of its BLEU on the shortest texts each translator keeps: a panel each.

    ``curves``: {name: BLEU for each length}; ``lengths``: numbers of words.
    """
    figure, panels = plt.subplots(3, 1, figsize=(5.2, 7.2), sharex=True, sharey=True)
    kept = {name: 100 * np.array(curve) / max(curve[0], 1) for name, curve in curves.items()}
    for ax, (name, curve), colour, ink in zip(panels, kept.items(), [plots.RED, plots.ORANGE, plots.BLUE],
                                              [plots.RED, "#8a5a00", plots.BLUE], strict=True):
        ax.axhline(100, color="#b4bbc2", linewidth=1, linestyle=":")
        ax.fill_between(lengths, curve, 100, color=colour, alpha=0.15, linewidth=0)
        ax.plot(lengths, curve, "o-", color=colour, linewidth=3, markersize=6)
        ax.set_title(name, color=ink, fontsize=14, weight="bold")
        ax.text(lengths[-1] + 0.2, curve[-1], f"{curve[-1]:.0f} %", color=ink, fontsize=15, va="center", weight="bold")
        ax.text(lengths[0] + 0.1, 14, f"begins at BLEU {curves[name][0]:.0f}", fontsize=12, color=plots.GREY)
        ax.set(xlim=(3.8, 11.1), ylim=(0, 135), xticks=lengths, yticks=[0, 50, 100])
        ax.set_yticklabels(["0", "50 %", "100 %"])
        ax.tick_params(labelsize=13)
    panels[-1].set_xlabel("words in the English text", fontsize=13)
    figure.supylabel("BLEU, compared with texts of 4 words", fontsize=13)
    plt.show()


def beam_of_two(table):
    """The tree of a beam of 2, a row a turn: blue boxes are kept, those with a grey edge dropped, dashed is the greedy text.

    ``table``: {text so far: {next word: probability}}.
    """
    columns = {"": 2, "un": 0.6, "une": 3.4, "un vieux": 0, "un roi": 1, "une reine": 2.2, "une vieille": 3.6,
               "un vieux roi": 0, "une reine noire": 1, "une reine <eos>": 2, "une vieille dame": 3, "une vieille reine": 4,
               "un vieux roi <eos>": 0, "une vieille reine noire": 3, "une vieille reine <eos>": 4}
    dropped = ("un ", "une vieille dame", "une reine noire", "une vieille reine noire")
    _, ax = plt.subplots(figsize=(6.4, 7))
    product = {"": 1.0}
    for text, x in columns.items():
        y = len(text.split())
        before, _, word = text.rpartition(" ")
        kept = not text.startswith(dropped)
        colour = plots.BLUE if kept else plots.GREY
        style = {"linewidth": 2.2 if kept else 1.2, "linestyle": "--" if "vieux roi" in text else "-"}
        if text:
            p = table[before][word]
            product[text] = product[before] * p
            ax.plot([columns[before], x], [y - 1 + 0.3, y - 0.3], color=colour, zorder=0, **style)
            ax.text(columns[before] + 0.55 * (x - columns[before]), y - 0.45, p, ha="center", va="center", fontsize=13,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})
        ax.add_patch(plt.Rectangle((x - 0.44, y - 0.27), 0.88, 0.54, edgecolor=colour, **style,
                                   facecolor="#cfe8f7" if kept else "white"))
        ax.text(x, y, f"{word or '<bos>'}\n{product[text]:.3g}", ha="center", va="center", fontsize=13)
    ax.text(2, 3.42, "finished:\nstays as it is", fontsize=13, ha="center", va="top", color=plots.BLUE)
    for turn in range(1, 5):
        ax.text(-0.6, turn, f"turn {turn}", ha="right", va="center", weight="bold", fontsize=13)
    ax.set(xlim=(-1.35, 4.5), ylim=(4.4, -0.4))
    ax.axis("off")
    plt.show()
