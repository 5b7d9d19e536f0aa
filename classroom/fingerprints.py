"""The fingerprints of code: every run of a few tokens in it, without names, numbers, texts, comments and layout, as in
Schleimer, Wilkerson and Aiken 2003 ("Winnowing"), who keep some of these. Code is read here and never run."""

import io
import keyword
import tokenize
from collections import defaultdict

from classroom import code_cells

LONG = 8  # tokens of a fingerprint
MOST_TOKENS = 20_000  # of one submission; a solution has 500 to 1,500
LEFT_OUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def fingerprints(sources):
    """Of the code cells ``sources``: (fingerprint -> the places where it is, sentences on what was left out). A
    place is the number of a cell, from 0, and of a line in it, from 1."""
    places, left_out, room = defaultdict(set), [], MOST_TOKENS
    for number, source in enumerate(sources):
        try:
            tokens = _tokens(source) if code_cells.parse(source) else None
        except (SyntaxError, tokenize.TokenError):
            tokens = None
        if tokens is None:
            left_out.append(f"Code cell {number + 1} cannot be read as Python.")
            continue
        if len(tokens) > room:
            left_out.append(f"From code cell {number + 1} on: more than {MOST_TOKENS:,} tokens.")
        for at in range(min(len(tokens), room) - LONG + 1):
            words, lines = zip(*tokens[at:at + LONG], strict=True)
            places[hash(words)].add((number, lines[0]))
        room -= len(tokens)
        if room < 0:
            break
    return dict(places), left_out


def _tokens(source):
    """Pairs of a token and its line, without brackets, which change nothing. An attribute alone keeps its name."""
    tokens = []
    for one in tokenize.generate_tokens(io.StringIO(source).readline):
        if one.type not in LEFT_OUT and one.string not in "()":
            tokens.append((_plain(one, bool(tokens) and tokens[-1][0] == "."), one.start[0]))
    return tokens


def _plain(token, is_attribute):
    if token.type == tokenize.NAME:
        return token.string if is_attribute or keyword.iskeyword(token.string) else "name"
    if token.type == tokenize.OP:
        return token.string
    return "number" if token.type == tokenize.NUMBER else "text"
