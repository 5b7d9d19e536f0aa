"""Transformers in torch, from multi-head attention upwards. Read it from top to bottom.

Tokens are rows, batch first: ``(B, T, d)``; heads ``(B, h, T, d_k)``. Masks are boolean, True = may attend.
A query that may see nothing gets weights 0 and heads of 0, as in lesson 06; only W_o's bias is added.
"""

from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional as F

from helpers import attention

POSITIONS = ("none", "sinusoidal", "learned", "rope", "alibi")


class MultiHeadAttention(nn.Module):
    """``concat(head_0 … head_{h-1}) W_o`` with ``head_i = softmax(Q_i K_iᵀ / √d_k) V_i``.

    ``d``: model width; ``n_heads``: h, which must divide d (ValueError otherwise); ``bias``: bias vectors in the
    four projections; ``scale``: divide the scores by √d_k. Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(self, d, n_heads, bias=True, scale=True):
        super().__init__()
        if n_heads < 1 or d % n_heads:
            raise ValueError(f"{n_heads} heads cannot share {d} dimensions equally; choose a divisor of {d}.")
        self.n_heads = n_heads
        self.scale = (d // n_heads) ** -0.5 if scale else 1.0
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d, d, bias=bias) for _ in range(4))

    def forward(self, x, context=None, mask=None, bias=None, rotary=False, weights=False):
        """Attend from ``x`` ``(B, T, d)`` to ``context`` ``(B, T_k, d)`` (default: to ``x`` itself).

        ``mask``: bool, broadcastable to ``(B, h, T, T_k)``; ``bias``: added to the scores, same shape;
        ``rotary``: turn queries and keys by their positions (RoPE). Returns ``(B, T, d)``, or with ``weights=True``
        (output, weights ``(B, h, T, T_k)``). Without weights torch's fast path computes the same numbers.
        """
        context = x if context is None else context
        q = self._split(self.W_q(x))  # (B, h, T, d_k)
        k = self._split(self.W_k(context))  # (B, h, T_k, d_k)
        v = self._split(self.W_v(context))  # (B, h, T_k, d_k)
        if rotary:
            q, k = rotate(q), rotate(k)
        if mask is not None:
            forbidden = torch.zeros(()).to(q).masked_fill(~mask, float("-inf"))
            bias = forbidden if bias is None else bias + forbidden
        if not weights:
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=self.scale)
            return self.W_o(self._merge(heads))
        scores = self.scale * q @ k.mT  # (B, h, T, T_k)
        if bias is not None:
            scores = scores + bias
        w = masked_softmax(scores)
        return self.W_o(self._merge(w @ v)), w

    def _split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, T, d) -> (B, h, T, d_k)

    @staticmethod
    def _merge(x):
        return x.transpose(1, 2).flatten(2)  # (B, h, T, d_k) -> (B, T, d)


def masked_softmax(scores):
    """Softmax over the keys, ``(..., T_q, T_k)`` -> the same shape: weight 0 where a score is -inf, in a whole row too."""
    blind = (scores == -torch.inf).all(dim=-1, keepdim=True)  # (..., T_q, 1): softmax alone would make it NaN
    return torch.softmax(scores.masked_fill(blind, 0.0), dim=-1).masked_fill(blind, 0.0)


def rotate(x, positions=None):
    """RoPE on ``(..., T, d)`` at ``positions`` ``(T,)``, by default 0 … T-1; the torch twin of ``attention.rotate``."""
    T, d = x.shape[-2:]
    places = torch.arange(T, device=x.device) if positions is None else positions
    angles = places[:, None] * 10000.0 ** (-torch.arange(0, d, 2, device=x.device) / d)
    cos, sin = angles.cos().to(x), angles.sin().to(x)  # (T, d/2)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


def layer_norm(x, gain, bias, eps):
    """Bring every token to mean 0 and variance 1, then stretch and shift it: ``gain · (x - μ) / √(σ² + eps) + bias``.

    ``x``: ``(..., d)``; μ and σ² are taken over the last axis, of each token alone, and σ² divides by d, not by d - 1.
    ``gain``, ``bias``: ``(d,)``, learned; ``eps``: a small positive number. Returns ``(..., d)``.
    Source: Ba et al. 2016, equations 3 and 4; ``eps`` as in ``torch.nn.LayerNorm``.
    """
    centred = x - x.mean(dim=-1, keepdim=True)  # (..., d)
    variance = centred.square().mean(dim=-1, keepdim=True)  # (..., 1)
    return gain * centred / torch.sqrt(variance + eps) + bias


def feed_forward(x, W1, b1, W2, b2):
    """The MLP of a block, the same for every token: ``max(0, x W1 + b1) W2 + b2``.

    ``x``: ``(..., d)``; ``W1``: ``(d, m)``; ``b1``: ``(m,)``; ``W2``: ``(m, d)``; ``b2``: ``(d,)``. Returns ``(..., d)``.
    Source: Vaswani et al. 2017, equation 2.
    """
    return torch.relu(x @ W1 + b1) @ W2 + b2  # (..., m), then (..., d)


def pre_norm_block(x, attention, feed_forward, norm1, norm2):
    """Two sublayers, each of which reads a normalised copy of the residual stream and adds its result to it.

    ``x``: ``(..., T, d)``; the other four are functions from that shape to that shape. Returns ``(..., T, d)``.
    Source: Xiong et al. 2020, table 1 (pre-LN).
    """
    x = x + attention(norm1(x))
    return x + feed_forward(norm2(x))


class Block(nn.Module):
    """Attention and a two-layer MLP, each added to the residual stream, with LayerNorm before each (pre-norm)
    or after each addition (post-norm, as in Vaswani et al. 2017).

    ``mlp``: width of the hidden layer, 0 leaves the MLP out; ``residual=False`` leaves the additions out;
    ``cross_heads``: heads of a second attention between the two, from the target to the encoder's output (0: none).
    """

    def __init__(self, d, n_heads, mlp, pre_norm=True, scale=True, residual=True, cross_heads=0):
        super().__init__()
        self.attention = MultiHeadAttention(d, n_heads, scale=scale)
        self.cross = MultiHeadAttention(d, cross_heads, scale=scale) if cross_heads else None
        self.mlp = nn.Sequential(nn.Linear(d, mlp), nn.ReLU(), nn.Linear(mlp, d)) if mlp else None
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d) if mlp else None
        self.cross_norm = nn.LayerNorm(d) if cross_heads else None
        self.pre_norm, self.residual = pre_norm, residual

    def forward(self, x, memory=None, memory_mask=None, weights=False, **options):
        """``x``: ``(B, T, d)``; ``memory``: the encoder's output ``(B, T_s, d)``, if there are cross-heads, and
        ``memory_mask``: bool, broadcastable to ``(B, h, T, T_s)``; ``options`` go to the self-attention. Returns
        ``(B, T, d)``, or with ``weights=True`` (that, the weights: those of the cross-attention, if there is one)."""
        own = weights and self.cross is None
        x, w = self._add(x, self.norm1, self.attention, weights=own, **options)
        if self.cross is not None:
            x, w = self._add(x, self.cross_norm, self.cross, context=memory, mask=memory_mask, weights=weights)
        if self.mlp is not None:
            x, _ = self._add(x, self.norm2, self.mlp)
        return (x, w) if weights else x

    def _add(self, x, norm, sublayer, **options):
        """One sublayer with its norm and its addition. Returns (``x`` after it, its weights or None)."""
        y = sublayer(norm(x) if self.pre_norm else x, **options)
        y, w = y if isinstance(y, tuple) else (y, None)
        x = x + y if self.residual else y
        return (x if self.pre_norm else norm(x)), w


@dataclass(frozen=True)
class Config:
    """The sizes and kinds of a model's parts. The defaults are those of the small encoders of lessons 05 to 09.

    Raises ValueError for an unknown kind of positions.
    """

    vocabulary: int  #: number of token ids
    d: int = 32  #: width of the model
    n_heads: int = 1
    n_layers: int = 1
    mlp: int = 64  #: width of the hidden layer in each block, 0 leaves the MLP out
    positions: str = "learned"  #: one of POSITIONS
    max_length: int = 64  #: the most tokens, for learned positions
    pre_norm: bool = True
    scale: bool = True  #: divide the scores by √d_k
    residual: bool = True

    def __post_init__(self):
        if self.positions not in POSITIONS:
            raise ValueError(f"positions must be one of {', '.join(POSITIONS)}, not {self.positions!r}.")


class TokenModel(nn.Module):
    """What encoder and decoder share: embedding, positions, ``n_layers`` blocks, a norm, a linear layer.

    ``cross_heads``: as for ``Block``; ``outputs``: numbers that come out at each position (0: no linear layer, the
    vectors themselves come out).
    """

    def __init__(self, config, outputs, cross_heads=0):
        super().__init__()
        c = self.config = config
        self.embedding = nn.Embedding(c.vocabulary, c.d)
        self.position = nn.Embedding(c.max_length, c.d) if c.positions == "learned" else None
        self.blocks = nn.ModuleList(Block(c.d, c.n_heads, c.mlp, c.pre_norm, c.scale, c.residual, cross_heads)
                                    for _ in range(c.n_layers))
        self.norm = nn.LayerNorm(c.d) if c.pre_norm else nn.Identity()
        self.output = nn.Linear(c.d, outputs) if outputs else nn.Identity()

    def embed(self, tokens):
        """``(B, T)`` ids -> ``(B, T, d)``. Raises ValueError when the text has more tokens than learned positions."""
        T, kind = tokens.shape[1], self.config.positions
        x = self.embedding(tokens)  # (B, T, d)
        if kind == "learned":
            if self.position.num_embeddings < T:
                raise ValueError(f"The model has {self.position.num_embeddings} learned positions; the text has {T}.")
            return x + self.position.weight[:T]
        if kind == "sinusoidal":
            return x + torch.as_tensor(attention.sinusoidal_encoding(T, x.shape[-1])).to(x)
        return x

    def run(self, tokens, causal, mask=None, weights=False, **memory):
        """``(B, T)`` ids through the blocks: (list of ``(B, T, d)``, the embedding with its positions and then what
        each block returns; list of each block's weights, empty without ``weights``). ``memory``: as for ``Block``."""
        x = self.embed(tokens)  # (B, T, d)
        if causal:
            mask = causal_mask(x) if mask is None else causal_mask(x) & mask
        options = {"mask": mask, "weights": weights, **memory}
        if self.config.positions == "alibi":
            one_sided = torch.as_tensor(attention.alibi_bias(self.config.n_heads, x.shape[1])).to(x)  # (h, T, T)
            options["bias"] = one_sided if causal else one_sided.tril() + one_sided.tril().transpose(-1, -2)
        stream, block_weights = [x], []
        for block in self.blocks:
            x = block(x, rotary=self.config.positions == "rope", **options)
            if weights:
                x, w = x
                block_weights.append(w)
            stream.append(x)
        return stream, block_weights


class Encoder(TokenModel):
    """Token ids in, logits out. ``config``: a ``Config``.

    ``causal``: a position sees itself and what came before, which makes it a language model. ALiBi penalises the
    distance to both sides; its causal half (Press et al. 2021) remains with ``causal=True``. ``outputs``: number of
    classes a position (default: the vocabulary; 0: the vectors themselves come out).
    """

    def __init__(self, config, causal=False, outputs=None):
        super().__init__(config, config.vocabulary if outputs is None else outputs)
        self.causal = causal

    def forward(self, tokens, mask=None, weights=False):
        """``tokens``: ``(B, T)`` ids; ``mask``: bool, broadcastable to ``(B, h, T, T)``, on top of the causal one.

        Returns logits ``(B, T, outputs)``, or with ``weights=True`` (logits, list of ``(B, h, T, T)``).
        """
        stream, block_weights = self.run(tokens, self.causal, mask, weights)
        logits = self.output(self.norm(stream[-1]))
        return (logits, block_weights) if weights else logits

    def states(self, tokens, mask=None):
        """The residual stream, a list of ``(B, T, d)``: the embedding with its positions, then after each block."""
        return self.run(tokens, self.causal, mask)[0]


def causal_mask(x):
    """``(T, T)`` bool for ``x`` ``(B, T, d)``: True where the key does not come after the query."""
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()


def cross_attention(decoder_X, encoder_X, W_q, W_k, W_v, source_mask):
    """One head that looks from one text at another: ``softmax(Q Kᵀ / √d_k) V``, queries from the decoder, keys and values
    from the encoder.

    ``decoder_X``: ``(B, T_t, d)``; ``encoder_X``: ``(B, T_s, d_e)``; ``W_q``: ``(d, d_k)``; ``W_k``: ``(d_e, d_k)``;
    ``W_v``: ``(d_e, d_v)``; ``source_mask``: ``(B, T_s)`` bool, False at padding, or None. Returns (output
    ``(B, T_t, d_v)``, weights ``(B, T_t, T_s)``); a source without a word to look at gives zeros.
    Source: Vaswani et al. 2017, sections 3.2.1 and 3.2.3.
    """
    Q = decoder_X @ W_q  # (B, T_t, d_k)
    K, V = encoder_X @ W_k, encoder_X @ W_v  # (B, T_s, d_k), (B, T_s, d_v)
    scores = Q @ K.mT / K.shape[-1] ** 0.5  # (B, T_t, T_s)
    if source_mask is not None:
        scores = scores.masked_fill(~source_mask[:, None], float("-inf"))
    weights = masked_softmax(scores)
    return weights @ V, weights


def decoder_block(x, memory, self_attention, cross_attention, feed_forward, norm1, norm2, norm3):
    """Three sublayers on one residual stream: the text being written looks back at itself, then across at another text,
    then each position works on what it has found.

    ``x``: ``(B, T, d)``; ``memory``: ``(B, T_s, d)``, the encoder's output, used as it is; ``self_attention(x)``,
    ``cross_attention(x, memory)`` and ``feed_forward(x)`` return ``(B, T, d)``; each reads the stream through its norm.
    Returns ``(B, T, d)``. Source: Vaswani et al. 2017, section 3.1, in the order of Xiong et al. 2020 (pre-LN).
    """
    x = x + self_attention(norm1(x))
    x = x + cross_attention(norm2(x), memory)
    return x + feed_forward(norm3(x))


def shift_right(tokens, bos):
    """What the decoder reads while it learns to write ``tokens`` ``(B, T)``: the word before each, ``bos`` first.

    Source: "outputs (shifted right)" in figure 1 of Vaswani et al. 2017.
    """
    return torch.cat([torch.full_like(tokens[:, :1], bos), tokens[:, :-1]], dim=1)


def greedy_decode(next_logits, bos, eos, max_length):
    """Write one word after the other, each the most probable one after the words before.

    ``next_logits(ids)`` takes the list of ids so far, ``bos`` first, and returns the scores ``(V,)`` of the next one.
    Returns a list of ids without ``bos``. It ends with ``eos``, or else after ``max_length`` ids.
    Raises ValueError when ``max_length`` is negative.
    """
    if max_length < 0:
        raise ValueError(f"max_length is a number of ids to return; it is {max_length}.")
    ids = []
    while len(ids) < max_length:
        ids.append(int(next_logits([bos, *ids]).argmax()))
        if ids[-1] == eos:
            break
    return ids


class Decoder(TokenModel):
    """Target ids and the encoder's output in, logits for the next word out. ``config``: a ``Config``;
    ``cross_heads``: heads of each block's attention to the encoder's output. Source: Vaswani et al. 2017, section 3.1.
    """

    def __init__(self, config, cross_heads):
        super().__init__(config, config.vocabulary, cross_heads)

    def forward(self, tokens, memory, memory_mask=None, weights=False):
        """``tokens``: ``(B, T_t)`` ids; ``memory``: ``(B, T_s, d)``; ``memory_mask``: ``(B, T_s)`` bool, False at padding.

        Returns logits ``(B, T_t, vocabulary)``, or with ``weights=True`` (logits, list of cross-attention weights
        ``(B, h, T_t, T_s)``).
        """
        mask = None if memory_mask is None else memory_mask[:, None, None]  # (B, 1, 1, T_s)
        stream, block_weights = self.run(tokens, causal=True, weights=weights, memory=memory, memory_mask=mask)
        logits = self.output(self.norm(stream[-1]))
        return (logits, block_weights) if weights else logits


class TranslationModel(nn.Module):
    """The encoder-decoder of Vaswani et al. 2017: the encoder reads the source, the decoder writes the target.

    ``config``: a ``Config`` for both, whose vocabulary is the target's; ``source_vocabulary``: number of source ids;
    ``cross_heads``: heads between the two (one: its weights are the easiest to read as an alignment).
    """

    def __init__(self, config, source_vocabulary, cross_heads=1):
        super().__init__()
        self.encoder = Encoder(replace(config, vocabulary=source_vocabulary), outputs=0)
        self.decoder = Decoder(config, cross_heads)

    def forward(self, source, target, source_mask=None, weights=False):
        """``source``: ``(B, T_s)`` ids; ``target``: ``(B, T_t)`` ids, the word before each output, so a start id first;
        ``source_mask``: ``(B, T_s)`` bool, False at padding.

        Returns logits ``(B, T_t, target_vocabulary)``, or with ``weights=True`` (logits, list over layers of
        cross-attention weights ``(B, h, T_t, T_s)``).
        """
        return self.decode(target, self.encode(source, source_mask), source_mask, weights)

    def encode(self, source, source_mask=None):
        """``(B, T_s)`` ids -> ``(B, T_s, d)``: computed once, however long the translation becomes."""
        return self.encoder(source, None if source_mask is None else source_mask[:, None, None])

    def decode(self, target, memory, source_mask=None, weights=False):
        """Logits for the word after each of ``target`` ``(B, T_t)``, given the encoder's output ``memory``."""
        return self.decoder(target, memory, source_mask, weights)

    @torch.no_grad()
    def translate(self, source, bos, eos, length, source_mask=None):
        """Write the most probable word after the ones before, until every sentence has its ``eos``, at most ``length``
        words. Returns ids ``(B, T)`` without ``bos``; after an ``eos`` stand more of them."""
        memory = self.encode(source, source_mask)
        words = torch.full_like(source[:, :1], bos)
        ended = torch.zeros_like(words, dtype=torch.bool)  # (B, 1)
        while words.shape[1] <= length and not ended.all():
            new = self.decode(words, memory, source_mask)[:, -1:].argmax(-1).masked_fill(ended, eos)  # (B, 1)
            words, ended = torch.cat([words, new], dim=1), ended | (new == eos)
        return words[:, 1:]


class LanguageModel(Encoder):
    """A causal ``Encoder``: at each position the logits of the next token. ``causal=False`` lets it see the token that
    it is asked for, which is cheating, and shows what the mask is for."""

    def __init__(self, config, causal=True):
        super().__init__(config, causal)

    @torch.no_grad()
    def generate(self, tokens, length, choose):
        """Continue ``tokens``, a list of ids, to ``length`` ids; ``choose`` takes logits ``(V,)`` and returns an id."""
        device = self.embedding.weight.device
        return generate(lambda ids: self(torch.tensor([ids], device=device))[0], tokens, length - len(tokens), choose)


# ---------------------------------------------------------------- training and using a language model


def language_model(ids, tokens, positions, blocks, norm, W_out):
    """A GPT: what comes next at each place of a text, as logits over the vocabulary.

    ``ids``: ``(B, T)``; ``tokens``: ``(V, d)``, the vector of each word; ``positions``: ``(T_max, d)``, the vector of each
    place; ``blocks``: functions from ``(B, T, d)`` to ``(B, T, d)``, causal, in their order; ``norm``: such a function;
    ``W_out``: ``(d, V)``. Returns ``(B, T, V)``. Raises ValueError when the text has more than ``T_max`` tokens.
    Source: Radford et al. 2018 and, for the last norm, 2019 (GPT and GPT-2); no factor √d.
    """
    T = ids.shape[1]
    if len(positions) < T:
        raise ValueError(f"There are vectors for {len(positions)} places; the text has {T} tokens.")
    x = tokens[ids] + positions[:T]  # (B, T, d)
    for block in blocks:
        x = block(x)
    return norm(x) @ W_out  # (B, T, V)


def language_model_loss(logits, tokens, pad):
    """Mean loss in nats of every next token: the logits at position t are compared with the token at t + 1.

    ``logits``: ``(B, T, V)``; ``tokens``: ``(B, T)`` ids; ``pad``: the id of padding, which counts nowhere. Returns a
    scalar. Raises ValueError when no token is left to predict. Source: Bengio et al. 2003, section 2.
    """
    target = tokens[:, 1:]  # (B, T-1)
    if not (target != pad).any():
        raise ValueError("There is no next token to predict: the text is too short, or all of it is padding.")
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), target.flatten(), ignore_index=pad)


def generate(logits_of, ids, n, choose):
    """Write on, one token after the other: each is chosen from what the model says after all that is there so far.

    ``logits_of``: a function from a list of ids to logits ``(len, V)``; ``ids``: a list of ids, not empty, which stays as it
    is; ``n``: how many are written; ``choose``: a function from logits ``(V,)`` to an id. Returns the new list.
    """
    ids = list(ids)
    for _ in range(n):
        ids.append(int(choose(logits_of(ids)[-1])))
    return ids


def sample_next(logits, temperature, top_k, generator):
    """Draw the next token: an id, with probabilities softmax(logits / temperature) among the ``top_k`` largest logits.

    ``logits``: ``(V,)``; ``temperature``: 0 takes the largest; ``top_k``: None for all words, more than V is all as well;
    ``generator``: a ``torch.Generator``, the only source of chance. Raises ValueError when ``temperature`` is negative
    or ``top_k`` is below 1. Source: top-k sampling, Fan et al. 2018.
    """
    if temperature < 0 or (top_k is not None and top_k < 1):
        raise ValueError(f"temperature must not be negative and top_k at least 1, not {temperature} and {top_k}.")
    if temperature == 0:
        return int(logits.argmax())
    largest, ids = logits.topk(len(logits) if top_k is None else min(top_k, len(logits)))  # (k,), largest first
    return int(ids[torch.multinomial(torch.softmax(largest / temperature, dim=0), 1, generator=generator)])


def perplexity(losses, counts):
    """exp of the mean loss a token: how many equally probable words would be as hard to predict.

    ``losses``: ``(n,)`` mean nats a token of n batches; ``counts``: ``(n,)`` tokens in each. Returns a number, 1 or more
    for a real loss. Raises ValueError when the lengths differ or there are no tokens.
    """
    losses, counts = torch.as_tensor(losses, dtype=torch.float64), torch.as_tensor(counts, dtype=torch.float64)
    if losses.shape != counts.shape or not counts.sum() > 0:
        raise ValueError(f"perplexity needs a count for each loss and at least one token; got {losses} and {counts}.")
    return float(torch.exp((losses * counts).sum() / counts.sum()))
