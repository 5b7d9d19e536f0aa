"""Read a notebook as students hand it in: old, damaged, stripped or re-ordered. Nothing is run here."""

import json
import re
from dataclasses import dataclass, field

LARGEST = 25_000_000  # bytes of a file
BRACKETS = 2_000_000  # lists and objects in it: each takes much more memory than the two bytes that it has in the file
MOST_CODE = 400_000  # characters of all code cells
MOST_CELLS = 2_000
LARGEST_FIGURE = 1_000_000  # letters of a picture in base64
PICTURES = {"image/png": "iVBORw0KGgo", "image/jpeg": "/9j/"}  # and how their bytes begin, in base64


class Unreadable(Exception):
    """One sentence: why the file is not a notebook that can be graded. ``status``: how its submission ends."""

    status = "unreadable"


class Refused(Unreadable):
    """One sentence: why the file is not looked at, although it may be a notebook."""

    status = "refused"


@dataclass
class Cell:
    type: str  # "code", "markdown" or "raw"
    source: str
    grade_id: str = ""
    figures: list = field(default_factory=list)  # saved below it: base64 of PNG and JPEG


@dataclass
class Notebook:
    """The cells of a notebook. ``assignment`` and ``variant``: the ids in its metadata, or ""; ``notes``: what the teacher
    should know."""

    cells: list
    assignment: str = ""
    variant: str = ""
    notes: list = field(default_factory=list)

    @property
    def code(self):
        """The sources of the code cells."""
        return [cell.source for cell in self.cells if cell.type == "code"]


def read(data):
    """A ``Notebook`` of the bytes of a file, in any nbformat since 2. Raises Unreadable."""
    if len(data) > LARGEST:
        raise Refused(f"The file has {len(data) / 1e6:,.0f} MB; more than {LARGEST // 1_000_000} MB are not read.")
    if not data.strip():
        raise Unreadable("The file is empty.")
    if data.count(b"[") + data.count(b"{") > BRACKETS:
        raise Refused(f"The file holds more than {BRACKETS:,} lists, and is not read.")
    notes = []
    try:
        raw = json.loads(_text(data, notes))
    except (ValueError, RecursionError):
        raise Unreadable("The file is not a notebook: it is damaged, cut off, or another kind of file.") from None
    cells = raw.get("cells") if isinstance(raw, dict) else None
    if isinstance(raw, dict) and cells is None:  # nbformat 2 and 3
        if isinstance(sheets := raw.get("worksheets"), list):
            cells = [cell for sheet in sheets for cell in _list(_dict(sheet).get("cells"))]
            notes.append("The notebook has an old format.")
    if not isinstance(cells, list):
        raise Unreadable("The file holds JSON, but it is not a notebook: it has no cells.")
    if len(cells) > MOST_CELLS:
        raise Refused(f"The notebook has {len(cells):,} cells; more than {MOST_CELLS:,} are not read.")
    read_cells = [_cell(cell) for cell in cells if isinstance(cell, dict)]
    if sum(len(cell.source) for cell in read_cells if cell.type == "code") > MOST_CODE:
        raise Refused(f"The notebook has more than {MOST_CODE:,} characters of code, and is not read.")
    course = _dict(_dict(raw.get("metadata")).get("attention_course"))
    ids = [re.sub(r"[^\w .-]", "?", _str(course.get(name, "")))[:100] for name in ("assignment", "variant")]
    return Notebook(read_cells, *ids, notes)


def of_script(data):
    """The bytes of a notebook with the cells of a script: as JupyterLab and jupytext write it, at lines such as
    ``# In[3]:``, ``# %%`` and ``# %% [markdown]``, or else all of it in one. Nothing more is known of its cells."""
    parts = re.split(r"^# *(?:%%(.*)|In *\[[\d ]*\]:?) *$", _text(data[:LARGEST], []), flags=re.MULTILINE)
    cells = [{"cell_type": "code", "source": parts[0]}]
    for mark, source in zip(parts[1::2], parts[2::2], strict=True):
        text = bool(mark and re.match(r" *\[(markdown|md)\]", mark))
        source = re.sub("^# ?", "", source, flags=re.MULTILINE) if text else source
        cells.append({"cell_type": "markdown" if text else "code", "source": source.strip("\n")})
    return json.dumps({"cells": cells}).encode()


def _text(data, notes):
    """The bytes as text: UTF-8 with or without a mark, UTF-16 with one, else byte for byte."""
    for encoding in ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            notes.append("The file is not UTF-8: letters outside ASCII may be wrong.")
    return data.decode("latin-1")


def _cell(raw):
    source = raw.get("source", raw.get("input", ""))
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    nbgrader = _dict(_dict(raw.get("metadata")).get("nbgrader"))
    kind = raw.get("cell_type")
    kind = kind if kind in ("code", "markdown", "raw") else "of no known kind"
    return Cell(kind, _str(source), _str(nbgrader.get("grade_id"))[:200], _figures(raw))


def _figures(raw):
    """The pictures in a cell's outputs, of the two kinds that a browser shows and never runs."""
    pictures = []
    for output in _list(raw.get("outputs"))[:20]:
        data = _dict(_dict(output).get("data"))
        for kind, begins in PICTURES.items():
            text = data.get(kind)
            text = "".join(part for part in text if isinstance(part, str)) if isinstance(text, list) else _str(text)
            text = re.sub(r"\s+", "", text) if len(text) <= LARGEST_FIGURE else ""
            if text.startswith(begins) and re.fullmatch("[A-Za-z0-9+/]+={0,2}", text):
                pictures.append(text)
                break
    return pictures


def _str(value):
    return value if isinstance(value, str) else ""


def _dict(value):
    return value if isinstance(value, dict) else {}


def _list(value):
    return value if isinstance(value, list) else []


def text_below(book, question):
    """What is written in text cells between the cell with the heading of a ``question`` and the next heading or code, and
    is not the question itself."""
    heading, texts, below = re.search(r"^#+ .+$", question, re.MULTILINE), [], False
    for cell in book.cells:
        starts = cell.type != "markdown" or re.match(r"\s*#", cell.source)
        if below and not starts and f"\n{cell.source.strip()}\n" not in f"\n{question}\n":
            texts.append(cell.source.strip())
        below = bool(heading and cell.type == "markdown" and heading[0] in cell.source) or below and not starts
    return "\n\n".join(texts)
