"""The exercises of lesson 17: a score for induction heads, the logit lens, heads taken away, patching."""

import torch

from helpers.checks.core import Contract, Exercise, Probe, example, inputs, larger, variants
from helpers.checks.pieces import same
from helpers.inside import ablate_heads, induction_score, logit_lens, patching_effect


def _tensor(x):
    return torch.tensor(x, dtype=torch.float64)


# ---------------------------------------------------------------- induction_score


def _heads(h, T, period):
    """Random weights whose rows sum to 1; no two rows and no two columns are alike."""
    return lambda rng: (_tensor(rng.dirichlet([0.5] * T, size=(h, T))), period)


def _known_heads(rng):
    """4 tokens, twice: head 0 looks after the last one, head 1 at it, head 2 one back, head 3 at token 0."""
    T, period = 8, 4
    at = torch.arange(T)
    keys = torch.stack([at - period + 1, at - period, at - 1, torch.zeros(T, dtype=torch.long)])
    return torch.nn.functional.one_hot(keys.clamp(min=0), T).double(), period


@variants
def _score(weights, period, *, first=lambda period: period, end=0, key=lambda i, period: i - period + 1,
           over=lambda weights, T, period: weights.mean(-1)):
    """The reference over queries i that begin or end elsewhere, with another key, or with another mean of the weights,
    ``(h, queries)``. A negative key counts from the end, as Python has it."""
    T = weights.shape[-1]
    i = torch.arange(first(period), T - end)
    return over(weights[:, i, key(i, period)], T, period)


def _diagonal(offset, places=slice(None)):
    """The mean along a diagonal of the weights, or along these places of it."""
    return lambda weights, period: weights.diagonal(offset(period), -2, -1)[..., places].mean(-1)


INDUCTION_SCORE = Exercise(induction_score, probes=(
    Probe("one repeated token", _heads(1, 3, 2), "Three tokens, period 2: only token 2 repeats one, "
        "token 0. What came after token 0 is token 1, so the score is the weight in row 2, column 1."),
    Probe("four known heads", _known_heads, "Head 0 always looks at the token after the last occurrence: its score "
        "is 1. The others look at that occurrence, one token back, and at token 0: their score is 0.", draws=1),
    Probe("as many heads as tokens", _heads(6, 6, 2),
        "There are 6 heads and 6 tokens here: count the axes from the back, query is -2 and key is -1."),
    larger(_heads(9, 23, 10)),
), misconceptions=(
    ("same-token", "You average the weights to the same token, one round earlier. An induction head looks at what "
        "came AFTER it, one place to the right: i - period + 1.", _score(key=lambda i, p: i - p)),
    ("one-too-early", "You begin one place too early. The whole diagonal holds i = period - 1 too, where "
        "nothing has been repeated yet: drop its first number.", _score(first=lambda p: p - 1)),
    ("divided-by-T", "The sum is right, but you divide by T. In the first round there is nothing to look back at: "
        "average over the T - period places i ≥ period.", _score(over=lambda w, T, p: w.sum(-1) / T)),
    ("every-place", "You average over all places, and before the first repetition i - period + 1 is "
        "negative, which counts from the end. Begin at i = period.", _score(first=lambda p: 0)),
    ("sum", "You add the weights up. The score is their mean, so that it lies between 0 and 1.",
        _score(over=lambda w, T, p: w.sum(-1))),
    ("second-round-only", "You stop after the second round. The text may go on: take every i from period "
        "to the end.", _score(over=lambda w, T, p: w[:, :p].mean(-1))),
    ("transposed", "Query and key have changed places: you read the weight from i - period + 1 to i, "
        "which lies in the future. The row is the query.", lambda w, p: induction_score(w.mT, p)),
    ("previous-token", "You average the weights to the token just before. That is the previous-token "
        "score of lesson 12; here a head looks i - period + 1.", _diagonal(lambda p: -1)),
    ("previous-token-where-repeated", "You average the weights to the token just before. That is the "
        "previous-token score of lesson 12; here a head looks i - period + 1.", _score(key=lambda i, p: i - 1)),
    ("heads-averaged", "You give one number for all heads. Each head has its own: keep the first axis.",
        _score(over=lambda w, T, p: w.mean())),
    ("one-head", "You give head 0's score. Every head has one: shape (h,).", lambda w, p: induction_score(w[:1], p)),
    ("block", "Two slices make a whole block of pairs: every query with every key in it. Index the pairs (i, i - "
        "period + 1) one by one, or take a diagonal.", lambda w, p: w[:, p:, 1:w.shape[-1] - p + 1].mean((-2, -1))),
    ("largest", "You take the largest weight. The score is their mean.", _score(over=lambda w, T, p: w.amax(-1))),
    ("divided-by-period", "The sum is right, but you divide by the period. That is the number of places only when "
        "the text repeats once: average over all places i ≥ period.", _score(over=lambda w, T, p: w.sum(-1) / p)),
    ("one-before", "You look one place BEFORE the last occurrence. i - (period + 1) is one to the left; "
        "the token that followed stands one to the right.", _score(key=lambda i, p: i - p - 1)),
    ("last-query-missed", "You leave out the last position of the text. It repeats a token too: i runs "
        "up to T - 1.", _score(end=1)),
    ("first-query-missed", "You begin one place too late. The token at i = period is already a "
        "repetition, of token 0.", _score(first=lambda p: p + 1)),
    ("wrong-end-dropped", "You drop the last number of the diagonal. It is the first one that belongs to "
        "no repetition: its query is period - 1.", _diagonal(lambda p: 1 - p, slice(-1))),
    ("above-the-diagonal", "This diagonal lies above the main one: there the key is later than the "
        "query. A head looks back, so the offset is negative.", _diagonal(lambda p: p - 1)),
    ("return-inside-the-loop",
        "Only the first repeated token counts. Is your return inside the loop?", lambda w, p: w[:, p, 1]),
    ("last-query-only", "Only the last token counts. Does each turn of your loop overwrite the one "
        "before?", lambda w, p: w[:, -1, -p]),
    ("not-averaged", "You give a number for each place. The score is one number for each head: their "
        "mean.", _score(over=lambda w, T, p: w)),
    ("averaged-over-heads", "You average over the heads, and keep the places. It is the other way round: "
        "one number for each head, the mean over its places.", _score(over=lambda w, T, p: w.mean(0))),
    ("diagonal-one-before", "This diagonal lies one place too far to the left: it looks BEFORE the last "
        "occurrence. The token that followed is one place to the right of it.", _diagonal(lambda p: -p - 1)),
    ("transposed-over-T", "Rows and columns have changed places, and you divide by T. The query is the row, and the "
        "mean is over T - period repeated ones.", lambda w, p: _score(over=lambda w, T, p: w.sum(-1) / T)(w.mT, p)),
), contracts=(
    Contract("a period of 0", _heads(2, 4, 0)),
    Contract("a period as long as the text", _heads(2, 4, 4)),
), nudges=(
    ("out of (bounds|range)", "The text may end in the middle of a round: queries go from period to T - 1, no further."),
))

# ---------------------------------------------------------------- logit_lens


@inputs
def _states(rng, L, T, d, V, eps=1e-5, gain=None, size=1.0, shift=0.0):
    states = [_tensor(rng.normal(size=(T, d)) * size * (layer + 1) + shift) for layer in range(L)]
    stretch = _tensor(rng.uniform(0.2, 3, size=d)) if gain is None else torch.full((d,), gain).double()
    return states, stretch, _tensor(rng.normal(size=(d, V))), eps


def _root(x, eps):
    return torch.sqrt(x.square().mean(-1, keepdim=True) + eps)


@variants
def _lens(states, gain, W_U, eps=1e-5, *, take=list, divide=_root, stretch=torch.mul, finish=same):
    """The reference of other states, with another divisor or another use of the gain, or with a step more."""
    x = torch.stack(take(states))  # (L, T, d)
    return finish(stretch(x / divide(x, eps), gain) @ W_U)


def _one(x, eps):
    return 1


def _changes(states):
    return [states[0], *(after - before for before, after in zip(states, states[1:], strict=False))]


LOGIT_LENS = Exercise(logit_lens, probes=(
    Probe("one layer, one token", _states(1, 1, 2, 3, gain=1.0), "One state of two numbers, gain 1: "
        "divide it by the root of its mean square, then multiply by W_U. The shape is (1, 1, 3)."),
    Probe("several layers", _states(3, 2, 4, 5),
        "Three states: the result has shape (L, T, V) = (3, 2, 5), the first layer first."),
    Probe("a large eps", _states(2, 3, 4, 5, eps=2.0), "eps is 2 here: it is added inside the root.", ),
    larger(_states(6, 9, 10, 11)),
), misconceptions=(
    ("no-norm", "You multiply the states by W_U as they are. The model never does: its last norm comes "
        "first, with its gain.", _lens(divide=_one, stretch=same)),
    ("gain-only", "The gain is there, but nothing is divided. RMSNorm divides each token by the root of "
        "its mean square first.", _lens(divide=_one)),
    ("layer-norm", "You subtract the mean: that is LayerNorm. This model has RMSNorm, which only divides "
        "by the root of the mean square.",
        lambda states, gain, W_U, eps=1e-5: logit_lens(
            [x - x.mean(-1, keepdim=True) for x in states], gain, W_U, eps)),
    ("standard-deviation", "You divide by the standard deviation, which measures from the mean. Here it "
        "is the root of the mean square, measured from 0.", _lens(divide=lambda x, e: torch.sqrt(
        x.var(-1, unbiased=False, keepdim=True) + e))),
    ("no-gain", "The gain is missing: multiply by it before W_U.", _lens(stretch=same)),
    ("gain-first", "You stretch by the gain, and then divide: the division sees the stretched numbers. "
        "Divide first.",
        lambda states, gain, W_U, eps=1e-5: logit_lens(
            [gain * x for x in states], torch.ones_like(gain), W_U, eps)),
    ("norm-last", "You take the norm of the logits. It belongs before W_U, on the states.",
        lambda states, gain, W_U, eps=1e-5: (
            lambda z: z / _root(z, eps))(torch.stack([gain * x for x in states]) @ W_U)),
    ("length", "You divide by the length of the vector, the root of the SUM of squares. RMSNorm takes their mean.",
        _lens(divide=lambda x, e: torch.sqrt(x.square().sum(-1, keepdim=True) + e))),
    ("no-root", "You divide by the mean square itself. Take its root.",
        _lens(divide=lambda x, e: x.square().mean(-1, keepdim=True) + e)),
    ("eps-outside", "eps stands outside the root. It is added to the mean square: √(mean + eps).",
        _lens(divide=lambda x, e: torch.sqrt(x.square().mean(-1, keepdim=True)) + e)),
    ("eps-ignored", "You do not use eps, or another one than the argument. It is added to the mean "
        "square, inside the root, and may be large.", _lens(divide=lambda x, e: _root(x, 1e-5))),
    ("eps-left-out", "eps is missing: it is added to the mean square, inside the root, and may be large.",
        _lens(divide=lambda x, e: _root(x, 0.0))),
    ("over-tokens", "You average the squares over the tokens. Each token is divided by its own root: the last "
        "axis.", _lens(divide=lambda x, e: torch.sqrt(x.square().mean(-2, keepdim=True) + e))),
    ("one-root-a-layer", "You divide a whole layer by one number. Each token has its own: mean over the "
        "last axis, with keepdim=True.", _lens(divide=lambda x, e: torch.sqrt(
        x.square().mean((-2, -1), keepdim=True) + e))),
    ("probabilities", "You return probabilities. The result is the logits: leave the softmax out.",
        _lens(finish=lambda z: z.softmax(-1))),
    ("running-sum", "You add the states up. Each already holds all that the layers before it have "
        "written: the residual stream.", _lens(take=lambda s: list(torch.stack(list(s)).cumsum(0)))),
    ("one-root-for-all", "You divide all layers and tokens by one number. Each token of each layer has its own: "
        "mean over the last axis, with keepdim=True.", _lens(divide=lambda x, e: torch.sqrt(x.square().mean() + e))),
    ("log-probabilities", "You return logarithms of probabilities. The result is the logits: leave the "
        "log_softmax out.", _lens(finish=lambda z: z.log_softmax(-1))),
    ("last-token-only", "You read the last token alone. Give the logits at every token: shape (L, T, V).",
        _lens(finish=lambda z: z[:, -1])),
    ("what-each-layer-added", "You read what each layer added. The lens reads the whole stream after it: "
        "the states as they are.", _lens(take=_changes)),
    ("length-without-eps", "You divide by the length of the vector, the root of the SUM of squares, without eps. "
        "RMSNorm takes the root of the mean, plus eps.", _lens(divide=lambda x, e: x.norm(dim=-1, keepdim=True))),
    ("torch-std", "torch's std and var measure from the mean, and divide by d - 1. RMSNorm takes the root of the "
        "mean square, measured from 0.", _lens(divide=lambda x, e: x.std(-1, keepdim=True) + e)),
    ("last-layer-alone", "You give the logits of the last state alone, (T, V). Give one such table for "
        "each state of the list: (L, T, V).", _lens(finish=lambda z: z[-1])),
    ("joined", "You join the states into one long list of tokens, as torch.cat does. torch.stack gives "
        "the layers an axis of their own: (L, T, V).", _lens(finish=lambda z: z.flatten(0, 1))),
))

# ---------------------------------------------------------------- ablate_heads


@inputs
def _outputs(rng, B, h, T, d_k, n, mean=False):
    """Head outputs with a mean well away from 0, and n heads to take away, in any order."""
    z = _tensor(rng.normal(size=(B, h, T, d_k)) + 3 * rng.normal(size=(1, h, 1, d_k)))
    return z, [int(i) for i in rng.choice(h, n, replace=False)], mean


@variants
def _filled(z, heads, mean=False, *, put=lambda z, i: z[:, i].mean((0, 1)), zero=0.0, when=bool, which=lambda z, of: of):
    """The reference, with another thing in the head's place, with other heads, or with the mean at another time."""
    new = z.clone()
    for i in which(z, heads):
        new[:, i] = put(z, i) if when(mean) else zero
    return new


def _by_mean(over):
    return _filled(put=lambda z, i: z[:, i].mean(over, keepdim=True))


def _at(index, zero=False):
    """Take away what an index finds that is not the head's; where there is no such place it raises, as theirs does."""
    def wrong(z, heads, mean=False):
        z = z.clone()
        for i in heads:
            part = z[index(i)]
            z[index(i)] = part.mean((0, 1)) if mean and not zero else 0
        return z
    return wrong


def _all_but(z, heads):
    return [i for i in range(z.shape[1]) if i not in heads]


def _kept_in_zeros(z, heads, mean=False):
    means = torch.zeros_like(z) + z.mean((0, 2), keepdim=True)
    return ablate_heads(means if mean else z, _all_but(z, heads))


ABLATE_HEADS = Exercise(ablate_heads, probes=(
    Probe("the only head", _outputs(1, 1, 1, 2, 1), "The only head goes: 0 is left, in the same shape.", draws=1),
    Probe("one of two heads", _outputs(1, 2, 3, 2, 1), "One head becomes 0, the other stays as it is."),
    Probe("two of five heads", _outputs(2, 5, 3, 4, 2),
        "Two heads of five, in any order. The heads are axis 1 of (B, h, T, d_k)."),
    Probe("no head", _outputs(2, 3, 4, 2, 0), "The list is empty: nothing is taken away. Return a copy.", draws=1),
    Probe("mean over positions", _outputs(1, 2, 3, 2, 1, True), "mean=True, one text: the head's mean "
        "over the three positions, a vector of d_k numbers, stands in each of them."),
    Probe("mean over the batch", _outputs(4, 2, 1, 3, 1, True),
        "mean=True, four texts of one token: the head's mean over the four texts stands in each."),
    Probe("mean over both", _outputs(3, 4, 5, 2, 2, True),
        "mean=True: one vector of d_k numbers for each head, its mean over batch AND positions."),
    larger(_outputs(5, 6, 9, 10, 3, True)),
), misconceptions=(
    ("nothing-removed", "The heads are still there. Did you change a copy and then return the original?",
        lambda z, heads, mean=False: z.clone()),
    ("only-those-heads", "The named heads stay and all others go. It is the other way round.",
        _filled(which=_all_but)),
    ("first-of-the-list", "Only the first head of the list is taken away. Is your return inside the loop?",
        _filled(which=lambda z, heads: heads[:1])),
    ("counted-from-1", "Other heads are missing: heads are counted from 0.",
        _filled(which=lambda z, heads: [(i - 1) % z.shape[1] for i in heads])),
    ("closed-up", "You drop the heads, so the shape is another, and W_o no longer fits. Leave their "
        "places.", lambda z, heads, mean=False: z[:, _all_but(z, heads)]),
    ("always-zero", "With mean=True the head's mean stands in its place, and yours is 0. Do you look at mean, and "
        "do you take the mean before you write the 0?", _filled(when=lambda mean: False)),
    ("always-mean", "You never look at mean: when it is False, 0 stands in place of the head.",
        _filled(when=lambda mean: True)),
    ("mean-per-position", "You average over the batch only, so each position keeps a mean of its own, "
        "and tells where it is. Average over positions too: axes 0 and 2.", _by_mean(0)),
    ("mean-per-text", "You average over the positions only, so each text keeps a mean of its own, and "
        "news of it. Average over the batch too: axes 0 and 2.", _by_mean(1)),
    ("one-number", "You average the d_k numbers too, so one number stands everywhere. Each of the d_k "
        "columns has a mean of its own: axes 0 and 2.", _by_mean((0, 1, 2))),
    ("one-mean-for-all", "You put one mean of all the named heads in their places. Each head has its own mean.",
        lambda z, heads, mean=False: _filled(put=lambda z, i: z[:, heads].mean((0, 1, 2)))(z, heads, mean)),
    ("last-of-the-list", "Only the last head of the list is taken away. Do you begin with a fresh copy "
        "in each turn of the loop?", _filled(which=lambda z, heads: heads[-1:])),
    ("mean-turned-round", "Zero and mean have changed places: with mean=True the mean stands in place of "
        "the head, else 0.", _filled(when=lambda mean: not mean)),
    ("mean-of-everything", "You put the mean of the whole tensor in its place. Each head has its own "
        "mean, and each of its d_k numbers too.", _filled(put=lambda z, i: z.mean())),
    ("mean-over-batch-and-heads", "You average over the batch and the heads: axes 0 and 1 of (B, h, T, d_k). Pick "
        "the head first, or average over axes 0 and 2.", _filled(put=lambda z, i: z.mean((0, 1)))),
    ("minus-infinity", "You write minus infinity, as a mask does before a softmax. Here the softmax is "
        "long past: a head that says nothing is 0.", _filled(zero=-torch.inf)),
    ("texts-indexed", "z[i] is text i, with all its heads. The heads are axis 1: z[:, i].", _at(lambda i: (i,))),
    ("tokens-indexed", "z[:, :, i] is token i, in all heads. The heads are axis 1: z[:, i].",
        _at(lambda i: (slice(None), slice(None), i))),
    ("tokens-indexed-always-zero", "z[:, :, i] is token i, in all heads. The heads are axis 1: z[:, i]. And with "
        "mean=True the head's mean stands in its place.", _at(lambda i: (slice(None), slice(None), i), zero=True)),
    ("kept-in-zeros", "You begin with zeros and fill in the named heads, so all others are gone. It is "
        "the other way round: begin with a copy of all.", _kept_in_zeros),
    ("mean-over-all-heads", "You average over all heads as well. Each head has its own mean: pick the head first, "
        "then average over batch and positions.", _filled(put=lambda z, i: z.mean((0, 1, 2)))),
), nudges=(
    ("non-empty", "The list of heads may be empty: then nothing is taken away."),
))

# ---------------------------------------------------------------- patching_effect


@inputs
def _runs(rng, V, at=None):
    """Clean and corrupt logits prefer different words; the patched lie ``at`` of the way, or anywhere."""
    clean, corrupt, patched = rng.normal(size=(3, V)) * 2
    right, wrong = (int(i) for i in rng.choice(V, 2, replace=False))
    clean[right], corrupt[wrong] = clean.max() + rng.uniform(1, 3), corrupt.max() + rng.uniform(1, 3)
    if at is not None:
        patched = corrupt + at * (clean - corrupt)
    return *map(_tensor, (clean, corrupt, patched)), right, wrong


def _three(*logits):
    """Clean, corrupt and patched, of which word 0 is right and word 1 wrong."""
    return *map(_tensor, logits), 0, 1


def _lead(x, right, wrong):
    return x[right] - x[wrong]


@variants
def _effect(clean, corrupt, patched, right, wrong, *, lead=_lead, share=lambda a, b, c: (c - b) / (a - b)):
    """The reference with another measure of a run, or another formula of the three, clean, corrupt and patched."""
    return float(share(*(lead(x, right, wrong) for x in (clean, corrupt, patched))))


@variants
def _written_out(clean, corrupt, patched, right, wrong, *, above=False, below=False):
    """In one line, in which corrupt[right] - corrupt[wrong] has brackets above the line, below it, or nowhere."""
    sign = {True: -1, False: 1}
    return float((_lead(patched, right, wrong) - corrupt[right] - sign[above] * corrupt[wrong])
                 / (_lead(clean, right, wrong) - corrupt[right] - sign[below] * corrupt[wrong]))


def _no_brackets_at_all(clean, corrupt, patched, r, w):
    return float(patched[r] - patched[w] - corrupt[r] - corrupt[w] / clean[r] - clean[w] - corrupt[r] - corrupt[w])


def _word_by_word(clean, corrupt, patched, r, w):
    shares = (patched - corrupt) / (clean - corrupt)
    return float(shares[r] - shares[w])


def _probability_lead(x, right, wrong):
    return _lead(x.softmax(-1), right, wrong)


PATCHING_EFFECT = Exercise(patching_effect, probes=(
    example("by hand", _three([4.0, 1, 2], [-3.0, 2, 0], [1.0, 0, 7]), "Right is word 0, wrong is word 1. The "
        "differences are 3 (clean), -5 (corrupt), 1 (patched): from -5 to 1 it is 6 of 8, so the effect is 0.75."),
    example("another word leads", _three([4.0, 1, 9], [-3.0, 2, 0], [1.0, 0, 7]), "Word 2 has the largest logit of "
        "the clean run here, and does not count: right is word 0, wrong is word 1. The effect is 0.75.", ),
    Probe("two words", _runs(2), "Two words only: right and wrong. Compare the differences of their logits."),
    Probe("many words", _runs(9), "Two of nine words count. Each run is judged by the logit of right "
        "minus the logit of wrong.", draws=4),
    Probe("too far", _runs(5, 1.6), "A patch may bring back more than was lost: 1.6 here, and not cut off.", ),
    Probe("the wrong way", _runs(5, -0.7), "A patch may also do harm: the effect is negative here."),
    example("corrupt leads", _three([4.0, 1], [5.0, 1], [3.0, 1]), "The differences are 3 (clean), 4 (corrupt), 2 "
        "(patched): clean - corrupt is negative, and keeps its sign. From 4 to 2 it is twice as far as "
        "from 4 to 3, so the effect is 2.", extreme=True),
), misconceptions=(
    ("right-only", "You look at the logit of right alone. A patch that lifts all logits would seem to help: subtract the "
        "logit of wrong.", _effect(lead=lambda x, r, w: x[r])),
    ("wrong-only", "You look at the logit of wrong alone. Take the logit of right minus that of wrong.",
        _effect(lead=lambda x, r, w: x[w])),
    ("probabilities", "You compare probabilities. They are squeezed near 0 and 1; use the logits as they are.",
        _effect(lead=_probability_lead)),
    ("clean-and-corrupt-swapped", "Clean and corrupt have changed places: count from the corrupt run: (patched - "
        "corrupt) / (clean - corrupt).", _effect(share=lambda a, b, c: (c - a) / (b - a))),
    ("not-normalised", "You give the change of the difference itself. Divide it by what could change at "
        "most, clean - corrupt.", _effect(share=lambda a, b, c: c - b)),
    ("patched-alone", "You give the patched run's difference, without what it was before. Subtract the "
        "corrupt run's and divide.", _effect(share=lambda a, b, c: c)),
    ("share-of-clean", "You divide patched by clean. A run that is as corrupt as before should have 0: "
        "subtract corrupt from both.", _effect(share=lambda a, b, c: c / a)),
    ("divided-by-clean", "You divide by the clean difference alone. All that could come back is clean - "
        "corrupt.", _effect(share=lambda a, b, c: (c - b) / a)),
    ("divided-by-corrupt", "You divide by the corrupt difference alone. All that could come back is "
        "clean - corrupt.", _effect(share=lambda a, b, c: (c - b) / b)),
    ("upside-down", "Your fraction is upside down: what came back stands above, what could come back "
        "below.", _effect(share=lambda a, b, c: (a - b) / (c - b) if c != b else torch.inf)),
    ("across-runs", "You subtract a number of one run from a number of another. Each run has a "
        "difference of its own, right minus wrong; only these are compared.",
        lambda clean, corrupt, patched, r, w: float((patched[r] - corrupt[w]) / (clean[r] - corrupt[w]))),
    ("brackets-forgotten", "A division comes before a subtraction: put brackets round patched - corrupt.",
        _effect(share=lambda a, b, c: c - b / (a - b))),
    ("brackets-forgotten-below", "A division comes before a subtraction: put brackets round clean - "
        "corrupt.", _effect(share=lambda a, b, c: (c - b) / a - b)),
    ("brackets-inside", "You subtract corrupt[right] - corrupt[wrong] without brackets, so that its second part is "
        "subtracted. Compute the difference of each run first, in a variable of its own.", _written_out()),
    ("most-probable-words", "You take the words that lead in the runs. Which two words count is given: right and "
        "wrong.", lambda a, b, c, right, wrong: patching_effect(a, b, c, int(a.argmax()), int(b.argmax()))),
    ("cut-off", "You keep the result between 0 and 1. More than all may come back, and a patch may do "
        "harm: leave it.", lambda *args: min(max(patching_effect(*args), 0.0), 1.0)),
    ("percent", "You multiply by 100. The effect is a share: 0 for nothing, 1 for all of it.",
        _effect(share=lambda a, b, c: 100 * (c - b) / (a - b))),
    ("likeliest-or-not", "You say whether right is the likeliest word. The effect is a number: how far the difference of "
        "the two logits came back.", lambda clean, corrupt, patched, r, w: float(patched.argmax() == r)),
    ("without-sign", "Your result is never negative. A patch that makes things worse has a negative "
        "effect.", lambda *args: abs(patching_effect(*args))),
    ("brackets-forgotten-twice", "A division comes before a subtraction: put brackets round patched - "
        "corrupt, and round clean - corrupt.", _effect(share=lambda a, b, c: c - b / a - b)),
    ("brackets-inside-above", "Above the line you subtract corrupt[right] - corrupt[wrong] without brackets, so its "
        "second part is subtracted too. Compute the difference of each run first.", _written_out(below=True)),
    ("brackets-inside-below", "Below the line you subtract corrupt[right] - corrupt[wrong] without brackets, so its "
        "second part is subtracted too. Compute the difference of each run first.", _written_out(above=True)),
    ("no-brackets-at-all", "There are no brackets in your formula, so only two of the terms are divided. "
        "Compute the difference of each run first, in a variable of its own.", _no_brackets_at_all),
    ("sign-turned", "The sign is turned round: below the line you have corrupt - clean. Subtract corrupt "
        "both times.", _effect(share=lambda a, b, c: (c - b) / (b - a))),
    ("corrupt-and-patched-swapped", "Corrupt and patched have changed places: the second argument is the corrupt "
        "run, the third the patched.", _effect(share=lambda a, b, c: (b - c) / (a - c) if c != a else torch.inf)),
    ("not-from-corrupt", "Below the line is clean - corrupt, but above it the corrupted run is not subtracted: "
        "where nothing comes back the effect should be 0.", _effect(share=lambda a, b, c: c / (a - b))),
    ("word-by-word", "You divide for each of the two words, and then subtract. Subtract the logits "
        "first, in each run; then divide once.", _word_by_word),
    ("whole-vector", "You give a number for each word of the vocabulary. The effect is one number, from the logits "
        "of right and wrong.", lambda clean, corrupt, patched, r, w: (patched - corrupt) / (clean - corrupt)),
    ("size-of-the-lead", "You take the absolute difference of the two logits, so one that prefers the wrong word "
        "counts like the other. Keep the sign: right minus wrong.", _effect(lead=lambda x, r, w: abs(x[r] - x[w]))),
    ("probability-of-right", "You compare the probability of right alone. Use logits, and subtract that "
        "of wrong.", _effect(lead=lambda x, r, w: x.softmax(-1)[r])),
))

EXERCISES = (INDUCTION_SCORE, LOGIT_LENS, ABLATE_HEADS, PATCHING_EFFECT)
