"""What every notebook of the course keeps to: one small function a rule.

A rule takes a `Book` and yields one sentence for each thing that is wrong; the sentence names the
notebook, the cell, and what to do. `problems(book)` runs every rule that applies to the book.
test_hygiene.py has, for every rule, a notebook that breaks it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

from helpers.checks.core import is_stub
from helpers.page.claims import register as claims_register
from helpers.page.course import LESSONS, Lesson
from scripts import address

REPO = Path(__file__).resolve().parents[2]

CLAIMS = "What people say"               # heading of the table of claims
LONGEST_CELL = 30                        # lines
LARGEST_FILE = 1_500_000                 # bytes
LEAST_COMPARED, LEAST_COMPARED_HERE = 0.90, 0.80
IGNORED = "nbval-ignore-output"
# Tags and comments with which nbval skips a cell, or lets it fail.
FORBIDDEN_TAGS = ("nbval-skip", "nbval-raises-exception", "raises-exception", "skip-execution")
MARKER = re.compile(r"^\s*#\s*(NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)\s*$", re.MULTILINE)
ABSOLUTE_PATH = re.compile(r"(?<![\w.~%-])/(?:home|root|work|Users|tmp)/[\w.-]+"
                           r"|\b[A-Za-z]:\\{1,2}(?:Users|Windows|Program|Temp|tmp|home|work)\b")
FRAME = re.compile(r"""<iframe\b((?:[^>'"]|'[^']*'|"[^"]*")*)>""")
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
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
        return any("image/png" in output.get("data", {}) for output in self.outputs)

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
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check" and node.args:
                named = node.args[1:2] + [keyword.value for keyword in node.keywords if keyword.arg == "name"]
                if named and getattr(named[0], "value", None) == exercise:
                    return True
                if not named and getattr(node.args[0], "id", None) == exercise:
                    return True
        return False

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
    markdown = re.sub(r"^(```|~~~).*?^\1\s*$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    markdown = re.sub(r"\$\$.*?\$\$", "", markdown, flags=re.DOTALL)
    return re.sub(r"`[^`\n]*`|\$[^$\n]*\$", "", markdown)


# -- rules ---------------------------------------------------------------------------------------

Rule = Callable[[Book], Iterator[str]]
RULES: dict[str, tuple[str, Rule]] = {}


def rule(applies_to: str):
    """Enter a function among the rules, for "all" books or for one kind of them."""
    def enter(function: Rule) -> Rule:
        RULES[function.__name__] = (applies_to, function)
        return function
    return enter


def problems(book: Book) -> list[str]:
    return [sentence for applies_to, check in RULES.values() if applies_to in ("all", book.kind) for sentence in check(book)]


@rule("all")
def valid(book):
    if not book.raw:
        yield (f"{book.name} cannot be read as a notebook ({book.unreadable or 'not a JSON object'}): "
               "take it from the last commit.")
        return
    if (book.raw.get("nbformat"), book.raw.get("nbformat_minor", 0)) < (4, 5):
        yield f"{book.name} is older than notebook format 4.5: open it in JupyterLab and save it."
        return
    try:
        nbformat.validate(nbformat.from_dict(book.raw))
    except nbformat.ValidationError as error:
        yield f"{book.name} is not a valid notebook ({str(error).splitlines()[0]}): save it from JupyterLab again."


@rule("all")
def ids(book):
    seen: dict[str, Cell] = {}
    for cell in book.cells:
        name = cell.raw.get("id")
        if not name:
            yield f"{cell} has no id: save the notebook from JupyterLab again."
        elif name in seen:
            yield f"{cell} has the id of cell {seen[name].index}: give it another."
        else:
            seen[name] = cell


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
            found = cell.raw.get("execution_count")
            yield (f"{cell} has execution count {found} where {wanted} is due: "
                   "restart the kernel, run all cells, save.")
            return                                   # the ones after it are wrong for the same reason


@rule("all")
def parses(book):
    for cell in book.code:
        try:
            ast.parse(TransformerManager().transform_cell(cell.source))
        except SyntaxError as error:
            yield f"{cell} is not Python ({error.msg}, line {error.lineno}): correct it."


@rule("all")
def no_empty_code(book):
    for cell in book.cells:
        if cell.type == "code" and not cell.source.strip():
            yield f"{cell} is an empty code cell: delete it."


@rule("all")
def short_cells(book):
    for cell in book.code:
        code = re.sub(r'"""\n[!-~\n]+\n"""', '""', cell.source)  # a file as text counts as one line
        lines = len(code.splitlines()) - cell.folded  # which begins with what it is
        if lines > LONGEST_CELL:
            yield f"{cell} has {lines} lines of at most {LONGEST_CELL}: divide it, or move code to helpers."


@rule("all")
def size(book):
    if book.path.stat().st_size >= LARGEST_FILE:
        yield (f"{book.name} has {book.path.stat().st_size / 1e6:.2f} MB of at most {LARGEST_FILE / 1e6:.1f}: "
               "make its figures or embedded HTML smaller.")


@rule("all")
def no_errors(book):
    for cell in book.code:
        for output in cell.outputs:
            if output["output_type"] == "error":
                yield f"{cell} stores the error {output.get('ename')}: correct the cell, or catch it and show its message."


@rule("all")
def no_stderr(book):
    for cell in book.code:
        said = "".join("".join(output["text"]) for output in cell.outputs if output.get("name") == "stderr")
        if said:
            yield f"{cell} stores a warning or stderr ({said.strip().splitlines()[-1][:80]!r}): remove its cause."


@rule("all")
def no_absolute_paths(book):
    for cell in book.cells:
        for place, text in (("source", cell.source), ("output", cell.output_text())):
            if found := ABSOLUTE_PATH.search(text):
                yield f"{cell} has the absolute path {found.group()} in its {place}: use a relative one."


@rule("all")
def no_addresses(book):
    for cell in book.code:
        if found := ADDRESS.search(cell.output_text()):
            yield f"{cell} shows the object address {found.group()}, another at every run: print something else."


@rule("all")
def frames(book):
    """A page in a frame may run scripts and reaches nothing outside it."""
    for cell in book.code:
        for output in cell.outputs:
            for attributes in FRAME.findall("".join(output.get("data", {}).get("text/html", ""))):
                if not re.search(r"""\ssandbox=(['"])allow-scripts\1""", re.sub("srcdoc='[^']*'", "", attributes)):
                    yield f"{cell} shows a frame without sandbox='allow-scripts': make it with helpers.page.show.frame."


@rule("all")
def nothing_skipped(book):
    for cell in book.cells:
        for tag in set(cell.tags) & set(FORBIDDEN_TAGS):
            yield f"{cell} has the tag {tag}: nothing is skipped or let fail, so take the tag away."
        if found := cell.type == "code" and MARKER.search(cell.source):
            yield f"{cell} has the comment {found.group(1)}: use the tag {IGNORED}, which keeps its reason."


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
def enough_compared(book):
    share = sum(cell.compared for cell in book.code) / max(len(book.code), 1)
    if share < LEAST_COMPARED_HERE:
        yield (f"{book.name} has {share:.0%} of its code cells compared, of at least {LEAST_COMPARED_HERE:.0%}: "
               "make more outputs stable.")


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
    pattern = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?:href|src)\s*=\s*[\"']([^\"']+)[\"']")
    for cell in book.cells:
        html = "" if cell.type == "markdown" else "\n".join(
            "".join(output.get("data", {}).get("text/html", "")) for output in cell.outputs)
        text = without_code(cell.source) if cell.type == "markdown" else re.sub(r"srcdoc='[^']*'|<use [^>]*>", "", html)
        for match in pattern.finditer(text):
            target = match.group(1) or match.group(2)
            if re.match(r"[a-zA-Z][\w+.-]*:|//", target):    # https:, mailto:, data:, attachment:
                continue
            problem = broken(book, unquote(target))
            if problem:
                yield f"{cell} links to {target}, but {problem}: correct the link."


def broken(book: Book, target: str) -> str | None:
    """Why a relative link leads nowhere, or None."""
    file, _, anchor = target.partition("#")
    path = (book.path.parent / file).resolve() if file else book.path
    if not path.exists():
        return "there is no such file"
    if not path.is_relative_to(book.root.resolve()):
        return "that is outside the course"
    if anchor and path.suffix == ".ipynb":
        there = book if path == book.path else Book(path, book.root)
        if anchor not in there.anchors():
            return f"{path.name} has no heading for that anchor (blanks become hyphens, letters stay as they are)"
    if anchor and path.suffix == ".md":
        slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
                 for heading in headings(path.read_text(encoding="utf-8"))}
        if anchor not in slugs:
            return f"{path.name} has no heading for that anchor"
    return None


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
def minutes(book):
    core = re.split(r"^##? *Going deeper", book.markdown, maxsplit=1, flags=re.MULTILINE)[0]  # the rest has its own
    stated = re.findall(r"^\*\*Time:\*\* (\d+) minutes", core, re.MULTILINE)
    wanted = book.lesson.minutes if book.lesson else 0
    if book.lesson and stated != [str(wanted)]:
        yield (f"{book.name} says {' and '.join(stated) or 'nothing'} of its time, and data/course.toml {wanted} minutes: "
               f"write '**Time:** {wanted} minutes.' into the cell 'In this lesson'.")


@rule("lessons")
def sections(book):
    deeper = re.search("^## Going deeper", book.markdown, re.MULTILINE)
    wanted = ["## Recap", "### Going further" if deeper else "## Going further"]
    if book.lesson and book.lesson.claims:
        wanted.insert(0, f"## {CLAIMS}")
    lines = [line.rstrip() for line in without_code(book.markdown).splitlines()]
    for heading in wanted:
        if lines.count(heading) != 1:
            yield f"{book.name} has {lines.count(heading)} lines {heading!r}: it needs one, spelt so."
    if "**In this lesson**" not in book.markdown:
        yield f"{book.name} has no cell with '**In this lesson**': say what it teaches, needs, and how long it takes."
    if len(book.code) < 2 or not isinstance(next(iter(book.code[1].tree.body), None), (ast.Import, ast.ImportFrom)):
        yield f"{book.name} has no import cell after the one for Colab: put the imports there."


@rule("all")
def colab_first(book):
    wanted = address.cell(address.known_name(book.root))
    if not book.code or book.code[0].source != wanted:
        yield f"{book.name} does not begin its code with scripts.address.cell(): copy that cell from another lesson."
    elif "remove-cell" not in book.code[0].tags or not book.code[0].metadata.get("jupyter", {}).get("source_hidden"):
        yield f"{book.code[0]} is not folded away: give it the metadata that it has in other lessons."


@rule("lessons")
def folded_cells_say_what_they_are(book):
    """JupyterLab shows the first line of a folded cell."""
    for cell in book.code:
        first, *rest = cell.source.splitlines()
        if cell.folded and not first.startswith("# "):
            yield f"{cell} is folded and does not say what it is: begin it with '# Drawing, {len(rest) + 1} lines', say."
        elif cell.folded and (said := re.search(r", (\d+) lines?$", first)) and int(said[1]) != len(rest):
            yield f"{cell} says that it has {said[1]} lines, and it has {len(rest)}: correct the number."


@rule("lessons")
def answers_are_earned(book):
    """What would give an answer away is in nothing that a reader sees before the question, ``predict(key, ...)``. The words
    are in the metadata of the cell that reveals it, {"spoilers": {key: [...]}}: in its source they would be read."""
    seen, seen_at = "", {}
    for cell in book.cells:
        for key, words in cell.metadata.get("spoilers", {}).items():
            for word in words:
                if key not in seen_at or word.lower() in seen_at[key].lower():
                    yield (f"{cell} reveals what was told before: {word!r} is in a heading, figure's text or output above "
                           f"predict({key!r}, ...), or that is missing.")
        if cell.type == "code":
            seen_at |= dict.fromkeys(re.findall(r"^predict\(\s*[\"'](.*?)[\"']", cell.source, re.MULTILINE), seen)
            seen += cell.output_text() + "\n"
        else:
            told = re.findall(r"!\[(.*?)\]|<img[^>]*alt=[\"'](.*?)[\"']|^(\*In words:\*.*)", cell.source, re.MULTILINE)
            seen += "\n".join([*headings(cell.source), *map("".join, told), ""])


@rule("lessons")
def next_lesson(book):
    number = f"{int(book.path.name[:2]) + 1:02d}" if book.path.name[:2].isdigit() else ""
    for following in sorted(book.path.parent.glob(f"{number}_*.ipynb")) if number else ():
        if f"]({following.name}" not in book.markdown:
            yield f"{book.name} does not link to {following.name}: end with a link to the next lesson."


@rule("lessons")
def claims(book):
    """The table below that heading names each claim of the lesson, and no other; its verdicts are the register's."""
    shown, inside = "", False
    for cell in book.cells:
        if cell.type == "markdown":
            for heading in re.findall(r"^## +(.+?)\s*$", without_code(cell.source), re.MULTILINE):
                inside = heading == CLAIMS
        elif inside:
            shown += cell.output_text()
    found, wanted = set(re.findall(r"\bC\d\d+\b", shown)), set(book.lesson.claims if book.lesson else ())
    for claim in sorted(wanted - found):
        yield f"{book.name} does not show claim {claim} in the output below '{CLAIMS}': measure it and run the lesson again."
    for claim in sorted(found - wanted):
        yield f"{book.name} shows claim {claim}, which data/course.toml does not have for this lesson: run it again."


@rule("lessons")
def verdicts(book):
    """Each entry of the register for this lesson stands in it with its verdict: run the lesson again when one changes.

    Not where the lesson says that a question further down asks for it, ``what_people_say(..., later=[...])``."""
    if not book.lesson or not book.lesson.claims:
        return
    if not book.experiment.exists():
        yield f"{book.name} has claims and no experiment: measure them in notebooks/experiments/{book.path.name}."
        return
    rows = [line for cell in book.code for line in cell.output_text().splitlines()]
    later = {claim for cell in book.code for some in re.findall(r"\blater=\((.*?)\)", cell.source)
             for claim in re.findall(r"C\d+", some)}
    for entry in (e for e in held(book).values() if "withdrawn" not in e and e["id"] not in later):
        row = re.compile(rf"{entry['id']} .* {re.escape(entry['verdict'])}\s*")  # of the table in plain text
        if entry["lesson"] == book.path.name[:2] and not any(map(row.fullmatch, rows)):
            yield (f"{book.name} does not say of {entry['id']} what data/claims.json says, {entry['verdict']!r}: "
                   "run it again with `make execute`.")


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


@rule("lessons")
def has_solution(book):
    if book.lesson and book.lesson.exercises and not (book.path.parent / "solutions" / book.path.name).exists():
        yield f"{book.name} has exercises and no solutions/{book.path.name}: write it."


@rule("all")
def has_lesson(book):
    if book.kind != "lessons" and not (book.path.parent.parent / book.path.name).exists():
        yield f"{book.name} does not belong to a lesson: there is no notebooks/{book.path.name}."


def books(root: Path = REPO) -> list[Book]:
    """Every lesson, every solution and every experiment."""
    return [Book(path, root) for folder in ("", "solutions/", "experiments/")
            for path in sorted((root / "notebooks").glob(f"{folder}*.ipynb"))]
