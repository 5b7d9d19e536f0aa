"""What a student's code computes from what, as fingerprints: each is an operation with what stands at most two steps below
it, without names, numbers and texts. Code is parsed here and never run."""

import ast
from collections import defaultdict
from dataclasses import dataclass

from classroom import code_cells

DEEP = 2  # steps below an operation that its fingerprint sees
MOST_NODES = 10_000  # operations, names and numbers of one submission; a solution has 300 to 900
COMMUTE = {"Add", "Mult", "BitAnd", "BitOr", "And", "Or", "Eq", "NotEq"}
TURNED = {"Gt": "Lt", "GtE": "LtE"}
LOOPS = ast.For | ast.AsyncFor | ast.While
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


class _TooMuch(Exception):
    """There are more operations than are compared."""


@dataclass(eq=False, slots=True)
class _Node:
    """An operation, and what it is applied to. ``place``: (number of the code cell, line), or None for what is not
    an operation that somebody wrote."""

    label: str
    parts: tuple = ()
    place: tuple = None


def fingerprints(sources):
    """Of the code cells ``sources``: (fingerprint -> the places where it is, sentences on what was left out). A
    place is the number of a cell, from 0, and of a line in it, from 1."""
    trees, left_out = [code_cells.parse(source) for source in sources], []
    reader = _Reader({node.name for tree in trees if tree for node in tree.body if isinstance(node, FUNCTIONS)})
    for number, tree in enumerate(trees):
        reader.cell, reader.scopes[1:] = number, []
        try:
            if tree is None:
                raise SyntaxError
            reader.block(tree.body)
        except SyntaxError:
            left_out.append(f"Code cell {number + 1} cannot be read as Python.")
        except RecursionError:
            left_out.append(f"Code cell {number + 1} is nested too deeply.")
        except _TooMuch:
            left_out.append(f"From code cell {number + 1} on: more than {MOST_NODES:,} operations.")
            break
    prints = {node: hash(node.label) for node in reader.nodes}
    for _ in range(DEEP):
        deeper = {}
        for node in reader.nodes:
            parts = [prints[part] for part in node.parts]
            deeper[node] = hash((node.label, *(sorted(parts) if node.label in COMMUTE else parts)))
        prints = deeper
    places = defaultdict(set)
    for node in reader.nodes:
        if node.place and node.parts:
            places[prints[node]].add(node.place)
    return dict(places), left_out


class _Reader(ast.NodeVisitor):
    """Turns code into what is computed from what. A name stands for the value that it was given, so names, steps
    in between and the order of statements do not show. So

        t = x * 2                       t becomes Mult(name x, number)
        y = t + b                       y becomes Add(Mult(name x, number), name b)

    and ``z = b + 2 * x`` becomes the same as y: where the order of the parts does not matter (COMMUTE), it does
    not count. A label says what an operation is: a kind of ast, ``name x`` for what the code did not define,
    ``own`` for a function of the submission, ``call exp`` for a call. To visit an expression gives its node."""

    def __init__(self, own):
        self.nodes, self.cell, self.scopes, self.own = [], 0, [{}], own

    def node(self, label, parts=(), at=None):
        """A new node; ``at``: the statement or expression that somebody wrote."""
        if len(self.nodes) >= MOST_NODES:
            raise _TooMuch
        self.nodes.append(_Node(label, tuple(parts), at and (self.cell, at.lineno)))
        return self.nodes[-1]

    def values(self, e):
        """The nodes of the expressions that a statement or an expression is made of."""
        return [self.visit(part) for part in ast.iter_child_nodes(e) if isinstance(part, ast.expr)]

    def generic_visit(self, e):
        """return, raise, assert, del ..., statements that hold others; and what of expressions has nothing of its own."""
        inside = [e, *getattr(e, "handlers", ()), *getattr(e, "cases", ())]
        blocks = [block for one in inside for name in ("body", "orelse", "finalbody")
                  if isinstance(block := getattr(one, name, None), list)]
        if blocks:
            return self.compound(e, blocks)
        parts = self.values(e)
        return self.node(type(e).__name__, parts, e) if parts or isinstance(e, ast.expr) else None

    # ---------------------------------------------------------------- statements

    def block(self, statements):
        for statement in statements:
            self.visit(statement)

    def compound(self, s, blocks):
        """if, for, while, with, try, match: blocks of which some run, and maybe several times, so that a name may have one
        value or another afterwards."""
        if isinstance(s, ast.For | ast.AsyncFor):
            self.store(s.target, self.node("item of", (self.visit(s.iter),), s))
        for item in getattr(s, "items", ()):
            self.store(item.optional_vars, self.visit(item.context_expr))
        names = {n.id for block in blocks for part in block for n in ast.walk(part)
                 if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        scope = self.scopes[-1]
        before = {name: scope[name] for name in names if name in scope}
        if isinstance(s, LOOPS):
            before = {name: self.node("loop", (value,)) for name, value in before.items()}
            scope |= before
        if test := getattr(s, "test", None) or getattr(s, "subject", None):
            self.node(type(s).__name__, (self.visit(test),), s)
        after = defaultdict(list, {name: [value] for name, value in before.items() if not hasattr(s, "items")})
        for block in blocks:
            scope |= before
            self.block(block)
            for name in names:
                if name in scope and scope[name] is not before.get(name):
                    after[name].append(scope[name])
        for name, values in after.items():
            scope[name] = self.node("either", values) if len(values) > 1 else values[0]

    def visit_FunctionDef(self, s):
        self.function(s.args, s.body)

    def visit_ClassDef(self, s):
        self.scopes.append({})
        self.block(s.body)
        self.scopes.pop()

    def visit_Import(self, s):
        for alias in s.names:
            whole = isinstance(s, ast.ImportFrom) or alias.asname
            real = alias.name if whole else alias.name.partition(".")[0]
            self.scopes[-1][alias.asname or real] = self.node("name " + real.rpartition(".")[2])

    def visit_Expr(self, s):
        if not isinstance(s.value, ast.Constant):  # a docstring
            self.visit(s.value)

    def visit_Assign(self, s):
        value = s.value and self.visit(s.value)
        for target in (s.targets if isinstance(s, ast.Assign) else [s.target]) if value else ():
            self.store(target, value)

    def visit_AugAssign(self, s):
        sides = self.visit(s.target), self.visit(s.value)
        self.store(s.target, self.node(type(s.op).__name__, sides, s))

    visit_AsyncFunctionDef, visit_ImportFrom, visit_AnnAssign = visit_FunctionDef, visit_Import, visit_Assign

    def function(self, a, body):
        for default in [*a.defaults, *filter(None, a.kw_defaults)]:
            self.visit(default)
        everything = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
        self.scopes.append({argument.arg: self.node("argument") for argument in everything})
        result = self.block(body) if isinstance(body, list) else self.visit(body)
        self.scopes.pop()
        return result

    def store(self, target, value):
        """Give a value to a name, to several, or to a part of something."""
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            fits = value.label == "several" and len(value.parts) == len(target.elts)
            for number, element in enumerate(target.elts):
                self.store(element, value.parts[number] if fits else self.node("part of", (value,)))
        elif isinstance(target, ast.Starred):
            self.store(target.value, value)
        elif isinstance(target, ast.Subscript | ast.Attribute):
            self.node("put", (self.visit(target), value), target)

    # ---------------------------------------------------------------- expressions

    def visit_Name(self, e):
        known = next((scope[e.id] for scope in reversed(self.scopes) if e.id in scope), None)
        return known or self.node("own" if e.id in self.own else f"name {e.id}")

    def visit_Constant(self, e):
        return self.node("text" if isinstance(e.value, str | bytes) else
                         "number" if type(e.value) in (int, float, complex) else str(e.value))

    def visit_JoinedStr(self, e):
        return self.node("text")

    def visit_Attribute(self, e):
        of = self.visit(e.value)
        if of.label.startswith("name "):  # np.exp is exp, wherever it was imported from
            return self.node(f"name {e.attr}")
        return self.node(f".{e.attr}", (of,), e)

    def visit_Call(self, e):
        """f(x) and x.f() are the same."""
        arguments = [self.visit(argument) for argument in e.args]
        words = sorted(e.keywords, key=lambda word: word.arg or "")
        named = [self.node(f"{word.arg}=", (self.visit(word.value),)) for word in words]
        function = self.visit(e.func)
        if function.label.startswith("."):
            arguments[:0] = function.parts
        elif not function.label.startswith("name ") and function.label != "own":
            arguments[:0] = [function]
        word = function.label.removeprefix("name ").removeprefix(".")
        return self.node(f"call {word}", (*arguments, *named), e)

    def visit_BinOp(self, e):
        if isinstance(e.op, ast.USub) and isinstance(e.operand, ast.Constant):  # -1 is a number
            return self.visit(e.operand)
        return self.node(type(e.op).__name__, self.values(e), e)

    visit_BoolOp = visit_UnaryOp = visit_BinOp

    def visit_Compare(self, e):
        name, sides = type(e.ops[0]).__name__, self.values(e)
        if len(e.ops) > 1:
            return self.node("Compare", sides, e)
        return self.node(TURNED.get(name, name), sides[::-1] if name in TURNED else sides, e)

    def visit_Tuple(self, e):
        return self.node("several", map(self.visit, e.elts), e)

    visit_List = visit_Tuple

    def visit_NamedExpr(self, e):
        value = self.visit(e.value)
        self.store(e.target, value)
        return value

    def visit_Lambda(self, e):
        return self.node("lambda", (self.function(e.args, e.body),), e)

    def visit_ListComp(self, e):
        self.scopes.append({})
        for loop in e.generators:
            self.store(loop.target, self.node("item of", (self.visit(loop.iter),), e))
            for test in loop.ifs:
                self.node("If", (self.visit(test),), e)
        parts = [self.visit(part) for part in ((e.key, e.value) if isinstance(e, ast.DictComp) else (e.elt,))]
        self.scopes.pop()
        return self.node("all of", parts, e)

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp
