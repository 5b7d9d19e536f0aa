"""Small faults put into a reference, one at a time: a checker must reject every one of them."""

import ast
import copy
import functools
import inspect
import re
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from helpers.checks import core

SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
         ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
         ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
OTHERS = {"max": "min", "min": "max", "sum": "mean", "mean": "sum", "sin": "cos", "cos": "sin", "tril": "triu",
          "triu": "tril", "argmax": "argmin"}
AROUND = ("sqrt", "exp", "log", "abs", "cos", "sin", "tril", "triu")  # what can be left out around a value
CUTS = (1, 2, 3, 4, 6, 8)  # numbers that somebody might write into the code where a size belongs
CUTS_IN_FRONT = (1, 2, 3, 4)  # of axes in front of the last two: sentences, heads
SECONDS = 0.5  # of computing, for one call of a mutant


@dataclass(frozen=True)
class Mutant:
    fault: str
    function: Callable
    source: str

    def __str__(self):
        return f"{self.fault}\n{self.source}"


def survivors(exercise, equivalent=lambda mutant: False, each=1):
    """(mutants tried, those that pass the checker of ``exercise``, those that did not end and count as neither).
    ``each``: 3 tries every third mutant."""
    cases = core.draw_cases(exercise, 0)
    tried = [m for m in mutants(exercise, cases) if not equivalent(m)][::each]
    ends = [_end(exercise, m.function, cases) for m in tried]
    return tried, *([m for m, end in zip(tried, ends, strict=True) if end == wanted] for wanted in ("passed", "timeout"))


def _end(exercise, function, cases):
    """"passed", "wrong" or "timeout". As ``core.evaluate`` does it, but the first difference is enough."""
    for case in cases:
        result = core.call(function, case.args, SECONDS, exercise.use)
        if result.kind == "timeout":
            return "timeout"
        if result.kind != "value" or result.changed or core.compare(case.expected, result.value, case.probe):
            return "wrong"
    return "passed"


def mutants(exercise, cases):
    """Yield a ``Mutant`` for each fault in the reference of ``exercise``.

    A fault swaps an operator, drops a sign or a term, transposes a product, takes away a function around a value, or
    changes a constant to a neighbour, its half or its double. A *size* (of an input, or a whole number that is given) is
    replaced by each size of the ``cases``: a number written into the code. And each axis of each input is cut to a few
    places. Lines that raise errors are left alone, since a check on a contract is not what the exercise asks for.
    """
    # Of a task in variants: what the arguments behind the * of its reference say is the same in every call.
    reference = inspect.unwrap(getattr(exercise.reference, "func", exercise.reference))
    tree = ast.parse(textwrap.dedent(inspect.getsource(reference)))
    left_alone, sizes = _left_alone(tree.body[0]), _sizes(cases)
    counted = _counted(tree.body[0], exercise, cases)
    for place, node in enumerate(ast.walk(tree)):
        if id(node) in left_alone:
            continue
        changes = [*_changes(node)]
        if _is_size(node, counted):
            changes += [(f"always {size}", lambda n, size=size: ast.Constant(size)) for size in sizes]
        for what, change in changes:
            altered = copy.deepcopy(tree)
            target = list(ast.walk(altered))[place]
            altered = ast.fix_missing_locations(_Replace(target, change(target)).visit(altered))
            function = functools.partial(_defined(altered, reference), **getattr(exercise.reference, "keywords", {}))
            yield Mutant(f"{what}: {ast.unparse(node)}", function, ast.unparse(altered))
    yield from _cut_inputs(exercise, cases)


def _left_alone(function):
    """The ids of the nodes that no fault may change: errors and what asks for them, defaults, the docstring, and what
    ``this if detail == "that" else other`` makes of a task in variants."""
    details = {argument.arg for argument in function.args.kwonlyargs}
    parts = [*function.args.defaults, *filter(None, function.args.kw_defaults)]
    parts += function.body[:1] if ast.get_docstring(function) else []
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.IfExp)):
            asked = {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
            refuses = isinstance(node, ast.If) and any(isinstance(step, ast.Raise) for step in node.body)
            parts += [node] if refuses or asked & details else []
    return {id(node) for part in parts for node in ast.walk(part)}


def _sizes(cases):
    """The lengths of axes and the whole numbers among the arguments."""
    args = [arg for case in cases for arg in case.args]
    lengths = {length for arg in args for length in getattr(arg, "shape", ())}
    return sorted(lengths | {arg for arg in args if type(arg) is int})


def _counted(function, exercise, cases):
    """The names that hold a size: arguments that are whole numbers, and what is taken from a shape or a length."""
    names = {name for case in cases for name, arg in zip(exercise.parameters, case.args, strict=False) if type(arg) is int}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and re.search(r"\.shape|\blen\(", ast.unparse(node.value)):
            names |= {target.id for target in ast.walk(node.targets[0]) if isinstance(target, ast.Name)}
    return names


def _is_size(node, counted):
    if isinstance(node, ast.Name):
        return node.id in counted and isinstance(node.ctx, ast.Load)
    return (isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape"
            or isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len")


def _defined(tree, reference):
    """The function of a syntax tree, among the names of the module of ``reference``."""
    names = dict(reference.__globals__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # `is` with a number
        exec(compile(tree, "<mutant>", "exec"), names)
    return names[reference.__name__]


def _cut_inputs(exercise, cases):
    """The reference on inputs of which only the first few places along one axis are used."""
    for number, name in enumerate(exercise.parameters):
        axes = max((getattr(case.args[number], "ndim", 0) for case in cases if number < len(case.args)), default=0)
        for axis in range(-axes, 0):
            for size in CUTS if axis > -3 else CUTS_IN_FRONT:
                def cut(*args, number=number, axis=axis, size=size):
                    args = list(args)
                    if number < len(args) and getattr(args[number], "ndim", 0) >= -axis:
                        args[number] = args[number][(..., slice(size), *[slice(None)] * (-axis - 1))]
                    return exercise.reference(*args)
                yield Mutant(f"cut to {size}: {name}, axis {axis}", cut, exercise.name)


class _Replace(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def _changes(node):
    """(What is wrong, a function that makes the wrong node of this one), for each fault that a node can have."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield "factors swapped", lambda n: ast.BinOp(n.right, ast.MatMult(), n.left)
    elif isinstance(node, ast.BinOp):
        if type(node.op) in SWAPS:
            yield "operator", lambda n: ast.BinOp(n.left, SWAPS[type(n.op)](), n.right)
        yield "right term dropped", lambda n: n.left
        if not isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Pow)):
            yield "left term dropped", lambda n: n.right
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield "sign dropped", lambda n: n.operand
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield "comparison", lambda n: ast.Compare(n.left, [SWAPS[type(n.ops[0])]()], n.comparators)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        v = node.value
        others = {v + 1, v - 1, 2 * v, v // 2} if type(v) is int else {2 * v, v / 2} if v else {1.0}
        for other in sorted(others - {v, -1}):
            yield f"constant {other}", lambda n, other=other: ast.Constant(other)
    elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        yield "not transposed", lambda n: n.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name in AROUND and len(node.args) == 1 and getattr(node.func.value, "id", "") in ("np", "torch"):
            yield f"{name} dropped", lambda n: n.args[0]
        if name in OTHERS:
            yield f"{name} to {OTHERS[name]}", lambda n: ast.Call(
                ast.Attribute(n.func.value, OTHERS[name], ast.Load()), n.args, n.keywords)
