"""The exercises of lesson 19: better than usual, a loss from rewards, the leash, the best of n, a loss from pairs."""

import math
from itertools import pairwise

import torch
from torch.nn import functional as F

from helpers.checks.core import Contract, Exercise, Probe, example, inputs, larger, variants
from helpers.reward import advantages, best_of_n, dpo_loss, kl_to_reference, policy_gradient_loss


def _tensor(x):
    return torch.tensor(x, dtype=torch.float64)


# ---------------------------------------------------------------- advantages


@inputs
def _rewards(rng, G, n, size=1.0, shift=0.0):
    """Each group has a level and a spread of its own."""
    levels, spreads = rng.normal(size=(G, 1)) * 3, rng.uniform(0.5, 3, size=(G, 1))
    return (_tensor((levels + spreads * rng.normal(size=(G, n))) * size + shift),)


def _same(x):
    return x


def _mean(r, axis=-1):
    return r.mean(axis, keepdim=True)


def _std(r, axis=-1, fewer=0, root=torch.sqrt):
    return root(r.var(axis, correction=fewer, keepdim=True))


@variants
def _compared(r, *, usual=_mean, spread=_std, axis=-1, fewer=0, root=torch.sqrt, sign=1, eps=1e-6):
    """The reference with something else that is usual, or that the rewards are divided by; along another axis, with n less
    ``fewer`` below the line, and so on."""
    return sign * (r - usual(r, axis)) / (spread(r, axis, fewer, root) + eps)


ADVANTAGES = Exercise(advantages, probes=(
    Probe("two texts", _rewards(1, 2), "One group of two texts: the better one is 1 standard deviation "
        "above the mean, the other 1 below, so the result is close to 1 and -1."),
    Probe("more groups than texts", _rewards(5, 2),
        "Five groups of two: the mean and the spread are taken along a row, over its n texts."),
    Probe("as many groups as texts", _rewards(4, 4), "G and n are both 4 here, so nothing warns you: "
        "does each row use its own mean? Keep the axis, with keepdim=True."),
    example("equal rewards", (_tensor([[2.0, 2.0, 2.0], [0.0, 1.0, 5.0]]),), "In the first group all texts got "
        "the same reward: none is better than usual, and all advantages are 0.", extreme=True),
    Probe("rewards that hardly differ", _rewards(2, 3, size=2e-6), "The standard deviation is about as small as "
        "1e-6 here: it shows where that is added: to the standard deviation, after the root.", extreme=True),
    larger(_rewards(9, 11)),
), misconceptions=(
    ("nothing-subtracted", "You give the rewards themselves. Subtract what is usual in the group, its "
        "mean, and divide.", lambda r: r * 1.0),
    ("not-divided", "The mean is subtracted. Now divide by the standard deviation of the row, so that a "
        "reward counted in hundreds teaches no faster than one counted in ones.", _compared(spread=lambda *_: 1.0)),
    ("mean-not-subtracted", "You divide by the standard deviation, and have not subtracted the mean: an "
        "average text should get 0.", _compared(usual=lambda *_: 0.0)),
    ("all-texts-together", "You compare all texts with one another. A text is judged by its own group, "
        "those with the same beginning: one mean and one standard deviation for each row.", _compared(axis=(0, 1))),
    ("one-spread", "The means are those of the rows, but you divide all by one standard deviation. Each "
        "row has its own.", _compared(spread=lambda r, _, fewer, root: root(r.var(correction=fewer)))),
    ("one-mean", "You subtract one mean from all texts, and divide by the spread of each row. Each row "
        "has its own mean too.", _compared(usual=lambda r, _: r.mean())),
    ("columns", "You compare down the columns, texts of different beginnings. A group is a row: the last axis.",
        _compared(axis=0)),
    ("n-minus-1", "You divide by the standard deviation with n - 1, which is what torch does when it is not told "
        "otherwise. Here it is n: unbiased=False.", _compared(fewer=1)),
    ("variance", "You divide by the variance. Take its root.", _compared(root=_same)),
    ("eps-inside", "The 1e-6 is under the root. It is added to the standard deviation itself.",
        lambda r: (r - _mean(r)) / torch.sqrt(_std(r) ** 2 + 1e-6)),
    ("no-eps", "You divide by the standard deviation alone. In a group of equal rewards it is 0, and 0 / "
        "0 is not a number: add 1e-6 to it.", _compared(eps=0)),
    ("sign", "The sign is turned round: you subtract the rewards from their mean. Better than usual is "
        "positive.", _compared(sign=-1)),
    ("no-keepdim", "The mean of each row has shape (G,), and is lined up with the texts of a row, not "
        "with the rows. Keep the axis: keepdim=True, and the same for the standard deviation.",
        _compared(usual=lambda r, axis: r.mean(axis),
                  spread=lambda r, axis, fewer, root: root(r.var(axis, correction=fewer)))),
    ("no-keepdim-below", "The standard deviation of each row has shape (G,), and is lined up with the texts of a "
        "row. Keep the axis: keepdim=True.",
        _compared(spread=lambda r, axis, fewer, root: root(r.var(axis, correction=fewer)))),
    ("no-brackets", "A division comes before a subtraction: only the mean is divided. Put brackets round "
        "rewards - mean.", lambda r: r - _mean(r) / (_std(r) + 1e-6)),
    ("measured-from-0", "You divide by the root of the mean square of the rewards, measured from 0. The standard "
        "deviation begins at the mean.", _compared(spread=lambda r, *_: r.square().mean(-1, keepdim=True).sqrt())),
    ("sum-of-squares", "You divide by the root of the SUM of squares, the length of the row. The standard "
        "deviation takes their mean.", _compared(spread=lambda r, *_: (r - _mean(r)).norm(dim=-1, keepdim=True))),
    ("sum-subtracted", "You subtract the sum of the row. Usual is its mean.",
        _compared(usual=lambda r, _: r.sum(-1, keepdim=True))),
    ("divided-by-the-mean", "You divide by the mean. That is a ratio, and goes wrong where the mean is near 0 or "
        "below: divide by the standard deviation.", _compared(spread=lambda r, *_: _mean(r))),
    ("absolute-distance", "You divide by the mean absolute distance. The standard deviation is the root of the "
        "mean SQUARED distance.", _compared(spread=lambda r, *_: (r - _mean(r)).abs().mean(-1, keepdim=True))),
    ("range", "You divide by the distance of the largest from the smallest. It is the standard deviation that is "
        "asked for.", _compared(spread=lambda r, *_: r.amax(-1, keepdim=True) - r.amin(-1, keepdim=True))),
    ("others-only", "You compare each text with the mean of the others. That is a baseline too (leave "
        "one out); here it is the mean of the whole row, the text itself with the rest.",
        _compared(usual=lambda r, _: (r.sum(-1, keepdim=True) - r) / (r.shape[-1] - 1))),
    ("median", "You subtract the median. What is asked for is the mean.",
        _compared(usual=lambda r, _: r.median(-1, keepdim=True).values)),
    ("worst-subtracted", "You subtract the worst reward, so no text is ever below usual. Subtract the "
        "mean.", _compared(usual=lambda r, _: r.amin(-1, keepdim=True))),
    ("best-subtracted", "You subtract the best reward, so no text is ever above usual. Subtract the mean.",
        _compared(usual=lambda r, _: r.amax(-1, keepdim=True))),
    ("softmax", "You make shares that sum to 1. An advantage may be negative.", lambda r: r.softmax(-1)),
    ("sign-only", "You only say whether a text is above or below the mean. Say by how much, in standard "
        "deviations.", lambda r: torch.sign(r - _mean(r))),
    ("flattened", "The numbers are in one row. Keep the shape (G, n).", lambda r: advantages(r).flatten()),
    ("one-number-a-group", "You give one number for each group. Every text has an advantage of its own: "
        "shape (G, n).", lambda r: advantages(r).mean(-1)),
    ("first-group", "Only the first group is there. Is your return inside the loop?", lambda r: advantages(r)[:1]),
    ("all-texts-together-n-minus-1-no-eps", "You compare all texts with one another, and with n - 1. A "
        "text is judged by its own group: one mean and one standard deviation for each row, with "
        "unbiased=False, and 1e-6 added to it.", _compared(axis=(0, 1), fewer=1, eps=0)),
))

# ---------------------------------------------------------------- policy_gradient_loss


def _mask(B, T, lengths, start):
    """True at the words of B rows of these lengths, by default T, from ``start`` on."""
    places = torch.arange(T)
    return (places < torch.tensor(lengths or [T] * B)[:, None]) & (places >= start)


@inputs
def _drawn(rng, B, T, lengths=None, start=0, advantages=None):
    """Log probabilities below 0, advantages of both signs, and a mask of rows of these lengths."""
    log_p = _tensor(-rng.gamma(1.5, 1.0, size=(B, T)) - 0.05)
    better = _tensor(rng.normal(size=B) if advantages is None else advantages)
    return log_p, better, _mask(B, T, lengths, start)


def _counted(values, mask):
    return values[mask].mean()


def _means_of_texts(values, mask):
    """The mean of the means of the rows in which a word counts."""
    return ((values * mask).sum(1) / mask.sum(1)).mean()


@variants
def _loss(log_p, a, mask, *, of=_same, weight=_same, sign=-1, words=_same, average=_counted):
    """The reference with something else made of the log probabilities, the advantages or the mask, or another average."""
    return sign * average(of(log_p) * weight(a[:, None]), words(mask))


def _every_text_has_a_word(log_p, a, mask):
    if not mask.any(1).all():
        raise ValueError("a text has no word")
    return policy_gradient_loss(log_p, a, mask)


POLICY_GRADIENT_LOSS = Exercise(policy_gradient_loss, learns=1, probes=(
    Probe("one word", _drawn(1, 1), "One text of one word: minus its advantage times its log probability."),
    Probe("a better and a worse text", _drawn(2, 3, advantages=[1.0, -1.0]),
        "Two texts, one better than usual and one worse: both teach, in opposite directions."),
    Probe("texts of different lengths", _drawn(3, 6, lengths=[6, 1, 3]),
        "Texts of 6, 1 and 3 words: it is ONE mean over the ten words that count."),
    Probe("a text without a word", _drawn(3, 4, lengths=[2, 0, 4]), "In the second text no word counts: "
        "it takes no part, and nothing is divided by its 0 words.", extreme=True),
    Probe("as good as usual", _drawn(3, 4, lengths=[2, 4, 3], advantages=[0.0, 1.0, -2.0]),
        "The first text is as good as usual: its advantage is 0. Its words count all the same, below the line."),
    larger(_drawn(9, 13, lengths=[13, 2, 7, 9, 11, 3, 5, 12, 8], start=1)),
), misconceptions=(
    ("sign", "The minus is missing. An optimiser makes the loss SMALLER, and the words of better texts "
        "should become more probable.", _loss(sign=1)),
    ("mask-forgotten", "You average over all words. Those of the beginning and after the end of a text were not the "
        "model's choice: take those where the mask is True.", _loss(words=torch.ones_like)),
    ("divided-by-all", "The masked words are 0 above the line, but below it they are counted. Divide by "
        "the number of words that count, mask.sum().", _loss(average=lambda x, m: (x * m).mean())),
    ("sum", "You add up. Take the mean over the words that count, or long texts and large batches make "
        "long steps.", _loss(average=lambda x, m: x[m].sum())),
    ("text-by-text", "You take the mean of each text first, and then the mean of those. So a word of a "
        "short text weighs more than one of a long text: it is one mean over all words that count.",
        _loss(average=_means_of_texts)),
    ("divided-by-texts", "You divide by the number of texts. Divide by the number of words that count, "
        "in all texts together.", _loss(average=lambda x, m: x[m].sum() / len(x))),
    ("no-advantage", "The advantages are not used, so every text that was drawn becomes more probable, "
        "good or bad.", _loss(weight=torch.ones_like)),
    ("probabilities", "You use probabilities, exp of what you are given. The gradient of the LOG "
        "probability is what is needed.", _loss(of=torch.exp)),
    ("log-again", "You take the logarithm once more. The numbers are log probabilities already.", _loss(of=torch.log)),
    ("softmax-again", "You take a softmax of the log probabilities over the words of a text. They are a number for "
        "each word that was drawn, and ready to use.", _loss(of=lambda p: p.log_softmax(-1))),
    ("lined-up-with-words", "advantages has shape (B,) and is lined up with the words, the last axis. It "
        "belongs to the texts: advantages[:, None].", _loss(weight=lambda a: a[:, 0])),
    ("means-multiplied", "You multiply the mean advantage by the mean log probability. Multiply first, word by "
        "word: that is how a good text gets another sign than a bad one.", lambda p, a, m: -a.mean() * p[m].mean()),
    ("mask-turned", "You take the words where the mask is False. True means: this word counts.",
        _loss(words=torch.logical_not)),
    ("better-only", "You leave out what is worse than usual. Those texts teach too: their words become "
        "less probable.", _loss(weight=torch.relu)),
    ("size-only", "You take the size of the advantage without its sign, so bad texts are learned like "
        "good ones.", _loss(weight=torch.abs)),
    ("sign-of-advantage", "You take only the sign of the advantage. How much better a text is counts too.",
        _loss(weight=torch.sign)),
    ("normalised-again", "You subtract the mean of the advantages once more, or divide them again. They "
        "come ready: use them as they are.", _loss(weight=lambda a: a - a.mean())),
    ("scaled-again", "You bring the advantages to mean 0 and spread 1 once more. They come ready: use them as "
        "they are.", _loss(weight=lambda a: (a - a.mean()) / (a.std(unbiased=False) + 1e-6))),
    ("ratio", "You take the ratio of new to old probability, which is 1 at first, as PPO does. The gradient is the "
        "same; take log probabilities.", _loss(of=lambda p: (p - p.detach()).exp())),
    ("first-word", "Only the first word of each text counts. Every word where the mask is True does.",
        lambda p, a, m: -(a * p[:, 0]).mean()),
    ("last-word", "Only the last word of each text counts. Every word where the mask is True does.",
        lambda p, a, m: -(a * p[:, -1]).mean()),
    ("first-text", "Only the first text counts. Is your return inside the loop?",
        lambda p, a, m: -(a[0] * p[0])[m[0]].mean()),
    ("last-text", "Only the last text counts. Does each turn of your loop overwrite the one before?",
        lambda p, a, m: -(a[-1] * p[-1])[m[-1]].mean()),
    ("number-a-text", "You give a number for each text. A loss is one number, a mean over all words that "
        "count.", _loss(average=lambda x, m: (x * m).sum(1) / m.sum(1))),
    ("number-a-word", "You give a number for each word. A loss is one number: their mean where the mask "
        "is True.", _loss(average=torch.mul)),
    ("list-of-words", "You give the numbers of all words that count. A loss is one number: their mean.",
        _loss(average=torch.masked_select)),
    ("advantage-added", "You add the advantage. It multiplies the log probability, so that its sign "
        "decides the direction.", lambda p, a, m: -(a[:, None] + p)[m].mean()),
    ("raises-for-one-text", "You raise where ONE text has no word. It takes no part; raise only where no word counts at "
        "all.", _every_text_has_a_word),
    ("detached", "The number is right, but no gradient comes back to log_probs, and without one nothing is learned. "
        "Leave out .detach(), .item(), torch.no_grad() and NumPy.", _loss(of=torch.detach)),
    ("zeros-not-counted", "You count the products that are not 0. Where an advantage is 0, words count too: divide "
        "by mask.sum().", lambda p, a, m: -(a[:, None] * p * m).sum() / (a[:, None] * p * m != 0).sum()),
), contracts=(
    Contract("a mask that counts no word", _drawn(2, 3, lengths=[0, 0])),
))

# ---------------------------------------------------------------- kl_to_reference


@inputs
def _two(rng, B, T, V, lengths=None, start=0, size=1.5, shift=0.0, equal=False):
    """Logits of two models, which have not been normalised: each place has its own constant added."""
    z, reference = (_tensor(rng.normal(size=(B, T, V)) * size + rng.normal(size=(B, T, 1)) * (1 + shift))
                    for _ in range(2))
    return z, (z + 3.0 if equal else reference), _mask(B, T, lengths, start)


def _term(log_p, log_q):
    return log_p.exp() * (log_p - log_q)


def _to_the_middle(log_p, log_q):
    half = ((log_p.exp() + log_q.exp()) / 2).log()
    return (_term(log_p, half) + _term(log_q, half)) / 2


@variants
def _divergence(z, r, mask, *, pair=lambda z, r: (z, r), logs=lambda z: z.log_softmax(-1), term=_term,
                over=torch.sum, times=1.0, words=_same, average=_counted):
    """The reference with other logarithms of both logits, other terms, another average over the vocabulary or the words."""
    z, r = pair(z, r)
    return times * average(over(term(logs(z), logs(r)), -1), words(mask))


KL_TO_REFERENCE = Exercise(kl_to_reference, learns=1, probes=(
    Probe("one word of two", _two(1, 1, 2), "One place, two words: make probabilities p and q of the "
        "logits, then p₁ log(p₁/q₁) + p₂ log(p₂/q₂)."),
    Probe("shifted logits", _two(1, 2, 3, shift=20.0), "A constant was added to all logits of a place, "
        "which changes no probability: take the (log) softmax over the last axis first."),
    Probe("as many words as places", _two(3, 3, 3, lengths=[3, 1, 2]), "B, T and V are all 3 here, so "
        "nothing warns you: the softmax and the sum run over the last axis, the vocabulary."),
    Probe("a text without a word", _two(3, 4, 3, lengths=[2, 0, 4]), "In the second text no word counts: "
        "it takes no part, and nothing is divided by its 0 words.", extreme=True),
    example("a word that is never said", (_tensor([[[0.0, -800.0]]]), _tensor([[[0.0, 1.0]]]), _mask(1, 1, None, 0)),
        "The policy is sure of one word, and p of the other is too small for the computer: it becomes 0. log_softmax still "
        "knows its logarithm, -800, and 0 times that is 0.", extreme=True),
    larger(_two(9, 10, 11, lengths=[10, 2, 7, 5, 8, 3, 6, 1, 9])),
), misconceptions=(
    ("log-of-the-softmax", "Right for ordinary logits, but where a probability is too small for the computer it becomes 0, "
        "its logarithm -inf, and 0 times that is NaN. Take log_softmax of the logits instead.",
        _divergence(logs=lambda z: z.softmax(-1).log())),
    ("kl-div-of-a-softmax", "The number is right, but where a probability becomes 0 the gradient of torch's kl_div is NaN. "
        "Give it two logarithms: kl_div(log q, log p, log_target=True).",
        _divergence(term=lambda p, q: F.kl_div(q, p.exp(), reduction="none"))),
    ("reversed", "Policy and reference have changed places: you give KL(reference ‖ policy). Weight with the "
        "policy's own probabilities, and subtract the reference's logarithm.", _divergence(pair=lambda z, r: (r, z))),
    ("sign", "The sign is turned round. A KL divergence is never negative: log p - log q, weighted with "
        "p.", _divergence(times=-1.0)),
    ("reference-weights", "You weight log p - log q with the REFERENCE's probabilities. The mean is over what the "
        "policy says.", _divergence(term=lambda p, q: q.exp() * (p - q))),
    ("raw-logits", "You subtract the logits as they are. Logits may differ by a constant that changes no "
        "probability: take log_softmax of both first.", _divergence(logs=_same, term=lambda z, r: z.softmax(-1) * (z - r))),
    ("unweighted", "You subtract the logarithms, and do not weight the differences with the policy's "
        "probabilities.", _divergence(term=torch.sub)),
    ("weighted-with-log", "You weight with log p. Weights are probabilities: exp of it.",
        _divergence(term=lambda p, q: p * (p - q))),
    ("averaged-over-words", "You average over the vocabulary. A sum weighted by probabilities is a mean already: "
        "add up the last axis, then average over the words.", _divergence(over=torch.mean)),
    ("mask-forgotten", "Average only over places where the mask is True.", _divergence(words=torch.ones_like)),
    ("divided-by-all", "Masked places are 0 above the line, but below it they are counted. Divide by the "
        "number of words that count.", _divergence(average=lambda x, m: (x * m).mean())),
    ("mask-turned", "You take the places where the mask is False. True means: this word counts.",
        _divergence(words=torch.logical_not)),
    ("sum", "You add up over the words. Take their mean: nats per word.", _divergence(average=lambda x, m: x[m].sum())),
    ("divided-by-texts", "You divide by the number of texts. Divide by the number of words that count.",
        _divergence(average=lambda x, m: x[m].sum() / len(x))),
    ("text-by-text", "You take the mean of each text first, and then the mean of those. It is one mean "
        "over all words that count.", _divergence(average=_means_of_texts)),
    ("wrong-axis", "The softmax runs over the places of a text. It runs over the vocabulary, the last "
        "axis.", _divergence(logs=lambda z: z.log_softmax(1))),
    ("cross-entropy", "You give the cross-entropy, -Σ p log q, not 0 for equal models. Subtract the policy's own "
        "entropy: log p - log q.", _divergence(term=lambda p, q: -p.exp() * q)),
    ("entropy", "Only the policy's own probabilities are used. Compare them with the reference's.",
        _divergence(term=lambda p, q: -p.exp() * p)),
    ("symmetric", "You average both directions. Only one is asked for: KL(policy ‖ reference).",
        _divergence(term=lambda p, q: (p.exp() - q.exp()) * (p - q) / 2)),
    ("both-directions", "You add up both directions. Only one is asked for: KL(policy ‖ reference).",
        _divergence(term=lambda p, q: (p.exp() - q.exp()) * (p - q))),
    ("to-the-middle", "You measure from the mean of the two (Jensen and Shannon). Measure from the "
        "reference itself.", _divergence(term=_to_the_middle)),
    ("bits", "You take logarithms to the base 2, so these are bits. Nats use the natural logarithm.",
        _divergence(times=1 / math.log(2))),
    ("absolute", "You take the absolute differences of the logarithms. That is another measure: in this mean the "
        "negative ones are subtracted.", _divergence(term=lambda p, q: p.exp() * (p - q).abs())),
    ("squared-logarithms", "You square the differences of the logarithms. Take the mean of the differences as they are.",
        _divergence(term=lambda p, q: p.exp() * (p - q).square())),
    ("probabilities-subtracted", "You subtract probabilities. It is their LOGARITHMS whose difference is weighted with p.",
        _divergence(term=lambda p, q: p.exp() * (p.exp() - q.exp()))),
    ("one-log-missing", "You subtract log q from p itself. Take the logarithm of both: log p - log q.",
        _divergence(term=lambda p, q: p.exp() * (p.exp() - q))),
    ("squared", "You compare the probabilities by squared differences. KL compares logarithms, weighted "
        "with p.", _divergence(term=lambda p, q: (p.exp() - q.exp()).square())),
    ("difference-of-probabilities", "You compare the probabilities by their differences. KL compares their "
        "logarithms, weighted with p.", _divergence(term=lambda p, q: (p.exp() - q.exp()).abs())),
    ("likeliest-word", "You compare the two at the policy's likeliest word only. The sum runs over the "
        "whole vocabulary.", _divergence(term=lambda p, q: (p - q) * (p == p.amax(-1, keepdim=True)))),
    ("detached", "The number is right, but it has no gradient, so the leash does not pull. Leave out .detach(), .item(), "
        "torch.no_grad() and NumPy, for the weights p too.", _divergence(term=lambda p, q: _term(p, q).detach())),
    ("number-a-word", "You give a number for each place. What is asked for is one: their mean where the "
        "mask is True.", _divergence(average=torch.mul)),
    ("list-of-words", "You give the numbers of all words that count. What is asked for is their mean.",
        _divergence(average=torch.masked_select)),
    ("kl-div-of-probabilities", "torch's kl_div wants LOG probabilities of what is measured against, "
        "first, and the weights second: kl_div(log q, p). You hand it probabilities.",
        _divergence(term=lambda p, q: F.kl_div(q.exp(), p.exp(), reduction="none"))),
    ("log-of-a-log", "Your result is not a number: a logarithm is taken of something negative. log_softmax gives "
        "logarithms already; and torch's kl_div wants probabilities second, if not told log_target=True.",
        _divergence(term=lambda p, q: F.kl_div(q, p, reduction="none"))),
), contracts=(
    Contract("a mask that counts no word", _two(2, 3, 4, lengths=[0, 0])),
))

# ---------------------------------------------------------------- best_of_n


class _Draws:
    """A sampler that gives these texts in turn, over and over, and counts."""

    def __init__(self, texts):
        self.texts, self.drawn = texts, 0

    def __call__(self):
        self.drawn += 1
        return self.texts[(self.drawn - 1) % len(self.texts)]


def _points(texts, points):
    """The reward of each text, which may be a list of words."""
    table = dict(zip(texts, points, strict=True))
    return lambda text: table[text if isinstance(text, str) else " ".join(text)]


@inputs
def _contest(rng, n, ties=False, low=-9, more=4, step=1.0):
    """``n`` texts to draw, and more that a right attempt never sees; some of which are better. ``step``: between rewards."""
    words = ["bears", "doors", "keys", "kings", "planes", "trees", "dates", "films"]
    texts = [f"{words[i % 8]} {'wait' if i < 8 else 'fall' if i < 16 else 'return'}" for i in rng.permutation(24)]
    texts = texts[:n + more]
    points = [float(x) for x in (rng.permutation(n + more) + low) * step]
    if ties:  # the best of the n texts twice or three times
        best, first = max(points[:n]), int(rng.integers(2))
        points = [best if i in {first, n // 2, n - 1} else min(x, best) for i, x in enumerate(points)]
    return _Draws(texts), _points(texts, points), n


def _lists_of_words(rng):
    """As the model of the lesson gives them: of different lengths."""
    texts = ["the keys fall", "trees", "the old kings wait here", "films return"]
    return _Draws([text.split() for text in texts]), _points(texts, map(float, rng.permutation(4))), 4


def _use(function, sample, reward, n):
    return function(sample, reward, n), sample.drawn


def _listed(sample, n):
    return [sample() for _ in range(n)]


def _beginning_with(number):
    """Only a text with a reward above ``number`` takes the place of None."""
    return lambda sample, reward, n: max([None, *_listed(sample, n)], key=lambda t: number if t is None else reward(t))


def _zero_is_nothing(sample, reward, n):
    best, most = None, None
    for text in _listed(sample, n):
        if not most or reward(text) > most:
            best, most = text, reward(text)
    return best


def _rises(sample, reward, n):
    """The first text, and all that are better than the one before them."""
    texts = _listed(sample, n)
    return [texts[0], *(text for before, text in pairwise(texts) if reward(text) > reward(before))]


def _judged_then_drawn(sample, reward, n):
    points = [reward(sample()) for _ in range(n)]
    return _listed(sample, n)[points.index(max(points))]


BEST_OF_N = Exercise(best_of_n, use=_use, results=("the text", "the number of draws"), probes=(
    Probe("one draw", _contest(1), "n is 1: one text is drawn, and it is the best of its kind."),
    Probe("two draws", _contest(2),
        "Two texts are drawn, and the one with the higher reward is returned: the text, not its reward."),
    Probe("five draws", _contest(5), "Five texts are drawn, no more and no fewer, and the best is returned.", ),
    Probe("rewards that are close", _contest(5, step=0.07), "The rewards differ by less than 1 here. "
        "Compare them as they are, and cut nothing off.", special=True),
    Probe("equals", _contest(6, ties=True), "Several share the highest reward: return the first of them.", draws=6),
    Probe("lists of words", _lists_of_words, "A text is a list of words here, as in the lesson. The one "
        "with the highest reward is returned as it was drawn."),
    Probe("far below 0", _contest(4, low=-10**7), "All rewards are far below 0 here. One is still the "
        "best: begin with the first text, or with minus infinity."),
), misconceptions=(
    ("reward-returned", "You return the highest reward. Return the text that earned it.",
        lambda sample, reward, n: max(map(reward, _listed(sample, n)))),
    ("pair-returned", "You return the text and its reward. Only the text is asked for.",
        lambda sample, reward, n: max(((reward(t), t) for t in _listed(sample, n)), key=lambda pair: pair[0])),
    ("pair-text-first", "You return the text with its reward. Only the text is asked for.",
        lambda sample, reward, n: max(((t, reward(t)) for t in _listed(sample, n)), key=lambda pair: pair[1])),
    ("worst", "You return the lowest reward's text.", lambda sample, reward, n: min(_listed(sample, n), key=reward)),
    ("last-of-equals", "Of several equally good texts you return the last. Replace the best so far only by a "
        "better one, > and not >=; and sorting puts the last of equals at the end, where max keeps the first.",
        lambda sample, reward, n: max(_listed(sample, n)[::-1], key=reward)),
    ("first", "Only one text is drawn. Is your return inside the loop, or do you draw before it and then "
        "judge the same text n times?", lambda sample, reward, n: sample()),
    ("first-of-all", "You draw all n, and return the first. Compare their rewards.",
        lambda sample, reward, n: _listed(sample, n)[0]),
    ("last", "You return the last text. Each turn of the loop overwrites the one before: keep the better "
        "of the two.", lambda sample, reward, n: _listed(sample, n)[-1]),
    ("one-too-many", "You draw n + 1 texts. The one before the loop counts too.",
        lambda sample, reward, n: max(_listed(sample, n + 1), key=reward)),
    ("one-too-few", "You draw n - 1 texts. Does your loop begin at 1?",
        lambda sample, reward, n: max(_listed(sample, max(n - 1, 1)), key=reward)),
    ("judged-then-drawn-again", "You judge texts and then draw new ones. Every call of sample() gives "
        "another text: keep what was drawn, judge that, and return that.", _judged_then_drawn),
    ("drawn-again-at-the-end", "You judge n texts and then return yet another one. Keep the texts that you have "
        "judged.", lambda sample, reward, n: (max(reward(sample()) for _ in range(n)), sample())[1]),
    ("drawn-twice", "You draw twice in each turn, and judge another text than you keep. Draw once: text = sample().",
        lambda sample, reward, n: max(((reward(sample()), sample()) for _ in range(n)), key=lambda pair: pair[0])[1]),
    ("zero-at-first", "You begin with a best reward of 0, so no text wins where all rewards are "
        "negative. Begin with the first text, or with minus infinity.", _beginning_with(0.0)),
    ("minus-one-at-first", "You begin with a best reward of -1, so no text wins where all rewards are lower. Begin with "
        "the first text, or with minus infinity.", _beginning_with(-1.0)),
    ("low-number-at-first", "You begin with a best reward such as -100, so no text wins where all rewards are "
        "lower still. Begin with the first text, or with minus infinity.", _beginning_with(-100.0)),
    ("index-returned", "You return the number of the best text. Return the text itself.",
        lambda sample, reward, n: [*map(reward, t := _listed(sample, n))].index(max(map(reward, t)))),
    ("no-key", "max without key=reward compares the texts themselves, by the alphabet. Compare their "
        "rewards.", lambda sample, reward, n: max(_listed(sample, n))),
    ("n-fixed", "The number of draws does not depend on n. Use the argument.",
        lambda sample, reward, n: max(_listed(sample, 4), key=reward)),
    ("first-rise", "You stop at the first text that is better than the one before. Go through all n.",
        lambda *args: _rises(*args)[:2][-1]),
    ("compared-with-the-one-before", "You compare each text with the one before it. Compare it with the "
        "best so far.", lambda *args: _rises(*args)[-1]),
    ("all-returned", "You return all texts. Only the best one is asked for.",
        lambda sample, reward, n: sorted(_listed(sample, n), key=reward, reverse=True)),
    ("equals-by-the-alphabet", "Of equally good texts you return the last in the alphabet: pairs (reward, text) "
        "are compared by their texts where the rewards are equal. Compare the rewards alone, with a key.",
        lambda sample, reward, n: max((reward(t), t) for t in _listed(sample, n))[1]),
    ("cut-to-whole-numbers", "You cut the rewards to whole numbers, so two that differ by less than 1 are equal. "
        "Do not cut them.", lambda sample, reward, n: max(_listed(sample, n), key=lambda text: int(reward(text)))),
    ("zero-taken-for-nothing", "You take a reward of 0 for none at all. Ask for what is not there yet "
        "with `is None`.", _zero_is_nothing),
), nudges=(
    ("unhashable type: 'list'|inhomogeneous", "A text may be a list of words, of any length: no dict and no set "
        "takes it, and NumPy makes no array of several. Keep the texts in a list."),
    ("can only join an iterable|positional arguments? but", "sample takes nothing, and each call of it, sample(), gives one "
        "text: n texts are n calls."),
), contracts=(
    Contract("n = 0", lambda rng: (*_contest(3)(rng)[:2], 0)),
))

# ---------------------------------------------------------------- dpo_loss


@inputs
def _judged(rng, B, beta, far=0.0, margin=1.0):
    """Log probabilities of whole texts: what a model says of both texts of B pairs, and what the reference said."""
    chosen_reference, rejected_reference = (_tensor(-rng.uniform(4, 20, size=B) - far) for _ in range(2))
    moved = (_tensor(rng.normal(size=B) * margin) for _ in range(2))
    chosen, rejected = (old + new for old, new in zip((chosen_reference, rejected_reference), moved, strict=True))
    return chosen, rejected, chosen_reference, rejected_reference, beta


def _margin(c, r, cr, rr):
    return (c - cr) - (r - rr)


def _minus_log(x):
    return -F.logsigmoid(x)


@variants
def _preferred(c, r, cr, rr, beta, *, margin=_margin, scaled=torch.mul, loss=_minus_log, over=torch.mean):
    """The reference with another margin, another use of β, another loss of a pair, or another average."""
    return over(loss(scaled(margin(c, r, cr, rr), beta)))


DPO_LOSS = Exercise(dpo_loss, learns=2, probes=(
    Probe("one pair", _judged(1, 0.5), "One pair: how much has each text been raised since the "
        "reference? The chosen one's rise minus the rejected one's, times β, goes through -log σ."),
    Probe("long texts", _judged(3, 1.0, far=200.0), "The texts are long, so their log probabilities are "
        "about -200. Only differences from the reference count."),
    example("huge margins", (  # one of each sign
            _tensor([-10.0, -5_010.0]), _tensor([-10_010.0, -10.0]), *2 * [_tensor([-10.0, -10.0])], 1.0),
        "The margins are 10,000 and -5,000 here. The loss of the second pair is 5,000, and no infinity: take torch's "
        "logsigmoid, which is made for that.", extreme=True),
    larger(_judged(40, 0.3, margin=3.0)),
), misconceptions=(
    ("no-reference", "The reference is not used. A text counts by how far it has been raised since the reference: "
        "log p minus log q, for both texts.", _preferred(margin=lambda c, r, *_: c - r)),
    ("turned-round", "You raise the rejected text and lower the chosen one. The margin is the chosen "
        "one's rise minus the rejected one's.", _preferred(scaled=lambda m, beta: -beta * m)),
    ("sign", "The minus is missing: a log σ is never above 0, and an optimiser makes the loss smaller.",
        _preferred(loss=F.logsigmoid)),
    ("no-log", "You use σ itself. The loss is minus its LOGARITHM, as in a classifier.",
        _preferred(loss=lambda x: -x.sigmoid())),
    ("one-minus-sigma", "You use 1 - σ. The loss is minus the LOGARITHM of σ, so that a pair judged "
        "clearly wrong costs much.", _preferred(loss=lambda x: 1 - x.sigmoid())),
    ("no-beta", "β is not used. It multiplies the margin, before σ.", _preferred(scaled=lambda m, beta: m)),
    ("beta-outside", "You multiply the loss by β. It multiplies the margin, inside σ, and so says how "
        "far is far enough.", lambda *args: args[-1] * _minus_log(_margin(*args[:-1])).mean()),
    ("divided-by-beta", "You divide the margin by β. Multiply it.", _preferred(scaled=torch.div)),
    ("log-of-sigma", "Right for ordinary margins. But where σ rounds to 0 its logarithm is -inf: torch's logsigmoid "
        "computes both in one step.", _preferred(loss=lambda x: -x.sigmoid().log())),
    ("sum", "You add up. Take the mean over the pairs.", _preferred(over=torch.sum)),
    ("mean-of-margins", "You take the mean of the margins first, and one loss of it. Each pair has a "
        "loss of its own: the mean comes last.", _preferred(scaled=lambda m, beta: beta * m.mean())),
    ("mean-of-sigmas", "You take the mean of σ first, and one logarithm of it. Each pair has a loss of its own: the mean "
        "comes last.", _preferred(loss=torch.sigmoid, over=lambda x: -x.mean().log())),
    ("number-a-pair", "You give a number for each pair. A loss is one number: their mean.", _preferred(over=_same)),
    ("margin-alone", "You give minus the margin. Through -log σ it stops pulling where a pair is judged "
        "rightly already.", _preferred(loss=torch.neg)),
    ("hinge", "You stop at a margin of 1, max(0, 1 - βm). What is asked for is -log σ(βm).",
        _preferred(loss=lambda x: (1 - x).relu())),
    ("squared", "You square the distance of the margin from 1 / 2β, as IPO does. What is asked for is "
        "-log σ(βm).", _preferred(scaled=lambda m, beta: m - 1 / (2 * beta), loss=torch.square)),
    ("references-crossed", "The references have changed places, or are added: from a text's log p subtract the "
        "reference's of the same text.", _preferred(margin=lambda c, r, cr, rr: (c - rr) - (r - cr))),
    ("bracket-missing", "The rejected text's reference is subtracted as well: put brackets round each rise, (chosen - "
        "chosen_reference) - (rejected - rejected_reference).", _preferred(margin=lambda c, r, cr, rr: c - cr - r - rr)),
    ("ratios", "You take exp of the rises. The margin is the difference of the rises themselves, which are logarithms.",
        _preferred(margin=lambda c, r, cr, rr: (c - cr).exp() - (r - rr).exp())),
    ("rises-added", "You add the two rises. The chosen text should rise, and the rejected one fall: "
        "subtract.", _preferred(margin=lambda c, r, cr, rr: (c - cr) + (r - rr))),
    ("detached", "The number is right, but no gradient comes back to chosen and rejected, and without one nothing is "
        "learned. Leave out .detach(), .item(), torch.no_grad() and NumPy.", _preferred(scaled=lambda m, b: b * m.detach())),
    ("chosen-detached", "The number is right, but no gradient comes back to the chosen texts, so they are never raised. "
        "Leave out the .detach().", _preferred(margin=lambda c, r, cr, rr: (c - cr).detach() - (r - rr))),
    ("rejected-detached", "The number is right, but no gradient comes back to the rejected texts, so they are never "
        "lowered. Leave out the .detach().", _preferred(margin=lambda c, r, cr, rr: (c - cr) - (r - rr).detach())),
    ("chosen-only", "The rejected texts are not used. Half of what a pair says is which text is worse.",
        _preferred(margin=lambda c, r, cr, rr: c - cr)),
    ("rejected-only", "The chosen texts are not used. Half of what a pair says is which text is better.",
        _preferred(margin=lambda c, r, cr, rr: rr - r)),
    ("ratio-of-logs", "You divide log probabilities. A ratio of probabilities is a DIFFERENCE of their "
        "logarithms.", _preferred(margin=lambda c, r, cr, rr: c / cr - r / rr)),
    ("probabilities", "You make probabilities of the log probabilities first. Subtract the logarithms as "
        "they are.", _preferred(margin=lambda *logs: _margin(*map(torch.exp, logs)))),
    ("beta-on-one-side", "β multiplies the chosen text's rise only. It multiplies the whole margin.",
        lambda c, r, cr, rr, beta: _minus_log(beta * (c - cr) - (r - rr)).mean()),
    ("softmax-over-pairs", "You compare the pairs with one another. Each margin goes through its own σ.",
        _preferred(loss=lambda x: -x.log_softmax(-1))),
    ("bits", "You take logarithms to the base 2. Nats use the natural one.",
        _preferred(loss=lambda x: _minus_log(x) / math.log(2))),
    ("first-pair", "Only the first pair counts. Is your return inside the loop?", _preferred(over=lambda x: x[0])),
    ("last-pair", "Only the last pair counts. Does each turn of your loop overwrite the one before?",
        _preferred(over=lambda x: x[-1])),
))

EXERCISES = (ADVANTAGES, POLICY_GRADIENT_LOSS, KL_TO_REFERENCE, BEST_OF_N, DPO_LOSS)
