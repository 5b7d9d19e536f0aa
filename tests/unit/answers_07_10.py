"""Answers of lessons 07 to 10, see test_answers.py."""

import numpy as np
import torch

from helpers.attention import masked_attention, merge_heads, sinusoidal_encoding, softmax, split_heads
from helpers.checks import exercise

mha, turn, norm = (exercise(name).reference for name in ("multi_head_attention", "rotate", "layer_norm"))
cross, block, decoder = (exercise(name).reference for name in ("cross_attention", "pre_norm_block", "decoder_block"))


def mask_shared_out(X, W_q, W_k, W_v, W_o, n_heads, mask=None):
    """0 / 0 becomes 0 where every key that may be seen has lost its weight to hidden ones."""
    Q, K, V = (split_heads(X @ W, n_heads) for W in (W_q, W_k, W_v))
    weights = softmax(Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]))
    if mask is not None:
        weights = np.nan_to_num(weights * mask / (weights * mask).sum(-1, keepdims=True))
    return merge_heads(weights @ V) @ W_o


def small_fill_then_mask(X, W_q, W_k, W_v, W_o, n_heads, mask=None):
    """-10,000 is larger than a score may be."""
    mask = True if mask is None else mask
    Q, K, V = (split_heads(X @ W, n_heads) for W in (W_q, W_k, W_v))
    weights = softmax(np.where(mask, Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1]), -1e4))
    return merge_heads(weights * mask @ V) @ W_o


def loop_over_heads(X, W_q, W_k, W_v, W_o, n_heads, mask=None):
    """Of a mask (h, T, T) it takes the queries for heads."""
    heads, d_k = [], X.shape[-1] // n_heads
    for i in range(n_heads):
        own = slice(i * d_k, (i + 1) * d_k)
        seen = True if mask is None else mask if mask.ndim == 2 else mask[:, i if mask.shape[1] == n_heads else 0]
        heads.append(masked_attention(X @ W_q[:, own], X @ W_k[:, own], X @ W_v[:, own], seen)[0])
    return np.concatenate(heads, axis=-1) @ W_o


def empty_mask_is_no_mask(X, W_q, W_k, W_v, W_o, n_heads, mask=None):
    return mha(X, W_q, W_k, W_v, W_o, n_heads, None if mask is None or not mask.any() else mask)


def scaled_before_masked_attention(X, W_q, W_k, W_v, W_o, n_heads, mask=None):
    Q, K, V = (split_heads(X @ W, n_heads) for W in (W_q, W_k, W_v))
    return merge_heads(masked_attention(Q / np.sqrt(Q.shape[-1]), K, V, True if mask is None else mask)[0]) @ W_o


def row_looked_up(x, positions):
    """A negative position counts from the end of the table."""
    table = sinusoidal_encoding(int(np.max(positions)) + 1, x.shape[-1])[positions]
    sin, cos, even, odd = table[:, 0::2], table[:, 1::2], x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)


def row_found_by_index(x, positions):
    """Of two rows with one position the first is turned, and the second is left empty."""
    turned = np.zeros(x.shape)
    for p in positions:
        t = list(positions).index(p)
        turned[..., t, :] = turn(x[..., t:t + 1, :], [p])[..., 0, :]
    return turned


def mean_of_squares_minus_square(x, gain, bias, eps):
    mean = x.mean(-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt((x ** 2).mean(-1, keepdim=True) - mean ** 2 + eps) + bias


def second_axis(x, gain, bias, eps):
    centred = x - x.mean(1, keepdim=True)
    return gain * centred / torch.sqrt((centred ** 2).mean(1, keepdim=True) + eps) + bias


def both_axes(x, gain, bias, eps):
    return gain * (x - x.mean((0, 1), keepdim=True)) / torch.sqrt(x.var((0, 1), correction=0, keepdim=True) + eps) + bias


def one_variance(x, gain, bias, eps):
    return gain * (x - x.mean(-1, keepdim=True)) / (x.var(correction=0) + eps) ** 0.5 + bias


def fill_of_10000(dX, eX, W_q, W_k, W_v, mask, fill=lambda s, seen: s.masked_fill(~seen, -1e4)):
    scores = (dX @ W_q) @ (eX @ W_k).mT / W_k.shape[-1] ** 0.5
    weights = torch.softmax(scores if mask is None else fill(scores, mask[:, None]), dim=-1)
    return weights @ (eX @ W_v), weights


def zero_times_infinity(*args):
    return fill_of_10000(*args, fill=lambda s, seen: s + (~seen) * float("-inf"))


def first_of_a_pair(x, memory, look_back, look_across, work, norm1, norm2, norm3):
    x = x + look_back(norm1(x))
    x = x + look_across(norm2(x), memory)[0]
    return x + work(norm3(x))


def named_arguments(x, memory, look_back, look_across, work, norm1, norm2, norm3):
    x = x + look_back(x=norm1(x))
    x = x + look_across(x=norm2(x), memory=memory)
    return x + work(x=norm3(x))


def by_loops(dX, eX, W_q, W_k, W_v, mask):
    """torch.zeros is float32."""
    weights, output = torch.zeros(len(dX), dX.shape[1], eX.shape[1]), torch.zeros(len(dX), dX.shape[1], W_v.shape[1])
    for b in range(len(dX)):
        scores = (dX[b] @ W_q) @ (eX[b] @ W_k).T / W_k.shape[1] ** 0.5
        weights[b] = torch.softmax(scores if mask is None else scores.masked_fill(~mask[b], -torch.inf), dim=-1)
        output[b] = weights[b] @ (eX[b] @ W_v)
    return output, weights


def share_by_loops(weights, special):
    shares = []
    for head in weights:
        sums = [sum(w for w, key in zip(row, special, strict=True) if key)
                for row, query in zip(head, special, strict=True) if not query]
        shares.append(sum(sums) / len(sums))
    return shares


def share_by_einsum(weights, special):
    return np.einsum("hqk,q,k->h", weights, 1.0 * ~special, 1.0 * special) / (~special).sum()


def zeros_at_words_then_mean(weights, special):
    return np.where(special, weights, 0).mean(axis=-1).mean(axis=-1)


WRONG = [
    ("multi_head_attention", mask_shared_out, "mask-shared-out"),
    ("multi_head_attention", small_fill_then_mask, "mask-shared-out"),
    ("multi_head_attention", loop_over_heads, None),
    ("multi_head_attention", empty_mask_is_no_mask, None),
    ("multi_head_attention", scaled_before_masked_attention, "scaled-twice"),
    ("rotate", row_looked_up, None),
    ("rotate", row_found_by_index, None),
    ("layer_norm", second_axis, "second-axis"),
    ("layer_norm", both_axes, "batch-norm-of-two-axes"),
    ("layer_norm", one_variance, "variance-of-everything"),
    ("cross_attention", zero_times_infinity, "nan-from-zero-times-inf"),
    ("pre_norm_block", lambda x, a, f, n1, n2: block(x, lambda y: a(y)[0], f, n1, n2), "first-of-a-pair"),
    ("decoder_block", first_of_a_pair, "first-of-a-pair"),
    ("special_share", lambda w, special: (w @ special).mean(axis=-1), "all-queries"),
    ("special_share", lambda w, special: w[:, ~special, special].sum(axis=-1), "taken-in-pairs"),
    ("special_share", lambda w, special: w[..., special].mean(axis=(1, 2)), "mean-over-keys-of-all-queries"),
    ("special_share", zeros_at_words_then_mean, "mean-of-all-places"),
]

RIGHT = [
    ("special_share", share_by_loops),
    ("special_share", share_by_einsum),
    ("special_share", lambda w, special: (w @ special)[:, ~special].mean(axis=1)),
    ("special_share", lambda w, special: 1 - w[:, ~special][..., ~special].sum(axis=2).mean(axis=1)),
    ("layer_norm", mean_of_squares_minus_square),
    ("cross_attention", fill_of_10000),
    ("decoder_block", named_arguments),
    ("cross_attention", by_loops),
    ("multi_head_attention", lambda *args: np.asarray(mha(*args), dtype=np.float32)),
    ("layer_norm", lambda x, gain, bias, eps: norm(x.float(), gain.float(), bias.float(), eps)),
]
