"""Build the book, a static site of all lessons, in build/book/html: python -m scripts.book [--serve [PORT]].

First every page is staged: a copy whose links lead to pages of the book. Then Sphinx makes the site of the copies, and
scripts/edition.py the lessons that run in a browser. Nothing is run and nothing is fetched. What a person can mend is told
in a sentence.
"""

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

from helpers.page import claims, pictures, sheet
from helpers.page.course import LESSONS, version
from helpers.store import progress
from scripts import ROOT, address, edition, register
from scripts.handout import CALL, DRAWING
from scripts.links import EXERCISE, FOLDER, PAGES, relink, staged
from scripts.pages import readme_map
from scripts.setup import Stop

HERE = ROOT / "docs" / "book"  # its settings and the pages of its own
WORDS = re.compile(r"^\s*\*In words:\*\s+(.+)", re.MULTILINE)
TERM = re.compile(r"^- \*\*([^*]+)\*\* · (.+)$", re.MULTILINE)


def notebook(path):
    """The JSON of a notebook as the book shows it."""
    text = json.loads((ROOT / path).read_text(encoding="utf-8"))
    solved, exercise = "solutions/" in path, None
    for cell in text["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            named = EXERCISE.findall(source)
            exercise = named[-1] if named else exercise
            source = relink(source, path)
            if solved:  # a name for the heading, for links from the lesson
                source = EXERCISE.sub(r"(solution-\1)=\n\g<0>", source)
            elif exercise:
                source = re.sub(r"\]\(solutions/[^)#]*\)", f"](#solution-{exercise})", source)
            cell["source"] = source
        elif not solved and exercise is not None and re.search(r"^check\(", source, re.MULTILINE):
            cell["outputs"], exercise = [], ""  # "not started", which the notebook says to those who can start
        if cell.get("id") == DRAWING:
            cell["outputs"] = edition.mapped(cell, path)
        for output in cell.get("outputs", ()):
            if html := output.get("data", {}).get("text/html"):  # the map of the course leads to pages of the book
                output["data"]["text/html"] = re.sub(r'href="(\d\d_\w+)\.ipynb"', r'href="\1.html"', "".join(html))
        if cell["cell_type"] == "code":  # Sphinx makes a class of it, by which a report names the cell
            cell["metadata"]["tags"] = [*cell["metadata"].get("tags", ()), f"id-{cell['id']}"]
    text["cells"] = veiled(described(text["cells"]))
    name = address.known_name(ROOT)
    if re.match(r"notebooks/\d", path):
        text["cells"][0]["source"] += button(path)
    services = [f"<a href='{address.link(service, name, path)}'>{service}</a>" for service in address.SERVICES if name]
    text["cells"][0]["source"] += (f"\n\n<p class='origin'>As last run, from <code>{path}</code>. "
                                   f"To work on it, run <code>make lab</code>. {' · '.join(services)}</p>\n")
    return json.dumps(text, ensure_ascii=False)


def described(cells):
    """The cells, each figure with the words beside it as its alternative text, and marked where it keeps its colours."""
    used = set()
    for i, cell in enumerate(cells):
        figures = [output for output in cell.get("outputs", ()) if "image/png" in output.get("data", {})]
        beside = [j for j in (i + 1, i - 1) if 0 <= j < len(cells) and j not in used and cells[j]["cell_type"] == "markdown"
                  and WORDS.search("".join(cells[j]["source"]))] if figures else ()
        if beside:
            used.add(beside[0])
            words = plain(WORDS.search("".join(cells[beside[0]]["source"]))[1])
            options = {"alt": words[0].upper() + words[1:]}
            if any(figure["metadata"].get("needs_background") == "dark" for figure in figures):
                options["classes"] = "as-drawn"
            cell["metadata"]["mystnb"] = {"image": options}
    return cells


def plain(text):
    """Markdown without its marks, for where only text can stand."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\\sqrt\{?(\w+)\}?", r"√\1", text)
    return re.sub(r"(?<!\w)[*_]+(?=\S)|(?<=\S)[*_]+(?!\w)|[`$\\{}]", "", text).strip()


def veiled(cells):
    """The cells with the options of each prediction as buttons, and what answers it in a fold that they open.

    The fold begins behind the question, or behind the last heading or exercise before the answer, and ends behind the figure
    and the first words about the answer, as in a learner's copy. Without scripts it is a fold like any other.
    """
    asked, cells = {}, [part for cell in cells for part in _at_its_heading(cell)]  # key -> the place of its question
    for i, cell in enumerate(cells):
        for key in _keys("predict", cell):
            asked[key] = i
            for output in cell["outputs"]:
                if html := "".join(output.get("data", {}).get("text/html", "")):
                    output["data"]["text/html"] = re.sub(
                        r"<li>(.*?)</li>", rf"<li><button type='button' data-predict='{key}'>\1</button></li>", html)
    veils, free = [], 0  # (first cell, behind the last cell, key); nothing before ``free`` may be folded any more
    for i, cell in enumerate(cells):
        for key in _keys("reveal", cell):
            if key not in asked or i < free or i == asked[key]:
                continue
            begin = max(free, asked[key] + 1, *(j + 1 for j in range(asked[key], i) if _parts(cells[j])), 0)
            end = i + 1
            while end < len(cells) and _draws(cells[end]):
                end += 1
            if end < len(cells) and cells[end]["cell_type"] == "markdown" and not _parts(cells[end]):
                end += 1
            veils.append((begin, end, key))
            free = end
    for begin, end, key in reversed(veils):
        words = "What was measured. Guess first: choose an answer above, or open this."
        opening = f"<details class='veil' data-key='{key}'><summary>{words}</summary>"
        cells[begin:end] = [_markup(f"{key}-veil", opening), *cells[begin:end], _markup(f"{key}-end", "</details>")]
    return cells


def _keys(which, cell):
    """The keys of the predictions that a cell asks for ("predict") or answers ("reveal")."""
    return [key for call, key in CALL.findall("".join(cell["source"])) if call == which and cell["cell_type"] == "code"]


def _at_its_heading(cell):
    """A cell of words before a heading and with it, as two cells."""
    source = "".join(cell["source"])
    heading = re.search(r"^#+ ", source, re.MULTILINE) if cell["cell_type"] == "markdown" else None
    if not heading or not source[:heading.start()].strip():
        return [cell]
    return [{**cell, "source": source[:heading.start()]},
            {**cell, "source": source[heading.start():], "id": f"{cell['id']}-heading"}]


def _parts(cell):
    """Does a cell hold a heading, or the check of an exercise?"""
    return re.search(r"^#+ " if cell["cell_type"] == "markdown" else r"check\(", "".join(cell["source"]), re.MULTILINE)


def _draws(cell):
    """Is a cell code that draws a figure and asks nothing?"""
    figure = re.search(r"^\s*figures\.", "".join(cell["source"]), re.MULTILINE)
    return cell["cell_type"] == "code" and figure and not _keys("predict", cell)


def _markup(name, html):
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": html}


def button(path):
    """What leads from a lesson's page to the lesson in the browser edition, or says that it is not there."""
    if path not in edition.RUNS:
        return ("\n\n<p class='run'>This lesson trains or loads models with PyTorch, which no browser runs: "
                "<a href='index.html#run-it'>install the course</a> to run it.</p>")
    page = f"run/notebooks/index.html?path={Path(path).name}"
    return (f"\n\n<p class='run'><a class='run' href='{page}'>Run this lesson now</a> "
            f"<span>in your browser, with nothing installed ({edition.MEGABYTES} MB, half a minute)</span></p>")


def index():
    """The front page, with the map of the course as a path of pictures, and as the table that README.md has."""
    from jinja2 import Environment

    entries = list(claims.register().values())
    verdicts = [register.kind(entry["verdict"]) for entry in entries]
    template = Environment(autoescape=False, trim_blocks=True).from_string((HERE / "index.md").read_text(encoding="utf-8"))
    return template.render(
        lessons=LESSONS.values(), picture=lambda lesson: pictures.picture(lesson.number, 72), colours=sheet.dark(".path"),
        page=lambda lesson: lesson.file.replace(".ipynb", ".html"), megabytes=edition.MEGABYTES,
        table=relink(readme_map(LESSONS.values()), "README.md"), claims=len(entries), holding=verdicts.count("holds"),
        runs=[path.removeprefix("notebooks/") for path in edition.RUNS])


def known():
    """What ``.progress.json`` knows, as the front page takes it: names of passed exercises, keys of predictions."""
    return {section: sorted(progress.load(section)) for section in ("exercises", "predictions")}


def glossary(text):
    """The glossary with terms that Sphinx knows as such, so that search finds each."""
    def terms(entries):
        lines = [f"{term}\n  {meaning}\n" for term, meaning in TERM.findall(entries[0])]
        return "\n".join(["```{glossary}", *lines, "```", ""])

    return re.sub(rf"(?:{TERM.pattern}\n)+", terms, text, flags=re.MULTILINE)


def reports():
    """{what the foot of a page asks: where to tell it}, once it is known where the course lives."""
    name = address.known_name(ROOT)
    return {question: address.report(form, name, version=version()) for question, form in address.REPORTS.items() if name}


def stage():
    """Write every page below build/book/source."""
    for path in PAGES:
        page = staged(path)
        page.parent.mkdir(parents=True, exist_ok=True)
        if path == "README.md":
            text = index()
        elif path.endswith(".ipynb"):
            text = notebook(path)
        else:
            text = relink((ROOT / path).read_text(encoding="utf-8"), path)
        page.write_text(glossary(text) if path == "docs/glossary.md" else text, encoding="utf-8")
    (FOLDER / "source" / "register.md").write_text(register.page(), encoding="utf-8")
    pictures = FOLDER / "pictures" / "claims"
    for folder in (FOLDER / "source" / "claims", pictures):
        folder.mkdir(parents=True)
    for entry in filter(register.is_claim, claims.register().values()):
        (FOLDER / "source" / "claims" / f"{entry['id']}.md").write_text(register.one(entry, address.known_name(ROOT)),
                                                                        encoding="utf-8")
        register.picture(entry, pictures / f"{entry['id']}.png")


def build(base=""):
    """Stage the pages and let Sphinx build them, every warning being an error; then build the browser edition.
    ``base``: the address where the book will be published, which pages say to those who share them. Returns the front page's
    path, and where that edition has Python from."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    shutil.rmtree(FOLDER, ignore_errors=True)  # nothing stays that the course no longer has
    stage()
    warnings, html = io.StringIO(), FOLDER / "html"
    try:
        with patch_docutils(str(HERE)), docutils_namespace():
            settings = {"html_baseurl": base, "html_context": {"version": version(), "reports": reports()}}
            Sphinx(FOLDER / "source", HERE, html, FOLDER / "doctrees", "html", settings, status=None,
                   warning=warnings, parallel=2 if hasattr(os, "fork") else 1).build()
    except Exception as error:
        raise Stop(f"The book could not be built: {type(error).__name__}: {error}.") from error
    complaints = re.sub(r"\x1b\[[\d;]*m", "", warnings.getvalue()).strip()
    if complaints:
        shutil.rmtree(html, ignore_errors=True)
        for path in PAGES:  # name the page itself, not its copy
            complaints = complaints.replace(str(staged(path)), path)
        raise Stop(f"{complaints}\nThe book was not built: mend what is named above, then run the same command again.")
    (html / edition.KNOWN).write_text("{}", encoding="utf-8")
    return html / "index.html", edition.build(html, FOLDER / "edition")


def serve(folder, port):
    """Serve the book on this machine until Ctrl-C: lessons run in pages that a server gives, and not in files."""
    try:
        server = edition.server(folder, port, known)
    except OSError as error:
        raise Stop(f"The book cannot be served at port {port} ({error.strerror}): say another one, "
                   'as in make book ARGS="--serve 8001".') from None
    with server, contextlib.suppress(KeyboardInterrupt):
        print(f"The book is served at http://localhost:{server.server_port}/ until you stop it with Ctrl-C.", flush=True)
        server.serve_forever()


def main(arguments=()):
    parser = argparse.ArgumentParser(prog="make book", description="Build the book in build/book/html.")
    parser.add_argument("--serve", nargs="?", type=int, const=8000, metavar="PORT",
                        help="then serve it on this machine, at port 8000 or another one")
    name = address.known_name(ROOT)
    parser.add_argument("--address", default=address.book(name) if name else "", metavar="URL",
                        help="where the book will be published: pages that are shared then name their picture by it")
    chosen = parser.parse_args(arguments)
    port, base = chosen.serve, chosen.address and chosen.address.rstrip("/") + "/"
    start = time.monotonic()
    print("Building the book ...", flush=True)
    try:
        page, python = build(base)
        print(f"The browser edition is in it: {python}.")
        print(f"The book is ready after {time.monotonic() - start:.0f} s: open {page} in a browser.", flush=True)
        if port is not None:
            serve(page.parent, port)
    except Stop as stop:
        print(stop, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
