"""Assignment 2: lookup, queries and keys, scaling (lessons 03 to 05)."""

import numpy as np

from classroom.tasks import Task
from helpers.attention import softmax
from helpers.checks.core import Contract, Exercise, Misconception, Probe, larger


def top_k_attention(query, keys, values, k):
    """query (d,), keys (n, d), values (n, m) -> output (m,), weights (n,): soft lookup among the k best keys
    only. Scores are plain dot products; the other weights are exactly 0. Raises ValueError unless 1 <= k <=
    n."""
    if not 1 <= k <= len(keys):
        raise ValueError(f"k must lie between 1 and the number of keys, {len(keys)}; it is {k}.")
    scores = keys @ query
    kept = np.full(len(keys), -np.inf)
    best = np.argsort(-scores)[:k]
    kept[best] = scores[best]
    weights = softmax(kept)
    return weights @ values, weights


def general_scores(Q, K, W):
    """Q (T_q, d_q), K (T_k, d_k), W (d_q, d_k) -> (T_q, T_k): entry [i, j] is q_iᵀ W k_j (Luong et al. 2015,
    "general")."""
    return Q @ W @ K.T


def attention_head(X, W_q, W_k, W_v):
    """X (T, d), W_q and W_k (d, d_k), W_v (d, d_v) -> output (T, d_v), weights (T, T): one head of scaled
    attention."""
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    weights = softmax(Q @ K.T / np.sqrt(W_q.shape[1]))
    return weights @ V, weights


def unit_divisor(d_k, sigma_q, sigma_k):
    """The number by which to divide q·k so that it has variance 1, when the d_k entries of q and of k are
    independent, with mean 0 and standard deviations sigma_q and sigma_k."""
    return np.sqrt(d_k) * sigma_q * sigma_k


# ---------------------------------------------------------------- top_k_attention


def _table(n, d, m, k):
    return lambda rng: (rng.normal(size=d), rng.normal(size=(n, d)), rng.normal(size=(n, m)), k)


def _far(rng):
    return rng.normal(size=3) * 100, rng.normal(size=(6, 3)) * 100, rng.normal(size=(6, 2)), 3


def _kept(scores, k, best=None):
    best = np.argsort(-scores)[:k] if best is None else best
    kept = np.full(len(scores), -np.inf)
    kept[best] = scores[best]
    return kept


def _lookup(weights, values):
    return weights @ values, weights


def _cut_after(query, keys, values, k):
    """All weights first, then the small ones are dropped and nothing is divided again."""
    weights = softmax(keys @ query)
    return _lookup(np.where(np.isfinite(_kept(weights, k)), weights, 0), values)


def _zero_scores(query, keys, values, k):
    scores = keys @ query
    return _lookup(softmax(np.where(np.isfinite(_kept(scores, k)), scores, 0)), values)


def _unstable(query, keys, values, k):
    scores = keys @ query
    e = np.exp(_kept(scores, k))
    return _lookup(e / e.sum(), values)


def _cosines(query, keys):
    return keys @ query / np.linalg.norm(keys, axis=1) / np.linalg.norm(query)


TOP_K_ATTENTION = Exercise(
    reference=top_k_attention,
    probes=(
        Probe("k is 1", _table(4, 2, 3, 1), (
            "With k = 1 the best key has all the weight: the output is its value."
        )),
        Probe("k is n", _table(3, 2, 2, 3), (
            "With k = n nothing is left out: this is soft attention over all keys."
        )),
        Probe("two of five", _table(5, 3, 2, 2), (
            "The k largest scores share all the weight by softmax; every other weight is exactly 0."
        ), draws=3),
        Probe("three of seven", _table(7, 4, 1, 3), (
            "n, d, m and k all differ here. The weights (n,) keep the order of the keys."
        ), draws=3),
        Probe("large scores", _far, (
            "The scores are in the thousands here: use a softmax that does not overflow."
        ), extreme=True),
        larger(_table(11, 9, 10, 5)),
    ),
    misconceptions=(
        Misconception("all-keys", (
            "You let every key take part. Only the k largest scores may have weight."
        ), lambda q, K, V, k: _lookup(softmax(K @ q), V)),
        Misconception("not-normalised-again", (
            "You drop small weights after the softmax, so the rest no longer sums to 1. Choose first, then "
            "softmax over the chosen scores."
        ), _cut_after),
        Misconception("scores-set-to-zero", (
            "You set the other scores to 0. exp(0) is 1, so they keep weight: -inf gives exactly 0."
        ), _zero_scores),
        Misconception("smallest", (
            "You keep the k smallest scores: argsort sorts from small to large."
        ), lambda q, K, V, k: _lookup(softmax(_kept(K @ q, k, np.argsort(K @ q)[:k])), V)),
        Misconception("plain-mean", (
            "The k best share equally in your function. Softmax over their scores gives the better ones "
            "more."
        ), lambda q, K, V, k: _lookup(np.isfinite(_kept(K @ q, k)) / k, V)),
        Misconception("short-weights", (
            "You return the k weights, best first. The result is n weights in the order of the keys, with "
            "zeros."
        ),
            lambda q, K, V, k: (top_k_attention(q, K, V, k)[0],
                                np.sort(top_k_attention(q, K, V, k)[1])[::-1][:k])),
        Misconception("scaled", (
            "You divide by √d. The scores are plain dot products here."
        ), lambda q, K, V, k: _lookup(softmax(_kept(K @ q / np.sqrt(len(q)), k)), V)),
        Misconception("cosine", (
            "You rank and weigh by cosine. The scores are plain dot products."
        ), lambda q, K, V, k: _lookup(softmax(_kept(_cosines(q, K), k)), V)),
        Misconception("absolute-value", (
            "You drop the signs of the scores: a very negative score is not a good one."
        ), lambda q, K, V, k: _lookup(softmax(_kept(np.abs(K @ q), k)), V)),
        Misconception("output-only", (
            "You return the output alone. Return output, weights."
        ), lambda q, K, V, k: top_k_attention(q, K, V, k)[0]),
        Misconception("overflow", (
            "Right for small scores, but exp of thousands overflows. Subtract the largest score first, or "
            "use attention.softmax."
        ), _unstable),
    ),
    contracts=(Contract("k = 0", lambda rng: (rng.normal(size=2), rng.normal(size=(3, 2)),
                                              rng.normal(size=(3, 2)), 0)),),
)

# ---------------------------------------------------------------- general_scores


def _general(T_q, T_k, d_q, d_k):
    return lambda rng: (rng.normal(size=(T_q, d_q)), rng.normal(size=(T_k, d_k)), rng.normal(size=(d_q, d_k)))


GENERAL_SCORES = Exercise(
    reference=general_scores,
    probes=(
        Probe("one pair", _general(1, 1, 2, 2), (
            "One query and one key give one number, qᵀ W k, in a (1, 1) array."
        )),
        Probe("square", _general(3, 3, 3, 3), (
            "Every size is 3 here, so every product fits: check the order, Q W Kᵀ."
        )),
        Probe("more keys", _general(2, 5, 3, 3), (
            "The result has a row for each query and a column for each key."
        )),
        Probe("widths differ", _general(4, 2, 3, 5), (
            "Queries have 3 numbers and keys 5. W leads from one to the other."
        )),
        larger(_general(9, 10, 11, 12)),
    ),
    misconceptions=(
        Misconception("no-W", (
            "You leave W out where the shapes allow it. The score is qᵀ W k."
        ), lambda Q, K, W: Q @ K.T if Q.shape[1] == K.shape[1] else Q @ W @ K.T),
        Misconception("W-ignored", (
            "W does not enter your result. The score is qᵀ W k."
        ), lambda Q, K, W: Q @ K.T),
        Misconception("W-transposed", (
            "You use Wᵀ. The rows of W belong to the query, its columns to the key."
        ), lambda Q, K, W: Q @ W.T @ K.T),
        Misconception("transposed", (
            "Your rows belong to keys. A row is a query: Q W Kᵀ."
        ), lambda Q, K, W: (Q @ W @ K.T).T),
        Misconception("scaled", (
            "You divide by √d_k. Luong's score is not scaled."
        ), lambda Q, K, W: Q @ W @ K.T / np.sqrt(K.shape[1])),
        Misconception("softmax", (
            "You return weights. Stop at the scores."
        ), lambda Q, K, W: softmax(Q @ W @ K.T)),
        Misconception("row-by-row", (
            "You pair query i with key i only. Every query meets every key."
        ), lambda Q, K, W: ((Q @ W)[:min(len(Q), len(K))] * K[:min(len(Q), len(K))]).sum(axis=1)),
    ),
)

# ---------------------------------------------------------------- attention_head


def _head(T, d, d_k, d_v, size=1.0):
    return lambda rng: (rng.normal(size=(T, d)) * size, rng.normal(size=(d, d_k)), rng.normal(size=(d, d_k)),
                        rng.normal(size=(d, d_v)))


def _attend(Q, K, V, divisor):
    weights = softmax(Q @ K.T / divisor)
    return weights @ V, weights


def _naive(X, W_q, W_k, W_v):
    e = np.exp((X @ W_q) @ (X @ W_k).T / np.sqrt(W_q.shape[1]))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ (X @ W_v), weights


def _columns(X, W_q, W_k, W_v):
    weights = softmax((X @ W_k) @ (X @ W_q).T / np.sqrt(W_q.shape[1])).T
    return weights @ (X @ W_v), weights


ATTENTION_HEAD = Exercise(
    reference=attention_head,
    probes=(
        Probe("one token", _head(1, 3, 2, 2), "A token alone has weight 1: the output is X W_v."),
        Probe("two tokens", _head(2, 3, 3, 3), (
            "Project, score, divide by √d_k, softmax along each row, mix the values."
        )),
        Probe("all sizes differ", _head(3, 5, 2, 4), (
            "T = 3, d = 5, d_k = 2, d_v = 4: the weights are (3, 3), the output (3, 4)."
        )),
        Probe("d_k is larger than d", _head(4, 2, 6, 1), (
            "d_k = 6 and d = 2 here: divide by √d_k, the width of the queries."
        )),
        Probe("long vectors", _head(4, 3, 4, 2, size=40.0), (
            "The scores are in the thousands here: use a softmax that does not overflow."
        ), extreme=True),
        larger(_head(9, 10, 11, 12, size=0.2)),
    ),
    misconceptions=(
        Misconception("no-scaling", (
            "You do not divide the scores by √d_k."
        ), lambda X, a, b, c: _attend(X @ a, X @ b, X @ c, 1)),
        Misconception("divided-by-d_k", (
            "You divide by d_k. It is the square root."
        ), lambda X, a, b, c: _attend(X @ a, X @ b, X @ c, a.shape[1])),
        Misconception("root-of-d", (
            "You divide by the root of d, the width of X. It is d_k, the width of the queries."
        ), lambda X, a, b, c: _attend(X @ a, X @ b, X @ c, np.sqrt(X.shape[1]))),
        Misconception("root-of-T", (
            "You divide by the root of the number of tokens. It is d_k, the width of the queries."
        ), lambda X, a, b, c: _attend(X @ a, X @ b, X @ c, np.sqrt(len(X)))),
        Misconception("values-not-projected", (
            "You mix the rows of X. The values are X W_v."
        ), lambda X, a, b, c: _attend(X @ a, X @ b, X, np.sqrt(a.shape[1]))),
        Misconception("same-projection", (
            "You use W_q for the keys as well. The keys are X W_k."
        ), lambda X, a, b, c: _attend(X @ a, X @ a, X @ c, np.sqrt(a.shape[1]))),
        Misconception("roles-swapped", (
            "Queries and keys have changed places: a row belongs to a query."
        ), lambda X, a, b, c: _attend(X @ b, X @ a, X @ c, np.sqrt(a.shape[1]))),
        Misconception("columns-sum-to-1", (
            "Your weights sum to 1 down the columns. Softmax runs over the keys, axis -1."
        ), _columns),
        Misconception("no-softmax", (
            "You mix with the raw scores. They must pass through softmax."
        ), lambda X, a, b, c: (lambda s: (s @ (X @ c), s))((X @ a) @ (X @ b).T / np.sqrt(a.shape[1]))),
        Misconception("order-swapped", (
            "Both results are right, in the wrong order: return output, weights."
        ), lambda X, a, b, c: attention_head(X, a, b, c)[::-1]),
        Misconception("output-only", (
            "You return the output alone. Return output, weights."
        ), lambda X, a, b, c: attention_head(X, a, b, c)[0]),
        Misconception("overflow", (
            "Right for small scores, but exp of thousands overflows. Subtract each row's largest score, or "
            "use attention.softmax."
        ), _naive),
    ),
)

# ---------------------------------------------------------------- unit_divisor


def _sizes(low, high):
    return lambda rng: (int(rng.integers(low, high)), float(rng.uniform(0.2, 0.8)),
                        float(rng.uniform(1.5, 4)))


UNIT_DIVISOR = Exercise(
    reference=unit_divisor,
    probes=(
        Probe("standard normals", lambda rng: (int(rng.integers(2, 100)), 1.0, 1.0), (
            "With both standard deviations 1 this is the scaling of the Transformer, √d_k."
        )),
        Probe("few entries", _sizes(2, 6), (
            "One product of two entries has variance σ_q² σ_k²; a sum of d_k of them has d_k times that. "
            "Divide by its root."
        )),
        Probe("many entries", _sizes(200, 2000), (
            "The variance of q·k is d_k σ_q² σ_k². The divisor is its root."
        ), draws=3),
    ),
    misconceptions=(
        Misconception("only-root", (
            "The standard deviations do not enter your result: a product of wider numbers is wider."
        ), lambda d_k, a, b: np.sqrt(d_k)),
        Misconception("variance", (
            "This is the variance of q·k. Divide by its root, the standard deviation."
        ), lambda d_k, a, b: d_k * a**2 * b**2),
        Misconception("no-root", (
            "d_k stands without its root: standard deviations grow with √d_k."
        ), lambda d_k, a, b: d_k * a * b),
        Misconception("squares", (
            "You multiply √d_k by variances. The root of σ² is σ."
        ), lambda d_k, a, b: np.sqrt(d_k) * a**2 * b**2),
        Misconception("sum", (
            "You add the standard deviations. Entries are multiplied, so their deviations are as well."
        ), lambda d_k, a, b: np.sqrt(d_k) * (a + b)),
        Misconception("roots-of-deviations", (
            "The root covers the deviations as well. They stand beside it."
        ), lambda d_k, a, b: np.sqrt(d_k * a * b)),
        Misconception("one-side", (
            "Only the queries' deviation enters your result. The keys' matters as much."
        ), lambda d_k, a, b: np.sqrt(d_k) * a),
        Misconception("inverse", (
            "This is the number to multiply with. The task asks for the divisor."
        ), lambda d_k, a, b: 1 / unit_divisor(d_k, a, b)),
    ),
)

TASKS = {
    "top_k_attention": Task(TOP_K_ATTENTION, forbidden=("soft_attention",)),
    "general_scores": Task(GENERAL_SCORES),
    "attention_head": Task(ATTENTION_HEAD, forbidden=("scaled_dot_product_attention", "masked_attention",
                                                      "multi_head_attention", "MultiheadAttention")),
    "unit_divisor": Task(UNIT_DIVISOR),
}
