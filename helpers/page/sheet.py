"""How the drawing "you are here" and the lessons' small pictures are drawn: colours, strokes, parts, arrows.

What is drawn is in ``data/map.toml``, whose first lines say how a picture is written.
"""

import re
from html import escape

from helpers.page import course

MAP = course.tomllib.loads((course.FILE.parent / "map.toml").read_text(encoding="utf-8"))
ORANGE, BLUE = "#E69F00", "#0072B2"  # as in helpers.plots, which is not imported because it brings matplotlib along
COLOURS = {  # name: (on a light page, on a dark page)
    "page": ("#ffffff", "#15191e"), "room": ("#f4f6f8", "#1d232a"), "edge": ("#d5dade", "#39424c"),
    "text": ("#1a1a1a", "#e9ecef"), "quiet": ("#5f6871", "#a3adb7"),
    "lit": (ORANGE, ORANGE), "lit-edge": ("#5c3a00", "#ffe9bd"), "lit-ink": ("#2b1a00", "#1c1200"),
    "built": ("#dcebf5", "#163a55"), "built-edge": (BLUE, "#56B4E9"), "built-ink": (BLUE, "#8fd0f7"),
    "grey": ("#ffffff", "#15191e"), "grey-edge": ("#a9b1b8", "#5c6670"), "grey-ink": ("#b4bbc2", "#59636d")}
SAID = {"lit": "lit-ink", "built": "text", "grey": "quiet"}  # the colour of what is written in a frame
EDGES = {"lit": 'stroke-width="3"', "built": 'stroke-width="1.6"', "grey": 'stroke-width="1.2" stroke-dasharray="4 3"'}
FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"


def paint(name):
    return COLOURS[name][0]


def dark(within):
    """CSS that gives each colour inside of ``within`` its dark form, where its color-scheme is dark."""
    return "".join(f"{within} [{use}='{light}']{{{use}:light-dark({light},{dark})}}"
                   for name, (light, dark) in COLOURS.items()
                   for use in (["color", "fill"] if "ink" in name else ["fill", "stroke"]) if light != dark)


def places(words):
    return [tuple(float(number) for number in word.split(",")) for word in words]


def squares(x, y, step, rows):
    """(strength, path) for the squares of each strength, the strongest first: short lines as thick as they are long."""
    paths, side = {}, round(0.84 * step, 1)
    for i, row in enumerate(rows):
        for j, digit in enumerate(row):
            if digit != ".":
                paths.setdefault(digit, []).append(f"M{x + j * step} {y + i * step + side / 2}h{side}")
    return [(int(digit) / 9, "".join(paths[digit])) for digit in sorted(paths, reverse=True)]


def drawn(picture):
    """A picture of data/map.toml as SVG, in currentColor. Raises ValueError for a stroke that it does not know."""
    parts = []
    for stroke in picture:
        kind, first, *rest = stroke.split(" ")
        colour = paint("lit") if kind.endswith("*") else "currentColor"
        ink = f'stroke="{colour}" ' if kind.endswith("*") else ""
        solid = f'<path fill="{colour}" stroke="none" '
        match kind.removesuffix("*"):
            case "line":
                parts.append(f'<path {ink}stroke-width="{first}" d="{" ".join(rest)}"/>')
            case "fill":
                parts.append(f'{solid}fill-opacity="{first}" d="{" ".join(rest)}"/>'.replace('fill-opacity="1" ', ""))
            case "dots":
                r = float(first)
                circles = "".join(f"M{x - r} {y}a{r} {r} 0 1 0 {2 * r} 0a{r} {r} 0 1 0 {-2 * r} 0"
                                  for x, y in places(rest))
                parts.append(f'{solid}d="{circles}"/>')
            case "text":
                x, y = first.split(",")
                parts.append(f'<text x="{x}" y="{y}" font-size="{rest[0]}" font-weight="600" text-anchor="middle" '
                             f'fill="currentColor" stroke="none">{escape(rest[1])}</text>')
            case "bars":
                (x, y), step = places([first])[0], float(rest[0])
                parts.append(f'{solid}d="' + "".join(f"M{x + i * step} {y}h{0.75 * step}v-{height}h-{0.75 * step}z"
                                                   for i, height in enumerate(rest[1:])) + '"/>')
            case "cells":
                step = float(rest[0])
                thick = f'{ink}stroke-linecap="butt" stroke-width="{0.84 * step:.2g}"'
                parts += [f'<path {thick} stroke-opacity="{strength:.2g}" d="{d}"/>'
                          for strength, d in squares(*places([first])[0], step, rest[1:])]
            case _:
                raise ValueError(f"data/map.toml has the stroke {stroke!r}; no such kind.")
    return short_numbers("".join(parts))


def short_numbers(svg):
    """The same with four digits of each number with a point: more say nothing about where a thing is."""
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.4g}", svg)


class Sheet:
    """What is being drawn, layer by layer: areas, lines, frames, pictures, words, and marks on top.

    ``states``, ``labels``: the state and the (name, shape) of each part; ``font``: the size of the text; ``mark``:
    (a part, what it is marked with); ``key``: begins the ids of the pictures; ``again``: another sheet of the page,
    which comes first, has the pictures.
    """

    def __init__(self, states, labels, font, mark=(None, None), key="", again=False):
        self.known, self.labels, self.font, self.mark, self.key, self.again = states, labels, font, mark, key, again
        self.rooms, self.lines, self.frames, self.pictures, self.words, self.marks, self.have = [], {}, {}, {}, {}, [], set()

    def svg(self, width, height, attributes):
        """The whole sheet as SVG."""
        groups = [(f'fill="none" stroke="{paint(colour)}" stroke-width="1.5"', [f'<path d="{"".join(parts)}"/>'])
                  for colour, parts in self.lines.items()]
        groups += [(f'fill="{paint(state)}" stroke="{paint(state + "-edge")}" {EDGES[state]}', parts)
                   for state, parts in self.frames.items()]
        groups += [(f'color="{paint(state + "-ink")}" fill="none" stroke="currentColor"', parts)
                   for state, parts in self.pictures.items()]
        groups += [(f'fill="{paint(colour)}"', parts) for colour, parts in self.words.items()]
        layers = "".join(f"<g {how}>{''.join(parts)}</g>" for how, parts in groups)
        whole = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {attributes} font-family="{FONT}" '
                 f'font-size="{self.font}" text-anchor="middle" stroke-linecap="round" stroke-linejoin="round">'
                 f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="14" fill="{paint("page")}" '
                 f'stroke="{paint("edge")}"/>{"".join(self.rooms)}{layers}{"".join(self.marks)}</svg>')
        return short_numbers(whole)

    def text(self, x, y, said, colour="text", bold=False, start=False, size=None):
        extra = "".join([f' font-size="{size}"' if size else "", ' font-weight="700"' if bold else "",
                         ' text-anchor="start"' if start else ""])
        if said:
            self.words.setdefault(colour, []).append(f'<text x="{x}" y="{y}"{extra}>{escape(said)}</text>')

    def line(self, d, colour="quiet"):
        self.lines.setdefault(colour, []).append(d)

    def arrow(self, d, colour="quiet"):
        """A line along ``d``, whose first letter tells where it points: r(ight), l(eft), d(own) or u(p)."""
        heads = {"r": "m-5-4l5 4-5 4", "l": "m5-4l-5 4 5 4", "d": "m-4-5l4 5 4-5", "u": "m-4 5l4-5 4 5"}
        self.line(d[1:] + heads[d[0]], colour)

    def room(self, d, colour="room"):
        """An area behind everything."""
        self.rooms.append(f'<path d="{d}" fill="{paint(colour)}" stroke="{paint("edge")}"/>')

    def frame(self, x, y, width, height, state, radius=9, part=None):
        named = f'class="{part} {state}" ' if part else ""
        self.frames.setdefault(state, []).append(
            f'<rect {named}x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>')

    def part(self, part, x, y, size, aside=False, quiet=False):
        """Draw ``part`` in a square of ``size`` with its left upper corner at x, y; its name and shape are below it,
        ``aside``: at its right, ``quiet``: nowhere."""
        state, middle = self.known[part], x + size / 2
        width, height = {"add": (24, 24), "norm": (18, size)}.get(part, (size, size))
        round_ = 12 if part == "add" else 9
        self.frame(middle - width / 2, y + (size - height) / 2, width, height, state, round_, part)
        scale, name = (0.5 if part == "add" else 1) * size / 48, f"{self.key}-{part}"
        inside = f'<use href="#{name}"/>' if self.again else drawn(MAP["parts"][part]["picture"])
        named = "" if self.again or part in self.have else f'id="{name}"'
        self.have.add(part)
        self.pictures.setdefault(state, []).append(
            f'<g transform="translate({middle - 24 * scale} {y + size / 2 - 24 * scale})scale({scale})">'
            f'<g {named}>{inside}</g></g>'.replace("<g >", "<g>"))
        if aside:
            self.name(part, x + size + 9, y + size / 2 - 1.6 * self.font, True)
        elif not quiet:
            self.name(part, middle, y + size)
        if part == self.mark[0]:
            self.marked(middle, y, size)

    def name(self, part, x, top, start=False):
        (name, shape), state = self.labels[part], self.known[part]
        self.text(x, top + 1.35 * self.font, name, "quiet" if state == "grey" else "text", state == "lit", start)
        self.text(x, top + 2.55 * self.font, shape, "quiet", start=start)

    def marked(self, x, y, size):
        """What a lesson does with a part that was built before: a lens, or a word on a label."""
        ink = paint("lit-edge")
        if self.mark[1] == "lens":
            y, r = y + 0.38 * size, 0.69 * size
            self.marks.append(f'<circle cx="{x}" cy="{y}" r="{r}" stroke="{ink}" stroke-width="3.5" '
                              'fill="none"/>'
                              f'<path d="M{x + 0.71 * r} {y - 0.71 * r}l13-13" stroke="{ink}" stroke-width="7"/>')
            return
        width = 0.62 * self.font * len(self.mark[1]) + 14
        self.marks.append(f'<rect x="{x - width / 2}" y="{y - 0.95 * self.font}" width="{width}" '
                          f'height="{1.4 * self.font}" rx="{0.7 * self.font}" fill="{ink}"/><text x="{x}" '
                          f'y="{y + 0.1 * self.font}" font-weight="700" fill="{paint("page")}">{self.mark[1]}</text>')

    def box(self, part, x, y, width, height, lines):
        """A box of text: the learner's, or the candidates for the next word with their probabilities."""
        state = self.known.get(part, self.known["text"])
        self.frame(x, y, width, height, state, part=part)
        step = min(height / len(lines), 1.2 * self.font)
        for i, line in enumerate(lines):
            foot = y + height / 2 + step * (i + 0.5 - len(lines) / 2) + 0.35 * self.font
            word, share = line if part == "next" else (line, None)
            self.text(x + 9, foot, word, SAID[state], start=True)
            if share:
                bar, high = x + 9 + 2.9 * self.font, 0.72 * self.font
                self.pictures.setdefault(state, []).append(
                    f'<rect x="{bar}" y="{foot - high}" width="{max(2, (x + width - 9 - bar) * share)}" '
                    f'height="{high}" rx="2" fill="currentColor" stroke="none"/>')
        if part in self.labels:
            self.name(part, x + width / 2, y + height)
        if part == self.mark[0]:
            self.marked(x + width / 2, y - 0.45 * self.font, width)

    def chip(self, x, y, word):
        """The sampled word on its way back to the text."""
        state, width = self.known["word"], 0.62 * self.font * len(word) + 22
        self.frame(x - width / 2, y - 13, width, 26, state, 13, "word")
        self.text(x, y + 0.35 * self.font, word, SAID[state], True)

    def legend(self, x, y):
        for state, name in ("lit", "today"), ("built", "built"), ("grey", "to come"):
            self.frame(x, y - 12, 16, 14, state, 4)
            self.text(x + 22, y, name, "quiet", start=True)
            x += 38 + 0.58 * self.font * len(name)
