"""The figures of lesson 11: train a mini-transformer."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import plots


def surprises(words, p):
    """The surprise of each word of a sentence as a bar, its probability below. ``p``: ``(n,)``, each given those before."""
    _, ax = plt.subplots(figsize=(6.6, 3.4))
    bars = ax.bar(range(len(p)), -np.log(p), color=plots.BLUE)
    ax.bar_label(bars, [f"{abs(x):.1f}" for x in -np.log(p)], padding=2, fontsize=14, weight="bold", color=plots.BLUE)
    ax.set_xticks(range(len(p)), [f"{word}\n{x:.2f}" for word, x in zip(words, p, strict=True)], fontsize=13)
    ax.set_ylabel("surprise in nats", fontsize=14)
    ax.set_yticks([])
    ax.margins(y=0.15)
    plots.as_written(ax.figure)
    plt.show()


def gpt(words, answers):
    """Four words go up through tables, two blocks, a norm and W_out; thin lines are attention, which looks back.

    ``words``: what is read; ``answers``: the next word of each.
    """
    layers = {"tokens[ids] + positions": ("(B, T, d)", "#d6e9f5"), "block 0": ("(B, T, d)", "#9ec9e6"),
              "block 1": ("(B, T, d)", "#9ec9e6"), "norm": ("(B, T, d)", "#fbe3c0"), "@ W_out": ("(B, T, V)", "#f7c873")}
    _, ax = plt.subplots(figsize=(6.6, 5.4))
    for y, (layer, (shape, tint)) in enumerate(layers.items()):
        ax.add_patch(plt.Rectangle((-0.45, 1.3 * y), 3.9, 0.72, facecolor=tint, edgecolor="#555555"))
        ax.text(1.5, 1.3 * y + 0.36, layer, ha="center", va="center", fontsize=14, zorder=4, family="monospace")
        ax.text(3.6, 1.3 * y + 0.36, shape, va="center", fontsize=13, color=plots.GREY)
    for x, (word, answer) in enumerate(zip(words, answers, strict=True)):
        ax.text(x, -0.85, word, ha="center", fontsize=15)
        ax.text(x, 6.65, answer, ha="center", fontsize=15, color=plots.RED)
        for y in range(6):
            plots.arrow(ax, (x, 1.3 * y - 0.66), (x, 1.3 * y + 0.08))
        for y in (1, 2):
            for before in range(x):  # attention looks back
                ax.plot([before, x], [1.3 * y - 0.58, 1.3 * y], color=plots.BLUE, linewidth=1.2, zorder=0)
    for y, text in ((-0.85, "reads"), (6.65, "should say")):
        ax.text(-0.6, y, text, ha="right", fontsize=13, color=plots.GREY)
    ax.set(xlim=(-1.9, 5.0), ylim=(-1, 7.1))
    ax.axis("off")
    plt.show()


def two_knobs(words, shares):
    """What temperature and top-k make of three logits: a panel of bars for each setting.

    ``words``: the names of the bars; ``shares``: {name of the setting: ``(3,)`` probabilities}, four of them.
    """
    fig, panels = plt.subplots(2, 2, figsize=(6.4, 5), sharey=True, gridspec_kw={"wspace": 0.15, "hspace": 0.1})
    for ax, (name, p) in zip(panels.flat, shares.items(), strict=True):
        bars = ax.bar(words, p, color=plots.BLUE, width=0.6)
        ax.bar_label(bars, [f"{x:.2f}" if x else "out" for x in p], padding=2, fontsize=13)
        ax.set_title(name, fontsize=14)
        ax.set(ylim=(0, 1.05), yticks=[])
        ax.spines["left"].set_visible(False)
        ax.tick_params(labelsize=13, length=0)
    plots.as_written(fig)
    plt.show()


def descent_to_the_floor(gaps, diary, blind, lazy):
    """How far above the floor the loss is at each step, on a logarithmic axis, and what the model wrote at four heights.

    ``gaps``: nats a word, a number a step; ``diary``: {step: (its words, how many of them the grammar allows)}; ``blind``,
    ``lazy``: where a player is who knows nothing, and the bigram.
    """
    steps = np.arange(len(gaps))
    smooth = np.array([np.mean(gaps[max(0, s - s // 8):s + s // 8 + 1]) for s in steps])
    _, ax = plt.subplots(figsize=(7.4, 6.8))
    ax.plot(steps, np.maximum(gaps, 0.012), color=plots.SKY, linewidth=0.8, alpha=0.6)
    ax.plot(steps, smooth, color=plots.BLUE, linewidth=3)
    ax.fill_between([-12, 414], 0.005, 0.0073, color="#e9e9e9")
    ax.text(201, 0.006, "the floor is infinitely far below: this axis has no zero", ha="center", va="center", fontsize=12,
            color="#444444")
    for y in (blind, lazy):
        ax.axhline(y, color=plots.GREY, linestyle=":", linewidth=1)
    ax.text(412, blind * 1.06, "knows nothing", ha="right", va="bottom", color=plots.GREY, fontsize=13)
    ax.text(-8, lazy * 0.94, "bigram", va="top", color=plots.GREY, fontsize=13)
    for step, (words, allowed) in diary.items():
        y = smooth[min(step, len(smooth) - 1)]
        up = {0: 15, 50: 31, 100: 25, 400: -40}[step]
        _typed(ax, (step, y), f"{step}:", _coloured(words, allowed), 14 if step < 400 else -2, up)
        ax.plot(step, y, "o", color=plots.ORANGE, markersize=12, zorder=4)
    ax.set(yscale="log", ylim=(0.005, 9), xlim=(-12, 414))
    ax.set_xlabel("step", fontsize=13)
    ax.set_ylabel("nats per word above the floor", fontsize=13)
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.tick_params(labelsize=13)
    ax.minorticks_off()
    plots.as_written(ax.figure)
    plt.show()


def _coloured(words, allowed):
    """(word, colour) of each: black as long as the grammar allows them, red the first that it forbids, grey what follows."""
    return [(word, "black" if i < allowed else plots.RED if i == allowed else plots.GREY) for i, word in enumerate(words)]


def _typed(ax, point, label, pairs, right, up, size=11, wide=46):
    """Coloured words in at most two lines beside a point, in a typewriter's letters, which are equally wide."""
    lines = [[]]
    for pair in [(label, plots.BLUE), *pairs]:
        if sum(len(word) + 1 for word, _ in lines[-1]) + len(pair[0]) > wide:
            lines.append([("   ", "white")])
        lines[-1].append(pair)
    if len(lines) > 2:
        lines[1][-1] = ("…", plots.GREY)
    for row, line in enumerate(lines[:2]):
        width = sum(len(word) + 1 for word, _ in line)
        x = right - 0.602 * size * wide * (right <= 0)
        y = up + 15 * (len(lines[:2]) - 1 - row)
        style = {"textcoords": "offset points", "va": "center", "size": size, "family": "monospace"}
        ax.annotate(" " * width, point, (x, y), bbox={"fc": "white", "ec": "none", "pad": 1}, **style)
        for word, colour in line:
            ax.annotate(word, point, (x, y), color=colour, **style,
                        weight="bold" if colour in (plots.RED, plots.BLUE) else "normal")
            x += 0.602 * size * (len(word) + 1)


def beside_the_truth(words, truth, model, top=1.08):
    """For each word a hollow square at its true probability and a dot at the model's. ``truth``, ``model``: ``(n,)``."""
    _, ax = plt.subplots(figsize=(6.6, 3.6))
    ax.plot(truth, "s", color=plots.BLUE, markersize=14, fillstyle="none", markeredgewidth=2, label="the truth")
    ax.plot(model, "o", color=plots.ORANGE, markersize=8, label="your model")
    ax.set_xticks(range(len(words)), words, rotation=40, ha="right", fontsize=13 if len(words) < 26 else 7)
    ax.set(xlim=(-0.6, len(words) - 0.4), ylim=(-0.06 * top, top))
    ax.set_ylabel("probability", fontsize=13)
    ax.tick_params(axis="y", labelsize=13)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=13)
    plots.as_written(ax.figure)
    plt.show()


def rounds_won(players):
    """A bar for each player, the rounds that it wins of ten. ``players``: {name: number}."""
    colours = {"your transformer": plots.ORANGE, "you": plots.GREEN}
    _, ax = plt.subplots(figsize=(6.6, 3))
    plots.bars(list(players), list(players.values()), ax=ax, colours=[colours.get(name, plots.BLUE) for name in players])
    ax.set_xlabel("rounds won of ten, on average", fontsize=13)
    ax.tick_params(labelsize=13)
    plt.show()


def two_slopes(plain, adam):
    """Two weights against the steps, with plain descent in grey and with AdamW. ``plain``, ``adam``: (steps, 2)."""
    _, ax = plt.subplots(figsize=(6.6, 3.6))
    ax.plot(plain, color=plots.GREY, linewidth=2)
    ax.plot(adam[:, 0], color=plots.BLUE, linewidth=5)
    ax.plot(adam[:, 1], color=plots.ORANGE, linewidth=2, linestyle="--")
    for y, words, colour in [(3.12, "plain, steep", plots.GREY), (0.12, "plain, flat", plots.GREY),
                             (1.3, "AdamW, steep and flat", plots.BLUE)]:
        ax.text(34, y, words, fontsize=13, color=plots.ink(colour))
    ax.set_ylim(-0.2, 3.7)
    ax.set_xlabel("steps", fontsize=13)
    ax.set_ylabel("weight", fontsize=13)
    ax.tick_params(labelsize=13)
    plt.show()


def agreement(right, sizes):
    """The share of verbs in the right form against the distractors of the other number, a line for each model.

    ``right``: {model: a share for each number of distractors}; ``sizes``: how many verbs.
    """
    _, ax = plt.subplots(figsize=(6.6, 4.4))
    for (name, shares), style in zip(right.items(), ["o-", "s--", "^:"], strict=True):
        ax.plot(range(len(shares)), shares, style, label=name, linewidth=2)
    ax.set_xticks(range(len(sizes)), [f"{k}\n({n:,} verbs)" for k, n in enumerate(sizes)])
    ax.axhline(0.5, color=plots.GREY, linewidth=1)
    ax.set(ylim=(-0.03, 1.05))
    ax.set_xlabel("distractors of the other number before the verb", fontsize=13)
    ax.set_ylabel("right form more probable", fontsize=13)
    ax.tick_params(labelsize=13)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, fontsize=13)
    plt.show()


def accepted(temperatures, shares):
    """The share of sentences that the grammar accepts against the temperature. ``shares``: {None or k: a share for each}."""
    _, ax = plt.subplots(figsize=(6.4, 3.8))
    for k, style, colour in ((5, "s--", plots.ORANGE), (None, "o-", plots.BLUE)):
        ax.plot(temperatures, shares[k], style, color=colour, linewidth=2, label=f"top-k {k}" if k else "no limit")
    ax.set(ylim=(0, 1.05))
    ax.set_xlabel("temperature", fontsize=13)
    ax.set_ylabel("share accepted", fontsize=13)
    ax.tick_params(labelsize=13)
    ax.legend(loc="lower left", fontsize=13)
    plt.show()
