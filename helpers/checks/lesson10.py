"""The exercises of lesson 10: cross-attention, the decoder block, shifting right, greedy decoding. Inputs are torch
tensors."""

import torch

from helpers.checks.comparison import array_of
from helpers.checks.core import Contract, Exercise, Probe, example, inputs, larger, variants
from helpers.checks.pieces import same, tensor
from helpers.transformer import cross_attention, decoder_block, feed_forward, greedy_decode, shift_right

# ---------------------------------------------------------------- cross_attention


@inputs
def _texts(rng, B, T_t, T_s, d, d_e, d_k, d_v, lengths=None):
    """A maker of inputs. ``lengths``: words of each source, None for no mask at all."""
    mask = None if lengths is None else torch.arange(T_s) < torch.tensor(lengths)[:, None]
    return (tensor(rng, B, T_t, d), tensor(rng, B, T_s, d_e), tensor(rng, d, d_k), tensor(rng, d_e, d_k),
            tensor(rng, d_e, d_v), mask)


def _columns_hidden(scores, mask, fill=-torch.inf):
    return scores.masked_fill(~mask[:, None], fill)


def _columns_filled(scores, mask):
    return _columns_hidden(scores, mask, -1e9)


def _rows_hidden(scores, mask):
    return scores.masked_fill(~mask[:, :, None], -torch.inf)


@variants
def _cross(decoder_X, encoder_X, W_q, W_k, W_v, source_mask, *, queries="decoder", keys="encoder", values="encoder",
           scale=lambda d_k, d: d_k ** 0.5, axis=-1, hide=_columns_hidden, share=lambda weights, mask: weights,
           back=lambda output, weights: (output, weights)):
    """The reference with the faults that the arguments choose; ``hide(scores, mask)`` and ``share(weights, mask)`` where
    there is a mask."""
    text = {"decoder": decoder_X, "encoder": encoder_X}
    Q, K, V = text[queries] @ W_q, text[keys] @ W_k, text[values] @ W_v
    scores = Q @ K.mT / scale(K.shape[-1], decoder_X.shape[-1])
    weights = torch.softmax(scores if source_mask is None else hide(scores, source_mask), dim=axis)
    weights = weights if source_mask is None else share(weights, source_mask)
    return back(weights @ V, weights)


def _causal(decoder_X, encoder_X, W_q, W_k, W_v, source_mask):
    mask = torch.ones(encoder_X.shape[:2], dtype=torch.bool) if source_mask is None else source_mask
    return _cross(hide=lambda scores, mask: _columns_hidden(scores, mask).masked_fill(
        torch.ones_like(scores).triu(1) > 0, -torch.inf))(decoder_X, encoder_X, W_q, W_k, W_v, mask)


def _scores_returned(decoder_X, encoder_X, W_q, W_k, W_v, source_mask):
    output, _ = cross_attention(decoder_X, encoder_X, W_q, W_k, W_v, source_mask)
    scores = (decoder_X @ W_q) @ (encoder_X @ W_k).mT / W_k.shape[-1] ** 0.5
    return output, scores if source_mask is None else _columns_hidden(scores, source_mask)


def _values_not_projected(decoder_X, encoder_X, W_q, W_k, W_v, source_mask):
    _, weights = cross_attention(decoder_X, encoder_X, W_q, W_k, W_v, source_mask)
    return weights @ encoder_X, weights


SWAPPED = ("The two texts have changed places: your queries come from the encoder, and keys and values from "
           "the decoder. The decoder asks, so it gives the queries; the encoder's text is what is asked, so it "
           "gives keys and values.")

ITSELF = ("Queries, keys and values all come from the decoder: that is self-attention. Here keys and values come from "
          "encoder_X.")

OVER_QUERIES = ("Your columns sum to 1. Each target word shares out its own weight over the source words: softmax over the "
                "last axis.")

CROSS_ATTENTION = Exercise(cross_attention, nudges=(
    ("first two dimensions of batch2", "In Q @ K.mT the inner sizes agree: .mT swaps the last two axes. (K.T "
        "turns all of them round, the one that counts texts too.)"),
    ("TypeError: transpose\\(\\)", "torch's transpose takes the two axes to swap. K.mT swaps the last two."),
    ("operator.invert", "~ turns True and False round. A mask that you make needs dtype=torch.bool."),
    ("numpy.ndarray' and 'Tensor'", "One side is a NumPy array, the other a tensor. The functions of the earlier "
        "lessons and np.where make arrays: stay with torch, such as torch.softmax."),
), probes=(
    Probe("one source word", _texts(1, 1, 1, 2, 2, 2, 2),
        "With one source word the weight is 1, so the output is that word's value, encoder_X @ W_v."),
    Probe("one target word", _texts(1, 1, 3, 4, 4, 4, 4), "One target word asks three source words: weights of "
        "shape (1, 1, 3) that sum to 1. Which text gives the queries, and which the keys? And divide by √d_k.", ),
    Probe("every width differs", _texts(2, 3, 4, 5, 6, 7, 3), "Here d = 5, d_e = 6, d_k = 7 and d_v = 3. "
        "The scale is the root of d_k, the width of a query and of a key."),
    Probe("padding at the end", _texts(2, 4, 5, 4, 4, 4, 4, lengths=[2, 5]), "source_mask is (B, T_s), True at "
        "words. Columns of padding must have weight exactly 0, and rows sum to 1."),
    Probe("as many target words as source words", _texts(2, 4, 4, 4, 4, 4, 4, lengths=[2, 3]),
        "T_t = T_s = 4 here. source_mask belongs to the columns, the source words, in every row.", special=True),
    larger(_texts(9, 11, 10, 12, 13, 14, 15, lengths=[10, 1, 9, 3, 7, 2, 8, 6, 4])),
), misconceptions=(
    ("roles-swapped", SWAPPED, _cross(queries="encoder", keys="decoder", values="decoder")),
    ("roles-swapped-rows-masked", SWAPPED,
        _cross(queries="encoder", keys="decoder", values="decoder", hide=_rows_hidden)),
    ("roles-swapped-unmasked", SWAPPED, _cross(queries="encoder", keys="decoder", values="decoder", hide=same)),
    ("queries-and-keys-exchanged", "Your queries come from the encoder and your keys from the decoder. "
        "It is the other way round: the decoder asks, and what can be found, keys and values, is in "
        "the encoder's text.", _cross(queries="encoder", keys="decoder")),
    ("scores-transposed", "Your scores have a row for each source word: K Qᵀ instead of Q Kᵀ. A row "
        "belongs to a word that asks, so the queries come first: Q @ K.mT is (B, T_t, T_s).",
        lambda dX, eX, Wq, Wk, Wv, m: _cross(queries="encoder", keys="decoder")(dX, eX, Wk, Wq, Wv, m)),
    ("decoder-attends-to-itself", ITSELF, _cross(keys="decoder", values="decoder", hide=same)),
    ("decoder-attends-to-itself-masked", ITSELF, _cross(keys="decoder", values="decoder")),
    ("keys-from-decoder", "The values come from the encoder and the keys from the decoder. What is compared and what is "
        "brought back belong to one word: both come from encoder_X.", _cross(keys="decoder")),
    ("encoder-attends-to-itself", "The queries come from the encoder as well, so the decoder is never "
        "asked. Q is decoder_X @ W_q.", _cross(queries="encoder")),
    ("values-from-decoder", "The keys come from the encoder and the values from the decoder. A weight on a source "
        "word must bring that word's value: both come from encoder_X.", _cross(values="decoder")),
    ("values-not-projected", "The weights are right, but the values are encoder_X itself. Multiply it by "
        "W_v first.", _values_not_projected),
    ("values-projected-with-W_k", "The values are made with W_k. W_k makes what is compared, W_v what is "
        "brought back.", lambda dX, eX, Wq, Wk, Wv, m: cross_attention(dX, eX, Wq, Wk, Wk, m)),
    ("no-scaling", "The scores are not divided. Divide them by √d_k before the softmax, as in lesson 05.",
        _cross(scale=lambda d_k, d: 1.0)),
    ("scaled-by-d_k", "The scores are divided by d_k. Divide by its square root.", _cross(scale=lambda d_k, d: d_k)),
    ("scaled-by-d", "The scores are divided by √d, the width of decoder_X. d_k is the width of a query: "
        "Q.shape[-1].", _cross(scale=lambda d_k, d: d ** 0.5)),
    ("softmax-over-queries", OVER_QUERIES, _cross(axis=-2)),
    ("softmax-over-queries-filled", OVER_QUERIES, _cross(axis=-2, hide=_columns_filled)),
    ("mask-forgotten", "source_mask is not used: padding gets weight. Put -inf where it is False, before "
        "the softmax.", _cross(hide=same)),
    ("mask-after-softmax", "The mask is multiplied in after the softmax, so the rows no longer sum to 1. "
        "Put -inf into the scores before it.", _cross(hide=same, share=lambda weights, mask: weights * mask[:, None])),
    ("none-not-handled", "source_mask may be None. Then nothing is hidden: use the mask only `if source_mask is not "
        "None`.", lambda dX, eX, Wq, Wk, Wv, m: cross_attention(dX, eX, Wq, Wk, Wv, m[:, None][:, 0])),
    ("none-unsqueezed", "source_mask may be None. Then nothing is hidden: use the mask only `if source_mask is not "
        "None`.", lambda dX, eX, Wq, Wk, Wv, m: cross_attention(dX, eX, Wq, Wk, Wv, m.unsqueeze(1)[:, 0])),
    ("mask-zero", "The masked scores are 0, and e to the 0 is 1: padding keeps weight. Use -inf.",
        _cross(hide=lambda scores, mask: _columns_hidden(scores, mask, 0.0))),
    ("nan-from-zero-times-inf", "0 · inf is NaN, so a mask times -inf spoils the scores that should stay. Use "
        "masked_fill or torch.where.", _cross(hide=lambda scores, mask: scores + ~mask[:, None] * -torch.inf)),
    ("mask-inverted", "The words are hidden and the padding is seen. True in source_mask means: may be "
        "looked at.", _cross(hide=lambda scores, mask: _columns_hidden(scores, ~mask))),
    ("mask-on-rows", "You mask rows. Rows are target words; the padding belongs to the source words, the "
        "columns: source_mask[:, None] has shape (B, 1, T_s).", _cross(hide=_rows_hidden)),
    ("mask-without-query-axis", "source_mask is (B, T_s) and the scores are (B, T_t, T_s): without a new "
        "axis its rows are taken for target words. Use source_mask[:, None], of shape (B, 1, T_s).",
        _cross(hide=lambda scores, mask: scores.masked_fill(~mask, -torch.inf))),
    ("causal", "You hide later source words. The whole source is known when the translation begins, so "
        "no causal mask belongs here.", _causal),
    ("causal-for-the-other", "You hide later source words, where padding should be hidden. No causal mask belongs here: "
        "source_mask alone.", lambda *texts_and_weights: _causal(*texts_and_weights[:-1], None)),
    ("scores-returned", "The output is right. The second result should be the weights, after the softmax.",
        _scores_returned),
    ("order-of-results", "You return (weights, output). The exercise asks for (output, weights).",
        _cross(back=lambda output, weights: (weights, output))),
    ("output-only", "The output is right. Return the weights as well: (output, weights).", _cross(back=same)),
))

# ---------------------------------------------------------------- decoder_block


def _zero(x, memory=None):
    return 0 * x


def _looking_back(rng, T):
    """A stand-in for causal self-attention: every row becomes a mean of the rows up to its own, bent a little."""
    M = torch.softmax(tensor(rng, T, T).masked_fill(torch.ones(T, T).triu(1) > 0, float("-inf")), dim=-1)
    return lambda x: torch.tanh(1.5 * M.to(x) @ x) - 0.25


def _looking_across(rng, d):
    """A stand-in for cross-attention: real weights, one head. It needs the axes of its two texts to be in their places."""
    W_q, W_k, W_v = (tensor(rng, d, d) for _ in range(3))
    return lambda x, memory: cross_attention(x, memory, W_q.to(x), W_k.to(x), W_v.to(x), None)[0]


def _working(rng, d):
    W1, b1, W2, b2 = tensor(rng, d, 2 * d), tensor(rng, 2 * d), tensor(rng, 2 * d, d) / d, tensor(rng, d)
    return lambda x: feed_forward(x, W1.to(x), b1.to(x), W2.to(x), b2.to(x))


def _a_norm(rng, d):
    """A LayerNorm with a gain and a bias of its own."""
    gain, bias = 0.5 + abs(tensor(rng, d)), tensor(rng, d)
    return lambda x: torch.nn.functional.layer_norm(x, (d,), gain.to(x), bias.to(x))


@inputs
def _decoder_inputs(rng, B, T, T_s, d, back=True, across=True, mlp=True, std=1.0):
    """A maker of inputs; a sublayer that is left out returns zeros."""
    return (0.5 + std * tensor(rng, B, T, d), 2.0 + 3.0 * tensor(rng, B, T_s, d),
            _looking_back(rng, T) if back else _zero, _looking_across(rng, d) if across else _zero,
            _working(rng, d) if mlp else _zero, _a_norm(rng, d), _a_norm(rng, d), _a_norm(rng, d))


def _by_hand(rng):
    """Whole numbers: the sublayers multiply, the norms add, and cross-attention fetches the memory's only row."""
    x, memory = (torch.tensor(rng.integers(1, 5, size=(1, 1, 2)) * 1.0) for _ in range(2))

    functions = {"self_attention": lambda x: 2 * x, "cross_attention": lambda x, memory: x + 100 * memory,
                 "feed_forward": lambda x: 3 * x, "norm1": lambda x: x + 10, "norm2": lambda x: x + 50,
                 "norm3": lambda x: x + 7}
    for name, function in functions.items():
        function.__qualname__ = name  # for the error of a call with too few arguments or too many
    return x, memory, *functions.values()


def _add(x, sublayer, norm):
    return x + sublayer(norm(x))


def _read_and_add(x, memory, sublayer, norm):
    return x + sublayer(norm(x), memory)


@variants
def _three(x, memory, self_attention, cross_attention, feed_forward, norm1, norm2, norm3, *, first=_add,
           second=_read_and_add, third=_add, norms=lambda *norms: norms, order=(1, 2, 3)):
    """The reference with another step in the place of one or more of its three, other norms, or another order."""
    n1, n2, n3 = norms(norm1, norm2, norm3)
    steps = {1: lambda x: first(x, self_attention, n1), 2: lambda x: second(x, memory, cross_attention, n2),
             3: lambda x: third(x, feed_forward, n3)}
    for step in order:
        x = steps[step](x)
    return x


@variants
def _sums(x, m, s, c, f, n1, n2, n3, *, second=lambda x, y, c: y + c(y), third=lambda x, y, f: y + f(y)):
    """The reference with another second or third sum, of the block's input x, the stream y so far and a sublayer with its
    norm."""
    y = x + s(n1(x))
    y = second(x, y, lambda stream: c(n2(stream), m))
    return third(x, y, lambda stream: f(n3(stream)))


PAIR = ("You take [0] of what an attention returns. The functions that are given here return one tensor, not a pair, so [0] "
        "is its first sentence.")


_every_sum_from_x = _sums(second=lambda x, y, c: x + c(y), third=lambda x, y, f: x + f(y))


DECODER_BLOCK = Exercise(decoder_block, nudges=(
    ("expected 2, got 1", "The functions that are given here return one tensor, not a pair."),
), probes=(
    Probe("whole numbers", _by_hand, "Follow it by hand: self_attention doubles, cross_attention adds 100 times "
        "the memory, feed_forward triples; norm1 adds 10, norm2 adds 50, norm3 adds 7. First x + 2 (x + 10)."),
    Probe("as many words on both sides", _decoder_inputs(2, 4, 4, 3), "T = T_s = 4 here, so x and memory may be "
        "confused without an error. cross_attention(x, memory) takes the normed stream, and the memory as it is.", ),
    larger(_decoder_inputs(6, 9, 11, 10)),
), misconceptions=(
    ("memory-normalised", "You normalise the memory with norm2. The encoder has a norm of its own: hand its output "
        "over as it is.", _three(second=lambda x, m, c, n: x + c(n(x), n(m)))),
    ("x-as-memory", "Your cross-attention gets the stream twice, so the text looks at itself a second time and "
        "never at the source. Its second argument is memory.", _three(second=lambda x, m, c, n: x + c(n(x), n(x)))),
    ("roles-swapped", "The two texts have changed places in cross_attention: the source asks and the "
        "text being written answers. The decoder asks, so its stream comes first: cross_attention(..., "
        "memory).", _three(second=lambda x, m, c, n: x + c(m, n(x)))),
    ("no-cross-attention", "Cross-attention is left out, so nothing of the source arrives. It is the "
        "second of three sublayers.", _three(second=lambda x, m, c, n: x)),
    ("no-self-attention", "Self-attention is left out, so no word knows what has been written before it. "
        "It is the first of three sublayers.", _three(first=lambda x, s, n: x)),
    ("no-mlp", "The MLP is left out. At last, add feed_forward(norm3(x)).", _three(third=lambda x, f, n: x)),
    ("no-residuals", "Nothing is added: each sublayer replaces the stream. Add each result to what went "
        "in.", lambda x, m, s, c, f, n1, n2, n3: f(n3(c(n2(s(n1(x))), m)))),
    ("no-first-residual", "Self-attention replaces the stream. Add it to x.", _three(first=lambda x, s, n: s(n(x)))),
    ("no-second-residual", "Cross-attention replaces the stream, so what was written so far is lost. Add "
        "its result to the stream.", _three(second=lambda x, m, c, n: c(n(x), m))),
    ("memory-as-stream", "What cross-attention found is added to the memory. It is added to the stream: "
        "the memory is only read.", _three(second=lambda x, m, c, n: m + c(n(x), m))),
    ("no-third-residual", "The MLP replaces the stream. Add its result to what went in.",
        _three(third=lambda x, f, n: f(n(x)))),
    ("post-norm", "You normalise after each sum. That is post-norm, as in the paper of 2017. In a "
        "pre-norm block the norm comes before each sublayer, inside the sum.",
        _three(first=lambda x, s, n: n(x + s(x)), second=lambda x, m, c, n: n(x + c(x, m)),
               third=lambda x, f, n: n(x + f(x)))),
    ("stream-normalised",
        "You write x = norm(x) and then add to that, so the stream itself is normalised. Only the copy "
        "that the sublayer reads is: x + self_attention(norm1(x)).",
        _three(first=lambda x, s, n: n(x) + s(n(x)), second=lambda x, m, c, n: n(x) + c(n(x), m),
               third=lambda x, f, n: n(x) + f(n(x)))),
    ("cross-attention-first", "Cross-attention comes before self-attention. First the text looks back at "
        "itself, so that it knows what has been written; then it asks the source.",
        _three(order=(2, 1, 3))),
    ("cross-attention-first-norms-kept", "In yours cross-attention comes first and reads norm1. It "
        "should be self-attention first, with norm1.",
        _three(order=(2, 1, 3), norms=lambda a, b, c: (b, a, c))),
    ("mlp-before-cross", "The MLP comes before cross-attention, and cannot use what that finds. It is the last.",
        _three(order=(1, 3, 2))),
    ("mlp-before-cross-norms-kept", "In yours the MLP comes second and reads norm2. It should be "
        "cross-attention second, with norm2, and the MLP third, with norm3.",
        _three(order=(1, 3, 2), norms=lambda a, b, c: (a, c, b))),
    ("norms-1-and-2-swapped", "norm1 and norm2 have changed places: norm1 belongs before self-attention, norm2 "
        "before cross-attention.", _three(norms=lambda a, b, c: (b, a, c))),
    ("norms-2-and-3-swapped", "norm2 and norm3 have changed places: norm2 belongs before cross-attention, norm3 "
        "before the MLP.", _three(norms=lambda a, b, c: (a, c, b))),
    ("norm1-everywhere", "You use norm1 for all three sublayers. Each has a norm of its own.",
        _three(norms=lambda a, b, c: (a, a, a))),
    ("no-norms", "The norms are not used. Each sublayer reads a normalised copy of the stream.",
        _three(norms=lambda a, b, c: (same, same, same))),
    ("no-norm2", "norm2 is not used. Cross-attention asks with a normalised copy of the stream: norm2 of "
        "it.", _three(norms=lambda a, b, c: (a, same, c))),
    ("norm-after-sublayer", "You normalise what a sublayer returns. The norm comes before it: "
        "self_attention(norm1(x)).", lambda x, m, s, c, f, n1, n2, n3: decoder_block(
        x, m, lambda y: n1(s(y)), lambda y, z: n2(c(y, z)), lambda y: n3(f(y)), same, same, same)),
    ("first-of-a-pair", PAIR, _three(second=lambda x, m, c, n: x + c(n(x), m)[0])),
    ("first-of-both-pairs", PAIR,
        _three(first=lambda x, s, n: x + s(n(x))[0], second=lambda x, m, c, n: x + c(n(x), m)[0])),
    ("old-queries", "Cross-attention asks with the x that came into the block, so it does not know what "
        "self-attention found. It reads the stream after the first sum.", _sums(second=lambda x, y, c: y + c(x))),
    ("norm-of-norm", "norm2 gets what norm1 returned, so cross-attention does not know what self-attention has "
        "found. norm2 gets the stream after the first sum.",
        lambda x, m, s, c, f, n1, n2, n3: _sums(second=lambda x, y, c: y + c(n1(x)))(x, m, s, c, f, n1, n2, n3)),
    ("second-sum-from-x", "The second sum starts from the block's input again, so what self-attention "
        "added is lost. Start from the result of the first sum.", _sums(second=lambda x, y, c: x + c(y))),
    ("third-sum-from-x", "The last sum starts from the block's input again, so what the attentions added is lost "
        "from the stream. Start from the result of the second sum.", _sums(third=lambda x, y, f: x + f(y))),
    ("parallel", "All three sublayers read the block's input, side by side. Each reads the stream after the one "
        "before has written to it.", lambda x, m, s, c, f, n1, n2, n3: x + s(n1(x)) + c(n2(x), m) + f(n3(x))),
    ("no-norm3", "norm3 is not used. The MLP reads a normalised copy of the stream: norm3 of it.",
        _three(norms=lambda a, b, c: (a, b, same))),
    ("no-norm1", "norm1 is not used. Self-attention reads a normalised copy of the stream: norm1 of it.",
        _three(norms=lambda a, b, c: (same, b, c))),
    ("every-sum-from-x-without-norm3", "Every sum starts from the block's input again, so what the sublayers "
        "before added is lost. Each starts from the result of the sum before it. And the MLP reads norm3 of the "
        "stream.", lambda x, m, s, c, f, n1, n2, n3: _every_sum_from_x(x, m, s, c, f, n1, n2, same)),
    ("every-sum-from-x", "Every sum starts from the block's input again, so what the sublayers before "
        "added is lost. Each starts from the result of the sum before it.", _every_sum_from_x),
))

# ---------------------------------------------------------------- shift_right


@inputs
def _ids(rng, B, T):
    """Different ids from 3 to 99, and a start id that is none of them."""
    return torch.tensor(3 + rng.permutation(97)[:B * T].reshape(B, T)), int(rng.integers(100, 200))


def _start(tokens, bos):
    return torch.full((tokens.shape[0], 1), bos, dtype=tokens.dtype)


@variants
def _shift(tokens, bos, *, axis=1, start=lambda bos: bos):
    """The reference along another axis, or with another start."""
    first, rest = tokens.narrow(axis, 0, 1), tokens.narrow(axis, 0, tokens.shape[axis] - 1)
    return torch.cat([torch.full_like(first, start(bos)), rest], dim=axis)


def _first_repeated(tokens, bos):
    """A loop from the left that reads what it has just written."""
    shifted = tokens.clone()
    for t in range(1, tokens.shape[1]):
        shifted[:, t] = shifted[:, t - 1]
    shifted[:, 0] = bos
    return shifted


def _rolled(tokens, bos):
    shifted = torch.roll(tokens.flatten(), 1).reshape(tokens.shape).clone()
    shifted[0, 0] = bos
    return shifted


SHIFT_RIGHT = Exercise(shift_right, nudges=(
    ("Dimension out of range|expected Tensor as element|same number of dimensions", "torch.cat joins tensors with "
        "the same number of axes: bos has to be a column, (B, 1), as tokens[:, :1] is."),
), probes=(
    Probe("one word", _ids(1, 1), "With one word to write, nothing but the start is read: the result is [[bos]]."),
    Probe("one sentence", _ids(1, 3), "Three words a b c to write: the decoder reads bos, a, b."),
    example("padding", (torch.tensor([[7, 8, 2, 0], [9, 2, 0, 0]]), 1),
        "Padding and the end sign are ids like any other here: everything moves one place."),
    Probe("bos is 0", lambda rng: (_ids(2, 4)(rng)[0], 0), "bos may be any id, also 0 or one of the text.", ),
    larger(_ids(9, 10)),
), misconceptions=(
    ("floats", "The places are right, but the result has a decimal dtype. Ids are whole numbers: give bos the "
        "dtype of tokens, as torch.full_like(tokens[:, :1], bos) does.", lambda t, b: shift_right(t, b).double()),
    ("shifted-left", "You shift to the left, so the decoder reads the word after the one it should write. Put bos "
        "in front and drop the last word.", lambda t, b: torch.cat([t[:, 1:], _start(t, b)], dim=1)),
    ("longer-by-one", "bos is there, but nothing was dropped: the result has T + 1 columns. The last word is "
        "never read, because nothing comes after it.", lambda t, b: torch.cat([_start(t, b), t], dim=1)),
    ("first-dropped", "bos has taken the place of the first word, and the others have not moved. So the decoder "
        "reads what it should write. Drop the last one.", lambda t, b: torch.cat([_start(t, b), t[:, 1:]], dim=1)),
    ("not-shifted", "Nothing has moved: the decoder would read what it should write.", lambda t, b: t.clone()),
    ("first-repeated", "The first word stands everywhere: your loop overwrites each word before it is "
        "moved. Read from tokens and write to another tensor.", _first_repeated),
    ("wrapped-around", "The last word has come in on the left. bos belongs there.",
        lambda t, b: torch.roll(t, 1, dims=1)),
    ("rows-shifted", "You shift down, so each sentence gets the words of the one before. Shift along the "
        "last axis.", _shift(axis=0)),
    ("zeros-in-front", "Zeros are in front, where bos belongs.", _shift(start=lambda bos: 0)),
    ("no-bos", "The last word is dropped, and bos is missing in front.", lambda t, b: t[:, :-1]),
    ("bos-from-neighbour", "Only the first sentence begins with bos; the others begin with the last word "
        "of the sentence before. Shift each row by itself.", _rolled),
))

# ---------------------------------------------------------------- greedy_decode


def _unlike_ids(ids):
    """In words what is no list of ids, or ""; the ids may be NumPy's or torch's."""
    if not isinstance(ids, (list, tuple)):
        return f"of type {type(ids).__name__}"
    kinds = {"?" if (array := array_of(i)) is None or array.shape else array.dtype.kind for i in ids}
    return "" if kinds <= {"i", "u"} else f"a list with {'decimal numbers' if 'f' in kinds else 'something else'} in it"


def _next_logits(scores):
    """What an attempt asks: ``scores(ids)``, but only of a list of ids, as the lesson's translator takes it."""
    def next_logits(ids):
        if came := _unlike_ids(ids):
            raise TypeError(f"next_logits takes the list of ids so far, and what came is {came}")
        return scores(ids)

    next_logits.__qualname__ = "next_logits"  # for the error of a call with too few arguments or too many
    return next_logits


def _script(script, vocabulary, rng):
    """Scores whose best ids follow a script: ``script[n]`` after n ids, and never ``eos`` once it has ended."""
    script, noise = list(script), torch.tensor(rng.normal(size=(len(script) + 40, vocabulary)))

    def scores(ids):
        n = len(ids) - 1
        logits = noise[min(max(n, 0), len(noise) - 1)].clone()
        if 0 <= n < len(script):
            logits[script[n]] = logits.max() + 1.0
        return logits

    return _next_logits(scores)


def _chain(vocabulary, first, rng):
    """Scores that depend on all the ids so far: the best one is a sum of them, each times its place."""
    noise = torch.tensor(rng.normal(size=vocabulary))

    def scores(ids):
        total = sum((place + 1) * int(i) for place, i in enumerate(ids))
        logits = noise.clone()
        logits[total % (vocabulary - first) + first] = logits.max() + 1.0
        return logits

    return _next_logits(scores)


BOS, EOS = 1, 2


@inputs
def _ends_after(rng, words):
    """Writes ``words`` ids from 3 to 8, then eos; there is room for more."""
    script = [*(3 + rng.permutation(6)[:words]), EOS, *(3 + rng.permutation(6))]
    return _script(script, 9, rng), BOS, EOS, words + 4


@inputs
def _too_long(rng, max_length):
    """eos never comes: the ids are 3 and above."""
    return _chain(11, 3, rng), BOS, EOS, max_length


def _scripted(*ids):
    """The model writes these ids, whatever they mean."""
    return lambda rng: (_script(ids, 9, rng), BOS, EOS, 7)


@variants
def _decode(next_logits, bos, eos, max_length, *, inputs=lambda bos, ids: [bos, *ids], keep_bos=False, drop_eos=False,
            stop=True, limit=0, pick=lambda logits: int(logits.argmax())):
    """The reference with the faults that the arguments choose."""
    ids = []
    while len(ids) < max_length + limit:
        ids.append(pick(next_logits(inputs(bos, ids))))
        if stop and ids[-1] == eos:
            break
    ids = ids[:-1] if drop_eos and ids and ids[-1] == eos else ids
    return [bos, *ids] if keep_bos else ids


def _same_prefix(next_logits, bos, eos, max_length):
    logits = next_logits([bos])
    return greedy_decode(lambda ids: logits, bos, eos, max_length)


SCORE = "You take the highest score itself, .max(). The id is its place in the list of scores: .argmax()."

GREEDY_DECODE = Exercise(greedy_decode, probes=(
    Probe("nothing to say", _ends_after(0),
        "eos has the highest score at once: the result is [eos]. bos is not returned, eos is."),
    Probe("room for one id", lambda rng: (_script([5, 4, EOS], 9, rng), BOS, EOS, 1),
        "max_length = 1: the id with the highest score comes back alone. For eos there was no room."),
    Probe("some words", _ends_after(4), "Four words, then eos. Nothing is written after eos."),
    Probe("never eos", _too_long(7), "eos never comes, so the text ends after max_length ids. bos does "
        "not count. Each id depends on all the ids before, bos included."),
    Probe("other signs", lambda rng: (_script([2, 1, 2, 6, 3, 5], 9, rng), 7, 6, 8),
        "bos = 7 and eos = 6 here, and the id 2 is a word: use the arguments."),
    Probe("the id 0", _scripted(4, 0, 5, EOS, 3, 3), "The id 0 stands in the middle here. Only eos ends a text.", ),
    Probe("bos once more", _scripted(4, BOS, 5, EOS, 3, 3), "The best id is bos once, in the middle of a text. "
        "What was written is returned, whatever it is: only the bos that you put in front is left out."),
    Probe("no room", lambda rng: (_script([5, EOS], 9, rng), BOS, EOS, 0),
        "max_length = 0 leaves room for nothing: [].", draws=1),
    larger(lambda rng: (_chain(20, 3, rng), 13, EOS, 12)),
), misconceptions=(
    ("keeps-bos-drops-eos", "bos is in the result, and eos is not. The model needs bos to begin, but it "
        "is no word of the text; eos belongs to it.", _decode(keep_bos=True, drop_eos=True)),
    ("keeps-bos", "bos is in the result. The model needs it to begin, but it is no word of the text.",
        _decode(keep_bos=True)),
    ("drops-eos", "eos is left out of the result. Here it belongs to it, so that a reader knows the text "
        "has ended.", _decode(drop_eos=True)),
    ("never-stops", "You go on after eos until max_length. Stop as soon as eos is written.", _decode(stop=False)),
    ("one-too-many", "When eos does not come, you return max_length + 1 ids.", _decode(limit=1)),
    ("bos-counted", "When eos does not come, you return max_length - 1 ids: bos does not count.", _decode(limit=-1)),
    ("without-bos", "next_logits is called without bos in front. A text begins with it: the first call "
        "is next_logits([bos]).", _decode(inputs=lambda bos, ids: list(ids))),
    ("last-id-only", "next_logits gets the last id alone. It needs all the ids so far: [bos, first, "
        "second, …].", _decode(inputs=lambda bos, ids: [([bos, *ids])[-1]])),
    ("same-question", "next_logits is asked once, and its answer is used again and again. Ask anew after "
        "every word.", _same_prefix),
    ("tensor-asked", "You give next_logits a tensor. It takes the list of ids so far, [bos, first, second, …].",
        _decode(inputs=lambda bos, ids: torch.tensor([bos, *ids]))),
    ("tensor-returned", "The ids are right, but they come in a tensor or an array. Return them as a list: .tolist().",
        lambda n, b, e, m: torch.tensor(greedy_decode(n, b, e, m))),
    ("max-for-argmax", SCORE, _decode(pick=lambda scores: int(scores.max()))),
    ("max-not-whole", SCORE, _decode(pick=lambda scores: scores.max().item())),
    ("argmin", "You take the id with the lowest score. Take the highest.", _decode(pick=lambda s: int(s.argmin()))),
    ("stops-at-0", "You stop at the id 0 too. Only eos ends a text.",
        lambda n, b, e, m: _until(greedy_decode(n, b, e, m), 0)),
    ("bos-filtered", "You take every bos out of the result. Only the one in front is left out; what was "
        "written stays.", lambda n, b, e, m: [i for i in greedy_decode(n, b, e, m) if i != b]),
    ("eos-is-2", "You stop at the id 2, whatever eos is.", lambda n, b, e, m: greedy_decode(n, b, 2, m)),
), contracts=(
    Contract("a negative max_length", lambda rng: (_script([5, EOS], 9, rng), BOS, EOS, -1)),
))


def _until(ids, last):
    return ids[:ids.index(last) + 1] if last in ids else ids


EXERCISES = (CROSS_ATTENTION, DECODER_BLOCK, GREEDY_DECODE, SHIFT_RIGHT)
