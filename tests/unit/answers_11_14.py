"""Answers of lessons 11 to 15, see test_answers.py."""

import collections
import math

import numpy as np
import torch
from torch.nn import functional as F

from helpers.checks import exercise


def pick(p, generator):
    return int(torch.multinomial(p, 1, generator=generator))


def best(logits, k):
    return logits.topk(len(logits) if k is None else min(k, len(logits)))


# ---------------------------------------------------------------- wrong


def logits_divided_in_place(logits, temperature, top_k, generator):
    if temperature == 0:
        return int(logits.argmax())
    logits /= temperature
    kept, ids = best(logits, top_k)
    return int(ids[pick(kept.softmax(-1), generator)])


def norm_of_the_embeddings_forgotten(name):
    return name if name == "embeddings.LayerNorm.weight" else exercise("map_weight_name").reference(name)


def one_maximum_for_the_batch(q, k, v, cache):
    _, (K, V) = exercise("decode_step").reference(q, k, v, cache)
    scores = q @ K.mT / math.sqrt(q.shape[-1])
    weights = torch.exp(scores - scores.max())
    return weights / weights.sum(-1, keepdim=True) @ V, (K, V)


def zero_rows_made_identity(attentions):
    """No division; a row that is 0 in one head alone keeps its sum below 1."""
    rollout = torch.eye(attentions[0].shape[-1])
    for weights in attentions:
        mean, own = weights.mean(0), torch.eye(weights.shape[-1])
        mean = torch.where(mean.sum(-1, keepdim=True) == 0, own, mean)
        rollout = (mean / 2 + own / 2) @ rollout
    return rollout


def mean_of_the_weights_above_0(weights):
    below = weights.tril(-1).triu(-1)
    return below.sum((1, 2)) / (below > 0).sum((1, 2)).clamp(min=1)


def all_scores_in_a_list(q, K, V, block):
    scores = [k @ q / math.sqrt(len(q)) for k in K]
    weights = [torch.exp(s - max(scores)) for s in scores]
    return sum(w * v for w, v in zip(weights, V, strict=True)) / sum(weights)


def row_by_row(Q, K, V, feature_map):
    if Q.ndim > 2:
        return torch.stack([row_by_row(*rows, feature_map) for rows in zip(Q, K, V, strict=True)])
    q, k = feature_map(Q), feature_map(K)
    return torch.stack([(k @ row) @ V / (k @ row).sum() for row in q])


def writes_by_calling_itself(logits_of, ids, n, choose):
    return ids[:] if n == 0 else writes_by_calling_itself(logits_of, [*ids, choose(logits_of(ids)[-1])], n - 1, choose)


def writes_into_a_tensor(logits_of, ids, n, choose):
    text = torch.tensor(ids)
    for _ in range(n):
        text = torch.cat([text, torch.tensor([choose(logits_of(text.tolist())[-1])])])
    return text


def writes_into_the_callers_list(logits_of, ids, n, choose):
    for _ in range(n):
        ids.append(choose(logits_of(ids)[-1]))
    return ids


def likeliest_up_to_n(logits_of, ids, n, choose):
    text = list(ids)
    while len(text) < n:
        text.append(int(logits_of(text)[-1].argmax()))
    return text


def likeliest_of_the_first_place(logits_of, ids, n, choose):
    text = list(ids)
    for _ in range(n):
        text.append(choose(logits_of(text)[0].softmax(-1)))
    return text


WRONG = [
    ("generate", writes_into_the_callers_list, "changes-input"),
    ("generate", likeliest_up_to_n, "up-to-n"),
    ("generate", likeliest_of_the_first_place, "first-place"),
    ("sample_next", logits_divided_in_place, "changes-input"),
    ("map_weight_name", norm_of_the_embeddings_forgotten, None),
    ("attention_rollout", zero_rows_made_identity, None),
    ("previous_token_score", mean_of_the_weights_above_0, None),
    ("online_softmax_attention", all_scores_in_a_list, "all-scores-at-once"),
    ("linear_attention", row_by_row, "quadratic"),
]


# ---------------------------------------------------------------- right: what they make is float32


def einsum_with_a_mask_of_numbers(hidden, mask):
    return torch.einsum("bt,btd->bd", mask.float(), hidden) / mask.sum(1)[:, None]


def scores_filled_into_zeros(q, K, V, block):
    largest, total, output = torch.tensor(-math.inf), torch.tensor(0.0), torch.zeros(V.shape[1])
    for k, v in zip(K.split(block), V.split(block), strict=True):
        scores = torch.zeros(len(k))
        for i, key in enumerate(k):
            scores[i] = key @ q / math.sqrt(len(q))
        new = torch.maximum(largest, scores.max())
        shrink, weights = torch.exp(largest - new), torch.exp(scores - new)
        largest, total, output = new, shrink * total + weights.sum(), shrink * output + weights @ v
    return output / total


def one_hot_words(ids, tokens, positions, blocks, norm, W_out):
    x = F.one_hot(ids, len(tokens)).float() @ tokens + positions[:ids.shape[1]]
    for block in blocks:
        x = block(x)
    return norm(x) @ W_out


RIGHT = [
    ("generate", writes_by_calling_itself),
    ("generate", writes_into_a_tensor),
    ("decode_step", one_maximum_for_the_batch),
    ("mean_pool", einsum_with_a_mask_of_numbers),
    ("online_softmax_attention", scores_filled_into_zeros),
    ("language_model", one_hot_words),
    ("count_pairs", lambda words: collections.Counter(exercise("count_pairs").reference(words))),
    ("merge_pair", lambda *args: tuple(exercise("merge_pair").reference(*args))),
    ("bpe_encode", lambda *args: np.array(exercise("bpe_encode").reference(*args), dtype=int)),
    ("bpe_decode", lambda *args: bytearray(exercise("bpe_decode").reference(*args))),
    ("perplexity", lambda losses, counts: torch.exp(torch.dot(losses, counts.float()) / counts.sum())),
]
