"""The exercises of lesson 16, on torch tensors: RMSNorm, the gated MLP, numbers of 4 bits, attention with
groups and a cache, the nucleus."""

import math

import torch
from torch.nn import functional as F

from helpers.checks.core import Contract, Exercise, Misconception, Probe, larger
from helpers.smollm2 import cached_attention, dequantise, gated_mlp, nucleus, rms_norm


def _tensor(rng, *shape, std=1.0, mean=0.0):
    return torch.tensor(rng.normal(mean, std, size=shape))


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
        Probe("by hand", lambda rng: (torch.tensor([3.0, 4.0]).double(), torch.ones(2).double(), 0.0), (
            "x = (3, 4), gain 1, eps 0: the mean square is (9 + 16) / 2 = 12.5, its root 3.54, and the "
            "result (0.85, 1.13)."
        ), draws=1),
        Probe("one number", _rms_inputs(1, gain=1.0), (
            "A token of one number: it is divided by its own size, so what remains is its sign. (LayerNorm "
            "would leave 0.)"
        )),
        Probe("a gain of 1", _rms_inputs(5, gain=1.0), (
            "The gain is 1 everywhere: the mean of the squares of the result should be 1, and its mean need "
            "not be 0."
        )),
        Probe("a gain", _rms_inputs(4), (
            "The gain multiplies the normalised token, number by number; it takes no part in the root."
        )),
        Probe("two tokens", _rms_inputs(2, 3), (
            "Each token, a row, is divided by a root of its own: mean over dim=-1, with keepdim=True."
        )),
        Probe("as many tokens as dimensions", _rms_inputs(4, 4), (
            "T and d are equal here, so a wrong axis goes through without an error. The mean runs over the d "
            "numbers of a token, dim=-1."
        )),
        Probe("a batch", _rms_inputs(2, 3, 5), (
            "x is (B, T, d) here. Count axes from the back: dim=-1 is always the numbers of one token."
        )),
        Probe("a large eps", _rms_inputs(3, 4, eps=2.0), (
            "eps is 2 here, so that its place shows: it is added to the mean square, inside the root."
        )),
        Probe("a token of zeros", lambda rng: (torch.zeros(2, 3).double(), _tensor(rng, 3), 1e-5), (
            "The token is 0 here. eps keeps the division from being 0 / 0; the result is 0."
        ), draws=1, extreme=True),
        larger(_rms_inputs(5, 9, 11, eps=0.1)),
    ),
    misconceptions=(
        Misconception("layer-norm", (
            "You subtract the mean: that is LayerNorm. RMSNorm leaves the mean where it is."
        ), _by(_root, centre=True)),
        Misconception("standard-deviation", (
            "You divide by the standard deviation, which is measured from the mean. RMSNorm measures from 0: "
            "the mean of the squares of x itself."
        ), _by(lambda x, eps: torch.sqrt(x.var(-1, keepdim=True, correction=0) + eps))),
        Misconception("eps-outside-the-root", (
            "You add eps to the root. It is added to the mean square, inside the root."
        ), _by(lambda x, eps: torch.sqrt(_mean_square(x)) + eps)),
        Misconception("eps-outside-everything", (
            "You add eps to the result. It is added to the mean square, inside the root."
        ), lambda x, gain, eps=1e-5: rms_norm(x, gain, 0.0) + eps),
        Misconception("eps-forgotten", (
            "You leave eps out, so a token of zeros gives 0 / 0. Add it to the mean square, inside the root."
        ), _by(lambda x, eps: torch.sqrt(_mean_square(x)))),
        Misconception("eps-as-a-number", (
            "You use 0.00001 whatever eps is given. Use the argument eps."
        ), lambda x, gain, eps=1e-5: rms_norm(x, gain, 1e-5)),
        Misconception("root-forgotten", (
            "You divide by the mean square. Take its root first."
        ), _by(lambda x, eps: _mean_square(x) + eps)),
        Misconception("sum-of-squares", (
            "You divide by the root of the sum of the squares, the length. It is their mean: divide the sum "
            "by d before you take the root."
        ), _by(lambda x, eps: torch.sqrt(x.square().sum(-1, keepdim=True) + eps))),
        Misconception("divided-by-d-minus-1", (
            "You divide the sum of the squares by d - 1. It is their mean: divide by d."
        ), _by(lambda x, eps: torch.sqrt(x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1) + eps))),
        Misconception("square-of-the-mean", (
            "You square the mean. It is the other way round: square the numbers first, then take the mean."
        ), _by(lambda x, eps: torch.sqrt(x.mean(-1, keepdim=True).square() + eps))),
        Misconception("mean-of-sizes", (
            "You divide by the mean of |x|. It is the root of the mean of x²."
        ), _by(lambda x, eps: x.abs().mean(-1, keepdim=True) + eps)),
        Misconception("one-root-for-all", (
            "You take one mean over all tokens. Each token has a root of its own: mean(dim=-1, "
            "keepdim=True)."
        ), _by(lambda x, eps: torch.sqrt(x.square().mean() + eps))),
        Misconception("over-the-tokens", (
            "Your mean runs over the tokens. It runs over the d numbers of one token, dim=-1."
        ), _by(_over_tokens)),
        Misconception("gain-forgotten", (
            "The gain is missing: multiply the normalised token by it."
        ), _by(_root, lambda normed, gain: normed)),
        Misconception("gain-added", (
            "You add the gain. It multiplies; RMSNorm adds nothing."
        ), _by(_root, lambda normed, gain: normed + gain)),
        Misconception("one-plus-gain", (
            "You multiply by 1 + gain, as some models do. Here it is the gain itself."
        ), _by(_root, lambda normed, gain: normed * (1 + gain))),
        Misconception("gain-inside", (
            "You multiply by the gain first and normalise afterwards, so the root sees it. Normalise x, then "
            "multiply."
        ), lambda x, gain, eps=1e-5: rms_norm(gain * x, torch.ones_like(gain), eps)),
        Misconception("multiplied-by-the-root", (
            "You multiply by the root. Divide by it."
        ), lambda x, gain, eps=1e-5: gain * x * _root(x, eps)),
    ),
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
    probes=(
        Probe("by hand", lambda rng: tuple(torch.tensor(a).double() for a in ([1.0], [[2.0]], [[3.0]],
                                                                              [[10.0]])), (
            "x = 1, W_gate = 2, W_up = 3, W_down = 10. SiLU(2) = 2 / (1 + e⁻²) = 1.76, times 3 is 5.28, "
            "times 10 is 52.8."
        ), draws=1),
        Probe("one number in, one inside", _mlp_inputs(1, m=1), (
            "d = m = 1: the result is SiLU(x · W_gate) · (x · W_up) · W_down."
        )),
        Probe("one token", _mlp_inputs(3, m=2), (
            "SiLU(a) = a / (1 + exp(-a)) is applied to x W_gate, and to nothing else. The two branches are "
            "multiplied number by number, then comes W_down."
        )),
        Probe("as wide inside as outside", _mlp_inputs(3, 4, m=4), (
            "d and m are equal here, so a transposed matrix goes through without an error. All products are "
            "x @ W."
        )),
        Probe("tokens", _mlp_inputs(4, 3, m=5), (
            "Four tokens: each goes through alone, as in the MLP of lesson 09."
        )),
        Probe("a batch", _mlp_inputs(2, 3, 4, m=7), (
            "x is (B, T, d) here, and x @ W works for it as it is."
        )),
        Probe("large numbers", _mlp_inputs(2, 3, m=4, std=300.0), (
            "exp(-a) overflows here for very negative a; SiLU(a) is then 0. a * torch.sigmoid(a) copes with "
            "it, and so does F.silu."
        ), extreme=True),
        larger(_mlp_inputs(5, 9, 11, m=12)),
    ),
    misconceptions=(
        Misconception("gate-and-up-swapped", (
            "You apply SiLU to x W_up. It belongs to x W_gate; the other branch stays as it is. Every shape "
            "fits, so no error will tell you."
        ), lambda x, W_gate, W_up, W_down: gated_mlp(x, W_up, W_gate, W_down)),
        Misconception("silu-left-out", (
            "You multiply the two branches as they are. SiLU belongs on x W_gate first."
        ), _gated(_same)),
        Misconception("sigmoid", (
            "You use the sigmoid, 1 / (1 + exp(-a)). SiLU is a times that."
        ), _gated(torch.sigmoid)),
        Misconception("relu", (
            "You use ReLU. The function here is SiLU: a / (1 + exp(-a))."
        ), _gated(torch.relu)),
        Misconception("gelu", (
            "You use GELU. The function here is SiLU: a / (1 + exp(-a)), close to it and not the same."
        ), _gated(F.gelu)),
        Misconception("tanh", (
            "You use tanh. The function here is SiLU: a / (1 + exp(-a))."
        ), _gated(torch.tanh)),
        Misconception("softplus", (
            "You use log(1 + exp(a)). SiLU is a / (1 + exp(-a))."
        ), _gated(F.softplus)),
        Misconception("wrong-sign", (
            "The exponent has the wrong sign: SiLU(a) = a / (1 + exp(-a)), nearly a for large a and nearly 0 "
            "for very negative a."
        ), _gated(lambda a: a * torch.sigmoid(-a))),
        Misconception("silu-on-both", (
            "You apply SiLU to both branches. Only x W_gate gets it."
        ), _gated(up=F.silu)),
        Misconception("silu-after-the-product", (
            "You multiply first and apply SiLU to the product. SiLU comes first, on x W_gate alone."
        ), _gated(_same, inside=F.silu)),
        Misconception("silu-at-the-end", (
            "You apply SiLU to the result. It belongs on x W_gate, before the branches are multiplied."
        ), _gated(_same, outside=F.silu)),
        Misconception("added", (
            "You add the two branches. They are multiplied, number by number: that is what makes one the "
            "gate of the other."
        ), _gated(join=torch.add)),
        Misconception("no-up", (
            "W_up is not used: that is the MLP of lesson 09 with SiLU for ReLU. Multiply by x W_up before "
            "W_down."
        ), _gated(join=lambda a, b: a)),
        Misconception("no-gate", (
            "W_gate is not used. Multiply SiLU(x W_gate) with x W_up before W_down."
        ), _gated(join=lambda a, b: b)),
        Misconception("no-down", (
            "You return the m numbers inside. W_down brings them back to d."
        ), lambda x, W_gate, W_up, W_down: F.silu(x @ W_gate) * (x @ W_up)),
        Misconception("residual-added", (
            "You add x. The residual connection stands in the block, not in the MLP."
        ), lambda x, W_gate, W_up, W_down: x + gated_mlp(x, W_gate, W_up, W_down)),
        Misconception("softmax-gate", (
            "Your gate is a softmax over the m numbers. SiLU looks at each number alone."
        ), _gated(lambda a: torch.softmax(a, dim=-1))),
        Misconception("linear-layers", (
            "You multiply by the transposed matrices, as torch's linear layers do. Here all are (d_in, "
            "d_out): x @ W."
        ), lambda x, W_gate, W_up, W_down: F.linear(F.silu(F.linear(x, W_gate)) * F.linear(x, W_up), W_down)),
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
        Probe("counting", _counting, (
            "One block, scale 1 and minimum 0, so the result is the codes: 0, 1, …, 15 from the low halves "
            "of the bytes, then 15, 14, …, 0 from the high ones."
        ), draws=1),
        Probe("one block", _blocks(1), (
            "One block: value = scale · code + minimum. The low four bits (codes & 15) are numbers 0-15, the "
            "high four (codes >> 4) numbers 16-31."
        )),
        Probe("low halves only", _low_only, (
            "The high four bits of every byte are 0 here, so numbers 16-31 are the minimum of their block."
        )),
        Probe("high halves only", _high_only, (
            "The low four bits of every byte are 0 here, so numbers 0-15 are the minimum of their block."
        )),
        Probe("a scale of 0", lambda rng: (torch.zeros(2).double(), _tensor(rng, 2), _blocks(2)(rng)[2]), (
            "The scale is 0 here: all 32 numbers of a block are its minimum."
        )),
        Probe("sixteen blocks", _blocks(16), (
            "16 blocks, as many as a block has bytes, so a wrong axis goes through without an error. Each "
            "row has its own scale: scales[:, None]."
        )),
        Probe("thirty-two blocks", _blocks(32), (
            "32 blocks, as many as a block has numbers, so a wrong axis goes through without an error. Each "
            "row has its own scale and minimum: [:, None]."
        )),
        Probe("large codes", _blocks(3, 256, 240), (
            "All codes are large here. A byte holds 0 to 255: a product of bytes wraps around, so turn the "
            "codes into floating-point numbers, or multiply by the scale, which is one."
        )),
        larger(_blocks(45)),
    ),
    misconceptions=(
        Misconception("nibbles-swapped", (
            "You take the high halves first. The low four bits of the 16 bytes are numbers 0-15, the high "
            "four numbers 16-31."
        ), _dequantised(lambda low, high: torch.cat([high, low], -1))),
        Misconception("nibbles-in-turn", (
            "You put the two halves of a byte side by side: low, high, low, high. All 16 low halves come "
            "first, then all 16 high ones."
        ), _dequantised(_in_turn)),
        Misconception("nibbles-in-turn-high-first", (
            "You put the two halves of a byte side by side, high, low, high, low. All 16 low halves come "
            "first, then all 16 high ones."
        ), _dequantised(lambda low, high: _in_turn(high, low))),
        Misconception("minimum-forgotten", (
            "You leave the minimum out. Codes run from 0 to 15, so without it no number could be negative."
        ), _dequantised(value=lambda codes, scales, minima: scales * codes)),
        Misconception("minimum-subtracted", (
            "You subtract the minimum. It is added: code 0 stands for the minimum."
        ), _dequantised(value=lambda codes, scales, minima: scales * codes - minima)),
        Misconception("minimum-scaled", (
            "You add the minimum before you multiply. First scale · code, then the minimum."
        ), _dequantised(value=lambda codes, scales, minima: scales * (codes + minima))),
        Misconception("scale-and-minimum-swapped", (
            "Scale and minimum have changed places. The scale multiplies the code, the minimum is added."
        ), _dequantised(value=lambda codes, scales, minima: minima * codes + scales)),
        Misconception("codes-from-minus-8", (
            "You subtract 8 from the codes, as a format without minima does. Here the minimum does that work."
        ), _dequantised(value=lambda codes, scales, minima: scales * (codes - 8) + minima)),
        Misconception("codes-with-sign", (
            "You read codes above 7 as negative. They are whole numbers from 0 to 15."
        ), _dequantised(value=lambda codes, scales, minima: scales * torch.where(codes > 7, codes - 16, codes)
                        + minima)),
        Misconception("scale-over-15", (
            "You divide the code by 15. The scale is the step from one code to the next, not the whole range."
        ), _dequantised(value=lambda codes, scales, minima: scales * codes / 15 + minima)),
        Misconception("divided-by-the-scale", (
            "You divide by the scale. It multiplies the code."
        ), _dequantised(value=lambda codes, scales, minima: codes / scales + minima)),
        Misconception("high-half-not-moved", (
            "You keep the high four bits where they are, so they count 16 times too much. Move them down: "
            "codes >> 4."
        ), _high_not_moved),
        Misconception("moved-by-three", (
            "You move the high half by three bits. A half has four: codes >> 4."
        ), _moved_by_three),
        Misconception("low-half-twice", (
            "Numbers 16-31 repeat numbers 0-15: you take the low half both times. The high half is codes >> "
            "4."
        ), _dequantised(lambda low, high: torch.cat([low, low], -1))),
        Misconception("whole-bytes-below", (
            "The first 16 numbers come from whole bytes. Take only the low four bits: codes & 15."
        ),
            lambda scales, minima, codes: scales[:, None] * torch.cat([codes, codes >> 4], -1)
            + minima[:, None]),
        Misconception("bytes-as-numbers", (
            "You turn each byte into one number, 16 a block. A byte holds two codes of four bits each: the "
            "result has 32 columns."
        ), lambda scales, minima, codes: scales[:, None] * codes + minima[:, None]),
        Misconception("no-new-axis", (
            "You multiply (n,) with (n, 32), so a scale meets a column and not its row. Give the scales and "
            "the minima an axis: [:, None]."
        ), lambda scales, minima, codes: scales * torch.cat(_nibbles(codes), -1) + minima),
        Misconception("flat", (
            "Your numbers are right and stand in one row. Return (n, 32), one row a block."
        ), lambda scales, minima, codes: dequantise(scales, minima, codes).flatten()),
    ),
)


# ---------------------------------------------------------------- cached_attention


def _cached_inputs(B, h, g, T, t, d_k, d_v=None, std=1.0):
    """T new tokens after t in the cache; t = 0: the cache is None."""
    def make(rng):
        w = d_k if d_v is None else d_v
        q = _tensor(rng, B, h, T, d_k, std=std)
        k, v = _tensor(rng, B, g, T, d_k, std=std), _tensor(rng, B, g, T, w)
        return q, k, v, (_tensor(rng, B, g, t, d_k, std=std), _tensor(rng, B, g, t, w)) if t else None
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


CACHED_ATTENTION = Exercise(
    reference=cached_attention,
    probes=(
        Probe("one token, no cache", _cached_inputs(1, 1, 1, 1, 0, 3), (
            "The first token of a text sees only itself: the output is v, and the new cache is (k, v)."
        )),
        Probe("one token, one cached", _cached_inputs(1, 1, 1, 1, 1, 2), (
            "One token is cached. The new one sees it and itself; the new cache holds both, the old one "
            "first."
        )),
        Probe("a prompt, no cache", _cached_inputs(1, 2, 2, 4, 0, 3), (
            "Four new tokens and no cache: plain causal attention. Token i sees tokens 0 to i."
        )),
        Probe("one token, many cached", _cached_inputs(1, 2, 2, 1, 5, 3), (
            "One new token and 5 cached ones: it sees all 6. A mask made for one row and cut at the left "
            "would leave it only the first."
        )),
        Probe("a second piece of a prompt", _cached_inputs(1, 2, 2, 3, 4, 5), (
            "Three new tokens after 4 cached ones: new token i stands at place 4 + i, and sees keys 0 to 4 + "
            "i. The mask begins 4 columns further to the right: tril(t)."
        )),
        Probe("two groups of two", _cached_inputs(1, 4, 2, 3, 0, 3), (
            "h = 4 query heads and g = 2 heads of keys: heads 0 and 1 use group 0, heads 2 and 3 use group 1."
        )),
        Probe("three groups of two, with a cache", _cached_inputs(2, 6, 3, 2, 3, 4), (
            "h = 6 and g = 3, with a batch and a cache: head i uses group i // (h // g). The cache keeps g "
            "heads, not h."
        )),
        Probe("one group", _cached_inputs(2, 3, 1, 2, 2, 5), (
            "g = 1: all query heads share one head of keys and values."
        )),
        Probe("as many keys as dimensions", _cached_inputs(2, 4, 2, 2, 2, 4), (
            "t + T equals d_k here, so a wrong axis goes through without an error. The softmax runs over the "
            "keys, the last axis of the scores."
        )),
        Probe("wider values", _cached_inputs(1, 4, 2, 3, 2, 3, d_v=5), (
            "The values are wider than the keys here: the output takes its width from v, the scale its width "
            "from q."
        )),
        Probe("large numbers", _cached_inputs(1, 4, 2, 3, 3, 4, std=30.0), (
            "The scores are large here, and torch.softmax copes with them. Divide by √d_k before it."
        ), extreme=True),
        larger(_cached_inputs(5, 10, 5, 9, 10, 11)),
    ),
    misconceptions=(
        Misconception("no-offset", (
            "Your mask begins at the left again: new token i sees keys 0 to i, as if nothing were cached. It "
            "stands at place t + i and sees keys 0 to t + i: tril(t), where t is the length of the cache. "
            "(is_causal=True does the same wrong.)"
        ), _attends(offset=lambda T, n: 0)),
        Misconception("no-mask", (
            "New tokens see those after them. New token i sees the cache and new tokens 0 to i."
        ), _attends(offset=lambda T, n: n)),
        Misconception("mask-only-without-a-cache", (
            "With a cache you use no mask. That is right for one new token, and wrong for several: they "
            "would see those after them."
        ), _mask_only_at_first),
        Misconception("one-too-far", (
            "Each new token also sees the one after it. The last key that new token i may see is t + i, "
            "itself."
        ), _attends(offset=lambda T, n: n - T + 1)),
        Misconception("does-not-see-itself", (
            "A new token does not see itself, so the first of a text sees nothing. Token i sees keys 0 to t "
            "+ i, its own included."
        ), _attends(offset=lambda T, n: n - T - 1)),
        Misconception("groups-in-turn", (
            "You give the groups to the heads in turn: 0, 1, 0, 1. Heads of one group stand side by side: 0, "
            "0, 1, 1. torch's repeat does the former, repeat_interleave the latter."
        ), _attends(keys_in_turn=True, values_in_turn=True)),
        Misconception("keys-in-turn", (
            "The values go to the right heads, the keys do not: you spread them in turn, 0, 1, 0, 1. It is "
            "0, 0, 1, 1 for both."
        ), _attends(keys_in_turn=True)),
        Misconception("values-in-turn", (
            "The keys go to the right heads, the values do not: you spread them in turn, 0, 1, 0, 1. It is "
            "0, 0, 1, 1 for both."
        ), _attends(values_in_turn=True)),
        Misconception("first-group-for-all", (
            "All heads use group 0. That is right for g = 1 only: head i uses group i // (h // g)."
        ), _one_group(0)),
        Misconception("cache-not-read", (
            "Your new tokens do not see the cache, only each other. Put the cached keys and values in front, "
            "then attend."
        ), _attends(see=lambda k, v, cache: (k, v))),
        Misconception("nothing-appended", (
            "The output is right, but you give back the old cache: the next token will not see these. Return "
            "the longer one."
        ), _attends(keep=lambda k, v, cache: (k, v) if cache is None else cache)),
        Misconception("keeps-the-new-only", (
            "The output is right, but your new cache holds only the new tokens: the others are lost for the "
            "next call."
        ), _attends(keep=lambda k, v, cache: (k, v))),
        Misconception("new-in-front", (
            "You put the new tokens in front of the cached ones. The cache is kept in the order of the text: "
            "append at the end."
        ), _attends(_new_first, _new_first)),
        Misconception("kept-new-in-front", (
            "The output is right, but in your new cache the new tokens stand in front. It is kept in the "
            "order of the text: append at the end."
        ), _attends(keep=_new_first)),
        Misconception("values-not-appended", (
            "You append the keys and not the values to the cache you return. Both grow together."
        ), _attends(keep=lambda k, v, cache: (_joined(k, v, cache)[0], v if cache is None else cache[1]))),
        Misconception("cache-spread", (
            "You keep keys and values for every query head, h of them. The cache keeps g: that is what "
            "groups are for. Spread them over the heads after you have kept them."
        ), _spread_cache),
        Misconception("cache-swapped", (
            "The cache is given back as (V, K). It is (K, V)."
        ), _attends(keep=lambda k, v, cache: _joined(k, v, cache)[::-1])),
        Misconception("along-the-heads", (
            "You join the tensors along the axis of the heads. Tokens are axis 2 of (B, g, t, d_k)."
        ), _attends(_heads_first, _heads_first)),
        Misconception("not-scaled", (
            "The scores are not scaled: divide them by √d_k before the softmax."
        ), _attends(scale=lambda q, K: 1.0)),
        Misconception("scaled-by-d", (
            "You divide by d_k. Lesson 05: it is √d_k."
        ), _attends(scale=lambda q, K: q.shape[-1])),
        Misconception("scaled-by-the-model-width", (
            "You divide by √(h · d_k), the root of the model's width. Each head is scaled by its own width, "
            "√d_k."
        ), _attends(scale=lambda q, K: math.sqrt(q.shape[1] * q.shape[-1]))),
        Misconception("softmax-over-queries", (
            "Your softmax runs over the queries. It runs over the keys, the last axis."
        ), _attends(weigh=lambda scores, may: torch.softmax(scores.masked_fill(~may, -math.inf), -2))),
        Misconception("masked-after-the-softmax", (
            "You set the weights of hidden keys to 0 after the softmax, so the others no longer sum to 1. "
            "Hide the scores: -inf before the softmax."
        ), _attends(weigh=_after_softmax(False))),
        Misconception("scores-hidden-with-0", (
            "You set hidden scores to 0, which is a score like any other: e⁰ = 1. Use -inf."
        ), _attends(weigh=lambda scores, may: torch.softmax(scores * may, -1))),
        Misconception("no-softmax", (
            "There is no softmax: the weights are the scores themselves."
        ), _attends(weigh=lambda scores, may: scores * may)),
        Misconception("merged", (
            "You merge the heads, (B, T, h · d_k). Return them apart, (B, h, T, d_k): merging comes later."
        ), _attends(form=lambda out: out.transpose(1, 2).flatten(2))),
        Misconception("only-the-output", (
            "You return the output alone. The caller needs the new cache too: return output, (K, V)."
        ), lambda q, k, v, cache=None: cached_attention(q, k, v, cache)[0]),
        Misconception("three-values", (
            "You return three things. Keys and values belong into one tuple: return output, (K, V)."
        ), lambda q, k, v, cache=None: (cached_attention(q, k, v, cache)[0], *_joined(k, v, cache))),
        Misconception("none-not-handled", (
            "At the beginning the cache is None, and there is nothing to append to: then k and v themselves "
            "are the keys and values."
        ), lambda q, k, v, cache=None: cached_attention(q, k, v, (cache[0], cache[1]))),
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


NUCLEUS = Exercise(
    reference=nucleus,
    probes=(
        Probe("one word", lambda rng: (torch.ones(1).double(), 0.5), (
            "There is one word, and it stays, with probability 1."
        ), draws=1),
        Probe("by hand", _shares(0.5, 0.3, 0.15, 0.05, p=0.7), (
            "0.5, 0.3, 0.15, 0.05 in some order, p = 0.7: 0.5 is too little, 0.5 + 0.3 is enough. Two words "
            "stay, with 0.5/0.8 = 0.625 and 0.375."
        )),
        Probe("the first word is enough", _shares(0.8, 0.15, 0.05, p=0.3), (
            "The most probable word has 0.8, more than p = 0.3: it stays alone, with probability 1."
        )),
        Probe("just enough", _shares(0.5, 0.25, 0.1875, 0.0625, p=0.75), (
            "p = 0.75, and the two most probable words have exactly that: p or more is enough, so no third "
            "word stays."
        )),
        Probe("many words", _drawn(30, 0.9), (
            "Sort from the most probable down, take words until their sum is p or more, put them back in "
            "their places, and divide by what they have together."
        )),
        Probe("most words", _drawn(9, 0.99, 2.0), (
            "p = 0.99 here: nearly all words stay, and those that do sum to 1."
        )),
        Probe("all words", _drawn(7, 1.0), (
            "p = 1: every word stays, and nothing changes."
        )),
        Probe("a tiny p", _drawn(6, 1e-6), (
            "p is nearly 0 here. At least one word stays: the most probable one."
        )),
        Probe("equal words", lambda rng: (torch.full((8,), 0.125).double(), 0.5), (
            "Eight words with 1/8 each, p = 0.5: four of them stay, whichever, with 1/4 each. Comparing "
            "probabilities with a threshold would keep all eight."
        ), draws=1),
        larger(_drawn(500, 0.8, 3.0)),
    ),
    misconceptions=(
        Misconception("one-too-few", (
            "You leave out the word that crosses p, so those that stay have less than p, or none stays. It "
            "belongs to the nucleus: the sum must be p or more."
        ), _keeping(lambda sums, ordered, p: (sums <= p).sum())),
        Misconception("one-too-few-but-one", (
            "You leave out the word that crosses p, except where nothing would be left. It belongs to the "
            "nucleus: the sum must be p or more."
        ), _keeping(lambda sums, ordered, p: (sums <= p).sum().clamp(min=1))),
        Misconception("less-than-p", (
            "You keep words while their sum is below p, so those that stay have less than p, or none stays. "
            "The word that reaches p belongs to the nucleus."
        ), _keeping(lambda sums, ordered, p: (sums < p).sum())),
        Misconception("one-too-many", (
            "You keep one word more than is needed. Stop with the word that brings the sum to p or more."
        ), _keeping(lambda sums, ordered, p: _enough(sums, ordered, p) + 1)),
        Misconception("more-than-p", (
            "Where words have exactly p together, you take one more. The sum must be p or more, not more "
            "than p."
        ), _keeping(lambda sums, ordered, p: (sums - ordered <= p).sum())),
        Misconception("not-renormalised", (
            "What stays does not sum to 1. Divide it by its sum."
        ), _keeping(_enough, lambda few: few)),
        Misconception("divided-by-p", (
            "You divide by p. What stays has p or more together, so divide by its own sum."
        ), lambda probabilities, p: _keeping(_enough, lambda few: few / p)(probabilities, p)),
        Misconception("softmax-again", (
            "You put the probabilities through a softmax again, which makes them nearly equal. Divide by the "
            "sum of those that stay."
        ), _softmax_again),
        Misconception("threshold", (
            "You keep every word with probability p or more. p is what the words that stay have *together*."
        ), _where(lambda probabilities, p: probabilities >= p)),
        Misconception("share-of-the-best", (
            "You keep words that have at least p times the probability of the best. p is what the words that "
            "stay have together."
        ), _where(lambda probabilities, p: probabilities >= p * probabilities.max())),
        Misconception("share-of-the-vocabulary", (
            "You keep a share p of the words. p is a share of probability: how many words that is differs "
            "from place to place."
        ), _keeping(lambda sums, ordered, p: math.ceil(p * len(ordered)))),
        Misconception("least-probable-first", (
            "You begin with the least probable words. Sort from the most probable down."
        ), _keeping(lambda sums, ordered, p: _enough(sums, ordered, p), descending=False)),
        Misconception("not-sorted", (
            "You add up the words in the order of the vocabulary. Sort from the most probable down first."
        ), _in_the_vocabularys_order),
        Misconception("mask-not-put-back", (
            "You sort, mark the words that stay, and use these marks on the unsorted probabilities: the "
            "first places of the vocabulary stay, whatever their words. Put the marks back in their places "
            "with the indices that sort gives."
        ), _mask_not_put_back),
        Misconception("taken-instead-of-put", (
            "You index the sorted probabilities with the indices of sort. These say where each of them came "
            "from: new[ids] = sorted puts them back, sorted[ids] mixes them once more."
        ), _taken),
        Misconception("left-sorted", (
            "Your probabilities are right and stand in sorted order. Word i must be at place i again: put "
            "them back with the indices that sort gives."
        ), _sorted),
        Misconception("kept-only", (
            "You return only the words that stay. The result has shape (V,), with 0 for the others."
        ), _kept_only),
        Misconception("best-only", (
            "You keep only the most probable word. Take words until they have p or more together."
        ), _keeping(lambda sums, ordered, p: 1)),
        Misconception("p-not-used", (
            "You return the probabilities as they are. Words beyond the nucleus get 0."
        ), lambda probabilities, p: probabilities + 0.0),
        Misconception("minus-infinity", (
            "Words beyond the nucleus get -inf in your result. That is for scores; a probability is 0."
        ), _keeping(_enough, lambda few: torch.where(few > 0, few / few.sum(), -math.inf))),
        Misconception("beyond-the-nucleus", (
            "You keep the words beyond the nucleus, and drop the nucleus. It is the most probable words that "
            "stay."
        ), _where(lambda probabilities, p: nucleus(probabilities, p) == 0)),
    ),
    contracts=(Contract("p = 0", lambda rng: (torch.tensor([0.5, 0.5]).double(), 0.0)),
               Contract("p above 1", lambda rng: (torch.tensor([0.5, 0.5]).double(), 1.5))),
    use=_whichever,
)


EXERCISES = (RMS_NORM, GATED_MLP, DEQUANTISE, CACHED_ATTENTION, NUCLEUS)
