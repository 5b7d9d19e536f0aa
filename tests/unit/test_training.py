"""helpers/training.py: repeatable, and measured on the way."""

import subprocess
import sys
import threading

import pytest
import torch
from torch import nn

from helpers import training
from helpers.jitter import SIZE, jitter, touch
from helpers.transformer import Config, Encoder


def reverse(generator):
    tokens = torch.randint(10, (64, 8), generator=generator)
    return tokens, tokens.flip(1)


def loss(model, tokens, target):
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), target.flatten())


def build(seed=0, **options):
    with training.seeded(seed):
        return Encoder(Config(10, max_length=8, **options))


def trained(seed, steps=40):
    model = build(seed)
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
        training.fit(build(), reverse, lambda m, x, y: loss(m, x, y) * float("nan"), 5)


def test_threads_are_put_back():
    before = torch.get_num_threads()
    with training.one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_threads_are_put_back_when_several_are_inside():
    """One thread enters while another is inside, and leaves after it; then a third one begins."""
    seen, first_is_out = {}, threading.Event()

    def second(is_in):
        with training.one_thread(), training.one_thread():
            is_in.set()
            first_is_out.wait(60)
            seen["second, inside"] = torch.get_num_threads()
        seen["second, after"] = torch.get_num_threads()

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with training.one_thread():
            with training.one_thread():
                other = threading.Thread(target=second, args=(is_in := threading.Event(),))
                other.start()
                assert is_in.wait(60)
            seen["first, inside"] = torch.get_num_threads()
        seen["first, after"] = torch.get_num_threads()
        first_is_out.set()
        other.join()
        third = threading.Thread(target=lambda: seen.update(third=torch.get_num_threads()))
        third.start()
        third.join()
        assert seen == {"first, inside": 1, "first, after": 3, "second, inside": 1, "second, after": 3, "third": 3}
    finally:
        first_is_out.set()
        torch.set_num_threads(before)


def test_a_metric_is_measured_on_the_way_and_at_the_end_and_changes_nothing():
    seen = []

    def metric(model):
        seen.append((model.training, torch.is_grad_enabled()))
        return torch.tensor(0.5)

    history = training.fit(build(), reverse, loss, 25, metric=metric, every=10)
    assert history.measured == [(10, 0.5), (20, 0.5), (25, 0.5)]
    assert seen == [(False, False)] * 3
    assert history == training.fit(build(), reverse, loss, 25)


def test_it_is_the_loop_of_lesson_11():
    model, losses = build(), []
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=25)
    with training.one_thread():
        for _ in range(25):
            value = loss(model, *reverse(generator))
            optimizer.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(value.item())
    assert losses == training.fit(build(), reverse, loss, 25)


def test_jitter_changes_the_last_bits_of_what_is_trained_and_nothing_else():
    exact, state = trained(0), torch.random.get_rng_state()
    with jitter(1) as made:
        drawn, again = trained(0), trained(0)
    with jitter(2):
        other = trained(0)
    assert drawn[1] == again[1], "two loops that a cell compares get the same noise"
    assert len(made) == 2 and made[0] == sum(weight.numel() for weight in build().parameters())
    assert drawn[1] != exact[1] and drawn[1] != other[1]
    assert abs(drawn[1][0] - exact[1][0]) < 100 * SIZE, "the first loss differs in its last digits only"
    assert trained(0)[1] == exact[1], "what is trained afterwards is as it was before"
    assert torch.equal(state, torch.random.get_rng_state())


def test_jitter_of_an_evaluation_alone_says_that_nothing_was_trained():
    with jitter(1) as made:
        build()(torch.zeros(1, 8, dtype=torch.long))
    assert made == []


WITHOUT_COMPILER = """
import sys
import torch
from helpers import training
for kind, expected in [(torch.optim.SGD, 0.8), (torch.optim.Adam, 0.9), (torch.optim.AdamW, 0.9)]:
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = kind([w], lr=0.1)
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)
    for _ in range(2):  # the first two steps go the same way
        before = w.detach().clone()
        optimizer.zero_grad()
        assert w.grad is None
        (2 * w).sum().backward()
        optimizer.step()
        schedule.step()
        assert torch.is_grad_enabled() and w.requires_grad and w.is_leaf
        torch.testing.assert_close(before - w.detach(), torch.full((2,), 1 - expected), rtol=0.02, atol=0)
from helpers import efficient
assert efficient.multiply_adds(torch.mm, torch.ones(2, 3), torch.ones(3, 5)) == 30
assert efficient.peak_bytes(torch.mm, torch.ones(2, 3), torch.ones(3, 5)) == 40
assert "torch._dynamo" not in sys.modules, "torch's compiler was imported: seconds for nothing"
"""


@pytest.mark.tool("helpers/training.py", "constraints.txt", __file__)
def test_training_and_counting_do_without_torchs_compiler():
    done = subprocess.run([sys.executable, "-c", WITHOUT_COMPILER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_weights_that_no_optimiser_gets_can_be_jittered_too():
    with jitter(1) as made:
        touched = torch.ones(3, dtype=torch.float64)
        touch([touched])
    assert made == [3] and 0 < (touched - 1).abs().max() < 10 * SIZE
    touch([touched := torch.ones(3)])
    assert touched.tolist() == [1, 1, 1]
