"""A lesson as a talk of 30 to 45 minutes: python -m scripts.slides 07 writes build/slides/07_….html.

One rule makes the slides, so that nothing is kept up beside the lesson. Of the core (what stands before *Going deeper*)
the title, the drawing, each section, formula, figure, prediction, exercise, the claims and the recap are slides. A slide of
words shows the sentences that name a new term in bold, failing that the first, and its last sentence if that asks
something; all other words are the speaker's notes. As far as TARGET allows, tables, printed numbers and visible code follow.
A prediction is a vote, and its answer the next slide. The misconceptions in the notes are those of data/questions.toml and
of the lesson's checkers. A cell's metadata ``{"slideshow": {"slide_type": "skip"}}`` leaves it out, and "slide" puts it in.
"""

import argparse
import importlib.resources
import re
import sys
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell

from helpers.checks import exercise
from helpers.page import questions
from helpers.page.course import LESSONS
from scripts import edition
from scripts.minutes import parts
from scripts.setup import Stop

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "slides"
SLIDE, VOTE, STEP = 1.2, 2.0, 0.4  # minutes: a slide, a question with its answer, one step of a computation
TARGET = 40  # minutes up to which a talk takes in what is not essential
LINES, COLUMNS = 14, 100  # of code or of printed text, which the last row still reads
SENTENCE = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][*\"”)]))(?<!al\.)(?<!vs\.)\s+(?=[“\"*$√(A-ZÀ-Ö])")
OF_THE_PAGE = re.compile(r"\b(cell|cells|folded|slider|run it|Below|below|Hint|Type|mouse|kernel)\b")  # and no talk
WORDS, FOLLOWS = {"section", "idea"}, {"idea", "formula", "code", "numbers"}  # kinds: words, and what may stand below them
ASIDE = ("*In words:*", "**Extend it**", "**Your turn**")  # how a paragraph begins that is only in the notes
MARKS = {"formula": "formula", "vote": "vote", "answer": "vote"}  # how the small heading of such a slide looks
PICTURES = {"image/png", "image/svg+xml"}


@dataclass
class Slide:
    """``cells``: the notebook cells that are shown; ``notes``: Markdown for the speaker; ``rank``: 0 for what no talk
    lacks, and 2 is left out before 1; ``at``: the number of the lesson's cell that it comes from;
    ``of``: how many slides are joined in it."""

    kind: str
    cells: list
    notes: list = field(default_factory=list)
    rank: int = 0
    at: int = 0
    of: int = 1

    @property
    def minutes(self):
        if self.kind == "answer":
            return 0.0  # is in the vote's
        if self.kind == "steps":
            return max(SLIDE, STEP * shown(self.cells[-1]).count("<!--step-->"))
        return VOTE if self.kind == "vote" else SLIDE * self.of


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
    """What a slide shows of these paragraphs, as Markdown: the sentences that name something new, the first, a question at
    the end, and as many more as bring it to ``words``; and one list or table."""
    lists = [p for p in paragraphs if is_list(p) and len(p) < 700][:1]
    running = [s for p in paragraphs if not is_list(p) and "$$" not in p for s in sentences(p) if not OF_THE_PAGE.search(s)]
    new = [i for i, sentence in enumerate(running) if "**" in sentence]
    new = [running[j] for i in new for j in ((i, i - 1) if i and len(running[i].split()) < 8 else (i,))]
    question = [s for s in running[-1:] if s.endswith("?")]
    chosen, spare = [], words / 2 if lists else words
    for sentence in [*new, *running[:1], *question, *running[1:] * (not new)]:
        length = len(sentence.split())
        if sentence not in chosen and (not chosen or length <= spare):
            chosen.append(sentence)
            spare -= length
    return "\n\n".join([*(s for s in running if s in chosen), *lists])


def shown(cell):
    """The HTML of a cell's outputs in one string."""
    return "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)


def plain_texts(cell, beginning):
    """The plain texts of the outputs that begin so, without this beginning."""
    plain = [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return [words.removeprefix(beginning) for words in plain if words.startswith(beginning)]


def printed(cell):
    return "".join(output.text for output in cell.outputs if output.get("name") == "stdout").rstrip()


def fits(words):
    lines = words.split("\n")
    return len(lines) <= LINES and max(map(len, lines)) <= COLUMNS


def mistakes(names):
    """What the checkers of these exercises recognise, for the notes."""
    misconceptions = [m for name in names for m in exercise(name).misconceptions]
    return ["**Mistakes to expect**", "\n".join(f"- *{m.id}*: {m.hint}" for m in misconceptions)] if misconceptions else []


def beliefs(number):
    """What people believe instead, from the question bank without the inventory, whose answers nobody may be told."""
    rows = [f"- *{q.ask}* Not “{o.text}”: {o.why}" for q in questions.load()[1].values()
            if q.lesson == number and not q.inventory for o in q.options if o.misconception]
    return ["**Misconceptions to expect**", "\n".join(rows)] if rows else []


def slides(number):
    """The slides of a lesson, in order: a list of ``Slide`` within TARGET, if its essential ones are."""
    lesson = LESSONS[number]
    book = nbformat.read(ROOT / "notebooks" / lesson.file, as_version=4)
    chosen = candidates(lesson, parts(book)[0])
    spare = TARGET - sum(slide.minutes for slide in chosen if not slide.rank)
    for slide in sorted([slide for slide in chosen if slide.rank], key=lambda slide: slide.rank):
        if slide.minutes <= spare:
            spare -= slide.minutes
        else:  # its notes are still said
            before = chosen[chosen.index(slide) - 1]
            before.notes += slide.notes
            chosen.remove(slide)
    return chosen


def candidates(lesson, cells):
    """All slides that a lesson could have, in order; words that are on none go into the notes of the one before."""
    possible, section, asked = [], "", []
    for at, cell in enumerate(cells):
        if possible and possible[-1].kind == "figure" and cell.source.startswith("*In words:* "):
            described = text(cell.source).split("\n\n")[0].removeprefix("*In words:* ")
            possible[-1].cells[1].metadata["alt"] = described.replace("*", "")
        wish = cell.metadata.get("slideshow", {}).get("slide_type")
        if wish == "skip" or "remove-cell" in cell.metadata.get("tags", ()):
            continue
        if cell.cell_type == "code":
            new = of_code(cell, section, asked)
        else:
            new = of_words(lesson, cell, section)
        for slide in new:
            slide.at, slide.rank = at, 0 if wish == "slide" else slide.rank
            if slide.kind == "section":
                section = re.match(r"#+ (.+)", slide.cells[0].source)[1]
            if slide.kind != "words":
                possible.append(slide)
                continue
            if possible[-1].kind in ("figure", "table") and len(possible[-1].cells) == 2:
                possible[-1].cells += caption(slide.notes)
            possible[-1].notes += slide.notes
    return joined(possible)


def joined(possible):
    """The same with short slides of one section in one: a heading takes what follows, words take words and code, a figure
    a short idea in the place of its caption. A line or two of code that nothing takes are left out."""
    chosen = possible[:1]
    for slide in possible[1:]:
        last = chosen[-1]
        bare = last.kind == "section" and "\n" not in last.cells[0].source.strip()
        below = last.kind in WORDS and last.of == 1 and slide.kind in FOLLOWS and lines(last) + lines(slide) <= LINES
        if below or bare and slide.kind in FOLLOWS | {"figure", "steps"}:
            last.cells += [cell for cell in slide.cells if not cell.source.startswith('<p class="where')]
            last.notes, last.of = last.notes + slide.notes, last.of + 1
            last.kind = slide.kind if bare else last.kind
        elif last.kind == "figure" and len(last.cells) == 2 and slide.kind == "idea" and lines(slide) < 4:
            last.cells.append(captioned(slide.cells[1].source))
            last.notes, last.of = last.notes + slide.notes, last.of + 1
        elif slide.rank == 2 and slide.kind in ("code", "numbers") and lines(slide) < 10:
            last.notes += slide.notes
        else:
            chosen.append(slide)
    return chosen


def lines(slide):
    """About how many lines of 70 letters its words and its code take."""
    return sum(1 + len(line) // 70 for cell in slide.cells for line in cell.source.split("\n")
               if line and not line.startswith(("```", "<p class")))


def within(kind, section, shows, notes=(), rank=0):
    """A slide within a section, whose name is its small heading. ``shows``: Markdown, or a cell."""
    heading = new_markdown_cell(f'<p class="where {MARKS.get(kind, "")}">{section}</p>')
    return Slide(kind, [heading, new_markdown_cell(shows) if isinstance(shows, str) else shows], list(notes), rank)


def captioned(words):
    """A cell that stands below a figure."""
    return new_markdown_cell(f'<div class="caption">\n\n{words}\n\n</div>')


def caption(paragraphs):
    """What a figure shows, in one sentence: the first behind its description, if it is short."""
    first = next((p for p in paragraphs if not p.startswith(ASIDE) and not is_list(p)), "")
    one, two = (" ".join(sentences(first)[:n]) for n in (1, 2))
    words = two if len(two) < 150 else one
    good = 0 < len(words) < 170 and not OF_THE_PAGE.search(words)
    return [captioned(words)] if good else []


def of_words(lesson, cell, section):
    """The slides of a cell of words: one for each heading, display formula and idea in it."""
    for piece in filter(None, map(str.strip, re.split(r"^(?=#+ )", text(cell.source), flags=re.MULTILINE))):
        heading = re.match(r"(#+) (.+)", piece)
        level, name = heading.groups() if heading else ("", "")
        body = [p.strip() for p in re.split(r"\n\s*\n", piece[heading.end():] if heading else piece) if p.strip()]
        if level == "#":
            yield Slide("title", [new_markdown_cell(f"# {name}\n\n{spoken(body[:1])}")], body + beliefs(lesson.number))
        elif name.startswith("Exercise"):
            yield exercise_slide(lesson, name, body)
        elif name == "Recap":
            yield Slide("recap", [new_markdown_cell("\n\n".join(["## Recap", *filter(is_list, body)]))], body)
        elif name == "What people say" or name.startswith("Extend it"):
            yield Slide("words", [], body)
        elif name:
            yield from section_slides(level, name, body)
        elif re.search(r"^\*\*In this lesson\*\*", piece):
            aims = [p for p in body if is_list(p)][:1]
            yield Slide("plan", [new_markdown_cell("\n\n".join(["## In this lesson", *aims]))], body)
        elif "$$" in piece:
            yield from formula_slides(section, body)
        else:
            yield idea_slide(section, body)


def exercise_slide(lesson, name, body):
    """What is to be written, its calls and its level, and of the task the first sentence and what is asked."""
    level = next((p for p in body if re.match("[●○]", p)), "")
    task = next((p for p in body if not re.match("[●○]", p) and not is_list(p)), "")
    title = re.sub(r"`(\w+)\([^`]*\)`", r"`\1`", name)
    calls = "\n".join(re.findall(r"`(\w+\([^`]*\))`", name))
    first, *others = sentences(task) or [""]
    asks = [s for s in others if re.match("Return|Compute|Count|Write|Give", s)][:1]
    words = " ".join([first, *asks] if not re.match("Return|Write", first) else [first])
    functions = [function for function in re.findall(r"`(\w+)", name) if function in lesson.exercises]
    return Slide("exercise", [new_markdown_cell(f"## {title}\n\n```python\n{calls}\n```\n\n{level}\n\n{words}")],
                 body + mistakes(functions))


def section_slides(level, name, body):
    """The slide of a heading, and those of its display formulas."""
    formulas = [p for p in body if "$$" in p]
    first = body[:body.index(formulas[0])] if formulas else body
    if formulas and len(before := sentences(" ".join(first))) > 1 and not any(map(is_list, first)):
        first = [" ".join(before[:-1])]  # the last one is on the formula's slide
    yield Slide("section", [new_markdown_cell(f"{level[:2]} {name}\n\n{spoken(first)}")], body)
    yield from formula_slides(name, body)


def idea_slide(section, body):
    """Words without a heading: a slide where they name something new or list something."""
    asked = next((p for p in body if p.startswith("**In your own words**")), "")
    lists = any(map(is_list, body))
    shows = asked or spoken([p for p in body if not p.startswith(ASIDE)], 30)
    tells = asked or "**" in shows or lists and shows
    return within("idea", section, shows, body, rank=1) if tells else Slide("words", [], body)


def formula_slides(section, body):
    """One for each display formula, with the sentence before it and the first behind it."""
    for i, paragraph in enumerate(body):
        if "$$" in paragraph:
            before = sentences(body[i - 1])[-1:] if i and "$$" not in body[i - 1] and not is_list(body[i - 1]) else []
            after = sentences(body[i + 1])[:1] if i + 1 < len(body) and not is_list(body[i + 1]) else []
            lines = [*before, paragraph, *(s for s in after if len(s) > 40)]
            lines = [line for line in lines if line is paragraph or not OF_THE_PAGE.search(line)]
            yield within("formula", section, "\n\n".join(lines), body[i:])


def ballot(asks, options, right=None):
    """A question and its options with letters, as HTML, with the right one marked."""
    rows = "\n".join(f'<li{" class=right" if option == right else ""}>{escape(option)}</li>' for option in options)
    return f'<h2>{escape(asks)}</h2>\n<ol class="options{" told" * (right is not None)}">\n{rows}\n</ol>'


def of_code(cell, section, asked):
    """The slides of a cell of code, by what it shows. ``asked``: [(question, options)], the newest first, which grows."""
    hidden = cell.metadata.get("jupyter", {}).get("source_hidden")
    html, numbers, source = shown(cell), printed(cell), cell.source
    pictures = [o for o in cell.outputs if PICTURES & {*o.get("data", ())}]
    for question in plain_texts(cell, "Predict. "):
        asks, *options = question.split("\n  - ")
        asked[:0] = [(asks, options)]
        yield within("vote", "Vote", ballot(asks, options), [
            "Take a show of hands for each option, let neighbours argue for a minute, and vote again."])
    as_printed = f"\n\n```text\n{numbers}\n```" if numbers and fits(numbers) else ""
    answers = plain_texts(cell, "Measured: ")
    for i, answer in enumerate(answers):
        right = re.sub(r"\.( You predicted.*)?$", "", answer)
        asks, options = next((pair for pair in asked if right in pair[1]), (right, []))
        yield within("answer", "Answer", ballot(asks, options, right) + ("" if i else as_printed))
    if (answers and not pictures) or plain_texts(cell, "Predict. "):
        return
    if cell.get("id") == "map":
        yield within("map", "Where we are", only(mapped(cell), html=True))
    elif pictures:
        yield within("figure", section, only(cell))
    elif "flex-wrap" in html:
        yield within("steps", section, stacked(cell))
    elif re.search(r"^(check|warm_up|.*= (adopt|adopt_all|yours_or_ours|runs))\(|import ", source, re.MULTILINE):
        return
    elif "<table" in html and fits("\n".join(plain_texts(cell, ""))):
        yield within("table", section, only(cell, html=True), rank=2)
    elif not hidden and fits(source) and not numbers.count("\n") > 6 and re.search(r"@|torch\.|np\.", source):
        yield within("code", section, f"```python\n{narrow(source)}\n```{as_printed}", rank=2)
    elif "\n" in numbers and as_printed:
        yield within("numbers", section, as_printed.strip(), rank=2)


def narrow(source):
    """Code with the comments of its long lines above them, so that its letters are larger."""
    return re.sub(r"^( *)(?=.{70})(\S.*?) {2,}(#.*)$", r"\1\3\n\1\2", source, flags=re.MULTILINE)


def mapped(cell):
    """The cell that draws where a lesson is in the whole model, as HTML that says in words what it shows."""
    copy = nbformat.from_dict(dict(cell))
    copy.outputs = edition.mapped(cell, re.search(r'map\("(\d\d)"\)', cell.source)[1])
    return copy


def only(cell, html=False):
    """The cell with its code folded away, and of its outputs the pictures, or what is HTML."""
    copy = nbformat.from_dict(dict(cell))
    wanted = {"text/html"} if html else PICTURES
    copy.outputs = [o for o in copy.outputs if wanted & {*o.get("data", ())}]
    copy.metadata = nbformat.from_dict({"tags": ["slides-output-only"]})
    return copy


def stacked(cell):
    """The steps of steps.show, which come one after the other; the page decides whether all of them have room."""
    from bs4 import BeautifulSoup

    copy = only(cell, html=True)
    for output in copy.outputs:
        steps = BeautifulSoup(output.data["text/html"], "html.parser").div.find_all("div", recursive=False)
        output.data["text/html"] = '<div class="steps">' + "".join(
            f'<!--step--><div class="step{" fragment" * (i > 0)}">{step}</div>' for i, step in enumerate(steps)) + "</div>"
    return copy


def minutes(slides_of_it):
    return sum(slide.minutes for slide in slides_of_it)


def talk(number):
    """The talk as a notebook: the cells that are shown, with ``slideshow.slide_type``, and the notes behind each slide."""
    book = nbformat.read(ROOT / "notebooks" / LESSONS[number].file, as_version=4)
    cells = []
    for slide in slides(number):
        section = slide.kind in ("title", "section", "recap")
        for i, cell in enumerate(slide.cells):
            cell.metadata["slideshow"] = {"slide_type": "-" if i else "slide" if section else "subslide"}
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
