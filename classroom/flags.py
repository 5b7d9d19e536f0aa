"""What a teacher should look at in a notebook: code from elsewhere, unseen characters, words to a language model."""

import ast
import base64
import re
import textwrap

from classroom.code_cells import LONGEST, name_of, parse

FETCHES = {"exec", "eval", "compile", "__import__"}  # called by these names, code is made where nobody reads it
FETCHING = {"builtins", "ctypes", "gc", "importlib", "inspect", "marshal", "pickle", "requests", "socket", "subprocess",
            "urllib"}
UNSEEN = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
                    "\u3164\ufeff\uffa0\U000e0000-\U000e01ef]")  # not what joins letters and emoji: people need it
TAGS = re.compile("[\U000e0020-\U000e007e]+")  # a second ASCII, which no font shows
TO_A_MODEL = re.compile(
    r"\b(ignore|disregard|forget|override)\b[^.]{0,40}\b(instructions?|prompts?|rubric|guidelines?)\b"
    r"|\b(give|award|assign|grant)\b[^.]{0,40}\b(full|maximum|max|top|perfect|all( the)?)\b.{0,12}"
    r"\b(points|marks|credit|grade)\b"
    r"|\b(you are|you're|dear|note (to|for)|message (to|for))\b.{0,20}\b(AI|LLM|language model|chat ?bot|assistant|"
    r"auto-?grader|grader)\b|\bas an AI( language)? model\b", re.IGNORECASE)


def text_of(node, known):
    """The text that an expression stands for, as far as it is written down: constants, sums, names in ``known`` (name ->
    text), base64. None for what only running it would tell."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    if isinstance(node, ast.Name):
        return known.get(node.id)
    parts, between = None, ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [text_of(node.left, known), text_of(node.right, known)]
    elif isinstance(node, ast.JoinedStr):
        parts = [text_of(getattr(part, "value", part), known) for part in node.values]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        name, given = name_of(node.func), node.args[:1]
        if name == "join" and given and isinstance(given[0], ast.List | ast.Tuple):
            parts = [text_of(one, known) for one in given[0].elts]
            between = text_of(getattr(node.func, "value", node), known) if isinstance(node.func, ast.Attribute) else None
        elif name == "dedent" and given:
            return textwrap.dedent(text_of(given[0], known) or "") or None
        elif name in ("decode", "encode", "strip") and isinstance(node.func, ast.Attribute):
            return text_of(node.func.value, known)
        elif name in ("b64decode", "fromhex") and given and (text := text_of(given[0], known)) is not None:
            try:
                return (base64.b64decode(text) if name == "b64decode" else bytes.fromhex(text)).decode("latin-1")
            except ValueError:
                return None
    if not parts or None in (between, *parts) or sum(len(part) + len(between) for part in parts) > LONGEST:
        return None
    return between.join(parts)


def made_elsewhere(sources):
    """Where code is made or fetched and not written down to be read: pairs (what does it, number of the cell from 1)."""
    places = [(what, number) for number, source in enumerate(sources, 1)
              for node in ast.walk(parse(source or "") or ast.Module([], [])) if (what := _elsewhere(node))]
    return list(dict.fromkeys(places))


def _elsewhere(node):
    """What of a syntax tree makes or fetches code: its name, or some words, or ""."""
    if isinstance(node, ast.Name):
        return node.id if node.id in FETCHES else ""
    if isinstance(node, ast.Import | ast.ImportFrom):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        return next((m for m in modules if m.partition(".")[0] in FETCHING
                     or m.startswith(("classroom", "helpers.checks"))), "")
    if calls(node, "getattr") and len(node.args) > 1 and not isinstance(node.args[1], ast.Constant):
        return "getattr with a name that it computes"
    if isinstance(node, ast.Subscript):
        of = node.value
        if calls(of, "globals", "vars", "locals") or isinstance(of, ast.Attribute) and of.attr in ("__dict__", "modules"):
            return "a name looked up in a dictionary of names"
    return ""


def calls(node, *names):
    """Is it a call of a function by one of these names?"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def _untagged(tags):
    return "".join(chr(ord(c) - 0xE0000) for c in tags)


def shown(text):
    """The text with characters that nobody sees as their numbers; letters that only machines read as what they say."""
    text = TAGS.sub(lambda tags: f"[hidden: {_untagged(tags[0])}]", text)
    return UNSEEN.sub(lambda c: f"[U+{ord(c[0]):04X}]", text)


def to_look_at(book):
    """Sentences on what a teacher should see with their own eyes: characters that nobody sees, and text that speaks to a
    language model, wherever in the notebook it is."""
    sentences = []
    for number, cell in enumerate(book.cells, 1):
        where = cell.grade_id if cell.grade_id.startswith("answer") else f"cell {number}"
        if unseen := UNSEEN.findall(cell.source[:LONGEST].removeprefix("\ufeff")):
            numbers = ", ".join(f"U+{ord(c):04X}" for c in dict.fromkeys(unseen))
            sentences.append(f"{where} holds {len(unseen)} characters that nobody sees: {numbers[:80]}")
        plain = " ".join(UNSEEN.sub("", TAGS.sub(lambda tags: _untagged(tags[0]), cell.source[:LONGEST])).split())
        if spoken := TO_A_MODEL.search(plain):
            words = shown(plain[max(0, spoken.start() - 20):spoken.end() + 40])
            sentences.append(f"{where} speaks to a language model: \u201c{words}\u201d")
    return sentences[:20]
