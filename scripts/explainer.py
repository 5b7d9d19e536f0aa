"""Make the live explainer, one page that runs the mini-transformer: python -m scripts.explainer

writes ``data/explainer.html`` from ``explainer.html`` beside this file: the weights of
``data/mini_transformer.safetensors`` and the states of lesson 11's grammar are packed into it, so it needs no network.
"""

import base64
import gzip
import json
import struct
from pathlib import Path

from helpers import grammars
from helpers.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE, PAGE = ROOT / "scripts" / "explainer.html", ROOT / "data" / "explainer.html"
WEIGHTS = ROOT / "data" / "mini_transformer.safetensors"


def packed(contents):
    """Bytes as base64 of gzip, the same each time."""
    return base64.b64encode(gzip.compress(contents, 9, mtime=0)).decode()


def states(grammar):
    """The grammar as (bytes, shares). Each word that may come in a state takes seven bytes: the state (2), the word's id in
    the model's vocabulary (1), the index of its probability in ``shares`` (2), the next state (2)."""
    places = grammar.p.nonzero().tolist()
    shares = sorted({round(grammar.p[s, i].item(), 12) for s, i in places})
    index = {share: n for n, share in enumerate(shares)}
    rows = (struct.pack("<HBHH", s, i, index[round(grammar.p[s, i].item(), 12)], grammar.next[s, i]) for s, i in places)
    return b"".join(rows), shares


def build():
    """The page, a string."""
    rows, shares = states(grammars.agreement_grammar())
    facts = {"weights": packed(WEIGHTS.read_bytes()), "grammar": packed(rows), "shares": shares}
    return TEMPLATE.read_text(encoding="utf-8").replace("{{facts}}", json.dumps(facts))


def main():
    write_whole(PAGE, build())
    print(f"Wrote {PAGE.relative_to(ROOT)}: {PAGE.stat().st_size / 1000:.0f} kB.")


if __name__ == "__main__":
    main()
