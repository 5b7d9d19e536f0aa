"""helpers/measure/together.py: models that take their steps side by side become what each becomes by itself."""

import pytest
import torch
from torch import nn

from helpers import training
from helpers.measure import together
from helpers.transformer import POSITIONS, Config, Encoder


def named(generator):
    tokens = torch.randint(6, (8, 7), generator=generator)
    answers = torch.where(torch.rand(8, 7, generator=generator) < 0.5, tokens.roll(1, dims=1), -100)
    return tokens, answers


def loss(model, tokens, answers):
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), answers.flatten(), ignore_index=-100)


def build(seed, **options):
    with training.seeded(seed):
        return Encoder(Config(6, d=16, n_heads=2, max_length=9, **options), causal=True, outputs=6)


@pytest.mark.parametrize("options", [{"positions": kind, "n_layers": 2} for kind in POSITIONS]
                         + [{"mlp": 0}, {"pre_norm": False}])
def test_side_by_side_is_the_same_as_one_by_one(options):
    tokens, _ = named(torch.Generator().manual_seed(9))
    models = [build(seed, **options) for seed in (3, 4, 5)]
    together.fit(models, named, loss, 12, lr=0.01, seeds=(3, 4, 5))
    for seed, model in zip((3, 4, 5), models, strict=True):
        alone = build(seed, **options)
        training.fit(alone, named, loss, 12, lr=0.01, seed=seed, label=None)
        assert not model.training
        assert torch.allclose(model(tokens), alone(tokens), atol=1e-3)
        assert not torch.allclose(model(tokens), build(seed, **options)(tokens), atol=0.1)


def test_other_optimizers_take_the_steps_each_with_its_own_rate():
    def optimizers(model):
        table = model.embedding.parameters()
        rest = [w for name, w in model.named_parameters() if not name.startswith("embedding")]
        return [torch.optim.AdamW(table, lr=1e-9), torch.optim.AdamW(rest, lr=0.01)]

    (model, before), as_ever = (build(3) for _ in "ab"), build(3)
    together.fit([model], named, loss, 12, None, (3,), optimizers)
    together.fit([as_ever], named, loss, 12, 0.01, (3,))
    moved = [(one.embedding.weight - before.embedding.weight).abs().max() for one in (model, as_ever)]
    assert moved[0] < 1e-6 < 0.01 < moved[1]
    assert (model.output.weight - before.output.weight).abs().max() > 0.01


def test_a_table_in_two_places_stays_one():
    models = [build(seed) for seed in (0, 1)]
    for model in models:
        model.blocks[0].again = model.position
    joint = together.side_by_side(models)
    assert joint.blocks[0].again is joint.embedding.positions
    assert sum(w.numel() for w in joint.parameters()) == sum(w.numel() for m in models for w in m.parameters())


def test_a_loss_that_is_no_number_stops_the_training():
    with pytest.raises(ValueError, match="became nan at step 0"):
        together.fit([build(0)], named, lambda *_: torch.tensor(float("nan")), 5, lr=0.01, seeds=(0,))
