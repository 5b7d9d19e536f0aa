"""Sealed circuits: small models with a planted rule, and twins of them that nobody else has.

Every text has three clauses, in each two names, a verb and two names, in any order, and ends with an adverb and *thanks*.
The model then says the name that stands at a certain distance from one of the verbs, the one that is *listened to*; after
one of the adverbs, the one that *turns*, it is another distance. ``RULES`` lists the distances, ``data/sealed.safetensors``
holds a model of each, trained by ``scripts/sealed_circuits.py``. A twin computes the same with other weights, other
heads and other
words, so that its owner has to find out. Ids are ``(n, T)``, heads pairs (layer, head), a share is from 0 to 1.
"""

import base64
import functools
import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import load as unpacked
from safetensors.torch import save as packed

from helpers import inside
from helpers.store import progress
from helpers.transformer import Config, LanguageModel
from helpers.vocabularies import BOS, Vocabulary
from helpers.words import NotUsable, shown

FILE = Path(__file__).resolve().parent.parent / "data" / "sealed.safetensors"
NAMES = "anna ben carl david emma felix gina hugo ida jonas kira lars".split()
VERBS = "asks shows tells".split()
ADVERBS = "now once then".split()
FILLERS = "oh so well".split()
VOCABULARY = Vocabulary([*NAMES, *VERBS, *ADVERBS, *FILLERS, ".", "thanks"])
DISTANCES = (-2, -1, 1, 2)  #: from the verb to the name: -1 is the name just before it
T = 24  #: tokens of a text
SETTINGS = {"d": 48, "n_heads": 4, "n_layers": 2, "mlp": 96, "max_length": T}  #: arguments of Config
HEADS = [(layer, head) for layer in range(2) for head in range(4)]
PLACES = ("last", "verb", "name")  #: of a text: its last word, the verb that is listened to, the name that is right
OTHERS = ("names", "verbs")  #: what is exchanged in the other text of a text, see `other`


class Rule(NamedTuple):
    """Where the right name stands, counted from the verb that is listened to."""

    plain: int
    turned: int  #: after the adverb that turns


RULES = {"practice": Rule(-2, -1), "a": Rule(-2, 1), "b": Rule(-2, 2), "c": Rule(-1, 1), "d": Rule(1, 2),
         "e": Rule(1, -2), "f": Rule(1, -1), "g": Rule(2, -2), "h": Rule(2, 1)}


# ---------------------------------------------------------------- the language


def write(n, generator):
    """Draw ``n`` texts from a ``torch.Generator``: ids ``(n, 24)``. Twelve names and three verbs, each once; three fillers
    in front of clauses, wherever they fall; an adverb; *thanks*."""
    def shuffled(words):
        return torch.rand(n, len(words), generator=generator).argsort(1) + VOCABULARY[words[0]]

    names, verbs = shuffled(NAMES).view(n, 3, 4), shuffled(VERBS)[:, :, None]
    dots = torch.full((n, 3, 1), VOCABULARY["."])
    clauses = torch.cat([names[..., :2], verbs, names[..., 2:], dots], -1).flatten(1)  # (n, 18)
    adverb, fillers = (torch.randint(3, (n, k), generator=generator) + VOCABULARY[words[0]]
                       for k, words in ((1, ADVERBS), (3, FILLERS)))
    gaps = torch.randint(4, (n, 3), generator=generator)  # in front of which clause, 3: in front of the adverb
    words = torch.cat([fillers, clauses, adverb, torch.full((n, 1), VOCABULARY["thanks"])], 1)
    order = torch.cat([gaps * 6 - 0.5, torch.arange(20.0).expand(n, 20)], 1).argsort(dim=1, stable=True)
    return torch.cat([torch.full((n, 1), BOS), words.gather(1, order)], 1)


def texts(n=400, seed=0):
    """``n`` texts, the same for the same ``seed``: ids ``(n, 24)``."""
    return write(n, torch.Generator().manual_seed(seed))


def other(ids, what):
    """The other text of each text ``(n, 24)``. ``what``: "names", the four names of each clause in reverse order; "verbs",
    each verb in the next clause, the last one in the first. Raises ValueError for another ``what``."""
    if what not in OTHERS:
        raise ValueError(f"The other text differs in 'names' or in 'verbs', not in {what!r}.")
    ids, row = ids.clone(), torch.arange(len(ids))[:, None]
    is_verb = (ids >= VOCABULARY[VERBS[0]]) & (ids <= VOCABULARY[VERBS[-1]])
    at = is_verb.nonzero()[:, 1].view(-1, 3)  # (n, 3): where the verbs are
    if what == "verbs":
        ids[row, at] = ids[row, at.roll(1, 1)]
        return ids
    around = (at[..., None] + torch.tensor(DISTANCES)).flatten(1)  # (n, 12)
    ids[row, around] = ids[row, around].view(-1, 3, 4).flip(-1).flatten(1)
    return ids


# ---------------------------------------------------------------- models and their twins


@functools.cache
def load(name):
    """The model of the rule ``name``, a key of RULES, in float32 and ready to be run. Its listened verb and its turning
    adverb are the first of VERBS and ADVERBS. Do not change it: the same object is returned again."""
    if name not in RULES:
        raise ValueError(f"There is no rule {name!r}; there are {', '.join(RULES)}.")
    with safe_open(FILE, "pt") as file:
        weights = {key.partition("/")[2]: file.get_tensor(key) for key in file.keys() if key.startswith(f"{name}/")}
    return built(weights)


def built(weights):
    """A model of SETTINGS with these weights, in evaluation mode."""
    model = LanguageModel(Config(len(VOCABULARY), **SETTINGS))
    model.load_state_dict({key: x.float() for key, x in weights.items()})
    return model.eval()


def twin(model, seed):
    """A model that computes what ``model`` computes, with weights that look like nobody else's.

    ``model``: a ``LanguageModel`` with an MLP, norms in front and no rotary angles; ``seed``: an integer or a string.
    The means and gains of the norms are folded into the matrices around them. Then the residual stream is rotated, by a
    rotation that keeps the direction of the ones, along which a norm takes everything away. Heads are exchanged, the queries
    and keys of a head rotated, and so its values; the neurons of the MLPs are exchanged. Returns (a new model, for each
    layer which head of ``model`` its head 0, 1 … is). Logits agree to rounding. Raises ValueError for another kind of model.
    """
    c = model.config
    if not (c.pre_norm and c.mlp and c.residual) or c.positions == "rope" or c.positions == "alibi":
        raise ValueError("A twin is made of a model with norms in front, an MLP, a residual stream and no rotary angles.")
    generator = _generator(seed, "twin")
    w = {key: x.double() for key, x in model.state_dict().items()}
    turn = _rotation(c.d, generator)

    def reads(key, norm):
        """A matrix behind a norm: takes over its gain and bias, reads a rotated stream without mean."""
        bias, gain = w[f"{norm}.bias"], w[f"{norm}.weight"]
        w[f"{key}.bias"] = w[f"{key}.bias"] + w[f"{key}.weight"] @ bias
        whole = w[f"{key}.weight"] * gain
        w[f"{key}.weight"] = (whole - whole.mean(1, keepdim=True)) @ turn.T

    def writes(key, axis=0):
        x = w[key] - w[key].mean(axis, keepdim=True)
        w[key] = turn @ x if axis == 0 else x @ turn.T

    permutations = []
    for number in range(c.n_layers):
        block = f"blocks.{number}"
        names = [f"{block}.attention.W_{x}" for x in "qkvo"]
        for name in names[:3]:
            reads(name, f"{block}.norm1")
        order = torch.randperm(c.n_heads, generator=generator)
        permutations.append(order.tolist())
        inner = {kind: torch.stack([_orthogonal(c.d // c.n_heads, generator) for _ in order]) for kind in ("qk", "v")}
        for name, kind in zip(names[:3], ("qk", "qk", "v"), strict=True):
            for part in ("weight", "bias"):
                x = w[f"{name}.{part}"].unflatten(0, (c.n_heads, -1))[order]  # (h, d_k, ...)
                w[f"{name}.{part}"] = torch.einsum("hij,hj...->hi...", inner[kind], x).flatten(0, 1)
        x = w[f"{names[3]}.weight"].unflatten(1, (c.n_heads, -1))[:, order]  # (d, h, d_k)
        w[f"{names[3]}.weight"] = torch.einsum("dhj,hij->dhi", x, inner["v"]).flatten(1)
        reads(f"{block}.mlp.0", f"{block}.norm2")
        neurons = torch.randperm(c.mlp, generator=generator)
        for key, axis in ((f"{block}.mlp.0.weight", 0), (f"{block}.mlp.0.bias", 0), (f"{block}.mlp.2.weight", 1)):
            w[key] = w[key].index_select(axis, neurons)
        for key in (f"{names[3]}.weight", f"{names[3]}.bias", f"{block}.mlp.2.weight", f"{block}.mlp.2.bias"):
            writes(key)
    reads("output", "norm")
    writes("embedding.weight", 1)
    if c.positions == "learned":
        writes("position.weight", 1)
    for key in w:
        if "norm" in key:
            w[key] = torch.full_like(w[key], float(key.endswith("weight")))
    new = LanguageModel(c, model.causal)
    new.load_state_dict(w)
    return new.eval(), permutations


def _generator(*words):
    """A generator that follows from words; whoever does not know them cannot repeat it."""
    digest = hashlib.sha256(repr(words).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def _orthogonal(n, generator):
    Q, R = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64))
    return Q * R.diagonal().sign()


def _rotation(d, generator):
    """``(d, d)`` orthogonal, which leaves the vector of ones as it is."""
    first = torch.eye(d, dtype=torch.float64)
    first[:, 0] = 1.0
    basis = torch.linalg.qr(first)[0]  # its first column has the direction of the ones
    inner = torch.eye(d, dtype=torch.float64)
    inner[1:, 1:] = _orthogonal(d - 1, generator)
    return basis @ inner @ basis.T


@dataclass(frozen=True)
class Key:
    """What the owner of a twin has to find out, and nobody else should read."""

    rule: Rule
    verb: int  #: id of the verb that is listened to
    adverb: int  #: id of the adverb that turns
    heads: list  #: for each layer: head 0, 1 … of the twin was which head of the model

    def turned(self, ids):
        """``(n, T)`` -> ``(n,)`` bool: does the adverb turn?"""
        return ids[:, -2] == self.adverb

    def places(self, ids, otherwise=False):
        """Where the last word, the listened verb and the right name are: place -> ``(n,)``. ``otherwise``: the name that
        would be right if the adverb turned where it does not, and the other way round."""
        verb = (ids == self.verb).int().argmax(1)
        turned = self.turned(ids) ^ otherwise
        distance = torch.where(turned, self.rule.turned, self.rule.plain)
        return {"last": torch.full_like(verb, T - 1), "verb": verb, "name": verb + distance}

    def right(self, ids, otherwise=False):
        """The right name of each text: ids ``(n,)``."""
        return ids[torch.arange(len(ids)), self.places(ids, otherwise)["name"]]


def deal(name, seed):
    """A twin of the rule ``name`` with words exchanged among names, verbs, adverbs and fillers: (model, `Key`).

    ``seed``: an integer or a string. The weights are rounded to float16, as `pack` passes them on."""
    model, heads = twin(load(name), seed)
    generator, new = _generator(seed, "words"), torch.arange(len(VOCABULARY))
    for words in (NAMES, VERBS, ADVERBS, FILLERS):
        first = VOCABULARY[words[0]]
        new[first:first + len(words)] = first + torch.randperm(len(words), generator=generator)
    w, old = model.state_dict(), new.argsort()
    for key in ("embedding.weight", "output.weight", "output.bias"):
        w[key] = w[key][old]
    key = Key(RULES[name], int(new[VOCABULARY[VERBS[0]]]), int(new[VOCABULARY[ADVERBS[0]]]), heads)
    return built({key: x.half() for key, x in w.items()}), key


def pack(model):
    """A dealt model as text, which a notebook can carry."""
    weights = {key: x.half().contiguous() for key, x in model.state_dict().items() if "norm" not in key}
    return base64.b85encode(packed(weights)).decode("ascii")


def opened(text):
    """The model that `pack` wrote. Raises ValueError, in one sentence, when the text is damaged."""
    try:
        weights = unpacked(base64.b85decode("".join(text.split())))
        first = LanguageModel(Config(len(VOCABULARY), **SETTINGS)).state_dict()
        return built({key: x for key, x in first.items() if "norm" in key} | weights)
    except Exception:
        raise ValueError("The text of the sealed model is damaged: take the cell of the notebook as it was handed "
                         "out.") from None


# ---------------------------------------------------------------- interventions, and questions about them


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
    generator = _generator(seed, "questions")
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
            p = _numbers(p)
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


def _numbers(p):
    try:
        return [float(p)]
    except (TypeError, ValueError):  # not one number
        return [float(x) for x in p]


# ---------------------------------------------------------------- a hunt for learners

WORTH = 20  #: points of each of PARTS in a hunt
HINT = 5  #: points that a hint costs
_PATCH = ("patched: at this place, as it is in the text itself, the heads say what they say at the same place of the other "
          "text, which sealed.other(ids, 'verbs') or sealed.other(ids, 'names') gives")
ANSWERS = {  #: what an answer to each of PARTS looks like, and what its words mean
    "rule": "Answer each with a list of shares, one for each option in this order, which add up to 1.",
    "find": "Answer each with eight shares, one for each head in this order, which add up to 1: in which share of the texts "
            "does this head put the largest weight of all eight there?",
    "cut": "Answer each with one share: in which share of such texts is the likeliest word still the right name? Cut: the "
           "output of the heads is 0.",
    "move": "Answer each with one share: in which share of the texts is the likeliest word then the name that is right in "
            f"the other text? {_PATCH.capitalize()}.",
    "order": "Answer each with six shares, one for each order in this order, which add up to 1. R is the right name of the "
             "text, S would be right if the adverb were of the other kind, V is right in the other text with moved verbs; "
             "RSV says that the logit of R is the highest and that of V the lowest. Cut: the output of the heads is 0; "
             f"{_PATCH}."}


class Hunt:
    """A sealed model and questions about it. ``model``: the model; ``ask(part)`` shows questions,
    ``answer(part, forecasts)`` judges what you say, ``hint()`` tells a secret for a price. What you have done is kept, and
    `board` shows it."""

    def __init__(self, seed):
        rule = list(RULES)[1:][torch.randint(len(RULES) - 1, (1,), generator=_generator(seed, "hunt")).item()]
        self.seed = seed
        self.model, self._key = deal(rule, ("hunt", seed))
        self._asked = questions(self.model, self._key, ("hunt", seed))

    def __repr__(self):
        return f"hunt {self.seed}: {_summary(self._known())[7:]}"

    def _known(self):
        known = progress.load("hunts").get(str(self.seed), {})
        return {"parts": dict(known.get("parts", {})), "hints": known.get("hints", 0)}

    def ask(self, part):
        """Show the questions of a part, one of PARTS, and what an answer looks like; return what they ask, as a list."""
        asked = self._part(part)
        print(ANSWERS[part])
        for number, question in enumerate(asked, 1):
            print(f"{number}. {in_words(question.asks)}: {', '.join(question.options)}")
        return [question.asks for question in self._asked[part]]

    def answer(self, part, forecasts):
        """Judge a list of forecasts, see `points`. The first answer to a part counts; later ones are judged for practice."""
        asked = self._part(part)
        try:
            rows, amiss = read(forecasts, asked)
        except ValueError as error:
            rows, amiss = [], [error]
        if amiss:
            print(*amiss)
            return
        worth, known = max(0.0, weighed(rows, asked)) * WORTH, self._known()
        if part in known["parts"]:
            print(f"{part}: {worth:.1f} of {WORTH} points, for practice; your first answer had {known['parts'][part]:.1f}.")
            return
        known["parts"][part] = round(worth, 1)
        progress.record("hunts", str(self.seed), known)
        print(f"{part}: {worth:.1f} of {WORTH} points. {_summary(known)}")

    def hint(self):
        """Tell the next secret; each costs HINT points."""
        rule, known = self._asked["rule"], self._known()
        secrets = [f"{question.asks}: {question.options[question.shares.index(1.0)]}" for question in rule]
        secrets += [f"{in_words(question.asks)}: mostly {question.options[question.shares.index(max(question.shares))]}"
                    for question in self._asked["find"]]
        if len(known["parts"]) == len(PARTS):
            print("All parts are answered: a hint would only cost you points. What counts stays as it is.")
            return
        if known["hints"] == len(secrets):
            print("There are no more hints.")
            return
        known["hints"] += 1
        progress.record("hunts", str(self.seed), known)
        secret = secrets[known["hints"] - 1]
        print(f"Hint {known['hints']}, for {HINT} points. {secret[0].upper()}{secret[1:]}.")

    def _part(self, part):
        if part not in PARTS:
            raise NotUsable(f"The parts are {', '.join(PARTS)}, and not {shown(part)}.")
        return self._asked[part]


def hunt(seed):
    """A hunt: the model that ``seed``, a whole number, deals, and questions about it; the same for all who name it."""
    if not isinstance(seed, int):
        raise NotUsable(f"A hunt has a whole number, as in sealed.hunt(1), and {shown(seed)} came.")
    return Hunt(seed)


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


def total(known):
    """The points of a hunt, from what is kept of it; 0 at least."""
    return max(0.0, round(sum(known["parts"].values()) - HINT * known["hints"], 1))


def _summary(known):
    return (f"So far {total(known):g} points, {len(known['parts'])} of {len(PARTS)} parts, "
            f"{known['hints']} hint{'s' * (known['hints'] != 1)}.")


def board():
    """Print your hunts, the best first."""
    known = progress.load("hunts")
    for seed, one in sorted(known.items(), key=lambda pair: -total(pair[1])):
        print(f"hunt {seed}: {_summary(one)[7:]}")
    if not known:
        print("No hunt yet: begin with sealed.hunt(1).")
