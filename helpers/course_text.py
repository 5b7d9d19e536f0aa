"""The text that lesson 13 searches: paragraphs of the course itself, and questions about them.

    python -m helpers.course_text build

reads the notebooks and writes ``data/course_paragraphs.tsv`` again. ``data/questions.tsv`` is written by hand; each of its
questions names the paragraph that answers it.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from helpers.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
PARAGRAPHS_FILE = ROOT / "data" / "course_paragraphs.tsv"
QUESTIONS_FILE = ROOT / "data" / "questions.tsv"
FEWEST, MOST = 28, 60  # words of a paragraph
LESSONS = range(1, 9)  # whose paragraphs are searched: raise the end when later lessons are to be found too


@dataclass(frozen=True)
class Paragraph:
    """One paragraph. ``key``: the id of its cell and its number there; ``lesson``: such as "05"; ``text``: without marks."""

    key: str
    lesson: str
    text: str


def load_paragraphs(path=None):
    """The paragraphs of ``data/course_paragraphs.tsv``, in the order of the course: a list of `Paragraph`."""
    return [Paragraph(*row) for row in _rows(path or PARAGRAPHS_FILE, 3)]


def load_questions(paragraphs, path=None):
    """The questions of ``data/questions.tsv``: a list of (question, index of the paragraph that answers it).

    Raises ValueError when a question names a paragraph that is not among ``paragraphs``.
    """
    index = {paragraph.key: i for i, paragraph in enumerate(paragraphs)}
    pairs = _rows(path or QUESTIONS_FILE, 2)
    lost = [f"{question!r} ({key})" for question, key in pairs if key not in index]
    if lost:
        raise ValueError(f"No paragraph any more for {', '.join(lost)}; give the question another key, or delete it.")
    return [(question, index[key]) for question, key in pairs]


def build(folder=ROOT / "notebooks", path=PARAGRAPHS_FILE):
    """Write the paragraphs of ``LESSONS``, as far as they exist, and return them.

    A paragraph is taken when it is plain text of 28 to 60 words: no list, table, heading, formula or picture text, and
    nothing of an exercise. Its marks are taken off.
    """
    import nbformat

    found = []
    for book in sorted(Path(folder).glob("[0-9][0-9]_*.ipynb")):
        if int(book.name[:2]) in LESSONS:
            for cell in nbformat.read(book, as_version=4).cells:
                if cell.cell_type == "markdown":
                    for number, text in enumerate(re.split(r"\n\s*\n", cell.source.split("### Exercise")[0])):
                        if _is_plain(text.strip()) and FEWEST <= len(plain(text).split()) <= MOST:
                            found.append(Paragraph(f"{cell.id}.{number}", book.name[:2], plain(text)))
    write_whole(path, "".join(f"{p.key}\t{p.lesson}\t{p.text}\n" for p in found))
    return found


def plain(text):
    """A paragraph of Markdown without its marks, on one line: links become their words."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"[`*]", "", text).split())


def _is_plain(text):
    start = r"#|\||- |\d+\.|<|!|>|\*In words|\*\*(In this|You need|Time|Task)|Next:|\[Solution|Back to"
    return bool(text) and not re.match(start, text) and not re.search(r"[$<]|\n- ", text)


def _rows(path, columns):
    """The rows of a table with tabs. Raises ValueError when one has another number of columns."""
    rows = [line.split("\t") for line in Path(path).read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows, 1):
        if len(row) != columns or not all(row):
            raise ValueError(f"{Path(path).name}, line {number}, should have {columns} columns with a tab between them.")
    return rows


def main(arguments):
    """The command line; returns the exit status."""
    if arguments != ["build"]:
        print("usage: python -m helpers.course_text build", file=sys.stderr)
        return 2
    paragraphs = build()
    print(f"Wrote data/{PARAGRAPHS_FILE.name}: {len(paragraphs)} paragraphs of lessons "
          f"{paragraphs[0].lesson} to {paragraphs[-1].lesson}.")
    try:
        print(f"All {len(load_questions(paragraphs))} questions have their paragraph.")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
