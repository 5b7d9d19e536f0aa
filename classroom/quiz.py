"""The attention inventory for a learning platform: Moodle XML, Canvas' QTI, plain CSV.

A question of two tiers becomes two questions, and the second repeats the first, because platforms shuffle. No file says why
an option is right or wrong: the same questions are asked again. The formats are those of docs.moodle.org (Moodle XML)
and IMS QTI 1.2.1 as Canvas exports it; tests read each file with a reader that is not ours.
"""

import html
import io
import re
import zipfile
from dataclasses import dataclass

from classroom import marks
from classroom.files import write_files
from classroom.reports import PAGES
from helpers.page import inventory, questions

TITLE = "Attention inventory"
FILES = ("inventory_moodle.xml", "inventory_canvas.zip", "inventory.csv")


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

    @property
    def numbers(self):
        """Of the options, as Canvas needs them."""
        return [1000 * self.number + n for n in range(len(self.options))]


def asked():
    """What a platform asks, in the order of the bank: 24 questions, and the reasons of those that have two tiers."""
    rows = []
    for question in inventory.items():
        rows.append((question.id, question, 0, questions.as_html(question.ask), question.options))
        if question.reasons:
            again = f"You were also asked: “{questions.as_html(question.ask)}” Your answer there is right because ..."
            rows.append((f"{question.id}-because", question, 1, again, question.reasons))
    return [Asked(number, *rest) for number, rest in enumerate(rows, 1)]


def write(out):
    """Write the inventory in all formats into the folder ``out``; returns the paths."""
    return write_files(out, dict(zip(FILES, (moodle_xml(), canvas_zip(), table()), strict=True)))


def moodle_xml():
    """Moodle's own format, with the themes as tags."""
    return _filled("inventory_moodle.xml")


def _filled(template, **more):
    return PAGES.get_template(template).render(title=TITLE, asked=asked(), themes=questions.load()[0],
                                               plain=questions.as_plain, **more)


def table():
    """CSV for any other use: a question a line, the right option first, each wrong one behind its misconception's name."""
    most = max(len(one.options) for one in asked()) - 1
    wrong = [f"{word} {n}" for n in range(1, most + 1) for word in ("misconception", "wrong")]
    lines = [("number", "id", "lesson", "theme", "question", "right", *wrong)]
    for one in asked():
        right = next(option.text for option in one.options if not option.misconception)
        pairs = [cell for option in one.options if option.misconception
                 for cell in (option.misconception, questions.as_plain(option.text))]
        ask = re.sub("'?</?i>'?", "'", html.unescape(one.ask))
        lines.append((one.number, one.id, one.question.lesson, questions.load()[0][one.question.theme], ask,
                      questions.as_plain(right), *pairs, *[""] * (2 * most - len(pairs))))
    return "\ufeff" + marks.csv_text(lines)


def canvas_zip():
    """A package of QTI 1.2 as Canvas' classic quizzes export and import it: a practice quiz that shows no results."""
    name, buffer = "attention_inventory", io.BytesIO()
    files = {"imsmanifest.xml": "inventory_manifest.xml", f"{name}/assessment_meta.xml": "inventory_meta.xml",
             f"{name}/{name}.xml": "inventory_qti.xml"}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, template in files.items():  # without the hour: always the same
            archive.writestr(zipfile.ZipInfo(path), _filled(template, name=name), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
