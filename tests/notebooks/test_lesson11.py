"""Lesson 11: the GPT that the lesson builds is the helpers' model, number by number, and a learner's pieces train in it."""

import functools
from itertools import islice

import pytest
import torch
from notebook_code import LESSONS, SOLUTIONS, definitions, renamed

from helpers import grammars, training, transformer
from helpers.checks import adopt_all
from helpers.checks.core import evaluate
from helpers.checks.lesson11 import LOOP, check_loop, loop_that_runs, train
from helpers.grammars import PAD
from helpers.inside import load_mini
from helpers.transformer import Config, LanguageModel
from scripts import mini_transformer

NAMES = ("language_model_loss", "language_model", "sample_next")
COURSES = {name: getattr(transformer, name) for name in NAMES}
GRAMMAR = grammars.agreement_grammar()
V = len(GRAMMAR.vocabulary)


def lesson(pieces):
    """What the lesson defines, made of these pieces."""
    found = definitions(LESSONS["11"], "grammar", "vocabulary", "V")
    found.update(mine=pieces, floors={})
    return found


def helpers_model():
    with training.seeded(0):
        return LanguageModel(Config(V, **mini_transformer.SETTINGS))


def test_the_gpt_is_the_helpers_model_from_the_first_weights_on():
    """And so the one in data/ and in the explainer."""
    ours, theirs = lesson(COURSES)["build"](V), helpers_model()
    for (name, mine), (other, weight) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert name == other and torch.equal(mine, weight), name
    tokens = GRAMMAR.write(4, 64, torch.Generator().manual_seed(0)).tokens
    torch.testing.assert_close(ours(tokens), theirs(tokens), atol=1e-5, rtol=1e-4)
    trained, vocabulary = load_mini()
    ours.load_state_dict(trained.state_dict())
    assert vocabulary.words == GRAMMAR.vocabulary.words
    torch.testing.assert_close(ours(tokens), trained(tokens), atol=1e-4, rtol=1e-4)


def trained(pieces, loop, steps=8):
    """The losses of the lesson's training, cut short: the schedule is that of 400 steps."""
    found = lesson(pieces)
    model = found["build"](V)
    with training.one_thread():
        return loop(model, islice(found["batches"](400), steps), found["loss_of"], training.adamw(model, 400, lr=0.015))


@functools.cache
def as_the_course_trains():
    return trained(COURSES, train)


def test_the_loop_of_the_lesson_is_that_of_fit():
    """On the helpers' model, to the last digit."""
    found, theirs = lesson(COURSES), helpers_model()

    def loss_of(model, tokens):
        return transformer.language_model_loss(model(tokens), tokens, PAD)

    with training.one_thread():
        losses = train(theirs, found["batches"](8), loss_of, training.adamw(theirs, 8, lr=0.015))
    assert losses == training.fit(helpers_model(), lambda g: (GRAMMAR.write(32, 64, g).tokens,), loss_of, 8, lr=0.015,
                                  label=None)


def gpt_without_norm(ids, tokens, positions, blocks, norm, W_out):
    x = tokens[ids] + positions[:ids.shape[1]]
    for block in blocks:
        x = block(x)
    return x @ W_out


def adopted(model):
    """The solutions' loss and sampler, and this model."""
    solved = definitions(SOLUTIONS["11"])
    g = torch.Generator().manual_seed(0)
    tables = [torch.randn(shape, generator=g) / 8 for shape in [(V, 64), (64, 64), (64, V)]]
    ids = GRAMMAR.write(3, 64, g).tokens
    return adopt_all(
        [solved["language_model_loss"], model or solved["language_model"], solved["sample_next"]], COURSES,
        trains={"language_model_loss": (torch.randn(3, 64, V, generator=g), ids, PAD),
                "language_model": (ids, *tables[:2], [torch.tanh, torch.sin], torch.tanh, tables[2])})


@pytest.mark.slow
@pytest.mark.parametrize(("model", "said"), [
    (None, "Yours run: language_model_loss, language_model, sample_next."),
    (renamed(gpt_without_norm, "language_model"), "norm is not used")], ids=["the solution's", "wrong"])
def test_a_learners_pieces_train_and_write(model, said, capsys):
    pieces = adopted(model)
    assert said in capsys.readouterr().out
    assert trained(pieces, train) == pytest.approx(as_the_course_trains(), rel=1e-3)
    found = lesson(pieces)
    words = found["vocabulary"].encode("the keys")
    assert found["write_on"](found["build"](V), words, 9)[:2] == words


@pytest.mark.parametrize("mistake", LOOP.misconceptions, ids=lambda mistake: mistake.id)
def test_a_loop_that_lacks_something_is_told_what(mistake):
    outcome = evaluate(LOOP, mistake.function)
    assert (outcome.status, outcome.misconception) == ("wrong", mistake.id)


def cleared_at_the_end(model, batches, loss_of, optimizer):
    kept = []
    for batch in batches:
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        kept.append(float(loss))
    return kept


def counts_the_batches(model, batches, loss_of, optimizer):
    return [loss_of(model, batches[i]).item() for i in range(len(batches))]


def test_the_learners_loop_runs_if_it_is_right(capsys):
    for loop in (cleared_at_the_end, definitions(SOLUTIONS["11"])["train"]):
        assert check_loop(loop) and loop_that_runs(loop) is loop
        assert "is yours." in capsys.readouterr().out
        assert trained(COURSES, loop) == as_the_course_trains()

    def stub(model, batches, loss_of, optimizer): ...

    for loop, said in ((stub, "Not started"), (counts_the_batches, "gone through once")):
        assert not check_loop(loop) and loop_that_runs(loop) is train
        told = capsys.readouterr().out
        assert said in told and "is the course's." in told
        assert ("has not passed" in told) == (loop is not stub)
