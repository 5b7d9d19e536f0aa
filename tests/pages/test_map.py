"""You are here, in a page: everything lies within its drawing, no word covers another, and each page gets what fits it."""

import re

import pytest

from helpers.page import drawing, pictures
from helpers.page import show as shown
from helpers.page.sheet import COLOURS

NUMBERS = sorted(drawing.LESSONS)
MEASURE = """() => [...document.querySelectorAll('svg')].filter(svg => svg.getBoundingClientRect().width > 0).map(svg => {
    const page = svg.getBoundingClientRect()
    const places = list => [...list].map(e => [e.textContent.trim().slice(0, 30), e.getBoundingClientRect()])
        .map(([said, box]) => [said, box.left - page.left, box.top - page.top, box.right - page.left, box.bottom - page.top])
    const known = getComputedStyle(svg.querySelector('rect')).fill
    return {id: svg.id, width: page.width, height: page.height, ground: known,
            words: places(svg.querySelectorAll('text')), shapes: places(svg.querySelectorAll('rect, path, circle, use'))}
})"""


@pytest.fixture(scope="module")
def page(browser):
    """One page for all that is shown here: each test gives it a size and all of its contents."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture
def show(page):
    """Show HTML at a width, in a page that says that it is light or dark, and measure the drawings in it."""
    def measured(html, width, dark=""):
        page.set_viewport_size({"width": width, "height": 700})
        page.set_content(f"<!doctype html><body {dark} style='margin:16px'>{html}</body>")
        return page.evaluate(MEASURE)
    return measured


@pytest.mark.parametrize("width", [1366, 390])
def test_nothing_lies_outside_and_no_word_covers_another(show, width):
    drawings = show("".join(map(drawing.html, NUMBERS)), width)
    assert [found["id"] for found in drawings] == [f"map-{n}-{'wide' if width > 690 else 'narrow'}" for n in NUMBERS]
    for found in drawings:
        assert len(found["words"]) > 30 and len(found["shapes"]) > 40
        for said, left, top, right, bottom in found["words"] + found["shapes"]:
            assert left >= 0 and top >= 0 and right <= found["width"] and bottom <= found["height"], (found["id"], said)
        words = [word for word in found["words"] if word[0]]
        for i, (said, left, top, right, bottom) in enumerate(words):
            for other, left2, top2, right2, bottom2 in words[:i]:
                across, down = min(right, right2) - max(left, left2), min(bottom, bottom2) - max(top, top2)
                assert across < 3 or down < 3, f"{found['id']}: {said!r} covers {other!r}"


@pytest.mark.parametrize("dark, ground", [
    ("", 0), ("data-theme=light", 0), ("data-jp-theme-light=true", 0),
    ("data-theme=dark", 1), ("data-jp-theme-light=false", 1)])
def test_a_page_that_says_that_it_is_dark_gets_dark_colours(show, dark, ground):
    (found,) = show(drawing.html("07"), 1366, dark)
    rgb = tuple(int(COLOURS["page"][ground][i:i + 2], 16) for i in (1, 3, 5))
    assert found["ground"] == f"rgb{rgb}"


def test_without_style_the_wide_one_is_left(show):
    (found,) = show(re.sub(r"<style>.*?</style>", "", drawing.html("10"), flags=re.DOTALL), 1366)
    assert found["id"] == "map-10-wide" and found["width"] > 690


@pytest.mark.parametrize("width, columns", [(900, 5), (390, 2)])
def test_the_map_of_the_course_stands_in_columns(page, width, columns):
    page.set_viewport_size({"width": width, "height": 700})
    page.set_content(pictures.course_map()[0])
    lefts = page.evaluate("() => [...document.querySelectorAll('li svg')].map(e => e.getBoundingClientRect().left)")
    assert len(set(lefts)) == columns


def test_a_lesson_turns_its_figures_round_in_any_dark_jupyterlab(page, monkeypatch):
    monkeypatch.setattr(shown.progress, "live", lambda: True)
    told = []
    monkeypatch.setattr(shown, "display", lambda html, *_: told.append(html))
    shown.map("05")
    page.set_content("<body data-jp-theme-light='false'><div class='jp-RenderedImage'><img>"
                     f"<img class='jp-needs-dark-background'></div><div id='cell'>{told[1]}</div>")
    page.evaluate("document.getElementById('cell').remove()")  # as when the cell is run again, or cleared
    turned = "[...document.querySelectorAll('img')].map(node => getComputedStyle(node).filter !== 'none')"
    assert page.evaluate(turned) == [True, False]
    assert page.evaluate(f"(document.body.dataset.jpThemeLight = 'true', {turned})") == [False, False]
