"""The figures of lesson 19: reward, and what goes wrong."""

import matplotlib.pyplot as plt
import numpy as np
import torch

from helpers import plots, reward
from helpers.grammars import BOS
from helpers.page import steps

INK = plots.ink(plots.ORANGE)
LETTER = 6.62  # points, of the letters of a diary


def advantages_by_hand():
    """Step by step: the points of two groups of four texts, minus the mean of their group, divided by its spread."""
    names = ["text 1", "text 2", "text 3", "text 4"]
    groups = np.array([[0.0, 0, 2, 2], [1, 1, 1, 5]])
    centred = groups - groups.mean(1, keepdims=True)
    spread = groups.std(1, keepdims=True)
    after = ["after 'the'", "after 'bears'"]
    steps.show(
        ("Points", [steps.grid(groups, "points", after, names, decimals=0)],
         "Two groups of four texts. The means are 1 and 2."),
        ("Minus the mean", [steps.grid(centred, "points - mean", after, names, decimals=0)],
         "Now 0 is usual. The standard deviations are 1 and 1.73."),
        ("Divided by the spread", [steps.grid(centred / spread, "advantages", after, names)],
         "Each group now has mean 0 and standard deviation 1. One text of the second sticks out."))


def more_of_what_was_better(judge, texts):
    """A group of texts after one beginning word, with an arrow at each word that was chosen: up in the better texts, down in
    the worse ones, as long as the advantage.

    ``judge``: a list of words -> points; ``texts``: a list of strings.
    """
    points = [judge(text.split()) for text in texts]
    better = reward.advantages(torch.tensor([points], dtype=torch.float32))[0]
    _, ax = plt.subplots(figsize=(7.6, 3.4))
    for y, (text, advantage) in enumerate(zip(texts, better.tolist(), strict=True)):
        colour, up = (plots.BLUE, 1) if advantage > 0 else (plots.RED, -1)
        for x, word in enumerate(text.split()):
            ax.text(x, -y, word, ha="center", va="center", fontsize=14, color="black" if x else plots.GREY)
            if x:  # the beginning is given
                foot = -y - up * 0.2 * abs(advantage) + up * 0.02
                ax.annotate("", (x + 0.47, -y + up * 0.2 * abs(advantage)), (x + 0.47, foot),
                            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2})
        ax.text(6.85, -y, points[y], va="center", fontsize=14, color=plots.GREY)
        ax.text(7.25, -y, f"{advantage:+.1f}", va="center", fontsize=14, color=colour, weight="bold")
    ax.text(8.1, 0.65, "points and advantage", fontsize=13, color=plots.GREY, ha="right")
    ax.set(xlim=(-0.5, 8.1), ylim=(-3.5, 0.8))
    ax.axis("off")
    plt.show()


def measured_and_meant(run, honest, grammar):
    """What was paid for and what was meant, by steps, and what the model writes after the first prompt.

    ``run``: a `reward.Run`; ``honest``: the most points that texts within the rules can earn.
    """
    _, (points, share, below) = plt.subplots(3, 1, figsize=(7.6, 7.6), height_ratios=[1.4, 1.4, 1.3])
    points.plot(run.at, run.reward, "o-", color=plots.ORANGE, linewidth=3.5, markersize=7)
    share.plot(run.at, 100 * np.array(run.allowed), "s-", color=plots.BLUE, linewidth=3.5, markersize=6)
    points.axhline(honest, color=INK, linestyle=":", linewidth=1.5)
    points.text(0, honest + 1, "honest texts cannot earn more on average", color=INK, fontsize=12)
    for panel in (points, share):
        for step in run.texts:
            panel.axvline(step, color="#dddddd", linewidth=1, zorder=0)
        panel.set(xlim=(-0.8, 61), xticks=range(0, 61, 10))
        panel.tick_params(labelsize=12)
    points.tick_params(labelbottom=False)
    points.set(ylim=(0, 32))
    points.set_ylabel("points of a text", fontsize=13)
    share.set(ylim=(0, 105))
    share.set_xlabel("steps", fontsize=13)
    share.set_ylabel("words that the\ngrammar allows, in %", fontsize=13)
    points.text(43, 23, "measured:\nwhat we paid for", color=INK, fontsize=15, ha="right", weight="bold")
    share.text(21, 62, "meant", color=plots.BLUE, fontsize=15, weight="bold")
    _diary(below, run, grammar, "What it writes after 'the'")
    plt.show()


def leash_paths(runs, honest):
    """Points against grammar, a path for each run from one star.

    ``runs``: {strength of the leash, 0 without: `reward.Run`}; ``honest``: as for `measured_and_meant`.
    """
    _, ax = plt.subplots(figsize=(7.6, 4.8))
    places = {0: (4, 10), 0.1: (26, -20), 0.3: (26, -24), 1: (-4, 14)}
    colours = [plots.RED, plots.ORANGE, plots.GREEN, plots.BLUE]
    for (strength, run), marker, colour in zip(sorted(runs.items()), "os^D", colours, strict=True):
        ax.plot(run.reward, 100 * np.array(run.allowed), marker=marker, color=colour, markersize=6, linewidth=2, alpha=0.85)
        name = f"leash {strength}" if strength else "no leash"
        ax.annotate(name, (run.reward[-1], 100 * run.allowed[-1]), places[strength], ha="center",
                    textcoords="offset points", color=plots.ink(colour), fontsize=14, weight="bold")
    ax.plot(runs[0].reward[0], 100 * runs[0].allowed[0], "*", color="black", markersize=18, zorder=5)
    ax.annotate("all start here", (runs[0].reward[0], 100 * runs[0].allowed[0]), (-10, -28), fontsize=13,
                textcoords="offset points")
    ax.axvline(honest, color=INK, linestyle=":")
    ax.text(honest * 1.05, 66, "honest texts cannot\nearn more on average", color=INK, fontsize=12)
    ax.set(xscale="log", xlim=(0.17, 40), ylim=(0, 108))
    ax.set_xlabel("points of a text (equal distances are equal factors)", fontsize=13)
    ax.set_ylabel("words that the grammar allows, in %", fontsize=13)
    ax.set_xticks([0.2, 0.5, 1, 2, 5, 10, 20], ["0.2", "0.5", "1", "2", "5", "10", "20"])
    ax.tick_params(labelsize=12)
    ax.minorticks_off()
    plt.show()


def two_ways(free, held, strength, grammar):
    """One's own reward without a leash and on one: points and grammar by steps, and what is written on each way.

    ``free``, ``held``: two `reward.Run`; ``strength``: of the leash.
    """
    _, panels = plt.subplot_mosaic([["points", "share"], ["free", "free"], ["held", "held"]], figsize=(7.6, 6.6),
                                   height_ratios=[1.5, 1, 1])
    points, share = panels["points"], panels["share"]
    names = ["without a leash", f"on a leash of {strength}"]
    for run, name, colour, marker, diary in zip(
            (free, held), names, (plots.RED, plots.GREEN), "o^", (panels["free"], panels["held"]), strict=True):
        points.plot(run.at, run.reward, marker=marker, color=colour, linewidth=3, label=name)
        share.plot(run.at, 100 * np.array(run.allowed), marker=marker, color=colour, linewidth=3)
        _diary(diary, run, grammar, f"What it writes {name}")
    for ax, title in ((points, "points of a text"), (share, "words that the grammar allows, in %")):
        ax.set_title(title, fontsize=13)
        ax.set_xlabel("steps", fontsize=13)
        ax.tick_params(labelsize=12)
    share.set(ylim=(0, 105))
    points.legend(fontsize=12, loc="upper left")
    plt.show()


def _diary(ax, run, grammar, title, wide=60):
    """What a model wrote after the first prompt, a line for each step that was kept."""
    for y, (step, texts) in enumerate(run.texts.items()):
        at = {"xy": (0, -y), "textcoords": "offset points", "va": "center", "in_layout": False}
        ax.annotate(f"step {step}", xytext=(52, 0), ha="right", color=INK, fontsize=12, **at)
        x, words = 0, _coloured(texts[0], grammar)
        for i, (word, colour) in enumerate(words):
            if x + len(word) > wide - 2 and i < len(words) - 1:
                word, colour = "…", "#8a8a8a"
            ax.annotate(word, xytext=(60 + LETTER * x, 0), family="monospace", color=colour, fontsize=11,
                        weight="bold" if colour == plots.RED else "normal", **at)
            if word == "…":
                break
            x += len(word) + 1
    ax.set(xlim=(0, 1), ylim=(0.6 - len(run.texts), 0.6))
    ax.set_title(title, fontsize=13)
    ax.axis("off")


def _coloured(words, grammar):
    """[(word, colour)]: red is the first word that the grammar forbids, grey what follows it."""
    ids = torch.tensor([[BOS, *grammar.vocabulary.encode(words)]])
    fine = (grammar.read(ids).log_p[0, 1:] > -torch.inf).tolist()
    first = fine.index(False) if False in fine else len(words)
    return [(word, "black" if i < first else plots.RED if i == first else "#8a8a8a") for i, word in enumerate(words)]


def points_for_the_distance(runs, best, far, sizes, by_pairs=None):
    """Points against KL: runs on a leash, the best of n, and perhaps runs on pairs.

    ``runs``, ``by_pairs``: {strength or β: `reward.Run`}; ``best``, ``far``: points and KL of the best of each of ``sizes``
    texts.
    """
    _, ax = plt.subplots(figsize=(6.6, 4.6))
    lines = [(runs[0.3], plots.GREEN, "^", "policy gradient on a leash of 0.3"),
             (runs[0.1], plots.ORANGE, "s", "policy gradient on a leash of 0.1")]
    if by_pairs:
        lines += [(run, colour, "D", f"pairs, β = {beta}")
                  for (beta, run), colour in zip(by_pairs.items(), (plots.RED, plots.BLUE), strict=True)]
    for run, colour, marker, label in lines:
        near = np.array(run.kl) < 5
        ax.plot(np.array(run.kl)[near], np.array(run.reward)[near], color=colour, marker=marker, label=label)
    ax.plot(far, best, "o--", color=plots.PURPLE, label="best of n")
    for n, x, y in zip(sizes, far, best, strict=True):
        ax.annotate(f"{n}", (x, y), (-6, 5), textcoords="offset points", color=plots.PURPLE, ha="right", fontsize=12)
    ax.set_xlabel("KL of a whole text from the reference, in nats", fontsize=13)
    ax.set_ylabel("points of a text", fontsize=13)
    ax.legend(loc="upper left", fontsize=12)
    plt.show()


def scatter_of_gradients(gradients, noises):
    """Twenty gradients as arrows, each of one batch: upwards what they have in common (orange), to the side the rest.

    ``gradients``: {name: tensor (batches, numbers)}; ``noises``: {name: scatter in lengths of the mean gradient}. Upwards is
    the mean of the last ones, which scatter least; to the side is drawn how far, and not which of the many ways.
    """
    way = list(gradients.values())[-1].mean(0)
    way = way / way.norm()
    _, axes = plt.subplots(2, 2, figsize=(6.4, 4.2))
    for ax, (name, found) in zip(axes.flat, gradients.items(), strict=True):
        along = found @ way
        aside = (found.square().sum(1) - along.square()).sqrt() / along.mean()
        side = (-1) ** torch.arange(len(found))  # left and right in turn
        ax.quiver(*np.zeros((2, len(found))), side * aside, along / along.mean(), angles="xy", scale_units="xy", scale=1,
                  color=plots.BLUE, alpha=0.6, width=0.006)
        ax.quiver(0, 0, 0, 1, angles="xy", scale_units="xy", scale=1, color=plots.ORANGE, width=0.018, zorder=3)
        ax.set(xlim=(-3.5, 3.5), ylim=(-0.3, 2.6), aspect="equal", xticks=[], yticks=[])
        ax.set_title(f"{name}\nscatter {noises[name]:.1f} times the mean", fontsize=14)
        for line in ax.spines.values():
            line.set(visible=True, color=plots.GREY, alpha=0.4)
    plt.show()
