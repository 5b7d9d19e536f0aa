"""The report on submissions that are alike: what it finds, whom it leaves alone, and that nothing stops it."""

from itertools import combinations

import disguises
import pytest
from commands import command
from honest import ASSIGNMENT as NAME
from honest import WRITERS
from results import graded, result

from classroom import assignment, batch, copies, exports, marks, reports, variants

DONE = {  # to a copy -> in words
    "untouched": "nothing", "renamed": "all names changed", "reordered": "statements in another order",
    "padding": "comments, docstrings, annotations, dead code", "steps": "every operation a statement of its own",
    "all_at_once": "all of these", "products": "np.matmul for @, x * (1 / y) for x / y, x + -y for x - y"}
FUNCTIONS = list(dict.fromkeys(test.function for test in assignment.load(NAME).tests))
STUB, COURSE = copies.handed_out(NAME)
SOLUTION = ["".join(c["source"]) for c in assignment.source(NAME)["cells"] if "BEGIN SOLUTION" in "".join(c["source"])]


def of(source):
    """The fingerprints of a student's text, each function in a cell of its own."""
    found, left_out = copies.fingerprints(disguises.cells(source))
    assert not left_out
    return {one: places for one, places in found.items() if one not in STUB}


def listed(students):
    return {frozenset((pair.left, pair.right)) for pair in copies.compare(students, COURSE).pairs}


CLASS = {writer: of(source) for writer, source in WRITERS.items()}


def disguised(word):
    """How many of the writers' notebooks are found when one more student hands them in like this. Nobody else is accused."""
    caught = 0
    for writer, source in WRITERS.items():
        pairs = listed(CLASS | {"copy": of(disguises.DISGUISES[word](source))})
        assert pairs <= {frozenset((writer, "copy"))}, (word, writer)
        caught += len(pairs)
    return caught


@pytest.mark.slow
def test_the_table_is_what_is_measured():
    lines = [f"    {'done to a copy of a whole notebook, in a class of 7':60}  found"]
    lines += [f"    {words:60}  {disguised(word)} of {len(WRITERS)}" for word, words in DONE.items()]
    lines.append(f"    {'nothing: pairs of the six writers':60}  {len(listed(CLASS))} of {6 * 5 // 2}")
    assert "    " + copies.__doc__.partition("\n\n    ")[2].rstrip() == "\n".join(lines)


def test_a_copied_solution_is_named_as_that_and_not_as_a_pair():
    long = {function for function, (theirs,) in COURSE.items() if len(theirs) >= copies.LEAST}
    assert set(COURSE) == set(FUNCTIONS) and len(long) == 2
    solution = {one: () for theirs, in COURSE.values() for one in theirs}
    compared = copies.compare(CLASS | {"one": solution, "two": solution}, COURSE)
    assert compared.pairs == [] and compared.solution == {function: ["one", "two"] for function in long}


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
    """Half of the class share twenty fingerprints two by two: that is usual there. Fifty are not."""
    found = {student: dict.fromkeys(range(1000 * student, 1000 * student + 60)) for student in range(20)}
    for a, b in combinations(range(12), 2):  # 66 of 190 pairs
        shared = dict.fromkeys(range(10**6 * (a + 1) + 100 * b, 10**6 * (a + 1) + 100 * b + 20))
        found[a], found[b] = found[a] | shared, found[b] | shared
    found[18] |= dict.fromkeys(list(found[19])[:50])
    compared = copies.compare(found, {})
    assert (compared.usual, compared.least) == (20, 40)
    assert [(p.left, p.right, len(p.shared)) for p in compared.pairs] == [(18, 19, 50)]
    small = copies.compare({student: found[student] for student in range(5, 12)}, {})
    assert small.least == copies.LEAST and not small.pairs


# ---------------------------------------------------------------- the page


LINES = WRITERS["plain_loops"]
DEEP = ["x = " + "-" * 30_000 + "1", "x = " + "(" * 500 + ")" * 500, "x = " + "+".join("1" * 40_000), "x" + ".a" * 40_000,
        "x = " + "[" * 150 + "]" * 150, "\n".join(" " * i + "if x:" for i in range(99)) + "\n" + " " * 99 + "pass"]


def handed_in(student, *sources, **more):
    return result(student, name=NAME) | {"folder": student, "key": student.split()[0], "code": list(sources)} | more


def page_of(out):
    said = command("copies", out)
    return (out / "copies.html").read_text(encoding="utf-8"), said


@pytest.fixture
def alike(tmp_path):
    """Ada, whose notebook Ben disguised; Cy, who wrote alone; Dee, who handed in the course's solution."""
    return graded(tmp_path, [handed_in("Ada <i>", "note = '<script>alert(1)</script>\u202e'\n" + LINES),
                  handed_in("Ben", *disguises.cells(disguises.all_at_once(LINES))), handed_in("Cy", WRITERS["einsum"]),
                  handed_in("Dee", *SOLUTION)], NAME)


def test_the_page_shows_the_pair_side_by_side(alike):
    page, said = page_of(alike)
    assert said.startswith("1 pair to look at: ") and "4 submissions were compared" in page
    assert page.count("<h3>") == 1 and "<h3>Ada &lt;i&gt; and Ben</h3>" in page
    assert "does <b>not</b> mean" in page and "Cy" not in page.partition("Like the course")[0]
    assert page.count('class="who">Dee<') == 2  # top_k_attention and attention_head
    left, right = page.partition('<div class="side">')[2].split('<div class="side">')
    marked = [line for line in left.split("\n") if 'class="same"' in line]
    assert any("order.sort(key=lambda i: scores[i], reverse=True)" in line for line in marked) and len(marked) > 10
    numbers = {line.partition("<b>")[2].partition("<")[0] for line in marked}
    assert {line.partition("<b>")[2].partition("<")[0] for line in right.split("\n") if 'class="same"' in line} <= numbers


def test_the_same_code_is_told_however_many_have_it(tmp_path):
    """What more than a quarter of a class have counts for no pair, and the course's solution never does."""
    out = graded(tmp_path, [*(handed_in(f"c{n}", disguises.rename(LINES) if n else LINES) for n in range(5)),
                 handed_in("Dee", *SOLUTION), handed_in("Eli", *SOLUTION), handed_in("Cy", WRITERS["einsum"]),
                 handed_in("Flo", "x = 1"), handed_in("Gus", "x = 1")], NAME)
    page, said = page_of(out)
    assert said.startswith("0 pairs to look at, 2 groups with the same code: ")
    assert "<li>c0; c1; c2; c3; c4</li>" in page and "<li>Dee; Eli: the course" in page
    assert "Flo;" not in page and "Cy;" not in page


def test_what_students_wrote_is_text(alike):
    page, _ = page_of(alike)
    assert "<script" not in page and "\u202e" not in page and "<i>" not in page and "default-src 'none'" in page


def test_no_grade_export_or_students_page_changes(alike):
    def everything():
        marks.write_sheet(batch.read(alike)[0], alike)
        reports.write_pages(alike)
        exports.export(alike, "csv")
        return {path.relative_to(alike): path.read_bytes() for path in alike.rglob("*") if path.is_file()}

    before = everything()
    page_of(alike)
    after = everything()
    assert set(after) - set(before) == {(alike / "copies.html").relative_to(alike)}
    assert {path: text for path, text in after.items() if path in before} == before
    assert not [path for path, text in before.items() if b"order.sort" in text and path.parts[0] != "results"]


def test_code_that_is_no_code_is_named_and_stops_nothing(tmp_path):
    hostile = [handed_in(f"h{number}", source, LINES) for number, source in enumerate([
        *DEEP, "def f(:", "x = '\0'", "\ud800 = 1", "x = 1\n" * 20_000, "x = [" + "f(1), " * 15_000 + "]",
        "x = " + "9" * 5_000])]
    out = graded(tmp_path, [handed_in("Ada", LINES), handed_in("Cy", WRITERS["einsum"]), *hostile,
                 handed_in("lost", status="unreadable", reason="The file has 26 MB."),
                 handed_in("none", "# only a note"), handed_in("bare")], NAME)
    page, _ = page_of(out)
    told = page.partition("<h2>Left out</h2>")[2]
    for student, words in (*((f"h{n}", "1 cannot be read") for n in (0, 1, 6, 7)), ("h10", "more than 20,000"),
                           ("lost", "has 26 MB."), ("none", "no code beside"), ("bare", "no code in the notebook")):
        assert any(f"{student}: " in line and words in line for line in told.split("\n")), (student, told)


def test_what_does_not_parse_hides_nothing_else():
    for source in DEEP:
        found, left_out = copies.fingerprints([source, LINES])
        assert len(left_out) <= 1 and set(found) >= set(copies.fingerprints([LINES])[0])


def test_most_tokens_are_bounded(monkeypatch):
    monkeypatch.setattr(copies, "MOST_TOKENS", 50)
    found, left_out = copies.fingerprints([LINES, LINES])
    assert 0 < len(found) <= 50 and left_out == ["From code cell 1 on: more than 50 tokens."]
