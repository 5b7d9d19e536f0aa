"""The attention inventory for a learning platform: Moodle XML, GIFT, Canvas' QTI, plain CSV.

A question of two tiers becomes two questions, and the second repeats the first, because platforms shuffle. No file says why
an option is right or wrong: the same questions are asked again. The formats are those of docs.moodle.org (Moodle XML, GIFT)
and IMS QTI 1.2.1 as Canvas exports it; tests read each file with a reader that is not ours.
"""

import html
import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from classroom import marks
from helpers.page import inventory, questions
from helpers.store.files import write_whole

TITLE = "Attention inventory"
FILES = ("inventory_moodle.xml", "inventory.gift.txt", "inventory_canvas.zip", "inventory.csv")
QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
CANVAS = "http://canvas.instructure.com/xsd/cccv1p0"
MANIFEST = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
XSI = "http://www.w3.org/2001/XMLSchema-instance"


@dataclass(frozen=True)
class Asked:
    """A question as a platform asks it. ``id``: the bank's, with "-because" for a second tier; ``ask``: HTML;
    ``options``: those of the bank, the right one among them."""

    number: int
    id: str
    question: questions.Question
    tier: int
    ask: str
    options: tuple

    @property
    def name(self):
        return f"{TITLE} {self.number:02d}"


def asked():
    """What a platform asks, in the order of the bank: 24 questions, and the reasons of those that have two tiers."""
    found = []
    for question in inventory.items():
        found.append((question.id, question, 0, questions._html(question.ask), question.options))
        if question.reasons:
            again = f"You were also asked: “{questions._html(question.ask)}” Your answer there is right because ..."
            found.append((f"{question.id}-because", question, 1, again, question.reasons))
    return [Asked(number, *rest) for number, rest in enumerate(found, 1)]


def write(out):
    """Write the inventory in all four formats into the folder ``out``; returns the paths."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for name, contents in zip(FILES, (moodle_xml(), gift(), canvas_zip(), table()), strict=True):
        write_whole(out / name, contents)
    return [out / name for name in FILES]


def moodle_xml():
    """Moodle's own format, with the themes as tags."""
    quiz = ElementTree.Element("quiz")
    category = ElementTree.SubElement(quiz, "question", type="category")
    _text(category, "category", f"$course$/top/{TITLE}")
    for one in asked():
        question = ElementTree.SubElement(quiz, "question", type="multichoice")
        _text(question, "name", one.name)
        _text(question, "questiontext", f"<p>{one.ask}</p>", format="html")
        for tag, said in {"defaultgrade": "1", "penalty": "0", "hidden": "0", "idnumber": one.id, "single": "true",
                          "shuffleanswers": "true", "answernumbering": "none"}.items():
            ElementTree.SubElement(question, tag).text = said
        for option in one.options:
            _text(question, "answer", questions._plain(option.text), fraction="0" if option.misconception else "100",
                  format="plain_text")
        _text(ElementTree.SubElement(question, "tags"), "tag", questions.load()[0][one.question.theme])
    return _xml(quiz)


def gift():
    """GIFT: text, readable by Moodle and many others."""
    def escaped(text):
        return re.sub(r"([\\~=#{}:])", r"\\\1", text)

    parts = [f"// {TITLE}: {len(asked())} questions. Import as GIFT, UTF-8.\n$CATEGORY: $course$/top/{TITLE}\n"]
    for one in asked():
        texts = [escaped(html.escape(questions._plain(option.text), quote=False)) for option in one.options]
        lines = [f"\t{'~' if option.misconception else '='}{text}" for option, text in zip(one.options, texts, strict=True)]
        parts.append("\n".join([f"// {one.id}", f"::{one.name}::[html]{escaped(one.ask)}{{", *lines, "}\n"]))
    return "\n".join(parts)


def table():
    """CSV for any other use: a question a line, the right option first, each wrong one behind its misconception's name."""
    most = max(len(one.options) for one in asked()) - 1
    wrong = [f"{word} {n}" for n in range(1, most + 1) for word in ("misconception", "wrong")]
    lines = [("number", "id", "lesson", "theme", "question", "right", *wrong)]
    for one in asked():
        right = next(option.text for option in one.options if not option.misconception)
        pairs = [said for option in one.options if option.misconception
                 for said in (option.misconception, questions._plain(option.text))]
        ask = re.sub("'?</?i>'?", "'", html.unescape(one.ask))
        lines.append((one.number, one.id, one.question.lesson, questions.load()[0][one.question.theme], ask,
                      questions._plain(right), *pairs, *[""] * (2 * most - len(pairs))))
    return "\ufeff" + marks.csv_text(lines)


def canvas_zip():
    """A package of QTI 1.2 as Canvas' classic quizzes export and import it: a practice quiz that shows no results."""
    name = "attention_inventory"
    files = {"imsmanifest.xml": _manifest(name), f"{name}/assessment_meta.xml": _meta(name),
             f"{name}/{name}.xml": _items(name)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, contents in files.items():
            archive.writestr(zipfile.ZipInfo(path), contents, zipfile.ZIP_DEFLATED)  # without the hour: always the same
    return buffer.getvalue()


def _manifest(name):
    manifest = _root("manifest", MANIFEST, "http://www.imsglobal.org/xsd/imscp_v1p1.xsd", identifier=f"{name}_manifest")
    metadata = ElementTree.SubElement(manifest, "metadata")
    ElementTree.SubElement(metadata, "schema").text = "IMS Content"
    ElementTree.SubElement(metadata, "schemaversion").text = "1.1.3"
    ElementTree.SubElement(manifest, "organizations")
    resources = ElementTree.SubElement(manifest, "resources")
    first = ElementTree.SubElement(resources, "resource", identifier=name, type="imsqti_xmlv1p2")
    ElementTree.SubElement(first, "file", href=f"{name}/{name}.xml")
    ElementTree.SubElement(first, "dependency", identifierref=f"{name}_meta")
    meta = f"{name}/assessment_meta.xml"
    second = ElementTree.SubElement(resources, "resource", identifier=f"{name}_meta", href=meta,
                                    type="associatedcontent/imscc_xmlv1p1/learning-application-resource")
    ElementTree.SubElement(second, "file", href=meta)
    return _xml(manifest)


def _meta(name):
    quiz = _root("quiz", CANVAS, "https://canvas.instructure.com/xsd/cccv1p0.xsd", identifier=name)
    for tag, said in (("title", TITLE), ("description", "Leave open what you would have to guess. It is not graded."),
                      ("shuffle_answers", "true"), ("scoring_policy", "keep_highest"), ("hide_results", "always"),
                      ("quiz_type", "practice_quiz"), ("points_possible", f"{len(asked()):.1f}"),
                      ("show_correct_answers", "false"), ("allowed_attempts", "1"), ("available", "false")):
        ElementTree.SubElement(quiz, tag).text = said
    return _xml(quiz)


def _items(name):
    interop = _root("questestinterop", QTI, "http://www.imsglobal.org/xsd/ims_qtiasiv1p2p1.xsd")
    assessment = ElementTree.SubElement(interop, "assessment", ident=name, title=TITLE)
    _fields(assessment, {"cc_maxattempts": "1"})
    section = ElementTree.SubElement(assessment, "section", ident="root_section")
    for one in asked():
        idents = {option: str(1000 * one.number + n) for n, option in enumerate(one.options)}
        item = ElementTree.SubElement(section, "item", ident=one.id, title=one.name)
        _fields(ElementTree.SubElement(item, "itemmetadata"), {
            "question_type": "multiple_choice_question", "points_possible": "1.0",
            "original_answer_ids": ",".join(idents.values()), "assessment_question_identifierref": f"{one.id}_ref"})
        presentation = ElementTree.SubElement(item, "presentation")
        _material(presentation, f"<p>{one.ask}</p>", "text/html")
        response = ElementTree.SubElement(presentation, "response_lid", ident="response1", rcardinality="Single")
        choices = ElementTree.SubElement(response, "render_choice")
        for option, ident in idents.items():
            label = ElementTree.SubElement(choices, "response_label", ident=ident)
            _material(label, questions._plain(option.text), "text/plain")
        processing = ElementTree.SubElement(item, "resprocessing")
        ElementTree.SubElement(ElementTree.SubElement(processing, "outcomes"), "decvar", maxvalue="100", minvalue="0",
                               varname="SCORE", vartype="Decimal")
        condition = ElementTree.SubElement(processing, "respcondition", {"continue": "No"})
        right = next(ident for option, ident in idents.items() if not option.misconception)
        where = ElementTree.SubElement(condition, "conditionvar")
        ElementTree.SubElement(where, "varequal", respident="response1").text = right
        ElementTree.SubElement(condition, "setvar", action="Set", varname="SCORE").text = "100"
    return _xml(interop)


def _fields(parent, entries):
    metadata = ElementTree.SubElement(parent, "qtimetadata")
    for label, entry in entries.items():
        field = ElementTree.SubElement(metadata, "qtimetadatafield")
        ElementTree.SubElement(field, "fieldlabel").text = label
        ElementTree.SubElement(field, "fieldentry").text = entry


def _material(parent, said, kind):
    ElementTree.SubElement(ElementTree.SubElement(parent, "material"), "mattext", texttype=kind).text = said


def _text(parent, tag, said, **attributes):
    ElementTree.SubElement(ElementTree.SubElement(parent, tag, attributes), "text").text = said


def _root(tag, space, schema, **attributes):
    spaces = {"xmlns": space, "xmlns:xsi": XSI, "xsi:schemaLocation": f"{space} {schema}"}
    return ElementTree.Element(tag, {**spaces, **attributes})


def _xml(root):
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)
