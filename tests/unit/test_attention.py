"""The NumPy reference: properties that hold for any input, contracts, and equality with torch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import special

from helpers import attention

numbers = st.floats(-1e4, 1e4, width=32)
scores = arrays(np.float64, array_shapes(min_dims=1, max_dims=3, max_side=5), elements=numbers)
small = arrays(np.float64, (4, 3), elements=st.floats(-3, 3, width=32))


def is_formula(ours, expected, formula, atol=1e-12):
    """A failure names the function and its formula, which is the first thing to look at."""
    np.testing.assert_allclose(ours, expected, atol=atol, err_msg=f"helpers/attention.py, {formula}")


@given(scores)
def test_softmax(x):
    is_formula(attention.softmax(x), special.softmax(x, axis=-1), "softmax: exp(x) / Σ exp(x) along the last axis")


@pytest.mark.parametrize("kind", ["none", "bool", "float", "causal"])
def test_equal_to_torch(kind):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    Q, K, V = (rng.normal(size=(2, 3, 5, 4)) for _ in range(3))
    mask = rng.random((5, 5)) < 0.6
    mask[:, 0] = True
    options = {"none": {}, "bool": {"attn_mask": torch.tensor(mask)}, "causal": {"is_causal": True},
               "float": {"attn_mask": torch.tensor(np.where(mask, 0.0, -np.inf))}}[kind]
    seen = {"none": True, "causal": attention.causal_mask(5)}.get(kind, mask)
    expected = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, (Q, K, V)), **options)
    is_formula(attention.masked_attention(Q, K, V, seen)[0], expected, "masked_attention: softmax(Q Kᵀ / √d_k, masked) V")
    if kind == "none":
        is_formula(attention.scaled_dot_product_attention(Q, K, V)[0], expected,
                   "scaled_dot_product_attention: softmax(Q Kᵀ / √d_k) V")


@given(scores)
def test_entropy_lies_between_0_and_log_T(x):
    h = attention.attention_entropy(attention.softmax(x))
    assert h.shape == x.shape[:-1]
    assert (h >= -1e-12).all() and (h <= np.log(x.shape[-1]) + 1e-9).all()


@given(small)
def test_attention_output_lies_within_its_values(X):
    Y = attention.self_attention(X)
    assert (Y <= X.max(axis=0) + 1e-9).all() and (Y >= X.min(axis=0) - 1e-9).all()


@given(small, small, small)
def test_a_mask_of_all_true_changes_nothing(Q, K, V):
    plain, _ = attention.scaled_dot_product_attention(Q, K, V)
    masked, _ = attention.masked_attention(Q, K, V, True)
    is_formula(masked, plain, "masked_attention: a mask of all True changes nothing")


@given(small, small, small, arrays(bool, (4, 4)))
def test_masked_keys_get_exactly_nothing(Q, K, V, mask):
    output, weights = attention.masked_attention(Q, K, V, mask)
    assert (weights[~mask] == 0).all()
    is_formula(weights.sum(axis=-1), mask.any(axis=-1), "masked_attention: the shares of a row add up to 1, or to 0")
    assert np.isfinite(output).all()
    assert (output[~mask.any(axis=-1)] == 0).all()


def test_hard_attention_is_the_cold_limit_of_soft():
    rng = np.random.default_rng(0)
    q, K, V = rng.normal(size=4), rng.normal(size=(6, 4)), rng.normal(size=(6, 2))
    cold, _ = attention.soft_attention(1e6 * q, K, V)
    is_formula(cold, attention.hard_attention(q, K, V), "soft_attention: softmax(K q) V, which is hard_attention when cold")


def test_jacobian_is_the_derivative_of_softmax():
    x, step = np.random.default_rng(0).normal(size=5), 1e-6
    measured = np.stack([(attention.softmax(x + step * e) - attention.softmax(x - step * e)) / (2 * step)
                         for e in np.eye(5)], axis=1)
    is_formula(attention.softmax_jacobian(attention.softmax(x)), measured, "softmax_jacobian: diag(p) - p pᵀ", atol=1e-9)


@given(st.integers(1, 4), st.integers(1, 5), st.sampled_from([(1, 3), (2, 4), (3, 6), (4, 4)]))
def test_merging_undoes_splitting(B, T, heads_and_width):
    h, d = heads_and_width
    X = np.random.default_rng(0).normal(size=(B, T, d))
    np.testing.assert_array_equal(attention.merge_heads(attention.split_heads(X, h)), X)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-50, 50))
def test_rotary_scores_depend_on_the_distance_only(i, j, shift):
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(1, 6)), rng.normal(size=(1, 6))

    def score(a, b):
        return (attention.rotate(q, [a]) @ attention.rotate(k, [b]).T).item()

    assert abs(score(i, j) - score(i + shift, j + shift)) < 1e-9
    assert abs(np.linalg.norm(attention.rotate(q, [i])) - np.linalg.norm(q)) < 1e-9


BY_HAND = [  # function, arguments, what it gives, its formula
    ("sinusoidal_encoding", (3, 4), [[0, 1, 0, 1], [0.841471, 0.540302, 0.0099998, 0.99995],
                                     [0.909297, -0.416147, 0.0199987, 0.9998]],
     "sin(t / 10000^(2i/d)) in column 2i, the cosine in column 2i + 1"),
    ("alibi_bias", (2, 2), [[[0, -np.inf], [-1 / 16, 0]], [[0, -np.inf], [-1 / 256, 0]]], "-slope (i - j), from 2^(-8/h)"),
    ("rotate", (np.array([[1.0, 0.0]]), [1]), [[0.540302, 0.841471]], "(x cos - y sin, x sin + y cos)"),
    ("additive_scores", ([1.0], np.array([[2.0]]), np.array([[0.5]]), np.array([[1.0]]), [3.0]), [2.959843],
     "v · tanh(W s + U h)"),
    ("attention_scores", (np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])), [[11, 17]], "Q Kᵀ"),
    ("bilinear_form", (np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])), [[11]], "W_q W_kᵀ"),
    ("project", (np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])), [[11]], "X W"),
    ("padding_mask", ([1, 2], 2), [[True, False], [True, True]], "place < length"),
    ("count_attention_parameters", (8, 2, True), 4 * 64 + 4 * 8, "4 d² + 4 d"),
]


@pytest.mark.parametrize("name, arguments, expected, formula", BY_HAND, ids=[row[0] for row in BY_HAND])
def test_by_hand(name, arguments, expected, formula):
    is_formula(getattr(attention, name)(*arguments), expected, f"{name}: {formula}", atol=1e-6)


def test_queries_keys_and_values_each_have_their_matrix():
    X, W_q, W_k, W_v = np.eye(2), np.diag([np.log(2), 0]), np.eye(2)[::-1], np.diag([5.0, 7.0])
    output, weights = attention.qkv_attention(X, W_q, W_k, W_v)
    is_formula(weights, [[1 / 3, 2 / 3], [1 / 2, 1 / 2]], "qkv_attention: softmax(X W_q (X W_k)ᵀ)")
    is_formula(output, [[5 / 3, 14 / 3], [5 / 2, 7 / 2]], "qkv_attention: weights X W_v")
    two = attention.multi_head_attention(X[None], W_q, W_k, W_v, np.eye(2)[::-1], 2)  # each head is one number wide
    is_formula(two, [[[7 / 2, 5 / 3], [7 / 2, 5 / 2]]], "multi_head_attention: heads side by side, then W_o")
    assert abs(attention.score_variance(64, 20_000, np.random.default_rng(0)) / 64 - 1) < 0.05, "near d_k"
