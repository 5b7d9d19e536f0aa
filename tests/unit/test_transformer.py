"""helpers/transformer.py: equal to torch's own layers, forward and backward."""

import pytest
import torch
from torch import nn

from helpers import attention, training, transformer
from helpers.transformer import POSITIONS, Config, Encoder, MultiHeadAttention, TranslationModel


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


@pytest.mark.parametrize("bias", [None, -1.0])
def test_a_query_that_may_see_nothing_gets_zeros_with_and_without_weights(bias):
    """Lesson 06's rule, forward and backward: what is left of the output is the bias of W_o."""
    with training.seeded(0):
        layer, x = MultiHeadAttention(12, 3), torch.randn(2, 4, 12).requires_grad_()
    mask = torch.ones(4, 4, dtype=torch.bool).tril()
    mask[2] = False
    options = {"mask": mask, "bias": None if bias is None else torch.full((4, 4), bias)}
    fast, (slow, w) = layer(x, **options), layer(x, weights=True, **options)
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(slow[:, 2], layer.W_o.bias.expand(2, 12))
    assert not w[:, :, 2].any() and torch.allclose(w[:, :, [0, 1, 3]].sum(-1), torch.ones(2, 3, 3))
    for output in (fast, slow):
        assert torch.autograd.grad(output.square().sum(), x)[0].isfinite().all()


def copy_linears(pairs):
    """Linear layers and norms: ours to theirs."""
    with torch.no_grad():
        for mine, yours in pairs:
            yours.weight.copy_(mine.weight)
            yours.bias.copy_(mine.bias)


def copy_block(ours, theirs):
    copy_attention(ours.attention, theirs.self_attn)
    copy_linears([(ours.mlp[0], theirs.linear1), (ours.mlp[2], theirs.linear2),
                  (ours.norm1, theirs.norm1), (ours.norm2, theirs.norm2)])


def copy_decoder_block(ours, theirs):
    copy_block(ours, theirs)
    copy_attention(ours.cross, theirs.multihead_attn)
    copy_linears([(ours.cross_norm, theirs.norm2), (ours.norm2, theirs.norm3)])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("pre_norm", [True, False])
def test_the_whole_translation_model_equals_torch_forward_and_gradients(pre_norm):
    with training.seeded(0):
        config = Config(11, d=12, n_heads=3, n_layers=2, mlp=24, pre_norm=pre_norm)
        ours = TranslationModel(config, 9, cross_heads=3).double()
        theirs = nn.Transformer(12, 3, 2, 2, 24, dropout=0, batch_first=True, norm_first=pre_norm).double()
    if not pre_norm:  # theirs ends with a norm in either case; Vaswani et al. have none
        theirs.encoder.norm = theirs.decoder.norm = None
    else:
        copy_linears([(ours.encoder.norm, theirs.encoder.norm), (ours.decoder.norm, theirs.decoder.norm)])
    for mine, yours in zip(ours.encoder.blocks, theirs.encoder.layers, strict=True):
        copy_block(mine, yours)
    for mine, yours in zip(ours.decoder.blocks, theirs.decoder.layers, strict=True):
        copy_decoder_block(mine, yours)
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randint(9, (2, T), generator=generator) for T in (7, 5))
    real = torch.arange(7) < torch.tensor([[7], [4]])
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    expected = theirs(ours.encoder.embed(source), ours.decoder.embed(target), tgt_mask=~causal,
                      src_key_padding_mask=~real, memory_key_padding_mask=~real)
    logits, seen = ours(source, target, real, weights=True)
    torch.testing.assert_close(logits, ours.decoder.output(expected))
    torch.testing.assert_close(ours(source, target, real), logits)
    assert [w.shape for w in seen] == [(2, 3, 5, 7)] * 2 and not seen[0][1, :, :, 4:].any()
    logits.square().sum().backward()
    ours.decoder.output(expected).square().sum().backward()
    for mine, yours in zip([*ours.encoder.blocks, *ours.decoder.blocks], [*theirs.encoder.layers, *theirs.decoder.layers],
                           strict=True):
        for part, other in ((mine.mlp[0], yours.linear1), (mine.norm1, yours.norm1),
                            (mine.attention.W_o, yours.self_attn.out_proj)):
            assert part.weight.grad.any()
            torch.testing.assert_close(part.weight.grad, other.weight.grad)


@pytest.mark.parametrize("positions", POSITIONS)
def test_translation_ignores_padding_and_the_future_and_writes_one_word_after_the_other(positions):
    with training.seeded(0):
        model = TranslationModel(Config(9, d=8, n_heads=2, n_layers=2, positions=positions), 9).eval()
        source, target = torch.randint(9, (3, 6)), torch.randint(9, (3, 4))
    lengths = [6, 2, 4]
    real = torch.arange(6) < torch.tensor(lengths)[:, None]
    logits = model(source, target, real)
    for b, length in enumerate(lengths):
        torch.testing.assert_close(model(source[b:b + 1, :length], target[b:b + 1])[0], logits[b])
    changed = target.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 9
    torch.testing.assert_close(model(source, changed, real)[:, :-1], logits[:, :-1])
    written = model.translate(source, bos=1, eos=2, length=5, source_mask=real)
    previous = torch.cat([torch.ones(3, 1, dtype=torch.long), written[:, :-1]], dim=1)
    best = model(source, previous, real).argmax(-1)
    over = (written == 2).cumsum(1) - (written == 2).long() > 0  # after the first eos
    assert torch.equal(written, best.masked_fill(over, 2)) and written.shape[1] <= 5


def test_translation_stops_when_every_sentence_has_ended():
    with training.seeded(0):
        model = TranslationModel(Config(9, d=8, n_heads=2), 9).eval()
    with torch.no_grad():
        model.decoder.output.bias[2] = 100.0
    assert model.translate(torch.zeros(3, 4, dtype=torch.long), bos=1, eos=2, length=30).tolist() == [[2], [2], [2]]


def test_a_language_model_continues_and_shows_its_states():
    with training.seeded(0):
        model = transformer.LanguageModel(Config(9, d=8, n_heads=2, n_layers=2, mlp=16)).eval()
    written = model.generate([3, 4], 7, lambda logits: logits.argmax())
    assert len(written) == 7 and written[:2] == [3, 4]
    for T in range(2, 7):
        assert written[T] == model(torch.tensor([written[:T]]))[0, -1].argmax()
    tokens = torch.tensor([written])
    states = model.states(tokens)
    assert [x.shape for x in states] == [(1, 7, 8)] * 3
    torch.testing.assert_close(states[0], model.embed(tokens))
    torch.testing.assert_close(model.output(model.norm(states[-1])), model(tokens))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("positions", POSITIONS)
def test_encoder_shapes_masks_and_the_fast_path(positions, causal):
    with training.seeded(0):
        model = Encoder(Config(11, d=8, n_heads=2, n_layers=2, positions=positions), causal, outputs=5)
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
    torch.testing.assert_close(transformer.rotate(x), torch.as_tensor(expected), atol=1e-6, rtol=0)


def test_bad_sizes_are_told():
    with pytest.raises(ValueError, match="5 heads cannot share 12"):
        MultiHeadAttention(12, 5)
    with pytest.raises(ValueError, match="rope"):
        Config(4, positions="rotary")
    with pytest.raises(ValueError, match="64 learned positions; the text has 65"):
        Encoder(Config(4))(torch.zeros(1, 65, dtype=torch.long))
