"""Answers of lessons 07 to 10, see test_answers.py."""

import numpy as np
import torch

from helpers.attention import masked_attention, sinusoidal_encoding
from helpers.checks import exercise

mha, turn, norm = (exercise(name).reference for name in ("multi_head_attention", "rotate", "layer_norm"))
cross, block, decoder = (exercise(name).reference for name in ("cross_attention", "pre_norm_block", "decoder_block"))


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


def fill_of_10000(dX, eX, W_q, W_k, W_v, mask, fill=lambda s, seen: s.masked_fill(~seen, -1e4)):
    scores = (dX @ W_q) @ (eX @ W_k).mT / W_k.shape[-1] ** 0.5
    weights = torch.softmax(scores if mask is None else fill(scores, mask[:, None]), dim=-1)
    return weights @ (eX @ W_v), weights


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


def a_growing_tensor(next_logits, bos, eos, max_length):
    """The lesson's translator stops over it."""
    ids = torch.tensor([bos])
    while len(ids) <= max_length and (len(ids) == 1 or ids[-1] != eos):
        ids = torch.cat([ids, next_logits(ids).argmax()[None]])
    return ids[1:].tolist()


def a_growing_list(next_logits, bos, eos, max_length):
    """Its ids are tensors without an axis."""
    ids = [bos]
    while len(ids) <= max_length and (len(ids) == 1 or ids[-1] != eos):
        ids.append(next_logits(ids).argmax())
    return ids[1:]


def share_by_loops(weights, special):
    shares = []
    for head in weights:
        sums = [sum(w for w, key in zip(row, special, strict=True) if key)
                for row, query in zip(head, special, strict=True) if not query]
        shares.append(sum(sums) / len(sums))
    return shares


WRONG = [
    ("multi_head_attention", loop_over_heads, None),
    ("multi_head_attention", empty_mask_is_no_mask, None),
    ("rotate", row_looked_up, None),
    ("rotate", row_found_by_index, None),
    ("greedy_decode", a_growing_tensor, "tensor-asked"),
]

RIGHT = [
    ("special_share", share_by_loops),
    ("special_share", lambda w, special: 1 - w[:, ~special][..., ~special].sum(axis=2).mean(axis=1)),
    ("layer_norm", mean_of_squares_minus_square),
    ("cross_attention", fill_of_10000),
    ("decoder_block", named_arguments),
    ("cross_attention", by_loops),
    ("greedy_decode", a_growing_list),
    ("multi_head_attention", lambda *args: np.asarray(mha(*args), dtype=np.float32)),
    ("layer_norm", lambda x, gain, bias, eps: norm(x.float(), gain.float(), bias.float(), eps)),
]
