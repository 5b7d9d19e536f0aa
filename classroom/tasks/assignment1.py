"""Assignment 1: similarity and simple attention (lessons 01 and 02)."""

import numpy as np

from classroom.tasks import Task
from helpers.attention import softmax
from helpers.checks.core import Contract, Exercise, Misconception, Probe, larger
from helpers.embeddings import cosine_similarity


def most_similar_pair(X):
    """X (n, d) -> (i, j), i < j: the two different rows with the largest cosine; rows of zeros have cosine
    0."""
    cosines = cosine_similarity(X, X)
    cosines[np.tril_indices(len(X))] = -np.inf
    i, j = np.unravel_index(np.argmax(cosines), cosines.shape)
    return int(i), int(j)


def softmax_with_temperature(x, temperature):
    """softmax(x / temperature) along the last axis, for any shape. Raises ValueError unless temperature >
    0."""
    if not temperature > 0:
        raise ValueError(f"The temperature must be positive, not {temperature}.")
    return softmax(np.asarray(x) / temperature)


def cosine_attention(X, temperature):
    """X (T, d) -> output (T, d), weights (T, T): self-attention whose scores are cosines divided by a
    temperature."""
    weights = softmax_with_temperature(cosine_similarity(X, X), temperature)
    return weights @ X, weights


def effective_words(weights):
    """weights (..., T) -> (...): exp of the entropy, the number of words that a row attends to in effect, 1
    to T."""
    logs = np.log(np.where(weights > 0, weights, 1))
    return np.exp(-(weights * logs).sum(axis=-1))


# ---------------------------------------------------------------- most_similar_pair


def _rows(n, d):
    return lambda rng: (rng.normal(size=(n, d)),)


def _late_pair(rng):
    X = rng.normal(size=(6, 5))
    X[5] = 2 * X[3] + 0.05 * rng.normal(size=5)
    return (X,)


def _long_rows(rng):
    """Two short rows point the same way; two long rows have the largest dot product."""
    X = 0.1 * rng.normal(size=(6, 4))
    X[0] = [6, 6, 0, 0] + 0.1 * rng.normal(size=4)
    X[2] = [0, 7, 7, 0] + 0.1 * rng.normal(size=4)
    X[4] = 0.7 * X[1] + 0.001 * rng.normal(size=4)
    return (X,)


def _opposite(rng):
    X = rng.normal(size=(5, 6))
    X[1] = -X[0]
    return (X,)


def _with_zeros(rng):
    """Two rows of zeros, first and last; of the others, all in one corner, every cosine is positive."""
    X = np.abs(rng.normal(size=(5, 3))) + 0.1
    X[0] = X[4] = 0
    return (X,)


def _pair(table, largest=True):
    table = np.array(table, dtype=float)
    table[np.tril_indices(len(table))] = -np.inf if largest else np.inf
    i, j = np.unravel_index(np.argmax(table) if largest else np.argmin(table), table.shape)
    return int(i), int(j)


def _distances(X):
    return np.linalg.norm(X[:, None] - X[None], axis=-1)


def _cosines_with_nan(X):
    lengths = np.linalg.norm(X, axis=1)
    return X @ X.T / (lengths * lengths[:, None])


def _use_pair(function, X):
    """An array of two indices is as good as a tuple."""
    pair = function(X)
    return tuple(pair.tolist()) if isinstance(pair, np.ndarray) and pair.ndim == 1 else pair


MOST_SIMILAR_PAIR = Exercise(
    reference=most_similar_pair,
    use=_use_pair,
    probes=(
        Probe("two rows", _rows(2, 3), "With two rows there is one pair: (0, 1)."),
        Probe("five rows", _rows(5, 3), (
            "Compare all cosines of two different rows and return the two indices, the smaller one first."
        ), draws=3),
        Probe("a pair at the end", _late_pair, (
            "The best pair stands at the end here: every row must be compared."
        )),
        Probe("lengths differ", _long_rows, (
            "The rows have very different lengths here. Compare cosines, which look at directions only."
        ), draws=3),
        Probe("opposite rows", _opposite, (
            "Two rows point in opposite directions here: their cosine is -1, the smallest."
        )),
        Probe("rows of zeros", _with_zeros, (
            "Two rows hold only zeros here. Their cosine with every row is 0, and never NaN."
        ), extreme=True),
        larger(lambda rng: (rng.normal(size=(12, 11)) * ([0.1] * 8 + [1] * 3),), draws=4),
    ),
    misconceptions=(
        Misconception("itself", (
            "You return a row with itself: its cosine is 1, always the largest. Leave the diagonal out."
        ),
            lambda X: tuple(int(i) for i in np.unravel_index(np.argmax(cosine_similarity(X, X)),
                                                             (len(X),) * 2))),
        Misconception("larger-first", (
            "The right pair in the wrong order: the smaller index comes first."
        ), lambda X: most_similar_pair(X)[::-1]),
        Misconception("dot-product", (
            "You compare dot products, so long rows win. Compare cosines."
        ), lambda X: _pair(X @ X.T)),
        Misconception("distance", (
            "You look for the smallest distance, which depends on lengths. Compare cosines."
        ), lambda X: _pair(-_distances(X))),
        Misconception("least-similar", (
            "You return the least similar pair. Look for the largest cosine."
        ), lambda X: _pair(cosine_similarity(X, X), largest=False)),
        Misconception("absolute-value", (
            "You drop the sign of the cosine: opposite rows are not similar."
        ), lambda X: _pair(np.abs(cosine_similarity(X, X)))),
        Misconception("the-cosine", (
            "You return the cosine. The result is the two indices."
        ), lambda X: float(cosine_similarity(X, X)[most_similar_pair(X)])),
        Misconception("neighbours-only", (
            "You compare each row with the next one only. Any two rows may be the pair."
        ), lambda X: (lambda i: (i, i + 1))(int(np.argmax(np.diag(cosine_similarity(X, X), k=1))))),
        Misconception("zero-over-zero", (
            "A row of zeros gives 0/0 = NaN, and argmax takes NaN for the largest. The cosine of such a row "
            "is 0 by convention."
        ), lambda X: _pair(_cosines_with_nan(X))),
    ),
)

# ---------------------------------------------------------------- softmax_with_temperature


def _scores(rng, *shape):
    return np.round(rng.normal(size=shape) * 8) / 8


def _along(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _unstable(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def _global_max(x):
    e = np.exp(x - x.max())
    return e / e.sum(axis=-1, keepdims=True)


SOFTMAX_WITH_TEMPERATURE = Exercise(
    reference=softmax_with_temperature,
    probes=(
        Probe("temperature 1", lambda rng: (rng.normal(size=3), 1.0), (
            "With temperature 1 this is the ordinary softmax: exp of each score, divided by their sum."
        )),
        Probe("cold", lambda rng: (rng.normal(size=4), 0.4), (
            "A temperature below 1 sharpens: divide the scores by it before exp."
        )),
        Probe("warm rows", lambda rng: (rng.normal(size=(2, 3)) * 2, 3.0), (
            "Each row must sum to 1 by itself, and a temperature above 1 makes it more even."
        )),
        Probe("three axes", lambda rng: (rng.normal(size=(2, 3, 4)), 0.7), (
            "x may have any number of axes. Softmax runs along the last one."
        )),
        Probe("huge scores", lambda rng: (_scores(rng, 3, 4) * 1e3, 0.5), (
            "Scores in the thousands overflow exp. Subtract the largest of each row first."
        ), extreme=True),
        Probe("rows far apart", lambda rng: (_scores(rng, 2, 3) + np.array([[4e3], [-4e3]]), 2.0), (
            "The rows are far apart here: each needs its own maximum subtracted."
        ), extreme=True),
        Probe("very cold", lambda rng: (_scores(rng, 3, 4) * 4 + 6, 1 / 512), (
            "The temperature is very low here, so the divided scores are in the thousands and exp overflows "
            "unless the largest of each row is subtracted."
        ), extreme=True),
        larger(lambda rng: (rng.normal(size=(5, 9, 10)), 1.5)),
    ),
    misconceptions=(
        Misconception("multiplied", (
            "You multiply by the temperature. Divide: a low temperature must sharpen."
        ), lambda x, temperature: softmax(x * temperature)),
        Misconception("no-temperature", (
            "The temperature has no effect in your function. Divide the scores by it before exp. (Dividing "
            "after exp does nothing: it cancels in the division by the sum.)"
        ), lambda x, temperature: softmax(x)),
        Misconception("weights-divided", (
            "You divide the weights by the temperature, so that they no longer sum to 1. Divide the scores, "
            "before exp."
        ), lambda x, temperature: softmax(x) / temperature),
        Misconception("columns-sum-to-1", (
            "Your weights sum to 1 along the first axis. Softmax runs along the last: axis=-1."
        ), lambda x, temperature: _along(x / temperature, 0)),
        Misconception("whole-array", (
            "All weights together sum to 1. Each row must: sum along axis=-1 with keepdims=True."
        ),
            lambda x, temperature: np.exp((x - x.max()) / temperature)
            / np.exp((x - x.max()) / temperature).sum()),
        Misconception("overflow", (
            "Right for small scores, but exp of thousands overflows to inf, and inf/inf is NaN. Subtract "
            "the largest score of each row before exp."
        ), lambda x, temperature: _unstable(x / temperature)),
        Misconception("global-maximum", (
            "You subtract the maximum of the whole array. A row far below it becomes 0/0. Subtract each "
            "row's own."
        ), lambda x, temperature: _global_max(x / temperature)),
        Misconception("not-normalised", (
            "You take exp and never divide by the sum of the row."
        ), lambda x, temperature: np.exp(x / temperature)),
        Misconception("square-root", (
            "You divide by the square root of the temperature. Divide by the temperature itself."
        ), lambda x, temperature: softmax(x / np.sqrt(temperature))),
    ),
    contracts=(Contract("a temperature of 0", lambda rng: (rng.normal(size=3), 0.0)),
               Contract("a negative temperature", lambda rng: (rng.normal(size=3), -1.0))),
)

# ---------------------------------------------------------------- cosine_attention


def _words(T, d, temperature):
    return lambda rng: (rng.normal(size=(T, d)) * (1 + 2 * rng.random(size=(T, 1))), temperature)


def _word_of_zeros(rng):
    X = rng.normal(size=(4, 3))
    X[1] = 0
    return X, 0.5


def _attend(scores, X):
    weights = softmax(scores)
    return weights @ X, weights


def _unit(X):
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths == 0, 1, lengths)


def _with(scores):
    return lambda X, temperature: _attend(scores(X, temperature), X)


COSINE_ATTENTION = Exercise(
    reference=cosine_attention,
    probes=(
        Probe("one word", _words(1, 3, 0.5), (
            "A word alone has weight 1, so the output is X itself."
        ), draws=1),
        Probe("two words", _words(2, 2, 1.0), (
            "Follow the steps on two words: cosines (2, 2), divided by the temperature, softmax along each "
            "row, weighted sum of the rows of X."
        )),
        Probe("T is not d", _words(3, 5, 0.3), (
            "T = 3 words of d = 5 numbers: the weights are (3, 3), the output is (3, 5)."
        )),
        Probe("more words than numbers", _words(6, 2, 0.1), (
            "The temperature is 0.1 here: the scores are the cosines divided by it, so up to 10."
        )),
        Probe("a word of zeros", _word_of_zeros, (
            "One word is all zeros here. Its cosine with every word is 0, never NaN."
        ), extreme=True),
        larger(_words(9, 10, 0.2)),
    ),
    misconceptions=(
        Misconception("dot-product", (
            "Your scores are dot products, so long words win. Use cosines."
        ), _with(lambda X, t: X @ X.T / t)),
        Misconception("no-temperature", (
            "The temperature has no effect in your function. Divide the cosines by it."
        ), _with(lambda X, t: cosine_similarity(X, X))),
        Misconception("multiplied", (
            "You multiply by the temperature. Divide."
        ), _with(lambda X, t: cosine_similarity(X, X) * t)),
        Misconception("scaled", (
            "You also divide by √d. Cosines do not grow with d; the temperature alone does the work here."
        ), _with(lambda X, t: cosine_similarity(X, X) / t / np.sqrt(X.shape[1]))),
        Misconception("mixes-unit-rows", (
            "Your weights are right, but you mix rows of length 1. The output is weights @ X, with X as it "
            "came."
        ), lambda X, t: (softmax(_unit(X) @ _unit(X).T / t) @ _unit(X), softmax(_unit(X) @ _unit(X).T / t))),
        Misconception("columns-sum-to-1", (
            "Your weights sum to 1 down the columns. A row belongs to the word that looks: axis=-1."
        ), lambda X, t: (lambda w: (w @ X, w))(_along(cosine_similarity(X, X) / t, 0))),
        Misconception("output-only", (
            "You return the output alone. Return the weights as well: return output, weights."
        ), lambda X, t: cosine_attention(X, t)[0]),
        Misconception("weights-only", (
            "You return the weights alone. The output is weights @ X."
        ), lambda X, t: cosine_attention(X, t)[1]),
        Misconception("order-swapped", (
            "Both results are right, in the wrong order: return output, weights."
        ), lambda X, t: cosine_attention(X, t)[::-1]),
        Misconception("itself-left-out", (
            "You leave each word out of its own sum. Here a word attends to itself as well."
        ),
            lambda X, t: _attend(np.where(np.eye(len(X), dtype=bool), -1e30, cosine_similarity(X, X) / t), X)
            if len(X) > 1 else (X.copy(), np.ones((1, 1)))),
        Misconception("zero-over-zero", (
            "Right for ordinary words, but a word of zeros gives 0/0 = NaN. Its cosine is 0 by convention."
        ), _with(lambda X, t: _cosines_with_nan(X) / t)),
    ),
)

# ---------------------------------------------------------------- effective_words


def _weights(*shape):
    return lambda rng: (softmax(rng.normal(size=shape) * 1.5),)


def _some_zero(rng):
    weights = np.zeros((3, 5))
    weights[0, 2] = 1
    weights[1, [0, 3]] = softmax(rng.normal(size=2))
    weights[2] = softmax(rng.normal(size=5))
    return (weights,)


def _entropy(weights, log=np.log, axis=-1):
    return -(weights * log(np.where(weights > 0, weights, 1))).sum(axis=axis)


EFFECTIVE_WORDS = Exercise(
    reference=effective_words,
    probes=(
        Probe("one row", _weights(4), (
            "One row of weights gives one number: exp(-Σ w log w), with the natural logarithm."
        )),
        Probe("rows", _weights(2, 3), "Each row gives its own number: sum along the last axis, then exp."),
        Probe("three axes", _weights(2, 3, 4), (
            "The weights may have any number of axes. The last one holds the words."
        )),
        Probe("some zeros", _some_zero, (
            "Some weights are exactly 0 here. They add nothing: 0 log 0 counts as 0, not NaN."
        ), extreme=True),
        larger(_weights(5, 9, 10)),
    ),
    misconceptions=(
        Misconception("entropy", (
            "This is the entropy. The effective number of words is exp of it."
        ), lambda w: _entropy(w)),
        Misconception("sign", (
            "The sign is wrong: the entropy is minus the sum of w log w."
        ), lambda w: np.exp(-_entropy(w))),
        Misconception("bits", (
            "You take the logarithm to base 2 and then exp. Both must have the same base."
        ), lambda w: np.exp(_entropy(w, np.log2))),
        Misconception("two-to-the-nats", (
            "You take the natural logarithm and then a power of 2. Both must have the same base."
        ), lambda w: 2 ** _entropy(w)),
        Misconception("whole-array", (
            "You sum over the whole array. Each row has its own number: axis=-1."
        ), lambda w: np.exp(_entropy(w, axis=None))),
        Misconception("mean", (
            "You take the mean of w log w. The entropy is their sum."
        ), lambda w: np.exp(_entropy(w) / w.shape[-1])),
        Misconception("first-axis", (
            "You sum along the first axis. The words are on the last one: axis=-1."
        ), lambda w: np.exp(_entropy(w, axis=0))),
        Misconception("inverse-squares", (
            "This is 1/Σ w², another way to count. The task asks for exp of the entropy."
        ), lambda w: 1 / (w ** 2).sum(axis=-1)),
        Misconception("zero-times-log-zero", (
            "Right unless a weight is 0: 0 · log 0 is NaN in NumPy and must count as 0."
        ), lambda w: np.exp(-(w * np.log(w)).sum(axis=-1))),
    ),
)

TASKS = {
    "most_similar_pair": Task(MOST_SIMILAR_PAIR),
    "softmax_with_temperature": Task(SOFTMAX_WITH_TEMPERATURE,
                                     forbidden=("softmax", "log_softmax", "logsumexp")),
    "cosine_attention": Task(COSINE_ATTENTION, forbidden=("self_attention", "scaled_dot_product_attention")),
    "effective_words": Task(EFFECTIVE_WORDS, forbidden=("attention_entropy", "entropy")),
}
