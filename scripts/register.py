"""The book's page *What people say about attention*: the register of claims as a table that sorts and filters."""

from pathlib import Path

from helpers import claims, course

TEMPLATE = Path(__file__).resolve().parent.parent / "docs" / "book" / "register.html"
HEADING = """# What people say about attention

Everyone repeats these sentences. Here each was measured: the criterion stands above the run, a trivial baseline ran beside
it, and an interval says how sure the number is. Where a sample was known before or a criterion was replaced, the experiment
says so. A verdict holds in the setting that it was measured in; *how it was decided* says which that is.
Click a heading to sort.

"""


def kind(verdict):
    """The first of the four verdicts that a verdict begins with, the longest first: "holds if …" is not "holds"."""
    return next(k for k in sorted(claims.VERDICTS, key=len, reverse=True) if verdict.startswith(k))


def page():
    """The page as Markdown with one table of HTML in it."""
    from jinja2 import Environment

    entries = list(claims.register().values())
    verdicts = {k: n for k in claims.VERDICTS if (n := sum(kind(e["verdict"]) == k for e in entries))}
    here = {e["lesson"] for e in entries}
    html = Environment(autoescape=True, trim_blocks=True).from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        entries=entries, verdicts=verdicts, kind=kind,
        lessons={number: lesson for number, lesson in course.LESSONS.items() if number in here},
        page=lambda e: course.LESSONS[e["lesson"]].file.replace(".ipynb", ".html"),
        experiment=lambda e: e["experiment"].removeprefix("notebooks/").replace(".ipynb", ".html"))
    return HEADING + html
