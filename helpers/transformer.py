"""Transformers in torch, from multi-head attention upwards. Read it from top to bottom.

Tokens are rows, batch first: ``(B, T, d)``; heads ``(B, h, T, d_k)``. Masks are boolean, True = may attend.
"""

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
        extra = bias
        if mask is not None:
            extra = torch.zeros(()).to(q).masked_fill(~mask, float("-inf")) + (0.0 if bias is None else bias)
        if not weights:
            heads = F.scaled_dot_product_attention(q, k, v, attn_mask=extra, scale=self.scale)
            return self.W_o(self._merge(heads))
        scores = self.scale * q @ k.transpose(-1, -2)  # (B, h, T, T_k)
        w = torch.softmax(scores if extra is None else scores + extra, dim=-1)
        return self.W_o(self._merge(w @ v)), w

    def _split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (B, T, d) -> (B, h, T, d_k)

    @staticmethod
    def _merge(x):
        return x.transpose(1, 2).flatten(2)  # (B, h, T, d_k) -> (B, T, d)


def rotate(x):
    """RoPE on ``(..., T, d)`` at positions 0 … T-1; the torch twin of ``attention.rotate``."""
    T, d = x.shape[-2:]
    angles = torch.arange(T, device=x.device)[:, None] * 10000.0 ** (-torch.arange(0, d, 2, device=x.device) / d)
    cos, sin = angles.cos().to(x), angles.sin().to(x)  # (T, d/2)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)


class Block(nn.Module):
    """Attention and a two-layer MLP, each added to the residual stream, with LayerNorm before each (pre-norm)
    or after each addition (post-norm, as in Vaswani et al. 2017).

    ``mlp``: width of the hidden layer, 0 leaves the MLP out; ``residual=False`` leaves the additions out.
    """

    def __init__(self, d, n_heads, mlp, pre_norm=True, scale=True, residual=True):
        super().__init__()
        self.attention = MultiHeadAttention(d, n_heads, scale=scale)
        self.mlp = nn.Sequential(nn.Linear(d, mlp), nn.ReLU(), nn.Linear(mlp, d)) if mlp else None
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d) if mlp else None
        self.pre_norm, self.residual = pre_norm, residual

    def forward(self, x, weights=False, **options):
        """``x``: ``(B, T, d)``; ``options`` go to the attention. Returns ``(B, T, d)``, or (that, weights)."""
        seen = None
        normed = self.norm1(x) if self.pre_norm else x
        y = self.attention(normed, weights=weights, **options)
        if weights:
            y, seen = y
        x = x + y if self.residual else y
        x = x if self.pre_norm else self.norm1(x)
        if self.mlp is not None:
            y = self.mlp(self.norm2(x) if self.pre_norm else x)
            x = x + y if self.residual else y
            x = x if self.pre_norm else self.norm2(x)
        return (x, seen) if weights else x


class Encoder(nn.Module):
    """Token ids in, logits out: embedding, positions, ``n_layers`` blocks, a norm, a linear layer.

    ``vocabulary``: number of token ids; ``outputs``: number of classes a position (default: ``vocabulary``);
    ``positions``: one of POSITIONS; ``max_length``: for learned positions; ``causal``: a position sees itself and
    what came before, which makes it a language model. ALiBi penalises the distance to both sides; its causal
    half (Press et al. 2021) remains with ``causal=True``. Raises ValueError for an unknown kind of positions.
    """

    def __init__(self, vocabulary, d=32, n_heads=1, n_layers=1, mlp=64, positions="learned", max_length=64,
                 causal=False, outputs=None, pre_norm=True, scale=True, residual=True):
        super().__init__()
        if positions not in POSITIONS:
            raise ValueError(f"positions must be one of {', '.join(POSITIONS)}, not {positions!r}.")
        self.positions, self.causal, self.n_heads = positions, causal, n_heads
        self.embedding = nn.Embedding(vocabulary, d)
        self.position = nn.Embedding(max_length, d) if positions == "learned" else None
        self.blocks = nn.ModuleList(Block(d, n_heads, mlp, pre_norm, scale, residual) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d) if pre_norm else nn.Identity()
        self.output = nn.Linear(d, vocabulary if outputs is None else outputs)

    def forward(self, tokens, mask=None, weights=False):
        """``tokens``: ``(B, T)`` ids; ``mask``: bool, broadcastable to ``(B, h, T, T)``, on top of the causal one.

        Returns logits ``(B, T, outputs)``, or with ``weights=True`` (logits, list of ``(B, h, T, T)``).
        """
        T = tokens.shape[1]
        x = self.embedding(tokens)  # (B, T, d)
        if self.positions == "learned":
            if self.position.num_embeddings < T:
                raise ValueError(f"The model has {self.position.num_embeddings} learned positions; the text has {T}.")
            x = x + self.position.weight[:T]
        elif self.positions == "sinusoidal":
            x = x + torch.as_tensor(attention.sinusoidal_encoding(T, x.shape[-1])).to(x)
        if self.causal:
            causal = torch.ones(T, T, dtype=torch.bool, device=tokens.device).tril()
            mask = causal if mask is None else causal & mask
        bias = None
        if self.positions == "alibi":
            one_sided = torch.as_tensor(attention.alibi_bias(self.n_heads, T)).to(x)  # (h, T, T)
            bias = one_sided.tril() + one_sided.tril().transpose(-1, -2) if not self.causal else one_sided
        seen = []
        for block in self.blocks:
            x = block(x, weights=weights, mask=mask, bias=bias, rotary=self.positions == "rope")
            if weights:
                x, w = x
                seen.append(w)
        logits = self.output(self.norm(x))
        return (logits, seen) if weights else logits
