"""The exercises of lesson 06: the causal mask, the padding mask, masked attention."""

import numpy as np

from helpers.attention import attention_scores, causal_mask, masked_attention, padding_mask, softmax
from helpers.checks.core import Contract, Exercise, Probe, example, larger, variants


@variants
def _causal(T, *, k=0, turned=False, made=lambda mask: mask):
    """The reference with its diagonal moved by k, turned over, or made into something else."""
    mask = np.tri(T, k=k, dtype=bool)
    return made(mask.T if turned else mask)


CAUSAL_MASK = Exercise(causal_mask, probes=(
    example("one token", (1,), "With one token the result is [[True]]: a token may attend to itself."),
    example("two tokens", (2,), "Two tokens: the first query sees the first key only, the second sees both.", ),
    example("five tokens", (5,), "Row i, column j must be True exactly when j ≤ i."),
), misconceptions=(
    ("strict-triangle", "The diagonal is False, so no token sees itself, and the first token sees "
        "nothing at all. The diagonal belongs to the mask.", _causal(k=-1)),
    ("upper-triangle", "This is the upper triangle: each query sees itself and the future. The query is "
        "the row, the key the column, and the past lies to the left.", _causal(turned=True)),
    ("inverted", "Your mask is True where the key is hidden. In this course True means may attend.",
        _causal(made=np.logical_not)),
    ("one-ahead", "Each query sees one token of the future, which is just the one that it has to "
        "predict. Stop at the diagonal.", _causal(k=1)),
    ("numbers", "The right pattern, but as numbers. A boolean mask has dtype bool: np.where and ~ treat "
        "it correctly only then.", _causal(made=np.float64)),
    ("to-be-added", "This is a mask to add to the scores, 0 and -inf. Here the result is boolean: True "
        "where a query may attend.", _causal(made=lambda mask: np.where(mask, 0.0, -np.inf))),
    ("nothing-hidden", "Everything is True, so nothing is hidden. Row i must stop at column i.",
        lambda T: np.ones((T, T), dtype=bool)),
    ("everything-hidden", "Everything is False, so no query sees anything. Row i must be True up to "
        "column i.", lambda T: np.zeros((T, T), dtype=bool)),
    ("diagonal-only", "Each token sees only itself. It may see all the tokens before it as well.",
        lambda T: np.eye(T, dtype=bool)),
    ("batch-axes", "The pattern is right, but there are extra axes. Return (T, T): it broadcasts to "
        "batches and heads by itself.", lambda T: np.tri(T, dtype=bool)[None, None]),
    ("batch-axis", "The pattern is right, but there is an extra axis. Return (T, T): it broadcasts to a "
        "batch by itself.", lambda T: np.tri(T, dtype=bool)[None]),
))


@variants
def _padding(lengths, T, *, places=lambda lengths, T: np.arange(T), compare=np.less, made=lambda mask: mask):
    """The reference with other places (T,) or (B, T), compared with the lengths in another way, or made into something
    else."""
    return made(compare(places(lengths, T), lengths[:, None]))


PADDING_MASK = Exercise(padding_mask, probes=(
    example("one sentence", (np.array([2]), 4),
        "One sentence of 2 tokens in 4 positions: the result is [[True, True, False, False]]."),
    example("full and short", (np.array([3, 1]), 3), "A sentence as long as T has no padding: its row is "
        "all True."),
    Probe("an empty sentence", lambda rng: (np.array([0, *rng.integers(1, 4, size=2)]), 4),
        "The first sentence has no tokens at all, so its row is all False.", extreme=True),
    larger(lambda rng: (rng.integers(1, 13, size=10), 12)),
), misconceptions=(
    ("inverted", "Your mask is True on the padding. In this course True means may attend: the tokens are "
        "True.", _padding(compare=np.greater_equal)),
    ("inverted-and-one-too-few", "Your mask is True behind a sentence's end, and begins one place too late. Turn it round: "
        "the tokens are True, and those are the places below the length.", _padding(compare=np.greater)),
    ("one-too-many", "Each row has one True too many. Positions count from 0, so a sentence of n tokens "
        "fills positions 0 to n-1.", _padding(compare=np.less_equal)),
    ("one-too-few", "Each row has one True too few: the last token of each sentence is hidden.",
        _padding(compare=lambda places, lengths: places < lengths - 1)),
    ("padding-on-the-left", "You put the padding in front. Here the sentence comes first and the padding "
        "after it.", _padding(places=lambda lengths, T: np.arange(T)[::-1])),
    ("transposed", "Rows and columns are swapped: the result has a row for each sentence, (B, T).",
        lambda lengths, T: (np.arange(T) < lengths[:, None]).T),
    ("no-new-axis", "You compare the (T,) positions with the (B,) lengths one to one. Make the lengths a column, "
        "(B, 1), and every length meets every position.", lambda lengths, T: np.arange(T) < lengths),
    ("longest-sentence", "The result is as wide as the longest sentence. It must have T columns.",
        lambda lengths, T: np.arange(lengths.max()) < lengths[:, None]),
    ("numbers", "The right pattern, but as numbers. A boolean mask has dtype bool.",
        _padding(made=np.float64)),
    ("to-be-added", "This is a mask to add to the scores, 0 and -inf. Here the result is boolean: True where "
        "there is a token.", _padding(made=lambda mask: np.where(mask, 0.0, -np.inf))),
    ("for-the-scores", "You return (B, 1, T), ready for the scores. Here the result is (B, T): the "
        "caller adds the axis.", lambda lengths, T: (np.arange(T) < lengths[:, None])[:, None]),
    ("for-the-heads", "You return (B, 1, 1, T), ready for scores with heads. Here the result is (B, T): "
        "the caller adds the axes.", lambda lengths, T: (np.arange(T) < lengths[:, None])[:, None, None]),
    ("pairs", "You return (B, T, T), a mask for pairs of positions. Here the result is (B, T): one True "
        "or False for each position.", lambda lengths, T: ((np.arange(T) < lengths[:, None])[:, None]
                            & (np.arange(T) < lengths[:, None])[..., None])),
    ("one-length-for-all", "Every row uses the length of the first sentence. Each sentence has its own.",
        lambda lengths, T: np.tile(np.arange(T) < lengths[0], (len(lengths), 1))),
), contracts=(
    Contract("a sentence longer than T", lambda rng: (np.array([2, 5]), 4)),
))


def _steps(rng, *shape):
    """Normal numbers rounded to eighths: float32 holds them exactly, and their products too."""
    return np.round(rng.normal(size=shape) * 8) / 8


def _qkv(rng, T_q, T_k, d_k, d_v, lead=()):
    return (rng.normal(size=(*lead, T_q, d_k)) * 1.5, rng.normal(size=(*lead, T_k, d_k)) * 1.5,
            rng.normal(size=(*lead, T_k, d_v)))


def _covering(rng, *shape):
    """A random mask whose every row and every column has something visible and something hidden."""
    while True:
        mask = rng.random(shape) < 0.5
        if all(m.any(axis=axis).all() and not m.all(axis=axis).any() for m in [mask] for axis in (-1, -2)):
            return mask


def _hidden_giant(rng):
    """The visible scores lie far below the hidden ones."""
    Q, K, V = _steps(rng, 2, 4), _steps(rng, 5, 4), _steps(rng, 5, 3)
    Q[:, 0] = 128
    hidden = rng.permutation([True, True, False, False, False])
    K[:, 0] = np.where(hidden, 256, -256)
    return Q, K, V, ~np.tile(hidden, (2, 1))


def _empty_row(rng):
    Q, K, V = _qkv(rng, 3, 4, 2, 3)
    mask = _covering(rng, 3, 4)
    mask[rng.integers(3)] = False
    return Q, K, V, mask


def _rows_far_apart(rng):
    """Nothing is hidden. Scores thousands above 0, thousands below, and all equal."""
    return np.array([[1000.0], [-1000], [0]]), np.array([[3.0], [0]]), rng.normal(size=(2, 2)), np.ones((3, 2), dtype=bool)


def _finish(weights, V, mask=None):
    """Rows without any visible key as they should be, whatever else is wrong."""
    weights = np.nan_to_num(weights)
    return weights @ V, weights


@variants
def _masked(Q, K, V, mask, *, scores=attention_scores, width=lambda Q, K, V: Q.shape[-1], weigh=softmax, finish=_finish,
            hide=lambda scores, mask: np.where(mask, scores, -np.inf)):
    """The reference with other scores, divided by the root of another ``width``, another way to hide them, another softmax
    or another end, ``finish(weights, V, mask)``."""
    return finish(weigh(hide(scores(Q, K) / np.sqrt(width(Q, K, V)), mask)), V, mask)


def _mixed(weights, V, mask=None):
    """Rows without any visible key stay as they are."""
    return weights @ V, weights


def _with_softmax_of(change):
    return _masked(hide=change, finish=_mixed)


def _after(finish):
    """Nothing is hidden before the softmax; ``finish(weights, V)`` gets the weights times the mask."""
    return _masked(hide=lambda scores, mask: scores, finish=lambda weights, V, mask: finish(weights * mask, V))


def _divided_again(weights):
    return weights / weights.sum(axis=-1, keepdims=True)


def _divided_where_any(weights, V, mask):
    """Divided again, but for the rows in which the mask shows nothing."""
    return _mixed(np.where(np.any(mask, axis=-1, keepdims=True), _divided_again(weights * mask), 0), V)


def _values_only(Q, K, V, mask):
    weights = softmax(attention_scores(Q, K) / np.sqrt(Q.shape[-1]))
    return (weights * mask) @ V, weights


def _causal_for(scores):
    """The causal mask for such scores."""
    return np.tri(*scores.shape[-2:], dtype=bool)


def _by_index(scores, mask):
    scores[~mask] = -np.inf
    return scores


@variants
def _softmax(scores, *, axis=-1, largest=lambda scores: scores.max(axis=-1, keepdims=True), keepdims=True):
    """Softmax with sums along another axis, after another number was subtracted, or whose sums lose their axis."""
    e = np.exp(scores - largest(scores))
    return e / e.sum(axis=axis, keepdims=keepdims)


BOOLEAN_INDEX = ("A boolean index needs exactly the axes of what it picks from, and a mask only has to broadcast. np.where "
                 "lets it: np.where(mask, scores, -np.inf). If you index the queries that see nothing as well, "
                 "mask.any(axis=-1, keepdims=True) keeps the axes that np.where needs.")


DIVIDED_AGAIN = ("Masking after the softmax and dividing again is the same on paper. But when a hidden score is far "
                 "larger, the visible weights have already become 0, and 0/0 is NaN. Hide the scores before the softmax.")


MASKED_ATTENTION = Exercise(masked_attention, probes=(
    Probe("one key visible", lambda rng: (*_qkv(rng, 2, 2, 3, 1), rng.permutation(np.eye(2, dtype=bool))),
        "Each query sees exactly one of two keys. Whatever the scores, that key has weight 1, the other exactly "
        "0, and the output is its row of V."),
    Probe("two of three visible", lambda rng: (*_qkv(rng, 3, 3, 4, 2), ~rng.permutation(np.eye(3, dtype=bool))),
        "Each query sees two of three keys. Those two share the weight, as if the third were not there. Check the "
        "scores: Q Kᵀ divided by the root of d_k."),
    Probe("one mask for a batch", lambda rng: (*_qkv(rng, 3, 4, 5, 2, lead=(2,)), _covering(rng, 3, 4)),
        "Q, K and V have a batch axis in front, and one (T_q, T_k) mask serves all. Use the last axes "
        "only: np.swapaxes(K, -1, -2), softmax along axis=-1, and a mask that broadcasts."),
    Probe("batch and heads", lambda rng: (*_qkv(rng, 3, 4, 6, 5, lead=(2, 5)), _covering(rng, 2, 1, 3, 4)),
        "Q, K and V are (B, h, T, d) here. Use the last two axes only, and let the mask broadcast to the scores."),
    Probe("one token", lambda rng: (*_qkv(rng, 1, 1, 3, 2), np.ones((1, 1), dtype=bool)),
        "One query and one visible key: the weight is 1 and the output is V itself.", extreme=True),
    Probe("hidden giant", _hidden_giant, "The hidden scores are larger than the visible ones by tens of thousands. "
        "They must be out before exp and its maximum are taken: put -inf (-1e4 is not low enough) into the scores, "
        "then a softmax that subtracts the largest score of each row, such as attention.softmax.", extreme=True),
    Probe("a query that sees nothing", _empty_row, "One row of the mask is all False. Its weights and "
        "its output are 0 by convention.", extreme=True),
    Probe("rows far apart", _rows_far_apart, "Nothing is hidden here, so the weights of every query sum "
        "to 1: also of the one whose scores lie thousands below those of another, and of the one whose "
        "scores are all equal. Only the mask says who sees nothing.", draws=1, extreme=True),
    larger(lambda rng: (*_qkv(rng, 9, 10, 11, 12, lead=(5, 6)), _covering(rng, 5, 6, 9, 10)), extreme=True),
), misconceptions=(
    ("inverted", "You hide what the mask shows. True means may attend: put -inf where the mask is False.",
        _masked(hide=lambda scores, mask: np.where(mask, -np.inf, scores))),
    ("after-softmax", "You multiply by the mask after the softmax, so the weights no longer sum to 1, and the "
        "hidden scores still count in the denominator. Hide the scores before the softmax.",
        _after(_mixed)),
    ("after-and-renormalised", DIVIDED_AGAIN, _after(lambda weights, V: _mixed(_divided_again(weights), V))),
    ("after-and-renormalised-nan-as-0", DIVIDED_AGAIN, _after(lambda weights, V: _finish(_divided_again(weights), V))),
    ("after-and-renormalised-by-the-mask", DIVIDED_AGAIN,
        _masked(hide=lambda scores, mask: scores, finish=_divided_where_any)),
    ("score-zero", "You set hidden scores to 0, and exp(0) = 1 is still a weight. A score of -inf gives "
        "weight 0.", _with_softmax_of(lambda s, m: s * m)),
    ("exp-times-mask", "You multiply by the mask after exp. On paper that hides, but nothing is subtracted before exp, so "
        "a large score overflows, and a row that sees nothing is 0/0. Hide with -inf, then attention.softmax.",
        _masked(hide=lambda scores, mask: np.exp(scores) * mask, weigh=_divided_again, finish=_mixed)),
    ("times-M", "You multiply the scores by M. It is added: 0 leaves a score as it is, and -inf hides it.",
        _with_softmax_of(lambda s, m: s * np.where(m, 0.0, -np.inf))),
    ("zero-means-hidden", "You multiply the scores by the mask and then hide every score of 0. But a "
        "visible key can have a score of exactly 0. Ask the mask, not the scores: np.where(mask, "
        "scores, -np.inf).", _masked(hide=lambda scores, mask: np.where(scores * mask == 0, -np.inf, scores))),
    ("infinity-times-zero", "-inf times 0 is NaN, and so -inf * (1 - mask) ruins visible scores. Choose: "
        "np.where(mask, scores, -np.inf).", _with_softmax_of(lambda s, m: s - np.inf * (1.0 - m))),
    ("infinity-times-zero-as-0", "-inf times 0 is NaN, so adding -inf * (1 - mask) ruins the visible scores, and "
        "you then turn the NaN into weights of 0. Choose instead of multiplying: np.where(mask, scores, -np.inf).",
        _masked(hide=lambda scores, mask: scores - np.inf * (1.0 - mask))),
    ("no-keepdims", "e.sum(axis=-1) loses its axis, so the division pairs the sums with the columns, or does not "
        "fit at all. With keepdims=True the sums stay a column: one for each query.",
        _masked(weigh=_softmax(largest=lambda scores: 0.0, keepdims=False))),
    ("adds-the-boolean", "You add the boolean mask to the scores. True counts as 1 there, so visible keys gain 1 "
        "and nothing is hidden. A mask to add holds 0 and -inf.", _with_softmax_of(lambda s, m: s + m)),
    ("columns-sum-to-1", "Your weights sum to 1 down the columns, so queries compete. Softmax runs over the keys: "
        "axis=-1.", _masked(weigh=_softmax(axis=-2, largest=lambda scores: scores.max(axis=-2, keepdims=True)))),
    ("no-scaling", "The scores are not divided by √d_k.", _masked(width=lambda Q, K, V: 1)),
    ("scaled-by-d", "You divide by d_k. It is the square root of d_k.",
        _masked(width=lambda Q, K, V: Q.shape[-1]**2)),
    ("scaled-by-T", "You divide by the root of the number of keys. It is d_k, the last axis of Q.",
        _masked(width=lambda Q, K, V: K.shape[-2])),
    ("scaled-by-d_v", "You divide by √d_v, the width of V. It is d_k, the last axis of Q.",
        _masked(width=lambda Q, K, V: V.shape[-1])),
    ("values-only", "The output leaves out the hidden values, but the weights that you return are not "
        "masked: hidden keys still take their share. Hide the scores before the softmax.", _values_only),
    ("mask-ignored", "The mask changes nothing: hidden keys still get weight.", _with_softmax_of(lambda s, m: s)),
    ("causal-whatever-the-mask", "You hide the later keys whatever the mask says. The mask alone says what is hidden: "
        "it may be causal or not.", _masked(hide=lambda scores, mask: np.where(_causal_for(scores), scores, -np.inf))),
    ("causal-as-well", "You hide the later keys as well. The mask alone says what is hidden: it may be causal or "
        "not.", _masked(hide=lambda scores, mask: np.where(mask & _causal_for(scores), scores, -np.inf))),
    ("mask-transposed", "You transpose the mask. Its rows are queries and its columns keys already, just "
        "like the scores.", lambda Q, K, V, mask: _masked()(Q, K, V, np.swapaxes(mask, -1, -2))),
    ("every-axis-transposed", "Right for one sentence. With a batch in front, K.T turns every axis; np.swapaxes(K, "
        "-1, -2) swaps the last two only.", _masked(scores=lambda Q, K: Q @ K.T)),
    ("no-broadcast", f"Right for one sentence. {BOOLEAN_INDEX}", _masked(hide=_by_index)),
    ("batch-meets-batch", "Right for one sentence. With a batch, np.dot lets every sentence meet the "
        "keys of every other sentence. The operator @ keeps the batch apart.",
        _masked(scores=lambda Q, K: np.dot(Q, np.swapaxes(K, -1, -2)))),
    ("global-maximum", "You subtract the largest of all scores. A row far below it underflows to 0/0, "
        "and then looks like a row that sees nothing. Subtract each row's own: scores.max(axis=-1, "
        "keepdims=True).", _masked(weigh=_softmax(largest=np.max))),
    ("minus-a-billion", "Right wherever a query sees something. But with a large negative number instead "
        "of -inf, a row where everything is hidden has equal scores. Softmax gives each of its keys "
        "the same weight, so the output, which is compared first, is the mean of all hidden values. "
        "Such a row must be 0.", _with_softmax_of(lambda s, m: np.where(m, s, -1e9))),
    ("minus-a-billion-added", "Right wherever a query sees something. But where everything is hidden, all scores "
        "of the row sink by the same amount, and softmax does not notice: the row is not masked at all. Such a "
        "row must be 0.", _with_softmax_of(lambda s, m: s + np.where(m, 0.0, -1e9))),
    ("nan-row", "Right wherever a query sees something. A row where everything is hidden is all -inf, and softmax "
        "makes NaN of it. By convention its weights and output are 0: treat it apart.", _masked(finish=_mixed)),
    ("output-only", "You return the output only. Return output, weights.", lambda *args: masked_attention(*args)[0]),
    ("weights-first", "You return the two results in the wrong order: first the output, then the weights.",
        _masked(finish=lambda weights, V, mask: _finish(weights, V)[::-1])),
    ("scaled-by-len", "You divide by √len(K), the root of the number of keys, or of sentences. It is the root of "
        "d_k, the last axis of Q.", _masked(width=lambda Q, K, V: len(K))),
    ("multiplied-by-the-root", "You multiply the scores by √d_k. Divide by it: it is there to make them "
        "smaller.", _masked(width=lambda Q, K, V: 1 / Q.shape[-1])),
    ("sum-over-the-first-axis", "You divide by e.sum(axis=0), the sums down the columns. Each query "
        "shares out its own attention: e.sum(axis=-1, keepdims=True).", _masked(weigh=_softmax(axis=0))),
), nudges=(
    ("boolean index did not match", BOOLEAN_INDEX),
))

EXERCISES = (CAUSAL_MASK, PADDING_MASK, MASKED_ATTENTION)
