"""The exercises of lesson 11: the loss of a language model, the model, sampling, the loops that train and write, perplexity.
Inputs are torch tensors."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from helpers import training
from helpers.checks.calls import as_list
from helpers.checks.core import Contract, Exercise, Probe, evaluate, inputs, larger, variants
from helpers.checks.pieces import same, tensor
from helpers.transformer import generate, language_model, language_model_loss, perplexity, sample_next

# ---------------------------------------------------------------- language_model_loss


@inputs
def _text(rng, B, T, V, pad=0, padding=0, scale=2.0):
    """Logits, and rows of words (never ``pad``) with up to ``padding`` pads behind each, a different number
    in each."""
    words = [i for i in range(V) if i != pad]
    tokens = rng.choice(words, size=(B, T))
    for row, pads in zip(tokens, rng.permutation(np.linspace(0, padding, B).astype(int)), strict=True):
        row[T - pads:] = pad
    return torch.tensor(rng.normal(size=(B, T, V)) * scale), torch.tensor(tokens), pad


def _losses(logits, target):
    """(B, T, V), (B, T) -> (B, T): nats of each target."""
    return -logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]


def _average(loss, keep):
    return (loss * keep).sum() / keep.sum()


def _shifted(logits, tokens):
    return logits[:, :-1], tokens[:, 1:]


@variants
def _loss(logits, tokens, pad, *, pairs=_shifted, score=_losses, padding="target", mean=_average):
    """The reference with other ``pairs(logits, tokens)`` of scores and target, another ``score`` of a target, padding
    looked for elsewhere or ("none") not at all, or another ``mean(losses, keep)``."""
    predicted, target = pairs(logits, tokens)
    looked_at = {"target": target, "input": tokens[:, :-1], "none": torch.full_like(target, pad + 1)}[padding]
    return mean(score(predicted, target), looked_at != pad)


def _refuses_an_empty_row(logits, tokens, pad):
    if (tokens[:, 1:] == pad).all(1).any():
        raise ValueError
    return language_model_loss(logits, tokens, pad)


LANGUAGE_MODEL_LOSS = Exercise(language_model_loss, probes=(
    Probe("one prediction", _text(1, 2, 4), "With T = 2 there is one prediction: the logits at position "
        "0 for the token at position 1. The last logits predict a token that is not in the text."),
    Probe("one row", _text(1, 5, 4), "One row without padding, T = 5: logits 0 to 3 predict tokens 1 to "
        "4. The loss is the mean of these four."),
    Probe("two rows", _text(2, 3, 4), "Shift each row for itself: the last token of a row has nothing to "
        "do with the first of the next row."),
    Probe("rows of different lengths", _text(3, 6, 5, padding=4), "The rows are of different lengths. "
        "The mean is over all targets that are not padding, each with the same weight."),
    Probe("another id for padding", _text(2, 5, 6, pad=3, padding=2),
        "Here pad is 3, and 0 is a word like any other. Use the argument pad.", special=True),
    Probe("padding in front",
        lambda rng: tuple((x.flip(1) if i < 2 else x for i, x in enumerate(_text(3, 6, 5, padding=3)(rng)))),
        "The padding stands in front of the words here. Only a *target* that is padding is left out: the "
        "first word of such a row counts, although the input before it is padding."),
    Probe("an empty row", _text(3, 6, 5, padding=6), "One row is all padding and has nothing to predict. The mean is "
        "over the targets of the others.", special=True, extreme=True),
    larger(_text(9, 10, 12, padding=4)),
), misconceptions=(
    ("no-shift", "You compare the logits at t with the token at t. That token is what the model has just read; it "
        "has to predict the one after it, at t + 1.", _loss(pairs=lambda logits, tokens: (logits, tokens))),
    ("backwards", "You shift the wrong way: the logits at t + 1 are compared with the token at t. It predicts the "
        "next token, not the one before.", _loss(pairs=lambda logits, tokens: (logits[:, 1:], tokens[:, :-1]))),
    ("pad-counts", "Padding counts as a word to predict. Leave out the targets that equal pad.",
        _loss(padding="none")),
    ("pads-in-the-divisor", "The loss of padding is 0, but you divide by all targets. Divide by those that are not "
        "padding, or texts with much padding seem easy.", _loss(mean=lambda loss, keep: (loss * keep).mean())),
    ("inputs-decide", "You leave out the places where the *input* is padding. Look at the target: at the "
        "last word of a row the input is a word, and the target is padding.", _loss(padding="input")),
    ("pad-is-0", "You take 0 for padding, whatever pad is. Compare the targets with the argument pad.",
        lambda logits, tokens, pad: language_model_loss(logits, tokens, 0)),
    ("sum", "You return the sum. The mean does not depend on how long the texts are: divide by the "
        "number of targets that are not padding.", _loss(mean=lambda loss, keep: (loss * keep).sum())),
    ("mean-of-means", "You average each row first, and then the rows. So a word of a short row counts more. Take "
        "one mean over all targets.", _loss(mean=lambda loss, keep: ((loss * keep).sum(1) / keep.sum(1)).mean())),
    ("rows-joined", "You flatten first and shift then, so the last logits of a row have to predict the first word "
        "of the next row. Shift each row first: logits[:, :-1] and tokens[:, 1:].",
        _loss(pairs=lambda logits, tokens: (logits.flatten(0, 1)[None, :-1], tokens.flatten()[None, 1:]))),
    ("targets-by-column", "You flatten the targets column by column, and the logits row by row. Flatten both alike.",
        _loss(pairs=lambda logits, tokens: (logits[:, :-1], tokens[:, 1:].T.reshape(len(tokens), -1)))),
    ("softmax-twice", "You apply a softmax before cross_entropy, which has one inside. Give it the "
        "logits themselves.", _loss(score=lambda z, target: _losses(z.softmax(-1), target))),
    ("softmax-over-positions", "Your softmax runs over the positions. Those of the V words sum to 1: use the last "
        "axis.", _loss(score=lambda z, target: -z.log_softmax(1).gather(-1, target[..., None])[..., 0])),
    ("no-softmax", "You take the logit of the target itself. The loss is minus the logarithm of its probability: "
        "log_softmax first.", _loss(score=lambda z, target: -z.gather(-1, target[..., None])[..., 0])),
    ("no-log", "You average probabilities, without their logarithm. The loss is the mean of -log p.",
        _loss(score=lambda z, target: -z.softmax(-1).gather(-1, target[..., None])[..., 0])),
    ("sign", "Your loss is negative. The loss is -log p.", _loss(mean=lambda loss, keep: -_average(loss, keep))),
    ("bits", "Your loss is in bits, with the logarithm to base 2. Use the natural logarithm, so that it "
        "is in nats.", _loss(score=lambda z, target: _losses(z, target) / math.log(2))),
    ("perplexity", "You return exp of the mean loss, which is the perplexity. Return the mean itself.",
        _loss(mean=lambda loss, keep: _average(loss, keep).exp())),
    ("not-flattened", "cross_entropy takes the classes from axis 1, so (B, T, V) does not fit. Flatten batch and "
        "positions into one axis: (B·(T-1), V) against (B·(T-1),).",
        lambda logits, tokens, pad: F.cross_entropy(*_shifted(logits, tokens), ignore_index=pad)),
    ("empty-row-refused", "You refuse every text with an empty row. Refuse it only if no row has a token to predict.",
        _refuses_an_empty_row),
), contracts=(
    Contract("a text of one token or of padding alone",
        lambda rng: (torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.long), 0)),
))

# ---------------------------------------------------------------- language_model


def _looking_back(rng, T, d):
    """A stand-in for a causal block: each row gets something of the rows up to its own, and is bent."""
    M = torch.softmax(tensor(rng, T, T).masked_fill(torch.ones(T, T).triu(1) > 0, -torch.inf), dim=-1)
    W = tensor(rng, d, d) / d**0.5
    return lambda x: x + torch.tanh(M.to(x) @ x @ W.to(x))


def _a_norm(rng, d):
    """A LayerNorm with a gain and a bias of its own."""
    gain, bias = 0.5 + abs(tensor(rng, d)), tensor(rng, d)
    return lambda x: F.layer_norm(x, (d,), gain.to(x), bias.to(x))


@inputs
def _model(rng, B, T, V, d, T_max, n_blocks=2, norm=True, ids=None):
    """A maker of inputs: ids with the last word of the vocabulary among them, tables, blocks, a norm, a matrix."""
    words = rng.integers(0, V, size=(B, T)) if ids is None else np.array(ids)
    if ids is None:
        words[rng.integers(B), rng.integers(T)] = V - 1
    return (torch.tensor(words), tensor(rng, V, d), tensor(rng, T_max, d),
            [_looking_back(rng, T, d) for _ in range(n_blocks)], _a_norm(rng, d) if norm else same,
            tensor(rng, d, V))


@inputs
def _whole_numbers(rng, blocks, norm=same, T=2):
    """d = 1 and W_out = 1, so that every step can be followed in the head."""
    tokens, positions = (torch.tensor(rng.permutation(8)[:3, None] + 1.0) for _ in range(2))
    return torch.tensor(rng.integers(0, 3, size=(1, T))), tokens, positions, blocks, norm, torch.ones(1, 3).double()


def _run(x, blocks, norm):
    for block in blocks:
        x = block(x)
    return x


@variants
def _gpt(ids, tokens, positions, blocks, norm, W_out, *, places=lambda positions, ids: positions[:ids.shape[1]],
         join=torch.add, run=_run, last=lambda x, norm: norm(x), read=lambda x, W_out, tokens: x @ W_out):
    """The reference with other rows of positions, joined with the words in another way, or with another step in the
    place of one of the others: ``run(x, blocks, norm)``, the ``last`` norm, ``read(x, W_out, tokens)``."""
    x = join(tokens[ids], places(positions, ids))
    return read(last(run(x, blocks, norm), norm), W_out, tokens)


def _with_residual(x, blocks, norm):
    for block in blocks:
        x = x + block(x)
    return x


def _each_gets_the_words(x, blocks, norm):
    y = x
    for block in blocks:
        y = block(x)  # the stream itself stays as it was
    return y


def _norm_after_each(x, blocks, norm):
    for block in blocks:
        x = norm(block(x))
    return x


def _norm_first(x, blocks, norm):
    return _run(norm(x), blocks, norm)


def _refuses_T_max(ids, tokens, positions, *others):
    if ids.shape[1] >= len(positions):
        raise ValueError
    return language_model(ids, tokens, positions, *others)


LANGUAGE_MODEL = Exercise(language_model, probes=(
    Probe("one word", _model(1, 1, 3, 2, 4, n_blocks=0, norm=False), "One word, no block, and a norm "
        "that changes nothing: the word's row of tokens plus row 0 of positions, times W_out."),
    Probe("one block", _whole_numbers([lambda x: 2 * x]),
        "d = 1, one block that doubles, and W_out = 1: each logit is 2 · (token + position)."),
    Probe("as many words as places", _whole_numbers([lambda x: 2 * x], T=3), "Three words, and positions has three rows: "
        "each word gets its own. Only a longer text is refused.", special=True),
    Probe("two blocks", _whole_numbers([lambda x: 2 * x, lambda x: x + 100]), "The first block doubles, the second "
        "adds 100: each logit is 2 · (token + position) + 100. What one block returns is what the next one gets.", ),
    Probe("a norm without blocks", _whole_numbers([], norm=lambda x: x / 2 + 1000),
        "There is no block. The norm, here x / 2 + 1000, is used once, before W_out."),
    Probe("a norm after the blocks",
        _whole_numbers([lambda x: 2 * x, lambda x: x + 100], norm=lambda x: x / 2 + 1000),
        "The blocks double and add 100; the norm, here x / 2 + 1000, comes after the last of them, once: the "
        "blocks have norms of their own inside."),
    Probe("as many words as numbers", _model(2, 3, 4, 4, 5), "V = d = 4 here, so W_out is square. It is "
        "(d, V), so it stands on the right as it is: norm(x) @ W_out."),
    larger(_model(10, 11, 13, 12, 14, n_blocks=4)),
), misconceptions=(
    ("no-positions", "positions is not used: your model cannot know which word came first. Add row t of "
        "it to the word at place t.", _gpt(join=same)),
    ("positions-by-id", "You look up positions by the word's id. It belongs to the place in the text, whatever word "
        "is there: the first T rows, in their order.", _gpt(places=lambda positions, ids: positions[ids])),
    ("all-positions", "You add the whole table of positions. The text has T tokens, so only the first T "
        "of its rows are wanted.", _gpt(places=lambda positions, ids: positions)),
    ("positions-from-1", "Your first word gets row 1 of positions. Places are counted from 0.",
        _gpt(places=lambda positions, ids: positions[1:ids.shape[1] + 1])),
    ("last-positions", "You take the last T rows of positions. The first word gets row 0: positions[:T].",
        _gpt(places=lambda positions, ids: positions[-ids.shape[1]:])),
    ("T-max-refused", "You refuse a text of exactly T_max tokens, and there is a row for each of them. Refuse only a "
        "longer one: T > len(positions).", _refuses_T_max),
    ("T-is-the-batch", "You take the number of sentences for T. ids is (B, T): its second axis counts words, so T "
        "is ids.shape[1], and len(ids) is B.", _gpt(places=lambda positions, ids: positions[:len(ids)])),
    ("positions-along-the-batch", "Your positions go along the batch: sentence b gets row b. They belong to the "
        "places: add positions[:T], (T, d).", _gpt(places=lambda positions, ids: positions[:len(ids), None])),
    ("scaled", "You multiply the word vectors by √d. The paper of 2017 did, and this model does not: "
        "tokens[ids] as it is.", _gpt(join=lambda words, places: words * words.shape[-1]**0.5 + places)),
    ("multiplied", "You multiply words by positions. Add them: where a position is near 0, a product "
        "would lose the word.", _gpt(join=torch.mul)),
    ("positions-before-each-block", "You add the positions before every block. They are added once, to "
        "the words; the stream carries them on.", lambda ids, E, P, blocks, *others: language_model(
        ids, E, 0 * P, [lambda x, b=b: b(x + P[:ids.shape[1]]) for b in blocks], *others)),
    ("positions-last", "You add the positions after the blocks, where no attention can use them any "
        "more. Add them to the words, before the first block.",
        lambda ids, E, P, blocks, norm, W_out: norm(_run(E[ids], blocks, norm) + P[:ids.shape[1]]) @ W_out),
    ("no-blocks", "What the blocks return is not used, so no word learns anything from another. Send the "
        "stream through each of them, and write the result back: x = block(x).", _gpt(run=same)),
    ("first-block-only", "Only the first block is used. Send what it returns through the next one, and "
        "so on.", _gpt(run=lambda x, blocks, norm: blocks[0](x) if blocks else x)),
    ("return-in-the-loop", "Your return is in the loop, and ends it at the first block. Move it behind the loop.",
        lambda ids, E, P, blocks, *others: language_model(ids, E, P, blocks[:1], *others) if blocks else None),
    ("each-gets-the-words", "Every block gets the words as they were at first, and only the last one's result is "
        "kept. In the loop, write the result back: x = block(x).", _gpt(run=_each_gets_the_words)),
    ("reversed", "You go through the blocks from the last to the first. The first of the list is the "
        "first to work.", _gpt(run=lambda x, blocks, norm: _run(x, blocks[::-1], norm))),
    ("residual-again", "You add the stream once more, x + block(x). The plus signs are inside the block: "
        "what it returns is the new stream.", _gpt(run=_with_residual)),
    ("no-norm", "norm is not used. It comes once, after the last block and before W_out.", _gpt(last=same)),
    ("norm-first", "Your norm stands before the blocks. It belongs behind the last of them, just before "
        "W_out.", _gpt(run=_norm_first, last=same)),
    ("norm-first-and-last", "You use the norm twice, before the blocks and after them. Only the one "
        "after them belongs here.", _gpt(run=_norm_first)),
    ("norm-after-each-block", "You use the norm after every block, inside the loop. It is used once, "
        "after the last; the blocks have norms of their own.", _gpt(run=_norm_after_each, last=same)),
    ("norm-after-each-block-and-last", "You use the norm after every block, and once more at the end. It is used "
        "once, after the last block; the blocks have norms of their own.", _gpt(run=_norm_after_each)),
    ("stream-returned", "You return the stream, (B, T, d). Multiply it by W_out, which makes a score for "
        "each of the V words.", _gpt(read=same)),
    ("transposed-output", "You transpose W_out. It is (d, V), so (B, T, d) times W_out is (B, T, V) as "
        "it is.", _gpt(read=lambda x, W_out, tokens: x @ W_out.T)),
    ("tokens-for-the-output", "You compare with the word vectors, tokens.T, where W_out belongs. Some models "
        "share the two; this one has a matrix of its own.", _gpt(read=lambda x, W_out, tokens: x @ tokens.T)),
    ("probabilities", "You return probabilities. Return the logits, before the softmax: the loss and the "
        "draw make their own.", _gpt(read=lambda x, W_out, tokens: (x @ W_out).softmax(-1))),
    ("log-probabilities", "You return logarithms of probabilities. Return the logits as they are: the "
        "loss makes its own softmax.", _gpt(read=lambda x, W_out, tokens: (x @ W_out).log_softmax(-1))),
    ("last-place-only", "You return the logits of the last place. While the model learns, each place has "
        "to say what comes next: (B, T, V).", _gpt(read=lambda x, W_out, tokens: x[:, -1] @ W_out)),
), contracts=(
    Contract("a text of more than T_max tokens", _model(1, 4, 3, 2, 3)),
), nudges=(
    ("takes 1 positional argument but",
        "A block, like the norm, takes one tensor, the stream. Its causal mask is inside it."),
    ("list' object is not callable", "blocks is a list of functions: go through it in a loop, and call each."),
    ("out of bounds|out of range", "An id is a row of tokens, a place one of positions. Which did you look up where?"),
    ("must match the size|could not be broadcast", "tokens[ids] is (B, T, d). Of positions only the "
        "first T rows belong to it, and T is the second axis of ids."),
    ("mat1 and mat2|inner dim|size mismatch|batch1|expected size",
        "W_out is (d, V), so what stands on its left ends with d numbers: (B, T, d) @ (d, V)."),
))

# ---------------------------------------------------------------- sample_next

DRAWS = 300  # a share of 300 draws has a standard deviation of at most 0.03
AGAIN = 30


def _draws(function, logits, temperature, top_k, generator):
    """What many calls give: the form of one draw; the share of each word; whether the same generator gives
    the same."""
    same = generator.clone_state()
    copies = [logits.clone() for _ in range(DRAWS - 1 + AGAIN)]  # a call that changes its input spoils no other
    drawn = [function(z, temperature, top_k, generator) for z in (logits, *copies[AGAIN:])]
    if drawn[0] is None:
        return None
    again = [function(z, temperature, top_k, same) for z in copies[:AGAIN]]
    form = np.zeros_like(drawn[0].detach().numpy() if hasattr(drawn[0], "detach") else np.asarray(drawn[0]))
    ids = np.array([int(i) for i in drawn])
    share = np.bincount(ids.clip(0), minlength=len(logits)) / DRAWS
    if (ids < 0).any() or len(share) != len(logits):  # a word that there is not
        share = np.full(len(logits), np.nan)
    return form, share, bool((ids[:AGAIN] == [int(i) for i in again]).all())


@inputs
def _word(rng, logits, temperature, top_k, shuffle=True):
    """Logits, in any order and with any number added to all of them."""
    z = np.array(logits, dtype=float) + rng.uniform(-3, -2)
    z = rng.permutation(z) if shuffle else z
    return torch.tensor(z), temperature, top_k, torch.Generator().manual_seed(int(rng.integers(2**31)))


def _pick(p, generator):
    return int(torch.multinomial(p, 1, generator=generator))


def _top(logits, k):
    return logits.topk(len(logits) if k is None else min(k, len(logits)))


def _keep_top(z, k):
    return z.masked_fill(z < _top(z, k)[0][-1], -torch.inf)


@variants
def _sampler(logits, temperature, top_k, generator, *, warm=lambda z, t: z / t, keep=_keep_top, draw=_pick, zero=True):
    """The reference with the faults that the arguments choose. ``keep(z, k)``: logits after top-k, all V of them."""
    if temperature == 0 and zero:
        return int(logits.argmax())
    z = warm(logits, temperature)
    return draw((z if top_k is None else keep(z, top_k)).softmax(-1), generator)


@variants
def _from_the_list(logits, temperature, top_k, generator, *, most=min):
    """By topk, called with ``most(k, V)``."""
    if temperature == 0:
        return int(logits.argmax())
    V = len(logits)
    kept, ids = logits.topk(V if top_k is None else most(top_k, V))
    return int(ids[_pick((kept / temperature).softmax(-1), generator)])


def _place_in_the_list(sorts=lambda k, V: True, most=min):
    """The place in the list of topk for the id. ``sorts(k, V)``: is topk called? ``most(k, V)``: with which k?"""
    def function(logits, temperature, top_k, generator):
        if temperature == 0:
            return int(logits.argmax())
        V = len(logits)
        if sorts(top_k, V):
            logits = logits.topk(V if top_k is None else most(top_k, V))[0]
        return _pick((logits / temperature).softmax(-1), generator)
    return function


_SORTED = ("topk sorts. You return the place in its list, 0 for the largest logit, whichever word that is. Return the "
           "id at that place, ids[place]: topk gives the ids too.")


def _overflows(logits, temperature, top_k, generator):
    if temperature == 0:
        return int(logits.argmax())
    kept, ids = _top(logits, top_k)
    p = (kept / temperature).exp()
    return int(ids[_pick(p / p.sum(), generator)])


WIDE = {"absolute": 0.17, "draws": 1}  # four standard deviations of the difference of two shares
SAMPLE_NEXT = Exercise(sample_next, use=_draws,
    results=("a draw (an int, as .item() makes it of a tensor)", f"the share of each word in {DRAWS} draws",
             "that the same state of the generator gives the same"),
    probes=(  # those that tell most mistakes apart stand first, which saves time
    Probe("the best three, hot", _word([0.0, 0.5, 1.0, 1.5, 9.0, 12.0], 2.0, 3), "Both at once: keep the three "
        "largest logits, divide by the temperature, softmax over what is left.", **WIDE),
    Probe("temperature 1", _word([0.0, 0.0, 1.8], 1.0, None),
        "At temperature 1 the probabilities are softmax(logits). Each call draws anew, with the generator given.", **WIDE),
    Probe("nearly equal words", _word([0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14], 1.0, None), "Eight words with "
        "nearly the same logit: each comes up about once in eight draws.", absolute=0.12, draws=1),
    Probe("hot", _word([0.0, 0.0, 0.0, 10.5], 7.0, None), "The logits are divided by the temperature "
        "before the softmax. At 7 the difference of 10.5 is a difference of 1.5.", **WIDE),
    Probe("cold", _word([0.0, 0.0, 0.0, 0.8], 0.4, None), "Between 0 and 1 a word is still drawn. At 0.4 the difference "
        "of 0.8 is a difference of 2.", **WIDE),
    Probe("the best one", _word([0.0, 0.5, 1.0, 1.5], 1.0, 1),
        "With top_k = 1 there is one word left, the one with the largest logit.", draws=1),
    Probe("top_k above V", _word([0.0, 0.0, 0.0, 2.0], 2.0, 6, shuffle=False),
        "top_k is larger than the vocabulary: then all words count. min(top_k, V) does it.", **WIDE),
    Probe("temperature 0", _word([0.0, 0.4, 0.8, 0.6, 0.2], 0, None), "Temperature 0 is the limit of no "
        "chance at all: always the largest logit. Do not divide by 0.", draws=3),
    Probe("temperature 0, the best two", _word([0.0, 0.4, 0.8, 0.6, 0.2], 0, 2, shuffle=False), "Temperature 0 with "
        "top_k = 2: still the largest logit. Return its id, and not its place in a sorted list.", draws=1),
    Probe("nearly temperature 0", _word([5.0, 6.0, 7.0], 0.0001, None), "At a temperature of 0.0001 every draw is "
        "the largest logit. Divide the logits by it first; torch.softmax copes with that.", draws=1, extreme=True),
    replace(larger(_word([0.02 * i for i in range(9)] + [1.5], 1.0, 9, shuffle=False)), **WIDE),
), misconceptions=(
    ("multiplied", "You multiply by the temperature. Divide: a high temperature makes the words more "
        "equal.", _sampler(warm=lambda z, t: z * t)),
    ("temperature-ignored", "The temperature has no effect. Divide the logits by it *before* the softmax; divided "
        "after it, all probabilities change alike, and normalising undoes that.", _sampler(warm=lambda z, t: z)),
    ("always-the-best-below-1", "Below temperature 1 you always take the largest logit. Only 0 means that: at 0.5 "
        "the words are still drawn.", lambda z, t, k, g: int(z.argmax()) if t < 1 else sample_next(z, t, k, g)),
    ("always-the-best", "Every call gives the same word. Draw with the generator given: argmax is only for "
        "temperature 0, and a generator made or seeded inside your function begins anew each time.",
        lambda z, t, k, g: int(z.argmax())),
    ("place-at-temperature-0", "At temperature 0 you return the largest logit's place in the list of topk, always "
        "0. Return the word's id.", lambda z, t, k, g: 0 if t == 0 and k is not None else sample_next(z, t, k, g)),
    ("overflows", "Right as long as the temperature is not very low. Then exp is infinite, or a power of a "
        "probability rounds to 0. Divide the logits by the temperature, and use torch.softmax.", _overflows),
    ("divides-by-0", "At temperature 0 you divide by 0, and NaN cannot be drawn from. Take 0 separately: "
        "the word with the largest logit.", _sampler(zero=False)),
    ("top-k-ignored", "top_k has no effect. Only the k largest logits may be drawn.", _sampler(keep=lambda z, k: z)),
    ("lowest-k", "You keep the words with the *smallest* logits. topk gives the largest by itself.",
        _sampler(keep=lambda z, k: z.masked_fill(z > z.topk(min(k, len(z)), largest=False)[0][-1], -torch.inf))),
    ("place-in-the-list", _SORTED, _place_in_the_list()),
    ("place-in-the-list-with-top-k", _SORTED, _place_in_the_list(lambda k, V: k is not None)),
    ("place-in-the-list-below-V", _SORTED, _place_in_the_list(lambda k, V: k is not None and k < V)),
    ("place-in-a-list-too-long", f"{_SORTED} And a top_k above V is V: min(top_k, V).",
        _place_in_the_list(lambda k, V: k is not None, most=lambda k, V: k)),
    ("zero-instead-of-inf", "You set the logits of the other words to 0, and e⁰ is 1, not 0. Use minus "
        "infinity, as in masking.", _sampler(keep=lambda z, k: z * (z >= _top(z, k)[0][-1]))),
    ("drops-the-kth", "You keep the words *above* the k-th largest logit, which are k - 1. Keep the k-th "
        "too.", _sampler(keep=lambda z, k: z.masked_fill(z <= z.topk(min(k, len(z)))[0][-1], -torch.inf))),
    ("one-too-many", "You keep k + 1 words. The k-th largest is at index k - 1.",
        _sampler(keep=lambda z, k: z.masked_fill(z < _top(z, k + 1)[0][-1], -torch.inf))),
    ("top-k-above-V", "topk stops when k is larger than the number of words. Use min(top_k, V).",
        _from_the_list(most=lambda k, V: k)),
    ("none-not-handled", "top_k = None means no limit. Handle None separately before you compare it or "
        "count with it.", lambda z, t, k, g: sample_next(z, t, None if t == 0 else min(k, len(z)), g)),
    ("own-chance", "The draws do not depend on the generator: the same state gave other words. Pass it "
        "on: generator=generator.", _sampler(draw=lambda p, generator: _pick(p, None))),
    ("seeded-inside", "Every call draws the same word, because you seed inside the function. Use the one given, "
        "which moves on.", _sampler(draw=lambda p, generator: _pick(p, torch.Generator().manual_seed(0)))),
    ("tensor", "You return a tensor with one number in it. Return an int: int(...) or .item().",
        lambda z, t, k, g: z.argmax(-1, keepdim=True) if t == 0 else torch.tensor([sample_next(z, t, k, g)])),
    ("tensor-if-drawn", "What you draw is a tensor with one number in it. Return an int: int(...) or "
        ".item().", lambda z, t, k, g: z.argmax() if t == 0 else torch.tensor([sample_next(z, t, k, g)])),
    ("probability", "You return a probability. Return the id of the word drawn.",
        lambda z, t, k, g: float((z / max(t, 1e-3)).softmax(-1)[sample_next(z, t, k, g)])),
), contracts=(
    Contract("a negative temperature", lambda rng: (torch.zeros(3), -1.0, None, torch.Generator().manual_seed(0))),
    Contract("top_k = 0", lambda rng: (torch.zeros(3), 1.0, 0, torch.Generator().manual_seed(0))),
), nudges=(
    ("probability tensor contains|invalid multinomial distribution", "A probability is infinite or not a number. "
        "Do you divide by 0, or take exp of a large number? The logits divided by the temperature can be large; "
        "torch.softmax copes with them."),
))

# ---------------------------------------------------------------- the loop that trains
#
# Not an exercise of the list, as what it does is seen in what it leaves behind: `check_loop` runs it on one parameter.


def train(model, batches, loss_of, optimizer):
    """Take a step for each batch. Returns the list of losses, as plain numbers, each from before its step.

    ``loss_of(model, batch)``: a scalar tensor; ``batches``: anything that can be gone through once.
    """
    losses = []
    for batch in batches:
        loss = loss_of(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class _OneNumber(nn.Module):
    """A model with one parameter, which begins at 0."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros((), dtype=torch.float64))


class _Watched(torch.optim.SGD):
    """Gradient descent that keeps the gradient which it finds at each step."""

    def step(self, closure=None):
        loss = None if closure is None else closure()
        (w,) = self.param_groups[0]["params"]
        self.found.append(None if w.grad is None else round(w.grad.item(), 3))
        super().step()
        return loss


@dataclass(frozen=True)
class _Kind:
    """What stands for an argument until the loop runs, because it cannot be copied alone; ``said`` in a message."""

    said: str
    value: float = 0.0

    def __repr__(self):
        return self.said


@inputs
def _descent(rng, *batches, lr=0.1):
    there = [float(b) for b in batches] or [float(b) for b in rng.integers(-9, 10, size=4)]
    return (_Kind("with one parameter w, which begins at 0"), there, _Kind("(w - batch)²"),
            _Kind(f"SGD with lr = {lr}", lr))


def _trained(function, model, batches, loss_of, optimizer):
    """What a loop leaves behind. Batches can be gone through once, as where they are drawn on the way."""
    model, lr, backward = _OneNumber(), optimizer.value, []
    optimizer = _Watched(model.parameters(), lr=lr)
    optimizer.found = []

    def parabola(model, batch):
        loss = (model.w - batch) ** 2
        if loss.requires_grad:
            loss.register_hook(backward.append)
        return loss

    with training.one_thread():
        losses = function(model, iter(batches), parabola, optimizer)
    if losses is None:
        return None
    listed = isinstance(losses, (list, tuple))
    other = f"an array of {len(losses)} and no list" if getattr(losses, "ndim", 0) == 1 else "no list"
    kind = "a tensor" if listed and any(map(torch.is_tensor, losses)) else "a plain number" if listed else "no list"
    return {"w at the end": round(model.w.item(), 3), "the gradients that step() found": optimizer.found,
            "the calls of backward()": len(backward),
            "the losses": [round(float(loss), 3) for loss in losses] if listed else other,
            "each loss": kind}


def _turns(*parts, lost=False):
    """A loop that takes these parts in this order: "clear", "backward", "step" and "keep". ``lost``: keep tensors."""
    def function(model, batches, loss_of, optimizer):
        losses = []
        for batch in batches:
            loss = loss_of(model, batch)
            for part in parts:
                if part == "keep":
                    losses.append(loss if lost else loss.item())
                else:
                    {"clear": optimizer.zero_grad, "backward": loss.backward, "step": optimizer.step}[part]()
        return losses
    return function


def _loss_after_the_step(model, batches, loss_of, optimizer):
    losses = []
    for batch in batches:
        train(model, [batch], loss_of, optimizer)
        losses.append(loss_of(model, batch).item())
    return losses


def _summed_losses(model, batches, loss_of, optimizer):
    """The total so far, which `backward` then goes through again: an error from the second turn on."""
    losses, total = [], 0.0
    for batch in batches:
        total = total + loss_of(model, batch)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        losses.append(total.item())
    return losses


_ORDERS = (  # turns with their parts in the wrong order, too few or too many
    ("not-cleared", "The gradients pile up: backward() adds to what is there, so the second step used the gradients of "
        "both batches. Clear them in every turn, before backward().", ("backward", "step", "keep")),
    ("no-backward", "step() was called, but no gradient was ever computed, so it had nothing to go by. Which call goes "
        "back through the loss and leaves the gradients?", ("clear", "step", "keep")),
    ("no-step", "The gradients are there, and nothing uses them: w never moved. Which call of the optimizer changes the "
        "parameters?", ("clear", "backward", "keep")),
    ("nothing-but-the-loss", "The loss is computed in every turn, and nothing is done with it. Clear the gradients, "
        "compute them, step.", ("keep",)),
    ("cleared-too-late", "backward() is called, but when step() comes there is no gradient: it has been cleared, or is "
        "not computed yet. The order is clear, backward, step.", ("backward", "clear", "step", "keep")),
    ("one-step-behind", "step() comes before backward(), so every step uses the gradient of the batch before. First the "
        "gradient of this loss, then the step.", ("step", "clear", "backward", "keep")),
    ("one-step-behind-not-cleared", "step() comes before backward(), and the gradients pile up, as no turn clears them. In "
        "every turn: clear, backward, step.", ("step", "backward", "keep")),
    ("two-steps", "You take two steps in every turn. One loss, one gradient, one step.",
        ("clear", "backward", "step", "step", "keep")),
)

LOOP = Exercise(train, use=_trained, probes=(
    Probe("one batch", _descent(3), "One batch, 3: the loss is (0 - 3)² = 9, its gradient -6, and the "
        "step leads to w = 0.6.", draws=1),
    Probe("two equal batches", _descent(3, 3), "Two batches, 3 and 3, as in the table: the losses are 9 "
        "and 5.76, the gradients -6 and -4.8, and w ends at 1.08.", draws=1),
    Probe("batches that differ", _descent(),
        "Every batch is another number, so every turn has a loss and a gradient of its own."),
    Probe("larger", _descent(*range(10), lr=0.3), "Ten batches: each is used, in one turn of the loop.", draws=1),
), misconceptions=(
    *((name, hint, _turns(*parts)) for name, hint, parts in _ORDERS),
    *((f"{name}-tensors-kept", f"{hint} And keep each loss as a plain number, loss.item().", _turns(*parts, lost=True))
      for name, hint, parts in _ORDERS),
    ("return-in-the-loop", "Only the first batch was used. Is your return inside the loop? Move it behind the loop.",
        lambda model, batches, loss_of, optimizer: train(model, [next(iter(batches))], loss_of, optimizer)),
    ("first-batch-lost", "The first batch was not used. `for batch in batches` begins with it.",
        lambda model, batches, *others: train(model, [*batches][1:], *others)),
    ("last-loss", "The training is right. Return the list of all losses, and not the last one: append each of them "
        "in its turn.", lambda model, batches, loss_of, optimizer: train(model, batches, loss_of, optimizer)[-1]),
    ("last-loss-in-a-list", "The training is right, and your list holds one loss. Make it before the loop, and "
        "append in it.", lambda model, batches, loss_of, optimizer: train(model, batches, loss_of, optimizer)[-1:]),
    ("array", "The training is right. A list of plain numbers is asked for, and you make an array or a "
        "tensor of them. Return the list itself.", lambda *args: np.array(train(*args))),
    ("no-losses", "The training is right, and the list that you return is empty. Append the loss in "
        "every turn, as a number.", lambda *args: train(*args)[:0]),
    ("tensors-kept", "The training is right. Keep the loss as a plain number, loss.item(), and not as a "
        "tensor: unless it is detached, it keeps with it everything that it was computed from.",
        _turns("clear", "backward", "step", "keep", lost=True)),
    ("loss-after-the-step", "The training is right. Keep the loss that you computed the gradient from; you compute "
        "it once more after the step, which costs time and makes the model look better.", _loss_after_the_step),
    ("losses-summed", "You add up the losses and go backward through the total, which the steps before "
        "have used up. Each turn has a loss of its own.", _summed_losses),
), nudges=(
    ("has no len|not subscriptable", "batches can be gone through once: `for batch in batches`."),
    ("backward through the graph a second time", "backward() can go through a loss once. Compute the "
        "loss anew in every turn, with that turn's batch."),
    ("'float' object has no attribute 'backward'", "item() makes a plain number of a tensor, and a "
        "number does not remember how it came about. First backward(), and item() only for the list."),
    ("does not require a? ?grad", "Nothing remembers how this loss was computed: is there a "
        "torch.no_grad(), a detach() or an item() too early?"),
    ("missing the required .forward", "loss_of takes the model itself: loss_of(model, batch) calls it."),
    ("missing 1 required positional|no attribute 'w'", "loss_of takes two things, the model first: loss_of(model, batch)."),
))


def check_loop(attempt):
    """Check a learner's loop on one parameter and say what is missing. Shows and returns an ``Outcome``."""
    outcome = evaluate(LOOP, attempt)
    outcome.show()
    return outcome


def loop_that_runs(attempt):
    """The learner's loop if it is right, else the course's; one printed line says which."""
    outcome = evaluate(LOOP, attempt)
    why = " Yours has not passed its check." if outcome.status in ("wrong", "error") else ""
    print("The loop that trains is", ("yours." if outcome else "the course's.") + why)
    return attempt if outcome else train


# ---------------------------------------------------------------- generate


class _Opinions:
    """Logits ``(len, V)`` in which each place's row depends on all ids up to it, and on their order."""

    def __init__(self, vocabulary, rng):
        self.noise = torch.tensor(rng.normal(size=vocabulary))

    def __call__(self, ids):
        if any(isinstance(i, list) or getattr(i, "ndim", 0) for i in ids):
            raise TypeError("logits_of takes one list of ids, and got a list or tensor of several")
        totals = np.cumsum([(place + 2) * int(i) + 1 for place, i in enumerate(ids)])
        return torch.stack([self.noise.roll(int(total)) * (1 + total % 3) for total in totals])


@inputs
def _begun(rng, length, n, V=7, choose=lambda logits: int(logits.argmax()), first=None):
    ids = [int(i) for i in rng.integers(0, V, size=length)] if first is None else list(first)
    return _Opinions(V, rng), ids, n, choose


@variants
def _written(logits_of, ids, n, choose, *, reads=lambda given, new: [*given, *new], row=lambda logits: logits[-1],
             pick=lambda choose, logits: choose(logits), turns=lambda given, n: n, back=lambda given, new: [*given, *new]):
    """The reference with one of its steps exchanged. ``given``: the ids at the beginning; ``new``: those written since."""
    new = []
    for _ in range(turns(ids, n)):
        new.append(int(pick(choose, row(logits_of(reads(ids, new))))))
    return back(ids, new)


def _chosen_side_by_side(logits_of, ids, n, choose):
    """Of each place the one that comes next, as in training, and the last n of them."""
    rows = logits_of(ids)
    return [*ids, *(choose(rows[i]) for i in range(max(0, len(rows) - n), len(rows)))]


def _append_assigned(logits_of, ids, n, choose):
    out = list(ids)
    for _ in range(n):
        out = out.append(choose(logits_of(out)[-1]))
    return out


GENERATE = Exercise(generate, use=as_list, probes=(
    Probe("one id, one more", _begun(1, 1), "One id, and one is to be written: logits_of([id]) has one row, and "
        "choose takes it."),
    Probe("none more", _begun(3, 0), "n is 0: nothing is written, a copy of ids comes back.", draws=1, special=True),
    Probe("two more", _begun(2, 2), "Two are written. The second is chosen from what the model says after ALL "
        "that is there then, the first one included."),
    Probe("seven more", _begun(2, 7), "Seven are written, each after ALL that is there by then: the model reads the "
        "whole list, however long it is."),
    Probe("another choice", _begun(3, 4, choose=lambda logits: int(logits.topk(2).indices[1])),
        "`choose` takes the second largest here. Use it, whatever it is.", special=True),
    Probe("a choice by the numbers", _begun(3, 3, choose=lambda logits: int(logits.abs().argmin())),
        "`choose` looks at the numbers here: it is given the logits as they are.", special=True),
    Probe("another choice by the numbers", _begun(2, 4, choose=lambda logits: int((logits - 1).abs().argmin())),
        "`choose` looks at the numbers here: it is given the logits as they are.", special=True),
    Probe("the id 0", _begun(3, 5, V=2, first=(0, 0, 0)), "There are two words, 0 and 1. The id 0 is one like any "
        "other.", special=True),
), misconceptions=(
    ("new-ones-only", "You give only what was written. What comes back is the whole list: ids, and the new ones "
        "behind them.", _written(back=lambda given, new: new)),
    ("last-one-only", "You give the last id alone. What comes back is the whole list.",
        _written(back=lambda given, new: [*given, *new][-1])),
    ("read-once", "What you ask the model about never grows, so it says the same each time. Ask it in every turn, "
        "about all that is there by then.", _written(reads=lambda given, new: given)),
    ("append-assigned", "append changes the list and gives back None, which `=` then puts in the list's place. "
        "Write out.append(…) alone.", _append_assigned),
    ("last-id-read-only", "You give the model the last id alone, so that it knows of nothing before it. It reads "
        "all that is there.", _written(reads=lambda given, new: [*given, *new][-1:])),
    ("one-behind", "The model reads all but the newest id. Append it before you ask again.",
        _written(reads=lambda given, new: [*given, *new[:-1]])),
    ("first-place", "You take the logits of the first place, which say what follows the first id. The last place "
        "is row -1.", _written(row=lambda logits: logits[0])),
    ("place-before-last", "You take the place before the last, which says what should come where the last id is "
        "already.", _written(row=lambda logits: logits[max(-2, -len(logits))])),
    ("last-column", "logits[:, -1] is a column, the last word's logits at all places. What is asked for is the "
        "last ROW, logits[-1].", _written(row=lambda logits: logits[:, -1], pick=lambda choose, z: z.argmax())),
    ("all-places", "You give choose the logits of all places. It takes (V,), those of the last place.",
        _written(row=same)),
    ("mean-of-places", "You average over the places. Only the last one says what comes next.",
        _written(row=lambda logits: logits.mean(0))),
    ("always-the-likeliest", "You take the argmax whatever `choose` is. How a word is chosen is up to `choose`.",
        _written(pick=lambda choose, logits: logits.argmax())),
    ("probabilities", "You put a softmax before choose. It takes the logits as they are, and does with them what "
        "it wants.", _written(pick=lambda choose, logits: choose(logits.softmax(-1)))),
    ("log-probabilities", "You take the log of a softmax before choose. It takes the logits as they are.",
        _written(pick=lambda choose, logits: choose(logits.log_softmax(-1)))),
    ("up-to-n", "You write until there are n ids in all. n counts the new ones.",
        _written(turns=lambda given, n: max(0, n - len(given)))),
    ("one-too-many", "You write one id too many: n turns, and no more.", _written(turns=lambda given, n: n + 1)),
    ("one-too-few", "You write one id too few: n turns, each writes one.", _written(turns=lambda given, n: n - 1)),
    ("first-turn-only", "Only one id is written. Is your return inside the loop?",
        _written(turns=lambda given, n: min(n, 1))),
    ("in-front", "You put the new ids in front. A text grows at its end.", _written(
        reads=lambda given, new: [*new[::-1], *given], back=lambda given, new: [*new[::-1], *given])),
    ("a-list-for-each", "Every new id is a list inside your list. Append the id itself.",
        _written(back=lambda given, new: [*given, *([i] for i in new)])),
    ("side-by-side", "You choose the last n places' next ids all at once. Each new id has to be there before the "
        "next is chosen: a loop of n turns.", _chosen_side_by_side),
    ("read-once-likeliest", "You ask the model once, and take the n largest logits. Ask it in every turn, after "
        "all that is there, and let `choose` choose one.",
        lambda logits_of, ids, n, choose: [*ids, *logits_of(ids)[-1].topk(min(n, 2)).indices.tolist()]),
    ("read-once-and-turned", "You give the ids twice: what comes back is ids, once, and the new ones behind them.",
        _written(back=lambda given, new: [*given, *given, *new])),
), nudges=(
    ("takes one list of ids", "logits_of takes the list of ids "
        "itself: no tensor, and no list around it. It gives (len, V): no batch in front."),
    ("too many indices", "logits_of gives (len, V), without a batch in front: its last row is [-1]."),
    ("Tensor' object has no attribute 'append'", "ids is a list, and so should your copy of it be: list(ids)."),
))


# ---------------------------------------------------------------- perplexity


@inputs
def _batches(rng, n, low=0.5, high=4.0, counts=(1, 60)):
    return torch.tensor(rng.uniform(low, high, size=n)), torch.tensor(rng.integers(*counts, size=n))


def _guessing(rng):
    return torch.full((1,), math.log(int(rng.integers(3, 20)))).double(), torch.tensor(rng.integers(2, 9, size=1))


def _mean(losses, counts):
    return (losses * counts).sum() / counts.sum()


PERPLEXITY = Exercise(perplexity, probes=(
    Probe("guessing", _guessing, "One batch whose loss is log(n): the model guesses among n words, and "
        "the perplexity is n, however many tokens there are."),
    Probe("two batches",
        lambda rng: (torch.tensor(rng.uniform(0.5, 3, size=2)), torch.tensor(rng.permutation([2, 40]))),
        "One batch has 20 times the tokens of the other, so its loss counts 20 times as much."),
    Probe("many batches", _batches(9),
        "exp(Σ losses · counts / Σ counts): the mean loss of a token first, exp last."),
), misconceptions=(
    ("unweighted", "Each batch counts the same in your mean, whatever its size. Weight its loss by its "
        "number of tokens.", lambda losses, counts: losses.mean().exp()),
    ("exp-first", "You take exp of each batch and average then. Average the losses first: exp of a mean "
        "is not the mean of exp.", lambda losses, counts: _mean(losses.exp(), counts)),
    ("exp-first-unweighted", "You average the perplexities of the batches. Average the losses, weighted "
        "by their tokens, and take exp at the end.", lambda losses, counts: losses.exp().mean()),
    ("no-exp", "You return the mean loss. The perplexity is exp of it.", _mean),
    ("base-2", "You raise 2 to the mean loss. The losses are in nats: use exp.",
        lambda losses, counts: 2 ** _mean(losses, counts)),
    ("sum", "You do not divide by the number of tokens, so a longer text is harder. Divide by Σ counts.",
        lambda losses, counts: (losses * counts).sum().clamp(max=600).exp()),
    ("divided-by-batches", "You divide by the number of batches. The losses are weighted by tokens: divide by the "
        "number of tokens.", lambda losses, counts: ((losses * counts).sum() / len(counts)).clamp(max=600).exp()),
    ("losses-taken-for-sums", "You divide the sum of the losses by the tokens. Each loss is a mean already: "
        "multiply it by its count first.", lambda losses, counts: (losses.sum() / counts.sum()).exp()),
    ("sign", "Your perplexity is below 1: exp of minus the loss is a probability. Use exp of the loss.",
        lambda losses, counts: (-_mean(losses, counts)).exp()),
    ("product", "You multiply the perplexities of the batches. That is exp of the sum of the losses: weight them by "
        "the tokens first, and divide by all tokens.", lambda losses, counts: losses.sum().exp()),
), contracts=(
    Contract("a count missing", lambda rng: (torch.ones(3), torch.ones(2))),
    Contract("no tokens at all", lambda rng: (torch.ones(2), torch.zeros(2))),
), nudges=(
    ("and Long|Long and", "The counts are whole numbers, and torch wants one kind here: counts.to(losses.dtype)."),
))

EXERCISES = (LANGUAGE_MODEL_LOSS, LANGUAGE_MODEL, GENERATE, SAMPLE_NEXT, PERPLEXITY)
