"""Lesson 13: the text that is searched, and pieces that a learner brings along."""

import re
import sys

import nbformat
import numpy as np
import pytest
import torch
from notebook_code import LESSONS, SOLUTIONS, code_cells, definitions, judge, renamed

from helpers import course_text, minilm
from helpers.checks import layers
from helpers.checks.core import SEVERAL
from helpers.checks.layers import FAULTS, take
from helpers.minilm import map_weight_name, semantic_search
from helpers.words import NotUsable
from scripts import paragraphs as collect

NAME = "encoder.layer.{}.{}"


# The references


def test_every_name_of_the_checkpoint_has_a_name_of_its_own():
    weights = minilm.load_weights()
    ours = [map_weight_name(name) for name in weights]
    assert len(set(ours)) == len(weights) == 104
    assert map_weight_name(NAME.format(11, "output.LayerNorm.weight")) == "11.norm2.gain"


def test_search_with_a_row_of_zeros_and_equal_rows():
    corpus = torch.tensor([[0.0, 0], [-1, 0], [2, 0], [1, 0]])
    assert semantic_search(torch.tensor([1.0, 0]), corpus, 4).tolist() == [2, 3, 0, 1]


def test_a_layer_of_two_digits_is_tried_in_every_part():
    cut = re.compile(r"^(\d)\d+(?=\.[Wb]_|\.norm)")  # right in the MLP only
    for seed in range(5):
        outcome = judge("map_weight_name", lambda name: cut.sub(r"\1", map_weight_name(name)), seed=seed)
        assert not outcome and "Take the whole number" in outcome.message


# The lesson's encoder


@pytest.fixture(scope="module")
def lesson():
    """Imports and functions of the lesson, where the learner has written nothing: the course's versions, and all pieces."""
    names = definitions(LESSONS["13"])
    names["pieces"] = layers.PIECES | {"gelu": torch.nn.functional.gelu, "eps": 1e-12}
    names["block"] = layers.block
    names["named"] = {map_weight_name(name): tensor for name, tensor in minilm.load_weights().items()}
    names["weights"] = layers.weights_by(layers.as_ours, names["named"])
    return names


@pytest.mark.parametrize("text", ["bears", "time flies like an arrow", ("fruit flies like a banana", "a date")])
def test_the_lessons_encoder_is_the_helpers_model(lesson, text):
    encoded = minilm.load_tokenizer().encode(*(text if isinstance(text, tuple) else (text,)))
    ids, types, mask = (torch.tensor([x]) for x in (encoded.ids, encoded.type_ids, encoded.attention_mask))
    states = lesson["encode"](ids, types, mask.bool())
    reading = minilm.read(*(text if isinstance(text, tuple) else (text,)))
    assert np.abs(torch.cat(states).numpy() - reading.vectors).max() < 1e-5


def test_what_the_learner_is_to_mend_is_what_the_solution_mends(lesson):
    """As the lesson stands, just the square matrices of the layers, and the pooler's, are left as they are in the file."""
    wanted, mended, found = (layers.weights_by(turn, lesson["named"]) for turn in (
        layers.as_ours, definitions(SOLUTIONS["13"])["as_ours"], lesson["as_ours"]))
    assert all(torch.equal(mended[name], W) for name, W in wanted.items())
    wrong = {name.split(".")[-1] for name, W in wanted.items() if not torch.equal(found[name], W)}
    assert wrong == {"W_q", "W_k", "W_v", "W_o", "W"}


@pytest.mark.parametrize(("mend", "said"), [
    (lambda name, W: W.T if name.endswith(("W1", "W2", "W_q", "W_k", "W_v", "W_o")) else W, "as_ours: yours"),
    (lambda name, W: W.T if name[2:].startswith("W") else W, "as_ours: yours"),
    (lambda name, W: W.T if ".W" in name else W, "as_ours: yours"),
    (lambda name, W: W.t_() if ".W" in name else W, "as_ours: yours"),
    (lambda name, W: W.T if name.startswith("0.W") else W, "30 tensors of yours are not right, the first is 1.W_q"),
    (lambda name, W: W.T if W.ndim == 2 else W, "3 tensors of yours are not right, the first is word"),
    (lambda name, W: W.T if ".W" in name and name != "3.W_o" else W, "one tensor of yours is not right, 3.W_o"),
    (lambda name, W: W.T if ".W" in name else -W if name == "0.b_q" else W, "one tensor of yours is not right, 0.b_q"),
])
def test_a_mend_in_another_style_is_taken(lesson, mend, said, capsys):
    shape = lesson["named"]["0.W1"].shape
    layers.take_weights(mend, lesson["named"])
    assert said in capsys.readouterr().out and lesson["named"]["0.W1"].shape == shape


def test_a_mend_without_a_return_is_told(lesson):
    with pytest.raises(NotUsable, match="there came None: is there a return"):
        layers.take_weights(lambda name, W: None, lesson["named"])


def test_the_prediction_is_about_the_function_as_it_was_given(lesson):
    """So that it stays right when the learner has mended `as_ours` and runs everything again."""
    given, found = (layers.weights_by(turn, lesson["named"]) for turn in (layers.as_given, lesson["as_ours"]))
    assert all(torch.equal(given[name], W) for name, W in found.items())


def test_a_mend_of_layer_0_alone_is_told_at_once(lesson, capsys):
    reference = minilm.reference_model()
    for mend, said in ((layers.as_ours, False), (lambda name, W: W.T if name.startswith("0.W") else W, True)):
        assert len(layers.hold(mend, lesson["named"], reference)) == 6
        assert ("1.W_q" in capsys.readouterr().out) is said


@pytest.fixture(scope="module")
def layer(lesson):
    """A batch with padding, and layer 0: the real tokens, and what `self_attention` and `block` are called with."""
    w = lesson["layer_weights"](lesson["weights"], 0)
    real = torch.tensor([[True] * 7, [True] * 5 + [False] * 2])
    x = torch.randn(2, 7, 384, generator=torch.Generator().manual_seed(0))
    return real, (x, real[:, None, None, :], w, lesson["pieces"])


@pytest.mark.parametrize("name", ["self_attention", "block"])
def test_a_layer_of_ones_own_is_taken_when_it_is_right(lesson, layer, name, capsys):
    real, inputs = layer
    course, mine = getattr(layers, name), definitions(SOLUTIONS["13"])[name]
    theirs = course(*inputs)
    assert take(mine, course, theirs, real, *inputs) is mine
    assert "Yours runs" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "fault"), [(name, fault) for name, found in FAULTS.items() for fault in found])
def test_a_fault_of_a_layer_is_told_by_its_cause(lesson, layer, name, fault, capsys):
    real, inputs = layer
    course, (hint, function) = getattr(layers, name), FAULTS[name][fault]

    def mine(*inputs):
        return function(*inputs)

    assert take(renamed(mine, name), course, course(*inputs), real, *inputs) is course
    assert hint in capsys.readouterr().out


def test_two_faults_of_a_layer_are_told_as_one_of_several(layer):
    real, inputs = layer
    course = layers.self_attention(*inputs)
    faulty = FAULTS["self_attention"]["no-output-bias"][1].func
    for faults, said in ((dict(bias=False, order="qqq"), SEVERAL), (dict(plus=True, out_bias=False), SEVERAL),
                         (dict(bias=False, out_bias=False), "All four biases")):
        def mine(*inputs, faults=faults):
            return faulty(*inputs, **faults)

        assert said in layers._judge(renamed(mine, "self_attention"), course, real, inputs)[1]


def test_a_layer_that_is_no_known_fault_is_told_too(layer, capsys):
    real, inputs = layer
    course = layers.block
    theirs = course(*inputs)

    def stops(*inputs):
        return inputs[0] @ inputs[0]

    def in_place(*inputs):
        inputs[0].mul_(0)
        return theirs

    def block(x, mask, w, p):
        ...

    for said, mine in {"changes x in place": in_place, "is not started": block, "stopped with an error": stops,
                       "RuntimeError": stops, "needs a return": lambda *inputs: inputs[0].sum() and None,
                       "two things": lambda *inputs: (theirs, theirs), "instead of (2, 7, 384)": lambda *inputs: theirs[0],
                       "a NumPy array and no tensor": lambda *inputs: theirs.numpy(), "of type list": lambda *inputs: [1],
                       "kind torch.float64": lambda *inputs: theirs.double(),
                       "side by side": lambda *inputs: theirs[None], "largest difference is": lambda *inputs: 2 * theirs,
                       }.items():
        assert take(mine, course, theirs, real, *inputs) is course
        assert said in capsys.readouterr().out


@pytest.mark.parametrize(("said", "fault"), [
    ("gets None as the mask", lambda x, mask, w, p: layers.self_attention(x, None, w, p)),
    ("the mask is not the reference's", lambda x, mask, w, p: layers.self_attention(x, ~mask, w, p)),
    ("K is not the reference's", lambda x, mask, w, p: layers.self_attention(x, mask, w | {"W_k": w["W_q"]}, p)),
    ("(2, 6, 7, 64) as Q", lambda x, mask, w, p: layers.self_attention(
        x, mask, w, p | {"split_heads": lambda X, n: p["split_heads"](X, 6)})),
    ("it is what comes after", lambda x, mask, w, p: layers.self_attention(x, mask, w, p) * 2),
    ("the mask is not the reference's", lambda x, mask, w, p: layers.self_attention(x, mask, w, p | {
        "masked_attention": lambda Q, K, V, mask: p["masked_attention"](Q, K, V, mask=~mask)})),
    ("gets (2, 7) as the mask", lambda x, mask, w, p: layers.self_attention(x, mask[:, 0, 0], w, p)),
    ("returns the output and the weights", lambda x, mask, w, p: p["merge_heads"](p["masked_attention"](
        *(p["split_heads"](x, 12),) * 3, mask))),
    ("go on with the weights", lambda x, mask, w, p: layers.self_attention(x, mask, w, p | {
        "masked_attention": lambda *given: p["masked_attention"](*given)[::-1]})),
    ("never calls masked_attention", lambda x, mask, w, p: x)])
def test_a_fault_in_attention_is_told_where_it_begins(layer, capsys, said, fault):
    real, inputs = layer
    tolerant = dict(inputs[3], masked_attention=lambda Q, K, V, mask: (V, None) if mask is None else
                    layers.PIECES["masked_attention"](Q, K, V, mask))
    inputs = (*inputs[:3], tolerant)
    theirs = layers.self_attention(*inputs)
    assert take(renamed(fault, "self_attention"), layers.self_attention, theirs, real, *inputs) is layers.self_attention
    assert said in capsys.readouterr().out


def test_the_forty_notes_are_those_of_the_experiment():
    cells = code_cells(LESSONS["13"].parent / "experiments" / LESSONS["13"].name)
    written = "".join(re.search(r'"""\\\n(.*?)"""', source, re.DOTALL)[1] for source in cells
                      if re.search(r"^written \+?= ", source, re.MULTILINE))
    notes, questions = course_text.load_everyday()
    assert len(set(notes)) == len(set(questions)) == 5 * len(course_text.SHELVES) == 40
    assert written.splitlines() == [line for pair in zip(notes, questions, strict=True) for line in pair]


def test_notes_of_ones_own(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"\xef\xbb\xbfThe key is here.\r\n\r\n  Buy milk \n")
    assert course_text.own_notes(path) == ["The key is here.", "Buy milk"]
    for contents, said in ((b"\n \n", "every text of the list is empty"), (b"\xff\xfe\xff", "not text in UTF-8")):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=said):
            course_text.own_notes(path)
    with pytest.raises(ValueError, match="cannot be read"):
        course_text.own_notes(tmp_path / "nowhere.txt")


def raises_at_padding(hidden, mask):
    if (mask == 0).any():
        raise ValueError
    return hidden.mean(1)


@pytest.mark.parametrize(("name", "attempt", "said"), [
    ("mean_pool", lambda hidden, mask: (hidden * mask[..., None]).sum(1) / mask.sum(1), "make the divisor (B, 1)"),
    ("mean_pool", raises_at_padding, "Padding is no mistake"),
    ("semantic_search", lambda query, corpus, k: (corpus @ query).argsort()[::-1][:k], "cannot be read backwards"),
    ("mean_pool", lambda hidden, mask: (hidden * mask).sum(1) / mask.sum(1), "make it (B, T, 1)"),
    ("map_weight_name", lambda name: {"embeddings.position_ids": "position_ids"}[name], "no entry of this name"),
    ("map_weight_name", lambda name: map_weight_name(name).replace("pooler.b", "pooler.bias"), "The pooler stands outside"),
    ("map_weight_name", lambda name: 3, "right form"),
])
def test_a_weak_message_names_its_cause(name, attempt, said):
    assert said in judge(name, attempt).message


@pytest.mark.parametrize("k", [0, -1, "2", 1.5, None, True])
def test_a_wrong_number_of_texts_to_show_is_told_in_one_sentence(k):
    with pytest.raises(NotUsable, match="k is a whole number from 1 to 2 here"):
        minilm.readable("a", ["b", "c"], k)
    assert minilm.readable("a", ["b", "c"], 3) == ("a", ["b", "c"], 2)


def test_without_transformers_the_lesson_says_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)  # as if it were not installed
    with pytest.raises(minilm.ModelNotAvailable) as caught:
        minilm.reference_model()
    (line,) = caught.value._render_traceback_()
    assert "pip install transformers" in line and "\n" not in line


# The text that is searched


def test_every_question_has_its_paragraph():
    paragraphs = course_text.load_paragraphs()
    questions = course_text.load_questions(paragraphs)
    assert len(questions) >= 90
    assert len({p.key for p in paragraphs}) == len(paragraphs) == len({p.text for p in paragraphs})
    asked = [question for question, _ in questions]
    assert len(set(asked)) == len(asked) and all(question.endswith("?") for question in asked)
    for paragraph in paragraphs:
        words = len(paragraph.text.split())
        assert collect.FEWEST <= words <= collect.MOST, paragraph.key


@pytest.fixture
def course_of_one(tmp_path):
    """A notebook with one paragraph that is taken, and many that are not."""
    plain = "**Attention** looks at [words](01_words.ipynb) and at `keys`, " + "again and " * 11 + "again."
    cells = [plain, "# " + plain, "- " + plain, "*In words:* " + plain, "Short.", plain + " $d_k$", "| a |\n" + plain,
             "Long " * 90, "### Exercise 1\n\n" + plain]
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_markdown_cell(text, id=f"cell{i}") for i, text in enumerate(cells)]
    nbformat.write(book, tmp_path / "02_one.ipynb")
    nbformat.write(book, tmp_path / "00_start.ipynb")
    return tmp_path


def test_build(course_of_one):
    path = course_of_one / "paragraphs.tsv"
    assert collect.build(course_of_one, path) == course_text.load_paragraphs(path)
    (paragraph,) = course_text.load_paragraphs(path)
    assert (paragraph.key, paragraph.lesson) == ("cell0.0", "02")
    assert paragraph.text.startswith("Attention looks at words and at keys, again")
    questions = course_of_one / "questions.tsv"
    questions.write_text("What?\tcell0.0\n", encoding="utf-8")
    assert course_text.load_questions([paragraph], questions) == [("What?", 0)]
    questions.write_text("What?\tcell9.0\n", encoding="utf-8")
    with pytest.raises(ValueError, match="No paragraph any more for 'What"):
        course_text.load_questions([paragraph], questions)
    questions.write_text("What?\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 1, should have 2 columns"):
        course_text.load_questions([paragraph], questions)
