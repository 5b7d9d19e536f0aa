"""Look inside a trained model: where attention flows, what single heads do, and what fails without them.

Also the mini-transformer of lesson 11, trained: ``load_mini`` reads it from ``data/mini_transformer.safetensors``,
which ``scripts/mini_transformer.py`` made. Shapes: heads ``(B, h, T, d_k)``, weights ``(..., h, T, T)``, query by key.
"""

import contextlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch

from helpers import grammars
from helpers.smollm2 import PIECES, rms_norm
from helpers.store import settings
from helpers.transformer import Config, LanguageModel
from helpers.words import NotUsable, listed, pairs_in, shown

MINI_FILE = Path(__file__).resolve().parent.parent / "data" / "mini_transformer.safetensors"


def attention_rollout(attentions):
    """Follow attention through all layers: how much of each token, by the weights, has reached each position.

    ``attentions``: for each layer ``(h, T, T)``, the first layer first; T and the rows' sum of 1 are the same in all.
    A layer counts as ``½ mean over heads + ½ identity``, the identity being the residual stream, with rows brought to
    sum 1; the layers are multiplied, the later one on the left. Returns ``(T, T)``, rows sum to 1.
    Raises ValueError when there is no layer. Source: Abnar and Zuidema 2020, section 3.
    """
    if not len(attentions):
        raise ValueError("There is no layer to follow: give (h, T, T) for each layer.")
    rollout = None
    for weights in attentions:
        mean = weights.mean(dim=0)  # (T, T)
        layer = 0.5 * mean + 0.5 * torch.eye(len(mean)).to(mean)
        layer = layer / layer.sum(dim=1, keepdim=True)
        rollout = layer if rollout is None else layer @ rollout
    return rollout


def previous_token_score(weights):
    """The mean weight from position i to i - 1, over all i ≥ 1: 1 for a head that always looks one token back.

    ``weights``: ``(h, T, T)``. Returns ``(h,)``, each from 0 to 1. Raises ValueError when T is 1: nothing comes before.
    """
    if weights.shape[-1] < 2:
        raise ValueError("A sequence of one token has no previous token; T must be at least 2.")
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=1)


def ablate_head(head_outputs, W_o, head):
    """The output of multi-head attention with the contribution of one head removed.

    ``head_outputs``: ``(B, h, T, d_k)``, weights times values; ``W_o``: ``(d, d)``, multiplied from the right, d = h·d_k;
    ``head``: its number, from 0. Returns ``(B, T, d)``: the sum of the other heads' contributions.
    Raises ValueError when there is no such head. Source: Michel et al. 2019, section 2.2, with ξ = 0 for one head.
    """
    h = head_outputs.shape[1]
    if not 0 <= head < h:
        raise ValueError(f"There is no head {head}: the {h} heads are counted from 0 to {h - 1}.")
    others = head_outputs.clone()
    others[:, head] = 0
    return others.transpose(1, 2).flatten(2) @ W_o  # (B, T, h·d_k) @ (d, d)


def patch_head(heads, other, head, position):
    """What the heads of one run said, but one head's output at one position comes from another run.

    ``heads``, ``other``: ``(B, h, T, d_k)``, weights times values of two runs on as many texts; ``head``, ``position``:
    numbers from 0. Returns a copy ``(B, h, T, d_k)``: each text takes it from the text of its own number.
    Raises ValueError when there is no such head or position. Source: Wang et al. 2022, section 3 (activation patching).
    """
    _, h, T, _ = heads.shape
    if not 0 <= head < h or not 0 <= position < T:
        raise ValueError(f"There is no head {head} at position {position}: heads are counted from 0 to {h - 1}, positions "
                         f"from 0 to {T - 1}.")
    patched = heads.clone()
    patched[:, head, position] = other[:, head, position]
    return patched


# ---------------------------------------------------------------- one of the course's own models


@dataclass(frozen=True)
class Trace:
    """What an ``Encoder`` computed for ids ``(B, T)``; a tensor for each layer in every list."""

    logits: torch.Tensor  #: (B, T, outputs)
    weights: list | None  #: (B, h, T, T)
    values: list  #: (B, h, T, d_k)
    heads: list  #: (B, h, T, d_k): weights times values, or what was put in their place


@torch.no_grad()
def trace(model, tokens, keep=None, edit=None, weights=True, join=None):
    """Run a ``transformer.Encoder`` on ids ``(B, T)`` and keep what its heads did, a ``Trace``.

    ``keep``: bool ``(layers, h)``; False switches a head off: its output becomes 0, as ``ablate_head`` has it.
    ``edit(layer, z)``: gets the head outputs ``z``, ``(B, h, T, d_k)``, which it may change, and returns those that the
    model goes on with. ``join(layer, z, W_o)``: what a layer's attention hands on, ``(B, T, d)``, in the place of z's heads
    side by side times ``W_o`` (a bias comes on top). ``weights=False`` leaves the weights out, which takes half of the time.
    """
    values, heads, h = [], [], model.config.n_heads

    def note(module, inputs, output):
        values.append(output.unflatten(-1, (h, -1)).transpose(1, 2))

    def change(layer):
        def hook(module, inputs):
            z = inputs[0].unflatten(-1, (h, -1)).transpose(1, 2)  # (B, h, T, d_k)
            if keep is not None:
                z = z * torch.as_tensor(keep)[layer].to(z)[:, None, None]
            heads.append(z if edit is None else edit(layer, z.clone()))
            return heads[-1].transpose(1, 2).flatten(2)
        return hook

    def joined(layer):
        def hook(module, inputs, output):
            return join(layer, heads[layer], module.weight.T) + (0.0 if module.bias is None else module.bias)
        return hook

    with contextlib.ExitStack() as hooks:
        for layer, block in enumerate(model.blocks):
            hooks.callback(block.attention.W_v.register_forward_hook(note).remove)
            hooks.callback(block.attention.W_o.register_forward_pre_hook(change(layer)).remove)
            if join is not None:
                hooks.callback(block.attention.W_o.register_forward_hook(joined(layer)).remove)
        logits, w = model(tokens, weights=True) if weights else (model(tokens), None)
    return Trace(logits, w, values, heads)


# ---------------------------------------------------------------- inside a chat model (lesson 17)


def induction_score(weights, period):
    """How much each head looks at what came after the same token, in a text that repeats every ``period`` tokens.

    ``weights``: ``(h, T, T)``. Returns ``(h,)``: the mean weight from position i to i - period + 1, over i ≥ period.
    Raises ValueError unless 1 ≤ period < T. Source: Olsson et al. 2022 (prefix matching).
    """
    T = weights.shape[-1]
    if not 1 <= period < T:
        raise ValueError(f"The period must be at least 1 and below the {T} tokens of the text; it is {period}.")
    places = torch.arange(period, T)
    return weights[:, places, places - period + 1].mean(dim=-1)


def logit_lens(states, gain, W_U, eps=1e-5):
    """What the model would answer after each layer: its last norm and output matrix, applied to every state.

    ``states``: list of L tensors ``(T, d)``; ``gain``: ``(d,)``; ``W_U``: ``(d, V)``. Returns logits ``(L, T, V)``.
    Source: nostalgebraist 2020.
    """
    return rms_norm(torch.stack(list(states)), gain, eps) @ W_U


def ablate_heads(head_outputs, heads, mean=False):
    """A copy in which the named heads say nothing: 0, or with ``mean`` the same everywhere.

    ``head_outputs``: ``(B, h, T, d_k)``; ``heads``: a list of numbers; ``mean=True``: their mean over batch and positions
    stands in every place. Returns the same shape.
    """
    changed = head_outputs.clone()
    for head in heads:
        changed[:, head] = head_outputs[:, head].mean(dim=(0, 1)) if mean else 0.0
    return changed


def patching_effect(clean, corrupt, patched, right, wrong):
    """How far a patch brings back the right answer: 0 as corrupt as before, 1 as clean.

    ``clean``, ``corrupt``, ``patched``: logits ``(V,)``; ``right``, ``wrong``: ids. Each is judged by the difference of the
    logits of ``right`` and ``wrong``: ``(patched - corrupt) / (clean - corrupt)``. Source: Wang et al. 2022, section 3.
    """
    clean, corrupt, patched = (float(logits[right] - logits[wrong]) for logits in (clean, corrupt, patched))
    return (patched - corrupt) / (clean - corrupt)


def every_head(weights, score):
    """A score for each head of each layer, the mean over the batch: ``(L, B, h, T, T)`` -> ``(L, h)``.

    ``score``: takes ``(h, T, T)`` and returns ``(h,)``, as `induction_score` does for one period.
    """
    return torch.stack([torch.stack([score(w) for w in layer]).mean(dim=0) for layer in weights])


def ranked(values):
    """All heads as pairs (layer, head), that with the highest of the values ``(L, h)`` first."""
    heads = [(layer, head) for layer in range(values.shape[0]) for head in range(values.shape[1])]
    return sorted(heads, key=lambda at: -float(values[at]))


@dataclass(frozen=True)
class Reading:
    """What a `smollm2.ChatModel` computed for ids ``(B, T)``: one tensor of each kind, for all L layers."""

    logits: torch.Tensor  #: (B, T, V)
    states: torch.Tensor  #: (L + 1, B, T, d): the embedding, then what comes out of each layer
    heads: torch.Tensor  #: (L, B, h, T, d_k): weights times values, or what was put in their place
    weights: torch.Tensor  #: (L, B, h, T, T)
    cache: list  #: for each layer (K, V), (B, g, T, d_k) each


@torch.no_grad()
def read(model, ids, **options):
    """Run a `smollm2.ChatModel` on ids ``(B, T)`` and keep what it computed: a `Reading`. ``options``: as for ``run``."""
    parts = {}
    logits, cache = model.run(ids, trace=parts, **options)
    return Reading(logits, *(torch.stack(parts[name]) for name in ("states", "heads", "weights")), cache)


def seeing(mask):
    """What makes `smollm2.ChatModel` see only what a mask ``(T, T)`` allows: (``pieces`` for its ``run``, a list).

    The list gets the weights ``(B, h, T, T)`` of each layer that runs. Without a cache: the text is read at once.
    """
    weights = []

    def attend(q, k, v, cache=None):
        K, V = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))  # a group's heads share keys
        scores = (q @ K.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
        weights.append(scores.softmax(-1))
        return weights[-1] @ V, (k, v)

    return PIECES | {"cached_attention": attend}, weights


@dataclass(frozen=True)
class Questions:
    """Questions of one form that a `smollm2.ChatModel` answers rightly, and what it computed as it read them."""

    model: object
    frame: str  #: such as "The capital of {} is"
    subjects: list  #: n strings
    said: list  #: n strings, the right answers
    ids: torch.Tensor  #: (n, T)
    answers: torch.Tensor  #: (n,): the first token of each answer
    seen: Reading
    left_out: dict  #: subject -> why its question does not count

    def last(self, rows, edit=None):
        """Read the last token of these questions again, with an ``edit(layer, z)`` of the heads ``z`` ``(n, h, 1, d_k)``:
        logits ``(n, V)``. ``rows``: n numbers of questions; the earlier tokens stay as they were."""
        past = [(K[rows, :, :-1], V[rows, :, :-1]) for K, V in self.seen.cache]
        with torch.no_grad():
            return self.model.run(self.ids[rows, -1:], past, edit=edit)[0][:, -1]

    def write(self, row, edit=None, n=8):
        """What the model writes after a question, ``n`` tokens, the likeliest each time. The edit is for its last token."""
        past = [(K[[row], :, :-1], V[[row], :, :-1]) for K, V in self.seen.cache]
        new, written = self.ids[[row], -1:], []
        with torch.no_grad():
            for _ in range(n):
                logits, past = self.model.run(new, past, edit=edit)
                edit, new = None, logits[:, -1:].argmax(-1)
                written.append(int(new))
        return b"".join(map(self.model.tokens.bytes_of, written)).decode("utf-8", "replace")

    def patch(self, layer, head, givers):
        """An ``edit`` for `last` and `write`: at the last token this head says what it said here for the givers, numbers of
        questions, one for each row."""
        def edit(where, z):
            z = z.clone()
            if where == layer:
                z[:, head] = self.seen.heads[layer, givers, head, -1:]
            return z
        return edit

    def rewrite(self, question, other, layer, head, n=2):
        """Print what the model writes after a question, and with this head of another one.

        Raises NotUsable where there is no such question or head."""
        if unknown := [shown(name, 30) for name in (question, other) if name not in self.subjects]:
            raise NotUsable(f"It was not asked about {listed(unknown)}, or got it wrong: choose two of "
                            f"{', '.join(self.subjects)}.")
        if layer not in range(len(self.model.layers)) or head not in range(self.model.n_heads):
            raise NotUsable(f"There is no head {shown(head, 30)} in layer {shown(layer, 30)}: layers are counted from 0 to "
                            f"{len(self.model.layers) - 1}, heads from 0 to {self.model.n_heads - 1}.")
        taker, giver = map(self.subjects.index, (question, other))
        for how, edit in ("by itself", None), (f"with ({layer}, {head}) of {other}", self.patch(layer, head, [giver])):
            print(f"{self.frame.format(question)} {' '.join(self.write(taker, edit, n).split())}   ({how})")

    def pairs(self):
        """All ordered pairs of questions with different answers: two lists of numbers, who is asked and who gives."""
        n = range(len(self.subjects))
        both = [(a, b) for a in n for b in n if self.answers[a] != self.answers[b]]
        return [a for a, _ in both], [b for _, b in both]


def ask(model, frame, answers, least=4):
    """Ask a `smollm2.ChatModel` questions of one form: `Questions`, without those that it answers wrongly.

    ``frame``: a beginning with {}, such as "The capital of {} is"; ``answers``: subject -> answer. A question
    counts if the likeliest next token begins its answer, and if it has as many tokens as most. Raises NotUsable, in one
    sentence, when ``frame`` has no {}, or fewer than ``least`` questions are left.
    """
    if not isinstance(frame, str) or frame.count("{}") != 1 or set("{}") & set(frame.replace("{}", "")):
        raise NotUsable(f"Write {{}} once where the subject belongs, as in 'The capital of {{}} is'; it is {shown(frame)}.")
    pairs_in(answers, like=("France", "Paris"))
    encode = model.tokens.encode
    asked = {subject: encode(frame.format(subject).rstrip()) for subject in answers}
    usual = Counter(map(len, asked.values())).most_common(1)[0][0] if asked else 0
    left_out = {s: f"{len(ids)} tokens, and most have {usual}" for s, ids in asked.items() if len(ids) != usual}
    fits = [subject for subject in asked if subject not in left_out]
    first = {subject: encode(f" {answers[subject].strip()}")[0] for subject in fits}
    if fits:
        with torch.no_grad():
            likeliest = model.run(torch.tensor([asked[s] for s in fits]))[0][:, -1].argmax(-1).tolist()
        left_out |= {s: f"it says {model.tokens.text_of(i).strip()!r}" for s, i in zip(fits, likeliest, strict=True)
                     if i != first[s]}
    right = [subject for subject in fits if subject not in left_out]
    if len(right) < least:
        why = "; ".join(f"{subject[:20]}: {reason}" for subject, reason in list(left_out.items())[:5])
        why = f" ({why})" if why else ""
        raise NotUsable(f"Of these {len(answers)} questions the model answers {len(right)} rightly, and {least} are needed; "
                        f"choose others or other words{why}.")
    ids = torch.tensor([asked[subject] for subject in right])
    return Questions(model, frame, right, [answers[s].strip() for s in right], ids,
                     torch.tensor([first[s] for s in right]), read(model, ids), left_out)


# ---------------------------------------------------------------- the mini-transformer, trained


@settings.usual_torch()
def load_mini(path=MINI_FILE):
    """The trained mini-transformer of lesson 11 and its vocabulary: (``LanguageModel``, ``grammars.Vocabulary``)."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["about"])
        words = about["vocabulary"]
        model = LanguageModel(Config(len(words), **about["settings"]))
        model.load_state_dict({name: file.get_tensor(name).float() for name in file.keys()})
    return model.eval(), grammars.Vocabulary(words[len(grammars.SPECIAL):])
