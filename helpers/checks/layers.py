"""The layer of lesson 13 held against the real model's: `take` says which fault an attempt has, and steps in for it.

No exercise of the list: the learner's functions get weights and pieces of the lesson, and what they are compared with is
what the reference implementation makes of the same inputs.
"""

import functools
import itertools
from html import escape

import torch

from helpers.checks.core import SECONDS, SEVERAL, call, is_stub
from helpers.page import show

CLOSE = 1e-5


def _attention(x, mask, w, p, order="qkv", bias=True, out=True, out_bias=True, turned=False, join=None):
    Q, K, V = (p["split_heads"](x @ w[f"W_{c}"] + w[f"b_{c}"] * bias, 12) for c in order)
    heads, _ = p["masked_attention"](Q, K, V, mask)
    merged = (join or p["merge_heads"])(heads)
    if not out:
        return merged
    return merged @ (w["W_o"].T if turned else w["W_o"]) + w["b_o"] * out_bias


def _norm(x, name, w, p):
    return p["layer_norm"](x, w[f"{name}.gain"], w[f"{name}.bias"], p["eps"])


def _mlp(x, w, p):
    return p["gelu"](x @ w["W1"] + w["b1"]) @ w["W2"] + w["b2"]


def _block(x, mask, w, p, first=True, second=True, norms=("norm1", "norm2"), attend=True, think=True):
    """The block with parts left out: a residual, a norm (None), a sublayer."""
    a = _attention(x, mask, w, p) if attend else 0
    y = a + x if first or not attend else a
    y = _norm(y, norms[0], w, p) if norms[0] else y
    m = _mlp(y, w, p) if think else 0
    z = m + y if second or not think else m
    return _norm(z, norms[1], w, p) if norms[1] else z


def _pre_norm(x, mask, w, p):
    x = x + _attention(_norm(x, "norm1", w, p), mask, w, p)
    return x + _mlp(_norm(x, "norm2", w, p), w, p)


def _second_pre(x, mask, w, p):
    x = _norm(x + _attention(x, mask, w, p), "norm1", w, p)
    return x + _mlp(_norm(x, "norm2", w, p), w, p)


def _norm_inside(x, mask, w, p):
    x = x + _norm(_attention(x, mask, w, p), "norm1", w, p)
    return x + _norm(_mlp(x, w, p), "norm2", w, p)


def _old_stream(x, mask, w, p):
    y = _norm(x + _attention(x, mask, w, p), "norm1", w, p)
    return _norm(x + _mlp(y, w, p), "norm2", w, p)


def _mlp_of_old(x, mask, w, p):
    y = _norm(x + _attention(x, mask, w, p), "norm1", w, p)
    return _norm(y + _mlp(x, w, p), "norm2", w, p)


def _with(fault, **changes):
    return functools.partial(fault, **changes)


def _pairs(faults):
    """Two faults of one template at once, each with the hint of the first and that there is another."""
    templates = [(hint, fault) for hint, fault in faults if isinstance(fault, functools.partial)]
    for (hint, one), (_, other) in itertools.combinations(templates, 2):
        if one.func is other.func and not one.keywords.keys() & other.keywords.keys():
            yield f"{SEVERAL} {hint}", functools.partial(one, **other.keywords)


FAULTS = {  # name of the function: {id: (what to tell, the fault itself)}
    "self_attention": {
        "no-bias": ("The biases of Q, K and V are missing: a query is x @ W_q + b_q.", _with(_attention, bias=False)),
        "no-biases": ("All four biases are missing: a query is x @ W_q + b_q, and b_o comes at the end.",
                      _with(_attention, bias=False, out_bias=False)),
        "no-output-matrix": ("You return the heads side by side. W_o and b_o, which mix what the heads found, are "
                             "still to come.", _with(_attention, out=False)),
        "no-output-bias": ("b_o is missing at the end.", _with(_attention, out_bias=False)),
        "output-matrix-turned": ("You transpose W_o. It is as the formula wants it already: heads @ W_o.",
                                 _with(_attention, turned=True)),
        "all-from-queries": ("Q, K and V all come from W_q. Each has a matrix and a bias of its own.",
                             _with(_attention, order="qqq")),
        "values-from-keys": ("V comes from W_k; it has a matrix of its own, W_v.", _with(_attention, order="qkk")),
        "queries-keys-swapped": ("Queries and keys have changed places: W_q makes what asks, W_k what is found.",
                                 _with(_attention, order="kqv")),
        "keys-values-swapped": ("Keys and values have changed places: the scores compare queries with keys.",
                                _with(_attention, order="qvk")),
        "padding-seen": ("The padding is seen: hand the mask on to masked_attention.",
                         lambda x, mask, w, p: _attention(x, torch.ones_like(mask), w, p)),
        "heads-not-side-by-side": ("You reshape (B, h, T, d_k) to (B, T, d) as it lies in memory, which mixes tokens "
                                   "and heads. merge_heads puts the heads of one token side by side.",
                                   _with(_attention, join=lambda X: X.reshape(X.shape[0], X.shape[2], -1))),
        "residual-added": ("You add x already. The plus belongs to the block; here only what attention writes is "
                           "wanted.", lambda x, mask, w, p: x + _attention(x, mask, w, p)),
    },
    "block": {
        "pre-norm": ("Your norms stand in front of the sublayers, as in lesson 09's block. BERT is post-norm: each "
                     "norm goes around a whole sum.", _pre_norm),
        "second-norm-in-front": ("norm2 stands in front of the MLP. It goes around the sum, x + MLP.", _second_pre),
        "norm-inside-the-sum": ("You normalise what the sublayer writes, and then add it. In post-norm the norm goes "
                                "around the whole sum, x included.", _norm_inside),
        "old-stream": ("The MLP's result is added to the x that came in, so what attention found is lost. Add it to "
                       "what norm1 gave.", _old_stream),
        "mlp-reads-old-stream": ("Your MLP reads the x that came in. It reads what norm1 gave.", _mlp_of_old),
        "no-residuals": ("Both pluses are missing: a sublayer adds to the stream and does not replace it.",
                         _with(_block, first=False, second=False)),
        "no-first-residual": ("The first plus is missing: x + attention.", _with(_block, first=False)),
        "no-second-residual": ("The second plus is missing: x + MLP.", _with(_block, second=False)),
        "no-second-norm": ("The second norm is missing: it goes around the sum with the MLP.",
                           _with(_block, norms=("norm1", None))),
        "no-first-norm": ("The first norm is missing: it goes around the sum with attention.",
                          _with(_block, norms=(None, "norm2"))),
        "norm1-twice": ("Both norms are norm1. The second has numbers of its own, norm2.",
                        _with(_block, norms=("norm1", "norm1"))),
        "norms-swapped": ("The norms have changed places: norm1 belongs to attention, norm2 to the MLP.",
                          _with(_block, norms=("norm2", "norm1"))),
        "no-mlp": ("The MLP is missing: only attention has written to the stream.", _with(_block, think=False)),
        "attention-only": ("You stop after norm1. The MLP, its plus and norm2 are still to come.",
                           lambda x, mask, w, p: _norm(x + _attention(x, mask, w, p), "norm1", w, p)),
        "no-attention": ("Attention is missing: only the MLP has written to the stream.", _with(_block, attend=False)),
    },
}


@torch.inference_mode()
def take(mine, course, theirs, real, *inputs):
    """``mine`` if it gives the reference's numbers ``theirs`` at every real token, else ``course``; a note says which.

    ``mine``: the learner's `self_attention` or `block`, a stub, or something wrong; ``course``: the version that steps
    in; ``theirs``: (B, T, d); ``real``: (B, T), True at tokens; ``inputs``: what the function is called with.
    """
    name = mine.__name__
    said, hint = _judge(mine, theirs, real, inputs)
    text = f"Yours runs: {name} gives the numbers of the reference." if not said else (
        f"The course's {name} runs from here on: yours {said}.")
    show.note("<br>".join(map(escape, filter(None, [text, hint]))), "\n".join(filter(None, [text, hint])),
              "good" if not said else "idle" if said == "is not started" else "bad")
    return course if said else mine


def _judge(mine, theirs, real, inputs):
    """(What is wrong with it, what to look at): both empty when nothing is."""
    if is_stub(mine):
        return "is not started", ""
    x, *others = inputs
    stream = x.clone()
    result = call(mine, (), SECONDS, use=lambda function: function(stream, *others))
    if result.kind != "value":
        return ("stopped with an error" if result.kind == "error" else "did not come to an end"), str(result.value)
    found, wanted = result.value, tuple(theirs.shape)
    if found is None:
        return "gives back None", "Its last line needs a return."
    if isinstance(found, tuple):
        return "gives back two things", ("masked_attention returns the output and the weights; go on with the output: "
                                         'heads, _ = p["masked_attention"](…).')
    if not torch.is_tensor(found) or tuple(found.shape) != wanted:
        shape = tuple(getattr(found, "shape", ())) or type(found).__name__
        return f"gives {shape} in place of {wanted}", (
            "The heads are not side by side yet: (B, h, T, d_k) has to become (B, T, d)." if len(shape) == 4 else "")
    if torch.allclose(found[real], theirs[real], rtol=0, atol=CLOSE):
        return ("", "") if torch.equal(stream, x) else (
            "changes x in place", "Write x = x + … and not x += …, or the state below this layer is lost.")
    faults = FAULTS.get(mine.__name__, {}).values()
    for hint, fault in [*faults, *_pairs(faults)]:
        if torch.allclose(found[real], fault(*inputs)[real], rtol=1e-4, atol=1e-4):
            return "does not give the reference's numbers", hint
    far = (found - theirs)[real].abs().max()
    return "does not give the reference's numbers", (
        f"The largest difference is {far:.2g}, and no usual fault explains it. Compute it line by line beside the "
        "comments of the stub: does each line have the shape that is written there?")
