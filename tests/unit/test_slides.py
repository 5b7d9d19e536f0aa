"""Each lesson's talk, as the rule makes it: 30 to 45 minutes, a vote for each prediction, the known misconceptions."""

import re

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell

from helpers.checks import exercise
from helpers.page import questions
from helpers.page.course import LESSONS
from scripts import slides
from scripts.minutes import parts

TALKS = [number for number in LESSONS if number != "00"]


@pytest.fixture(scope="module")
def talks():
    return {number: slides.slides(number) for number in TALKS}


@pytest.mark.parametrize("number", TALKS)
def test_a_talk_takes_30_to_45_minutes(talks, number):
    takes = slides.minutes(talks[number])
    assert 30 <= takes <= 45, (
        f"The talk to lesson {number} takes {takes:.0f} minutes: leave a slide out, or put one in, with "
        '"slideshow": {"slide_type": "skip"} or "slide" in the metadata of its cell.')


@pytest.mark.parametrize("number", TALKS)
def test_what_a_talk_has_is_what_the_lesson_has(talks, number):
    core, _ = parts(nbformat.read(slides.ROOT / "notebooks" / LESSONS[number].file, as_version=4))
    core = [cell for cell in core if cell.metadata.get("slideshow", {}).get("slide_type") != "skip"]
    code = [cell for cell in core if cell.cell_type == "code"]
    words = "\n".join(cell.source for cell in core if cell.cell_type == "markdown")
    wanted = {"vote": sum(len(re.findall(r"^ *predict\(", cell.source, re.MULTILINE)) for cell in code),
              "answer": sum(len(re.findall(r"^ *reveal\(", cell.source, re.MULTILINE)) for cell in code),
              "figure": sum("image/png" in str(cell.outputs) for cell in code),
              "exercise": len(re.findall("^###? Exercise", words, re.MULTILINE))}
    found = [slide.kind for slide in talks[number]]
    assert {kind: found.count(kind) for kind in wanted} == wanted
    assert (found[0], found[-1]) == ("title", "recap")


@pytest.mark.parametrize("number", TALKS)
def test_an_answer_marks_one_option_of_its_question(talks, number):
    for vote, answer in zip(*([s for s in talks[number] if s.kind == kind] for kind in ("vote", "answer")), strict=True):
        asked, told = vote.cells[-1].source, answer.cells[-1].source
        assert "right" not in re.findall(r"<li([^>]*)>", asked) and told.count("<li class=right>") == 1, asked


@pytest.mark.parametrize("number", TALKS)
def test_the_notes_name_the_misconceptions(talks, number):
    """Those of the checkers at their exercise, and those of the bank at the beginning; none of the inventory, whose answers
    nobody may be told before it is taken."""
    exercises = [slide for slide in talks[number] if slide.kind == "exercise"]
    notes = {slide.cells[0].source.split("\n")[0]: "\n".join(slide.notes) for slide in exercises}
    for title, words in notes.items():
        for name in set(re.findall(r"`(\w+)", title)) & set(LESSONS[number].exercises):
            assert all(f"*{m.id}*: {m.hint}" in words for m in exercise(name).misconceptions), title
    assert any("Mistakes to expect" in words for words in notes.values())
    everything = "\n".join(note for slide in talks[number] for note in slide.notes)
    for question in questions.load()[1].values():
        if question.lesson == number:
            wrong = [o.why for o in question.options if o.misconception]
            assert all((why in everything) != question.inventory for why in wrong), question.id


@pytest.mark.parametrize(("paragraph", "wanted"), [
    ("One. Two? Three!", ["One.", "Two?", "Three!"]),
    ("See Clark et al. 2019. *My date. Our date.* You (a. B) knew.",
     ["See Clark et al. 2019.", "*My date. Our date.*", "You (a. B) knew."]),
])
def test_sentences(paragraph, wanted):
    assert slides.sentences(paragraph) == wanted


def test_a_slide_of_words_names_what_is_new_and_has_the_first_sentences():
    words = ["It is late. We go on. A share is called a **weight** here, as in any average. What decides it?"]
    assert slides.spoken(words, 12) == "A share is called a **weight** here, as in any average."
    assert slides.spoken(words, 15) == "It is late.\n\nA share is called a **weight** here, as in any average."
    assert slides.spoken(["It is late. We go on, all of us. Soon there."], 9) == "It is late.\n\nWe go on, all of us."
    formula = ["It is late. We get:", "$$a = b$$", "We go on."]
    assert slides.spoken(formula, 10) == "We get:\n\n$$a = b$$"
    assert slides.spoken(formula, 13) == "It is late.\n\nWe get:\n\n$$a = b$$"


def test_short_slides_are_joined():
    def slide(kind, *words):
        return slides.Slide(kind, [new_markdown_cell(one) for one in words], [kind], minutes=1)

    where = '<p class="where">A</p>'
    made = slides.joined([slide("section", "## A"), slide("steps", where, "one"),
                          slide("idea", where, "two"), slide("code", where, "three"),
                          slide("code", where, "\n".join(15 * ["long"])), slide("vote", "four")])
    assert [(s.kind, [cell.source for cell in s.cells], s.notes, s.minutes) for s in made] == [
        ("steps", ["## A", "one"], ["section", "steps"], 2), ("idea", [where, "two", "three"], ["idea", "code"], 2),
        ("code", [where, "\n".join(15 * ["long"])], ["code"], 1), ("vote", ["four"], ["vote"], 1)]


def test_a_talk_as_a_notebook_is_valid_and_has_the_metadata():
    book = slides.talk("07")
    nbformat.validate(book)
    kinds = [cell.metadata.slideshow.slide_type for cell in book.cells]
    assert set(kinds) == {"slide", "subslide", "-", "notes"} and kinds[0] == "slide"


def test_a_cell_may_say_that_it_is_a_slide_or_none(tmp_path, monkeypatch):
    name = LESSONS["09"].file
    book = nbformat.read(slides.ROOT / "notebooks" / name, as_version=4)
    code = [cell for cell in parts(book)[0] if cell.cell_type == "code"]
    figure = next(cell for cell in code if "image/png" in str(cell.outputs))
    before, possible = shown_in(slides.slides("09")), shown_in(slides.candidates("09"))
    short = next(c for c in code if (source := slides.narrow(c.source)) in possible and source not in before)
    figure.metadata["slideshow"], short.metadata["slideshow"] = {"slide_type": "skip"}, {"slide_type": "slide"}
    (tmp_path / "notebooks").mkdir()
    nbformat.write(book, tmp_path / "notebooks" / name)
    monkeypatch.setattr(slides, "ROOT", tmp_path)
    now = slides.slides("09")
    assert slides.narrow(short.source) in shown_in(now)
    assert figure.id not in [cell.id for slide in now for cell in slide.cells]


def shown_in(talk):
    """The source of all cells of a talk in one string."""
    return "\n".join(cell.source for slide in talk for cell in slide.cells)
