"""Notes, tables and maps: how the course shows text that code has computed, and where the reader is.

Everything is shown as HTML and as plain text for terminals. Text has the colour of the page around it and every ground is a
tint that lets the page through, so it can be read on a light page and on a dark one.
"""

import json
import re
from html import escape, unescape
from pathlib import Path

from helpers.store import progress
from helpers.words import Unknown

COLOURS = {  # kind: (edge, ground)
    "info": ("#0072B2", "rgba(0,114,178,.09)"),
    "good": ("#00785a", "rgba(0,158,115,.12)"),
    "bad": ("#b34700", "rgba(213,94,0,.12)"),
    "idle": ("#6b6b6b", "rgba(128,128,128,.1)"),
}
_CELL = "padding:4px 12px;text-align:left;vertical-align:top;white-space:normal;"
_LISTENS = (  # what stands around a frame cannot be reached from inside, so this makes it as high as it asks for
    '<script>addEventListener("message",said=>{for(const frame of document.querySelectorAll("iframe.course-page"))'
    'if(frame.contentWindow===said.source&&said.data?.height>0){frame.style.height=said.data.height+"px";'
    'frame.previousElementSibling.style.display="none"}})</script>')
THEME = (  # and this tells it whether the page around it is dark, when it asks and when that changes
    '<script>{const tell=()=>{const{jpThemeLight:light,theme}=document.body.dataset;'
    'for(const frame of document.querySelectorAll("iframe.course-page"))'
    'frame.contentWindow.postMessage({theme:light?light==="true"?"light":"dark":theme},"*")};'
    'addEventListener("message",said=>{if(said.data?.ready)tell()});'
    'new MutationObserver(tell).observe(document.body,{attributeFilter:["data-jp-theme-light","data-theme"]})}</script>')
DATA = Path(__file__).resolve().parents[2] / "data"
DARK = Path(__file__).resolve().parent / "lab" / "custom.css"


def display(html, text, kind="text/html"):
    """Show ``html``, or what is of another ``kind``, in a notebook, or print ``text`` where there is none."""
    try:
        from IPython import get_ipython
        in_notebook = get_ipython() is not None
    except ImportError:
        in_notebook = False
    if not in_notebook:
        print(text)
        return
    from IPython.display import display as show
    show({kind: html, "text/plain": text}, raw=True)


def box(html, kind="info", role=""):
    """HTML of a box. ``kind``: "info", "good", "bad" or "idle"; ``role``: "alert" or "status" where it appears later, so
    that a screen reader reads it out. ``html`` must be escaped."""
    edge, background = COLOURS[kind]
    return (f"<div{f' role={role!r}' if role else ''} style='border-left:4px solid {edge};background:{background};"
            f"padding:8px 14px;margin:4px 0;max-width:820px;line-height:1.45'>{html}</div>")


def note(html, text=None, kind="info"):
    """Show a boxed note. ``kind`` and ``html``: as for `box`; ``text``: the same for terminals, by default its words."""
    words = re.sub(r"<[^>]+>", "", re.sub("</p>|</summary>|<br>", "\n", html))
    display(box(html, kind), unescape(words) if text is None else text)


def table(columns, rows, caption=""):
    """Show a table. ``columns``: headings; ``rows``: lists of values, one for each heading.

    Numbers should arrive as formatted strings. Raises ValueError when a row has the wrong length.
    """
    rows = [[str(value) for value in row] for row in rows]
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"A row has {len(row)} values for {len(columns)} columns: {row}.")
    kinds = ["th" if column else "td" for column in columns]  # an empty heading heads nothing
    head = "".join(f"<{kind} style='{_CELL}border-bottom:2px solid'>{escape(column)}</{kind}>"
                   for kind, column in zip(kinds, columns, strict=True))
    body = "".join(
        f"<tr style='background:{'rgba(128,128,128,.09)' if i % 2 else 'none'}'>"
        + "".join(f"<td style='{_CELL}'>{escape(value)}</td>" for value in row) + "</tr>"
        for i, row in enumerate(rows))
    title = f"<caption style='{_CELL}font-weight:bold;caption-side:top'>{escape(caption)}</caption>"
    html = (f"<table style='border-collapse:collapse;margin:4px 0;max-width:960px;"
            f"font-size:14px'>{title if caption else ''}"
            f"<thead><tr style='background:none'>{head}</tr></thead><tbody>{body}</tbody></table>")
    widths = [max(len(row[i]) for row in [list(columns), *rows]) for i in range(len(columns))]
    lines = ["  ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)).rstrip()
             for row in [list(columns), *rows]]
    display(html, "\n".join(([caption] if caption else []) + lines))


def frame(inside, title, told, height):
    """HTML that shows a page, the string ``inside``, in a frame whose scripts reach nothing outside it.

    ``title``: what a screen reader says of it; ``told``: HTML that stands in its place where scripts may not run;
    ``height``: in pixels, until the page says its own with ``parent.postMessage({height: pixels}, "*")``.
    """
    inside = inside.replace("&", "&amp;").replace("'", "&#x27;")
    return (f"<div><p style='background:rgba(128,128,128,.1);padding:8px 14px;margin:4px 0'>{told}</p>"
            f"<iframe srcdoc='{inside}' sandbox='allow-scripts' class='course-page' title='{escape(title)}' "
            f"style='width:100%;height:{height}px;border:0;background:#fff'></iframe>{_LISTENS}</div>")


def light(page):
    """A page of HTML without the data that it marks as large (``data-large``), so that a notebook stays small."""
    return re.sub(r"<script[^>]* data-large>.*?</script>\n?", "", page, flags=re.DOTALL)


def page(name, title):
    """Show a page of HTML from ``data/`` that brings along all it needs, in a frame as high as the page makes it,
    and as dark as what is around it. What it marks as large is left out (see `light`).

    ``title``: what a screen reader says of it. Where scripts may not run, a sentence stands there.
    """
    notice = (f"{title}: a live page. It appears when the notebook is trusted (in JupyterLab: View, Activate Command "
              f"Palette, Trust Notebook). It is also a file of its own, data/{name}, which any browser opens.")
    display(frame(light((DATA / name).read_text(encoding="utf-8")), title, notice, height=900) + THEME, notice)


def map(number):
    """Show where lesson ``number`` ("07") is in the whole model. Raises KeyError for a lesson that there is not.

    Where a learner is present, a dark JupyterLab from now on turns figures round, whoever started it.
    """
    from helpers.page import drawing

    if number not in drawing.LESSONS:
        raise Unknown(f"There is no lesson {number!r} to draw: a lesson's number is a string of two digits, "
                      f'"00" to "{max(drawing.LESSONS)}".')
    display(drawing.svg(number), drawing.path(number), "image/svg+xml")
    if progress.live():
        style = json.dumps(DARK.read_text(encoding="utf-8"))
        display("<script>document.getElementById('course-figures') || document.head.append(Object.assign(document."
                f"createElement('style'), {{id: 'course-figures', textContent: {style}}}))</script>", "")


def course_map():
    """Show the course as a path of pictures, with minutes and the exercises that have been passed."""
    from helpers.page import pictures

    display(*pictures.course_map())
