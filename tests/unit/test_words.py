"""A reader's own words: what is taken from a text, and the sentence for what cannot be used."""

import pytest

from helpers.words import NotUsable, words_in

KNOWN = {"the", "date", "well", "known", "lion", "café", "don't"}


@pytest.mark.parametrize("text, words, left_out", [
    ("The (date)!", ["the", "date"], None),
    ('"lion;" LION', ["lion", "lion"], None),
    ("well-known don’t", ["well", "known", "don't"], None),
    ("cafe\u0301", ["café"], None),
    (["the", "lion date"], ["the", "lion", "date"], None),
    ("the 🐻 zebra", ["the"], "zebra, 🐻"),
])
def test_words_are_taken_from_a_text(text, words, left_out, capsys):
    assert words_in(text, KNOWN) == words
    printed = capsys.readouterr().out
    assert (left_out in printed) if left_out else not printed


@pytest.mark.parametrize("text, options, sentence", [
    ("", {}, "the text is empty"),
    (" \n", {}, "the text is empty"),
    ("zebra", {}, "'zebra' has none"),
    ("lion", {"least": 2}, "has only 1"),
    ("the lion " * 9, {"most": 5}, "has 18"),
    (7, {}, "7 came"),
    (None, {}, "None came"),
    ([1, 2], {}, r"\[1, 2\] came"),
])
def test_what_cannot_be_used_is_told_in_one_sentence(text, options, sentence):
    with pytest.raises(NotUsable, match=sentence) as told:
        words_in(text, KNOWN, like="the lion", **options)
    assert str(told.value).endswith('"the lion".') and "\n" not in str(told.value)


def test_without_a_list_every_word_is_known():
    assert words_in("Ein Bär, 熊 und 3 more") == ["ein", "bär", "熊", "und", "3", "more"]
