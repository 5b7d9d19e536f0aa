"""You are here: one drawing of the whole model, from the learner's text to the next word, for every lesson.

The same drawing each time, in two arrangements (wide, and narrow for a telephone): today's part is lit, what earlier
lessons built is filled, the rest is grey. What is lit when is in ``data/map.toml``; everything else follows from it.
"""

import textwrap
from html import escape

from helpers.page.sheet import MAP, Sheet, dark

LESSONS, PARTS = MAP["lessons"], MAP["parts"]
ENCODER_BESIDE, ENCODER_ONLY = ("03", "10"), ("13",)
INSIDE = ("norm", "qkv", "scores", "scale", "mask", "softmax", "sum", "heads", "add", "norm", "mlp", "add")
HALF = {"norm": 9, "add": 12}  # of the width of a part, where it is not 25


def states(number):
    """{part: "lit", "built" or "grey"} in lesson ``number``, "00" to "20". Raises KeyError for another."""
    today = LESSONS[number]["lit"].split()
    before = {part for other, lesson in LESSONS.items() if other < number for part in lesson["lit"].split()}
    known = {part: "lit" if part in today else "built" if part in before else "grey" for part in PARTS}
    if set(today) & {"cross", *INSIDE}:
        known["block"] = "lit"
    return known


def outer(number):
    """The parts that lesson ``number`` shows, from the text on; what a block consists of is ``inner(number)``."""
    if "way" in LESSONS[number]:
        return tuple(LESSONS[number]["way"].split())
    end = ("pool", "search") if number in ENCODER_ONLY else ("unembed", "next", "word")
    parts = ("text", "tokens", "embeddings", "positions", "block", *end)
    return tuple(part for part in parts if part != LESSONS[number].get("without"))


def inner(number):
    """The parts of a block in the drawing of lesson ``number``, in the order in which they compute."""
    return INSIDE[:9] + ("norm", "cross", "add") + INSIDE[9:] if number in ENCODER_BESIDE else INSIDE


def shape(part, number):
    """What leaves ``part``, as lessons write it; before lesson 07 attention has one head."""
    return PARTS[part].get("shape", "").replace("{h}", "h, " if number >= "07" else "")


def path(number):
    """One line for consoles: the way from the text to the next word, with today's part in [brackets]."""
    known = states(number)

    def name(part):
        said = PARTS[part]["label"]
        return f"[{said}]" if known[part] == "lit" else said

    inside = " → ".join(name(part) for part in inner(number))
    beside = f" + {name('encoder')}" if number in ENCODER_BESIDE else ""
    return " → ".join(f"{name(part)} ({inside}){beside}" if part == "block" else name(part) for part in outer(number))


def description(number):
    """The drawing of lesson ``number`` in sentences, for readers who hear it."""
    known, shown = states(number), dict.fromkeys([*outer(number), *inner(number)])
    if number in ENCODER_BESIDE:
        shown["encoder"] = None
    by = {state: [PARTS[part]["spoken"] for part in shown if known[part] == state] for state in ("lit", "built", "grey")}
    way = ", ".join(PARTS[part]["spoken"] for part in outer(number))
    inside = ", ".join(PARTS[part]["spoken"] for part in inner(number))
    return (f"The whole model, from left to right: {way}. Inside each block: {inside}. Today: {', '.join(by['lit'])}. "
            f"Built before: {', '.join(by['built']) or 'nothing yet'}. "
            f"Still to come: {', '.join(by['grey']) or 'nothing'}.")


WRITTEN = (["the keys to", "the cabinet ▏"], [("are", 1), ("wait", 0.43), ("is", 0.02)])  # as lesson 11's grammar has it
TRANSLATED = (["la ▏"], [("zone", 1), ("la", 0.08), ("les", 0.03)])


def spread(widths, start, end):
    """Where things of these widths begin when they fill the way from start to end with equal gaps; and the gap."""
    gap = (end - start - sum(widths)) / (len(widths) - 1)
    return [start + sum(widths[:i]) + gap * i for i in range(len(widths))], gap


def blank(number, font):
    close = (", ", "," if number in ENCODER_BESIDE and font == 14 else ", ")
    labels = {part: (said["label"], shape(part, number).replace(*close)) for part, said in PARTS.items()}
    return Sheet(states(number), labels, font, LESSONS[number].get("mark", (None, None)), f"map-{number}", font < 14)


def wide(number):
    """A sheet of 840 wide: the model in one row, the inside of a block in another. Returns it and its height."""
    sheet, beside = blank(number, 14), number in ENCODER_BESIDE
    sheet.text(22, 30, LESSONS[number]["said"], bold=True, start=True, size=15)
    sheet.legend(582, 30)
    parts = [part for part in outer(number) if part != "word"]
    top = 164 if beside else 80 if "next" in parts else 58
    middle = wide_model(sheet, parts, top, *(TRANSLATED if beside else WRITTEN))
    if beside:
        x = middle["block"]
        sheet.box("source", middle["embeddings"] - 66, 80, 132, 54, ["the european", "economic area"])
        sheet.arrow(f"rM{middle['embeddings'] + 74} 107H{x - 35}")
        sheet.part("encoder", x - 27, 80, 54, aside=True)
        sheet.arrow(f"dM{x} 139V{top - 6}")
    wide_block(sheet, inner(number), top + 124, middle["block"])
    return sheet, top + 292


def wide_model(sheet, parts, top, text, candidates):
    """The model in a row at ``top``, from the text to the next word, and the way back. Returns {part: x of its middle}."""
    widths = [{"text": 112, "next": 112}.get(part, 54) for part in parts]
    xs, gap = spread(widths, 22, 818)
    middle = {part: x + w / 2 for part, x, w in zip(parts, xs, widths, strict=True)}
    for part, x, w in zip(parts, xs, widths, strict=True):
        if part != parts[0]:
            sheet.arrow(f"rM{x - gap + 8} {top + 27}h{gap - 16}")
        if part in ("text", "next"):
            sheet.box(part, x, top, w, 54, text if part == "text" else candidates)
        else:
            sheet.part(part, x, top, 54)
    if "next" in parts:  # the way back
        sheet.arrow(f"dM{middle['next']} {top - 7}V56H{middle['text']}v{top - 64}")
        sheet.chip(420, 56, candidates[0][0])
    return middle


def wide_block(sheet, row, y, pointer):
    """The inside of a block in a row, in a room whose upper edge ``y`` points at the block at x = ``pointer``."""
    sheet.text(22, y - 10, "inside a block", "quiet", start=True)
    tip = f"H{pointer - 10}l10-10 10 10"
    sheet.room(f"M31 {y}{tip}H809a9 9 0 0 1 9 9v134a9 9 0 0 1-9 9H31a9 9 0 0 1-9-9v-134a9 9 0 0 1 9-9z")
    widths = [2 * HALF.get(part, 25) for part in row]
    xs, gap = spread(widths, 53, 790)
    level, tight = y + 74, gap < 20
    left, right = xs[1] - gap * 0.5, xs[8] - gap * 0.5
    sheet.room(f"M{left + 8} {y + 38}H{right - 8}q8 0 8 8v90q0 8-8 8H{left + 8}q-8 0-8-8v-90q0-8 8-8z", "page")
    sheet.text((left + right) / 2, y + 32, "attention", "quiet")
    for i, (part, x, w) in enumerate(zip(row, xs, widths, strict=True)):
        before = 24 if i == 0 else x - gap + 4
        sheet.arrow(f"rM{before} {level}H{x - 5}")
        if part == "norm":
            start = x - gap / 2 - 2
        if part == "add":
            sheet.arrow(f"dM{start} {level}V{y + 14}H{x + 12}V{level - 16}", sheet.known["add"] + "-edge")
        sheet.part(part, x + w / 2 - 25, level - 25, 50, quiet=tight and part == "norm" and i > 0)
    sheet.arrow(f"rM{xs[-1] + 28} {level}H815")


def turns(row, n):
    """Where the n parts of a row are, from 54 to 306 and in every second row back; of four, the first ones."""
    xs = [54, 180, 306] if n == 3 else [54, 138, 222, 306]
    return xs[::-1] if row % 2 else xs


def narrow(number):
    """A sheet of 360 wide, for a telephone: the same in rows of four, there and back. Returns it and its height."""
    sheet, beside = blank(number, 12.5), number in ENCODER_BESIDE
    text, candidates = TRANSLATED if beside else (["the keys", "to the", "cabinet ▏"], WRITTEN[1])
    said = textwrap.wrap(LESSONS[number]["said"], 36)
    for i, some in enumerate(said):
        sheet.text(14, 27 + 18 * i, some, bold=True, start=True, size=14)
    sheet.legend(14, 33 + 18 * len(said))
    y = 52 + 18 * len(said)
    narrow_model(sheet, outer(number), y, text, candidates)
    y += 214
    if beside:
        sheet.box("source", 20, y, 124, 50, ["the european", "economic area"])
        sheet.arrow(f"rM150 {y + 25}H191")
        sheet.part("encoder", 197, y, 50)
        sheet.arrow(f"dM222 {y + 86}V{y + 102}")
        sheet.line(f"M306 {y - 17}V{y + 100}")
        y += 106
    row = inner(number)
    rows = [row[i:i + 4] for i in range(0, len(row), 4)]
    narrow_block(sheet, rows, y)
    return sheet, y + 22 + 108 * len(rows)


def narrow_model(sheet, parts, y, text, candidates):
    """The model in two rows from ``y`` on, there and back, and the next word on its way up to the text."""
    begin = parts.index("block")
    if "word" in parts:
        sheet.arrow(f"uM54 {y + 116}V{y + 75}")
    for row, some in enumerate((parts[:begin], parts[begin:])):
        top, before = y + 108 * row, None
        for x, part in zip(turns(row, len(some)), some, strict=False):
            half = 39 if part in ("text", "next") else 25
            if before:
                sheet.arrow(f"{'rl'[row]}M{before} {top + 25}H{x + (half + 5) * (1 if row else -1)}")
            if half == 39:
                sheet.box(part, x - 38, top, 78, 50, text if part == "text" else candidates)
            elif part == "word":
                sheet.chip(x, top + 25, candidates[0][0])
            else:
                sheet.part(part, x - 25, top, 50)
            before = x + (half + 5) * (-1 if row else 1)
    sheet.arrow(f"dM306 {y + 88}V{y + 103}")  # below its box the block is opened


def narrow_block(sheet, rows, y):
    """The inside of a block in rows of four, there and back, in a room whose upper edge ``y`` points at the block."""
    deep = 108 * len(rows) - 6
    sheet.room(f"M14 {y}H296l10-10 10 10H346a9 9 0 0 1 9 9v{deep}a9 9 0 0 1-9 9H14a9 9 0 0 1-9-9v{-deep}a9 9 0 0 1 9-9z")
    y += 28
    sheet.room(f"M98 {y - 9}H349V{y + 196}H24V{y + 98}H98z", "page")
    sheet.text(315, y - 14, "attention", "quiet")
    sheet.text(100, y - 14, "inside a block", "quiet", start=True)
    sheet.arrow(f"rM7 {y + 25}H38")
    way, start = sheet.known["add"] + "-edge", f"M11 {y + 25}"
    for i, some in enumerate(rows):
        level, back = y + 108 * i + 25, -1 if i % 2 else 1
        for x, part, before in zip(turns(i, 4), some, (None, *some), strict=False):
            half = HALF.get(part, 25)
            if before:
                sheet.arrow(f"{'rl'[i % 2]}M{x - back * (79 - HALF.get(before, 25))} {level}H{x - back * (half + 5)}")
            elif i:
                sheet.arrow(f"dM{x} {level - 44}V{level - (17 if part == 'add' else 30)}")
            if part == "norm" and i:
                start = f"M{x - 24 * back} {level}" if before else f"M{x} {level - 40}"
            if part == "add":
                sheet.arrow(f"d{start}V{level - 34}H{x}V{level - 16}" if before else f"r{start}V{level}H{x - 17}", way)
            sheet.part(part, x - 25, level - 25, 50)
    sheet.line(f"M{x + 18 * back} {level}h{12 * back}")


STYLE = """.you-are-here{container-type:inline-size;max-width:880px;margin:4px 0;color-scheme:light}
.you-are-here svg{display:block;width:100%;height:auto}
.you-are-here svg+svg{display:none}
@container (max-width:689px){.you-are-here svg{display:none}
.you-are-here svg+svg{display:block;max-width:480px;margin:auto}}
[data-theme=auto] .you-are-here{color-scheme:light dark}
[data-theme=dark] .you-are-here,[data-jp-theme-light=false] .you-are-here{color-scheme:dark}
"""


def svg(number):
    """The wide drawing of lesson ``number`` as a picture of its own, in light colours: a notebook and GitHub show it.

    Raises KeyError.
    """
    sheet, height = wide(number)
    return sheet.svg(840, height, 'width="840"')


def html(number):
    """The drawing of lesson ``number`` for a page: both arrangements, of which the page shows the one that fits.

    Where <style> is taken out, as GitHub does, the wide one is left, in light colours. Raises KeyError.
    """
    made, said = "", escape(f"You are here: lesson {number}. {description(number)}")  # as <title> it would come up as a hint
    for arranged, width, shown in (wide, 840, 'width="100%"'), (narrow, 360, 'width="0" height="0" display="none"'):
        sheet, height = arranged(number)
        name = f"map-{number}-{arranged.__name__}"
        made += sheet.svg(width, height, f'id="{name}" {shown} role="img" aria-label="{said}"')
    return f'<div class="you-are-here"><style>{STYLE}{dark(".you-are-here")}</style>{made}</div>'
