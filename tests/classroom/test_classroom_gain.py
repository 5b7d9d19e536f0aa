"""What a class has gained: files of Moodle and Canvas are read, students matched, and the report finds what was put in."""

import csv
import math
import re
from collections import Counter

import numpy as np
import pytest
from classes import ITEMS, answers, canvas, moodle
from commands import command

from classroom import gain as report
from classroom import quiz
from helpers.page import questions

N = 40
LETTERS = [chr(97 + i // 10) + chr(97 + i % 10) for i in range(N)]
PEOPLE = [(f"Last{a}", f"First{a}", f"{1000 + i}", f"student{i}@example.org") for i, a in enumerate(LETTERS)]


@pytest.fixture(scope="module")
def simulated():
    """A class: (right before, right after, answers before, answers after)."""
    rng = np.random.default_rng(5)
    before = rng.random((N, len(ITEMS))) < 0.4
    right = [before.astype(float), (before | (rng.random(before.shape) < 0.5)).astype(float)]
    return (*right, *(answers(r, rng) for r in right))


def files(tmp_path, **contents):
    paths = []
    for name, text in contents.items():
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(text, encoding="utf-8", newline="")
    return paths


def page(tmp_path, before, after):
    """The page as text without tags."""
    command("gain", before, after, "--out", tmp_path / "out")
    html = (tmp_path / "out" / "gain.html").read_text(encoding="utf-8")
    assert "<script" not in html and "src=" not in html
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("<body>")[2]))


# ---------------------------------------------------------------- reading


def test_every_option_can_be_told_from_all_others():
    said = Counter(report.letters(questions.as_plain(o.text)) for one in quiz.asked() for o in one.options)
    assert max(said.values()) == 1 and "" not in said


@pytest.mark.parametrize("write", [
    lambda given: moodle(PEOPLE, given), lambda given: moodle(PEOPLE, given, language="de"),
    lambda given: canvas([(f"{first} {last}", number) for last, first, number, _ in PEOPLE], given)],
    ids=["moodle", "moodle in German", "canvas"])
def test_a_platforms_file_is_read_as_it_was_answered(tmp_path, simulated, write):
    right, _, given, _ = simulated
    (path,) = files(tmp_path, before=write(given))
    found = report.read(path)
    assert found.questions == [q.id for q in ITEMS] and not found.notes and len(found.taken) == N
    assert (report.right(found.taken, found.questions) == right).all()
    for one, mine in zip(found.taken, given, strict=True):
        kept = {i: [None if mine[key] is None else mine[key].misconception or "right" for key in (i, f"{i}-because")
                    if key in mine] for i in one.given}
        assert all(one.given[i][:len(kept[i])] == kept[i] for i in kept)
        assert one.numbers


@pytest.mark.parametrize("spoil", [
    lambda t: t.replace("'", "’"), lambda t: t.replace("'", "_"), lambda t: t.upper(), lambda t: t.replace("'", "*")],
    ids=["typographic", "underscores", "capitals", "asterisks"])
def test_what_html_and_spreadsheets_do_to_texts_changes_nothing(tmp_path, simulated, spoil):
    given = simulated[2]
    head, _, rest = moodle(PEOPLE, given).partition("\r\n")
    plain, spoilt = files(tmp_path, plain=f"{head}\r\n{rest}", spoilt=f"{head}\r\n{spoil(rest)}")
    assert [one.given for one in report.read(spoilt).taken] == [one.given for one in report.read(plain).taken]


def test_excel_may_have_saved_it(tmp_path, simulated):
    (path,) = files(tmp_path, excel="")
    path.write_bytes(moodle(PEOPLE, simulated[2], separator=";").removeprefix("\ufeff").encode("cp1252", errors="replace"))
    assert (report.right(report.read(path).taken, [q.id for q in ITEMS]) == simulated[0]).all()


def test_a_question_that_nobody_answered_is_not_taken_from_the_right_answers(tmp_path, simulated):
    given = [mine | {"01-hot-and-cold": None} for mine in simulated[2]]
    (path,) = files(tmp_path, before=moodle(PEOPLE, given))
    found = report.read(path)
    assert "01-hot-and-cold" not in found.questions and "01-hot-and-cold" in found.notes[0]


def test_unfinished_empty_and_repeated_attempts(tmp_path, simulated):
    given = simulated[2][:6]
    text = moodle(PEOPLE[:5], given[:5]) + "".join(
        moodle(who, [g], grade=grade).partition("\r\n")[2] for who, g, grade in (
            (PEOPLE[5:6], given[5], "-"), (PEOPLE[6:7], dict.fromkeys(given[0]), "7.00"),
            (PEOPLE[:1], simulated[3][0], "7.00")))
    (path,) = files(tmp_path, before=text)
    found = report.read(path)
    assert [one.name for one in found.taken] == [f"{first} {last}" for last, first, *_ in PEOPLE[:5]]
    assert (report.right(found.taken[:1], found.questions) == simulated[0][:1]).all()
    assert len(found.notes) == 3 and "several attempts" in " ".join(found.notes)


@pytest.mark.parametrize(("contents", "said"), [
    (None, "does not exist"), ("", "is a folder"), (b"", "no lines"), (b"PK\x03\x04\x00", "is not CSV"),
    (b"<html><table>", "is not CSV"), (b'[{"a": 1}]', "is not CSV"), (b"Last name,First name\r\nA,B\r\n", "No column of"),
    (b"name,score\r\n\xff\xfe\x00,3\r\n", "No column of"), (b"a\r\n" + b'"' * 5001, "")])
def test_an_odd_file_is_told_in_one_sentence(tmp_path, contents, said):
    path = tmp_path / "odd.csv"
    if contents == "":
        path.mkdir()
    elif contents is not None:
        path.write_bytes(contents)
    told = command("gain", path, path, "--out", tmp_path / "out", fails=True)
    assert said in told and told.endswith(".\n") and not (tmp_path / "out").exists()


# ---------------------------------------------------------------- who is who


def matched(tmp_path, first, second):
    before, after = files(tmp_path, before=first, after=second)
    return [(one.name, other.name) for one, other in report.match(report.read(before), report.read(after))]


def test_a_number_decides_before_a_name(tmp_path, simulated):
    given = simulated[2][:3]
    first = moodle([("Ng", "Ann", "1", ""), ("Ng", "Bo", "2", ""), ("Li", "Cy", "3", "")], given)
    second = moodle([("Ng", "Bo", "1", ""), ("Wu", "Bo", "2", ""), ("Li", "Cy", "4", "")], given)
    assert matched(tmp_path, first, second) == [("Ann Ng", "Bo Ng"), ("Bo Ng", "Bo Wu")]  # Cy Li has another number


def test_a_name_decides_between_platforms_when_each_file_has_it_once(tmp_path, simulated):
    given = simulated[2][:4]
    first = moodle([("Müller", "Zoë", "1", ""), ("Ng", "Ann", "2", ""), ("Ng", "Ann", "3", ""), ("Wu", "Bo", "", "")], given)
    second = canvas([("Zoe Muller", "901"), ("Ann Ng", "902"), ("Bo Wu", "903"), ("Di Xu", "904")], given)
    assert matched(tmp_path, first, second) == [("Zoë Müller", "Zoe Muller"), ("Bo Wu", "Bo Wu")]


def test_without_names_or_numbers_all_are_compared_with_all(tmp_path, simulated):
    right_before, right_after, first, second = simulated
    nobody = [("", "", "", "")] * N
    before, after = files(tmp_path, before=moodle(nobody, first), after=moodle(nobody[:30], second[:30]))
    said = page(tmp_path, before, after)
    assert "40 students before, 30 after" in said and "who need not be the same" in said
    assert f"{right_before.mean():.0%} right before, {right_after[:30].mean():.0%} after" in said
    assert "Which misconceptions" not in said


# ---------------------------------------------------------------- the page


def test_the_page_says_what_was_put_in(tmp_path, simulated):
    right_before, right_after, first, second = simulated
    for mine, later in zip(first[:15], second[:15], strict=True):  # a misconception that stays with 12 of 15
        option = next(o for o in quiz.asked() if o.id == "06-score-to-zero").options[0]
        mine["06-score-to-zero"] = option
        later["06-score-to-zero"] = option
    for later in second[:3]:
        later["06-score-to-zero"] = next(o for o in ITEMS if o.id == "06-score-to-zero").options[-1]
    before, after = files(tmp_path, before=moodle(PEOPLE, first), after=canvas(
        [(f"{f} {last}", f"{n}") for n, (last, f, *_) in enumerate(PEOPLE)][::-1], second[::-1]))
    said = page(tmp_path, before, after)
    assert not any(name in said for who in PEOPLE for name in who[:2]), "it is about the class"
    pairs = report.match(report.read(before), report.read(after))
    assert len(pairs) == N
    row = next(r for r in report.misconceptions(pairs, [q.id for q in ITEMS]) if r["name"] == option.misconception)
    held = sum(mine["06-score-to-zero"] is option for mine in first)
    kept = sum(m["06-score-to-zero"] is option is later["06-score-to-zero"] for m, later in zip(first, second, strict=True))
    assert (row["held"], row["kept"], row["others"]) == (held, kept, N - held) and kept >= 12 and row["right"] >= 3
    assert row["now"] == sum(later["06-score-to-zero"] is option for later in second)
    assert f"{option.misconception} 06-score-to-zero" in said and f"{kept} of {held}" in said
    assert said.index("have not been validated on people") < said.index("Normalised gain")
    with open(tmp_path / "out" / "gain_items.csv", encoding="utf-8-sig", newline="") as file:
        assert [r["id"] for r in csv.DictReader(file)] == [q.id for q in ITEMS]


def test_one_file_named_twice_and_few_students_are_told(tmp_path, simulated):
    (path,) = files(tmp_path, before=moodle(PEOPLE[:6], simulated[2][:6]))
    said = command("gain", path, path, "--out", tmp_path / "out")
    assert "is one file named twice?" in said and "Fewer than 10 students" in said


def test_nothing_to_gain_and_nobody_right(tmp_path):
    rng = np.random.default_rng(0)
    all_, none = (answers(np.full((12, 24), x), rng) for x in (1.0, 0.0))
    before, after = files(tmp_path, before=moodle(PEOPLE[:12], all_), after=moodle(PEOPLE[:12], none))
    assert "normalised gain –" in page(tmp_path, before, after)
    assert "0% right before, 100% after; normalised gain 1.00" in page(tmp_path, after, before)


# ---------------------------------------------------------------- the statistics, by hand


def test_a_questions_correlation_is_with_the_rest_without_itself():
    matrix = (np.random.default_rng(0).random((30, 24)) < 0.5).astype(float)
    for n, (_, share, r) in enumerate(report.items(matrix, list(range(24)))):
        assert r[0] == pytest.approx(np.corrcoef(matrix[:, n], matrix.sum(1) - matrix[:, n])[0, 1])
        assert share[0] == pytest.approx(matrix[:, n].mean())


def test_the_gain_is_that_of_the_averages_and_not_the_average_gain():
    before, after = np.array([0.0, 0.9]), np.array([0.5, 0.9])
    assert report.gain(before, after) == pytest.approx(0.25 / 0.55)  # the average of 0.5 and 0 would be 0.25


def test_fewer_than_ten_have_no_interval():
    assert report.interval_of_gain(np.zeros(9), np.full(9, 0.5), True) == (0.5, None, None)
    assert report.correlation_of([True] * 5 + [False] * 4, list(range(9))) is None


def test_shares_and_correlations_by_hand():
    """Ten students, of whom 4 have both questions, 1 each has one, 4 none: (4 · 4 - 1 · 1) / (5 · 5) = 0.6."""
    half = 1.959964 / math.sqrt(10 - 3)
    right, rest = [True] * 5 + [False] * 5, [1] * 4 + [0] + [1] + [0] * 4
    assert report.correlation_of(right, rest) == pytest.approx(
        (0.6, math.tanh(math.atanh(0.6) - half), math.tanh(math.atanh(0.6) + half)))
    assert report.correlation_of(right, list(map(int, right))) == (pytest.approx(1), None, None)
    assert report.share_of(5, 10) == pytest.approx((0.5, 0.2366, 0.7634), abs=5e-5)  # Wilson, from a table
    assert report._interval((-0.001, -0.5, 0.5), "{:.2f}".format) == "0.00 (−0.50 to 0.50)"
