"""The lessons of the course, read from ``data/course.toml``: the one list of titles, minutes, exercises and claims."""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).resolve().parents[2] / "data" / "course.toml"


@dataclass(frozen=True)
class Lesson:
    """An entry of the list; the file itself says what each field means."""

    number: str
    title: str
    minutes: int
    afterwards: str
    you_write: str = ""
    exercises: dict[str, str] = field(default_factory=dict)  # name -> its parameters, as Python writes them
    claims: dict[str, str] = field(default_factory=dict)  # id, such as C01 -> what people say

    @property
    def file(self):
        """The name of its notebook, and of its solution."""
        return f"{self.number}_{re.sub('[^a-z0-9]+', '_', self.title.lower()).strip('_')}.ipynb"


def version(root=FILE.parents[1]):
    """The course's version, such as "0.1.0", from ``pyproject.toml``; None where there is no such file, as in a browser."""
    try:
        return tomllib.loads((Path(root) / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    except OSError:
        return None


def read():
    """The lessons as ``{number: Lesson}``, in order."""
    lessons = {}
    for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["lesson"]:
        exercises = dict(call.removesuffix(")").split("(", 1) for call in entry.pop("exercises", []))
        lessons[entry["number"]] = Lesson(exercises=exercises, **entry)
    return lessons


LESSONS = read()
