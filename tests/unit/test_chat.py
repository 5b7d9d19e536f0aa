"""A conversation with the chat model: it goes on after whatever happens, and the box shows it as text."""

import time

import pytest

from helpers import smollm2
from helpers.page import chat
from helpers.words import NotUsable

QUESTION = "What is the capital of France?"


def test_the_box_without_a_kernel_is_the_conversation(model, nobody):
    talk = chat.box(model, QUESTION, max_tokens=20)
    assert talk.text() == "you: What is the capital of France?\nmodel: The capital of France is Paris."
    assert "Paris" in talk.html() and "title=" in talk.html() and "<script" not in talk.html()


def test_a_question_is_a_text_and_an_empty_answer_says_so(model):
    for no_question in ("", 5):
        with pytest.raises(NotUsable):
            chat.box(model, no_question)
    talk = chat.Conversation(model, choose=lambda *_: smollm2.END)
    talk.ask(QUESTION)
    assert "it ended its turn at once" in talk.html()


def test_the_box_escapes_what_is_said(model):
    talk = chat.Conversation(model, max_tokens=1)
    talk.ask("<script>alert(1)</script>")
    assert "<script" not in talk.html()


def test_an_answer_appears_word_by_word_and_can_be_stopped(model):
    talk, seen = chat.Conversation(model), []

    def changed():
        seen.append(len(talk.words[-1]))
        talk.halted = len(talk.words[-1]) == 3

    talk.ask(QUESTION, changed)
    assert seen == [0, 1, 2, 3]
    assert talk.messages[-1] == {"role": "assistant", "content": "The capital of"}


def test_a_long_question_is_read_in_pieces_and_stop_is_heard_while_it_is_read(model):
    talk, seen = chat.Conversation(model, max_tokens=2), []
    long = "The bear sleeps in winter. " * 40

    def changed():
        seen.append(talk.read)
        talk.halted = talk.halted or talk.read[0] >= 128

    talk.ask(long, changed)
    assert seen == [(0, 0), (64, seen[-1][1]), (128, seen[-1][1])] and seen[-1][1] > 200
    assert talk.messages == [] and talk.words == []  # taken back
    talk.ask("Hello")
    assert [message["role"] for message in talk.messages] == ["user", "assistant"]


@pytest.mark.slow
def test_nothing_is_read_twice_in_a_conversation(model):
    lengths = []

    def run(model, ids, cache=None):
        lengths.append(ids.shape[1])
        return model.run(ids, cache)

    talk = chat.Conversation(model, run=run, max_tokens=20)
    talk.ask(QUESTION)
    before, first = sum(lengths), talk.messages[-1]["content"]
    talk.ask("And of Japan?")
    assert lengths[0] > 30 and sum(lengths) - before < 35 and first == "The capital of France is Paris."
    again = smollm2.reply(model, talk.messages[:3], max_tokens=20)
    assert talk.messages[-1]["content"] == again


@pytest.mark.slow
def test_a_conversation_that_is_too_long_is_one_sentence_and_can_go_on(model, monkeypatch):
    monkeypatch.setattr(smollm2, "LONGEST", 60)
    talk = chat.Conversation(model, max_tokens=200)
    with pytest.raises(smollm2.TooLong, match="learned to read 60") as told:
        talk.ask("bear " * 50)
    assert "\n" not in str(told.value) and talk.messages == []
    talk.ask("Tell me a story.")
    assert len(talk.memory["ids"]) <= 60 and talk.words[0]


def test_the_box_takes_what_was_typed_even_when_it_arrives_after_enter(model, file, displayed):
    talk = chat.box(model, max_tokens=2)
    line, send, stop, _ = displayed[0].children[1].children
    line._handle_custom_msg({"event": "submit"}, [])
    line.value = "Hello"
    for _ in range(600):
        if len(talk.messages) == 2 and not send.disabled:
            break
        time.sleep(0.05)
    assert talk.messages[0]["content"] == "Hello" and line.value == "" and stop.disabled


class Broken:
    """A model whose tokens are lost."""

    tokens = None


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_conversation_is_as_it_was_after_an_error(error, monkeypatch):
    def fails(*_, **__):
        raise error
        yield

    talk = chat.Conversation(Broken())
    monkeypatch.setattr(smollm2, "stream", fails)
    with pytest.raises(error):
        talk.ask("Hi")
    assert (talk.messages, talk.words) == ([], [])
    with pytest.raises(error):  # also where what looks on fails
        talk.ask("Hi", lambda: fails().send(None))
    assert (talk.messages, talk.words) == ([], []) and talk.html() and not talk.text()
