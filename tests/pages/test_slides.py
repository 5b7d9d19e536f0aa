"""The talks in a browser: each slide fits 1280 x 720 and can be read, and no other machine is asked for anything."""

import pytest
from browser import Window

from helpers.page.course import LESSONS
from scripts import slides

EACH = [pytest.param(number, marks=[] if number in ("02", "07", "16") else pytest.mark.weekly)
        for number in LESSONS if number != "00"]
# Of slide k, at each of its steps: the box around all that is seen, and the smallest letters that are in no drawing.
SEEN = """k => {
  const at = Reveal.getIndices(Reveal.getSlides()[k]), found = [];
  Reveal.slide(at.h, at.v, -1);
  for (;;) {
    const slide = Reveal.getCurrentSlide(), parts = [...slide.querySelectorAll(".fit, .fit *")].filter(one =>
      one.checkVisibility({opacityProperty: true, visibilityProperty: true}) && !one.closest("mjx-assistive-mml, svg *"));
    const boxes = parts.map(one => one.getBoundingClientRect()).filter(box => box.width && box.height);
    const written = one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    const letters = parts.filter(one => !one.closest("svg, mjx-container") && written(one))
      .map(one => parseFloat(getComputedStyle(one).fontSize) * one.currentCSSZoom);
    const least = side => Math.min(...boxes.map(box => box[side])), most = side => Math.max(...boxes.map(box => box[side]));
    found.push([slide.querySelector("h1, h2, h3, .where").textContent,
      least("left"), least("top"), most("right"), most("bottom"), Math.min(...letters)]);
    if (!Reveal.availableFragments().next) return found;
    Reveal.nextFragment();
  } }"""


@pytest.mark.parametrize("number", EACH)
def test_every_slide_fits_and_nothing_is_fetched(browser, tmp_path, number):
    page_file = tmp_path / "talk.html"
    page_file.write_text(slides.page(number), encoding="utf-8")
    window = Window(browser, 1280, 720)
    page = window.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-ready]")
    total = page.evaluate("Reveal.getTotalSlides()")
    assert total == len(slides.slides(number))
    for k in range(total):
        for title, left, top, right, bottom, letters in page.evaluate(SEEN, k):
            assert left >= 0 and top >= 0 and right <= 1280 and bottom <= 720, (number, k, title, left, top, right, bottom)
            assert letters >= 14, (number, k, title, letters)
    assert page.locator("mjx-merror").count() == 0
    assert page.locator('img:not([alt]), img[alt=""], img[alt^="No description"]').count() == 0
    window.context.close()
    assert window.outside == [page_file.as_uri()] and not window.heard
