"""The exercises of lesson 03: hard lookup, soft lookup, additive scores."""

import numpy as np

from helpers.attention import additive_scores, hard_attention, soft_attention, softmax
from helpers.checks.core import Exercise, Probe, example, inputs, larger


@inputs
def _table(rng, n, d, m):
    """A query, n keys of width d and n values of width m."""
    return rng.normal(size=d), rng.normal(size=(n, d)), rng.normal(size=(n, m))


def _square_table(rng):
    """n = d = m, and each way of mixing up the axes chooses another row."""
    while True:
        query, keys, values = _table(3, 3, 3)(rng)
        chosen = [np.argmax(scores) for scores in (keys @ query, query @ keys, values @ query)]
        if len(set(chosen)) == 3:
            return query, keys, values


def _crowd(rng):
    """Key 3 is long and has the largest dot product; key 1 has the query's direction, key 4 lies next to
    it."""
    query = np.array([1.0, 0.2, 0.0]) + 0.05 * rng.normal(size=3)
    keys = 0.25 * rng.normal(size=(5, 3))
    keys[3] = 3 * (query + [0.0, 0.9, 0.9])
    keys[1] = 0.1 * query
    keys[4] = query + 0.02 * rng.normal(size=3)
    return query, keys, rng.normal(size=(5, 2))


def _cosines(query, keys):
    return keys @ query / (np.linalg.norm(keys, axis=1) * np.linalg.norm(query))


def _starts_at_zero(query, keys, values):
    best, winner = 0, 0
    for i, key in enumerate(keys):
        if key @ query > best:
            best, winner = key @ query, i
    return values[winner]


@inputs
def _best_last(rng, n, d, m):
    """A table whose best key is the last one, so that it shows when the end of the table is left out."""
    query, keys, values = _table(n, d, m)(rng)
    best = int(np.argmax(keys @ query))
    keys[[best, -1]] = keys[[-1, best]]
    return query, keys, values


HARD_ATTENTION = Exercise(hard_attention, probes=(
    Probe("one key", _table(1, 2, 3), "With one key there is no choice: the result is values[0], of shape (m,).", ),
    Probe("two keys", _table(2, 1, 3), "Score each key by its dot product with the "
        "query, and return the value that belongs to the best key."),
    Probe("square", _square_table, "n, d and m are equal here, so a mixed-up axis raises no error. Keys "
        "are rows: keys @ query gives one score a key."),
    Probe("lengths differ", _crowd,
        "The keys have very different lengths here. Rank by the plain dot product, lengths included."),
    Probe("far below zero",
        lambda rng: (np.array([1e3]), np.array([[-3e3], [-2e3], [-9e3]]), rng.normal(size=(3, 1))),
        "Every dot product is far below zero here. A search that starts from a number such as -1 finds "
        "none of them: start from the first key, or from -np.inf.", draws=1, extreme=True),
    example("two best keys", (np.ones(1), np.array([[2.0], [5], [5]]), np.array([[1.0, 2], [3, 4], [3, 4]])),
        "Two keys share the best score here, and have the same value. The result is that value once: pick one "
        "row, and do not add up.", extreme=True),
    larger(_best_last(10, 9, 11)),
), misconceptions=(
    ("least-similar", "You take the key with the smallest score. The best key has the largest dot "
        "product.", lambda q, K, V: V[np.argmin(K @ q)]),
    ("returns-the-index", "You return the number of the best key. Look up its value: the row of values "
        "with that number.", lambda q, K, V: np.argmax(K @ q)),
    ("returns-the-key", "You found the right row, but return the key. A lookup answers with the value.",
        lambda q, K, V: K[np.argmax(K @ q)]),
    ("returns-the-score", "You return the best score itself. Use it to choose a row of values.",
        lambda q, K, V: (K @ q).max()),
    ("cosine", "You rank by cosine, as you also do when you divide the keys by their lengths. Here the score is "
        "the plain dot product, lengths included.", lambda q, K, V: V[np.argmax(_cosines(q, K))]),
    ("cosine-first-number", "You rank by cosine, where the score is the plain dot product, lengths "
        "included. And you return one number of the value, which is a whole row, (m,): leave out the "
        "last [0].", lambda q, K, V: V[np.argmax(_cosines(q, K))][0]),
    ("cosine-least-similar", "You rank by cosine, where the score is the plain dot product, lengths included. And "
        "you take the smallest: argsort sorts from small to large.", lambda q, K, V: V[np.argmin(_cosines(q, K))]),
    ("first-value", "You return the first value, whatever the scores. The key with the largest score "
        "says which row of values it is.", lambda q, K, V: V[0]),
    ("euclidean", "You rank by distance. Here the score is the plain dot product.",
        lambda q, K, V: V[np.argmin(np.linalg.norm(K - q, axis=1))]),
    ("farthest", "You rank by distance, and take the largest at that: the score is the plain dot product.",
        lambda q, K, V: V[np.argmax(np.linalg.norm(K - q, axis=1))]),
    ("column-of-values", "values[:, i] is a column. The values are rows: values[i], of shape (m,).",
        lambda q, K, V: V[:, np.argmax(K @ q)]),
    ("absolute-value", "You drop the sign of the score. A key that points away from the query is the "
        "worst match, not the best.", lambda q, K, V: V[np.argmax(np.abs(K @ q))]),
    ("starts-at-zero", "Your search starts from a best score of 0, so it fails when every score is "
        "negative. Start from the first key, or from -np.inf.", _starts_at_zero),
    ("compares-the-values", "You compare the query with the values. The query meets the keys; the value "
        "is only what comes back.", lambda q, K, V: V[np.argmax(V @ q)]),
    ("keys-as-columns", "You treat the keys as columns. Keys are rows: keys @ query, shape (n,), has one "
        "score for each key.", lambda q, K, V: V[np.argmax(q @ K)]),
    ("not-summed", "You multiply number by number but do not add up. A dot product is one number for "
        "each key: keys @ query, shape (n,).", lambda q, K, V: V[np.argmax(K * q)]),
    ("soft", "This is a mixture of all values. Hard attention returns one value and ignores the rest.",
        lambda q, K, V: softmax(K @ q) @ V),
    ("extra-axis", "The right value, but with an extra axis of length 1: (1, m). Pick one row with one "
        "whole number: values[i] has shape (m,), while values[[i]] or values[scores == best] keeps a "
        "list of rows.", lambda q, K, V: V[[np.argmax(K @ q)]]),
    ("one-hot-weights", "You return the weights, 1 for the best key and 0 for the rest. The last step is "
        "missing: the value that they select.", lambda q, K, V: (K @ q == (K @ q).max()).astype(float)),
    ("first-number", "You return one number of the value. A value is a whole row, of shape (m,): leave "
        "out the last [0].", lambda q, K, V: V[np.argmax(K @ q)][0]),
), nudges=(
    ("UnboundLocalError", "Perhaps no key was better than your first best: scores can be negative, so start from -np.inf, "
        "or from the first key."),
    ("arrays used as indices must be of integer", "A score is no index. np.argmax(keys @ query) is the number of the "
        "best key."),
    ("^IndexError: index .* out of bounds", "There is no such row: values has one for each key. argmax of a whole "
        "(n, d) array counts every number in it; keys @ query has one score for each key."),
))


def _with_weights(weights, values):
    return weights @ values, weights


_BY_DISTANCE = "You compare by distance. Here the scores are dot products, keys @ query."

SOFT_ATTENTION = Exercise(soft_attention, probes=(
    Probe("one key", _table(1, 2, 3), "With one key its weight is 1, so the output must be its value, and the second result "
        "[1.]: softmax of the scores, then weights @ values."),
    Probe("two keys", _table(2, 1, 3), "Follow the three steps: a score for each key, "
        "softmax of the scores, the weighted sum of the values."),
    Probe("square", _square_table, "n, d and m are equal here, so a mixed-up axis raises no error. Keys "
        "and values are rows, one an entry."),
    Probe("m is 1", _table(3, 2, 1), "Values are one number wide: the output is (1,).", draws=1, extreme=True),
    larger(_table(10, 9, 11)),
), misconceptions=(
    ("output-only", "You return the output alone. The exercise asks for two things: output, weights.",
        lambda q, K, V: softmax(K @ q) @ V),
    ("weights-only", "You return the weights alone. The last step is missing: their weighted sum of the "
        "values. Then return both: output, weights.", lambda q, K, V: softmax(K @ q)),
    ("wrong-order", "You return them in the wrong order: the output comes first, then the "
        "weights.", lambda q, K, V: _with_weights(softmax(K @ q), V)[::-1]),
    ("scores-for-weights", "The output is right; the second result is the scores, not the weights. "
        "Return softmax of the scores.", lambda q, K, V: (softmax(K @ q) @ V, K @ q)),
    ("unsummed-scores", "keys * query multiplies number by number and does not add up. The scores are dot "
        "products, one for each key: keys @ query, shape (n,).", lambda q, K, V: _with_weights(softmax(K * q), V)),
    ("softmax-of-a-column", "Your scores are a column, (n, 1), and softmax works along the last axis: "
        "one number alone always gets weight 1. Use keys @ query, shape (n,).",
        lambda q, K, V: (softmax(K @ q[:, None]).T @ V, softmax(K @ q[:, None]))),
    ("scaled", "You divide the scores by √d. That is coming in lesson 05; here the scores are plain dot "
        "products.", lambda q, K, V: _with_weights(softmax(K @ q / np.sqrt(len(q))), V)),
    ("no-softmax", "You sum with the raw scores. They must pass through softmax first, so that the "
        "weights are positive and sum to 1.", lambda q, K, V: _with_weights(K @ q, V)),
    ("scores-in-the-sum", "The weights are right, but the sum uses the raw scores: weights @ values, not "
        "scores @ values.", lambda q, K, V: (K @ q @ V, softmax(K @ q))),
    ("not-normalised", "You take exp but never divide by the sum: the weights must sum to 1.",
        lambda q, K, V: _with_weights(np.exp(K @ q), V)),
    ("no-exp", "You divide the scores by their sum. A negative score then gives a negative weight: "
        "softmax takes exp first.", lambda q, K, V: _with_weights(K @ q / (K @ q).sum(), V)),
    ("rounded", "You round the results. Return them as they come.",
        lambda q, K, V: tuple(np.round(part, 3) for part in _with_weights(softmax(K @ q), V))),
    ("hard-output", "The weights are right, but the output is the best value alone. It is the weighted sum of all: weights "
        "@ values.", lambda q, K, V: (V[np.argmax(K @ q)], softmax(K @ q))),
    ("mixes-the-keys", "You mix the keys. The output is a mixture of the "
        "values.", lambda q, K, V: (softmax(K @ q) @ K, softmax(K @ q))),
    ("compares-the-values", "You compare the query with the values. The query meets the keys; the values "
        "are only mixed.", lambda q, K, V: _with_weights(softmax(V @ q), V)),
    ("keys-as-columns", "You treat the keys as columns. Keys are rows: keys @ query, shape (n,), has one "
        "score for each key.", lambda q, K, V: _with_weights(softmax(q @ K), V)),
    ("values-as-columns", "The weights are right, but they weight the columns of the values. Values are "
        "rows: weights @ values, shape (m,).", lambda q, K, V: (V @ softmax(K @ q), softmax(K @ q))),
    ("star-for-at", "weights * values multiplies number by number. The weighted sum of the rows is a "
        "matrix product: weights @ values.", lambda q, K, V: (softmax(K @ q) * V, softmax(K @ q))),
    ("query-as-matrix", "The numbers are right, but with an extra axis of length 1. There is one query: the "
        "output is (m,) and the weights are (n,).", lambda q, K, V: _with_weights(softmax(q[None, :] @ K.T), V)),
    ("weights-as-column", "The numbers are right, but the weights have an extra axis of length 1: (n, 1). Return "
        "them as (n,), without [:, None].", lambda q, K, V: (softmax(K @ q) @ V, softmax(K @ q)[:, None])),
    ("output-as-row", "The numbers are right, but the output has an extra axis of length 1: (1, m). weights @ "
        "values with weights of shape (n,) gives (m,).", lambda q, K, V: (softmax(K @ q)[None] @ V, softmax(K @ q))),
    ("column-and-row", "The numbers are right, but weights are (n, 1) and the output (1, m). Leave out [:, None]: "
        "they are (n,) and (m,).", lambda q, K, V: (softmax(K @ q)[None] @ V, softmax(K @ q)[:, None])),
    ("hard", "You give all the weight to the best key. Soft attention gives every key a share: softmax.",
        lambda q, K, V: _with_weights((K @ q == (K @ q).max()).astype(float), V)),
    ("cosine-scores", "You use cosine scores. Here the scores are plain dot products, lengths included.",
        lambda q, K, V: _with_weights(softmax(_cosines(q, K)), V)),
    ("sign", "The worst key gets the largest weight: look at the sign of the scores.",
        lambda q, K, V: _with_weights(softmax(-(K @ q)), V)),
    ("distance", _BY_DISTANCE, lambda q, K, V: _with_weights(softmax(-np.linalg.norm(K - q, axis=1)), V)),
    ("squared-distance", _BY_DISTANCE, lambda q, K, V: _with_weights(softmax(-((K - q) ** 2).sum(axis=1)), V)),
    ("divided-by-n", "The weights are right, but then you take a mean over the keys. The weights sum to 1 already: "
        "add the weighted values up.", lambda q, K, V: ((softmax(K @ q)[:, None] * V).mean(axis=0), softmax(K @ q))),
    ("not-summed", "You weight each value, but do not add them up. The output is one row, of shape (m,).",
        lambda q, K, V: (softmax(K @ q)[:, None] * V, softmax(K @ q))),
), nudges=(
    ("could not be broadcast", "Weights (n,) and values (n, m) do not line up under *. weights @ values adds up the rows, "
        "each times its weight."),
))


@inputs
def _network(rng, T, d_s, d_h, d_a):
    """A decoder state, T encoder states, and the weights of the small network that scores them."""
    return tuple(rng.normal(size=size) for size in (d_s, (T, d_h), (d_a, d_s), (d_a, d_h), d_a))


def _no_state(rng):
    s, H, W, U, v = _network(3, 2, 2, 2)(rng)
    return np.zeros_like(s), H, W, U, v


def _sum(s, H, W, U):
    return W @ s + H @ U.T  # (T, d_a)


ADDITIVE_SCORES = Exercise(additive_scores, probes=(
    Probe("one state", _network(1, 1, 1, 1),
        "With T = 1 and every size 1 the score is v · tanh(W s + U h), in an array of shape (1,)."),
    Probe("state of zeros", _no_state, "The decoder state is all zeros here, so only U h_j is left inside tanh."),
    Probe("square", _network(3, 3, 3, 3), "All sizes are equal here, so a mixed-up axis "
        "raises no error. W @ s and U @ h_j: the matrix stands left of the vector.", draws=3),
    larger(_network(9, 10, 11, 12)),
), misconceptions=(
    ("no-tanh", "The tanh is missing. Without it the decoder state adds the same number to every score, "
        "and softmax cancels that.", lambda s, H, W, U, v: _sum(s, H, W, U) @ v),
    ("tanh-of-each", "You take tanh of W s and of U h_j apart. Add them first: tanh(W s + U h_j).",
        lambda s, H, W, U, v: (np.tanh(W @ s) + np.tanh(H @ U.T)) @ v),
    ("tanh-at-the-end", "You multiply by v first and take tanh of the score. tanh comes before v.",
        lambda s, H, W, U, v: np.tanh(_sum(s, H, W, U) @ v)),
    ("no-v", "You return the hidden layer, (T, d_a). The last step is missing: the dot product with v "
        "turns each row into one score.", lambda s, H, W, U, v: np.tanh(_sum(s, H, W, U))),
    ("v-of-ones", "You add up the hidden layer without v. Each number must be weighted by v first.",
        lambda s, H, W, U, v: np.tanh(_sum(s, H, W, U)).sum(axis=1)),
    ("scores-as-column", "The numbers are right, but in a column, (T, 1). With v as it is, of shape (d_a,), hidden "
        "@ v has shape (T,).", lambda s, H, W, U, v: np.tanh(_sum(s, H, W, U)) @ v[:, None]),
    ("scores-as-row", "The numbers are right, but with an extra axis of length 1: a row, (1, T). With v as it is, "
        "of shape (d_a,), the scores have shape (T,).", lambda s, H, W, U, v: (np.tanh(_sum(s, H, W, U)) @ v)[None]),
    ("softmax-too", "You return attention weights. The exercise asks for the scores, before softmax.",
        lambda s, H, W, U, v: softmax(np.tanh(_sum(s, H, W, U)) @ v)),
    ("W-and-U-swapped", "W and U are swapped: W goes with the decoder state s, U with the encoder states "
        "H.", lambda s, H, W, U, v: np.tanh(U @ s + H @ W.T) @ v),
    ("W-transposed", "You multiply s by the transpose of W. W is (d_a, d_s), so W @ s gives (d_a,).",
        lambda s, H, W, U, v: np.tanh(s @ W + H @ U.T) @ v),
    ("U-transposed", "You compute H @ U. U is (d_a, d_h) and the states are the rows of H, so each U @ "
        "h_j is a row of H @ U.T.", lambda s, H, W, U, v: np.tanh(W @ s + H @ U) @ v),
    ("both-transposed", "Both matrices stand on the wrong side. W is (d_a, d_s) and U is (d_a, d_h): W @ "
        "s, and H @ U.T for all rows at once.", lambda s, H, W, U, v: np.tanh(s @ W + H @ U) @ v),
    ("U-times-H", "You compute U @ H. The states are the rows of H, and U expects a column: H @ U.T does "
        "all rows at once.", lambda s, H, W, U, v: np.tanh(W @ s + U @ H) @ v),
    ("states-as-columns", "U @ H.T has the states as columns. Turn it round: H @ U.T has them as rows.",
        lambda s, H, W, U, v: np.tanh(W @ s + U @ H.T) @ v),
    ("v-on-the-left", "You add up over the encoder states. Each state needs its own score: v goes with "
        "the last axis, of length d_a.", lambda s, H, W, U, v: v @ np.tanh(_sum(s, H, W, U))),
    ("multiplied", "You multiply W s and U h_j. These scores are called additive because the two are "
        "added.", lambda s, H, W, U, v: np.tanh((W @ s) * (H @ U.T)) @ v),
    ("no-decoder-state", "The decoder state s plays no part, so the scores are the same at every step. "
        "Add W s inside tanh.", lambda s, H, W, U, v: np.tanh(H @ U.T) @ v),
    ("sigmoid", "You use a sigmoid, which is always positive. The formula has tanh, between -1 and 1.",
        lambda s, H, W, U, v: 1 / (1 + np.exp(-_sum(s, H, W, U))) @ v),
    ("state-as-column", "You add W s down the columns, so its first number goes to the first encoder state. Add the "
        "whole of W s to every row of H @ U.T.", lambda s, H, W, U, v: np.tanh((W @ s)[:, None] + H @ U.T) @ v),
))

EXERCISES = (HARD_ATTENTION, SOFT_ATTENTION, ADDITIVE_SCORES)
