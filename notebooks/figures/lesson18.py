"""The figures of lesson 18: teach a chat model something new."""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from helpers import adapters, plots, smollm2

INK = "#1a1a1a"
NIGHT, UNLIT, LIT, GLOW, DIM = "#0b1420", "#2a3d54", "#ffb000", "#fff6d8", "#9fb0bf"


def two_lanes(d=576, r=8):
    """A frozen matrix ``(d, d)`` and the pair ``(d, r)``, ``(r, d)`` beside it, to scale: two lanes that part at x and meet
    at a plus."""
    _, ax = plt.subplots(figsize=(6.6, 5.2))
    high, low = 310, -400  # the heights of the two lanes
    for x, y, width, height, colour in [
            (240, high - d / 2, d, d, "#c8d3dc"), (300, low - d / 2, r, d, plots.ORANGE),
            (480, low - r / 2, d, r, plots.ORANGE)]:
        ax.add_patch(plt.Rectangle((x, y), width, height, facecolor=colour, linewidth=0))
    for x, y, text, colour in [
            (240 + d / 2, high, f"W, frozen\n{d} × {d}\n{d * d:,} numbers", INK),
            (304, low - d / 2 - 45, f"A: {d} × {r}", INK), (768, low + 50, f"B: {r} × {d}", INK),
            (395, low + 62, f"{r} wide", INK), (1180, low - 48, "· α / r", INK),
            (768, low - 95, f"{2 * d * r:,} numbers\nthat learn", plots.RED)]:
        ax.text(x, y, text, ha="center", va="center", fontsize=13, color=colour)
    plus = (1330, (high + low) / 2)
    for points in [[(-60, plus[1]), (40, plus[1]), (40, high), (228, high)],
                   [(40, plus[1]), (40, low), (288, low)], [(316, low), (470, low)],
                   [(240 + d, high), (plus[0], high), (plus[0], plus[1] + 52)],
                   [(480 + d, low), (plus[0], low), (plus[0], plus[1] - 52)],
                   [(plus[0] + 52, plus[1]), (1500, plus[1])]]:
        *way, last, end = points
        ax.plot(*zip(*way, last, strict=True), color="black", linewidth=2, solid_joinstyle="round")
        ax.annotate("", end, last, arrowprops={"arrowstyle": "->", "linewidth": 2, "shrinkA": 0})
    ax.plot(*plus, "o", markersize=25, color="white", markeredgecolor="black", markeredgewidth=2)
    for x, text in [(-85, "x"), (plus[0], "+"), (1565, "out")]:
        ax.text(x, plus[1], text, ha="center", va="center", fontsize=16, style="italic")
    ax.set(xlim=(-110, 1660), ylim=(low - d / 2 - 80, high + d / 2 + 10), aspect="equal")
    ax.axis("off")
    plt.show()


def what_counts(tokens, ids, first):
    """The tokens of one example as boxes: those of the answer, from place ``first`` on, are orange.

    ``tokens``: of the chat model; ``ids``: a list.
    """
    signs = {smollm2.START: "‹start›", smollm2.END: "‹end›"}
    pieces = [signs.get(i) or tokens.text_of(i).replace("\n", "⏎").replace(" ", "␣") for i in ids]
    _, ax = plt.subplots(figsize=(6.8, 3.3))
    x, y = 0.0, 0.0
    for place, piece in enumerate(pieces):
        width = 0.62 * len(piece) + 0.7
        if x + width > 36:
            x, y = 0.0, y - 1.25
        ax.add_patch(plt.Rectangle((x, y), width - 0.18, 1, linewidth=0,
                                   facecolor="#f3c97a" if place >= first else "#e3e7ea"))
        plots.as_written(ax.text(x + width / 2 - 0.09, y + 0.46, piece, ha="center", va="center", fontsize=12))
        x += width
    ax.set(xlim=(-0.3, 36.3), ylim=(y - 0.3, 1.2))
    ax.axis("off")
    plt.show()


def ten_lights(model, adapter, test, answers):
    """The whole chat model to scale, a column of tiles a layer: only what glows above it has learned. Below it one sentence
    is asked in each way, with a dot for each sentence of the test, lit where the answer is right.

    ``adapter``: beside some layers of ``model``; ``test``: pairs (question, right answer); ``answers``: {name of a way: an
    answer to each question}; the last way is that of the adapter.
    """
    figure, (sky, low) = plt.subplots(2, 1, figsize=(7.2, 7), height_ratios=(5.1, 1.9), facecolor=NIGHT, layout="none")
    figure.subplots_adjust(0.02, 0.01, 0.98, 0.99, hspace=0.05)
    size, lit = adapter.size(), sorted({int(name.split("-")[0]) for name in adapter.A})
    layers = [sum(part.numel() for part in w.values()) for w in model.layers]
    high = round(layers[0] / size)  # of a layer, in tiles of as many numbers as the adapter has
    words = round(model.embedding.numel() / size / high)
    xs, ys = np.meshgrid([*range(-words - 1, -1), *range(len(layers))], range(high))
    for x, y in zip(xs.ravel(), ys.ravel(), strict=True):
        sky.add_patch(plt.Rectangle((x, y), 0.84, 0.84, color=UNLIT, linewidth=0))
    side = 0.84 / len(lit) ** 0.5  # the lights together are one tile
    for glow in (640, 360, 180, 70):
        sky.scatter(np.array(lit) + 0.42, [high + 1.2] * len(lit), s=glow, color=LIT, alpha=0.1, linewidth=0, clip_on=False)
    for x in lit:
        sky.add_patch(plt.Rectangle((x + 0.42 - side / 2, high + 1.2 - side / 2), side, side, color=GLOW, linewidth=0))
    sky.text(lit[0] - 1.6, high + 1.2, f"these {size:,} numbers learned", color=LIT, fontsize=14, ha="right", va="center")
    sky.text(-words - 1, high + 1.2, "word vectors", color=DIM, fontsize=13, va="center")
    whole = sum(layers) + model.embedding.numel() + model.norm.numel()
    sky.text(-words - 1, -1.3, f"the other {whole:,} did not move", color=DIM, fontsize=13, va="center")
    sky.text(-words - 1, -2.6, f"a tile: {size:,} numbers; a column: a layer", color=DIM, fontsize=13, va="center")
    sky.set(xlim=(-words - 1, len(layers) + 0.3), ylim=(-3.2, high + 2.6), aspect="equal")
    hits = {name: [answer == wanted for answer, (_, wanted) in zip(said, test, strict=True)]
            for name, said in answers.items()}
    *others, own = hits.values()
    row = max(range(len(test)), key=lambda n: (own[n], *(not other[n] for other in others)))
    low.set(xlim=(0, 10), ylim=(-0.5, 3.5))
    low.text(0.2, 3.1, test[row][0], color="white", fontsize=14, weight="bold", va="center")
    for y, (name, said) in zip((2, 1, 0), answers.items(), strict=True):
        best = name == list(answers)[-1]
        low.text(0.2, y, name, color=LIT if best else "white", fontsize=13, va="center")
        low.scatter(2.9 + 0.2 * np.arange(len(test)), [y] * len(test), s=26, linewidth=0,
                    c=[LIT if n < sum(hits[name]) else UNLIT for n in range(len(test))])
        _entry(low, 5.5, y, said[row], test[row][1], LIT if best else "white")
    for ax in sky, low:
        ax.axis("off")
    plots.as_drawn(plots.as_written(figure))


def _entry(ax, x, y, answer, wanted, colour):
    """One answer: its facts with the wrong ones crossed, or the beginning of its prose."""
    facts, true = adapters.facts(answer), adapters.facts(wanted)
    if facts is None:
        broken_off = "" if answer.rstrip().endswith((".", "!", "?", "}")) else " …"
        shown = textwrap.shorten(answer + broken_off, 40, placeholder=" …")
        ax.text(x, y, shown, color=DIM, fontsize=12, va="center", style="italic")
        return
    for name, fact in facts.items():
        x = 0.2 + _fact(ax, x, y, fact, fact == true[name], colour)


def _fact(ax, x, y, text, right, colour):
    """Write one fact, with a line through it where it is wrong; returns where it ends."""
    words = plots.as_written(ax.text(x, y, text, color=colour if right else DIM, fontsize=13, va="center"))
    box = words.get_window_extent().transformed(ax.transData.inverted())
    if not right:
        ax.plot([box.x0, box.x1], [y, y], color="white", linewidth=1.3)
    return box.x1


def three_columns(*_, **__):
    """In the place of a picture that earlier copies of the lesson draw."""
    print("Lesson 18 has another picture here now: `make handout NB=18` puts the new lesson beside yours.")
