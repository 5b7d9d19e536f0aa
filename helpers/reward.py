"""Learning from a judgement instead of an example: a small policy gradient on the mini-transformer (lesson 19).

A text here is one sentence: it begins with the words of a prompt, and ends with its full stop or after ``LENGTH`` words.
Prompts come in groups: each is answered ``n`` times, and a text is judged by its own group.
"""

import copy
import math
import numbers
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch
from IPython.display import display
from torch.nn import functional as F
from tqdm.auto import tqdm

from helpers import grammars, training
from helpers.efficient import decode_step
from helpers.grammars import BOS, PAD
from helpers.inside import load_mini
from helpers.store import progress, settings
from helpers.words import NotUsable, number_in, shown

PROMPTS = ("the", "a", "she", "they", "keys", "bears", "anna tells ben that", "the keys to the")
LENGTH = 31  # words at most, with those of the prompt and the full stop
EACH = 16  # texts for each prompt in a step
RATE = 6e-4  # of AdamW
LONGEST = 10_000  # steps
STRONGEST = 1000  # leash
MOST = 10**15  # points either way: their squares have to fit into float32
MEASURED = 32  # texts a prompt for what is measured beside the training


# ---------------------------------------------------------------- the exercises


def advantages(rewards):
    """How much better than its group each text is, in standard deviations of the group.

    ``rewards``: ``(G, n)``, a row for each prompt. Returns ``(G, n)``: minus the mean of the row, divided by its standard
    deviation (of n, not n - 1) plus 1e-6; a row of equals gives zeros. Source: Shao et al. 2024, section 4.1.2 (GRPO).
    """
    centred = rewards - rewards.mean(dim=-1, keepdim=True)  # (G, n)
    spread = centred.square().mean(dim=-1, keepdim=True).sqrt()  # (G, 1)
    return centred / (spread + 1e-6)


def policy_gradient_loss(log_probs, advantages, mask):
    """A loss whose gradient makes the words of better texts more probable, and those of worse texts less.

    ``log_probs``: ``(B, T)``, of the words that were drawn; ``advantages``: ``(B,)``; ``mask``: ``(B, T)`` bool, the words
    that count. Returns a scalar, minus the mean of advantage times log probability over all words that count. Raises
    ValueError where none does. Source: Williams 1992 (REINFORCE).
    """
    return -_mean(advantages[:, None] * log_probs, mask)


def kl_to_reference(logits, reference_logits, mask):
    """How far the model's next words are from the reference's: KL(policy ‖ reference) a word, exact, in nats.

    ``logits``, ``reference_logits``: ``(B, T, V)``; ``mask``: ``(B, T)`` bool, the words that count. Returns a scalar.
    Raises ValueError where no word counts. Source: Kullback and Leibler 1951; as a leash Ziegler et al. 2019.
    """
    log_p, log_q = logits.log_softmax(-1), reference_logits.log_softmax(-1)  # (B, T, V)
    return _mean((log_p.exp() * (log_p - log_q)).sum(-1), mask)


def best_of_n(sample, reward, n):
    """Draw ``n`` samples and return the one with the highest reward, the first of equals.

    ``sample``: a function without arguments; ``reward``: a function of what it returns. Raises ValueError when ``n`` is
    below 1. Source: Stiennon et al. 2020.
    """
    if n < 1:
        raise ValueError(f"The best of {n} samples does not exist: n is at least 1.")
    return max((sample() for _ in range(n)), key=reward)


def dpo_loss(chosen, rejected, chosen_reference, rejected_reference, beta):
    """Learn from pairs: raise the chosen text above the rejected one, both measured from the reference.

    ``chosen``, ``rejected``: ``(B,)``, log probabilities of whole texts; ``chosen_reference``, ``rejected_reference``: what
    the reference says of them; ``beta``: above 0, the larger the shorter the way. Returns a scalar, the mean of
    -log σ(beta margin). Source: Rafailov et al. 2023, equation 7.
    """
    margin = (chosen - chosen_reference) - (rejected - rejected_reference)  # (B,)
    return -F.logsigmoid(beta * margin).mean()


def _mean(values, mask):
    """The mean of ``values`` ``(B, T)`` where ``mask`` is True."""
    if not mask.any():
        raise ValueError("No word counts: the mask is False everywhere.")
    return values[mask].mean()


PIECES = {f.__name__: f for f in (advantages, policy_gradient_loss, kl_to_reference, dpo_loss)}  # a learner's come instead
_SOME = torch.randn(2, 2, 5, 40, generator=torch.Generator().manual_seed(0)), torch.ones(2, 5, dtype=torch.bool)
TRIALS = {"policy_gradient_loss": (-_SOME[0][0, ..., 0].square(), torch.tensor([1.0, -1.0]), _SOME[1]),
          "kl_to_reference": (*_SOME[0], _SOME[1]),
          "dpo_loss": (*_SOME[0][0, 0, :4, :2], 1.0)}  # to try a learner's on before it trains


# ---------------------------------------------------------------- texts


class Texts(NamedTuple):
    """G groups of n texts, a row each; the rows of a group are side by side."""

    tokens: torch.Tensor  #: (B, T) ids: BOS, the prompt, the words drawn, PAD after the full stop
    mask: torch.Tensor  #: (B, T) bool: the words that the model chose
    groups: int

    def words(self, vocabulary):
        """A list of words for each row, with its prompt and its full stop."""
        return [[vocabulary.words[i] for i in row if i not in (PAD, BOS)] for row in self.tokens.tolist()]


@settings.usual_torch()
@torch.no_grad()
def write(model, vocabulary, n, generator, prompts=PROMPTS, length=LENGTH):
    """Let a ``LanguageModel`` write ``n`` texts for each prompt: ``Texts``. Drawn at temperature 1 from a
    ``torch.Generator``; each new word is computed alone, with lesson 14's cache."""
    starts = [[BOS, *vocabulary.encode(prompt)] for prompt in prompts for _ in range(n)]
    prompt_ids = torch.full((len(starts), length + 1), -1)  # (B, T): the prompts, and -1 where the model chooses
    for row, start in zip(prompt_ids, starts, strict=True):
        row[:len(start)] = torch.tensor(start)
    tokens, going = torch.full_like(prompt_ids, PAD), torch.arange(len(starts))  # the rows that are not at their end
    tokens[:, 0], caches = BOS, [None] * len(model.blocks)
    p = torch.ones(len(starts), len(vocabulary))  # rows at their end draw as well: so no text's end moves what others draw
    for place in range(1, length + 1):
        logits, caches = _next(model, tokens[going, place - 1:place], place - 1, caches)  # (rows going on, V)
        p[going] = logits.softmax(-1)
        new_ids = torch.multinomial(p, 1, generator=generator)[going, 0]
        tokens[going, place] = torch.where(prompt_ids[going, place] >= 0, prompt_ids[going, place], new_ids)
        over = tokens[going, place] == vocabulary["."]
        if over.any():
            going, caches = going[~over], [tuple(part[~over] for part in cache) for cache in caches]
        if not len(going):
            break
    tokens = tokens[:, :place + 1]
    return Texts(tokens, (prompt_ids[:, :place + 1] < 0) & (tokens != PAD), len(prompts))


def _next(model, last, place, caches):
    """Logits ``(B, V)`` after the ids ``last`` ``(B, 1)`` at ``place``, and the caches with them in."""
    x, new_caches = model.embedding(last) + model.position.weight[place], []  # (B, 1, d)
    for block, cache in zip(model.blocks, caches, strict=True):
        y, attend = block.norm1(x), block.attention
        q, k, v = (attend._split(W(y)) for W in (attend.W_q, attend.W_k, attend.W_v))  # (B, h, 1, d_k)
        heads, cache = decode_step(q, k, v, cache)
        x = x + attend.W_o(attend._merge(heads))
        x = x + block.mlp(block.norm2(x))
        new_caches.append(cache)
    return model.output(model.norm(x))[:, 0], new_caches


def chosen(model, texts):
    """What a model says of words that were drawn before: (logits ``(B, T - 1, V)`` at each place for the next word, log
    probability ``(B, T - 1)`` of the word that came, mask ``(B, T - 1)``)."""
    logits, came = _logits(model, texts), texts.tokens[:, 1:]
    return logits, logits.log_softmax(-1).gather(-1, came[..., None])[..., 0], texts.mask[:, 1:]


def text_log_p(model, texts, rows=slice(None)):
    """The log probability of whole texts ``(B,)``, of what was chosen in them. ``rows``: numbers of texts, or all."""
    _, log_p, mask = chosen(model, Texts(texts.tokens[rows], texts.mask[rows], texts.groups))
    return (log_p * mask).sum(1)


def pairs(points):
    """Pairs of neighbours of a group that earned different points: (numbers of the better texts, of the worse).

    ``points``: ``(G, n)``, n even; text i of group g has the number g n + i.
    """
    two = points.reshape(-1, 2)  # (G n / 2, 2)
    at = 2 * torch.arange(len(two)) + (two[:, 1] > two[:, 0])
    differ = two[:, 0] != two[:, 1]
    return at[differ], (at ^ 1)[differ]


def _logits(model, texts):
    """``(B, T - 1, V)``, zeros behind a text's full stop: texts of about the same length are read together."""
    read = texts.tokens[:, :-1]
    lengths = (read != PAD).sum(1)
    order = lengths.argsort(stable=True)
    parts = [model(read[rows, :lengths[rows[-1]]]) for rows in order.chunk(4)]
    return torch.cat([F.pad(part, (0, 0, 0, read.shape[1] - part.shape[1])) for part in parts])[order.argsort()]


@settings.usual_torch()
def judged(reward, texts, vocabulary):
    """The rewards of all texts, ``(G, n)``. ``reward``: a list of words -> a number.

    Raises NotUsable, in one sentence, for a function that stops, or gives no finite number.
    """
    rows = texts.words(vocabulary)
    return torch.tensor([_number(reward, words) for words in rows]).view(texts.groups, -1)


def _number(reward, words):
    text = " ".join(words[:8]) + (" …" if len(words) > 8 else "")
    try:
        value = reward(list(words))
    except Exception as error:
        raise NotUsable(f"Your reward stopped with {type(error).__name__}, {shown(str(error))}, at the text '{text}': it "
                        "gets a list of words and has to give a number for each text.") from None
    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if not isinstance(value, numbers.Real) or value != value or abs(value) == math.inf:
        came = "nothing (is there a return?)" if value is None else shown(value)
        raise NotUsable(f"Your reward gave {came} for the text '{text}': it has to give a number for each text.")
    if abs(value) > MOST:
        raise NotUsable(f"Your reward is beyond 10^15 at the text '{text}': such points cannot be compared any more, so "
                        "take smaller ones, such as their logarithm.")
    return float(value)


def allowed(grammar, texts):
    """The share of the words chosen that the grammar allows; after a forbidden word none is, up to the full stop."""
    return float((grammar.read(texts.tokens).log_p > -torch.inf)[texts.mask].double().mean())


def most(grammar, points, prompts=PROMPTS, length=LENGTH):
    """The highest reward that a text can earn by the grammar's rules, exact: for each prompt, a list.

    ``points``: word -> what it earns, where the reward is a sum over the words; words that it does not name earn 0.
    """
    vocabulary = grammar.vocabulary
    worth = torch.tensor([float(points.get(word, 0)) for word in vocabulary.words], dtype=torch.float64)
    can, stop = grammar.p > 0, vocabulary["."]
    best = torch.full((len(grammar.p),), 0.0, dtype=torch.float64)  # of what may still come, with no words left
    ahead = [best]
    for _ in range(length):
        value = worth + best[grammar.next].index_fill(1, torch.tensor(stop), 0.0)
        best = value.masked_fill(~can, -torch.inf).amax(1)
        ahead.append(best)
    maxima = []
    for prompt in prompts:
        ids = [BOS, *vocabulary.encode(prompt)]
        state = grammar.states(torch.tensor([ids]))[0, -1]
        maxima.append(float(worth[ids].sum() + ahead[length + 1 - len(ids)][state]))
    return maxima


# ---------------------------------------------------------------- learning


@settings.usual_torch()
@torch.enable_grad()
def one_step(model, optimizer, reward, generator, leash=None, *, vocabulary, prompts=PROMPTS, n=EACH, pieces=PIECES):
    """Write ``n`` texts for each prompt, judge, compare, and make what was better than usual more probable.

    ``leash(logits, texts, mask)``: what is added to the loss; ``pieces``: the functions of `PIECES`, or a learner's.
    """
    texts = write(model, vocabulary, n, generator, prompts)
    better = pieces["advantages"](judged(reward, texts, vocabulary)).flatten()  # (G n,)
    logits, log_probs, mask = chosen(model, texts)
    loss = pieces["policy_gradient_loss"](log_probs, better, mask)
    if leash is not None:
        loss = loss + leash(logits, texts, mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@dataclass
class Run:
    """What happened while a model learned from a reward. Lists: a number for each of ``at``."""

    model: object
    at: list = field(default_factory=list)  #: steps done
    reward: list = field(default_factory=list)  #: mean reward of a text
    allowed: list = field(default_factory=list)  #: share of words that the grammar allows
    kl: list = field(default_factory=list)  #: nats a text from the reference, mean
    texts: dict = field(default_factory=dict)  #: steps done -> lists of words, one text a prompt


@settings.usual_torch()
@torch.enable_grad()
def train(reward, steps=60, strength=0.0, seed=0, every=5, diary=(0, 10, 30, 60), label="learning", step=None,
          prompts=PROMPTS, n=EACH, lr=RATE, pieces=PIECES, live=False):
    """Teach a copy of the mini-transformer by a reward: a ``Run``, measured before, after every ``every`` steps, and at the
    end, on fresh texts.

    ``reward``: a list of words -> a number; ``strength``: of the leash, what a nat of KL a word costs; ``seed``: of what is
    drawn; ``diary``: steps after which texts are kept, besides the last; ``step(model, optimizer, reward, generator,
    leash)``: one's own, in place of `one_step`; ``live``: curves grow while it learns, if a learner is present. Raises
    NotUsable for a reward that cannot be used, also where it tells no two texts apart, and for other ``steps`` or
    ``strength``.
    """
    number_in(steps, 1, LONGEST, "The number of steps")
    number_in(strength, 0, STRONGEST, "The strength of a leash", whole=False)
    reference, vocabulary = load_mini()
    grammar, model = grammars.agreement_grammar(), copy.deepcopy(reference)
    step = step or partial(one_step, vocabulary=vocabulary, prompts=prompts, n=n, pieces=pieces)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0, fused=True)
    generator, run = torch.Generator().manual_seed(seed), Run(model)
    curve = display({"text/plain": ""}, raw=True, display_id=True) if live and progress.live() else None

    def leash(logits, texts, mask):
        with torch.no_grad():
            theirs = _logits(reference, texts)  # (B, T - 1, V)
        return strength * pieces["kl_to_reference"](logits, theirs, mask)

    def measure(done):
        texts = write(model, vocabulary, MEASURED, torch.Generator().manual_seed(10_000 + 100 * seed + done), prompts)
        rewards = judged(reward, texts, vocabulary)
        if done == 0 and float(rewards.max() - rewards.min()) == 0:
            raise NotUsable(f"Your reward is {rewards[0, 0]:g} for every one of {rewards.numel()} texts: there is nothing "
                            "to prefer, so nothing can be learned. Reward something that happens now and then.")
        run.at.append(done)
        run.reward.append(float(rewards.mean()))
        run.allowed.append(allowed(grammar, texts))
        run.kl.append(divergence(model, reference, texts))
        if done in diary or done == steps:
            run.texts[done] = texts.words(vocabulary)[::MEASURED]

    with training.one_thread(), tqdm(range(steps + 1), desc=label, disable=label is None or not progress.live()) as bar:
        for done in bar:
            if done % every == 0 or done == steps or done in diary:
                measure(done)
                bar.set_postfix(reward=f"{run.reward[-1]:.2f}", allowed=f"{run.allowed[-1]:.0%}")
                if curve is not None:
                    curve.update(_curves(run))
            if done < steps:
                step(model, optimizer, reward, generator, leash if strength else None)
    if curve is not None:
        curve.update({"text/plain": ""}, raw=True)  # the lesson draws its own, which stays
    return run


def _curves(run):
    """The figure of a run so far."""
    import matplotlib.pyplot as plt

    from helpers import plots

    figure, both = plt.subplots(1, 2, figsize=(8, 2.2))
    for ax, values, title, colour in zip(both, (run.reward, run.allowed), ("reward", "words that the grammar allows"),
                                         (plots.ORANGE, plots.BLUE), strict=True):
        ax.plot(run.at, values, "o-", color=colour)
        ax.set(xlabel="step", title=title)
    both[1].set_ylim(-0.03, 1.03)
    plt.close(figure)
    return figure


@torch.no_grad()
def divergence(model, reference, texts):
    """KL(policy ‖ reference) of whole texts in nats, from texts that the policy wrote: exact at each word, summed over a
    text, averaged over texts."""
    (logits, _, mask), theirs = chosen(model, texts), _logits(reference, texts)
    return float(kl_to_reference(logits, theirs, mask) * mask.sum() / len(mask))


def divergence_of_best(n, rewards=None):
    """KL of the best of ``n`` from a single sample, in nats: log n - (n - 1)/n where no rewards tie, and less where they do
    (Beirami et al. 2024). With ``rewards`` ``(G, N)`` of N samples a prompt it is exact for their distribution, as a mean
    over prompts: all that choosing changes is how often each reward comes."""
    if rewards is None:
        return math.log(n) - (n - 1) / n
    divergences = []
    for row in rewards.double():
        share = row.unique(return_counts=True)[1] / len(row)  # of each reward, the lowest first
        up_to = share.cumsum(0).clamp(max=1.0)
        best = up_to**n - (up_to - share).clamp(min=0.0) ** n  # that the best of n has this reward
        divergences.append(torch.special.xlogy(best, best / share).sum())
    return float(torch.stack(divergences).mean())


@torch.enable_grad()
def gradient(model, texts, weights):
    """The gradient of `policy_gradient_loss` with ``weights`` ``(B,)`` in the place of advantages: one long vector."""
    model.zero_grad()
    _, log_probs, mask = chosen(model, texts)
    policy_gradient_loss(log_probs, weights, mask).backward()
    slope = torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])
    model.zero_grad()
    return slope


# ---------------------------------------------------------------- a reward to play with


def bears(words):
    """A point for each *bear* or *bears*."""
    return words.count("bear") + words.count("bears")
