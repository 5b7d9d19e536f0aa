"""The book's page *What people say about attention*: claims to guess, and the register to sort and filter.

Each claim has a page of its own to share, with a picture, a sentence to quote, and where to say that it came out otherwise
elsewhere.
"""

import re
import textwrap

from helpers.page import claims, course
from helpers.words import listed
from scripts import ROOT, address
from scripts.setup import Stop

HERE = ROOT / "docs" / "book"
CARDS = HERE / "cards.toml"
FIRST = ("C36", "C53", "C55", "C56", "C61", "C64", "C68", "C70", "C71", "C73", "C80", "C81", "C83", "C84", "C85")
WORDS = 60  # that the first sentence of a record may have
MANY = {"holds": "hold", "holds if": "hold on a condition", "holds in part": "hold in part",
        "does not hold": "do not hold", "not settled": "are not settled"}
BEHIND = {"result": "All numbers", "interval": "Interval", "n": "Sample", "criterion": "Criterion", "baseline": "Baseline",
          "power": "What would have been noticed", "reach": "How far it reaches", "changed": "Changed after a run",
          "source": "Source"}


def kind(verdict):
    """The verdict of ``claims.VERDICTS`` that a verdict begins with, the longest first: "holds if …" is not "holds"."""
    return next(k for k in sorted(claims.VERDICTS, key=len, reverse=True) if verdict.startswith(k))


def condition(verdict):
    """What a verdict says behind its kind: "… short texts", or ""."""
    rest = verdict.removeprefix(kind(verdict)).lstrip(": ")
    return f"… {rest}" if rest else ""


def plain(entry):
    """What a record says first: its plain sentence, or what of its result ends within WORDS words."""
    sentence = entry.get("plain") or entry["result"]
    words = sentence.split()
    if len(words) > WORDS:
        ends = [i for i, word in enumerate(words[:WORDS], 1) if word.endswith((".", ";"))] or [WORDS]
        sentence = " ".join(words[:ends[-1]]).rstrip(".;,") + " …"
    sentence = sentence[0].upper() + sentence[1:]
    return sentence if sentence.endswith((".", "…")) else sentence + "."


def is_claim(entry):
    """Whether people say so: an identity or a misprint is in the second list, and has no page of its own."""
    return entry.get("kind", "claim") == "claim"


def behind(entry):
    """(name, text) for what waits behind a click; what has already been said first is left out."""
    return [(name, entry[field]) for field, name in BEHIND.items()
            if entry.get(field) and entry[field].rstrip(".").lower() != plain(entry).rstrip(".").lower()]


def ends(words, text, entry):
    """The numbers {low} and {high} that ``words`` names in ``text``, as written there. Raises Stop where they are not."""
    pattern = re.sub(r"\\{\w+\\}", r"([+-]?\\d+(?:\\.\\d+)?)", re.escape(words))
    numbers = re.search(pattern, text)
    if not numbers:
        raise Stop(f"docs/book/cards.toml looks for {words!r} in the record {entry['id']}, which no longer says so: "
                   f"mend the card, or name another claim. It says: {text}")
    return numbers.groups()


def drawing(card, entry):
    """What the template draws of a card: its bars and marks, at shares of the axis in percent, and the same in words."""
    start, end, unit = card["axis"]

    def at(value):
        return round(100 * (min(max(value, start), end) - start) / (end - start), 2)

    bars, marks, mean = [], [], re.search("Student|t over seeds", entry["interval"])  # which is in the middle of these
    for name, words in card["bars"]:
        low, high = ends(words, entry["interval"], entry)
        left, right = at(float(low)), at(float(high))
        middle = (float(low) + float(high)) / 2
        middle = f"mean {middle:.{1 if abs(middle) < 1 else 0}f}, from " if mean else ""
        bars.append({"name": name, "at": left, "wide": round(right - left, 2), "said": f"{middle}{low} to {high}{unit}"})
    said = [f"{bar['name']}: {bar['said']}" for bar in bars]
    for which, field in ("mark", "criterion"), ("chance", "baseline"):
        if which in card:
            value, words, label = card[which]
            ends(words, entry[field], entry)
            marks.append({"which": which, "at": at(value), "label": label})
            said.append(f"{label}" + ("" if re.search(r"\d", label) else f", {value:g}{unit}"))
    asked, words, _ = card["mark"]
    ticks = {at(0): "0", at(start): f"{start:g}", at(end): f"{end:g}{unit}"}
    return {"bars": bars, "marks": marks, "said": "; ".join(said) + ".", "ticks": ticks, "mean": mean,
            "asked": at(asked), "side": "below" if "at most" in words else "above"}


def cards(entries):
    """The cards, each with its record and its drawing; without those whose claim was withdrawn."""
    by_id = {entry["id"]: entry for entry in entries}
    listed = course.tomllib.loads(CARDS.read_text(encoding="utf-8"))["card"]
    return [card | {"entry": by_id[card["id"]], "drawing": drawing(card, by_id[card["id"]])}
            for card in listed if card["id"] in by_id and "withdrawn" not in by_id[card["id"]]]


def emphasis(text):
    """Words between stars, as HTML; the rest is escaped."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"\*(.+?)\*", r"<em>\1</em>", str(escape(text))))


def _template(name):
    """The template ``name``, which knows a record's verdict and words, and where its lesson and its experiment are."""
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True)
    environment.filters |= {"emphasis": emphasis, "kind": kind, "condition": condition, "plain": plain, "behind": behind}
    environment.globals |= {"page": lambda e: course.LESSONS[e["lesson"]].file.replace(".ipynb", ".html"),
                            "experiment": lambda e: e["experiment"].removeprefix("notebooks/").replace(".ipynb", ".html")}
    return environment.get_template(name)


def one(entry, name=None):
    """The page of one claim as Markdown; ``name``: the repository's "owner/name", where results from elsewhere go."""
    version = course.version()
    report = address.report("elsewhere", name, page=entry["id"], version=version) if name else ""
    card = next((card for card in cards([entry])), {})
    return _template("claim.html").render(e=entry, lessons=course.LESSONS, report=report, drawing=card.get("drawing"),
                                 quoted=f"Attention and transformers {version}, {entry['id']}")


COLOURS = {"holds": "#6fd6b5", "does not hold": "#ffab70", "not settled": "#c3c9cf"}  # of a stamp on dark; else purple


def picture(entry, path):
    """Draw what a shared link to a claim shows, 1200 × 630: the sentence, its stamp, and what was found."""
    from matplotlib import font_manager
    from PIL import Image, ImageDraw, ImageFont

    regular, bold = (font_manager.findfont(name) for name in ("DejaVu Sans", "DejaVu Sans:bold"))
    sheet = Image.new("RGB", (1200, 630), "#0b1420")
    draw, y = ImageDraw.Draw(sheet), 50
    for line in textwrap.wrap(f"“{entry['claim']}”", 46)[:3]:
        draw.text((60, y), line, "white", ImageFont.truetype(bold, 40))
        y += 62
    colour, stamp = COLOURS.get(kind(entry["verdict"]), "#d2b8ff"), ImageFont.truetype(bold, 36)
    place = draw.textbbox((80, y + 32), kind(entry["verdict"]).upper(), stamp)
    draw.rounded_rectangle((place[0] - 20, place[1] - 16, place[2] + 20, place[3] + 16), 12, outline=colour, width=4)
    draw.text((80, y + 32), kind(entry["verdict"]).upper(), colour, stamp)
    y += 120
    for size in (44, 38, 33, 27):  # as large as there is room for
        lines = textwrap.wrap(plain(entry), 1890 // size)
        if y + 1.4 * size * len(lines) < 560:
            break
    for line in lines:
        draw.text((60, y), line, "#d6dee6", ImageFont.truetype(regular, size))
        y += 1.4 * size
    draw.text((60, 578), f"Attention and transformers · {entry['id']}, measured in a notebook that you can run", "#9fb0bf",
              ImageFont.truetype(regular, 22))
    sheet.quantize(32).save(path, optimize=True)


def page():
    """The page as Markdown: its headings, and HTML below them. Raises Stop where a card does not fit its record."""
    entries = list(claims.register().values())
    verdicts = {k: n for k in claims.VERDICTS if (n := sum(kind(e["verdict"]) == k for e in entries))}
    here = {e["lesson"] for e in entries}
    claimed = [e for e in entries if is_claim(e)]
    # Those that practitioners need most come first, then all by number; then identities and misprints.
    lists = {"claim": sorted(claimed, key=lambda e: e["id"] not in FIRST),
             "other": [e for e in entries if e not in claimed]}
    return _template("register.html").render(
        cards=cards(entries), entries=entries, lists=lists, verdicts=verdicts, many=MANY,
        counted=listed(f"{n} {MANY[k]}" for k, n in verdicts.items()),
        lessons={number: lesson for number, lesson in course.LESSONS.items() if number in here})
