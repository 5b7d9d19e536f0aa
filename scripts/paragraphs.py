"""Collect the paragraphs that lesson 13 searches: python -m scripts.paragraphs

reads the notebooks and writes ``data/course_paragraphs.tsv`` again. ``data/questions.tsv`` is written by hand; each of
its questions names the paragraph that answers it.
"""

import hashlib
import re
from pathlib import Path

import nbformat

from helpers.course_text import PARAGRAPHS_FILE, Paragraph, load_questions
from helpers.store.files import write_whole
from scripts import ROOT

NOTEBOOKS = ROOT / "notebooks"
FEWEST, MOST = 28, 60  # words of a paragraph
LESSONS = range(1, 9)  # whose paragraphs are searched: raise the end when later lessons are to be found too


def build(folder=NOTEBOOKS, path=PARAGRAPHS_FILE):
    """Write the paragraphs of ``LESSONS``, as far as they exist, and return them.

    A paragraph is taken when it is plain text of 28 to 60 words: no list, table, heading, formula or picture text, and
    nothing of an exercise. Its marks are taken off.
    """
    paragraphs = []
    for book in sorted(Path(folder).glob("[0-9][0-9]_*.ipynb")):
        if int(book.name[:2]) in LESSONS:
            for cell in nbformat.read(book, as_version=4).cells:
                if cell.cell_type == "markdown":
                    for number, text in enumerate(re.split(r"\n\s*\n", cell.source.split("### Exercise")[0])):
                        if is_plain(text.strip()) and FEWEST <= len(plain(text).split()) <= MOST:
                            paragraphs.append(Paragraph(f"{cell.id}.{number}", book.name[:2], plain(text)))
    write_whole(path, "".join(f"{p.key}\t{p.lesson}\t{p.text}\n" for p in paragraphs))
    return paragraphs


def plain(text):
    """A paragraph of Markdown without its marks, on one line: links become their words."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(re.sub(r"[`*]", "", text).split())


def is_plain(text):
    """Whether a paragraph of Markdown is running text, and not a list, a table, a heading, a formula or a link."""
    start = (r"People say these things|#|\||- |\d+\.|<|!|>|\*In words|\*\*(In this|You need|Time|Task)"
             r"|Next:|\[Solution|Back to")
    return bool(text) and not re.match(start, text) and not re.search(r"[$<]|\n- ", text)


if __name__ == "__main__":
    kept = build()
    print(f"{hashlib.sha256(PARAGRAPHS_FILE.read_bytes()).hexdigest()}  {PARAGRAPHS_FILE.name}: {len(kept)} paragraphs")
    load_questions(kept)  # raises ValueError, which names the questions that have lost their paragraph
