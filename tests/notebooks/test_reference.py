"""The glossary and the cheat sheet are complete, in order and true to the code; the prose is British."""

import importlib
import re
from pathlib import Path

import hygiene
import numpy as np
import pytest
from hygiene import books

from helpers import attention
from helpers.checks import INDEX
from helpers.page.course import LESSONS

REPO = Path(__file__).resolve().parents[2]
MARKDOWN = [path.relative_to(REPO) for folder in (".", "docs", "docs/book", "data", "tests", "classroom")
            for path in sorted((REPO / folder).glob("*.md"))]
PAGES = {name: (REPO / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("glossary", "cheatsheet")}
TERM = re.compile(r"^- \*\*(.+?)\*\* · (.+)$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def test_every_exercise_is_mentioned():
    named = {name.split(".")[-1] for page in PAGES.values() for name in CODE.findall(page)}
    missing = [name for name in INDEX if name not in named]
    assert not missing, f"neither docs/cheatsheet.md nor docs/glossary.md names {', '.join(missing)}."


def test_the_glossary_is_in_order_and_says_each_thing_once():
    terms = [re.sub(r"[^a-z0-9]", "", term.lower()) for term, _ in TERM.findall(PAGES["glossary"])]
    assert len(terms) > 90 and len(terms) == len(re.findall("^- ", PAGES["glossary"], re.MULTILINE))
    assert terms == sorted(set(terms))
    letter = ""
    for line in PAGES["glossary"].splitlines():
        letter = line[3:] if line.startswith("## ") else letter
        if found := TERM.match(line):
            assert re.sub("[^a-z]", "", found[1].lower())[0] == letter.lower(), line


def test_every_term_leads_to_a_lesson_and_every_lesson_has_a_term():
    homes = set()
    for term, text in TERM.findall(PAGES["glossary"]):
        lesson = re.search(r"\[Lesson (\d\d)\]\(\.\./notebooks/(\d\d)_\w+\.ipynb#\S+\)$", text)
        assert lesson and lesson[1] == lesson[2], f"{term}: its line should end with a link to its lesson."
        homes.add(lesson[1])
    assert homes == set(LESSONS), "docs/glossary.md: every lesson has a term of its own."


@pytest.mark.parametrize("path", [path for path in MARKDOWN if path.parent.name != "book"], ids=str)  # those are templates
def test_every_link_leads_somewhere(path):
    wrong = [f"{path} links to {target}, but {problem}: correct the link."
             for target, problem in hygiene.broken_links(REPO / path, (REPO / path).read_text(encoding="utf-8"))]
    assert not wrong, "\n".join(wrong)


def functions_of_the_sheet():
    """(what the last column calls it, the thing itself) for every function of the cheat sheet."""
    module, found = None, []
    for row in re.findall(r"^\| (.*) \|$", PAGES["cheatsheet"], re.MULTILINE):
        for name in CODE.findall(row.split(" | ")[-1]):
            if name.startswith("helpers."):
                module = importlib.import_module(name)
                continue
            *other, last = name.split(".")
            home = importlib.import_module(f"helpers.{other[0]}") if other else module
            found.append((name, getattr(home, last, None)))
    return found


def test_every_function_of_the_sheet_exists():
    found = functions_of_the_sheet()
    assert len(found) > 40
    missing = [name for name, function in found if not callable(function)]
    assert not missing, f"docs/cheatsheet.md names {', '.join(missing)}, which helpers do not have."


def row(name):
    """What the cheat sheet says of a function: its row, without blanks."""
    (found,) = [line for line in PAGES["cheatsheet"].splitlines() if f"`{name}`" in line]
    return found.replace(" ", "").replace("$", "").replace(r"\to", "→").replace(r"\dots", "…")


SIZES = {"B": 2, "T": 5, "d": 12, "h": 3, "d_k": 4, "k": 7, "n": 6, "T_q": 5, "T_k": 8, "d_v": 9}


def written(shape, axes):
    """A computed shape in the sheet's letters, such as (2, 5, 12) -> (B,T,d)."""
    assert shape == tuple(SIZES[axis] for axis in axes.split(",") if axis != "…")
    return f"({axes})"


def test_the_shapes_of_the_sheet_are_those_of_the_functions():
    rng = np.random.default_rng(0)

    def draw(axes):
        return rng.normal(size=[SIZES[axis] for axis in axes.split(",")])

    X, W = draw("B,T,d"), [draw("d,d") for _ in range(4)]
    Q, K, V = draw("T_q,d_k"), draw("T_k,d_k"), draw("T_k,d_v")
    heads = attention.split_heads(X, SIZES["h"])
    output, weights = attention.scaled_dot_product_attention(Q, K, V)
    cases = [  # name, what comes out, its shape in the sheet
        ("self_attention", attention.self_attention(X[0]), "T,d"),
        ("project", attention.project(X[0], draw("d,k")), "…,T,k"),
        ("attention_scores", attention.attention_scores(Q, K), "…,T_q,T_k"),
        ("scaled_dot_product_attention", output, "…,T_q,d_v"),
        ("scaled_dot_product_attention", weights, "…,T_q,T_k"),
        ("softmax_jacobian", attention.softmax_jacobian(np.full(SIZES["n"], 1 / SIZES["n"])), "n,n"),
        ("causal_mask", attention.causal_mask(SIZES["T"]), "T,T"),
        ("padding_mask", attention.padding_mask([3, 5], SIZES["T"]), "B,T"),
        ("split_heads", heads, "B,h,T,d_k"),
        ("merge_heads", attention.merge_heads(heads), "B,T,d"),
        ("multi_head_attention", attention.multi_head_attention(X, *W, SIZES["h"]), "B,T,d"),
        ("sinusoidal_encoding", attention.sinusoidal_encoding(SIZES["T"], SIZES["d"]), "T,d"),
        ("alibi_bias", attention.alibi_bias(SIZES["h"], SIZES["T"]), "h,T,T")]
    for name, value, axes in cases:
        assert written(value.shape, axes) in row(name), f"docs/cheatsheet.md, {name}: {value.shape} is {axes}."
    assert attention.masked_attention(Q, K, V, True)[0].shape == output.shape
    assert attention.rotate(X, np.arange(SIZES["T"])).shape == X.shape
    d = SIZES["d"]
    assert "4d^2,withbiases4d^2+4d" in row("count_attention_parameters")
    assert [attention.count_attention_parameters(d, 3, bias) for bias in (False, True)] == [4 * d**2, 4 * d**2 + 4 * d]


AMERICAN = re.compile(
    r"\b(?:\w*(?:color|behavior|neighbor|flavor|favor|honor)(?:s|ed|ful|less|ing|hood|ite|able)?|labor|fibers?|grays?"
    r"|centers?|centered|modeled|modeling|labeled|labeling|canceled|traveled|artifacts?|catalogs?|analyz\w*"
    r"|(?:re|un|de)?(?:normal|general|optim|minim|maxim|initial|summar|visual|regular|penal|emphas|organ|recogn|real|special"
    r"|parallel|standard|memor|character)iz\w*)\b", re.IGNORECASE)


def prose():
    """Every page and every Markdown cell: its name, and its words without code, formulas and titles of papers."""
    texts = [(path.as_posix(), (REPO / path).read_text(encoding="utf-8")) for path in MARKDOWN]
    texts += [(str(cell), cell.source) for book in books() for cell in book.cells if cell.type == "markdown"]
    for name, text in texts:
        text = hygiene.without_code(text)
        yield name, re.sub(r"\*[A-Z][^*\n]*\*|<[^>]*>|\]\([^)]*\)", "", text)


def test_the_prose_is_british():
    found = [f"{name}: {word[0]}" for name, text in prose() for word in AMERICAN.finditer(text)]
    assert not found, "American spelling:\n" + "\n".join(found)
