"""The exercises of lesson 11: the loss of a language model, sampling, perplexity. Inputs are torch
tensors."""

import math
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional as F

from helpers.checks.core import Contract, Exercise, Misconception, Probe, larger
from helpers.transformer import language_model_loss, perplexity, sample_next

# ---------------------------------------------------------------- language_model_loss


def _text(B, T, V, pad=0, padding=0, scale=2.0):
    """Logits, and rows of words (never ``pad``) with up to ``padding`` pads behind each, a different number
    in each."""
    def make(rng):
        words = [i for i in range(V) if i != pad]
        tokens = rng.choice(words, size=(B, T))
        for row, length in zip(tokens, T - rng.permutation(np.linspace(0, padding, B).astype(int)),
                               strict=True):
            row[length:] = pad
        return torch.tensor(rng.normal(size=(B, T, V)) * scale), torch.tensor(tokens), pad
    return make


def _losses(logits, target):
    """(B, T, V), (B, T) -> (B, T): nats of each target."""
    return -logits.log_softmax(-1).gather(-1, target[..., None])[..., 0]


def _average(loss, keep):
    return (loss * keep).sum() / keep.sum()


def _shifted(logits, tokens):
    return logits[:, :-1], tokens[:, 1:]


def _of_losses(change):
    """The reference up to the loss of each target, ``(B, T-1)``; then ``change(losses, keep)``."""
    def function(logits, tokens, pad):
        predicted, target = _shifted(logits, tokens)
        return change(_losses(predicted, target), target != pad)
    return function


def _no_shift(logits, tokens, pad):
    return _average(_losses(logits, tokens), tokens != pad)


def _backwards(logits, tokens, pad):
    return _average(_losses(logits[:, 1:], tokens[:, :-1]), tokens[:, :-1] != pad)


def _inputs_decide(logits, tokens, pad):
    return _average(_losses(*_shifted(logits, tokens)), tokens[:, :-1] != pad)


def _pad_is_zero(logits, tokens, pad):
    return language_model_loss(logits, tokens, 0)


def _rows_joined(logits, tokens, pad):
    target = tokens.flatten()[1:]
    return _average(_losses(logits.flatten(0, 1)[:-1][None], target[None]), (target != pad)[None])


def _softmax_twice(logits, tokens, pad):
    return language_model_loss(logits.softmax(-1), tokens, pad)


def _log_of_softmax(logits, tokens, pad):
    predicted, target = _shifted(logits, tokens)
    return _average(-predicted.softmax(-1).gather(-1, target[..., None])[..., 0].log(), target != pad)


def _over_positions(logits, tokens, pad):
    predicted, target = _shifted(logits, tokens)
    return _average(-predicted.log_softmax(1).gather(-1, target[..., None])[..., 0], target != pad)


def _no_softmax(logits, tokens, pad):
    predicted, target = _shifted(logits, tokens)
    return _average(-predicted.gather(-1, target[..., None])[..., 0], target != pad)


def _not_flattened(logits, tokens, pad):
    return F.cross_entropy(*_shifted(logits, tokens), ignore_index=pad)


LANGUAGE_MODEL_LOSS = Exercise(
    reference=language_model_loss,
    probes=(
        Probe("one prediction", _text(1, 2, 4), (
            "With T = 2 there is one prediction: the logits at position 0 for the token at position 1. The "
            "last logits predict a token that is not in the text."
        )),
        Probe("one row", _text(1, 5, 4), (
            "One row without padding, T = 5: logits 0 to 3 predict tokens 1 to 4. The loss is the mean of "
            "these four."
        )),
        Probe("one row, padding", _text(1, 6, 5, padding=2), (
            "The last two tokens are padding. Targets that are padding do not count, in the sum or in the "
            "number to divide by."
        )),
        Probe("two rows", _text(2, 3, 4), (
            "Shift each row for itself: the last token of a row has nothing to do with the first of the "
            "next row."
        )),
        Probe("rows of different lengths", _text(3, 6, 5, padding=4), (
            "The rows are of different lengths. The mean is over all targets that are not padding, each "
            "with the same weight."
        )),
        Probe("another id for padding", _text(2, 5, 6, pad=3, padding=2), (
            "Here pad is 3, and 0 is a word like any other. Use the argument pad."
        )),
        Probe(
            "padding in front",
            lambda rng: tuple(x.flip(1) if i < 2 else x
                              for i, x in enumerate(_text(3, 6, 5, padding=3)(rng))),
            (
                "The padding stands in front of the words here. Only a *target* that is padding is left out: "
                "the first word of such a row counts, although the input before it is padding."
            ),
        ),
        Probe("large logits", _text(2, 4, 5, scale=2000.0), (
            "The logits are in the thousands here, so exp overflows or a probability rounds to 0. Use "
            "log_softmax or cross_entropy, which are safe."
        ), extreme=True),
        Probe("many words", _text(4, 7, 23, pad=5, padding=3), (
            "B = 4, T = 7 and V = 23 here, with padding. The softmax is over the V words."
        )),
        larger(_text(9, 10, 12, padding=4)),
    ),
    misconceptions=(
        Misconception("no-shift", (
            "You compare the logits at t with the token at t. That token is what the model has just read; "
            "it has to predict the one after it, at t + 1."
        ), _no_shift),
        Misconception("backwards", (
            "You shift the wrong way: the logits at t + 1 are compared with the token at t. The model "
            "predicts the next token, not the one before."
        ), _backwards),
        Misconception("pad-counts", (
            "Padding counts as a word to predict. Leave out the targets that equal pad."
        ), _of_losses(lambda loss, keep: loss.mean())),
        Misconception("pads-in-the-divisor", (
            "The loss of padding is 0, but you divide by all targets. Divide by the number of those that "
            "are not padding, or texts with much padding seem easy."
        ), _of_losses(lambda loss, keep: (loss * keep).mean())),
        Misconception("inputs-decide", (
            "You leave out the places where the *input* is padding. Look at the target: at the last word of "
            "a row the input is a word, and the target is padding."
        ), _inputs_decide),
        Misconception("pad-is-0", (
            "You take 0 for padding, whatever pad is. Compare the targets with the argument pad."
        ), _pad_is_zero),
        Misconception("sum", (
            "You return the sum. The mean does not depend on how long the texts are: divide by the number "
            "of targets that are not padding."
        ), _of_losses(lambda loss, keep: (loss * keep).sum())),
        Misconception("divided-by-rows", (
            "You divide by the number of rows. Divide by the number of targets that are not padding."
        ), _of_losses(lambda loss, keep: (loss * keep).sum() / len(loss))),
        Misconception("mean-of-means", (
            "You average each row first, and then the rows. So a word in a short row counts more than one "
            "in a long row. Take one mean over all targets."
        ), _of_losses(lambda loss, keep: ((loss * keep).sum(1) / keep.sum(1)).mean())),
        Misconception("rows-joined", (
            "You flatten first and shift then, so the last logits of a row have to predict the first word "
            "of the next row. Shift each row first: logits[:, :-1] and tokens[:, 1:]."
        ), _rows_joined),
        Misconception("softmax-twice", (
            "You apply a softmax before cross_entropy, which has one inside. Give it the logits themselves."
        ), _softmax_twice),
        Misconception("log-of-softmax", (
            "Softmax first and the logarithm then is right on paper. But the probability of a very "
            "improbable word is rounded to 0, and log 0 is -inf. Use log_softmax or cross_entropy, which "
            "take both steps in one."
        ), _log_of_softmax),
        Misconception("softmax-over-positions", (
            "Your softmax runs over the positions. The probabilities of the V words sum to 1: use the last "
            "axis."
        ), _over_positions),
        Misconception("no-softmax", (
            "You take the logit of the target itself. The loss is minus the logarithm of its probability: "
            "log_softmax first."
        ), _no_softmax),
        Misconception("sign", (
            "Your loss is negative: log p is below 0. The loss is -log p."
        ), _of_losses(lambda loss, keep: -_average(loss, keep))),
        Misconception("bits", (
            "Your loss is in bits, with the logarithm to base 2. Use the natural logarithm, so that it is "
            "in nats."
        ), _of_losses(lambda loss, keep: _average(loss, keep) / math.log(2))),
        Misconception("perplexity", (
            "You return exp of the mean loss, which is the perplexity. Return the mean itself."
        ), _of_losses(lambda loss, keep: _average(loss, keep).exp())),
        Misconception("mean-probability", (
            "You average the probabilities and take the logarithm then. Take the logarithm of each first: "
            "the loss is the mean of -log p."
        ), _of_losses(lambda loss, keep: -_average((-loss).exp(), keep).log())),
        Misconception("not-flattened", (
            "cross_entropy takes the classes from axis 1, so (B, T, V) does not fit. Flatten batch and "
            "positions into one axis: (B·(T-1), V) against (B·(T-1),)."
        ), _not_flattened),
    ),
    contracts=(Contract("a text of one token",
                        lambda rng: (torch.zeros(2, 1, 4), torch.ones(2, 1, dtype=torch.long), 0)),),
)

# ---------------------------------------------------------------- sample_next

DRAWS = 300  # a share of 300 draws has a standard deviation of at most 0.03
AGAIN = 30


def _draws(function, logits, temperature, top_k, generator):
    """What many calls give: the form of one draw; the share of each word; whether the same generator gives
    the same."""
    same = generator.clone_state()
    drawn = [function(logits, temperature, top_k, generator) for _ in range(DRAWS)]
    if drawn[0] is None:
        return None
    again = [function(logits, temperature, top_k, same) for _ in range(AGAIN)]
    form = np.zeros_like(drawn[0].detach().numpy() if hasattr(drawn[0], "detach") else np.asarray(drawn[0]))
    ids = np.array([int(i) for i in drawn])
    share = np.bincount(ids.clip(0), minlength=len(logits)) / DRAWS
    known = bool((ids >= 0).all()) and len(share) == len(logits)
    return form, share if known else np.full(len(logits),
                                             np.nan), bool((ids[:AGAIN] == [int(i) for i in again]).all())


def _word(logits, temperature, top_k, shuffle=True):
    """Logits, in any order and with any number added to all of them."""
    def make(rng):
        z = np.array(logits, dtype=float) + rng.uniform(-3, -2)
        z = rng.permutation(z) if shuffle else z
        return torch.tensor(z), temperature, top_k, torch.Generator().manual_seed(int(rng.integers(2**31)))
    return make


def _pick(p, generator):
    return int(torch.multinomial(p, 1, generator=generator))


def _top(logits, k):
    return logits.topk(len(logits) if k is None else min(k, len(logits)))


def _sampler(warm=lambda z, t: z / t, keep=None, draw=None, zero=True):
    """The reference with the faults that the arguments choose. ``keep(z, k)``: logits after top-k, all V of
    them."""
    def function(logits, temperature, top_k, generator):
        if temperature == 0 and zero:
            return int(logits.argmax())
        z = warm(logits, temperature)
        if keep is None:
            z = z.masked_fill(z < _top(z, top_k)[0][-1], -torch.inf)
        elif top_k is not None:
            z = keep(z, top_k)
        return (draw or (lambda p, generator: _pick(p, generator)))(z.softmax(-1), generator)
    return function


def _lowest(z, k):
    return z.masked_fill(z > z.topk(min(k, len(z)), largest=False)[0][-1], -torch.inf)


def _strictly_above(z, k):
    return z.masked_fill(z <= z.topk(min(k, len(z)))[0][-1], -torch.inf)


def _place_in_the_list(logits, temperature, top_k, generator):
    if temperature == 0:
        return int(logits.argmax())
    return _pick((_top(logits, top_k)[0] / temperature).softmax(-1), generator)


def _not_renormalised(logits, temperature, top_k, generator):
    """Inverse of the cumulated probability, which does not reach 1: the last word gets the rest."""
    if temperature == 0:
        return int(logits.argmax())
    p = (logits / temperature).softmax(-1)
    p = p * (logits >= _top(logits, top_k)[0][-1])
    u = torch.rand(1, generator=generator, dtype=torch.float64)
    return int((p.cumsum(0) < u).sum().clamp(max=len(p) - 1))


def _too_large(logits, temperature, top_k, generator):
    if temperature == 0:
        return int(logits.argmax())
    kept, ids = logits.topk(len(logits) if top_k is None else top_k)
    return int(ids[_pick((kept / temperature).softmax(-1), generator)])


def _none(logits, temperature, top_k, generator):
    if temperature == 0:
        return int(logits.argmax())
    kept, ids = logits.topk(min(top_k, len(logits)))
    return int(ids[_pick((kept / temperature).softmax(-1), generator)])


def _uniform(logits, temperature, top_k, generator):
    ids = _top(logits, top_k)[1]
    if temperature == 0:
        return int(ids[0])
    return int(ids[torch.randint(len(ids), (1,), generator=generator)])


def _seeded_inside(p, generator):
    return _pick(p, torch.Generator().manual_seed(0))


def _tensor(logits, temperature, top_k, generator):
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    kept, ids = _top(logits, top_k)
    return ids[torch.multinomial((kept / temperature).softmax(-1), 1, generator=generator)]


def _probability(logits, temperature, top_k, generator):
    return float((logits / max(temperature, 1e-3)).softmax(-1)[sample_next(logits, temperature, top_k,
                                                                           generator)])


SHARES = f" (The second result is the share of each word in {DRAWS} draws.)"
WIDE = {"absolute": 0.17, "draws": 1}  # four standard deviations of the difference of two shares
SAMPLE_NEXT = Exercise(
    reference=sample_next,
    use=_draws,
    probes=(  # those that tell most mistakes apart stand first, which saves time
        Probe("the best three, hot", _word([0.0, 0.5, 1.0, 1.5, 9.0, 12.0], 2.0, 3), (
            ("Both at once: keep the three largest logits, divide by the temperature, softmax over what is "
             "left.") + SHARES
        ), **WIDE),
        Probe("temperature 1", _word([0.0, 0.0, 1.8], 1.0, None), (
            "At temperature 1 a word's share is softmax(logits), about 0.75 for the largest here." + SHARES
        ), **WIDE),
        Probe("nearly equal words", _word([0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14], 1.0, None), (
            "Eight words with nearly the same logit: each comes up about once in eight draws." + SHARES
        ), absolute=0.12, draws=1),
        Probe("hot", _word([0.0, 0.0, 0.0, 10.5], 7.0, None), (
            ("The logits are divided by the temperature before the softmax. At 7 the difference of 10.5 is a "
             "difference of 1.5.") + SHARES
        ), **WIDE),
        Probe("cold", _word([0.0, 0.1, 0.2, 1.6], 0.1, None), (
            ("A low temperature makes differences larger: dividing 1.4 by 0.1 gives 14, so nearly all draws "
             "are the largest.") + SHARES
        ), **WIDE),
        Probe("the best two", _word([0.2, 1.0, 0.0, 0.8, 0.4], 1.0, 2, shuffle=False), (
            "With top_k = 2 the words with the two largest logits share all draws, and the others get "
            "none." + SHARES
        ), **WIDE),
        Probe("the best one", _word([0.0, 0.5, 1.0, 1.5], 1.0, 1), (
            "With top_k = 1 there is one word left, the one with the largest logit." + SHARES
        ), draws=1),
        Probe("all of them", _word([0.0, 2.0, 4.0], 2.0, 3), (
            "With top_k = V every word may be drawn." + SHARES
        ), **WIDE),
        Probe("top_k above V", _word([0.0, 2.0, 4.0], 2.0, 5), (
            "top_k is larger than the vocabulary: then all words count. min(top_k, V) does it." + SHARES
        ), **WIDE),
        Probe("one word", _word([0.0], 1.0, None), (
            "With one word in the vocabulary there is one answer, 0."
        ), draws=1),
        Probe("temperature 0", _word([0.0, 0.4, 0.8, 0.6, 0.2], 0, None), (
            "Temperature 0 is the limit of no chance at all: always the largest logit. Do not divide by 0."
            + SHARES
        ), draws=3),
        replace(larger(_word([0.1 * i for i in range(8)] + [2.0, 3.0], 1.0, 9)), **WIDE),
    ),
    misconceptions=(
        Misconception("multiplied", (
            "You multiply by the temperature. Divide: a high temperature makes the words more equal."
        ), _sampler(warm=lambda z, t: z * t)),
        Misconception("temperature-ignored", (
            "The temperature has no effect. Divide the logits by it *before* the softmax; divided after it, "
            "all probabilities change alike, and normalising undoes that."
        ), _sampler(warm=lambda z, t: z)),
        Misconception("always-the-best", (
            "You take the largest logit every time. Draw: each word has its probability, and argmax is only "
            "for temperature 0."
        ), lambda logits, temperature, top_k, generator: int(logits.argmax())),
        Misconception("divides-by-0", (
            "At temperature 0 you divide by 0, and NaN cannot be drawn from. Treat 0 apart: the word with "
            "the largest logit."
        ), _sampler(zero=False)),
        Misconception("top-k-ignored", (
            "top_k has no effect. Only the words with the k largest logits may be drawn."
        ), _sampler(keep=lambda z, k: z)),
        Misconception("lowest-k", (
            "You keep the words with the *smallest* logits. topk gives the largest by itself."
        ), _sampler(keep=_lowest)),
        Misconception("place-in-the-list", (
            "You return the place in the list that topk gives. That is 0 for the largest logit, whichever "
            "word it is: look up its id in the indices that topk gives too."
        ), _place_in_the_list),
        Misconception("zero-instead-of-inf", (
            "You set the logits of the other words to 0, and e⁰ is 1, not 0. Use minus infinity, as in "
            "masking."
        ), _sampler(keep=lambda z, k: z * (z >= _top(z, k)[0][-1]))),
        Misconception("drops-the-kth", (
            "You keep the words *above* the k-th largest logit, which are k - 1. Keep the k-th too."
        ), _sampler(keep=_strictly_above)),
        Misconception("one-too-many", (
            "You keep k + 1 words. The k-th largest is at index k - 1."
        ), _sampler(keep=lambda z, k: z.masked_fill(z < _top(z, k + 1)[0][-1], -torch.inf))),
        Misconception("not-renormalised", (
            "After top-k your probabilities no longer sum to 1, and what is missing goes to one word. Take "
            "the softmax over the words that are left."
        ), _not_renormalised),
        Misconception("top-k-above-V", (
            "topk stops when k is larger than the number of words. Use min(top_k, V)."
        ), _too_large),
        Misconception("none-not-handled", (
            "top_k = None means no limit. Treat None apart before you compare it or count with it."
        ), _none),
        Misconception("all-equal", (
            "All words that are left are equally probable in your draws. Draw with the probabilities that "
            "the softmax gives."
        ), _uniform),
        Misconception("own-chance", (
            "The draws do not depend on the generator: the same state gave other words. Pass it on: "
            "generator=generator."
        ), _sampler(draw=lambda p, generator: _pick(p, None))),
        Misconception("seeded-inside", (
            "Every call draws the same word, because you seed inside the function. Use the generator that "
            "you are given, which moves on with each draw."
        ), _sampler(draw=_seeded_inside)),
        Misconception("tensor", (
            "You return a tensor with one number in it. Return an int: int(...) or .item()."
        ), _tensor),
        Misconception("probability", (
            "You return a probability. Return the id of the word drawn."
        ), _probability),
    ),
    contracts=(
        Contract("a negative temperature",
            lambda rng: (torch.zeros(3), -1.0, None, torch.Generator().manual_seed(0))),
        Contract("top_k = 0", lambda rng: (torch.zeros(3), 1.0, 0, torch.Generator().manual_seed(0))),
    ),
)

# ---------------------------------------------------------------- perplexity


def _batches(n, low=0.5, high=4.0, counts=(1, 60)):
    def make(rng):
        return torch.tensor(rng.uniform(low, high, size=n)), torch.tensor(rng.integers(*counts, size=n))
    return make


def _sure(rng):
    return torch.zeros(2).double(), torch.tensor(rng.integers(1, 9, size=2))


def _guessing(rng):
    return torch.full((1,), math.log(int(rng.integers(3, 20)))).double(), torch.tensor(rng.integers(2, 9,
                                                                                                    size=1))


def _mean(losses, counts):
    return (losses * counts).sum() / counts.sum()


PERPLEXITY = Exercise(
    reference=perplexity,
    probes=(
        Probe("guessing", _guessing, (
            "One batch whose loss is log(n): the model guesses among n words, and the perplexity is n, "
            "however many tokens there are."
        )),
        Probe("certain", _sure, (
            "A loss of 0 means that every word was certain: the perplexity is 1."
        ), draws=1),
        Probe(
            "batches of one size",
            lambda rng: (torch.tensor(rng.uniform(0.5, 4, size=3)), torch.tensor([7, 7, 7])),
            "All batches have the same number of tokens: exp of the mean loss.",
        ),
        Probe(
            "two batches",
            lambda rng: (torch.tensor(rng.uniform(0.5, 3, size=2)), torch.tensor(rng.permutation([2, 40]))),
            "One batch has 20 times the tokens of the other, so its loss counts 20 times as much.",
        ),
        Probe("many batches", _batches(9), (
            "exp(Σ losses · counts / Σ counts): the mean loss of a token first, exp last."
        )),
        Probe(
            "an empty batch",
            lambda rng: (torch.tensor(rng.uniform(0.5, 3, size=3)), torch.tensor([5, 0, 11])),
            "One batch has no tokens. It counts nothing.",
        ),
    ),
    misconceptions=(
        Misconception("unweighted", (
            "Each batch counts the same in your mean, whatever its size. Weight its loss by its number of "
            "tokens."
        ), lambda losses, counts: losses.mean().exp()),
        Misconception("exp-first", (
            "You take exp of each batch and average then. Average the losses first: exp of a mean is not "
            "the mean of exp."
        ), lambda losses, counts: _mean(losses.exp(), counts)),
        Misconception("exp-first-unweighted", (
            "You average the perplexities of the batches. Average the losses, weighted by their tokens, and "
            "take exp at the end."
        ), lambda losses, counts: losses.exp().mean()),
        Misconception("no-exp", "You return the mean loss. The perplexity is exp of it.", _mean),
        Misconception("base-2", (
            "You raise 2 to the mean loss. The losses are in nats: use exp."
        ), lambda losses, counts: 2 ** _mean(losses, counts)),
        Misconception("sum", (
            "You do not divide by the number of tokens, so a longer text is harder. Divide by Σ counts."
        ), lambda losses, counts: (losses * counts).sum().clamp(max=600).exp()),
        Misconception("divided-by-batches", (
            "You divide by the number of batches. The losses are weighted by tokens, so divide by the "
            "number of tokens."
        ), lambda losses, counts: ((losses * counts).sum() / len(counts)).clamp(max=600).exp()),
        Misconception("losses-taken-for-sums", (
            "You divide the sum of the losses by the tokens. Each loss is a mean already: multiply it by "
            "its count first."
        ), lambda losses, counts: (losses.sum() / counts.sum()).exp()),
        Misconception("sign", (
            "Your perplexity is below 1: exp of minus the loss is a probability. Use exp of the loss."
        ), lambda losses, counts: (-_mean(losses, counts)).exp()),
        Misconception("product", (
            "You multiply the perplexities of the batches. That is exp of the sum of the losses: divide by "
            "something first, namely weight by the tokens and divide by all of them."
        ), lambda losses, counts: losses.sum().exp()),
        Misconception("minus-1", (
            "You subtract 1. A perplexity of 1 means that every word is certain."
        ), lambda losses, counts: torch.expm1(_mean(losses, counts))),
    ),
    contracts=(
        Contract("a count missing", lambda rng: (torch.ones(3), torch.ones(2))),
        Contract("no tokens at all", lambda rng: (torch.ones(2), torch.zeros(2))),
    ),
)

EXERCISES = (LANGUAGE_MODEL_LOSS, SAMPLE_NEXT, PERPLEXITY)
