"""The figures of lesson 20: an image is a sentence of patches.

Those with pixels keep their colours on a dark page, because 1 is ink.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, FancyBboxPatch

from helpers import plots

HEADS = [plots.BLUE, plots.RED, plots.GREEN, plots.PURPLE]


def _pixels(ax, image, left, top, side, edge="#cfc9bd"):
    """Draw an image (H, W) with squares of this side, its left upper corner at (left, top); y goes down, ink is on top."""
    for (row, column), ink in np.ndenumerate(np.asarray(image)):
        shade = np.array([0.96, 0.945, 0.918]) * (1 - ink) + np.array([0.10, 0.12, 0.16]) * ink
        ax.add_patch(plt.Rectangle((left + column * side, top + row * side), side, side, facecolor=shade, edgecolor=edge,
                                   linewidth=0.4, zorder=3 if ink > 0.3 else 1))


def cut_into_patches(image, patches):
    """An image (8, 8), its patches (16, 4) pulled apart, and the sentence that they make, a token in front that asks."""
    _, ax = plt.subplots(figsize=(7.2, 4.3))
    _pixels(ax, image, 0, 0, 1)
    ax.annotate("", (10.6, 4), (8.6, 4), arrowprops={"arrowstyle": "-|>", "color": plots.GREY, "linewidth": 1.8})
    for number, patch in enumerate(np.asarray(patches)):
        row, column = divmod(number, 4)
        _pixels(ax, patch.reshape(2, 2), 11 + 2.6 * column, -0.9 + 2.6 * row, 1)
        _pixels(ax, patch.reshape(2, 2), 1.55 * (number + 1), 12, 0.6)
        ax.text(1.55 * (number + 1) + 0.6, 13.9, number + 1, ha="center", fontsize=11, color=plots.GREY)
    ax.add_patch(Circle((0.6, 12.6), 0.75, facecolor=plots.ORANGE, edgecolor="none"))
    ax.text(0.6, 12.62, "?", ha="center", va="center", fontsize=15, fontweight="bold")
    ax.text(0.6, 13.9, 0, ha="center", fontsize=11, color=plots.GREY)
    ax.text(0, -0.5, "8 × 8 pixels", fontsize=12)
    ax.text(11, -1.4, "16 patches of 2 × 2", fontsize=12)
    ax.text(-0.2, 11.2, "a sentence of 17 tokens", fontsize=12)
    ax.set(xlim=(-0.6, 26.6), ylim=(14.6, -2.4), aspect="equal")
    ax.axis("off")
    plots.as_drawn(ax.figure)


def learning(histories, baseline):
    """Accuracy on other writers against the steps of training. ``histories``: {name: pairs (step, share)}; ``baseline``:
    {name: share} of methods that learn nothing, as dashed lines."""
    _, ax = plt.subplots(figsize=(6.4, 3.6))
    colours = [plots.BLUE, plots.ORANGE, plots.GREEN]
    for (name, measured), colour, marker in zip(histories.items(), colours, "osD", strict=True):
        steps, shares = zip(*measured, strict=True)
        ax.plot(steps, shares, color=colour, marker=marker, label=name)
    for (name, share), above in zip(baseline.items(), (0.06, -0.06), strict=True):
        ax.axhline(share, color=plots.GREY, linestyle="--", linewidth=1)
        ax.text(1.01, share + above, name.replace("similar ", "similar\n"), transform=ax.get_yaxis_transform(), va="center",
                fontsize=11, color=plots.GREY)
    ax.set(xlabel="steps of training", ylabel="digits read correctly", ylim=(0, 1.06))
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.legend(fontsize=11, loc="lower right")
    plt.show()


def orders(images, shuffled, answers=()):
    """The same digits for us and for the model: ``images`` (n, 8, 8) above, their pixels in another order below, and below
    those what the model reads, if ``answers`` (n,) says it."""
    _, ax = plt.subplots(figsize=(6.6, 3.8 if len(answers) else 3.1))
    for number, (image, mixed) in enumerate(zip(images, shuffled, strict=True)):
        _pixels(ax, image, 9.5 * number, 0, 1)
        _pixels(ax, mixed, 9.5 * number, 10, 1)
    ax.text(0, -0.8, "as they were written", fontsize=12)
    ax.text(0, 19.6, "the same, all pixels in one other order", fontsize=12)
    for number, answer in enumerate(answers):
        ax.text(9.5 * number + 4, 24.2, f"{answer}", ha="center", fontsize=20, weight="bold", color=plots.BLUE)
    if len(answers):
        ax.text(0, 26, "what the model reads in them", fontsize=12)
    ax.set(xlim=(-0.3, 9.5 * len(images) - 1.2), ylim=(26.4 if len(answers) else 20, -2), aspect="equal")
    ax.axis("off")
    plots.as_drawn(ax.figure)


def where_it_looks(image, weights, probabilities):
    """What a model makes of one image (8, 8): for each head ribbons from the token that asks to the three patches that it
    looks at most, framed there, and the model's probabilities (10,). ``weights``: ``(h, 16)``, from that token to each
    patch."""
    figure = plt.figure(figsize=(5.6, 6.6))
    above, below = figure.subfigures(2, 1, height_ratios=[1.75, 1])
    for head, (ax, shares, colour) in enumerate(zip(above.subplots(2, 2).flat, np.asarray(weights), HEADS, strict=False)):
        _pixels(ax, image, 3, 0, 1)
        ax.add_patch(Circle((0, 4), 0.85, facecolor=plots.ORANGE, edgecolor="none", zorder=4))
        ax.text(0, 4.03, "?", ha="center", va="center", fontsize=14, fontweight="bold", zorder=5)
        for patch in np.argsort(shares)[::-1][:3]:
            row, column = divmod(int(patch), 4)
            x, y = 3 + 2 * column, 2 * row
            plots.ribbon(ax, (0.7, 4.15, 3.85), (x + 0.15, y + 1 + shares[patch], y + 1 - shares[patch]), color=colour,
                         alpha=0.55, zorder=3)
            ax.add_patch(FancyBboxPatch((x + 0.15, y + 0.15), 1.7, 1.7, boxstyle="round,pad=0,rounding_size=0.3",
                                        facecolor="none", edgecolor=colour, linewidth=1 + 5 * shares[patch], zorder=4))
        ax.set_title(f"head {head}", color=plots.ink(colour), fontsize=14, fontweight="bold", loc="center")
        ax.set(xlim=(-1.1, 11.3), ylim=(8.3, -0.3), aspect="equal")
        ax.axis("off")
    bars = below.subplots()
    best = int(np.argmax(probabilities))
    drawn = bars.bar(range(10), probabilities, width=0.75,
                     color=[plots.ORANGE if digit == best else "#b8c4cc" for digit in range(10)])
    bars.bar_label(drawn, [f"{p:.0%}" if p > 0.005 else "" for p in probabilities], padding=2, fontsize=13)
    bars.set_xticks(range(10), range(10), fontsize=14)
    bars.tick_params(length=0)
    bars.set(ylim=(0, 1.2), yticks=[])
    bars.set_title(f"it reads: {best}", fontsize=14, fontweight="bold")
    bars.spines["left"].set_visible(False)
    plots.as_drawn(figure)


def looking_and_mattering(image, looked, lost):
    """Two questions to each patch of an image (8, 8). ``looked``: (16,) the weight that the token that asks gives it, mean
    over the heads; ``lost``: (16,) by how much the logit of the answer falls without its ink."""
    figure, panels = plt.subplots(1, 2, figsize=(6.4, 3.6))
    for ax, values, title, label in [(panels[0], looked, "where it looks", "thicker: more of the weight"),
                                     (panels[1], lost, "what it would miss", "thicker: the logit falls further")]:
        _pixels(ax, image, 0, 0, 1)
        for patch, value in enumerate(values):
            row, column = divmod(patch, 4)
            strength = max(0.0, float(value)) / max(values)
            corner = 2 * column + 0.15, 2 * row + 0.15
            ax.add_patch(FancyBboxPatch(corner, 1.7, 1.7, boxstyle="round,pad=0,rounding_size=0.3", facecolor="none",
                                        edgecolor=plots.ORANGE, linewidth=0.2 + 6 * strength, alpha=0.9, zorder=4))
        ax.set_title(title, fontsize=13)
        ax.text(4, 8.7, label, ha="center", fontsize=11, color=plots.GREY)
        ax.set(xlim=(-0.4, 8.4), ylim=(9, -0.4), aspect="equal")
        ax.axis("off")
    plots.as_drawn(figure)


def two_sounds(spectrograms, names):
    """Spectrograms of two sounds, each (pitches, times): time to the right, pitch upwards."""
    _, panels = plt.subplots(1, 2, figsize=(5.6, 3.2), sharey=True)
    for ax, sound, name in zip(panels, spectrograms, names, strict=True):
        ax.imshow(sound, origin="lower", aspect="auto", cmap="Blues")
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"“{name}”", fontsize=15)
        ax.set_xlabel("time →", fontsize=14)
    panels[0].set_ylabel("pitch →", fontsize=14)
    plt.show()
