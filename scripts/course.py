"""Write the maps of the course, README's and lesson 00's, from data/course.toml: python -m scripts.course

Each map stands between two comments; what stands around them is left as it is.
"""

import re
import sys
from pathlib import Path

import nbformat

from helpers import course
from helpers.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
BETWEEN = re.compile(r"(<!-- map of the course -->\n).*?(<!-- end of the map -->)", re.DOTALL)


def table(head, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, [":--"] * len(head), *rows]).replace("  |", " |")


def readme_map(lessons, folder="notebooks/"):
    """The table of README.md; its links lead into ``folder``."""
    return table(["", "Lesson", "Minutes", "You write"],
                 [[lesson.number, f"[{lesson.title}]({folder}{lesson.file})", str(lesson.minutes), lesson.you_write]
                  for lesson in lessons.values()])


def lesson_map(lessons):
    """The table of lesson 00."""
    def link(lesson):
        name = f"{lesson.number} · {lesson.title}"
        return name if lesson.number == "00" else f"[{name}]({lesson.file})"
    return table(["lesson", "what you can do afterwards", "minutes"],
                 [[link(lesson), lesson.afterwards, str(lesson.minutes)] for lesson in lessons.values()])


def put(text, new):
    """``text`` with the map ``new`` between the two comments, or None where they are missing."""
    changed, found = BETWEEN.subn(lambda match: f"{match[1]}\n{new}\n\n{match[2]}", text)
    return changed if found else None


def written(root=ROOT):
    """{path: what it should contain} for README.md and lesson 00. Raises ValueError where a map has no place."""
    lessons = course.read(root / "data" / "course.toml")
    readme, start = root / "README.md", root / "notebooks" / lessons["00"].file
    page = put(readme.read_text(encoding="utf-8"), readme_map(lessons))
    notebook = nbformat.read(start, as_version=4)
    cells = [(cell, put(cell.source, lesson_map(lessons))) for cell in notebook.cells]
    cells = [(cell, source) for cell, source in cells if source]
    for path, found in ((readme, page), (start, cells)):
        if not found:
            raise ValueError(f"{path.name} has no place for the map: "
                             "write the lines <!-- map of the course --> and <!-- end of the map -->.")
    for cell, source in cells:
        cell.source = source
    return {readme: page, start: nbformat.writes(notebook) + "\n"}


def main(root=ROOT):
    try:
        for path, contents in written(root).items():
            same = path.read_text(encoding="utf-8") == contents
            if not same:
                write_whole(path, contents)
            print(f"{path.relative_to(root).as_posix()}: {'was as it should be' if same else 'map written'}")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
