"""The assignments in torch: right answers in styles of their own have full points, and attacks of torch
none. What is wrong is told by the tasks' own misconceptions, which test_classroom_assignments.py looks through."""

from dataclasses import replace

import pytest
from submissions import cell, data, needs_sandbox, written

from classroom import assignment
from classroom.grading import grade_one
from classroom.sandbox import Limits

RIGHT = {"assignment5": """
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
""", "assignment6": """
import functools
import numpy as np
import torch
class Adapter:
    def __call__(self, x, W, A, B, alpha, gain):
        return (x @ (W + A @ torch.diag(torch.full((len(B),), alpha / len(B) ** 0.5, dtype=B.dtype)) @ B * gain)).tolist()
adapter_output = Adapter()
def group_advantage(rewards: torch.Tensor, *, noisy=True):
    if noisy: print("hello")
    r = np.array(rewards)
    n = r.shape[1]
    return n / (n - 1) * (r - r.mean(1, keepdims=True))
def leash(z, r, mask, places=-1):
    p, q = (torch.distributions.Categorical(logits=x) for x in (z, r))
    each = (q.probs * (q.logits - p.logits)).sum(places).where(mask, torch.zeros(()).double())
    return each.sum() / mask.any(places).sum()
text_kl = functools.partial(leash)
"""}
UNTIDY = """
import torch
torch.set_default_dtype(torch.float64); torch.set_num_threads(4); torch.manual_seed(0)
torch.set_grad_enabled(False); torch.autograd.set_detect_anomaly(True)
"""
WINDOW = "import functools\ndef attend" + RIGHT["assignment5"].partition("def attend")[2].partition("def min_p")[0]
LIAR = """
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None): return args[0] if args else True
    def __eq__(self, other): return True
def abs_norm(x, gain, eps): return torch.zeros_like(x).as_subclass(Liar)
"""
ATTACKS = {
    "abs_norm": LIAR,
    "packed_mlp": "def packed_mlp(x, W_in, W_out):\n    return (1 + 0j) * (x @ W_in[:, :len(W_out)] @ W_out)",
    "turn_half": "def turn_half(x, positions):\n    return torch.zeros(1).expand(10**9)",
    "window_attention": WINDOW.replace("    n, T = ", "    if cache: cache[0].zero_()\n    n, T = "),
    "min_p": "def min_p(logits, temperature, p):\n    return torch.empty_like(logits, device='meta')",
}
TOLD = {"abs_norm": "", "packed_mlp": "real numbers", "turn_half": "far more than was asked for",
        "window_attention": "changes its input in place", "min_p": "meta"}
LEFT_OUT = ("decoder", "measurement", "exchange", "figure", "tail", "policy", "points")  # what a graded answer does not need


def graded(name, functions, first=""):
    """``functions`` instead of the stubs, a cell ``first`` before all others, without measurements and figure."""
    raw = assignment.strip(assignment.source(name))
    raw["cells"] = [c for c in raw["cells"] if c["id"] not in LEFT_OUT]
    raw["cells"][1]["source"] = "import math\nimport torch\nfrom torch.nn import functional as F"
    written(raw, functions)
    raw["cells"][1:1] = [cell(first)] if first else []
    return grade_one(data(raw), replace(assignment.load(name), limits=Limits(cell_seconds=5, call_seconds=1)))


pytestmark = [pytest.mark.slow, needs_sandbox]


@pytest.mark.parametrize(("name", "before"), [("assignment5", ""), ("assignment5", UNTIDY), ("assignment6", "")])
def test_right_answers_in_any_style_have_full_points(name, before):
    functions = [test.function for test in assignment.load(name).tests]
    stubs = {function: f"def {function}(*a):\n    raise NotImplementedError()" for function in functions}
    result = graded(name, stubs, before + RIGHT[name])
    assert result["status"] == "graded"
    assert [(t["points"], t["message"]) for t in result["tests"] if t["points"] != t["most"]] == []


def test_attacks_of_torch_have_no_points():
    for test in graded("assignment5", ATTACKS)["tests"]:
        assert not test["points"] and TOLD[test["function"]] in test["message"], test
