"""Lesson 19: the step and the reward that the lesson writes are the helpers', and a learner's pieces train in them."""

from functools import partial

import pytest
import torch
from notebook_code import LESSONS, definitions

from helpers import grammars, plots, reward
from helpers.checks import adopt_all
from helpers.inside import load_mini
from notebooks.figures import lesson19


@pytest.fixture(scope="module")
def lesson():
    found = definitions(LESSONS["19"])
    reference, vocabulary = load_mini()
    found.update(vocabulary=vocabulary, mine=reward.PIECES, grammar=grammars.agreement_grammar())
    return found


def after(step, leash=None):
    """The weights after one step, from the mini-transformer's."""
    model, _ = load_mini()
    step(model, torch.optim.AdamW(model.parameters(), lr=1e-3), reward.bears, torch.Generator().manual_seed(0), leash)
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def test_the_step_and_the_reward_are_the_helpers(lesson):
    helpers_step = partial(reward.one_step, vocabulary=lesson["vocabulary"])
    for leash in (None, lambda logits, texts, mask: logits.square().mean()):
        assert torch.equal(after(lesson["one_step"], leash), after(helpers_step, leash))
    words = "the bears bear a bear .".split()
    assert lesson["bears"](words) == reward.bears(words) == 3


def test_words_get_their_colours_from_the_grammar(lesson):
    words = lesson19._coloured("the keys the old .".split(), lesson["grammar"])
    assert [colour for _, colour in words] == ["black", "black", plots.RED, "#8a8a8a", "#8a8a8a"]
    assert {colour for _, colour in lesson19._coloured("the keys wait .".split(), lesson["grammar"])} == {"black"}


@pytest.mark.parametrize(("judge", "said"), [
    (lambda words: None, "nothing (is there a return?)"), (lambda words: float("inf"), "gave inf"),
    (lambda words: 10**5000, "beyond 10^15"), (lambda words: -1e38 * len(words), "beyond 10^15"),
])
def test_a_bad_reward_of_ones_own_is_told_in_one_sentence(lesson, capsys, judge, said):
    assert lesson["game"](judge) is None
    told = capsys.readouterr().out
    assert said in told and told.count("\n") == 1


def with_loops(log_probs, advantages, mask):
    total, count = 0.0, 0
    for row, advantage, counts in zip(log_probs, advantages, mask, strict=True):
        for log_p, word in zip(row, counts, strict=True):
            if word:
                total, count = total - advantage * log_p, count + 1
    return total / count


@pytest.mark.parametrize(("attempt", "said"), [
    (reward.policy_gradient_loss, "Yours run: policy_gradient_loss."),
    (with_loops, "Yours run: policy_gradient_loss."),
    (lambda log_probs, advantages, mask: -reward.policy_gradient_loss(log_probs, advantages, mask), "The minus is missing"),
])
def test_a_learners_loss_trains_or_is_refused(attempt, said, capsys):
    def policy_gradient_loss(log_probs, advantages, mask):
        return attempt(log_probs, advantages, mask)

    trial = (torch.randn(2, 5).abs().neg(), torch.tensor([1.0, -1.0]), torch.tensor([[False] + [True] * 4] * 2))
    pieces = adopt_all([policy_gradient_loss], reward.PIECES, trains={"policy_gradient_loss": trial})
    assert said in capsys.readouterr().out
    assert (pieces["policy_gradient_loss"] is reward.policy_gradient_loss) == ("Yours" not in said)
