"""Marking: what waits for a person, the sheet however it was saved, two markers, and the server of the marking page."""

import http.client
import json
import re
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
import submissions
from commands import command
from jobs import NotRun
from results import change, fill, result
from submissions import NAME

from classroom import assignment, batch, grading, marking, marks, reports
from helpers.store.files import write_whole

LETTERS = "Müller – “high” → 李 ≤ α 🐻 \u200b"


@pytest.mark.parametrize("name", assignment.names())
def test_every_question_has_a_model_answer_and_a_rubric_that_adds_up(name):
    released = json.dumps(assignment.strip(assignment.source(name)), ensure_ascii=False)
    for question in assignment.load(name).questions:
        assert sum(points for points, _ in question.rubric) == question.points and 2 <= len(question.rubric) <= 5
        assert len(question.model.split()) > 40 and "points:" not in question.model and len(question.text.split()) > 20
        assert not any(words in released for _, words in question.rubric), "students would see it"


def answered(text="YOUR ANSWER HERE", *cells):
    """A notebook whose first question has this answer; ``cells``: more at its end."""
    raw = submissions.written(submissions.released(), {"answer-measurement": text})
    return json.dumps(raw | {"cells": raw["cells"] + [
        {"cell_type": kind, "metadata": {}, "source": source} for kind, source in cells]}).encode()


@pytest.mark.parametrize(("data", "untouched", "words"), [
    (answered(), True, ""), (answered(" \n"), True, ""), (answered("It is picky."), False, "It is picky."),
    (answered("YOUR ANSWER HERE", ("markdown", "It is picky, because ...")), False, "It is picky, because"),
    (answered("YOUR ANSWER HERE", ("code", "# It is picky because\n# the cosines")), False, "# It is picky"),
    (answered("YOUR ANSWER HERE", ("code", "It is picky because")), False, "It is picky because"),
    (answered("YOUR ANSWER HERE", ("code", "x = [1, 2, 3]"), ("markdown", "")), True, ""),
    (json.dumps({"cells": []}).encode(), False, "no answer was found")])
def test_an_untouched_answer_is_0_and_what_may_be_one_waits(data, untouched, words, monkeypatch):
    monkeypatch.setattr(grading, "Session", NotRun)
    one = result("Ada") | {"answers": grading.grade_one(data, assignment.load(NAME))["answers"]}
    first = next(row for row in marks.grade_of(one, {}).rows if row.item == "answer-measurement")
    waits = {item: text for item, _, text, _ in marks.to_mark(one)}
    assert (first.points, "answer-measurement" not in waits) == ((0, True) if untouched else (None, False))
    assert untouched or words in waits["answer-measurement"]
    assert marks.grade_of(one, {("Ada_", "answer-measurement"): (2, "")}).rows[-2].points == 2, "a person has the last word"


def test_answers_are_read_where_no_code_could_be_judged(tmp_path, monkeypatch):
    """Whatever becomes of the code: the answers, the code as text and the pictures wait for a person."""
    monkeypatch.setattr(batch, "_run", lambda todo, name, keep, *rest: [keep(about, grading.failed(
        assignment.load(name), "crashed", batch.LOST, submission.read())) for about, submission in todo])
    (tmp_path / "in").mkdir()
    raw = json.loads(answered("It is picky."))
    picture = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgoAAAA="}}
    odd = [{"data": {"image/png": bad}} for bad in ("<svg onload=x>", 5, "iVBORw0KGgo'>", "iVBORw0KGgo" + "A" * 10**6)]
    raw["cells"][3]["outputs"] = [*odd, picture, {"data": {"image/svg+xml": "<svg onload='alert(1)'/>"}}, 7]
    (tmp_path / "in" / "ada.ipynb").write_text(json.dumps(raw))
    [one] = batch.grade(NAME, tmp_path / "in", tmp_path / "out", trusted=True, progress=False)
    assert [(item, text) for item, _, text, _ in marks.to_mark(one)] == [
        (marks.CODE, ""), ("answer-measurement", "It is picky.")]
    page = marking.Marking(tmp_path / "out")
    work = page.work(1)
    assert work["figures"] == ["data:image/png;base64,iVBORw0KGgoAAAA="] and "most_similar_pair" in str(work["code"])
    grade = marks.grade_of(one, {})
    assert grade.total is None and "crashed" in grade.reason
    page.save(0, 20, "It runs on my machine.")
    page.save(1, 4.5, "")
    grade = marks.grade_of(one, marks.read_sheet(tmp_path / "out"))
    assert grade.total == 24.5 and grade.most == 35 and grade.rows[0].comment == "It runs on my machine."


@pytest.mark.parametrize(("encoding", "separator"), [
    ("utf-8", ","), ("utf-8-sig", ";"), ("cp1252", ","), ("cp1252", ";"), ("cp1252", "\t"), ("utf-16", "\t"),
    ("mac_roman", ";"), ("cp850", ";")])
def test_the_sheet_comes_back_unchanged_however_it_was_saved(out, encoding, separator):
    results = [one | {"answers": [a | {"text": LETTERS + (a["text"] or "")} for a in one["answers"]]}
               for one in batch.read(out)[0]]
    marks.write_sheet(results, out)
    fill(out, {("Dee", "answer-measurement"): 4.5}, encoding, separator, "\r" if encoding == "mac_roman" else "\r\n",
         "sep=;\r\n" * (separator == ";"))
    marks.write_sheet(results, out)
    assert marks.CHANGED not in (out / marks.SHEET).read_text(encoding="utf-8-sig")
    assert marks.read_sheet(out) == {("Dee_4", "answer-measurement"): (4.5, "")}
    results[3]["answers"][0]["text"] += "!"
    change(out, "Dee_4", answers=results[3]["answers"])
    for _ in range(2):  # grading once more does not hide it
        marks.write_sheet(results, out)
        rows = [row for row in marks.read_csv(out / marks.SHEET) if row["why"].startswith(marks.CHANGED)]
        assert [(row["student"], row["item"]) for row in rows] == [("Dee", "answer-measurement")]
    page = marking.Marking(out)
    page.save(next(n for n, i in enumerate(page.items) if i[:2] == ("Dee_4", "answer-measurement")), 5, "")
    marks.write_sheet(list(batch.read(out)[0]), out)
    row = next(row for row in marks.read_csv(out / marks.SHEET) if row["points"])
    assert row["student"] == "Dee" and row["points"] == "5" and marks.CHANGED not in row["why"], "it was looked at"


def test_two_markers(out):
    before = marks.read_sheet(out)
    for person, given in (("ana", {"Ada_Lovelace_1": 3, "Dee_4": 4}),
                          ("ben", {"Ada_Lovelace_1": 3, "Dee_4": 4.5, "Ben_2": 1})):
        page = marking.Marking(out, person)
        for number, (key, item, *_) in enumerate(page.items):
            if item == "answer-measurement" and key in given:
                page.save(number, given[key], f"{person} says so")
        again = marking.Marking(out, person)  # the next day
        assert {key: p for (key, _), (p, _) in marks.read_sheet(out, again.path.name).items()} == given
    assert marks.read_sheet(out) == before == {}, "the sheet that counts is untouched"
    sheets = [str(out / marking.sheet_of(person)) for person in ("ana", "ben")]
    for entered in (2, 0):
        said = command("mark", out, "--merge", *sheets)
        assert said.splitlines() == [f"{entered} lines entered into {out / marks.SHEET}.",
                                     "Two markers differ: Dee, measurement: ana 4 and ben 4.5; left open."]
    sheet = marks.read_sheet(out)
    assert {key: p for (key, _), (p, _) in sheet.items()} == {"Ada_Lovelace_1": 3, "Ben_2": 1, "Dee_4": None}
    assert sheet["Dee_4", "answer-measurement"][1] == "ana says so\nben says so"
    marks.write_sheet(list(batch.read(out)[0]), out)
    page = marking.Marking(out)
    number = next(n for n, i in enumerate(page.items) if i[:2] == ("Dee_4", "answer-measurement"))
    assert "TWO MARKERS: ana 4 and ben 4.5" in page.page("x")
    page.save(number, 4.25, "")
    assert "the sheet has 4.25, which stays" in command("mark", out, "--merge", *sheets)
    assert marks.read_sheet(out)["Dee_4", "answer-measurement"][0] == 4.25
    for wrong in (("--merge", "no.csv"), ("--by", "../x")):
        command("mark", out, *wrong, fails=True)


@contextmanager
def served(page):
    """The server of a page; ``server.ask`` gives (status, text, headers) of its answer, ``server.save`` what it says to a
    step that the page itself would send: (status, what the text holds)."""
    def ask(method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=300)
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers

    def save(body=None, **headers):
        own = {"Content_Type": "application/json", "Origin": f"http://{server.hosts[0]}"}
        status, text, _ = ask("POST", f"/{server.token}/save", body, **own | headers)
        return status, json.loads(text)

    with marking.Server(page) as server:
        server.ask, server.save = ask, save
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


STEP = {"number": 0, "points": 1, "comment": ""}


@pytest.mark.parametrize("body", [
    b"", b"[", b"7", b'{"number": 0}', b"[" * 50_000, *(json.dumps(STEP | change) for change in (
        {"number": 10**6}, {"points": "1"}, {"comment": None}, {"comment": "x" * 20_000})),
    *(json.dumps(STEP).replace("1", points) for points in ("NaN", "Infinity", "-1", "-0.1", "99", "1e400", "9" * 4_000))],
    ids=lambda body: repr(body[:40]))
def test_a_step_that_cannot_be_saved_is_answered_in_a_sentence(body, out):
    before = (out / marks.SHEET).read_bytes()
    with served(marking.Marking(out)) as server:
        _, said = server.save(body)
        assert 15 < len(said["problem"]) < 400 and "\n" not in said["problem"]
        assert (out / marks.SHEET).read_bytes() == before and server.ask("GET", f"/{server.token}/")[0] == 200


@pytest.mark.parametrize("comment", [
    "=1+1", "'=1+1", "''-x", "-3.5", "'-3.5", "\ttab", "'", "a;b", '"q"\n\n,x', "\U0001f600", "\u2028", " ", "x" * 9_999,
    "\u202e", "−3", "@x", "NUL"])
def test_what_is_saved_is_read_back(comment, out):
    page = marking.Marking(out)
    number = next(n for n, i in enumerate(page.items) if i[1] == "answer-measurement")
    for points in (0, 0, -0.0, 0.5, 2.25, 5, 5, None):  # and does not change when it is saved once more
        page.save(number, points, comment)
        [row] = json.loads(page.page("x").partition('id="data">')[2].partition("</script>")[0])["rows"][number:number + 1]
        assert (row["points"], row["comment"]) == (points, comment)
    page.save(number, points, "a\0b\rc\ud800")
    assert marks.read_sheet(out)[page.items[number][:2]] == (points, "a b c ")


@pytest.mark.parametrize("spoiled", ["3 pts", "two", "99", "-1", "nan", "1e999"])
def test_a_spoiled_sheet_is_told_on_the_page_and_never_written_over(spoiled, out):
    page = marking.Marking(out)
    page.save(0, 1, "")
    write_whole(page.path, page.path.read_text(encoding="utf-8-sig").replace(",1,", f",{spoiled},", 1))
    before = page.path.read_bytes()
    with served(page) as server:
        status, text, headers = server.ask("GET", f"/{server.token}/")
        assert status == 200 and headers["Content-Type"].startswith("text/plain") and spoiled in text
        assert "load this page again" in text
        assert spoiled in server.save(json.dumps(STEP))[1]["problem"] and page.path.read_bytes() == before
        assert server.ask("GET", f"/{server.token}/work/1")[0] == 200


def test_the_server_answers_its_own_page_alone(out):
    page = marking.Marking(out)
    with served(page) as server:
        ask, token, step = server.ask, server.token, json.dumps(STEP)
        status, text, headers = ask("GET", f"/{token}/")
        assert status == 200 and server.server_address[0] == "127.0.0.1" and len(token) >= 32
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "'unsafe-inline'" not in policy.partition("style-src")[0]
        for name in ("Ada", "Lovelace", "Ben", "Cy", "Dee"):
            assert name not in re.sub('nonce="[^"]*"', "", text), "it is anonymous"
        assert "Lovelace" in marking.Marking(out, names=True).page("x")
        assert server.address == f"http://{server.hosts[0]}/{token}/"
        other = token[:-1] + ("y" if token.endswith("x") else "x")
        for path in ("", "/", token, f"{other}/", f"{token}/work/99", f"{token}/work/0", f"{token}/../{token}/x"):
            assert ask("GET", f"/{path}")[:2] == (404, "{}"), path
        assert ask("POST", f"/{token[:-1]}/save", step, Content_Type="application/json",
                   Origin=f"http://{server.hosts[0]}")[0] == 404
        assert ask("GET", f"/{token}/", Host="evil.example")[0] == 404, "a name that leads here, in another page"
        assert server.save(step, Content_Type="text/plain")[0] == 404, "a form"
        for origin in ("http://evil", "null", "", "https://" + server.hosts[0], "http://127.0.0.1", "http://127.0.0.1:1",
                       f"http://{server.hosts[0]}.evil", f"http://{server.hosts[1]}"):
            assert server.save(step, Origin=origin) == (404, {}), origin
            assert ask("GET", f"/{token}/", Origin=origin)[:2] == (404, "{}"), origin
        assert ask("POST", f"/{token}/save", step, Content_Type="application/json")[0] == 404, "a browser says it"
        assert marks.read_sheet(out) == {}
        comment = "=1+1; <b>\nnext \ud83d\ude00"
        assert server.save(json.dumps({"number": 1, "points": 2.5, "comment": comment})) == (200, {})
        assert list(marks.read_sheet(out).values()) == [(2.5, "=1+1; <b>\nnext \U0001f600")]


def test_the_page_says_what_comes_next_and_which_file_to_look_in(out):
    change(out, "Ben_2", code=["x = 1"])
    page = marking.Marking(out)
    assert f"python -m classroom feedback {out}" in page.page("x") and "feedback" not in marking.Marking(out, "ana").then
    files = {key: page.work(number)["file"] for number, key in enumerate(page.keys, 1)}
    assert files["Cy__b__3"] == "a.ipynb" and files["Ben_2"] == ""


def test_the_page_for_the_class_shows_points_before_all_are_marked(out):
    page = reports.write_pages(out).read_text(encoding="utf-8")
    assert page.count("so far</span>") == 3 and "26 so far" in page


def test_points_for_nobody_are_told_with_the_nearest_key_and_item():
    made = [{"key": "Fatma_Yldz_7001384", "tests": [{"grade_id": "test-masked_weights"}], "answers": []},
            {"key": "Ben_Okri", "tests": [], "answers": [{"grade_id": "answer-1"}]}]
    sheet = {("Fatma_Yıldız_7001384", "test-masked_weights"): (3, ""), ("Fatma_Yldz_7001384", "masked_weights"): (3, ""),
             ("Ben_Okri", "answer-1"): (1, ""), ("Zoe", "answer-1"): (1, "")}
    assert marks.unknown(made, sheet) == [
        "Fatma_Yıldız_7001384, test-masked_weights (the nearest key is Fatma_Yldz_7001384)",
        "Fatma_Yldz_7001384, masked_weights (the nearest item is test-masked_weights)", "Zoe, answer-1"]


def test_outside_the_environment_it_says_one_sentence():
    code = "import runpy, sys; sys.modules['numpy'] = None; runpy.run_module('classroom', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=grading.ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "The package numpy is not here" in done.stderr
