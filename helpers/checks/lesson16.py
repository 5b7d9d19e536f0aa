"""The exercises of lesson 16, on torch tensors: RMSNorm, the gated MLP, attention with groups and a cache, the layer made
of them, the nucleus, numbers of 4 bits. And `runs`: what a learner wrote runs the model."""

import functools
import inspect
import math
import time

import torch
from torch.nn import functional as F

from helpers.attention import split_heads
from helpers.checks.adopt import adopt
from helpers.checks.core import SECONDS, Contract, Exercise, Probe, call, example, larger
from helpers.smollm2 import (
    cached_attention,
    decoder_layer,
    dequantise,
    gated_mlp,
    nucleus,
    rms_norm,
    rope,
    turn,
)
from helpers.transformer import sample_next


def _tensor(rng, *shape, std=1.0, mean=0.0):
    return torch.tensor(rng.normal(mean, std, size=shape))


def _single(rng, *shape, std=1.0, mean=0.0):
    """float32, as in the model, and as what torch.full makes, a mask of -inf for example."""
    return _tensor(rng, *shape, std=std, mean=mean).float()


# ---------------------------------------------------------------- rms_norm


def _rms_inputs(*shape, eps=1e-5, std=2.0, mean=1.0, gain=None):
    """Tokens whose mean is not 0, so that it matters whether it is subtracted."""
    def make(rng):
        d = shape[-1]
        return (_tensor(rng, *shape, std=std, mean=mean),
                _tensor(rng, d, std=0.5, mean=1.0) if gain is None else torch.full((d,), gain).double(), eps)
    return make


def _by(divisor, finish=lambda normed, gain: gain * normed, centre=False):
    """x divided by ``divisor(x, eps)``, with or without its mean, then finished with the gain."""
    def function(x, gain, eps=1e-5):
        inner = x - x.mean(-1, keepdim=True) if centre else x
        return finish(inner / divisor(inner, eps), gain)
    return function


def _mean_square(x, dim=-1):
    return x.square().mean(dim=dim, keepdim=True)


def _root(x, eps):
    return torch.sqrt(_mean_square(x) + eps)


def _over_tokens(x, eps):
    return torch.sqrt(_mean_square(x, dim=-2 if x.ndim > 1 else -1) + eps)


RMS_NORM = Exercise(
    reference=rms_norm,
    probes=(
        example("by hand", (torch.tensor([3.0, 4.0]).double(), torch.ones(2).double(), 0.0),
            "x = (3, 4), gain 1, eps 0: the mean square is (9 + 16) / 2 = 12.5, its root 3.54, and the "
            "result (0.85, 1.13)."),
        Probe("one number", _rms_inputs(1, gain=1.0), "A token of one number: it is divided by its own size, "
            "so what remains is its sign. (LayerNorm would leave 0.)"),
        Probe("a gain of 1", _rms_inputs(5, gain=1.0), "The gain is 1 everywhere: the mean of the squares of "
            "the result should be 1, and its mean need not be 0."),
        Probe("a gain", _rms_inputs(4),
            "The gain multiplies the normalised token, number by number; it takes no part in the root."),
        Probe("two tokens", _rms_inputs(2, 3),
            "Each token, a row, is divided by a root of its own: mean over dim=-1, with keepdim=True."),
        Probe("as many tokens as dimensions", _rms_inputs(4, 4), "T and d are equal here, so a wrong axis "
            "goes through without an error. The mean runs over the d numbers of a token, dim=-1."),
        Probe("a batch", _rms_inputs(2, 3, 5),
            "x is (B, T, d) here. Count axes from the back: dim=-1 is always the numbers of one token."),
        Probe("a large eps", _rms_inputs(3, 4, eps=2.0), "eps is 2 here, so that its place shows: it is "
            "added to the mean square, inside the root.", special=True),
        Probe("a token of zeros", lambda rng: (torch.zeros(2, 3).double(), _tensor(rng, 3), 1e-5),
            "The token is 0 here. eps keeps the division from being 0 / 0; the result is 0.", draws=1,
            extreme=True),
        Probe("no eps given", lambda rng: _rms_inputs(4, 6, std=0.003, mean=0.0)(rng)[:2],
            "Nothing is said of eps here, as in decoder_layer later: it is 0.00001 then, the default in the "
            "stub.", draws=1),
        larger(_rms_inputs(5, 9, 11, eps=0.1)),
    ),
    misconceptions=(
        ("layer-norm", "You subtract the mean: that is LayerNorm. RMSNorm leaves the mean where it is.",
            _by(_root, centre=True)),
        ("standard-deviation", "You divide by the standard deviation, which is measured from the mean. "
            "RMSNorm measures from 0: the mean of the squares of x itself.",
            _by(lambda x, eps: torch.sqrt(x.var(-1, keepdim=True, correction=0) + eps))),
        ("eps-outside-the-root", "You add eps to the root. It is added to the mean square, inside the root.",
            _by(lambda x, eps: torch.sqrt(_mean_square(x)) + eps)),
        ("eps-outside-everything", "You add eps to the result. It is added to the mean square, inside the "
            "root.", lambda x, gain, eps=1e-5: rms_norm(x, gain, 0.0) + eps),
        ("eps-forgotten", "You leave eps out, so a token of zeros gives 0 / 0. Add it to the mean square, "
            "inside the root.", _by(lambda x, eps: torch.sqrt(_mean_square(x)))),
        ("eps-as-a-number", "You use 0.00001 whatever eps is given. Use the argument eps.",
            lambda x, gain, eps=1e-5: rms_norm(x, gain, 1e-5)),
        ("root-forgotten", "You divide by the mean square. Take its root first.",
            _by(lambda x, eps: _mean_square(x) + eps)),
        ("sum-of-squares", "You divide by the root of the sum of the squares, the length. It is their mean: "
            "divide the sum by d before you take the root.",
            _by(lambda x, eps: torch.sqrt(x.square().sum(-1, keepdim=True) + eps))),
        ("divided-by-d-minus-1", "You divide the sum of the squares by d - 1. It is their mean: divide by d.",
            _by(lambda x, eps: torch.sqrt(x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1) + eps))),
        ("square-of-the-mean", "You square the mean. It is the other way round: square the numbers first, "
            "then take the mean.", _by(lambda x, eps: torch.sqrt(x.mean(-1, keepdim=True).square() + eps))),
        ("mean-of-sizes", "You divide by the mean of |x|. It is the root of the mean of x².",
            _by(lambda x, eps: x.abs().mean(-1, keepdim=True) + eps)),
        ("one-root-for-all", "You take one mean over all tokens. Each token has a root of its own: "
            "mean(dim=-1, keepdim=True).", _by(lambda x, eps: torch.sqrt(x.square().mean() + eps))),
        ("over-the-tokens", "Your mean runs over the tokens. It runs over the d numbers of one token, dim=-1.",
            _by(_over_tokens)),
        ("gain-forgotten", "The gain is missing: multiply the normalised token by it.",
            _by(_root, lambda normed, gain: normed)),
        ("gain-added", "You add the gain. It multiplies; RMSNorm adds nothing.",
            _by(_root, lambda normed, gain: normed + gain)),
        ("one-plus-gain", "You multiply by 1 + gain, as some models do. Here it is the gain itself.",
            _by(_root, lambda normed, gain: normed * (1 + gain))),
        ("gain-inside",
            "You multiply by the gain first and normalise afterwards, so the root sees it. Normalise x, then "
            "multiply.", lambda x, gain, eps=1e-5: rms_norm(gain * x, torch.ones_like(gain), eps)),
        ("multiplied-by-the-root", "You multiply by the root. Divide by it.",
            lambda x, gain, eps=1e-5: gain * x * _root(x, eps)),
        ("keepdim-forgotten", "mean(-1) without keepdim=True loses an axis: the roots, one a token, then "
            "meet the numbers of a token and not the tokens. With keepdim=True they are (…, 1).",
            lambda x, gain, eps=1e-5: gain * x / torch.sqrt(x.square().mean(-1) + eps)),
        ("torchs-standard-deviation", "You divide by x.std(-1), which is measured from the mean, and divides "
            "by d - 1 besides. RMSNorm measures from 0: the mean of the squares of x itself.",
            _by(lambda x, eps: x.std(-1, keepdim=True) + eps)),
        ("torchs-variance", "You take the root of x.var(-1), which is measured from the mean, and divides by "
            "d - 1 besides. RMSNorm measures from 0: the mean of the squares of x itself.",
            _by(lambda x, eps: torch.sqrt(x.var(-1, keepdim=True) + eps))),
        ("torchs-layer-norm",
            "You subtract the mean and divide by torch's standard deviation: that is nearly LayerNorm. "
            "RMSNorm leaves the mean where it is, and divides by the root of the mean of the squares.",
            lambda x, gain, eps=1e-5: gain * (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + eps)),
        ("over-the-first-axis", "Your mean runs over the first axis. It runs over the d numbers of one "
            "token, the last one: dim=-1.", _by(lambda x, eps: torch.sqrt(_mean_square(x, dim=0) + eps))),
        ("over-the-second-axis", "Your mean runs over axis 1, which is the last one only if x is (T, d). "
            "Count from the back: dim=-1.", _by(lambda x, eps: torch.sqrt(_mean_square(x, dim=1) + eps))),
        ("one-length-for-all", "You divide by one length, that of all numbers together. Each token has a "
            "root of its own: mean(dim=-1, keepdim=True).", _by(lambda x, eps: x.norm() + eps)),
        ("length-of-a-token", "You divide by the length of the token, x.norm(dim=-1). That is √d times the "
            "root of the mean square: take the mean of the squares, not their sum.",
            _by(lambda x, eps: x.norm(dim=-1, keepdim=True) + eps)),
        ("largest-number", "You divide by the largest |x|. It is the root of the mean of x².",
            _by(lambda x, eps: x.abs().amax(-1, keepdim=True) + eps)),
        ("divided-by-the-gain", "You divide by the gain. It multiplies.",
            _by(_root, lambda normed, gain: normed / gain)),
        ("x-forgotten", "You return the gain divided by the root: x itself is missing.",
            lambda x, gain, eps=1e-5: gain / _root(x, eps) + 0 * x),
        ("eps-subtracted", "You subtract eps. It is added to the mean square, so that the root is never 0.",
            _by(lambda x, eps: torch.sqrt(_mean_square(x) - eps))),
    ),
    nudges=(("missing 1 required positional argument: 'eps'", (
        "decoder_layer will leave eps out: keep the default of the stub, eps=1e-5."
    )),),
)


# ---------------------------------------------------------------- gated_mlp


def _mlp_inputs(*shape, m, std=1.0):
    def make(rng):
        d = shape[-1]
        return (_tensor(rng, *shape, std=std), _tensor(rng, d, m), _tensor(rng, d, m), _tensor(rng, m, d))
    return make


def _gated(gate=F.silu, up=lambda a: a, join=torch.mul, inside=lambda a: a, outside=lambda a: a):
    """The reference, with other functions in its places."""
    def function(x, W_gate, W_up, W_down):
        return outside(inside(join(gate(x @ W_gate), up(x @ W_up))) @ W_down)
    return function


def _same(a):
    return a


GATED_MLP = Exercise(
    reference=gated_mlp,
    nudges=(("matmul|mat1 and mat2|batch1|batch2|size mismatch", (
        "⊙ multiplies number by number: that is * between the two halves, and @ is the matrix product.")),),
    probes=(
        Probe("by hand",
            lambda rng: tuple(torch.tensor(a).double() for a in ([1.0], [[2.0]], [[3.0]], [[10.0]])),
            "x = 1, W_gate = 2, W_up = 3, W_down = 10. SiLU(2) = 2 / (1 + e⁻²) = 1.76, times 3 is 5.28, "
            "times 10 is 52.8.", draws=1),
        Probe("one number in, one inside", _mlp_inputs(1, m=1),
            "d = m = 1: the result is SiLU(x · W_gate) · (x · W_up) · W_down."),
        Probe("one token", _mlp_inputs(3, m=2), "SiLU(a) = a / (1 + exp(-a)) is applied to x W_gate, and to "
            "nothing else. The two branches are multiplied number by number, then comes W_down."),
        Probe("as wide inside as outside", _mlp_inputs(3, 4, m=4), "d and m are equal here, so a transposed "
            "matrix goes through without an error. All products are x @ W."),
        Probe("tokens", _mlp_inputs(4, 3, m=5),
            "Four tokens: each goes through alone, as in the MLP of lesson 09."),
        Probe("a batch", _mlp_inputs(2, 3, 4, m=7), "x is (B, T, d) here, and x @ W works for it as it is."),
        Probe("large numbers", _mlp_inputs(2, 3, m=4, std=3000.0), "exp overflows here: exp(-a) for very "
            "negative a, where SiLU(a) is 0, and exp(a) for large a, where inf / inf is not a number. a * "
            "torch.sigmoid(a) copes with both, and so does F.silu.", extreme=True),
        larger(_mlp_inputs(5, 9, 11, m=12)),
    ),
    misconceptions=(
        ("gate-and-up-swapped", "You apply SiLU to x W_up. It belongs to x W_gate; the other branch stays as "
            "it is. Every shape fits, so no error will tell you.",
            lambda x, W_gate, W_up, W_down: gated_mlp(x, W_up, W_gate, W_down)),
        ("silu-left-out",
            "You multiply the two branches as they are. SiLU belongs on x W_gate first.", _gated(_same)),
        ("sigmoid", "You use the sigmoid, 1 / (1 + exp(-a)). SiLU is a times that.", _gated(torch.sigmoid)),
        ("relu", "You use ReLU. The function here is SiLU: a / (1 + exp(-a)).", _gated(torch.relu)),
        ("gelu", "You use GELU. The function here is SiLU: a / (1 + exp(-a)), close to it and not the same.",
            _gated(F.gelu)),
        ("tanh", "You use tanh. The function here is SiLU: a / (1 + exp(-a)).", _gated(torch.tanh)),
        ("softplus", "You use log(1 + exp(a)). SiLU is a / (1 + exp(-a)).", _gated(F.softplus)),
        ("wrong-sign", "The exponent has the wrong sign: SiLU(a) = a / (1 + exp(-a)), nearly a for large a "
            "and nearly 0 for very negative a.", _gated(lambda a: a * torch.sigmoid(-a))),
        ("silu-on-both", "You apply SiLU to both branches. Only x W_gate gets it.", _gated(up=F.silu)),
        ("silu-after-the-product", "You multiply first and apply SiLU to the product. SiLU comes first, on x "
            "W_gate alone.", _gated(_same, inside=F.silu)),
        ("silu-at-the-end", "You apply SiLU to the result. It belongs on x W_gate, before the branches are "
            "multiplied.", _gated(_same, outside=F.silu)),
        ("added", "You add the two branches. They are multiplied, number by number: that is what makes one "
            "the gate of the other.", _gated(join=torch.add)),
        ("no-up", "W_up is not used: that is the MLP of lesson 09 with SiLU for ReLU. Multiply by x W_up "
            "before W_down.", _gated(join=lambda a, b: a)),
        ("no-gate", "W_gate is not used. Multiply SiLU(x W_gate) with x W_up before W_down.",
            _gated(join=lambda a, b: b)),
        ("no-down", "You return the m numbers inside. W_down brings them back to d.",
            lambda x, W_gate, W_up, W_down: F.silu(x @ W_gate) * (x @ W_up)),
        ("residual-added", "You add x. The residual connection stands in the block, not in the MLP.",
            lambda x, W_gate, W_up, W_down: x + gated_mlp(x, W_gate, W_up, W_down)),
        ("softmax-gate", "Your gate is a softmax over the m numbers. SiLU looks at each number alone.",
            _gated(lambda a: torch.softmax(a, dim=-1))),
        ("linear-layers", "You multiply by the transposed matrices, as torch's linear layers do. Here all "
            "are (d_in, d_out): x @ W.",
            lambda x, W_gate, W_up, W_down: F.linear(F.silu(F.linear(x, W_gate)) * F.linear(x, W_up), W_down)),
        ("silu-on-x", "You apply SiLU to x, before the product with W_gate. It comes after it: SiLU(x "
            "W_gate).", lambda x, W_gate, W_up, W_down: ((F.silu(x) @ W_gate) * (x @ W_up)) @ W_down),
        ("sigmoid-of-the-other", "The sigmoid looks at x W_up here. SiLU(a) is a times the sigmoid of the "
            "same a, a = x W_gate, and that is multiplied by x W_up.",
            lambda x, W_gate, W_up, W_down: ((x @ W_gate) * torch.sigmoid(x @ W_up)) @ W_down),
        ("down-on-each-branch",
            "You bring each branch down to d and multiply there. Multiply the m numbers first, then comes "
            "W_down.", lambda x, W_gate, W_up, W_down: (F.silu(x @ W_gate) @ W_down) * ((x @ W_up) @ W_down)),
        ("quick-gelu", "You use a · sigmoid(1.702 a), an approximation of GELU. SiLU is a · sigmoid(a).",
            _gated(lambda a: a * torch.sigmoid(1.702 * a))),
        ("tanh-gelu", "You use GELU, in its approximation with tanh. The function here is SiLU: a / (1 + "
            "exp(-a)).", _gated(lambda a: F.gelu(a, approximate="tanh"))),
        ("multiplied-by-the-bottom", "You multiply by 1 + exp(-a). SiLU divides by it: a / (1 + exp(-a)).",
            _gated(lambda a: a * (1 + torch.exp(-a)))),
        ("squared-relu", "You use the square of ReLU. The function here is SiLU: a / (1 + exp(-a)).",
            _gated(lambda a: torch.relu(a) ** 2)),
        ("down-turned", "You multiply by the transpose of W_down. All matrices are (d_in, d_out) here: @ "
            "W_down.", lambda x, W_gate, W_up, W_down: (F.silu(x @ W_gate) * (x @ W_up)) @ W_down.T),
        ("up-used-twice", "Both branches come from W_up. The gate has a matrix of its own, W_gate.",
            lambda x, W_gate, W_up, W_down: gated_mlp(x, W_up, W_up, W_down)),
        ("gate-used-twice", "Both branches come from W_gate. The other branch has a matrix of its own, W_up.",
            lambda x, W_gate, W_up, W_down: gated_mlp(x, W_gate, W_gate, W_down)),
        ("halved", "Your SiLU comes out as a · (1 + tanh(a)) / 2. With tanh it would be a · (1 + tanh(a / "
            "2)) / 2.", _gated(lambda a: a * (1 + torch.tanh(a)) / 2)),
    ),
)


# ---------------------------------------------------------------- dequantise


def _blocks(n, most=256, least=0):
    def make(rng):
        return (torch.tensor(rng.uniform(0.01, 0.2, n)), torch.tensor(rng.normal(-1, 0.5, n)),
                torch.tensor(rng.integers(least, most, (n, 16)), dtype=torch.uint8))
    return make


def _counting(rng):
    """Codes 0 to 15 in the low nibbles and 15 to 0 in the high ones."""
    low = torch.arange(16)
    return torch.ones(1).double(), torch.zeros(1).double(), (low + 16 * low.flip(0)).to(torch.uint8)[None]


def _low_only(rng):
    return _blocks(2, 16)(rng)


def _high_only(rng):
    scales, minima, codes = _blocks(2, 16)(rng)
    return scales, minima, codes * 16


def _nibbles(codes):
    return codes & 15, codes >> 4


def _dequantised(order=lambda low, high: torch.cat([low, high], -1),
                 value=lambda codes, scales, minima: scales * codes + minima):
    """The reference, with another order of the nibbles or another formula."""
    def function(scales, minima, codes):
        return value(order(*_nibbles(codes)).to(scales.dtype), scales[:, None], minima[:, None])
    return function


def _in_turn(low, high):
    return torch.stack([low, high], -1).flatten(-2)


def _high_not_moved(scales, minima, codes):
    return scales[:, None] * torch.cat([codes & 15, codes & 240], -1) + minima[:, None]


def _moved_by_three(scales, minima, codes):
    return scales[:, None] * torch.cat([codes & 15, codes >> 3], -1) + minima[:, None]


DEQUANTISE = Exercise(
    reference=dequantise,
    probes=(
        Probe("counting", _counting, "One block, scale 1 and minimum 0, so the result is the codes: 0, 1, …, "
            "15 from the low halves of the bytes, then 15, 14, …, 0 from the high ones.", draws=1),
        Probe("one block", _blocks(1), "One block: value = scale · code + minimum. The low four bits (codes "
            "& 15) are numbers 0-15, the high four (codes >> 4) numbers 16-31."),
        Probe("low halves only", _low_only,
            "The high four bits of every byte are 0 here, so numbers 16-31 are the minimum of their block."),
        Probe("high halves only", _high_only,
            "The low four bits of every byte are 0 here, so numbers 0-15 are the minimum of their block."),
        Probe("a scale of 0", lambda rng: (torch.zeros(2).double(), _tensor(rng, 2), _blocks(2)(rng)[2]),
            "The scale is 0 here: all 32 numbers of a block are its minimum."),
        Probe("sixteen blocks", _blocks(16), "16 blocks, as many as a block has bytes, so a wrong axis goes "
            "through without an error. Each row has its own scale: scales[:, None]."),
        Probe("thirty-two blocks", _blocks(32), "32 blocks, as many as a block has numbers, so a wrong axis "
            "goes through without an error. Each row has its own scale and minimum: [:, None]."),
        Probe("large codes", _blocks(3, 256, 240),
            "All codes are large here. A byte holds 0 to 255: a product of bytes wraps around, so turn the "
            "codes into floating-point numbers, or multiply by the scale, which is one."),
        larger(_blocks(45)),
    ),
    misconceptions=(
        ("nibbles-swapped", "You take the high halves first. The low four bits of the 16 bytes are numbers "
            "0-15, the high four numbers 16-31.", _dequantised(lambda low, high: torch.cat([high, low], -1))),
        ("nibbles-in-turn", "You put the two halves of a byte side by side: low, high, low, high. All 16 low "
            "halves come first, then all 16 high ones.", _dequantised(_in_turn)),
        ("nibbles-in-turn-high-first",
            "You put the two halves of a byte side by side, high, low, high, low. All 16 low halves come "
            "first, then all 16 high ones.", _dequantised(lambda low, high: _in_turn(high, low))),
        ("minimum-forgotten", "You leave the minimum out. Codes run from 0 to 15, so without it no number "
            "could be negative.", _dequantised(value=lambda codes, scales, minima: scales * codes)),
        ("minimum-subtracted", "You subtract the minimum. It is added: code 0 stands for the minimum.",
            _dequantised(value=lambda codes, scales, minima: scales * codes - minima)),
        ("minimum-scaled", "You add the minimum before you multiply. First scale · code, then the minimum.",
            _dequantised(value=lambda codes, scales, minima: scales * (codes + minima))),
        ("scale-and-minimum-swapped",
            "Scale and minimum have changed places. The scale multiplies the code, the minimum is added.",
            _dequantised(value=lambda codes, scales, minima: minima * codes + scales)),
        ("codes-from-minus-8", "You subtract 8 from the codes, as a format without minima does. Here the "
            "minimum does that work.",
            _dequantised(value=lambda codes, scales, minima: scales * (codes - 8) + minima)),
        ("codes-with-sign", "You read codes above 7 as negative. They are whole numbers from 0 to 15.",
            _dequantised(value=lambda codes, scales, minima: scales * torch.where(codes > 7, codes - 16, codes)
                        + minima)),
        ("scale-over-15", "You divide the code by 15. The scale is the step from one code to the next, not "
            "the whole range.",
            _dequantised(value=lambda codes, scales, minima: scales * codes / 15 + minima)),
        ("divided-by-the-scale", "You divide by the scale. It multiplies the code.",
            _dequantised(value=lambda codes, scales, minima: codes / scales + minima)),
        ("high-half-not-moved", "You keep the high four bits where they are, so they count 16 times too "
            "much. Move them down: codes >> 4.", _high_not_moved),
        ("moved-by-three",
            "You move the high half by three bits. A half has four: codes >> 4.", _moved_by_three),
        ("low-half-twice", "Numbers 16-31 repeat numbers 0-15: you take the low half both times. The high "
            "half is codes >> 4. (>> comes before &: codes & 0xF0 >> 4 is codes & 15.)",
            _dequantised(lambda low, high: torch.cat([low, low], -1))),
        ("whole-bytes-below",
            "The first 16 numbers come from whole bytes. Take only the low four bits: codes & 15.",
            lambda scales, minima, codes: scales[:, None] * torch.cat([codes, codes >> 4], -1) + minima[:, None]),
        ("bytes-as-numbers", "You turn each byte into one number, 16 a block. A byte holds two codes of four "
            "bits each: the result has 32 columns.",
            lambda scales, minima, codes: scales[:, None] * codes + minima[:, None]),
        ("no-new-axis", "You multiply (n,) with (n, 32), so a scale meets a column and not its row. Give the "
            "scales and the minima an axis: [:, None].",
            lambda scales, minima, codes: scales * torch.cat(_nibbles(codes), -1) + minima),
        ("flat", "Your numbers are right and stand in one row. Return (n, 32), one row a block.",
            lambda scales, minima, codes: dequantise(scales, minima, codes).flatten()),
        ("divided-by-15", "You take codes % 15 and codes // 15. Four bits have 16 values, 0 to 15: & 15 and "
            ">> 4, or % 16 and // 16.",
            lambda scales, minima, codes: scales[:, None] * torch.cat([codes % 15, codes // 15], -1) + minima[:, None]),
        ("and-16", "& 16 looks at one bit, the fifth. The low four are & 15, which is 0000 1111 in bits.",
            lambda scales, minima, codes: scales[:, None] * torch.cat([codes & 16, codes >> 4], -1) + minima[:, None]),
        ("and-7", "& 7 keeps three bits. The low four are & 15, which is 0000 1111 in bits.",
            lambda scales, minima, codes: scales[:, None] * torch.cat([codes & 7, codes >> 4], -1) + minima[:, None]),
        ("moved-up", "You move the bits up, codes << 4, and the high ones fall off the byte. The high half "
            "comes down: codes >> 4.",
            lambda scales, minima, codes: scales[:, None] * torch.cat([codes & 15, codes << 4], -1) + minima[:, None]),
        ("divided-not-cut",
            "codes / 16 keeps a fraction, made of the low bits. codes // 16 or codes >> 4 drops them.",
            lambda scales, minima, codes: scales[:, None] * torch.cat([codes & 15, codes / 16], -1) + minima[:, None]),
        ("high-half-twice", "Numbers 0-15 repeat numbers 16-31: you take the high half both times. The low "
            "half is codes & 15.", _dequantised(lambda low, high: torch.cat([high, high], -1))),
        ("backwards", "Your block runs backwards: number 0 comes from the low half of byte 0, number 16 from "
            "its high half.", _dequantised(lambda low, high: torch.cat([low, high], -1).flip(-1))),
        ("halves-below-each-other", "You put the high halves below the low ones, (2n, 16). Put them beside "
            "each other: torch.cat([low, high], dim=-1).",
            lambda scales, minima, codes: torch.cat([scales[:, None] * half + minima[:, None] for half in _nibbles(codes)])),
        ("an-axis-too-many", "Your numbers are right and stand as (n, 2, 16). Return (n, 32): torch.cat "
            "joins along an axis that is there, torch.stack makes a new one.",
            lambda scales, minima, codes: dequantise(scales, minima, codes).unflatten(1, (2, 16))),
        ("scales-in-turn", "You lay out scales and minima with repeat(32), which is in turn: 0, 1, 2, 0, 1, "
            "2. Each is needed 32 times in a row, or give it an axis: [:, None].",
            lambda scales, minima, codes: scales.repeat(32).reshape(-1, 32) * torch.cat(_nibbles(codes), -1)
            + minima.repeat(32).reshape(-1, 32)),
        ("cut-to-whole-numbers", "Your result is cut off to whole numbers, maybe because it is put into a "
            "tensor of the codes' dtype. It has the dtype of the scales.",
            lambda scales, minima, codes: dequantise(scales, minima, codes).int().to(scales.dtype)),
        ("minimum-times-code", "You multiply the minimum by the code as well. It is added once: scale · code "
            "+ minimum.", _dequantised(value=lambda codes, scales, minima: (scales + minima) * codes)),
    ),
)


# ---------------------------------------------------------------- cached_attention


def _cached_inputs(B, h, g, T, t, d_k, std=1.0):
    """T new tokens after t in the cache; t = 0: the cache is None."""
    def make(rng):
        q = _single(rng, B, h, T, d_k, std=std)
        k, v = _single(rng, B, g, T, d_k, std=std), _single(rng, B, g, T, d_k)
        return q, k, v, (_single(rng, B, g, t, d_k, std=std), _single(rng, B, g, t, d_k)) if t else None
    return make


def _joined(k, v, cache):
    return (k, v) if cache is None else (torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2))


def _spread(x, h, in_turn=False):
    n = h // x.shape[1]
    return x.repeat(1, n, 1, 1) if in_turn else x.repeat_interleave(n, 1)


def _offset(T, n):
    return n - T


def _attends(see=_joined, keep=_joined, offset=_offset, scale=lambda q, K: math.sqrt(q.shape[-1]),
             weigh=lambda scores, may: torch.softmax(scores.masked_fill(~may, -math.inf), -1),
             keys_in_turn=False, values_in_turn=False, form=lambda out: out):
    """The reference, with the faults that the arguments choose."""
    def function(q, k, v, cache=None):
        h, T = q.shape[1:3]
        K, V = see(k, v, cache)
        scores = q @ _spread(K, h, keys_in_turn).mT / scale(q, K)
        may = torch.ones(T, K.shape[2]).tril(offset(T, K.shape[2])).bool()
        out = weigh(scores, may) @ _spread(V, h, values_in_turn)
        return form(out), keep(k, v, cache)
    return function


def _new_first(k, v, cache):
    return (k, v) if cache is None else (torch.cat([k, cache[0]], 2), torch.cat([v, cache[1]], 2))


def _heads_first(k, v, cache):
    return (k, v) if cache is None else (torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1))


def _spread_cache(q, k, v, cache=None):
    out, kept = cached_attention(q, k, v, cache)
    return out, tuple(_spread(x, q.shape[1]) for x in kept)


def _mask_only_at_first(q, k, v, cache=None):
    if cache is None:
        return cached_attention(q, k, v)
    return _attends(weigh=lambda scores, may: torch.softmax(scores, -1))(q, k, v, cache)


def _one_group(group):
    def picked(k, v, cache):
        return tuple(x[:, group][:, None] for x in _joined(k, v, cache))
    return _attends(see=picked)


def _after_softmax(renormalise):
    def weigh(scores, may):
        weights = torch.softmax(scores, -1) * may
        return weights / weights.sum(-1, keepdim=True) if renormalise else weights
    return weigh


def _cache_hidden(scores, may):
    """Rows see the first columns up to their number, and all new ones."""
    T, n = scores.shape[-2:]
    seen = torch.ones(T, n).tril().bool() | (torch.arange(n) >= n - T)
    return torch.softmax(scores.masked_fill(~seen, -math.inf), -1)


def _by_group(group):
    def function(q, k, v, cache=None):
        h, g = q.shape[1], k.shape[1]
        K, V = _joined(k, v, cache)
        chosen = [group(i, h, g) for i in range(h)]
        return cached_attention(q, K[:, chosen][:, :, -q.shape[2]:], V[:, chosen][:, :, -q.shape[2]:], tuple(
            z[:, chosen][:, :, :-q.shape[2]] for z in (K, V)) if cache else None)[0], (K, V)
    return function


def _scaled_late(q, k, v, cache=None):
    out, kept = _attends(scale=lambda q, K: 1.0)(q, k, v, cache)
    return out / math.sqrt(q.shape[-1]), kept


def _not_spread(q, k, v, cache=None):
    K, V = _joined(k, v, cache)
    T, n = q.shape[2], K.shape[2]
    scores = q @ K.mT / math.sqrt(q.shape[-1])
    may = torch.ones(T, n).tril(n - T).bool()
    return torch.softmax(scores.masked_fill(~may, -math.inf), -1) @ V, (K, V)


CACHED_ATTENTION = Exercise(
    reference=cached_attention,
    results=("the output", "the new cache"),
    probes=(
        Probe("one token, no cache", _cached_inputs(1, 1, 1, 1, 0, 3),
            "The first token of a text sees only itself: the output is v, and the new cache is (k, v)."),
        Probe("one token, one cached", _cached_inputs(1, 1, 1, 1, 1, 2), "One token is cached. The new one "
            "sees it and itself; the new cache holds both, the old one first."),
        Probe("a prompt, no cache", _cached_inputs(1, 2, 2, 4, 0, 3),
            "Four new tokens and no cache: plain causal attention. Token i sees tokens 0 to i."),
        Probe("one token, many cached", _cached_inputs(1, 2, 2, 1, 5, 3), "One new token and 5 cached ones: "
            "it sees all 6. A mask made for one row and cut at the left would leave it only the first."),
        Probe("a second piece of a prompt", _cached_inputs(1, 2, 2, 3, 4, 5),
            "Three new tokens after 4 cached ones: new token i stands at place 4 + i, and sees keys 0 to 4 + "
            "i. The mask begins 4 columns further to the right: tril(t)."),
        Probe("two groups of two", _cached_inputs(1, 4, 2, 3, 0, 3), "h = 4 query heads and g = 2 heads of "
            "keys: heads 0 and 1 use group 0, heads 2 and 3 use group 1."),
        Probe("three groups of two, with a cache", _cached_inputs(2, 6, 3, 2, 3, 4),
            "h = 6 and g = 3, with a batch and a cache: head i uses group i // (h // g). The cache keeps g "
            "heads, not h."),
        Probe("one group", _cached_inputs(2, 3, 1, 2, 2, 5), "g = 1: all query heads share one head of keys "
            "and values."),
        Probe("as many keys as dimensions", _cached_inputs(2, 4, 2, 2, 2, 4),
            "t + T equals d_k here, so a wrong axis goes through without an error. The softmax runs over the "
            "keys, the last axis of the scores."),
        Probe("two groups of two, with a cache", _cached_inputs(1, 4, 2, 3, 2, 3),
            "h = 4, g = 2, and three new tokens after 2 cached ones: heads 0 and 1 use group 0, heads 2 and "
            "3 use group 1, and new token i sees keys 0 to 2 + i."),
        Probe("large numbers", _cached_inputs(1, 4, 2, 3, 3, 4, std=30.0), "The scores are large here, and "
            "torch.softmax copes with them. Divide by √d_k before it.", extreme=True, absolute=1e-3),
        larger(_cached_inputs(5, 10, 5, 9, 10, 11)),
    ),
    misconceptions=(
        ("cache-not-used",
            "You do not look at `cache`: the new tokens see only each other, and nothing of the past is "
            "kept. Append k and v first.", lambda q, k, v, cache=None: cached_attention(q, k, v, None)),
        ("no-offset", "Your mask begins at the left again: new token i sees keys 0 to i, as if nothing were "
            "cached. It stands at place t + i and sees keys 0 to t + i: tril(t), where t is the length of "
            "the cache. (is_causal=True does the same wrong.)", _attends(offset=lambda T, n: 0)),
        ("no-mask", "New tokens see those after them. New token i sees the cache and new tokens 0 to i.",
            _attends(offset=lambda T, n: n)),
        ("mask-only-without-a-cache", "With a cache you use no mask. That is right for one new token, and "
            "wrong for several: they would see those after them.", _mask_only_at_first),
        ("one-too-far", "Each new token also sees the one after it. The last key that new token i may see is "
            "t + i, itself.", _attends(offset=lambda T, n: n - T + 1)),
        ("does-not-see-itself", "A new token does not see itself, so the first of a text sees nothing. Token "
            "i sees keys 0 to t + i, its own included.", _attends(offset=lambda T, n: n - T - 1)),
        ("groups-in-turn", "You give the groups to the heads in turn: 0, 1, 0, 1. Heads of one group stand "
            "side by side: 0, 0, 1, 1. torch's repeat does the former, repeat_interleave the latter.",
            _attends(keys_in_turn=True, values_in_turn=True)),
        ("keys-in-turn", "The values go to the right heads, the keys do not: you spread them in turn, 0, 1, "
            "0, 1. It is 0, 0, 1, 1 for both.", _attends(keys_in_turn=True)),
        ("values-in-turn", "The keys go to the right heads, the values do not: you spread them in turn, 0, "
            "1, 0, 1. It is 0, 0, 1, 1 for both.", _attends(values_in_turn=True)),
        ("first-group-for-all", "All heads use group 0. That is right for g = 1 only: head i uses group i // "
            "(h // g).", _one_group(0)),
        ("cache-not-read", "Your new tokens do not see the cache, only each other. Put the cached keys and "
            "values in front, then attend.", _attends(see=lambda k, v, cache: (k, v))),
        ("nothing-appended",
            "The output is right, but you give back the old cache: the next token will not see these. Return "
            "the longer one.", _attends(keep=lambda k, v, cache: (k, v) if cache is None else cache)),
        ("keeps-the-new-only", "The output is right, but your new cache holds only the new tokens: the "
            "others are lost for the next call.", _attends(keep=lambda k, v, cache: (k, v))),
        ("new-in-front", "You put the new tokens in front of the cached ones. The cache is kept in the order "
            "of the text: append at the end.", _attends(_new_first, _new_first)),
        ("kept-new-in-front", "The output is right, but in your new cache the new tokens stand in front. It "
            "is kept in the order of the text: append at the end.", _attends(keep=_new_first)),
        ("values-not-appended",
            "You append the keys and not the values to the cache you return. Both grow together.",
            _attends(keep=lambda k, v, cache: (_joined(k, v, cache)[0], v if cache is None else cache[1]))),
        ("cache-spread", "You keep keys and values for every query head, h of them. The cache keeps g: that "
            "is what groups are for. Spread them over the heads after you have kept them.", _spread_cache),
        ("cache-swapped", "The cache is given back as (V, K). It is (K, V).",
            _attends(keep=lambda k, v, cache: _joined(k, v, cache)[::-1])),
        ("along-the-heads", "You join the tensors along the axis of the heads. Tokens are axis 2 of (B, g, "
            "t, d_k).", _attends(_heads_first, _heads_first)),
        ("not-scaled", "The scores are not scaled: divide them by √d_k before the softmax.",
            _attends(scale=lambda q, K: 1.0)),
        ("scaled-by-d", "You divide by d_k. Lesson 05: it is √d_k.",
            _attends(scale=lambda q, K: q.shape[-1])),
        ("scaled-by-the-model-width",
            "You divide by √(h · d_k), the root of the model's width. Each head is scaled by its own width, "
            "√d_k.", _attends(scale=lambda q, K: math.sqrt(q.shape[1] * q.shape[-1]))),
        ("softmax-over-queries", "Your softmax runs over the queries. It runs over the keys, the last axis.",
            _attends(weigh=lambda scores, may: torch.softmax(scores.masked_fill(~may, -math.inf), -2))),
        ("masked-after-the-softmax",
            "You set the weights of hidden keys to 0 after the softmax, so the others no longer sum to 1. "
            "Hide the scores: -inf before the softmax.", _attends(weigh=_after_softmax(False))),
        ("scores-hidden-with-0", "You set hidden scores to 0, which is a score like any other: e⁰ = 1. Use "
            "-inf.", _attends(weigh=lambda scores, may: torch.softmax(scores * may, -1))),
        ("no-softmax", "There is no softmax: the weights are the scores themselves.",
            _attends(weigh=lambda scores, may: scores * may)),
        ("merged", "You merge the heads, (B, T, h · d_k). Return them apart, (B, h, T, d_k): merging comes "
            "later.", _attends(form=lambda out: out.transpose(1, 2).flatten(2))),
        ("only-the-output", "You return the output alone. The caller needs the new cache too: return output, "
            "(K, V).", lambda q, k, v, cache=None: cached_attention(q, k, v, cache)[0]),
        ("three-values", "You return three things. Keys and values belong into one tuple: return output, (K, "
            "V).", lambda q, k, v, cache=None: (cached_attention(q, k, v, cache)[0], *_joined(k, v, cache))),
        ("none-not-handled", "At the beginning the cache is None, and there is nothing to append to: then k "
            "and v themselves are the keys and values.",
            lambda q, k, v, cache=None: cached_attention(q, k, v, (cache[0], cache[1]))),
        ("offset-only-for-one", "You use no mask for one new token and a triangle that begins at the left "
            "for several, as with is_causal = T > 1. After a cache several new tokens need it further to "
            "the right: new token i sees keys 0 to t + i.", _attends(offset=lambda T, n: n if T == 1 else 0)),
        ("mask-inverted", "Your mask is the wrong way round: it hides what a token may see. masked_fill "
            "fills where its mask is True, so hand it ~may.",
            _attends(weigh=lambda scores, may: torch.softmax(scores.masked_fill(may, -math.inf), -1))),
        ("offset-by-the-new", "The triangle is moved by T, the number of new tokens. It is moved by t, the "
            "number of cached ones: tril(t).", _attends(offset=lambda T, n: T)),
        ("hidden-only-the-cache", "Each new token sees the cached ones only up to its own number, and all "
            "new ones. It is the other way round: all of the cache, and the new tokens up to itself.",
            _attends(weigh=_cache_hidden)),
        ("heads-divided-by-g", "You use group i // g. It is i // (h // g): h // g heads in a row share a "
            "group. Both are the same for h = 4 and g = 2.", _by_group(lambda i, h, g: i // g)),
        ("last-group-for-all", "All heads use the last group. That is right for g = 1 only: head i uses "
            "group i // (h // g).", _one_group(-1)),
        ("mean-of-the-groups",
            "You average the groups. Each head uses one of them: head i uses group i // (h // g).",
            _attends(see=lambda k, v, cache: tuple(z.mean(1, keepdim=True) for z in _joined(k, v, cache)))),
        ("groups-not-spread", "Your scores need as many heads of keys as of queries. Give every query head "
            "its group: K.repeat_interleave(h // g, dim=1), after the cache is kept.", _not_spread),
        ("scaled-by-the-length", "You divide by the root of the number of keys. It is √d_k, the width of a "
            "head.", _attends(scale=lambda q, K: math.sqrt(K.shape[2]))),
        ("scaled-after-the-softmax", "You divide the weights by √d_k, after the softmax, so they no longer "
            "sum to 1. Divide the scores.", _scaled_late),
        ("multiplied-by-the-root", "You multiply by √d_k. Divide by it.",
            _attends(scale=lambda q, K: q.shape[-1] ** -0.5)),
        ("softmax-over-heads", "Your softmax runs over the heads, axis 1. It runs over the keys, the last "
            "axis.", _attends(weigh=lambda scores, may: torch.softmax(scores.masked_fill(~may, -1e30), 1))),
        ("along-the-width", "You join the tensors along another axis than that of the tokens, which is axis "
            "2 of (B, g, t, d_k), or -2.",
            _attends(lambda k, v, cache: (k, v) if cache is None else (torch.cat([cache[0], k], -1),
                                                                     torch.cat([cache[1], v], -1)))),
        ("one-tensor-for-both", "You stack keys and values into one tensor. The cache is a tuple of two: (K, "
            "V).", _attends(keep=lambda k, v, cache: torch.stack(_joined(k, v, cache)))),
    ),
    contracts=(Contract("g that does not divide h, such as 4 query heads and 3 heads of keys",
                        _cached_inputs(1, 4, 3, 2, 0, 2)),),
)


# ---------------------------------------------------------------- nucleus


def _shares(*numbers, p):
    """These probabilities, in an order that is drawn."""
    return lambda rng: (torch.tensor(rng.permutation(numbers)), p)


def _drawn(V, p, sharpness=0.3):
    return lambda rng: (torch.tensor(rng.dirichlet([sharpness] * V)), p)


def _whichever(function, probabilities, p):
    """Which of equal words stays is free: where some are equal, the probabilities are compared in order."""
    kept = function(probabilities, p)
    told_apart = len(probabilities.unique()) == len(probabilities)
    if told_apart or getattr(kept, "shape", None) != probabilities.shape:
        return kept
    return torch.as_tensor(kept).sort(descending=True).values


def _keeping(count, finish=lambda few: few / few.sum(), descending=True):
    """Keep the first ``count(sums, ordered, p)`` of the words in order; ``sums``: their running sums."""
    def function(probabilities, p):
        ordered, ids = probabilities.sort(descending=descending, stable=True)
        kept = ids[:int(count(ordered.cumsum(0), ordered, p))]
        return finish(torch.zeros_like(probabilities).index_copy(0, kept, probabilities[kept]))
    return function


def _enough(sums, ordered, p):
    """How many words the nucleus has."""
    return len(ordered) if p == 1 else (sums - ordered < p).sum()


def _where(keep, finish=lambda few, p: few / few.sum()):
    def function(probabilities, p):
        return finish(torch.where(keep(probabilities, p), probabilities, 0.0), p)
    return function


def _in_the_vocabularys_order(probabilities, p):
    sums = probabilities.cumsum(0)
    few = torch.where(sums - probabilities < p, probabilities, 0.0)
    return few / few.sum()


def _mask_not_put_back(probabilities, p):
    ordered = probabilities.sort(descending=True).values
    few = torch.where(ordered.cumsum(0) - ordered < p, probabilities, 0.0)
    return few / few.sum()


def _taken(probabilities, p):
    ordered, ids = probabilities.sort(descending=True)
    few = torch.where(ordered.cumsum(0) - ordered < p, ordered, 0.0)[ids]
    return few / few.sum()


def _sorted(probabilities, p):
    return nucleus(probabilities, p).sort(descending=True).values


def _kept_only(probabilities, p):
    few = _sorted(probabilities, p)
    return few[few > 0]


def _softmax_again(probabilities, p):
    kept = nucleus(probabilities, p) > 0
    return torch.softmax(probabilities.masked_fill(~kept, -math.inf), 0)


def _mask_not_put_back_and_too_few(probabilities, p):
    ordered = probabilities.sort(descending=True).values
    few = torch.where(ordered.cumsum(0) <= p, probabilities, 0.0)
    return few / few.sum()


def _shared_out(probabilities, p):
    stays = nucleus(probabilities, p) > 0
    few = torch.where(stays, probabilities, 0.0)
    return torch.where(stays, few + (1 - few.sum()) / stays.sum(), 0.0)


NUCLEUS = Exercise(
    reference=nucleus,
    probes=(
        example("one word", (torch.ones(1).double(), 0.5), "There is one word, and it stays, with "
            "probability 1."),
        Probe("by hand", _shares(0.5, 0.3, 0.15, 0.05, p=0.7), "0.5, 0.3, 0.15, 0.05 in some order, p = 0.7: "
            "0.5 is too little, 0.5 + 0.3 is enough. Two words stay, with 0.5/0.8 = 0.625 and 0.375."),
        Probe("the first word is enough", _shares(0.8, 0.15, 0.05, p=0.3),
            "The most probable word has 0.8, more than p = 0.3: it stays alone, with probability 1."),
        Probe("just enough", _shares(0.5, 0.25, 0.1875, 0.0625, p=0.75), "p = 0.75, and the two most "
            "probable words have exactly that: p or more is enough, so no third word stays."),
        Probe("many words", _drawn(30, 0.9), "Sort from the most probable down, take words until their sum "
            "is p or more, put them back in their places, and divide by what they have together."),
        Probe("most words", _drawn(9, 0.99, 2.0),
            "p = 0.99 here: nearly all words stay, and those that do sum to 1."),
        Probe("all words", _drawn(7, 1.0), "p = 1: every word stays, and nothing changes. (The running sum "
            "may end just below 1, and then no place has reached p.)"),
        Probe("a tiny p", _drawn(6, 1e-6),
            "p is nearly 0 here. At least one word stays: the most probable one."),
        example("equal words", (torch.full((8,), 0.125).double(), 0.5),
            "Eight words with 1/8 each, p = 0.5: four of them stay, whichever, with 1/4 each. Comparing "
            "probabilities with a threshold would keep all eight."),
        larger(_drawn(500, 0.8, 3.0)),
    ),
    misconceptions=(
        ("one-too-few", "You leave out the word that crosses p, so those that stay have less than p, or none "
            "stays. It belongs to the nucleus: the sum must be p or more.",
            _keeping(lambda sums, ordered, p: (sums <= p).sum())),
        ("one-too-few-but-one", "You leave out the word that crosses p, except where nothing would be left. "
            "It belongs to the nucleus: the sum must be p or more.",
            _keeping(lambda sums, ordered, p: (sums <= p).sum().clamp(min=1))),
        ("less-than-p", "You keep words while their sum is below p, so those that stay have less than p, or "
            "none stays. The word that reaches p belongs to the nucleus.",
            _keeping(lambda sums, ordered, p: (sums < p).sum())),
        ("one-too-many", "You keep one word more than is needed. Stop with the word that brings the sum to p "
            "or more.", _keeping(lambda sums, ordered, p: _enough(sums, ordered, p) + 1)),
        ("more-than-p", "Where words have exactly p together, you take one more. The sum must be p or more, "
            "not more than p.", _keeping(lambda sums, ordered, p: (sums - ordered <= p).sum())),
        ("not-renormalised", "What stays does not sum to 1. Divide it by its sum.",
            _keeping(_enough, lambda few: few)),
        ("divided-by-p", "You divide by p. What stays has p or more together, so divide by its own sum.",
            lambda probabilities, p: _keeping(_enough, lambda few: few / p)(probabilities, p)),
        ("softmax-again", "You put the probabilities through a softmax again, which makes them nearly equal. "
            "Divide by the sum of those that stay.", _softmax_again),
        ("threshold", "You keep every word with probability p or more. p is what the words that stay have "
            "*together*.", _where(lambda probabilities, p: probabilities >= p)),
        ("share-of-the-best",
            "You keep words that have at least p times the probability of the best. p is what the words that "
            "stay have together.", _where(lambda probabilities, p: probabilities >= p * probabilities.max())),
        ("share-of-the-vocabulary",
            "You keep a share p of the words. p is a share of probability: how many words that is differs "
            "from place to place.", _keeping(lambda sums, ordered, p: math.ceil(p * len(ordered)))),
        ("least-probable-first", "You begin with the least probable words. Sort from the most probable down.",
            _keeping(lambda sums, ordered, p: _enough(sums, ordered, p), descending=False)),
        ("not-sorted", "You add up the words in the order of the vocabulary. Sort from the most probable "
            "down first.", _in_the_vocabularys_order),
        ("mask-not-put-back", "You sort, mark the words that stay, and use these marks on the unsorted "
            "probabilities: the first places of the vocabulary stay, whatever their words. Put the marks "
            "back in their places with the indices that sort gives.", _mask_not_put_back),
        ("taken-instead-of-put",
            "You index the sorted probabilities with the indices of sort. These say where each of them came "
            "from: new[ids] = sorted puts them back, sorted[ids] mixes them once more.", _taken),
        ("left-sorted", "Your probabilities are right and stand in sorted order. Word i must be at place i "
            "again: put them back with the indices that sort gives.", _sorted),
        ("kept-only", "You return only the words that stay. The result has shape (V,), with 0 for the others.",
            _kept_only),
        ("best-only", "You keep only the most probable word. Take words until they have p or more together.",
            _keeping(lambda sums, ordered, p: 1)),
        ("p-not-used", "You return the probabilities as they are. Words beyond the nucleus get 0.",
            lambda probabilities, p: probabilities + 0.0),
        ("minus-infinity",
            "Words beyond the nucleus get -inf in your result. That is for scores; a probability is 0.",
            _keeping(_enough, lambda few: torch.where(few > 0, few / few.sum(), -math.inf))),
        ("beyond-the-nucleus", "You keep the words beyond the nucleus, and drop the nucleus. It is the most "
            "probable words that stay.", _where(lambda probabilities, p: nucleus(probabilities, p) == 0)),
        ("mask-not-put-back-one-too-few",
            "You sort, mark the words that stay, and use these marks on the unsorted probabilities, so other "
            "words stay. Put the marks back in their places with the indices that sort gives. And the word "
            "that crosses p stays too.", _mask_not_put_back_and_too_few),
        ("all-that-are-equal", "You keep every word that is as probable as the last one needed, so more "
            "words stay where some are equal. The nucleus is the *smallest* set: which of equal words "
            "stays is free.", _where(lambda probabilities, p: probabilities >= nucleus(probabilities, p)[
            nucleus(probabilities, p) > 0].min() * probabilities[nucleus(probabilities, p) > 0].sum() * (1 - 1e-9))),
        ("scaled-to-p", "What stays sums to p. It sums to 1: divide it by its own sum and leave it so.",
            lambda probabilities, p: nucleus(probabilities, p) * p),
        ("marks", "You return which words stay, True and False. Return their probabilities, divided by their "
            "sum.", lambda probabilities, p: nucleus(probabilities, p) > 0),
        ("all-equal-afterwards", "All words that stay get the same probability. Each keeps its own, divided "
            "by their sum.", lambda probabilities, p: (nucleus(probabilities, p) > 0).to(probabilities.dtype)
            / (nucleus(probabilities, p) > 0).sum()),
        ("share-of-the-vocabulary-rounded-down",
            "You keep a share p of the words. p is a share of probability: how many words that is differs "
            "from place to place.", _keeping(lambda sums, ordered, p: max(1, int(p * len(ordered))))),
        ("tail-shared-out", "You give what the dropped words had to the others in equal parts. Divide those "
            "that stay by their sum: then each grows by the same factor.", _shared_out),
        ("above-1-minus-p", "You keep every word with probability above 1 - p. p is what the words that stay "
            "have *together*.", _where(lambda probabilities, p: probabilities > 1 - p)),
        ("sum-of-the-squares", "You square the probabilities before you add them up. Add them as they are.",
            _keeping(lambda sums, ordered, p: ((ordered**2).cumsum(0) - ordered**2 < p).sum())),
    ),
    contracts=(Contract("p = 0", lambda rng: (torch.tensor([0.5, 0.5]).double(), 0.0)),
               Contract("p above 1", lambda rng: (torch.tensor([0.5, 0.5]).double(), 1.5))),
    use=_whichever,
    nudges=(("index 0 is out of bounds", (
        "No place has p or more: with p = 1 the running sum may end just below 1. p = 1 keeps all words."
    )),),
)


# ---------------------------------------------------------------- decoder_layer


def _layer_inputs(B, T, t, h, g, d_k, d, m, base=10000.0, start=None, std=1.5, attend=1.0, think=1.0):
    """T new tokens after t in the cache. ``attend``, ``think``: the size of what attention and the MLP write;
    ``start``: the first position, if it is not t."""
    def make(rng):
        first = t if start is None else start
        w = {"norm1": _single(rng, d, std=0.4, mean=1.0), "norm2": _single(rng, d, std=0.4, mean=-1.0),
             "W_q": _single(rng, d, h * d_k), "W_k": _single(rng, d, g * d_k), "W_v": _single(rng, d, g * d_k),
             "W_o": attend * _single(rng, h * d_k, d) / d_k, "W_gate": _single(rng, d, m),
             "W_up": _single(rng, d, m), "W_down": think * _single(rng, m, d) / m}
        cache = (_single(rng, B, g, t, d_k), _single(rng, B, g, t, d_k)) if t else None
        return (std * _single(rng, B, T, d, mean=0.5), w, h, g, torch.arange(first, first + T), cache, base)
    return make


def _written(y, w, h, g, positions, cache, base, names=("W_q", "W_k", "W_v"), parts=None, turned="qk",
             bases="qk", place=lambda positions, cache: positions, attend=cached_attention, sees=True,
             keep=lambda k, v, cache, kept: kept, early=False, merge=lambda heads: heads.transpose(1, 2).flatten(2),
             out=True):
    """What attention writes to the stream, and the new cache, with the faults that the arguments choose."""
    wide = [y @ w[name] for name in names]
    places = place(positions, cache)

    def turn(z, letter):
        return rope(z, places, base if letter in bases else 10000.0) if letter in turned else z

    if early:  # the whole width at once, before it is cut into heads
        wide = [turn(z, letter) for z, letter in zip(wide, "qkv", strict=True)]
    q, k, v = (split_heads(z, n) for z, n in zip(wide, parts(h, g) if parts else (h, g, g), strict=True))
    raw = k
    if not early:
        q, k, v = turn(q, "q"), turn(k, "k"), turn(v, "v")
    heads, kept = attend(q, k, v, cache if sees else None)
    heads = merge(heads)
    return heads @ w["W_o"] if out else heads, keep(raw, v, cache, kept)


def _layers(norm=rms_norm, norms=("norm1", "norm2"), first=lambda x, y, a: x + a, reads=lambda x, x1: x1,
            second=lambda x, x1, z, m: x1 + m, mlp=gated_mlp, back=lambda x, kept, w: (x, kept), **attention):
    """The reference, with the faults that the arguments choose; a name None in ``norms``: no norm."""
    def function(x, w, n_heads, n_groups, positions, cache=None, base=10000.0):
        y = norm(x, w[norms[0]]) if norms[0] else x
        a, kept = _written(y, w, n_heads, n_groups, positions, cache, base, **attention)
        x1 = first(x, y, a)
        z = norm(reads(x, x1), w[norms[1]]) if norms[1] else reads(x, x1)
        return back(second(x, x1, z, mlp(z, w["W_gate"], w["W_up"], w["W_down"])), kept, w)
    return function


def _mlp_first(x, w, n_heads, n_groups, positions, cache=None, base=10000.0):
    x = x + gated_mlp(rms_norm(x, w["norm2"]), w["W_gate"], w["W_up"], w["W_down"])
    a, kept = _written(rms_norm(x, w["norm1"]), w, n_heads, n_groups, positions, cache, base)
    return x + a, kept


def _post_norm(x, w, n_heads, n_groups, positions, cache=None, base=10000.0):
    a, kept = _written(x, w, n_heads, n_groups, positions, cache, base)
    x = rms_norm(x + a, w["norm1"])
    return rms_norm(x + gated_mlp(x, w["W_gate"], w["W_up"], w["W_down"]), w["norm2"]), kept


def _turned_again(q, k, v, cache, base):
    """Unturned keys join the cache, and all of them are turned afterwards, those of the cache once more."""
    K, V = _joined(k, v, cache)
    turned = rope(K, torch.arange(K.shape[2]), base)
    n, T = K.shape[2], q.shape[2]
    out, _ = cached_attention(q, turned[:, :, n - T:], V[:, :, n - T:],
                              (turned[:, :, :n - T], V[:, :, :n - T]) if n > T else None)
    return out, (K, V)


def _cached_then_turned(x, w, n_heads, n_groups, positions, cache=None, base=10000.0):
    def attend(q, k, v, past):
        return _turned_again(rope(q, positions, base), k, v, past, base)
    return _layers(turned="", attend=attend)(x, w, n_heads, n_groups, positions, cache, base)


def _turned_by_the_heads(z, positions, base):
    """Axes of tokens and heads exchanged before turning: (B, T, h, d_k)."""
    return rope(z.transpose(1, 2), positions, base).transpose(1, 2)


def _with_heads_as_tokens(x, w, n_heads, n_groups, positions, cache=None, base=10000.0):
    def attend(q, k, v, past):
        return cached_attention(_turned_by_the_heads(q, positions, base), _turned_by_the_heads(k, positions, base),
                                v, past)
    return _layers(turned="", attend=attend)(x, w, n_heads, n_groups, positions, cache, base)


def _scaled_twice(q, k, v, cache=None):
    return cached_attention(q / q.shape[-1] ** 0.5, k, v, cache)


def _spread_first(q, k, v, cache=None):
    """Keys and values for every query head before they are kept; a cache of g heads is spread as well."""
    past = None if cache is None else tuple(_spread(x, q.shape[1]) for x in cache)
    return cached_attention(q, _spread(k, q.shape[1]), _spread(v, q.shape[1]), past)


def _from_the_stream(x, w, n_heads, n_groups, positions, cache=None, base=10000.0):
    """Only the queries are made of what norm1 gives."""
    y = rms_norm(x, w["norm1"])
    q = rope(split_heads(y @ w["W_q"], n_heads), positions, base)
    k, v = (split_heads(x @ w[name], n_groups) for name in ("W_k", "W_v"))
    heads, kept = cached_attention(q, rope(k, positions, base), v, cache)
    x = x + heads.transpose(1, 2).flatten(2) @ w["W_o"]
    return x + gated_mlp(rms_norm(x, w["norm2"]), w["W_gate"], w["W_up"], w["W_down"]), kept


def _centred(x, gain):
    return rms_norm(x - x.mean(-1, keepdim=True), gain)


def _not_gated(x, W_gate, W_up, W_down):
    return F.silu(x @ W_up) @ W_down


DECODER_LAYER = Exercise(
    reference=decoder_layer,
    results=("the stream x", "the new cache"),
    probes=(
        Probe("nothing is written", _layer_inputs(1, 2, 0, 2, 2, 2, 4, 3, attend=0.0, think=0.0),
            "W_o and W_down are 0 here, so nothing is added to the stream: the layer must give back x as it "
            "is."),
        Probe("attention alone, one token", _layer_inputs(1, 1, 0, 1, 1, 2, 2, 2, think=0.0),
            "One token, one head, nothing cached, and W_down is 0. The token sees only itself, so the result "
            "is x + v @ W_o, where v = norm1(x) @ W_v."),
        Probe("the MLP alone", _layer_inputs(1, 2, 0, 2, 2, 2, 4, 3, attend=0.0),
            "W_o is 0 here, so the result is x + gated_mlp(norm2(x), …)."),
        Probe("both halves", _layer_inputs(1, 1, 0, 1, 1, 2, 3, 4), "One token. First x = x + "
            "attention(norm1(x)); then the MLP reads norm2 of this *new* x and adds to it."),
        Probe("three tokens, one head", _layer_inputs(1, 3, 0, 1, 1, 4, 3, 2, think=0.0),
            "Three tokens: queries and keys are turned by their positions before they meet, values are not."),
        Probe("two heads", _layer_inputs(1, 3, 0, 2, 2, 4, 8, 5),
            "Two heads of width 4, and d = 8. Cut into heads first and turn each head by itself; afterwards "
            "put the heads of one token side by side, (B, T, h · d_k), and multiply by W_o."),
        Probe("one token, three cached", _layer_inputs(1, 1, 3, 1, 1, 4, 3, 2, think=0.0),
            "Three tokens are cached and positions = [3]. The cached keys are turned already; turn the new "
            "one by the position given, and hand the cache on."),
        Probe("two tokens, three cached", _layer_inputs(1, 2, 3, 2, 2, 4, 5, 3),
            "positions = [3, 4]: use them as they are given. The new cache holds five keys, all of them "
            "turned, and five values."),
        Probe("positions from 7", _layer_inputs(1, 2, 0, 1, 1, 4, 4, 3, start=7),
            "positions = [7, 8] and nothing is cached. Only differences count for the output, but the keys "
            "in the new cache have to be turned by 7 and 8."),
        Probe("groups", _layer_inputs(1, 3, 0, 4, 2, 2, 8, 3), "4 heads of queries and 2 of keys and values: "
            "W_k and W_v are narrower, so cut what they give into n_groups heads. The cache keeps 2 heads."),
        Probe("groups, a batch and a cache", _layer_inputs(2, 3, 2, 6, 3, 2, 5, 7),
            "B = 2, six heads in three groups, two tokens cached. h · d_k is 12 and d is 5: only W_o brings "
            "the heads back to d."),
        Probe("another base", _layer_inputs(1, 3, 2, 1, 1, 4, 4, 3, base=20.0),
            "base is 20 here. Hand it on to rotate, for the queries and for the keys."),
        Probe("a large base", _layer_inputs(1, 4, 0, 2, 1, 6, 6, 3, base=500000.0),
            "base is 500,000 here. Hand it on to rotate, for the queries and for the keys."),
        Probe("small numbers", _layer_inputs(1, 3, 0, 2, 1, 2, 4, 3, std=0.003),
            "x is small here, so that the eps of the norms shows: it is 0.00001, as rms_norm has it by "
            "default.", special=True),
        larger(_layer_inputs(5, 9, 10, 10, 5, 12, 11, 13, base=300.0)),
    ),
    misconceptions=(
        ("no-first-residual", "The first plus is missing: attention adds to x, it does not replace it.",
            _layers(first=lambda x, y, a: a)),
        ("no-second-residual", "The second plus is missing: the MLP adds to the stream, it does not replace "
            "it.", _layers(second=lambda x, x1, z, m: m)),
        ("no-residuals", "Both pluses are missing: a sublayer adds to the stream, it does not replace it.",
            _layers(first=lambda x, y, a: a, second=lambda x, x1, z, m: m)),
        ("adds-to-the-normed", "You add what the sublayers write to the normed x. The norm is only for "
            "reading: add to x itself, as it was before the norm. (A line such as x = rms_norm(x, …) loses "
            "it.)", _layers(first=lambda x, y, a: y + a, second=lambda x, x1, z, m: z + m)),
        ("attention-adds-to-the-normed", "You add what attention writes to the normed x. The norm is only "
            "for reading: add to x itself, as it was before the norm.", _layers(first=lambda x, y, a: y + a)),
        ("mlp-adds-to-the-normed", "You add what the MLP writes to the normed stream. The norm is only for "
            "reading: add to x as it was before norm2.", _layers(second=lambda x, x1, z, m: z + m)),
        ("attention-lost", "The MLP's result is added to the x that came in, so what attention found is "
            "lost. Add it to the stream after attention.", _layers(second=lambda x, x1, z, m: x + m)),
        ("mlp-reads-the-old-stream", "Your MLP reads the x that came in. It reads the stream to which "
            "attention has already added.", _layers(reads=lambda x, x1: x)),
        ("x-added-twice", "You add x a second time at the end. It is in the stream already since the first "
            "plus.", _layers(second=lambda x, x1, z, m: x + x1 + m)),
        ("mlp-first", "The MLP comes before attention. The order is attention, then the MLP.", _mlp_first),
        ("post-norm", "Your norms go around the sums, as in 2017. Here they are in front: a sublayer reads "
            "norm(x), and adds to x.", _post_norm),
        ("no-norms", 'Neither half is normed. Attention reads rms_norm(x, w["norm1"]), the MLP rms_norm(x, '
            'w["norm2"]).', _layers(norms=(None, None))),
        ("no-first-norm",
            'Attention reads x as it is. It reads rms_norm(x, w["norm1"]).', _layers(norms=(None, "norm2"))),
        ("no-second-norm", 'The MLP reads x as it is. It reads rms_norm(x, w["norm2"]).',
            _layers(norms=("norm1", None))),
        ("norm1-twice", "Both norms have the gain norm1. The second has one of its own, norm2.",
            _layers(norms=("norm1", "norm1"))),
        ("norm2-twice", "Both norms have the gain norm2. The first has one of its own, norm1.",
            _layers(norms=("norm2", "norm2"))),
        ("norms-swapped", "The gains have changed places: norm1 belongs to attention, norm2 to the MLP.",
            _layers(norms=("norm2", "norm1"))),
        ("normed-at-the-end", "You norm what the layer returns. The stream goes on as it is; the next layer "
            "norms what it reads.",
            lambda x, w, *a: (lambda out: (rms_norm(out[0], w["norm2"]), out[1]))(decoder_layer(x, w, *a))),
        ("layer-norm", "Your norm subtracts the mean: that is LayerNorm. This layer has RMSNorm, twice.",
            _layers(norm=_centred)),
        ("eps-1e-6", "Your norms use an eps of 0.000001. In this layer it is 0.00001, the default of "
            "rms_norm.", _layers(norm=lambda x, gain: rms_norm(x, gain, 1e-6))),
        ("eps-0", "Your norms leave eps out. In this layer it is 0.00001, the default of rms_norm.",
            _layers(norm=lambda x, gain: rms_norm(x, gain, 0.0))),
        ("not-turned", "Nothing is turned, so no token knows where it is: rotate queries and keys, in every "
            "layer.", _layers(turned="")),
        ("keys-not-turned", "You turn the queries and not the keys. Both are turned; only then does their "
            "score depend on the distance.", _layers(turned="q")),
        ("queries-not-turned", "You turn the keys and not the queries. Both are turned; only then does their "
            "score depend on the distance.", _layers(turned="k")),
        ("values-turned", "You turn the values as well. Only queries and keys are turned: positions decide "
            "who looks where, and not what is found there.", _layers(turned="qkv", bases="qkv")),
        ("turned-before-the-heads",
            "You turn the whole width before it is cut into heads, so each head turns at other speeds. Cut "
            "first, then turn: every head has pairs 0 to d_k/2 - 1 of its own.", _layers(early=True)),
        ("turned-along-the-heads", "You turn while the heads are still where rotate expects the tokens, (B, "
            "T, h, d_k). Turn (B, h, T, d_k).", _with_heads_as_tokens),
        ("positions-from-0",
            "You count the positions from 0. The new tokens come after the cached ones: use the positions "
            "that are given.", _layers(place=lambda positions, cache: torch.arange(len(positions)))),
        ("offset-twice", "You add the length of the cache to the positions. They hold it already: positions "
            "= [3, 4] when 3 tokens are cached.",
            _layers(place=lambda positions, cache: positions + (cache[0].shape[2] if cache else 0))),
        ("keys-cached-unturned", "Your output is right, but the cache you return holds keys that are not "
            "turned. Turn them first: what cached_attention returns is what has to be kept.",
            _layers(keep=lambda k, v, cache, kept: _joined(k, v, cache))),
        ("turned-after-caching",
            "You put keys into the cache as they are and turn all of them afterwards, so those of the cache "
            "are turned once more. Turn the new keys only, before cached_attention.", _cached_then_turned),
        ("base-forgotten", "You leave out the base, so rotate takes 10,000. Hand on the base that you are "
            "given, for queries and keys.", _layers(bases="")),
        ("base-for-queries-only", "You hand the base on for the queries and not for the keys. Both have to "
            "turn at the same speeds.", _layers(bases="q")),
        ("base-for-keys-only", "You hand the base on for the keys and not for the queries. Both have to turn "
            "at the same speeds.", _layers(bases="k")),
        ("cache-not-read", "You do not hand the cache to cached_attention, so the new tokens see only each "
            "other.", _layers(sees=False)),
        ("old-cache-returned",
            "You return the cache that came in. The next token needs the longer one, which cached_attention "
            "returns.", _layers(keep=lambda k, v, cache, kept: kept if cache is None else cache)),
        ("keeps-the-new-only", "You return the new keys and values alone. The next token needs all of them: "
            "return what cached_attention returns.",
            _layers(keep=lambda k, v, cache, kept: tuple(z[:, :, -k.shape[2]:] for z in kept))),
        ("cache-swapped", "The cache comes back as (V, K). It is (K, V), as cached_attention returns it.",
            _layers(keep=lambda k, v, cache, kept: kept[::-1])),
        ("only-x", "You return x alone. The next token needs the new cache too: return x, cache.",
            _layers(back=lambda x, kept, w: x)),
        ("swapped-results", "You return the cache first. It is x, then the new cache.",
            _layers(back=lambda x, kept, w: (kept, x))),
        ("three-results", "You return three things. Keys and values belong into one tuple, as "
            "cached_attention returns them: return x, cache.", _layers(back=lambda x, kept, w: (x, *kept))),
        ("no-output-matrix", "W_o is missing: the heads, side by side, are multiplied by it before they are "
            "added. (Where h · d_k is d, no shape tells.)", _layers(out=False)),
        ("heads-not-side-by-side", "You reshape (B, h, T, d_k) to (B, T, h · d_k) as it lies in memory, "
            "which mixes tokens and heads. First exchange the axes of heads and tokens, then join.",
            _layers(merge=lambda z: z.reshape(z.shape[0], z.shape[2], -1))),
        ("keys-cut-like-queries",
            "You cut keys and values into n_heads heads. W_k and W_v are narrower where heads share groups: "
            "n_groups heads, each as wide as a query.", _layers(parts=lambda h, g: (h, h, h))),
        ("groups-spread-first",
            "You give every query head keys of its own before they are kept, so the cache holds h heads and "
            "not g. cached_attention shares the groups itself.", _layers(attend=_spread_first)),
        ("keys-and-values-swapped", "Keys and values have changed places: the queries ask the values.",
            _layers(names=("W_q", "W_v", "W_k"))),
        ("values-from-the-keys", "The values come from W_k. They have a matrix of their own, W_v.",
            _layers(names=("W_q", "W_k", "W_k"))),
        ("keys-and-values-not-normed",
            "Only the queries are made of what norm1 gives. Keys and values read it too.", _from_the_stream),
        ("scaled-twice", "You divide by √d_k, and cached_attention does it again. Leave it to "
            "cached_attention.", _layers(attend=_scaled_twice)),
        ("gate-and-up-swapped",
            "W_gate and W_up have changed places. gated_mlp takes x, W_gate, W_up, W_down, and SiLU goes to "
            "the gate.", _layers(mlp=lambda z, gate, up, down: gated_mlp(z, up, gate, down))),
        ("no-gate", "Your MLP does not use the gate. It is gated_mlp with the three matrices W_gate, W_up, "
            "W_down.", _layers(mlp=_not_gated)),
        ("no-mlp", "The second half is missing: only attention has written to the stream.",
            _layers(second=lambda x, x1, z, m: x1)),
        ("no-attention", "What attention found is not added: only the MLP has written to the stream.",
            _layers(first=lambda x, y, a: x)),
    ),
    nudges=(
        ("'NoneType'", "A piece that you call gives back nothing. Every stub above is replaced by the course's version "
                       "when its cell has run: run all cells above once more."),
        ("not enough values to unpack|too many values to unpack",
         "cached_attention returns two things, the output of the heads and the new cache: heads, cache = …"),
    ),
)


# ---------------------------------------------------------------- what a learner wrote runs the model

SLOWEST = 10  # times the computing time of a whole layer of the course: an answer must come to an end
_RUNNING = {}  # name -> whose function runs, for `whose`


def course_pieces():
    """Name -> the course's function, for every piece that a learner writes in lesson 16 or brings along."""
    return {"rms_norm": rms_norm, "gated_mlp": gated_mlp, "rotate": rope, "split_heads": split_heads,
            "cached_attention": cached_attention, "decoder_layer": decoder_layer, "sample_next": sample_next,
            "nucleus": nucleus, "dequantise": dequantise}


def runs(attempt):
    """The function that runs the model from here on: the learner's if its check is passed and it is not so slow that a
    conversation would not end, else the course's. One printed line says which. It takes and gives tensors."""
    name = attempt.__name__
    course = course_pieces()[name]
    function, said = adopt(attempt, course, name)
    if function is not course and name == "rotate":
        function, said = _with_a_base(attempt, function)
    if function is not course and _too_slow(function, name):
        function, said = course, ("the course's (yours is right, but one call of it takes more than "
                                  f"{SLOWEST} times as long as a whole layer, and an answer would not end soon)")
    said = said.replace("has not passed", f"has not passed: check({name}) says why")
    _RUNNING[name] = said.split(" (")[0]
    print(f"From here on runs: {name}, {said}.")
    return function


def whose():
    """One line: whose functions run the model now."""
    mine = [name for name, said in _RUNNING.items() if said == "yours"]
    theirs = [name for name, said in _RUNNING.items() if said != "yours"]
    return " ".join([f"Yours: {', '.join(mine)}."] * bool(mine) + [f"The course's: {', '.join(theirs)}."] * bool(theirs))


def _with_a_base(attempt, function):
    """A rotate that has passed lesson 08's check, with a base: (function, whose)."""
    if len(inspect.signature(attempt).parameters) < 3:
        return lambda x, positions, base=10000.0: turn(function, x, positions, base), "yours"
    x, places = torch.linspace(-1, 1, 24).reshape(3, 8), torch.arange(3, 6)
    if torch.allclose(function(x, places, 50.0), rope(x, places, 50.0), atol=1e-5):
        return function, "yours"
    return rope, "the course's (yours turns by 10,000 whatever base it is given: write base where 10000 was)"


def _too_slow(function, name):
    args, layer = _at_size()
    start = time.process_time()
    call(decoder_layer, args["decoder_layer"], SECONDS)  # whatever torch does once
    took = time.process_time() - start
    for _ in range(2):
        start = time.process_time()
        call(decoder_layer, args["decoder_layer"], SECONDS)
        took = min(took, time.process_time() - start)
    return call(function, args[name], max(0.05, (3 if layer == name else 1) * SLOWEST * took)).kind == "timeout"


@functools.lru_cache(maxsize=1)
def _at_size(T=40, d=576, h=9, g=3, d_k=64, m=1536, V=49152):
    """(Name -> arguments of the sizes that the model has, for a prompt of T tokens, the name of the layer)."""
    draw = torch.Generator().manual_seed(0)

    def of(*shape):
        return torch.randn(shape, generator=draw) / 24

    w = {"norm1": of(d), "norm2": of(d), "W_q": of(d, h * d_k), "W_k": of(d, g * d_k), "W_v": of(d, g * d_k),
         "W_o": of(h * d_k, d), "W_gate": of(d, m), "W_up": of(d, m), "W_down": of(m, d)}
    x, q, k, places = of(1, T, d), of(1, h, T, d_k), of(1, g, T, d_k), torch.arange(T, dtype=torch.float64)
    shares, codes = torch.softmax(24 * of(V), 0), torch.zeros(d * d // 32, 16, dtype=torch.uint8)
    return {"rms_norm": (x, w["norm1"], 1e-5), "gated_mlp": (x, w["W_gate"], w["W_up"], w["W_down"]),
            "rotate": (q, places, 1e5), "split_heads": (x, h), "cached_attention": (q, k, k, None),
            "decoder_layer": (x, w, h, g, places, None, 1e5), "sample_next": (shares.log(), 1.0, None, draw),
            "nucleus": (shares, 0.9), "dequantise": (of(len(codes)), of(len(codes)), codes)}, "decoder_layer"


EXERCISES = (RMS_NORM, GATED_MLP, CACHED_ATTENTION, DECODER_LAYER, NUCLEUS, DEQUANTISE)
