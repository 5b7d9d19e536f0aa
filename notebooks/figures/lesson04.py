"""The figures of lesson 04: queries, keys and values."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patheffects import withStroke

from helpers import attention, phrases, plots
from helpers.page import steps
from helpers.words import NotUsable, array_in, words_in

_COLOURS = [plots.ORANGE, plots.BLUE, plots.GREEN]  # of the three words: bear, country, us
_INKS = [*map(plots.ink, _COLOURS)]
_HALO = [withStroke(linewidth=3, foreground="white")]
_PROPERTIES = ["animal", "place", "people"]


def _room(places, half, taken):
    """The first of some places that is free, or the best one; it joins ``taken``, [(x, y, half width, half height)]."""
    def overlap(place):
        return min([0, *(max(abs(place[0] - x) - half[0] - wide, abs(place[1] - y) - half[1] - high)
                         for x, y, wide, high in taken)])

    place = max(places, key=overlap)
    taken.append((*place, *half))
    return place


def _frame(Q, K):
    """Of a picture of cards: its limits, its scale, and what no word may cover."""
    points = np.vstack([Q, K, [[0, 0]]])
    low, high = points.min(axis=0), points.max(axis=0)
    size, middle = max(1, (high - low).max() / 4), (low + high) / 2
    turns = np.linspace(0, 2 * np.pi, 25)[:, None]
    circle = 0.42 * size * np.hstack([np.cos(turns), np.sin(turns)])
    lines = [np.linspace(0.05, 1, 20)[:, None] * query for query in Q if query.any()]
    taken = [(x, y, 0, 0) for x, y in np.vstack([key + circle for key in K] + lines)]
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):  # all around the picture
        taken.append((middle[0] + 12.1 * size * x, middle[1] + 12.1 * size * y, 9 * size, 9 * size))
    return middle[:, None] + 3.1 * size * np.array([-1, 1]), size, taken


def cards(Q, K, words, notes=("", "", ""), title=""):
    """Queries as arrows, keys as circles. ``Q``, ``K``: ``(n, 2)``, n at most 3; ``notes``: what stands below each key."""
    _, ax = plt.subplots(figsize=(5.4, 5.2 if title else 5))
    (xlim, ylim), size, taken = _frame(Q, K)
    ax.axhline(0, color="#dfe3e6", linewidth=1, zorder=0)
    ax.axvline(0, color="#dfe3e6", linewidth=1, zorder=0)
    for word, key, note, colour in zip(words, K, notes, _COLOURS, strict=False):
        for radius, alpha in ((0.42, 0.14), (0.24, 0.25)):
            ax.add_patch(plt.Circle(key, radius * size, color=colour, alpha=alpha))
        ax.add_patch(plt.Circle(key, 0.42 * size, fill=False, color=colour, linewidth=1.8))
        wide, high = (0.85, 0.3) if note else (0.72, 0.14)
        places = [key + size * np.array(to) for to in (
            (0, -0.5 - high), (0, 0.5 + high), (0.55 + wide, 0), (-0.55 - wide, 0), (0, -1.2))]
        ax.text(*_room(places, (wide * size, high * size), taken), f"key of {word}{note}",
                ha="center", va="center", fontsize=12, linespacing=1.3, path_effects=_HALO)
    for word, query, colour, ink in zip(words, Q, _COLOURS, _INKS, strict=False):
        if not query.any():
            continue
        ax.annotate("", query, (0, 0), zorder=3, arrowprops={
            "arrowstyle": "-|>,head_width=0.5,head_length=0.9", "color": colour,
            "linewidth": 3.5, "shrinkA": 0, "shrinkB": 0})
        half = size * np.array([0.062 * len(word) + 0.31, 0.14])
        aside = np.array([-query[1], query[0]]) / np.linalg.norm(query)  # at right angles to it
        places = [far * query + turn * (half @ abs(aside) + away * size) * aside
                  for away in (0.12, 0.32, 0.52, 0.92)
                  for far in (0.5, 0.7, 0.85, 1, 0.35) for turn in (1, -1)]
        ax.text(*_room(places, half, taken), f"{word} asks", ha="center", va="center", fontsize=12,
                fontweight="bold", path_effects=_HALO, zorder=4, color=ink)
    ax.set(xlim=xlim, ylim=ylim, aspect="equal")
    if title:
        ax.set_title(title, loc="center", fontsize=13)
    ax.axis("off")
    plt.show()


def country_attends(X, Q, K, V, words):
    """What *country*, the second of three words, goes through. ``X``, ``V``: ``(3, 3)``; ``Q``, ``K``: ``(3, 2)``."""
    grid = steps.grid
    scores = K @ Q[1]
    weights = attention.softmax(scores)
    output = weights @ V
    steps.show(
        ("Scores", [grid(K, "keys", words, decimals=0), "·",
                    grid(Q[1][:, None], "query of country", decimals=0), "=",
                    grid(scores[:, None], "scores", words, decimals=0)],
         "The query of country meets all three keys, its own included."),
        ("Weights", [grid(scores, "scores", columns=words, decimals=0), "softmax →",
                     grid(weights, "weights", columns=words, shade=True, decimals=2)],
         "The same softmax as in lesson 02: four points more, a weight over fifty times as large."),
        ("Values", [grid(V, "V = X W_v", words, _PROPERTIES, decimals=0)],
         "What each word hands over. bear has animals to give."),
        ("Output", [grid(weights[:, None], "weights", words, shade=True, decimals=2), "×",
                    grid(V, "values", columns=_PROPERTIES, decimals=0), "→ sum →",
                    grid(output, "output", columns=_PROPERTIES, decimals=2)],
         "The weighted average of the values."),
        ("x + output", [grid(X[1], "x of country", columns=_PROPERTIES), "+",
                        grid(output, "output", columns=_PROPERTIES), "=",
                        grid(X[1] + output, "new country", columns=_PROPERTIES, mark=True)],
         "Still a place, as before. Now a place with animals."))


def whole_way(sentence):
    """All shapes of attention to scale, for 8 words of 6 numbers, d_k = 3, d_v = 4, and the way of the last word's query."""
    d, widths, tints = 6, {"Q": 3, "K": 3, "V": 4}, {"Q": plots.BLUE, "K": plots.GREEN, "V": plots.ORANGE}
    T = len(sentence)
    _, ax = plt.subplots(figsize=(7.4, 5.6), subplot_kw={"xlim": (-8.2, 53.4), "ylim": (31.5, -1.4)})
    lit = np.where(np.arange(T) == T - 1, 1, 0.3)[:, None]  # (8, 1): the row that asks stands out
    shares = np.where(lit == 1, np.array([1, 3, 2, 1, 1, 2, 12, 2]) / 12, 0.12)  # drawn by hand
    _squares(ax, (0, 12), T, d, plots.GREY, "X", lit)
    for y, (role, wide) in zip((1, 12, 23), widths.items(), strict=True):
        plots.ribbon(ax, (6.2, 12, 20), (11.8, y + 1, y + 7), color=tints[role], alpha=0.2)
        plots.ribbon(ax, (12.2 + wide, y + 1, y + 7), (20.8, y, y + 8), color=tints[role], alpha=0.2)
        _squares(ax, (12, y + 1), d, wide, tints[role], f"$W_{role.lower()}$")
        _squares(ax, (21, y), T, wide, tints[role], role, lit if role == "Q" else 0.6)
    plots.ribbon(ax, (24.2, 8, 9), (33.8, 13.5, 14.5), alpha=0.6)  # one query meets all keys
    plots.ribbon(ax, (24.2, 12, 20), (33.8, 6.5, 14.5), color=plots.GREEN, alpha=0.2)
    plots.ribbon(ax, (42.2, 13.5, 14.5), (48.8, 24, 25), alpha=0.6)  # its weights mix all values
    plots.ribbon(ax, (25.2, 23, 31), (48.8, 17, 25), color=plots.ORANGE, alpha=0.2)
    _squares(ax, (34, 6.5), T, T, plots.BLUE, "weights (8, 8)\nsoftmax(Q Kᵀ)", shares)
    _squares(ax, (49, 17), T, widths["V"], plots.ORANGE, "output", lit)
    for i, word in enumerate(sentence):
        ax.text(-0.4, 12.5 + i, word, ha="right", va="center", fontsize=11)
    ax.text(40.5, 15.7, sentence[6], ha="center", va="center", fontsize=11)
    ax.axis("off")
    plt.show()


def _squares(ax, corner, rows, columns, colour, name, shades=0.3):
    """A square for each number of a matrix, from its upper left corner on; ``shades``: ``(rows, columns)`` or one number."""
    x, y = corner
    for (i, j), shade in np.ndenumerate(np.broadcast_to(shades, (rows, columns))):
        ax.add_patch(plt.Rectangle((x + j, y + i), 0.9, 0.88, color=colour, alpha=shade, lw=0))
    label = name if "\n" in name else f"{name} ({rows}, {columns})"
    ax.text(x + columns / 2, y - 0.5, label, ha="center", fontsize=12)


def puzzle(W_q, W_k, X, W_v, words, attend):
    """Say who finds whom with a reader's two matrices, ``(3, 2)`` each, and draw the cards.

    ``X``: ``(3, 3)``; ``attend``: as ``attention.qkv_attention``. Raises NotUsable for other matrices.
    """
    W_q, W_k = _numbers(W_q, "my_W_q"), _numbers(W_k, "my_W_k")
    _, weights = attend(X, W_q, W_k, W_v)
    finds = {}
    for word, row in zip(words, weights, strict=True):
        finds[word] = next((other for other, w in zip(words, row, strict=True) if w > 0.5), "nobody in particular")
        shares = ", ".join(f"{other} {w:.2f}" for other, w in zip(words, row, strict=True))
        print(f"{word} finds {'itself' if finds[word] == word else finds[word]} ({shares}).")
    if finds == {"bear": "us", "us": "country", "country": "bear"}:
        print("→ The circle is closed.")
    elif (finds["us"], finds["country"]) == ("country", "bear"):
        print("→ Solved: us finds country, and country does not find us but bear.")
    else:
        print("→ Not yet: us should find country, and country should still find bear.")
    cards(X @ W_q, X @ W_k, words)


def _numbers(rows, name):
    """The numbers of a reader's matrix: ``(3, 2)``."""
    W = array_in(rows, (3, 2), name)
    if abs(W).max() > 1000:
        raise NotUsable(f"{name} has the number {abs(W).max():g}: choose none beyond 1000.")
    return W


def game():
    """Three ways in which the game can go for *school*: where it looks (below the words), its guess (above), the loss."""
    sentence = "the art school brought us to sugar juice".split()
    even, art, sugar = np.full(8, 1 / 8), np.eye(8)[1], np.eye(8)[6]
    ways = [("looks at art", art, art),
            ("looks everywhere, modifiers stand out", even, (art + sugar) / 2),
            ("looks everywhere, nothing stands out", even, even)]
    _, panels = plt.subplots(3, 1, figsize=(6.8, 6.6))
    for ax, (title, looks, guess) in zip(panels, ways, strict=True):
        for place, word in enumerate(sentence):
            ax.text(place, 0, word, ha="center", va="center", fontsize=13, weight="bold" if place == 2 else "normal")
            if looks[place] and place != 2:
                plots.arc(ax, 2, place, height=-0.2, base=-0.25, linewidth=1 + 5 * looks[place])
            if guess[place]:
                share = {1: "1", 0.5: "½", 0.125: "⅛"}[guess[place]]
                ax.bar(place, guess[place], bottom=0.3, width=0.6, color=plots.ORANGE)
                ax.text(place, 0.36 + guess[place], share, ha="center", fontsize=13)
        if looks[2]:
            ax.add_patch(plt.Circle((2, -0.37), 0.12, fill=False, color=plots.BLUE, linewidth=1.6))
        ax.text(-0.45, 1.85, f"{title}: loss {-np.log(guess[1]) + 0:.2f}", fontsize=14, weight="bold")
        ax.axhline(2.35, color="#cfd6dc", linewidth=1)
        ax.set(xlim=(-0.5, 7.6), ylim=(-1.35, 2.4))
        ax.axis("off")
    panels[0].text(1.5, 0.9, "the guess", fontsize=13, color=plots.ink(plots.ORANGE))
    panels[0].text(2.1, -0.75, "where school looks", fontsize=13, color=plots.BLUE)
    plt.show()


def looks(sentence, asks, vectors, attend, before, after):
    """Where some words of a sentence look: on the left before training, on the right after it, thickness for weight.

    ``sentence``: a reader's text; ``asks``: a list of its words; ``attend``: as ``attention.qkv_attention``; ``before``,
    ``after``: W_q, W_k, W_v each. Raises NotUsable where a word that should ask is not in the sentence.
    """
    tokens = words_in(sentence, vectors, most=25)
    asks = words_in(asks, like="pie")
    if missing := [word for word in asks if word not in tokens]:
        raise NotUsable(f"{missing[0]!r} should ask, and only {', '.join(tokens)} can.")
    _, ax = plt.subplots(figsize=(5.4, 0.36 * len(tokens) + 0.9))
    for side, matrices in ((-1, before), (1, after)):
        _, weights = attend(vectors.rows(tokens), *matrices)
        _looks_of_one_side(ax, side, weights, [tokens.index(word) for word in asks])
    for i, word in enumerate(tokens):
        ax.text(0, i, word, ha="center", va="center", fontsize=12, weight="bold" if word in asks else "normal")
    ax.set(xlim=(-3.3, 3.3), ylim=(len(tokens) - 0.4, -1.2))
    ax.text(-1.2, -1, "before training", ha="right", fontsize=12, color=plots.GREY)
    ax.text(1.2, -1, "after training", ha="left", fontsize=12, color=plots.GREY)
    ax.axis("off")
    plots.as_written(ax.figure)
    plt.show()


def _looks_of_one_side(ax, side, weights, asking):
    """Arcs from the rows that ask to all that get over 3 % of their weight, ``(T, T)``. ``side``: -1 left, 1 right."""
    taken, turn = [], np.linspace(0, np.pi, 60)
    for number, i in enumerate(asking):
        for j in np.flatnonzero(weights[i] > 0.03):
            w = weights[i, j]
            wide = 0.3 + 1.9 * abs(i - j) / max(len(weights), 8)
            y = (i + j) / 2 + (i - j) / 2 * np.cos(turn) if i != j else i + 0.2 * np.sin(2 * turn)
            ax.plot(side * (0.95 + wide * np.sin(turn)), y, color=f"C{number % 6}", solid_capstyle="round",
                    linewidth=0.6 + 7 * w, alpha=0.25 + 0.7 * w)
            if w > 0.3:
                places = [(1.4 + wide * np.cos(t), (i + j) / 2 + (i - j) / 2 * np.sin(t)) for t in (0, 0.6, -0.6, 1, -1)]
                x, at = _room(places, (0.4, 0.35), taken)
                ax.text(side * x, at, f"{w:.2f}", fontsize=12, va="center", ha="center", path_effects=_HALO)


def compass(W_q, W_k, vectors):
    """Cards of two numbers that training wrote: the queries of each kind of nouns, their mean as an arrow, and the keys of
    the modifiers as circles. ``W_q``, ``W_k``: ``(384, 2)``."""
    asks = "places journeys dishes schools clothes times".split()
    answers = "animals moving flavours subjects materials seasons".split()
    _, ax = plt.subplots(figsize=(6, 5.8))
    for number, text in enumerate(phrases.KINDS.values()):
        nouns, modifiers = (vectors.rows(side.split()) for side in text.split("|"))
        queries, keys = nouns @ W_q, modifiers @ W_k
        colour = f"C{number}"
        for query in queries:
            ax.plot(*np.array([[0, 0], query]).T, color=colour, linewidth=1, alpha=0.35)
        ax.annotate("", queries.mean(axis=0), (0, 0), zorder=3, arrowprops={
            "arrowstyle": "-|>,head_width=0.4,head_length=0.7", "color": colour, "linewidth": 3, "shrinkA": 0, "shrinkB": 0})
        ax.scatter(*keys.T, s=70, color=colour, alpha=0.3, linewidth=0)
        ax.scatter(*keys.T, s=70, facecolor="none", edgecolor=colour, linewidth=1.2)
        centre = keys.mean(axis=0)
        ax.text(*(centre * (1 + 1.75 / np.linalg.norm(centre))), f"{asks[number]}\nask for\n{answers[number]}",
                ha="center", va="center", fontsize=12, linespacing=1.1)
    ax.set_aspect("equal")
    ax.margins(0.13)
    ax.axis("off")
    plt.show()


def two_questions(W_q, W_k):
    """W_q W_kᵀ as a sum of two tables, one for each column, step by step. ``W_q``, ``W_k``: ``(3, 2)``."""
    grid = steps.grid
    parts = [np.outer(W_q[:, a], W_k[:, a]) + 0.0 for a in (0, 1)]  # one table for each column
    tints = [np.where(part == 0, 0, 1 + a) for a, part in enumerate(parts)]
    sentences = ["Only places ask it. An animal answers yes, and people answer no.",
                 "Only animals ask it. Places and people answer no, and nobody answers yes."]
    questions = [(f"Question {a + 1}", [
        grid(W_q[:, a][:, None], f"W_q, column {a + 1}", _PROPERTIES, decimals=0), "×",
        grid(W_k[:, a], f"W_k, column {a + 1}", columns=_PROPERTIES, decimals=0), "=",
        grid(part, "who asks ↓ whom →", _PROPERTIES, _PROPERTIES, decimals=0, groups=tints[a])], sentences[a])
        for a, part in enumerate(parts)]
    steps.show(*questions, ("Both", [
        grid(parts[0], "question 1", _PROPERTIES, _PROPERTIES, decimals=0, groups=tints[0]), "+",
        grid(parts[1], "question 2", _PROPERTIES, _PROPERTIES, decimals=0, groups=tints[1]), "=",
        grid(W_q @ W_k.T, "W_q W_kᵀ", _PROPERTIES, _PROPERTIES, decimals=0, groups=tints[0] + tints[1])],
        "Two plain tables, one sum: a place asks for animals, an animal for neither of the others."))


def two_tables(plain, projected, words):
    """The scores of three words without W and with it, on one scale. ``plain``, ``projected``: ``(3, 3)``."""
    _, panels = plt.subplots(1, 2, figsize=(6.2, 3.5), sharey=True, gridspec_kw={"wspace": 0.12})
    for ax, scores, title in zip(panels, [plain, projected], ["Lesson 02: X Xᵀ", "Now: X W Xᵀ"], strict=True):
        plots.heatmap(scores, words, ax=ax, limits=(-6, 6), cmap=plots.SIGNED, colorbar=False, numbers=False)
        for (query, key), score in np.ndenumerate(scores):
            ax.text(key, query, f"{score:+.0f}" if score else "0", ha="center", va="center", fontsize=17 if score else 12,
                    color="black" if score else plots.GREY)
        ax.tick_params(labelsize=13, length=0)
        ax.set_title(title, fontsize=14)
        ax.set_xlabel("key", fontsize=13)
        ax.set_ylabel("query" if ax is panels[0] else "", fontsize=13)
    plt.show()


def low_rank_and_full(low, full):
    """Two matrices W side by side, one of rank 1 and one without a pattern, on one scale: ``(12, 12)`` each."""
    figure, panels = plt.subplots(1, 2, figsize=(6.6, 3.6))
    for ax, W in zip(panels, [low, full], strict=True):
        image = ax.imshow(W, cmap=plots.SIGNED, vmin=-3, vmax=3)
        ax.set_title(f"rank {np.linalg.matrix_rank(W)}", fontsize=13)
        ax.set(xticks=[], yticks=[], xlabel="entry of $x_j$")
    panels[0].set_ylabel("entry of $x_i$")
    figure.colorbar(image, ax=panels, label="entry of W", shrink=0.85)
    plt.show()


def worked_example(Q, K, V, weights, output, agree):
    """The tutorial's four words in steps. ``Q``, ``K``, ``V``, ``output``: ``(4, 3)``; ``agree``: the numbers in bold."""
    grid = steps.grid
    words = ["word 1", "word 2", "word 3", "word 4"]
    steps.show(
        ("Three roles", [grid(Q, "Q", words), grid(K, "K"), grid(V, "V")], "Each word times the three matrices."),
        ("Scores", [grid(Q @ K.T, "Q Kᵀ", words, words)], "Row: who asks. Column: who is asked."),
        ("Weights", [grid(weights, "softmax(scores / √3)", words, words, shade=True, decimals=3)], "Each row sums to 1."),
        ("Output", [grid(output, "weights × V", words, decimals=8, mark=agree)],
         "Bold: the same as printed, in all eight digits."))
