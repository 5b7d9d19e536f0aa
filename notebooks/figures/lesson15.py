"""The figures of lesson 15: tokens and real text."""

import itertools
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb

from helpers import plots, tokens
from helpers.page import steps
from helpers.words import text_in


def spelt(part):
    """Bytes as a reader sees them: a space is ␣, and half a character is a box."""
    return part.decode("utf-8", "replace").replace(" ", "␣")


def merges_in_turn(line, n_merges):
    """Steps: a line as bytes and after each merge, with the pairs that are most frequent then, the winner first."""
    words = [tuple(word) for word in tokens.split(line)]  # in the order of the line
    counts = Counter(words)
    known, cards = {}, []
    for new, pair in enumerate([None, *tokens.learn_merges(counts, n_merges)], 255):
        if pair:
            known[pair] = new
        parts = tokens.table(known)
        ids = [i for word in words for i in tokens.bpe_encode(word, known)]
        tally = tokens.count_pairs({tuple(tokens.bpe_encode(word, known)): n for word, n in counts.items()})
        top = sorted(tally, key=lambda pair: (-tally[pair], pair))[:4]
        names = [" ".join(spelt(parts[i]) for i in pair) for pair in top]
        cards.append((
            f"{spelt(parts[new])} is token {new}" if pair else "Bytes",
            [steps.grid([[spelt(parts[i]) for i in ids]], "the line", mark=[[i == new for i in ids]]),
             steps.grid([[tally[pair] for pair in top]], "most frequent pairs now, the winner first", columns=names)],
            f"{len(ids)} tokens."))
    steps.show(*cards)


def icicles(text, merges, encode, numerals=False):
    """How the bytes of a text melt into tokens: a gap between two bytes ends at the merge that joins them.

    ``text``: of at most 300 bytes; ``merges``: {(a, b): new id}; ``encode(ids, merges)``: like `tokens.bpe_encode`;
    ``numerals``: whether each digit is a word. Raises NotUsable for any other text.
    """
    text_in(text, length=lambda text: len(text.encode()), most=300, unit="bytes")
    words = tokens.split(text, numerals)
    data, gaps = b"".join(words), [gap for word in words for gap in _gaps(word, merges, encode)]
    rows = in_rows(data, gaps)
    longest = max(end - begin for begin, end in rows)
    tints = itertools.cycle([plots.BLUE, plots.ORANGE, plots.GREEN, plots.PURPLE])
    fig, axes = plt.subplots(len(rows), 1, figsize=(6.8, 3.8 * len(rows)), squeeze=False)
    fig.get_layout_engine().set(hspace=0.08)
    for ax, (begin, end) in zip(axes[:, 0], rows, strict=True):
        _row(ax, data, gaps, begin, end, np.log10(1 + len(merges)), tints)
        ax.set(xlim=(begin, begin + longest), ylim=(np.log10(1 + len(merges)), 0), xticks=[])
        marks = [n for n in (0, 10, 100, 1000, 10_000) if n <= len(merges)]
        ax.set_yticks(np.log10(np.add(marks, 1)), [f"{n:,}" for n in marks])
        ax.set_ylabel("merges", fontsize=13)
        ax.tick_params(labelsize=12, length=0)
        ax.spines[:].set_visible(False)
    plt.show()


def _gaps(word, merges, encode):
    """For each byte of a word: how many merges it takes to join it with the next (inf: never)."""
    parts = {new: pair for pair, new in merges.items()}

    def inside(i):
        return [*inside(parts[i][0]), i - 255, *inside(parts[i][1])] if i in parts else []

    return [gap for i in encode(list(word), merges) for gap in (*inside(i), np.inf)]


def in_rows(data, gaps, width=30):
    """Cut a text into rows of about ``width`` bytes, after a token, at a space if one is near: [(begin, end), ...].

    ``data``: its bytes; ``gaps``: for each of them how many merges join it with the next, inf at the end of a token.
    """
    ends, n = [i + 1 for i, gap in enumerate(gaps) if gap == np.inf], -(-len(gaps) // width)
    aims = [len(gaps) * (i + 1) / n for i in range(n)]
    far = [10 * (data[end:end + 1] not in (b" ", b"")) for end in range(len(data) + 1)]
    cuts = sorted({0, *(min(ends, key=lambda end: abs(end - aim) + far[end]) for aim in aims)})
    return list(zip(cuts, cuts[1:], strict=False))


def _row(ax, data, gaps, begin, end, top, tints):
    """The bytes from ``begin`` to ``end``, the gaps between them, and a column for each token."""
    left = begin
    for i in range(begin, end):
        sign = chr(data[i]).replace(" ", "␣") if 32 <= data[i] < 127 else f"{data[i]:02x}"
        plots.as_written(ax.text(i + 0.5, -0.1, sign, ha="center", va="bottom", fontsize=15 - 5 * len(sign[1:])))
        tip, low = (top, 0.1) if gaps[i] == np.inf else (np.log10(1 + gaps[i]), 0)
        ax.fill([i + 0.8, i + 1.2, i + 1 + low, i + 1 - low], [0, 0, tip, tip], color="white", zorder=3, linewidth=0)
        if gaps[i] == np.inf:
            _column(ax, left, i + 1, top, next(tints))
            piece = data[left:i + 1].decode(errors="replace").translate({32: "␣", 10: "⏎", 9: "⇥", 0xfffd: "·"})
            plots.as_written(ax.text((left + i + 1) / 2, top + 0.12, piece, ha="center", va="top", fontsize=15,
                                     weight="bold"))
            left = i + 1


def _column(ax, left, right, top, tint):
    """One token: a column that is light at the top and full at the bottom."""
    shades = np.linspace(0.12, 0.85, 80)[:, None, None]
    ax.imshow(1 - shades * (1 - np.array(to_rgb(tint))), extent=(left, right, top, 0), aspect="auto")


def languages(cost, articles):
    """What six languages cost in tokens, as bars, and in bytes, as diamonds, each beside English.

    ``cost``: {language: tokens}; ``articles``: {language: the text}.
    """
    _, ax = plt.subplots(figsize=(6.6, 3.4))
    for row, language in enumerate(sorted(cost, key=cost.get)):
        share = cost[language] / cost["English"]
        in_bytes = len(articles[language].encode()) / len(articles["English"].encode())
        ax.barh(row, share, color=plots.ORANGE if language == "English" else plots.BLUE, height=0.66)
        ax.plot(in_bytes, row, "D", color="white", markeredgecolor="black", markersize=9)
        ax.text(share + 0.12, row, f"{share:.1f}", va="center", fontsize=13)
    ax.plot([], [], "D", color="white", markeredgecolor="black", markersize=9, label="in bytes")
    ax.set_yticks(range(len(cost)), sorted(cost, key=cost.get), fontsize=13)
    ax.set(xlim=(0, 4.8))
    ax.set_xlabel("length of the same text, English = 1", fontsize=12)
    ax.legend(loc="lower right", fontsize=12)
    ax.set_title("What six languages cost in tokens", fontsize=13)
    plt.show()


def wedge(diaries):
    """Loss on the text that is learned from and on the validation text, a panel for each training.

    ``diaries``: {name: [(loss on its text, loss on new text, what it wrote), ...]}, two of them, every ten steps.
    """
    fig, panels = plt.subplots(1, 2, figsize=(6.4, 4.2), sharey=True)
    for ax, (name, diary) in zip(panels, diaries.items(), strict=True):
        learned, new = np.array([losses for *losses, _ in diary]).T
        at, lowest = 10 * np.arange(1, len(new) + 1), int(new.argmin())
        ax.fill_between(at, learned, new, color=plots.ORANGE, alpha=0.15, linewidth=0)
        ax.plot(at, learned, "-", color=plots.BLUE, linewidth=2.5, label="the text it learns from")
        ax.plot(at, new, "--", color=plots.RED, linewidth=2.5, label="validation text")
        ax.plot(at[lowest], new[lowest], "o", color=plots.RED, markersize=11, fillstyle="none", markeredgewidth=2,
                label="best on validation")
        ax.set_xlabel("step", fontsize=13)
        ax.set_title(f"{name} text", fontsize=14)
        ax.tick_params(labelsize=12)
    panels[0].set_ylabel("loss in nats per token", fontsize=13)
    fig.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=13)
    plt.show()


def rivals(scores):
    """Bits per byte of a model, packing programs and n-grams, the worst first. ``scores``: {name: bits per byte}."""
    names = sorted(scores, key=lambda name: -scores[name])
    ax = plots.bars(names, [scores[name] for name in names], title="Bits per byte on the test text",
                    xlabel="bits per byte (less is better)",
                    colours=[plots.ORANGE if name == "our model" else plots.BLUE for name in names])
    ax.figure.set_size_inches(6.4, 4.9)
    ax.tick_params(axis="y", labelsize=12)
    plt.show()
