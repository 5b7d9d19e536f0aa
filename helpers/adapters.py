"""Teach a chat model something new: low-rank adapters beside the frozen matrices of `smollm2.ChatModel` (lesson 18).

The first four functions are the exercises of the lesson. The rest is what they are put to use in: `Adapter` holds the two
thin matrices of every adapted one, `keep` computes once what the frozen layers say, `train` lets the adapter learn from it,
and `exact`, `answers` and `text_loss` measure before and after. Examples are pairs (question, answer); a system message says
what is asked for.

Sources: Hu et al. 2021 (LoRA); Houlsby et al. 2019 (adapters).
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.nn import functional as F

from helpers import smollm2
from helpers.store import settings
from helpers.texts import read_text
from helpers.training import bar, fit, one_thread
from helpers.words import NotUsable, shown, text_in

# ---------------------------------------------------------------- the exercises


def lora_linear(x, W, A, B, alpha):
    """``x W + (alpha / r) (x A) B``: a frozen matrix, and two thin ones beside it. ``A B`` itself is never formed.

    ``x``: ``(..., d_in)``; ``W``: ``(d_in, d_out)``; ``A``: ``(d_in, r)``; ``B``: ``(r, d_out)``; ``alpha``: a number.
    Returns ``(..., d_out)``. Source: Hu et al. 2021, equation 3.
    """
    return x @ W + alpha / A.shape[1] * (x @ A @ B)  # from the left: (..., r), then (..., d_out)


def merge_lora(W, A, B, alpha):
    """The one matrix ``(d_in, d_out)`` that does the same as `lora_linear`. Source: Hu et al. 2021, section 4.1."""
    return W + alpha / A.shape[1] * (A @ B)


def answer_loss(logits, ids, first, pad=-1):
    """The mean loss of the answers' tokens: of token t given those before it, only where t ≥ ``first`` of its row.

    ``logits``: ``(B, T, V)``; ``ids``: ``(B, T)``; ``first``: ``(B,)``, where each answer begins; ``pad``: the id of
    padding, which counts nowhere, as token 0 does. Returns a scalar, one mean over all counted tokens. Raises ValueError
    when there are none. Source: Ouyang et al. 2022, section 3.5 (supervised fine-tuning).
    """
    places = torch.arange(ids.shape[1])
    counted = ((places >= first[:, None]) & (ids != pad))[:, 1:]  # (B, T-1): token 0 has nothing before it
    if not counted.any():
        raise ValueError("There is no token of an answer to learn from: each first lies behind the end of its row.")
    return F.cross_entropy(logits[:, :-1][counted], ids[:, 1:][counted])


def wilson_interval(successes, n):
    """Where the true share lies when ``successes`` of ``n`` tries went well: (low, high), with 95 % confidence.

    Raises ValueError for ``n`` below 1 and for successes outside 0 … n. Source: Wilson 1927.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} tries cannot be: there is at least one try, and 0 to all succeed.")
    z = 1.96
    middle = (successes + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * (successes * (n - successes) / n + z**2 / 4) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


PIECES = {"lora_linear": lora_linear, "merge_lora": merge_lora, "answer_loss": answer_loss,
          "decoder_layer": smollm2.decoder_layer}  # what a learner's functions take the place of


def trials(model):
    """Inputs of the sizes of the training, to try a learner's function on before it trains: {name: arguments}."""
    generator, layer = torch.Generator().manual_seed(0), model.layers[20]
    d = layer["W_q"].shape[0]
    x, A = torch.randn(2, 20, d, generator=generator), torch.randn(d, 8, generator=generator)
    logits, ids = torch.randn(2, 20, 50, generator=generator), torch.randint(50, (2, 20), generator=generator)
    return {"lora_linear": (x, layer["W_q"], A, A.T, 16.0), "answer_loss": (logits, ids, torch.tensor([9, 12]), -1),
            "decoder_layer": (x, layer, model.n_heads, model.n_groups, torch.arange(20.0), None, model.base)}


# ---------------------------------------------------------------- adapters in a chat model


class Adapted:
    """A matrix with an adapter beside it: ``x @ this`` is ``linear(x, W, A, B, alpha)``, so that any layer that says
    ``x @ w["W_q"]`` runs with it. Where a layer does something else with the matrix, it gets the merged one."""

    def __init__(self, W, A, B, alpha, linear=lora_linear):
        self.W, self.A, self.B, self.alpha, self.linear = W, A, B, alpha, linear

    def __rmatmul__(self, x):
        return self.linear(x, self.W, self.A, self.B, self.alpha)

    @classmethod
    def __torch_function__(cls, function, types, args=(), named=None):
        if function.__name__ in ("matmul", "__matmul__") and isinstance(args[1], cls) and not isinstance(args[0], cls):
            return args[1].__rmatmul__(args[0])
        plain = [arg.merged() if isinstance(arg, cls) else arg for arg in args]
        named = {name: arg.merged() if isinstance(arg, cls) else arg for name, arg in (named or {}).items()}
        return function(*plain, **named)

    def merged(self):
        return merge_lora(self.W, self.A, self.B, self.alpha)

    def __getattr__(self, name):  # its shape, its transpose, ...
        return getattr(self.merged(), name)


class Adapter(torch.nn.Module):
    """The thin matrices beside some matrices of a chat model, ``A`` and ``B``: dicts from "20-W_q" to ``(d_in, r)`` and
    ``(r, d_out)``, and ``alpha``. ``Adapter.beside(model)`` makes a new one, which changes nothing yet because B is 0."""

    def __init__(self, A, B, alpha):
        super().__init__()
        self.A, self.B = (torch.nn.ParameterDict({name: torch.nn.Parameter(part) for name, part in parts.items()})
                          for parts in (A, B))
        self.alpha = float(alpha)

    @classmethod
    @settings.usual_torch()
    def beside(cls, model, layers=range(20, 30), matrices=("W_q", "W_v"), rank=8, alpha=16.0, seed=0):
        """A new adapter for these matrices of these layers: A normal with variance 1/d_in, B zero."""
        generator, A, B = torch.Generator().manual_seed(seed), {}, {}
        for layer in layers:
            for name in matrices:
                d_in, d_out = model.layers[layer][name].shape
                A[f"{layer}-{name}"] = torch.randn(d_in, rank, generator=generator) / d_in**0.5
                B[f"{layer}-{name}"] = torch.zeros(rank, d_out)
        return cls(A, B, alpha)

    def on(self, model, linear=lora_linear):
        """The model with this adapter beside its matrices; ``linear``: whose function runs them. It shares all numbers."""
        return self._with(model, lambda W, A, B: Adapted(W, A, B, self.alpha, linear))

    def merged(self, model, merge=merge_lora):
        """The model with this adapter merged into copies of its matrices; ``merge``: whose function does it."""
        with torch.no_grad():
            return self._with(model, lambda W, A, B: merge(W, A, B, self.alpha))

    def _with(self, model, made):
        """The model with ``made(W, A, B)`` in the place of each adapted matrix W."""
        layers = [dict(w) for w in model.layers]
        for place in self.A:
            layer, name = place.split("-")
            layers[int(layer)][name] = made(layers[int(layer)][name], self.A[place], self.B[place])
        return replace(model, layers=layers)

    def below(self):
        """How many layers lie below the lowest adapted one: those never change."""
        return min(int(place.split("-")[0]) for place in self.A)

    def size(self):
        """How many numbers it has."""
        return sum(part.numel() for part in self.parameters())

    def save(self, path):
        """Write it as a safetensors file; returns the number of bytes. Raises NotUsable where no file can be written."""
        try:
            save_file({name: part.detach().contiguous() for name, part in self.state_dict().items()}, path,
                      metadata={"alpha": str(self.alpha)})
            return os.path.getsize(path)
        except (OSError, SafetensorError):
            raise NotUsable(f"No file can be written at {shown(str(path))}: give a folder that is there.") from None

    @classmethod
    def load(cls, path):
        """Read what ``save`` wrote. Raises NotUsable when it is not such a file."""
        A, B = {}, {}
        try:
            with safe_open(path, "pt") as file:
                for name in file.keys():  # a safe_open is not a dict
                    kind, place = name.split(".")
                    {"A": A, "B": B}[kind][place] = file.get_tensor(name)
                alpha = float(file.metadata()["alpha"])
            if not A or A.keys() != B.keys():
                raise KeyError("A and B do not match")
        except Exception as error:  # of safetensors' own kinds, OSError, KeyError
            raise NotUsable(f"{shown(str(path))} is not the file of an adapter ({type(error).__name__}): "
                            "write one with save.") from None
        return cls(A, B, alpha)


# ---------------------------------------------------------------- examples, and how to learn from them


def messages(question, system, shots=()):
    """A conversation that asks ``question``; ``shots``: pairs (question, answer) that are shown before it."""
    before = [{"role": "system", "content": system}] if system else []
    for asked, answer in shots:
        before += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    return [*before, {"role": "user", "content": question}]


def example_ids(tokens, question, answer, system, shots=()):
    """(The ids of a whole example, the sign that ends the answer with them, the place where the answer begins)."""
    prompt = smollm2.prompt_ids(tokens, messages(question, system, shots))
    return [*prompt, *tokens.encode(answer), smollm2.END], len(prompt)


@dataclass(frozen=True)
class Kept:
    """What the frozen layers say about N examples: ``states`` ``(N, T, d)`` after layer ``below`` - 1, ``ids`` ``(N, T)``,
    -1 where a row has ended, and ``first`` ``(N,)``, where each answer begins."""

    states: torch.Tensor
    ids: torch.Tensor
    first: torch.Tensor
    below: int

    def batch(self, rows):
        """(states, ids, first) of these rows, as long as the longest of them needs."""
        T = int((self.ids[rows] >= 0).sum(1).max())
        return self.states[rows, :T], self.ids[rows, :T], self.first[rows]

    def draw(self, batch=4):
        """A function for `training.fit`: from a generator a batch of so many examples, each once before any comes again."""
        queue = []

        def drawn(generator):
            if len(queue) < batch:
                queue.extend(torch.randperm(len(self.ids), generator=generator).tolist())
            return self.batch([queue.pop(0) for _ in range(min(batch, len(queue)))])

        return drawn


@settings.usual_torch()
def keep(model, examples, system, below):
    """Run the layers below number ``below`` over all examples, once: a `Kept`. About 60 tokens an example take 0.2 s."""
    rows = [example_ids(model.tokens, *example, system) for example in examples]
    ids = torch.full((len(rows), max(len(row) for row, _ in rows)), -1)
    for i, (row, _) in enumerate(rows):
        ids[i, :len(row)] = torch.tensor(row)
    lengths = (ids >= 0).sum(1)
    states = torch.zeros(*ids.shape, model.embedding.shape[1])
    with one_thread(), torch.no_grad():
        for some in bar(lengths.argsort(stable=True).split(8), "frozen layers"):  # rows of about the same length together
            places = torch.arange(int(lengths[some].max()), dtype=torch.float64)
            x = model.embedding[ids[some, :len(places)].clamp(min=0)]  # behind a row's end: nobody before it sees it
            for w in model.layers[:below]:
                x, _ = smollm2.decoder_layer(x, w, model.n_heads, model.n_groups, places, None, model.base)
            states[some, :len(places)] = x
    return Kept(states, ids, torch.tensor([first for _, first in rows]), below)


def upper(model, x, below, start=0, layer=smollm2.decoder_layer):
    """Run the layers from number ``below`` on over states ``(B, T, d)``: logits ``(B, T - start, V)``.

    The logits of the first ``start`` places are left out, because they cost as much as eight layers.
    """
    places = torch.arange(x.shape[1], dtype=torch.float64)
    for w in model.layers[below:]:
        x, _ = layer(x, w, model.n_heads, model.n_groups, places, None, model.base)
    return smollm2.rms_norm(x[:, start:], model.norm, model.eps) @ model.embedding.T


@settings.usual_torch()
def train(model, adapter, kept, steps=40, batch=4, lr=6e-3, seed=0, layer=smollm2.decoder_layer, linear=lora_linear,
          loss=answer_loss, label="training"):
    """Let ``adapter`` learn from a `Kept` in place; returns the loss of each step.

    ``batch``: examples a step, drawn without repetition in each round; ``layer``, ``linear``, ``loss``: whose functions run.
    AdamW with the OneCycle schedule up to ``lr``. Raises ValueError when the adapter has a matrix in a layer that is kept.
    """
    if adapter.below() < kept.below:
        raise ValueError(f"The adapter begins at layer {adapter.below()}, and what was kept is of layer {kept.below} on.")

    def value(adapter, states, ids, first):
        start = int(first.min()) - 1  # the logits here are the first that count
        logits = upper(adapter.on(model, linear), states, kept.below, start, layer)
        return loss(logits, ids[:, start:], first - start)

    return fit(adapter, kept.draw(batch), value, steps, lr, seed, label)


# ---------------------------------------------------------------- what it can do, before and after


def _padded(model, rows, last, most=10**6):
    """Read lists of ids in one batch, the shorter ones padded on the left, what they begin with in common once: ``most``
    ids of it at the most.

    Returns (logits ``(B, last, V)`` of the last places, cache, pieces to go on with). Exact up to rounding: no token sees
    padding, and the common keys are turned on, row by row, so that every distance is what it was.
    """
    common = min(len(os.path.commonprefix(rows)), min(map(len, rows)) - 1, most)
    ends = [row[common:] for row in rows]
    T = max(map(len, ends))
    gaps = torch.tensor([T - len(end) for end in ends])
    ids = torch.tensor([[0] * (T - len(end)) + end for end in ends])

    def attend(q, k, v, cache=None):
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        new, n = q.shape[2], k.shape[2]
        keys = torch.arange(n)
        queries = keys[n - new:, None]
        padding = (keys >= common) & (keys < common + gaps[:, None])  # (B, n)
        may = (keys <= queries) & ~padding[:, None] | (keys == queries)  # (B, new, n)
        return F.scaled_dot_product_attention(q, k, v, may[:, None], enable_gqa=True), (k, v)

    cache = None
    if common:
        _, cache = model.run(torch.tensor([rows[0][:common]]), last=1)
        turned = gaps.double()[:, None].expand(-1, common)
        cache = [(torch.cat([smollm2.rope(K, places, model.base) for places in turned]), V.expand(len(rows), -1, -1, -1))
                 for K, V in cache]
    pieces = smollm2.PIECES | {"cached_attention": attend}
    logits, cache = model.run(ids, cache, pieces, last=last)
    return logits, cache, pieces


@settings.usual_torch()
def answers(model, questions, system=None, shots=(), max_tokens=40, at_once=32):
    """The greedy answers to many questions, several at a time: a list of strings.

    Raises NotUsable where a question is no text, or too long for the model."""
    prompts = [smollm2.prompt_ids(model.tokens, messages(text_in(q, like="Where is Rome?"), system, shots))
               for q in questions]
    texts, longest = [], max(map(len, prompts), default=0)
    if longest + max_tokens > smollm2.LONGEST:
        raise NotUsable(f"A question has {longest:,} tokens with its template, and the model has learned to read "
                        f"{smollm2.LONGEST:,}: ask something shorter.")
    with one_thread(), torch.inference_mode():
        for i in bar(range(0, len(prompts), at_once), "answers"):
            logits, cache, pieces = _padded(model, prompts[i:i + at_once], 1)
            written = [logits[:, -1].argmax(-1)]
            while len(written) < max_tokens and not (torch.stack(written) == smollm2.END).any(0).all():
                logits, cache = model.run(written[-1][:, None], cache, pieces)
                written.append(logits[:, -1].argmax(-1))
            for row in torch.stack(written, 1).tolist():
                row = row[:row.index(smollm2.END)] if smollm2.END in row else row
                texts.append(b"".join(map(model.tokens.bytes_of, row)).decode("utf-8", "replace"))
    return texts


@settings.usual_torch()
def exact(model, examples, system=None, shots=(), at_once=32):
    """Whether the greedy answer to each question is exactly the example's: a list of bools.

    Nothing is written for it: an answer comes out if and only if each of its tokens, and the end, is the likeliest one after
    those before it, which one look at the whole tells.
    """
    rows = [example_ids(model.tokens, *example, system, shots) for example in examples]
    right = []
    with one_thread(), torch.inference_mode():
        for i in bar(range(0, len(rows), at_once), "answers"):
            some = rows[i:i + at_once]
            longest = max(len(ids) - first for ids, first in some)
            logits, *_ = _padded(model, [ids for ids, _ in some], longest + 1, min(first for _, first in some) - 1)
            for z, (ids, first) in zip(logits, some, strict=True):
                n = len(ids) - first
                right.append(z[-n - 1:-1].argmax(-1).tolist() == ids[first:])
    return right


@settings.usual_torch()
def text_loss(model, text):
    """The mean loss, in nats, on the first 192 tokens of an ordinary text, without a template."""
    ids = torch.tensor(model.tokens.encode(text)[:192])
    with one_thread(), torch.inference_mode():
        return float(F.cross_entropy(model.run(ids[None, :-1])[0][0], ids[1:]))


# ---------------------------------------------------------------- the task of the lesson

SYSTEM = "You turn a sentence into JSON."
NAMES = ("Anna Tom Maria Paul Emma Jack Sophie David Laura Peter Julia Mark Nina Simon Clara Oliver Sarah James Helen "
         "Robert Alex Kate Martin Eva Daniel Ruth Frank Lisa George Mary Victor Jane Hugo Ella Leo Irene Max Nora Otto "
         "Vera").split()
CITIES = ("Paris London Berlin Madrid Vienna Oslo Athens Dublin Lisbon Prague Warsaw Helsinki Milan Chicago Delhi Moscow "
          "Sydney Dallas Lyon Hamburg Venice Glasgow Toronto Havana").split()
NEW_NAMES = "Ben Lucy Adam Rosa Felix Grace Henry Alice".split()  # of the test, in no example to learn from
NEW_CITIES = "Rome Boston Cairo Tokyo Geneva Munich".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
VERBS = "met visited called helped saw thanked".split()
FORMS = ("On {when}, {who} {verb} {whom} in {where}.", "{who} {verb} {whom} in {where} on {when}.",
         "In {where}, {who} {verb} {whom} on {when}.")


def sentences(n, seed, names=NAMES, cities=CITIES):
    """n different examples of the task: (sentence, JSON that says who, whom, where and when)."""
    generator, examples = torch.Generator().manual_seed(seed), {}

    def draw(things):
        return things[int(torch.randint(len(things), (), generator=generator))]

    while len(examples) < n:
        facts = {"who": draw(names), "whom": draw(names), "where": draw(cities), "when": draw(DAYS)}
        sentence = draw(FORMS).format(verb=draw(VERBS), **facts)
        if facts["who"] != facts["whom"]:
            examples[sentence] = json.dumps(facts)
    return list(examples.items())


def facts(answer):
    """The facts of an answer to the task, {name: text}, or None where it is no JSON of its form."""
    try:
        given = json.loads(answer)
        return {name: str(given[name] or "") for name in ("who", "whom", "where", "when")}
    except (ValueError, KeyError, TypeError):
        return None


QUESTIONS = {  # the ten of lesson 16, each with what the answer has to contain
    "What is the capital of France?": "Paris", "What is the capital of Japan?": "Tokyo",
    "What is the capital of Italy?": "Rome", "What is the capital of Australia?": "Canberra",
    "How many days are in a week?": "7", "What is 2 + 2?": "4", "What is 17 + 25?": "42",
    "How many legs does a spider have?": "8", "How do you say thank you in French?": "merci",
    "How many letters are in the word cat?": "3"}

# ---------------------------------------------------------------- a learner's own examples

LEAST, LONGEST = 20, 80  # examples in a file; tokens of a question, and of an answer
SAMPLE = Path(__file__).resolve().parent.parent / "data" / "my_examples.jsonl"


@dataclass(frozen=True)
class Examples:
    """A task of one's own: what is asked for, ``system``, and the pairs (question, answer); a fifth is kept for the test."""

    system: str
    train: list
    test: list


def read_examples(path, tokens):
    """The examples of a file with a line of JSON for each: ``{"question": "...", "answer": "..."}``.

    The first line may say what is asked for, ``{"system": "..."}``. Every fifth example is kept for the test. Raises
    NotUsable, which names the line, where it is not like this, and where there are fewer than ``LEAST``.
    """
    lines, path = read_text(path, least=0).splitlines(), Path(path)
    system, answer_to = "", {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            raise NotUsable(f'Line {number} of {path.name} is no object of JSON: write {{"question": "...", "answer": '
                            '"..."} on one line, with straight double quotes, and no list around the lines.')
        if not answer_to and not system and isinstance(entry.get("system"), str):
            system = entry["system"].strip()
            continue
        pair = [entry.get(name) for name in ("question", "answer")]
        if not all(isinstance(part, str) and part.strip() for part in pair):
            raise NotUsable(f'Line {number} of {path.name} lacks its "question" or its "answer" (small letters, a text in '
                            "quotes), or one is empty.")
        question, answer = (part.strip() for part in pair)
        for name, part in (("question", question), ("answer", answer)):
            if (n := len(tokens.encode(part))) > LONGEST:
                raise NotUsable(f"Line {number} of {path.name} has {'an' if name == 'answer' else 'a'} {name} of {n} "
                                f"tokens, and {LONGEST} is the most: make it shorter.")
        if answer_to.setdefault(question, answer) != answer:
            raise NotUsable(f"Line {number} of {path.name} answers a question again, and otherwise: keep one of the two.")
    pairs = list(answer_to.items())
    if len(pairs) < LEAST:
        raise NotUsable(f"{path.name} has {len(pairs)} example{'s' * (len(pairs) != 1)}, and it takes {LEAST} or more: "
                        "a fifth of them is kept for the test. A line that comes again counts once.")
    return Examples(system, [p for i, p in enumerate(pairs) if i % 5 != 4], pairs[4::5])
