"""The pages of the book, and how they link to each other; scripts/book.py and scripts/edition.py write them."""

import os
import re
from pathlib import Path

from helpers.page.course import LESSONS
from scripts import ROOT
from scripts.setup import Stop

FOLDER = ROOT / "build" / "book"
EXERCISE = re.compile(r"^#+ Exercises? \d+(?: and \d+|, \w+ part)? · `(\w+)\(", re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*[./][^)\s#]*)(?:#([^)\s]*))?\)")
# Every page of the book: file in the repository -> name in the book, without its ending.
PAGES = {"README.md": "index", "data/README.md": "reference/data", "docs/glossary.md": "reference/glossary",
         "docs/cheatsheet.md": "reference/cheatsheet", "docs/teaching.md": "teaching/teaching",
         "docs/syllabus.md": "teaching/syllabus",
         "CHANGELOG.md": "changelog", "docs/install.md": "install",
         "notebooks/assignments/source/project.md": "teaching/project", "docs/book/solutions.md": "solutions",
         "docs/book/live.md": "live"}
PAGES |= {f"notebooks/{folder}{lesson.file}": folder + Path(lesson.file).stem
          for folder in ("", "solutions/", "experiments/") for lesson in LESSONS.values()
          if (ROOT / "notebooks" / folder / lesson.file).exists()}


def staged(path):
    """Where the copy of a page stands that Sphinx reads."""
    return FOLDER / "source" / (PAGES[path] + Path(path).suffix)


def relink(text, origin, to=None):
    """The text of the file ``origin``, with links that lead to pages of the book, or else to nothing but a name.

    ``to``: how a page is linked to, given its name in the book; by default, as from the page that is made of ``origin``.
    """
    # Not myst_heading_slug_func: notebooks use JupyterLab's names of headings and Markdown pages GitHub's, and links that
    # leave the book must be changed in any case.
    def new(link):
        image, words, target, heading = link.groups()
        if "://" in target or target.startswith("mailto:"):
            return link[0]
        path = os.path.normpath(os.path.join(os.path.dirname(origin), target)).replace(os.sep, "/")
        if not (ROOT / path).exists():
            raise Stop(f"{origin} links to {target}, which does not exist: mend the link.")
        if image:
            return f"![{words}]({Path(os.path.relpath(ROOT / path, staged(origin).parent)).as_posix()})"
        if path not in PAGES:
            return f"`{path}`" if words.strip("`") in (path, target) else f"{words} (`{path}`)"
        page = to(PAGES[path]) if to else Path(os.path.relpath(staged(path), staged(origin).parent)).as_posix()
        heading = (heading or "") if to and page.endswith(".ipynb") else _in_book(heading or "")
        anchor = f"#{heading}" if heading else ""
        return f"[{words}]({page}{anchor})"

    text = LINK.sub(new, text)
    return text if to else re.sub(r"\]\(#([^)]+)\)", lambda link: f"](#{_in_book(link[1])})", text)  # on the same page


def _in_book(heading):
    """JupyterLab's name of a heading keeps capitals and points, the book's does not."""
    return re.sub(r"[^\w\- ]", "", heading.lower())
