"""Lesson 18: its loss is that of the helpers, and a learner's pieces run and train."""

import types

import pytest
import torch
from notebook_code import LESSONS, SOLUTIONS, definitions
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
