"""Which submissions are alike beyond what was handed out and what many in the class write. A report for the
teacher, never a score: no number of it enters grades, exports or the pages for students. Submissions are parsed
here and never run.

A *fingerprint* is a run of eight tokens without brackets, in which every name but an attribute's is the same, and so
are numbers and texts, as in Schleimer, Wilkerson and Aiken 2003 ("Winnowing"), who keep some of these. For a pair count
the fingerprints that both have. Those of the hand-out, of the course's solution, and of more than a quarter of the
class and more than four students, do not count. A pair is listed from 22 on, and among twenty students and more from
twice what nine of ten pairs share at most, if that is more. Students whose notebooks have exactly the same
fingerprints, 22 or more beyond the hand-out, are named as a group, however many they are and even where the code is the
course's solution.

Measured (tests/classroom/test_classroom_copies.py computes the table again), on six answers to assignment 2, all
written by one person in six habits: a real class is more alike. The bound was chosen on these, of which no two share
more than 16; two answers to assignment 1 in two styles share 12.

    done to a copy of a whole notebook, in a class of 7           found
    nothing                                                       6 of 6
    all names changed                                             6 of 6
    statements in another order                                   6 of 6
    comments, docstrings, annotations, dead code                  6 of 6
    every operation a statement of its own                        6 of 6
    all of these                                                  6 of 6
    np.matmul for @, x * (1 / y) for x / y, x + -y for x - y      6 of 6
    nothing: pairs of the six writers                             0 of 15
"""

import io
import json
import keyword
import re
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from classroom import assignment, batch, code_cells, notebook, progress_bar, variants
from classroom.files import read_json
from classroom.reports import PAGES
from helpers.store.files import write_whole

LONG = 8  # tokens of a fingerprint
MOST_TOKENS = 20_000  # of one submission; a solution has 500 to 1,500
LEFT_OUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
LEAST = 22  # fingerprints that two students have to share, and that a function of the solution has to have
COMMON, SMALL_GROUP = 1 / 4, 4  # a share of the class, and students: what more of them have does not count
LARGE_CLASS = 20  # students: from here on the pairs themselves tell how much is usual
LIKE = 0.8  # of a function's fingerprints: like the course's solution
MOST_PAIRS, MOST_LINES = 60, 150  # pairs on the page with their passages, lines of each side
FEWEST_WORDS = 8  # of a written answer that is compared
MOST_PLACES = 20  # of a fingerprint, that are looked at to find lines that match


def fingerprints(sources):
    """Of the code cells ``sources``: (fingerprint -> the places where it is, sentences on what was left out). A
    place is the number of a cell, from 0, and of a line in it, from 1."""
    places, left_out, room = defaultdict(set), [], MOST_TOKENS
    for number, source in enumerate(sources):
        try:
            tokens = _tokens(source) if code_cells.parse(source) else None
        except (SyntaxError, tokenize.TokenError):
            tokens = None
        if tokens is None:
            left_out.append(f"Code cell {number + 1} cannot be read as Python.")
            continue
        if len(tokens) > room:
            left_out.append(f"From code cell {number + 1} on: more than {MOST_TOKENS:,} tokens.")
        for at in range(min(len(tokens), room) - LONG + 1):
            words, lines = zip(*tokens[at:at + LONG], strict=True)
            places[hash(words)].add((number, lines[0]))
        room -= len(tokens)
        if room < 0:
            break
    return dict(places), left_out


def _tokens(source):
    """Pairs of a token and its line, without brackets, which change nothing. An attribute alone keeps its name."""
    tokens = []
    for one in tokenize.generate_tokens(io.StringIO(source).readline):
        if one.type not in LEFT_OUT and one.string not in "()":
            tokens.append((_kind(one, bool(tokens) and tokens[-1][0] == "."), one.start[0]))
    return tokens


def _kind(token, is_attribute):
    if token.type == tokenize.NAME:
        return token.string if is_attribute or keyword.iskeyword(token.string) else "name"
    if token.type == tokenize.OP:
        return token.string
    return "number" if token.type == tokenize.NUMBER else "text"


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
    same: list


def compare(class_of, course):
    """The ``Comparison`` of a class. ``class_of``: student -> their fingerprints without the hand-out's; ``course``:
    function -> those of the course's solution, a set for each variant."""
    public = set().union(*(one for sets in course.values() for one in sets))
    counts = Counter(one for mine in class_of.values() for one in mine if one not in public)
    most = max(SMALL_GROUP, COMMON * len(class_of))
    own = {student: {one for one in mine if 2 <= counts[one] <= most} for student, mine in class_of.items()}
    numbers = Counter(len(own[a] & own[b]) for a, b in combinations(own, 2))
    usual, below = 0, 0
    for usual in sorted(numbers):
        below += numbers[usual]
        if below >= 0.9 * numbers.total():
            break
    least = max(LEAST, 2 * usual) if len(class_of) >= LARGE_CLASS else LEAST
    pairs = [Pair(a, b, shared) for a, b in combinations(own, 2) if len(shared := own[a] & own[b]) >= least]
    long = {name: those for name, sets in course.items() if (those := [one for one in sets if len(one) >= LEAST])}
    solution = {name: [student for student in class_of
                       if any(len(theirs & class_of[student].keys()) >= LIKE * len(theirs) for theirs in sets)]
                for name, sets in long.items()}
    groups, listed = defaultdict(list), {(pair.left, pair.right) for pair in pairs}
    for student, mine in class_of.items():
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
    with progress_bar("Comparing with what was handed out", most) as bar:
        for number in range(most):
            details = {function: those[number - 1] for function, those in different.items() if 0 < number <= len(those)}
            raw = variants.render(source, name, details) if details else source
            stub |= set(fingerprints(_code(assignment.strip(raw)))[0])
            solved.append(_code(raw))
            bar.update()
    for code in solved:
        places, _ = fingerprints(code)
        for function, written in code_cells.definitions(code).items():
            cell, node = written[-1]
            mine = {one for one, where in places.items()
                    if any(c == cell and node.lineno <= line <= node.end_lineno for c, line in where)} - stub
            if mine and mine not in course.setdefault(function, []):
                course[function].append(mine)
    return stub, course


def _code(raw):
    return [code_cells.plain_python(source) or "" for source in notebook.read(json.dumps(raw).encode()).code]


# ---------------------------------------------------------------- the page


def write_page(out):
    """Compare what the last ``grade`` into ``out`` covered and write ``copies.html``; returns its path and how many pairs,
    groups with the same code and written answers of several there are in it."""
    out = Path(out)
    results, about = batch.read(out)
    results = results.once()
    stub, course = handed_out(about["assignment"], [result["details"] for result in results if result.get("details")])
    names, class_of, left_out = {}, {}, []
    for result in results:
        key, names[result["key"]] = result["key"], result["student"]
        if not result.get("code"):
            left_out.append((result["student"], result["reason"] or "There is no code in the notebook."))
            continue
        mine, sentences = fingerprints(result["code"])
        left_out += [(result["student"], sentence) for sentence in sentences[:5]]
        if mine := {one: places for one, places in mine.items() if one not in stub}:
            class_of[key] = mine
        else:
            left_out.append((result["student"], "There is no code beside what was handed out."))
    comparison = compare(class_of, course)
    shown = []
    for pair in comparison.pairs[:MOST_PAIRS]:
        sides = _side_by_side(pair, class_of, [read_json(out / "results" / f"{key}.json")["code"]
                                            for key in (pair.left, pair.right)])
        shown.append({"left": names[pair.left], "right": names[pair.right], "count": len(pair.shared),
                      "sides": list(zip((names[pair.left], names[pair.right]), sides, strict=True)),
                      "sizes": [len(class_of[key]) for key in (pair.left, pair.right)]})
    more = [(names[pair.left], names[pair.right], len(pair.shared)) for pair in comparison.pairs[MOST_PAIRS:]]
    answers = same_answers(results, about["assignment"])
    page = PAGES.get_template("copies.html").render(
        answers=answers, same=[([names[key] for key in who], course) for who, course in comparison.same],
        title=assignment.load(about["assignment"]).title, pairs=shown, more=more, compared=len(class_of),
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


def _side_by_side(pair, class_of, sources):
    """For both students the passages (the statements at the top of a cell in which something is shared): lists of
    (number of the cell, lines, number of the lines left out), a line being (its text, its mark or None). Lines with
    the same mark match."""
    met = Counter()  # (line on the left, line on the right) -> how many fingerprints both hold
    for one in pair.shared:
        left, right = (sorted(class_of[key][one])[:MOST_PLACES] for key in (pair.left, pair.right))
        met.update(product(left, right))
    order = [{place: n for n, place in enumerate(sorted({lines[side] for lines in met}))} for side in (0, 1)]
    best = sorted(met, key=lambda lines: (-met[lines], abs(order[0][lines[0]] - order[1][lines[1]]), lines))
    left, right = {}, {}  # a line -> its mark, which is a line on the left
    for a, b in best:  # each line has one that no other has, as far as there are enough
        if a not in left and b not in right:
            left[a] = right[b] = a
    for a, b in best:  # one that is left without takes the mark of the line that it shares most with
        mark = left.get(a) or right[b]
        left.setdefault(a, mark)
        right.setdefault(b, mark)
    numbers = {mark: number for number, mark in enumerate(sorted(set(left.values())), 1)}
    return [_passages(source, {line: numbers[mark] for line, mark in side.items()})
            for source, side in zip(sources, (left, right), strict=True)]


def _passages(sources, marks):
    passages, left = [], MOST_LINES
    for cell in sorted({cell for cell, _ in marks}):
        text = [_printable(line) for line in re.split("\r\n|\r|\n", sources[cell])]
        for node in code_cells.parse(sources[cell]).body:
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
