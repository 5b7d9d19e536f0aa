"""The exercises of lesson 05: scaled dot-product attention, the gradient of softmax, the variance of a
score."""

import copy

import numpy as np

from helpers.attention import scaled_dot_product_attention, score_variance, softmax, softmax_jacobian
from helpers.checks.core import Exercise, Probe, example, inputs, larger, variants


@inputs
def _qkv(rng, *lead, T_q, T_k, d_k, d_v):
    """Normal entries. Scores then vary by about √d_k, so that the softmax never saturates and every factor
    shows."""
    return (rng.normal(size=(*lead, T_q, d_k)), rng.normal(size=(*lead, T_k, d_k)),
            rng.normal(size=(*lead, T_k, d_v)))


def _swap(x):
    return np.swapaxes(x, -1, -2)


def _scores(Q, K):
    return Q @ _swap(K)


def _root(x, axis):
    return np.sqrt(x.shape[axis])


@variants
def _attends(Q, K, V, *, scores=_scores, divisor=lambda Q, K, V: _root(Q, -1), weigh=softmax, mix=np.matmul):
    """The reference with other scores, another divisor of them, another function than softmax, or another mixture."""
    weights = weigh(scores(Q, K) / divisor(Q, K, V))
    return mix(weights, V), weights


@variants
def _softmax(scores, *, axis=-1, largest=None, keepdims=True):
    """Softmax along another axis (None: of everything), after another number was subtracted, or whose sum loses its axis."""
    e = np.exp(scores - (scores.max(axis=axis, keepdims=True) if largest is None else largest(scores)))
    return e / e.sum(axis=axis, keepdims=keepdims)


def _nothing(scores):
    return 0.0


SCALED_DOT_PRODUCT_ATTENTION = Exercise(scaled_dot_product_attention, probes=(
    Probe("one key", _qkv(T_q=2, T_k=1, d_k=2, d_v=3), "With one key its weight is 1 for every query, whatever "
        "the scores, and each output is the only row of V. Return first the output, then the weights after the softmax."),
    Probe("d_k is 1", _qkv(T_q=2, T_k=3, d_k=1, d_v=2), "With d_k = 1 the scale is √1 = 1, so "
        "this is plain attention: softmax(Q Kᵀ) V, softmax along each row of scores."),
    Probe("scale", _qkv(T_q=1, T_k=2, d_k=5, d_v=1), "Plain attention is right when d_k "
        "= 1. Here d_k = 5: divide the scores by √5 before the softmax."),
    Probe("as many queries as keys", _qkv(T_q=3, T_k=3, d_k=4, d_v=2), "With T_q = T_k = 3 a wrong axis still "
        "gives the right shape. Row i of the scores belongs to query i, and each row of weights sums to 1."),
    Probe("a batch", _qkv(3, T_q=2, T_k=4, d_k=6, d_v=5), "Q, K and V have a batch axis in front "
        "here. Count axes from the end: swap the last two of K, d_k is Q.shape[-1]."),
    example("rows far apart", (np.array([[1000.0], [-1000.0]]), np.array([[3.0], [0.0]]), np.array([[0.5, -1], [2, 1]])),
        "The scores of the two queries lie thousands apart here. Subtract from each row its own largest score, neither "
        "one number for all rows nor a mean: attention.softmax does it.", extreme=True),
    larger(_qkv(5, 6, T_q=9, T_k=10, d_k=11, d_v=12)),
), misconceptions=(
    ("no-scaling", "You do not scale: this is softmax(Q Kᵀ) V. Divide the scores by √d_k before the "
        "softmax.", _attends(divisor=lambda Q, K, V: 1)),
    ("scaled-by-d_k", "You divide by d_k. The standard deviation of a score is √d_k: divide by the "
        "square root.", _attends(divisor=lambda Q, K, V: Q.shape[-1])),
    ("scaled-by-d_k-squared", "You divide by the square of d_k. That makes every weight the same; divide "
        "by the square root.", _attends(divisor=lambda Q, K, V: Q.shape[-1] ** 2)),
    ("fourth-root", "You divide by the root of √d_k, which is d_k^¼. Divide the scores by √d_k, once; or the queries and "
        "the keys, both of them, by d_k^¼.", _attends(divisor=lambda Q, K, V: Q.shape[-1] ** 0.25)),
    ("half-instead-of-root", "d_k ** 1/2 is (d_k ** 1) / 2, because ** comes first. Write d_k ** 0.5 or "
        "np.sqrt(d_k).", _attends(divisor=lambda Q, K, V: Q.shape[-1] / 2)),
    ("precedence", "scores / d_k ** 1/2 is scores / d_k, and then halved: ** comes first, then / from left to "
        "right. Write scores / np.sqrt(d_k).", _attends(divisor=lambda Q, K, V: 2 * Q.shape[-1])),
    ("multiplied", "You multiply by √d_k. That makes large scores larger: divide.",
        _attends(divisor=lambda Q, K, V: 1 / _root(Q, -1))),
    ("scaled-by-d_v", "You divide by √d_v. The scores are sums over the d_k numbers of a query and a "
        "key; V has no part in them.", _attends(divisor=lambda Q, K, V: _root(V, -1))),
    ("scaled-by-T_k", "You divide by √T_k, the number of keys. A score is a sum over d_k terms: d_k is "
        "the last size, K.shape[-1].", _attends(divisor=lambda Q, K, V: _root(K, -2))),
    ("scaled-by-T_q", "You divide by √T_q, the number of queries. A score is a sum over d_k terms: d_k "
        "is the last size, Q.shape[-1].", _attends(divisor=lambda Q, K, V: _root(Q, -2))),
    ("scaled-by-T", "You divide by T, the number of keys. A score is a sum over d_k terms: divide by "
        "√d_k, with d_k = K.shape[-1].", _attends(divisor=lambda Q, K, V: K.shape[-2])),
    ("scaled-by-axis-1", "Right for matrices, but with a batch Q.shape[1] is not d_k. Count from the "
        "end: Q.shape[-1].", _attends(divisor=lambda Q, K, V: _root(Q, 1))),
    ("scaled-by-axis-0", "You divide by the square root of the first size of Q. d_k is the last one: "
        "Q.shape[-1].", _attends(divisor=lambda Q, K, V: _root(Q, 0))),
    ("scaled-after-softmax", "You divide the weights, after the softmax, so they do not sum to 1. Divide the scores.",
        lambda Q, K, V: (softmax(_scores(Q, K)) / _root(Q, -1) @ V, softmax(_scores(Q, K)) / _root(Q, -1))),
    ("output-divided", "You divide the output by √d_k. Divide the scores, before the softmax, so that the weights "
        "change too.", lambda Q, K, V: (softmax(_scores(Q, K)) @ V / _root(Q, -1), softmax(_scores(Q, K)))),
    ("columns-sum-to-1", "Your weights sum to 1 down the columns: softmax over the keys is axis=-1, the "
        "last axis.", _attends(weigh=_softmax(axis=-2))),
    ("softmax-over-axis-0", "Your softmax runs along axis 0, which is the batch when there is one. "
        "Softmax over the keys is axis=-1.", _attends(weigh=_softmax(axis=0))),
    ("softmax-over-axis-1", "Right for matrices, but with a batch axis 1 holds the queries. Count from "
        "the end: softmax over the keys is axis=-1.", _attends(weigh=_softmax(axis=1))),
    ("no-keepdims", "The sum of each row loses its axis, so the division runs along the wrong one (or "
        "stops). Keep it: e.sum(axis=-1, keepdims=True).", _attends(weigh=_softmax(keepdims=False))),
    ("no-keepdims-and-no-max", "The sum of each row loses its axis, so the division runs along the wrong "
        "one (or stops). Write e.sum(axis=-1, keepdims=True), and subtract the row's largest score "
        "before exp.", _attends(weigh=_softmax(keepdims=False, largest=_nothing))),
    ("no-keepdims-twice", "The maximum and the sum of each row lose their axis, so they meet the wrong rows. Both "
        "need keepdims=True.", _attends(weigh=_softmax(keepdims=False, largest=lambda scores: scores.max(axis=-1)))),
    ("max-without-keepdims", "The largest scores lose their axis, and are subtracted from the wrong rows. Keep it: "
        "scores.max(axis=-1, keepdims=True).", _attends(weigh=lambda scores: softmax(scores - scores.max(axis=-1)))),
    ("softmax-over-everything", "All your weights together sum to 1. Each query has its own: softmax "
        "along axis=-1.", _attends(weigh=_softmax(axis=None))),
    ("no-softmax", "You use the scaled scores as weights. They must pass through softmax, so that each "
        "row is positive and sums to 1.", _attends(weigh=lambda scores: scores)),
    ("winner-takes-all", "All the weight goes to the best key. That is hard attention; softmax shares "
        "the weight.", _attends(weigh=lambda scores: (scores == scores.max(axis=-1, keepdims=True)) * 1.0)),
    ("overflow", "Right for small scores, but exp(1000) overflows to inf and inf/inf is NaN. Subtract the largest "
        "score of each row before exp, or use attention.softmax.", _attends(weigh=_softmax(largest=_nothing))),
    ("global-maximum", "You subtract the largest of all scores. A row far below it underflows to 0/0. Subtract "
        "each row's own: scores.max(axis=-1, keepdims=True).", _attends(weigh=_softmax(largest=np.max))),
    ("output-only", "You return the output alone. Return the weights as well: return output, weights.",
        lambda Q, K, V: scaled_dot_product_attention(Q, K, V)[0]),
    ("weights-only", "You return the weights alone. The output is weights @ V: return output, weights.",
        lambda Q, K, V: scaled_dot_product_attention(Q, K, V)[1]),
    ("order-swapped", "You return them in the wrong order: return output, weights.",
        lambda Q, K, V: scaled_dot_product_attention(Q, K, V)[::-1]),
    ("scores-instead-of-weights", "The output is right, but the second result is the scores. Return what came out "
        "of the softmax.", lambda Q, K, V: (scaled_dot_product_attention(Q, K, V)[0], _scores(Q, K) / _root(Q, -1))),
    ("weights-transposed", "The output is right, the weights are transposed. Row = query, column = key: (T_q, T_k).",
        lambda Q, K, V: (lambda output, weights: (output, _swap(weights)))(*scaled_dot_product_attention(Q, K, V))),
    ("mixes-keys", "You mix the rows of K. The weights come from Q and K, and they mix the rows of V.",
        lambda Q, K, V: scaled_dot_product_attention(Q, K, K)),
    ("roles-swapped", "Your scores have a row for each key. A row belongs to a query: the scores are Q "
        "Kᵀ, not K Qᵀ.", _attends(scores=lambda Q, K: _scores(K, Q))),
    ("plain-T", "K.T reverses all axes, which goes wrong as soon as there is a batch. Swap only two of "
        "them, as in the scores of lesson 04.", _attends(scores=lambda Q, K: Q @ K.T)),
    ("batch-meets-batch", "Right for matrices. With a batch, np.dot lets every sentence meet the keys of every "
        "other sentence. The operator @ keeps the batch apart.", _attends(scores=lambda Q, K: np.dot(Q, _swap(K)))),
    ("transpose-of-three-axes", "K.transpose(0, 2, 1) needs three axes, and K may have any number of them in front. "
        "Count from the end: np.swapaxes(K, -1, -2).", _attends(scores=lambda Q, K: Q @ K.transpose(0, 2, 1))),
    ("transpose-of-four-axes", "K.transpose(0, 1, 3, 2) needs four axes, and K may have any number of them. Count "
        "from the end: np.swapaxes(K, -1, -2).", _attends(scores=lambda Q, K: Q @ K.transpose(0, 1, 3, 2))),
    ("swapaxes-from-the-front", "np.swapaxes(K, 1, 2) counts from the front: 1 and 2 are the last two of three axes "
        "only. Count from the end: np.swapaxes(K, -1, -2).", _attends(scores=lambda Q, K: Q @ np.swapaxes(K, 1, 2))),
    ("values-first", "You compute V @ weights. A row of weights mixes the rows of V: the output is "
        "weights @ V.", _attends(mix=lambda weights, V: V @ weights)),
    ("entry-by-entry", "weights * V multiplies entry by entry. The output is a matrix product: weights @ "
        "V.", _attends(mix=lambda weights, V: weights * V)),
))


@inputs
def _p(rng, n):
    """Weights that are far from even and far from one-hot."""
    return (softmax(rng.normal(size=n) * 1.2),)


def _with_zero(rng):
    p = np.zeros(5)
    p[[0, 2, 3]] = softmax(rng.normal(size=3))
    return (p,)


SOFTMAX_JACOBIAN = Exercise(softmax_jacobian, probes=(
    example("one weight", (np.ones(1),), "A single score's weight is always 1: its derivative is [[0]].", ),
    Probe("two weights", _p(2), "With two weights the result is p_0 p_1 times [[1, -1], "
        "[-1, 1]]: what one weight gains, the other loses."),
    Probe("some zeros", _with_zero,
        "Some weights are 0. Their rows and columns are 0; nothing is divided or takes a logarithm."),
    example("equal weights", (np.full(4, 0.25),), "All weights are equal here. δ_ij asks whether i and j "
        "are the same place, not whether p_i and p_j are the same number.", extreme=True),
    larger(_p(12)),
), misconceptions=(
    ("diagonal-only", "You have the diagonal only. Raising one score also lowers all the other weights: "
        "off the diagonal the entries are -p_i p_j.", lambda p: np.diag(p * (1 - p))),
    ("too-little-on-the-diagonal", "Off the diagonal all is well. On it you subtract p_i p_i twice, once "
        "in p (1 - p) and once in the outer product: the outer product already does it, so put p alone "
        "on the diagonal.", lambda p: np.diag(p * (1 - p)) - np.outer(p, p)),
    ("no-diag", "p - np.outer(p, p) subtracts the table from p in every row, because NumPy repeats a vector as "
        "rows. The extra p_i belongs on the diagonal only: np.diag(p) puts it there.", lambda p: p - np.outer(p, p)),
    ("a-vector", "You return the n numbers p (1 - p), as for a sigmoid. Each weight depends on every "
        "score: the result is (n, n).", lambda p: p * (1 - p)),
    ("sign", "The sign is wrong. Raising a score raises its own weight: the diagonal is positive.",
        lambda p: np.outer(p, p) - np.diag(p)),
    ("no-outer-product", "You have diag(p) only. Subtract the outer product p pᵀ: the weights must keep "
        "their sum.", lambda p: np.diag(p)),
    ("no-diagonal", "You have -p_i p_j everywhere. On the diagonal p_i must be added.", lambda p: -np.outer(p, p)),
    ("plus", "You add the outer product. What one weight gains the others lose, so each row must sum to "
        "0: subtract.", lambda p: np.diag(p) + np.outer(p, p)),
    ("plus-beside-p(1-p)", "Off the diagonal you have +p_i p_j, and what one weight gains the others lose. Mind the "
        "diagonal, too: the outer product reaches it, and p (1 - p) already holds its p_i p_i.",
        lambda p: np.diag(p * (1 - p)) + np.outer(p, p)),
    ("identity", "You use the identity instead of diag(p): δ_ij is multiplied by p_i as well.",
        lambda p: np.eye(len(p)) - np.outer(p, p)),
    ("no-p_i", "You have δ_ij - p_j, which is the derivative of log p_i. Multiply each row i by its "
        "weight p_i.", lambda p: np.eye(len(p)) - p),
    ("inner-product", "For vectors p @ p (and p @ p.T) is one number, the inner product. You need the "
        "(n, n) table of all products p_i p_j: np.outer(p, p).", lambda p: np.diag(p) - p @ p),
    ("vector-subtracted", "You subtract p itself from each row. Subtract the table of products p_i p_j: "
        "np.outer(p, p).", lambda p: np.diag(p) - p),
    ("squares-of-the-row", "Off the diagonal you have -p_i². Entry [i, j] has both weights: -p_i p_j.",
        lambda p: p[:, None] * (np.eye(len(p)) - p[:, None])),
    ("squares-of-the-column", "Off the diagonal you have -p_j². Entry [i, j] has both weights, -p_i p_j: "
        "the factor in front belongs to the row, p[:, None].", lambda p: p * (np.eye(len(p)) - p)),
    ("delta-everywhere", "You have p_i (1 - p_j) everywhere. The 1 is δ_ij: it stands on the diagonal "
        "only, elsewhere it is 0.", lambda p: np.outer(p, 1 - p)),
    ("softmax-again", "p already holds the weights: no softmax again.", lambda p: softmax_jacobian(softmax(p))),
    ("indices-swapped", "You have δ_ij - p_i. Row i belongs to weight i, column j to score j: p_i (δ_ij "
        "- p_j).", lambda p: np.eye(len(p)) - p[:, None]),
))


class _Wide(np.random.Generator):
    """A generator whose normals are twice as wide: q·k then has variance 16 d_k. A result that stays at d_k
    did not use this generator, and one that becomes 4 d_k did not multiply two draws."""

    def standard_normal(self, *args, **options):
        return 2 * super().standard_normal(*args, **options)

    def normal(self, *args, **options):
        return 2 * super().normal(*args, **options)

    def __deepcopy__(self, memo):
        return _Wide(copy.deepcopy(self.bit_generator, memo))


N = 3000  # dot products a call: a variance is then right to about 5 %


def _draws(d_k):
    return lambda rng: (d_k, N, np.random.default_rng(rng.integers(2**32)))


def _products(d_k, n, rng):
    return rng.standard_normal((n, d_k)) * rng.standard_normal((n, d_k))


def _dots(d_k, n, rng):
    return _products(d_k, n, rng).sum(axis=1)


def _one_at_a_time(d_k, n, rng):
    return np.array([rng.standard_normal(d_k) @ rng.standard_normal(d_k)
                     for _ in range(n)])  # compares with a list too


def _products_behind(score_variance, d_k, n, rng):
    """With n = 2, what the mean of many calls says: two products, which gives d_k / 2 (or d_k with ddof=1),
    or all four pairs of two queries and two keys, which gives 3/4 d_k. And none, where the results vary too little:
    the mean of their squares is 2 or 3 times the square of their mean, and below 1.7 with single numbers."""
    if n != 2:
        return score_variance(d_k, n, rng)
    found = [score_variance(d_k, n, rng) for _ in range(6000)]
    if any(value is None or np.ndim(value) for value in found):
        return found[0]
    found = np.array([float(value) for value in found])
    if np.mean(found**2) < 1.8 * np.mean(found)**2:
        return 0.0
    share = np.mean(found) / d_k
    return 2.0 if share < 0.62 or share > 0.88 else 4.0


WITHIN = 0.25  # of the reference: the draws may come in another order
SCORE_VARIANCE = Exercise(score_variance, use=_products_behind, probes=(
    Probe("d_k is 5", _draws(5), "Draw n queries and n keys, (n, d_k) each; multiply entry by entry; sum "
        "each row to n dot products; take their variance. It should be near d_k = 5.", tolerance=WITHIN),
    Probe("wider draws", lambda rng: (6, N, _Wide(np.random.PCG64(rng.integers(2**32)))),
        "This call passes a generator whose numbers are twice as large (standard deviation 2). A product "
        "of two of them has variance 16, so six of them together have 96, not 6.", tolerance=WITHIN),
    Probe("two queries, two keys", lambda rng: (8, 2, np.random.default_rng(rng.integers(2**32))),
        "With n = 2 there are two dot products: query 0 with key 0, and query 1 with key 1. Over many calls your "
        "variances are not those of two (the numbers here count them).", draws=1, extreme=True),
), misconceptions=(
    ("generator-not-used", "The numbers of rng.standard_normal do not enter your result. Draw q and k with it: no "
        "other distribution (±1, uniform), no generator of your own, no formula. (This call passes an rng whose "
        "normals are twice as large: a product has variance 16, six of them 96.)", lambda d_k, n, rng: float(d_k)),
    ("standard-deviation", "You return the standard deviation. The variance is its square: use var.",
        lambda d_k, n, rng: _dots(d_k, n, rng).std()),
    ("no-sum", "Your variance does not grow with d_k. A dot product is a sum of d_k products: sum each row, then "
        "take the variance, and divide nothing by d_k or √d_k.", lambda d_k, n, rng: _products(d_k, n, rng).var()),
    ("mean-of-products", "You take the mean of each row. A dot product is the sum of the products.",
        lambda d_k, n, rng: _products(d_k, n, rng).mean(axis=1).var()),
    ("sum-of-everything", "You sum over the whole array, which leaves one number, and one number has "
        "variance 0. Sum each row: axis=1.", lambda d_k, n, rng: np.sum(_products(d_k, n, rng)).var()),
    ("sum-down-the-columns", "You sum down the columns, over the n draws. Each dot product is a row: sum "
        "along axis=1.", lambda d_k, n, rng: _products(d_k, n, rng).sum(axis=0).var()),
    ("sum-down-the-columns-and-its-deviation", "You sum down the columns, over the n draws: each dot product is a row, "
        "axis=1. And std is only the root of the variance.", lambda d_k, n, rng: _products(d_k, n, rng).sum(axis=0).std()),
    ("same-vector-twice", "You multiply a vector with itself. Draw the queries and the keys separately: they must "
        "be independent.", lambda d_k, n, rng: (rng.standard_normal((n, d_k)) ** 2).sum(axis=1).var()),
    ("same-vector-twice-and-its-deviation", "You multiply a vector with itself: draw the queries and the keys separately. "
        "And std is only the root of the variance.",
        lambda d_k, n, rng: (rng.standard_normal((n, d_k)) ** 2).sum(axis=1).std()),
    ("one-vector", "You sum the entries of one vector. Multiply each query with its key first, then sum.",
        lambda d_k, n, rng: rng.standard_normal((n, d_k)).sum(axis=1).var()),
    ("added", "You add the two vectors. A dot product multiplies them, entry by entry.",
        lambda d_k, n, rng: (rng.standard_normal((n, d_k)) + rng.standard_normal((n, d_k))).sum(axis=1).var()),
    ("uniform-draws", "rng.random draws uniformly between 0 and 1. Draw standard normals, rng.standard_normal.",
        lambda d_k, n, rng: (rng.random((n, d_k)) * rng.random((n, d_k))).sum(axis=1).var()),
    ("sizes-swapped", "n and d_k are swapped: you take the variance of d_k dot products of n terms each. "
        "Draw (n, d_k) and sum along axis=1.", lambda d_k, n, rng: _dots(n, d_k, rng).var()),
    ("dot-products", "You return the dot products themselves. The result is one number, their variance.", _dots),
    ("dot-products-one-at-a-time", "You return all n dot products. The result is one number, their "
        "variance: np.var(...).", _one_at_a_time),
    ("all-pairs", "You multiply every query with every key, n × n dot products. Take n of them: each "
        "query with its own key, row by row.",
        lambda d_k, n, rng: (  # a part of them has the same variance, and is there sooner
            rng.standard_normal((n, d_k)) @ rng.standard_normal((n, d_k))[:100].T).var()),
    ("no-dot-product", "You take the variance of single numbers, and make d_k of them with the rule that "
        "this exercise is to try out. Sum each row to a dot product first, then take the variance of "
        "these n numbers.", lambda d_k, n, rng: d_k * _products(d_k, n, rng).var()),
    ("mean", "You return the mean of the dot products, which is near 0. The result is their variance.",
        lambda d_k, n, rng: _dots(d_k, n, rng).mean()),
))

EXERCISES = (SCALED_DOT_PRODUCT_ATTENTION, SOFTMAX_JACOBIAN, SCORE_VARIANCE)
