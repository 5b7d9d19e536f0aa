"""The exercises of lesson 01: cosine similarity, nearest neighbours, analogies."""

import numpy as np

from helpers.checks.core import Contract, Exercise, Probe, example, larger, variants
from helpers.embeddings import analogy, cosine_similarity, nearest_neighbours


def _norms(X):
    return np.linalg.norm(X, axis=1, keepdims=True)


def _kept_whole(X):
    """The rows shortened to length 1, in an array of the dtype of X."""
    return (X / np.where(_norms(X) == 0, 1, _norms(X))).astype(X.dtype)


def _with_zero_rows(rng):
    X, Y = rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    X[1], Y[0] = 0, 0
    return X, Y


def _also_whole(function, X, Y):
    """What stops at whole numbers, as torch's functions do, is asked again with floats, so only a result can be wrong."""
    try:
        return function(X, Y)
    except (TypeError, RuntimeError):
        if X.dtype.kind != "i":
            raise
        return function(X.astype(float), Y.astype(float))


COSINE_SIMILARITY = Exercise(cosine_similarity, use=_also_whole, probes=(
    Probe("one pair", lambda rng: (rng.normal(size=(1, 2)), rng.normal(size=(1, 2))), "With one vector on each side "
        "the result is a table with one entry: the dot product divided by both lengths.", ),
    Probe("lengths differ",
        lambda rng: (rng.normal(size=(3, 2)) * [[0.1], [1], [50]], rng.normal(size=(2, 2)) * 9),
        "Cosine looks at directions only: making a vector longer must change nothing. Check both divisions."),
    Probe("zero rows", _with_zero_rows, "One row of X and one of Y are all zeros here. They have no "
        "direction: their similarity is 0 by convention."),
    Probe("tiny vectors", lambda rng: (rng.normal(size=(2, 3)) * 1e-5, rng.normal(size=(3, 3)) * 1e-4),
        "The vectors are tiny here, but not zero. Only a length of exactly 0 is a special case: adding a "
        "small number to every length spoils tiny vectors."),
    example("some zeros", (np.array([[1.0, 0.0], [1.0, -1.0]]), np.array([[2.0, 3.0]])),
        "One row has a single 0 here, and the numbers of another add up to 0. Both have a direction: only a row whose "
        "length is exactly 0 is a special case.", extreme=True),
    Probe("whole numbers", lambda rng: (rng.integers(1, 9, size=(2, 3)), rng.integers(1, 9, size=(2, 3))),
        "X and Y hold whole numbers here, and a cosine is no whole number.", draws=1, extreme=True),
    larger(lambda rng: (rng.normal(size=(9, 11)), rng.normal(size=(10, 11)))),
), misconceptions=(
    ("plain-dot", "This is the dot product. It grows with the lengths of the vectors: divide each entry "
        "by the length of its row of X and of its row of Y.", lambda X, Y: X @ Y.T),
    ("one-length", "You divide by the lengths of one side only. Both vectors of a pair have a length.",
        lambda X, Y: np.divide(X @ Y.T, _norms(X), out=np.zeros((len(X), len(Y))), where=_norms(X) > 0)),
    ("multiplied-by-a-length", "a / b * c divides by b and multiplies by c. Both lengths divide: put brackets round their "
        "product.", lambda X, Y: np.divide(X @ Y.T, _norms(X), out=np.zeros((len(X), len(Y))),
                                           where=_norms(X) > 0) * _norms(Y).T),
    ("lengths-added", "You divide by the sum of both lengths. Divide by their product.",
        lambda X, Y: X @ Y.T / np.maximum(_norms(X) + _norms(Y).T, 1e-300)),
    ("squared-lengths", "You divide by squared lengths. The length of a vector is the square root of the sum of "
        "its squares.", lambda X, Y: X @ Y.T / np.maximum(_norms(X) ** 2 * _norms(Y).T ** 2, 1e-300)),
    ("zero-over-zero", "Right for ordinary rows, but a row of zeros gives 0/0 = NaN. Its similarity is 0 "
        "by convention: treat a length of 0 apart.", lambda X, Y: X @ Y.T / (_norms(X) * _norms(Y).T)),
    ("constant-added", "You add a small number to every length, which makes every cosine a little too small. Only a length "
        "of exactly 0 is a special case.", lambda X, Y: X @ Y.T / ((_norms(X) + 1e-3) * (_norms(Y).T + 1e-3))),
    ("lengths-of-columns", "You take the lengths down the columns. The vectors are rows: the length of a row is the "
        "norm along axis 1.", lambda X, Y: (X / np.linalg.norm(X, axis=0)) @ (Y / np.linalg.norm(Y, axis=0)).T),
    ("lengths-along-axis-0", "You take the lengths along axis 0, so you get one for each column. The "
        "vectors are rows: the lengths of the rows are np.linalg.norm(X, axis=1).",
        lambda X, Y: X @ Y.T / (np.linalg.norm(X, axis=0)[:, None] * np.linalg.norm(Y, axis=0))),
    ("one-length-for-all", "You divide by the norm of the whole matrix. Each row has its own length: "
        "np.linalg.norm needs an axis.", lambda X, Y: X @ Y.T / (np.linalg.norm(X) * np.linalg.norm(Y))),
    ("distance", "This is the cosine distance, 1 - cosine. Similar vectors should get a large number.",
        lambda X, Y: 1 - cosine_similarity(X, Y)),
    ("absolute-value", "You drop the sign. Vectors that point in opposite directions have similarity -1.",
        lambda X, Y: np.abs(cosine_similarity(X, Y))),
    ("one-matrix", "You compare the rows of X with each other. Entry [i, j] compares row i of X with row j of Y.",
        lambda X, Y: cosine_similarity(X, X)),
    ("transposed", "Rows and columns are swapped: entry [i, j] compares row i of X with row j of Y.",
        lambda X, Y: cosine_similarity(X, Y).T),
    ("cut-to-whole-numbers", "np.zeros_like(X) takes the dtype of X as well as its shape: when X holds "
        "whole numbers, what you put into it is cut off to 0 or 1. np.zeros(X.shape) holds "
        "floating-point numbers.", lambda X, Y: _kept_whole(X) @ _kept_whole(Y).T),
    ("row-by-row", "You compare row i of X with row i of Y only. Every row of X must meet every row of Y: a "
        "matrix product does that.", lambda X, Y: (X * Y).sum(axis=1) / (_norms(X) * _norms(Y))[:, 0]),
))


TABLE = ("'numpy.ndarray' object has no attribute|only integers, slices", (
    "In your function vectors is a plain array, a row for each word. The table with the words is another thing, outside of "
    "it, which may have the same name: work with rows and their numbers."))
ONE_ROW = ("The query is one vector, of shape (d,), and cosine_similarity compares rows. Hand it over as a "
           "matrix of one row: query[None, :].")


def _crowd(rng):
    """One long vector with the largest dot product, one that points almost as the query does."""
    query = np.array([1.0, 0.2, 0.0]) + 0.05 * rng.normal(size=3)
    vectors = 0.5 * rng.normal(size=(6, 3))
    vectors[4] = 8 * (query + [0.0, 0.9, 0.9])
    vectors[2] = 0.1 * query
    return query, vectors, 2


def _cosines(query, vectors):
    return cosine_similarity(query[None, :], vectors)[0]


@variants
def _ranked(query, vectors, k, *, score=_cosines, order=lambda scores, k: np.argsort(-scores, kind="stable")[:k]):
    """The reference with another score of each row, or with another end."""
    return order(score(query, vectors), k)


NEAREST_NEIGHBOURS = Exercise(nearest_neighbours, probes=(
    Probe("k is 1", lambda rng: (rng.normal(size=2), rng.normal(size=(4, 2)), 1),
        "With k = 1 the result is one index: that of the row with the largest cosine."),
    Probe("order", lambda rng: (rng.normal(size=3), rng.normal(size=(7, 3)), 4),
        "The result is the indices of the k rows with the largest cosine, the most similar first."),
    Probe("lengths differ", _crowd, "One row is long and points elsewhere, one is short and points as "
        "the query does. Rank by cosine."),
    Probe("all of them", lambda rng: (rng.normal(size=4), rng.normal(size=(5, 4)), 5),
        "With k = n every row must appear once, the most similar first."),
    example("the query is a row", (np.array([1.0, 0]), np.array([[0, 1.0], [1, 0], [1, 1]]), 2), "One of the rows "
        "is the query itself here, and it comes first. To leave it out is the caller's business.", extreme=True),
    larger(lambda rng: (rng.normal(size=10), rng.normal(size=(11, 10)), 9)),
), misconceptions=(
    ("least-similar", "You return the least similar rows: argsort sorts from small to large.",
        _ranked(order=lambda scores, k: np.argsort(scores)[:k])),
    ("last-first", "Your order is turned round: the most similar must come first, and it is last.",
        _ranked(order=lambda scores, k: np.argsort(scores)[-k:])),
    ("dot-product", "You rank by the dot product, so long vectors win. Rank by cosine.",
        _ranked(score=lambda q, V: V @ q)),
    ("euclidean", "You rank by distance, so short vectors can lose although they point the right way. "
        "Rank by cosine.", _ranked(score=lambda q, V: -np.linalg.norm(V - q, axis=1))),
    ("similarities", "You return the similarities. The result is the indices of the rows: np.argsort "
        "gives indices.", _ranked(order=lambda scores, k: np.sort(scores)[::-1][:k])),
    ("drops-the-first", "You leave out the best row. The query need not be one of the rows here: "
        "skipping it is the caller's business.", _ranked(order=lambda scores, k: np.argsort(-scores)[1:k + 1])),
    ("not-ranked", "You sort the rows by their index. The most similar must come first.",
        _ranked(order=lambda scores, k: np.sort(np.argsort(-scores)[:k]))),
    ("absolute-value", "You rank by the size of the cosine and lose its sign: opposite vectors are not "
        "neighbours.", _ranked(score=lambda q, V: np.abs(_cosines(q, V)))),
    ("rows", "You return the rows themselves. The result is their indices, which np.argsort gives.",
        lambda q, V, k: V[nearest_neighbours(q, V, k)]),
    ("drops-the-query", "You leave out what points exactly as the query does. It may be a row like the others: skipping it "
        "is the caller's business.", lambda q, V, k: np.array([i for i in np.argsort(-_cosines(q, V))
                                                               if _cosines(q, V)[i] < 0.99999][:k])),
    ("row-not-taken", "Your result is a table with one row: cosine_similarity(query[None, :], vectors) is (1, n). "
        "Take its row with [0] before you sort.", lambda q, V, k: np.argsort(-cosine_similarity(q[None, :], V))[:k]),
    ("all-rows", "You return every row. Only the first k are asked for.",
        _ranked(order=lambda scores, k: np.argsort(-scores))),
), contracts=(
    Contract("a k larger than the number of rows", lambda rng: (rng.normal(size=2), rng.normal(size=(3, 2)), 4)),
    Contract("k = 0", lambda rng: (rng.normal(size=2), rng.normal(size=(3, 2)), 0)),
), nudges=(
    ("axis 1 is out of bounds for array of dimension 1|array is 1-dimensional", ONE_ROW),
    ("kth", "np.argpartition puts nothing in order, and stops where k is the number of rows. np.argsort does both."),
    TABLE,
))


def _small_step(rng):
    """a and b nearly alike, so that b - a + c lies next to c, and c wins unless it is left out."""
    vectors = rng.normal(size=(8, 4))
    vectors[6] = vectors[3] + 0.1 * rng.normal(size=4)
    return 3, 6, 0, vectors


def _close_to_b(rng):
    """a and c nearly alike, so that b - a + c lies next to b."""
    a, b, c, vectors = _small_step(rng)
    return a, c, b, vectors


def _all_point_away(rng):
    """Every row but a, b and c has a negative cosine."""
    return 0, 1, 2, np.array([[1, 0], [2, 0], [0.1, 0], [-1, 1], [-1, -2]])


def _long_words(rng):
    """Words of very different lengths: a long row has the largest dot product without the best direction."""
    vectors = rng.normal(size=(12, 3)) * np.exp(1.5 * rng.normal(size=(12, 1)))
    return 7, 2, 9, vectors


def _best(scores, leave_out):
    scores = scores.copy()
    scores[list(leave_out)] = -np.inf
    return int(np.argmax(scores))


def _target(a, b, c, V):
    return V[b] - V[a] + V[c]


def _unit(V):
    return V / _norms(V)


ANALOGY = Exercise(analogy, probes=(
    Probe("next to c", _small_step, "a and b are nearly alike here, so the target lies next to c, and c "
        "may not win. How do you leave out the three given words, and which index do you return?"),
    Probe("next to b", _close_to_b, "a and c are nearly alike here, so the target lies next to b, and b "
        "may not win. How do you leave out the three given words, and which index do you return?"),
    Probe("lengths differ", _long_words, "The rows have very different lengths here. Rank by cosine, and "
        "use the vectors as they are.", draws=12),
    Probe("all point away", _all_point_away, "Every row besides the three given words points away from "
        "the target here, so its cosine is negative. The best of these rows still wins: leave the "
        "three words out with minus infinity, not with 0.", draws=1, extreme=True),
    larger(lambda rng: (10, 8, 9, rng.normal(size=(12, 11)) * ([0.1] * 8 + [1] * 3)), draws=4),
), nudges=(
    ("axis 1 is out of bounds for array of dimension 1|array is 1-dimensional",
        ONE_ROW.replace("The query", "The target").replace("query[None", "target[None")),
    ("out of bounds for axis 0 with size 1", "Your cosines are a table with one row: cosine_similarity(target[None, "
        ":], vectors) is (1, n). Take that row with [0] before you leave words out."),
    TABLE,
), misconceptions=(
    ("inputs-not-excluded", "Your answer can be one of the three given words. Leave a, b and c out "
        "before you take the best.", lambda a, b, c, V: _best(_cosines(_target(a, b, c, V), V), [])),
    ("infinity-turned-round", "Your answer is always one of the three given words, so what should lose wins. For argmax the "
        "three get -np.inf, for argmin np.inf.", lambda a, b, c, V: min(a, b, c)),
    ("only-c-excluded", "You leave out c only. The answer may not be a or b either.",
        lambda a, b, c, V: _best(_cosines(_target(a, b, c, V), V), [c])),
    ("only-b-and-c-excluded", "You leave out b and c, but a can still be the answer.",
        lambda a, b, c, V: _best(_cosines(_target(a, b, c, V), V), [b, c])),
    ("only-a-and-c-excluded", "You leave out a and c, but b can still be the answer.",
        lambda a, b, c, V: _best(_cosines(_target(a, b, c, V), V), [a, c])),
    ("returns-the-row", "You return the row that is most similar. The answer is its index, which np.argmax gives.",
        lambda a, b, c, V: V[_best(_cosines(_target(a, b, c, V), V), [a, b, c])]),
    ("rows-taken-out", "You take the rows a, b and c out of the table. The rows behind them move up, so "
        "your index counts in the shorter table. Keep every row, and let the three lose.",
        lambda a, b, c, V: int(np.argmax(np.delete(_cosines(_target(a, b, c, V), V), [a, b, c])))),
    ("step-backwards", "You walk the step the wrong way. From a to b is b - a: take that step from c.",
        lambda a, b, c, V: _best(_cosines(V[a] - V[b] + V[c], V), [a, b, c])),
    ("a-and-c-exchanged", "You subtract c and add a. The target is b - a + c: the step from a to b, taken from c.",
        lambda a, b, c, V: _best(_cosines(V[b] - V[c] + V[a], V), [a, b, c])),
    ("step-backwards-dot-product", "You walk the step the wrong way, from b to a, and rank by the dot product. The target "
        "is b - a + c, and the cosine decides.", lambda a, b, c, V: _best(V @ (V[a] - V[b] + V[c]), [a, b, c])),
    ("no-minus-a", "You add b and c, but never take a away. The step from a to b is b - a.",
        lambda a, b, c, V: _best(_cosines(V[b] + V[c], V), [a, b, c])),
    ("no-c", "You look for the step b - a itself. The step must start at c.",
        lambda a, b, c, V: _best(_cosines(V[b] - V[a], V), [a, b, c])),
    ("dot-product", "You rank by the dot product, so long vectors win. Rank by cosine.",
        lambda a, b, c, V: _best(V @ _target(a, b, c, V), [a, b, c])),
    ("euclidean", "You rank by distance. Rank by cosine: only the direction counts.",
        lambda a, b, c, V: _best(-np.linalg.norm(V - _target(a, b, c, V), axis=1), [a, b, c])),
    ("unit-vectors-first", "You shorten the vectors to length 1 before you subtract. Here the step uses the vectors "
        "as they are.", lambda a, b, c, V: _best(_cosines(_target(a, b, c, _unit(V)), V), [a, b, c])),
    ("returns-the-vector", "You return the target vector b - a + c. The answer is the index of the row "
        "that is most similar to it.", lambda a, b, c, V: _target(a, b, c, V)),
))

EXERCISES = (COSINE_SIMILARITY, NEAREST_NEIGHBOURS, ANALOGY)
