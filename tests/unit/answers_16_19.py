"""Answers of lessons 16 to 20, see test_answers.py."""

import itertools
import math

import numpy as np
import torch
from torch.nn import functional as F

from helpers.checks import exercise
from helpers.vision import to_patches


def effect(divide):
    def function(clean, corrupt, patched, right, wrong):
        a, b, c = (float(x[right] - x[wrong]) for x in (clean, corrupt, patched))
        return divide(a, b, c)
    return function


def formed_in_place(x, W, A, B, alpha):
    return x @ W.clone().addmm_(A, B, alpha=alpha / A.shape[1])


def log_of_the_softmax(logits, reference_logits, mask):
    p, q = logits.softmax(-1), reference_logits.softmax(-1)
    return (p * (p.log() - q.log())).sum(-1)[mask].mean()


def lengths_below_0(logits, ids, first, pad=-1):
    """A row that ends before its answer begins counts less than no token."""
    ends, begins = (ids != pad).sum(1).tolist(), first.clamp(min=1).tolist()
    losses = [F.cross_entropy(z[b - 1:e - 1], row[b:e], reduction="sum")
              for z, row, b, e in zip(logits, ids, begins, ends, strict=True)]
    return sum(losses) / (sum(ends) - sum(begins))


def tie_at_the_beginning(sample, reward, n):
    first, *rest = [sample() for _ in range(n)]
    other = max(rest, key=reward, default=first)
    return other if reward(other) >= reward(first) else first


def turns_joined(messages, encode, start, end):
    turns = [[start] + encode("{role}\n{content}".format(**message)) + [end] + encode("\n") for message in messages]
    return sum(turns, []) + [start] + encode("assistant\n")


def turns_in_a_tuple(messages, encode, start, end):
    said = ((start, *encode("\n".join((m["role"], m["content"]))), end, *encode("\n")) for m in messages)
    return (*itertools.chain.from_iterable(said), start, *encode("assistant\n"))


def conversation(text="{role}\n{content}", behind="\n", answer="assistant\n"):
    """An attempt at chat_ids with these texts inside a message, behind it and at the end."""
    def chat_ids(messages, encode, start, end):
        ids = []
        for message in messages:
            ids += [start, *encode(text.format(**message)), end, *encode(behind)]
        return [*ids, start, *encode(answer)]
    return chat_ids


def reader(answer, in_front=True):
    """An attempt at vision_transformer that ends with ``answer(x, norm, W_out)``, and forgets the ValueError."""
    def vision_transformer(images, size, W_in, cls, positions, blocks, norm, W_out):
        x = to_patches(images, size) @ W_in
        asking = cls.repeat(len(x), 1)[:, None]
        x = torch.cat([asking, x] if in_front else [x, asking], dim=1) + positions
        for block in blocks:
            x = block(x)
        return answer(x, norm, W_out)
    return vision_transformer


def two_branches(c, r, c0, r0, beta):
    """Right in numbers, and 0 · inf in the gradient of the branch that is not taken."""
    x = beta * (c - c0 - r + r0)
    return torch.where(x < -30, -x, -x.sigmoid().log()).mean()


WRONG = [
    ("chat_ids", conversation(text="{role}\n{content}\n", behind="", answer="assistant\n"), "line-before-end"),
    ("rms_norm", lambda x, gain, eps=1e-3: exercise("rms_norm").reference(x, gain, eps), None),
    ("patching_effect", effect(lambda a, b, c: (c - b) / abs(a - b)), None),
    ("patching_effect", effect(lambda a, b, c: (c - b) / (a - b) if a > b else 0.0), None),
    ("lora_linear", formed_in_place, "product-formed"),
    ("answer_loss", lengths_below_0, None),
    ("policy_gradient_loss", lambda p, a, mask: -(a[:, None] * p)[mask].mean().item(), "detached"),
    ("kl_to_reference", lambda z, r, mask: by_kl_div(z, r, mask).detach(), "detached"),
    ("kl_to_reference", log_of_the_softmax, "log-of-the-softmax"),
    ("kl_to_reference", lambda z, r, mask: F.kl_div(
        r.log_softmax(-1), z.softmax(-1), reduction="none").sum(-1)[mask].mean(), "kl-div-of-a-softmax"),
    ("dpo_loss", two_branches, None),
    ("best_of_n", tie_at_the_beginning, None),
    ("best_of_n", lambda sample, r, n: max([sample() for _ in range(n)], key=lambda text: r(text) or -math.inf), None),
]


def silu_from_exp(x, W_gate, W_up, W_down):
    """inf / inf above 709, in float64; in the model no number comes near."""
    e = torch.exp(x @ W_gate)
    return (x @ W_gate * e / (1 + e) * (x @ W_up)) @ W_down


def joined(k, v, cache):
    return (k, v) if cache is None else (torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2))


def values_as_wide_as_keys(q, k, v, cache=None):
    """The task says so: (B, g, T, d_k) both."""
    (B, h, T, d_k), g = q.shape, k.shape[1]
    if h % g:
        raise ValueError
    K, V = joined(k, v, cache)
    scores = q.reshape(B, g, h // g, T, d_k) @ K[:, :, None].mT / math.sqrt(d_k)
    scores = scores + torch.full(scores.shape[-2:], -math.inf).triu(K.shape[2] - T + 1)
    return (scores.softmax(-1) @ V[:, :, None]).reshape(B, h, T, d_k), (K, V)


def torchs_attention(q, k, v, cache=None):
    """Beside a mask of float32, torch computes nonsense of float64."""
    if q.shape[1] % k.shape[1]:
        raise ValueError
    K, V = joined(k, v, cache)
    T, n = q.shape[2], K.shape[2]
    mask = torch.full((T, n), -math.inf).triu(n - T + 1)
    return F.scaled_dot_product_attention(q, K, V, attn_mask=mask, enable_gqa=True), (K, V)


def heads_into_zeros(x, w, n_heads, n_groups, positions, cache=None, base=10000.0):
    """torch.zeros is float32, and meets W_o."""
    from helpers.smollm2 import cached_attention, gated_mlp, rms_norm, rope, split_heads

    y = rms_norm(x, w["norm1"])
    q, k, v = (split_heads(y @ w[name], n) for name, n in (("W_q", n_heads), ("W_k", n_groups), ("W_v", n_groups)))
    heads, cache = cached_attention(rope(q, positions, base), rope(k, positions, base), v, cache)
    B, h, T, d_k = heads.shape
    wide = torch.zeros(B, T, h * d_k)
    for i in range(h):
        wide[:, :, i * d_k:(i + 1) * d_k] = heads[:, i]
    x = x + wide @ w["W_o"]
    return x + gated_mlp(rms_norm(x, w["norm2"]), w["W_gate"], w["W_up"], w["W_down"]), cache


def by_a_loop_over_blocks(scales, minima, codes):
    """It cannot stack the results of no block, and nobody asks for none."""
    return torch.stack([scale * torch.cat([block & 15, block >> 4]) + least
                        for scale, least, block in zip(scales, minima, codes, strict=True)])


def wilson_as_the_text_rounds(successes, n):
    if n < 1 or not 0 <= successes <= n:
        raise ValueError
    middle = (successes + 3.84 / 2) / (n + 3.84)
    half = 1.96 / (n + 3.84) * math.sqrt(successes * (n - successes) / n + 3.84 / 4)
    return middle - half, middle + half


def in_numpy(x, W, A, B, alpha):
    x, W, A, B = (np.asarray(part) for part in (x, W, A, B))
    return x @ W + alpha / B.shape[0] * ((x @ A) @ B)


def loss_by_labels(logits, ids, first, pad=-1):
    labels = ids.clone()
    labels[torch.arange(ids.shape[1]) < first[:, None]] = -100
    labels[ids == pad] = -100
    if (labels[:, 1:] == -100).all():
        raise ValueError("nothing counts")
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def by_kl_div(logits, reference_logits, mask):
    log_p, log_q = logits.log_softmax(-1), reference_logits.log_softmax(-1)
    return F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)[mask].mean()


RIGHT = [
    ("lora_linear", in_numpy),
    ("answer_loss", loss_by_labels),
    ("policy_gradient_loss", lambda p, a, mask: -(a.detach()[:, None] * p)[mask].mean()),
    ("kl_to_reference", by_kl_div),
    ("kl_to_reference", lambda z, r, mask: by_kl_div(z, r.detach(), mask)),
    ("chat_ids", turns_joined),
    ("chat_ids", turns_in_a_tuple),
    ("vision_transformer", reader(lambda x, norm, W_out: (norm(x) @ W_out)[:, 0])),
    ("dpo_loss", lambda c, r, c0, r0, beta: F.softplus(beta * (r - r0 - c + c0)).mean()),
    ("dpo_loss", lambda c, r, c0, r0, beta: F.softplus(beta * (r - r0.detach() - c + c0.detach())).mean()),
    ("gated_mlp", silu_from_exp),
    ("cached_attention", values_as_wide_as_keys),
    ("cached_attention", torchs_attention),
    ("decoder_layer", heads_into_zeros),
    ("dequantise", by_a_loop_over_blocks),
    ("wilson_interval", wilson_as_the_text_rounds),
]
