"""Attention in NumPy, as the lessons build it.

Tokens are rows. ``X`` is ``(T, d)``: T tokens of d numbers. Scores are ``(T_q, T_k)``:
one row for each query, one column for each key. Softmax runs over the keys, the last axis.
"""

import numpy as np


def softmax(x):
    """Turn scores into weights that are positive and sum to 1 along the last axis.

    ``x``: array of any shape ``(..., n)``, any finite size of number, ``-inf`` allowed
    (weight exactly 0) as long as each row has one finite entry.
    Returns an array of the same shape with entries in [0, 1].

    The largest score of each row is subtracted first. That leaves the result as it is,
    because numerator and denominator shrink by the same factor, and ``exp`` cannot overflow.
    Source: Bridle 1990; Vaswani et al. 2017, equation 1 uses it over the keys.
    """
    x = np.asarray(x, dtype=float)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def self_attention(X):
    """Attention without parameters: every token becomes a weighted mean of all tokens.

    ``X``: ``(T, d)``. Returns ``(T, d)``: ``softmax(X Xᵀ) X`` with plain dot-product scores,
    not scaled. Each row of the result is a mixture of the rows of ``X``.
    """
    X = np.asarray(X, dtype=float)
    weights = softmax(X @ X.T)  # (T, T): row = query, column = key
    return weights @ X  # (T, d)


def attention_entropy(weights):
    """How widely each query spreads its attention, in nats.

    ``weights``: ``(..., T)``, rows that sum to 1. Returns ``(...)``:
    ``-Σ w log w`` with ``0 · log 0 = 0``. The range is 0 (all weight on one key) to
    ``log T`` (the same weight everywhere). Source: Shannon 1948.
    """
    w = np.asarray(weights, dtype=float)
    log_w = np.log(w, out=np.zeros_like(w), where=w > 0)
    return -(w * log_w).sum(axis=-1)


# ---------------------------------------------------------------- lesson 03: lookup


def hard_attention(query, keys, values):
    """Look up one value: that of the key with the largest dot product with the query.

    ``query``: ``(d,)``; ``keys``: ``(n, d)``; ``values``: ``(n, m)``. Returns ``(m,)``. The first key wins a tie.
    """
    return values[np.argmax(keys @ query)]


def soft_attention(query, keys, values):
    """Look up a mixture: the mean of all values, weighted by the softmax of the dot products.

    ``query``: ``(d,)``; ``keys``: ``(n, d)``; ``values``: ``(n, m)``. Returns (output ``(m,)``, weights ``(n,)``).
    """
    weights = softmax(keys @ query)  # (n,)
    return weights @ values, weights


def additive_scores(s, H, W, U, v):
    """Score a decoder state against every encoder state: ``v · tanh(W s + U h_t)``.

    ``s``: ``(d_s,)``; ``H``: ``(T, d_h)``; ``W``: ``(d_a, d_s)``; ``U``: ``(d_a, d_h)``; ``v``: ``(d_a,)``.
    Returns ``(T,)``. Source: Bahdanau et al. 2014, appendix A.1.2.
    """
    return np.tanh(W @ s + H @ U.T) @ v  # (T, d_a) @ (d_a,)


# ---------------------------------------------------------------- lesson 04: queries, keys, values


def project(X, W):
    """Map every token linearly: ``X W``.

    ``X``: ``(..., T, d)``; ``W``: ``(d, k)``. Returns ``(..., T, k)``.
    """
    return X @ W


def attention_scores(Q, K):
    """Plain dot product of every query with every key: ``Q Kᵀ``.

    ``Q``: ``(..., T_q, d_k)``; ``K``: ``(..., T_k, d_k)``. Returns ``(..., T_q, T_k)``.
    """
    return Q @ np.swapaxes(K, -1, -2)


def qkv_attention(X, W_q, W_k, W_v):
    """Attention with three roles for every token: ``softmax(Q Kᵀ) V`` with ``Q = X W_q``, ``K = X W_k``, ``V = X W_v``.

    ``X``: ``(T, d)``; ``W_q``, ``W_k``: ``(d, d_k)``; ``W_v``: ``(d, d_v)``. The scores are not scaled.
    Returns (output ``(T, d_v)``, weights ``(T, T)``: row = query, column = key).
    """
    Q, K, V = project(X, W_q), project(X, W_k), project(X, W_v)
    weights = softmax(attention_scores(Q, K))
    return weights @ V, weights


def bilinear_form(W_q, W_k):
    """The one matrix that two projections amount to: scores are ``X W Xᵀ`` with ``W = W_q W_kᵀ``.

    ``W_q``, ``W_k``: ``(d, d_k)``. Returns ``(d, d)``, of rank at most d_k.
    """
    return W_q @ W_k.T


# ---------------------------------------------------------------- lesson 05: scaling


def scaled_dot_product_attention(Q, K, V):
    """``softmax(Q Kᵀ / √d_k) V``.

    ``Q``: ``(..., T_q, d_k)``; ``K``: ``(..., T_k, d_k)``; ``V``: ``(..., T_k, d_v)``.
    Returns (output ``(..., T_q, d_v)``, weights ``(..., T_q, T_k)``). Source: Vaswani et al. 2017, equation 1.
    """
    weights = softmax(attention_scores(Q, K) / np.sqrt(Q.shape[-1]))
    return weights @ V, weights


def softmax_jacobian(p):
    """How each weight changes with each score: ``∂p_i/∂x_j = p_i (δ_ij - p_j)``, at ``p = softmax(x)``.

    δ_ij is 1 where i = j, and 0 elsewhere.
    ``p``: ``(n,)``. Returns ``(n, n)``; rows and columns sum to 0.
    """
    return np.diag(p) - np.outer(p, p)


def score_variance(d_k, n, rng):
    """Variance of ``n`` dot products of two vectors of ``d_k`` independent standard normals.

    ``rng``: a NumPy Generator, which draws them. Returns a number, near d_k.
    """
    q = rng.standard_normal((n, d_k))
    k = rng.standard_normal((n, d_k))
    return np.sum(q * k, axis=1).var()


# ---------------------------------------------------------------- lesson 06: masks


def causal_mask(T):
    """True where a query may attend: to itself and to what came before. Returns ``(T, T)`` bool."""
    return np.tril(np.ones((T, T), dtype=bool))


def padding_mask(lengths, T):
    """True where a position holds a token, False where it holds padding.

    ``lengths``: ``(B,)`` whole numbers from 0 to ``T``. Returns ``(B, T)`` bool.
    Raises ValueError when a length is larger than ``T``.
    """
    lengths = np.asarray(lengths)
    if lengths.size and lengths.max() > T:
        raise ValueError(f"A sentence of {lengths.max()} tokens does not fit in {T} positions; use a larger T.")
    return np.arange(T) < lengths[:, None]  # (T,) against (B, 1)


def masked_attention(Q, K, V, mask):
    """Scaled dot-product attention in which a query sees only the keys where ``mask`` is True.

    ``Q``: ``(..., T_q, d_k)``; ``K``: ``(..., T_k, d_k)``; ``V``: ``(..., T_k, d_v)``; ``mask``: bool,
    broadcastable to ``(..., T_q, T_k)``. Returns (output, weights). A masked key has weight exactly 0.
    A query that may see nothing gets weights and output 0, where softmax alone would give NaN.
    """
    scores = attention_scores(Q, K) / np.sqrt(Q.shape[-1])
    scores = np.where(mask, scores, -np.inf)
    nothing = np.all(scores == -np.inf, axis=-1, keepdims=True)  # (..., T_q, 1)
    weights = np.where(nothing, 0.0, softmax(np.where(nothing, 0.0, scores)))
    return weights @ V, weights


# ---------------------------------------------------------------- lesson 07: many heads


def split_heads(X, n_heads):
    """Cut the last axis into heads: ``(B, T, d)`` becomes ``(B, h, T, d_k)`` with ``d_k = d / h``.

    Head i takes columns ``i·d_k`` to ``(i+1)·d_k``. Raises ValueError when ``n_heads`` does not divide d.
    """
    B, T, d = X.shape
    if n_heads < 1 or d % n_heads:
        raise ValueError(f"{n_heads} heads cannot share {d} dimensions equally; choose a divisor of {d}.")
    return X.reshape(B, T, n_heads, d // n_heads).swapaxes(1, 2)


def merge_heads(X):
    """Put the heads side by side again, the inverse of ``split_heads``: ``(B, h, T, d_k)`` becomes ``(B, T, h·d_k)``."""
    B, h, T, d_k = X.shape
    return X.swapaxes(1, 2).reshape(B, T, h * d_k)


def multi_head_attention(X, W_q, W_k, W_v, W_o, n_heads, mask=None):
    """Attend with ``n_heads`` heads side by side, then mix them: ``concat(head_0 … head_{h-1}) W_o``.

    ``X``: ``(B, T, d)``; the weights: ``(d, d)``; ``mask``: bool, broadcastable to ``(B, h, T, T)``, True = may attend.
    Returns ``(B, T, d)``. Raises ValueError when ``n_heads`` does not divide d.
    Source: Vaswani et al. 2017, section 3.2.2.
    """
    Q, K, V = (split_heads(project(X, W), n_heads) for W in (W_q, W_k, W_v))  # (B, h, T, d_k)
    heads, _ = masked_attention(Q, K, V, True if mask is None else mask)  # (B, h, T, d_k)
    return merge_heads(heads) @ W_o


def count_attention_parameters(d_model, n_heads, bias):
    """Parameters of W_q, W_k, W_v and W_o, each ``(d_model, d_model)``, with their bias vectors if ``bias``.

    The number of heads changes nothing. Raises ValueError when ``n_heads`` does not divide ``d_model``.
    """
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(f"{n_heads} heads cannot share {d_model} dimensions equally; choose a divisor of {d_model}.")
    return 4 * d_model * d_model + (4 * d_model if bias else 0)


# ---------------------------------------------------------------- lesson 08: positions


def sinusoidal_encoding(T, d):
    """Positions as waves: ``sin(t · ω_i)`` in column 2i and ``cos(t · ω_i)`` in column 2i+1, ``ω_i = 10000^(-2i/d)``.

    Returns ``(T, d)`` with entries in [-1, 1]. Raises ValueError when d is odd.
    Source: Vaswani et al. 2017, section 3.5.
    """
    if d % 2:
        raise ValueError(f"d must be even, because each wave fills two columns; it is {d}.")
    angles = np.arange(T)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)  # (T, d/2)
    encoding = np.empty((T, d))
    encoding[:, 0::2] = np.sin(angles)
    encoding[:, 1::2] = np.cos(angles)
    return encoding


def rotate(x, positions):
    """Rotary positions (RoPE): turn each pair of columns (2i, 2i+1) by the angle ``position · ω_i``.

    ``x``: ``(..., T, d)``; ``positions``: ``(T,)``; ``ω_i = 10000^(-2i/d)``. Returns ``(..., T, d)``; lengths stay.
    Raises ValueError when d is odd. Source: Su et al. 2021, equation 34.
    """
    d = x.shape[-1]
    if d % 2:
        raise ValueError(f"d must be even, because columns are turned in pairs; it is {d}.")
    angles = np.asarray(positions)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)  # (T, d/2)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = np.empty(x.shape)
    turned[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
    turned[..., 1::2] = even * np.sin(angles) + odd * np.cos(angles)
    return turned


def alibi_bias(n_heads, T):
    """ALiBi: a penalty on each score that grows with the distance to the key, causal.

    Returns ``(h, T, T)``: ``-slope · (i - j)`` for ``j ≤ i`` and ``-inf`` to the right of the diagonal, with
    ``slope = 2^(-8(head+1)/h)``. Source: Press et al. 2021, section 3.
    """
    slopes = 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads)  # (h,)
    distance = np.arange(T)[:, None] - np.arange(T)  # (T, T): query minus key
    bias = -slopes[:, None, None] * distance
    return np.where(distance >= 0, bias, -np.inf)
