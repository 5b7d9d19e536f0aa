"""How many minutes each lesson takes, stated and computed: python -m scripts.minutes

Minutes = words of prose / 165 + visible lines of code / 12 + 10 an exercise + 1 a prediction + the seconds that it ran in
the last `make test`, rounded up to 5. Folded cells do not count.
"""

import json
import math
import re
from pathlib import Path

import nbformat

from helpers.course import LESSONS
from scripts.limits import KNOWN_SECONDS

ROOT = Path(__file__).resolve().parent.parent
RAN = ROOT / ".pytest_cache" / "v" / KNOWN_SECONDS


def minutes(book, exercises, seconds=0.0):
    """The minutes of a lesson: ``book`` as nbformat reads it, how many exercises it has, how long its cells run."""
    prose = " ".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
    words = len(re.sub(r"<[^>]*>|\]\([^)]*\)", " ", prose).split())
    code = "\n".join(cell.source for cell in book.cells
                     if cell.cell_type == "code" and not cell.metadata.get("jupyter", {}).get("source_hidden"))
    lines = sum(bool(line.strip()) for line in code.splitlines())
    predictions = len(re.findall(r"^predict\(", code, re.MULTILINE))
    return 5 * math.ceil((words / 165 + lines / 12 + 10 * exercises + predictions + seconds / 60) / 5)


def main():
    seconds = json.loads(RAN.read_text()) if RAN.exists() else {}
    print("lesson  stated  computed")
    for lesson in LESSONS.values():
        path = f"notebooks/{lesson.file}"
        computed = minutes(nbformat.read(ROOT / path, as_version=4), len(lesson.exercises), seconds.get(path, 0.0))
        print(f"{lesson.number}      {lesson.minutes:6}  {computed:8}")
    if not seconds:
        print("Without running times: `make test` measures them.")


if __name__ == "__main__":
    main()
