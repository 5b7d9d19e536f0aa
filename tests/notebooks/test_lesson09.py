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
def test_attention_in_torch_agrees_with_numpy_and_with_the_helper(lesson, n_heads, masked):
    layer, x = lesson["attention_layer"](12, n_heads, seed=n_heads), np.random.default_rng(n_heads).normal(size=(3, 5, 12))
    helper = transformer.MultiHeadAttention(12, n_heads).double()
    helper.load_state_dict(layer.state_dict())
    mask = None if masked == "not at all" else attention.causal_mask(5)
    if masked == "and the first query sees nothing":
        mask[0] = False
    seen = None if mask is None else torch.from_numpy(mask)
    ours = layer(torch.from_numpy(x), seen)
    W = [part.weight.numpy().T for part in (layer.W_q, layer.W_k, layer.W_v, layer.W_o)]
    np.testing.assert_allclose(ours.numpy(), attention.multi_head_attention(x, *W, n_heads, mask), atol=1e-10)
    torch.testing.assert_close(ours, helper(torch.from_numpy(x), mask=seen))


@pytest.mark.parametrize("pre_norm", [True, False])
def test_the_pieces_make_torchs_block_and_the_helpers(lesson, pre_norm):
    arrange = transformer.pre_norm_block if pre_norm else lesson["post_norm_block"]
    layer = lesson["random_layer"](pre_norm)
    block, state = transformer.Block(12, 3, 20, pre_norm=pre_norm).double(), {}
    for part, there in [("mlp.0", "linear1"), ("mlp.2", "linear2"), ("norm1", "norm1"), ("norm2", "norm2")]:
        state |= {f"{part}.{kind}": getattr(getattr(layer, there), kind) for kind in ("weight", "bias")}
    attend = lesson["same_attention"](layer.self_attn).state_dict()
    block.load_state_dict(state | {f"attention.{name}": p for name, p in attend.items()})
    for seed in range(5):
        x = torch.randn(2, 4, 12, generator=torch.Generator().manual_seed(seed)).double()
        torch.testing.assert_close(arrange(x, *lesson["pieces"](layer)), layer(x))
        torch.testing.assert_close(block(x), layer(x))


@pytest.mark.parametrize("seed", range(3))
def test_the_experiment_puts_the_block_together_as_in_2017_and_as_printed(lesson, seed):
    """With a silent MLP the printed block does not hear attention; the original does."""
    both_ways = definitions(NOTEBOOKS / "experiments" / LESSONS["09"].name)["both_ways"]
    layer = lesson["random_layer"](False)
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
