"""The browser edition: what it is made of, and that lessons run in it with every address but this machine's closed."""

import functools
import http.server
import importlib.util
import json
import os
import random
import re
import shutil
import sys
import threading
import time
import unicodedata
from pathlib import Path

import pytest
from browser import PATIENCE, POLL, REPO, SETTINGS, Notebook, Window, served

from helpers import texts, tokens
from scripts import book, edition
from scripts.setup import Stop

LESSONS = [Path(path).stem for path in edition.RUNS]


# What it is made of

@pytest.mark.parametrize("name", ["pyodide.asm.wasm", "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"])
def test_a_file_of_pyodide_that_is_missing_or_another_one_is_told(tmp_path, monkeypatch, name):
    pinned = {n: {"bytes": 1, "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}  # of an x
              for n in edition.PYODIDE["files"]}
    monkeypatch.setitem(edition.PYODIDE, "files", pinned)
    source = tmp_path / "files"
    source.mkdir()
    for file in pinned:
        (source / file).write_text("x")
    (source / "pyodide-lock.json").write_text('{"packages": {"scipy": {"file_name": "scipy.whl"}}}')
    edition.copy_pyodide(source, tmp_path / "whole")
    lock = json.loads((tmp_path / "whole" / "pyodide-lock.json").read_text())
    assert lock == {"packages": {}}, "it promises a file that is not there"
    (source / name).write_text("y")
    with pytest.raises(Stop, match=f"^{edition.VARIABLE} names .* Pyodide 0.27.7 .* or others: {re.escape(name)}. Put"):
        edition.copy_pyodide(source, tmp_path / "changed")
    (source / name).unlink()
    with pytest.raises(Stop, match=f"are missing or others: {re.escape(name)}. Put them there, or"):
        edition.copy_pyodide(source, tmp_path / "lacking")
    with pytest.raises(Stop, match=r": pyodide.js, pyodide.asm.js, pyodide.asm.wasm and \d\d more. Put"):
        edition.copy_pyodide(tmp_path, tmp_path / "lacking")
    assert not (tmp_path / "changed").exists() and not (tmp_path / "lacking").exists()


def test_a_cell_that_needs_an_installation_shows_what_it_gave():
    cell = {"cell_type": "code", "id": "a1", "metadata": {"tags": [edition.TAG]},
            "source": ["import torch\n", "torch.zeros(1)"],
            "outputs": [{"output_type": "stream", "text": ["one\n", "two\n"]},
                        {"output_type": "display_data", "data": {"image/png": "aGk=\n", "text/plain": ["<Figure>"]}},
                        {"output_type": "execute_result", "data": {"text/html": "<b>3</b>", "text/plain": "3"}}]}
    made = edition.stored(cell)
    assert (made["cell_type"], made["id"], made["attachments"]) == ("markdown", "a1", {"1.png": {"image/png": "aGk="}})
    line, *parts = made["source"].split("\n\n")
    assert "needs" in line and edition.BOOK + "index.html#run-it" in line
    assert parts == ["```python\nimport torch\ntorch.zeros(1)\n```", "```text\none\ntwo\n```",
                     "![Figure; the text below it says what it shows.](attachment:1.png)", "```text\n3\n```"]
    cell["metadata"]["tags"].append("hide-input")
    assert "import torch" not in edition.stored(cell)["source"] and edition.GAVE in edition.stored(cell)["source"]
    assert edition.GAVE not in edition.stored(cell | {"outputs": []})["source"]


def made(path):
    return json.loads(edition.lesson(path))


def test_its_lessons_lead_to_pages_of_the_book_and_to_each_other():
    seen = set()
    for path in edition.RUNS:
        for cell in made(path)["cells"]:
            words = re.sub(r"^```.*?^```", "", "".join(cell["source"]), flags=re.MULTILINE | re.DOTALL)
            for link in re.findall(r"\]\(([^)\s]+)\)", words if cell["cell_type"] == "markdown" else ""):
                page = link.removeprefix(edition.BOOK).split("#")[0]
                if link.startswith(edition.BOOK):
                    assert page.removesuffix(".html") in [*book.PAGES.values(), "register"], f"{path}: {link}"
                    seen.add(page.split("/")[0])
                elif not re.match("https?:|attachment:|#", link):
                    assert f"notebooks/{page}" in edition.RUNS, f"{path}: {link}"
                    seen.add("a lesson")
    assert {"a lesson", "solutions", "index.html", "09_the_transformer_block.html"} <= seen
    text = json.dumps(made(edition.RUNS[7]))
    assert f"{edition.BOOK}solutions/07_multi_head_attention.html#solution-split-heads" in text


def test_the_drawing_at_the_top_is_there_before_python_is():
    cells = made(edition.RUNS[7])["cells"]
    [drawn] = [cell for cell in cells if cell["cell_type"] == "code" and cell["outputs"]]
    page = drawn["outputs"][0]["data"]["text/html"]
    assert drawn["id"] == edition.DRAWING and drawn["metadata"]["trusted"] and page.count("<svg") == 2  # no list


def test_a_tag_is_where_it_counts():
    for path in sorted((REPO / "notebooks").rglob("*.ipynb")):
        tagged = [cell["id"] for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
                  if edition.TAG in cell["metadata"].get("tags", ())]
        assert not tagged or path.relative_to(REPO).as_posix() in edition.RUNS, f"{path} is not in the edition: {tagged}"


def test_what_stands_in_for_regex_splits_as_it_does(monkeypatch):
    import regex

    spec = importlib.util.spec_from_file_location("standin", edition.STANDINS / "regex.py")
    standin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(standin)
    rng = random.Random(0)
    known = [sign for sign in map(chr, range(0x20000)) if unicodedata.category(sign) not in ("Cn", "Cs")]
    tried = ["".join(rng.choices(known, k=40)) for _ in range(300)]
    tried += ["".join(rng.choices("ab1½Ⅷ٣é熊 \t\n\x1c\x85\u00a0\u200b'sll!", k=40)) for _ in range(300)]
    tried += [article for articles in texts.declaration().values() for article in articles]
    for text in tried:
        for numerals in (False, True):
            monkeypatch.setitem(sys.modules, "regex", regex)
            theirs = tokens.split(text, numerals)
            monkeypatch.setitem(sys.modules, "regex", standin)
            assert tokens.split(text, numerals) == theirs


# In a browser

@pytest.fixture(scope="module")
def address(request, tmp_path_factory):
    """Where the edition is served from, below another folder, as when it is published: the one of the book."""
    if not os.environ.get(edition.VARIABLE):
        pytest.skip(f"no Pyodide: name in {edition.VARIABLE} a folder with the files that docs/book/pyodide.json lists")
    request.getfixturevalue("built")  # not before: without Pyodide no book is built here
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(book.FOLDER / "html" / "run", folder / "attention-course" / "run")
    config = folder / "attention-course" / "run" / "jupyter-lite.json"
    text = json.loads(config.read_text())
    text["jupyter-config-data"]["settingsOverrides"] |= {name.replace("-extension/", "-extension:"): values
                                                         for name, values in SETTINGS.items()}
    config.write_text(json.dumps(text))
    Counting.served.clear()
    handler = functools.partial(Counting, directory=str(folder))
    with served(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as root:
        yield f"{root}attention-course/run/notebooks/index.html?path="


class Counting(edition.Handler):
    """Remembers how many bytes it gave; refuses what has ``withheld`` in its name, but not while ``hung``: that waits."""

    served: list[int] = []
    withheld, hung = "", threading.Event()

    def do_GET(self):
        if Counting.withheld and Counting.withheld in self.path:
            while Counting.hung.is_set():
                time.sleep(0.2)
            return self.send_error(404)
        super().do_GET()

    def copyfile(self, source, outputfile):
        self.served.append(os.fstat(source.fileno()).st_size if hasattr(source, "fileno") else 0)
        super().copyfile(source, outputfile)


class Lesson(Notebook):
    """A lesson of the edition in a window of its own, or reloaded in the one that it has."""

    def __init__(self, window, address, name):
        self.lab, self.name, self._before = window, name, len(window.heard)
        self.page, begun = window.new_page(), time.monotonic()
        self.page.goto(address + name)
        self.ready()
        self.took = time.monotonic() - begun

    def ready(self):
        self.page.wait_for_function("document.body.dataset.python === 'ready'", timeout=PATIENCE * 1000, **POLL)
        self.settle()

    def saved(self):
        """Wait until the page has saved by itself; what the kernel wrote, the browser has already."""
        self.page.wait_for_function("!window.jupyterapp.shell.currentWidget.context.model.dirty")

    def reload(self):
        """Returns how many seconds it took until Python answered."""
        begun = time.monotonic()
        self.page.reload()
        self.ready()
        return time.monotonic() - begun

    def printed(self):
        """Cell id -> what it printed, less what buttons and sliders say of themselves."""
        results = self.page.evaluate("""() => Object.fromEntries(window.jupyterapp.shell.currentWidget.content.widgets
            .filter(cell => cell.model.type === 'code')
            .map(cell => [cell.model.sharedModel.getId(), cell.model.outputs.toJSON()]))""")
        return {name: said(outputs) for name, outputs in results.items()}

    def outside(self):
        return [address for address in self.lab.outside if not address.startswith("attachment:")]

    def problems(self):
        """What the page reported as an error, but for a picture that JupyterLab asks for before it has found it."""
        return [line for line in self.console_errors() if "attachment:" not in line]


def said(outputs):
    """The lines that outputs print, and those of tables and notes."""
    texts = [output.get("text", output.get("data", {}).get("text/plain", "")) for output in outputs
             if "image/png" not in output.get("data", {})]
    return [line for text in texts for line in "".join(text).splitlines() if line.strip()]


@pytest.fixture
def opened(browser, address):
    """Open lessons in one window, which keeps what they keep; afterwards nothing else was asked for and nothing failed."""
    window, lessons = Window(browser), []

    def open_one(number):
        lessons.append(Lesson(window, address, next(name for name in LESSONS if name.startswith(number)) + ".ipynb"))
        return lessons[-1]
    yield open_one
    problems = [problem for lesson in lessons for problem in lesson.outside() + lesson.problems()]
    window.context.close()
    assert not problems


WRONG = "def cosine_similarity(X, Y):\n    return X @ Y.T"
RIGHT = """def cosine_similarity(X, Y):
    lengths = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Y, axis=1)
    return np.divide(X @ Y.T, lengths, out=np.zeros(lengths.shape), where=lengths > 0)"""
ENDLESS = "def cosine_similarity(X, Y):\n    while True:\n        pass"


def test_a_lesson_runs_in_a_page_and_its_exercise_is_checked(opened, address, record_property):
    lesson = opened("01")
    megabytes = sum(Counting.served) / 1e6
    assert megabytes < 50 and abs(megabytes - edition.MEGABYTES) < 1, "say the new number in scripts/edition.py"
    link = lesson.page.locator(f"a[href^='{edition.BOOK}']").first.element_handle()
    link.hover()
    assert link.get_attribute("href").startswith(address.split("run/")[0])
    back = lesson.page.get_by_role("link", name="The book")
    assert back.get_attribute("href") == f"{address.split('run/')[0]}{LESSONS[1]}.html"

    bubble = lesson.page.get_by_role("note")
    assert "Run this cell" in bubble.inner_text() and lesson.cells()[lesson.cell_with("import numpy")]["index"] == \
        bubble.evaluate("node => [...document.querySelectorAll('.jp-Notebook .jp-Cell')].indexOf(node.closest('.jp-Cell'))")
    assert not lesson.run("import numpy")["errors"]
    assert bubble.count() == 0
    assert "Not yet" in lesson.answer("cosine_similarity", WRONG)
    assert "Passed" in lesson.answer("cosine_similarity", RIGHT)

    # Nobody saves, the page is loaded again, and the work is there; Python is kept, and nothing of it is loaded again.
    lesson.page.wait_for_function("!window.jupyterapp.shell.currentWidget.context.model.dirty", timeout=20_000)
    Counting.served.clear()
    again = lesson.reload()
    assert lesson.cell_with("np.divide(X @ Y.T") and lesson.page.get_by_role("note").count() == 0
    assert sum(Counting.served) < 2e6
    record_property("say", f"the browser edition: a lesson loads {megabytes:.0f} MB and is ready after {lesson.took:.0f} s; "
                    f"the next time {sum(Counting.served) / 1e6:.1f} MB, {again:.0f} s")


def test_a_cell_that_does_not_end_is_asked_about_and_python_restarts(opened):
    lesson = opened("01")
    first = lesson.cell_with("import numpy")
    lesson.type_into(first, "while True:\n    pass")
    lesson.page.keyboard.press("Shift+Enter")
    told = lesson.page.get_by_role("status")
    told.get_by_text("Python cannot hear Stop in a browser: restart it?").wait_for()
    told.get_by_role("button", name="Restart Python").click()
    told.get_by_text("Python has begun again").wait_for()
    assert lesson.cells()[first]["source"] == "while True:\n    pass" and "*" not in lesson.cells()[first]["prompt"]
    lesson.type_into(first, "print(6 * 7)")
    assert lesson.run(first)["output"] == "42"


def test_loading_that_stalls_or_fails_is_told_and_can_begin_again(browser, address):
    window = Window(browser)
    page, what = window.new_page(), address + LESSONS[1] + ".ipynb"
    told = page.get_by_role("status")
    try:
        Counting.withheld = "numpy-"
        Counting.hung.set()
        page.goto(what)
        told.get_by_text("Nothing has come for 20 seconds: the network may be slow, or down.").wait_for()
        Counting.hung.clear()  # what waited is refused
        told.get_by_text("Python could not be loaded: check the network.").wait_for()
        Counting.withheld = ""
        told.get_by_role("button", name="Load again").click()
        page.wait_for_function("document.body?.dataset.python === 'ready'", **POLL)
        assert page.locator("#loading-python").count() == 0
    finally:
        Counting.withheld = ""
        Counting.hung.clear()
        window.context.close()


@pytest.mark.weekly
def test_answers_and_predictions_survive_a_reload(opened):
    lesson = opened("01")
    lesson.run("import numpy")
    assert re.search("did not (finish|come back) within", lesson.answer("cosine_similarity", ENDLESS))  # or a busy machine
    assert "Passed" in lesson.answer("cosine_similarity", RIGHT)
    choice = lesson.page.get_by_label("dragon, (9, 6)")
    lesson.run('predict("01-lengths")')
    choice.check()
    lesson.run("X = np.array")
    assert "You predicted that." in lesson.run('reveal("01-lengths"')["output"]  # the kernel has heard of it
    lesson.saved()
    lesson.reload()
    assert lesson.cell_with("np.divide(X @ Y.T")
    lesson.run("import numpy")
    lesson.run('predict("01-lengths")')
    assert choice.is_checked()
    lesson = opened("00")
    lesson.run_all()
    assert "passed: cosine_similarity" in next(c["output"] for c in lesson.cells() if c["source"] == "show_progress()")


@pytest.mark.weekly
@pytest.mark.parametrize("name", LESSONS)
def test_every_cell_runs_in_a_page_and_prints_what_is_stored(opened, name):
    lesson = opened(name[:2])
    lesson.run_all()
    printed = lesson.printed()
    stored = json.loads((REPO / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    for cell in stored:
        source, tags = "".join(cell["source"]), cell["metadata"].get("tags", ())
        # buttons, or no model is there
        other = re.search(r"predict\(|warm_up\(|inventory\.take\(|slider\(|find_model", source)
        other = other or any(line.startswith("VBox(") for line in printed.get(cell["id"], ()))  # steps, shown by a figure
        if cell["id"] in printed and not other and "nbval-ignore-output" not in tags:
            # in one order or another: a stored result has all that was printed in one piece
            assert sorted(printed[cell["id"]]) == sorted(said(cell["outputs"])), f"{name}, cell {cell['id']}"
    assert len(printed) > len(stored) / 8
