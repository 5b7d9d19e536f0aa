"""How Sphinx makes the book of the pages that scripts/book.py has staged."""

import functools
import importlib.util
from html import escape
from pathlib import Path
from urllib.parse import quote

from docutils import nodes
from sphinx.search.en import SearchEnglish

project = html_title = "Attention and transformers"
html_short_title = "Attention"
copyright = "the course's authors; text and figures CC BY 4.0, code MIT"
language = "en"
extensions = ["myst_nb"]
exclude_patterns = ["**/.*"]

# Notebooks are shown with the outputs that they have; nothing is run.
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # these would come from the web
nb_render_image_options = {"alt": "Figure; the text below it says what it shows."}
nb_number_source_lines = False
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 4  # so that links to a heading are checked

html_theme = "furo"
html_extra_path = [str(Path(__file__).resolve().parents[2] / path)
                   for path in ("data/explainer.html", "docs/loops", "build/book/pictures")]
html_static_path = ["static"]
html_favicon = "static/icon.svg"
PREVIEW = "_static/preview.png"  # of docs/book/preview.html
PREVIEW_SAYS = "A sentence whose words are joined by arcs, as a transformer sees them, above a small picture of each lesson."
html_css_files, html_js_files = ["book.css", "front.css"], ["book.js", "search.js", "front.js", "register.js"]
html_use_index = html_copy_source = html_show_sourcelink = html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"figure-colours": "none"},
    "dark_css_variables": {"figure-colours": "invert(0.94) hue-rotate(180deg) brightness(1.25)"},
}
# furo brings these: a contrast of 7 to 1, names and comments too
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"

# MathJax as one file that draws formulas as SVG: with no fonts to load it also works on pages opened from a disk.
html_static_path += [str(Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent
                         / "static" / "mathjax" / "tex-svg.js")]
mathjax_path = "tex-svg.js"
mathjax3_config = mathjax4_config = {"options": {"enableMenu": False, "enableExplorer": False}}


def fold_solutions(app, doctree):
    """In a page of solutions, everything from an exercise's first cell on waits behind a click."""
    if not app.env.docname.startswith("solutions/"):
        return
    for section in doctree.findall(nodes.section):
        cells = [i for i, child in enumerate(section.children) if "cell" in child.get("classes", [])]
        if section[0].astext().startswith(("Exercise", "Your turn", "Extend it")) and cells:
            section.insert(cells[0], nodes.raw("", "<details class='solution'><summary>Show the solution</summary>",
                                               format="html"))
            section.append(nodes.raw("", "</details>", format="html"))


def shown_where_it_is_shared(app, page, template, context, doctree):
    """What a page says of itself where somebody links to it: title, first words and a picture. Addresses are whole once the
    book's own is known (html_baseurl, from `make book ARGS="--address …"`), and relative until then."""
    first = next((p for p in doctree.findall(nodes.paragraph) if len(p.astext()) > 40), None) if doctree else None
    if first is None:
        return
    text = " ".join(first.astext().split())
    if len(text) > 200:
        text = text[:text.rfind(" ", 0, 198)] + " …"
    title = project if page == "index" else f"{doctree.next_node(nodes.title).astext()} · {project}"
    base = app.config.html_baseurl
    preview, says = PREVIEW, PREVIEW_SAYS
    if page.startswith("claims/"):
        preview, says = f"{page}.png", f"{title}: what was found, and its stamp."
    picture = base + preview if base else context["pathto"](preview, resource=True)
    said = [("name", "description", text), ("property", "og:type", "website"), ("property", "og:site_name", project),
            ("property", "og:title", title), ("property", "og:description", text), ("property", "og:image", picture),
            ("property", "og:image:alt", says), ("name", "twitter:card", "summary_large_image"),
            ("name", "twitter:title", title), ("name", "twitter:description", text), ("name", "twitter:image", picture)]
    said += [("property", "og:url", f"{base}{page}.html")] if base else []
    context["metatags"] += "".join(f'<meta {kind}="{name}" content="{escape(words)}" />\n' for kind, name, words in said)


def foot(app, page, template, context, doctree):
    """Below every page: the course's version, and where to report what; a form knows the page, and book.js adds the cell."""
    if doctree is None:
        return
    known = app.config.html_context
    links = [f'<a class="report" href="{escape(address)}&amp;page={quote(page)}">{question}</a>'
             for question, address in known["reports"].items()]
    runs = any("cell" in part["classes"] for part in doctree.findall(nodes.container))
    hint = " (Click on the place first, and the form knows its cell.)" if links and runs else ""
    context["body"] += f'<p class="foot">{" · ".join(["Version " + known["version"], *links])}{hint}</p>'


def level_captions(app, pagename, templatename, context, doctree):
    """Sphinx calls the captions of the navigation headings, and does not say of which level."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app):
    SearchEnglish.stem = functools.cache(SearchEnglish.stem)  # each word once, and not at each place: a sixth of the build
    app.connect("doctree-read", fold_solutions)
    app.connect("html-page-context", shown_where_it_is_shared)
    app.connect("html-page-context", foot)
    app.connect("html-page-context", level_captions, priority=900)  # after furo has written them
