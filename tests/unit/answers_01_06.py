"""Answers of lessons 01 to 06, see test_answers.py."""

import numpy as np
import torch

from helpers.checks import exercise

cosine_similarity, softmax = exercise("cosine_similarity").reference, exercise("softmax").reference


def swap(K):
    return np.swapaxes(K, -1, -2)


def scaled(Q, K):
    return Q @ swap(K) / np.sqrt(Q.shape[-1])


def mixed(weights, V):
    return weights @ V, weights


def dots(d_k, n, rng):
    return (rng.standard_normal((n, d_k)) * rng.standard_normal((n, d_k))).sum(axis=1)


def no_direction_with_a_zero_in_it(X, Y):
    return np.array([[x @ y / np.linalg.norm(x) / np.linalg.norm(y) if x.all() and y.all() else 0.0 for y in Y] for x in X])


def leaves_the_query_out(query, vectors, k):
    cosines = cosine_similarity(query[None], vectors)[0]
    cosines[(vectors == query).all(axis=1)] = -np.inf
    return np.argsort(-cosines)[:k]


def left_out_with_0(a, b, c, vectors):
    cosines = cosine_similarity((vectors[b] - vectors[a] + vectors[c])[None], vectors)[0]
    cosines[[a, b, c]] = 0
    return np.argmax(cosines)


def softmax_row_by_row(x):
    """Where x holds whole numbers, so does out; but no scores are whole numbers in the lesson."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape[:-1]):
        e = np.exp(x[i] - x[i].max())
        out[i] = e / e.sum()
    return out


def attention_row_by_row(X):
    out = np.zeros_like(X)
    for i in range(len(X)):
        out[i] = softmax(X @ X[i]) @ X
    return out


def starts_at_minus_100(query, keys, values):
    best, winner = -100, 0
    for i, key in enumerate(keys):
        if key @ query > best:
            best, winner = key @ query, i
    return values[winner]


def adds_up_the_best(query, keys, values):
    scores = keys @ query
    return (scores == scores.max()).astype(float) @ values


def squeezed(query, keys, values):
    weights = softmax(keys @ query)
    return (weights[None] @ values).squeeze(), weights


def lists_of_rows(X, W_q, W_k, W_v):
    Q, K, V = X @ W_q, X @ W_k, X @ W_v
    weights = [softmax(np.array([q @ k for k in K])) for q in Q]
    return [sum(w * v for w, v in zip(row, V, strict=True)) for row in weights], weights


def mean_subtracted(Q, K, V):
    e = np.exp(scaled(Q, K) - scaled(Q, K).mean(axis=-1, keepdims=True))
    return mixed(e / e.sum(axis=-1, keepdims=True), V)


def diagonal_by_value(p):
    return np.array([[a * (1 - a) if a == b else -a * b for b in p] for a in p])


def even_rows_to_zero(Q, K, V, mask):
    """Takes equal weights for a row that sees nothing."""
    weights = softmax(np.where(mask, scaled(Q, K), -1e9))
    even = (weights == weights[..., :1]).all(axis=-1, keepdims=True) & (weights.shape[-1] > 1)
    return mixed(np.where(even, 0, weights), V)


def divided_into_zeros_like(X, Y):
    """Stops at whole numbers, and gives nothing wrong."""
    products = X @ Y.T
    lengths = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Y, axis=1)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)


WRONG = [
    ("cosine_similarity", no_direction_with_a_zero_in_it, None),
    ("nearest_neighbours", leaves_the_query_out, None),
    ("analogy", left_out_with_0, None),
    ("hard_attention", starts_at_minus_100, None),
    ("hard_attention", adds_up_the_best, None),
    ("soft_attention", squeezed, None),
    ("scaled_dot_product_attention", mean_subtracted, None),
    ("softmax_jacobian", diagonal_by_value, None),
    ("masked_attention", even_rows_to_zero, None),
]

RIGHT = [
    ("self_attention", attention_row_by_row),
    ("softmax", softmax_row_by_row),
    ("score_variance", lambda d_k, n, rng: np.asarray(dots(d_k, n, rng).var())),
    ("cosine_similarity", divided_into_zeros_like),
    ("qkv_attention", lists_of_rows),
    ("softmax", lambda x: torch.softmax(torch.tensor(x, dtype=torch.float32, requires_grad=True), dim=-1)),
    ("softmax", lambda x: softmax(x).tolist()),
]
