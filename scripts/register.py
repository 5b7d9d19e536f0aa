"""The book's page *What people say about attention*: the register of claims as a table that sorts and filters."""

from pathlib import Path

from helpers import claims, course

TEMPLATE = Path(__file__).resolve().parent.parent / "docs" / "book" / "register.html"
HEADING = """# What people say about attention

Everyone repeats these sentences. Here each was measured, and *what we found* says it in plain words.
*How it was decided* opens the rest: the criterion, the trivial baseline that ran beside it, how sure the number is, the
smallest effect that would have been noticed, the setting that it holds in, and what was changed after a run. The claims
that matter most to those who use language models come first; equalities, counts, checks of the course's own code and
misprints are a list of their own, and come last. Click a heading to sort.

"""
FIRST = ("C36", "C53", "C55", "C56", "C61", "C64", "C68", "C70", "C71", "C73", "C80", "C81", "C83", "C84", "C85")
LISTS = {"claim": "what people say", "identity": "checked identities and misprints",
         "misprint": "checked identities and misprints"}


def kind(verdict):
    """The first of the verdicts that a verdict begins with, the longest first: "holds if …" is not "holds"."""
    return next(k for k in sorted(claims.VERDICTS, key=len, reverse=True) if verdict.startswith(k))


def list_of(entry):
    """The name of the list that an entry belongs to."""
    return LISTS[entry.get("kind", "claim")]


def in_order(entries):
    """The claims that matter most to practitioners, then the other claims, then identities and misprints."""
    return sorted(entries, key=lambda e: (list_of(e) != LISTS["claim"], e["id"] not in FIRST))  # sorted by number before


def page():
    """The page as Markdown with one table of HTML in it."""
    from jinja2 import Environment

    entries = in_order(claims.register().values())
    verdicts = {k: n for k in claims.VERDICTS if (n := sum(kind(e["verdict"]) == k for e in entries))}
    lists = {name: sum(list_of(e) == name for e in entries) for name in dict.fromkeys(LISTS.values())}
    here = {e["lesson"] for e in entries}
    html = Environment(autoescape=True, trim_blocks=True).from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        entries=entries, verdicts=verdicts, kind=kind, lists=lists, list_of=list_of,
        lessons={number: lesson for number, lesson in course.LESSONS.items() if number in here},
        page=lambda e: course.LESSONS[e["lesson"]].file.replace(".ipynb", ".html"),
        experiment=lambda e: e["experiment"].removeprefix("notebooks/").replace(".ipynb", ".html"))
    return HEADING + html
