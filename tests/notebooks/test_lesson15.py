"""The functions of lesson 15: a trainer of merges, the training loop, and a learner's own file."""

from collections import Counter

import pytest
import torch
from notebook_code import LESSONS, definitions

from helpers import texts, tokens


@pytest.fixture(scope="module")
def lesson():
    return definitions(LESSONS["15"], "T")


def test_the_trainer_finds_what_the_helper_finds(lesson):
    """On a text without a tie among its first merges."""
    words = {(97, 98, 99): 7, (98, 99): 4, (97, 98): 2, (100, 97): 1}
    assert lesson["learn"](words, 4) == tokens.train_bpe(words, 4)
    text = next(iter(texts.addresses().values()))
    merges = lesson["learn"](Counter(tuple(word) for word in tokens.split(text)), 40)
    assert len(set(merges) ^ set(tokens.train_bpe(text, 40))) <= 10  # ties


def test_a_file_of_ones_own_is_trained_on(lesson, tmp_path, capsys):
    path = tmp_path / "my.txt"
    path.write_text("\n".join(list(texts.addresses().values())[:5])[:40_000], encoding="utf-8")
    model = lesson["train_on"](path, steps=2)
    said = capsys.readouterr().out
    assert said.startswith("best after 2 of 2 steps: ") and sum(p.numel() for p in model.parameters()) > 100_000
    for contents, words in ((b"short", "has 5 bytes"), (b"\xff" * 30_000, "not text")):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=words):
            lesson["train_on"](path)
    with pytest.raises(ValueError, match="cannot be read"):
        lesson["train_on"](tmp_path / "none.txt")


def test_the_best_model_on_the_validation_text_is_kept(lesson):
    text, tokenizer = "the bears eat the pears " * 400, tokens.Tokenizer({})
    history, best, wrote = lesson["train"](text, tokenizer, text[:2000], steps=60)
    assert [step for step, _, _ in history] == [0, 25, 50, 60] == list(wrote)
    assert history[-1][1] < 1 and lesson["measure"](best, tokenizer, text[:2000]) == min(new for _, _, new in history)
    with torch.no_grad():
        assert lesson["write"](best, tokenizer, "the", 20).startswith("the")
