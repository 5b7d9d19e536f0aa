"""A reader's own words: what is taken from a text, and the sentence for what cannot be used."""

import numpy as np
import pytest
from sentences import refusal

from helpers.words import NotUsable, guesses_in, page_in, pairs_in, rows_of, text_in, texts_in, words_in

KNOWN = {"the", "date", "well", "known", "lion", "café", "don't"}


@pytest.mark.parametrize("text, words, left_out", [
    ("The (date)!", ["the", "date"], None),
    ('"lion;" LION', ["lion", "lion"], None),
    ("well-known don’t", ["well", "known", "don't"], None),
    ("cafe\u0301", ["café"], None),
    (["the", "lion date"], ["the", "lion", "date"], None),
    ("the 🐻 zebra", ["the"], "zebra, 🐻"),
    ("the lion’s date", ["the", "lion", "date"], "without 's, which is not known here: lion's."),
    ("the zebra's date", ["the", "date"], "not known here: zebra."),
])
def test_words_are_taken_from_a_text(text, words, left_out, capsys):
    assert words_in(text, KNOWN) == words
    printed = capsys.readouterr().out
    assert (left_out in printed) if left_out else not printed


@pytest.mark.parametrize("text, options, sentence", [
    (" \n", {}, "the text is empty"),
    ("zebra", {}, "'zebra' has none"),
    ("lion", {"least": 2}, "has only 1"),
    ("the lion " * 9, {"most": 5}, "has 18"),
    ([1, 2], {}, "[1, 2] came"),
])
def test_what_cannot_be_used_is_told_in_one_sentence(text, options, sentence):
    message = refusal(NotUsable, words_in, text, KNOWN, like="the lion", **options)
    assert sentence in message and message.endswith('"the lion".')


def test_without_a_list_every_word_is_known():
    assert words_in("Ein Bär, 熊 und 3 more") == ["ein", "bär", "熊", "und", "3", "more"]


@pytest.mark.parametrize("take, given, sentence", [
    (text_in, "", "the text is empty"), (text_in, 7, "7 came"),
    (lambda text: text_in(text, most=3), "lion", "At most 3 tokens can be read here, and 'lion' has 4"),
    (texts_in, "one string", "A list of texts is expected here, and 'one string' came"),
    (text_in, "\ud83d", "'\\ud83d' has half a character in it"),
    (texts_in, [" "], "every text of the list is empty"), (texts_in, [], "the list has none"),
    (texts_in, ["a", 7], "7 came"),
    (pairs_in, {}, "{} came"), (pairs_in, {"a": 7}, "'a': 7} came"), (page_in, "page.txt", "it is 'page.txt'"),
])
def test_what_is_no_text_list_pair_or_page_is_told_in_one_sentence(take, given, sentence):
    assert sentence in refusal(NotUsable, take, given)


def test_whole_texts_stay_as_they_were_given():
    assert text_in(" The lion! 🐻") == " The lion! 🐻" and texts_in(("a", " ", "B.")) == ["a", "B."]
    assert pairs_in({"a": "b"}) == {"a": "b"} and page_in("page.html").name == "page.html"


@pytest.mark.parametrize("function, sentence", [
    (lambda X: None, "has to return 3 outputs, one for each place, and None came"),
    (lambda X: X[1:], "has to return 3 outputs"), (lambda X: (X, X), "and 2 things came: return the first alone"),
    (lambda X: "text", "and 'text' came"),
    (lambda X: X / X.missing, "stopped at .* with AttributeError"),
])
def test_a_function_that_makes_no_rows_is_told_in_one_sentence(function, sentence):
    X = np.ones((3, 2))
    with pytest.raises(NotUsable, match=sentence):
        rows_of(function, X)
    assert rows_of(lambda X: X.__imul__(2), X).tolist() == [[2, 2]] * 3 and (X == 1).all()  # X stays as it was
    assert np.isnan(rows_of(lambda X: X * np.inf, X)).all()  # what is infinite moves no further


def test_a_guess_is_one_word_for_each_beginning():
    assert guesses_in({"the": " Lion ", "well": ".", "known": "", "a": "date."}, KNOWN | {"."}) == {
        "the": "lion", "well": ".", "known": "", "a": "date"}
    for guesses in ("lion", {}, {"the": "lion date"}):
        with pytest.raises(NotUsable, match="is expected"):
            guesses_in(guesses, KNOWN | {"."})
