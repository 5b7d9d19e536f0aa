"""Read a notebook as students hand it in: old, damaged, stripped or re-ordered. Nothing is run here."""

import ast
import base64
import inspect
import json
import re
import textwrap
import warnings
from dataclasses import dataclass, field

from helpers.checks.core import is_stub

LARGEST = 25_000_000  # bytes of a file
BRACKETS = 2_000_000  # lists and objects in it: each takes much more memory than the two bytes that it has in the file
LONGEST = 150_000  # characters of a code cell: the weights of assignment 7 take 107,000
MOST_CODE = 400_000  # characters of all code cells
MOST_CELLS = 2_000
MOST_MAGIC_LINES = 300  # of all cells that are given to IPython
LARGEST_FIGURE = 1_000_000  # letters of a picture in base64
PICTURES = {"image/png": "iVBORw0KGgo", "image/jpeg": "/9j/"}  # and how their bytes begin, in base64
NOT_PYTHON = {"!", "bash", "cmd", "file", "html", "javascript", "js", "latex", "markdown", "perl", "pypy", "python",
              "python2", "python3", "ruby", "script", "sh", "sql", "svg", "sx", "system", "writefile"}  # cell magics
MOST_JOINED = 20  # cells that were split
DEF = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


class Unreadable(Exception):
    """One sentence: why the file is not a notebook that can be graded. ``status``: how its submission ends."""

    status = "unreadable"


class Refused(Unreadable):
    """One sentence: why the file is not looked at, although it may be a notebook."""

    status = "refused"


@dataclass
class Cell:
    type: str  # "code", "markdown" or "raw"
    source: str
    grade_id: str = ""
    figures: list = field(default_factory=list)  # saved below it: base64 of PNG and JPEG


@dataclass
class Notebook:
    """The cells of a notebook. ``assignment`` and ``variant``: the ids in its metadata, or ""; ``notes``: what the teacher
    should know."""

    cells: list
    assignment: str = ""
    variant: str = ""
    notes: list = field(default_factory=list)

    @property
    def code(self):
        """The sources of the code cells."""
        return [cell.source for cell in self.cells if cell.type == "code"]


def read(data):
    """A ``Notebook`` of the bytes of a file, in any nbformat since 2. Raises Unreadable."""
    if len(data) > LARGEST:
        raise Refused(f"The file has {len(data) / 1e6:,.0f} MB; more than {LARGEST // 1_000_000} MB are not read.")
    if not data.strip():
        raise Unreadable("The file is empty.")
    if data.count(b"[") + data.count(b"{") > BRACKETS:
        raise Refused(f"The file holds more than {BRACKETS:,} lists, and is not read.")
    notes = []
    try:
        raw = json.loads(_text(data, notes))
    except (ValueError, RecursionError):
        raise Unreadable("The file is not a notebook: it is damaged, cut off, or another kind of file.") from None
    cells = raw.get("cells") if isinstance(raw, dict) else None
    if isinstance(raw, dict) and cells is None:  # nbformat 2 and 3
        if isinstance(sheets := raw.get("worksheets"), list):
            cells = [cell for sheet in sheets for cell in _list(_dict(sheet).get("cells"))]
            notes.append("The notebook has an old format.")
    if not isinstance(cells, list):
        raise Unreadable("The file holds JSON, but it is not a notebook: it has no cells.")
    if len(cells) > MOST_CELLS:
        raise Refused(f"The notebook has {len(cells):,} cells; more than {MOST_CELLS:,} are not read.")
    read_cells = [_cell(cell) for cell in cells if isinstance(cell, dict)]
    if sum(len(cell.source) for cell in read_cells if cell.type == "code") > MOST_CODE:
        raise Refused(f"The notebook has more than {MOST_CODE:,} characters of code, and is not read.")
    course = _dict(_dict(raw.get("metadata")).get("attention_course"))
    ids = [re.sub(r"[^\w .-]", "?", _str(course.get(name, "")))[:100] for name in ("assignment", "variant")]
    return Notebook(read_cells, *ids, notes)


def _text(data, notes):
    """The bytes as text: UTF-8 with or without a mark, UTF-16 with one, else byte for byte."""
    for encoding in ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            notes.append("The file is not UTF-8: letters outside ASCII may be wrong.")
    return data.decode("latin-1")


def _cell(raw):
    source = raw.get("source", raw.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    nbgrader = _dict(_dict(raw.get("metadata")).get("nbgrader"))
    return Cell(_str(raw.get("cell_type")), _str(source), _str(nbgrader.get("grade_id"))[:200], _figures(raw))


def _figures(raw):
    """The pictures in a cell's outputs, of the two kinds that a browser shows and never runs."""
    found = []
    for output in _list(raw.get("outputs"))[:20]:
        known = _dict(_dict(output).get("data"))
        for kind, begins in PICTURES.items():
            text = known.get(kind)
            text = "".join(part for part in text if isinstance(part, str)) if isinstance(text, list) else _str(text)
            text = re.sub(r"\s+", "", text) if len(text) <= LARGEST_FIGURE else ""
            if text.startswith(begins) and re.fullmatch("[A-Za-z0-9+/]+={0,2}", text):
                found.append(text)
                break
    return found


def _str(value):
    return value if isinstance(value, str) else ""


def _dict(value):
    return value if isinstance(value, dict) else {}


def _list(value):
    return value if isinstance(value, list) else []


def added_text(book, parsed=True):
    """What is written in cells that somebody added: text, or code cells that hold text and no code. With ``parsed`` false
    nothing is parsed, and any code cell may hold text."""
    found = []
    for cell in book.cells:
        if cell.grade_id or len(cell.source.split()) < 3:
            continue
        tree = parse(cell.source) if cell.type == "code" and parsed else None
        body = tree.body if tree else ()
        if cell.type != "code" or not body and not cell.source.lstrip().startswith(("%", "!")) or len(body) == 1 and (
                isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)):
            found.append(cell.source.strip())
    return "\n\n".join(found)


def text_below(book, question):
    """What is written in text cells between the cell with the heading of a ``question`` and the next heading or code."""
    heading, found, below = re.search(r"^#+ .+$", question, re.MULTILINE), [], False
    for cell in book.cells:
        starts = cell.type != "markdown" or re.match(r"\s*#", cell.source)
        if below and not starts:
            found.append(cell.source.strip())
        below = bool(heading and cell.type == "markdown" and heading[0] in cell.source) or below and not starts
    return "\n\n".join(found)


# ---------------------------------------------------------------- the code in it


def plain_cells(sources):
    """The sources of a notebook's code cells without magics, None where nothing is left to run."""
    room = [MOST_MAGIC_LINES]
    return [plain_python(source, room) for source in sources]


def plain_python(source, room=None):
    """The source of a code cell without magics, or None where nothing is left to run (``%%bash``, say). Hidden tests, of
    which nbgrader's copies have some, go as well: they need the checkers, which are not where the cells run. ``room``: a
    list with the number of lines that IPython may still be given; it is lowered."""
    before, _, rest = source.partition("### BEGIN HIDDEN TESTS\n")
    _, end, after = rest.partition("### END HIDDEN TESTS")
    source = before + after if end else source
    for _ in range(3):
        if len(source) > LONGEST:
            return None
        if (tree := parse(source)) is not None:
            return source if tree.body else None
        magic = re.match(r"\s*%%([\w.]+|!)[^\n]*\n?", source)
        if not magic:
            break
        if magic[1].lower() in NOT_PYTHON:
            return None
        source = source[magic.end():]
    source = re.sub(r"^([ \t]*)%time[ \t]+(?=\S)", r"\1", source, flags=re.MULTILINE)
    # As in the sandbox no magic does anything, most need only be left out:
    short = re.sub(r"^([ \t]*)([%!?].*|[\w.]+\?{1,2}[ \t]*)$", r"\1pass", source, flags=re.MULTILINE)
    short = re.sub(r"^([ \t]*\w+ *= *)[%!].*$", r"\1[]", short, flags=re.MULTILINE)
    if parse(short) is not None:
        return short
    room = room or [MOST_MAGIC_LINES]
    if source.count("\n") >= room[0]:  # IPython reads the whole cell again for each magic
        return source
    room[0] -= source.count("\n") + 1
    from IPython.core.inputtransformer2 import TransformerManager
    try:
        return TransformerManager().transform_cell(source)  # %x and !x become calls of get_ipython(), a dummy inside
    except Exception:
        return source  # it will stop with its own SyntaxError


def in_text_cells(book, sources, functions):
    """The code in text cells that defines one of the ``functions`` which the ``sources`` of the code cells do not: a list;
    and a sentence on each."""
    written = {name for source in sources for name in names_of(source, functions=is_broken(source))}
    written |= {name for name, places in definitions(sources).items() if not all(is_stub(f) for _, f in places)}
    found, notes, room = [], [], MOST_CODE
    for number, cell in enumerate(book.cells, 1):
        if cell.type == "code" or len(cell.source) > LONGEST or not DEF.search(cell.source):
            continue
        room -= len(cell.source)
        fenced = re.findall(r"^```\w*[ \t]*\n(.*?)^```", cell.source, re.MULTILINE | re.DOTALL)
        code = "\n".join(fenced) or cell.source
        new = {name for name in names_of(code) & set(functions) - written
               if is_broken(code) or not all(is_stub(tree) for _, tree in definitions([code]).get(name, ()))}
        if new and room > 0:
            written |= new
            found.append(code)
            notes.append(f"Cell {number} is a text cell ({cell.type}). No code cell defines {', '.join(sorted(new))}, so "
                         f"the code in it was taken, as code cell {len(sources) + len(found)}.")
    return found, notes


def joined(sources, raw):
    """The ``sources`` of cells without magics, where a cell that is only the second part of one is put behind its first;
    and a sentence on each. ``raw``: the cells with magics and with their indent, which IPython takes away."""
    sources, notes = list(sources), []
    for number in range(1, len(sources)):
        first, second = sources[number - 1:number + 1]
        both = f"{first}\n{raw[number]}"
        if (first and second and len(notes) < MOST_JOINED and len(both) <= LONGEST
                and (is_broken(first) or is_broken(second)) and not is_broken(both)):
            sources[number - 1:number + 1] = None, both
            notes.append(f"Code cells {number} and {number + 1} are one cell that was split in two, and were run as one.")
    return sources, notes


def parse(source):
    """The syntax tree, or None when ``source`` is not Python."""
    try:
        with warnings.catch_warnings():  # about what a student wrote: not for the teacher's terminal
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def definitions(sources):
    """The functions defined at the top of the cells: name -> list of (number of the cell from 0, syntax tree)."""
    found = {}
    for number, source in enumerate(sources):
        for node in getattr(parse(source or ""), "body", ()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(node.name, []).append((number, node))
    return found


def names_of(source, functions=True):
    """The names that a cell gives a value at its top: by import, assignment, class and, with ``functions``, def. Where the
    cell is not Python, those that its lines give."""
    names = set()
    if (tree := parse(source or "")) is None:
        return _names_of_lines(source, functions)
    for node in tree.body:
        names |= _given_by(node) if functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else set()
    return names


def _given_by(node):
    """The names to which a statement gives a value."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    return {node.name} if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else set()


def _names_of_lines(source, functions):
    """As names_of, line by line, for what cannot be parsed: rather a name too many, which costs nobody anything."""
    source = textwrap.dedent(source)
    names = set(re.findall(r"^[ \t]*class[ \t]+(\w+)", source, re.MULTILINE))
    names |= set(DEF.findall(source)) if functions else set()
    for imported in re.findall(r"^(?:from[ \t]+\S+[ \t]+)?import[ \t]+([^#\n]+)", source, re.MULTILINE):
        names |= {word for part in imported.split(",") for word in re.findall(r"\w+", part.partition(".")[0])[-1:]}
    for targets in re.findall(r"^(\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*(?::[^=\n]+)?=(?!=)", source, re.MULTILINE):
        names |= set(re.findall(r"\w+", targets))
    return names


def handed_out_imports(cells, sources):
    """The imports of the ``cells``, which were handed out locked, as a cell to be run before the ``sources``: those whose
    names these mention, one by one, since one may fail. "" where all the cells are there as they were handed out."""
    known = {source.strip() for source in sources if source}
    if all(cell.strip() in known for cell in cells):
        return ""
    words, lines = set(re.findall(r"\w+", "\n".join(known))), []
    for node in (node for cell in cells for node in ast.parse(cell).body):
        for alias in node.names:
            if _given_by(one := type(node)(**{**vars(node), "names": [alias]})) & words:
                lines.append(f"try:\n    {ast.unparse(one)}\nexcept Exception:\n    pass")
    return "\n".join(lines)


def is_broken(source):
    """Whether a cell is not Python, so that nothing in it could run: a slip of the keyboard, the marks of a merge, a part
    of a function that returns outside of it."""
    return bool(source) and ((tree := parse(source)) is None or _returns(tree))


def _returns(node):
    inside = () if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else getattr(node, "body", ())
    return isinstance(node, ast.Return) or isinstance(inside, list) and any(map(_returns, inside))


def given_by_broken(sources, broken, import_cells=()):
    """Name -> number from 0 of the cell that was to give it a value and could not, unless a later cell does so: of the
    cells with the numbers ``broken``. A stub does not count, nor does what was imported by the ``import_cells`` that were
    handed out, which run in any case."""
    names, imported = {}, {name for cell in import_cells for name in names_of(cell)}
    for number, source in enumerate(sources):
        if number in broken:
            names |= dict.fromkeys(names_of(source) - imported | set(DEF.findall(source)), number)
            continue
        for node in getattr(parse(source or ""), "body", ()):
            if not (isinstance(node, ast.FunctionDef) and is_stub(node)):
                for name in _given_by(node):
                    names.pop(name, None)
    return names


def without_stubs(sources):
    """The cells to run: a cell that only holds stubs of functions written elsewhere becomes None, so that a copy
    of the empty cell further down does not undo the work."""
    written = {name for name, places in definitions(sources).items() if not all(is_stub(f) for _, f in places)}
    written |= {name for source in sources for name in names_of(source, functions=False)}  # f = lambda x: ...
    kept = []
    for source in sources:
        body = getattr(parse(source or ""), "body", [])
        undoes = body and all(isinstance(n, ast.FunctionDef) and is_stub(n) and n.name in written for n in body)
        kept.append(None if undoes else source)
    return kept


def signature(function):
    """The ``inspect.Signature`` of a syntax tree, defaults left out; None where a decorator may change it, or where it has
    a name twice, which is a SyntaxError that only the compiler finds."""
    if function.decorator_list:
        return None
    a = function.args
    kinds = inspect.Parameter
    optional = {arg.arg for arg in (a.posonlyargs + a.args)[len(a.posonlyargs + a.args) - len(a.defaults):]}
    optional |= {arg.arg for arg, default in zip(a.kwonlyargs, a.kw_defaults, strict=True) if default is not None}
    groups = [(a.posonlyargs, kinds.POSITIONAL_ONLY), (a.args, kinds.POSITIONAL_OR_KEYWORD),
              ([a.vararg] if a.vararg else [], kinds.VAR_POSITIONAL), (a.kwonlyargs, kinds.KEYWORD_ONLY),
              ([a.kwarg] if a.kwarg else [], kinds.VAR_KEYWORD)]
    try:
        return inspect.Signature([kinds(arg.arg, kind, default=None if arg.arg in optional else kinds.empty)
                                  for arguments, kind in groups for arg in arguments])
    except ValueError:
        return None


def uses(sources, function, forbidden):
    """Which ``forbidden`` names a function mentions, itself or in what it uses of the notebook, under whatever name they
    were imported: pairs (name, number of the code cell from 1)."""
    defined = {}
    for number, source in enumerate(sources):
        for node in getattr(parse(source or ""), "body", ()):
            for name in _given_by(node) if not isinstance(node, ast.Import | ast.ImportFrom) else ():
                defined.setdefault(name, []).append((number, node))
    imported = {alias.asname: alias.name.rpartition(".")[2] for source in sources
                for node in ast.walk(parse(source or "") or ast.Module([], []))
                if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname}
    found, seen, queue = [], {function}, [function]
    while queue:
        for number, tree in defined.get(queue.pop(), ()):
            local = {n.arg if isinstance(n, ast.arg) else n.id for n in ast.walk(tree) if isinstance(n, ast.arg)
                     or isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            for name in map(_name, ast.walk(tree)):
                real = imported.get(name, name)
                if real in forbidden and (real, number + 1) not in found:
                    found.append((real, number + 1))
                if name in defined and name not in seen | local:
                    seen.add(name)
                    queue.append(name)
    return found


def _name(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.alias):
        return node.name.rpartition(".")[2]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


# ---------------------------------------------------------------- what a teacher should look at

FETCHES = {"exec", "eval", "compile", "__import__"}  # called by these names, code is made where nobody reads it
FETCHING = {"builtins", "ctypes", "gc", "importlib", "inspect", "marshal", "pickle", "requests", "socket", "subprocess",
            "urllib"}
UNSEEN = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
                    "\u3164\ufeff\uffa0\U000e0000-\U000e01ef]")  # not what joins letters and emoji: people need it
TAGS = re.compile("[\U000e0020-\U000e007e]+")  # a second ASCII, which no font shows
TO_A_MODEL = re.compile(
    r"\b(ignore|disregard|forget|override)\b[^.]{0,40}\b(instructions?|prompts?|rubric|guidelines?)\b"
    r"|\b(give|award|assign|grant)\b[^.]{0,40}\b(full|maximum|max|top|perfect|all( the)?)\b.{0,12}"
    r"\b(points|marks|credit|grade)\b"
    r"|\b(you are|you're|dear|note (to|for)|message (to|for))\b.{0,20}\b(AI|LLM|language model|chat ?bot|assistant|"
    r"auto-?grader|grader)\b|\bas an AI( language)? model\b", re.IGNORECASE)


def text_of(node, known):
    """The text that an expression stands for, as far as it is written down: constants, sums, names in ``known`` (name ->
    text), base64. None for what only running it would tell."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    if isinstance(node, ast.Name):
        return known.get(node.id)
    parts, between = None, ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [text_of(node.left, known), text_of(node.right, known)]
    elif isinstance(node, ast.JoinedStr):
        parts = [text_of(getattr(part, "value", part), known) for part in node.values]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        name, given = _name(node.func), node.args[:1]
        if name == "join" and given and isinstance(given[0], ast.List | ast.Tuple):
            parts = [text_of(one, known) for one in given[0].elts]
            between = text_of(getattr(node.func, "value", node), known) if isinstance(node.func, ast.Attribute) else None
        elif name == "dedent" and given:
            return textwrap.dedent(text_of(given[0], known) or "") or None
        elif name in ("decode", "encode", "strip") and isinstance(node.func, ast.Attribute):
            return text_of(node.func.value, known)
        elif name in ("b64decode", "fromhex") and given and (text := text_of(given[0], known)) is not None:
            try:
                return (base64.b64decode(text) if name == "b64decode" else bytes.fromhex(text)).decode("latin-1")
            except ValueError:
                return None
    if not parts or None in (between, *parts) or sum(len(part) + len(between) for part in parts) > LONGEST:
        return None
    return between.join(parts)


def made_elsewhere(sources):
    """Where code is made or fetched and not written down to be read: pairs (what does it, number of the cell from 1)."""
    found = []
    for number, source in enumerate(sources, 1):
        for node in ast.walk(parse(source or "") or ast.Module([], [])):
            what = ""
            if isinstance(node, ast.Name) and node.id in FETCHES:
                what = node.id
            elif isinstance(node, ast.Import | ast.ImportFrom):
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                what = next((m for m in modules if m.partition(".")[0] in FETCHING or m.startswith((
                    "classroom", "helpers.checks"))), "")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(
                    node.args) > 1 and not isinstance(node.args[1], ast.Constant):
                what = "getattr with a name that it computes"
            elif isinstance(node, ast.Subscript) and (isinstance(node.value, ast.Attribute) and node.value.attr in (
                    "__dict__", "modules") or isinstance(node.value, ast.Call) and isinstance(
                    node.value.func, ast.Name) and node.value.func.id in ("globals", "vars", "locals")):
                what = "a name looked up in a dictionary of names"
            if what and (what, number) not in found:
                found.append((what, number))
    return found


def _untagged(tags):
    return "".join(chr(ord(c) - 0xE0000) for c in tags)


def shown(text):
    """The text with characters that nobody sees as their numbers; letters that only machines read as what they say."""
    text = TAGS.sub(lambda tags: f"[hidden: {_untagged(tags[0])}]", text)
    return UNSEEN.sub(lambda c: f"[U+{ord(c[0]):04X}]", text)


def to_look_at(book):
    """Sentences on what a teacher should see with their own eyes: characters that nobody sees, and text that speaks to a
    language model, wherever in the notebook it is."""
    found = []
    for number, cell in enumerate(book.cells, 1):
        where = cell.grade_id if cell.grade_id.startswith("answer") else f"cell {number}"
        if unseen := UNSEEN.findall(cell.source[:LONGEST].removeprefix("\ufeff")):
            numbers = ", ".join(f"U+{ord(c):04X}" for c in dict.fromkeys(unseen))
            found.append(f"{where} holds {len(unseen)} characters that nobody sees: {numbers[:80]}")
        plain = " ".join(UNSEEN.sub("", TAGS.sub(lambda tags: _untagged(tags[0]), cell.source[:LONGEST])).split())
        if said := TO_A_MODEL.search(plain):
            words = shown(plain[max(0, said.start() - 20):said.end() + 40])
            found.append(f"{where} speaks to a language model: \u201c{words}\u201d")
    return found[:20]
