"""Sealed circuits: small models with a planted rule, and twins of them that nobody else has.

Every text has three clauses, in each two names, a verb and two names, in any order, and ends with an adverb and *thanks*.
The model then says the name that stands at a certain distance from one of the verbs, the one that is *listened to*; after
one of the adverbs, the one that *turns*, it is another distance. ``RULES`` lists the distances, ``data/sealed.safetensors``
holds a model of each, trained by ``scripts/sealed_circuits.py``. A twin computes the same with other weights, other heads
and other words, so that its owner has to find out. Ids are ``(n, T)``, heads pairs (layer, head).
"""

import base64
import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch

from helpers.grammars import BOS, Vocabulary
from helpers.transformer import Config, LanguageModel

FILE = Path(__file__).resolve().parents[2] / "data" / "sealed.safetensors"
NAMES = "anna ben carl david emma felix gina hugo ida jonas kira lars".split()
VERBS = "asks shows tells".split()
ADVERBS = "now once then".split()
FILLERS = "oh so well".split()
VOCABULARY = Vocabulary([*NAMES, *VERBS, *ADVERBS, *FILLERS, ".", "thanks"])
DISTANCES = (-2, -1, 1, 2)  #: from the verb to the name: -1 is the name just before it
T = 24  #: tokens of a text
SETTINGS = {"d": 48, "n_heads": 4, "n_layers": 2, "mlp": 96, "max_length": T}  #: arguments of Config
HEADS = [(layer, head) for layer in range(2) for head in range(4)]
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
    with safetensors.safe_open(FILE, "pt") as file:
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
    generator = seeded(seed, "twin")
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
    w |= {key: torch.full_like(x, float(key.endswith("weight"))) for key, x in w.items() if "norm" in key}
    new = LanguageModel(c, model.causal)
    new.load_state_dict(w)
    return new.eval(), permutations


def seeded(*words):
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
    inner = torch.block_diag(torch.ones(1, 1, dtype=torch.float64), _orthogonal(d - 1, generator))
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
    generator, new = seeded(seed, "words"), torch.arange(len(VOCABULARY))
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
    return base64.b85encode(safetensors.torch.save(weights)).decode("ascii")


def opened(text):
    """The model that `pack` wrote. Raises ValueError, in one sentence, when the text is damaged."""
    try:
        weights = safetensors.torch.load(base64.b85decode("".join(text.split())))
        first = LanguageModel(Config(len(VOCABULARY), **SETTINGS)).state_dict()
        return built({key: x for key, x in first.items() if "norm" in key} | weights)
    except Exception:
        raise ValueError("The text of the sealed model is damaged: take the cell of the notebook as it was handed "
                         "out.") from None
