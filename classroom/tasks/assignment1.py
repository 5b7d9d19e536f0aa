"""Assignment 1: similarity and simple attention (lessons 01 and 02). What makes a task this one and not its
neighbour is an argument behind the * of its reference."""

import numpy as np

from classroom.tasks import Task, by_name, in_variants, mistakes
from helpers.attention import softmax
from helpers.checks.core import Contract, Exercise, Probe, larger
from helpers.checks.lesson02 import _softmax_along, _softmax_global_max, _softmax_without_max
from helpers.embeddings import cosine_similarity


def _centred(X):
    return X - X.mean(axis=1, keepdims=True)


def _unit(X):
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths == 0, 1, lengths)


MEASURES = {"cosine": lambda X: cosine_similarity(X, X),
            "centred": lambda X: cosine_similarity(_centred(X), _centred(X)),
            "absolute": lambda X: np.abs(cosine_similarity(X, X))}
COUNTED_FROM = {0: lambda i: int(i), 1: lambda i: int(i) + 1}


def most_similar_pair(X, *, measure="cosine", first="smaller", start=0):
    """X (n, d) -> (i, j), i < j: the two different rows with the largest cosine; rows of zeros have cosine
    0. ``measure``: what is largest, a key of MEASURES; ``first``: the index that comes first; ``start``: the
    index of the first row."""
    table = MEASURES[measure](X)
    table[np.tril_indices(len(X))] = -np.inf
    i, j = map(COUNTED_FROM[start], np.unravel_index(np.argmax(table), table.shape))
    return (i, j) if first == "smaller" else (j, i)


def softmax_with_temperature(x, temperature):
    """softmax(x / temperature) along the last axis, for any shape. Raises ValueError unless temperature >
    0."""
    if not temperature > 0:
        raise ValueError(f"The temperature must be positive, not {temperature}.")
    return softmax(np.asarray(x) / temperature)


OUTPUTS = {"mixture": lambda weights, X: weights @ X,
           "unit words": lambda weights, X: weights @ _unit(X),
           "unit mixture": lambda weights, X: _unit(weights @ X),
           "added": lambda weights, X: X + weights @ X,
           "moved": lambda weights, X: weights @ X - X}


def cosine_attention(X, temperature, *, measure="cosine", output="mixture"):
    """X (T, d) -> output (T, d), weights (T, T): self-attention whose scores are cosines divided by a
    temperature. ``measure``: the scores, a key of MEASURES; ``output``: a key of OUTPUTS."""
    weights = softmax_with_temperature(MEASURES[measure](X), temperature)
    return OUTPUTS[output](weights, X), weights


OTHER_COUNTS = {"squares": lambda w, axis=-1: 1 / (w ** 2).sum(axis=axis),
                "roots": lambda w, axis=-1: np.sqrt(w).sum(axis=axis) ** 2}
OVER_ROWS = {"each": lambda numbers: numbers, "mean": np.mean,
             "geometric": lambda numbers: np.exp(np.log(numbers).mean())}


def effective_words(weights, *, count="entropy", rows="each"):
    """weights (..., T) -> (...): exp of the entropy, the number of words that a row attends to in effect, 1
    to T. ``count``: "entropy" or another way to count, a key of OTHER_COUNTS; ``rows``: what becomes of the
    numbers of all rows, a key of OVER_ROWS."""
    if count in OTHER_COUNTS:
        return OVER_ROWS[rows](OTHER_COUNTS[count](weights))
    logs = np.log(np.where(weights > 0, weights, 1))
    return OVER_ROWS[rows](np.exp(-(weights * logs).sum(axis=-1)))


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


def _levels(rng):
    """Two rows lie far from 0 and so have the largest cosine; two others are the same but for their mean."""
    X = rng.normal(size=(6, 4))
    X[[0, 2]] += 30
    X[4] = X[1] + 3
    return (X,)


def _opposite(rng):
    X = rng.normal(size=(5, 6))
    X[1] = -X[0]
    return (X,)


def _with_zeros(rng):
    """Two rows of zeros, first and last; of the others, all in one corner and rising, every cosine is
    positive, centred or not."""
    X = np.sort(np.abs(rng.normal(size=(8, 3))) + 0.1)
    X[0] = X[7] = 0
    return (X,)


def _one_of_zeros(rng):
    """Two rows, one of them of zeros: they are the only pair, whoever passes over NaN."""
    X = rng.normal(size=(2, 3))
    X[rng.integers(2)] = 0
    return (X,)


def _cosines_with_nan(X):
    lengths = np.linalg.norm(X, axis=1)
    return X @ X.T / (lengths * lengths[:, None])


def _use_pair(function, X):
    """An array of two indices is as good as a tuple."""
    pair = function(X)
    return tuple(pair.tolist()) if isinstance(pair, np.ndarray) and pair.ndim == 1 else pair


CENTRED = "centred = X - X.mean(axis=1, keepdims=True)\n    "  # a line of the solutions


@in_variants(most_similar_pair, {"measure": tuple(MEASURES), "first": ("smaller", "larger"), "start": (0, 1)})
def _most_similar_pair(like, measure, first, start):
    compare = {"cosine": "Compare cosines", "absolute": "Compare absolute values of cosines",
               "centred": "Compare cosines of centred rows"}[measure]
    largest = {"cosine": "the largest cosine", "absolute": "the cosine with the largest absolute value",
               "centred": "the largest cosine after centring"}[measure]
    opposite = "their cosine is -1, and its absolute value is 1, the largest" if measure == "absolute" else \
        "their cosine is -1, the smallest"
    other = "larger" if first == "smaller" else "smaller"

    def told(i, j):
        i, j = map(COUNTED_FROM[start], (i, j))
        return (i, j) if first == "smaller" else (j, i)

    def largest_in(table):
        """The pair with the largest entry of ``table(X)``."""
        def function(X):
            numbers = np.array(table(X), dtype=float)
            numbers[np.tril_indices(len(X))] = -np.inf
            return told(*np.unravel_index(np.argmax(numbers), numbers.shape))
        return function

    def with_nan(X):
        return signed(_cosines_with_nan(_centred(X) if measure == "centred" else X))

    def signed(cosines):
        return np.abs(cosines) if measure == "absolute" else cosines

    values = MEASURES[measure]
    sign, order = ("<", "i, j") if first == "smaller" else (">", "j, i")
    whose = {"cosine": "with the largest cosine", "centred": "with the largest cosine after centring",
               "absolute": "whose cosine has the largest absolute value"}[measure]
    more = {"cosine": "", "absolute": " Opposite directions count as similar here.",
            "centred": " Centring subtracts each row's own mean from its entries."}[measure]
    X = np.array([[4.0, 4, 5], [4, 5, 4], [1, 0, -1], [-2, 0, 2], [2, 1, 0]])
    words = {
        "largest": f"Find the two **different** rows {whose}.{more}",
        "order": f"Return their indices `(i, j)` with `i {sign} j`" + (", counted from 1." if start else "."),
        "docstring": f"X (n, d) -> (i, j), i {sign} j: the two different rows {whose}.",
        "cosines": {"cosine": "cosines = cosine_similarity(X, X)  # (n, n)",
                    "centred": f"{CENTRED}cosines = cosine_similarity(centred, centred)  # (n, n)",
                    "absolute": "cosines = np.abs(cosine_similarity(X, X))  # (n, n)"}[measure],
        "result": "return " + ", ".join(f"int({i}) + 1" if start else f"int({i})" for i in order.split(", ")),
        "expected": f"most_similar_pair(X)) == {like()(X)}",
    }
    return Exercise(like(), use=_use_pair, probes=(
        Probe("two rows", _rows(2, 3), f"With two rows there is one pair: {told(0, 1)}."),
        Probe("five rows", _rows(5, 3), f"{compare}, for all pairs of two different rows, and return "
            f"the two indices, counted from {start}, the {first} one first.", draws=3),
        Probe("a pair at the end", _late_pair, "The best pair stands at the end here: every row must "
            "be compared."),
        Probe("lengths differ", _long_rows, f"The rows have very different lengths here. {compare}, "
            "which look at directions only.", draws=3),
        Probe("means differ", _levels, (
            "Two rows lie far from 0 here, and two others differ by one number in all entries. "
            + ("Subtract each row's own mean first." if measure == "centred" else
               "Take the cosines of the rows as they came.")
        )),
        Probe("opposite rows", _opposite, f"Two rows point in opposite directions here: {opposite}."),
        Probe("rows of zeros", _with_zeros, "Two rows hold only zeros here. Their cosine with every "
            "row is 0, and never NaN.", draws=5, extreme=True),
        Probe("one of two rows is zeros", _one_of_zeros, "There are two rows here and one holds only "
            f"zeros. Its cosine with the other is 0, and so {told(0, 1)} is the pair: a row of zeros "
            "is not passed over.", draws=2, extreme=True),
        larger(lambda rng: (rng.normal(size=(12, 11)) * ([0.1] * 8 + [1] * 3),), draws=4),
    ), misconceptions=mistakes(
        ("itself", "You return a row with itself: its cosine is 1, always the largest. Leave the "
            "diagonal out.", lambda X: told(*np.unravel_index(np.argmax(values(X)), (len(X),) * 2))),
        (f"{other}-first", f"The right pair in the wrong order: the {first} index comes first.",
            like(first=other)),
        (f"counted-from-{1 - start}", f"The right pair, counted from {1 - start}. Here the first row "
            f"has the index {start}.", like(start=1 - start)),
        ("dot-product", f"You compare dot products, so long rows win. {compare}.", largest_in(lambda X: X @ X.T)),
        ("distance", f"You look for the smallest distance, which depends on lengths. {compare}.",
            largest_in(lambda X: -np.linalg.norm(X[:, None] - X[None], axis=-1))),
        ("least-similar", f"You return the least similar pair. Look for {largest}.",
            largest_in(lambda X: -values(X))),
        ("sign-kept", "You keep the sign of the cosine. Here opposite rows are as similar as"
            " equal ones: take its absolute value.", like(measure="cosine")) if measure == "absolute" else
        ("absolute-value", "You drop the sign of the cosine: opposite rows are not similar.",
            largest_in(lambda X: np.abs(values(X)))),
        ("not-centred", "You take the cosines of the rows as they came. Subtract each row's"
            " own mean first.", like(measure="cosine")) if measure == "centred" else
        ("centred", "You subtract each row's mean first. Take the cosines of the rows as they came.",
            largest_in(lambda X: signed(MEASURES["centred"](X)))),
        measure == "centred" and ("columns-centred", "You subtract the mean of each column."
            " Subtract each row's own mean: axis=1.",
            largest_in(lambda X: cosine_similarity(*[X - X.mean(axis=0)] * 2))),
        measure == "absolute" and ("absolute-dot-product",
            f"You compare absolute values of dot products, so long rows win. {compare}.",
            largest_in(lambda X: np.abs(X @ X.T))),
        ("the-cosine", "You return the cosine. The result is the two indices.",
            lambda X: float(values(X)[most_similar_pair(X, measure=measure)])),
        ("neighbours-only", "You compare each row with the next one only. Any two rows may be the "
            "pair.", lambda X: (lambda i: told(i, i + 1))(int(np.argmax(np.diag(values(X), k=1))))),
        ("zero-over-zero", "A row of zeros gives 0/0 = NaN, and argmax takes NaN for the largest. The "
            "cosine of such a row is 0 by convention.", largest_in(with_nan)),
        ("zeros-passed-over", "You pass over NaN, and with it over rows of zeros. The cosine of such "
            "a row is 0 by convention, so it may be one of the pair.",
            largest_in(lambda X: np.nan_to_num(with_nan(X), nan=-np.inf))),
    )), words


def _scores(rng, *shape):
    return np.round(rng.normal(size=shape) * 8) / 8


SOFTMAX_WITH_TEMPERATURE = Exercise(softmax_with_temperature, probes=(
    Probe("temperature 1", lambda rng: (rng.normal(size=3), 1.0), "With temperature 1 this is the "
        "ordinary softmax: exp of each score, divided by their sum."),
    Probe("cold", lambda rng: (rng.normal(size=4), 0.4), "A temperature below 1 sharpens: divide the "
        "scores by it before exp."),
    Probe("warm rows", lambda rng: (rng.normal(size=(2, 3)) * 2, 3.0), "Each row must sum to 1 by "
        "itself, and a temperature above 1 makes it more even."),
    Probe("three axes", lambda rng: (rng.normal(size=(2, 3, 4)), 0.7), "x may have any number of "
        "axes. Softmax runs along the last one."),
    Probe("huge scores", lambda rng: (_scores(rng, 3, 4) * 1e3, 0.5), "Scores in the thousands "
        "overflow exp. Subtract the largest of each row first.", extreme=True),
    Probe("rows far apart", lambda rng: (_scores(rng, 2, 3) + np.array([[4e3], [-4e3]]), 2.0),
        "The rows are far apart here: each needs its own maximum subtracted.", extreme=True),
    Probe("very cold", lambda rng: (_scores(rng, 3, 4) * 4 + 6, 1 / 512), "The temperature is very "
        "low here, so the divided scores are in the thousands and exp overflows unless the largest of "
        "each row is subtracted.", extreme=True),
    larger(lambda rng: (rng.normal(size=(5, 9, 10)), 1.5)),
), misconceptions=(
    ("multiplied", "You multiply by the temperature. Divide: a low temperature must sharpen.",
        lambda x, temperature: softmax(x * temperature)),
    ("no-temperature", "The temperature has no effect in your function. Divide the scores by it "
        "before exp. (Dividing after exp does nothing: it cancels in the division by the sum.)",
        lambda x, temperature: softmax(x)),
    ("weights-divided", "You divide the weights by the temperature, so that they no longer sum to 1. "
        "Divide the scores, before exp.", lambda x, temperature: softmax(x) / temperature),
    ("columns-sum-to-1", "Your weights sum to 1 along the first axis. Softmax runs along the last: "
        "axis=-1.", lambda x, temperature: _softmax_along(x / temperature, 0)),
    ("whole-array", "All weights together sum to 1. Each row must: sum along axis=-1 with keepdims=True.",
        lambda x, temperature: np.exp((x - x.max()) / temperature) / np.exp((x - x.max()) / temperature).sum()),
    ("overflow", "Right for small scores, but exp of thousands overflows to inf, and inf/inf is NaN. "
        "Subtract the largest score of each row before exp.",
        lambda x, temperature: _softmax_without_max(x / temperature)),
    ("global-maximum", "You subtract the maximum of the whole array. A row far below it becomes 0/0. "
        "Subtract each row's own.", lambda x, temperature: _softmax_global_max(x / temperature)),
    ("not-normalised", "You take exp and never divide by the sum of the row.",
        lambda x, temperature: np.exp(x / temperature)),
    ("square-root", "You divide by the square root of the temperature. Divide by the temperature "
        "itself.", lambda x, temperature: softmax(x / np.sqrt(temperature))),
), contracts=(
    Contract("a temperature of 0", lambda rng: (rng.normal(size=3), 0.0)),
    Contract("a negative temperature", lambda rng: (rng.normal(size=3), -1.0)),
))


def _words(T, d, temperature):
    return lambda rng: (rng.normal(size=(T, d)) * (1 + 2 * rng.random(size=(T, 1))), temperature)


def _word_of_zeros(rng):
    X = rng.normal(size=(4, 3))
    X[1] = 0
    return X, 0.5


def _rounded(table):
    return str(np.round(np.asarray(table) + 0.0, 6).tolist())


@in_variants(cosine_attention, {"measure": ("cosine", "centred"), "output": tuple(OUTPUTS)},
             forbidden=("self_attention", "scaled_dot_product_attention"))
def _cosine_attention(like, measure, output):
    cosines = {"cosine": "cosines", "centred": "cosines of the centred words"}[measure]
    of_the_weights, alone, third, of_the_output, result_code = {
        "mixture": ("weights @ X, with X as it came", "the output is X itself", "",
                    "mixes the rows of `X` as they came.", "return weights @ X, weights"),
        "unit words": ("weights @ X, with each row of X divided by its length", "the output is X, divided by its length",
                       "every word is brought to length 1 before it is mixed",
                       "mixes the rows of `X`, each divided by its length; a row of zeros stays as it is.",
                       "lengths = np.linalg.norm(X, axis=1, keepdims=True)\n"
                       "    return weights @ (X / np.where(lengths == 0, 1, lengths)), weights"),
        "unit mixture": ("weights @ X, with each row of it divided by its length",
                         "the output is X, divided by its length", "the mixture is brought to length 1",
                         "mixes the rows of `X` as they came, and each row of the mixture is divided by its length.",
                         "mixture = weights @ X\n"
                         "    return mixture / np.linalg.norm(mixture, axis=1, keepdims=True), weights"),
        "added": ("X + weights @ X", "the output is 2 X", "the mixture is added to the word",
                  "is `X` plus the mixture of its rows.", "return X + weights @ X, weights"),
        "moved": ("weights @ X - X", "the output is 0", "the word is subtracted from the mixture",
                  "is the mixture of the rows of `X`, minus `X`: how far each word moves.",
                  "return weights @ X - X, weights")}[output]
    values, right = MEASURES[measure], like()

    def attend(scores, X, axis=-1):
        weights = _softmax_along(scores, axis)
        return OUTPUTS[output](weights, X), weights

    def scored(scores):
        return lambda X, t: attend(scores(X, t), X)

    def without_itself(X, t):
        if len(X) == 1:
            return OUTPUTS[output](np.ones((1, 1)), X), np.ones((1, 1))
        return attend(np.where(np.eye(len(X), dtype=bool), -1e30, values(X) / t), X)

    def but(mixes):
        return f"Your weights are right, but {mixes}. The output is {of_the_weights}."
    scores = "**cosines** of centred words" if measure == "centred" else "**cosines**"
    changes = (f"{'three' if third else 'two'} changes: the scores are {scores} instead of dot products,"
               f"{'' if third else ' and'} they are divided by a temperature before the softmax"
               f"{', and ' if third else ''}{third}.")
    centring = " Centring subtracts each word's own mean from its numbers." if measure == "centred" else ""
    X, temperature = np.array([[2.0, 0.0], [0.0, 5.0]]), 1 / np.log(3.0)
    result, weights = like()(X, temperature)
    centred, of = (CENTRED, "centred, centred") if measure == "centred" else ("", "X, X")
    words = {
        "changes": f"with {changes}",
        "output": f"The output {of_the_output}",
        "zeros": f"{centring} A word of zeros has cosine 0 with every word.",
        "weights": f"{centred}weights = softmax_with_temperature(cosine_similarity({of}), temperature)",
        "result": result_code,
        "expected weights": f"assert np.allclose(weights, {_rounded(weights)})",
        "expected output": f"assert np.allclose(output, {_rounded(result)})",
    }
    return Exercise(right, probes=(
        Probe("one word", _words(1, 3, 0.5), f"A word alone has weight 1, so {alone}.", draws=1),
        Probe("two words", _words(2, 2, 1.0), f"Follow the steps on two words: {cosines} (2, 2), "
            f"divided by the temperature, softmax along each row. The output is {of_the_weights}."),
        Probe("T is not d", _words(3, 5, 0.3), "T = 3 words of d = 5 numbers: the weights are (3, 3), "
            "the output is (3, 5)."),
        Probe("more words than numbers", _words(6, 2, 0.1), "The temperature is 0.1 here: the scores "
            f"are the {cosines} divided by it, so up to 10."),
        Probe("a word of zeros", _word_of_zeros, "One word is all zeros here. Its cosine with every "
            "word is 0, never NaN.", extreme=True),
        larger(_words(9, 10, 0.2)),
    ), misconceptions=mistakes(
        ("dot-product", f"Your scores are dot products, so long words win. Use {cosines}.",
            scored(lambda X, t: X @ X.T / t)),
        like.others("measure", {
            "cosine": ("not-centred", "Your scores are the cosines of the words as they came. Subtract"
                " each word's own mean first."),
            "centred": ("centred", "You subtract each word's mean first. The scores are the cosines of"
                " the words as they came."),
        }),
        ("no-temperature", "The temperature has no effect in your function. Divide the cosines by it.",
            scored(lambda X, t: values(X))),
        ("multiplied", "You multiply by the temperature. Divide.", scored(lambda X, t: values(X) * t)),
        ("scaled", "You also divide by √d. Cosines do not grow with d; the temperature alone does the "
            "work here.", scored(lambda X, t: values(X) / t / np.sqrt(X.shape[1]))),
        like.others("output", {
            "mixture": ("mixes-words-as-they-came", but("your output is the plain mixture of the words")),
            "unit words": ("mixes-unit-rows", but("you mix rows of length 1")),
            "unit mixture": ("unit-mixture", but("you divide each row of the mixture by its length")),
            "added": ("added", but("you add the mixture to X")),
        }),
        output == "moved" and ("other-way",
            f"Your sign is the other way round: you subtract the mixture. The output is {of_the_weights}.",
            lambda X, t: (-right(X, t)[0], right(X, t)[1])),
        measure == "centred" and ("mixes-centred-words",
            f"Your scores are right, but centred words go into the output. It is {of_the_weights}.",
            lambda X, t: (OUTPUTS[output](right(X, t)[1], _centred(X)), right(X, t)[1])),
        ("columns-sum-to-1", "Your weights sum to 1 down the columns. A row belongs to the word that "
            "looks: axis=-1.", lambda X, t: attend(values(X) / t, X, axis=0)),
        ("output-only", "You return the output alone. Return the weights as well: return output, "
            "weights.", lambda X, t: right(X, t)[0]),
        ("weights-only", f"You return the weights alone. The output is {of_the_weights}.",
            lambda X, t: right(X, t)[1]),
        ("order-swapped", "Both results are right, in the wrong order: return output, weights.",
            lambda X, t: right(X, t)[::-1]),
        ("itself-left-out", "You leave each word out of its own sum. Here a word attends to itself as "
            "well.", without_itself),
        ("zero-over-zero", "Right for ordinary words, but a word of zeros gives 0/0 = NaN. Its cosine "
            "is 0 by convention.",
            scored(lambda X, t: _cosines_with_nan(_centred(X) if measure == "centred" else X) / t)),
    )), words


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


COUNTS = {"entropy": lambda w, axis=-1: np.exp(_entropy(w, axis=axis)), **OTHER_COUNTS}


@in_variants(effective_words, {"count": ("entropy", *OTHER_COUNTS), "rows": tuple(OVER_ROWS)},
             forbidden=("attention_entropy", "entropy"))
def _effective_words(like, count, rows):
    formula, answer, short, number = {
        "entropy": ("exp(-Σ w log w)", "A common answer is exp of the entropy, with the natural logarithm.",
                    "exp of the entropy", "np.exp(-(weights * logs).sum(axis=-1))"),
        "squares": ("1 / Σ w²", "A common answer is 1 divided by the sum of the squared weights.",
                    "1 / the sum of the squared weights", "1 / (weights ** 2).sum(axis=-1)"),
        "roots": ("(Σ √w)²", "A generous answer is the square of the sum of the roots of the weights.",
                  "the squared sum of the roots of the weights", "np.sqrt(weights).sum(axis=-1) ** 2")}[count]
    over_rows = "Each row has its own number" + {
        "each": "", "mean": ", and the result is their mean",
        "geometric": ", and the result is their geometric mean"}[rows]
    shape, docstring, solution = {
        "each": ("Return an array of shape `(...)`.", f"(...): {short} of each row, between 1 and T.", number),
        "mean": ("Return **one number** for all rows: the mean of the rows' numbers.",
                 f"one number: the mean over all rows of {short}.", f"np.mean({number})"),
        "geometric": ("Return **one number** for all rows: the geometric mean of the rows' numbers, which is exp of the "
                      "mean of their logarithms.", f"one number: the geometric mean over all rows of {short}.",
                      f"np.exp(np.mean(np.log({number})))")}[rows]

    def counted(number):
        """``number(w)`` of each row in the place of the right one."""
        return lambda w: OVER_ROWS[rows](number(w))

    halfway = {
        "entropy": (
            ("entropy", "This is the entropy. The effective number of words is exp of it.", counted(_entropy)),
            ("sign", "The sign is wrong: the entropy is minus the sum of w log w.",
                counted(lambda w: np.exp(-_entropy(w)))),
            ("bits", "You take the logarithm to base 2 and then exp. Both must have the same base.",
                counted(lambda w: np.exp(_entropy(w, np.log2)))),
            ("two-to-the-nats", "You take the natural logarithm and then a power of 2. Both must have the "
                "same base.", counted(lambda w: 2 ** _entropy(w))),
            ("mean", "You take the mean of w log w. The entropy is their sum.",
                counted(lambda w: np.exp(_entropy(w) / w.shape[-1]))),
            ("zero-times-log-zero", "Right unless a weight is 0: 0 · log 0 is NaN in NumPy and must count "
                "as 0.", counted(lambda w: np.exp(-(w * np.log(w)).sum(axis=-1)))),
        ),
        "squares": (
            ("sum-of-squares", "This is the sum of the squares. The effective number of words is 1 "
                "divided by it.", counted(lambda w: (w ** 2).sum(axis=-1))),
            ("mean", "You take the mean of the squares. Divide 1 by their sum.",
                counted(lambda w: 1 / (w ** 2).mean(axis=-1))),
            ("root", "You take a root of the sum of the squares. Divide 1 by the sum itself.",
                counted(lambda w: 1 / np.sqrt((w ** 2).sum(axis=-1)))),
        ),
        "roots": (
            ("sum-of-roots", "This is the sum of the roots. The effective number of words is its square.",
                counted(lambda w: np.sqrt(w).sum(axis=-1))),
            ("mean", "You take the mean of the roots. Square their sum.",
                counted(lambda w: np.sqrt(w).mean(axis=-1) ** 2)),
            ("root-of-the-sum", "You take the root of the sum, which is 1 for every row. Take the root of "
                "each weight, then sum.", counted(lambda w: np.sqrt(w.sum(axis=-1)) ** 2)),
        ),
    }[count]
    means = (
        (count, rows) == ("entropy", "geometric") and ("mean-entropy", "You return the mean of"
            " the entropies. The geometric mean of the numbers is exp of it.", lambda w: _entropy(w).mean()),
        ("not-averaged", "You return a number for each row. The result is one number for all rows: their "
            f"{'geometric mean' if rows == 'geometric' else 'mean'}.", like(rows="each")),
        ("weights-averaged", f"You average the weights of all rows and count once. {over_rows}.",
            lambda w: COUNTS[count](w.reshape(-1, w.shape[-1]).mean(axis=0))),
        ("arithmetic-mean", "You take the mean of the numbers. Here it is the geometric mean:"
            " exp of the mean of their logarithms.", like(rows="mean")) if rows == "geometric" else
        ("geometric-mean", "You take the mean of logarithms. The numbers themselves are averaged.",
            like(rows="geometric")),
    )
    one_row = effective_words(np.array([0.5, 0.25, 0.25]), count=count)
    two_rows = like()(np.array([[0.25] * 4, [0.5, 0.25, 0.125, 0.125]]))
    logs = "logs = np.log(np.where(weights > 0, weights, 1))\n    " if count == "entropy" else ""
    words = {
        "answer": answer,
        "shape": shape,
        "zeros": "A weight of 0 adds nothing" + (": 0 · log 0 counts as 0." if count == "entropy" else "."),
        "docstring": docstring,
        "solution": f"{logs}return {solution}",
        "two rows": f"effective_words(weights), {np.round(two_rows, 5).tolist()})",
        "one row": f"np.array([0.5, 0.25, 0.25])), {one_row:.6g})",
    }
    return Exercise(like(), probes=(
        Probe("one row", _weights(4), f"One row of weights gives one number: {formula}"
            + (", with the natural logarithm." if count == "entropy" else ".")),
        Probe("rows", _weights(2, 3), f"{over_rows}. Sum along the last axis."),
        Probe("three axes", _weights(2, 3, 4), "The weights may have any number of axes. The last one "
            f"holds the words. {over_rows}."),
        Probe("some zeros", _some_zero, "Some weights are exactly 0 here. They add nothing"
            + (": 0 log 0 counts as 0, not NaN." if count == "entropy" else "."), extreme=True),
        larger(_weights(5, 9, 10)),
    ), misconceptions=mistakes(
        halfway,
        ("whole-array", "You sum over the whole array. Each row has its own number: axis=-1.",
            lambda w: COUNTS[count](w, axis=None)),
        ("first-axis", "You sum along the first axis. The words are on the last one: axis=-1.",
            counted(lambda w: COUNTS[count](w, axis=0))),
        like.others("count", {
            "entropy": ("exp-of-the-entropy",
                f"This is exp of the entropy, another way to count. The task asks for {formula}."),
            "squares": ("inverse-squares", "This is 1/Σ w², another way to count. The task asks for"
                f" {'exp of the entropy' if count == 'entropy' else formula}."),
        }),
        means if rows != "each" else ("averaged", "You return one number, the mean of all"
            " rows. Each row has its own number.", like(rows="mean")),
    )), words


TASKS = by_name(
    _most_similar_pair,
    Task(SOFTMAX_WITH_TEMPERATURE, forbidden=("softmax", "log_softmax", "logsumexp")),
    _cosine_attention,
    _effective_words,
)
