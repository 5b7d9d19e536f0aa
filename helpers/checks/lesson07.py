"""The exercises of lesson 07: splitting and merging heads, multi-head attention, counting its parameters, a head's score."""

import numpy as np

from helpers.attention import (
    causal_mask,
    count_attention_parameters,
    masked_attention,
    merge_heads,
    multi_head_attention,
    padding_mask,
    softmax,
    split_heads,
)
from helpers.checks.core import Contract, Exercise, Probe, example, inputs, larger, variants
from helpers.heads import special_share


def _interleaved(X, h):
    B, T, d = X.shape
    return X.reshape(B, T, d // h, h).transpose(0, 3, 1, 2)


def _reshape_only(X, h):
    B, T, d = X.shape
    return X.reshape(B, h, T, d // h)


def _heads_after_tokens(X, h):
    B, T, d = X.shape
    return X.reshape(B, T, h, d // h)


SPLIT_HEADS = Exercise(split_heads, probes=(
    Probe("one head", lambda rng: (rng.normal(size=(1, 2, 3)), 1), "With one head nothing is cut: the "
        "result is X with a new axis of length 1 after the batch, (B, 1, T, d)."),
    Probe("one token", lambda rng: (rng.normal(size=(1, 1, 6)), 2),
        "One token of 6 numbers, 2 heads: head 0 takes the first 3 numbers, head 1 the last 3."),
    Probe("several tokens", lambda rng: (rng.normal(size=(1, 3, 4)), 2), "Head 0 takes the first half of every "
        "token, head 1 the second half. Look at result[0, 0]: it should be X[0, :, :2]."),
    larger(lambda rng: (rng.normal(size=(5, 10, 18)), 9)),
), misconceptions=(
    ("reshape-only", "The shape is right, but reshape alone deals the numbers out in memory order, so a "
        "head gets some whole tokens instead of a slice of every token.", _reshape_only),
    ("heads-after-tokens", "You cut the last axis well, and the heads still stand after the tokens: (B, T, h, "
        "d_k). Swap the two middle axes, so that each head holds a (T, d_k) matrix.", _heads_after_tokens),
    ("interleaved", "Head i takes every h-th column. It should take a block of neighbouring columns, "
        "from i·d_k to (i+1)·d_k: cut the last axis into (h, d_k), in this order.", _interleaved),
    ("heads-before-batch", "Your heads come first: (h, B, T, d_k). The batch stays in front: (B, h, T, "
        "d_k).", lambda X, h: np.stack(np.split(X, h, axis=-1))),
    ("tokens-last", "Each head is transposed: (B, h, d_k, T). Tokens are rows inside a head too: (B, h, "
        "T, d_k).", lambda X, h: split_heads(X, h).swapaxes(2, 3)),
    ("heads-last", "You cut the last axis well, and then swapped axes 2 and 3, the heads and their "
        "numbers: (B, T, d_k, h). The heads have to change places with the tokens, axes 1 and 2: (B, "
        "h, T, d_k).", lambda X, h: _heads_after_tokens(X, h).swapaxes(2, 3)),
    ("width-and-count-swapped", "You make d_k heads of width h. n_heads is how many heads there are; "
        "each is d / n_heads wide.", lambda X, h: split_heads(X, X.shape[2] // h)),
    ("cuts-the-tokens", "You cut the axis of the tokens (axis 1), so each head sees only a part of the sentence. "
        "Every head sees every token: cut the last axis.", lambda X, h: np.stack(np.split(X, h, axis=1), axis=1)),
    ("reshape-not-kept", "You swap the axes of X as it came. reshape returns a new array: keep it, X = X.reshape(...), and "
        "swap the axes of that.", lambda X, h: X.swapaxes(1, 2)),
    ("copies", "Every head gets a copy of the whole width. The heads share the width: each gets d / h "
        "numbers of a token.", lambda X, h: np.repeat(X[:, None], h, axis=1)),
), contracts=(
    Contract("a number of heads that does not divide d", lambda rng: (rng.normal(size=(1, 2, 6)), 4)),
    Contract("no heads at all (n_heads = 0)", lambda rng: (rng.normal(size=(1, 2, 6)), 0)),
))


def _merged_shape(X):
    B, h, T, d_k = X.shape
    return B, T, h * d_k


def _joined_in_memory(H):
    return H.reshape(_merged_shape(H))


def _in_turns(H):
    return H.transpose(0, 2, 3, 1).reshape(_merged_shape(H))


MERGE_HEADS = Exercise(merge_heads, probes=(
    Probe("one head", lambda rng: (rng.normal(size=(1, 1, 2, 3)),),
        "With one head there is nothing to put side by side: only the axis of the heads goes."),
    Probe("one token", lambda rng: (rng.normal(size=(1, 2, 1, 3)),),
        "One token: the 3 numbers of head 0 come first, then the 3 numbers of head 1."),
    Probe("several tokens", lambda rng: (rng.normal(size=(1, 2, 3, 2)),),
        "Row t of the result is row t of head 0 followed by row t of head 1."),
    Probe("one number a head", lambda rng: (rng.normal(size=(2, 4, 3, 1)),),
        "With d_k = 1 column i of the result is head i: the shape is (B, T, h)."),
    larger(lambda rng: (rng.normal(size=(5, 6, 9, 10)),)),
), misconceptions=(
    ("reshape-only", "The shape is right, but reshape alone reads head after head, so a row mixes several tokens. "
        "Swap the axes of heads and tokens first; then join the last two.", _joined_in_memory),
    ("interleaved", "The numbers of the heads take turns: head 0, head 1, head 0, … All of head 0 comes "
        "first, then all of head 1.", _in_turns),
    ("last-head-first", "The heads stand in reverse order. Head 0 comes first.", lambda X: merge_heads(X[:, ::-1])),
    ("stacks-the-tokens", "You put the heads below each other, so there are h·T tokens of width d_k. Side by side "
        "means along the last axis: T tokens of width h·d_k.", lambda X: X.reshape(X.shape[0], -1, X.shape[3])),
    ("not-joined", "You swapped the axes and stopped: (B, T, h, d_k). Join the last two axes into one of "
        "h·d_k.", lambda X: X.swapaxes(1, 2)),
    ("adds-the-heads", "You add the heads up, and their numbers can never be told apart again. Put them "
        "side by side.", lambda X: X.sum(axis=1)),
    ("averages-the-heads", "You average the heads, and their numbers can never be told apart again. Put "
        "them side by side.", lambda X: X.mean(axis=1)),
    ("batch-lost", "You join the batch with the tokens as well. The result keeps three axes: (B, T, "
        "h·d_k).", lambda X: merge_heads(X).reshape(-1, X.shape[1] * X.shape[3])),
    ("joins-the-sentences", "np.concatenate takes X apart along its first axis, the batch, so it puts *sentences* "
        "side by side, and heads stay apart: (h, T, B·d_k). It is the heads of one sentence that belong side by "
        "side: swap axes 1 and 2 first, then let reshape join the last two.", lambda X: np.concatenate(X, axis=-1)),
    ("joins-batch-and-heads", "np.concatenate takes X apart along its first axis, the batch, and joins that with "
        "the heads: (B·h, T, d_k). Sentences stay apart; it is the heads that belong side by side: swap axes 1 "
        "and 2 first, then let reshape join the last two.", lambda X: np.concatenate(X)),
    ("joins-batch-and-tokens", "np.concatenate takes X apart along its first axis, the batch, and puts the "
        "sentences below each other: (h, B·T, d_k). Sentences stay apart; it is the heads that belong side by "
        "side: swap axes 1 and 2 first, then let reshape join the last two.", lambda X: np.concatenate(X, axis=1)),
    ("wrong-axes-swapped", "You swap the last two axes. The axes to swap are heads and tokens, axes 1 "
        "and 2.", lambda X: X.swapaxes(2, 3).reshape(_merged_shape(X))),
))


@inputs
def _inputs(rng, B, T, d, n_heads, mask=None):
    """Inputs whose scores are neither all alike nor saturated, so that every fault shows."""
    X = rng.normal(size=(B, T, d))
    return (X, *(1.3 * rng.normal(size=(d, d)) / np.sqrt(d) for _ in range(4)), n_heads, mask)


def _each_head_its_own(rng):
    mask = rng.random((1, 2, 5, 5)) < 0.6
    mask |= np.eye(5, dtype=bool)
    return _inputs(2, 5, 4, 2, mask)(rng)


def _fully_masked(rng):
    mask = causal_mask(3)
    mask[1] = False
    return _inputs(2, 3, 4, 2, mask)(rng)


def _larger(rng):
    mask = rng.random((5, 9, 10, 10)) < 0.6
    return _inputs(5, 10, 18, 9, mask | np.eye(10, dtype=bool))(rng)


def _large_and_hidden(rng):
    """Scores are minus the products of rows that get shorter, so a hidden key, to the right, has much the largest."""
    X, _, _, *others = _inputs(1, 3, 4, 2, causal_mask(3))(rng)
    return X / 10 + [[60], [30], [1]], 8 * np.eye(4), -8 * np.eye(4), *others


def _three_axes(rng):
    mask = rng.random((3, 3, 3)) < 0.5
    return _inputs(2, 3, 6, 3, mask | np.eye(3, dtype=bool))(rng)


@variants
def _mha(X, W_q, W_k, W_v, W_o, n_heads, mask=None, *, split=split_heads, turn=lambda K: K.swapaxes(-1, -2),
         width=lambda d, h: d // h, hide=lambda scores, mask: np.where(mask, scores, -np.inf), axis=-1,
         share=lambda weights, mask: weights, merge=merge_heads, zeros=False):
    """The reference with one of its steps exchanged: what ``hide`` and ``share`` make of scores and weights, and so on.
    ``zeros``: a query that sees nothing gets zeros, as in the reference, and not NaN."""
    Q, K, V = (split(X @ W, n_heads) for W in (W_q, W_k, W_v))
    scores = Q @ turn(K) / np.sqrt(width(X.shape[-1], n_heads))
    scores = scores if mask is None else hide(scores, mask)
    weights = share(softmax(scores.swapaxes(axis, -1)).swapaxes(axis, -1), mask)
    result = merge(weights @ V) @ W_o
    return np.nan_to_num(result) if zeros else result


def _as_it_is(scores, mask):
    return scores


def _multiplied(weights, mask):
    return weights if mask is None else weights * mask


def _shared_out(weights, mask):
    weights = _multiplied(weights, mask)
    return np.nan_to_num(weights / weights.sum(axis=-1, keepdims=True))


def _one_for_all(weights, mask):
    """The heads' weights averaged into one, used for all."""
    return np.nan_to_num(weights).mean(axis=1, keepdims=True)


def _unsplit(X, W_q, W_k, W_v, W_o, n_heads, mask=None):
    """Attention on the full width: no heads at all."""
    return masked_attention(X @ W_q, X @ W_k, X @ W_v, True if mask is None else mask)[0] @ W_o


def _split_first(X, W_q, W_k, W_v, W_o, n_heads, mask=None):
    """X is split before it is projected: with more than one head the matrix product fails."""
    H = split_heads(X, n_heads)
    heads, _ = masked_attention(H @ W_q, H @ W_k, H @ W_v, True if mask is None else mask)
    return merge_heads(heads) @ W_o


MULTI_HEAD_ATTENTION = Exercise(multi_head_attention, nudges=(
    ("values to unpack|boolean index|could not be broadcast", "X has three axes, (B, T, d). The mask may have two "
        "or four, and broadcasts to the scores, (B, h, T, T), as it is: add no axes to it."),
), probes=(
    Probe("one token", _inputs(1, 1, 2, 1), "With one token every weight is 1, so the "
        "result is X W_v W_o. The queries and keys do not matter here."),
    Probe("one token, two heads", _inputs(2, 1, 4, 2), "With one token every weight is 1 in every head, so the "
        "result is still X W_v W_o: merge in the order in which you split, and W_o comes after the merge.", ),
    Probe("one head", _inputs(1, 3, 2, 1),
        "One head is plain scaled dot-product attention of X W_q, X W_k and X W_v, followed by W_o."),
    Probe("equal sizes", _inputs(2, 2, 4, 2), "B, h, T and d_k are all 2 here, so a mix-up of axes raises no "
        "error. Scores compare tokens with tokens inside one head of one sentence: they are (B, h, T, T)."),
    Probe("as many heads as numbers", _inputs(2, 5, 3, 3),
        "With h = d each head is one number wide, and has its own (T, T) weights even so."),
    Probe("padding mask", _inputs(3, 4, 6, 3, padding_mask([4, 1, 2], 4)[:, None, None, :]), "mask is (B, 1, 1, T) "
        "here: each sentence has its own, and it broadcasts over heads and queries as it is.", ),
    Probe("a mask for each head", _each_head_its_own,
        "mask is (1, h, T, T) here, another for each head. It must meet scores of shape (B, h, T, T)."),
    Probe("a query that may see nothing", _fully_masked, "One query may attend to nothing here. By the "
        "course's convention its heads give zeros, so its output is zeros.", extreme=True),
    Probe("a mask of three axes", _three_axes,
        "mask is (h, T, T) here: it broadcasts to (B, h, T, T), so its first axis belongs to the heads."),
    Probe("nothing to see at all", _inputs(1, 2, 4, 2, np.zeros((2, 2), dtype=bool)),
        "mask is False everywhere here, which is not the same as no mask. By the course's convention all "
        "heads give zeros, and so the output is zeros.", draws=1, extreme=True),
    Probe("huge scores of hidden keys", _large_and_hidden, "The keys that are hidden have much larger scores than "
        "the others here. Put -∞ in their place before the softmax: then none of it counts.", extreme=True),
    larger(_larger),
), misconceptions=(
    ("scaled-by-model-width", "You divide the scores by √d. The dot products run over one head, so their spread "
        "grows with d_k = d / h: divide by √d_k.", _mha(width=lambda d, h: d, zeros=True)),
    ("not-scaled", "Divide the scores by √d_k, the root of a head's width.", _mha(width=lambda d, h: 1, zeros=True)),
    ("scaled-twice", "Your scores are divided by d_k, and not by its root. masked_attention divides by √d_k "
        "itself: hand it Q and K as they are.", _mha(width=lambda d, h: (d // h) ** 2, zeros=True)),
    ("no-output-projection", "You stop after the merge. The last step mixes the heads: multiply by W_o.",
        lambda X, Q, K, V, O, h, m: multi_head_attention(X, Q, K, V, np.eye(X.shape[-1]), h, m)),
    ("words-cut", "Your heads are cut from X itself: W_q, W_k and W_v are not used. Project first, then "
        "split: split_heads(X @ W_q, n_heads), and the same for keys and values.",
        lambda X, Q, K, V, O, h, m: multi_head_attention(X, *3 * [np.eye(X.shape[-1])], O, h, m)),
    ("one-big-head",
        "You attend with one head of width d. Split the queries, keys and values into n_heads first, so "
        "that each head has weights of its own.", lambda X, Q, K, V, O, h, m: multi_head_attention(
X, Q, K, V, O, 1, None if m is None else m if m.ndim == 2 else m[:, :1])),
    ("no-heads", "You attend once with the full width. Split Q, K and V first, and merge afterwards.", _unsplit),
    ("fits-one-head-only", "Right for one head, and an error for more, because the sizes no longer fit. "
        "Project first, then split: split_heads(X @ W_q, n_heads). And put the heads side by side with "
        "merge_heads before W_o; do not add them.", _split_first),
    ("not-merged", "Your heads meet W_o one by one: (B, h, T, d_k) does not fit (d, d). Put them side by "
        "side with merge_heads, then multiply by W_o.", _mha(merge=np.copy)),
    ("all-axes-turned", ".T turns round all four axes: (B, h, T, d_k) becomes (d_k, T, h, B). Exchange "
        "the last two only: K.swapaxes(-1, -2).", _mha(turn=np.transpose)),
    ("reshape-without-transpose", "You split by reshape alone, which gives each head some tokens instead "
        "of a slice of every token. Cut the last axis into (h, d_k), then swap the axes of tokens and "
        "heads.", _mha(split=_reshape_only, merge=_joined_in_memory)),
    ("split-by-reshape", "You split by reshape alone, which deals the numbers out in memory order: cut the last "
        "axis into (h, d_k), then swap the axes of tokens and heads.", _mha(split=_reshape_only)),
    ("merged-by-reshape", "Your heads are right, and the merge scrambles them: (B, h, T, d_k) must become (B, T, "
        "h, d_k) before the last two axes are joined.", _mha(merge=_joined_in_memory)),
    ("attends-between-heads", "Your scores compare the heads of one token with each other, (B, T, h, h), because "
        "the tokens stand before the heads. Swap these axes after cutting: a head is a (T, d_k) matrix.",
        _mha(split=_heads_after_tokens, merge=lambda H: H.reshape(*H.shape[:2], -1))),
    ("interleaved", "You deal the columns out to the heads in turn. Head i takes the block of columns from i·d_k "
        "to (i+1)·d_k.", _mha(split=_interleaved, merge=_in_turns)),
    ("merged-in-turns", "The numbers of the heads take turns when you merge. All of head 0 comes first, then all "
        "of head 1.", _mha(merge=_in_turns)),
    ("weights-averaged", "You average the weights of the heads, so all share one pattern. Each head "
        "mixes its values with its own weights; only W_o brings them together.", _mha(share=_one_for_all)),
    ("softmax-over-queries", "Your weights sum to 1 down the columns. Softmax runs over the keys.", _mha(axis=-2)),
    ("queries-and-keys-swapped", "Queries and keys are swapped: row i of the scores belongs to query i, "
        "so they are Q Kᵀ.", lambda X, Q, K, V, O, h, m: multi_head_attention(X, K, Q, V, O, h, m)),
    ("keys-and-values-swapped", "Keys and values are swapped: compare with X W_k, mix X W_v.",
        lambda X, Q, K, V, O, h, m: multi_head_attention(X, Q, V, K, O, h, m)),
    ("weights-transposed", "You multiply by the transposes, as torch.nn.Linear stores them. Here it is X W, with W "
        "of shape (d_in, d_out).", lambda X, Q, K, V, O, h, m: multi_head_attention(X, Q.T, K.T, V.T, O.T, h, m)),
    ("none-hides-all", "Without a mask your output is zeros. np.where takes None for False, so mask=None "
        "hides every key. Use True where the mask is None.",
        lambda X, Q, K, V, O, h, m: multi_head_attention(X, Q, K, V, O, h, False if m is None else m)),
    ("mask-ignored", "Right without a mask, but the mask is never used. Where it is False, the score becomes -∞ "
        "before the softmax.", lambda X, Q, K, V, O, h, m: multi_head_attention(X, Q, K, V, O, h)),
    ("mask-inverted", "Your mask works the other way round. Here True means that a query may attend. "
        "(torch.nn.MultiheadAttention has it the other way, so take care when you compare.)",
        _mha(hide=lambda scores, mask: np.where(mask, -np.inf, scores))),
    ("mask-inverted-safely", "Your mask works the other way round. Here True means that a query may "
        "attend. (torch.nn.MultiheadAttention has it the other way, so take care when you compare.)",
        lambda X, Q, K, V, O, h, m: multi_head_attention(X, Q, K, V, O, h, None if m is None else ~m)),
    ("mask-after-softmax", "You set masked weights to 0 after the softmax, so the others no longer sum "
        "to 1. Mask the scores, before the softmax.", _mha(hide=_as_it_is, share=_multiplied)),
    ("mask-shared-out", "You multiply by the mask after the softmax. That is right until hidden keys "
        "have much larger scores than the others, whose weights are then rounded to 0. Put -∞ into the "
        "scores before the softmax.", _mha(hide=_as_it_is, share=_shared_out)),
    ("mask-zero", "The hidden scores are 0, and e to the 0 is 1, so hidden keys keep weight. Replace a "
        "score by -∞ where the mask is False, with np.where.", _mha(hide=np.multiply)),
    ("nan-from-zero-times-inf", "0 · ∞ is NaN, so multiplying a mask by -np.inf spoils the scores that should "
        "stay. Choose with np.where instead.", _mha(hide=lambda scores, mask: scores + ~mask * -np.inf)),
    ("mask-added", "You add the mask to the scores: True adds 1 and nothing is hidden. Replace the score "
        "by -∞ where the mask is False, with np.where.", _mha(hide=np.add)),
    ("nan-where-all-masked", "Right, except for a query that may attend to nothing: softmax of a row of -∞ is "
        "NaN. By convention its heads give zeros; attention.masked_attention does that.", _mha()),
    ("mean-where-all-masked", "Right, except for a query that may attend to nothing: with a large negative number "
        "instead of -∞ it gets the mean of all values. By convention its heads give zeros.",
        _mha(hide=lambda scores, mask: np.where(mask, scores, -1e30))),
), contracts=(
    Contract("a number of heads that does not divide d", _inputs(1, 2, 6, 4)),
))


COUNT_ATTENTION_PARAMETERS = Exercise(count_attention_parameters, probes=(
    Probe("one head, no bias", lambda rng: (int(rng.integers(2, 7)), 1, False),
        "There are four matrices, W_q, W_k, W_v and W_o, each of d × d numbers."),
    Probe("heads, no bias", lambda rng: (3 * int(rng.integers(2, 6)), 3, False),
        "The heads share the width: together their projections are still (d, d)."),
    Probe("one head, bias", lambda rng: (int(rng.integers(2, 7)), 1, True),
        "With bias each of the four matrices has a vector of d numbers as well."),
    Probe("heads, bias", lambda rng: (4 * int(rng.integers(2, 6)), 4, True),
        "Four matrices of d × d and four vectors of d, however many heads share them."),
), misconceptions=(
    ("three-matrices", "You count W_q, W_k and W_v, with their biases if asked. The output projection "
        "W_o is the fourth.", lambda d, h, bias: 3 * d * d + (3 * d if bias else 0)),
    ("times-heads", "You multiply by the number of heads. Each head is only d / h wide, so all of them together "
        "have the size of one head of width d.", lambda d, h, bias: h * (4 * d * d + (4 * d if bias else 0))),
    ("matrices-times-heads", "You count four d × d matrices for every head. Each head is d / h wide, so all "
        "together have the size of one head of width d.", lambda d, h, bias: h * 4 * d * d + (4 * d if bias else 0)),
    ("projections-times-heads", "You give every head d × d matrices W_q, W_k and W_v. A head's are d × d_k, d_k = d "
        "/ h: all h share one d × d.", lambda d, h, bias: 3 * h * d * d + d * d + (4 * d if bias else 0)),
    ("one-head-only", "Each of your matrices has d · d_k numbers, with d_k = d / h. That is one head "
        "alone, or h heads that read only d_k numbers of a token. All h heads count, and each reads "
        "all d numbers.", lambda d, h, bias: 4 * d * (d // h) + (4 * d if bias else 0)),
    ("bias-ignored", "You leave the bias vectors out. With bias=True each of the four matrices has one "
        "of d numbers.", lambda d, h, bias: 4 * d * d),
    ("bias-always", "You always count the bias vectors. With bias=False there are none.",
        lambda d, h, bias: 4 * d * d + 4 * d),
    ("one-bias", "You count one bias vector. Each of the four matrices has its own.",
        lambda d, h, bias: 4 * d * d + (d if bias else 0)),
    ("no-output-bias", "You count three bias vectors. W_o has one as well.",
        lambda d, h, bias: 4 * d * d + (3 * d if bias else 0)),
    ("one-number-of-bias", "You add one number for each bias. A bias is a vector of d numbers.",
        lambda d, h, bias: 4 * d * d + (4 if bias else 0)),
    ("not-a-whole-number", "The number is right, and it is a float, because / was used. A count is a whole number: "
        "use //, or do not divide at all.", lambda d, h, bias: float(count_attention_parameters(d, h, bias))),
    ("bias-of-one-head", "Your biases are d / h long. All heads together need d numbers for each of the "
        "four.", lambda d, h, bias: 4 * d * d + (4 * (d // h) if bias else 0)),
), contracts=(
    Contract("a number of heads that does not divide d_model", lambda rng: (6, 4, False)),
))

# ---------------------------------------------------------------- special_share


def _looks(h, *tokens):
    """Weights of h heads, random rows of sum 1, on a text in which 1 stands for a special token and 0 for a word."""
    return lambda rng: (softmax(2 * rng.normal(size=(h, len(tokens), len(tokens)))), np.array(tokens, dtype=bool))


@variants
def _shares(weights, special, *, queries=np.invert, keys=np.copy, over_keys=np.sum, over_queries=np.mean):
    """The reference with one of its steps exchanged. ``queries``, ``keys``: which of them count, from ``special``."""
    rows = weights[:, queries(special)][:, :, keys(special)]
    return over_queries(over_keys(rows, axis=-1), axis=-1)


SPECIAL_SHARE = Exercise(special_share, probes=(
    example("by hand", (np.array([[[0.9, 0.0, 0.1], [0.5, 0.3, 0.2], [0.6, 0.1, 0.3]]]), np.array([True, False, True])),
        "There is one head and one word, token 1. Its weights are 0.5, 0.3 and 0.2, and tokens 0 and 2 are special: "
        "0.5 + 0.2 = 0.7."),
    Probe("one head, two words", _looks(1, 1, 0, 0, 1), "Each word has a sum over the special keys; the score of "
        "the head is the mean of the two sums."),
    Probe("none special", _looks(2, 0, 0, 0), "No token is special here, so no weight goes to one: the scores are "
        "0.", draws=1, special=True),
    Probe("in front only", _looks(2, 1, 0, 0, 0), "Only token 0 is special here. `special` says which ones are."),
    larger(_looks(5, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1)),
), misconceptions=(
    ("all-queries", "You also count what the special tokens themselves look at. The question is where the WORDS "
        "look: leave the rows of special queries out.", _shares(queries=np.ones_like)),
    ("special-queries", "You take the rows of the special tokens, where they look themselves. Take the rows of "
        "the others, ~special.", _shares(queries=np.copy)),
    ("words-by-special", "Queries and keys have changed places: you measure what the special tokens give to "
        "words. Queries are axis 1, keys axis 2.", _shares(queries=np.copy, keys=np.invert)),
    ("transposed", "You add up down the columns. Queries are axis 1 and keys axis 2, so a word's weights are a "
        "ROW.", lambda weights, special: special_share(weights.swapaxes(1, 2), special)),
    ("share-of-words", "You give the share that goes to words. What is asked for is the rest, on special keys.",
        _shares(keys=np.invert)),
    ("mean-over-keys", "You average over the special keys. What a word gives to all of them together is their "
        "SUM; the mean is over the words.", _shares(over_keys=np.mean)),
    ("sum-over-queries", "You add up over the words, so that a longer text has a higher score. Take their mean.",
        _shares(over_queries=np.sum)),
    ("mean-and-sum-exchanged", "You average over the keys and add up over the words. It is the other way round.",
        _shares(over_keys=np.mean, over_queries=np.sum)),
    ("divided-by-all", "You divide by all T tokens. Only the words are averaged over, so divide by their number.",
        lambda weights, special: _shares(over_queries=np.sum)(weights, special) / len(special)),
    ("mean-of-all-places", "You average over all T · T places, with 0 where a key is a word. Add up over the keys, and "
        "take the mean over the words alone.", lambda weights, special: (weights * special).mean(axis=(1, 2))),
    ("taken-in-pairs", "weights[:, ~special, special] takes the places in pairs, the first word with the first "
        "special key, and so on. Choose the rows first, and of what is left the columns.",
        lambda weights, special: weights[:, ~special, special].sum(axis=-1)),
    ("largest-key", "You take the largest weight on a special key. The share is what they get together.",
        _shares(over_keys=np.max)),
    ("number-a-word", "You give a number for every word. The score of a head is their mean: (h,).",
        _shares(over_queries=lambda sums, axis: sums)),
    ("heads-averaged", "You average over the heads too. Every head has a score of its own: (h,).",
        lambda weights, special: special_share(weights, special).mean()),
    ("number-a-word-not-a-head", "You average over the heads, and keep a number for every word. Keep the heads, "
        "and average over the words: (h,).", _shares(over_queries=lambda sums, axis: sums.mean(axis=0))),
    ("number-a-key", "You have added up over the words. A word's weights are added up over the special keys, the "
        "last axis.", _shares(over_keys=lambda rows, axis: rows.mean(axis=1), over_queries=lambda rows, axis: rows)),
    ("first-and-last", "You take the first and the last token for the special ones. `special` says which ones "
        "are.", lambda weights, special: weights[:, 1:-1][:, :, [0, -1]].sum(axis=-1).mean(axis=-1)),
    ("first-key", "You only count what goes to token 0. All special keys count; `special` says which ones are.",
        lambda weights, special: weights[:, ~special, 0].mean(axis=-1)),
    ("last-key", "You only count what goes to the last token. All special keys count; `special` says which ones "
        "are.", lambda weights, special: weights[:, ~special, -1].mean(axis=-1)),
    ("first-head", "You only look at head 0. Every head has a score.",
        lambda weights, special: special_share(weights[:1], special)),
    ("in-percent", "You give percent. A share is from 0 to 1.",
        lambda weights, special: 100 * special_share(weights, special)),
), contracts=(
    Contract("a text whose tokens are all special", _looks(2, 1, 1)),
), nudges=(
    ("boolean index did not match", "An index in front asks the first axis, and that is the heads. Queries are "
        "axis 1, weights[:, …], and keys axis 2, weights[:, :, …]."),
    ("indexing arrays could not be broadcast", "Two indices of bool in one pair of brackets are taken in pairs. "
        "Choose the rows first, and of what is left the columns."),
    ("bad operand type for unary ~|unary operator", "~ turns round an array of bool; `special` is one as it comes."),
))

EXERCISES = (SPLIT_HEADS, MERGE_HEADS, MULTI_HEAD_ATTENTION, COUNT_ATTENTION_PARAMETERS, SPECIAL_SHARE)
