"""The scenes of lesson 07: what a word is, what counts as an error, and which scenes a reader may paint."""

import numpy as np
import pytest
import torch

from helpers import attention, scenes


class Mixture(torch.nn.Module):
    """Answers every scene with the even mixture of bear and cave, and learns nothing from it."""

    def __init__(self, n_heads, asked):
        super().__init__()
        self.n_heads, self.asked = n_heads, asked
        self.shift = torch.nn.Parameter(0.1 * torch.randn(1))

    def forward(self, X):
        mixture = X[:, :2, -3:].mean(dim=1)
        return mixture.repeat(1, self.asked) + self.shift


def test_a_scene_holds_a_bear_a_cave_three_others_and_the_question():
    X, colours = scenes.batch(50, torch.Generator().manual_seed(0))
    things = X[..., :9].argmax(dim=-1)
    assert X.shape == (50, 6, 12) and (X[..., :9].sum(dim=-1) == 1).all()
    assert (things[:, [0, 1, 5]] == torch.tensor([0, 1, 8])).all()
    assert all(len({*row} & {*range(2, 8)}) == 3 for row in things.tolist())
    assert (X[:, 5, 9:] == 0).all() and torch.equal(X[:, :2, 9:].flatten(1), colours)


def test_the_even_mixture_has_the_error_that_two_uniform_colours_give_it():
    model, errors = scenes.race(Mixture, 1, 2)
    assert errors == pytest.approx([100 / 24**0.5] * 5, abs=0.4)
    assert abs(model.shift.item()) < 0.02, "training has taken the shift away"
    assert scenes.trained(Mixture, 1, 2, seed=0)[1] == errors[0] and min(errors) == 100 * scenes.loss(
        model, *scenes.fresh()).sqrt().item()


def test_one_colour_asked_is_the_bears():
    X, colours = scenes.fresh()
    model = Mixture(1, 1)
    with torch.no_grad():
        model.shift.zero_()
        assert scenes.loss(model, X, colours) == pytest.approx((model(X) - colours[:, :3]).square().mean().item())


def test_an_answer_is_what_attention_makes_of_the_scene():
    model = Mixture(2, 2)
    model.W = torch.nn.Parameter(torch.randn(4, 12, 12, generator=torch.Generator().manual_seed(0)))
    scene = scenes.scene_in({"Cave.": "Blue!", "bear": "#f00"})
    X = scenes.words(scene)
    assert scene == {"cave": "blue", "bear": "#f00"} and X.shape == (1, 3, 12)
    assert X[0, :, 9:].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]] and X[0, :, :9].argmax(-1).tolist() == [1, 0, 8]
    output = attention.multi_head_attention(X, *model.W.detach().numpy().astype(float), 2)[0, -1, :6]
    answers = scenes.answers([*scenes.PAIRS, scene], attention.multi_head_attention, model, model)
    assert answers.shape == (2, 5, 2, 3)
    np.testing.assert_allclose(answers[:, -1], np.tile(output.clip(0, 1).reshape(2, 3), (2, 1, 1)))
