"""The recurrent translator: every score is its formula, padding changes nothing, and each state asks when it should."""

import numpy as np
import pytest
import torch

from helpers import attention, training
from helpers.seq2seq import SCORES, Seq2Seq


def build(score, **options):
    with training.seeded(0):
        return Seq2Seq(7, d=6, score=score, outputs=9, **options).eval()


def states(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def ids(*shape, top):
    return torch.randint(0, top, shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("score", ["dot", "general", "concat", "additive"])
def test_weights_are_the_formula(score):
    model = build(score)
    S, H = states(2, 3, 6), states(2, 5, 6)
    C, w = model.attend(S, H)
    for b in range(2):
        for t in range(3):
            s, h = S[b, t].numpy(), H[b].numpy()
            if score == "dot":
                scores = h @ s
            else:
                W = model.W.weight.detach().numpy()
                scores = (np.array([s @ W @ row for row in h]) if score == "general" else
                          attention.additive_scores(s, h, W, model.U.weight.detach().numpy(), model.v.detach().numpy()))
            weights = attention.softmax(scores)
            assert np.allclose(w[b, t].detach(), weights, atol=1e-6)
            assert np.allclose(C[b, t].detach(), weights @ h, atol=1e-5)


@pytest.mark.parametrize("score", SCORES)
def test_padding_changes_nothing(score):
    model, source, target = build(score), ids(3, 5, top=7), ids(3, 4, top=9)
    lengths = [5, 2, 3]
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    logits, w = model(source, target, mask, weights=True)
    for b, length in enumerate(lengths):
        alone = model(source[b:b + 1, :length], target[b:b + 1])
        assert torch.allclose(logits[b], alone[0], atol=1e-6)
        if score != "none":
            assert not w[b, :, length:].any()


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("before", [False, True])
def test_one_word_at_a_time_is_the_same_as_all_at_once(score, before):
    model, source = build(score, before=before), ids(2, 5, top=7)
    written = model.translate(source, start=8, length=6)
    assert written.shape == (2, 6)
    previous = torch.cat([torch.full((2, 1), 8), written[:, :-1]], dim=1)
    assert torch.equal(model(source, previous).argmax(-1), written)


def test_who_asks():
    """s_{t-1} has not read the word before position t; s_t has."""
    source, target = ids(1, 5, top=7), ids(1, 3, top=9)
    other = target.clone()
    other[0, 2] = (other[0, 2] + 1) % 9
    for score, before in (("dot", False), ("concat", False), ("additive", None), ("dot", True)):
        model = build(score, before=before)
        same = torch.equal(model(source, target, weights=True)[1], model(source, other, weights=True)[1])
        assert same == model.before
    assert build("additive").before
    assert not build("concat").before


def test_without_attention_the_context_is_the_last_states():
    model, source = build("none"), ids(2, 5, top=7)
    H, s = model.encode(source)
    C, w = model.attend(states(2, 3, 6), H)
    assert torch.equal(C, s[:, None].expand(2, 3, 6))
    everything, _ = model.encoder(model.source(source))  # (B, T, 3 forwards + 3 backwards)
    assert torch.allclose(s, torch.cat([everything[:, -1, :3], everything[:, 0, 3:]], dim=-1))


@pytest.mark.parametrize("score", SCORES)
def test_every_parameter_learns(score):
    model = build(score)
    model(ids(2, 5, top=7), ids(2, 3, top=9)).square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert all(p.grad.any() for name, p in model.named_parameters() if name.split(".")[0] in ("W", "U", "v"))


def test_unknown_score():
    with pytest.raises(ValueError, match="dot, general"):
        Seq2Seq(7, score="cosine")
