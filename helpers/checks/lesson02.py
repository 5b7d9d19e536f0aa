"""The exercises of lesson 02: softmax, attention without parameters, entropy."""

import numpy as np

from helpers.attention import attention_entropy, self_attention, softmax
from helpers.checks.core import Exercise, Probe, example, larger, variants


def _steps(rng, *shape):
    """Normal numbers rounded to eighths: float32 holds them exactly, even when 10,000 is added."""
    return np.round(rng.normal(size=shape) * 8) / 8


def _softmax_without_max(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def _softmax_along(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _softmax_of_items(x):
    e = [np.exp(item - max(x)) for item in x]
    return np.array(e) / sum(e)


def _shifted(x):
    return np.exp(x - x.max(axis=-1, keepdims=True))


def _softmax_global_max(x):
    e = np.exp(x - x.max())
    return e / e.sum(axis=-1, keepdims=True)


SOFTMAX = Exercise(softmax, probes=(
    Probe("three scores", lambda rng: (rng.normal(size=3),), "Each weight is exp(score) / Σ exp(score).", ),
    Probe("one score a row", lambda rng: (rng.normal(size=(4, 1)),),
        "With one score in a row there is nothing to share: the weight is 1 whatever the score."),
    Probe("rows", lambda rng: (rng.normal(size=(2, 3)) * 2,),
        "Each row must sum to 1 by itself: softmax runs along the last axis, axis=-1."),
    Probe("huge scores", lambda rng: (_steps(rng, 3, 4) * 1e4,), "Scores of ±10,000 overflow exp. "
        "Subtract the largest score of each row first: the result is the same.", extreme=True),
    Probe("rows far apart", lambda rng: (_steps(rng, 2, 3) + np.array([[1e4], [-1e4]]),), "One row is near 10,000 "
        "and the other near -10,000. Each row needs its own maximum subtracted.", extreme=True),
    larger(lambda rng: (rng.normal(size=(5, 9, 10)),)),
), misconceptions=(
    ("two-point-seven", "You raise 2.7 to the scores. e is 2.71828…: take np.exp.", lambda x: softmax(x * np.log(2.7))),
    ("columns-sum-to-1", "Your weights sum to 1 down the columns. Each row must sum to 1: softmax runs "
        "along the last axis, axis=-1.", lambda x: _softmax_along(x, 0)),
    ("items-of-the-first-axis", "max(x), sum(x) and for … in x go through the rows of an array, and not through the "
        "scores of a row. NumPy's max and sum take axis=-1 and keepdims=True.", _softmax_of_items),
    ("largest-of-each-column", "You subtract the largest score of each column, which changes the shares within a "
        "row. Subtract each row's own: np.max(x, axis=-1, keepdims=True).",
        lambda x: np.exp(x - x.max(axis=0)) / np.exp(x - x.max(axis=0)).sum(axis=-1, keepdims=True)),
    ("whole-array", "You divide by the sum of the whole array, so all weights together sum to 1. Each row must: sum "
        "along axis=-1 with keepdims=True.", lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum()),
    ("no-keepdims-and-whole-array", "The largest scores lose an axis, and you divide by the sum of the whole array. Take "
        "both along axis=-1 with keepdims=True.", lambda x: np.exp(x - x.max(axis=-1)) / np.exp(x - x.max(axis=-1)).sum()),
    ("whole-array-divides", "You divide by the sum of the whole array. Each row has a sum of its own: sum along "
        "axis=-1 with keepdims=True.", lambda x: _shifted(x) / _shifted(x).sum()),
    ("columns-divide", "You divide by the sums of the columns, as sum(e) and e.sum(axis=0) give them. Each row has a "
        "sum of its own: e.sum(axis=-1, keepdims=True).", lambda x: _shifted(x) / _shifted(x).sum(axis=0)),
    ("no-keepdims", "The sums lose an axis and no longer line up with their rows. keepdims=True keeps "
        "it, with size 1: one sum for each row.", lambda x: np.exp(x - x.max(axis=-1, keepdims=True))
        / np.exp(x - x.max(axis=-1, keepdims=True)).sum(axis=-1)),
    ("no-keepdims-and-overflow", "The sums lose an axis and no longer line up with their rows. keepdims=True "
        "keeps it, with size 1: one sum for each row.", lambda x: np.exp(x) / np.exp(x).sum(axis=-1)),
    ("no-keepdims-anywhere", "The largest scores and the sums lose an axis and no longer line up with their rows: "
        "keepdims=True keeps it.", lambda x: np.exp(x - x.max(axis=-1)) / np.exp(x - x.max(axis=-1)).sum(axis=-1)),
    ("no-keepdims-in-max", "The largest scores lose an axis and no longer line up with their rows. "
        "keepdims=True keeps it, with size 1.", lambda x: _softmax_without_max(x - x.max(axis=-1))),
    ("overflow", "Right for small scores, but exp(10000) overflows to inf and inf/inf is NaN. Subtract "
        "the largest score of each row before exp: the result stays the same.", _softmax_without_max),
    ("global-maximum", "You subtract the maximum of the whole array. A row far below it underflows to "
        "0/0. Subtract each row's own maximum.", _softmax_global_max),
    ("not-normalised", "You take exp and never divide: weights sum to 1 along the last axis.", lambda x: np.exp(x)),
    ("not-normalised-shifted", "You subtract the maximum and take exp, but never divide by the sum.",
        lambda x: _shifted(x)),
    ("no-exp", "You divide the scores by their sum. Scores can be negative: exp makes them positive "
        "first.", lambda x: x / x.sum(axis=-1, keepdims=True)),
    ("sign", "The largest score gets the smallest weight: look at the sign inside exp.", lambda x: softmax(-x)),
    ("log", "This is the logarithm of softmax. Weights are positive and sum to 1.",
        lambda x: x - x.max(axis=-1, keepdims=True)
        - np.log(np.exp(x - x.max(axis=-1, keepdims=True)).sum(axis=-1, keepdims=True))),
    ("winner-takes-all", "You give all the weight to the largest score. Softmax is soft: every score "
        "gets a share.", lambda x: (x == x.max(axis=-1, keepdims=True)).astype(float)),
))


def _scores(X):
    return X @ X.T


def _cosines(X):
    lengths = np.linalg.norm(X, axis=1)
    return _scores(X) / (lengths * lengths[:, None])


@variants
def _attends(X, *, scores=_scores, divisor=lambda X: 1.0, weigh=softmax, mix=np.matmul):
    """The reference with other scores, a divisor of them, another function than softmax, or another mixture."""
    return mix(weigh(scores(X) / divisor(X)), X)


def _as_they_are(scores):
    return scores


def _weights_alone(weights, X):
    return weights


def _hidden(scores, places):
    return np.where(places, -np.inf, scores)


SELF_ATTENTION = Exercise(self_attention, probes=(
    Probe("one token", lambda rng: (rng.normal(size=(1, 3)),), "With one token its weight is 1: the result is X.", ),
    Probe("two tokens", lambda rng: (rng.normal(size=(2, 1)),), "Follow the three steps on two tokens: "
        "scores (2, 2), softmax along each row, weighted sum of the rows of X."),
    Probe("more tokens than numbers", lambda rng: (rng.normal(size=(6, 2)),),
        "T = 6 tokens of d = 2 numbers: scores and weights are (6, 6), the result is (6, 2)."),
    larger(lambda rng: (rng.normal(size=(9, 10)) / 2,)),
), misconceptions=(
    ("scaled", "You divide the scores by √d. That is coming in lesson 05; here the scores are plain dot "
        "products.", _attends(divisor=lambda X: np.sqrt(X.shape[1]))),
    ("columns-sum-to-1", "The weights that mix each output do not sum to 1. Row i of the weights belongs "
        "to output i: softmax runs along the last axis, its sums with keepdims=True, and the weights "
        "are not transposed afterwards.", _attends(weigh=lambda scores: _softmax_along(scores, 0))),
    ("no-softmax", "You sum with the raw scores. They must pass through softmax first, so that each "
        "output is a mean.", _attends(weigh=_as_they_are)),
    ("weights-only", "You return the weights. The last step is missing: the weighted sum of the rows of "
        "X.", _attends(mix=_weights_alone)),
    ("scores-only", "You return the scores. Two steps are missing: they become weights, and the weights average the rows "
        "of X.", _attends(weigh=_as_they_are, mix=_weights_alone)),
    ("softmax-twice", "You take the softmax twice. The scores become weights once, and the weights average the rows of X.",
        _attends(weigh=lambda scores: softmax(softmax(scores)))),
    ("number-by-number", "X * X multiplies number by number, and no token meets another. The scores are X @ X.T, and the "
        "weights times X is a product of matrices too.", lambda X: softmax(X * X) * X),
    ("softmax-at-the-end", "You take the softmax of the sums. It belongs to the scores, before the rows of X are averaged.",
        lambda X: softmax(_scores(X) @ X)),
    ("later-hidden", "You hide the words that come later. Masks come in lesson 06: here a token attends to all of them.",
        _attends(weigh=lambda scores: softmax(_hidden(scores, np.triu(np.ones_like(scores), 1) > 0)))),
    ("mixes-coordinates", "You compare the columns of X with each other. Tokens are rows: the scores are "
        "X Xᵀ, of shape (T, T).", lambda X: X @ softmax(X.T @ X)),
    ("columns-compared", "X.T @ X compares the columns of X, so your weights are (d, d) and the result lies on "
        "its side. Tokens are rows: the scores are X @ X.T, of shape (T, T).", lambda X: softmax(X.T @ X) @ X.T),
    ("cosine-scores", "You use cosine scores. Here the scores are plain dot products, lengths included.",
        _attends(scores=_cosines)),
    ("whole-table-sums-to-1", "All the weights together sum to 1. Each row must: softmax runs along the "
        "last axis.",
        _attends(weigh=lambda scores: softmax(scores.reshape(1, -1)).reshape(scores.shape))),
    ("plain-mean", "Every token gets the same weight. The weights must come from the scores X Xᵀ.",
        lambda X: np.repeat(X.mean(axis=0, keepdims=True), len(X), axis=0)),
    ("itself-left-out", "You leave each token out of its own sum. Here a token attends to itself as well.",
        lambda X: softmax(np.where(np.eye(len(X), dtype=bool), -1e30, _scores(X)))
        @ X if len(X) > 1 else X.copy()),
    ("divided-by-the-sum", "You divide the scores by their sum. A score can be negative, and then a weight is "
        "too: softmax takes exp first.", _attends(weigh=lambda scores: scores / scores.sum(axis=-1, keepdims=True))),
    ("x-added", "You add X itself. That sum comes in lesson 09, around attention: here the result is the "
        "mixture alone.", _attends(mix=lambda weights, X: X + weights @ X)),
    ("itself-masked", "You hide each token from itself. Here it attends to itself as well; one alone would have "
        "nothing to attend to.", _attends(weigh=lambda scores: softmax(_hidden(scores, np.eye(len(scores)) > 0)))),
), nudges=(
    ("core dimension|not aligned", "Tokens are rows, so the scores are X @ X.T, of shape (T, T), and weights "
        "times X gives (T, d). Does one of your products have its factors another way round?"),
))


def _weights(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def _with_zeros(rng):
    weights = _weights(rng, 3, 4)
    weights[0] = [0, 1, 0, 0]
    weights[1] = [0.5, 0, 0.5, 0]
    return (weights,)


def _plogp(w):
    return w * np.log(np.where(w > 0, w, 1))


def _sum_of_rows(terms):
    return terms.sum(axis=-1)


@variants
def _entropy(w, *, sign=-1, log=np.log, add=_sum_of_rows):
    """The reference with another sign or logarithm, or its terms added up in another way."""
    return sign * add(w * log(np.where(w > 0, w, 1)))


ATTENTION_ENTROPY = Exercise(attention_entropy, probes=(
    Probe("one row", lambda rng: (_weights(rng, 3),), "For one row the result is one number, -Σ w log w.", ),
    Probe("zeros", _with_zeros, "Some weights are exactly 0 here, and 0 · log 0 counts as 0. Take the "
        "logarithm only where w > 0 (np.log with where= needs out= as well).", extreme=True),
    example("tiny weights", (np.array([[1e-4, 0.9999], [2e-3, 0.998]]),),
        "Some weights are tiny here, but not 0. Only a weight of exactly 0 is a special case."),
    larger(lambda rng: (_weights(rng, 5, 9, 10),)),
), misconceptions=(
    ("nan-at-zero", "Right for positive weights, but 0 · log 0 is NaN for the computer. Entropy counts "
        "it as 0: take the logarithm only where w > 0. (np.log with where= needs out= as well: without "
        "it, the places left out hold whatever was in memory.)", lambda w: -(w * np.log(w)).sum(axis=-1)),
    ("sign", "The sign is wrong. The logarithm of a weight is negative, so entropy needs the minus.", _entropy(sign=1)),
    ("bits", "You use log base 2, so this is in bits. In nats the logarithm is np.log.", _entropy(log=np.log2)),
    ("columns", "You sum down the columns. Each query's weights are a row: sum along the last axis.",
        _entropy(add=lambda terms: terms.sum(axis=0))),
    ("keepdims", "Your result keeps an axis of size 1, as keepdims=True does. A row of weights gives one number, and "
        "nothing is left of its axis.", _entropy(add=lambda terms: terms.sum(axis=-1, keepdims=True))),
    ("one-number", "Your result is one number for the whole array. Each row has its own: sum along the last axis, "
        "and pick no entries with a mask such as w[w > 0], which flattens the rows.", _entropy(add=np.sum)),
    ("mean", "You take the mean over the keys. Entropy is the sum.", _entropy(add=lambda terms: terms.mean(axis=-1))),
    ("divided-by-log-T", "You divide by log T. That is a useful number between 0 and 1, but entropy in "
        "nats is not divided.", lambda w: -_plogp(w).sum(axis=-1) / np.log(w.shape[-1])),
    ("number-of-words", "You returned e to the entropy, the number of words. The task asks for the "
        "entropy itself.", lambda w: np.exp(-_plogp(w).sum(axis=-1))),
    ("other-count", "This is the other count, 1 / Σw². The entropy is -Σ w log w.", lambda w: 1 / (w**2).sum(axis=-1)),
    ("no-weight", "You add up log w. Each logarithm must be multiplied by its weight first.",
        lambda w: -np.log(w).sum(axis=-1)),
))

EXERCISES = (SOFTMAX, SELF_ATTENTION, ATTENTION_ENTROPY)
