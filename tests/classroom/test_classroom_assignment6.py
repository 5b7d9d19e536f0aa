"""Assignment 6 in a class: right answers in styles of their own, answers that belong to lessons 18 and 19, near misses,
attacks."""

from dataclasses import replace

import pytest
from submissions import check_judged, check_points, in_torch

from classroom import assignment, sandbox
from classroom.grading import grade_one
from classroom.sandbox import Limits

NAME = "assignment6"
FULL = 21  # points for code
POINTS = {"adapter_output": 7, "group_advantage": 5, "group_advantage-extreme": 1, "text_kl": 7, "text_kl-extreme": 1}
needs_sandbox = pytest.mark.skipif(sandbox.problem() is not None, reason=str(sandbox.problem()))

RIGHT = {  # with loops, and by formulas of their own
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
}
OTHER_STYLES = """
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
"""
LESSONS = {  # what was right there
    "adapter_output": """
def adapter_output(x, W, A, B, alpha, gain):
    from helpers.adapters import lora_linear
    return x @ W + (lora_linear(x, W, A, B, alpha) - x @ W) * gain
""",
    "group_advantage": """
def group_advantage(rewards):
    from helpers.reward import advantages
    return advantages(rewards)
""",
    "text_kl": """
def text_kl(logits, reference_logits, mask):
    from helpers.reward import kl_to_reference
    return kl_to_reference(logits, reference_logits, mask)
""",
}
NEARLY = {
    "adapter_output": "def adapter_output(x, W, A, B, alpha, gain):\n"
                      "    return (x @ W + alpha / math.sqrt(A.shape[1]) * x @ A @ B) * gain",
    "group_advantage": "def group_advantage(rewards):\n"
                       "    return rewards - (rewards.sum(1, keepdim=True) - rewards) / rewards.shape[1]",
    "text_kl": RIGHT["text_kl"].replace("len(found)", "len(mask)"),
}
LIAR = """
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None): return args[0] if args else True
    def __eq__(self, other): return True
def group_advantage(rewards): return torch.zeros_like(rewards).as_subclass(Liar)
"""
ATTACKS = {
    "adapter_output": "def adapter_output(x, W, A, B, alpha, gain):\n    return torch.zeros(1).expand(10**9)",
    "group_advantage": LIAR,
    "text_kl": RIGHT["text_kl"].replace("    return sum", "    logits.zero_()\n    return sum"),
}
ENDS = {
    "adapter_output": "def adapter_output(x, W, A, B, alpha, gain):\n    while True: x = x + 1",
    "group_advantage": "def group_advantage(rewards):\n    return torch.empty_like(rewards, device='meta')",
    "text_kl": "def text_kl(logits, reference_logits, mask):\n    import os; os._exit(0)",
}


def named(text, **others):
    return {name: text.replace("{name}", name) for name in RIGHT} | others


# What is wrong, told by the checkers alone: name -> (functions, tests that do not pass, with a word in their message)
WRONG = {
    "lessons": (LESSONS, {
        "adapter_output": "alpha / r, as lesson 18 does", "group_advantage": "the advantages of lesson 19",
        "group_advantage-extreme": "the advantages of lesson 19", "text_kl": "lesson 19's kl_to_reference",
        "text_kl-extreme": "lesson 19's kl_to_reference"}),
    "nearly": (NEARLY, {
        "adapter_output": "the whole sum by the gain", "group_advantage": "The others are n - 1",
        "group_advantage-extreme": "The others are n - 1", "text_kl-extreme": "It takes no part"}),
    "right": (RIGHT, {}),
}
# In the sandbox: name -> (functions, a cell in front, tests that do not get their points, with a word in their message)
CASES = {
    "other_styles": (named("def {name}(*a):\n    raise NotImplementedError()"), OTHER_STYLES, {}),
    "attacks": (ATTACKS, "", {
        "adapter_output": "far more than was asked for", "group_advantage": "", "group_advantage-extreme": "",
        "text_kl": "changes its input in place", "text_kl-extreme": "changes its input in place"}),
    "ends": (ENDS, "", {
        "adapter_output": "did not end within", "group_advantage": "meta", "group_advantage-extreme": "meta",
        "text_kl": "ended its own process", "text_kl-extreme": "ended its own process"}),
}


LEFT_OUT = ("measurement", "figure", "policy", "points")  # what a graded answer does not need


@pytest.fixture(scope="module")
def graded():
    task = replace(assignment.load(NAME), limits=Limits(cell_seconds=5, call_seconds=1))
    return {name: grade_one(in_torch(NAME, functions, first, () if name == "whole" else LEFT_OUT), task)
            for name, (functions, first, _) in (CASES | {"whole": (RIGHT, "", {})}).items()}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name):
    check_judged(NAME, *WRONG[name])


@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("name", CASES)
def test_has_the_points_it_deserves(graded, name):
    check_points(graded[name], POINTS, CASES[name][2])


@pytest.mark.slow
@needs_sandbox
def test_a_whole_notebook_runs_on_other_answers(graded):
    """The measurements and the figure are made with the student's functions."""
    assert (graded["whole"]["status"], graded["whole"]["notes"], graded["whole"]["flags"]) == ("graded", [], [])
    assert sum(t["points"] for t in graded["whole"]["tests"]) == FULL == sum(POINTS.values())
