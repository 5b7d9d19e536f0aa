"""How many minutes each lesson takes, stated and computed: python -m scripts.minutes

Minutes = words of prose / 115 + visible lines of code / 6 + 10 an exercise + 2 a prediction + 1 a figure + 13 for the words
of the attention inventory + its running time, rounded up to 5: what fresh readers of all lessons needed, or a little more.
Folded cells, cells that only show something of the page (remove-input), comments, imports and the last cell, which computes
the numbers of the prose, do not count.
The core is everything before the heading *Going deeper*; each section behind that has minutes of its own.
"""

import math
import re

import nbformat

from helpers.page.course import LESSONS
from scripts import ROOT

SECONDS = dict.fromkeys(("10", "11", "15", "16", "17", "18", "19", "20"), 60)  # of running time; the other lessons get 20
DEEPER = re.compile(r"^##? *Going deeper", re.MULTILINE)
INVENTORY = 13  # 24 questions with their options, at 115 words a minute
SECTION = re.compile(r"^### (.+)", re.MULTILINE)


def needed(cells):
    """The minutes that these cells take, not rounded and without their running time."""
    minutes_needed = 0.0
    for cell in cells:
        if cell.cell_type == "markdown":
            words = re.findall(r"\w+", re.sub(r"<[^>]+>|\]\([^)]*\)", " ", cell.source))
            minutes_needed += len(words) / 115 + 10 * len(re.findall(r"^#+ Exercise", cell.source, re.MULTILINE))
            continue
        if "numbers.agree(" in cell.source:
            continue
        if not cell.metadata.get("jupyter", {}).get("source_hidden") and "remove-input" not in cell.metadata.get("tags", ()):
            lines = filter(None, map(str.strip, cell.source.split("\n")))
            minutes_needed += sum(not line.startswith(("#", "import ", "from ")) for line in lines) / 6
        minutes_needed += 2 * len(re.findall(r"^predict\(", cell.source, re.MULTILINE))
        minutes_needed += INVENTORY * len(re.findall(r"^inventory\.take\(", cell.source, re.MULTILINE))
        minutes_needed += any({"image/png", "image/svg+xml"} & {*output.get("data", ())} for output in cell.outputs)
    return minutes_needed


def rounded(minutes):
    return 5 * math.ceil(minutes / 5)


def parts(book):
    """(the cells of the core, {title of a section that goes deeper: its cells}) of a lesson as nbformat reads it."""
    border = next((i for i, cell in enumerate(book.cells) if cell.cell_type == "markdown" and DEEPER.search(cell.source)),
                  len(book.cells))
    sections, title = {}, None
    for cell in book.cells[border:]:
        heading = SECTION.search(cell.source) if cell.cell_type == "markdown" else None
        if heading and not heading[1].startswith("Exercise"):
            title = heading[1]
        if title:
            sections.setdefault(title, []).append(cell)
    return book.cells[:border], sections


def minutes(book, seconds=0.0):
    """The minutes of a lesson's core, whose cells run for ``seconds``."""
    return rounded(needed(parts(book)[0]) + seconds / 60)


def deeper(book):
    """{title: minutes} of the sections that go deeper."""
    return {title: rounded(needed(cells)) for title, cells in parts(book)[1].items()}


def main():
    print("lesson  stated  computed  going deeper")
    for lesson in LESSONS.values():
        book = nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4)
        print(f"{lesson.number}      {lesson.minutes:6}  {minutes(book, SECONDS.get(lesson.number, 20)):8}  "
              f"{', '.join(f'{title} {n}' for title, n in deeper(book).items())}")


if __name__ == "__main__":
    main()
