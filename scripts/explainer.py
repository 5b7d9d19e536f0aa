"""Make the live explainer, one page that runs the mini-transformer: python -m scripts.explainer

writes ``data/explainer.html`` from ``explainer.html`` and ``.css`` and three scripts beside this file: the weights of
``data/mini_transformer.safetensors`` and of ``data/small_gpt.safetensors`` and the states of lesson 11's grammar are packed
into it, so it needs no network. Without the weights of the second, as in a lesson, it has the first model alone.
Asked for as ``explainer.html?compact`` it is one sentence with its arcs and the next words, for a page around it.
"""

import base64
import gzip
import json
import struct

from helpers import grammars
from helpers.store.files import write_whole
from scripts import ROOT

TEMPLATE, PAGE = ROOT / "scripts" / "explainer.html", ROOT / "data" / "explainer.html"
SCRIPTS = [TEMPLATE.with_name(f"{name}.js") for name in ("explainer_model", "explainer", "explainer_inside")]
WEIGHTS, GPT = ROOT / "data" / "mini_transformer.safetensors", ROOT / "data" / "small_gpt.safetensors"


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


def kinds(words):
    """``words`` by what the grammar uses them as: pairs (kind, words), each word in one of them."""
    rules = grammars.agreement_rules()

    def of(*heads):
        """The first words of what the symbols ``heads`` become."""
        return [line.split()[1] for head in heads for line in rules[head]]

    both = [form for word in grammars.HOMOGRAPHS for form in (word, grammars.with_s(word))]
    found = {"names": grammars.NAMES, "pronouns": of("PRONOUN.s", "PRONOUN.p"),
             "things and animals": [form for word in grammars.NOUNS for form in (word, grammars.with_s(word))],
             "nouns and verbs": both,
             "verbs": [*of("IS.s", "IS.p"), *(form for s in ("WAITS", "LOVES") for pair in zip(of(s + ".p"), of(s + ".s"),
                                                                                          strict=True) for form in pair),
                       "tells", "thanks"],
             "what one bears, flies …": " ".join(grammars.HOMOGRAPHS.values()).split(), "adjectives": of("ADJECTIVE")}
    known = {word for group in found.values() for word in group}
    return [*found.items(), ("small words", [word for word in words if word not in known])]


def build():
    """The page, a string."""
    grammar = grammars.agreement_grammar()
    rows, shares = states(grammar)
    facts = {"weights": packed(WEIGHTS.read_bytes()), "grammar": packed(rows), "shares": shares,
             "kinds": kinds(grammar.vocabulary.words[3:])}
    page = TEMPLATE.read_text(encoding="utf-8")
    parts = {"style": TEMPLATE.with_suffix(".css").read_text(encoding="utf-8").strip(),
             "script": "\n".join(file.read_text(encoding="utf-8").strip() for file in SCRIPTS),
             "facts": json.dumps(facts), "gpt": packed(GPT.read_bytes())}
    for name, text in parts.items():
        page = page.replace("{{" + name + "}}", text)
    return page


if __name__ == "__main__":
    print(f"{write_whole(PAGE, build())}  {PAGE.name}")
