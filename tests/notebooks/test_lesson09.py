"""Lesson 09: the plain functions that the lesson and its experiment write agree with the helpers, in NumPy and in torch."""

import numpy as np
import pytest
import torch
from notebook_code import LESSONS, NOTEBOOKS, definitions
from torch import nn

from helpers import attention, transformer


@pytest.fixture(scope="module")
def lesson():
    return definitions(LESSONS["09"])


@pytest.mark.parametrize("n_heads", [1, 2, 6])
@pytest.mark.parametrize("masked", ["not at all", "causal", "and the first query sees nothing"])
def test_attention_and_positions_in_torch_agree_with_numpy(lesson, n_heads, masked):
    rng = np.random.default_rng(n_heads)
    x, W = rng.normal(size=(3, 5, 12)), rng.normal(size=(4, 12, 12))
    mask = None if masked == "not at all" else attention.causal_mask(5)
    if masked == "and the first query sees nothing":
        mask[0] = False
    parts = [(torch.from_numpy(w), torch.zeros(12).double()) for w in W]
    seen = None if mask is None else torch.from_numpy(mask)
    ours = lesson["multi_head_attention"](torch.from_numpy(x), parts, n_heads, seen)
    np.testing.assert_allclose(ours.numpy(), attention.multi_head_attention(x, *W, n_heads, mask), atol=1e-10)
    np.testing.assert_allclose(lesson["sinusoidal_encoding"](7, 10).numpy(), attention.sinusoidal_encoding(7, 10))


@pytest.mark.parametrize("pre_norm", [True, False])
def test_plain_functions_make_the_block(lesson, pre_norm):
    arrange = transformer.pre_norm_block if pre_norm else lesson["post_norm_block"]
    for seed in range(5):
        block = lesson["random_block"](pre_norm, seed)
        x = torch.randn(2, 4, 12, generator=torch.Generator().manual_seed(seed)).double()
        torch.testing.assert_close(arrange(x, *lesson["plain_parts"](block, 3)), block(x))
        torch.testing.assert_close(lesson["as_torchs_layer"](block)(x), block(x))


@pytest.mark.parametrize("seed", range(3))
def test_the_experiment_puts_the_block_together_as_in_2017_and_as_printed(lesson, seed):
    """With a silent MLP the printed block does not hear attention; the original does."""
    both_ways = definitions(NOTEBOOKS / "experiments" / LESSONS["09"].name)["both_ways"]
    layer = lesson["as_torchs_layer"](lesson["random_block"](False, seed))
    x = torch.randn(2, 4, 12, generator=torch.Generator().manual_seed(seed)).double()
    torch.testing.assert_close(both_ways(x, layer)[1], layer(x))
    assert not torch.allclose(both_ways(x, layer)[0], layer(x))
    before = both_ways(x, layer, silent=True)
    nn.init.zeros_(layer.self_attn.out_proj.weight)
    after = both_ways(x, layer, silent=True)
    assert [torch.equal(*pair) for pair in zip(before, after, strict=True)] == [True, False]


@pytest.mark.parametrize("shape", [(1, 1), (7,), (2, 3, 5)])
def test_layer_norm_is_torchs(shape):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=generator).double()
    gain, bias = torch.randn(2, shape[-1], generator=generator).double()
    for eps in (1e-5, 0.5):
        torch.testing.assert_close(transformer.layer_norm(x, gain, bias, eps),
                                   nn.functional.layer_norm(x, shape[-1:], gain, bias, eps))
