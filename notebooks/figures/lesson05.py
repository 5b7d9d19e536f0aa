"""The figures of lesson 05: scaling."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import attention, plots

_LOOKS = {"nothing": (plots.RED, "s", "no divisor"), "√d_k": (plots.BLUE, "o", r"÷ $\sqrt{d_k}$"),
          "d_k": (plots.ORANGE, "^", "÷ $d_k$")}  # colour, marker and name of each divisor


def opinions(weights, words, d_k):
    """The weights of an untrained model as a heat map. ``weights``: ``(T, T)``."""
    _, ax = plt.subplots(figsize=(5.8, 5.4))
    plots.heatmap(weights, words, ax=ax, limits=(0, 1), numbers=len(words) < 10, colorbar=False)
    for number in ax.texts:
        number.set(text=number.get_text().replace("0.00", ""), fontsize=12)  # what rounds to nothing stays empty
    ax.set_title(f"d_k = {d_k}: random matrices, no training", fontsize=14)
    ax.set_xlabel("key", fontsize=13)
    ax.set_ylabel("query", fontsize=13)
    ax.tick_params(labelsize=13, length=0)


def coin_scores(sizes):
    """How likely each score is if every product is 1 or -1 by the toss of a coin, and its typical size, for each d_k."""
    _, panels = plt.subplots(len(sizes), 1, figsize=(5.6, 5.2), sharex=True, sharey=True)
    for ax, d_k in zip(panels, sizes, strict=True):
        probability = np.ones(1)
        for _ in range(d_k):  # one more product: half of the cases go one down, half one up
            probability = np.convolve(probability, [0.5, 0, 0.5])
        scores = np.arange(-d_k, d_k + 1)
        variance = probability @ scores**2
        ax.bar(scores[::2], probability[::2], width=1.5)
        typical = np.sqrt(variance)
        ax.annotate("", (typical, 0.58), (-typical, 0.58), arrowprops={
            "arrowstyle": "<|-|>", "color": plots.ORANGE, "linewidth": 2, "shrinkA": 0, "shrinkB": 0})
        ax.text(16, 0.3, f"$d_k$ = {d_k}\nvariance {variance:.0f}", fontsize=13, ha="right", va="center")
        ax.set(ylim=(0, 0.68), yticks=[])
        ax.spines["left"].set_visible(False)
    panels[0].text(2.1, 0.58, "typical size", color=plots.ink(plots.ORANGE), fontsize=13, va="center")
    panels[-1].set_xlabel("score", fontsize=12)
    plt.show()


def hardened(scores, factors):
    """The weights of five keys as their scores are multiplied. ``scores``: ``(5,)``."""
    _, panels = plt.subplots(len(factors), 1, figsize=(5, 5.6), sharey=True)
    for ax, factor in zip(panels, factors, strict=True):
        bars = ax.bar(range(5), attention.softmax(factor * scores), color=[plots.SKY] * 4 + [plots.BLUE])
        ax.bar_label(bars, fmt="%.2f", fontsize=11)
        ax.set(title=f"scores × {factor}", ylim=(0, 1.3), yticks=[0, 0.5, 1], ylabel="weight")
        ax.set_xticks(range(5), [f"{score * factor:g}" for score in scores], fontsize=11)
    panels[-1].set_xlabel("score")
    plt.show()


def weight_and_slope():
    """The weight of the first of two keys against its lead, and below it how steep that curve is."""
    lead = np.linspace(-8, 8, 321)
    w = 1 / (1 + np.exp(-lead))
    _, (top, low) = plt.subplots(2, 1, figsize=(5.2, 5.8), sharex=True)
    top.plot(lead, w, color=plots.BLUE)
    low.fill_between(lead, w * (1 - w), color=plots.SKY, alpha=0.35)
    low.plot(lead, w * (1 - w), color=plots.BLUE)
    for x, colour, marker in [(0, plots.PURPLE, "o"), (2, plots.GREEN, "s"), (5, plots.RED, "^")]:
        y = 1 / (1 + np.exp(-x))
        near = np.array([x - 1.4, x + 1.4])
        top.plot(near, y + y * (1 - y) * (near - x), color=colour, linewidth=2.5)
        top.plot(x, y, marker, color=colour, markersize=8)
        top.annotate(f"{y:.3f}", (x, y), (8, -17), textcoords="offset points")
        low.plot(x, y * (1 - y), marker, color=colour, markersize=8)
        low.annotate(f"{y * (1 - y):.3f}", (x, y * (1 - y)), (7, 7), textcoords="offset points")
    top.set(title="Weight of the first of two keys", ylim=(-0.04, 1.06))
    low.set(title="Its slope", xlabel="lead of the first key", ylim=(0, 0.29), xticks=[-8, -5, -2, 0, 2, 5, 8])
    plt.show()


def hills(sizes, divisors):
    """The weights of one random query over 16 keys, each a hill, as vectors get longer: a row a size, a column a divisor.

    ``divisors``: {name: the power of d_k by which scores are divided}.
    """
    rng = np.random.default_rng(1)
    q, K = rng.standard_normal(1024), rng.standard_normal((16, 1024))  # each row takes their first d_k numbers
    along = np.linspace(-0.8, 15.8, 600)
    hill = np.exp(-0.5 * ((along[:, None] - np.arange(16)) / 0.42) ** 2)  # (600, 16): a hill a key
    _, panels = plt.subplots(1, 3, figsize=(6.6, 7), sharey=True)
    for ax, (divisor, power) in zip(panels, divisors.items(), strict=True):
        colour, _, title = _LOOKS[divisor]
        for place, d_k in enumerate(sizes):
            height = hill @ attention.softmax(K[:, :d_k] @ q[:d_k] / d_k**power)  # (600,)
            ax.fill_between(along, -place, 0.92 * height - place, color=colour, linewidth=0, alpha=0.4 + 0.1 * place,
                            zorder=2 * place)
            ax.plot(along, 0.92 * height - place, color="white", linewidth=1.6, zorder=2 * place)
            ax.plot(along, 0 * along - place, color=plots.GREY, linewidth=0.8, zorder=2 * place + 1)
        ax.set_title(title, fontsize=16, loc="center", pad=0)
        ax.set(xticks=[], ylim=(-4.15, 0.75))
        ax.set_xlabel("16 keys", fontsize=13)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelsize=13)
    panels[0].set_yticks([-place for place in range(len(sizes))], [f"$d_k$ = {d_k:,}" for d_k in sizes])
    plt.show()


def movements(weights_of, divisors):
    """How far the weights of each of 200 queries move when it is nudged, for d_k = 256: a mark a query, a row a divisor.

    ``weights_of``: a function of (d_k, divisor, nudge) -> ``(200, 16)``.
    """
    _, ax = plt.subplots(figsize=(7.2, 3.4))
    rng = np.random.default_rng(0)
    nudge = 1e-4
    for place, divisor in enumerate(divisors):
        before = weights_of(256, divisor)
        after = weights_of(256, divisor, nudge / 16)  # along a vector about 16 long
        movement = np.linalg.norm(after - before, axis=1) / nudge  # (200,)
        colour, marker, _ = _LOOKS[divisor]
        ax.plot(np.maximum(movement, 1e-7), place + rng.uniform(-0.27, 0.27, len(movement)), marker, color=colour,
                markersize=4.5, alpha=0.5)
    ax.set(xscale="log", ylim=(2.6, -0.6))
    ax.set_title("How far the weights move when the query is nudged", fontsize=13)
    ax.set_xlabel("movement for each unit of the nudge, $d_k$ = 256", fontsize=12)
    ax.set_xticks([1e-7, 1e-5, 1e-3, 0.1], ["10⁻⁷ or less", "0.00001", "0.001", "0.1"], fontsize=12)
    ax.minorticks_off()
    ax.set_yticks(range(3), [_LOOKS[divisor][-1] for divisor in divisors], fontsize=13)
    plt.show()


def three_starts(models):
    """The share of right digits during training, a line a start. ``models``: {divisor: [(model, ``(20, 2)``)]}."""
    _, ax = plt.subplots(figsize=(6, 4.2))
    for divisor, runs in models.items():
        colour, marker, name = _LOOKS[divisor]
        for number, (_, learned) in enumerate(runs):
            ax.plot(learned[:, 0], 100 * learned[:, 1], color=colour, marker=marker, markersize=3.5, linewidth=1.6,
                    label=None if number else name)
    ax.axhline(10, color=plots.GREY, linewidth=1, linestyle=":")
    ax.text(80, 9, "blind guessing", ha="right", va="top", fontsize=12, color=plots.GREY)
    ax.set(ylim=(0, 104), title="Three starts for each divisor")
    ax.set_xlabel("steps of training", fontsize=12)
    ax.set_ylabel("right digits, in per cent", fontsize=12)
    ax.legend(loc="upper left", fontsize=12)
    plt.show()


def digits_read(mine, written, maps):
    """Where two models look while they write 16 digits in reverse; a row that writes a wrong digit has a frame, and a dashed
    one where the digit is right though it looks at a wrong place.

    ``written``: {divisor: 16 digits}; ``maps``: {divisor: ``(16, 16)``}.
    """
    figure, panels = plt.subplots(1, 2, figsize=(6.6, 4.2))
    for ax, (divisor, weights) in zip(panels, maps.items(), strict=True):
        plots.heatmap(weights, list(written[divisor]), list(mine), ax=ax, limits=(0, 1), numbers=False, colorbar=False,
                      title="no divisor" if divisor == "nothing" else "divided by √256",
                      axis_names=("what it writes", "the digits that it reads"))
        ax.tick_params(axis="x", rotation=0, labelsize=12)
        ax.tick_params(axis="y", labelsize=12)
        labels = ax.get_yticklabels()
        for place, (digit, goal) in enumerate(zip(written[divisor], mine[::-1], strict=True)):
            dashed = {"fill": False, "linewidth": 1.8, "edgecolor": plots.GREY, "linestyle": "--"}
            if digit != goal:
                labels[place].set(color=plots.RED, fontweight="bold")
                ax.add_patch(plt.Rectangle((-0.5, place - 0.5), 16, 1, fill=False, edgecolor=plots.RED, linewidth=1.8))
            elif weights[place].argmax() != 15 - place:
                ax.add_patch(plt.Rectangle((-0.42, place - 0.36), 15.84, 0.72, **dashed))
    panels[1].set_ylabel("")
    figure.suptitle("filled: where it looks; red frame: a wrong digit; dashed: right all the same", fontsize=13)
    plt.show()
