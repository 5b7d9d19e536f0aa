"""Small faults put into a reference, one at a time: a checker must reject every one of them."""

import ast
import copy
import functools
import inspect
import sys
import textwrap
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from helpers.checks import core

SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
         ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
         ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
CUTS = (1, 2, 3, 4, 6, 8)  # numbers that somebody might write into the code where a size belongs
CUTS_IN_FRONT = (1, 2, 3, 4)  # of axes in front of the last two: sentences, heads
MOST = 12  # values tried in the place of one expression
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

    A fault swaps an operator, drops a sign or a term, transposes a product, takes away a function around a value, moves
    an axis, or changes a constant to a neighbour, its half or its double. A *size* (whatever turns out to be a number
    when the reference is called on ``cases``) is replaced by each number that it takes: a number written into the code;
    so it is in the helpers that the reference calls. And each axis of each input is cut to a few places. Lines that
    raise errors are left alone, since a check on a contract is not what the exercise asks for.
    """
    family = _Family(exercise.reference)
    for member in family.members:
        tree = family.trees[member]
        for place, node in _places(tree, family.details):
            changes = [] if member is not family.root else list(_changes(node))
            values = family.values(member, place, node, exercise, cases)
            changes += [(f"always {value!r}", lambda n, value=value: ast.Constant(value)) for value in values]
            for what, change in changes:
                altered = copy.deepcopy(tree)
                target = list(ast.walk(altered))[place]
                altered = ast.fix_missing_locations(_Replace(target, change(target)).visit(altered))
                yield Mutant(f"{what}: {ast.unparse(node)}", family.build({member: altered}), ast.unparse(altered))
    yield from _cut_inputs(exercise, cases)


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


class _Family:
    """A function and the functions of the course that it calls, which can be built again with faults in them."""

    def __init__(self, root):
        # Of a task in variants: the arguments behind the * of its reference, or of a functools.partial of it.
        self.root, self.members = inspect.unwrap(getattr(root, "func", root)), []
        self.details = (self.root.__kwdefaults__ or {}) | getattr(root, "keywords", {})
        found = [self.root]
        while found:
            function = found.pop()
            if function not in self.members:
                self.members.append(function)
                found += [called for name in function.__code__.co_names
                          if isinstance(called := function.__globals__.get(name), types.FunctionType)
                          and called.__module__.partition(".")[0] in ("helpers", "classroom")]
        self.trees = {member: _tree(member) for member in self.members}
        self.codes = {member: compile(tree, f"<{member.__name__}>", "exec") for member, tree in self.trees.items()}
        self.seen = None

    def build(self, trees):
        """The function, made anew, with other syntax trees for some of its family."""
        spaces, made = {}, {}
        for member in self.members:
            space = spaces.setdefault(member.__module__, dict(vars(sys.modules[member.__module__])))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # `is` with a number
                code = compile(trees[member], "<mutant>", "exec") if member in trees else self.codes[member]
            exec(code, space)
            made[member] = space[member.__name__]
        for space in spaces.values():
            space.update({name: made[value] for name, value in space.items()
                          if isinstance(value, types.FunctionType) and value in made})
        return functools.partial(made[self.root], **self.details)

    def values(self, member, place, node, exercise, cases):
        """The numbers that an expression takes while the reference is called on ``cases``."""
        if self.seen is None:
            self.seen = {}
            marked = {}
            for one, tree in self.trees.items():
                marked[one] = copy.deepcopy(tree)
                nodes = list(ast.walk(marked[one]))
                details = {argument.arg for argument in tree.body[0].args.kwonlyargs}
                spots = {id(nodes[i]): i for i, _ in _places(tree, self.details) if _may_be_a_size(nodes[i], details)}
                marked[one] = ast.fix_missing_locations(_Mark(self.members.index(one), spots).visit(marked[one]))
            for one in self.members:
                sys.modules[one.__module__].__dict__["_see_"] = self._see
            try:
                function = self.build(marked)
                for case in cases:
                    core.call(function, case.args, 60, exercise.use)
            finally:
                for one in self.members:
                    sys.modules[one.__module__].__dict__.pop("_see_", None)
        return self.seen.get((self.members.index(member), place), ())

    def _see(self, member, place, value):
        if isinstance(value, (bool, int, float, np.integer)):
            plain = value.item() if isinstance(value, np.generic) else value
            values = self.seen.setdefault((member, place), [])
            if plain == plain and abs(plain) != np.inf and plain not in values and len(values) < MOST:
                values.append(plain)
        return value


def _tree(function):
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    if ast.get_docstring(tree.body[0]):
        tree.body[0].body = tree.body[0].body[1:]
    return tree


def _places(tree, known):
    """(number in ``ast.walk``, node) for each node that a fault may change. ``known``: the details of a task in variants;
    what is for others, in ``this if detail == "that" else other``, is left alone."""
    body = tree.body[0]
    guards = {id(n) for s in ast.walk(body) if isinstance(s, ast.If) and any(isinstance(x, ast.Raise) for x in s.body)
              for n in ast.walk(s)}
    guards |= {id(n) for x in [*body.args.defaults, *body.args.kw_defaults] if x for n in ast.walk(x)}
    for choice in ast.walk(body):
        names = {n.id for n in ast.walk(getattr(choice, "test", choice)) if isinstance(n, ast.Name)}
        if isinstance(choice, (ast.IfExp, ast.If)) and names and names <= known.keys():
            taken = eval(compile(ast.Expression(choice.test), "<choice>", "eval"), dict(known))
            others = choice.orelse if taken else choice.body
            for part in [choice.test, *(others if isinstance(others, list) else [others])]:
                guards |= {id(n) for n in ast.walk(part)}
    return [(i, n) for i, n in enumerate(ast.walk(tree)) if id(n) not in guards]


def _may_be_a_size(node, details=()):
    """``details``: arguments that only say which of several tasks this is, the same in every call."""
    return (isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp))
            and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            and any(isinstance(n, ast.Name) and n.id not in details for n in ast.walk(node)))


class _Replace(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


class _Mark(ast.NodeTransformer):
    """Show the value of some nodes to ``_see_``."""

    def __init__(self, member, spots):
        self.member, self.spots = member, spots

    def visit(self, node):
        place = self.spots.get(id(node))
        node = self.generic_visit(node)
        if place is None:
            return node
        return ast.Call(ast.Name("_see_", ast.Load()), [ast.Constant(self.member), ast.Constant(place), node], [])


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
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        v = node.value
        others = {v + 1, v - 1, 2 * v, v // 2} if type(v) is int else {2 * v, v / 2} if v else {1.0}
        for other in sorted(others - {v, -1}):
            yield f"constant {other}", lambda n, other=other: ast.Constant(other)
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
