"""The inventory for learning platforms: each file is read by a reader that is not ours, and says the same questions."""

import csv
import html
import io
import re
import zipfile
from collections import Counter
from xml.etree import ElementTree

import pytest
from commands import command

from classroom import quiz
from helpers.page import inventory, questions

ASKED = quiz.asked()
WANTED = [(one.name, one.ask, {questions.as_plain(o.text): o.misconception is None for o in one.options}) for one in ASKED]


def moodle():
    parser = pytest.importorskip("moodle_xml_parser.parser")
    found = parser.parse_bytes(quiz.moodle_xml())["multichoice"]
    assert all(q.single and q.shuffle_answers and q.default_grade == 1 and q.penalty == 0 for q in found)
    return [(q.name, re.sub("</?p>", "", q.text_pre_parse), {o.answer: o.score_fraction == 100 for o in q.options})
            for q in found]


def canvas():
    """By IMS QTI 1.2.1: the response_label that a varequal names in the condition that sets SCORE to 100 is right."""
    archive = zipfile.ZipFile(io.BytesIO(quiz.canvas_zip()))
    space = {"m": "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1", "q": "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"}
    manifest = ElementTree.fromstring(archive.read("imsmanifest.xml"))
    listed = [file.get("href") for file in manifest.iterfind(".//m:resource/m:file", space)]
    assert sorted([*listed, "imsmanifest.xml"]) == sorted(archive.namelist())
    there = {resource.get("identifier") for resource in manifest.iterfind(".//m:resource", space)}
    assert {d.get("identifierref") for d in manifest.iterfind(".//m:dependency", space)} <= there
    (first,) = [r for r in manifest.iterfind(".//m:resource", space) if r.get("type") == "imsqti_xmlv1p2"]
    items = ElementTree.fromstring(archive.read(first[0].get("href")))
    found = []
    for item in items.iterfind("q:assessment/q:section/q:item", space):
        fields = {f[0].text: f[1].text for f in item.iterfind(".//q:qtimetadatafield", space)}
        labels = {label.get("ident"): label.findtext(".//q:mattext", namespaces=space)
                  for label in item.iterfind(".//q:response_label", space)}
        assert fields["question_type"] == "multiple_choice_question"
        assert fields["original_answer_ids"].split(",") == list(labels)
        right = [c.findtext(".//q:varequal", namespaces=space) for c in item.iterfind(".//q:respcondition", space)
                 if c.findtext("q:setvar", namespaces=space) == "100"]
        ask = item.findtext("q:presentation/q:material/q:mattext", namespaces=space)
        found.append((item.get("title"), re.sub("</?p>", "", ask), {text: [i] == right for i, text in labels.items()}))
    assert len({i.get("ident") for i in items.iter()} - {None}) > len(found)
    return found


def table():
    rows = list(csv.DictReader(io.StringIO(quiz.table().removeprefix("\ufeff"), newline="")))
    return [(f"{quiz.TITLE} {int(row['number']):02d}", row["question"],
             {row["right"].lstrip("'"): True} | {row[name].lstrip("'"): False for name in row
                                                 if name.startswith("wrong") and row[name]})
            for row in rows]


@pytest.mark.parametrize("read", [moodle, canvas, table])
def test_another_reader_finds_the_same_questions_and_right_options(read):
    found = read()
    assert [name for name, *_ in found] == [name for name, *_ in WANTED]
    for (_, ask, options), (name, wanted, truth) in zip(found, WANTED, strict=True):
        assert options == truth, name
        assert re.sub(r"</?i>|'", "", html.unescape(ask)) == re.sub(r"</?i>|'", "", html.unescape(wanted)), name


def test_moodle_has_the_themes_as_tags_and_a_category():
    quizzes = ElementTree.fromstring(quiz.moodle_xml())
    tags = Counter(tag.text for tag in quizzes.iterfind(".//tags/tag/text"))
    assert sum(tags.values()) == len(ASKED) and set(tags) == set(questions.load()[0].values())
    assert quizzes.findtext("question[@type='category']/category/text") == "$course$/top/Attention inventory"
    assert len({q.text for q in quizzes.iterfind(".//idnumber")}) == len(ASKED)


def test_a_canvas_quiz_shows_no_results_and_shuffles():
    archive = zipfile.ZipFile(io.BytesIO(quiz.canvas_zip()))
    meta = {e.tag.partition("}")[2]: e.text for e in ElementTree.fromstring(
        archive.read("attention_inventory/assessment_meta.xml")).iter()}
    assert (meta["shuffle_answers"], meta["hide_results"], meta["show_correct_answers"], meta["quiz_type"]) == (
        "true", "always", "false", "practice_quiz")
    assert quiz.canvas_zip() == quiz.canvas_zip()


def test_no_file_explains_an_answer(tmp_path):
    said = command("inventory", tmp_path / "new")
    written = {p.name: p.read_bytes() for p in (tmp_path / "new").iterdir()}
    assert set(written) == set(quiz.FILES) and "inventory_moodle.xml" in said
    with zipfile.ZipFile(tmp_path / "new" / "inventory_canvas.zip") as archive:
        written |= {name: archive.read(name) for name in archive.namelist()}
    for item in inventory.items():
        for option in item.options + item.reasons:
            assert not any(html.escape(option.why)[:40].encode() in contents for contents in written.values())


def test_a_second_tier_stands_alone_and_does_not_say_the_answer():
    second = [one for one in ASKED if one.tier]
    assert len(second) == 4 and len(ASKED) == 28
    for one in second:
        assert questions.as_html(one.question.ask) in one.ask
        assert not any(questions.as_html(o.text) in one.ask for o in one.question.options)
