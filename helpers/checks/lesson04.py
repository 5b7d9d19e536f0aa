"""The exercises of lesson 04: project, attention scores, attention with Q, K and V, the bilinear form."""

import numpy as np

from helpers.attention import attention_scores, bilinear_form, project, qkv_attention, softmax
from helpers.checks.core import Exercise, Probe, inputs, larger, variants


def _normal(*shapes):
    """A probe's ``make``: one array of standard normals for each shape."""
    return lambda rng: tuple(rng.normal(size=shape) for shape in shapes)


def _swap(K):
    return np.swapaxes(K, -1, -2)


def _added_up_by_hand(X, W):
    return np.array([[sum(X[i, a] * W[a, j] for a in range(X.shape[1])) for j in range(W.shape[1])]
                     for i in range(X.shape[0])])


PROJECT = Exercise(project, probes=(
    Probe("one token", _normal((1, 3), (3, 2)), "A token of 3 numbers times W (3, 2) is a row of 2 numbers: X W.", ),
    Probe("one number each", _normal((4, 1), (1, 3)), "The shape is right, the numbers are not: each row "
        "is that token times W. With d = 1 it is X[i, 0] * W[0]."),
    Probe("square W", _normal((2, 3), (3, 3)), "W is square here, so a transposed W has the right shape "
        "and the wrong numbers. Tokens are rows: X W."),
    Probe("everything 3", _normal((3, 3), (3, 3)), "T, d and k are all 3 here, so every order of the "
        "factors has the right shape. Only X W is right."),
    Probe("a batch", _normal((2, 3, 4), (4, 5)), "X can have more axes in front, here a batch of 2 "
        "sentences. Only its last axis meets W.", extreme=True),
    larger(_normal((5, 6, 9, 10), (10, 11)), extreme=True),
), misconceptions=(
    ("W-transposed", "You multiply by the transpose of W. W is (d, k): its rows meet the d numbers of a "
        "token, so X W needs no transpose.", lambda X, W: X @ W.T),
    ("W-first", "You write W X, as texts do whose tokens are columns. Here tokens are rows, so W stands "
        "on the right.", lambda X, W: W @ X),
    ("W-transposed-first", "You write Wᵀ X, as for tokens that are columns: it meets the tokens with the wrong "
        "axis. Here each token is a row of X, so X is on the left, and W needs no transpose.", lambda X, W: W.T @ X),
    ("tokens-as-columns", "The numbers are right, but each token has become a column. Tokens are rows: "
        "the result is (..., T, k).", lambda X, W: W.T @ _swap(X)),
    ("elementwise", "X * W multiplies entry by entry. A projection is a matrix product, @.", lambda X, W: X * W),
    ("batch-flattened", "Right for one sentence, but a batch loses its axes: the result must keep all "
        "axes of X except the last.", lambda X, W: X.reshape(-1, X.shape[-1]) @ W),
    ("two-axes-only", "Right for one sentence (T, d), but not for a batch (B, T, d). X @ W takes any "
        "number of axes in front.", lambda X, W: np.einsum("td,dk->tk", X, W)),
    ("loop-over-the-first-axis", "Your loop runs over the first axis, which is the token only when there "
        "is no batch. Let X @ W do it: it works on the last axis, whatever stands in front.",
        lambda X, W: np.stack([np.stack([x @ w for w in W.T]) for x in X])),
    ("loops-over-two-axes", "Right for one sentence (T, d), but your loops meet a batch (B, T, d) here: "
        "its first axis counts sentences, not tokens. Let X @ W do it.", _added_up_by_hand),
    ("softmax", "You apply a softmax. A projection is only the product of X and W.", lambda X, W: softmax(X @ W)),
    ("added", "You add W. A projection multiplies: every token times W, a matrix product.", lambda X, W: X + W),
    ("scaled", "You divide by √k. Nothing is scaled here: that is for scores, and comes in lesson 05.",
        lambda X, W: X @ W / np.sqrt(W.shape[-1])),
    ("onto-the-columns", "This is the projection of geometry, back into d dimensions. In this field 'to project' "
        "means only to multiply by W: the result has k columns.", lambda X, W: X @ W @ np.linalg.pinv(W)),
))


@variants
def _compared(Q, K, *, dot=lambda Q, K: Q @ _swap(K), divisor=lambda Q: 1, end=lambda scores: scores):
    """The reference with another product, and with what is done to scores later."""
    return end(dot(Q, K) / divisor(Q))


def _cosines(Q, K):
    return (Q / np.linalg.norm(Q, axis=-1, keepdims=True)) @ _swap(K / np.linalg.norm(K, axis=-1,
                                                                                      keepdims=True))


ATTENTION_SCORES = Exercise(attention_scores, probes=(
    Probe("one query, one key", _normal((1, 2), (1, 2)),
        "One query and one key give one score, their dot product, in an array of shape (1, 1)."),
    Probe("d_k is 1", _normal((2, 1), (3, 1)), "Score [i, j] is Q[i, 0] * K[j, 0]. The shape is (T_q, T_k).", ),
    Probe("T_q is not T_k", _normal((2, 4), (5, 4)),
        "2 queries and 5 keys: the scores are (2, 5), a row for each query and a column for each key."),
    Probe("a batch", _normal((2, 3, 4), (2, 5, 4)), "A batch of 2: every sentence meets its own keys, "
        "and the scores are (2, 3, 5). Swap only the last two axes.", extreme=True),
    Probe("a batch, everything 4", _normal((4, 4, 4), (4, 4, 4)), "A batch of 4: B, T_q, T_k and d_k are all 4 "
        "here, so K.T fits and gives the wrong numbers. Swap only the last two axes.", extreme=True),
    larger(_normal((5, 6, 9, 11), (5, 6, 10, 11)), extreme=True),
), misconceptions=(
    ("scaled", "You divide by √d_k. That is coming in lesson 05; here the scores are plain dot products.",
        _compared(divisor=lambda Q: np.sqrt(Q.shape[-1]))),
    ("softmax", "You return weights. Scores come before the softmax: return the dot products themselves.",
        _compared(end=softmax)),
    ("not-transposed", "Q @ K lets the rows of Q meet the columns of K. A query must meet a whole key, "
        "which is a row: transpose K.", _compared(dot=lambda Q, K: Q @ K)),
    ("keys-as-rows", "This is K Qᵀ: a row for each key. Queries are rows and keys are columns.",
        _compared(dot=lambda Q, K: K @ _swap(Q))),
    ("all-axes-reversed", "Right for two axes, but K.T reverses all axes of a batch, the one that counts "
        "sentences too. Which two have to change places? Swap only those.", _compared(dot=lambda Q, K: Q @ K.T)),
    ("first-axes-swapped", "Right for two axes, but you count them from the front. In a batch axis 0 "
        "counts sentences. Swap the last two axes: -1 and -2.", _compared(dot=lambda Q, K: Q @ np.swapaxes(K, 0, 1))),
    ("three-axes-only", "You count the axes of K from the front, so only a batch (B, T, d_k) fits. Count from the "
        "end: the last two change places.", _compared(dot=lambda Q, K: Q @ np.swapaxes(K, 1, 2))),
    ("every-axis-named", "You name every axis of K, so only one number of axes fits. np.swapaxes needs "
        "only the two that change places: count them from the end, and it does not matter how many are "
        "in front.", _compared(dot=lambda Q, K: Q @ K.transpose(0, 2, 1))),
    ("two-axes-only", "Right for two axes (T, d_k), and for nothing else. A batch has more axes in front: swap "
        "the last two of K (np.swapaxes), and @ does the rest.", _compared(dot=lambda Q, K: np.einsum("qd,kd->qk", Q, K))),
    ("loop-over-the-first-axis", "Right for two axes, but your loops run over the first axis, and in a batch that "
        "counts sentences. One @ does without loops.", lambda Q, K: np.array([[q @ k for k in K] for q in Q])),
    ("loop-over-queries", "Right for two axes, but your loop runs over the first axis of Q, and in a batch that "
        "counts sentences. One @ does without a loop.", lambda Q, K: np.array([q @ K.T for q in Q])),
    ("loops-over-two-axes", "Right for one sentence (T, d_k), but your loops meet a batch (B, T, d_k) "
        "here: its first axis counts sentences, not tokens. One @ does without loops.",
        lambda Q, K: np.array([[sum(Q[i, a] * K[j, a] for a in range(Q.shape[1]))
                                for j in range(K.shape[0])]
                               for i in range(Q.shape[0])])),
    ("dot-reversed", "Right for two axes, but K.T reverses all axes of a batch, and np.dot lets every "
        "sentence meet every other. The operator @ keeps the batch apart; and which two axes have to "
        "change places?", _compared(dot=lambda Q, K: np.dot(Q, K.T))),
    ("batch-meets-batch", "Right for two axes. With more, np.dot lets every sentence meet the keys of "
        "every other sentence. The operator @ keeps the batch apart.", _compared(dot=lambda Q, K: np.dot(Q, _swap(K)))),
    ("same-place-only", "You compare query i with key i only. Every query must meet every key: that is a "
        "matrix product.", _compared(dot=lambda Q, K: (Q * K).sum(axis=-1))),
    ("mixes-coordinates", "Qᵀ K compares columns and gives (d_k, d_k). Tokens are rows: the scores are "
        "(T_q, T_k).", _compared(dot=lambda Q, K: _swap(Q) @ K)),
    ("cosine", "You divide by the lengths, so these are cosines. Scores are plain dot products, lengths "
        "included.", _compared(dot=_cosines)),
    ("keys-unused", "You compare the queries with themselves. The other side of the product is K.",
        _compared(dot=lambda Q, K: Q @ _swap(Q))),
))


@variants
def _form(W_q, W_k, *, product=lambda W_q, W_k: W_q @ W_k.T, power=0, end=lambda W: W):
    """The reference with another product, divided by a power of d_k, or with something done to it later."""
    return end(product(W_q, W_k) / W_q.shape[1] ** power)


BILINEAR_FORM = Exercise(bilinear_form, probes=(
    Probe("d is 1", _normal((1, 3), (1, 3)), "With d = 1 the matrix is one number, of shape (1, 1): the "
        "row of W_q times the row of W_k, added up."),
    Probe("d_k is 1", _normal((2, 1), (2, 1)), "Entry [i, j] is W_q[i, 0] * W_k[j, 0], and the matrix is (2, 2).", ),
    Probe("square", _normal((3, 3), (3, 3)), "Write (X W_q)(X W_k)ᵀ out: the transpose of a product "
        "turns the order round. What stands between X and Xᵀ?"),
    Probe("d_k below d", _normal((5, 2), (5, 2)), "W_q and W_k are (5, 2): the matrix of X … Xᵀ is (5, 5).", ),
    larger(_normal((9, 10), (9, 10))),
), misconceptions=(
    ("inner-axes", "W_qᵀ W_k is (d_k, d_k). The matrix stands between X and Xᵀ, so it must be (d, d).",
        _form(product=lambda W_q, W_k: W_q.T @ W_k)),
    ("keys-first", "This is the transpose: it scores as if keys were queries. In X W Xᵀ the left X "
        "belongs to the queries.", _form(product=lambda W_q, W_k: W_k @ W_q.T)),
    ("not-transposed", "A transpose is missing. (X W_k)ᵀ is W_kᵀ Xᵀ, so W_k arrives transposed.",
        _form(product=lambda W_q, W_k: W_q @ W_k)),
    ("symmetric-part", "You average the matrix with its transpose. Scores of queries and keys need not "
        "be symmetric, and that is their point.", _form(end=lambda W: (W + W.T) / 2)),
    ("queries-twice", "You use W_q on both sides, so the scores come out symmetric. The right factor "
        "comes from W_k.", _form(product=lambda W_q, W_k: W_q @ W_q.T)),
    ("scaled", "You divide by √d_k. That comes in lesson 05; here scores are plain dot products.", _form(power=0.5)),
    ("elementwise", "W_q * W_k multiplies entry by entry. You need a matrix product that gives (d, d).",
        _form(product=lambda W_q, W_k: W_q * W_k)),
))


@inputs
def _sentence(rng, T, d, d_k, d_v, size=1.0):
    """A probe's ``make``: a sentence and its three matrices. The scores have a spread of about ``size``², so that
    the softmax is neither even nor all on one key."""
    X, W_q, W_k = (rng.normal(size=shape) for shape in [(T, d), (d, d_k), (d, d_k)])
    return X, size * W_q / d**0.5, size * W_k / (d * d_k)**0.5, rng.normal(size=(d, d_v))


def _along(scores, axis):
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@variants
def _attend(X, W_q, W_k, W_v, *, weigh=softmax, score=lambda Q, K: Q @ K.T, power=0, give=lambda w, V, X, Q, K: (w @ V, w),
            roles=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_k, X @ W_v)):
    """Attention with one step exchanged, or scores divided by a power of d_k."""
    Q, K, V = roles(X, W_q, W_k, W_v)
    return give(weigh(score(Q, K) / K.shape[-1] ** power), V, X, Q, K)


_EARLIER = ("You compute with a Q and a K that the notebook made before, of bear, country and us. Inside the function, make "
            "them from the X and the matrices that it is given.")
_OF_THE_NOTEBOOK = tuple(np.array(rows, float) for rows in (
    [[0, 2], [2, 0], [0, 0]], [[2, 0], [0, -2], [-2, -2]], [[2, 0, 0], [0, 0, 0], [0, 0, 0]]))  # its Q, K and V

QKV_ATTENTION = Exercise(qkv_attention, probes=(
    Probe("one token", _sentence(1, 3, 2, 4),
        "With one token there is one key, so its weight is 1 and the output is the token's own value."),
    Probe("two tokens", _sentence(2, 1, 1, 1, 1.5), "There are two tokens, and d, d_k and d_v are 1. Follow the steps by "
        "hand: queries, keys and values, scores, weights, the mixture of the values."),
    Probe("everything 3", _sentence(3, 3, 3, 3), "T, d, d_k and d_v are all 3 here, so a mixed-up axis raises no "
        "error. Rows are tokens; in the table of weights a row is a query and a column is a key.", draws=3),
    Probe("wide keys, narrow values", _sentence(3, 2, 6, 1), "d_k = 6 and d_v = 1 here: queries and keys "
        "may be wider than the tokens, and values as narrow as one number."),
    larger(_sentence(9, 10, 11, 12)),
), misconceptions=(
    ("softmax-over-the-queries", "Your weights sum to 1 down the columns, over the queries. Each query shares out "
        "its own attention: softmax runs over the keys, the last axis.", _attend(weigh=lambda S: _along(S, 0))),
    ("queries-and-keys-exchanged", "Your rows are keys and your columns are queries. The row of a word should say "
        "whom it looks at, so its query belongs to the row.", _attend(score=lambda Q, K: K @ Q.T)),
    ("weights-transposed", "You turn the table of weights over before you mix. Output i "
        "is made with row i of the weights.", _attend(give=lambda w, V, X, Q, K: (w.T @ V, w))),
    ("weights-turned-round", "A .T behind your softmax turns the table of weights over, so its columns sum to 1. Row i "
        "belongs to query i: leave the .T out.", _attend(weigh=lambda S: softmax(S).T)),
    ("values-not-projected", "You mix the words' own vectors. What a word "
        "hands over is its value, and that needs W_v.", _attend(give=lambda w, V, X, Q, K: (w @ X, w))),
    ("keys-as-values", "You mix the keys. A key only helps to be found; what "
        "is handed over is the value.", _attend(give=lambda w, V, X, Q, K: (w @ K, w))),
    ("keys-and-values-exchanged", "Your keys are made with W_v and your values with W_k. What is compared is the key, "
        "what is mixed is the value.", _attend(roles=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_v, X @ W_k))),
    ("compared-with-values", "You compare the queries with the values. They are compared with the keys: Q @ K.T.",
        _attend(roles=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_v, X @ W_v))),
    ("queries-as-values", "You mix the queries. What is handed over is the "
        "value of the word that was found.", _attend(give=lambda w, V, X, Q, K: (w @ Q, w))),
    ("scaled", "You divide the scores by √d_k. That is coming in lesson 05; here the scores are plain dot "
        "products.", _attend(power=0.5)),
    ("results-exchanged", "Both results are right, but in the other order: first the output, then the "
        "weights.", _attend(give=lambda w, V, X, Q, K: (w, w @ V))),
    ("output-only", "The output is right, but the weights are missing. Return two things: output, "
        "weights.", _attend(give=lambda w, V, X, Q, K: w @ V)),
    ("weights-only", "You return the weights and stop there. They are for mixing: the output is made of "
        "the values.", _attend(give=lambda w, V, X, Q, K: w)),
    ("no-softmax", "You mix with the raw scores. They can be negative and sum to anything: what turns "
        "them into shares?", _attend(weigh=lambda S: S)),
    ("scores-in-the-place-of-weights", "The output is right, but what you return beside it are the scores, from "
        "before the softmax.", lambda X, W_q, W_k, W_v: (qkv_attention(X, W_q, W_k, W_v)[0], X @ W_q @ (X @ W_k).T)),
    ("whole-table-sums-to-1", "All your weights together sum to 1. Each row should: every query has one "
        "whole share to give.", _attend(weigh=lambda S: softmax(S.reshape(1, -1)).reshape(S.shape))),
    ("keys-from-W_q", "You make queries and keys with the same matrix, so all scores are symmetric. Look at which "
        "matrix makes the keys.", _attend(roles=lambda X, W_q, W_k, W_v: (X @ W_q, X @ W_q, X @ W_v))),
    ("queries-from-W_k", "You make queries and keys with the same matrix, so all scores are symmetric. Look at "
        "which matrix makes the queries.", _attend(roles=lambda X, W_q, W_k, W_v: (X @ W_k, X @ W_k, X @ W_v))),
    ("nothing-projected", "You compare the words' own vectors, as in lesson 02. A score is a query with a key, and "
        "these need W_q and W_k.", _attend(roles=lambda X, W_q, W_k, W_v: (X, X, X @ W_v))),
    ("no-parameters", "This is the attention of lesson 02, without W_q, W_k and W_v. Each role needs its "
        "projection first.", _attend(roles=lambda X, W_q, W_k, W_v: (X, X, X))),
    ("keys-not-transposed", "Q @ K lets the rows of Q meet the columns of K. A query meets a whole key, "
        "which is a row of K.", _attend(score=lambda Q, K: Q @ K)),
    ("mixes-coordinates", "Qᵀ K compares columns and gives (d_k, d_k). Words are rows, and every word "
        "meets every word: the table is (T, T).", _attend(score=lambda Q, K: Q.T @ K)),
    ("X-transposed", "You turn X over before you project it. Its rows are the words already: X @ W, as in the "
        "first exercise.", _attend(roles=lambda X, W_q, W_k, W_v: (X.T @ W_q, X.T @ W_k, X.T @ W_v))),
    ("W-transposed", "You multiply by the transposes of the three matrices. Each is (d, …), so its rows meet the d "
        "numbers of a word as they are.", _attend(roles=lambda X, W_q, W_k, W_v: (X @ W_q.T, X @ W_k.T, X @ W_v.T))),
    ("tokens-as-columns", "You write W X, as texts do whose tokens are columns. Here tokens are rows, so "
        "X is on the left.", _attend(roles=lambda X, W_q, W_k, W_v: (W_q @ X, W_k @ X, W_v @ X))),
    ("no-keepdims", "Each row should be divided by its own sum. Your sums lose an axis and divide the columns: "
        "keepdims=True, or attention.softmax.", _attend(weigh=lambda S: np.exp(S) / np.exp(S).sum(axis=1))),
    ("hard", "Each query gives all its weight to one key. The softmax gives every key a share.",
        _attend(weigh=lambda S: (S == S.max(axis=1, keepdims=True)).astype(float))),
    ("star-for-at", "weights * V multiplies number by number. The weighted sum of the rows of V is a "
        "matrix product.", _attend(give=lambda w, V, X, Q, K: (w * V, w))),
    ("x-added", "You have added the words' own vectors. That step comes after attention, and outside of it: "
        "return the mixture of the values alone.", _attend(give=lambda w, V, X, Q, K: (X + w @ V, w))),
    ("softmax-of-the-output", "You send the mixture through a softmax too. The output is the "
        "mixture itself.", _attend(give=lambda w, V, X, Q, K: (softmax(w @ V), w))),
    ("Q-and-K-of-the-notebook", _EARLIER, _attend(roles=lambda X, W_q, W_k, W_v: (*_OF_THE_NOTEBOOK[:2], X @ W_v))),
    ("Q-K-and-V-of-the-notebook", _EARLIER, _attend(roles=lambda X, W_q, W_k, W_v: _OF_THE_NOTEBOOK)),
    ("softmax-twice", "You take the softmax twice. The second one makes the weights nearly even.",
        _attend(weigh=lambda S: softmax(softmax(S)))),
    ("cosine-scores", "You divide by the lengths, so the scores are cosines. Here they are plain dot "
        "products.", _attend(score=_cosines)),
))

EXERCISES = (PROJECT, ATTENTION_SCORES, QKV_ATTENTION, BILINEAR_FORM)
