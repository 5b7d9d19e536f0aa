"""What somebody does to a copied answer so that it looks like their own: each takes and returns the text of a cell."""

import ast
import re

from classroom import assignment, trial

TASKS = {test.function for name in assignment.names() for test in assignment.load(name).tests}


def _changed(transformer):
    def disguise(source):
        return ast.unparse(ast.fix_missing_locations(transformer().visit(ast.parse(source))))
    return disguise


def rename(source):
    """Every name that is given in the source gets another, but for the functions that a task asks for."""
    tree = ast.parse(source)
    keep = {n.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for n in node.keywords}
    keep |= TASKS
    given = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    given |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    given |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    new = {name: f"my_{'thing' * (number % 3)}{number}" for number, name in enumerate(sorted(given - keep))}
    for node in ast.walk(tree):
        for field in ("id", "arg", "name"):
            if not isinstance(node, ast.keyword | ast.alias) and getattr(node, field, None) in new:
                setattr(node, field, new[getattr(node, field)])
    return ast.unparse(tree)


def _names(node, kind):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kind)}


def reorder(source):
    """Statements next to each other change places wherever neither needs the other."""
    tree = ast.parse(source)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        body = function.body
        for i in [*range(len(body) - 1), *range(len(body) - 1)]:
            a, b = body[i], body[i + 1]
            plain = all(isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name | ast.Tuple) for s in (a, b))
            if plain and not (_names(a, ast.Store) & (_names(b, ast.Store) | _names(b, ast.Load))
                              or _names(b, ast.Store) & _names(a, ast.Load)):
                body[i], body[i + 1] = b, a
    return ast.unparse(tree)


class _Dead(ast.NodeTransformer):
    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        for argument in node.args.args:
            argument.annotation = ast.Name("object")
        node.body = [*ast.parse('"""My own work."""\nready = False\nif ready:\n    print("never", ready)').body,
                     *node.body[:-1], *ast.parse("steps = len(str(ready)) - 5\nassert steps <= 0").body, node.body[-1]]
        return node


def padding(source):
    """Comments, blank lines, docstrings, annotations, and statements that do nothing."""
    return re.sub(r"^( *)(\w.*)$", r"\1# \2 ...\n\n\1\2", _changed(_Dead)(source), flags=re.MULTILINE)


class _Steps(ast.NodeTransformer):
    """Each operation inside an operation of a plain statement becomes a statement of its own."""

    def __init__(self):
        self.count = 0

    def _split(self, statement):
        before, outer = [], self

        class Inside(ast.NodeTransformer):
            def visit_Lambda(self, node):
                return node

            visit_ListComp = visit_GeneratorExp = visit_DictComp = visit_IfExp = visit_BoolOp = visit_Lambda

            def _step(self, node):
                self.generic_visit(node)
                if node is statement.value:
                    return node
                outer.count += 1
                before.append(ast.Assign([ast.Name(f"step{outer.count}", ast.Store())], node))
                return ast.Name(f"step{outer.count}", ast.Load())

            visit_BinOp = visit_Call = visit_Compare = _step

        if statement.value is not None and not any(isinstance(n, ast.NamedExpr) for n in ast.walk(statement)):
            statement.value = Inside().visit(statement.value)
        return [*before, statement]

    visit_Assign = visit_Return = _split


def all_at_once(source):
    for name in ("steps", "renamed", "reordered", "padding"):
        source = DISGUISES[name](source)
    return source


DISGUISES = {
    "untouched": lambda source: source,
    "renamed": rename,
    "reordered": reorder,
    "padding": padding,
    "steps": _changed(_Steps),
    "all_at_once": all_at_once,
    "products": lambda source: trial.rewritten(source, numpy=True),
}


def cells(source):
    """The same text, a cell for each function."""
    return [ast.unparse(node) for node in ast.parse(source).body]
