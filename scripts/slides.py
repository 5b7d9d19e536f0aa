"""A lesson as a talk of 30 to 45 minutes: python -m scripts.slides 07 writes build/slides/07_….html.

One rule makes the slides, so that nothing is kept up beside the lesson. Of the core (what stands before *Going deeper*)
the title, the drawing, each section, figure, prediction, exercise and the recap are slides. A slide of words shows the
formulas, the sentences that name a new term in bold and the first ones; all other words are the speaker's notes. As far as
TARGET allows, ideas, code and printed numbers follow. A prediction is a vote, and its answer the next slide. The
misconceptions in the notes are those of data/questions.toml and of the lesson's checkers. A cell's metadata
``{"slideshow": {"slide_type": "skip"}}`` leaves it out, and "slide" puts in what else depends on the time.
"""

import argparse
import importlib.resources
import re
import sys
from dataclasses import dataclass, field
from html import escape

import nbformat
from nbformat.v4 import new_markdown_cell

from helpers.checks import exercise
from helpers.page import questions
from helpers.page.course import LESSONS
from scripts import ROOT, edition
from scripts.handout import CALL, DRAWING
from scripts.minutes import parts
from scripts.setup import Stop

FOLDER = ROOT / "build" / "slides"
SLIDE, VOTE, STEP = 1.2, 2.0, 0.4  # minutes: a slide, a question with its answer, one step of a computation
TARGET = 40  # minutes up to which a talk takes in what is not essential
LINES, COLUMNS = 14, 100  # of code or of printed text, which the last row still reads
SENTENCE = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][*\"”)]))(?<!al\.)(?<!vs\.)\s+(?=[“\"*$√(A-ZÀ-Ö])")
OF_THE_PAGE = re.compile(r"\b(cell|cells|folded|slider|run it|Below|below|Hint|Type|mouse|kernel)\b")  # and no talk
ASIDE = ("*In words:*", "**Extend it**", "**Your turn**")  # how a paragraph begins that is only in the notes
PICTURES = {"image/png", "image/svg+xml"}


@dataclass
class Slide:
    """``kind``: title, map, plan, section, idea, code, figure, steps, vote, answer, exercise or recap; "words" is none, and
    has only notes. ``cells``: the notebook cells that are shown; ``notes``: Markdown for the speaker;
    ``minutes``: that it takes; ``optional``: whether a talk may lack it."""

    kind: str
    cells: list
    notes: list = field(default_factory=list)
    minutes: float = SLIDE
    optional: bool = False


# ---------------------------------------------------------------- words


def text(source):
    """Markdown without folds, links and comments."""
    source = re.sub(r"<details>.*?</details>|<!--.*?-->", "", source, flags=re.DOTALL)
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", source).strip()


def sentences(paragraph):
    """Its sentences; what is emphasised, code or in brackets stays in one piece."""
    pieces = []
    for part in SENTENCE.split(" ".join(paragraph.split())):
        last = pieces[-1] if pieces else ""
        whole = all(last.count(sign) % 2 == 0 for sign in "*$`") and last.count("(") <= last.count(")")
        pieces = [*pieces, part] if whole else [*pieces[:-1], f"{last} {part}"]
    return pieces


def is_list(paragraph):
    return re.match(r"([-*]|\d+\.) |\|", paragraph) is not None


def spoken(paragraphs, words=45):
    """What a slide shows of these paragraphs, as Markdown: the first list or table; each formula with the sentence before
    it; and the sentences that name something new and then the first ones, as far as they fit into ``words``."""
    lists = [p for p in paragraphs if is_list(p) and len(p) < 700][:1]
    running = [part for p in paragraphs if not is_list(p) and not p.startswith(ASIDE)
               for part in ([p] if "$$" in p else sentences(p)) if not OF_THE_PAGE.search(part)]
    formulas = {part for i, part in enumerate(running) if any("$$" in one for one in running[i:i + 2])}
    chosen, spare = formulas, words / (2 if lists else 1) - 10 * sum("$$" in part for part in formulas)
    for part in [*(part for part in running if "**" in part), *running]:
        length = len(part.split())
        if part not in chosen and (not chosen or length <= spare):
            chosen.add(part)
            spare -= length
    return "\n\n".join([*(part for part in running if part in chosen), *lists])


def mistakes(names):
    """What the checkers of these exercises recognise, for the notes."""
    misconceptions = [m for name in names for m in exercise(name).misconceptions]
    return ["**Mistakes to expect**", "\n".join(f"- *{m.id}*: {m.hint}" for m in misconceptions)] if misconceptions else []


def beliefs(number):
    """What people believe instead, from the question bank without the inventory, whose answers nobody may be told."""
    rows = [f"- *{q.ask}* Not “{o.text}”: {o.why}" for q in questions.load()[1].values()
            if q.lesson == number and not q.inventory for o in q.options if o.misconception]
    return ["**Misconceptions to expect**", "\n".join(rows)] if rows else []


def within(kind, section, shows, notes=(), **options):
    """A slide within a section, whose name is its small heading. ``shows``: Markdown, or a cell."""
    heading = new_markdown_cell(f'<p class="where {kind}">{section}</p>')
    return Slide(kind, [heading, new_markdown_cell(shows) if isinstance(shows, str) else shows], list(notes), **options)


def of_words(lesson, cell, section):
    """The slides of a cell of words: one for each heading, and one for words without a heading that name something new, have
    a formula or a list, or ask for an answer in writing."""
    for piece in filter(None, map(str.strip, re.split(r"^(?=#+ )", text(cell.source), flags=re.MULTILINE))):
        heading = re.match(r"(#+) (.+)", piece)
        level, name = heading.groups() if heading else ("", "")
        body = [p.strip() for p in re.split(r"\n\s*\n", piece[heading.end():] if heading else piece) if p.strip()]
        asks = next((p for p in body if p.startswith("**In your own words**")), None)
        shows = asks or spoken(body, 45 if name else 30)
        if level == "#":
            yield Slide("title", [new_markdown_cell(f"# {name}\n\n{spoken(body[:1])}")], body + beliefs(lesson.number))
        elif name.startswith("Exercise"):
            yield exercise_slide(lesson, name, body)
        elif name == "Recap" or piece.startswith("**In this lesson**"):
            kind, title = ("recap", name) if name else ("plan", "In this lesson")
            yield Slide(kind, [new_markdown_cell("\n\n".join([f"## {title}", *filter(is_list, body)]))], body)
        elif name == "What people say" or name.startswith("Extend it"):
            yield Slide("words", [], body)
        elif name:
            yield Slide("section", [new_markdown_cell(f"{level[:2]} {name}\n\n{shows}")], body)
        elif re.search(r"\*\*|\$\$", shows) or shows and any(map(is_list, body)):
            yield within("idea", section, shows, body, optional="$$" not in shows)
        else:
            yield Slide("words", [], body)


def exercise_slide(lesson, name, body):
    """What is to be written, its calls and its level, and how the task begins."""
    level = next((p for p in body if re.match("[●○]", p)), "")
    task = next((p for p in body if p != level and not is_list(p)), "")
    title, calls = re.sub(r"`(\w+)\([^`]*\)`", r"`\1`", name), "\n".join(re.findall(r"`(\w+\([^`]*\))`", name))
    shows = [f"## {title}", f"```python\n{calls}\n```", level, " ".join(sentences(task)[:3])]
    functions = [function for function in re.findall(r"`(\w+)", name) if function in lesson.exercises]
    return Slide("exercise", [new_markdown_cell("\n\n".join(shows))], body + mistakes(functions))


# ---------------------------------------------------------------- code and what it shows


def shown(cell):
    """The HTML of a cell's outputs in one string."""
    return "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)


def said(cell, beginning):
    """The plain texts of the outputs that begin so, without this beginning."""
    plain = [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return [words.removeprefix(beginning) for words in plain if words.startswith(beginning)]


def block(language, source):
    """Code or what it printed, as a list of one piece of Markdown; an empty one where the last row could not read it."""
    lines = source.split("\n")
    fits = source and len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    return [f"```{language}\n{source}\n```"] if fits else []


def narrow(source):
    """Code with the comments of its long lines above them, so that its letters are larger."""
    return re.sub(r"^( *)(?=.{70})(\S.*?) {2,}(#.*)$", r"\1\3\n\1\2", source, flags=re.MULTILINE)


def ballot(asks, options, right=None):
    """A question and its options with letters, as HTML, with the right one marked."""
    rows = "\n".join(f'<li{" class=right" if option == right else ""}>{escape(option)}</li>' for option in options)
    return f'<h2>{escape(asks)}</h2>\n<ol class="options{" told" * (right is not None)}">\n{rows}\n</ol>'


def of_code(cell, section, asked):
    """The slides of a cell of code, by what it shows. ``asked``: {key of a prediction: (question, options)}, which grows."""
    printed = block("text", "".join(output.text for output in cell.outputs if output.get("name") == "stdout").rstrip())
    pictures, calls = [o for o in cell.outputs if PICTURES & {*o.get("data", ())}], CALL.findall(cell.source)
    asking, revealing = ([key for call, key in calls if call == which] for which in ("predict", "reveal"))
    for key, question in zip(asking, said(cell, "Predict. "), strict=True):
        asks, *options = question.split("\n  - ")
        asked[key] = asks, options
        yield within("vote", "Vote", ballot(asks, options), [
            "Take a show of hands for each option, let neighbours argue for a minute, and vote again."], minutes=VOTE)
    for key, answer in zip(revealing, said(cell, "Measured: "), strict=True):
        shows = "\n\n".join([ballot(*asked[key], answer.removesuffix(".")), *printed * (key == revealing[0])])
        yield within("answer", "Answer", shows, minutes=0)  # its time is the vote's
    if cell.get("id") == DRAWING:
        yield within("map", "Where we are", only(cell, edition.mapped(cell, f"{section}_")))
    elif pictures:
        yield within("figure", section, only(cell, pictures))
    elif calls:
        return
    elif "flex-wrap" in shown(cell):
        yield steps_slide(section, cell)
    elif not re.search(r"^(check|warm_up|.*= (adopt|adopt_all|yours_or_ours|runs))\(|import ", cell.source, re.MULTILINE):
        code = block("python", narrow(cell.source)) if re.search(r"@|torch\.|np\.", cell.source) else []
        if code or printed:
            yield within("code", section, "\n\n".join(code + printed), optional=True)


def only(cell, outputs):
    """A copy of the cell that shows these outputs, and no code."""
    copy = nbformat.from_dict(dict(cell))
    copy.outputs, copy.metadata = outputs, nbformat.from_dict({"tags": ["slides-output-only"]})
    return copy


def steps_slide(section, cell):
    """The steps of steps.show, which come one after the other; the page decides whether all of them have room."""
    from bs4 import BeautifulSoup

    steps = BeautifulSoup(shown(cell), "html.parser").div.find_all("div", recursive=False)
    html = "".join(f'<div class="step{" fragment" * (i > 0)}">{step}</div>' for i, step in enumerate(steps))
    output = nbformat.v4.new_output("display_data", {"text/html": f'<div class="steps">{html}</div>'})
    return within("steps", section, only(cell, [output]), minutes=max(SLIDE, STEP * len(steps)))


# ---------------------------------------------------------------- the talk


def candidates(number):
    """All slides that a lesson could have, in order; words that are on none go into the notes of the one before."""
    lesson, possible, section, asked = LESSONS[number], [], number, {}
    for cell in parts(nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4))[0]:
        wish = cell.metadata.get("slideshow", {}).get("slide_type")
        if wish == "skip" or "remove-cell" in cell.metadata.get("tags", ()):
            continue
        if possible and possible[-1].kind == "figure" and cell.source.startswith("*In words:* "):
            in_words = text(cell.source).split("\n\n")[0].removeprefix("*In words:* ")
            possible[-1].cells[1].metadata["alt"] = in_words.replace("*", "")
        for slide in of_code(cell, section, asked) if cell.cell_type == "code" else of_words(lesson, cell, section):
            slide.optional = slide.optional and wish != "slide"
            if slide.kind == "section":
                section = re.match(r"#+ (.+)", slide.cells[0].source)[1]
            if slide.kind != "words":
                possible.append(slide)
                continue
            possible[-1].notes += slide.notes
    return joined(possible)


def joined(possible):
    """The same, with short slides in one: a heading without words takes what follows, another heading too, and words take
    words and code for which there is room below them."""
    def lines(slide):
        """About how many lines of 70 letters its words and its code take; a part of a display formula takes three."""
        shown = re.sub(r"^(```.*|<p class.*|)\n", "", "\n".join(cell.source for cell in slide.cells), flags=re.MULTILINE)
        return sum(3 + 3 * line.count("\\qquad") if "$$" in line else 1 + len(line) // 70 for line in shown.split("\n"))

    chosen = possible[:1]
    for slide in possible[1:]:
        last = chosen[-1]
        bare = re.fullmatch("##+ .+", last.cells[-1].source.strip())  # a heading and no words below it
        below = last.kind in ("section", "idea") and slide.kind in ("idea", "code")
        if bare and slide.kind in ("section", "figure", "steps") or below and (bare or lines(last) + lines(slide) <= LINES):
            last.cells += slide.cells if slide.kind == "section" else slide.cells[1:]
            last.notes += slide.notes
            last.minutes += slide.minutes
            last.kind = slide.kind if bare else last.kind
        else:
            chosen.append(slide)
    return chosen


def slides(number):
    """The slides of a lesson, in order: a list of ``Slide`` within TARGET, if its essential ones are. The notes of one that
    is left out are still said."""
    possible, chosen = candidates(number), []
    spare = TARGET - minutes(slide for slide in possible if not slide.optional)
    for slide in possible:
        if slide.optional and slide.minutes > spare:
            chosen[-1].notes += slide.notes
            continue
        spare -= slide.minutes * slide.optional
        chosen.append(slide)
    return chosen


def minutes(some):
    return sum(slide.minutes for slide in some)


def talk(number):
    """The talk as a notebook: the cells that are shown, with ``slideshow.slide_type``, and the notes behind each slide."""
    book = nbformat.read(ROOT / "notebooks" / LESSONS[number].file, as_version=4)
    cells = []
    for slide in slides(number):
        first = "slide" if slide.kind in ("title", "section", "recap") else "subslide"
        for i, cell in enumerate(slide.cells):
            cell.metadata["slideshow"] = {"slide_type": "-" if i else first}
            cell.metadata.setdefault("tags", []).append(f"slide-{slide.kind}")
        notes = new_markdown_cell("\n\n".join(slide.notes), metadata={"slideshow": {"slide_type": "notes"}})
        cells += [*slide.cells, *[notes] * bool(slide.notes)]
    for i, cell in enumerate(cells):
        cell["id"] = f"slide-{i}"
    book.cells, book.metadata["title"] = cells, f"{number} · {LESSONS[number].title}"
    return book


def carried(package, path):
    """The text of a file that an installed package carries, as it may be written within a page."""
    content = importlib.resources.files(package).joinpath(path).read_text(encoding="utf-8")
    return re.sub(r"</(?=script|style)", r"<\\/", content, flags=re.IGNORECASE)


def page(number):
    """The talk as one page of HTML, with reveal.js and MathJax within."""
    from jinja2 import DictLoader
    from nbconvert import SlidesExporter
    from traitlets.config import Config

    config = Config({"TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {"slides-output-only"}},
                     "SlidesExporter": {"exclude_input_prompt": True, "exclude_output_prompt": True}})
    template = (ROOT / "scripts" / "slides.html").read_text(encoding="utf-8")
    exporter = SlidesExporter(config=config, extra_loaders=[DictLoader({"talk": template})], template_file="talk")
    exporter.environment.globals["carried"] = carried
    return exporter.from_notebook_node(talk(number))[0]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="make slides", description=__doc__.split("\n")[0])
    parser.add_argument("lessons", nargs="*", metavar="07", help="numbers of lessons; all from 01 on if there is none")
    options = parser.parse_args(arguments)
    wrong = [number for number in options.lessons if number not in LESSONS or number == "00"]
    if wrong:
        raise Stop(f"There is no talk of {', '.join(wrong)}: say a lesson's number, as in make slides NB=07.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for number in options.lessons or [n for n in LESSONS if n != "00"]:
        made = slides(number)
        target = (FOLDER / LESSONS[number].file).with_suffix(".html")
        target.write_text(page(number), encoding="utf-8")
        votes = sum(slide.kind == "vote" for slide in made)
        print(f"{target.relative_to(ROOT)}: {len(made)} slides with {votes} votes, about {minutes(made):.0f} minutes")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stop as problem:
        sys.exit(str(problem))
