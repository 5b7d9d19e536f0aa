"""The figures of lesson 07: multi-head attention."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb

from helpers import attention, heads, plots
from helpers.page import show, steps

FRAMES = (plots.ORANGE, plots.GREEN, plots.RED, plots.PURPLE, plots.BLUE)


def mixtures():
    """Two scenes, a bear and a cave in red and blue, and what one head and two heads hand on of each."""
    red, blue = np.array([1, 0, 0]), np.array([0, 0, 1])  # red, green, blue
    figure, ax = plt.subplots(figsize=(7, 3.1))
    for row, (bear, cave) in enumerate([(red, blue), (blue, red)]):
        mixture = 0.5 * bear + 0.5 * cave
        for x, colour in [(0, bear), (1, cave), (2.6, mixture), (4.1, bear), (5.1, cave)]:
            ax.add_patch(plt.Rectangle((x, 1.12 * row), 0.94, 0.94, color=colour))
        ax.text(2.27, 1.12 * row + 0.47, "→", ha="center", va="center", fontsize=17)
    for x, name in [(0.47, "bear"), (1.47, "cave"), (4.57, "head 0"), (5.57, "head 1")]:
        ax.text(x, -0.14, name, ha="center", fontsize=13)
    for x, name in [(0.97, "the scene"), (3.07, "one head"), (5.07, "or two heads")]:
        ax.text(x, -0.52, name, ha="center", fontsize=13, weight="bold")
    ax.set(xlim=(-0.1, 6.25), ylim=(2.1, -0.85), aspect="equal")
    ax.axis("off")
    plots.as_drawn(figure)


def two_ways_to_cut(X, reshaped):
    """How the halves of three tokens go to two heads: as we want it, and as reshape alone cuts it.

    ``X``: ``(1, 3, 4)``; ``reshaped``: ``(1, 2, 3, 2)``.
    """
    halves = X.reshape(3, 2, 2)  # (T, half, 2)
    _, panels = plt.subplots(2, 1, figsize=(6.6, 5))
    ways = [(attention.split_heads(X, 2)[0], "as we want it"), (reshaped[0], "as reshape alone cuts it")]
    for ax, (cut, title) in zip(panels, ways, strict=True):
        for head, row in np.ndindex(2, 3):
            token, half = np.argwhere((halves == cut[head, row]).all(axis=-1))[0]  # where it was
            colour = (plots.BLUE, plots.ORANGE)[half]
            left = 5 + 2 * half
            plots.ribbon(ax, (left + 2 * head, token + 0.06, token + 0.94), (2 + 10 * head, row + 0.06, row + 0.94),
                         color=colour, alpha=0.5, zorder=1)
            _half_row(ax, left, token, halves[token, half], colour)
            _half_row(ax, 12 * head, row, cut[head, row], colour)
        for x, name in [(1, "head 0"), (7, f"X {title}"), (13, "head 1")]:
            ax.text(x, -0.25, name, ha="center", fontsize=13, weight="bold" if x == 7 else None)
        ax.set(xlim=(-0.2, 14.2), ylim=(3.1, -0.8))
        ax.axis("off")
    plt.show()


def _half_row(ax, x, y, numbers, colour):
    """Half a row of X: two numbers, on a ground that says which half it is."""
    ax.add_patch(plt.Rectangle((x, y + 0.06), 2, 0.88, color=colour, lw=0, zorder=2))
    for column, number in enumerate(numbers):
        ax.text(x + 0.5 + column, y + 0.52, number, ha="center", va="center", fontsize=14, zorder=5,
                color="white" if colour == plots.BLUE else "black")


def layer_step_by_step(words, Q, K, V, W_o):
    """A layer of two heads on three words, number by number. ``Q``, ``K``, ``V``: ``(3, 4)``; ``W_o``: ``(4, 4)``."""
    q, k, v = (attention.split_heads(M[None], 2)[0] for M in (Q, K, V))  # (h, T, d_k)
    scores = attention.attention_scores(q, k) / np.sqrt(2)  # (h, T, T)
    weights = attention.softmax(scores)
    results = weights @ v  # (h, T, d_k)
    merged = attention.merge_heads(results[None])[0]  # (T, d)
    tint = [[1, 1, 2, 2]]
    last = [[False], [False], [True]]
    slices = [M[i] for i in range(2) for M in (q, k, v)]
    steps.show(
        ("Queries, keys, values", [steps.grid(M, name, words, groups=tint, decimals=0)
                                   for name, M in [("Q", Q), ("K", K), ("V", V)]],
         "4 numbers for each token: two for head 0, two for head 1. In V: how red, how blue."),
        ("Split", [steps.grid(M, name, words if i % 3 == 0 else None, groups=1 + i // 3, decimals=0)
                   for i, (name, M) in enumerate(zip("Q₀ K₀ V₀ Q₁ K₁ V₁".split(), slices, strict=True))],
         "Each head has its own queries, keys and values, d_k = 2 wide."),
        ("Scores", [steps.grid(scores[i], f"Q{s} K{s}ᵀ / √2", words, words, mark=last, groups=1 + i)
                    for i, s in enumerate("₀₁")],
         "Queries are rows, keys are columns. For ?, head 0 prefers bear, head 1 prefers cave."),
        ("Weights", [steps.grid(weights[i], f"softmax, head {i}", words, words, mark=last, groups=1 + i)
                     for i in range(2)], "Each row of each head sums to 1."),
        *[(f"Attend in head {i}", [
            steps.grid(weights[i], f"weights, head {i}", words, groups=1 + i), "·",
            steps.grid(v[i], f"V{s}", groups=1 + i, decimals=0), "=",
            steps.grid(results[i], f"head{s}", mark=last, groups=1 + i)],
           f"One mixture for every token. For ?, it is mostly {word}.")
          for i, (s, word) in enumerate([("₀", "red"), ("₁", "blue")])],
        ("Merge", [steps.grid(results[0], "head₀", words, groups=1), steps.grid(results[1], "head₁", groups=2), "→",
                   steps.grid(merged, "concat", words, mark=last, groups=tint)],
         "Side by side again: (T, d), as wide as the queries were."),
        ("Mix with W_o", [steps.grid(merged, "concat", words, groups=tint), "·",
                          steps.grid(W_o, "W_o", groups=np.transpose(tint), decimals=0), "=",
                          steps.grid(merged @ W_o, "output", words, mark=last)],
         "Numbers 0 and 1: how red, how blue, both heads together. 2 and 3: head 0 less head 1."))


def answers(scenes, named):
    """The first scene with all its things, and for every scene the colours of bear and cave: true, by one head, by two.

    ``scenes``: {thing: colour} each; ``named``: ``(2, scenes, 2, 3)``, what one head and two name in each scene for bear
    and cave: red, green and blue.
    """
    figure, ax = plt.subplots(figsize=(7, 4.9))
    ax.text(-0.12, -1.75, "your scene", ha="right", va="center", fontsize=13)
    apart = min(0.95, 5.7 / len(scenes[0]))
    for number, (thing, colour) in enumerate(scenes[0].items()):
        x = 0.5 + apart * number
        ax.add_patch(plt.Circle((x, -1.85), 0.33, facecolor=to_rgb(colour), edgecolor="0.6", linewidth=0.7))
        ax.text(x, -1.25, thing, ha="center", fontsize=13)
    for column, scene in enumerate(scenes):
        truth = [to_rgb(scene[thing]) for thing in ("bear", "cave")]
        for row, colours in enumerate([truth, *named[:, column]]):
            for half, colour in enumerate(colours):
                ax.add_patch(plt.Rectangle((1.16 * column + 0.5 * half, 1.1 * row), 0.5, 0.9, facecolor=tuple(colour),
                                           edgecolor="0.6", linewidth=0.7))
    for half, name in enumerate(("bear", "cave")):
        ax.text(0.25 + 0.5 * half, -0.13, name, ha="center", fontsize=12)
    ax.text(0.5, -0.5, "yours", ha="center", fontsize=13, weight="bold")
    for row, name in enumerate(("truth", "one head", "two heads")):
        ax.text(-0.12, 1.1 * row + 0.45, name, ha="right", va="center", fontsize=13)
    ax.set(xlim=(-1.45, 6.3), ylim=(3.15, -2.35), aspect="equal")
    ax.axis("off")
    plots.as_drawn(figure)


def errors(sweep):
    """The typical errors of trained models. ``sweep``: {(colours asked, heads): five numbers}."""
    _, panels = plt.subplots(1, 2, figsize=(6, 3.8), sharey=True)
    for ax, asked, title in [(panels[0], 1, "asked for one colour"), (panels[1], 2, "asked for two at once")]:
        for level, name in [(28.9, "always grey"), (20.4, "the even mixture")][:asked]:
            ax.axhline(level, color=plots.GREY, linestyle=":")
            ax.text(2.45, level + 0.6, name, ha="right", fontsize=12.5, color=plots.GREY)
        for x, h in enumerate((1, 2, 4)):
            ax.plot(x + np.linspace(-0.16, 0.16, 5), sweep[asked, h], "o", color=plots.BLUE, markersize=8, alpha=0.8)
        ax.set_xticks(range(3), (1, 2, 4))
        ax.set_title(title, fontsize=14)
        ax.set_xlabel("heads", fontsize=13)
        ax.set(xlim=(-0.5, 2.5), ylim=(-1.2, 33))
        ax.tick_params(labelsize=13)
    panels[0].set_ylabel("typical error", fontsize=13)
    plt.show()


def winners(scores, best):
    """A table: for each kind of head the best one, its score and the median's.

    ``scores``: {kind: (6, 12)}; ``best``: {kind: (layer, head)}.
    """
    show.table(["kind", "best head", "its score", "median head"], [
        [kind, "layer {}, head {}".format(*best[kind]), f"{score.max():.2f}", f"{np.median(score):.2f}"]
        for kind, score in scores.items()])


def names_on(reading, scores, best):
    """A table: how the heads with a name do on one sentence.

    ``scores``: {kind: (6, 12)}; ``best``: {kind: (layer, head)}.
    """
    rows = []
    for kind, head in best.items():
        score = scores[kind][head]
        place = 1 + int((scores[kind] > score).sum()) if score > 0.005 else "-"
        query, key, weight = heads.looks_most(reading, head, special=kind == "special tokens")
        most = f"{query} → {key}: {weight:.2f}" if weight > 0.005 else "-"
        rows.append([kind, "{}, {}".format(*head), f"{score:.2f}", place, most])
    show.table(["name", "layer, head", "score on your sentence", "place among the 72", "looks most"], rows)


def one_head(reading, layer, head):
    """Where each word looks in one head of a real model: a line from query to key, the thicker the larger the weight.

    Lines to [CLS] and [SEP] are orange, those to words blue. ``reading``: as `minilm.read` gives it.
    """
    weights, tokens = reading.weights[layer, head], reading.tokens
    _, ax = plt.subplots(figsize=(7, 3.9))
    down = np.linspace(0, 1, 40)
    for query, key in zip(*np.nonzero(weights > 0.02), strict=True):
        share = weights[query, key]
        ax.plot(query + (key - query) * down**2 * (3 - 2 * down), 1 - down, linewidth=6 * share, alpha=min(1, share + 0.15),
                color=plots.ORANGE if tokens[key] in ("[CLS]", "[SEP]") else plots.BLUE, solid_capstyle="round")
    for place, token in enumerate(tokens):
        for y, side, foot in (1.06, "left", "bottom"), (-0.06, "right", "top"):
            plots.as_written(ax.text(place, y, token, rotation=60, rotation_mode="anchor", ha=side, va=foot, fontsize=13))
    for y, role in (1, "query"), (0, "key"):
        ax.text(-0.9, y, role, ha="right", va="center", fontsize=13, weight="bold")
    ax.set(xlim=(-2.6, len(tokens)), ylim=(-0.62, 1.62), title=f"layer {layer}, head {head}")
    ax.axis("off")
    plt.show()


def contact_sheet(weights, best):
    """All 72 heads on one sentence as small maps, those with a name framed, and shown again below.

    ``weights``: ``(6, 12, T, T)``; ``best``: {kind: (layer, head)}.
    """
    frames = dict(zip(best, FRAMES, strict=False))
    figure = plt.figure(figsize=(7, 6.15), layout="none")
    figure.text(0.004, 0.67, "layer", fontsize=12, rotation=90, va="center")
    sheet = figure.add_gridspec(6, 12, left=0.075, right=0.993, top=0.95, bottom=0.39, wspace=0.14, hspace=0.14)
    large = figure.add_gridspec(1, max(4, len(best)), left=0.075, right=0.993, top=0.272, bottom=0.014, wspace=0.12)
    for layer, head in np.ndindex(6, 12):
        ax = figure.add_subplot(sheet[layer, head], xticks=[], yticks=[])
        if layer == 0:
            ax.set_title("head 0" if head == 0 else head, fontsize=12, loc="center", pad=4)
        if head == 0:
            ax.set_ylabel(layer, fontsize=12, rotation=0, va="center", labelpad=8)
        kind = next((kind for kind in best if best[kind] == (layer, head)), None)
        views = [(ax, 1.6)]
        if kind:
            views.append((figure.add_subplot(large[list(best).index(kind)], xticks=[], yticks=[]), 2))
            views[1][0].set_title(f"{kind}\n{layer} · {head}", loc="center", weight="bold", pad=6,
                                  fontsize=12.5 if len(best) < 5 else 11)
        for panel, gap in views:  # the root of the weights: faint ones show as well
            panel.imshow(weights[layer, head] ** 0.5, vmin=0, vmax=1, aspect="auto")
            panel.spines[:].set(visible=True, color=frames.get(kind, "#c9d3da"), linewidth=3.2 if kind else 0.5)
            if kind:
                panel.spines[:].set_position(("outward", gap))
    plots.as_written(figure)
    plt.show()
