"""BertViz's three views of attention, so that they work with no network.

BertViz (Vig 2019) draws with d3 and jQuery, which its pages load from the web. Here its page gets copies of both out
of installed packages, and a frame of its own. So several views live in one notebook, and they are still there
after saving, on re-opening, and in an exported page.
"""

import base64
import contextlib
import gzip
import hashlib
import importlib.util
import re
from html import escape
from pathlib import Path
from string import Template

from helpers.page import show

SCRIPTS = {  # package: (name to install it by, file in it)
    "mpld3": ("mpld3", "js/d3.v5.min.js"),
    "xstatic.pkg.jquery": ("XStatic-jQuery", "data/jquery.min.js"),
}
# What BertViz asks require.js for is already there.
REQUIRE = "window.require=window.requirejs=(names,then)=>then(window.jQuery,window.d3);window.require.config=()=>{};"
# The frame's page arrives packed. It unpacks itself, is as large as what is seen of it, shrinks to the width of the page (a
# text that has to be read no further than 0.6, then it scrolls), says how high it is, and turns round on a dark page.
VIEW = Path(__file__).with_name("view.html")


class ViewNotAvailable(RuntimeError):
    """A package that carries a script is missing; the message says in one sentence which."""


def head_view(weights, tokens, title, sentence_b_start=None, layer=0, heads=None):
    """Show lines from each token to those that it attends to: one layer at a time, all heads or some.

    ``weights``: ``(h, T, T)`` for each layer; ``tokens``: T strings; ``title``: what a screen reader says of it;
    ``sentence_b_start``: where the second sentence begins; ``layer``, ``heads``: what is shown first (default: all
    heads). Raises ValueError when weights and tokens do not fit, ViewNotAvailable when a script is missing.
    """
    import bertviz

    page = bertviz.head_view(_layers(weights, tokens), list(tokens), sentence_b_start, layer=layer, heads=heads,
                             prettify_tokens=False, html_action="return")
    _show(page.data, title)


def model_view(weights, tokens, title, sentence_b_start=None):
    """Show every head of every layer as a small picture; a click enlarges one. Arguments and errors as for ``head_view``."""
    import bertviz

    page = bertviz.model_view(_layers(weights, tokens), list(tokens), sentence_b_start,
                              prettify_tokens=False, display_mode="light", html_action="return")
    _show(page.data, title)


def neuron_view(weights, queries, keys, tokens, title, layer=0, head=0):
    """Show how a query meets each key, number by number: click the + beside a token.

    ``queries``, ``keys``: ``(h, T, d_k)`` for each layer, the rest as for ``head_view``. BertViz writes the tokens
    between [CLS] and [SEP], so these must be the first and the last (ValueError).
    """
    import torch
    from bertviz import neuron_view as view

    if (tokens[0], tokens[-1]) != ("[CLS]", "[SEP]"):
        raise ValueError(f"The tokens must begin with [CLS] and end with [SEP]; they are {' '.join(tokens)}.")
    layers = [{"attn": w, "queries": _rounded(q)[None], "keys": _rounded(k)[None]}
              for w, q, k in zip(_layers(weights, tokens), queries, keys, strict=True)]

    class Recorded(torch.nn.Module):
        """Stands for model and tokenizer, and answers with what they have already computed."""

        cls_token, sep_token = "[CLS]", "[SEP]"

        def tokenize(self, _):
            return list(tokens[1:-1])

        def convert_tokens_to_ids(self, names):
            return [0] * len(names)

        def forward(self, _):
            return (layers,)

    recorded = Recorded()
    page = view.show(recorded, "bert", recorded, " ".join(tokens), display_mode="light",
                     layer=layer, head=head, html_action="return")
    _show(page.data, title)


def _layers(weights, tokens):
    """A list of ``(1, h, T, T)``, as BertViz wants them."""
    layers = [_rounded(w)[None] for w in weights]
    if not layers:
        raise ValueError("There are no weights to show: give (h, T, T) for each layer.")
    for w in layers:
        if w.ndim != 4 or w.shape[2:] != (len(tokens), len(tokens)):
            raise ValueError(f"The weights of a layer should have shape (h, {len(tokens)}, {len(tokens)}) for "
                             f"{len(tokens)} tokens, and have {tuple(w.shape[1:])}.")
    return layers


def _rounded(x):
    """Three decimals are more than an eye can see, and a third of the bytes."""
    import torch

    return torch.as_tensor(x).detach().cpu().double().round(decimals=3)


def offline(page, title):
    """BertViz's page, a string, as one that needs nothing from outside, in a frame.

    ``title``: what a screen reader says of the frame. The same page gives the same text, whenever it is made.
    Raises ViewNotAvailable when a script is missing.
    """
    page = re.sub(r'<script src="https?:[^"]*"></script>', "", page)
    page = re.sub(r"require\.config\(\{.*?\}\);", "", page, count=1, flags=re.DOTALL)
    page = re.sub(r"; // HACK: .*", ";", page)  # the data a second time, in a comment
    page = re.sub(r"</(?=script>(?!\s*(?:<script|$)))", r"<\\/", page)  # in a token it would end the script
    anonymous = re.sub(r"bertviz-[0-9a-f]{32}", "bertviz-", page)
    name = f"bertviz-{hashlib.sha256(anonymous.encode()).hexdigest()[:12]}"
    page = re.sub(r"bertviz-[0-9a-f]{32}", name, page)
    scripts = "".join(f"<script>{script}</script>" for script in [*map(_script, SCRIPTS), REQUIRE])
    style = ("<style>html{background:#fff}.dark{filter:invert(.945) hue-rotate(180deg) brightness(1.25)}"
             "body{margin:8px;color:#1a1a1a;height:max-content}</style>")
    whole = f'<!doctype html><html lang="en"><meta charset="utf-8">{style}<body>{scripts}{page}</body></html>'
    packed = base64.b64encode(gzip.compress(whole.encode(), 9, mtime=0)).decode()
    note = ("This view is interactive. It appears when the notebook is trusted (in JupyterLab: View, Activate Command "
            "Palette, Trust Notebook) and scripts may run. The figure below shows the same.")
    inside = Template(VIEW.read_text(encoding="utf-8").rstrip()).substitute(title=escape(title), packed=packed)
    return show.frame(inside, title, note, height=340) + show.THEME


def _script(package):
    name, file = SCRIPTS[package]
    found = None
    with contextlib.suppress(ImportError):
        found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / file
        if path.exists():
            return path.read_text(encoding="utf-8").replace("</script", "<\\/script")
    raise ViewNotAvailable(f"The interactive views need the package {name}: install it (pip install {name}) and run the "
                           "cell again; the figures below them show the same without it.")


def _show(page, title):
    from IPython.display import display

    display({"text/html": offline(page, title), "text/plain": f"[interactive view: {title}]"}, raw=True)
