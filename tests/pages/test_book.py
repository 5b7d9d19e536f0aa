"""The book: it builds with the network closed, and every page of it works when opened from the disk."""

import json
import os
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from browser import REPO, Window, look_at_lesson_12, served
from PIL import Image

from helpers.page import claims
from helpers.page.course import LESSONS as LESSONS_BY_NUMBER
from scripts import book as builder
from scripts import edition
from scripts import register as pages_register
from scripts.setup import Stop

HTML = REPO / "build" / "book" / "html"
SANDBOXES = "frames => frames.map(frame => frame.getAttribute('sandbox'))"
LESSONS = sorted(path.stem for path in (REPO / "notebooks").glob("[0-9]*.ipynb"))
SOLUTIONS = sorted(path.stem for path in (REPO / "notebooks" / "solutions").glob("[0-9]*.ipynb"))


@pytest.fixture(scope="module")
def book(built):
    """The pages: name -> Page."""
    return {path.relative_to(HTML).as_posix(): Page(path) for path in sorted(HTML.rglob("*.html"))
            if HTML / "run" not in path.parents}  # the browser edition: test_edition.py


class Page(HTMLParser):
    """What one page offers to links (``ids``) and where it leads: ``links``, ``loads`` and ``next``."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads, self.next = set(), [], [], None
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        has = dict(attributes)
        self.ids |= {has[name] for name in ("id", "name") if has.get(name)}
        if has.get("href") is not None:
            (self.loads if tag == "link" and has.get("rel") in ("stylesheet", "icon") else self.links).append(has["href"])
        if has.get("src"):
            self.loads.append(has["src"])
        if tag == "link" and has.get("rel") == "next":
            self.next = has["href"]


def test_it_builds_with_the_network_closed(built, book, record_property):
    *_, python, last = built["said"].strip().splitlines()
    assert last.endswith("in a browser.") and str(HTML / "index.html") in last
    folder = os.environ.get(edition.VARIABLE)
    assert f"copied from {folder} and verified" in python if folder else "from its own address" in python
    pages, run, pyodide = (sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
                           for folder in (HTML, HTML / "run", HTML / "run" / "pyodide"))
    record_property("say", f"the book: {len(book)} pages, {pages - run:.0f} MB, with {run - pyodide:.0f} MB of JupyterLite "
                    f"and {pyodide:.0f} MB of Pyodide, built in {built['seconds']:.0f} s")
    assert {f"{name}.html" for name in LESSONS} | {f"solutions/{name}.html" for name in SOLUTIONS} <= set(book)
    assert pages - run < 40 and run - pyodide < 30 and pyodide < 40 and bool(pyodide) == bool(folder)


def test_every_link_and_anchor_leads_somewhere(book):
    wrong = []
    for name, page in book.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme == "data" and link in page.loads:  # in the page itself
                continue
            if parts.scheme or link.startswith("//"):
                if link in page.loads or parts.scheme not in ("http", "https", "mailto"):
                    wrong.append(f"{name} loads {link[:80]}")
                continue
            target = os.path.normpath(os.path.join(os.path.dirname(name), unquote(parts.path))) if parts.path else name
            if not (HTML / target).is_file():
                wrong.append(f"{name} leads to {link}")
            elif parts.fragment and parts.fragment not in book[target].ids:
                wrong.append(f"{name} leads to {link}, and {target} has no such place")
    assert not wrong, "\n".join(wrong)


def test_every_exercise_leads_to_its_own_solution(book):
    for name in LESSONS[1:]:
        exercises = re.findall(r"<h\d>Exercise \d+ · .*?<span class=\"pre\">(\w+)\(", book[f"{name}.html"].text)
        assert exercises, name
        for exercise in exercises:
            place = f"solutions/{name}.html#solution-{exercise.replace('_', '-')}"
            assert place in book[f"{name}.html"].links, f"{name}: no link to {place}"


def test_next_leads_through_all_lessons(book):
    seen, name = [], "index.html"
    while book[name].next and len(seen) < len(LESSONS):
        name = book[name].next
        seen.append(name.removesuffix(".html"))
    assert seen == LESSONS


def test_a_link_leaves_no_reader_nowhere():
    for text, staged in [
        ("[lesson 02](../notebooks/02_attention_as_a_weighted_average.ipynb#2.-From-similarity-to-weights:-softmax)",
         "[lesson 02](../02_attention_as_a_weighted_average.ipynb#2-from-similarity-to-weights-softmax)"),
        ("[the notes](../helpers/page/show.py)", "the notes (`helpers/page/show.py`)"),
    ]:
        assert builder.relink(text, "docs/teaching.md") == staged
    with pytest.raises(Stop, match="docs/teaching.md links to nowhere.md, which does not exist: mend the link.$"):
        builder.relink("[x](nowhere.md)", "docs/teaching.md")


def test_a_page_leads_to_the_services_once_the_address_is_known(monkeypatch):
    lesson = "notebooks/05_scaling.ipynb"
    monkeypatch.setattr(builder.address, "known_name", lambda root: None)
    assert "colab.research" not in builder.notebook(lesson)
    monkeypatch.setattr(builder.address, "known_name", lambda root: "ada/course")
    page = builder.notebook(lesson)
    assert "https://colab.research.google.com/github/ada/course/blob/main/notebooks/05_scaling.ipynb" in page
    assert page.count("Open on Binder") == 1 and "Tests" not in json.loads(page)["cells"][0]["source"]


# In a browser

@pytest.fixture(scope="module")
def reader(book, browser):
    reader = Window(browser)
    yield reader
    reader.context.close()


@pytest.fixture
def page(reader):
    reader.heard.clear(), reader.outside.clear()
    page = reader.new_page()
    yield page
    page.close()
    assert not reader.problems()


def address(name):
    return (HTML / name).as_uri()


def some(names):
    """Every ninth of these pages of notebooks; the weekly run opens all."""
    return names[1::9]


@pytest.mark.parametrize("which", ["some", pytest.param("all", marks=pytest.mark.weekly)])
def test_every_page_opens(book, page, which):
    """No request, no error, no formula left raw, and nothing that pushes the page wider than the window."""
    page.add_init_script("try { localStorage.removeItem('theme') } catch { /* a frame in a sandbox has none */ }")
    of_notebooks = [name for name in book if (REPO / "notebooks" / name).with_suffix(".ipynb").exists()]
    assert len(of_notebooks) >= 3 * len(SOLUTIONS)
    of_its_own = [name for name in book if name not in of_notebooks]
    for name in [*of_its_own, *some(of_notebooks)] if which == "some" else book:
        page.set_viewport_size({"width": 1366, "height": 900})
        page.goto(address(name))
        page.evaluate("() => window.MathJax && MathJax.startup.promise")
        formulas = page.locator(".math").count()
        assert page.locator(".math mjx-container").count() >= formulas, name
        assert page.locator("[data-mml-node=merror]").count() == 0, f"{name}: a formula that MathJax does not understand"
        for width in (1366, 390):
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} wide in a window of {width}"
        unnamed = page.locator("article img:not([alt]), article img[alt=''], iframe:not([title])").count()
        assert not unnamed, f"{name}: {unnamed} figures say nothing to a screen reader"


def test_a_report_names_the_page_and_the_cell_that_was_clicked_on(page, monkeypatch):
    """The link is put in by hand: the book as tested does not know where the course lives."""
    monkeypatch.setattr(builder.address, "known_name", lambda root: None)
    assert builder.reports() == {}
    monkeypatch.setattr(builder.address, "known_name", lambda root: "ada/course")
    form = builder.reports()["Is something wrong on this page?"]
    assert form.startswith("https://github.com/ada/course/issues/new?template=mistake.yml&version=")
    page.goto((HTML / "05_scaling.html").as_uri())
    page.evaluate("form => { document.querySelector('p.foot').innerHTML += `<a class='report' href='${form}'>…</a>` }", form)
    assert page.locator("p.foot").inner_text().startswith("Version ")
    cell = page.locator("div.cell[class*='tag_id-']").nth(3)
    cell.click(position={"x": 2, "y": 2})
    named = page.locator("a.report").get_attribute("href").partition("&cell=")[2]
    assert named and f"tag_id-{named}" in cell.get_attribute("class").split()
    page.locator("p.foot").click()
    assert named in page.locator("a.report").get_attribute("href"), "a click at the foot changes nothing"


def test_a_figure_is_described_by_the_words_beside_it(book):
    said = {name: re.findall(r'<img alt="([^"]*)"[^>]* src="[^"]*_images', book[f"{name}.html"].text) for name in LESSONS}
    assert sum(map(len, said.values())) > 100
    assert not [name for name, alts in said.items() for alt in alts if len(alt) < 20 or alt.startswith("Figure;")]
    assert any("all blue halves go to head 0" in alt for alt in said["07_multi_head_attention"])


def test_the_front_page_has_the_live_page_and_what_a_stranger_looks_for(book, page):
    page.goto(address("index.html"))
    assert page.locator("iframe").evaluate_all(SANDBOXES) == ["allow-scripts"]
    first = page.frame_locator("iframe.explainer").locator("#next button").first
    first.wait_for()
    assert first.inner_text() == "anna"
    for words in ("Run lesson 01 now", "Install", "For teachers", "What people say about attention"):
        place = page.locator("article a", has_text=words).first.bounding_box()
        assert place and place["y"] < 900, f"{words} is not seen at once"


@pytest.mark.parametrize("width, columns", [(1366, 5), (768, 4), (390, 1)])
def test_the_map_is_a_path_of_one_picture_a_lesson(page, width, columns):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address("index.html"))
    stops = page.locator("ol.path li")
    links = stops.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert links == [f"{name}.html" for name in LESSONS]
    pictures = [picture.bounding_box() for picture in page.locator("ol.path svg").all()]
    assert len(pictures) == len(LESSONS) and len({round(box["x"]) for box in pictures}) == columns
    assert all(50 < box["width"] < 100 for box in pictures)
    names = [name.bounding_box() for name in page.locator("ol.path .name").all()]
    assert all(box["width"] > 60 and box["height"] < 90 for box in names), "a title has too little room"


def test_pages_say_what_they_are_where_they_are_shared(book):
    for name in ("index.html", f"{LESSONS[4]}.html", "register.html", f"experiments/{LESSONS[4]}.html"):
        said = dict(re.findall(r'<meta (?:name|property)="([\w:]+)" content="(.*?)"', book[name].text))
        assert 40 < len(said["description"]) <= 200 and said["og:description"] == said["description"], name
        assert said["twitter:card"] == "summary_large_image" and len(said["og:title"]) > 10, name
        assert said["og:image"] == said["twitter:image"] and "://" not in said["og:image"], name
        assert (HTML / name).parent.joinpath(said["og:image"]).resolve().is_file(), name


STORE = """progress => new Promise(done => {
    const asked = indexedDB.open("JupyterLite Storage - /run/", 1)
    asked.onupgradeneeded = () => asked.result.createObjectStore("files")
    asked.onsuccess = () => {
        const writing = asked.result.transaction("files", "readwrite")
        const file = {name: ".progress.json", format: "text", content: JSON.stringify(progress)}
        writing.objectStore("files").put(file, file.name)
        writing.oncomplete = () => { asked.result.close(); done() }
    }})"""


def test_the_path_knows_what_was_passed_in_this_browser_and_on_this_machine(page):
    passed = {"exercises": ["softmax"], "predictions": ["00-bears"]}
    with served(edition.server(HTML, 0, lambda: passed)) as root:
        page.goto(f"{root}index.html")
        stops = page.locator("ol.path li")
        stops.nth(2).locator(".known", has_text="1 of 3 passed").wait_for()
        assert stops.nth(0).get_attribute("class") == "passed begun" and "1 prediction" in stops.nth(0).inner_text()
        assert page.get_by_role("link", name="Go on with lesson 02").get_attribute("href") == f"{LESSONS[2]}.html"
        assert stops.nth(2).get_attribute("aria-current") == "step"
        exercises = list(LESSONS_BY_NUMBER["02"].exercises)
        page.evaluate(STORE, {"exercises": dict.fromkeys(exercises, "passed")})  # as the browser edition keeps it
        page.goto(f"{root}{LESSONS[1]}.html")
        page.locator("button[data-predict]").first.click()
        page.goto(f"{root}index.html")
        stops.nth(2).locator(".known", has_text="all passed").wait_for()
        assert "1 prediction" in stops.nth(1).inner_text()
        assert page.get_by_role("link", name="Go on with lesson 03").is_visible()
        every = sum(len(lesson.exercises) for lesson in LESSONS_BY_NUMBER.values())
        told = page.locator("#progress").inner_text()
        assert f"passed {len(exercises)} of {every} exercises and made 2 predictions" in told
    assert json.loads((HTML / edition.KNOWN).read_text(encoding="utf-8")) == {}, "and nothing of whoever built the book"


def test_a_lesson_has_a_button_or_says_how_to_install(book, page):
    for name in LESSONS:
        button = f"run/notebooks/index.html?path={name}.ipynb"
        assert (button in book[f"{name}.html"].links) == (f"notebooks/{name}.ipynb" in edition.RUNS), name
        assert button in book[f"{name}.html"].links or "index.html#run-it" in book[f"{name}.html"].links, name
    page.goto(address(f"{LESSONS[1]}.html"))
    page.locator("a.run").click()  # nothing runs in pages that are opened as files: it says what to do
    assert "make book ARGS=--serve" in page.locator("p.run").inner_text() and page.url == address(f"{LESSONS[1]}.html")


def test_the_register_sorts_and_filters_and_its_address_says_so(book, page):
    entries = list(claims.register().values())
    page.goto(address("register.html"))
    rows = page.locator("#register tbody tr:visible")

    def column(number):
        return rows.locator(f"td:nth-child({number})").all_inner_texts()

    assert sorted(column(1)) == sorted(entry["id"] for entry in entries)
    said = [entry["id"] for entry in entries if entry.get("kind", "claim") == "claim"]
    assert column(1)[:len(said)] == sorted(said, key=lambda name: (name not in pages_register.FIRST, int(name[1:])))
    head = page.get_by_role("button", name="Claim", exact=True).first
    head.focus()
    page.keyboard.press("Enter")
    for order in "ascending", "descending":      # each list by itself
        for table in page.locator("#register table").all():
            ids = table.locator("tbody tr td:first-child").all_inner_texts()
            assert ids == sorted(ids, key=lambda name: int(name[1:]), reverse=order == "descending")
            assert table.locator(f"th[aria-sort={order}]").count() == 1
        head.click()
    head.click()

    page.get_by_label("Verdict").select_option("does not hold")
    wanted = [entry["id"] for entry in entries if entry["verdict"].startswith("does not hold")]
    assert sorted(column(1)) == sorted(wanted) and all(text.startswith("does not hold") for text in column(3))
    assert page.locator("#register-count").inner_text() == f"{len(wanted)} of {len(entries)} claims"
    lesson = next(entry["lesson"] for entry in entries if entry["verdict"].startswith("does not hold"))
    page.locator("#by-lesson").select_option(lesson)
    assert set(column(5)) == {lesson}
    before, shared = column(1), page.url
    assert f"lesson={lesson}" in shared and "sort=-Claim" in shared

    page.goto(address("index.html"))
    page.goto(shared)                            # whoever gets the address sees the same
    assert column(1) == before and page.get_by_label("Verdict").input_value() == "does not hold"
    other = next(entry for entry in entries if entry["id"] not in before)
    page.evaluate(f"location.hash = '#{other['id']}'")  # a link to one claim opens it, whatever was chosen
    page.locator(f"#{other['id']} details[open]").wait_for()
    assert "Criterion" in page.locator(f"#{other['id']}").inner_text() and page.get_by_label("Verdict").input_value() == ""
    page.get_by_role("searchbox", name="Word").fill("zzz")
    assert rows.count() == 0 and f"0 of {len(entries)}" in page.locator("#register-count").inner_text()


def test_a_record_says_one_plain_thing_first_and_the_rest_behind_a_click(page):
    page.goto(address("register.html"))
    for entry in claims.register().values():
        assert len(pages_register.plain(entry).split()) <= 61, entry["id"]  # and a sign that something follows
        row = page.locator(f"#{entry['id']}")
        kept = row.locator("dd").all_text_contents()
        for field in ("criterion", "n", "interval", "reach", "source", *({"power", "changed"} & set(entry))):
            assert entry[field] in kept, f"{entry['id']} does not say its {field}"
        assert not row.locator("dd").first.is_visible()


def test_a_dot_leads_to_its_claim(page):
    page.goto(address("register.html"))
    dots, entries = page.locator(".dots a"), claims.register()
    assert dots.count() == len(entries)
    dot = page.locator(".dots .not-settled a").last
    known = entries[dot.get_attribute("href")[1:]]
    assert dot.get_attribute("title") == known["claim"] and known["verdict"].startswith("not settled")
    dot.click()
    page.locator(f"#{known['id']} details[open]").wait_for()


def test_a_card_takes_a_guess_and_then_stamps(page):
    page.goto(address("register.html"))
    cards = page.locator("section.card")
    known = claims.register()
    assert cards.count() == 13
    for number, card in enumerate(cards.all()):
        entry = known[card.get_attribute("data-claim")]
        stamp, told = card.locator(".stamp"), card.get_by_role("status")
        assert not stamp.is_visible() and pages_register.kind(entry["verdict"]) not in told.inner_text()
        guess = card.get_by_role("button", name="It holds" if number % 2 else "It does not", exact=True)
        guess.focus()
        page.keyboard.press("Enter")
        assert stamp.is_visible() and stamp.text_content() == pages_register.kind(entry["verdict"])
        assert f"The verdict: {entry['verdict']}" in told.inner_text(), "a screen reader does not hear the stamp"
        assert guess.evaluate("button => button === document.activeElement && button.ariaPressed === 'true'")
        assert pages_register.plain(entry) in card.inner_text()
    end = page.locator(".card.end")
    holding = sum(entry["verdict"] == "holds" for entry in known.values())
    assert end.is_visible() and f"Of all {len(known)} in the register, {holding} hold" in end.inner_text()


def test_a_card_whose_record_has_changed_is_told():
    entry = claims.register()["C51"]
    card = {"id": "C51", "axis": [0, 100, " %"], "bars": [["both", "both right {low}% to {high}%"]],
            "mark": [50, "at least half of the pairs", "half"]}
    assert pages_register.drawing(card, entry)["bars"][0]["at"] == int(re.search(r"both right (\d+)%", entry["interval"])[1])
    for field in ("interval", "criterion"):
        with pytest.raises(Stop, match="in the record C51, which no longer says so: mend the card"):
            pages_register.drawing(card, entry | {field: "another"})


def test_a_claim_has_a_page_to_share(page):
    for entry in filter(pages_register.is_claim, claims.register().values()):
        assert Image.open(HTML / "claims" / f"{entry['id']}.png").size == (1200, 630)
        made = (HTML / "claims" / f"{entry['id']}.html").read_text(encoding="utf-8")
        assert f'property="og:image" content="{entry["id"]}.png"' in made
    page.goto(address("claims/C98.html"))
    assert claims.register()["C98"]["verdict"] in page.locator(".quote").text_content()
    assert pages_register.plain(claims.register()["C98"]) == page.locator(".finding").inner_text()
    page.get_by_role("link", name="All sentences").click()
    page.locator("#C98 details[open]").wait_for()


def test_a_result_from_elsewhere_names_its_claim():
    entry = claims.register()["C98"]
    assert "page=C98" in pages_register.one(entry, "ada/course") and "issues/new" not in pages_register.one(entry)


def test_the_views_of_lesson_12_draw(page):
    page.goto(address(f"{LESSONS[12]}.html"))
    assert set(page.locator("iframe").evaluate_all(SANDBOXES)) == {"allow-scripts"}
    look_at_lesson_12(page)


def search(page, start, word):
    page.goto(start)
    page.locator(".sidebar-search").fill(word)
    page.keyboard.press("Enter")


def found_by_search(page, start):
    search(page, start, "softmax")
    link = page.locator("ul.search a", has_text=re.compile("^02 ·")).first
    link.wait_for()
    return link


def test_search_finds_a_word_in_the_glossary_first_and_in_solutions_last(page):
    found = found_by_search(page, address("index.html"))
    page.locator(".search-summary", has_text="finished").wait_for()
    links = page.locator("ul.search a").all_inner_texts()
    assert links[0] == "Glossary > softmax"
    solutions = [link.endswith(": solutions") for link in links]
    assert any(solutions) and solutions == sorted(solutions)
    found.click()
    page.wait_for_url("**/02_attention_as_a_weighted_average.html*")


def test_search_suggests_the_nearest_word(page):
    search(page, address("index.html"), "sofmax")
    page.locator("p.suggestion a").click()
    page.locator("ul.search a").first.wait_for()
    assert page.locator("#search-results h2").inner_text() == "Search Results"


def test_search_shows_the_text_around_a_word_where_a_server_is(page):
    with served(edition.server(HTML, 0)) as root:
        found_by_search(page, f"{root}index.html")
        page.locator("ul.search p.context", has_text=re.compile("softmax", re.IGNORECASE)).first.wait_for()
        page.wait_for_load_state("networkidle")
        around = page.locator("ul.search p.context").all_inner_texts()
        assert len(around) > 10 and not [text for text in around if "scalemask" in text], "labels of a drawing in one word"
        assert "positive and sum to 1" in around[0]
        assert not [text for text in around if "keepdims=" in text], "code of a solution"


def test_dark_mode(page):
    page.emulate_media(color_scheme="light")
    page.goto(address(f"{LESSONS[1]}.html"))
    colour = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).reduce((sum, c) => sum + +c, 0)"
    note = page.locator("div.cell_output [style*='background:rgba']").first
    turned, ink = "node => getComputedStyle(node).filter", "node => getComputedStyle(node).color.match(/\\d+/g)[0] / 255"
    figure = page.locator("div.cell_output img").first
    assert page.evaluate(colour) > 700 and figure.evaluate(turned) == "none" and note.evaluate(ink) < 0.2
    switch = page.locator(".content-icon-container .theme-toggle")
    for _ in range(3):                           # as the system has it, light, dark
        if page.evaluate("document.body.dataset.theme") != "dark":
            switch.click()
    assert page.evaluate(colour) < 120 and figure.evaluate(turned) != "none" and note.evaluate(ink) > 0.7
    page.goto(address("17_inside_a_chat_model.html"))
    assert page.locator("div.cell_output img.as-drawn").first.evaluate(turned) == "none"  # its ground is dark as it is
    page.goto(address("index.html"))             # and it stays
    assert page.evaluate(colour) < 120


def test_solutions_wait_until_they_are_asked_for(page, pytestconfig):
    page.goto(address("07_multi_head_attention.html"))
    page.locator("article a", has_text=re.compile("^solution$", re.IGNORECASE)).first.click()
    page.wait_for_url("**/solutions/07_multi_head_attention.html#solution-split-heads")
    solved = page.locator("div.cell_input", has_text="def split_heads").first
    assert not solved.is_visible()
    page.locator("details.solution > summary").first.click()
    assert solved.is_visible()
    names = [f"solutions/{name}.html" for name in SOLUTIONS]
    for name in names if pytestconfig.getoption("weekly", False) else some(names):
        page.goto(address(name))
        named = re.compile(r"^(Exercise \d|Your turn|Extend it)")
        tasks = page.locator("article section:has(div.cell) > h2", has_text=named).count()
        assert page.locator("details.solution:not([open])").count() == tasks > 0, name
        shown = [text for text in page.locator("div.cell_input:visible").all_inner_texts() if "def " in text]
        assert not shown, f"{name} shows {shown[0]}"


def test_an_answer_of_a_warm_up_is_a_button_that_says_whether_it_is_right(page):
    page.goto(address("07_multi_head_attention.html"))
    warm_up = page.locator("div.cell_output", has_text="Warm-up, from memory.").first
    option = warm_up.locator("details").first
    assert not option.locator("div").is_visible()
    option.locator("summary").focus()
    page.keyboard.press("Enter")
    assert option.locator("div").inner_text().startswith(("Right.", "Not quite."))
    assert option.locator("summary").evaluate("node => getComputedStyle(node).borderTopWidth") == "1px"


def test_what_was_measured_waits_for_a_guess(page):
    page.goto(address("01_word_embeddings_and_similarity.html"))
    measured = page.locator("div.cell_output", has_text="Measured:")
    assert measured.count() >= 3 and not any(one.is_visible() for one in measured.all())
    options = page.locator("button[data-predict='01-lengths']")
    veil = page.locator("details.veil[data-key='01-lengths']")
    options.first.focus()
    page.keyboard.press("Enter")
    assert veil.get_attribute("open") is not None and veil.get_by_text("Measured:").first.is_visible()
    assert options.first.get_attribute("aria-pressed") == "true"
    answer = re.search(r"Measured: (.*?)\. You predicted", veil.inner_text())[1]
    for option in options.all():
        option.click()
        assert ("You predicted that." in veil.inner_text()) == (option.inner_text() == answer)
    page.locator("details.veil:not([open]) > summary").first.click()  # nobody has to guess
    assert page.locator("details.veil[open]").count() == 2


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_prediction_has_its_veil(lesson):
    cells = json.loads(builder.notebook(f"notebooks/{lesson}.ipynb"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells]
    asked = [key for source in sources for call, key in builder.CALL.findall(source) if call == "predict"]
    assert len(asked) == len(set(asked))
    folded = None
    for cell, source in zip(cells, sources, strict=True):
        if opened := re.match(r"<details class='veil' data-key='([\w-]+)'>", source):
            assert folded is None
            folded = opened[1]
        elif source == "</details>":
            folded = None
        else:
            assert not (folded and cell["cell_type"] == "markdown" and re.search("^#+ ", source, re.MULTILINE)), source
            said = "".join("".join(output.get("data", {}).get("text/html", "")) for output in cell.get("outputs", ()))
            assert "Measured:" not in said or folded in asked, f"{lesson}: {said[:200]} can be seen before the guess"
    assert folded is None
    buttons = re.findall(r"data-predict=.{1,3}?([\w-]+)", json.dumps(cells))
    assert set(buttons) == set(asked)
