"""Which submissions are alike beyond what was handed out and what many in the class write. A report for the
teacher, never a score: no number of it enters grades, exports or the pages for students. Submissions are parsed
here and never run.

Code becomes a graph of what is computed from what, in which a name stands for the value that it was given. A
*fingerprint* is an operation with what stands at most two steps below it, without names, numbers and texts. For a
pair count the fingerprints that both have. Those of the hand-out, of the course's solution, and of more than a
quarter of the class and more than four students, do not count. A pair is listed from ten on, and among twenty
students and more from twice what nine of ten pairs share at most, if that is more than ten. Students whose notebooks
have exactly the same fingerprints, ten or more beyond the hand-out, are named as a group, however many they are and
even where the code is the course's solution.

Measured (tests/classroom/test_classroom_copies.py computes the table again), on twelve answers to assignment 2, all
written by one person in twelve habits: a real class is more alike. Depth and bound were chosen on answers to another
assignment. The last line draws every function of every student from only twelve answers to it, so that pairs share
whole functions by chance.

    done to a copy of a whole notebook, in a class of 13          found
    nothing                                                       12 of 12
    all names changed                                             12 of 12
    statements in another order                                   12 of 12
    functions in another order                                    12 of 12
    comments, docstrings, annotations, dead code                  12 of 12
    a += b and a = a + b exchanged                                12 of 12
    every operation a statement of its own                        12 of 12
    x.sum() and np.sum(x) exchanged                               12 of 12
    the result computed in a function of its own                  12 of 12
    all of these                                                  12 of 12
    other numbers                                                 12 of 12
    half of the functions taken                                   12 of 12
    np.matmul for @, and x * (1 / y) for x / y                    10 of 12
    a function that does nothing around every operation           1 of 12
    one function taken, the rest from others
    of fewer than 10 operations                                   0 of 28
    of 10 to 14                                                   8 of 9
    of 15 and more                                                11 of 11
    nothing: pairs of the twelve writers                          0 of 66
    nothing, each function drawn from twelve, 40 students         105 of 3900
"""

import ast
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path

from classroom import Progress, assignment, batch, notebook, variants
from classroom.reports import PAGES
from helpers.store.files import write_whole

DEEP = 2  # steps below an operation that its fingerprint sees
LEAST = 10  # fingerprints that two students have to share, and that a function of the solution has to have
COMMON, SMALL_GROUP = 1 / 4, 4  # a share of the class, and students: what more of them have does not count
LARGE_CLASS = 20  # students: from here on the pairs themselves tell how much is usual
LIKE = 0.8  # of a function's fingerprints: like the course's solution
MOST_NODES = 10_000  # operations, names and numbers of one submission; a solution has 300 to 900
MOST_PAIRS, MOST_LINES = 60, 150  # pairs on the page with their passages, lines of each side
FEWEST_WORDS = 8  # of a written answer that is compared
MOST_PLACES = 20  # of a fingerprint, that are looked at to find lines that match
COMMUTE = {"Add", "Mult", "BitAnd", "BitOr", "And", "Or", "Eq", "NotEq"}
TURNED = {"Gt": "Lt", "GtE": "LtE"}


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
    trees, left_out = [notebook.parse(source) for source in sources], []
    bodies = [tree.body for tree in trees if tree]
    reader = _Reader({node.name for body in bodies for node in body if isinstance(node, _FUNCTIONS)})
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
    seen = {node: hash(node.label) for node in reader.nodes}
    for _ in range(DEEP):
        deeper = {}
        for node in reader.nodes:
            parts = [seen[part] for part in node.parts]
            deeper[node] = hash((node.label, *(sorted(parts) if node.label in COMMUTE else parts)))
        seen = deeper
    found = defaultdict(set)
    for node in reader.nodes:
        if node.place and node.parts:
            found[seen[node]].add(node.place)
    return dict(found), left_out


_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


class _Reader:
    """Turns code into what is computed from what. A name stands for the value that it was given, so names, steps
    in between and the order of statements do not show. So

        t = x * 2                       t becomes Mult(name x, number)
        y = t + b                       y becomes Add(Mult(name x, number), name b)

    and ``z = b + 2 * x`` becomes the same as y: where the order of the parts does not matter (COMMUTE), it does
    not count. A label says what an operation is: a kind of ast, ``name x`` for what the code did not define,
    ``own`` for a function of the submission, ``call exp`` for a call."""

    def __init__(self, own):
        self.nodes, self.cell, self.scopes, self.own = [], 0, [{}], own
        self.texts, self.room = {}, notebook.MOST_CODE  # texts that names stand for, characters of them to keep and to parse

    def node(self, label, parts=(), at=None):
        if len(self.nodes) >= MOST_NODES:
            raise _TooMuch
        self.nodes.append(_Node(label, tuple(parts), at and (self.cell, at.lineno)))
        return self.nodes[-1]

    def find(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.node("own" if name in self.own else f"name {name}")

    # ---------------------------------------------------------------- statements

    def block(self, statements):
        for statement in statements:
            self.statement(statement)

    def statement(self, s):
        if isinstance(s, _FUNCTIONS):
            self.function(s.args, s.body)
        elif isinstance(s, ast.ClassDef):
            self.scopes.append({})
            self.block(s.body)
            self.scopes.pop()
        elif isinstance(s, ast.Import | ast.ImportFrom):
            for alias in s.names:
                whole = isinstance(s, ast.ImportFrom) or alias.asname
                real = alias.name if whole else alias.name.partition(".")[0]
                self.scopes[-1][alias.asname or real] = self.node("name " + real.rpartition(".")[2])
        elif isinstance(s, ast.Expr) and (tree := self.executed(s.value)):
            self.block(tree.body)
        elif isinstance(s, ast.Assign | ast.AnnAssign):
            if s.value:
                text = notebook.text_of(s.value, self.texts)
                self.room -= len(text or "")
                for target in s.targets if isinstance(s, ast.Assign) else [s.target]:
                    if isinstance(target, ast.Name):
                        self.texts[target.id] = text if self.room > 0 else None
                value = self.value(s.value)
                for target in s.targets if isinstance(s, ast.Assign) else [s.target]:
                    self.store(target, value)
        elif isinstance(s, ast.AugAssign):
            sides = self.value(s.target), self.value(s.value)
            self.store(s.target, self.node(type(s.op).__name__, sides, s))
        elif isinstance(s, ast.For | ast.AsyncFor):
            self.store(s.target, self.node("item of", (self.value(s.iter),), s))
            self.maybe(s, [s.body, s.orelse])
        elif isinstance(s, ast.While):
            self.maybe(s, [s.body, s.orelse], s.test)
        elif isinstance(s, ast.If):
            self.node("if", (self.value(s.test),), s)
            self.maybe(s, [s.body, s.orelse])
        elif type(s).__name__ in ("Try", "TryStar"):
            self.maybe(s, [s.body, *(h.body for h in s.handlers), s.orelse, s.finalbody])
        elif isinstance(s, ast.Expr):
            if not isinstance(s.value, ast.Constant):  # a docstring
                self.value(s.value)
        elif isinstance(s, ast.With | ast.AsyncWith):
            for item in s.items:
                value = self.value(item.context_expr)
                if item.optional_vars:
                    self.store(item.optional_vars, value)
            self.block(s.body)
        elif isinstance(s, ast.Match):
            self.value(s.subject)
            self.maybe(s, [case.body for case in s.cases])
        else:  # return, raise, assert, del ...
            parts = [self.value(part) for part in ast.iter_child_nodes(s) if isinstance(part, ast.expr)]
            if parts:
                self.node(type(s).__name__, parts, s)

    def executed(self, e):
        """The code in the text that ``exec`` or ``eval`` is given, as if it stood in their place; None for anything else."""
        if not (isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in ("exec", "eval") and e.args):
            return None
        inner = e.args[0]
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "compile" and inner.args:
            inner = inner.args[0]
        text = notebook.text_of(inner, self.texts)
        self.room -= len(text or "")
        tree = notebook.parse(text.strip("\n")) if text and self.room > 0 else None
        for node in ast.walk(tree) if tree else ():
            if hasattr(node, "lineno"):
                node.lineno = e.lineno
        self.own |= {node.name for node in tree.body if isinstance(node, _FUNCTIONS)} if tree else set()
        return tree

    def maybe(self, s, blocks, test=None):
        """Blocks of which some run, and maybe several times: afterwards a name may have one value or another."""
        names = {n.id for block in blocks for part in block for n in ast.walk(part)
                 if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        scope = self.scopes[-1]
        before = {name: scope[name] for name in names if name in scope}
        if isinstance(s, ast.For | ast.AsyncFor | ast.While):
            before = {name: self.node("loop", (value,)) for name, value in before.items()}
            scope |= before
        if test is not None:
            self.node("while", (self.value(test),), s)
        after = defaultdict(list, {name: [value] for name, value in before.items()})
        for block in blocks:
            scope |= before
            self.block(block)
            for name in names:
                if name in scope and scope[name] is not before.get(name):
                    after[name].append(scope[name])
        for name, values in after.items():
            scope[name] = self.node("either", values) if len(values) > 1 else values[0]

    def function(self, arguments, body):
        a = arguments
        for default in [*a.defaults, *filter(None, a.kw_defaults)]:
            self.value(default)
        everything = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
        self.scopes.append({argument.arg: self.node("argument") for argument in everything})
        result = self.block(body) if isinstance(body, list) else self.value(body)
        self.scopes.pop()
        return result

    def store(self, target, value):
        if isinstance(target, ast.Name):
            self.scopes[-1][target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            fits = value.label == "several" and len(value.parts) == len(target.elts)
            for number, element in enumerate(target.elts):
                self.store(element, value.parts[number] if fits else self.node("part of", (value,)))
        elif isinstance(target, ast.Starred):
            self.store(target.value, value)
        elif isinstance(target, ast.Subscript | ast.Attribute):
            self.node("put", (self.value(target), value), target)

    # ---------------------------------------------------------------- expressions

    def value(self, e):
        if isinstance(e, ast.Name):
            return self.find(e.id)
        if isinstance(e, ast.Constant):
            return self.node("text" if isinstance(e.value, str | bytes) else
                             "number" if type(e.value) in (int, float, complex) else str(e.value))
        if isinstance(e, ast.JoinedStr):
            return self.node("text")
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub) and isinstance(e.operand, ast.Constant):
            return self.value(e.operand)
        if isinstance(e, ast.Attribute):
            of = self.value(e.value)
            if of.label.startswith("name "):  # np.exp is exp, wherever it was imported from
                return self.node(f"name {e.attr}")
            return self.node(f".{e.attr}", (of,), e)
        if isinstance(e, ast.Call):
            return self.call(e)
        if isinstance(e, ast.BinOp | ast.BoolOp | ast.UnaryOp):
            sides = [self.value(part) for part in ast.iter_child_nodes(e) if isinstance(part, ast.expr)]
            return self.node(type(e.op).__name__, sides, e)
        if isinstance(e, ast.Compare) and len(e.ops) == 1:
            sides, name = [self.value(e.left), self.value(e.comparators[0])], type(e.ops[0]).__name__
            return self.node(TURNED.get(name, name), sides[::-1] if name in TURNED else sides, e)
        if isinstance(e, ast.Tuple | ast.List):
            return self.node("several", map(self.value, e.elts), e)
        if isinstance(e, ast.NamedExpr):
            value = self.value(e.value)
            self.store(e.target, value)
            return value
        if isinstance(e, ast.Lambda):
            return self.node("lambda", (self.function(e.args, e.body),), e)
        if isinstance(e, _COMPREHENSIONS):
            self.scopes.append({})
            for loop in e.generators:
                self.store(loop.target, self.node("item of", (self.value(loop.iter),), e))
                for test in loop.ifs:
                    self.node("if", (self.value(test),), e)
            made = (e.key, e.value) if isinstance(e, ast.DictComp) else (e.elt,)
            parts = [self.value(part) for part in made]
            self.scopes.pop()
            return self.node("all of", parts, e)
        parts = [self.value(part) for part in ast.iter_child_nodes(e) if isinstance(part, ast.expr)]
        return self.node(type(e).__name__, parts, e)

    def call(self, e):
        """f(x) and x.f() are the same."""
        tree = self.executed(e)
        if tree and len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
            return self.value(tree.body[0].value)
        arguments = [self.value(argument) for argument in e.args]
        words = sorted(e.keywords, key=lambda word: word.arg or "")
        named = [self.node(f"{word.arg}=", (self.value(word.value),)) for word in words]
        function = self.value(e.func)
        if function.label.startswith("."):
            arguments[:0] = function.parts
        elif not function.label.startswith("name ") and function.label != "own":
            arguments[:0] = [function]
        word = function.label.removeprefix("name ").removeprefix(".")
        return self.node(f"call {word}", (*arguments, *named), e)


# ---------------------------------------------------------------- comparing


@dataclass
class Pair:
    """Two students and the fingerprints that count and that both have."""

    left: str
    right: str
    shared: set


@dataclass
class Comparison:
    """``pairs``: most alike first; ``least``: from how many fingerprints on a pair is listed; ``usual``: what nine of
    ten pairs share at most; ``solution``: function -> the students who have it as the course's solution has it; ``same``:
    lists of students who have the same in all, and are not pairs already, and whether it is the course's solution."""

    pairs: list
    least: int
    usual: int
    solution: dict
    same: list = field(default_factory=list)


def compare(found, course):
    """The ``Comparison`` of a class. ``found``: student -> their fingerprints without the hand-out's; ``course``:
    function -> those of the course's solution, a set for each variant."""
    public = set().union(*(one for sets in course.values() for one in sets))
    counts = Counter(one for mine in found.values() for one in mine if one not in public)
    most = max(SMALL_GROUP, COMMON * len(found))
    own = {student: {one for one in mine if 2 <= counts[one] <= most} for student, mine in found.items()}
    numbers = Counter(len(own[a] & own[b]) for a, b in combinations(own, 2))
    usual, below = 0, 0
    for usual in sorted(numbers):
        below += numbers[usual]
        if below >= 0.9 * numbers.total():
            break
    least = max(LEAST, 2 * usual) if len(found) >= LARGE_CLASS else LEAST
    pairs = [Pair(a, b, shared) for a, b in combinations(own, 2) if len(shared := own[a] & own[b]) >= least]
    long = {name: those for name, sets in course.items() if (those := [one for one in sets if len(one) >= LEAST])}
    solution = {name: [student for student in found
                       if any(len(theirs & found[student].keys()) >= LIKE * len(theirs) for theirs in sets)]
                for name, sets in long.items()}
    groups, listed = defaultdict(list), {(pair.left, pair.right) for pair in pairs}
    for student, mine in found.items():
        groups[frozenset(mine)].append(student)
    same = [(who, one <= public) for one, who in groups.items() if len(one) >= LEAST
            and not listed.issuperset(combinations(who, 2))]
    return Comparison(sorted(pairs, key=lambda pair: -len(pair.shared)), least, usual, solution, same)


def handed_out(name, given=()):
    """The fingerprints of the notebooks that students get, and function -> what the course's solutions add, a set for
    each variant. ``given``: the details of the students' variants, function -> details for each student."""
    source, stub, solved, course = assignment.source(name), set(), [], {}
    different = {function: list({str(details[function]): details[function] for details in given}.values())
                 for function in {function for details in given for function in details}}
    most = 1 + max(map(len, different.values()), default=0)  # the source itself, then each variant once
    with Progress("Comparing with what was handed out", most) as progress:
        for number in range(most):
            details = {function: those[number - 1] for function, those in different.items() if 0 < number <= len(those)}
            raw = variants.render(source, name, details) if details else source
            stub |= set(fingerprints(_code(assignment.strip(raw)))[0])
            solved.append(_code(raw))
            progress.update()
    for code in solved:
        places, _ = fingerprints(code)
        for function, written in notebook.definitions(code).items():
            cell, node = written[-1]
            mine = {one for one, where in places.items()
                    if any(c == cell and node.lineno <= line <= node.end_lineno for c, line in where)} - stub
            if mine and mine not in course.setdefault(function, []):
                course[function].append(mine)
    return stub, course


def _code(raw):
    return [notebook.plain_python(source) or "" for source in notebook.read(json.dumps(raw).encode()).code]


# ---------------------------------------------------------------- the page


def write_page(out):
    """Compare what the last ``grade`` into ``out`` covered and write ``copies.html``; returns its path and how many pairs,
    groups with the same code and written answers of several there are in it."""
    out = Path(out)
    results, about = batch.read(out)
    stub, course = handed_out(about["assignment"], [result["details"] for result in results if result.get("details")])
    names, found, left_out = {}, {}, []
    for result in results:
        key, names[result["key"]] = result["key"], result["student"]
        if not result.get("code"):
            why = "There is no code in the result: it is old, or the notebook has none. Grade again."
            left_out.append((result["student"], result["reason"] or why))
            continue
        mine, sentences = fingerprints(result["code"])
        left_out += [(result["student"], sentence) for sentence in sentences[:5]]
        if mine := {one: places for one, places in mine.items() if one not in stub}:
            found[key] = mine
        else:
            left_out.append((result["student"], "There is no code beside what was handed out."))
    comparison = compare(found, course)
    shown = []
    for pair in comparison.pairs[:MOST_PAIRS]:
        sides = _side_by_side(pair, found, [batch.read_result(out / "results" / f"{key}.json")["code"]
                                            for key in (pair.left, pair.right)])
        shown.append({"left": names[pair.left], "right": names[pair.right], "count": len(pair.shared),
                      "sides": list(zip((names[pair.left], names[pair.right]), sides, strict=True)),
                      "sizes": [len(found[key]) for key in (pair.left, pair.right)]})
    more = [(names[pair.left], names[pair.right], len(pair.shared)) for pair in comparison.pairs[MOST_PAIRS:]]
    answers = same_answers(results, about["assignment"])
    page = PAGES.get_template("copies.html").render(
        answers=answers, same=[([names[key] for key in who], course) for who, course in comparison.same],
        title=assignment.load(about["assignment"]).title, pairs=shown, more=more, compared=len(found),
        left_out=left_out, least=comparison.least, usual=comparison.usual, large=LARGE_CLASS,
        solution={function: sorted(names[key] for key in keys)
                  for function, keys in comparison.solution.items() if keys})
    write_whole(out / "copies.html", page)
    return out / "copies.html", len(comparison.pairs), len(comparison.same), len(answers)


def same_answers(results, name):
    """Written answers that agree word for word: (question, students), the course's own among them as a name. ``results``: of
    ``batch.read``."""
    answers = defaultdict(list)
    questions = {question.grade_id: question.words for question in assignment.load(name).questions}
    for question in assignment.load(name).questions:
        answers[question.grade_id, _plain(question.model)].append("the course's own answer")
    for result in results:
        for answer in result["answers"]:
            if len((words := _plain(answer["text"] or "")).split()) >= FEWEST_WORDS:
                answers[answer["grade_id"], words].append(result["student"])
    return [(questions[grade_id], who) for (grade_id, _), who in answers.items()
            if grade_id in questions and len(who) > 1]


def _plain(text):
    return " ".join(re.findall(r"\w+", text.casefold()))


def _side_by_side(pair, found, sources):
    """For both students the passages (the statements at the top of a cell in which something is shared): lists of
    (number of the cell, lines, number of the lines left out), a line being (its text, its mark or None). Lines with
    the same mark match."""
    met = Counter()  # (line on the left, line on the right) -> how many fingerprints both hold
    for one in pair.shared:
        left, right = (sorted(found[key][one])[:MOST_PLACES] for key in (pair.left, pair.right))
        met.update(product(left, right))
    order = [{place: n for n, place in enumerate(sorted({lines[side] for lines in met}))} for side in (0, 1)]
    best = sorted(met, key=lambda lines: (-met[lines], abs(order[0][lines[0]] - order[1][lines[1]]), lines))
    of_left, of_right = {}, {}  # a line -> its partner on the other side
    for a, b in best:  # each line has one that no other has, as far as there are enough
        if a not in of_left and b not in of_right:
            of_left[a], of_right[b] = b, a
    left = {a: number for number, a in enumerate(sorted(of_left), 1)}
    right = {b: left[a] for b, a in of_right.items()}
    for a, b in best:  # one that is left without takes the mark of the line that it shares most with
        if a not in left and b in of_right:
            left[a] = right[b]
        elif b not in right and a in of_left:
            right[b] = left[a]
    return [_passages(sources[0], left), _passages(sources[1], right)]


def _passages(sources, marks):
    passages, left = [], MOST_LINES
    for cell in sorted({cell for cell, _ in marks}):
        text = [_printable(line) for line in re.split("\r\n|\r|\n", sources[cell])]
        for node in notebook.parse(sources[cell]).body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            lines = range(first, node.end_lineno + 1)
            if left > 0 and any((cell, line) in marks for line in lines):
                shown = [(text[line - 1], marks.get((cell, line))) for line in lines[:left]]
                passages.append((cell + 1, shown, len(lines) - len(shown)))
                left -= len(shown)
    return passages


def _printable(line):
    """Without characters that turn the text around; not longer than anybody reads."""
    return "".join(c if c.isprintable() or c == "\t" else "?" for c in line[:300])
