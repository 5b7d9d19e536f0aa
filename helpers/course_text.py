"""The texts that lesson 13 searches: everyday notes, and paragraphs of the course itself, each with questions.

``scripts/paragraphs.py`` collected the paragraphs from the notebooks.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from helpers.texts import read_text
from helpers.words import texts_in

DATA = Path(__file__).resolve().parent.parent / "data"
PARAGRAPHS_FILE, QUESTIONS_FILE = DATA / "course_paragraphs.tsv", DATA / "questions.tsv"
EVERYDAY_FILE = DATA / "everyday.tsv"
SHELVES = ("kitchen", "weather", "health", "animals", "travel", "money", "home", "sport")  # five notes of each, in order


@dataclass(frozen=True)
class Paragraph:
    """One paragraph of a lesson."""

    key: str  #: the id of its cell and its number there
    lesson: str  #: such as "05"
    text: str  #: without marks


def load_paragraphs(path=PARAGRAPHS_FILE):
    """The paragraphs of ``data/course_paragraphs.tsv``, in the order of the course: a list of `Paragraph`."""
    return [Paragraph(*row) for row in _rows(path, 3)]


def load_questions(paragraphs, path=QUESTIONS_FILE):
    """The questions of ``data/questions.tsv``: a list of (question, index of the paragraph that answers it).

    Raises ValueError when a question names a paragraph that is not among ``paragraphs``.
    """
    index = {paragraph.key: i for i, paragraph in enumerate(paragraphs)}
    pairs = _rows(path, 2)
    lost = [f"{question!r} ({key})" for question, key in pairs if key not in index]
    if lost:
        raise ValueError(f"No paragraph any more for {', '.join(lost)}; give the question another key, or delete it.")
    return [(question, index[key]) for question, key in pairs]


def load_everyday():
    """Forty everyday notes and a question for each, which shares no word with it but little ones: two lists."""
    notes, questions = zip(*_rows(EVERYDAY_FILE, 2), strict=True)
    return list(notes), list(questions)


def own_notes(path):
    """The notes in a text file of the learner's own, one in each line. Raises NotUsable as `texts.read_text` does."""
    lines = read_text(path, least=0).splitlines()
    return texts_in([line.strip() for line in lines], like="The spare key is under the mat.")


def stems(text):
    """The words of a text in small letters, their commonest endings cut off."""
    return [re.sub(r"(ing|ed|es|s)$", "", word) for word in re.findall("[a-z]+", text.lower())]


def bm25(asked, found, k=1.5, b=0.75):
    """Keyword search: a score for each of m questions and n texts, ``(m, n)``.

    A shared word that n of N texts have, and this text f times, adds log(1 + (N - n + ½) / (n + ½)) · f (k + 1) / (f + s).
    In a text of average length s is k, and in one longer by a share r it is k (1 + b r). The constants are the usual ones.
    Source: Robertson and Zaragoza 2009, equation 3.15.
    """
    bags = [Counter(stems(text)) for text in found]
    lengths = np.array([counts.total() for counts in bags])
    s = k * (1 + b * (lengths / lengths.mean() - 1))  # (n,)
    scores = np.zeros((len(asked), len(found)))
    for row, question in zip(scores, asked, strict=True):
        for word in sorted(set(stems(question))):
            f = np.array([counts[word] for counts in bags])  # (n,)
            n = np.count_nonzero(f)
            row += math.log(1 + (len(bags) - n + 0.5) / (n + 0.5)) * f * (k + 1) / (f + s)
    return scores


def _rows(path, columns):
    """The rows of a table with tabs. Raises ValueError when one has another number of columns."""
    rows = [line.split("\t") for line in Path(path).read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows, 1):
        if len(row) != columns or not all(row):
            raise ValueError(f"{path.name}, line {number}, should have {columns} columns with a tab between them.")
    return rows
