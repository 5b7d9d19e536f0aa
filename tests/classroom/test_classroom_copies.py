"""The report on submissions that are alike: what it finds, whom it leaves alone, and that nothing stops it."""

import ast
import csv
import json
import random
import warnings
from itertools import combinations

import disguises
import honest
import numpy as np
import pytest
from submissions import NAME, cell, data, released

from classroom import assignment, batch, copies, exports, marks, reports, sandbox, tasks, variants
from classroom.__main__ import main
from classroom.grading import grade_one
from helpers.attention import softmax
from helpers.embeddings import cosine_similarity

DONE = {  # to a copy -> in words
    "untouched": "nothing", "renamed": "all names changed", "reordered": "statements in another order",
    "functions": "functions in another order", "padding": "comments, docstrings, annotations, dead code",
    "spelling": "a += b and a = a + b exchanged", "steps": "every operation a statement of its own",
    "methods": "x.sum() and np.sum(x) exchanged", "parts": "the result computed in a function of its own",
    "all_at_once": "all of these", "constants": "other numbers", "half": "half of the functions taken",
    "products": "np.matmul for @, and x * (1 / y) for x / y", "idle": "a function that does nothing around every operation"}
FUNCTIONS = {name: list(dict.fromkeys(test.function for test in assignment.load(name).tests)) for name in honest.WRITERS}
HANDED_OUT = {name: copies.handed_out(name) for name in honest.WRITERS}


def of(name, source):
    """The fingerprints of a student's text, each function in a cell of its own."""
    found, left_out = copies.fingerprints(disguises.cells(source))
    assert not left_out
    return {one: places for one, places in found.items() if one not in HANDED_OUT[name][0]}


def listed(name, found):
    return {frozenset((pair.left, pair.right)) for pair in copies.compare(found, HANDED_OUT[name][1]).pairs}


CLASSES = {name: {writer: of(name, source) for writer, source in writers.items()}
           for name, writers in honest.WRITERS.items()}


def disguised(word):
    """How many of the writers' notebooks are found when one more student hands them in like this, and how many others are
    accused then."""
    caught = accused = 0
    for name, writers in honest.WRITERS.items():
        for writer, source in writers.items():
            pairs = listed(name, CLASSES[name] | {"copy": of(name, disguises.DISGUISES[word](source))})
            caught += {writer, "copy"} in pairs
            accused += len(pairs - {frozenset((writer, "copy"))})
    return caught, accused


def pieces(name, source):
    """function -> the text of it and of what it needs."""
    body = ast.parse(source).body
    others = [node for node in body if getattr(node, "name", "") not in FUNCTIONS[name]]
    made = {}
    for node in body:
        if getattr(node, "name", "") in FUNCTIONS[name]:
            used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            made[node.name] = ast.unparse(ast.Module([o for o in others if getattr(o, "name", "") in used] + [node], []))
    return made


def one_function(least, most):
    """One student takes one function, of so many operations, from another and has the rest from a third: how many are found,
    of how many."""
    caught = tried = 0
    for name, writers in honest.WRITERS.items():
        public = {one for sets in HANDED_OUT[name][1].values() for theirs in sets for one in theirs}
        for writer, other in zip(writers, [*writers][1:] + [*writers][:1], strict=True):
            mine, theirs = pieces(name, writers[writer]), pieces(name, writers[other])
            for function in FUNCTIONS[name]:
                if least <= len(of(name, mine[function]).keys() - public) < most:
                    found = CLASSES[name] | {"copy": of(name, "\n".join((theirs | {function: mine[function]}).values()))}
                    del found[other]
                    tried += 1
                    caught += frozenset((writer, "copy")) in listed(name, found)
    return caught, tried


def drawn(students, times):
    """Pairs listed, and all pairs, where each function of each student is drawn from the twelve answers to it."""
    draw, accused = random.Random(0), 0
    for name, writers in honest.WRITERS.items():
        answers = [[of(name, text) for text in texts] for texts in zip(*(
            [pieces(name, source)[function] for function in FUNCTIONS[name]] for source in writers.values()), strict=True)]
        for _ in range(times):
            found = {s: {one: () for mine in answers for one in draw.choice(mine)} for s in range(students)}
            accused += len(listed(name, found))
    return accused, 2 * times * len([*combinations(range(students), 2)])


def table():
    lines = [f"    {'done to a copy of a whole notebook, in a class of 13':60}  found"]
    for word, words in DONE.items():
        caught, accused = disguised(word)
        assert accused == 0, word
        lines.append(f"    {words:60}  {caught} of 24")
    lines.append(f"    {'one function taken, the rest from others':60}")
    for least, most, words in ((0, 10, "of fewer than 10 operations"), (10, 15, "of 10 to 14"), (15, 99, "of 15 and more")):
        lines.append(f"    {words:60}  {' of '.join(map(str, one_function(least, most)))}")
    honest_pairs = sum(len(listed(name, found)) for name, found in CLASSES.items())
    lines.append(f"    {'nothing: pairs of the twelve writers':60}  {honest_pairs} of {2 * 12 * 11 // 2}")
    lines.append(f"    {'nothing, each function drawn from twelve, 40 students':60}  {' of '.join(map(str, drawn(40, 5)))}")
    return "\n".join(line.rstrip() for line in lines)


@pytest.mark.slow
def test_the_table_is_what_is_measured():
    assert "    " + copies.__doc__.partition("\n\n    ")[2].rstrip() == table()


@pytest.mark.parametrize("name", honest.WRITERS)
@pytest.mark.parametrize("disguise", ["untouched", "all_at_once", *(
    pytest.param(word, marks=pytest.mark.weekly) for word in sorted(
        set(disguises.DISGUISES) - {"untouched", "all_at_once", "constants", "half"}))])
def test_the_writers_answers_are_right_or_wrong_as_they_say(name, disguise):
    """And a disguised copy does what the original does: otherwise it would be no copy."""
    for writer, source in honest.WRITERS[name].items():
        found = {"np": np, "softmax": softmax, "cosine_similarity": cosine_similarity}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec(disguises.DISGUISES[disguise](source), found)
            wrong = {function for function in FUNCTIONS[name] if not tasks.judge(found[function], name)}
        assert wrong == honest.WRONG.get((name, writer), set()), writer


def test_a_copied_solution_is_named_as_that_and_not_as_a_pair():
    for name, (_, course) in HANDED_OUT.items():
        long = {function for function, (theirs,) in course.items() if len(theirs) >= copies.LEAST}
        assert set(course) == set(FUNCTIONS[name]) and len(long) == 2
        solution = {one: () for theirs, in course.values() for one in theirs}
        found = copies.compare(CLASSES[name] | {"one": solution, "two": solution}, course)
        assert found.pairs == [] and found.solution == {function: ["one", "two"] for function in long}


def test_the_solution_of_a_variant_is_the_courses_too():
    name, given = "assignment5", variants.Variants("assignment5", "spring", "00" * 16)
    details = [given.details[given.give(f"Student {number}")] for number in range(4)]
    stub, course = copies.handed_out(name, details)
    assert max(len(course[function]) for function in details[0]) > 1
    found = {}
    for number, mine in enumerate(details):
        code = copies._code(variants.render(assignment.source(name), name, mine))
        found[number] = {one: places for one, places in copies.fingerprints(code)[0].items() if one not in stub}
    compared = copies.compare(found, course)
    assert compared.pairs == [] and compared.solution["turn_half"] == [0, 1, 2, 3]


def test_in_a_large_class_the_class_itself_says_what_is_usual():
    """Half of the class share twelve fingerprints two by two: that is usual there. Thirty are not."""
    found = {student: dict.fromkeys(range(1000 * student, 1000 * student + 40)) for student in range(20)}
    for a, b in combinations(range(12), 2):  # 66 of 190 pairs
        shared = dict.fromkeys(range(10**6 * (a + 1) + 100 * b, 10**6 * (a + 1) + 100 * b + 12))
        found[a], found[b] = found[a] | shared, found[b] | shared
    found[18] |= dict.fromkeys(list(found[19])[:30])
    compared = copies.compare(found, {})
    assert (compared.usual, compared.least) == (12, 24)
    assert [(p.left, p.right, len(p.shared)) for p in compared.pairs] == [(18, 19, 30)]
    small = copies.compare({student: found[student] for student in range(5, 12)}, {})
    assert small.least == copies.LEAST and len(small.pairs) == 21


# ---------------------------------------------------------------- the page


LINES = honest.ONE["plain_loops"]
DEEP = ["x = " + "-" * 30_000 + "1", "x = " + "(" * 500 + ")" * 500, "x = " + "+".join("1" * 40_000), "x" + ".a" * 40_000,
        "x = " + "[" * 150 + "]" * 150, "\n".join(" " * i + "if x:" for i in range(99)) + "\n" + " " * 99 + "pass"]


def handed_in(student, *sources, status="graded", reason=""):
    made = grade_one(b"", assignment.load(NAME)) | {"status": status, "reason": reason, "code": list(sources)}
    for test in made["tests"]:
        test |= {"status": "passed", "points": test["most"], "message": "Fine."}
    return {"student": student, "id": "", "folder": student, "modified": 1e9, "key": student.split()[0], "file": "a.ipynb",
            "found": []} | made


def graded(out, *results):
    (out / "results").mkdir(parents=True)
    for one in results:
        (out / "results" / f"{one['key']}.json").write_text(json.dumps(one), encoding="utf-8")
    about = {"assignment": NAME, "keys": [one["key"] for one in results], "refused": []}
    (out / "batch.json").write_text(json.dumps(about), encoding="utf-8")
    return out


def page_of(out, capsys):
    assert main(["copies", str(out)]) == 0
    return (out / "copies.html").read_text(encoding="utf-8"), capsys.readouterr().out


@pytest.fixture
def alike(tmp_path):
    """Ada, whose notebook Ben disguised; Cy, who wrote alone; Dee, who handed in the course's solution."""
    course = [cell for cell in map("".join, (c["source"] for c in json.loads(
        (assignment.SOURCES / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))["cells"])) if "BEGIN SOLUTION" in cell]
    return graded(tmp_path, handed_in("Ada <i>", "note = '<script>alert(1)</script>\u202e'\n" + LINES),
                  handed_in("Ben", *disguises.cells(disguises.all_at_once(LINES))), handed_in("Cy", honest.ONE["einsum"]),
                  handed_in("Dee", *course))


def test_the_page_shows_the_pair_side_by_side(alike, capsys):
    page, said = page_of(alike, capsys)
    assert said.startswith("1 pair to look at: ") and "4 submissions were compared" in page
    assert page.count("<h3>") == 1 and "<h3>Ada &lt;i&gt; and Ben</h3>" in page
    assert "does <b>not</b> mean" in page and "Cy" not in page.partition("Like the course")[0]
    assert page.count('class="who">Dee<') == 2  # most_similar_pair and softmax_with_temperature
    left, right = page.partition('<div class="side">')[2].split('<div class="side">')
    marked = [line for line in left.split("\n") if 'class="same"' in line]
    assert any("max_sim = sims[i, j]" in line for line in marked) and len(marked) > 10
    numbers = {line.partition("<b>")[2].partition("<")[0] for line in marked}
    assert {line.partition("<b>")[2].partition("<")[0] for line in right.split("\n") if 'class="same"' in line} <= numbers


def test_the_same_code_is_told_however_many_have_it(tmp_path, capsys):
    """What more than a quarter of a class have counts for no pair, and the course's solution never does."""
    course = [cell for cell in map("".join, (c["source"] for c in json.loads(
        (assignment.SOURCES / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))["cells"])) if "BEGIN SOLUTION" in cell]
    out = graded(tmp_path, *(handed_in(f"c{n}", disguises.rename(LINES) if n else LINES) for n in range(5)),
                 handed_in("Dee", *course), handed_in("Eli", *course), handed_in("Cy", honest.ONE["einsum"]),
                 handed_in("Flo", "x = 1"), handed_in("Gus", "x = 1"))
    page, said = page_of(out, capsys)
    assert said.startswith("0 pairs to look at, 2 groups with the same code: ")
    assert "<li>c0; c1; c2; c3; c4</li>" in page and "<li>Dee; Eli: the course" in page
    assert "Flo;" not in page and "Cy;" not in page


def test_what_students_wrote_is_text(alike, capsys):
    page, _ = page_of(alike, capsys)
    assert "<script" not in page and "\u202e" not in page and "<i>" not in page and "default-src 'none'" in page


def test_no_grade_export_or_students_page_changes(alike, capsys):
    def everything():
        marks.write_sheet(batch.read(alike)[0], alike)
        reports.write_pages(alike)
        exports.export(alike, "csv")
        exports.export(alike, "gradescope")
        return {path.relative_to(alike): path.read_bytes() for path in alike.rglob("*") if path.is_file()}

    before = everything()
    page_of(alike, capsys)
    after = everything()
    assert set(after) - set(before) == {(alike / "copies.html").relative_to(alike)}
    assert {path: text for path, text in after.items() if path in before} == before
    assert not [path for path, text in before.items() if b"max_sim" in text and path.parts[0] != "results"]


def test_code_that_is_no_code_is_named_and_stops_nothing(tmp_path, capsys):
    hostile = [handed_in(f"h{number}", source, LINES) for number, source in enumerate([
        *DEEP, "def f(:", "x = '\0'", "\ud800 = 1", "x = 1\n" * 20_000, "x = [" + "f(1), " * 15_000 + "]",
        "x = " + "9" * 5_000])]
    out = graded(tmp_path, handed_in("Ada", LINES), handed_in("Cy", honest.ONE["einsum"]), *hostile,
                 handed_in("lost", status="unreadable", reason="The file has 26 MB."),
                 handed_in("none", "# only a note"))
    page, _ = page_of(out, capsys)
    told = page.partition("<h2>Left out</h2>")[2]
    for student, words in (*((f"h{n}", "1 cannot be read") for n in (0, 1, 6, 7)), ("h10", "more than 10,000"),
                           ("lost", "has 26 MB."), ("none", "no code beside")):
        assert any(f"{student}: " in line and words in line for line in told.split("\n")), (student, told)


def test_what_does_not_parse_hides_nothing_else():
    for source in DEEP:
        found, left_out = copies.fingerprints([source, LINES])
        assert len(left_out) <= 1 and set(found) >= set(copies.fingerprints([LINES])[0])


def test_most_operations_are_bounded(monkeypatch):
    monkeypatch.setattr(copies, "MOST_NODES", 50)
    found, left_out = copies.fingerprints([LINES, LINES])
    assert 0 < len(found) <= 50 and left_out == ["From code cell 1 on: more than 50 operations."]


def test_what_was_graded_before_says_so(tmp_path, capsys):
    old = handed_in("Ada")
    del old["code"]
    page, said = page_of(graded(tmp_path, old), capsys)
    assert "Ada: " in page and "Grade again." in page and said.startswith("0 pairs")
    assert main(["copies", str(tmp_path / "nowhere")]) == 1
    assert "run grade first" in capsys.readouterr().err


@pytest.mark.weekly  # as the dry run does every time, in test_classroom_trial.py
@pytest.mark.skipif(sandbox.problem() is not None, reason=str(sandbox.problem()))
def test_from_files_to_the_page(tmp_path, capsys):
    """As a teacher does it: grade keeps the code, and copies needs nothing else."""
    for student, answer in (("ada", LINES), ("ben", disguises.rename(LINES)), ("cy", honest.ONE["einsum"])):
        raw = released()
        raw["cells"] = raw["cells"][1:2] + [cell(text) for text in disguises.cells(answer)]
        (tmp_path / f"{student}.ipynb").write_bytes(data(raw))
    assert main(["grade", NAME, str(tmp_path), str(tmp_path / "out"), "--workers", "1"]) == 0
    page, _ = page_of(tmp_path / "out", capsys)
    assert page.count("<h3>") == 1 and "<h3>ada and ben</h3>" in page
    with (tmp_path / "out" / "to_mark.csv").open(encoding="utf-8-sig") as file:
        assert "ada" in next(csv.DictReader(file))["key"]
