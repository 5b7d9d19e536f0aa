"""The question bank: the file is whole, every key is computed, and warm-ups choose and ask as they should."""

import ast
import importlib
import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from helpers import embeddings
from helpers.page import course, questions
from helpers.store import progress

THEMES, QUESTIONS = questions.load()
ALL = list(QUESTIONS.values())
TIERS = [(q, q.options, q.key) for q in ALL] + [(q, q.reasons, q.reason_key) for q in ALL if q.reasons]
HELPERS = Path(questions.__file__).parents[1]


def truths(code):
    """Which options are true: the value of the last line of a key."""
    torch, training = pytest.importorskip("torch"), importlib.import_module("helpers.training")
    space = {"np": np, "torch": torch, "math": math, "rng": np.random.default_rng(0),
             "g": torch.Generator().manual_seed(0), "vectors": embeddings.WordVectors.load()}
    space |= {name: importlib.import_module(f"helpers.{name}") for name in set(re.findall(r"\b[a-z_]\w*", code))
              if (HELPERS / f"{name}.py").exists()}
    tree = ast.parse(code.strip())
    last = ast.Expression(tree.body.pop().value)
    with training.seeded(0):
        exec(compile(tree, "key", "exec"), space)
        return [bool(value) for value in eval(compile(last, "key", "eval"), space)]


@pytest.mark.parametrize(("question", "options", "code"), [
    pytest.param(*tier, id=tier[0].id + ("" if tier[2] is tier[0].key else " because")) for tier in TIERS])
def test_a_key_is_computed_and_names_the_right_option(question, options, code):
    last = ast.parse(code.strip()).body[-1].value
    assert any(isinstance(node, (ast.Call, ast.Compare)) for node in ast.walk(last)) or len(ast.parse(code.strip()).body) > 1
    assert not (isinstance(last, ast.List) and all(isinstance(part, ast.Constant) for part in last.elts)), "a literal answer"
    assert truths(code) == [option.misconception is None for option in options]


def test_the_bank_is_whole():
    assert len(ALL) >= 75 and len({q.ask for q in ALL}) == len(ALL)
    assert len(ALL) == questions.FILE.read_text(encoding="utf-8").count("\n[[question]]\n"), "an id occurs twice"
    assert all(q.id.startswith(f"{q.lesson}-") and bool(q.reasons) == bool(q.reason_key) for q in ALL)
    assert Counter(q.lesson for q in ALL).keys() == {n for n in course.LESSONS if n >= "01"}
    assert min(Counter(q.lesson for q in ALL).values()) >= 4
    assert len(THEMES) == 8 and {q.theme for q in ALL} == set(THEMES)


def test_the_inventory_has_three_of_each_theme_and_four_of_two_tiers():
    inventory = [q for q in ALL if q.inventory]
    assert Counter(q.theme for q in inventory) == dict.fromkeys(THEMES, 3)
    assert sum(bool(q.reasons) for q in inventory) == 4 and all(q.inventory for q in ALL if q.reasons)


@pytest.mark.parametrize("question", ALL, ids=lambda q: q.id)
def test_a_question_can_be_answered_at_one_reading(question):
    for options in filter(None, (question.options, question.reasons)):
        assert 3 <= len(options) <= 5 and [o.misconception for o in options].count(None) == 1
        assert len({o.misconception for o in options}) == len({o.text for o in options}) == len(options)
        for option in options:
            assert re.fullmatch(r"[A-Za-z][\w'-]*", option.misconception or "x"), option
            assert option.why.endswith((".", "?")) and len(option.why.split()) >= 5, option
            assert len(option.text) <= 110 and "all of the above" not in option.text.lower()
    assert len(question.ask.split()) <= 45
    assert not re.search(r"\b(not|never|isn't|cannot)\b", question.ask), "a stem without negations"
    shown = " ".join([question.ask, *(o.text + o.why for o in question.options + question.reasons)])
    assert shown.count("*") % 2 == 0


def test_the_right_option_hides_nowhere():
    """It stands at every place about equally often, and is not the longest by habit."""
    for size, group in {n: [q for q in ALL if len(q.options) == n] for n in (3, 4)}.items():
        places = Counter([o.misconception for o in q.options].index(None) for q in group)
        assert min(places[n] for n in range(size)) >= 0.7 * len(group) / size, places
    lengths = [sorted(((len(o.text), o.misconception is None) for o in q.options), reverse=True) for q in ALL]
    longest = sum(ordered[0][1] and ordered[0][0] > ordered[1][0] for ordered in lengths)
    assert longest <= 0.35 * len(ALL)


# ---------------------------------------------------------------- the choice


LESSONS = [n for n in course.LESSONS if n >= "02"]


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_warm_up_asks_about_earlier_lessons_and_the_same_each_time(lesson):
    chosen = questions.choose(lesson, {})
    assert len({q.id for q in chosen}) == 3 and chosen == questions.choose(lesson, {})
    assert all(q.lesson < lesson and not q.inventory for q in chosen)
    if lesson > "03":
        assert len({q.lesson for q in chosen}) == 3


def test_older_lessons_come_more_rarely(monkeypatch):
    """With entries that belong to nothing the dice fall otherwise."""
    drawn = [int(q.lesson) for n in range(200) for q in questions.choose("17", {f"gone-{i}": {} for i in range(n)})]
    assert sum(n >= 13 for n in drawn) > 1.5 * sum(n <= 4 for n in drawn) > 0
    assert len(set(drawn)) >= 14  # and none is forgotten


def entry(lesson, in_a_row):
    return {"lesson": lesson, "in_a_row": in_a_row, "missed": []}


def test_what_was_wrong_comes_back_in_the_next_lesson_and_what_was_right_later():
    pool = [q for q in ALL if q.lesson < "05" and not q.inventory]
    back = {row: {n for one in pool for n in LESSONS if n >= "05"
                  and one in questions.choose(n, {one.id: entry("05", row)})} for row in (0, 1, 2)}
    assert min(back[0]) == "06" and "09" > min(back[1]) >= "07" and min(back[2]) >= "09"
    assert all(one in questions.choose("06", {one.id: entry("05", 0)}) for one in pool)


def test_no_more_than_two_of_three_were_wrong():
    wrong = {q.id: entry("08", 0) for q in ALL if q.lesson in ("02", "03", "04", "05")}
    assert sum(q.id in wrong for q in questions.choose("09", wrong)) == 2


def test_there_are_three_when_everything_was_answered():
    assert len(questions.choose("02", {q.id: entry("02", 5) for q in ALL})) == 3


@pytest.mark.parametrize("damaged", [None, "passed", 3, [], {}, {"lesson": "x", "in_a_row": 1, "missed": []},
                                     {"lesson": "05", "in_a_row": "often", "missed": []}, {"lesson": "05", "in_a_row": 1},
                                     {"lesson": "05", "in_a_row": float("inf"), "missed": []}])
def test_a_damaged_entry_costs_nothing(damaged):
    plain = questions.choose("07", {"gone": {}})
    assert questions.choose("07", {plain[0].id: damaged}) == plain


@pytest.mark.parametrize("lesson", ["01", "00", "x", "", None, -3])
def test_a_lesson_without_earlier_ones_is_told(lesson):
    with pytest.raises(ValueError, match="A warm-up asks about earlier lessons"):
        questions.warm_up(lesson)


# ---------------------------------------------------------------- asking and keeping


def test_an_answer_is_kept_with_the_name_of_its_misconception(file):
    question = QUESTIONS["02-mirror"]
    right = next(o for o in question.options if not o.misconception)
    wrong = next(o for o in question.options if o.misconception)
    kept = []
    for option, lesson in [(right, "03"), (right, "05"), (wrong, "09"), (right, "10")]:
        questions.answer(question, option, lesson)
        kept.append(json.loads(file.read_text(encoding="utf-8"))["questions"][question.id])
    assert [(k["lesson"], k["in_a_row"], k["missed"]) for k in kept] == [
        ("03", 1, []), ("05", 2, []), ("09", 0, [wrong.misconception]), ("10", 1, [wrong.misconception])]


def test_an_older_entry_is_replaced(file):
    progress.record("questions", "02-mirror", "right")
    questions.answer(QUESTIONS["02-mirror"], QUESTIONS["02-mirror"].options[0], "03")
    assert progress.load("questions")["02-mirror"]["lesson"] == "03"


def test_buttons_tell_at_once_and_the_first_choice_counts(file, displayed):
    questions.warm_up("07")
    chosen = questions.choose("07", {})
    boxes = displayed[0].children[1:]
    assert len(boxes) == 3
    for question, box in zip(chosen, boxes, strict=True):
        heading, *buttons, told = box.children
        assert question.ask.split("*")[0].split("<")[0][:20] in heading.value and told.value == ""
        texts = {questions.as_plain(o.text): o for o in question.options}
        options = [texts[button.description] for button in buttons]  # the label is the whole text
        order = sorted(range(len(options)), key=lambda n: options[n].misconception is None)  # a wrong one first
        buttons[order[0]].click()
        assert "Not quite." in told.value and buttons[order[0]].description.startswith("✗")
        buttons[order[-1]].click()
        assert "Right." in told.value and "role='alert'" in told.value and buttons[order[-1]].description.startswith("✓")
        assert progress.load("questions")[question.id] == {
            "lesson": "07", "in_a_row": 0, "missed": [options[order[0]].misconception]}
    assert [p.name for p in file.parent.iterdir() if not p.name.endswith(".lock")] == [file.name]


def test_without_a_learner_options_unfold_and_nothing_is_kept(nobody, pages, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = progress.load("questions")
    questions.warm_up("07")
    questions.warm_up("07")
    assert pages[0] == pages[1] and not list(tmp_path.iterdir()) and progress.load("questions") == before
    html, text = pages[0]
    assert html.count("Right.") == 3 and "<script" not in html and "<style" not in html
    asked, answers = text.split("Answers:")
    shown = [q for q in ALL if questions.as_plain(q.ask) in asked]
    assert len(shown) == 3
    for question in shown:
        for option in question.options:
            assert f"{questions.as_html(option.text)}</summary>" in html and html.count("<details") == html.count("<summary")
            assert questions.as_plain(option.text) in asked and questions.as_plain(option.why) not in asked
            assert (questions.as_plain(option.why) in answers) == (option.misconception is None)


def test_without_a_learner_no_lesson_repeats_a_question(nobody, pages):
    for lesson in LESSONS:
        questions.warm_up(lesson)
    asked = [q.id for _, text in pages for q in ALL if questions.as_plain(q.ask) in text]
    assert len(asked) == len(set(asked)) == 3 * len(LESSONS)
