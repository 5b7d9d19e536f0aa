"""The book's front page: docs/book/index.md, with the map of the course as a path of pictures."""

from pathlib import Path

from helpers.page import claims, pictures, sheet
from helpers.page.course import LESSONS
from helpers.store import progress
from scripts import edition, register

TEMPLATE = Path(__file__).resolve().parent.parent / "docs" / "book" / "index.md"
KNOWN = "progress.json"  # beside the front page: what a server on one's own machine knows; in the book as built, nothing


def known():
    """What ``.progress.json`` knows, as the front page takes it: names of passed exercises, keys of predictions."""
    return {section: sorted(progress.load(section)) for section in ("exercises", "predictions")}


def page(table, megabytes):
    """The front page as Markdown. ``table``: the lessons as a table; ``megabytes``: what a lesson in a browser loads."""
    from jinja2 import Environment

    entries = list(claims.register().values())
    verdicts = [register.kind(entry["verdict"]) for entry in entries]
    return Environment(autoescape=False, trim_blocks=True).from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        lessons=LESSONS.values(), picture=lambda lesson: pictures.picture(lesson.number, 72), colours=sheet.dark(".path"),
        page=lambda lesson: lesson.file.replace(".ipynb", ".html"), table=table, megabytes=megabytes,
        runs=[path.removeprefix("notebooks/") for path in edition.RUNS], claims=len(entries),
        holding=verdicts.count("holds"))
