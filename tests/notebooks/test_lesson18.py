"""Lesson 18: its loss is that of the helpers, right attempts in other styles pass, and a learner's pieces run and train."""

import types

import numpy as np
import pytest
import torch
from notebook_code import LESSONS, SOLUTIONS, definitions, judge, passes
from torch.nn import functional as F

from helpers import adapters, smollm2

d, V = 12, 40


@pytest.fixture(scope="module")
def small():
    """A decoder of today, untrained; layers 0 to 19 have no numbers, because nothing runs them here."""
    g = torch.Generator().manual_seed(0)

    def of(*shape):
        return torch.randn(shape, generator=g) / shape[0] ** 0.5

    layers = [{}] * 20 + [{"norm1": of(d), "norm2": of(d), "W_q": of(d, d), "W_k": of(d, 4), "W_v": of(d, 4),
                           "W_o": of(d, d), "W_gate": of(d, 9), "W_up": of(d, 9), "W_down": of(9, d)} for _ in range(2)]
    return smollm2.ChatModel(of(V, d), of(d), layers, n_heads=3, n_groups=1, base=500.0, eps=1e-5, tokens=None)


def states():
    g = torch.Generator().manual_seed(1)
    ids = torch.randint(V, (3, 9), generator=g)
    ids[1, 7:] = -1
    return torch.randn(3, 9, d, generator=g), ids, torch.tensor([4, 3, 6])


def loss_of(small, mine):
    made = definitions(LESSONS["18"]) | {"model": small, "mine": mine}
    return types.FunctionType(made["loss_of"].__code__, made, "loss_of")


COURSE = {"lora_linear": adapters.lora_linear, "answer_loss": adapters.answer_loss, "decoder_layer": smollm2.decoder_layer}


def test_the_lessons_loss_is_that_of_the_helpers(small):
    adapter = adapters.Adapter.beside(small, range(20, 22), rank=2)
    with torch.no_grad():
        for B in adapter.B.values():
            B.normal_(generator=torch.Generator().manual_seed(2))
    x, ids, first = states()
    value = loss_of(small, COURSE)(adapter, x, ids, first)
    wanted = adapters.answer_loss(adapters.upper(adapter.on(small), x, 20), ids, first)
    assert torch.allclose(value, wanted, atol=1e-5)
    value.backward()
    assert all(part.grad.any() for part in adapter.parameters())


def test_a_learners_layer_runs_with_the_learners_adapter(small):
    """And gradients come back to the adapter through both."""
    def lora_linear(x, W, A, B, alpha):
        called.append(1)
        return F.linear(x, W.T) + torch.einsum("...i,ir,ro->...o", x, A, B) * alpha / A.size(1)

    called = []
    mine = COURSE | {"lora_linear": lora_linear, "decoder_layer": definitions(SOLUTIONS["16"])["decoder_layer"]}
    both = []
    for pieces in (COURSE, mine):
        adapter = adapters.Adapter.beside(small, range(20, 22), rank=2)
        value = loss_of(small, pieces)(adapter, *states())
        value.backward()
        both.append((value, adapter.B["20-W_q"].grad))
    assert len(called) == 4
    for ours, theirs in zip(*both, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def with_loops(x, W, A, B, alpha):
    out = []
    for row in x.reshape(-1, x.shape[-1]):
        out.append(row @ W + (row @ A) @ B * (alpha / A.shape[1]))
    return torch.stack(out).reshape(*x.shape[:-1], W.shape[1])


def in_numpy(x, W, A, B, alpha):
    x, W, A, B = (np.asarray(part) for part in (x, W, A, B))
    return x @ W + alpha / B.shape[0] * ((x @ A) @ B)


def loss_with_loops(logits, ids, first, pad=-1):
    losses = []
    for b in range(len(ids)):
        for t in range(max(1, int(first[b])), ids.shape[1]):
            if ids[b, t] != pad:
                losses.append(-torch.log_softmax(logits[b, t - 1], -1)[ids[b, t]])
    if not losses:
        raise ValueError("nothing counts")
    return torch.stack(losses).mean()


def loss_by_labels(logits, ids, first, pad=-1):
    labels = ids.clone()
    labels[torch.arange(ids.shape[1]) < first[:, None]] = -100
    labels[ids == pad] = -100
    if (labels[:, 1:] == -100).all():
        raise ValueError("nothing counts")
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


def interval_by_roots(successes, n):
    """The two shares p for which (s - n p)² = z² n p (1 - p)."""
    if n == 0 or not 0 <= successes <= n:
        raise ValueError
    z2 = 1.96**2
    low, high = sorted(np.roots([n**2 + z2 * n, -(2 * successes * n + z2 * n), successes**2]).real)
    return low, high


@pytest.mark.parametrize(("name", "attempt"), [
    ("lora_linear", with_loops), ("lora_linear", in_numpy),
    ("merge_lora", lambda W, A, B, alpha: (A * alpha / len(B)) @ B + W),
    ("merge_lora", lambda W, A, B, alpha: np.asarray(W) + alpha / B.shape[0] * np.asarray(A) @ np.asarray(B)),
    ("answer_loss", loss_with_loops), ("answer_loss", loss_by_labels), ("wilson_interval", interval_by_roots)])
def test_other_styles_pass(name, attempt):
    passes(name, attempt, seeds=3)


def test_a_matrix_of_the_size_of_w_is_named():
    for attempt in (lambda x, W, A, B, alpha: x @ (W + alpha / A.shape[1] * A @ B),
                    lambda x, W, A, B, alpha: x @ W + x @ (A @ B) * alpha / A.shape[1],
                    lambda x, W, A, B, alpha: torch.einsum("...i,io->...o", x, W + alpha / A.shape[1] * A.mm(B))):
        outcome = judge("lora_linear", attempt)
        assert (outcome.status, outcome.misconception) == ("wrong", "product-formed"), outcome.message
