"""The notebooks keep to the rules of hygiene.py, and each rule is able to fail: on lesson 01 with one thing spoilt."""

import hygiene
import pytest
from hygiene import REPO, Book, books

from helpers.page.course import LESSONS

NAME = LESSONS["01"].file
LESSON, SOLUTION, EXPERIMENT = (f"notebooks/{folder}{NAME}" for folder in ("", "solutions/", "experiments/"))


@pytest.mark.parametrize("path", [book.path for book in books()], ids=[book.name for book in books()])
def test_notebook(path):
    found = hygiene.problems(Book(path))
    assert not found, "\n" + "\n".join(found)


def test_nine_of_ten_outputs_are_compared():
    cells = [cell for book in books() for cell in book.code]
    ignored = [f"{cell}: {cell.metadata.get('reason')}" for cell in cells if not cell.compared]
    assert len(ignored) <= (1 - hygiene.LEAST_COMPARED) * len(cells), (
        f"{len(ignored)} of {len(cells)} code cells are not compared, more than one in ten: make more outputs stable.\n"
        + "\n".join(ignored))


def at(cell_id, **values):
    """The cell with this id gets other values; a source is one text."""
    def change(raw):
        next(cell for cell in raw["cells"] if cell["id"] == cell_id).update(values)
    return change


def shows(cell_id, html=None, output_type="display_data", **values):
    values = {"data": {"text/html": html}} if html else values
    return at(cell_id, outputs=[{"output_type": output_type, "metadata": {}} | values])


def prints(cell_id, text, name="stdout"):
    return shows(cell_id, output_type="stream", name=name, text=text)


def replace(old, new):
    """Replace a text in every source."""
    def change(raw):
        sources = ["".join(cell["source"]) for cell in raw["cells"]]
        assert any(old in source for source in sources), f"{NAME} no longer says {old!r}: spoil something else in BAD."
        for cell, source in zip(raw["cells"], sources, strict=True):
            cell["source"] = source.replace(old, new)
    return change


def without(cell_id):
    def change(raw):
        raw["cells"] = [cell for cell in raw["cells"] if cell["id"] != cell_id]
    return change


def with_metadata(**values):
    return lambda raw: raw["metadata"].update(values)


SUM, FIGURE, ITS_WORDS = "bd19a951", "8406243b", "683483f5"  # cells of lesson 01: a sum, a figure, and the text after it
IGNORED = {"tags": ["nbval-ignore-output"], "reason": "the time of day"}
BAD = [  # rule, what breaks it, a word of the message, and the notebook if it is not the lesson
    ("valid", at(SUM, cell_type="cod"), "not a valid"),
    ("valid", lambda raw: raw.update(nbformat_minor=4), "4.5"),
    ("valid", lambda raw: raw.clear(), "cannot be read"),
    ("valid", at(FIGURE, id=SUM), "two cells with the id"),
    ("kernel", with_metadata(kernelspec={"name": "my-env", "display_name": "x"}), "my-env"),
    ("execution_counts", at(SUM, execution_count=None), "None where 7 is due"),
    ("execution_counts", shows(SUM, output_type="execute_result", execution_count=9, data={}), "7 is due"),
    ("short_cells", at(SUM, source="\n".join("1" * 31)), "31 lines"),
    ("no_errors", shows(SUM, output_type="error", ename="KeyError", evalue="'x'", traceback=[]), "KeyError"),
    ("no_stderr", prints(SUM, "UserWarning: old\n", "stderr"), "UserWarning"),
    ("no_absolute_paths", at(SUM, source="open('/home/ada/x')"), "/home/ada"),
    ("no_absolute_paths", shows(SUM, "<i>C:\\Users\\ada</i>"), "C:\\Users"),
    ("frames", shows(SUM, "<iframe srcdoc=' sandbox=\"allow-scripts\" ' sandbox='allow-scripts allow-forms'>"), "sandbox"),
    ("nothing_skipped", at(SUM, metadata={"tags": ["raises-exception"]}), "raises-exception"),
    ("nothing_skipped", at(SUM, source="# NBVAL_IGNORE_OUTPUT\n1"), "NBVAL_IGNORE_OUTPUT"),
    ("ignored_cells", at(SUM, metadata={"tags": ["nbval-ignore-output"], "reason": 7}), "reason"),
    ("ignored_cells", at(SUM, metadata=IGNORED), "no assert"),
    ("figures_in_words", without(ITS_WORDS), "In words"),
    ("figures_in_words", at(ITS_WORDS, source="*In words:* *black* and a darker line rise."), "says darker of"),
    ("figures_in_words", shows("194bb6a8", data={"image/png": "iVBORw0KGgo="}), "without its own text"),
    ("links", replace("00_start_here.ipynb", "../notes.md"), "no such file"),
    ("links", replace("00_start_here.ipynb", "../docs/glossary.md#no-such-word"), "no heading"),
    ("links", replace("(00_start_here.ipynb)", "(#what-people-say)"), "no heading"),
    ("links", shows(SUM, '<a href="03_no.ipynb">3</a>'), "03_no"),
    ("number_and_title", replace("# 01 · Word", "# 1. Word"), "does not begin"),
    ("number_and_title", replace("# 01 ·", "# 02 ·"), "does not begin", SOLUTION),
    ("sections", replace("## What people say", "## Claims"), "## What people say"),
    ("sections", replace("**Time:** 70", "Time: 70"), "does not say its time"),
    ("sections", replace("Next: [02", "[02"), "0 lines 'Next: …'"),
    ("nothing_is_folded", at(SUM, metadata={"jupyter": {"source_hidden": True}}), "is folded"),
    ("little_scaffolding", at(SUM, source="from helpers.page import show\n" * 99), "lines of code that serve the page"),
    ("comes_through_github", shows(SUM, "<style>b</style><svg><text>a map</text></svg>"), "nothing on GitHub"),
    ("answers_are_earned", at("multiply-and-add", source="## Bear with lion 8"), "'lion 8' is in a heading"),
    ("predictions_are_asked_and_revealed", at(SUM, source="predict('01-bears')"), "does not call predict('01-bears') once"),
    ("colab_first", without("colab"), "begin its code", SOLUTION),
    ("colab_first", at("colab", metadata={}), "folded away"),
    ("what_people_say", replace("**True here.** Two judges", "**Open.** Two judges"), "that is 'True here'"),
    ("what_people_say", replace("**True here.** Two judges", "True here. Two judges"), "without a stamp"),
    ("what_people_say", replace("[C02](experiments", "[C99](experiments"), "not a claim of this lesson"),
    ("numbers_are_computed", replace("A tie: the row", "A tie at 47.3: the row"), "states 47.3"),
    ("numbers_are_computed", replace("A tie: the row", "A tie at 0.58: the row"), "states 0.58"),  # of another section
    ("numbers_are_computed", replace("called 97 % of 150", "called 60 % of 150"), "states 60 %"),  # of another claim
    ("numbers_are_computed", replace("Where a length is 0 the", "47.3: the"), "states 47.3", SOLUTION),
    ("numbers_are_computed", replace("0.67, king", "0.52, king"), "no sentence states it"),
    ("numbers_are_computed", at("numbers", source="print(2)"), "does not end with numbers.agree"),
    ("numbers_are_computed", prints("numbers", "The text says 0.51, and here it is 0.6."), "here it is 0.6"),
    ("the_course_has_it", at(SUM, source="from helpers import tokens\ntokens.whole('a')"), "no such thing"),
    ("the_course_has_it", at(SUM, source="from helpers import smollm2\nsmollm2.chat_ids(1, [])"), "'start'"),
    ("exercises", at("16ef41b8", source="def cosine_similarity(X, Y):\n    return X @ Y.T"), "no stub"),
    ("exercises", replace("cosine_similarity(X, Y)", "cosine_similarity(Y, X)"), "cosine_similarity(X, Y)"),
    ("exercises", prints("16ef41b8", "Passed"), "not started"),
    ("exercises", prints("620769d8", "✗ Not yet: cosine_similarity"), "passed", SOLUTION),
    ("decided_before_it_is_measured", replace("c02.decide(", "c02.think("), "does not open and decide C02", EXPERIMENT),
    ("decided_before_it_is_measured", at("c01-decided", source='c01 = Claim("C01")\nc01.decide()'),
     "decides C01 in or before", EXPERIMENT)]


@pytest.mark.parametrize(("name", "change", "word", "where"), [(*case, LESSON)[:4] for case in BAD],
                         ids=[f"{i}-{case[0]}" for i, case in enumerate(BAD)])
def test_a_bad_notebook_is_caught(name, change, word, where):
    book = Book(REPO / where)
    change(book.raw)
    found = list(hygiene.RULES[name][1](book))
    assert any(word in sentence for sentence in found), found or f"rule {name} lets this pass"
    for sentence in found:
        assert sentence.startswith(where) and "\n" not in sentence and sentence.endswith("."), sentence


def test_a_file_that_is_damaged_or_not_in_the_list_and_a_lesson_without_its_experiment_are_caught(tmp_path):
    lonely = tmp_path / LESSON
    lonely.parent.mkdir()
    lonely.write_text((REPO / LESSON).read_text(encoding="utf-8"), encoding="utf-8")
    assert "no experiment" in next(hygiene.what_people_say(Book(lonely, tmp_path)))
    for name in ("scratch.ipynb", "77_more.ipynb", "01_words.ipynb"):
        (tmp_path / name).write_text("<<<<<<< ours\n{" + " " * hygiene.LARGEST_FILE)
        book = Book(tmp_path / name, tmp_path)
        assert "data/course.toml" in next(hygiene.number_and_title(book)), name
    assert "cannot be read" in hygiene.problems(book)[0] and "MB of at most" in next(hygiene.size(book))


def test_every_rule_is_able_to_fail():
    assert {case[0] for case in BAD} | {"size"} == set(hygiene.RULES)  # which is above
