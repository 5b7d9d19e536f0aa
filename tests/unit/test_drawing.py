"""You are here: every lesson's drawing is valid, says in words what it shows, and can be read; the small pictures too."""

import re
from xml.etree import ElementTree

import pytest

from helpers.page import course, drawing, pictures, show
from helpers.store import progress

NUMBERS = [f"{n:02}" for n in range(21)]
SVG = "{http://www.w3.org/2000/svg}"
READABLE = 11  # pixels
NARROWEST = {840: 690, 360: 332}  # width of an arrangement: of the narrowest place that shows it, in pixels


def arrangements(number):
    """The wide and the narrow drawing of a lesson, parsed."""
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", drawing.html(number), re.DOTALL)]


def shown(svg):
    """[(part, state)] of everything in a drawing that has a state."""
    return [tuple(frame.get("class").split()) for frame in svg.iter(f"{SVG}rect") if frame.get("class")]


def test_on_a_telephone_a_block_is_opened_below_its_box():
    """The pointer of what is inside a block is in the last column, whatever a lesson leaves out before it."""
    for number in NUMBERS:
        (block,) = (f for f in arrangements(number)[1].iter(f"{SVG}rect") if (f.get("class") or "").startswith("block "))
        assert float(block.get("x")) + 25 == 306, number


def test_every_lesson_has_a_drawing():
    assert sorted(drawing.LESSONS) == NUMBERS and set(course.LESSONS) <= set(NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_it_is_two_valid_pictures_that_say_what_they_show(number):
    """As a label, because a <title> comes up as a hint wherever the pointer rests."""
    wide, narrow = arrangements(number)
    names = {element.get("id") for svg in (wide, narrow) for element in svg.iter() if element.get("id")}
    for svg in (wide, narrow):
        assert svg.get("role") == "img"
        assert svg.get("aria-label") == f"You are here: lesson {number}. {drawing.description(number)}"
    for link in narrow.iter(f"{SVG}use"):
        assert link.get("href")[1:] in names


def test_several_in_one_page_share_no_id_and_each_is_small():
    pages = [drawing.html(number) for number in NUMBERS]
    assert max(len(page.encode()) for page in pages) < 28_000
    ids = [set(re.findall(r'\bid="([^"]+)"', page)) for page in pages]
    assert sum(map(len, ids)) == len(set.union(*ids))
    for page in pages:
        found = re.findall(r'\bid="([^"]+)"', page)
        assert sorted(found) == sorted(set(found))


@pytest.mark.parametrize("number", NUMBERS)
def test_todays_part_is_lit_and_what_was_built_is_filled(number):
    today = set(drawing.LESSONS[number]["lit"].split())
    before = {part for other in NUMBERS[:int(number)] for part in drawing.LESSONS[other]["lit"].split()}
    for svg in arrangements(number):
        found = dict(shown(svg))
        assert set(shown(svg)) == set(found.items()), "a part is drawn in two states"
        source = found.pop("source", None)
        assert source in (None, "built")
        block = found.pop("block")
        assert set(found) | {"block"} == {*drawing.outer(number), *drawing.inner(number),
                                          *(["encoder"] if number in drawing.ENCODER_BESIDE else [])}
        for part, state in found.items():
            assert state == ("lit" if part in today else "built" if part in before else "grey"), part
        assert today <= set(found) | {"block"}, "what is lit is not in the drawing"
        within = any(found[part] == "lit" for part in drawing.inner(number))
        assert block == ("lit" if within or "block" in today else "built" if "block" in before else "grey")


def test_a_lesson_shows_no_part_that_its_model_does_not_have():
    assert "positions" in drawing.outer("15") and "positions" in drawing.outer("19")
    for number in ("16", "17", "18"):  # positions are turned into queries and keys there, and not added
        assert "positions" not in drawing.path(number) + drawing.description(number)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_words_say_what_the_drawing_shows(number):
    found = dict(shown(arrangements(number)[0]))
    labels = {part: said["label"] for part, said in drawing.PARTS.items()}
    line = drawing.path(number)
    assert "\n" not in line
    assert set(re.findall(r"\[([^]]+)\]", line)) == {labels[part] for part, state in found.items() if state == "lit"}
    for part in found.keys() - {"source"}:
        assert labels[part] in line
    heard = re.search(r"Today: (.*)\. Built before: (.*)\. Still to come: (.*)\.", drawing.description(number)).groups()
    for said, state in zip(heard, ("lit", "built", "grey"), strict=True):
        for part, drawn in found.items():
            assert part == "source" or (drawing.PARTS[part]["spoken"] in said) == (drawn == state), (part, state)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_word_can_be_read(number):
    for svg in arrangements(number):
        width = float(svg.get("viewBox").split()[2])
        scale, parents = NARROWEST[int(width)] / width, {child: parent for parent in svg.iter() for child in parent}
        texts = list(svg.iter(f"{SVG}text"))
        assert len(texts) > 30
        for text in texts:
            size, place = float(text.get("font-size") or svg.get("font-size")), text
            while place in parents:
                place = parents[place]
                factor = re.search(r"scale\(([\d.]+)\)", place.get("transform", ""))
                size *= float(factor[1]) if factor else 1
            assert size * scale >= READABLE, f"{text.text!r} is {size * scale:.1f} pixels high"


def test_a_lesson_that_there_is_not_is_told():
    with pytest.raises(KeyError) as told:
        show.map("21")
    assert str(told.value) == ("There is no lesson '21' to draw: a lesson's number is a string of two digits, "
                               '"00" to "20".')


def test_the_map_of_the_course_leads_to_every_lesson_and_knows_what_was_passed(monkeypatch):
    known = {"exercises": dict.fromkeys(["softmax", "cosine_similarity", "nearest_neighbours", "analogy"], True),
             "predictions": {}}
    monkeypatch.setattr(progress, "load", known.get)
    html, text = pictures.course_map()
    listed = ElementTree.fromstring(re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL).replace("<br>", "<br/>"))
    stops = listed.findall("ol/li")
    assert [stop.find("a").get("href") for stop in stops] == [lesson.file for lesson in course.LESSONS.values()]
    said = ["".join(stop.find("p").itertext()) for stop in stops]
    lines = text.splitlines()
    for lesson, stop, line in zip(course.LESSONS.values(), said, lines, strict=True):
        assert all(part in said for said in (stop, line) for part in (lesson.title, f"{lesson.minutes} minutes"))
    assert "✓ all passed" in said[1] and "1 of 3 exercises passed" in said[2] and said[3].endswith("3 exercises")
    shares = [stop.find("i").get("style") for stop in stops[:3]]
    assert " 0%" in shares[0] and "100%" in shares[1] and "33%" in shares[2]
    known["predictions"] = {"00-groups": "two"}
    html, text = pictures.course_map()
    assert " 100%" in re.findall(r'<i style="([^"]+)"', html)[0] and "✓ prediction made" in text.splitlines()[0]
