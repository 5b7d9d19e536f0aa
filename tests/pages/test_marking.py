"""The marking page in a browser: the keyboard, saving, and what a hostile answer can do, which is nothing."""

import contextlib
import json

import pytest
from browser import Window, axe_findings, served, until

pytest.importorskip("jinja2", reason="the extra `classes` is not installed")
from classroom import assignment, batch, grading, marking, marks

NAME = "assignment1"
HOSTILE = ("</script><script>document.title='HACKED';fetch('save')</script><img src=x onerror=\"document.title='HACKED'\">"
           "<style>*{display:none}</style>\u202eturned\u200b{{ 7 * 7 }}<!-- \u2028 &lt;b&gt; ${1}")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture
def graded(tmp_path):
    """A class of three: an honest answer, a hostile student, and one of whom no code could be judged."""
    task, keys = assignment.load(NAME), {"ada": "It is picky.", "eve": HOSTILE, "leah": "It never ends."}
    for key, text in keys.items():
        made = grading.failed(task, *(("time limit", HOSTILE) if key == "leah" else ("graded", "")))
        for test in made["tests"]:
            test |= {} if key == "leah" else {"status": "passed", "points": test["most"]}
        for answer in made["answers"]:
            answer |= {"text": text, "question": next(q.words for q in task.questions if q.grade_id == answer["grade_id"])}
        made |= {"key": key, "digest": key, "student": HOSTILE if key == "eve" else key, "id": "",
                 "file": HOSTILE, "found": [], "code": [HOSTILE], "figures": []}
        (tmp_path / "results").mkdir(exist_ok=True)
        (tmp_path / "results" / f"{key}.json").write_text(json.dumps(made))
        batch.keep_figures(tmp_path, made, [PIXEL, "iVBORw0KGgo" + "A" * 50])
    (tmp_path / "batch.json").write_text(json.dumps({"assignment": NAME, "keys": list(keys), "refused": []}))
    return tmp_path


@contextlib.contextmanager
def opened(graded, browser):
    """The marking page of this class; afterwards it has asked for nothing else."""
    window = Window(browser)
    with served(server := marking.Server(marking.Marking(graded))):
        page = window.new_page()
        page.goto(server.address)
        holds(page, "works.size > 0")
        yield page
        window.context.close()
    assert not window.outside


@pytest.fixture
def page(graded, browser):
    with opened(graded, browser) as page:
        yield page


def holds(page, words):
    """Wait for something to be true in the page, whose policy forbids playwright's own way to wait."""
    until(page, lambda: page.evaluate(words), words)


def look_for(page, item, words):
    """Go on with the keyboard until an answer to this question shows these words."""
    page.evaluate("move(-rows.length)")
    for _ in range(20):
        if page.evaluate("row().item") == item and words in page.inner_text("#written"):
            return
        page.keyboard.press("Enter")
    raise AssertionError(f"{words} is not among them")


def saved(page, graded):
    holds(page, "waiting === 0 && timer === null")
    assert page.inner_text("#saved") == "saved"
    return marks.read_sheet(graded)


def test_a_hostile_answer_does_nothing_and_every_key_is_saved(page, graded):
    # what students wrote is text
    assert page.evaluate("rows.length") == 7 and "leah" not in page.content()
    look_for(page, "answer-measurement", "</script>")
    holds(page, "document.querySelectorAll('#code pre').length === 1")
    assert "</script><script>" in page.inner_text("#code")
    assert "[U+202E]turned[U+200B]{{ 7 * 7 }}" in page.inner_text("#answer")
    assert page.title() == f"Marking {assignment.load(NAME).title}"
    assert page.evaluate("[document.scripts.length, document.images.length]") == [2, 2]
    assert page.evaluate("""() => { const made = document.createElement("script"); made.textContent = "window.ran = true";
                                    document.body.append(made); return window.ran === undefined }"""), "no policy holds it"
    # the rubric, a digit, half a point, a comment
    for key in "qe":
        page.keyboard.press(key)
    page.keyboard.press("c")
    page.keyboard.type("Why q? 3 words.")
    page.keyboard.press("Escape")
    assert saved(page, graded)["eve", "answer-measurement"] == (2, "Why q? 3 words.")
    look_for(page, "answer-measurement", "It is picky.")
    page.keyboard.press("9")
    assert "0 to 5 points" in page.inner_text("#saved")
    for key in ("4", ".", "Shift+Digit1"):
        page.keyboard.press(key)
    assert saved(page, graded)["ada", "answer-measurement"] == (4.5, "Why q? 3 words.")
    for key in ("Shift+Digit1", "x"):
        page.keyboard.press(key)
    assert ("ada", "answer-measurement") not in saved(page, graded)
    # a number of two digits, for all code at once, and by student
    look_for(page, "code", "time limit")
    page.keyboard.type("21")
    page.keyboard.press("Enter")
    assert saved(page, graded)["leah", "code"] == (21, "")
    page.keyboard.press("v")
    assert page.inner_text("#who").startswith("Student ")
    page.evaluate("move(-rows.length)")
    seen = []
    for _ in range(7):
        seen.append(page.evaluate("row().student"))
        page.keyboard.press("Enter")
    assert seen == sorted(seen) and {*seen} == {1, 2, 3}
    page.keyboard.press("n")
    assert page.evaluate("row().points") is None
    # another program's change of the sheet is not lost, and a server that has ended is told
    page.reload()
    holds(page, "works.size > 0")
    assert page.evaluate("rows.filter(r => r.points !== null).length") == 2
    look_for(page, "answer-measurement", "It is picky.")
    page.context.set_offline(True)
    page.keyboard.press("3")
    holds(page, "document.getElementById('saved').textContent.startsWith('NOT SAVED')")
    page.context.set_offline(False)
    page.keyboard.press("2")
    assert len([p for p, _ in saved(page, graded).values() if p is not None]) == 3


MARKDOWN = """# What I saw
At a **low** temperature *one* word wins, as `softmax(x / t)` says, so 2 * 3 * 4 and $t \\to 0$ stay.

- <b>first</b>
- *second*
3. third

```
x = **kwargs
```
"""


def test_an_answer_is_shown_as_the_notebook_shows_it(graded, browser):
    path = graded / "results" / "ada.json"
    one = json.loads(path.read_text())
    for answer in one["answers"]:
        answer["text"] = MARKDOWN
    path.write_text(json.dumps(one))
    with opened(graded, browser) as page:
        look_for(page, "answer-measurement", "What I saw")
        assert page.evaluate("[...document.querySelectorAll('#answer > *')].map(e => e.tagName)") == [
            "H3", "P", "UL", "OL", "PRE"]
        seen = page.evaluate("""Object.fromEntries(['b', 'em', 'code', 'li', 'pre'].map(
            kind => [kind, [...document.querySelectorAll(`#answer ${kind}`)].map(e => e.textContent)]))""")
        assert seen == {"b": ["low"], "em": ["one", "second"], "code": ["softmax(x / t)", "$t \\to 0$"],
                        "li": ["<b>first</b>", "second", "third"], "pre": ["x = **kwargs\n"]}
        assert "2 * 3 * 4" in page.inner_text("#answer") and page.evaluate("document.querySelector('#answer ol').start") == 3
        assert "*" not in page.inner_text("#asked") and page.locator("#asked em").count()
        page.keyboard.press("m")
        assert page.inner_text("#answer").strip() == MARKDOWN.strip()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_it(page, theme):
    page.emulate_media(color_scheme=theme)
    page.keyboard.press("q")
    for width in (1366, 390):
        page.set_viewport_size({"width": width, "height": 768})
        assert not axe_findings(page)
        assert width > 1000 or page.evaluate("document.documentElement.scrollWidth <= innerWidth")
