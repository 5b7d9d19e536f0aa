"""helpers/transformer.py and helpers/training.py: equal to torch's own layers, and repeatable."""

import pytest
import torch
from torch import nn

from helpers import attention, training
from helpers.transformer import POSITIONS, Block, Encoder, MultiHeadAttention, rotate


def copy_attention(ours, theirs):
    with torch.no_grad():
        linears = (ours.W_q, ours.W_k, ours.W_v)
        theirs.in_proj_weight.copy_(torch.cat([linear.weight for linear in linears]))
        theirs.out_proj.weight.copy_(ours.W_o.weight)
        if ours.W_q.bias is not None:
            theirs.in_proj_bias.copy_(torch.cat([linear.bias for linear in linears]))
            theirs.out_proj.bias.copy_(ours.W_o.bias)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_attention_equals_torch_forward_and_gradients(bias, masked):
    with training.seeded(0):
        ours = MultiHeadAttention(12, 3, bias=bias).double()
        theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True).double()
        x, context = torch.randn(2, 5, 12).double(), torch.randn(2, 7, 12).double()
    copy_attention(ours, theirs)
    mask = torch.ones(5, 7, dtype=torch.bool).tril() if masked else None
    a, w = ours(x, context, mask=mask, weights=True)
    fast = ours(x, context, mask=mask)
    b, v = theirs(x, context, context, attn_mask=None if mask is None else ~mask, average_attn_weights=False)
    torch.testing.assert_close(a, b)
    torch.testing.assert_close(fast, b)
    torch.testing.assert_close(w, v)
    a.square().sum().backward()
    b.square().sum().backward()
    torch.testing.assert_close(ours.W_o.weight.grad, theirs.out_proj.weight.grad)
    torch.testing.assert_close(torch.cat([ours.W_q.weight.grad, ours.W_k.weight.grad, ours.W_v.weight.grad]),
                               theirs.in_proj_weight.grad)


@pytest.mark.parametrize("pre_norm", [True, False])
def test_block_equals_torch(pre_norm):
    with training.seeded(0):
        ours = Block(12, 3, 24, pre_norm=pre_norm).double()
        theirs = nn.TransformerEncoderLayer(12, 3, 24, dropout=0, batch_first=True, norm_first=pre_norm).double()
        x = torch.randn(2, 5, 12).double()
    copy_attention(ours.attention, theirs.self_attn)
    with torch.no_grad():
        for mine, yours in ((ours.mlp[0], theirs.linear1), (ours.mlp[2], theirs.linear2),
                            (ours.norm1, theirs.norm1), (ours.norm2, theirs.norm2)):
            yours.weight.copy_(mine.weight)
            yours.bias.copy_(mine.bias)
    torch.testing.assert_close(ours(x), theirs(x))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("positions", POSITIONS)
def test_encoder_shapes_masks_and_the_fast_path(positions, causal):
    with training.seeded(0):
        model = Encoder(11, d=8, n_heads=2, n_layers=2, positions=positions, causal=causal, outputs=5)
        tokens = torch.randint(11, (3, 6))
    logits, seen = model(tokens, weights=True)
    assert logits.shape == (3, 6, 5) and [w.shape for w in seen] == [(3, 2, 6, 6)] * 2
    torch.testing.assert_close(model(tokens), logits)
    for w in seen:
        torch.testing.assert_close(w.sum(-1), torch.ones(3, 2, 6))
        assert not causal or (w.triu(1) == 0).all()
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 11
    assert torch.equal(model(changed)[:, :-1], model(tokens)[:, :-1]) == causal


def test_rotation_equals_the_numpy_one():
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = attention.rotate(x.numpy(), range(5))
    torch.testing.assert_close(rotate(x), torch.as_tensor(expected), atol=1e-6, rtol=0)


def test_bad_sizes_are_told():
    with pytest.raises(ValueError, match="5 heads cannot share 12"):
        MultiHeadAttention(12, 5)
    with pytest.raises(ValueError, match="rope"):
        Encoder(4, positions="rotary")
    with pytest.raises(ValueError, match="64 learned positions; the text has 65"):
        Encoder(4)(torch.zeros(1, 65, dtype=torch.long))


def reverse(generator):
    tokens = torch.randint(10, (64, 8), generator=generator)
    return tokens, tokens.flip(1)


def loss(model, tokens, target):
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), target.flatten())


def trained(seed, steps=60):
    with training.seeded(seed):
        model = Encoder(10, max_length=8)
    return model, training.fit(model, reverse, loss, steps, seed=seed)


def test_training_learns_and_is_repeatable():
    state = torch.random.get_rng_state()
    model, history = trained(0)
    assert history[-1] < 0.5 * history[0]
    assert trained(0)[1] == history
    assert trained(1)[1] != history
    assert torch.equal(state, torch.random.get_rng_state()), "training must not touch the global generator"
    assert not model.training


def test_a_loss_that_explodes_is_told():
    with pytest.raises(ValueError, match="smaller lr"):
        with training.seeded(0):
            model = Encoder(10, max_length=8)
        training.fit(model, reverse, lambda m, x, y: loss(m, x, y) * float("nan"), 5)


def test_threads_are_put_back():
    before = torch.get_num_threads()
    with training.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
