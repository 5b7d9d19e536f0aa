"""What a cell has set for the whole process changes no verdict and no model's text, and is as it was afterwards."""

import contextlib
import os
import random
import subprocess
import sys
import warnings

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from helpers import grammars, minilm, plots, reward, smollm2, training, transformer
from helpers.checks import INDEX, adopt_all, core, exercise
from helpers.checks.core import Exercise, Misconception, Probe, evaluate
from helpers.measure import many_texts
from helpers.store import model_files, settings


@contextlib.contextmanager
def changed(setter, value, usual):
    """``setter(value)`` for as long as the body runs."""
    setter(value)
    try:
        yield
    finally:
        setter(usual)


@contextlib.contextmanager
def warnings_raise():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


SETTINGS = {
    "seterr": lambda: np.errstate(all="raise"),
    "printoptions": lambda: np.printoptions(precision=1, sign="+", formatter={"float": lambda x: "a number"}, threshold=2),
    "no gradients": torch.no_grad,
    "float64": lambda: changed(torch.set_default_dtype, torch.float64, torch.float32),
    "bfloat16": lambda: changed(torch.set_default_dtype, torch.bfloat16, torch.float32),
    "device": lambda: changed(torch.set_default_device, "meta", None),  # a place where no tensor has numbers
    "recursion": lambda: changed(sys.setrecursionlimit, 400, sys.getrecursionlimit()),
    "warnings": warnings_raise, "style": lambda: plt.style.context("dark_background"),
}
ONE_A_LESSON = sorted({number: name for name, number in INDEX.items()}.values())


def state():
    return (np.geterr(), str(np.get_printoptions()), str(np.random.get_state()), random.getstate(), sys.getrecursionlimit(),
            list(warnings.filters), torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled(),
            torch.get_rng_state().tolist(), torch.get_num_threads())


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_check_says_the_same_whatever_is_set_and_leaves_it_set(setting, pytestconfig):
    for name in INDEX if pytestconfig.getoption("weekly", False) else ONE_A_LESSON:
        found = exercise(name)
        attempts = found.reference, found.misconceptions[0].function
        usual = [evaluate(found, attempt) for attempt in attempts]
        with SETTINGS[setting]():
            before = state()
            assert [evaluate(found, attempt) for attempt in attempts] == usual
            assert state() == before
    assert usual[0]


def test_what_an_attempt_sets_is_gone_afterwards_even_where_it_stops():
    def attempt(x):
        np.seterr(all="raise")
        np.set_printoptions(precision=1)
        np.random.seed(1)
        random.seed(1)
        torch.manual_seed(1)
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        sys.setrecursionlimit(5000)
        warnings.simplefilter("error")
        raise KeyError

    before = state()
    assert evaluate(exercise("softmax"), attempt).status == "error"
    assert state() == before


def test_what_is_drawn_from_the_global_random_numbers_is_judged_alike_each_time():
    def lazy(n):
        return np.random.rand(n) + torch.rand(n).numpy() + random.random()

    drawn = Exercise(lambda n: np.zeros(n), (Probe("any", lambda rng: (3,), "Zeros."),), ())
    first = evaluate(drawn, lazy)
    np.random.seed(5), torch.manual_seed(5), random.seed(5)
    assert evaluate(drawn, lazy) == first
    caught = Exercise(drawn.reference, drawn.probes, (Misconception("random", "It is random.", lazy),))
    assert evaluate(caught, lazy).misconception == "random"


def test_a_deep_caller_is_no_error():
    def deep(n):
        return deep(n - 1) if n else core.call(lambda: 1, (), 1).value

    with changed(sys.setrecursionlimit, 2 * settings.DEEP, sys.getrecursionlimit()):
        assert deep(settings.DEEP + 100) == 1


@pytest.mark.parametrize("setting", ["seterr", "no gradients", "float64", "warnings", "recursion"])
def test_a_model_is_trained_whatever_is_set(setting):
    grammar, vocabulary = grammars.agreement_grammar(small=True), grammars.agreement_grammar(small=True).vocabulary

    def loss(model, tokens):
        return transformer.language_model_loss(model(tokens), tokens, 0)

    with SETTINGS[setting]():
        model = transformer.LanguageModel(transformer.Config(len(vocabulary), d=16, n_heads=2, n_layers=1, mlp=16))
        before = model.output.weight.clone()
        history = training.fit(model, lambda g: (grammar.write(4, 16, g).tokens,), loss, steps=2, label=None)
    assert len(history) == 2 and not torch.equal(before, model.output.weight)


@pytest.mark.parametrize("setting", ["no gradients", "float64"])
def test_a_right_function_is_adopted_whatever_is_set(setting, capsys):
    args = torch.randn(3, 40, 30), torch.randint(1, 30, (3, 40)), 0
    loss = transformer.language_model_loss

    def language_model_loss(logits, tokens, pad):
        return loss(logits, tokens, pad)

    with SETTINGS[setting]():
        pieces = adopt_all([language_model_loss], {"language_model_loss": loss}, trains={"language_model_loss": args})
    assert "Yours run: language_model_loss." in capsys.readouterr().out and pieces["language_model_loss"] is not loss


@pytest.mark.parametrize("setting", ["float64", "device"])
def test_the_pretrained_models_say_the_same_whatever_is_set(setting, model):
    asked = [{"role": "user", "content": "What is the capital of France?"}]
    ids = smollm2.prompt_ids(model.tokens, asked)

    def said():
        mini, vocabulary = reward.load_mini()
        texts = reward.write(mini, vocabulary, 1, torch.Generator("cpu").manual_seed(0))
        return (smollm2.reply(model, asked, max_tokens=3), smollm2.reply(model, asked, max_tokens=3, temperature=1.0, p=0.9),
                many_texts.write_on(model, [ids, ids[:-1]], 2).tolist(), minilm.read("bears").vectors.tolist(),
                many_texts.next_logits(model, ids, [[1], [2]], [3]).tolist(), texts.tokens.tolist())

    usual = said()
    with SETTINGS[setting]():
        assert said() == usual


WORDS = ["is $5 more than 10% of $60", "why is $x^$ empty", "$$", "$_$", "café 😀"]


@pytest.mark.parametrize("text", WORDS)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_dollar_is_drawn_as_it_is_written(text):
    """As wide as the same words where Matplotlib is told to read no formula."""
    ax = plots.heatmap([[1.0]], [text], [text], title=text, label=text, axis_names=(text, text))
    others = plots.bars([text], [1], title=text, xlabel=text), plots.word_map([[0, 0]], [text], [text], title=text)
    figures = [part.figure for part in (ax, *others)]
    for figure in figures:
        figure.canvas.draw()
    drawn = [t for figure in figures for t in figure.findobj(matplotlib.text.Text) if t.get_text() == text]
    assert len(drawn) >= 12
    for t in drawn:
        wide = t.get_window_extent().width, t.get_window_extent().height
        del t._preprocess_math
        t.set(text=text, parse_math=False)
        assert (t.get_window_extent().width, t.get_window_extent().height) == wide
    plt.close("all")


def test_a_text_over_the_models_length_is_one_sentence():
    try:
        assert minilm.read("bears " * 510).weights.shape[-1] == 512
    except model_files.ModelNotAvailable as error:
        pytest.skip(str(error))
    for args in (("bears " * 511,), ("bears " * 300, "bears " * 300)):
        with pytest.raises(ValueError, match="pieces, .* and the model can read 512"):
            minilm.read(*args)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "ascii"])
def test_what_is_printed_stops_nobody(encoding):
    code = ("from helpers.checks import check\nfrom helpers import attention\nfrom helpers.page import show\n"
            "assert check(attention.softmax)\nshow.map('04')\nshow.table(['√d_k'], [['→ ✓ 😀 \\ud800']])")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, env=os.environ | {
        "PYTHONIOENCODING": encoding})
    assert run.returncode == 0, run.stderr
    assert "Passed: softmax" in run.stdout.decode(encoding)
