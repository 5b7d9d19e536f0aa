"""Small faults put into a reference, one at a time: a checker must reject every one of them."""

import ast
import copy
import inspect
import textwrap

SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
         ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
         ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}


def mutants(function):
    """Yield (description, function): copies of ``function`` with one fault each.

    A fault swaps an operator, drops a sign or a term, transposes a product, takes away a function
    around a value, moves an axis or changes a constant by one. Lines that raise errors are left alone,
    since a check on a contract is not what the exercise asks for.
    """
    module = inspect.getmodule(function)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    body = tree.body[0]
    if ast.get_docstring(body):
        body.body = body.body[1:]
    guards = {id(n) for s in ast.walk(body) if isinstance(s, ast.If) and any(isinstance(x, ast.Raise) for x in s.body)
              for n in ast.walk(s)}
    guards |= {id(n) for x in [*body.args.defaults, *body.args.kw_defaults] if x for n in ast.walk(x)}
    places = [i for i, n in enumerate(ast.walk(tree)) if id(n) not in guards]
    for place in places:
        node = list(ast.walk(tree))[place]
        for what, change in _changes(node):
            altered = copy.deepcopy(tree)
            target = list(ast.walk(altered))[place]
            new = change(target)
            if new is not None:
                altered = _Replace(target, new).visit(altered)
            ast.fix_missing_locations(altered)
            names = dict(vars(module))
            exec(compile(altered, f"<mutant of {function.__name__}>", "exec"), names)
            line = ast.unparse(list(ast.walk(altered))[0]).splitlines()
            yield f"{what}: {ast.unparse(node)}", names[function.__name__], "\n".join(line)


class _Replace(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def _changes(node):
    if isinstance(node, ast.BinOp):
        if type(node.op) in SWAPS:
            yield "operator", lambda n: ast.BinOp(n.left, SWAPS[type(n.op)](), n.right)
        if not isinstance(node.op, ast.MatMult):
            yield "right term dropped", lambda n: n.left
            if not isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Pow)):
                yield "left term dropped", lambda n: n.right
        else:
            yield "factors swapped", lambda n: ast.BinOp(n.right, ast.MatMult(), n.left)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield "sign dropped", lambda n: n.operand
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield "comparison", lambda n: ast.Compare(n.left, [SWAPS[type(n.ops[0])]()], n.comparators)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "constant + 1", lambda n: ast.Constant(n.value + 1)
        if node.value > 0:
            yield "constant - 1", lambda n: ast.Constant(n.value - 1)
    elif isinstance(node, ast.Constant) and type(node.value) is float:
        yield "constant doubled", lambda n: ast.Constant(n.value * 2 if n.value else 1.0)
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield "not transposed", lambda n: n.value
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.args and isinstance(node.func.value, ast.Name) \
                and node.func.value.id in ("np", "torch") and len(node.args) == 1 \
                and node.func.attr in ("sqrt", "exp", "log", "abs", "cos", "sin", "tril", "triu"):
            yield f"{node.func.attr} dropped", lambda n: n.args[0]
        for other, swap in (("max", "min"), ("min", "max"), ("sum", "mean"), ("mean", "sum"), ("sin", "cos"),
                            ("cos", "sin"), ("tril", "triu"), ("triu", "tril"), ("argmax", "argmin")):
            if isinstance(node.func, ast.Attribute) and node.func.attr == other:
                yield f"{other} to {swap}", lambda n, swap=swap: ast.Call(
                    ast.Attribute(n.func.value, swap, ast.Load()), n.args, n.keywords)
