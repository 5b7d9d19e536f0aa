"""Assignment 3: masks, heads, positions (lessons 06 to 08)."""

import numpy as np

from classroom.tasks import Task
from helpers.checks.core import Contract, Exercise, Misconception, Probe, larger


def prefix_mask(prefix, T):
    """(T, T) bool: every query sees the first ``prefix`` tokens, and itself and what came before it."""
    if not 0 <= prefix <= T:
        raise ValueError(f"The prefix must lie between 0 and {T}, not {prefix}.")
    position = np.arange(T)
    return (position <= position[:, None]) | (position < prefix)


def packed_mask(segments):
    """segments (B, T), numbers of texts packed into one row, -1 for padding -> (B, T, T) bool: a token sees
    itself and what came before it in its own text. Padding sees nothing and is not seen."""
    T = segments.shape[1]
    same = segments[:, :, None] == segments[:, None, :]
    return same & np.tril(np.ones((T, T), dtype=bool)) & (segments >= 0)[:, :, None]


def head_contribution(heads, W_o, head):
    """heads (B, h, T, d_k), W_o (h d_k, d) -> (B, T, d): what one head adds to concat(heads) W_o."""
    d_k = heads.shape[-1]
    return heads[:, head] @ W_o[head * d_k:(head + 1) * d_k]


def relative_positions(T, limit):
    """(T, T) whole numbers: key position minus query position, clipped to [-limit, limit], plus limit: 0 to
    2 limit (Shaw et al. 2018)."""
    if limit < 1:
        raise ValueError(f"The limit must be at least 1, not {limit}.")
    position = np.arange(T)
    return np.clip(position - position[:, None], -limit, limit) + limit


# ---------------------------------------------------------------- prefix_mask


def _prefix(prefix, T):
    return lambda rng: (prefix, T)


def _triangle(T, k=0):
    return np.tril(np.ones((T, T), dtype=bool), k)


def _block(prefix, T):
    """The prefix sees itself, and nobody else sees more than a causal mask allows."""
    position = np.arange(T)
    return _triangle(T) & ~((position < prefix) & (position[:, None] >= prefix)) | (
        (position < prefix) & (position[:, None] < prefix))


PREFIX_MASK = Exercise(
    reference=prefix_mask,
    probes=(
        Probe("no prefix", _prefix(0, 3), (
            "Without a prefix this is the causal mask: True on and below the diagonal."
        ), draws=1),
        Probe("a prefix of two", _prefix(2, 4), (
            "Every row is True in the first two columns; from there on it is causal."
        ), draws=1),
        Probe("drawn at random", lambda rng: (int(rng.integers(2, 4)), int(rng.integers(5, 9))), (
            "A row is a query, a column is a key. The first `prefix` columns are True for everybody."
        )),
        Probe("all prefix", _prefix(4, 4), "When all is prefix everybody sees everything.", draws=1),
    ),
    misconceptions=(
        Misconception("causal-only", (
            "The prefix has no effect: its tokens may be seen by everybody, from before as well."
        ), lambda p, T: _triangle(T)),
        Misconception("transposed", (
            "Your mask is turned round. A row is a query; the prefix fills columns."
        ), lambda p, T: prefix_mask(p, T).T),
        Misconception("rows-of-the-prefix", (
            "You let the prefix's tokens see everything. The others may see the prefix: fill columns, not "
            "rows."
        ), lambda p, T: _triangle(T) | (np.arange(T) < p)[:, None]),
        Misconception("one-too-many", (
            "Your prefix is one token too long: it holds the positions 0 to prefix - 1."
        ), lambda p, T: _triangle(T) | (np.arange(T) <= p)),
        Misconception("prefix-not-seen-later", (
            "After the prefix nobody sees it in your mask. Its columns are True in every row."
        ), _block),
        Misconception("not-itself", (
            "A token must see itself: the diagonal is True."
        ), lambda p, T: _triangle(T, -1) | (np.arange(T) < p)),
        Misconception("numbers", (
            "You return numbers. A mask is boolean."
        ), lambda p, T: prefix_mask(p, T).astype(float)),
        Misconception("inverted", (
            "True and False have changed places: True means may attend."
        ), lambda p, T: ~prefix_mask(p, T)),
        Misconception("everything", (
            "You let everybody see everything. After the prefix the mask is causal."
        ), lambda p, T: np.ones((T, T), dtype=bool)),
    ),
    contracts=(Contract("a prefix longer than T", lambda rng: (5, 3)),),
)

# ---------------------------------------------------------------- packed_mask


def _packed(*rows):
    return lambda rng: (np.array(rows),)


def _random_rows(rng):
    return (np.array([np.repeat([3, 7, 1, -1], rng.multinomial(9, [0.3, 0.3, 0.2, 0.2])) for _ in range(3)]),)


def _larger_rows(rng):
    return (np.array([np.repeat([3, 7, 1, -1], rng.multinomial(12, [0.3, 0.3, 0.2, 0.2]))
                      for _ in range(9)]),)


def _same(segments):
    return segments[:, :, None] == segments[:, None, :]


PACKED_MASK = Exercise(
    reference=packed_mask,
    probes=(
        Probe("one text", _packed([0, 0, 0]), (
            "With one text this is the causal mask, with a batch axis in front: (1, 3, 3)."
        ), draws=1),
        Probe("two texts", _packed([0, 0, 1, 1]), (
            "A token sees only its own text, and there only itself and what came before."
        ), draws=1),
        Probe("padding", _packed([5, 5, -1], [2, -1, -1]), (
            "-1 is padding: its row and its column are False, the diagonal too."
        ), draws=1),
        Probe("drawn at random", _random_rows, (
            "The numbers of the texts are only names: they need not start at 0 or be in order."
        )),
        larger(_larger_rows),
    ),
    misconceptions=(
        Misconception("not-causal", (
            "Tokens see the future of their own text. Each sees itself and what came before."
        ), lambda s: _same(s) & (s >= 0)[:, :, None]),
        Misconception("one-text", (
            "Tokens see the texts before their own. Compare the numbers of query and key."
        ), lambda s: _triangle(s.shape[1]) & (s >= 0)[:, :, None] & (s >= 0)[:, None, :]),
        Misconception("padding-sees-padding", (
            "Padding has the same number as other padding, so it sees it. It must see nothing."
        ), lambda s: _same(s) & _triangle(s.shape[1])),
        Misconception("transposed", (
            "Your mask is turned round: row = query, column = key."
        ), lambda s: packed_mask(s).swapaxes(1, 2)),
        Misconception("not-itself", (
            "A token must see itself: only padding has False on the diagonal."
        ), lambda s: _same(s) & _triangle(s.shape[1], -1) & (s >= 0)[:, :, None]),
        Misconception("order-of-numbers", (
            "You let a token see texts with smaller numbers. The numbers are only names: compare for "
            "equality."
        ),
            lambda s: (s[:, :, None] >= s[:, None, :]) & _triangle(s.shape[1])
& (s >= 0)[:, :, None] & (s >= 0)[:, None, :]),
        Misconception("zero-is-padding", (
            "You treat text 0 as padding. Padding is -1."
        ), lambda s: packed_mask(np.where(s == 0, -1, s))),
        Misconception("numbers", (
            "You return numbers. A mask is boolean."
        ), lambda s: packed_mask(s).astype(float)),
        Misconception("inverted", (
            "True and False have changed places: True means may attend."
        ), lambda s: ~packed_mask(s)),
    ),
)

# ---------------------------------------------------------------- head_contribution


def _heads(B, h, T, d_k, d, head):
    return lambda rng: (rng.normal(size=(B, h, T, d_k)), rng.normal(size=(h * d_k, d)), head)


def _rows_of(W_o, head, d_k):
    return W_o[head * d_k:(head + 1) * d_k]


HEAD_CONTRIBUTION = Exercise(
    reference=head_contribution,
    probes=(
        Probe("one head", _heads(1, 1, 2, 2, 2, 0), (
            "With one head its contribution is all there is: heads[:, 0] @ W_o."
        )),
        Probe("first of two", _heads(1, 2, 3, 2, 4, 0), (
            "Head 0 meets the first d_k rows of W_o and no others."
        )),
        Probe("last of three", _heads(2, 3, 4, 2, 6, 2), (
            "Head i meets the rows i d_k to (i + 1) d_k of W_o."
        )),
        Probe("all sizes differ", _heads(3, 4, 2, 5, 7, 1), (
            "B = 3, h = 4, T = 2, d_k = 5, d = 7: the result is (3, 2, 7)."
        ), draws=3),
        larger(_heads(5, 6, 9, 10, 11, 4)),
    ),
    misconceptions=(
        Misconception("all-heads", (
            "You add up all heads. Only one is asked for."
        ), lambda X, W, i: sum(head_contribution(X, W, j) for j in range(X.shape[1]))),
        Misconception("all-others", (
            "You leave the head out and return the rest. Return what it adds itself."
        ),
            lambda X, W, i: sum((head_contribution(X, W, j) for j in range(X.shape[1]) if j != i),
                                np.zeros((X.shape[0], X.shape[2], W.shape[1])))),
        Misconception("counted-from-one", (
            "You count the heads from 1. Head 0 is the first."
        ), lambda X, W, i: head_contribution(X, W, max(i - 1, 0))),
        Misconception("first-rows", (
            "You use the first rows of W_o for every head. Each head has its own."
        ), lambda X, W, i: X[:, i] @ _rows_of(W, 0, X.shape[-1])),
        Misconception("every-hth-row", (
            "You take every h-th row of W_o. The heads stand side by side, each with d_k neighbouring rows."
        ), lambda X, W, i: X[:, i] @ W[i::X.shape[1]]),
        Misconception("without-W_o", (
            "You return the head's output without W_o. Its contribution to the sum has passed through W_o."
        ), lambda X, W, i: X[:, i]),
        Misconception("batch-for-head", (
            "You take an element of the batch. The heads are on axis 1: heads[:, head]."
        ), lambda X, W, i: X[i].swapaxes(0, 1).reshape(X.shape[2], -1) @ W),
        Misconception("divided-by-h", (
            "You divide by the number of heads. Contributions are added, not averaged."
        ), lambda X, W, i: head_contribution(X, W, i) / X.shape[1]),
    ),
)

# ---------------------------------------------------------------- relative_positions


def _offsets(T):
    position = np.arange(T)
    return position - position[:, None]


RELATIVE_POSITIONS = Exercise(
    reference=relative_positions,
    probes=(
        Probe("two tokens", lambda rng: (2, 3), (
            "With a wide limit nothing is clipped: 0 on the diagonal becomes the limit."
        ), draws=1),
        Probe("clipped", lambda rng: (4, 1), (
            "Limit 1: everything to the left is 0, the diagonal 1, everything to the right 2."
        ), draws=1),
        Probe("drawn at random", lambda rng: (int(rng.integers(6, 10)), int(rng.integers(2, 4))), (
            "Entry [i, j] is j - i, clipped to [-limit, limit], plus limit: whole numbers from 0 to 2 "
            "limit."
        )),
    ),
    misconceptions=(
        Misconception("sign", (
            "The sign is turned round: key minus query, so that keys to the right have larger numbers."
        ), lambda T, limit: relative_positions(T, limit).T),
        Misconception("not-clipped", (
            "You do not clip: beyond the limit all distances share a number."
        ), lambda T, limit: _offsets(T) + limit),
        Misconception("not-shifted", (
            "You do not add the limit. The numbers are rows of a table, so they start at 0."
        ), lambda T, limit: np.clip(_offsets(T), -limit, limit)),
        Misconception("absolute", (
            "You lose the direction: before and after are different."
        ), lambda T, limit: np.clip(np.abs(_offsets(T)), 0, limit)),
        Misconception("clipped-after", (
            "You add the limit and then clip to [-limit, limit]. Clip first."
        ), lambda T, limit: np.clip(_offsets(T) + limit, -limit, limit)),
        Misconception("floats", (
            "You return floats. Numbers of rows are whole numbers."
        ), lambda T, limit: relative_positions(T, limit).astype(float)),
        Misconception("modulo", (
            "You wrap round at the limit. Clip: np.clip."
        ), lambda T, limit: np.mod(_offsets(T) + limit, 2 * limit + 1)),
    ),
    contracts=(Contract("a limit of 0", lambda rng: (3, 0)),),
)

TASKS = {
    "prefix_mask": Task(PREFIX_MASK),
    "packed_mask": Task(PACKED_MASK),
    "head_contribution": Task(HEAD_CONTRIBUTION),
    "relative_positions": Task(RELATIVE_POSITIONS),
}
