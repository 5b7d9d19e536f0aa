"""The attention inventory: asked without a word of what is right, kept, and compared theme by theme."""

import json
import re

import pytest

from helpers.page import inventory, questions
from helpers.store import progress

ITEMS = inventory.items()


@pytest.fixture
def widget(displayed):
    """A function that takes the inventory and gives the box of questions."""
    def start(when):
        inventory.take(when)
        return displayed.pop()
    return start


def seen(box):
    """Every text in the box: of headings and of buttons."""
    return " ".join([getattr(box, "value", ""), getattr(box, "description", ""),
                     *(seen(child) for child in getattr(box, "children", ()))])


def options_of(box):
    return [button for button in box.children if "warm-up" in getattr(button, "_dom_classes", ())]


def press(box, text):
    next(b for b in box.children[-1].children if b.description.startswith(text)).click()


def answer_all(box, right):
    """Answer every question with the right option where ``right(question)``, and else with the first wrong one."""
    by_ask = {questions.as_html(q.ask): q for q in ITEMS}
    for _ in ITEMS:
        question = next(q for ask, q in by_ask.items() if ask in box.children[1].value)
        texts = {button.description[2:]: button for button in options_of(box)}
        for tier in filter(None, (question.options, question.reasons)):
            wanted = next(o for o in tier if (o.misconception is None) == right(question))
            texts[questions.as_plain(wanted.text)].click()
        press(box, next(b.description for b in box.children[-1].children if b.description != "Back"))


def test_each_learner_gets_an_order_and_the_second_time_another():
    def ids(when, seed):
        return [(q.id, *map(inventory.name_of, options)) for q, options, _ in inventory.order(when, seed)]
    assert ids("before", 1) == ids("before", 1)
    assert len({tuple(ids(when, seed)) for when in inventory.TIMES for seed in range(5)}) == 10
    firsts = [ids("before", seed)[0][0] for seed in range(300)]
    assert len(set(firsts)) == 24  # none has a place of its own
    places = [row[1:].index("right") for seed in range(50) for row in ids("after", seed)]
    assert min(places.count(n) for n in range(3)) > 0.2 * len(places)


def test_nothing_is_told_the_first_time(file, widget):
    box = widget("before")
    whys = [o.why for q in ITEMS for o in q.options + q.reasons]
    texts = []
    for _ in ITEMS:
        for button in options_of(box):
            button.click()
            texts.append(seen(box))
        press(box, next(b.description for b in box.children[-1].children if b.description != "Back"))
    texts.append(seen(box))
    assert not any(why in text or questions.as_html(why) in text for why in whys for text in texts)
    assert not re.search(r"✓|✗|Right\.|Not quite", " ".join(texts))
    assert "24 of 24 are answered" in texts[-1]


def test_the_last_choice_counts_and_a_second_press_takes_it_back(file, widget):
    box = widget("before")
    first, second = options_of(box)[:2]
    first.click()
    second.click()
    assert first.description.startswith("○") and second.description.startswith("●")
    kept = json.loads(file.read_text(encoding="utf-8"))["inventory"]
    (key,) = [key for key in kept if key.startswith("before ")]
    question = next(q for q in ITEMS if key == f"before {q.id}")
    chosen = next(o for o in question.options if questions.as_plain(o.text) == second.description[2:])
    assert kept[key] == [inventory.name_of(chosen), None]
    second.click()
    assert progress.load("inventory")[key] == [None, None]


def test_it_goes_on_where_it_was(file, widget):
    box = widget("before")
    asked = box.children[1].value
    options_of(box)[0].click()
    press(box, "Next")
    later = box.children[1].value
    box = widget("before")
    assert box.children[1].value == later != asked and "2 of 24" in later
    press(box, "Back")
    assert box.children[1].value == asked and options_of(box)[0].description.startswith("●")
    assert box.children[-1].children[0].disabled


def test_the_gain_by_theme_and_what_is_not_right_yet(file, widget, pages):
    easy, hard = [q for q in ITEMS if q.theme == "masks"], [q for q in ITEMS if q.theme in ("heads", "block")]
    inventory.gain()
    assert "answered the questions above" in pages.pop()[1]
    answer_all(widget("before"), lambda q: q in easy)
    inventory.gain()
    assert "answered the questions above" in pages.pop()[1]  # the first time alone shows nothing
    answer_all(widget("after"), lambda q: q not in hard)
    inventory.gain()
    table, sentence, rest = (text for _, text in pages)
    rows = {row.split("  ")[0]: row.split()[-2:] for row in table.splitlines()}
    assert rows["masks"] == ["●●●", "●●●"] and rows["heads"] == ["○○○", "○○○"] and rows["positions"] == ["○○○", "●●●"]
    assert re.search(r"all +3 of 24 +18 of 24", table)
    assert "21 to gain, and you gained 15 of them: 71%" in sentence and "gets 5 right" in sentence
    for question in ITEMS:
        assert (questions.as_plain(question.ask).replace("'", "") in re.sub("['*]", "", rest)) == (question in hard)
    assert rest.count("as the first time") == rest.count("You said") == sum(1 + bool(q.reasons) for q in hard)


def test_both_tiers_have_to_be_right():
    two = next(q for q in ITEMS if q.reasons)
    reason = next(o.misconception for o in two.reasons if o.misconception)
    assert inventory.is_right(two, ["right", "right"]) and not inventory.is_right(two, ["right", reason])
    assert not inventory.is_right(two, ["right", None]) and not inventory.is_right(two, [None, "right"])
    one = next(q for q in ITEMS if not q.reasons)
    assert inventory.is_right(one, ["right", None])


def test_chance_is_what_drawing_at_random_gets():
    import random
    chance = random.Random(0)

    def drawn(q):
        return [inventory.name_of(chance.choice(tier)) if tier else None for tier in (q.options, q.reasons)]
    scores = [sum(inventory.is_right(q, drawn(q)) for q in ITEMS) for _ in range(2000)]
    assert abs(sum(scores) / 2000 - inventory.by_chance()) < 0.2


@pytest.mark.parametrize(("before", "after", "words"), [
    (24, 20, "nothing was left to gain; now 20"), (9, 9, "As many are right as before"), (9, 7, "2 fewer"),
    (0, 24, "24 to gain, and you gained 24 of them: 100%")])
def test_a_gain_that_is_none(before, after, words):
    assert words in inventory._in_words({"before": before, "after": after})


def test_without_the_first_time_the_second_says_what_it_can(file, widget, pages):
    answer_all(widget("after"), lambda q: True)
    inventory.gain()
    assert "24 are right" in pages[1][1] or "24 of 24 are right" in pages[1][1]
    assert "nobody can say" in pages[1][1] and len(pages) == 2  # nothing is left to explain
    inventory.take("before")
    assert "too late for the first" in pages[2][1]


def test_what_was_kept_is_kept(file, widget, pages):
    answer_all(widget("before"), lambda q: True)
    inventory.take("before")
    assert "24 of 24 are answered" in pages[0][1] and "right" not in pages[0][1].lower()


@pytest.mark.parametrize("damaged", [None, 3, "right", [], ["right"], ["nonsense", None], [["right"], None], {"answer": 1}])
def test_a_damaged_answer_counts_as_none(damaged):
    known = {f"before {q.id}": damaged for q in ITEMS} | {"seed": "x", "before": 7}
    assert all(given == [None, None] for given in inventory.answers("before", known).values())


def test_without_a_learner_nothing_is_asked_or_kept(nobody, tmp_path, monkeypatch, pages):
    monkeypatch.chdir(tmp_path)
    inventory.take("before")
    inventory.take("after")
    inventory.gain()
    assert len(pages) == 5 and not list(tmp_path.iterdir()) and "make lab" in pages[1][1]
    assert not any(o.text in text for _, text in pages for q in ITEMS for o in q.options if len(o.text) > 20)


def test_another_word_is_told():
    with pytest.raises(ValueError, match='"before" or "after"'):
        inventory.take("during")
