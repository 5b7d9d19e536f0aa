"""The code in the cells of a notebook: without magics, in order, and what it defines. Nothing is run here."""

import ast
import inspect
import re
import textwrap
import warnings

from classroom.notebook import MOST_CODE
from helpers.checks.core import is_stub

LONGEST = 150_000  # characters of a code cell: the weights of assignment 7 take 107,000
MOST_MAGIC_LINES = 300  # of all cells that are given to IPython
NOT_PYTHON = {"!", "bash", "cmd", "file", "html", "javascript", "js", "latex", "markdown", "perl", "pypy", "python",
              "python2", "python3", "ruby", "script", "sh", "sql", "svg", "sx", "system", "writefile"}  # cell magics
MOST_JOINED = 20  # cells that were split
DEF = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.MULTILINE)


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
    written |= written_functions(sources)
    cells, notes, room = [], [], MOST_CODE
    for number, cell in enumerate(book.cells, 1):
        if cell.type == "code" or len(cell.source) > LONGEST or not DEF.search(cell.source):
            continue
        room -= len(cell.source)
        fenced = re.findall(r"^```\w*[ \t]*\n(.*?)^```", cell.source, re.MULTILINE | re.DOTALL)
        code = "\n".join(fenced) or cell.source
        new = (names_of(code) if is_broken(code) else written_functions([code])) & set(functions) - written
        if new and room > 0:
            written |= new
            cells.append(code)
            notes.append(f"Cell {number} is a text cell ({cell.type}). No code cell defines {', '.join(sorted(new))}, so "
                         f"the code in it was taken, as code cell {len(sources) + len(cells)}.")
    return cells, notes


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


def added_text(book, parsed=True, handed_out=()):
    """What is written in cells that somebody added: text, or code cells that hold text and no code. With ``parsed`` false
    nothing is parsed, and any code cell may hold text; ``handed_out``: sources of cells that nobody added."""
    texts = []
    for cell in book.cells:
        if cell.grade_id or len(cell.source.split()) < 3 or cell.source.strip() in handed_out:
            continue
        tree = parse(cell.source) if cell.type == "code" and parsed else None
        body = tree.body if tree else ()
        if cell.type != "code" or not body and not cell.source.lstrip().startswith(("%", "!")) or len(body) == 1 and (
                isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)):
            texts.append(cell.source.strip())
    return "\n\n".join(texts)


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
    functions = {}
    for number, source in enumerate(sources):
        for node in getattr(parse(source or ""), "body", ()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.setdefault(node.name, []).append((number, node))
    return functions


def written_functions(sources):
    """The names of the functions at the top of the cells that are no longer as they were handed out."""
    return {name for name, places in definitions(sources).items() if not all(is_stub(tree) for _, tree in places)}


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
    there = {source.strip() for source in sources if source}
    if all(cell.strip() in there for cell in cells):
        return ""
    words, lines = set(re.findall(r"\w+", "\n".join(there))), []
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
    written = written_functions(sources)
    written |= {name for source in sources for name in names_of(source, functions=False)}  # f = lambda x: ...
    to_run = []
    for source in sources:
        body = getattr(parse(source or ""), "body", [])
        undoes = body and all(isinstance(n, ast.FunctionDef) and is_stub(n) and n.name in written for n in body)
        to_run.append(None if undoes else source)
    return to_run


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


SAME = {  # what computes the same as a finished function, under another name
    "softmax": ("Softmax", "Softmax2d", "softmin", "Softmin", "gumbel_softmax", "Categorical", "OneHotCategorical"),
    "log_softmax": ("LogSoftmax", "cross_entropy", "CrossEntropyLoss"), "logsumexp": ("logaddexp", "logcumsumexp"),
    "entropy": ("Categorical", "OneHotCategorical"), "layer_norm": ("LayerNorm", "native_layer_norm"),
    "rms_norm": ("RMSNorm",), "kl_div": ("KLDivLoss",), "scaled_dot_product_attention": ("MultiheadAttention",)}


def uses(sources, function, forbidden):
    """Which ``forbidden`` names, or others for the SAME, a function mentions, itself or in what it uses of the notebook,
    under whatever name they were imported: pairs (name, number of the code cell from 1)."""
    defined, forbidden = {}, {*forbidden, *(other for name in forbidden for other in SAME.get(name, ()))}
    for number, source in enumerate(sources):
        for node in getattr(parse(source or ""), "body", ()):
            for name in _given_by(node) if not isinstance(node, ast.Import | ast.ImportFrom) else ():
                defined.setdefault(name, []).append((number, node))
    imported = {alias.asname: alias.name.rpartition(".")[2] for source in sources
                for node in ast.walk(parse(source or "") or ast.Module([], []))
                if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname}
    mentions, seen, queue = [], {function}, [function]
    while queue:
        for number, tree in defined.get(queue.pop(), ()):
            local = {n.arg if isinstance(n, ast.arg) else n.id for n in ast.walk(tree) if isinstance(n, ast.arg)
                     or isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            for name in map(name_of, ast.walk(tree)):
                real = imported.get(name, name)
                if real in forbidden and (real, number + 1) not in mentions:
                    mentions.append((real, number + 1))
                if name in defined and name not in seen | local:
                    seen.add(name)
                    queue.append(name)
    return mentions


def name_of(node):
    """The name, attribute, module or text that a node of a syntax tree mentions, or ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.alias):
        return node.name.rpartition(".")[2]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
