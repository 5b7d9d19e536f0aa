"""SmolLM2-135M-Instruct: a decoder of today in plain torch, the file of a real one, and a conversation with it.

Tokens are rows, batch first; heads are ``(B, h, T, d_k)``. The first functions are exercises of lesson 16: with
lesson 08's ``rotate`` and lesson 07's ``split_heads`` they are all that SmolLM2-135M-Instruct consists of (Apache-2.0; 30
layers, d = 576, 9 heads on 3 groups of keys, RoPE, RMSNorm, a gated MLP, no biases). `decoder_layer` puts them together.

Sources: Touvron et al. 2023 (Llama, whose shape it has); Ben Allal et al. 2025 (SmolLM2).
"""

import codecs
import functools
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from helpers import tokens
from helpers.attention import split_heads
from helpers.store import gguf, model_files, settings
from helpers.training import one_thread
from helpers.transformer import rotate, sample_next
from helpers.words import NotUsable

# ---------------------------------------------------------------- a decoder of today, piece by piece


def rms_norm(x, gain, eps=1e-5):
    """Divide every token by the root of its mean square, then stretch it: ``gain · x / √(mean(x²) + eps)``.

    ``x``: ``(..., d)``; ``gain``: ``(d,)``, learned; ``eps``: a small positive number. Returns ``(..., d)``. Unlike
    LayerNorm it subtracts no mean and has no bias. Source: Zhang and Sennrich 2019, equation 4.
    """
    return gain * x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps)


def gated_mlp(x, W_gate, W_up, W_down):
    """The MLP of today: ``(SiLU(x W_gate) ⊙ x W_up) W_down``, with ``SiLU(a) = a / (1 + exp(-a))``.

    ``x``: ``(..., d)``; ``W_gate``, ``W_up``: ``(d, m)``; ``W_down``: ``(m, d)``. Returns ``(..., d)``. No biases.
    Source: Shazeer 2020, equation 6 (SwiGLU).
    """
    return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down  # (..., m), then (..., d)


def dequantise(scales, minima, codes):
    """Numbers from 4 bits each: ``scale · code + minimum``, a scale and a minimum for each block of 32.

    ``scales``, ``minima``: ``(n,)``; ``codes``: ``(n, 16)`` uint8, two codes a byte: the low four bits of the 16 bytes are
    the codes of numbers 0-15, the high four those of 16-31. Returns ``(n, 32)``. Source: the kind Q4_1 of the GGUF format.
    """
    codes = torch.cat([codes & 15, codes >> 4], dim=-1)  # (n, 32), whole numbers from 0 to 15
    return scales[:, None] * codes + minima[:, None]


def cached_attention(q, k, v, cache=None):
    """Causal attention of T new tokens that also see the t tokens in the cache. Query heads share keys in groups.

    ``q``: ``(B, h, T, d_k)``; ``k``: ``(B, g, T, d_k)``; ``v``: ``(B, g, T, d_v)``; ``cache``: None or (K, V) of t earlier
    tokens, ``(B, g, t, d_k)`` and ``(B, g, t, d_v)``. Query head i uses head ``i // (h / g)``; new token i sees the
    cache and new tokens 0 … i. Scaled by √d_k. Returns (output ``(B, h, T, d_v)``, the cache of all t + T tokens).
    Raises ValueError when g does not divide h. Source: Ainslie et al. 2023, section 2.2.
    """
    (B, h, T, _), g = q.shape, k.shape[1]
    if g < 1 or h % g:
        raise ValueError(f"{h} query heads cannot share {g} heads of keys equally; choose a divisor of {h}.")
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)  # (B, g, t + T, ...)
    weights = attention_weights(q, k)  # (B, g, h/g, T, t + T)
    return (weights @ v[:, :, None]).reshape(B, h, T, -1), (k, v)


def attention_weights(q, k):
    """The weights of the last T tokens' queries ``(B, h, T, d_k)`` on all keys ``(B, g, t + T, d_k)``, causal and scaled:
    ``(B, g, h/g, T, t + T)``, a group's heads side by side."""
    T, d_k = q.shape[2:]
    scores = q.unflatten(1, (k.shape[1], -1)) @ k[:, :, None].mT / d_k**0.5
    may = torch.ones(T, k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - T)  # token i sees t + i + 1 keys
    return torch.softmax(scores.masked_fill(~may, -torch.inf), dim=-1)


def nucleus(probabilities, p):
    """Keep the fewest most probable words that together have probability ``p`` or more; the rest gets 0.

    ``probabilities``: ``(V,)``, sum 1; ``p``: above 0, at most 1; 1 keeps all. Returns ``(V,)``, sum 1 again.
    Raises ValueError for another ``p``. Source: Holtzman et al. 2020, section 3.1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"p is the probability to keep, above 0 and at most 1; it is {p}.")
    if p == 1:
        return probabilities
    ordered, ids = probabilities.sort(descending=True, stable=True)  # (V,) each
    likely = ids[ordered.cumsum(0) - ordered < p]  # words before which less than p has come
    few = torch.zeros_like(probabilities).index_copy(0, likely, probabilities[likely])
    return few / few.sum()


def turn(rotate, x, positions, base):
    """RoPE with any base, by lesson 08's ``rotate``, whose base is 10000: each pair becomes a token of its own.

    ``x``: ``(B, h, T, d_k)``; ``positions``: ``(T,)``; ``rotate(x, positions)``. A token of two numbers is turned by its
    position, as the first pair is, so pair i at position p gets position ``p · base^(-2i/d_k)``. Returns the shape of x.
    """
    d_k = x.shape[-1]
    angles = positions[:, None] * base ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)  # (T, d_k/2)
    return rotate(x.unflatten(-1, (-1, 2)).flatten(-3, -2), angles.flatten()).reshape(x.shape)


def rope(x, positions, base=10000.0):
    """Lesson 08's ``rotate`` with a base: pairs (2i, 2i+1) turn by ``position · base^(-2i/d)``.

    ``x``: ``(..., T, d)``; ``positions``: ``(T,)``. Returns ``(..., T, d)``. Source: Su et al. 2021, equation 34.
    """
    return turn(rotate, x, positions, base)


PIECES = {piece.__name__: piece for piece in (rms_norm, gated_mlp, rotate, split_heads, cached_attention)}
OF_A_LAYER = PIECES | {"rotate": rope}  # a layer hands the base on


def decoder_layer(x, w, n_heads, n_groups, positions, cache=None, base=10000.0):
    """One layer of a decoder of today, pre-norm: attention adds to the stream, then the gated MLP does.

    ``x``: ``(B, T, d)``, T new tokens; ``w``: the layer's numbers, a dict as in `ChatModel`; ``positions``: ``(T,)``;
    ``cache``: None or (K, V) of earlier tokens, keys as they were turned, ``(B, g, t, d_k)`` each. Returns (x, the longer
    cache). Source: Touvron et al. 2023, section 2.2, where no heads share keys.
    """
    return layer_of(OF_A_LAYER, x, w, n_heads, n_groups, positions, cache, base)


def layer_of(pieces, x, w, n_heads, n_groups, positions, cache=None, base=10000.0):
    """`decoder_layer` made of these functions, a dict as ``OF_A_LAYER``. `ChatModel.run` has the same lines, and lets one
    look between them."""
    norm, mlp, turned, split, attend = (pieces[name] for name in PIECES)
    y = norm(x, w["norm1"])
    q, k, v = split(y @ w["W_q"], n_heads), split(y @ w["W_k"], n_groups), split(y @ w["W_v"], n_groups)
    heads, cache = attend(turned(q, positions, base), turned(k, positions, base), v, cache)  # (B, h, T, d_k)
    x = x + heads.transpose(1, 2).flatten(2) @ w["W_o"]
    return x + mlp(norm(x, w["norm2"]), w["W_gate"], w["W_up"], w["W_down"]), cache


@dataclass(frozen=True)
class ChatModel:
    """A decoder of today: its numbers, its sizes and its tokens.

    embedding  (V, d), used at both ends; ``norm`` (d,): the gain of the last norm
    layers     for each layer a dict: ``norm1``, ``norm2`` (d,); ``W_q`` (d, h·d_k); ``W_k``, ``W_v`` (d, g·d_k);
               ``W_o`` (h·d_k, d); ``W_gate``, ``W_up`` (d, m); ``W_down`` (m, d)
    """

    embedding: torch.Tensor
    norm: torch.Tensor
    layers: list
    n_heads: int
    n_groups: int
    base: float
    eps: float
    tokens: object

    @settings.usual_torch()
    def run(self, ids, cache=None, pieces=PIECES, edit=None, trace=None, edit_states=None, last=0):
        """Read T new tokens: ``ids`` ``(B, T)`` -> (logits ``(B, T, V)``, the cache of all tokens so far).

        ``last``: logits of so many last tokens only, ``(B, last, V)``; 0: of all.

        ``cache``: what an earlier call returned, or None at the beginning; ``pieces``: whose functions run it;
        ``edit(layer, heads)``: returns the heads' outputs ``(B, h, T, d_k)`` that go to W_o; ``edit_states(layer, x)``: the
        states ``(B, T, d)`` that go into a layer; ``trace``: a dict that gets ``states``, a list of ``(B, T, d)`` (the
        embedding, then after each layer), ``heads``, of ``(B, h, T, d_k)``, and ``weights``, of ``(B, h, T, t + T)``.
        """
        norm, mlp, rotate, split, attend = (pieces[name] for name in PIECES)
        h, g = self.n_heads, self.n_groups
        cache = cache or [None] * len(self.layers)
        start = cache[0][0].shape[2] if cache[0] else 0
        positions = torch.arange(start, start + ids.shape[1], dtype=torch.float64)  # (T,)
        x, new = self.embedding[ids], []  # (B, T, d)
        if trace is not None:
            trace.update(states=[x], heads=[], weights=[])
        for number, (w, past) in enumerate(zip(self.layers, cache, strict=True)):
            x = x if edit_states is None else edit_states(number, x)
            y = norm(x, w["norm1"], self.eps)
            q, k, v = split(y @ w["W_q"], h), split(y @ w["W_k"], g), split(y @ w["W_v"], g)
            q, k = turn(rotate, q, positions, self.base), turn(rotate, k, positions, self.base)
            heads, keys_values = attend(q, k, v, past)  # (B, h, T, d_k)
            heads = heads if edit is None else edit(number, heads)
            x = x + heads.transpose(1, 2).flatten(2) @ w["W_o"]
            x = x + mlp(norm(x, w["norm2"], self.eps), w["W_gate"], w["W_up"], w["W_down"])
            new.append(keys_values)
            if trace is not None:
                trace["states"].append(x)
                trace["heads"].append(heads)
                trace["weights"].append(attention_weights(q, keys_values[0]).flatten(1, 2))
        x = norm(x[:, -last:], self.norm, self.eps)
        if x.shape[1] == 1:  # (E xᵀ)ᵀ is x Eᵀ, and takes half as long where few rows meet a large E
            return (self.embedding @ x[:, 0].T).T[:, None], new
        return x @ self.embedding.T, new


# ---------------------------------------------------------------- its file

IN_A_LAYER = {  # name in the file -> ours
    "attn_norm": "norm1", "attn_q": "W_q", "attn_k": "W_k", "attn_v": "W_v", "attn_output": "W_o",
    "ffn_norm": "norm2", "ffn_gate": "W_gate", "ffn_up": "W_up", "ffn_down": "W_down"}
FLOAT, BLOCKS_OF_4_BITS, BLOCKS_OF_8_BITS = 0, 3, 8  # kinds of tensors in the file
_BLOCKS = {BLOCKS_OF_4_BITS: [("scale", "<f2"), ("minimum", "<f2"), ("codes", "u1", 16)],
           BLOCKS_OF_8_BITS: [("scale", "<f2"), ("codes", "i1", 32)]}


def find_file(path=None):
    """The model's file, opened but not read: a `gguf.Gguf`. ``path``, and what is raised: as for `load`."""
    return gguf.read(model_files.find(tokens.SMOLLM2, path) / tokens.FILE)


def blocks(file, name):
    """The blocks of 32 numbers of one tensor as they stand in the file: a NumPy array with the fields ``scale``, ``codes``
    and, at 4 bits, ``minimum``. ``file``: a `gguf.Gguf`. Raises ValueError for a tensor that is not in blocks."""
    shape, kind, place = file.tensors[name]
    if kind not in _BLOCKS:
        raise ValueError(f"The tensor {name} is not stored in blocks of 32 numbers.")
    return np.memmap(file.path, _BLOCKS[kind], "r", place, int(np.prod(shape)) // 32)


def tensor(file, name, dequantise=dequantise):
    """One tensor of the file as float32: a matrix ``(d_out, d_in)`` or a vector ``(d,)``."""
    shape, kind, place = file.tensors[name]
    if kind == FLOAT:
        return torch.from_numpy(np.array(np.memmap(file.path, "<f4", "r", place, shape[::-1])))
    packed = blocks(file, name)
    parts = [torch.from_numpy(np.array(packed[part])) for part in packed.dtype.names]
    if kind == BLOCKS_OF_8_BITS:
        numbers = parts[0].float()[:, None] * parts[1]
    else:
        numbers = dequantise(parts[0].float(), parts[1].float(), parts[2])
    return numbers.reshape(shape[::-1])


@settings.usual_torch()
def load(path=None, dequantise=dequantise):
    """Read SmolLM2-135M-Instruct: a `ChatModel` of 134,515,008 numbers (540 MB).

    path        a folder with the file; without it, the one that ATTENTION_COURSE_SMOLLM2 names, or else a search
    dequantise  whose function turns 4 bits into numbers

    Raises ModelNotAvailable as `model_files.find` does.
    """
    file = find_file(path)
    fields = {name.removeprefix("llama."): value for name, value in file.fields.items()}
    embedding, layers = tensor(file, "token_embd.weight", dequantise), []  # the largest first: it needs room to be made
    for number in range(fields["block_count"]):
        matrices = {ours: tensor(file, f"blk.{number}.{name}.weight", dequantise) for name, ours in IN_A_LAYER.items()}
        # (d_in, d_out), row by row: a product with few rows takes twice as long with a transposed view
        layers.append({name: part.mT.contiguous() if part.ndim == 2 else part for name, part in matrices.items()})
    return ChatModel(
        embedding=embedding, norm=tensor(file, "output_norm.weight", dequantise), layers=layers,
        n_heads=fields["attention.head_count"], n_groups=fields["attention.head_count_kv"], base=fields["rope.freq_base"],
        eps=fields["attention.layer_norm_rms_epsilon"], tokens=tokens.smollm2(path))


def load_if_there():
    """The model that `load` reads, or None and a printed sentence where its file cannot be had: a lesson goes on."""
    try:
        return load()
    except model_files.ModelNotAvailable as problem:
        print(problem, "The exercises work without it; cells that need it show nothing.")
        return None


def reference(model):
    """The same model as transformers' ``LlamaForCausalLM``, which shares its numbers, but for copies of W_q and W_k (53 MB).

    It turns halves of a head, columns i and i + d_k/2, where the file turns pairs, 2i and 2i + 1: theirs are put in order.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    def halves(W, h):  # (d, h·d_k) -> (h·d_k, d), of each head first the even columns, then the odd
        return W.T.unflatten(0, (h, -1, 2)).transpose(1, 2).flatten(0, 2)

    (V, d), w, h, g = model.embedding.shape, model.layers[0], model.n_heads, model.n_groups
    config = LlamaConfig(
        vocab_size=V, hidden_size=d, intermediate_size=w["W_up"].shape[1], num_hidden_layers=len(model.layers),
        num_attention_heads=h, num_key_value_heads=g, rope_theta=model.base, rms_norm_eps=model.eps,
        tie_word_embeddings=True, max_position_embeddings=8192, attn_implementation="eager")
    with torch.device("meta"):
        theirs = LlamaForCausalLM(config)
    state = {"model.norm.weight": model.norm,
             "model.embed_tokens.weight": model.embedding, "lm_head.weight": model.embedding}
    names = {"norm1": "input_layernorm", "norm2": "post_attention_layernorm", "W_q": "self_attn.q_proj",
             "W_k": "self_attn.k_proj", "W_v": "self_attn.v_proj", "W_o": "self_attn.o_proj",
             "W_gate": "mlp.gate_proj", "W_up": "mlp.up_proj", "W_down": "mlp.down_proj"}
    for number, w in enumerate(model.layers):
        parts = w | {"W_q": halves(w["W_q"], h).T, "W_k": halves(w["W_k"], g).T}
        state |= {f"model.layers.{number}.{names[ours]}.weight": part.T if part.ndim == 2 else part
                  for ours, part in parts.items()}
    theirs.load_state_dict(state, assign=True)
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(config=config)  # its buffer has no numbers on the meta device
    return theirs.eval()


# ---------------------------------------------------------------- a conversation

START, END = 1, 2  # the ids of <|im_start|> and <|im_end|>, never given by `encode`; what a text says is obeyed all the same
LONGEST = 8192  # tokens: the model has read no longer texts when it learned (the field llama.context_length of its file)
AT_ONCE = 64  # tokens of a prompt that are read in one go, so that somebody can look on, and stop it
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def chat_ids(messages, encode, start, end):
    """A conversation in the chat template: a flat list of ids, which ends where the answer begins.

    ``messages``: dicts with a ``role`` and its ``content``, two texts; ``encode``: text -> list of ids; ``start``, ``end``:
    the ids that begin and end a message. No system message is added. Source: the field tokenizer.chat_template of the file.
    """
    ids = []
    for message in messages:
        ids += [start, *encode(f"{message['role']}\n{message['content']}"), end, *encode("\n")]
    return [*ids, start, *encode("assistant\n")]


def prompt_ids(tokenizer, messages, template=chat_ids):
    """What the model is given of a conversation, a list of ids: `chat_ids`, with the model's own system message first if
    there is none.

    ``messages``: a list of dicts with a ``role`` ("system", "user" or "assistant") and its ``content``; ``template``: whose
    `chat_ids` runs. Raises ValueError when a message is not of this form.
    """
    known = {"system", "user", "assistant"}
    if not messages or not all(isinstance(m, dict) and m.get("role") in known and isinstance(m.get("content"), str)
                               for m in messages):
        raise NotUsable('Messages are a list such as [{"role": "user", "content": "Hello"}]; '
                        f"a role is one of {', '.join(sorted(known))}; it is {messages!r:.80}.")
    if messages[0]["role"] != "system":
        messages = [{"role": "system", "content": SYSTEM}, *messages]
    return list(template(messages, tokenizer.encode, START, END))


class TooLong(NotUsable):
    """A conversation has more tokens than the model has learned to read."""


@dataclass(frozen=True)
class Step:
    """One token of an answer: its ``text`` (it may complete a character that earlier tokens began), its ``id``, the
    ``logits`` ``(V,)`` it was drawn from, and the ``seconds`` since the call."""

    text: str
    id: int
    logits: torch.Tensor
    seconds: float


def stream(model, messages, max_tokens=200, temperature=0.0, p=1.0, seed=0, pieces=PIECES, choose=sample_next,
           nucleus=nucleus, run=None, template=chat_ids, memory=None, reading=lambda done, total: False):
    """Answer a conversation token by token: yields a `Step` for each, until the model ends its turn.

    ``messages``: as for `prompt_ids`; ``temperature``: 0 takes the most probable token; ``p``: the nucleus. ``pieces``,
    ``choose``, ``nucleus`` and ``template``: whose functions run it; ``run(model, ids, cache)``: whose decoder, in place of
    `ChatModel.run`. ``memory``: a dict that is kept from answer to answer, so that nothing is read twice. A prompt is read
    in pieces; ``reading(tokens read, tokens to read)`` hears of each piece of a longer one, and ends it by a true value.
    Raises TooLong when the conversation has no room for an answer.
    """
    begun, generator = time.perf_counter(), torch.Generator("cpu").manual_seed(seed)
    run = run or functools.partial(ChatModel.run, pieces=pieces)
    ids, memory = prompt_ids(model.tokens, messages, template), {} if memory is None else memory
    if len(ids) >= LONGEST:
        raise TooLong(f"This conversation has {len(ids):,} tokens, and the model has learned to read {LONGEST:,}: ask "
                      "something shorter, or press Clear and begin again.")
    text = codecs.getincrementaldecoder("utf-8")("replace")
    new = _forget(memory, ids)  # the ids that it has not read yet
    for _ in range(min(max_tokens, LONGEST - len(ids))):
        for start in range(0, len(new), AT_ONCE):
            piece = new[start:start + AT_ONCE]
            with one_thread(), torch.inference_mode(), settings.usual_torch():
                logits, cache = run(model, torch.tensor([piece]), memory["cache"])
            memory.update(ids=memory["ids"] + piece, cache=cache)
            if len(new) > AT_ONCE and reading(min(start + AT_ONCE, len(new)), len(new)):
                return
        with one_thread(), torch.inference_mode(), settings.usual_torch():
            logits = logits[0, -1]
            if temperature > 0:
                likely = nucleus(torch.softmax(logits / temperature, dim=0), p)
                token = int(choose(likely.log(), 1.0, None, generator))
            else:
                token = int(choose(logits, 0.0, None, generator))
        if token == END:
            return
        yield Step(text.decode(model.tokens.bytes_of(token)), token, logits, time.perf_counter() - begun)
        new = [token]


def _forget(memory, ids):
    """Keep of a ``memory`` (``ids`` read, and their ``cache``) what ``ids`` begin with; return the ids still to be read."""
    ids_read, n = memory.get("ids", []), 0
    while n < min(len(ids_read), len(ids) - 1) and ids_read[n] == ids[n]:
        n += 1
    with torch.inference_mode():
        memory.update(ids=ids[:n], cache=[(K[:, :, :n], V[:, :, :n]) for K, V in memory["cache"]] if n else None)
    return ids[n:]


def reply(model, messages, **options):
    """The answer of the model to a conversation, as one string. ``options``: as for `stream`."""
    return "".join(step.text for step in stream(model, messages, **options))
