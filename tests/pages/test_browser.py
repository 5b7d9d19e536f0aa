"""The lessons in a real JupyterLab, as a learner meets them, with the network closed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from browser import LESSONS, REPO, VIEWS, lesson, look
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, writes


@pytest.mark.parametrize("name", LESSONS)
def test_run_all(at_peace, name):
    notebook = at_peace(name)
    seconds = notebook.run_all()
    print(f"{name}: {seconds:.1f} s")
    assert not notebook.errors(), notebook.errors()
    code = [cell for cell in notebook.cells() if cell["type"] == "code" and cell["source"].strip()]
    assert [cell["prompt"] for cell in code] == [f"[{i}]:" for i in range(1, len(code) + 1)], "not every cell ran"


WRONG_AXIS = """\
def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum(axis=0)"""
RIGHT = """\
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)"""


def test_a_wrong_answer_is_told_its_cause_and_a_right_one_passes(at_peace):
    notebook = at_peace(lesson("02"))
    notebook.run_all()
    told = notebook.answer("softmax", WRONG_AXIS)
    assert "axis" in told and "Passed" not in told, told
    told = notebook.answer("softmax", "def softmax(x):\n    return np.exp(x")
    assert "SyntaxError" in told or "was never closed" in told, told
    told = notebook.answer("softmax", RIGHT)
    assert "Passed" in told, told


# A wrong answer that a newcomer types into each exercise, and words of the hint that it must get.
WRONG = {
    "01": {
        "cosine_similarity": ("def cosine_similarity(X, Y):\n    return X @ Y.T", "dot product"),
        "nearest_neighbours": ("def nearest_neighbours(query, vectors, k):\n"
                               "    return np.argsort(embeddings.cosine_similarity(query[None], vectors)[0])[:k]",
                               "least similar"),
        "analogy": ("def analogy(a, b, c, vectors):\n    target = vectors[b] - vectors[a] + vectors[c]\n"
                    "    return embeddings.nearest_neighbours(target, vectors, 1)[0]", "Leave a, b and c out"),
    },
    "02": {
        "softmax": ("def softmax(x):\n    e = np.exp(x)\n    return e / e.sum(axis=-1, keepdims=True)", "overflow"),
        "attention_entropy": ("def attention_entropy(weights):\n"
                              "    return -(weights * np.log(weights)).sum(axis=-1)", "NaN"),
        "self_attention": ("def self_attention(X):\n    return attention.softmax(X @ X.T)", "weighted sum"),
    },
}


@pytest.mark.parametrize("number", WRONG)
def test_a_wrong_answer_to_each_exercise_gets_its_hint(at_peace, number):
    notebook = at_peace(lesson(number))
    notebook.run_all()
    for exercise, (source, hint) in WRONG[number].items():
        told = notebook.answer(exercise, source)
        assert "Not yet" in told and hint in told, told


def test_the_views_of_lesson_12_answer_with_no_network_and_after_saving(lab):
    """Every view is run, counted, pointed at; then the same in the file as it was saved and opened again."""
    name, seen = lesson("12"), []
    for run in (True, False):
        lab.outside.clear()
        with lab.open(name, fresh=run) as notebook:
            if run:
                notebook.run_all()
                assert not notebook.errors(), notebook.errors()
            titles = notebook.page.locator("iframe[srcdoc]").evaluate_all("frames => frames.map(f => f.title)")
            lines = {}
            for kind, (wanted, tokens, clicked) in VIEWS.items():
                mine = [title for title in titles if title.startswith(kind)]
                assert len(mine) == wanted, f"{wanted} {kind}s expected in {titles}"
                for title in mine:
                    token = next(token for words, token in tokens.items() if words in title)
                    lines[title] = look(notebook.page, title, token, clicked)
                    if run:
                        picture = "lesson_12_" + "".join(c if c.isalnum() else "_" for c in title)
                        notebook.screenshot(REPO / "build" / "screenshots" / picture)
            assert len(lines) == len(titles) and min(lines.values()) > 40, lines
            seen.append(lines)
            if run:
                notebook.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
            assert not notebook.console_errors(), notebook.console_errors()
        assert not lab.outside, lab.outside
    assert seen[0] == seen[1], seen


# -- the harness itself is able to fail ----------------------------------------------------------

@pytest.fixture
def page(lab):
    """Open a notebook made of these cells."""
    opened = []

    def open_cells(*cells):
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        (lab.root / "notebooks" / "made.ipynb").write_text(writes(new_notebook(cells=list(cells), metadata=metadata)))
        lab.outside.clear()
        opened.append(lab.open("made.ipynb"))
        return opened[-1]
    yield open_cells
    for notebook in opened:
        notebook.close()
    lab.outside.clear()


def test_errors_and_stderr_are_seen(page):
    notebook = page(new_code_cell("1 / 0"), new_code_cell("import warnings; warnings.warn('old')"))
    notebook.run_all()
    assert [line.split(":")[0] for line in notebook.errors()] == ["made.ipynb, cell 0"]     # the rest did not run
    assert notebook.cells()[1]["prompt"].strip("[] :") == ""
    assert "old" in notebook.run(1)["stderr"][0]


def test_requests_of_the_page_are_refused_and_seen(lab, page):
    notebook = page(new_code_cell("from IPython.display import HTML\nHTML('<img src=\"http://example.org/x.png\">')"),
                    new_code_cell("from IPython.display import Javascript\n"
                                  "Javascript('console.error(\"lost\"); fetch(\"https://example.org/y\")')"))
    notebook.run_all()
    assert {"http://example.org/x.png", "https://example.org/y"} <= set(lab.outside)
    assert any("lost" in line for line in notebook.console_errors())


def test_the_kernel_has_no_network(lab, page):
    notebook = page(new_code_cell(
        "import urllib.request\ntry:\n    urllib.request.urlopen('http://192.0.2.1/', timeout=5)\n"
        "    print('reached')\nexcept OSError as error:\n    print('refused', error)"))
    notebook.run_all()
    said = notebook.cells()[0]["output"]
    assert said.startswith("refused"), said
    if lab.closed == "namespace":
        assert "unreachable" in said, said


def test_typing(page):
    notebook = page(new_markdown_cell("# Title"), new_code_cell("def double(x):\n    ..."),
                    new_code_cell("def check(f):\n    print('got', f(2))\ncheck(double)"))
    notebook.run_all()
    assert notebook.answer("double", "def double(x):\n    if x > (1):\n        return [2 * x, 'é']") == "got [4, 'é']"


def test_screenshot_command(tmp_path, chromium):
    """What authors use; it shows the stored outputs and leaves the notebook as it was."""
    path = tmp_path / "tall.ipynb"
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(writes(new_notebook(cells=[new_markdown_cell("\n\n".join("line" for _ in range(80)))],
                                        metadata=metadata)))
    before = path.read_bytes()
    subprocess.run([sys.executable, REPO / "tests" / "pages" / "browser.py", "screenshot", path, tmp_path / "out"],
                   check=True, capture_output=True, timeout=120)
    pages = sorted((tmp_path / "out").iterdir())
    assert [page.name for page in pages] == ["tall-01.png", "tall-02.png"]
    assert path.read_bytes() == before
