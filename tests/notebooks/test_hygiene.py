"""The notebooks keep to the rules of hygiene.py, and each rule is able to fail."""

from __future__ import annotations

import copy
import json

import hygiene
import pytest
from hygiene import Book, books
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from helpers.page import claims
from helpers.page.course import LESSONS
from scripts import address

# -- the course's own notebooks ------------------------------------------------------------------


@pytest.mark.parametrize("path", [book.path for book in books()], ids=[book.name for book in books()])
def test_notebook(path):
    found = hygiene.problems(Book(path))
    assert not found, "\n" + "\n".join(found)


def test_nine_of_ten_outputs_are_compared():
    cells = [cell for book in books() for cell in book.code]
    ignored = [cell for cell in cells if not cell.compared]
    print(f"{len(cells) - len(ignored)} of {len(cells)} code cells are compared; these are not:")
    for cell in ignored:
        print(f"  {cell}: {cell.metadata.get('reason')}")
    assert len(ignored) <= (1 - hygiene.LEAST_COMPARED) * len(cells), (
        f"{len(ignored)} of {len(cells)} code cells are not compared, more than one in ten: make more outputs stable.")


# -- the rules themselves, on small notebooks ----------------------------------------------------

PNG = "iVBORw0KGgo="
NAME, TIME = LESSONS["01"].file, f"**Time:** {LESSONS['01'].minutes} minutes"
LESSON, SOLUTION = f"notebooks/{NAME}", f"notebooks/solutions/{NAME}"
EXERCISES = LESSONS["01"].exercises


def said(text: str, name: str = "stdout"):
    return [new_output("stream", name=name, text=text)]


def exercise_cells(body: str, verdict: str, exercises: dict[str, str] = EXERCISES) -> list:
    cells = []
    for name, signature in exercises.items():
        cells.append(new_code_cell(f'def {name}({signature}):\n    """Do it."""\n    {body}'))
        cells.append(new_code_cell(f"check({name})", outputs=said(f"{verdict}: {name}.\n")))
    return cells


def first_cell():
    return new_code_cell(address.cell(), metadata=hygiene.COLAB_METADATA)


def finish(cells: list) -> dict:
    """Number the cells and make a notebook of them."""
    count = 0
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"},
                "language_info": {"name": "python", "version": "3.11.7"}}
    return json.loads(json.dumps(new_notebook(cells=cells, metadata=metadata)))


def good_lesson() -> dict:
    figure = new_output("display_data", data={"image/png": PNG, "text/plain": "<Figure size 640x480 with 1 Axes>"})
    timed = new_code_cell("print(time.time())", outputs=said("12.5\n"),
                          metadata={"tags": ["nbval-ignore-output"], "reason": "the time of day"})
    return finish([
        new_markdown_cell("# 01 · Word embeddings and similarity\n\n**In this lesson** you learn.\n\n"
                          f"{TIME}.\n\nNeeds [a note](../note.md#a-part)."),
        first_cell(),
        new_code_cell("import time\n\nfrom helpers.checks import check"),
        new_code_cell("%matplotlib inline\n1 + 1", outputs=[
            new_output("execute_result", data={"text/plain": "2"}, execution_count=4)]),
        new_code_cell("plot()", outputs=[figure]),
        new_markdown_cell("*In words:* a line rises from left to right."),
        *exercise_cells("...", "… Not started"),
        timed,
        new_code_cell("assert time.time() > 0"),
        new_code_cell("1", outputs=[new_output("execute_result", data={"text/plain": "1"},
                                               execution_count=2 * len(EXERCISES) + 7)]),
        new_markdown_cell(f"## What people say\n\n- *It is so.* **True here**, by 34 % ([C01](experiments/{NAME})).\n"
                          f"- *It is not.* **True here** ([C02](experiments/{NAME}))."),
        new_code_cell("numbers.agree({'0.51, one': 1, '34 %': 2})", outputs=said("All 2 numbers come out.\n")),
        new_markdown_cell("As [above](#What-people-say), 0.51 or 34 %.\n\n## Recap\n\nWell done.\n\n"
                          "## Going further\n\nNext: [attention](02_attention.ipynb), "
                          "[paper](https://example.org/home/x)."),
    ])


def good_solution() -> dict:
    return finish([new_markdown_cell("# 01 · Word embeddings and similarity: solutions"),
                   first_cell(), new_code_cell("from helpers.checks import check"), *exercise_cells("return 1", "✓ Passed")])


def renumber(notebook: dict) -> None:
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
            for output in cell["outputs"]:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = count


def fold(text):
    def change(notebook):
        notebook["cells"][4] |= {"source": text, "metadata": {"jupyter": {"source_hidden": True}}}
    return change


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of two small lessons in a folder of its own; a call changes a notebook and returns it."""
    monkeypatch.setattr(hygiene.predictions, "load", dict)
    (tmp_path / "note.md").write_text("# Note\n\n## A part\n")
    (tmp_path / "notebooks/solutions").mkdir(parents=True)
    (tmp_path / "notebooks/02_attention.ipynb").write_text(json.dumps(good_lesson()))
    notebooks = {LESSON: good_lesson(), SOLUTION: good_solution()}

    def book(change=None, where=LESSON):
        changed = copy.deepcopy(notebooks)
        if change:
            change(changed[where])
            renumber_cells = getattr(change, "renumber", True)
            if renumber_cells:
                renumber(changed[where])
        for name, notebook in changed.items():
            (tmp_path / name).write_text(json.dumps(notebook), encoding="utf-8")
        found = Book(tmp_path / where, tmp_path)
        experiment_of(found, *OPEN, *DECIDE)
        return found
    return book


@pytest.mark.parametrize("where", [LESSON, SOLUTION])
def test_a_good_notebook_passes(course, where):
    assert hygiene.problems(course(renumber, where)) == []


def test_a_notebook_saved_by_another_editor_passes(course):
    def save_elsewhere(notebook):
        notebook["metadata"]["language_info"] = {"name": "python", "version": "3.13.1", "mimetype": "text/x-python"}
        notebook["metadata"]["kernelspec"]["display_name"] = ".venv"
        notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}, "version_major": 2,
                                                                                           "version_minor": 0}}
        for cell in notebook["cells"]:
            cell["metadata"] |= {"vscode": {"languageId": "python"}, "collapsed": False, "editable": True,
                                 "slideshow": {"slide_type": ""}, "execution": {"iopub.status.busy": "2025-01-01"}}
            cell["source"] = cell["source"].splitlines(keepends=True)
            for output in cell.get("outputs", []):
                if "text" in output:
                    output["text"] = output["text"].splitlines(keepends=True)
    assert hygiene.problems(course(save_elsewhere)) == []


def cell_change(index, **values):
    def change(notebook):
        notebook["cells"][index].update(copy.deepcopy(values))
    return change


def outputs(index, *wanted):
    return cell_change(index, outputs=[json.loads(json.dumps(output)) for output in wanted])


def source(index, text):
    return cell_change(index, source=text)


def replace(old, new):
    """Replace a text in every source."""
    def change(notebook):
        hits = 0
        for cell in notebook["cells"]:
            hits += old in cell["source"]
            cell["source"] = cell["source"].replace(old, new)
        assert hits, f"the good notebook has no {old!r}"
    return change


def metadata(index, **values):
    return cell_change(index, metadata=values)


def as_it_is(change):
    """Do not number the cells again after this change."""
    change.renumber = False
    return change


def delete(index):
    def change(notebook):
        del notebook["cells"][index]
    return change


def set_top(key, value):
    def change(notebook):
        notebook[key] = value
    return change


def set_metadata(key, value):
    def change(notebook):
        notebook["metadata"][key] = value
    return change


def ignore_some(notebook):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "def " in cell["source"]:
            cell["metadata"] = {"tags": ["nbval-ignore-output"], "reason": "many reasons"}


def page(html):
    return new_output("display_data", data={"text/html": html})


FIGURE = new_output("display_data", data={"image/png": PNG})
TITLE = "# 01 · Word embeddings and similarity"


# rule, what breaks it, a word of the message, and the notebook if it is not the lesson.
# In the good lesson: 0 title, 1 Colab's cell, 2 imports, 3 1+1, 4 figure, 5 its words, from 6 exercises; from the end
# -1 recap, -2 the numbers, -3 what people say, -4 code, -5 assert, -6 ignored.
def asks(words):
    """Cell 6 asks "01-a", whose answer is one of these words; cell 8 reveals it."""
    def change(notebook):
        notebook["cells"][6] |= {"source": 'predict("01-a")'}
        notebook["cells"][8] |= {"source": 'reveal("01-a", 0)'}
    change.spoilers = words
    return change


BAD = [
    ("valid", cell_change(3, cell_type="cod"), "not a valid"),
    ("valid", set_top("nbformat_minor", 4), "4.5"),
    ("ids", cell_change(4, id="cell-3"), "id of cell 3"),
    ("ids", cell_change(4, id=""), "no id"),
    ("kernel", set_metadata("kernelspec", {"name": "my-env", "display_name": "x"}), "my-env"),
    ("execution_counts", as_it_is(cell_change(3, execution_count=5)), "where 3 is due"),
    ("execution_counts", as_it_is(cell_change(3, execution_count=None)), "None where 3 is due"),
    ("execution_counts", as_it_is(cell_change(3, outputs=[dict(output_type="execute_result", execution_count=9, metadata={},
                                                               data={})])), "3 is due"),
    ("parses", source(3, "1 +"), "not Python"),
    ("no_empty_code", source(3, "  \n"), "empty"),
    ("short_cells", source(3, "\n".join("1" * 31)), "31 lines"),
    ("size", set_metadata("much", "x" * 1_500_000), "MB"),
    ("no_errors", outputs(3, new_output("error", ename="KeyError", evalue="'x'", traceback=[])), "KeyError"),
    ("no_stderr", outputs(3, *said("UserWarning: old\n", "stderr")), "UserWarning"),
    ("no_absolute_paths", source(3, "open('/home/ada/x')"), "/home/ada"),
    ("no_absolute_paths", outputs(3, *said("in /root/course/x.py")), "/root/course"),
    ("no_absolute_paths", outputs(3, new_output("display_data", data={"text/html": "<i>C:\\Users\\ada</i>"})), "C:\\Users"),
    ("no_absolute_paths", source(0, f"{TITLE}\n\n**In this lesson** see /Users/ada/x"), "/Users/ada"),
    ("no_addresses", outputs(3, *said("<function f at 0x7f3a5c0d1e10>")), "0x7f3a5c0d1e10"),
    ("frames", outputs(3, page("<iframe srcdoc='>' title='x'></iframe>")), "sandbox"),
    ("frames", outputs(3, page("<iframe srcdoc=' sandbox=\"allow-scripts\" ' sandbox='allow-scripts allow-same-origin'>")),
     "sandbox"),
    ("nothing_skipped", metadata(3, tags=["nbval-skip"]), "nbval-skip"),
    ("nothing_skipped", metadata(3, tags=["raises-exception"]), "raises-exception"),
    ("nothing_skipped", source(3, "# NBVAL_IGNORE_OUTPUT\n1"), "NBVAL_IGNORE_OUTPUT"),
    ("ignored_cells", metadata(-6, tags=["nbval-ignore-output"]), "reason"),
    ("ignored_cells", metadata(-6, tags=["nbval-ignore-output"], reason=7), "reason"),
    ("ignored_cells", source(-5, "'assert'"), "no assert"),
    ("ignored_cells", metadata(-2, tags=["nbval-ignore-output"], reason="the last cell"), "no assert"),
    ("enough_compared", ignore_some, "at least 80%"),
    ("figures_in_words", delete(5), "In words"),
    ("figures_in_words", source(5, "In words: a line that rises."), "In words"),
    ("figures_in_words", source(5, "*In words:*"), "In words"),
    ("figures_in_words", source(5, "*In words:* *black* and a darker line rise."), "says darker of"),
    ("figures_in_words", outputs(6, FIGURE), "cell 6"),           # one text does not serve two figures
    ("links", replace("../note.md#a-part", "../notes.md"), "no such file"),
    ("links", replace("../note.md#a-part", "../note.md#b-part"), "no heading"),
    ("links", replace("../note.md#a-part", "../../outside"), "no such file"),
    ("links", replace("#What-people-say", "#what-people-say"), "no heading"),
    ("links", replace("(02_attention.ipynb)", "(02_attention.ipynb#Nowhere)"), "no heading"),
    ("links", replace("**In this", '<img src="no.png"> **In this'), "no.png"),
    ("links", outputs(3, new_output("display_data", data={"text/html": '<a href="03_no.ipynb">3</a>'})), "03_no"),
    ("number_and_title", replace("# 01 · Word", "# 1. Word"), "does not begin"),
    ("number_and_title", replace("similarity", "similarities"), "does not begin"),
    ("number_and_title", replace("# 01 ·", "# 02 ·"), "does not begin", SOLUTION),
    ("minutes", replace(TIME, "**Time:** 1 minutes"), "says 1 "),
    ("minutes", replace("**Time:**", "Time:"), "says nothing"),
    ("sections", replace("## Recap", "## Summary"), "## Recap"),
    ("sections", replace("## Going further", "### Going further"), "## Going further"),
    ("sections", replace("## Going further", "## Going deeper\n\n## Going further"), "### Going further"),
    ("sections", replace("## What people say", "## Claims"), "## What people say"),
    ("sections", replace("**In this lesson**", "In this lesson"), "In this lesson"),
    ("sections", source(2, "x = 1\nimport time"), "import cell"),
    ("nothing_is_folded", metadata(4, jupyter={"source_hidden": True}), "is folded"),
    ("little_scaffolding", source(4, "from helpers.page import show\n" * 9), "lines of code that serve the page"),
    ("comes_through_github", outputs(3, page("<style>b</style><svg><text>a map</text></svg>")), "nothing on GitHub"),
    ("answers_are_earned", asks(["rises FROM left"]), "'rises FROM left'"),
    ("answers_are_earned", asks(["word embeddings"]), "in a heading"),
    ("predictions_are_asked_and_revealed", source(3, "reveal('01-a', 0)"), "does not call predict('01-a') once"),
    ("predictions_are_asked_and_revealed", source(3, "predict('01-a')"), "does not call reveal('01-a') once"),
    ("colab_first", delete(1), "scripts.address.cell()"),
    ("colab_first", delete(1), "begin its code", SOLUTION),
    ("colab_first", metadata(1), "folded away"),
    ("next_lesson", replace("(02_attention.ipynb)", "(https://example.org)"), "02_attention.ipynb"),
    ("what_people_say", replace("**True here**, by", "**Partly**, by"), "that is 'True here'"),
    ("what_people_say", replace("**True here**, by", "True, by"), "without a stamp"),
    ("what_people_say", replace("[C02]", "[C99]"), "not a claim of this lesson"),
    ("what_people_say", replace("- *It is not.*", "- a\n- b\n- c\n- *It is not.*"), "has 5 lines"),
    ("numbers_are_computed", replace("0.51 or", "0.15 or"), "states 0.15"),
    ("numbers_are_computed", replace("0.51 or", "0.52 or"), "no sentence states it"),
    ("numbers_are_computed", source(-2, "print(2)"), "does not end with numbers.agree"),
    ("numbers_are_computed", outputs(-2, *said("The text says 0.51, and here it is 0.6.")), "here it is 0.6"),
    ("exercises", replace("def analogy", "def analogies"), "no stub"),
    ("exercises", source(6, "def cosine_similarity(X, Y):\n    return X @ Y.T"), "no stub"),
    ("exercises", replace("cosine_similarity(X, Y)", "cosine_similarity(Y, X)"), "cosine_similarity(X, Y)"),
    ("exercises", replace("analogy(a, b, c, vectors)", "analogy(a, b, c, vectors, k=1)"), "k=1"),
    ("exercises", source(7, "f(cosine_similarity)"), "never checks"),
    ("exercises", outputs(7, *said("Passed")), "not started"),
    ("exercises", replace("return 1", "..."), "does not solve", SOLUTION),
    ("exercises", outputs(4, *said("✗ Not yet: cosine_similarity")), "passed", SOLUTION),
]


@pytest.mark.parametrize(("name", "change", "word", "where"), [(*case, LESSON)[:4] for case in BAD],
                         ids=[f"{i}-{case[0]}" for i, case in enumerate(BAD)])
def test_a_bad_notebook_is_caught(course, monkeypatch, name, change, word, where):
    asked = {"01-a": {"spoilers": getattr(change, "spoilers", [])}}
    monkeypatch.setattr(hygiene.predictions, "load", lambda: asked if "answers" in name or "predictions" in name else {})
    applies_to, rule = hygiene.RULES[name]
    found = list(rule(course(change, where)))
    assert found, f"rule {name} lets this pass"
    assert any(word in sentence for sentence in found), found
    for sentence in found:
        assert sentence.startswith(where), sentence
        assert "\n" not in sentence and sentence.endswith("."), sentence


def test_what_goes_deeper_has_minutes_of_its_own(course):
    deeper = "## Going deeper\n\n### History\n\n**Time:** 5 minutes\n\nLong ago.\n\n### Going further\n\n**Time:** 5 minutes"
    lesson = course(replace("## Going further", deeper))
    assert not [*hygiene.minutes(lesson), *hygiene.sections(lesson)]


def test_a_missing_partner_is_caught(course):
    lesson = course()
    (lesson.root / SOLUTION).unlink()
    assert f"solutions/{NAME}" in next(hygiene.has_solution(lesson))
    solution = course(where=SOLUTION)
    (solution.root / LESSON).unlink()
    assert f"no {LESSON}" in next(hygiene.has_lesson(solution))


def test_a_file_that_is_not_in_the_list_is_caught(course):
    book = course()
    for name in ("scratch.ipynb", "77_more.ipynb", "01_words.ipynb"):
        book.path = book.root / "notebooks" / name
        book.__dict__.pop("lesson", None)
        assert "data/course.toml" in next(hygiene.number_and_title(book)), name


def test_a_file_that_is_not_json_is_caught(course):
    path = course().path
    path.write_text("<<<<<<< ours\n" + path.read_text())
    found = hygiene.problems(Book(path, path.parent.parent))
    assert "cannot be read" in found[0] and "line 1" in found[0]


EXPERIMENT = f"notebooks/experiments/{NAME}"


def experiment_of(lesson, *cells, verdict="holds"):
    """Beside ``lesson`` an experiment that opens and decides its claims in these cells, and the register."""
    root = lesson.root
    (root / "data").mkdir(exist_ok=True)
    (root / "notebooks/experiments").mkdir(exist_ok=True)
    common = dict.fromkeys(claims.FIELDS, "said") | {"lesson": "01", "verdict": verdict, "experiment": EXPERIMENT}
    entries = [common | {"id": id} for id in LESSONS["01"].claims]
    (root / "data/claims.json").write_text(json.dumps(entries))
    notebook = finish([new_markdown_cell("# 01 · Word embeddings and similarity: experiment"), first_cell(),
                       *map(new_code_cell, cells)])
    (root / EXPERIMENT).write_text(json.dumps(notebook))
    return Book(root / EXPERIMENT, root)


OPEN = [f'{id.lower()} = Claim("{id}", source="a")' for id in LESSONS["01"].claims]
DECIDE = [f"{id.lower()}.decide(n=1)" for id in LESSONS["01"].claims]
LAST = list(LESSONS["01"].claims)[-1]


def test_an_experiment_says_how_it_decides_before_it_does(course):
    assert hygiene.problems(experiment_of(course(), *OPEN, *DECIDE)) == []
    for cells, word in [((*OPEN[:-1], *DECIDE), f"does not open and decide {LAST}"),
                        ((*OPEN, *DECIDE[:-1]), f"does not open and decide {LAST}"),
                        ((*OPEN[:-1], *DECIDE, OPEN[-1]), f"decides {LAST} in or before"),
                        ((*OPEN[:-1], *DECIDE[:-1], f"{OPEN[-1]}\n{DECIDE[-1]}"), f"decides {LAST} in or before")]:
        found = list(hygiene.decided_before_it_is_measured(experiment_of(course(), *cells)))
        assert len(found) == 1 and word in found[0], found
    book = experiment_of(course(), *OPEN, *DECIDE)
    (book.root / "data/claims.json").write_text("[]")
    assert len(list(hygiene.decided_before_it_is_measured(book))) == len(OPEN)


def test_a_lesson_says_what_the_register_says(course):
    lesson = course()
    assert list(hygiene.what_people_say(lesson)) == list(hygiene.sections(lesson)) == []
    for verdict, stamp in [("not settled: too few", "Open"), ("holds if it rains", "True if"), ("does not hold", "False")]:
        experiment_of(lesson, *OPEN, *DECIDE, verdict=verdict)
        assert [f"that is {stamp!r}" in sentence for sentence in hygiene.what_people_say(lesson)] == [True, True]
    lesson.experiment.unlink()
    assert "no experiment" in next(hygiene.what_people_say(lesson))


def test_every_rule_is_able_to_fail():
    elsewhere = {"has_solution", "has_lesson", "decided_before_it_is_measured"}  # above
    assert {case[0] for case in BAD} | elsewhere == set(hygiene.RULES)
