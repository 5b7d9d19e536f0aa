"""Lesson 16: what it builds is what helpers have, and pieces of a learner run."""

import types
from collections import Counter

import nbformat
import numpy as np
import pytest
import torch
from notebook_code import LESSONS, definitions, renamed
from small_models import chat_model

from helpers import attention, smollm2, transformer
from helpers.checks import adopt, exercise, lesson16
from helpers.checks.lesson16 import runs, whose

h, g, d_k, d, m, V = 6, 2, 4, 24, 10, 50


@pytest.fixture(scope="module")
def small():
    return chat_model(V, d, h, g, d_k, m, range(3))


def decoder_of(**pieces):
    """The lesson's `decoder`, in a notebook where these pieces run."""
    made = definitions(LESSONS["16"]) | pieces
    return types.FunctionType(made["decoder"].__code__, made, "decoder", made["decoder"].__defaults__)


def test_the_lessons_decoder_is_that_of_the_helpers(small):
    decoder = decoder_of(decoder_layer=smollm2.decoder_layer, rms_norm=smollm2.rms_norm)
    ids = torch.randint(V, (2, 9), generator=torch.Generator().manual_seed(1))
    whole, cache = decoder(small, ids)
    assert torch.allclose(whole, small.run(ids)[0], atol=1e-6)
    first, cache = decoder(small, ids[:, :4])
    second, cache = decoder(small, ids[:, 4:], cache)
    assert torch.allclose(torch.cat([first, second], 1), whole, atol=1e-5)
    assert torch.allclose(cache[2][1], small.run(ids)[1][2][1], atol=1e-5)


@pytest.mark.slow
def test_the_reference_of_a_small_model_gives_its_logits(small):
    ids = torch.randint(V, (2, 9), generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        assert torch.allclose(smollm2.reference(small)(ids).logits, small.run(ids)[0], atol=1e-4)


def test_the_lessons_faults_are_faults(small):
    """Each changes the logits, but for the mask without its offset, which needs a cache."""
    made = definitions(LESSONS["16"])
    ids = torch.randint(V, (1, 8), generator=torch.Generator().manual_seed(3))
    right = small.run(ids)[0]
    for piece, fault in [("rms_norm", "layer_norm"), ("cached_attention", "unscaled"), ("gated_mlp", "exchanged")]:
        assert not torch.allclose(small.run(ids, pieces=smollm2.PIECES | {piece: made[fault]})[0], right, atol=1e-4)
    pieces = smollm2.PIECES | {"cached_attention": made["no_offset"]}
    assert torch.allclose(small.run(ids, pieces=pieces)[0], right, atol=1e-5)
    late = small.run(ids[:, 4:], small.run(ids[:, :4])[1], pieces)[0]
    assert not torch.allclose(late, right[:, 4:], atol=1e-3)
    q, k, v = (torch.randn(1, n, 5, d_k, generator=torch.Generator().manual_seed(n)) for n in (9, 3, 3))
    in_turn = exercise("cached_attention").misconceptions
    (in_turn,) = [mistake.function for mistake in in_turn if mistake.id == "groups-in-turn"]
    assert torch.allclose(made["groups_in_turn"](q, k, v)[0], in_turn(q, k, v)[0], atol=1e-6)


# Pieces of a learner


def norm_by_length(x, gain, eps=1e-5):
    return gain * x / ((x * x).sum(-1, keepdim=True) / x.shape[-1] + eps) ** 0.5


def mlp_in_numpy(x, W_gate, W_up, W_down):
    a = x @ W_gate
    return (a / (1 + np.exp(-a)) * (x @ W_up)) @ W_down


def attention_with_sdpa(q, k, v, cache=None):
    if cache is not None:
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    may = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=may, enable_gqa=True), (k, v)


def nucleus_in_numpy(probabilities, p):
    order = np.argsort(-probabilities)
    few, total = np.zeros_like(probabilities), 0.0
    for i in order:
        if total >= p and p < 1:
            break
        few[i], total = probabilities[i], total + probabilities[i]
    return few / few.sum()


def test_pieces_of_a_learner_run_the_model_in_numpy_and_in_torch(small):
    mine = {"rms_norm": norm_by_length, "gated_mlp": mlp_in_numpy, "rotate": attention.rotate,
            "split_heads": attention.split_heads, "cached_attention": attention_with_sdpa}
    adopted = {name: adopt(attempt, None, name) for name, attempt in mine.items()}
    assert [whose for _, whose in adopted.values()] == ["yours"] * 5
    pieces = smollm2.PIECES | {name: function for name, (function, _) in adopted.items()}
    ids = torch.randint(V, (2, 7), generator=torch.Generator().manual_seed(4))
    whole = small.run(ids)[0]
    first, cache = small.run(ids[:, :5], pieces=pieces)
    second, _ = small.run(ids[:, 5:], cache, pieces)
    assert torch.allclose(torch.cat([first, second], 1), whole, atol=1e-4) and second.dtype == torch.float32
    assert adopt(nucleus_in_numpy, None, "nucleus")[1] == adopt(transformer.sample_next, None, "sample_next")[1] == "yours"


# What runs the model


@pytest.fixture(autouse=True)
def _nothing_runs_yet(monkeypatch):
    monkeypatch.setattr(lesson16, "_RUNNING", {})


def test_accepted_pieces_are_called_where_the_layer_is_the_courses(small, capsys):
    calls = Counter()

    def rms_norm(x, gain, eps=1e-5):
        calls["rms_norm"] += 1
        return norm_by_length(x, gain, eps)

    def gated_mlp(x, W_gate, W_up, W_down):
        calls["gated_mlp"] += 1
        return smollm2.gated_mlp(x, W_gate, W_up, W_down)

    def cached_attention(q, k, v, cache=None):
        calls["cached_attention"] += 1
        return attention_with_sdpa(q, k, v, cache)

    def rotate(x, positions, base=10000.0):
        calls["rotate"] += 1
        return rotate_with_a_base(x, positions, base)

    def split_heads(X, n_heads):
        calls["split_heads"] += 1
        return attention.split_heads(X, n_heads)

    def decoder_layer(x, w, n_heads, n_groups, positions, cache=None, base=10000.0): ...

    # the layer comes before some of its pieces, because a cell may be run again
    pieces = rms_norm, decoder_layer, gated_mlp, cached_attention, rotate, split_heads
    run = {piece.__name__: runs(piece) for piece in pieces}
    assert whose() == "Yours: rms_norm, gated_mlp, cached_attention, rotate, split_heads. The course's: decoder_layer."
    decoder, ids = decoder_of(**run), torch.randint(V, (1, 7), generator=torch.Generator().manual_seed(5))
    calls.clear()
    first, cache = decoder(small, ids[:, :5])
    assert calls == {"rms_norm": 2 * 3 + 1, "gated_mlp": 3, "cached_attention": 3, "rotate": 2 * 3, "split_heads": 3 * 3}
    second, _ = decoder(small, ids[:, 5:], cache)
    assert torch.allclose(torch.cat([first, second], 1), small.run(ids)[0], atol=1e-4)

    def gated_mlp(x, W_gate, W_up, W_down):  # run again, and wrong
        calls["wrong"] += 1
        return x

    runs(gated_mlp)
    calls.clear()
    decoder(small, ids)
    assert calls["rms_norm"] == 7 and not calls["wrong"] and not calls["gated_mlp"]


def test_another_first_message_is_no_error(monkeypatch):
    """What the stored answers are held to is asked of the lesson's own questions alone."""
    source = {cell.id: cell.source for cell in nbformat.read(LESSONS["16"], as_version=4).cells}
    monkeypatch.setattr(smollm2, "reply", lambda *_, **__: "")
    for name, cell, question in [("told", "8121482e", "What is the capital of France?"),
                                 ("bear", "3c2076fa", "Give me a title for a story about a bear on the moon.")]:
        assert repr(question)[1:-1] in "".join(source.values())
        for said, fails in [("Who wrote Faust?", False), (question, True)]:
            talk = [{"role": "user", "content": said}, {"role": "assistant", "content": "Goethe."}]
            names = {"model": True, "smollm2": smollm2, "decoder": None, name: talk}
            if fails:
                with pytest.raises(AssertionError):
                    exec(source[cell], names)
            else:
                exec(source[cell], names)


def test_a_learners_pieces_run_if_they_are_right_and_quick_enough(capsys):
    def rms_norm(x, gain, eps=1e-5): ...

    def gated_mlp(x, W_gate, W_up, W_down):  # right, and hopeless at the model's size
        if x.ndim > 1:
            return torch.stack([gated_mlp(row, W_gate, W_up, W_down) for row in x])
        gate, up = ([sum(x[i] * W[i, j] for i in range(len(x))) for j in range(W.shape[1])] for W in (W_gate, W_up))
        hidden = [a / (1 + (-a).exp()) * b for a, b in zip(gate, up, strict=True)]
        return torch.stack([sum(h * W_down[j, i] for j, h in enumerate(hidden)) for i in range(W_down.shape[1])])

    assert runs(rms_norm) is smollm2.rms_norm and "the course's (yours is not started)" in capsys.readouterr().out
    assert runs(gated_mlp) is smollm2.gated_mlp and "would not end soon" in capsys.readouterr().out
    assert runs(renamed(attention_with_sdpa, "cached_attention")) is not smollm2.cached_attention
    assert "Yours: cached_attention. The course's: rms_norm, gated_mlp." == whose()


def rotate_with_a_base(x, positions, base=10000.0):
    angles = positions[:, None] * base ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], -1).flatten(-2)


@pytest.mark.parametrize("rotate", [attention.rotate, rotate_with_a_base])
def test_a_rotate_without_a_base_gets_one(rotate, capsys):
    rotate = types.FunctionType(rotate.__code__, rotate.__globals__, "rotate", rotate.__defaults__)
    x, places = torch.randn(1, 2, 3, 8, generator=torch.Generator().manual_seed(0)), torch.arange(5, 8)
    function = runs(rotate)
    assert "runs: rotate, yours." in capsys.readouterr().out
    assert torch.allclose(function(x, places, 100.0), smollm2.rope(x, places, 100.0), atol=1e-5)
    assert torch.allclose(function(x, places, base=1e5), smollm2.rope(x, places, 1e5), atol=1e-5)


def test_a_rotate_that_does_not_use_its_base_is_told(capsys):
    def rotate(x, positions, base=10000.0):
        return attention.rotate(x, positions)

    assert runs(rotate) is smollm2.rope
    assert "check(rotate) says why" in capsys.readouterr().out
