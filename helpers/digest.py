"""What a measurement was made with, as one short digest: when it changes, the measurement has to be made again.

The digest is over the statements that a call needs, directly or through others: of the notebook's cells up to there and
of the modules of ``helpers``; and over the files of ``data/`` that they name. Texts that a pattern finds stay out:
experiment 15 counts words of the course's own lessons and modules, which change with every commit, as they were when it
was last run in full. It is read off the source, so nothing has to
run. Comments, docstrings and layout do not count, and it is the same in every Python from 3.10 on.
"""

import ast
import hashlib
from functools import lru_cache
from pathlib import Path

HELPERS = Path(__file__).resolve().parent
DATA = HELPERS.parent / "data"
COURSE = ("course.toml", "claims.json")  # files of data/ that no measurement is made from
AROUND = ("experiment", "jitter", "plots", "show")  # modules of helpers/ that measure or show and make no number
LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)  # whose names mean what they mean when it is called
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def of_call(frame, without=()):
    """The digest of the notebook's statement that is running in ``frame`` or in a caller of it; "" outside of a notebook.

    ``without``: types; a name of the notebook that holds such an object does not count.
    """
    cell = None
    while frame:  # the outermost one is the statement itself
        cell, frame = frame if isinstance(frame.f_globals.get("In"), list) else cell, frame.f_back
    if not cell:
        return ""
    names = cell.f_globals
    *before, now = [_statements(source) for source in names["In"]]
    root = next(s for s in now if s.lineno <= cell.f_lineno <= s.end_lineno)
    own = {name for name, value in names.items() if isinstance(value, without)}
    return _digest(sum(before, []) + now[:now.index(root)], needed(root), repr(_plain(root)), own)


def _digest(cells, wanted, root="", without=()):
    """The digest of what ``wanted``, names in a notebook, need; ``cells``: the notebook's statements before ``root``."""
    modules, todo, chosen = {"": wanted}, [""], {}
    while todo:
        module = todo.pop()
        statements = _module(module) if module else cells
        chosen[module], names = _chosen(statements, modules[module], () if module else without)
        for other, name in _taken(statements, names):
            if name not in modules.setdefault(other, set()):
                modules[other].add(name)
                todo.append(other)
    whole = hashlib.sha256(root.encode())
    for module, statements in sorted(chosen.items()):
        whole.update(repr((module, [_told(s) for s in statements])).encode())
    files = {path.name: path for path in DATA.iterdir() if path.is_file() and path.name not in COURSE}
    said = {node.value.split("/")[-1] for s in sum(chosen.values(), []) for node in ast.walk(s)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    for name in sorted(files.keys() & said):
        whole.update(files[name].read_bytes())
    return whole.hexdigest()[:16]


def _chosen(statements, wanted, without=()):
    """Those of the statements that make one of these names, or what these need in turn; and all names needed.

    A name is looked up from where it is used backwards, to the first statement that makes it anew and not from itself.
    """
    makes, needs, end = [_makes(s) for s in statements], [needed(s) for s in statements], len(statements)
    chosen, names = set(), {(n, end) for name in wanted for n in (set().union(*makes) if name == "*" else [name])}
    todo, without = list(names), {*without, *_imported(statements)}  # np.add(...) does not change np
    while todo:
        name, at = todo.pop()
        base = name.split(".")[0]
        for i in range(at - 1, -1, -1) if base not in without else ():
            if base in makes[i]:
                chosen.add(i)
                later = _works_later(statements[i])
                new = {(n, end) for n in needs[i] if later}
                new |= {(n, i) for n in needs[i] if not isinstance(statements[i], LATER)}
                todo += new - names
                names |= new
                if isinstance(statements[i], (*LATER, ast.Assign)) and base not in {n.split(".")[0] for n in needs[i]}:
                    break
    return [statements[i] for i in sorted(chosen)], {name for name, _ in names}


@lru_cache(None)
def _works_later(statement):
    return any(isinstance(node, (*LATER, ast.Lambda)) for node in ast.walk(statement))


@lru_cache(None)  # as below: each measurement of a notebook asks the same of mostly the same statements
def needed(node):
    """The names that a piece of code takes from outside: a set of "name", or "name.attribute" where it takes that."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return {f"{node.value.id}.{node.attr}"}
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    inside = set().union(*map(needed, ast.iter_child_nodes(node)))
    own = _bound(node) if isinstance(node, SCOPES) else ()
    return {name for name in inside if name.split(".")[0] not in own}


def _bound(node):
    """The names that a node binds in its own scope; imports are looked up by `_taken`."""
    found = set()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            found.add(child.id)
        elif isinstance(child, (ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(child.arg if isinstance(child, ast.arg) else child.name)
        if not isinstance(child, (*SCOPES, ast.ClassDef)):
            found |= _bound(child)
    return found


@lru_cache(None)
def _makes(statement):
    """The names that a statement at the top binds, or changes through an index, an attribute or a method."""
    found = _bound(ast.Module([statement], []))
    for node in ast.walk(statement) if not isinstance(statement, (*SCOPES, ast.ClassDef)) else ():
        changed = isinstance(getattr(node, "ctx", None), ast.Store) and not isinstance(node, ast.Name)
        called = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        inner = node.value.func if called and isinstance(node.value.func, ast.Attribute) else node if changed else None
        while isinstance(inner, (ast.Attribute, ast.Subscript)):
            inner = inner.value
        if isinstance(inner, ast.Name):
            found.add(inner.id)
    return found


def _imported(statements):
    """Name -> (module, name in it or None), for every import among the statements."""
    return {name: found for s in statements for name, found in _imports(s).items()}


@lru_cache(None)
def _imports(statement):
    return {(alias.asname or alias.name).split(".")[0]: (getattr(node, "module", None) or alias.name, alias.name)
            for node in ast.walk(statement) if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}


def _taken(statements, names):
    """(module of helpers, name in it or "*" for all) for what ``names`` mean, by any import among the statements."""
    imported = _imported(statements)
    for name in names:
        base, _, attribute = name.partition(".")
        source, taken = imported.get(base, ("", ""))
        package, _, module = source.partition(".")
        module, taken = (module, taken) if module else (taken, attribute or "*")
        if package == "helpers" and module not in AROUND and (HELPERS / f"{module.replace('.', '/')}.py").exists():
            yield module, taken


@lru_cache(None)
def _statements(source):
    try:
        return ast.parse(source).body
    except SyntaxError:  # a cell that did not run
        return []


@lru_cache(None)
def _module(name):
    return _statements((HELPERS / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"))


@lru_cache(None)
def _told(statement):
    return _plain(statement)


def _plain(node):
    """A node as nested tuples without places, docstrings and what only some Pythons say."""
    if isinstance(node, list):
        return [_plain(n) for n in node if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    if not isinstance(node, ast.AST) or isinstance(node, ast.Constant):
        return repr(getattr(node, "value", node))
    fields = [(name, value) for name, value in ast.iter_fields(node) if name not in ("ctx", "type_comment")]
    return type(node).__name__, *[(name, _plain(value)) for name, value in fields if value not in (None, [])]
