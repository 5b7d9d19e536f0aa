"""Assignment 5 in a class: right answers in styles of their own, answers that belong to lesson 16, near misses, attacks."""

from dataclasses import replace

import pytest
from submissions import check_judged, check_points, in_torch

from classroom import assignment, sandbox
from classroom.grading import grade_one
from classroom.sandbox import Limits

NAME = "assignment5"
FULL = 29  # points for code
POINTS = {"abs_norm": 4, "abs_norm-extreme": 1, "packed_mlp": 5, "turn_half": 6, "window_attention": 8, "min_p": 4,
          "min_p-extreme": 1}
needs_sandbox = pytest.mark.skipif(sandbox.problem() is not None, reason=str(sandbox.problem()))

RIGHT = {  # with loops, and by formulas of their own
    "abs_norm": """
def abs_norm(x, gain, eps):
    d = len(gain)
    total = sum(x[..., j].abs() for j in range(d))
    return torch.stack([x[..., j] * (gain[j] + 1) / (total / d + eps) for j in range(d)], -1)
""",
    "packed_mlp": """
def packed_mlp(x, W_in, W_out):
    m = W_out.shape[0]
    value, gate = x @ W_in[:, :m], x @ W_in[:, m:]
    phi = 0.5 * (1 + torch.erf(gate / 2 ** 0.5))
    return torch.einsum("...m,md->...d", value * gate * phi, W_out)
""",
    "turn_half": """
def turn_half(x, positions):
    out, d = x.clone(), x.shape[-1]
    for row, p in enumerate(positions.tolist()):
        for i, c in enumerate(range(d // 2, d, 2)):
            angle = p / 1000 ** (2 * i / (d / 2))
            a, b = x[..., row, c], x[..., row, c + 1]
            out[..., row, c] = a * math.cos(angle) - b * math.sin(angle)
            out[..., row, c + 1] = a * math.sin(angle) + b * math.cos(angle)
    return out
""",
    "window_attention": """
def window_attention(q, k, v, cache, window):
    if cache is not None:
        k = torch.cat((cache[0], k), -2)
        v = torch.cat((cache[1], v), -2)
    t = k.shape[-2] - q.shape[-2]
    rows = []
    for i in range(q.shape[-2]):
        start = max(0, t + i + 1 - window)
        K, V = k[:, :, start:t + i + 1], v[:, :, start:t + i + 1]
        scores = (q[:, :, i:i + 1] * K).sum(-1) / q.shape[-1] ** 0.5
        rows.append((scores.softmax(-1)[..., None] * V).sum(-2))
    n = k.shape[-2]
    keep = min(window - 1, n)
    return torch.stack(rows, -2), (k.narrow(2, n - keep, keep), v.narrow(2, n - keep, keep))
""",
    "min_p": """
def min_p(logits, temperature, p):
    shifted = logits - logits.max()
    out = torch.zeros_like(logits)
    for i, z in enumerate(shifted.tolist()):
        if math.exp(z) >= p and z > -math.inf:
            out[i] = math.exp(z / temperature)
    return out / out.sum()
""",
}
OTHER_STYLES = """
import functools
import numpy as np
import torch
abs_norm = lambda x, gain, eps: torch.nn.functional.normalize(x, p=1, dim=-1, eps=0) if False else (
    x * (1 + gain) / (x.norm(p=1, dim=-1, keepdim=True) / x.shape[-1] + eps))
class Packed:
    def __call__(self, x, W_in, W_out):
        a, b = torch.split(x @ W_in, W_in.shape[1] // 2, -1)
        return (a * torch.nn.GELU()(b) @ W_out).tolist()
packed_mlp = Packed()
def turn_half(x: torch.Tensor, positions, base=1000, *, noisy=True):
    if noisy: print("hello")
    x, p = np.array(x), np.array(positions)
    m = x.shape[-1] // 2
    z = x[..., m::2] + 1j * x[..., m + 1::2]
    z = z * np.exp(1j * p[:, None] * base ** (-np.arange(0, m, 2) / m))
    x[..., m::2], x[..., m + 1::2] = z.real, z.imag
    return x
def attend(q, k, v, cache=None, window=4):
    K, V = cache or (k[:, :, :0], v[:, :, :0])
    k, v = torch.hstack([K.transpose(1, 2), k.transpose(1, 2)]).transpose(1, 2), torch.cat([V, v], 2)
    n, T = k.size(2), q.size(2)
    may = torch.ones(n, n).tril().triu(1 - window).bool()[-T:]
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=may)
    return [out, [x[:, :, n - window + 1:] if n > window - 1 else x for x in (k, v)]]
window_attention = functools.partial(attend)
def min_p(logits, temperature, p):
    with np.errstate(divide="ignore"):
        bar = float(logits.max()) + np.log(p)
    return torch.distributions.Categorical(
        logits=torch.where(logits >= bar, logits / temperature, torch.tensor(-torch.inf))).probs
"""
LESSON_16 = {  # what was right there
    "abs_norm": """
def abs_norm(x, gain, eps):
    return x / torch.sqrt(x.square().mean(-1, True) + eps) * (1 + gain)
""",
    "packed_mlp": """
def packed_mlp(x, W_in, W_out):
    gate, up = (x @ W_in).chunk(2, -1)
    return (F.silu(gate) * up) @ W_out
""",
    "turn_half": """
def turn_half(x, positions):
    from helpers.transformer import rotate
    return rotate(x, positions)
""",
    "window_attention": """
def window_attention(q, k, v, cache, window):
    from helpers.smollm2 import cached_attention
    return cached_attention(q, k, v, cache)
""",
    "min_p": """
def min_p(logits, temperature, p):
    from helpers.smollm2 import nucleus
    return (nucleus(logits.softmax(0), p).log() / temperature).softmax(0)
""",
}
NEARLY = {
    "abs_norm": "def abs_norm(x, gain, eps):\n    return x / x.abs().mean(-1, keepdim=True) * (1 + gain)",
    "packed_mlp": RIGHT["packed_mlp"].replace("0.5 * (1 + torch.erf(gate / 2 ** 0.5))",
                                              "0.5 * (1 + torch.tanh(0.7978845608 * (gate + 0.044715 * gate ** 3)))"),
    "turn_half": RIGHT["turn_half"].replace("(d / 2))", "d)"),
    "window_attention": RIGHT["window_attention"].replace("keep = min(window - 1, n)", "").replace(
        "k.narrow(2, n - keep, keep), v.narrow(2, n - keep, keep)", "k[:, :, -window:], v[:, :, -window:]"),
    "min_p": RIGHT["min_p"].replace("math.exp(z) >= p", "math.exp(z / temperature) >= p"),
}
LIAR = """
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None): return args[0] if args else True
    def __eq__(self, other): return True
def abs_norm(x, gain, eps): return torch.zeros_like(x).as_subclass(Liar)
"""
ATTACKS = {
    "abs_norm": LIAR,
    "packed_mlp": "def packed_mlp(x, W_in, W_out):\n    while True: x = x + 1",
    "turn_half": "def turn_half(x, positions):\n    return torch.zeros(1).expand(10**9)",
    "window_attention": RIGHT["window_attention"].replace("    t = ", "    if cache: cache[0].zero_()\n    t = "),
    "min_p": "def min_p(logits, temperature, p):\n    import os; os._exit(0)",
}
STRANGE = {
    "abs_norm": "def abs_norm(x, gain, eps):\n    return torch.empty_like(x, device='meta')",
    "packed_mlp": RIGHT["packed_mlp"].replace("return ", "return (1 + 0j) * "),
    "turn_half": "def turn_half(x, positions):\n    return torch.full_like(x, torch.nan)",
    "window_attention": "def window_attention(q, k, v, cache, window):\n    return v.to_sparse(), (k, v)",
    "min_p": "def min_p(logits, temperature, p):\n    x = []; x.append(x); return x",
}
META = "def min_p(logits, temperature, p):\n    return torch.empty_like(logits, device='meta')"
PATCHES = """
import builtins, sys, torch
import helpers.checks.core as core
core.evaluate = lambda *a, **k: core.Outcome("all", "passed", None, "")
core.compare = lambda *a, **k: None
torch.allclose = torch.equal = lambda *a, **k: True
torch.Tensor.__eq__ = torch.Tensor.numpy = torch.Tensor.detach = lambda self, *a: self
sys.modules["wire"].encode = lambda *a: {"plain": None}
"""
ASKING = ("turn_half", "min_p")
ASKS = "def {name}(*a):\n    from classroom.tasks import assignment5\n    return assignment5.{name}(*a)"
UNTIDY = """
import torch
torch.set_default_dtype(torch.float64); torch.set_num_threads(4); torch.manual_seed(0)
torch.set_grad_enabled(False); torch.autograd.set_detect_anomaly(True)
"""


def named(text, **others):
    return {name: text.replace("{name}", name) for name in RIGHT} | others


# What is wrong, told by the checkers alone: name -> (functions, tests that do not pass, with a word in their message)
WRONG = {
    "lesson_16": (LESSON_16, {
        "abs_norm": "root of the mean square", "packed_mlp": "SiLU, and on the left half",
        "turn_half": "lesson 08's rotate", "window_attention": "the attention of lesson 16",
        "min_p": "the nucleus of lesson 16", "min_p-extreme": "the nucleus of lesson 16"}),
    "nearly": (NEARLY, {
        "abs_norm": "eps has no effect", "abs_norm-extreme": "eps has no effect",
        "packed_mlp": "approximation of GELU by tanh", "turn_half": "divide by all d columns",
        "window_attention": "one token more than any new token can see",
        "min_p": "the cut comes first", "min_p-extreme": "the cut comes first"}),
}
# In the sandbox: name -> (functions, a cell in front, tests that do not get their points, with a word in their message)
CASES = {
    "other_styles": (named("def {name}(*a):\n    raise NotImplementedError()"), OTHER_STYLES, {}),
    "untidy": (RIGHT, UNTIDY, {}),
    "attacks": (ATTACKS, "", {
        "abs_norm": "", "abs_norm-extreme": "", "packed_mlp": "did not end within",
        "turn_half": "far more than was asked for", "window_attention": "changes its input in place",
        "min_p": "ended its own process", "min_p-extreme": "ended its own process"}),
    "strange": (STRANGE, "", {
        "abs_norm": "meta", "abs_norm-extreme": "meta", "packed_mlp": "real numbers", "turn_half": "nan",
        "window_attention": "", "min_p": "", "min_p-extreme": ""}),
    "patched": (named("def {name}(*a):\n    return Everything()", **{name: ASKS.replace("{name}", name) for name in ASKING}),
                PATCHES, {test: "No module named" * test.startswith(ASKING) for test in POINTS}),
}


# These run once a week, and what only torch makes possible wherever the grader has changed as well:
ALONE = {name: CASES.pop(name) for name in ("attacks", "strange", "patched")}
CASES["attacks_of_torch"] = (
    ATTACKS | {name: STRANGE[name] for name in ("packed_mlp", "window_attention")} | {"min_p": META}, "", {
        "abs_norm": "", "abs_norm-extreme": "", "packed_mlp": "real numbers", "turn_half": "far more than was asked for",
        "window_attention": "", "min_p": "meta", "min_p-extreme": "meta"})


LEFT_OUT = ("decoder", "measurement", "exchange", "figure", "tail")  # what a graded answer does not need


@pytest.fixture(scope="module")
def graded(pytestconfig):
    cases = CASES | {"whole": (RIGHT, "", {})} | (ALONE if pytestconfig.getoption("weekly", False) else {})
    task = replace(assignment.load(NAME), limits=Limits(cell_seconds=2, call_seconds=1))
    return {name: grade_one(in_torch(NAME, functions, first, () if name == "whole" else LEFT_OUT), task)
            for name, (functions, first, _) in cases.items()}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name):
    check_judged(NAME, *WRONG[name])


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("name", [*CASES, *(pytest.param(name, marks=pytest.mark.weekly) for name in ALONE)])
def test_has_the_points_it_deserves(graded, name):
    check_points(graded[name], POINTS, (CASES | ALONE)[name][2])


@pytest.mark.slow
@needs_sandbox
def test_a_whole_notebook_runs_on_other_answers(graded):
    """The measurement and the figure are made with the student's functions."""
    assert (graded["whole"]["status"], graded["whole"]["notes"], graded["whole"]["flags"]) == ("graded", [], [])
    assert sum(t["points"] for t in graded["whole"]["tests"]) == FULL == sum(POINTS.values())
