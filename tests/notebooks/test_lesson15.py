"""The functions of lesson 15: merges with the ids that they get, the training loop, and a learner's own file."""

from collections import Counter

import pytest
from notebook_code import LESSONS, definitions, judge

from helpers import texts, tokens
from notebooks.figures import lesson15


@pytest.fixture(scope="module")
def lesson():
    names = definitions(LESSONS["15"], "T", "STEPS", "decode")
    names["bpe_encode"] = tokens.bpe_encode
    return names


@pytest.mark.slow
def test_the_quick_trainer_finds_what_the_exercise_asks_for():
    for text in [*list(texts.addresses().values())[::40], "aaaa aaa aa a bababab ", "  ±ÿ é 熊熊 🐻"]:
        words = Counter(tuple(word) for word in tokens.split(text))
        assert tokens.learn_quickly(words, 60) == tokens.learn_merges(words, 60)
    assert tokens.learn_quickly(Counter(tokens.split("ab ab")), 9) == tokens.learn_merges({(97, 98): 1, (32, 97, 98): 1}, 9)


def test_a_text_is_encoded_as_the_helper_does(lesson):
    text = next(iter(texts.addresses().values()))[:5000]
    merges = lesson["numbered"]([list(pair) for pair in tokens.learn_quickly(Counter(tokens.split(text)), 100)])
    assert list(merges.values()) == list(range(256, 356))
    assert lesson["encode"](text, merges) == tokens.Tokenizer(merges).encode(text)


def test_a_file_of_ones_own_is_trained_on(lesson, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "my.txt"
    path.write_text("\n".join(list(texts.addresses().values())[:5])[:40_000], encoding="utf-8")
    model, merges = lesson["train_on"]("~/my.txt", steps=2, every=1)
    assert capsys.readouterr().out == "best on the last tenth at measurement 2 of 2\n"
    assert sum(p.numel() for p in model.parameters()) > 100_000 and len(merges) == 512
    assert lesson["write"](model, merges, "The bears", 5).startswith("The bears") and lesson["write"](model, merges, "", 3)
    for contents, words in ((b"short", "has 5 bytes"), (b"!", "has 1 byte,"), (b"\xff" * 30_000, "not text")):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=words):
            lesson["train_on"](path)
    with pytest.raises(ValueError, match="cannot be read"):
        lesson["train_on"](tmp_path / "none.txt")


@pytest.mark.slow
def test_the_best_model_on_the_validation_text_is_kept(lesson):
    text = "the bears eat the pears " * 400
    best, diary = lesson["train"](text, text[:2000], {}, steps=45, every=20)
    assert len(diary) == 3 and diary[-1][0] < 1.5
    rows = lesson["rows"](text[:2000], {})
    assert lesson["text_loss"](best, rows).item() == pytest.approx(min(new for _, new, _ in diary))


def test_a_pair_that_was_never_learned_is_named():
    outcome = judge("bpe_encode", lambda ids, merges: min(zip(ids, ids[1:], strict=False), key=merges.get))
    assert outcome.status == "error" and "merges.get gives None" in outcome.message


def test_a_picture_of_a_text_breaks_at_a_space_if_one_is_near():
    in_rows, never = lesson15.in_rows, float("inf")
    assert in_rows(b"the bears eat", [never] * 13, 7) == [(0, 9), (9, 13)]
    assert in_rows(b"bears" * 8, [never] * 40) == [(0, 20), (20, 40)]
