"""Lesson 13 held against the real model: `hold` its matrices, `take` its layer; each says what is wrong and steps in.

No exercise of the list: the learner's functions get weights and pieces of the lesson, and what they are compared with is
what the reference implementation makes of the same inputs.
"""

import contextlib
from html import escape

import numpy as np
import torch

from helpers import transformer
from helpers.checks.calls import call
from helpers.checks.core import SECONDS, SEVERAL, two_at_once, variants
from helpers.checks.stubs import is_stub
from helpers.page import show
from helpers.words import NotUsable

CLOSE = 1e-5
MATRICES = ("W_q", "W_k", "W_v", "W_o", "W1", "W2")  # of a layer
TWO_THINGS = ("masked_attention returns the output and the weights; go on with the output: "
              'heads, _ = p["masked_attention"](…).')


# The matrices of the file


def as_given(name, tensor):
    """What the lesson gives the learner to mend: the matrices are turned that stop with an error if they are not."""
    return tensor.T if name.endswith(("W1", "W2")) else tensor


def as_ours(name, tensor):
    """The course's: every matrix that is multiplied with is turned, 3.W_q as well as pooler.W."""
    return tensor.T if name.rpartition(".")[2].startswith("W") else tensor


def weights_by(as_ours, named):
    """What a function like `as_ours` makes of each tensor of ``named``, {our name: tensor of the file}; the same names.

    Raises NotUsable, one sentence, where it makes no tensor.
    """
    return {name: _turned(as_ours, name, tensor) for name, tensor in named.items()}


def _turned(as_ours, name, tensor):
    try:
        made = as_ours(name, tensor.clone())  # t_(), for example, turns what it is given
        if made is not None:
            return torch.as_tensor(made).to(tensor)
        came = "None"
    except Exception as error:
        came = f"{type(error).__name__} ({str(error):.60})"
    raise NotUsable(f"as_ours should return a tensor, and with {name} there came {came}: "
                    "is there a return, and is every name right?")


@torch.inference_mode()
def hold(as_ours, named, reference):
    """Show how far x W + b is from the reference's for six matrices of layer 0; return the names that agree.

    ``as_ours``: a function like `as_ours`; ``named``: {our name: tensor of the file}; ``reference``: as of `minilm`.
    """
    layer = reference.encoder.layer[0]
    attention = layer.attention.self
    parts = (attention.query, attention.key, attention.value, layer.attention.output.dense, layer.intermediate.dense,
             layer.output.dense)
    rows, agree = [], []
    for name, theirs in zip(MATRICES, parts, strict=True):
        x = torch.randn(4, theirs.in_features, generator=torch.Generator().manual_seed(0))
        W, b = (_turned(as_ours, f"0.{n}", named[f"0.{n}"]) for n in (name, name.replace("W", "b")))
        fits = W.shape == (theirs.in_features, theirs.out_features) and b.ndim == 1
        gap = float((x @ W + b - theirs(x)).abs().max()) if fits else float("inf")
        agree += [name] * (gap < CLOSE)
        rows.append([name, " × ".join(f"{n:,}" for n in W.shape),
                     "agrees" if gap < CLOSE else f"off by {gap:.1f}" if fits else "does not fit"])
    later = [f"{number}.{name}" for number in range(1, len(reference.encoder.layer)) for name in agree]
    if wrong := [name for name in later if not torch.equal(_turned(as_ours, name, named[name]), named[name].T)]:
        rows.append([wrong[0], "a matrix of a later layer", "not as in layer 0"])
    for name in ("word", "position", "token_type"):  # looked up, never multiplied
        if _turned(as_ours, name, named[name]).shape != named[name].shape:
            rows.append([name, "a table, a row for each word, place or type", "does not fit"])
    show.table(["x W + b", "shape", "beside the reference"], rows)
    return agree


def take_weights(mine, named):
    """The weights as our formulas want them, {our name: tensor}; a printed line says whether ``mine`` makes the same.

    ``named``: {our name: tensor of the file}. What no step of the lesson reads may be wrong.
    """
    wanted, made = weights_by(as_ours, named), weights_by(mine, named)
    unused = ("position_ids", "pooler.W", "pooler.b")
    wrong = [name for name, W in wanted.items() if name not in unused and not torch.equal(made[name], W)]
    in_order = ["word", "position", "token_type", *(f"{layer}.{name}" for layer in range(6) for name in MATRICES)]
    first = [name for name in in_order if name in wrong] + wrong  # in the order of the lesson's tables, then the others
    what = f"{len(wrong)} tensors of yours are not right, the first is" if wrong[1:] else "one tensor of yours is not right,"
    print("as_ours:", f"the course's ({what} {first[0]})" if wrong else "yours")
    return wanted


# One layer


def _masked_attention(Q, K, V, mask):
    scores = Q @ K.mT / Q.shape[-1] ** 0.5  # (B, h, T, T)
    weights = transformer.masked_softmax(scores.masked_fill(~mask, -torch.inf))
    return weights @ V, weights


PIECES = {  # of earlier lessons, on tensors
    "split_heads": lambda X, n_heads: X.unflatten(-1, (n_heads, -1)).transpose(1, 2),  # (B, T, d) -> (B, h, T, d_k)
    "merge_heads": lambda X: X.transpose(1, 2).flatten(2),  # (B, h, T, d_k) -> (B, T, d)
    "masked_attention": _masked_attention,
    "layer_norm": transformer.layer_norm,
}


@torch.inference_mode()
def attended(reference, x, keys):
    """What the attention of the reference's layer 0 adds to its stream x (B, T, d); ``keys``: (B, 1, 1, T)."""
    attention = reference.encoder.layer[0].attention
    return attention.output.dense(attention.self(x, attention_mask=keys)[0])


def self_attention(x, mask, w, p, order="qkv", bias=True, out=True, out_bias=True, turned=False, join=None, plus=False):
    """The course's, as the lesson asks for it: x (B, T, d), mask (B, 1, 1, T) -> (B, T, d). Each option is a fault."""
    Q, K, V = (p["split_heads"](x @ w[f"W_{c}"] + w[f"b_{c}"] * bias, 12) for c in order)
    heads, _ = p["masked_attention"](Q, K, V, mask)
    merged = (join or p["merge_heads"])(heads)
    if not out:
        return merged
    return x * plus + merged @ (w["W_o"].T if turned else w["W_o"]) + w["b_o"] * out_bias


def _norm(x, name, w, p):
    return p["layer_norm"](x, w[f"{name}.gain"], w[f"{name}.bias"], p["eps"])


def _mlp(x, w, p, biases=True):
    return p["gelu"](x @ w["W1"] + w["b1"] * biases) @ w["W2"] + w["b2"] * biases


def block(x, mask, w, p, first=True, second=True, norms=("norm1", "norm2"), attend=True, think=True, biases=True,
          mlp_biases=True):
    """The course's, post-norm: x (B, T, d), mask (B, 1, 1, T) -> (B, T, d). Options leave something out: a residual, a norm
    (None), a sublayer, the biases of attention or of the MLP."""
    a = self_attention(x, mask, w, p, bias=biases, out_bias=biases) if attend else 0
    y = a + x if first or not attend else a
    y = _norm(y, norms[0], w, p) if norms[0] else y
    m = _mlp(y, w, p, mlp_biases) if think else 0
    z = m + y if second or not think else m
    return _norm(z, norms[1], w, p) if norms[1] else z


def _pre_norm(x, mask, w, p):
    x = x + self_attention(_norm(x, "norm1", w, p), mask, w, p)
    return x + _mlp(_norm(x, "norm2", w, p), w, p)


def _norm_inside(x, mask, w, p):
    x = x + _norm(self_attention(x, mask, w, p), "norm1", w, p)
    return x + _norm(_mlp(x, w, p), "norm2", w, p)


def _first_norm_inside(x, mask, w, p):
    y = x + _norm(self_attention(x, mask, w, p), "norm1", w, p)
    return _norm(y + _mlp(y, w, p), "norm2", w, p)


def _after_norm1(second):
    """Right up to norm1; ``second(x, y, norm2, mlp)`` goes on from the block's input, x, and what norm1 gave, y."""
    def fault(x, mask, w, p):
        y = _norm(x + self_attention(x, mask, w, p), "norm1", w, p)
        return second(x, y, lambda z: _norm(z, "norm2", w, p), lambda z: _mlp(z, w, p))
    return fault


_attending, _stacked = variants(self_attention), variants(block)  # with these faults

FAULTS = {  # name of the function: {id: (what to tell, the fault itself)}
    "self_attention": {
        "no-bias": ("The biases of Q, K and V are missing: a query is x @ W_q + b_q.", _attending(bias=False)),
        "no-biases": ("All four biases are missing: a query is x @ W_q + b_q, and b_o comes at the end.",
            _attending(bias=False, out_bias=False)),
        "no-output-matrix": ("You return the heads side by side. W_o and b_o, which mix what the heads found, are "
            "still to come.", _attending(out=False)),
        "no-output-bias": ("b_o is missing at the end.", _attending(out_bias=False)),
        "output-matrix-turned": ("You transpose W_o. It is as the formula wants it already: heads @ W_o.",
            _attending(turned=True)),
        "all-from-queries": ("Q, K and V all come from W_q. Each has a matrix and a bias of its own.",
            _attending(order="qqq")),
        "values-from-keys": ("V comes from W_k; it has a matrix of its own, W_v.", _attending(order="qkk")),
        "queries-keys-swapped": ("Queries and keys have changed places: W_q makes what asks, W_k what is found.",
            _attending(order="kqv")),
        "keys-values-swapped": ("Keys and values have changed places: the scores compare queries with keys.",
            _attending(order="qvk")),
        "padding-seen": ("The padding is seen: hand the mask on to masked_attention.",
            lambda x, mask, w, p: self_attention(x, torch.ones_like(mask), w, p)),
        "heads-not-side-by-side": ("You reshape (B, h, T, d_k) to (B, T, d) as it lies in memory, which mixes "
            "tokens and heads. merge_heads puts the heads of one token side by side.",
            _attending(join=lambda X: X.reshape(X.shape[0], X.shape[2], -1))),
        "residual-added": ("You add x already. The plus belongs to the block; here only what attention writes is "
            "wanted.", _attending(plus=True)),
        "not-scaled": ("The scores are not scaled: divide them by the root of d_k, or let masked_attention do it.",
            lambda x, mask, w, p: self_attention(x, mask, w, p | {"masked_attention": lambda Q, K, V, mask:
                p["masked_attention"](Q * Q.shape[-1] ** 0.5, K, V, mask)})),
    },
    "block": {
        "pre-norm": ("Your norms stand in front of the sublayers, as in lesson 09's block. BERT is post-norm: "
            "each norm goes around a whole sum.", _pre_norm),
        "second-norm-in-front": ("norm2 stands in front of the MLP. It goes around the sum, x + MLP.",
            _after_norm1(lambda x, y, norm2, mlp: y + mlp(norm2(y)))),
        "norm-inside-the-sum": ("You normalise what the sublayer writes, and then add it. In post-norm the norm "
            "goes around the whole sum, x included.", _norm_inside),
        "old-stream": ("The MLP's result is added to the x that came in, so what attention found is lost. Add it "
            "to what norm1 gave.", _after_norm1(lambda x, y, norm2, mlp: norm2(x + mlp(y)))),
        "mlp-reads-old-stream": ("Your MLP reads the x that came in. It reads what norm1 gave.",
            _after_norm1(lambda x, y, norm2, mlp: norm2(y + mlp(x)))),
        "second-norm-inside": ("norm2 goes around the MLP alone. It goes around the whole sum, as norm1 does.",
            _after_norm1(lambda x, y, norm2, mlp: y + norm2(mlp(y)))),
        "first-norm-inside": ("norm1 goes around attention alone. It goes around the whole sum, as norm2 does.",
            _first_norm_inside),
        "no-residuals": ("Both pluses are missing: a sublayer adds to the stream and does not replace it.",
            _stacked(first=False, second=False)),
        "no-first-residual": ("The first plus is missing: x + attention.", _stacked(first=False)),
        "no-second-residual": ("The second plus is missing: x + MLP.", _stacked(second=False)),
        "no-second-norm": ("The second norm is missing: it goes around the sum with the MLP.",
            _stacked(norms=("norm1", None))),
        "no-first-norm": ("The first norm is missing: it goes around the sum with attention.",
            _stacked(norms=(None, "norm2"))),
        "norm1-twice": ("Both norms are norm1. The second has numbers of its own, norm2.",
            _stacked(norms=("norm1", "norm1"))),
        "norms-swapped": ("The norms have changed places: norm1 belongs to attention, norm2 to the MLP.",
            _stacked(norms=("norm2", "norm1"))),
        "no-mlp-biases": ("Both biases of the MLP are missing: gelu(x @ W1 + b1) @ W2 + b2.",
            _stacked(mlp_biases=False)),
        "no-attention-biases": ("The four biases of attention are missing: call your self_attention, which has "
            "them.", _stacked(biases=False)),
        "no-biases": ("All six biases are missing: four in attention, and b1 and b2 in the MLP.",
            _stacked(biases=False, mlp_biases=False)),
        "no-mlp": ("The MLP is missing: only attention has written to the stream.", _stacked(think=False)),
        "attention-only": ("You stop after norm1. The MLP, its plus and norm2 are still to come.",
            _after_norm1(lambda x, y, norm2, mlp: y)),
        "no-attention": ("Attention is missing: only the MLP has written to the stream.", _stacked(attend=False)),
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
    show.note("<br>".join(map(escape, filter(None, [text, hint]))),
              kind="good" if not said else "idle" if said == "is not started" else "bad")
    return course if said else mine


def _judge(mine, theirs, real, inputs):
    """(What is wrong with it, what to look at): both empty when nothing is."""
    if is_stub(mine):
        return "is not started", ""
    x, *others = inputs
    stream = x.clone()
    result = call(mine, (), SECONDS, use=lambda function: function(stream, *others))
    if result.kind == "error":
        why = _why_it_stopped(mine, result.value, theirs, real, inputs)
        return "stopped with an error", "\n".join(filter(None, [str(result.value), why]))
    if result.kind != "value":
        return "did not come to an end", str(result.value)
    found, wanted = result.value, tuple(theirs.shape)
    if found is None:
        return "gives back None", "Its last line needs a return."
    if isinstance(found, tuple):
        return "gives back two things", TWO_THINGS
    if not torch.is_tensor(found):
        kind = "a NumPy array" if isinstance(found, np.ndarray) else f"something of type {type(found).__name__}"
        return f"gives back {kind} and no tensor", "torch.as_tensor(…) makes a tensor of an array, and .numpy() the reverse."
    if tuple(found.shape) != wanted:
        return f"gives the shape {tuple(found.shape)} instead of {wanted}", (
            "The heads are not side by side yet: (B, h, T, d_k) has to become (B, T, d)." if found.ndim == 4 else "")
    if found.dtype != theirs.dtype:
        return f"gives numbers of the kind {found.dtype}, and the model has {theirs.dtype}", ".to(x.dtype) makes them alike."
    if torch.allclose(found[real], theirs[real], rtol=0, atol=CLOSE):
        return ("", "") if torch.equal(stream, x) else (
            "changes x in place", "Write x = x + … and not x += …, or the state below this layer is lost.")
    faults = FAULTS.get(mine.__name__, {}).values()
    of_two = ((f"{SEVERAL} {hint}", both) for hint, both in two_at_once(faults))
    for hint, fault in [*faults, *of_two]:
        if torch.allclose(found[real], fault(*inputs)[real], rtol=1e-4, atol=1e-4):
            return "does not give the reference's numbers", hint
    far = (found - theirs)[real].abs().max()
    return "does not give the reference's numbers", f"The largest difference is {far:.2g}. {_where_it_begins(mine, inputs)}"


def _why_it_stopped(mine, error, theirs, real, inputs):
    """A sentence where the cause of an error is known, else ''."""
    if "'tuple'" in str(error):
        return TWO_THINGS
    x, *others, p = inputs
    exchanged = p | {"masked_attention": lambda *given, **named: p["masked_attention"](*given, **named)[::-1]}
    with contextlib.suppress(Exception):
        if torch.allclose(mine(x.clone(), *others, exchanged)[real], theirs[real], rtol=0, atol=CLOSE):
            return "You go on with the weights, the second thing that masked_attention returns: the output is the first."
    begins = _where_it_begins(mine, inputs)
    return begins if "masked_attention gets" in begins else ""


def _where_it_begins(mine, inputs):
    """What reaches masked_attention in ``mine`` and is not what reaches it in the course's, in one sentence."""
    def arguments(function):
        x, mask, w, p = inputs
        calls = []

        def watched(*given, **named):
            calls.append((*given, *named.values()))
            return p["masked_attention"](*given, **named)

        with contextlib.suppress(Exception):  # what it was called with before it stopped
            function(x.clone(), mask, w, p | {"masked_attention": watched})
        return calls

    calls = arguments(mine)
    if not calls:
        return "It never calls masked_attention: are your own scale, mask and softmax right?"
    for name, got, right in zip(("Q", "K", "V", "the mask"), calls[0], arguments(self_attention)[0], strict=False):
        shape = tuple(getattr(got, "shape", ()))
        if not torch.is_tensor(got) or shape != tuple(right.shape):
            return f"masked_attention gets {shape or got} as {name}, where {tuple(right.shape)} is right."
        if not torch.allclose(got.float(), right.float(), atol=1e-4):
            return f"It begins before masked_attention: {name} is not the reference's."
    return "Q, K, V and the mask are right where they reach masked_attention, so it is what comes after."
