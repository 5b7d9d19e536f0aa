"""Assignment 2: lookup, queries and keys, scaling (lessons 03 to 05). What makes a task this one and not its
neighbour is an argument behind the * of its reference."""

import json
from functools import partial

import numpy as np

from classroom.tasks import Task, by_name, in_variants, mistakes
from helpers.attention import softmax
from helpers.checks.core import Contract, Exercise, Probe, inputs, larger

SCORES = {"dot": lambda query, keys: keys @ query,
          "scaled": lambda query, keys: keys @ query / np.sqrt(len(query)),
          "square": lambda query, keys: -((keys - query) ** 2).sum(axis=1) / 2,
          "absolute": lambda query, keys: -np.abs(keys - query).sum(axis=1)}


def _kept(scores, best):
    kept = np.full(len(scores), -np.inf)
    kept[best] = scores[best]
    return kept


RESULTS = {"all": lambda output, weights, best: (output, weights),
           "chosen": lambda output, weights, best: (output, weights[best]),
           "indices": lambda output, weights, best: (output, weights[best], best)}


def top_k_attention(query, keys, values, k, *, score="dot", result="all"):
    """query (d,), keys (n, d), values (n, m) -> output (m,), weights (n,): soft lookup among the k best keys
    only. Scores are plain dot products; the other weights are exactly 0. Raises ValueError unless 1 <= k <=
    n. ``score``: a key of SCORES; ``result``: what is returned of the weights, a key of RESULTS."""
    if not 1 <= k <= len(keys):
        raise ValueError(f"k must lie between 1 and the number of keys, {len(keys)}; it is {k}.")
    scores = SCORES[score](query, keys)
    best = np.argsort(-scores)[:k]
    weights = softmax(_kept(scores, best))
    return RESULTS[result](weights @ values, weights, best)


TURNED = {False: lambda table: table, True: lambda table: table.T}
DIVIDED = {"no": lambda scores, Q, K: scores,
           "d_q": lambda scores, Q, K: scores / np.sqrt(Q.shape[1]),
           "d_k": lambda scores, Q, K: scores / np.sqrt(K.shape[1])}


def general_scores(Q, K, W, *, W_turned=False, divided="no", turned=False):
    """Q (T_q, d_q), K (T_k, d_k), W (d_q, d_k) -> (T_q, T_k): entry [i, j] is q_iᵀ W k_j (Luong et al. 2015,
    "general"). ``W_turned``: W is (d_k, d_q); ``divided``: by the root of which width, a key of DIVIDED;
    ``turned``: the result is (T_k, T_q)."""
    scores = Q @ TURNED[W_turned](W) @ K.T
    return TURNED[turned](DIVIDED[divided](scores, Q, K))


DIVISORS = {"root": np.sqrt, "width": lambda d_k: d_k, "none": lambda d_k: 1}


def attention_head(X, W_q, W_k, W_v, *, divisor="root", W_turned=False, first="output"):
    """X (T, d), W_q and W_k (d, d_k), W_v (d, d_v) -> output (T, d_v), weights (T, T): one head of scaled
    attention. ``divisor``: of the scores, a key of DIVISORS (Yang et al. 2022 divide by d_k, Raffel et al.
    2020 do not divide); ``W_turned``: the matrices are (d_k, d) and (d_v, d); ``first``: what is returned
    first."""
    Q, K, V = (X @ TURNED[W_turned](W) for W in (W_q, W_k, W_v))
    weights = softmax(Q @ K.T / DIVISORS[divisor](Q.shape[1]))
    output = weights @ V
    return (output, weights) if first == "output" else (weights, output)


def unit_divisor(d_k, sigma_q, sigma_k):
    """The number by which to divide q·k so that it has variance 1, when the d_k entries of q and of k are
    independent, with mean 0 and standard deviations sigma_q and sigma_k."""
    return np.sqrt(d_k) * sigma_q * sigma_k


def _table(n, d, m, k):
    return lambda rng: (rng.normal(size=d), rng.normal(size=(n, d)), rng.normal(size=(n, m)), k)


def _far(size):
    return lambda rng: (rng.normal(size=3) * size, rng.normal(size=(6, 3)) * size, rng.normal(size=(6, 2)), 3)


def _cosines(query, keys):
    return keys @ query / np.linalg.norm(keys, axis=1) / np.linalg.norm(query)


def _distances(query, keys):
    return np.linalg.norm(keys - query, axis=1)


def _numbers(table):
    """As in a test cell: rounded, and whole numbers without a point."""
    return json.dumps(np.round(table, 6).tolist()).replace(".0,", ",").replace(".0]", "]")


@in_variants(top_k_attention, {"score": tuple(SCORES), "result": tuple(RESULTS)}, forbidden=("soft_attention",))
def _top_k_attention(like, score, result):
    the_scores, the_score, scores_code = {
        "dot": ("plain dot products", "the dot product of query and key", "keys @ query"),
        "scaled": ("dot products divided by √d", "the dot product of query and key, divided by √d",
                   "keys @ query / np.sqrt(len(query))"),
        "square": ("minus half the squared distances", "minus half the squared distance of query and key",
                   "-((keys - query) ** 2).sum(axis=1) / 2"),
        "absolute": ("minus the sums of absolute differences", "minus the sum of the absolute differences of query and key",
                     "-np.abs(keys - query).sum(axis=1)")}[score]
    are = f"The scores are {the_scores}."
    result_text, docstring, result_code = {
        "all": (" and the weights `(n,)`, in the order of the keys.", "weights (n,), at most k above 0.", "weights"),
        "chosen": (" and the weights of the chosen keys `(k,)`, the best first.", "weights (k,), best first.",
                   "weights[best]"),
        "indices": (", the weights of the chosen keys `(k,)`, and their indices `(k,)`, both with the best key first.",
                    "weights (k,), indices (k,), best first.", "weights[best], best")}[result]
    returned = "output, weights, indices" if result == "indices" else "output, weights"
    order = "The weights (n,) keep the order of the keys." if result == "all" else \
        "The weights (k,) are those of the chosen keys, the best first."

    def looked_up(weigh, scores=SCORES[score], worst=False):
        """Lookup with other scores, other keys, or other weights: ``weigh(scores, best)``."""
        def function(query, keys, values, k):
            numbers = scores(query, keys)
            best = np.argsort(numbers if worst else -numbers)[:k]
            weights = weigh(numbers, best)
            return RESULTS[result](weights @ values, weights, best)
        return function

    def soft(scores, best):
        return softmax(_kept(scores, best))

    def scored(scores):
        return looked_up(soft, scores)

    def cut_after(scores, best):
        """All weights first, then the small ones are dropped and nothing is divided again."""
        return np.where(np.isfinite(_kept(scores, best)), softmax(scores), 0)

    def unstable(scores, best):
        e = np.exp(_kept(scores, best))
        return e / e.sum()

    def sorted_by_key(query, keys, values, k):
        output, weights, best = right_with_indices(query, keys, values, k)
        return (output, weights[np.argsort(best)], np.sort(best))[:2 if result == "chosen" else 3]

    right, right_with_indices = like(), like(result="indices")
    not_dot = ("dot-product", f"You score by dot products. {are}", like(score="dot"))
    of_products = (
        ("cosine", f"You rank and weigh by cosine. {are}", scored(_cosines)),
        ("absolute-value", "You drop the signs of the scores: a very negative score is not a good one.",
            scored(lambda query, keys: np.abs(SCORES[score](query, keys)))),
    )
    no_minus = ("no-minus", "The minus is missing: the farthest keys win. The nearest keys have"
        " the largest scores.", scored(lambda query, keys: -SCORES[score](query, keys)))
    wrong_scores = {
        "dot": (
            ("scaled", f"You divide by √d. {are}", like(score="scaled")),
            *of_products,
        ),
        "scaled": (
            ("not-scaled", "Your scores are plain dot products. Divide them by √d.", like(score="dot")),
            ("divided-by-d", "You divide by d. It is the square root of d.",
                scored(lambda query, keys: keys @ query / len(query))),
            ("root-of-n", "You divide by the root of the number of keys. It is d, the width of the query.",
                scored(lambda query, keys: keys @ query / np.sqrt(len(keys)))),
            *of_products,
        ),
        "square": (
            not_dot,
            ("not-halved", f"You do not halve the squared distance. {are}",
                scored(lambda query, keys: 2 * SCORES["square"](query, keys))),
            ("not-squared", f"You do not square the distance. {are}",
                scored(lambda query, keys: -_distances(query, keys) / 2)),
            no_minus,
        ),
        "absolute": (
            not_dot,
            ("distance", f"You score by minus the distance, the root of the sum of squares. {are}",
                scored(lambda query, keys: -_distances(query, keys))),
            ("squares", f"You sum squares of the differences. {are}",
                scored(lambda query, keys: 2 * SCORES["square"](query, keys))),
            no_minus,
        ),
    }[score]
    wrong_results = {
        "all": (
            ("short-weights", "You return the k weights, best first. The result is n weights in the order "
                "of the keys, with zeros.", like(result="chosen")),
        ),
        "chosen": (
            ("all-weights", "You return n weights, with zeros. The result is the weights of the k chosen "
                "keys, the best first.", like(result="all")),
            ("order-of-the-keys", "Your k weights are in the order of the keys. The best key comes first.",
                sorted_by_key),
            ("worst-first", "Your k weights begin with the smallest. The best key comes first.",
                lambda *given: (lambda output, weights: (output, weights[::-1]))(*right(*given))),
        ),
        "indices": (
            ("all-weights", "You return n weights, with zeros. The result is the weights of the k chosen "
                "keys, the best first.", lambda *given: (*like(result="all")(*given), right(*given)[2])),
            ("order-of-the-keys", "Your k weights and indices are in the order of the keys. The best key "
                "comes first.", sorted_by_key),
            ("worst-first", "Your k weights and indices begin with the worst of the chosen keys. The best "
                "key comes first.",
                lambda *given: (lambda output, *both: (output, *(a[::-1] for a in both)))(*right(*given))),
            ("no-indices", "You return two things. The indices of the chosen keys are missing: return "
                f"{returned}.", like(result="chosen")),
            ("indices-second", f"All three are right, in the wrong order: return {returned}.",
                lambda *given: (lambda output, weights, best: (output, best, weights))(*right(*given))),
        ),
    }[result]
    large, stable, overflow = (
        ("in the thousands", "does not overflow", "exp of thousands overflows") if score in ("dot", "scaled") else
        ("far below 0", "subtracts the largest first", "exp of minus thousands is 0 for every key, and 0/0 is NaN"))
    keys, values = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]]), np.array([[10.0], [20.0], [30.0]])
    query = np.array([np.log(3.0), 0.0])
    output, weights, *best = like()(query, keys, values, 2)
    words = {
        "score": f"The score is {the_score}.",
        "result": f"Return the output `(m,)`{result_text}",
        "docstring": f"output (m,), {docstring}",
        "scores": f"scores = {scores_code}  # (n,)",
        "return": f"return weights @ values, {result_code}",
        "call": f"output, weights{', best' if result == 'indices' else ''} = top_k_attention(",
        "expected weights": f"assert np.allclose(weights, {_numbers(weights)})",
        "expected output": f"assert np.allclose(output, {_numbers(output)})"
                           + (f"\nassert np.array_equal(best, {best[0].tolist()})" if best else ""),
    }
    return Exercise(right, probes=(
        Probe("k is 1", _table(4, 2, 3, 1), "With k = 1 the best key has all the weight: the output "
            "is its value."),
        Probe("k is n", _table(3, 2, 2, 3), "With k = n nothing is left out: this is soft attention over"
            " all keys." + ("" if score == "dot" else f" {are}")),
        Probe("two of five", _table(5, 3, 2, 2), "The k largest scores share all the weight by "
            "softmax; every other weight is exactly 0.", draws=3),
        Probe("three of seven", _table(7, 4, 1, 3), f"n, d, m and k all differ here. {order}", draws=3),
        Probe("large scores", _far(3000 if score == "absolute" else 100), f"The scores are {large} "
            f"here: use a softmax that {stable}.", extreme=True),
        larger(_table(11, 9, 10, 5)),
    ), misconceptions=(
        ("all-keys", "You let every key take part. Only the k largest scores may have weight.",
            looked_up(lambda scores, best: softmax(scores))),
        ("not-normalised-again", "You drop small weights after the softmax, so the rest no longer "
            "sums to 1. Choose first, then softmax over the chosen scores.", looked_up(cut_after)),
        ("hidden-with-0", "You set the other scores to 0. exp(0) is 1, so they keep weight: -inf gives exactly "
            "0.", looked_up(lambda scores, best: softmax(np.where(np.isfinite(_kept(scores, best)), scores, 0)))),
        ("smallest", "You keep the k smallest scores: argsort sorts from small to large.",
            looked_up(soft, worst=True)),
        ("plain-mean", "The k best share equally in your function. Softmax over their scores gives the better "
            "ones more.", looked_up(lambda scores, best: np.isfinite(_kept(scores, best)) / len(best))),
        *wrong_results,
        *wrong_scores,
        ("output-only", f"You return the output alone. Return {returned}.", lambda *given: right(*given)[0]),
        ("overflow", f"Right for small scores, but {overflow}. Subtract the largest score first, or "
            "use attention.softmax.", looked_up(unstable)),
    ), contracts=(Contract("k = 0", _table(3, 2, 2, 0)),)), words


def _general(T_q, T_k, d_q, d_k, W_turned=False):
    return lambda rng: (rng.normal(size=(T_q, d_q)), rng.normal(size=(T_k, d_k)),
                        rng.normal(size=(d_k, d_q) if W_turned else (d_q, d_k)))


@in_variants(general_scores, {"W_turned": (False, True), "divided": tuple(DIVIDED), "turned": (False, True)})
def _general_scores(like, W_turned, divided, turned):
    by = "" if divided == "no" else f" / √{divided}"
    one = ("kᵀ W q" if W_turned else "qᵀ W k") + by
    all_of = {(False, False): "Q W Kᵀ", (True, False): "Q Wᵀ Kᵀ",
              (False, True): "K Wᵀ Qᵀ", (True, True): "K W Qᵀ"}[W_turned, turned]
    row, column = ("key", "query") if turned else ("query", "key")
    of_rows, of_columns = ("key", "query") if W_turned else ("query", "key")

    given = partial(_general, W_turned=W_turned)

    def done(scores, Q, K):
        """Divided and turned as they should be."""
        return TURNED[turned](DIVIDED[divided](scores, Q, K))

    def no_W(Q, K, W):
        return done(Q @ K.T, Q, K) if Q.shape[1] == K.shape[1] else right(Q, K, W)

    def row_by_row(Q, K, W):
        few = min(len(Q), len(K))
        pairs = ((Q @ TURNED[W_turned](W))[:few] * K[:few]).sum(axis=1)
        return DIVIDED[divided](pairs, Q, K)

    right = like()
    roots = (
        ("scaled", f"You divide by √d_k. The score is {one}, and not scaled.", like(divided="d_k")),
    ) if divided == "no" else (
        ("not-scaled", f"You do not scale the scores. A score is {one}.", like(divided="no")),
        ("other-root", f"You divide by √{'d_q' if divided == 'd_k' else 'd_k'}. A score is {one}.",
            like(divided="d_q" if divided == "d_k" else "d_k")),
        ("no-root", f"You divide by {divided}. It is the square root of {divided}.",
            lambda Q, K, W: right(Q, K, W) / np.sqrt((Q if divided == "d_q" else K).shape[1])),
    )
    Q, K = np.array([[1.0, 2.0]]), np.array([[1.0, 1.0, 0.0], [10.0, 0.0, 1.0]])
    W = np.array([[3.0, 0.0, 1.0], [4.0, 5.0, 0.0]])
    expected = general_scores(Q, K, W, divided=divided, turned=turned)
    shape = "(T_k, T_q)" if turned else "(T_q, T_k)"
    code = "Q @ W.T @ K.T" if W_turned else "Q @ W @ K.T"
    if divided != "no":
        code += f" / np.sqrt({'Q' if divided == 'd_q' else 'K'}.shape[1])"
    words = {
        "score": f"is `{'kᵀ W q' if W_turned else 'qᵀ W k'}{by}`",
        "W": f"`W` is `{'(d_k, d_q)' if W_turned else '(d_q, d_k)'}`",
        "result": f"Return all scores, shape `{shape}`, without softmax" + (
            " and without scaling." if divided == "no" else "."),
        "docstring": f"W {'(d_k, d_q)' if W_turned else '(d_q, d_k)'} -> scores {shape}.",
        "code": "return " + (f"({code}).T" if turned else code),
        "given": f"W = np.array({TURNED[W_turned](W).tolist()})",
        "expected": f"np.allclose(general_scores(Q, K, W), {_numbers(expected)})",
    }
    return Exercise(right, probes=(
        Probe("one pair", given(1, 1, 2, 2), f"One query and one key give one number, {one}, in a (1, 1) array."),
        Probe("square", given(3, 3, 3, 3), "Every size is 3 here, so every product fits: check the "
            f"order, {all_of}{by}."),
        Probe("more keys", given(2, 5, 3, 3), f"The result has a row for each {row} and a column for "
            f"each {column}."),
        Probe("widths differ", given(4, 2, 3, 5), "Queries have 3 numbers and keys 5. W leads from one to"
            " the other." + (f" Divide by √{divided}." if by else "")),
        larger(given(9, 10, 11, 12)),
    ), misconceptions=(
        ("no-W", f"You leave W out where the shapes allow it. The score is {one}.", no_W),
        ("W-ignored", f"W does not enter your result. The score is {one}.", lambda Q, K, W: done(Q @ K.T, Q, K)),
        ("W-transposed", f"You use W the wrong way round. The rows of W belong to the {of_rows}, its "
            f"columns to the {of_columns}.", like(W_turned=not W_turned)),
        ("transposed", f"Your rows belong to {'queries' if turned else 'keys'}. A row is a {row}: "
            f"{all_of}{by}.", like(turned=not turned)),
        *roots,
        ("softmax", "You return weights. Stop at the scores.", lambda Q, K, W: softmax(right(Q, K, W))),
        ("row-by-row", "You pair query i with key i only. Every query meets every key.", row_by_row),
    )), words


@inputs
def _head(rng, T, d, d_k, d_v, size=1.0, W_turned=False):
    matrices = [rng.normal(size=(d, width)) for width in (d_k, d_k, d_v)]
    return rng.normal(size=(T, d)) * size, *map(TURNED[W_turned], matrices)


@in_variants(attention_head, {"divisor": tuple(DIVISORS), "W_turned": (False, True), "first": ("output", "weights")},
             forbidden=("scaled_dot_product_attention", "masked_attention", "multi_head_attention", "MultiheadAttention"))
def _attention_head(like, divisor, W_turned, first):
    step = {"root": "divide by √d_k", "width": "divide by d_k", "none": "do not divide"}[divisor]
    of = "the root of " if divisor == "root" else ""
    instead = {"root": "It is the square root.", "width": "It is d_k itself.", "none": "The scores are not scaled here."}
    turned = TURNED[W_turned]
    names = ("X W_qᵀ", "X W_kᵀ", "X W_vᵀ") if W_turned else ("X W_q", "X W_k", "X W_v")
    returned = "output, weights" if first == "output" else "weights, output"

    given = partial(_head, W_turned=W_turned)

    def attend(divided_by=lambda X, Q: DIVISORS[divisor](Q.shape[1]), weigh=softmax,
               roles=lambda X, Q, K, V: (Q, K, V)):
        """With another divisor, another softmax, or other queries, keys and values."""
        def function(X, W_q, W_k, W_v):
            Q, K, V = roles(X, *(X @ turned(W) for W in (W_q, W_k, W_v)))
            weights = weigh(Q @ K.T / divided_by(X, Q))
            return (weights @ V, weights) if first == "output" else (weights, weights @ V)
        return function

    def naive(scores):
        e = np.exp(scores)
        return e / e.sum(axis=-1, keepdims=True)

    right, scale = like(), DIVISORS[divisor]
    wrong_widths = () if divisor == "none" else (
        ("root-of-d" if divisor == "root" else "width-of-X", f"You divide by {of}d, the width of X. It is "
            "d_k, the width of the queries.", attend(lambda X, Q: scale(X.shape[1]))),
        ("root-of-T" if divisor == "root" else "number-of-tokens", f"You divide by {of}the number of "
            "tokens. It is d_k, the width of the queries.", attend(lambda X, Q: scale(len(X)))),
    )
    X, W_q, W_k = np.eye(2), np.array([[4.0] * 4, [0.0] * 4]), np.array([[0.0] * 4, [0.125] * 4])
    output, weights = attention_head(X, W_q * np.log(3.0), W_k, np.array([[8.0], [16.0]]), divisor=divisor)
    T = ".T" if W_turned else ""
    width = f"W_q.shape[{0 if W_turned else 1}]"
    division = {"root": f" / np.sqrt({width})", "width": f" / {width}", "none": ""}[divisor]
    of_keys, of_values = ("(d_k, d)", "(d_v, d)") if W_turned else ("(d, d_k)", "(d, d_v)")
    results = {"output": ("the output `(T, d_v)`", "output (T, d_v)"),
               "weights": ("the weights `(T, T)`", "weights (T, T)")}
    second = "weights" if first == "output" else "output"
    (one, one_short), (two, two_short) = results[first], results[second]
    words = {
        "scores": {"root": "compute scaled scores", "width": "compute scores and divide them by d_k",
                   "none": "compute scores without scaling"}[divisor],
        "shapes": f"`W_q` and `W_k` are `{of_keys}`, `W_v` is `{of_values}`"
                  + (", as `torch.nn.Linear` keeps them." if W_turned else "."),
        "returned": f"Return {one} and {two}" + ("." if first == "output" else ", in this order."),
        "docstring": f"W_q and W_k {of_keys}, W_v {of_values} -> {one_short}, {two_short}.",
        "projected": f"Q, K, V = X @ W_q{T}, X @ W_k{T}, X @ W_v{T}",
        "weights": f"weights = softmax(Q @ K.T{division})  # (T, T)",
        "return": "return weights @ V, weights" if first == "output" else "return weights, weights @ V",
        "call": f"{first}, {second} = attention_head(X, W_q{T} * np.log(3.0), W_k{T}, "
                f"np.array({'[[8.0, 16.0]]' if W_turned else '[[8.0], [16.0]]'}))",
        "expected weights": f"np.allclose(weights, {_numbers(weights)})",
        "expected output": f"np.allclose(output, {_numbers(output)})",
    }
    return Exercise(right, probes=(
        Probe("one token", given(1, 3, 2, 2), f"A token alone has weight 1: the output is {names[2]}."),
        Probe("two tokens", given(2, 3, 3, 3), f"Project, score, {step}, softmax along each row, mix "
            "the values."),
        Probe("all sizes differ", given(3, 5, 2, 4), "T = 3, d = 5, d_k = 2, d_v = 4: the weights are "
            "(3, 3), the output (3, 4)."),
        Probe("d_k is larger than d", given(4, 2, 6, 1), "d_k = 6 and d = 2 here"
            + (", and the scores are not scaled." if divisor == "none" else f": {step}, the width of the queries.")),
        Probe("long vectors", given(4, 3, 4, 2, size=40.0), "The scores are in the thousands here: "
            "use a softmax that does not overflow.", extreme=True),
        larger(given(9, 10, 11, 12, size=0.2)),
    ), misconceptions=mistakes(
        like.others("divisor", {
            "none": ("not-scaled", f"You do not divide the scores by {'√d_k' if of else 'd_k'}."),
            "root": ("root", f"You divide by √d_k. {instead[divisor]}"),
            "width": ("divided-by-d_k", f"You divide by d_k. {instead[divisor]}"),
        }),
        wrong_widths,
        like.others("W_turned", {
            False: ("matrices-not-transposed", "You multiply by the matrices as they are. Each of their"
                " rows makes one number of a query, a key or a value: multiply by their transposes."),
            True: ("matrices-transposed", "You multiply by the transposes of the matrices. Multiply by"
                " the matrices as they are."),
        }),
        ("values-not-projected", f"You mix the rows of X. The values are {names[2]}.",
            attend(roles=lambda X, Q, K, V: (Q, K, X))),
        ("same-projection", f"You use W_q for the keys as well. The keys are {names[1]}.",
            attend(roles=lambda X, Q, K, V: (Q, Q, V))),
        ("roles-swapped", "Queries and keys have changed places: a row belongs to a query.",
            attend(roles=lambda X, Q, K, V: (K, Q, V))),
        ("columns-sum-to-1", "Your weights sum to 1 down the columns. Softmax runs over the keys, "
            "axis -1.", attend(weigh=lambda scores: softmax(scores.T).T)),
        ("no-softmax", "You mix with the raw scores. They must pass through softmax.",
            attend(weigh=lambda scores: scores)),
        ("order-swapped", f"Both results are right, in the wrong order: return {returned}.",
            lambda *args: right(*args)[::-1]),
        ("output-only", f"You return the output alone. Return {returned}.",
            lambda *args: like(first="output")(*args)[0]),
        ("overflow", "Right for small scores, but exp of thousands overflows. Subtract each row's "
            "largest score, or use attention.softmax.", attend(weigh=naive)),
    )), words


def _sizes(low, high):
    return lambda rng: (int(rng.integers(low, high)), float(rng.uniform(0.2, 0.8)),
                        float(rng.uniform(1.5, 4)))


UNIT_DIVISOR = Exercise(unit_divisor, probes=(
    Probe("standard normals", lambda rng: (int(rng.integers(2, 100)), 1.0, 1.0), "With both standard "
        "deviations 1 this is the scaling of the Transformer, √d_k."),
    Probe("few entries", _sizes(2, 6), "One product of two entries has variance σ_q² σ_k²; a sum of "
        "d_k of them has d_k times that. Divide by its root."),
    Probe("many entries", _sizes(200, 2000), "The variance of q·k is d_k σ_q² σ_k². The divisor is "
        "its root.", draws=3),
), misconceptions=(
    ("only-root", "The standard deviations do not enter your result: a product of wider numbers is "
        "wider.", lambda d_k, a, b: np.sqrt(d_k)),
    ("variance", "This is the variance of q·k. Divide by its root, the standard deviation.",
        lambda d_k, a, b: d_k * a**2 * b**2),
    ("no-root", "d_k stands without its root: standard deviations grow with √d_k.",
        lambda d_k, a, b: d_k * a * b),
    ("squares", "You multiply √d_k by variances. The root of σ² is σ.",
        lambda d_k, a, b: np.sqrt(d_k) * a**2 * b**2),
    ("sum", "You add the standard deviations. Entries are multiplied, so their deviations are as well.",
        lambda d_k, a, b: np.sqrt(d_k) * (a + b)),
    ("roots-of-deviations", "The root covers the deviations as well. They stand beside it.",
        lambda d_k, a, b: np.sqrt(d_k * a * b)),
    ("one-side", "Only the queries' deviation enters your result. The keys' matters as much.",
        lambda d_k, a, b: np.sqrt(d_k) * a),
    ("inverse", "This is the number to multiply with. The task asks for the divisor.",
        lambda d_k, a, b: 1 / unit_divisor(d_k, a, b)),
))


TASKS = by_name(_top_k_attention, _general_scores, _attention_head, Task(UNIT_DIVISOR))
