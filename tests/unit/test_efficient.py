"""helpers/efficient.py: equal to torch's own attention, exact when it measures."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from notebook_code import LESSONS, definitions
from torch.nn import functional as F

from helpers import efficient

FEATURES = {"elu + 1": lambda x: F.elu(x) + 1, "squares": lambda x: x.square() + 0.1,
            "twice as many": lambda x: torch.cat([torch.relu(x), torch.relu(-x)], dim=-1) + 0.1}
sizes = st.integers(1, 6)


def normal(*shape, seed=0, std=1.0):
    return std * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(a, b):
    torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)


# ---------------------------------------------------------------- windows


@given(st.integers(1, 12), st.integers(0, 14), st.booleans())
def test_window_mask_is_its_definition(T, window, causal):
    expected = [[abs(i - j) <= window and (j <= i or not causal) for j in range(T)] for i in range(T)]
    assert efficient.sliding_window_mask(T, window, causal).tolist() == expected


# ---------------------------------------------------------------- linear attention


@given(st.sampled_from(sorted(FEATURES)), st.lists(st.integers(1, 3), max_size=2), sizes, sizes, sizes, sizes)
def test_linear_attention_is_the_table_of_weights(name, front, T_q, T_k, d, d_v):
    Q, K, V = normal(*front, T_q, d), normal(*front, T_k, d, seed=1), normal(*front, T_k, d_v, seed=2)
    weights = FEATURES[name](Q) @ FEATURES[name](K).mT
    close(efficient.linear_attention(Q, K, V, FEATURES[name]), weights / weights.sum(-1, keepdim=True) @ V)


def test_linear_attention_holds_no_table():
    Q, K, V = normal(3, 1000, 8)
    assert efficient.peak_bytes(lambda: efficient.linear_attention(Q, K, V, FEATURES["elu + 1"])) < 10 * Q.nbytes


# ---------------------------------------------------------------- grouped queries and the cache


@given(sizes, sizes, sizes, sizes, sizes, sizes, sizes)
def test_grouped_queries_equal_torch(B, g, n, T_q, T_k, d_k, d_v):
    Q, K, V = normal(B, g * n, T_q, d_k), normal(B, g, T_k, d_k, seed=1), normal(B, g, T_k, d_v, seed=2)
    close(efficient.grouped_query_attention(Q, K, V), F.scaled_dot_product_attention(Q, K, V, enable_gqa=True))


@given(sizes, sizes, sizes, sizes)
def test_steps_give_the_rows_of_causal_attention(B, h, T, d_k):
    q, k, v = normal(3, B, h, T, d_k)
    cache, rows = None, []
    for t in range(T):
        row, cache = efficient.decode_step(*(x[:, :, t:t + 1] for x in (q, k, v)), cache)
        rows.append(row)
    close(torch.cat(rows, dim=2), F.scaled_dot_product_attention(q, k, v, is_causal=True))
    assert all(map(torch.equal, cache, (k, v)))


# ---------------------------------------------------------------- online softmax


@given(st.integers(1, 20), sizes, sizes, st.integers(1, 25), st.sampled_from([0.1, 1.0, 1e3, 1e5]))
def test_online_softmax_equals_torch(T, d, m, block, std):
    q, K, V = normal(d, std=std), normal(T, d, seed=1), normal(T, m, seed=2)
    ours = efficient.online_softmax_attention(q, K, V, block)
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(q[None], K, V)[0], atol=1e-8, rtol=1e-8)


@given(sizes, st.integers(1, 12), sizes, sizes, st.integers(1, 9))
def test_tiles_are_the_whole_table(T_q, T, d, m, side):
    Q, K, V = normal(T_q, d), normal(T, d, seed=1), normal(T, m, seed=2)
    close(efficient.tiled_attention(Q, K, V, side), F.scaled_dot_product_attention(Q, K, V))


def test_online_softmax_holds_a_block_and_keeps_the_type():
    q, K, V = torch.randn(4), torch.randn(10_000, 4), torch.randn(10_000, 3)
    assert efficient.peak_bytes(lambda: efficient.online_softmax_attention(q, K, V, 16)) < 2000
    assert efficient.online_softmax_attention(q, K, V, 16).dtype == torch.float32


# ---------------------------------------------------------------- measuring


def test_multiply_adds_are_counted_exactly():
    A, B = torch.ones(3, 5), torch.ones(5, 7)
    assert efficient.multiply_adds(torch.mm, A, B) == 3 * 5 * 7
    assert efficient.multiply_adds(lambda: A + 1) == 0


def test_peak_bytes_are_exact_and_include_what_is_given_back():
    def three_at_once():
        a = torch.ones(1000)
        b = a + 1
        c = a + b
        del a, b
        return c + 1

    assert efficient.peak_bytes(three_at_once) == 3 * 4000
    assert efficient.peak_bytes(lambda: torch.ones(1000)) == 4000
    assert efficient.peak_bytes(lambda: None) == 0


def test_peak_bytes_see_inside_an_operation(capfd):
    Q, K, V = torch.randn(3, 1, 1, 512, 64)
    held = efficient.peak_bytes(lambda: F.scaled_dot_product_attention(Q, K, V))
    assert held > Q.nbytes  # its result, and what it works in
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------- what the lesson builds


@pytest.fixture(scope="module")
def built():
    """The functions that lesson 14 defines outside its exercises."""
    return definitions(LESSONS["14"])


@given(sizes, sizes, sizes, st.integers(1, 4))
def test_blocks_of_the_lesson_are_the_window(built, B, T, d, window):
    Q, K, V = normal(3, B, T, d)
    mask = efficient.sliding_window_mask(T, window, True)
    expected = F.scaled_dot_product_attention(Q[:, None], K[:, None], V[:, None], attn_mask=mask)[:, 0]
    close(built["windowed_attention"](Q, K, V, window), expected)
    close(built["attend"](Q, K, V, mask), expected)
    close(built["attend"](Q, K, V), F.scaled_dot_product_attention(Q, K, V))


@pytest.mark.parametrize("n", [1, 16, 64])
def test_patterns_of_the_lesson(built, n):
    step = math.isqrt(n)
    for name, further in [("strided", lambda i, j: (i - j) % step == 0), ("fixed", lambda i, j: j % step == step - 1)]:
        near = (lambda i, j: i - j < step) if name == "strided" else (lambda i, j: i // step == j // step)
        expected = [[j <= i and (near(i, j) or further(i, j)) for j in range(n)] for i in range(n)]
        mask = built[name](n, step)
        assert mask.tolist() == expected
        assert (mask.long() @ mask.long()).bool().equal(torch.ones(n, n).tril().bool())  # all of the past in two layers
