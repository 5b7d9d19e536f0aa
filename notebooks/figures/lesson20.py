"""The figures of lesson 20: an image is a sentence of patches."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle, FancyBboxPatch

from helpers import plots

HEADS = [plots.BLUE, plots.RED, plots.GREEN, plots.PURPLE]


def _pixels(ax, image, left, top, side, edge="#cfc9bd"):
    """Draw an image (H, W) with squares of this side, its left upper corner at (left, top); y goes down."""
    for (row, column), ink in np.ndenumerate(np.asarray(image)):
        shade = np.array([0.96, 0.945, 0.918]) * (1 - ink) + np.array([0.10, 0.12, 0.16]) * ink
        ax.add_patch(plt.Rectangle((left + column * side, top + row * side), side, side, facecolor=shade, edgecolor=edge,
                                   linewidth=0.4))


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
    plt.show()


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


def orders(images, shuffled):
    """The same digits for us and for the model: ``images`` (n, 8, 8) above, their pixels in another order below."""
    _, ax = plt.subplots(figsize=(6.6, 3.1))
    for number, (image, mixed) in enumerate(zip(images, shuffled, strict=True)):
        _pixels(ax, image, 9.5 * number, 0, 1)
        _pixels(ax, mixed, 9.5 * number, 10, 1)
    ax.text(0, -0.8, "as they were written", fontsize=12)
    ax.text(0, 19.6, "the same, all pixels in one other order", fontsize=12)
    ax.set(xlim=(-0.3, 9.5 * len(images) - 1.2), ylim=(20, -2), aspect="equal")
    ax.axis("off")
    plt.show()


def where_it_looks(image, weights, probabilities):
    """What a model makes of one image (8, 8): ribbons from the token that asks to the three patches that each head looks at
    most, and its probabilities (10,). ``weights``: ``(h, 16)``, of the token that asks for each patch."""
    _, (ax, bars) = plt.subplots(1, 2, figsize=(7.2, 4.0), width_ratios=[1.75, 1])
    _pixels(ax, image, 6, 0, 1)
    ax.add_patch(Circle((0.6, 4), 0.85, facecolor=plots.ORANGE, edgecolor="none", zorder=4))
    ax.text(0.6, 4.03, "?", ha="center", va="center", fontsize=18, fontweight="bold", zorder=5)
    for head, (shares, colour) in enumerate(zip(np.asarray(weights), HEADS, strict=False)):
        for patch in np.argsort(shares)[::-1][:3]:
            row, column = divmod(int(patch), 4)
            x = 6 + 2 * column + 0.35 + 0.43 * head
            y = 2 * row + 1
            plots.ribbon(ax, (1.2, 4.15, 3.85), (x, y + shares[patch], y - shares[patch]), color=colour, alpha=0.55)
            ax.add_patch(Circle((x, y), 0.2 + 0.5 * shares[patch], facecolor=colour, edgecolor="white", linewidth=0.8,
                                zorder=3))
    for head, colour in enumerate(HEADS[:len(weights)]):
        ax.text(0.2 + 3.4 * head, 9.3, f"head {head}", color=colour, fontsize=12, fontweight="bold")
    ax.set(xlim=(-0.6, 14.4), ylim=(9.6, -0.4), aspect="equal")
    ax.axis("off")
    best = int(np.argmax(probabilities))
    colours = [plots.ORANGE if digit == best else "#b8c4cc" for digit in range(10)]
    drawn = bars.barh(range(10), probabilities, color=colours, height=0.75)
    bars.bar_label(drawn, [f"{p:.0%}" if p > 0.005 else "" for p in probabilities], padding=3, fontsize=11)
    bars.set_yticks(range(10), range(10), fontsize=12)
    bars.invert_yaxis()
    bars.set(xlim=(0, 1.25), xticks=[], title=f"it reads: {best}")
    bars.spines["bottom"].set_visible(False)
    plt.show()


def looking_and_mattering(image, looked, lost):
    """Two questions to each patch of an image (8, 8). ``looked``: (16,) the weight that the token that asks gives it, mean
    over the heads; ``lost``: (16,) by how much the logit of the answer falls without its ink."""
    _, panels = plt.subplots(1, 2, figsize=(6.4, 3.6))
    for ax, values, title, label in [(panels[0], looked, "where it looks", "of the weight"),
                                     (panels[1], lost, "what it would miss", "of the logit")]:
        _pixels(ax, image, 0, 0, 1)
        for patch, value in enumerate(values):
            row, column = divmod(patch, 4)
            strength = max(0.0, float(value)) / max(values)
            corner = 2 * column + 0.15, 2 * row + 0.15
            ax.add_patch(FancyBboxPatch(corner, 1.7, 1.7, boxstyle="round,pad=0,rounding_size=0.3", facecolor="none",
                                        edgecolor=plots.ORANGE, linewidth=0.2 + 6 * strength, alpha=0.9))
        ax.set_title(title, fontsize=13)
        ax.text(4, 8.7, f"thicker: more {label}", ha="center", fontsize=11, color=plots.GREY)
        ax.set(xlim=(-0.4, 8.4), ylim=(9, -0.4), aspect="equal")
        ax.axis("off")
    plt.show()


def two_sounds(spectrograms, names):
    """Spectrograms of two sounds, each (pitches, times): time to the right, pitch upwards."""
    _, panels = plt.subplots(1, 2, figsize=(6.4, 2.9), sharey=True)
    for ax, sound, name in zip(panels, spectrograms, names, strict=True):
        ax.imshow(sound, origin="lower", aspect="auto", cmap="Blues")
        ax.set(xlabel="time", xticks=[], yticks=[], title=name)
    panels[0].set_ylabel("pitch")
    plt.show()
