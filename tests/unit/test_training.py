"""helpers/training.py: repeatable, measured on the way, and resumed after an interruption as if nothing had happened."""

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


def trained(seed, steps=60):
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


def test_a_metric_is_measured_on_the_way_and_at_the_end_and_changes_nothing():
    seen = []

    def metric(model):
        seen.append((model.training, torch.is_grad_enabled()))
        return torch.tensor(0.5)

    history = training.fit(build(), reverse, loss, 25, metric=metric, every=10)
    assert history.measured == [(10, 0.5), (20, 0.5), (25, 0.5)]
    assert seen == [(False, False)] * 3
    assert history == training.fit(build(), reverse, loss, 25)


def interrupted_after(steps):
    """Batches that are interrupted as by a learner who presses Stop."""
    drawn = []

    def batch(generator):
        drawn.append(1)
        if len(drawn) > steps:
            raise KeyboardInterrupt
        return reverse(generator)

    return batch


def test_an_interrupted_run_goes_on_as_if_it_had_never_stopped(tmp_path):
    options = {"steps": 40, "seed": 3, "every": 10, "metric": lambda model: loss(model, *reverse(
        torch.Generator().manual_seed(9)))}
    whole = build()
    expected = training.fit(whole, reverse, loss, **options)
    path = tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        training.fit(build(), interrupted_after(17), loss, checkpoint=path, **options)
    with pytest.raises(KeyboardInterrupt):  # and once more: 10 steps are kept, these make 20
        training.fit(build(5), interrupted_after(13), loss, checkpoint=path, **options)
    resumed = build(7)  # its first weights are replaced
    history = training.fit(resumed, interrupted_after(20), loss, checkpoint=path, **options)
    assert history == expected and history.measured == expected.measured
    for a, b in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.equal(a, b)
    again = training.fit(build(), interrupted_after(0), loss, checkpoint=path, **options)
    assert again == expected, "a finished run is only loaded"
    assert [p.name for p in tmp_path.iterdir()] == ["run.pt"]


def test_an_interruption_while_writing_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    with pytest.raises(KeyboardInterrupt):
        training.fit(build(), interrupted_after(15), loss, 40, checkpoint=path, every=10)
    before = path.read_bytes()
    real = torch.save

    def half(state, file):
        real(state, file)
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(KeyboardInterrupt):
        training.fit(build(), reverse, loss, 40, checkpoint=path, every=10)
    assert path.read_bytes() == before


@pytest.fixture
def finished(tmp_path):
    path = tmp_path / "run.pt"
    training.fit(build(), reverse, loss, 12, checkpoint=path)
    return path


def refused(path, model=None, **options):
    """The one sentence that refuses the file, which stays as it is."""
    before, model = path.read_bytes(), model or build()
    weights = [p.clone() for p in model.parameters()]
    with pytest.raises(ValueError) as caught:
        training.fit(model, reverse, loss, **{"steps": 12, "checkpoint": path, **options})
    assert path.read_bytes() == before and all(map(torch.equal, weights, model.parameters()))
    assert "Delete the file" in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_a_truncated_checkpoint_is_refused(finished, share):
    whole = finished.read_bytes()
    finished.write_bytes(whole[:int(share * len(whole))])
    assert "run.pt cannot be used: it is damaged" in refused(finished)


def test_foreign_files_are_refused(finished):
    for content in ({"weights": torch.ones(3)}, [1, 2], nn.Linear(2, 2).state_dict()):
        torch.save(content, finished)
        assert "was not written by fit" in refused(finished)
    torch.save(nn.Linear(2, 2), finished)  # a whole object: it is not even unpacked
    assert "damaged or was not written by fit" in refused(finished)
    finished.write_text("notes")
    assert "damaged or was not written by fit" in refused(finished)


def test_checkpoints_of_other_runs_are_refused(finished):
    assert "with steps 12 instead of 20" in refused(finished, steps=20)
    assert "seed 0 instead of 1" in refused(finished, seed=1)
    assert "with parameters" in refused(finished, model=build(mlp=32))
    assert "with parameters" in refused(finished, model=build(n_layers=2))


def test_a_missing_folder_is_told_before_the_training(tmp_path):
    with pytest.raises(ValueError, match="no folder for the checkpoint"):
        training.fit(build(), interrupted_after(0), loss, 12, checkpoint=tmp_path / "none" / "run.pt")
