"""Make the pages say what data/course.toml says: python -m scripts.pages

Writes the map of README.md, which is between two comments, the tables of docs/syllabus.md,
the lessons' small pictures (docs/map), and in each lesson its minutes, those of each section that goes deeper, and
the line at its end that leads to the next one. Everything else stays as it is.
"""

import re
import sys

import nbformat

from helpers.page import course, pictures
from helpers.store.files import write_whole
from scripts import ROOT, minutes, plans

MAP = re.compile(r"(?<=<!-- map of the course -->\n).*?(?=<!-- end of the map -->)", re.DOTALL)
TIME = re.compile(r"^\*\*Time:\*\* \d+ minutes", re.MULTILINE)
END = re.compile(r"^(Next: \[\d\d · |This was the last lesson\.).*$", re.MULTILINE)
LAST = ("This was the last lesson. All formulas on one page: the [cheat sheet](../docs/cheatsheet.md). "
        "All terms: the [glossary](../docs/glossary.md).")


def name(lesson):
    return f"{lesson.number} · {lesson.title}"


def readme_map(lessons):
    """The table of README.md, which the book shows too."""
    return plans.table(["&nbsp;" * 10, "Lesson", "You write"],  # or GitHub makes the pictures as small as it can
                       [[f"![{pictures.MAP['lessons'][one.number]['alt']}](docs/map/{one.number}.svg)",
                         f"[{name(one)}](notebooks/{one.file})<br>{one.minutes} minutes", one.you_write] for one in lessons])


def put(new, pattern, text):
    return pattern.sub(lambda _: new, text)  # a function, because a backslash is nothing special in it


def revised():
    """{path: what it should contain} for the pages that do not say what the list says. Raises ValueError."""
    lessons, readme, syllabus = list(course.LESSONS.values()), ROOT / "README.md", ROOT / "docs/syllabus.md"
    wanted = {readme: put(f"\n{readme_map(lessons)}\n\n", MAP, readme.read_text(encoding="utf-8")),
              syllabus: plans.computed(syllabus.read_text(encoding="utf-8"))}
    wanted |= {ROOT / "docs" / "map" / f"{number}.svg": pictures.picture(number, 40) + "\n" for number in pictures.NUMBERS}
    wanted = {path: text for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text}
    for lesson, following in zip(lessons, [*lessons[1:], None], strict=True):
        path = ROOT / "notebooks" / lesson.file
        if not path.exists():
            continue
        notebook, changed = nbformat.read(path, as_version=4), False
        apart = {cell.id: minutes.rounded(minutes.needed(cells)) for cells in minutes.parts(notebook)[1].values()
                 for cell in cells}  # of the sections that go deeper
        end = f"Next: [{name(following)}]({following.file})" if following else LAST
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                new = put(end, END, cell.source)
                new = put(f"**Time:** {apart.get(cell.id, lesson.minutes)} minutes", TIME, new)
                changed, cell.source = changed or new != cell.source, new
        if changed:
            wanted[path] = nbformat.writes(notebook) + "\n"
    return wanted


def main():
    try:
        wanted = revised()
        for path, contents in wanted.items():
            path.parent.mkdir(exist_ok=True)
            write_whole(path, contents)
            print(f"{path.relative_to(ROOT).as_posix()} now says what data/course.toml says.")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if not wanted:
        print("Every page says what data/course.toml says.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
