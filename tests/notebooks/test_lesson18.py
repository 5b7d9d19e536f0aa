"""Lesson 18: its loss is that of the helpers, and a learner's pieces run and train."""

import types

import pytest
import torch
from notebook_code import LESSONS, SOLUTIONS, definitions
from small_models import chat_model
from torch.nn import functional as F

from helpers import adapters, smollm2

d, V = 12, 40


@pytest.fixture(scope="module")
def small():
    return chat_model(V, d, h=3, g=1, d_k=4, m=9, layers=range(20, 22))


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
