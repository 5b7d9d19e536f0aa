"""The figures of lesson 16: a chat model in your own code."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.colors import to_rgb
from torch.nn import functional as F

from helpers import plots
from helpers.page import steps

AMBER, NO_LIGHT = "#ffb000", "#e3e3e3"
NIGHT, WALL, LIGHT = "#12233a", "#22384f", "#f4f1e8"
KEPT, CUT = ("#8fcbee", "#bfe1f5"), ("#d9d9d9", "#ececec")  # slices in turn
LESSON = {  # its colour
    "01": "#c9a0dc", "02": "#f0e442", "04": "#5aa9e6", "05": "#ef7f7f", "06": "#b7c0c7", "07": "#9be0d0",
    "08": "#2fbf71", "09": "#ffffff", "11": "#ff8f66", "14": "#ff9ecb", "15": "#c8b08a", "16": "#ffb52e"}
LAYER = [  # its parts, and the lesson that built each
    ("norm1", "16"), ("queries, keys, values", "04"), ("cut into heads", "07"), ("turned by their places", "08"),
    ("groups, cache", "14"), ("scores, scaled", "05"), ("causal mask", "06"), ("softmax, sum", "02"),
    ("heads joined, W_o", "07"), ("added to the stream", "09"), ("norm2", "16"), ("gated MLP", "16"),
    ("added to the stream", "09")]


def dimmer():
    """SiLU as a gate: ten lamps for a = -5 to 4, as bright as their gate is open, above SiLU and ReLU as curves."""
    a = torch.linspace(-5, 4, 301)
    stops = torch.arange(-5.0, 5.0)
    _, (lamps, ax) = plt.subplots(2, 1, figsize=(6.6, 4.7), height_ratios=[1, 1.8], sharex=True)
    for x, gate in zip(stops.tolist(), F.silu(stops).tolist(), strict=True):
        _lamp(lamps, x, max(0, gate) / 4)  # a gate below 0 gives no light
        lamps.text(x, -0.75, f"{3 * gate:.1f}", ha="center", va="center", fontsize=12)
        ax.plot([x, x], [0, gate], color=AMBER, linewidth=5, alpha=0.5, zorder=1)
    lamps.set(ylim=(-1.1, 1.5))
    lamps.set_title("The gate as a dimmer: what it lets through of a 3", fontsize=13)
    lamps.axis("off")
    ax.plot(a, F.silu(a), linewidth=2.2)
    ax.plot(a, torch.relu(a), "--", color=plots.RED)
    ax.text(-4.9, 0.35, "SiLU(a): how far the gate is open", color=plots.BLUE, fontsize=13)
    ax.text(1.75, 2.75, "ReLU", color=plots.RED, fontsize=13, ha="right")
    ax.axhline(0, color="black", linewidth=0.8, zorder=0)
    ax.set(xlim=(-5.5, 4.6), ylim=(-0.6, 4.2), xticks=range(-5, 5), yticks=[0, 2, 4])
    ax.set_xlabel("a", fontsize=13)
    plt.show()


def _lamp(ax, x, bright):
    """A lamp at x: its glow, its foot and its bulb. ``bright``: from 0 to 1."""
    for size in (1700, 1100, 650):
        ax.scatter(x, 0.5, s=size, color=AMBER, alpha=0.45 * bright, linewidth=0)
    ax.plot([x, x], [-0.15, 0.2], color=plots.GREY, linewidth=7, solid_capstyle="butt")
    ax.scatter(x, 0.5, s=300, color=NO_LIGHT, linewidth=0)
    ax.scatter(x, 0.5, s=300, color=AMBER, alpha=min(1, 1.4 * bright), linewidth=0)


def prompt_and_answer():
    """Steps: one head reads three tokens, writes one, reads two more, once with a wrong mask; then the groups.

    Every query is 1, so the scores are the keys; the values are 10, 20, 30, …
    """
    text = ["Where", "is", "Paris", "In", "How", "big"]
    by_group, in_turn = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3
    steps.show(
        ("Prefill, t = 0, T = 3", _new_tokens(text[:3], 0),
         "Nothing is cached: the triangle of lesson 06. Then the cache holds three keys and values."),
        ("Decode, t = 3, T = 1", _new_tokens(text[:4], 3),
         "One query. Blue keys come from the cache, the new one is appended. It sees all four."),
        ("The next message, t = 4, T = 2", _new_tokens(text, 4),
         "Two queries on six keys. Only one place is hidden: 'How' may not see 'big'."),
        ("Wrong: the mask without its offset", _new_tokens(text, 4, offset=0),
         "The triangle begins at the left again, as if nothing were cached: 'How' sees only 'Where'."),
        ("Groups", [steps.grid([by_group], "group of each query head, i // 3", columns=range(9), groups=by_group),
                    "and not", steps.grid([in_turn], "in turn", columns=range(9), groups=in_turn)],
         "h = 9 heads of queries, g = 3 heads of keys and values. The cache holds 3 heads, not 9."))


def _new_tokens(words, start, offset=None):
    """The parts of a step: the tokens from ``start`` on attend. ``offset``: of the mask, by default the right one."""
    n, new = len(words), words[start:]
    keys, values = np.array([1, 0, 2, 1, 0, 3][:n]), 10.0 * np.arange(1, n + 1)
    may = np.tri(n - start, n, start if offset is None else offset)
    weights = np.where(may, np.exp(keys), 0)
    weights /= weights.sum(axis=1, keepdims=True)
    cached_or_new = np.array([[1] * start + [2] * (n - start)] * len(new))
    scores = np.where(may > 0, keys, -np.inf)
    return [steps.grid(scores, "masked scores", new, words, groups=cached_or_new, decimals=0), "softmax →",
            steps.grid(weights, "weights", new, words, shade=True), f"· (10, …, {10 * n}) =",
            steps.grid((weights @ values)[:, None], "output", new, decimals=1)]


def tower(model):
    """The model as a tower of thirty storeys at night, every part in the colour of the lesson that built it, and
    one storey large beside it. ``model``: a `ChatModel`, whose numbers are counted, or None."""
    fig, ax = plt.subplots(figsize=(7.6, 8.4), facecolor=NIGHT)
    ax.add_patch(plt.Rectangle((0.35, 4), 4.1, 30, facecolor=WALL, linewidth=0))
    for floor in range(30):
        for i, (_, lesson) in enumerate(LAYER):
            _window(ax, 0.5 + 0.293 * i, 4.16 + floor, 0.21, 0.68, lesson)
        if floor % 5 == 0 or floor == 29:
            ax.text(0.15, 4.5 + floor, floor, ha="right", va="center", fontsize=11, color=LIGHT)
    lit, bottom, tall = 14, 4.7, 2.25  # the storey that is shown large; its first room; the height of a room
    ax.add_patch(plt.Rectangle((0.35, 4 + lit), 4.1, 1, fill=False, edgecolor=LIGHT, linewidth=2))
    for end, edge in [(4 + lit, bottom - 0.25), (5 + lit, bottom + 13 * tall - 0.4)]:
        ax.plot([4.45, 5.35], [end, edge], color=LIGHT, linewidth=1)
    for i, (text, lesson) in enumerate(LAYER):
        _room(ax, 5.5, bottom + tall * i, text, lesson, height=1.6)
    for y, text, lesson in [(0.9, "text to tokens", "15"), (2.35, "embedding", "01"),
                            (34.5, "last norm", "16"), (35.95, "logits, draw a token", "11")]:
        _room(ax, 0.1, y, text, lesson)
    ax.text(2.4, -0.35, "The capital of France is", ha="center", fontsize=13, color=LIGHT,
            style="italic")
    ax.text(2.4, 38.45, "Paris", ha="center", va="center", fontsize=16, color=NIGHT, weight="bold",
            bbox={"boxstyle": "round,pad=0.5", "facecolor": LIGHT, "linewidth": 0})
    ax.text(7.8, bottom + 13 * tall + 0.5, f"storey {lit}", ha="center", fontsize=14, color=LIGHT)
    ax.text(7.8, 1.5, f"thirty storeys, one plan{_sizes(model)}", ha="center", va="center", fontsize=13,
            color=LIGHT)
    ax.set(xlim=(-0.7, 10.4), ylim=(-1.2, 39.6))
    ax.axis("off")
    plots.as_drawn(fig)


def _sizes(model):
    if model is None:
        return ""
    in_layers = sum(W.numel() for w in model.layers for W in w.values()) / 1e6
    return (f",\n{in_layers:.1f} million numbers;\n"
            f"the embedding has {model.embedding.numel() / 1e6:.1f} million")


def _window(ax, x, y, width, height, lesson):
    ax.add_patch(plt.Rectangle((x, y), width, height, facecolor=LESSON[lesson], linewidth=0))


def _room(ax, x, y, text, lesson, width=4.6, height=1.05):
    """A named part: its colour, the number of its lesson, its name."""
    ax.add_patch(plt.Rectangle((x, y), width, height, facecolor=WALL, linewidth=0))
    _window(ax, x, y, 0.85, height, lesson)
    ax.text(x + 0.42, y + height / 2, lesson, ha="center", va="center", fontsize=12.5, weight="bold",
            color=NIGHT)
    ax.text(x + 1.1, y + height / 2, text, va="center", fontsize=12.5, color=LIGHT)


def nucleus_cut(shares_of, nucleus, p, text_of):
    """For each text all next tokens as slices of one bar, the likeliest first, and the cut at p.

    ``shares_of``: {text: probabilities ``(V,)``}; ``nucleus(probabilities, p)``: ``(V,)``; ``text_of``: of an id.
    """
    _, panels = plt.subplots(len(shares_of), 1, figsize=(6.4, 2.2 * len(shares_of)))
    for ax, (text, shares) in zip(panels, shares_of.items(), strict=True):
        kept = int((nucleus(shares, p) > 0).sum())
        ordered, ids = shares.sort(descending=True)
        right = ordered.cumsum(0)  # where each slice ends
        cut = float(right[kept - 1])
        ax.barh(0, 1, height=1, align="edge", color="#d9d9d9")
        for i in range(kept + 40):  # the slices further right are too thin to be seen
            tints = np.array([to_rgb(tint) for tint in (KEPT if i < kept else CUT)])
            told_apart = min(1.0, float(ordered[i]) / 0.004)  # the thinnest run into one tint, or there would be stripes
            tint = tints.mean(0) + told_apart * (tints[i % 2] - tints.mean(0))
            ax.barh(0, ordered[i], height=1, align="edge", left=right[i] - ordered[i], color=tint)
        for i in range(8):
            _slice_name(ax, text_of(int(ids[i])), float(right[i] - ordered[i]), float(ordered[i]))
        ax.plot([cut, cut], [-0.3, 1.2], color=plots.RED, linewidth=2)
        ax.text(cut, -0.36, f"{kept} tokens stay", color=plots.RED, fontsize=13, ha="right", va="top")
        ax.text(1, 1.3, f"{len(shares) - kept:,} go", color=plots.GREY, fontsize=13, ha="right")
        ax.set(xlim=(-0.005, 1.005), ylim=(-0.8, 1.7))
        ax.set_title(f"{text} …", fontsize=13)
        ax.axis("off")
    plots.as_written(panels[0].figure)
    plt.show()


def _slice_name(ax, token, start, width):
    """A token and its probability in its slice, upright where that is narrow; nothing where there is no room."""
    if width > 0.09:
        name = f"{token.strip()}\n{width:.2f}"
        ax.text(start + width / 2, 0.5, name, ha="center", va="center", fontsize=13)
    elif width > 0.028:
        ax.text(start + width / 2, 0.5, token.strip(), ha="center", va="center", fontsize=12, rotation=90)


def codes_in_bytes():
    """Steps: four bytes, their low and their high halves, the eight codes in order, and their numbers."""
    four = np.array([163, 15, 240, 72])
    halves = np.concatenate([four & 15, four >> 4])
    low = [1] * 4 + [2] * 4
    steps.show(
        ("Bytes", [steps.grid(four, "four bytes"), "=",
                   steps.grid([f"{b >> 4:04b} {b & 15:04b}" for b in four], "in bits, high first")],
         "Each byte holds two codes."),
        ("Low halves", [steps.grid([f"{b & 15:04b}" for b in four], "bytes & 15", groups=1), "=",
                        steps.grid(four & 15, "codes of numbers 0 to 3", groups=1)],
         "& 15 keeps the low four bits."),
        ("High halves", [steps.grid([f"{b >> 4:04b}" for b in four], "bytes >> 4", groups=2), "=",
                         steps.grid(four >> 4, "codes of numbers 4 to 7", groups=2)],
         ">> 4 moves the high four bits down."),
        ("In order", [steps.grid(halves, "codes of numbers 0 to 7", columns=range(8), groups=low)],
         "Not in turn: a byte's two numbers are far apart, in a real block 16 places."),
        ("Numbers", [steps.grid(halves, "codes", groups=low), "· 0.5 - 2 =",
                     steps.grid(halves * 0.5 - 2, "numbers", groups=low, decimals=1)],
         "One scale and one minimum serve the whole block."))


def levels(numbers, scales, minima):
    """The numbers of three blocks, ``(3, 32)``, as dots on the 16 levels of their block.

    ``scales``, ``minima``: ``(3,)``.
    """
    lines = minima[:, None] + scales[:, None] * torch.arange(16)  # (3, 16)
    _, ax = plt.subplots(figsize=(6.6, 3.6))
    for i in range(3):
        ax.hlines(lines[i], 34 * i, 34 * i + 31, color="#b0b8be", linewidth=0.9)
        ax.plot(34 * i + np.arange(32), numbers[i], "o", color=plots.BLUE, markersize=5)
        ax.text(34 * i + 15.5, lines.max() + 0.12, f"block {i}: 16 levels,\n{scales[i]:.2f} apart", fontsize=13, ha="center")
    ax.set(xticks=[], ylim=(lines.min() - 0.1, lines.max() + 0.55))
    ax.set_ylabel("value of a number", fontsize=13)
    ax.set_xlabel("the first 96 numbers of W_q in layer 0, 32 in a block", fontsize=13)
    ax.tick_params(labelsize=12)
    ax.spines["bottom"].set_visible(False)
    plt.show()
