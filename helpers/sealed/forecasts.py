"""Forecasts about a sealed model: questions about interventions, the shares that answer them, and what a forecast earns."""

import functools
import itertools
from typing import NamedTuple

import torch

from helpers import inside
from helpers.sealed import ADVERBS, DISTANCES, HEADS, OTHERS, VERBS, VOCABULARY, other, seeded, write

PLACES = ("last", "verb", "name")  #: of a text: its last word, the verb that is listened to, the name that is right


class Step(NamedTuple):
    """An intervention, on texts with the adverb that turns or on texts without it."""

    heads: tuple  #: of pairs (layer, head)
    what: str  #: "cut": they say nothing, 0; "names" or "verbs": they say what they say in that other text
    place: str  #: one of PLACES, or "everywhere"
    turns: bool


class Question(NamedTuple):
    """A question whose answer is a share for each option; ``options`` are words, ``shares`` add up to 1."""

    asks: object
    options: tuple
    shares: tuple


ORDERS = tuple("".join(order) for order in itertools.permutations("RSV"))  #: the name with the highest logit first
PARTS = ("rule", "find", "cut", "move", "order")
LOOKS = (("last", "verb"), ("last", "name"), ("later", "earlier"))  #: from, to; of the verb and the name


class Judge:
    """Performs interventions on fresh texts: ``n`` of each kind, drawn from ``generator``."""

    def __init__(self, model, key, generator, n=200):
        self.model, self.key = model, key
        ids = write(6 * n, generator)
        self.ids = {turns: ids[key.turned(ids) == turns][:n] for turns in (False, True)}
        self.heads = {(turns, what): inside.trace(model, x if what == "own" else other(x, what), weights=False).heads
                      for turns, x in self.ids.items() for what in ("own", *OTHERS)}
        self.logits = functools.cache(self._logits)

    def _logits(self, step):
        """``(n, V)``: of the last word, after the intervention."""
        ids = self.ids[step.turns]
        row = torch.arange(len(ids))
        where = slice(None) if step.place == "everywhere" else self.key.places(ids)[step.place]

        def edit(layer, z):
            new = torch.zeros_like(z) if step.what == "cut" else self.heads[step.turns, step.what][layer]
            for at, head in step.heads:
                if at == layer and step.place == "everywhere":
                    z[:, head] = new[:, head]
                elif at == layer:
                    z[row, head, where] = new[row, head, where]
            return z
        return inside.trace(self.model, ids, edit=edit, weights=False).logits[:, -1]

    def right(self, step):
        """The share of texts in which the likeliest word is still the right name."""
        return _share(self.logits(step).argmax(-1) == self.key.right(self.ids[step.turns]))

    def moved(self, step):
        """The share of texts in which the likeliest word is the name that is right in the other text."""
        ids = self.ids[step.turns]
        return _share(self.logits(step).argmax(-1) == self.key.right(other(ids, step.what)))

    def orders(self, step):
        """The share of texts in which each of ORDERS is that of the logits of three names: R, right; S, right if the
        adverb were of the other kind; V, right in the other text with moved verbs."""
        ids, z = self.ids[step.turns], self.logits(step)
        three = [self.key.right(ids), self.key.right(ids, otherwise=True), self.key.right(other(ids, "verbs"))]
        three = torch.stack(three, 1)  # (n, 3)
        order = z.gather(1, three).argsort(1, descending=True)  # (n, 3)
        codes = ["".join("RSV"[i] for i in row) for row in order.tolist()]
        return tuple(codes.count(order) / len(codes) for order in ORDERS)

    def looks(self, start, end, turns):
        """The share of texts in which each of HEADS has the largest weight of all eight from one place to another."""
        ids = self.ids[turns]
        places, row = self.key.places(ids), torch.arange(len(ids))
        low, high = (f(places["verb"], places["name"]) for f in (torch.minimum, torch.maximum))
        places |= {"earlier": low, "later": high}
        weights = torch.cat(inside.trace(self.model, ids).weights, 1)  # (n, 8, T, T)
        best = weights[row, :, places[start], places[end]].argmax(-1)  # (n,)
        return tuple(_share(best == head) for head in range(len(HEADS)))


def _share(hits):
    return hits.double().mean().item()


def questions(model, key, seed):
    """The questions about a dealt model: part -> list of `Question`. Those about interventions are drawn from ``seed``, so
    that half of them change much and half hardly anything, where there are enough of both."""
    generator = seeded(seed, "questions")
    judge = Judge(model, key, generator)

    def drawn(things, k):
        return [things[i] for i in torch.randperm(len(things), generator=generator)[:k].tolist()]

    def balanced(steps, effect, k):
        measured = [(step, effect(step)) for step in steps]
        strong = [step for step, size in measured if size >= 0.5] + [
            step for step, size in sorted(measured, key=lambda pair: -pair[1]) if size < 0.5]
        enough = sum(size >= 0.5 for _, size in measured)
        strong = (drawn(strong[:enough], k // 2) + strong[enough:])[:k // 2]
        return drawn(strong + drawn([step for step, size in measured if size < 0.1 and step not in strong], k - k // 2), k)

    def one_of(asks, options, right):
        return Question(asks, tuple(map(str, options)), tuple(float(option == right) for option in options))

    both, pairs = (False, True), list(itertools.combinations(HEADS, 2))
    singles = [(head,) for head in HEADS]
    cuts = [Step(team, "cut", "everywhere", turns) for team in [*singles, *drawn(pairs, 6)] for turns in both]
    patches = [Step(team, what, place, turns) for what in OTHERS for place in PLACES for turns in both
               for team in [*drawn(singles, 4), *drawn(pairs, 2)]]
    cut = {step: judge.right(step) for step in cuts}
    moved = {step: judge.moved(step) for step in patches}
    order = {step: judge.orders(step) for step in drawn(cuts + patches, 60)}
    usual = {turns: judge.orders(Step((), "cut", "everywhere", turns)) for turns in both}

    def shift(step):
        return sum(abs(x - y) for x, y in zip(order[step], usual[step.turns], strict=True)) / 2

    return {
        "rule": [one_of("the verb that is listened to", VERBS, VOCABULARY.words[key.verb]),
                 one_of("the distance", DISTANCES, key.rule.plain),
                 one_of("the adverb that turns", ADVERBS, VOCABULARY.words[key.adverb]),
                 one_of("the distance after it", DISTANCES, key.rule.turned)],
        "find": [Question((start, end, turns), tuple(map(str, HEADS)), judge.looks(start, end, turns))
                 for start, end in LOOKS for turns in both],
        "cut": [Question(step, ("right", "not"), (cut[step], 1 - cut[step]))
                for step in balanced(cuts, lambda step: 1 - cut[step], 8)],
        "move": [Question(step, ("moved", "not"), (moved[step], 1 - moved[step]))
                 for step in balanced(patches, moved.get, 8)],
        "order": [Question(step, ORDERS, order[step])
                  for step in balanced(list(order), shift, 6)],
    }


def points(forecasts, asked):
    """What forecasts are worth: 1 for the true shares, 0 for even ones everywhere, below 0 for worse.

    ``forecasts``: a list for each `Question` of ``asked``, a number for each option, which add up to 1; where there are two
    options, the share of the first is enough. It is ``1 - Σ (p - q)² / Σ (even - q)²``: Brier's score (1950) on all texts,
    shifted and scaled, so on average nobody gains by saying anything but what they believe. Shares that were rounded are
    scaled to add up to 1, and what is no forecast counts as even shares, see `read`. Raises ValueError, a sentence.
    """
    return weighed(read(forecasts, asked)[0], asked)


def read(forecasts, asked):
    """(for each question its shares, or None where no forecast was given; a sentence about each of these).

    Shares that add up to something from 0.8 to 1.25 are divided by it: they were rounded. Raises ValueError, a sentence,
    where there is not one forecast for each question."""
    try:
        given = list(forecasts)
    except TypeError:
        given = []
    if isinstance(forecasts, str | dict) or len(given) != len(asked):
        raise ValueError(f"Give a list with a forecast for each of the {len(asked)} questions.")
    rows, amiss = [], []
    for number, (p, question) in enumerate(zip(given, asked, strict=True), 1):
        n = len(question.options)
        try:
            p = numbers(p)
            p = [p[0], 1 - p[0]] if n == 2 and len(p) == 1 else p
            good = len(p) == n and all(0 <= x <= 1 for x in p) and 0.8 - 1e-6 <= sum(p) <= 1.25 + 1e-6
        except (TypeError, ValueError, OverflowError):
            good = False
        rows.append([x / sum(p) for x in p] if good else None)
        if not good:
            what = "one share from 0 to 1" if n == 2 else f"{n} shares from 0 to 1 that add up to 1"
            amiss.append(f"Question {number} asks for {what}.")
    return rows, amiss


def weighed(rows, asked):
    """`points` of the rows that `read` gives."""
    lost = even = 0.0
    for p, question in zip(rows, asked, strict=True):
        n = len(question.options)
        lost += sum((x - q) ** 2 for x, q in zip(p or [1 / n] * n, question.shares, strict=True))
        even += sum((1 / n - q) ** 2 for q in question.shares)
    return 1 - lost / even


def numbers(p):
    """One forecast, a number or several, as a list of floats. Raises TypeError, ValueError for what is none."""
    try:
        return [float(p)]
    except (TypeError, ValueError):  # not one number
        return [float(x) for x in p]


def in_words(asks):
    """What a question asks, in words."""
    if isinstance(asks, str):
        return asks
    kind = "turns" if asks[-1] else "does not turn"
    where = {"verb": "the listened verb", "name": "the right name", "last": "the last word", "everywhere": "every place",
             "later": "the later of the listened verb and the right name", "earlier": "the earlier of the two"}
    if not isinstance(asks, Step):
        return f"where the adverb {kind}, which head has the largest weight from {where[asks[0]]} to {where[asks[1]]}"
    heads = " and ".join(map(str, asks.heads))
    says = "cut" if asks.what == "cut" else f"patched from the other text ({asks.what})"
    return f"where the adverb {kind}, {heads} {says} at {where[asks.place]}"
