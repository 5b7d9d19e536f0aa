"""helpers/training.py: repeatable, and measured on the way."""

import threading

import pytest
import torch
from torch import nn

from helpers import training
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
