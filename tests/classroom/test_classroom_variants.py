"""Variants: each is a task of its own, told apart by its checker; released, carried, graded and held against the list."""

import itertools
import json
from collections import Counter
from dataclasses import replace

import pytest
from commands import command
from mistakes import misnamed
from submissions import data, needs_sandbox, put, solutions

from classroom import assignment, batch, collecting, roster, tasks, variants
from classroom.grading import grade_one
from classroom.names import name_for_people
from helpers.checks.core import evaluate

EVERY = [(name, function) for name in assignment.names() for function, task in tasks.tasks_of(name).items() if task.family]
FAMILIES = [(name, function) for name, function in EVERY if not tasks.tasks_of(name)[function].family.keyed]


def exercises(name, function):
    """(details, exercise) of the assignment's own task and of each variant."""
    family = tasks.tasks_of(name)[function].family
    return [(details, family.make(**details)) for details in [family.own, *family.others]]


def each(things, config, every):
    """All of ``things`` in the weekly run, and one in ``every`` otherwise, spread over them."""
    return things if config.getoption("weekly", False) else things[len(things) % every::every]


@pytest.mark.parametrize("name", assignment.names())
def test_every_assignment_has_three_families(name):
    assert sum(task.family is not None for task in tasks.tasks_of(name).values()) >= 3


@pytest.mark.parametrize(("name", "function"), FAMILIES)
def test_the_right_answer_of_one_variant_fails_every_other(name, function, pytestconfig):
    found = exercises(name, function)
    assert len(found) > 8
    assert all(exercise.name == function and not set(details) & set(exercise.parameters) for details, exercise in found)
    pairs = list(itertools.permutations(found, 2))
    for (details, exercise), (other, another) in each(pairs, pytestconfig, 30):
        assert evaluate(exercise, another.reference).status in ("wrong", "error"), (details, other)
    for details, exercise in each(found, pytestconfig, 5):
        outcome = evaluate(exercise, exercise.reference, seed=1)
        assert outcome, (details, outcome.message)


@pytest.mark.parametrize(("name", "function"), FAMILIES)
def test_mistakes_are_named_as_themselves_in_a_variant(name, function, pytestconfig):
    for details, exercise in each(exercises(name, function)[1:], pytestconfig, 15):
        assert len(exercise.misconceptions) >= 5
        found = misnamed(exercise, pytestconfig)
        assert not found, "\n".join([str(details), *found])


@pytest.mark.parametrize(("name", "function"), EVERY)
def test_the_words_follow_from_the_details(name, function):
    """The notebook's own passages stand there once; a variant's are others where its details are, and no two variants
    have the same text."""
    family = tasks.tasks_of(name)[function].family
    cells = ["".join(cell["source"]) for cell in assignment.source(name)["cells"]]
    own = family.words(**family.own)
    assert {passage: sum(cell.count(text) for cell in cells) for passage, text in own.items()} == dict.fromkeys(own, 1)
    if (name, function) not in FAMILIES:  # whose words wait for the teacher's key
        return
    seen = {json.dumps(family.words(**details)) for details in [family.own, *family.others]}
    assert len(seen) == len(family.others) + 1
    assert all(family.words(**details).keys() == own.keys() for details in family.others)


@pytest.mark.slow
@pytest.mark.parametrize("name", assignment.names())
def test_a_variant_is_solved_by_its_own_solutions(name, pytestconfig):
    """Every cell of the teacher's copy runs, examples and hidden tests included; released, it keeps no solution."""
    given = variants.Variants(name, "spring", "00" * 16)
    rounds = 12 if pytestconfig.getoption("weekly", False) else 1
    for number in range(rounds):
        code = given.give(f"Student {number}")
        raw = variants.render(assignment.source(name), name, given.details[code], code)
        space = {"__name__": "__main__", "display": lambda *_: None}
        for cell in raw["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), space)
        text = json.dumps(assignment.strip(raw))
        assert "BEGIN SOLUTION" not in text and "judge(" not in text and "details=" not in text
        assert raw["metadata"]["attention_course"] == {"assignment": name, "variant": code}


def test_a_student_always_gets_the_same_and_students_get_different_ones(tmp_path):
    students = [f"Student {number}" for number in range(40)]
    listed = variants.release("assignment5", tmp_path, "autumn-2027", students)
    first = variants.read(listed)
    variants.release("assignment5", tmp_path, "autumn-2027", [*students, "One More"])
    again = variants.read(listed)
    assert {student: again.students[student] for student in students} == first.students
    assert {code: again.details[code] for code in first.details} == first.details
    assert len(set(first.students.values())) == 40
    for function in ("abs_norm", "turn_half"):
        counts = Counter(str(details[function]) for details in first.details.values())
        assert max(counts.values()) - min(counts.values()) <= 1, "the details that fewest have are given next"
    other = variants.read(variants.release("assignment5", tmp_path / "other", "autumn-2027", students))
    assert other.students != first.students, "the key is a secret of the list, and another list has another"
    own = {function: task.family.own for function, task in tasks.tasks_of("assignment5").items() if task.family}
    assert not any(details[function] == own[function] for details in first.details.values() for function in own)


def test_folders_have_names_that_people_know_and_the_old_ones_are_still_read(tmp_path):
    """Keys of results stay what they were, because points that were given are kept by them."""
    names = {"李小龙": "李小龙-535320da", "Łukasiewicz Jan": "Lukasiewicz_Jan-", "Jensen Søren": "Jensen_Soren-",
             "Ada": "Ada", "Strauß": "Strauss-", "José": "Jose-", "हिन्दी": "हिन्दी-", "нет <": "нет-"}
    for name, folder in names.items():
        assert name_for_people(name).startswith(folder) and name_for_people(name)[len(folder):].isalnum() == (
            folder.endswith("-")), name_for_people(name)
    assert collecting.Submission("李小龙").key == "student-535320da"
    assert collecting.Submission("Jensen Søren").key.startswith("Jensen_Sren-")
    old = tmp_path / "assignment1" / collecting.Submission("李小龙").key
    old.mkdir(parents=True)
    given = variants.read(variants.release("assignment1", tmp_path, "v", [*names]))
    assert not old.exists() and (tmp_path / "assignment1" / "李小龙-535320da" / "assignment1.ipynb").exists()
    for folder in ("student-535320da", "李小龙-535320da"):
        [(person, code, flag)] = roster.who([collecting.Submission(folder, variant=given.students["李小龙"])], [], given)[0]
        assert (person.name, code, flag) == ("李小龙", given.students["李小龙"], "")


def test_another_variant_in_the_same_folder_is_refused(tmp_path):
    variants.release("assignment5", tmp_path, "one")
    for arguments in (("two", ()), ("one", ["Ada"])):
        with pytest.raises(variants.VariantError, match="another folder"):
            variants.release("assignment5", tmp_path, *arguments)


@pytest.mark.parametrize("damage", [
    lambda raw: "", lambda raw: "[]", lambda raw: json.dumps(raw | {"key": "no"}),
    lambda raw: json.dumps(raw | {"details": 3}),
    lambda raw: json.dumps(raw | {"assignment": "os"}), lambda raw: json.dumps(raw | {"students": {"Ada": "nothing"}}),
    lambda raw: json.dumps(raw | {"details": {"one": {"abs_norm": {"measure": "mean"}}}}),
    lambda raw: json.dumps(raw | {"details": {"one": {"abs_norm": {"measure": "no", "offset": 1, "floor": True}}}})])
def test_a_damaged_list_is_one_sentence(damage, tmp_path):
    path = variants.release("assignment5", tmp_path, "one")
    path.write_text(damage(json.loads(path.read_text())))
    with pytest.raises(variants.VariantError, match="not a list of variants"):
        variants.read(path)


SMALL = "assignment1"  # without torch, whose import takes most of the time


def solved(listed, student=""):
    """The notebook of a variant with its solutions, as a student might hand it in."""
    path = listed.parent / f"{SMALL}-solutions" / variants.read(listed).file_of(student)
    return solutions(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.slow
@needs_sandbox
def test_a_class_is_graded_each_by_their_own(tmp_path):
    """Right, copied from a neighbour, forged, without a variant, the public solution, and handed in by a stranger."""
    names = ["Ada", "Ben", "Cem", "Dan", "Eva", "Fay"]  # Fay hands in as F. Y.
    listed = variants.release(SMALL, tmp_path, "autumn", names)
    given = variants.read(listed)
    code = given.students

    def hand_in(name, raw, variant):
        raw["metadata"]["attention_course"]["variant"] = variant
        put(tmp_path / "in", {f"{name}/a.ipynb": data(raw)})

    hand_in("Ada", solved(listed, "Ada"), code["Ada"])
    hand_in("Ben", solved(listed, "Ada"), code["Ada"])  # Ada's file under his name
    hand_in("Cem", solved(listed, "Cem"), "autumn-00000000")
    hand_in("Dan", solutions(variants.render(assignment.source(SMALL), SMALL, {})), code["Dan"])
    hand_in("Eva", solved(listed, "Eva"), "")
    hand_in("Uwe", solved(listed, "Ada"), code["Ada"])
    hand_in("Xia", solved(listed, "Ada"), "other")
    hand_in("F. Y.", solved(listed, "Fay"), code["Fay"])
    results = {r["student"]: r for r in batch.grade(SMALL, tmp_path / "in", tmp_path / "out", given=given, workers=1,
                                                    progress=False)}
    points = {name: {t["function"]: t["points"] for t in result["tests"] if not t["grade_id"].endswith("extreme")}
              for name, result in results.items()}
    families = [function for function, task in tasks.tasks_of(SMALL).items() if task.family]
    full = {test.function: test.points for test in assignment.load(SMALL).tests if not test.grade_id.endswith("extreme")}
    for name in ("Ada", "Cem", "Eva", "F. Y."):
        assert points[name] == full, name
    flags = {name: " ".join(result["flags"]) for name, result in results.items()}
    assert flags["Ada"] == ""
    assert f"carries the variant '{code['Ada']}', which is Ada's" in flags["Ben"]
    assert "which nobody was given" in flags["Cem"] and "carries no variant" in flags["Eva"]
    assert "nobody called F. Y. is on the list of variants; the notebook carries Fay's" in flags["F. Y."]
    assert results["Uwe"]["status"] == "refused" and "Ada" not in results["Uwe"]["reason"]
    assert "Ada's, who handed in as well" in flags["Uwe"]
    for function in families:
        same = given.details[code["Ada"]][function] == given.details[code["Ben"]][function]
        assert points["Ben"][function] == (full[function] if same else 0)
        assert (f"{function} is right for another variant: that of Ada" in flags["Ben"]) != same
        assert points["Dan"][function] == 0
        assert f"{function} is right for another variant: the course's own, whose solution is public" in flags["Dan"]
    assert results["Xia"]["status"] == "refused" and "nobody called Xia is on the list" in results["Xia"]["reason"]
    for result in results.values():
        assert not any("another variant" in test["message"] for test in result["tests"]), "for the teacher alone"
    before = [path.stat().st_mtime_ns for path in sorted((tmp_path / "out" / "results").iterdir())]
    batch.grade(SMALL, tmp_path / "in", tmp_path / "out", given=given, workers=1, progress=False)
    assert before == [path.stat().st_mtime_ns for path in sorted((tmp_path / "out" / "results").iterdir())]


def test_the_list_of_another_term_and_another_assignment_are_refused(tmp_path):
    """Before anything is graded, and nothing that was is lost."""
    names, out = ["Ada", "Ben", "Cem"], tmp_path / "out"
    lists = {term: variants.release(SMALL, tmp_path / term, term, names) for term in ("spring", "autumn")}
    for name in names:
        put(tmp_path / "in", {f"{name}/a.ipynb": data(solved(lists["spring"], name))})
    unknown = "3 of 3 notebooks carry variants that this list does not know.*'autumn'"
    with pytest.raises(variants.VariantError, match=unknown):
        batch.grade(SMALL, tmp_path / "in", out, given=variants.read(lists["autumn"]), trusted=True)
    with pytest.raises(collecting.NothingFound, match="3 of 3 submissions are of something else.*only one of assignment1"):
        batch.grade("assignment2", tmp_path / "in", out, trusted=True)
    out.mkdir()
    (out / "batch.json").write_text(json.dumps({"assignment": "assignment2", "keys": []}))
    with pytest.raises(collecting.NothingFound, match="holds the results of assignment2"):
        batch.grade(SMALL, tmp_path / "in", out, given=variants.read(lists["spring"]), trusted=True)
    command("release", SMALL, tmp_path / "spring", fails=True)


@needs_sandbox
def test_a_neighbours_answer_of_another_shape_is_seen(tmp_path):
    """What is right for a neighbour and stops with an error on the inputs of this variant."""
    name, function = "assignment3", "head_contribution"
    given = variants.Variants(name, "spring", "00" * 16)
    ada, ben = ({"first": 0, "rows": "together", "axis": axis, "turned": False} for axis in (1, 2))
    for student, details in (("a", ada), ("b", ben)):
        given.details[given.give(student)][function] = details
    a, b = (given.details[given.students[student]] for student in "ab")
    source = variants.render(assignment.source(name), name, a)
    task = replace(assignment.load(name), details=b, given=given.given())
    result = grade_one(json.dumps(solutions(source)).encode(), task)
    assert result["right_for"][function] == ada != b[function]


@needs_sandbox
def test_one_variant_for_everybody_and_a_list_that_is_forgotten(tmp_path):
    listed = variants.release(SMALL, tmp_path, "spring")
    put(tmp_path / "in", dict.fromkeys(("Ada.ipynb", "Ben.ipynb"), data(solved(listed))))
    arguments = ["grade", SMALL, str(tmp_path / "in"), str(tmp_path / "out"), "--workers", "1"]
    assert f"say --variants and the list that release wrote, {SMALL}-variants.json" in command(*arguments, fails=True)
    command(*arguments, "--variants", listed)
    for result in batch.read(tmp_path / "out")[0]:
        assert [t["points"] for t in result["tests"]] == [t["most"] for t in result["tests"]] and not result["flags"]


PRIVATE = '''
[[most_similar_pair]]
text = "Before anything else, turn the order of the rows of `X` around."
first = "X = X[::-1]"

[[effective_words]]
text = "Before anything else, mix each row with equal weights, half and half."
first = """
weights = np.asarray(weights)
weights = (weights + 1 / weights.shape[-1]) / 2
"""
'''


@pytest.mark.slow
def test_details_of_the_teachers_own_change_the_answer(tmp_path, monkeypatch):
    """What the public repository solves is wrong; the teacher's solutions are right; nothing of it is given away."""
    (tmp_path / "own.toml").write_text(PRIVATE, encoding="utf-8")
    arguments = ["release", "assignment1", str(tmp_path / "out"), "--variant", "v", "--private", str(tmp_path / "own.toml")]
    command(*arguments)
    listed = tmp_path / "out" / "assignment1-variants.json"
    given = variants.read(listed)
    details = given.details["v"]
    assert details["most_similar_pair"]["private"]["first"] == "X = X[::-1]"
    assert "private" not in details["cosine_attention"]
    handed_out = (tmp_path / "out" / "assignment1" / "assignment1.ipynb").read_text(encoding="utf-8")
    assert "turn the order" in handed_out and "half and half" in handed_out and "X[::-1]" not in handed_out
    assert "most_similar_pair(X)) ==" not in handed_out
    command(*arguments)
    assert variants.read(listed) == given, "given again, everybody keeps what they have"
    task = assignment.load("assignment1")
    task = replace(task, details=details, given=given.given())
    solutions = (tmp_path / "out" / "assignment1-solutions" / "v.ipynb").read_bytes()
    assert all(test["status"] == "passed" for test in grade_one(solutions, task, trusted=True)["tests"])
    public = variants.render(assignment.source("assignment1"), "assignment1",
                             {function: variants._public(one) for function, one in details.items()})
    result = grade_one(json.dumps(public).encode(), task, trusted=True)
    told = {test["function"]: test["misconception"] for test in result["tests"] if test["status"] == "wrong"}
    assert told["most_similar_pair"] == told["effective_words"] == "own-text" and "cosine_attention" not in told
    monkeypatch.setattr(variants, "ROOT", tmp_path)
    assert "inside the course's folder" in command(*arguments, fails=True)


@pytest.mark.parametrize(("text", "words"), [
    ("[[no_such]]\ntext='a'\nfirst='b'", "has no function 'no_such'; it has"), ("a = ", "cannot be read as TOML"),
    ("", "has no entry: it begins with [[most_similar_pair]]"), ("[[effective_word]]", "did you mean effective_words?"),
    *((entry, "number 1: an entry has two texts") for entry in (
        "effective_words = 5", "[[effective_words]]\ntext='a'\nfrist='b'", "[[effective_words]]\ntext='a'",
        "[[effective_words]]\ntext=7\nfirst='b'", "[[effective_words]]\ntext=' '\nfirst='b'")),
    ("[[effective_words]]\ntext='a'\nfirst='x ='", "first is not Python, line 1"),
    ('[[effective_words]]\ntext="a"\nfirst="""\nx = 1\nx ="""', "number 1: first is not Python, line 2"),
    ("[[effective_words]]\ntext='a'\nfirst='no_such()'", "do not pass"),
    ("[[effective_words]]\ntext='a'\nfirst='weights = weights * 1'", "changes too little"),
    ("[[softmax_with_temperature]]\ntext='a'\nfirst='temperature = temperature * 2'", "that uses this one may need"),
    (b"\xff", "cannot be read as TOML")])
def test_what_the_teachers_own_file_says_is_tried_out(text, words, tmp_path):
    (tmp_path / "own.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    own = str(tmp_path / "own.toml")
    said = command("release", "assignment1", tmp_path / "out", "--variant", "v", "--private", own, fails=True)
    assert words in said and "own.toml" in said and not (tmp_path / "out").exists()
