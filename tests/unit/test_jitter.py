"""helpers/measure/jitter.py: the last bit of what is trained differs, and nothing else."""

import pytest
import torch

from helpers import training
from helpers.measure import jitter


def losses(seed=0):
    with training.seeded(seed):
        model = torch.nn.Linear(8, 8)
    inputs = torch.randn(16, 8, generator=torch.Generator().manual_seed(1))
    return training.fit(model, lambda _: (inputs,), lambda m, x: (m(x) - x).square().mean(), 40, label=None)


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(torch.optim.Optimizer, "__init__", torch.optim.Optimizer.__init__)  # which is put back afterwards
    jitter.install()


def test_the_last_bits_of_what_is_trained_differ_and_nothing_else(installed, monkeypatch):
    exact, state = losses(), torch.random.get_rng_state()
    monkeypatch.setenv(jitter.VARIABLE, "1")
    one, again = losses(), losses()
    monkeypatch.setenv(jitter.VARIABLE, "2")
    other = losses()
    assert one == again, "two loops that a cell compares get the same noise"
    assert one != exact and one != other
    assert abs(one[0] - exact[0]) < 100 * jitter.SIZE, "the first loss differs in its last digits only"
    assert torch.equal(state, torch.random.get_rng_state())
    monkeypatch.delenv(jitter.VARIABLE)
    assert losses() == exact, "nobody asks for it, so nothing happens"
