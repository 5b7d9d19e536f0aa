"""The assignments in torch: right answers in styles of their own have full points, and attacks of torch
none. What is wrong is told by the tasks' own misconceptions, which test_classroom_assignments.py looks through."""

from dataclasses import replace

import pytest
from submissions import cell, data, needs_sandbox

from classroom import assignment
from classroom.grading import grade_one
from classroom.sandbox import Limits

RIGHT = {"assignment5": {  # with loops, and by formulas of their own
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
}, "assignment6": {
    "adapter_output": """
def adapter_output(x, W, A, B, alpha, gain):
    out = torch.einsum("...i,io->...o", x, W)
    for j in range(A.shape[1]):
        thin = (x * A[:, j]).sum(-1)
        out = out + thin[..., None] * B[j] * gain * alpha * A.shape[1] ** -0.5
    return out
""",
    "group_advantage": """
def group_advantage(rewards):
    out = torch.empty_like(rewards)
    for g, row in enumerate(rewards.tolist()):
        for i, own in enumerate(row):
            others = row[:i] + row[i + 1:]
            out[g, i] = own - sum(others) / len(others)
    return out
""",
    "text_kl": """
def text_kl(logits, reference_logits, mask):
    found = []
    for z, r, m in zip(logits, reference_logits, mask):
        if m.any():
            p, q = torch.log_softmax(z[m], 1), torch.log_softmax(r[m], 1)
            found.append(sum((torch.exp(b) * (b - a)).sum() for a, b in zip(p, q)))
    if not found:
        raise ValueError("nothing counts")
    return sum(found) / len(found)
""",
}}
OTHER_STYLES = {"assignment5": """
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
LIAR = """
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None): return args[0] if args else True
    def __eq__(self, other): return True
def abs_norm(x, gain, eps): return torch.zeros_like(x).as_subclass(Liar)
"""
ATTACKS = {
    "abs_norm": LIAR,
    "packed_mlp": RIGHT["assignment5"]["packed_mlp"].replace("return ", "return (1 + 0j) * "),
    "turn_half": "def turn_half(x, positions):\n    return torch.zeros(1).expand(10**9)",
    "window_attention": RIGHT["assignment5"]["window_attention"].replace(
        "    t = ", "    if cache: cache[0].zero_()\n    t = "),
    "min_p": "def min_p(logits, temperature, p):\n    return torch.empty_like(logits, device='meta')",
}
TOLD = {"abs_norm": "", "packed_mlp": "real numbers", "turn_half": "far more than was asked for",
        "window_attention": "changes its input in place", "min_p": "meta"}
LEFT_OUT = ("decoder", "measurement", "exchange", "figure", "tail", "policy", "points")  # what a graded answer does not need


def graded(name, functions, first="", whole=False):
    """``functions`` instead of the stubs, a cell ``first`` before all others; ``whole``: with measurements and figure."""
    raw = assignment.strip(assignment.source(name))
    if not whole:
        raw["cells"] = [c for c in raw["cells"] if c["id"] not in LEFT_OUT]
        raw["cells"][1]["source"] = "import math\nimport torch\nfrom torch.nn import functional as F"
    for c in raw["cells"]:
        c["source"] = functions.get(c["metadata"].get("nbgrader", {}).get("grade_id"), c["source"])
    raw["cells"][1:1] = [cell(first)] if first else []
    return grade_one(data(raw), replace(assignment.load(name), limits=Limits(cell_seconds=5, call_seconds=1)))


pytestmark = [pytest.mark.slow, needs_sandbox]


@pytest.mark.parametrize(("name", "how"), [
    *((name, how) for name in RIGHT for how in ("whole", "other styles")), ("assignment5", "untidy")])
def test_right_answers_in_any_style_have_full_points(name, how):
    """The measurement and the figure of a whole notebook are made with the student's functions."""
    stubs = {function: f"def {function}(*a):\n    raise NotImplementedError()" for function in RIGHT[name]}
    result = {"whole": lambda: graded(name, RIGHT[name], whole=True),
              "other styles": lambda: graded(name, stubs, OTHER_STYLES[name]),
              "untidy": lambda: graded(name, RIGHT[name], UNTIDY)}[how]()
    assert result["status"] == "graded"
    assert [(t["points"], t["message"]) for t in result["tests"] if t["points"] != t["most"]] == []
    assert how != "whole" or (result["notes"], result["flags"]) == ([], [])


def test_attacks_of_torch_have_no_points():
    for test in graded("assignment5", ATTACKS)["tests"]:
        assert not test["points"] and TOLD[test["function"]] in test["message"], test
