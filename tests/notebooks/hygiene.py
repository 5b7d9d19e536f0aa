"""What every notebook of the course keeps to, for its readers' sake.

A rule takes a `Book` and yields one sentence for each thing that is wrong; the sentence names the notebook, the cell, and
what to do. What one cell shows by itself stands in the table `OF_A_CELL`, what needs the whole notebook is a function.
`problems(book)` runs every rule that applies to the book. test_hygiene.py has, for every rule, a notebook that breaks it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import nbformat
from bs4 import BeautifulSoup
from IPython.core.inputtransformer2 import TransformerManager

from helpers.checks.core import is_stub
from helpers.page import predictions
from helpers.page.claims import register as claims_register
from helpers.page.course import LESSONS, Lesson
from scripts import address

REPO = Path(__file__).resolve().parents[2]

CLAIMS = "What people say"               # heading of the table of claims
LONGEST_CELL = 30                        # lines
LARGEST_FILE = 1_500_000                 # bytes
LEAST_COMPARED = 0.90                    # of the code cells of all notebooks
IGNORED = "nbval-ignore-output"
# Tags and comments with which nbval skips a cell, or lets it fail.
FORBIDDEN_TAGS = ("nbval-skip", "nbval-raises-exception", "raises-exception", "skip-execution")
MARKER = re.compile(r"^\s*#\s*(NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)\s*$", re.MULTILINE)
ABSOLUTE_PATH = re.compile(r"(?<![\w.~%-])/(?:home|root|work|Users|tmp)/[\w.-]+"
                           r"|\b[A-Za-z]:\\{1,2}(?:Users|Windows|Program|Temp|tmp|home|work)\b")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?:href|src)\s*=\s*[\"']([^\"']+)[\"']")
FRAME = re.compile(r"""<iframe\b((?:[^>'"]|'[^']*'|"[^"]*")*)>""")
SCAFFOLDING = 0.25                       # of the lines of code, at most
PAGE_IMPORT = re.compile(r"(from|import) (helpers\.page|notebooks\.figures)\b")
COLAB_METADATA = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["remove-cell"]}  # and perhaps an editor's
MOST_SAID = 4                            # sentences below that heading
STAMPS = {"holds": "True here", "holds if": "True if", "holds in part": "Partly", "does not hold": "False",
          "not settled": "Open"}
SAID = ("plain", "result", "n", "verdict")  # of a claim, fields of the register that a lesson may repeat
SMALL = 12                               # a count up to here is no measurement
NUMBER = re.compile(r"(?<![\w.,/])[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w/]|\.\d)(?: ?%)?")
FREE = re.compile(r"""\[\d\d\s·|\]\([^)]*\)|<[^>]*>|\$[^$]*\$|\b(?:19|20)\d\d\b|\b\d+\s(?:minutes|hours)\b
                      |\bC\d+\b|\b(?:lessons?|sections?|exercises?|chapters?|step|layers?|heads?|figure|question)\s\d+(?:(?:,|\sand|\sto|\sor)\s\d+)*
                      |\(\d+(?:,\s?\d+)+\)|^\#+.*$|^\d+\.""", re.IGNORECASE | re.MULTILINE | re.VERBOSE)
IN_WORDS = re.compile(r"^\s*\*In words:\*\s+\S.{15,}", re.MULTILINE | re.DOTALL)
# Said of colours, false where a dark page turns figures round; not what is quoted or a name, such as *black*.
TURNED_ROUND = re.compile(r"\b(?:(?:dark|light|pale|bright|black|white)(?:e[rs]|est|r|st)?)\b(?! up\b)", re.IGNORECASE)
QUOTED = re.compile(r"\*In words:\*|([*`]).+?\1|\"[^\"]*\"")


def parameters(function: ast.FunctionDef) -> str:
    """The parameters as text, without annotations, for comparison."""
    plain = ast.parse(f"def f({ast.unparse(function.args)}): ...").body[0].args
    for argument in ast.walk(plain):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return ast.unparse(plain)


@dataclass
class Book:
    """One notebook file, and where it stands in the course."""

    path: Path
    root: Path = REPO
    lessons: dict[str, Lesson] = field(default_factory=lambda: LESSONS)
    raw: dict = field(init=False)
    unreadable: str = field(init=False, default="")

    def __post_init__(self) -> None:
        self.raw = {}
        try:
            raw = json.loads(self.path.read_text(encoding="utf-8"))
            if isinstance(raw, dict):
                self.raw = raw
        except ValueError as error:                  # merge marks, or not UTF-8
            self.unreadable = str(error).splitlines()[0]

    @property
    def name(self) -> str:
        return self.path.relative_to(self.root).as_posix()

    @property
    def kind(self) -> str:
        """Of its rules: "lessons", "solutions" or "experiments"."""
        folder = self.path.parent.name
        return folder if folder in ("solutions", "experiments") else "lessons"

    @property
    def is_solution(self) -> bool:
        return self.kind == "solutions"

    @property
    def experiment(self) -> Path:
        """The experiment of the same lesson, which need not exist."""
        return self.root / "notebooks" / "experiments" / self.path.name

    @cached_property
    def lesson(self) -> Lesson | None:
        return self.lessons.get(self.path.name[:2])

    @cached_property
    def cells(self) -> list[Cell]:
        return [Cell(self, i, raw) for i, raw in enumerate(self.raw.get("cells", []))]

    @property
    def code(self) -> list[Cell]:
        """The code cells that hold code."""
        return [cell for cell in self.cells if cell.type == "code" and cell.source.strip()]

    @property
    def markdown(self) -> str:
        return "\n\n".join(cell.source for cell in self.cells if cell.type == "markdown")

    def anchors(self) -> set[str]:
        """Where a link into this notebook can lead: JupyterLab's anchors, blanks become hyphens."""
        return {heading.strip().replace(" ", "-") for heading in headings(self.markdown)}


class Cell:
    def __init__(self, book: Book, index: int, raw: dict):
        self.book, self.index, self.raw = book, index, raw
        self.type = raw.get("cell_type")
        source = raw.get("source", "")
        self.source = source if isinstance(source, str) else "".join(source)
        self.metadata = raw.get("metadata", {})
        self.outputs = raw.get("outputs", [])

    def __str__(self) -> str:
        return f"{self.book.name}, cell {self.index} ({self.raw.get('id', 'no id')})"

    @property
    def tags(self) -> list[str]:
        return self.metadata.get("tags", [])

    @property
    def compared(self) -> bool:
        return IGNORED not in self.tags and not MARKER.search(self.source)

    @property
    def folded(self) -> bool:
        return bool(self.metadata.get("jupyter", {}).get("source_hidden"))

    @property
    def has_figure(self) -> bool:
        return any({"image/png", "image/svg+xml"} & {*output.get("data", {})} for output in self.outputs
                   if "show.map(" not in self.source)

    @property
    def lines(self) -> int:
        """Its lines of code, without the one that tells Colab what it folds."""
        code = re.sub(r'"""\n[!-~\n]+\n"""', '""', self.source)  # a file as text counts as one line
        return len(code.splitlines()) - self.folded if self.type == "code" else 0

    @property
    def html(self) -> list[str]:
        """The HTML of each output, which may be empty."""
        return ["".join(output.get("data", {}).get("text/html", "")) for output in self.outputs]

    @property
    def keeps_colours(self) -> bool:
        return any(output.get("metadata", {}).get("needs_background") for output in self.outputs)

    @cached_property
    def tree(self) -> ast.Module:
        """The cell as Python; magics are calls. An empty module where it is not Python (see rule parses)."""
        try:
            return ast.parse(TransformerManager().transform_cell(self.source))
        except SyntaxError:
            return ast.Module(body=[], type_ignores=[])

    @property
    def functions(self) -> list[ast.FunctionDef]:
        return [node for node in self.tree.body if isinstance(node, ast.FunctionDef)]

    def checks(self, exercise: str) -> bool:
        """Whether the cell calls check(exercise) or check(something, "exercise")."""
        return bool(re.search(rf"""\bcheck\(({exercise}\)|.+["']{exercise}["']\))""", self.source))

    def output_text(self) -> str:
        """All that the outputs say in letters; pictures are left out."""
        said = []
        for output in self.outputs:
            said += [output.get("text", ""), output.get("traceback", ""), output.get("evalue", "")]
            for kind, value in output.get("data", {}).items():
                if kind.startswith("text/") or kind in ("image/svg+xml", "application/javascript"):
                    said.append(value)
                elif "json" in kind:
                    said.append(json.dumps(value))
        return "\n".join(part if isinstance(part, str) else "".join(part) for part in said)


def headings(markdown: str) -> list[str]:
    return re.findall(r"^#{1,6}\s+(.+?)\s*#*$", without_code(markdown), re.MULTILINE)


def without_code(markdown: str) -> str:
    """Markdown without its code and formulas: a link in there is not one."""
    markdown = re.sub(r"^(`{3,}|~{3,}).*?^\1\s*$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    markdown = re.sub(r"\$\$.*?\$\$", "", markdown, flags=re.DOTALL)
    return re.sub(r"`[^`\n]*`|\$[^$\n]*\$", "", markdown)


# -- rules ---------------------------------------------------------------------------------------

Rule = Callable[[Book], Iterator[str]]
RULES: dict[str, tuple[str, Rule]] = {}


def rule(applies_to: str):
    """Enter a function among the rules, for "all" books or for the kinds that are named."""
    def enter(function: Rule) -> Rule:
        RULES[function.__name__] = (applies_to, function)
        return function
    return enter


def problems(book: Book) -> list[str]:
    return [sentence for kinds, check in RULES.values() if kinds == "all" or book.kind in kinds for sentence in check(book)]


@rule("all")
def valid(book):
    if not book.raw:
        yield (f"{book.name} cannot be read as a notebook ({book.unreadable or 'not a JSON object'}): "
               "take it from the last commit.")
        return
    if (book.raw.get("nbformat"), book.raw.get("nbformat_minor", 0)) < (4, 5):
        yield f"{book.name} is older than notebook format 4.5: open it in JupyterLab and save it."
        return
    ids = [cell.raw.get("id") for cell in book.cells]
    if twice := {name for name in ids if ids.count(name) > 1}:  # nbformat would give one of them another
        yield f"{book.name} has two cells with the id {twice.pop()}: give one of them another."
        return
    try:
        nbformat.validate(nbformat.from_dict(book.raw))
    except nbformat.ValidationError as error:
        yield f"{book.name} is not a valid notebook ({str(error).splitlines()[0]}): save it from JupyterLab again."


@rule("all")
def kernel(book):
    name = book.raw.get("metadata", {}).get("kernelspec", {}).get("name")
    if name != "python3":
        yield (f"{book.name} names the kernel {name!r}, so JupyterLab asks the learner for one: "
               "set metadata.kernelspec.name to python3.")


@rule("all")
def execution_counts(book):
    for wanted, cell in enumerate(book.code, 1):
        counts = {cell.raw.get("execution_count")} | {
            output.get("execution_count") for output in cell.outputs if output["output_type"] == "execute_result"}
        if counts != {wanted}:
            yield (f"{cell} has execution count {cell.raw.get('execution_count')} where {wanted} is due: "
                   "restart the kernel, run all cells, save.")
            return                                   # the ones after it are wrong for the same reason


@rule("all")
def size(book):
    if book.path.stat().st_size >= LARGEST_FILE:
        yield (f"{book.name} has {book.path.stat().st_size / 1e6:.2f} MB of at most {LARGEST_FILE / 1e6:.1f}: "
               "make its figures or embedded HTML smaller.")


def stderr(cell: Cell) -> str:
    """The last line of what the cell stores of stderr, such as a warning."""
    said = "".join("".join(output["text"]) for output in cell.outputs if output.get("name") == "stderr")
    return said.strip().split("\n")[-1][:80] or said


def skipping(cell: Cell) -> str:
    """The tags, and the comments in code, with which a cell is skipped or may fail."""
    comments = MARKER.findall(cell.source) if cell.type == "code" else []
    return ", ".join([*sorted({*cell.tags} & {*FORBIDDEN_TAGS}), *comments])


def open_frame(cell: Cell) -> bool:
    """Whether a page in a frame could reach what is outside it: it may run scripts, and nothing else."""
    frames = [attributes for html in cell.html for attributes in FRAME.findall(html)]
    return not all(re.search(r"""\ssandbox=(['"])allow-scripts\1""", re.sub("srcdoc='[^']*'", "", one)) for one in frames)


def on_github(html: str) -> str:
    """What is left of HTML on GitHub: its text, and "picture" for each picture that is a file."""
    page = BeautifulSoup(html, "html.parser")
    for element in page.find_all(["script", "style", "svg", "iframe", "button", "input", "canvas", "template"]):
        element.decompose()
    pictures = [image for image in page.find_all("img") if not image.get("src", "").startswith("data:")]
    return page.get_text(" ", strip=True) + "picture" * len(pictures)


OF_A_CELL = {  # rule: the books it is for, what it finds in a cell or nothing, and what the sentence says of it
    "short_cells": (
        "all", lambda cell: cell.lines > LONGEST_CELL and cell.lines,
        f"has {{}} lines of at most {LONGEST_CELL}: divide it, or move code to helpers"),
    "no_errors": (
        "all", lambda cell: next((o.get("ename") for o in cell.outputs if o["output_type"] == "error"), ""),
        "stores the error {}: correct the cell, or catch it and show its message"),
    "no_stderr": ("all", stderr, "stores a warning or stderr ({!r}): remove its cause"),
    "no_absolute_paths": (
        "all", lambda cell: (found := ABSOLUTE_PATH.search(f"{cell.source}\n{cell.output_text()}")) and found[0],
        "has the absolute path {}: use a relative one"),
    "frames": ("all", open_frame, "shows a frame without sandbox='allow-scripts': make it with helpers.page.show.frame"),
    "nothing_skipped": (
        "all", skipping,
        f"has the tag or comment {{}}: nothing is skipped or let fail, and what is not compared has the tag {IGNORED}"),
    "nothing_is_folded": (  # a reader on GitHub sees all code, but for Colab's cell
        "lessons", lambda cell: cell.folded and "remove-cell" not in cell.tags,
        "is folded: move what draws to the lesson's module in notebooks/figures, and call it there"),
    "comes_through_github": (  # which prefers HTML to a picture
        "lessons", lambda cell: not all(map(on_github, filter(None, cell.html))),
        "shows nothing on GitHub, which takes its HTML apart: give it text, or a picture alone"),
}


def of_each_cell(found_in: Callable, sentence: str) -> Rule:
    """The rule that a row of the table makes."""
    def check(book):
        for cell in book.cells:
            if found := found_in(cell):
                yield f"{cell} {sentence.format(found)}."
    return check


RULES |= {name: (applies_to, of_each_cell(*row)) for name, (applies_to, *row) in OF_A_CELL.items()}


@rule("all")
def ignored_cells(book):
    """An output that is not compared has a reason, and the code cell after it asserts what matters."""
    for position, cell in enumerate(book.code):
        if IGNORED not in cell.tags:
            continue
        reason = cell.metadata.get("reason")
        if not isinstance(reason, str) or len(reason.strip()) < 5:
            yield f'{cell} is tagged {IGNORED} without a reason: add "reason": "…" to its metadata.'
        after = book.code[position + 1:position + 2]
        if not after or not any(isinstance(node, ast.Assert) for node in ast.walk(after[0].tree)):
            yield f"{cell} is tagged {IGNORED}, and the next code cell has no assert: let it assert what matters here."


@rule("all")
def figures_in_words(book):
    """The text directly after a figure, or else before it, describes it; one text serves one figure."""
    used = set()
    for cell in book.code:
        if not cell.has_figure:
            continue
        beside = [i for i in (cell.index + 1, cell.index - 1)
                  if 0 <= i < len(book.cells) and i not in used and book.cells[i].type == "markdown"
                  and IN_WORDS.search(book.cells[i].source)]
        if beside:
            used.add(beside[0])
            told = QUOTED.sub("", IN_WORDS.search(book.cells[beside[0]].source)[0].partition("\n\n")[0])
            said = [] if cell.keeps_colours else TURNED_ROUND.findall(told)
            if said:
                yield (f"{book.cells[beside[0]]} says {', '.join(said)} of a figure, and a dark page shows the opposite: "
                       "say strong or faint, full or empty, or the number.")
        else:
            yield f"{cell} has a figure without its own text: start the markdown cell after it with '*In words:* …'."


@rule("all")
def links(book):
    for cell in book.cells:
        html = re.sub(r"srcdoc='[^']*'", "", "\n".join(cell.html))
        for target, problem in broken_links(book.path, cell.source if cell.type == "markdown" else html, book.root):
            yield f"{cell} links to {target}, but {problem}: correct the link."


def broken_links(path: Path, text: str, root: Path = REPO) -> Iterator[tuple[str, str]]:
    """(target, why it leads nowhere) for the relative links in Markdown or HTML of the file ``path``."""
    for found in LINK.finditer(without_code(text)):
        target = found[1] or found[2]
        if re.match(r"[a-zA-Z][\w+.-]*:|//", target):    # https:, mailto:, data:, attachment:
            continue
        file, _, anchor = unquote(target).partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists():
            yield target, "there is no such file"
        elif not there.is_relative_to(root.resolve()):
            yield target, "that is outside the course"
        elif anchor and there.suffix == ".ipynb" and anchor not in Book(there, root).anchors():
            yield target, f"{there.name} has no heading for that anchor (blanks become hyphens, letters stay as they are)"
        elif anchor and there.suffix == ".md" and anchor not in {
                re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                for heading in headings(there.read_text(encoding="utf-8"))}:
            yield target, f"{there.name} has no heading for that anchor"


@rule("all")
def number_and_title(book):
    if book.lesson is None or book.path.name != book.lesson.file:
        known = f"lesson {book.lesson.number} is {book.lesson.file}" if book.lesson else "it has no lesson of this number"
        yield f"{book.name} is not in data/course.toml, {known}: rename the notebook, or correct the list."
        return
    wanted = f"# {book.lesson.number} · {book.lesson.title}"
    first = book.cells[0].source.splitlines()[:1] if book.cells and book.cells[0].type == "markdown" else []
    # A solution or an experiment may add to its heading, a lesson may not.
    if not first or not (first[0].startswith(wanted) if book.kind != "lessons" else first[0].rstrip() == wanted):
        yield f"{book.name} does not begin with the heading {wanted!r}: write it so."


@rule("lessons")
def sections(book):
    """What every lesson has once: its sections, its minutes and the line that leads to the next lesson. What these two say
    is written by scripts/pages.py, and test_course.py holds it."""
    deeper = re.search("^## Going deeper", book.markdown, re.MULTILINE)
    wanted = {"## Recap": "## Recap$", "### Going further": "### Going further$" if deeper else "## Going further$",
              "**In this lesson**": r".*\*\*In this lesson\*\*", "Next: …": r"(Next: \[|This was the last lesson\.)"}
    if book.lesson and book.lesson.claims:
        wanted[f"## {CLAIMS}"] = f"## {CLAIMS}$"
    core, text = (without_code(part) for part in (book.markdown[:deeper and deeper.start()], book.markdown))
    for words, pattern in wanted.items():
        if (count := len(re.findall(rf"^{pattern}", text, re.MULTILINE))) != 1:
            yield f"{book.name} has {count} lines {words!r}: it needs one, spelt so."
    if len(re.findall(r"^\*\*Time:\*\* \d+ minutes", core, re.MULTILINE)) != 1:  # each section that goes deeper has its own
        yield f"{book.name} does not say its time once: write '**Time:** {book.lesson.minutes} minutes.' beside its aims."


@rule("all")
def colab_first(book):
    wanted = address.cell(address.known_name(book.root))
    if not book.code or book.code[0].source != wanted:
        yield f"{book.name} does not begin its code with scripts.address.cell(): copy that cell from another lesson."
    elif not book.code[0].metadata.items() >= COLAB_METADATA.items():
        yield f"{book.code[0]} is not folded away: give it the metadata that it has in other lessons."


@rule("lessons")
def little_scaffolding(book):
    """At most a quarter of the lines of code serve the page and not the lesson."""
    lines, scaffolding = code_lines(book)
    if scaffolding > SCAFFOLDING * lines:
        yield (f"{book.name} has {scaffolding} of {lines} lines of code that serve the page, more than {SCAFFOLDING:.0%}: "
               f"move them to notebooks/figures/lesson{book.path.name[:2]}.py.")


def code_lines(book: Book) -> tuple[int, int]:
    """(all lines of code that are not empty, those that a reader of the lesson need not see)."""
    lines = scaffolding = 0
    for cell in book.code:
        some = [line for line in cell.source.splitlines() if line.strip()]
        page = cell.folded or {"remove-cell", "remove-input", "hide-input"} & {*cell.tags}
        lines += len(some)
        scaffolding += len(some) if page else sum(bool(PAGE_IMPORT.match(line)) for line in some)
    return lines, scaffolding


@rule("lessons")
def answers_are_earned(book):
    """What would give an answer away, the spoilers of a prediction in data/predictions.toml, is in nothing that a reader
    sees before the question, ``predict(key, ...)``."""
    seen = ""
    for cell in book.cells:
        if cell.type == "code":
            for key in re.findall(r"^predict\(\s*[\"'](.*?)[\"']", cell.source, re.MULTILINE):
                for word in predictions.load().get(key, {}).get("spoilers", ()):
                    if word.lower() in seen.lower():
                        yield (f"{cell} asks what was told before: {word!r} is in a heading, a figure's text or an output "
                               "above it.")
            seen += cell.output_text() + "\n"
        else:
            told = re.findall(r"!\[(.*?)\]|<img[^>]*alt=[\"'](.*?)[\"']|^(\*In words:\*.*)", cell.source, re.MULTILINE)
            seen += "\n".join([*headings(cell.source), *map("".join, told), ""])


@rule("lessons")
def predictions_are_asked_and_revealed(book):
    """Each prediction of the lesson in data/predictions.toml is asked once and then revealed, and no other."""
    source = "\n".join(cell.source for cell in book.code)
    for key in predictions.load():
        if key.startswith(book.path.name[:2]):
            for call in "predict", "reveal":
                if len(re.findall(rf"^\s*{call}\(\s*[\"']{re.escape(key)}[\"']", source, re.MULTILINE)) != 1:
                    yield f"{book.name} does not call {call}({key!r}) once: data/predictions.toml has that question."


@rule("lessons")
def what_people_say(book):
    """At most four folded sentences, each with the stamp of its verdict in the register and a link to its experiment."""
    if not book.lesson or not book.lesson.claims:
        return
    if not book.experiment.exists():
        yield f"{book.name} has claims and no experiment: measure them in notebooks/experiments/{book.path.name}."
        return
    items = re.findall(r"^<details><summary>(.+?)</details>", section(book.markdown, CLAIMS), re.MULTILINE | re.DOTALL)
    if not 1 <= len(items) <= MOST_SAID:
        yield f"{book.name} has {len(items)} folded sentences below '{CLAIMS}': write one to {MOST_SAID}."
    for item in items:
        ids = re.findall(rf"\[(C\d+)\]\(experiments/{re.escape(book.path.name)}", item)
        stamp = re.search(r"\*\*(True here|True if|Partly|False|Open)\b", item)
        if len(ids) != 1 or not stamp:
            yield (f"{book.name} says {item[:60]!r} without a stamp (**True here**, **True if** …, **Partly**, **False** or "
                   f"**Open**), or without one link such as [C31](experiments/{book.path.name}).")
            continue
        entry = held(book).get(ids[0], {"verdict": "", "lesson": ""})
        wanted = next((STAMPS[verdict] for verdict in sorted(STAMPS, key=len, reverse=True)
                       if entry["verdict"].startswith(verdict)), None)
        if entry["lesson"] != book.path.name[:2] or "withdrawn" in entry:
            yield f"{book.name} says something of {ids[0]}, which is not a claim of this lesson in data/claims.json."
        elif stamp[1] != wanted:
            yield f"{book.name} says {stamp[1]!r} of {ids[0]}, and its verdict is {entry['verdict']!r}: that is {wanted!r}."


def section(markdown: str, heading: str) -> str:
    """The text below a heading of the second rank, up to the next one."""
    found = re.search(rf"^## {re.escape(heading)}\s*$(.*?)(?=^## |\Z)", markdown, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@rule("lessons and solutions")
def numbers_are_computed(book):
    """A number of the prose is listed in the last cell, which computes it, or is in the code or outputs of its own section.

    A section ends at the next heading, but not at a lesson's exercise. A line with [C31] may repeat the register on C31.
    Small counts, years, minutes and what names a place (lesson 07, section 3, head (2, 5)) are free."""
    listed = numbers_listed(book)
    if not listed and book.kind == "lessons":
        yield (f"{book.name} does not end with numbers.agree({{…}}): list there the numbers that its prose states, each "
               "with the expression that gives it.")
        return
    if listed and not book.code[-1].output_text().startswith("All "):
        yield f"{book.code[-1]} does not say that all numbers come out: {book.code[-1].output_text().strip()[:200]}"
    part, shown, lines, prose = 0, {}, [], set()
    for cell in book.cells:
        if cell.type == "markdown":
            for line in without_code(cell.source).splitlines():
                part += bool(re.match("## |### (?!Exercise)", line))
                lines.append((cell, part, line))
        elif not re.search(r"\b(numbers\.agree|warm_up)\(", cell.source):
            said = re.sub("#.*", "", cell.source) + re.sub("<[^>]*>", " ", cell.output_text())
            shown.setdefault(part, set()).update(numbers_in(said))
    register = {claim: numbers_in(" ".join(map(of.get, SAID))) for claim, of in held(book).items()}
    for cell, part, line in lines:
        known = listed.union(shown.get(part, ()), *(register.get(claim, ()) for claim in re.findall(r"\[(C\d+)\]", line)))
        for number in NUMBER.findall(FREE.sub(" ", line)):
            prose.add(plain := plain_number(number))
            if plain not in known and not (plain.isdigit() and int(plain) <= SMALL):
                yield f"{cell} states {number.strip()}, and its section computes no such number: list it in numbers.agree."
    for number in sorted(listed - prose):
        yield f"{book.name} computes {number} in its last cell, and no sentence states it: take it out."


def numbers_in(text: str) -> set[str]:
    """The numbers of a text as `plain_number` writes them; 0.95 is 95 % as well."""
    plain = {plain_number(n) for n in NUMBER.findall(text)}
    return plain | {f"{100 * float(n):g}%" for n in plain if re.fullmatch(r"0\.\d{1,3}", n)}


def numbers_listed(book: Book) -> set[str]:
    """The numbers that the last cell lists and computes."""
    for node in ast.walk(book.code[-1].tree) if book.code else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "numbers.agree" and isinstance(node.args[0], ast.Dict):
            return {plain_number(NUMBER.match(key.value)[0]) for key in node.args[0].keys}
    return set()


def plain_number(number: str) -> str:
    """A number without its sign and thousands' commas; per cent stays."""
    return re.sub(r"[^\d.%]", "", number)


def held(book: Book) -> dict:
    return claims_register(book.root / "data" / "claims.json")


@rule("experiments")
def decided_before_it_is_measured(book):
    """Each claim of the lesson is opened with its criterion in an earlier cell than the one that decides it."""
    opened = {found[2]: (cell.index, found[1]) for cell in book.code
              for found in re.finditer(r"^(\w+) = Claim\(\s*\"(C\d+)\"", cell.source, re.MULTILINE)}
    decided = {found[1]: cell.index for cell in book.code
               for found in re.finditer(r"^(\w+)\.decide\(", cell.source, re.MULTILINE)}
    register = held(book)
    for claim in book.lesson.claims if book.lesson else ():
        index, name = opened.get(claim, (None, ""))
        if index is None or name not in decided:
            yield f'{book.name} does not open and decide {claim}: write name = Claim("{claim}", ...) and name.decide(...).'
        elif index >= decided[name]:
            yield f"{book.name} decides {claim} in or before the cell that says how: put Claim(...) into a cell above."
        if register.get(claim, {}).get("experiment") != book.name:
            yield f"{book.name} measures {claim}, and data/claims.json does not have it from here: run `make experiments`."


@rule("all")
def the_course_has_it(book):
    """What a notebook takes from the course's modules is there and can be called so, also where the call does not run,
    because its numbers are stored."""
    modules = imported(book)
    for cell in book.code:
        for node in ast.walk(cell.tree):
            called = node.func if isinstance(node, ast.Call) else node
            if not (isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in modules):
                continue
            name, module = f"{called.value.id}.{called.attr}", modules[called.value.id]
            if not hasattr(module, called.attr):
                yield f"{cell} takes {name}, and there is no such thing: mend the name."
            elif why := misfit(getattr(module, called.attr), node):
                yield f"{cell} calls {name} with other arguments than it takes ({why})."


def imported(book: Book) -> dict:
    """Name -> module of the course, of those that the notebook imports and gives no other meaning."""
    nodes = [node for cell in book.code for node in ast.walk(cell.tree)]
    others = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    pairs = [(node.module, one) for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names
             if (node.module or "").partition(".")[0] in ("helpers", "notebooks")]
    modules = {one.asname or one.name: f"{package}.{one.name}" for package, one in pairs
               if (REPO / package.replace(".", "/") / f"{one.name}.py").exists()}
    return {name: importlib.import_module(path) for name, path in modules.items() if name not in others}


def misfit(function, call: ast.AST) -> str:
    """Why this call cannot be made, or nothing: of arguments behind a star nobody knows the number."""
    starred = isinstance(call, ast.Call) and (any(isinstance(arg, ast.Starred) for arg in call.args)
                                              or any(word.arg is None for word in call.keywords))
    if not isinstance(call, ast.Call) or starred or not inspect.isroutine(function):
        return ""
    try:
        inspect.signature(function).bind(*call.args, **{word.arg: word.value for word in call.keywords})
    except TypeError as error:
        return str(error)
    return ""


@rule("all")
def exercises(book):
    """A lesson has each exercise as a stub, its solution has it solved; both check it, and a checker exists."""
    for name, signature in (book.lesson.exercises if book.lesson and book.kind != "experiments" else {}).items():
        defined = [(cell, function) for cell in book.code for function in cell.functions
                   if function.name == name and is_stub(function) != book.is_solution]
        if not defined:
            yield (f"{book.name} does not solve the exercise {name}: define it." if book.is_solution else
                   f"{book.name} has no stub of the exercise {name}: define {name}({signature}) with the body '...'.")
            continue
        cell, function = defined[0]
        if parameters(function) != signature:
            yield f"{cell} defines {name}({parameters(function)}): data/course.toml has {name}({signature})."
        checked = [other for other in book.code if other.index >= cell.index and other.checks(name)]
        wanted = "passed" if book.is_solution else "not started"
        if not checked:
            yield f"{book.name} never checks {name}: write check({name}) in its cell or a later one."
        elif wanted not in checked[0].output_text().lower():
            yield (f"{checked[0]} checks {name}, and its stored output does not say '{wanted}': "
                   "correct the definition, run the notebook, save.")


def books(root: Path = REPO) -> list[Book]:
    """Every lesson, every solution and every experiment."""
    return [Book(path, root) for folder in ("", "solutions/", "experiments/")
            for path in sorted((root / "notebooks").glob(f"{folder}*.ipynb"))]
