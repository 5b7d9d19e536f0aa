"""Assignment 5: the parts of a decoder of today, each with a detail changed (lesson 16). Inputs are torch
tensors. What makes a task this one and not its neighbour is an argument behind the * of its reference."""

import math

import torch
from torch.nn import functional as F

from classroom.tasks import Task
from helpers.checks.core import Contract, Exercise, Misconception, Probe, larger


def abs_norm(x, gain, eps, *, measure=torch.mean, offset=1.0):
    """x (..., d), gain (d,) -> (..., d): x / (mean(|x|) + eps) * (1 + gain), over the last axis. ``measure``:
    what is taken of the absolute values; ``offset``: what a gain of 0 multiplies by."""
    return x / (measure(x.abs(), dim=-1, keepdim=True) + eps) * (offset + gain)


def packed_mlp(x, W_in, W_out, *, bend=F.gelu, gate=1):
    """x (..., d), W_in (d, 2m), W_out (m, d) -> (..., d): (a * GELU(b)) W_out, where a and b are the left and
    the right half of x W_in (Shazeer 2020, "GEGLU"). ``bend``: the gate's function; ``gate``: its half."""
    halves = (x @ W_in).chunk(2, dim=-1)
    return (halves[1 - gate] * bend(halves[gate])) @ W_out


def turn_half(x, positions, *, base=1000.0, parts=2, turned=1):
    """x (..., T, d), positions (T,) -> (..., T, d): RoPE on the last d/2 columns, base 1000, of neighbours.
    ``parts``: into how many the columns are cut; ``turned``: which of them is turned."""
    if x.shape[-1] % (2 * parts):
        raise ValueError(f"The {x.shape[-1]} columns cannot be cut into {parts} parts of whole pairs.")
    pieces = [*x.chunk(parts, dim=-1)]
    pairs = pieces[turned].unflatten(-1, (-1, 2))
    a, b = pairs[..., 0], pairs[..., 1]
    i = torch.arange(a.shape[-1], dtype=torch.float64)
    angles = positions[:, None] * base ** (-i / a.shape[-1])
    cos, sin = torch.cos(angles), torch.sin(angles)
    pieces[turned] = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    return torch.cat(pieces, dim=-1)


def window_attention(q, k, v, cache, window, *, own=1):
    """q, k, v (B, h, T, d_k) of T new tokens, cache None or (K, V) of t earlier ones -> output as q, and the
    cache of the last window - 1 tokens. A token sees ``window`` tokens, up to itself. ``own``: how many of
    these are the token itself (Beltagy et al. 2020, section 3.1, with the window on the left)."""
    reach = window - own
    if reach < 0:
        raise ValueError(f"A window of {window} tokens has no room for the token itself.")
    if cache is not None:
        k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
    T, n = q.shape[2], k.shape[2]
    back = torch.arange(n - T, n)[:, None] - torch.arange(n)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    hidden = (back < 0) | (back > reach)
    weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
    first = max(n - reach, 0)
    return weights @ v, (k[:, :, first:], v[:, :, first:])


def min_p(logits, temperature, p, *, yardstick=torch.max):
    """logits (V,) -> probabilities (V,): words with at least p times the probability of the best stay, then
    the temperature is applied (Nguyen et al. 2024). ``yardstick``: what p is a share of."""
    if not (0 <= p <= 1 and temperature > 0):
        raise ValueError(f"p lies from 0 to 1 and the temperature above 0; they are {p} and {temperature}.")
    probabilities = torch.softmax(logits, dim=0)
    gone = probabilities < p * yardstick(probabilities)
    return torch.softmax((logits / temperature).masked_fill(gone, -math.inf), dim=0)


def _normal(rng, *shape, scale=1.0, shift=0.0):
    return torch.tensor(rng.normal(size=shape) * scale + shift)


# ---------------------------------------------------------------- abs_norm


def _vectors(*shape, scale=1.0, shift=0.0, eps=1e-5):
    return lambda rng: (_normal(rng, *shape, scale=scale, shift=shift), _normal(rng, shape[-1], scale=0.5),
                        eps)


def _mean_size(x, axis=-1):
    return x.abs().mean(dim=axis, keepdim=True)


ABS_NORM = Exercise(
    reference=abs_norm,
    probes=(
        Probe("one vector", _vectors(4), (
            "One vector: divide by the mean of its absolute values, then multiply by 1 + gain."
        )),
        Probe("rows with a mean", _vectors(2, 3, shift=4.0), (
            "The mean of x is not subtracted here, unlike in LayerNorm."
        )),
        Probe("three axes", _vectors(2, 3, 5, scale=3.0), (
            "Each vector along the last axis is treated by itself."
        )),
        Probe("a large eps", _vectors(3, 4, eps=2.0), (
            "eps is large here, to show where it stands: it is added to the mean, once."
        )),
        Probe("zeros", lambda rng: (torch.zeros(2, 3, dtype=torch.float64), _normal(rng, 3), 1e-5), (
            "A vector of zeros stays zeros: eps keeps the division from 0/0."
        ), extreme=True),
        larger(_vectors(5, 9, 10)),
    ),
    misconceptions=(
        Misconception("rms", (
            "You divide by the root of the mean square, as lesson 16 does. Here it is the mean of the "
            "absolute values."
        ), lambda x, g, eps: x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * (1 + g)),
        Misconception("gain-alone", (
            "You multiply by the gain. Here it is 1 + gain, so that a gain of 0 changes nothing."
        ), lambda x, g, eps: abs_norm(x, g, eps, offset=0.0)),
        Misconception("no-gain", (
            "You leave out the gain: multiply by 1 + gain."
        ), lambda x, g, eps: abs_norm(x, torch.zeros_like(g), eps)),
        Misconception("gain-added", (
            "You add 1 + gain. It multiplies."
        ), lambda x, g, eps: x / (_mean_size(x) + eps) + (1 + g)),
        Misconception("no-absolute", (
            "You divide by the mean of x, in which numbers of both signs cancel. Take absolute values first."
        ), lambda x, g, eps: x / (x.mean(-1, keepdim=True) + eps) * (1 + g)),
        Misconception("absolute-of-the-mean", (
            "You take the absolute value of the mean. It is the mean of the absolute values."
        ), lambda x, g, eps: x / (x.mean(-1, keepdim=True).abs() + eps) * (1 + g)),
        Misconception("sum", (
            "You add the absolute values up. Take their mean."
        ), lambda x, g, eps: abs_norm(x, g, eps, measure=torch.sum)),
        Misconception("largest", (
            "You divide by the largest absolute value. Take their mean."
        ), lambda x, g, eps: abs_norm(x, g, eps, measure=torch.amax)),
        Misconception("mean-subtracted", (
            "You subtract the mean of x first, as LayerNorm does. Leave it where it is."
        ), lambda x, g, eps: abs_norm(x - x.mean(-1, keepdim=True), g, eps)),
        Misconception("eps-for-each", (
            "You add eps to x. It is added to the mean of the absolute values."
        ), lambda x, g, eps: (x + eps) / _mean_size(x + eps) * (1 + g)),
        Misconception("no-eps", (
            "eps has no effect in your function, and a vector of zeros gives NaN. Add it to the mean."
        ), lambda x, g, eps: x / _mean_size(x) * (1 + g)),
        Misconception("whole-array", (
            "You take the mean over everything. Each vector has its own: dim=-1, keepdim=True."
        ), lambda x, g, eps: x / (x.abs().mean() + eps) * (1 + g)),
        Misconception("first-axis", (
            "You normalise along the first axis. A vector lies along the last: dim=-1."
        ), lambda x, g, eps: x / (_mean_size(x, 0) + eps) * (1 + g)),
    ),
)

# ---------------------------------------------------------------- packed_mlp


def _packed(d, m, *shape):
    return lambda rng: (_normal(rng, *shape, d), _normal(rng, d, 2 * m), _normal(rng, m, d))


def _branches(join):
    """``join(a, b)`` of the left and the right half, then W_out."""
    return lambda x, W_in, W_out: join(*(x @ W_in).chunk(2, dim=-1)) @ W_out


def _every_other(x, W_in, W_out):
    h = x @ W_in
    return (h[..., ::2] * F.gelu(h[..., 1::2])) @ W_out


PACKED_MLP = Exercise(
    reference=packed_mlp,
    probes=(
        Probe("one number", _packed(1, 1, 1), (
            "d = m = 1: x W_in has two numbers, a and b. The result is a · GELU(b) · W_out."
        ), draws=3),
        Probe("wider inside", _packed(2, 5, 3), (
            "d = 2 and m = 5: x W_in has 10 columns. The left five are a, the right five b."
        )),
        Probe("a batch", _packed(3, 4, 2, 5), (
            "Any axes may stand in front; the last has the d numbers of a token."
        )),
        larger(_packed(9, 10, 5, 11)),
    ),
    misconceptions=(
        Misconception("wrong-half", (
            "GELU stands on the left half. The gate is the right one: a · GELU(b)."
        ), lambda x, W_in, W_out: packed_mlp(x, W_in, W_out, gate=0)),
        Misconception("silu", (
            "You use SiLU, as lesson 16 does. Here the gate is GELU(b) = b · Φ(b)."
        ), lambda x, W_in, W_out: packed_mlp(x, W_in, W_out, bend=F.silu)),
        Misconception("silu-wrong-half", (
            "You use SiLU, and on the left half. Here it is GELU, on the right half: a · GELU(b)."
        ), lambda x, W_in, W_out: packed_mlp(x, W_in, W_out, bend=F.silu, gate=0)),
        Misconception("tanh-form", (
            "You use the approximation of GELU by tanh, which is close, but not the same. Use b · Φ(b)."
        ), lambda x, W_in, W_out: packed_mlp(
            x, W_in, W_out, bend=lambda z: F.gelu(z, approximate="tanh"))),
        Misconception("sigmoid-form", (
            "You use the approximation b · sigmoid(1.702 b), which is close, but not the same. Use b · Φ(b)."
        ), lambda x, W_in, W_out: packed_mlp(
            x, W_in, W_out, bend=lambda z: z * torch.sigmoid(1.702 * z))),
        Misconception("erf-without-root", (
            "Φ(b) is (1 + erf(b / √2)) / 2: the root of 2 is missing."
        ), lambda x, W_in, W_out: packed_mlp(
            x, W_in, W_out, bend=lambda z: z * (1 + torch.erf(z)) / 2)),
        Misconception("no-factor", (
            "You use Φ(b) as the gate. GELU(b) is b · Φ(b)."
        ), lambda x, W_in, W_out: packed_mlp(x, W_in, W_out, bend=torch.special.ndtr)),
        Misconception("relu", (
            "You use ReLU. The gate is GELU(b) = b · Φ(b)."
        ), lambda x, W_in, W_out: packed_mlp(x, W_in, W_out, bend=torch.relu)),
        Misconception("sigmoid", (
            "You use the sigmoid. The gate is GELU(b) = b · Φ(b)."
        ), lambda x, W_in, W_out: packed_mlp(x, W_in, W_out, bend=torch.sigmoid)),
        Misconception("both-bent", (
            "You apply GELU to both halves. Only the gate, the right half, is bent."
        ), _branches(lambda a, b: F.gelu(a) * F.gelu(b))),
        Misconception("product-bent", (
            "You apply GELU to the product. Bend the right half first, then multiply."
        ), _branches(lambda a, b: F.gelu(a * b))),
        Misconception("added", (
            "You add the two halves. A gate multiplies."
        ), _branches(lambda a, b: a + F.gelu(b))),
        Misconception("no-gate", (
            "You leave out the left half. It is a · GELU(b)."
        ), _branches(lambda a, b: F.gelu(b))),
        Misconception("every-other", (
            "You take every other column. a is the left half of the columns, b the right half."
        ), _every_other),
        Misconception("residual", (
            "You add x. The residual connection belongs to the block around it."
        ), lambda x, W_in, W_out: x + packed_mlp(x, W_in, W_out)),
    ),
)

# ---------------------------------------------------------------- turn_half

AT = torch.arange


def _tokens(*shape, first=0, step=1):
    def make(rng):
        return _normal(rng, *shape), first + step * AT(shape[-2])
    return make


def _turned(x, positions, angle=None, pairs=lambda z: (z[..., ::2], z[..., 1::2]), back=None):
    """RoPE on the last half of the columns, with other angles, pairs, or a way to put them back."""
    still, moving = x.chunk(2, dim=-1)
    a, b = pairs(moving)
    i, m = AT(a.shape[-1], dtype=torch.float64), a.shape[-1]
    angles = positions[:, None] * (1000.0 ** (-i / m) if angle is None else angle(i, m))
    new = a * torch.cos(angles) - b * torch.sin(angles), a * torch.sin(angles) + b * torch.cos(angles)
    moved = torch.stack(new, dim=-1).flatten(-2) if back is None else back(*new)
    return torch.cat([still, moved], dim=-1)


def _row_numbers(x, positions):
    return turn_half(x, AT(x.shape[-2]))


TURN_HALF = Exercise(
    reference=turn_half,
    probes=(
        Probe("one pair", _tokens(3, 4), (
            "d = 4: columns 0 and 1 stay, columns 2 and 3 are one pair, turned by the position itself."
        ), absolute=1e-5),
        Probe("two pairs", _tokens(4, 8), (
            "d = 8: of the last four columns, the first pair is turned by p, the second by p · 1000^(-1/2)."
        ), absolute=1e-5),
        Probe("one position", _tokens(1, 8, first=3), (
            "One token at position 3: the positions need not begin at 0."
        ), absolute=1e-5),
        Probe("heads", _tokens(2, 4, 5, 12, first=2, step=3), (
            "x is (B, h, T, d) here, and positions are 2, 5, 8 …: any axes may stand in front."
        ), absolute=1e-5),
        larger(_tokens(5, 7, 13, 24)),
    ),
    misconceptions=(
        Misconception("first-half", (
            "You turn the first half of the columns. Here it is the last half; the first stays as it is."
        ), lambda x, p: turn_half(x, p, turned=0)),
        Misconception("everything", (
            "You turn all columns. Only the last half is turned; the first stays as it is."
        ), lambda x, p: turn_half(x, p, parts=1, turned=0)),
        Misconception("lesson-08", (
            "This is lesson 08's rotate: it turns all columns, with base 10000. Here it is the last half, "
            "with base 1000."
        ), lambda x, p: turn_half(x, p, base=10000.0, parts=1, turned=0)),
        Misconception("base-10000", (
            "You use base 10000, as lesson 08 does. Here it is 1000."
        ), lambda x, p: turn_half(x, p, base=10000.0)),
        Misconception("base-100000", (
            "You use base 100000, as the model of lesson 16 does. Here it is 1000."
        ), lambda x, p: turn_half(x, p, base=100000.0)),
        Misconception("d-in-the-exponent", (
            "You divide by all d columns in the exponent. Only d/2 are turned: pair i has -2i / (d/2)."
        ), lambda x, p: _turned(x, p, lambda i, m: 1000.0 ** (-i / (2 * m)))),
        Misconception("places-in-the-whole", (
            "You count the pairs from column 0. The first pair that is turned has i = 0."
        ), lambda x, p: _turned(x, p, lambda i, m: 1000.0 ** (-(i + m) / (2 * m)))),
        Misconception("counted-from-one", (
            "You count the pairs from 1. The first has i = 0 and is turned by the position itself."
        ), lambda x, p: _turned(x, p, lambda i, m: 1000.0 ** (-(i + 1) / m))),
        Misconception("frequencies-grow", (
            "Your later pairs turn faster. The exponent is negative: they turn more slowly."
        ), lambda x, p: _turned(x, p, lambda i, m: 1000.0 ** (i / m))),
        Misconception("one-angle", (
            "All your pairs turn by the same angle. Pair i turns by p · 1000^(-2i / (d/2))."
        ), lambda x, p: _turned(x, p, lambda i, m: torch.ones_like(i))),
        Misconception("halves", (
            "You pair each column with the one half the turned part away. Neighbours are pairs here."
        ), lambda x, p: _turned(x, p, pairs=lambda z: z.chunk(2, dim=-1),
                                back=lambda a, b: torch.cat([a, b], dim=-1))),
        Misconception("put-back-in-halves", (
            "The pairs are turned right and put back wrongly: the two numbers of a pair stay neighbours."
        ), lambda x, p: _turned(x, p, back=lambda a, b: torch.cat([a, b], dim=-1))),
        Misconception("other-way", (
            "You turn the other way: (a, b) becomes (a cos - b sin, a sin + b cos)."
        ), lambda x, p: turn_half(x, -p)),
        Misconception("mirrored", (
            "This is a reflection and not a turn: one of the signs is wrong. (a, b) becomes (a cos - b sin, "
            "a sin + b cos)."
        ), lambda x, p: _turned(x, p, back=lambda a, b: torch.stack([a, -b], dim=-1).flatten(-2))),
        Misconception("turned-part-only", (
            "You return the turned half alone. The first half stands in front of it, as it was."
        ), lambda x, p: turn_half(x, p).chunk(2, dim=-1)[1]),
        Misconception("turned-in-front", (
            "The turned half stands in front. The order of the columns stays."
        ), lambda x, p: torch.cat(turn_half(x, p).chunk(2, dim=-1)[::-1], dim=-1)),
        Misconception("positions-ignored", (
            "You count the rows of x. The positions are given, and need not begin at 0."
        ), _row_numbers),
        Misconception("one-based-positions", (
            "You add 1 to the positions. Position 0 is not turned."
        ), lambda x, p: turn_half(x, p + 1)),
    ),
    contracts=(Contract("a d that 4 does not divide", lambda rng: _tokens(2, 6)(rng)),),
)

# ---------------------------------------------------------------- window_attention


def _cached(B, h, T, t, d_k, window):
    def make(rng):
        q, k, v = (_normal(rng, B, h, T, d_k, scale=1.5) for _ in range(3))
        cache = (_normal(rng, B, h, t, d_k, scale=1.5), _normal(rng, B, h, t, d_k)) if t is not None else None
        return q, k, v, cache, window
    return make


def _joined(k, v, cache):
    return (k, v) if cache is None else (torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2))


def _last(number, k, v):
    first = max(k.shape[2] - number, 0)
    return k[:, :, first:], v[:, :, first:]


def _hidden(window, T, n):
    back = torch.arange(n - T, n)[:, None] - torch.arange(n)
    return (back < 0) | (back >= window)


def _attends(see=_joined, hidden=_hidden,
             keep=lambda window, k, v, cache: _last(window - 1, *_joined(k, v, cache)),
             scale=lambda q: math.sqrt(q.shape[-1]), axis=-1, bar=-math.inf):
    """Attention with one part exchanged."""
    def function(q, k, v, cache, window):
        K, V = see(k, v, cache)
        scores = q @ K.mT / scale(q)
        weights = torch.softmax(scores.masked_fill(hidden(window, q.shape[2], K.shape[2]), bar), dim=axis)
        return weights @ V, keep(window, k, v, cache)
    return function


def _cut_first(q, k, v, cache, window):
    """Keep only the last tokens, then attend: earlier new tokens lose what they may see."""
    few = _last(max(window, q.shape[2]), *_joined(k, v, cache))
    return _attends(see=lambda *_: few)(q, k, v, cache, window)


def _after_softmax(q, k, v, cache, window):
    K, V = _joined(k, v, cache)
    T, n = q.shape[2], K.shape[2]
    causal, hidden = _hidden(n, T, n), _hidden(window, T, n)
    weights = torch.softmax((q @ K.mT / math.sqrt(q.shape[-1])).masked_fill(causal, -math.inf), dim=-1)
    return weights.masked_fill(hidden, 0.0) @ V, window_attention(q, k, v, cache, window)[1]


def _no_offset(window, T, n):
    back = torch.arange(T)[:, None] - torch.arange(n)
    return (back < 0) | (back >= window)


def _band(window, T, n):
    return (torch.arange(n - T, n)[:, None] - torch.arange(n)).abs() >= window


def _window_is_left(window, T, n):
    """The first ``window`` tokens instead of the last."""
    itself = torch.arange(n) == torch.arange(n - T, n)[:, None]
    return _hidden(n, T, n) | (torch.arange(n) >= window) & ~itself


def _window_on_the_cache_only(window, T, n):
    return _hidden(n, T, n) | (torch.arange(n) < n - T) & _hidden(window, T, n)


def _sliced_from_the_end(window, k, v, cache):
    K, V = _joined(k, v, cache)
    return K[:, :, -(window - 1):], V[:, :, -(window - 1):]


def _minus_window(window, k, v, cache):
    return _last(window, *_joined(k, v, cache))


def _new_first(k, v, cache):
    return (k, v) if cache is None else _joined(*cache, (k, v))


def _first_tokens(window, k, v, cache):
    K, V = _joined(k, v, cache)
    return K[:, :, :window - 1], V[:, :, :window - 1]


WINDOW_ATTENTION = Exercise(
    reference=window_attention,
    probes=(
        Probe("one token, nothing cached", _cached(1, 1, 1, None, 2, 3), (
            "One token without a cache sees itself: the output is its value, and the cache holds it."
        )),
        Probe("a prompt within the window", _cached(1, 2, 3, None, 4, 5), (
            "Three tokens, a window of five, nothing cached: this is the triangle of lesson 06."
        )),
        Probe("a prompt longer than the window", _cached(2, 1, 6, None, 3, 3), (
            "Six tokens, a window of three: token 5 sees tokens 3, 4 and 5. The cache keeps tokens 4 and 5."
        )),
        Probe("one more token", _cached(1, 2, 1, 3, 4, 4), (
            "Three tokens in the cache and a window of four: the new token sees all of them and itself."
        )),
        Probe("several more tokens", _cached(2, 3, 4, 2, 5, 3), (
            "Two cached tokens, four new ones, a window of three. New token i stands at place t + i: it sees "
            "places t + i - 2 to t + i."
        )),
        Probe("a longer cache than the window", _cached(1, 2, 2, 7, 3, 3), (
            "The cache may hold more than the window: new tokens see only the last `window` tokens all the "
            "same, and the new cache is cut."
        )),
        Probe("a cache of few", _cached(1, 1, 2, 1, 3, 6), (
            "Three tokens in all and a window of six: everything is seen and everything is kept."
        )),
        Probe("an empty cache", _cached(1, 1, 2, 0, 3, 3), (
            "A cache of no tokens is like none."
        )),
        Probe("a window of one", _cached(1, 2, 3, 2, 4, 1), (
            "With a window of one each token sees itself alone, and the cache keeps 0 tokens: its shape is "
            "(B, h, 0, d_k)."
        )),
        larger(_cached(5, 6, 9, 7, 10, 8)),
    ),
    misconceptions=(
        Misconception("no-window", (
            "The window has no effect on what is seen: tokens further back than `window` - 1 are hidden."
        ), _attends(hidden=lambda window, T, n: _hidden(n, T, n))),
        Misconception("no-window-at-all", (
            "This is the attention of lesson 16: your window has no effect, neither on what is seen nor on "
            "what is kept."
        ), _attends(hidden=lambda window, T, n: _hidden(n, T, n), keep=lambda window, *kv: _joined(*kv))),
        Misconception("window-one-larger", (
            "Your tokens see one token too many: the token itself counts, so it sees window - 1 before it."
        ), _attends(hidden=lambda window, T, n: _hidden(window + 1, T, n))),
        Misconception("window-without-itself", (
            "You count the window without the token itself, in what is seen and in what is kept. It counts: "
            "window - 1 tokens before it."
        ), lambda q, k, v, cache, window: window_attention(q, k, v, cache, window, own=0)),
        Misconception("no-offset", (
            "Your mask begins at the left again, as if nothing were cached. New token i stands at place "
            "t + i."
        ), _attends(hidden=_no_offset)),
        Misconception("both-sides", (
            "Your window reaches to both sides: tokens see the future. Only the past is seen."
        ), _attends(hidden=_band)),
        Misconception("first-tokens-seen", (
            "Your tokens see the first tokens of the text. The window holds the last ones, up to the token "
            "itself."
        ), _attends(hidden=_window_is_left)),
        Misconception("cache-cut-only", (
            "You cut the cache, and new tokens still see too far among themselves: a prompt may be longer "
            "than the window."
        ), _attends(hidden=_window_on_the_cache_only)),
        Misconception("cut-before", (
            "You cut keys and values before attending. The first of several new tokens loses cached ones "
            "that it may see: attend first, cut afterwards."
        ), _cut_first),
        Misconception("cache-not-cut", (
            "The output is right, and the cache grows for ever. Keep the last window - 1 tokens: nobody sees "
            "the others again."
        ), _attends(keep=lambda window, *kv: _joined(*kv))),
        Misconception("keeps-one-too-many", (
            "The output is right, and the cache holds one token more than any new token can see: keep "
            "window - 1."
        ), _attends(keep=_minus_window)),
        Misconception("keeps-one-too-few", (
            "The output is right, and the cache holds one token too few. The next token sees window - 1 "
            "before it."
        ), _attends(keep=lambda window, *kv: _last(max(window - 2, 0), *_joined(*kv)))),
        Misconception("minus-zero", (
            "Right, except for a window of 1: [-0:] is everything, and nothing should be kept."
        ), _attends(keep=_sliced_from_the_end)),
        Misconception("keeps-the-first", (
            "The output is right, and the cache keeps the first tokens of the text. Keep the last."
        ), _attends(keep=_first_tokens)),
        Misconception("keeps-the-new-only", (
            "The output is right, and your new cache holds new tokens only. Old ones stay while somebody can "
            "see them."
        ), _attends(keep=lambda window, k, v, cache: _last(window - 1, k, v))),
        Misconception("old-cache", (
            "The output is right, and you give back the old cache: the next token will not see these."
        ), _attends(keep=lambda window, k, v, cache: (k, v) if cache is None else cache)),
        Misconception("cache-not-read", (
            "Your new tokens do not see the cache. Put it in front of the new keys and values, then attend."
        ), _attends(see=lambda k, v, cache: (k, v))),
        Misconception("new-in-front", (
            "You put the new tokens in front of the cached ones. The cache is in the order of the text."
        ), _attends(_new_first, keep=lambda window, *kv: _last(window - 1, *_new_first(*kv)))),
        Misconception("does-not-see-itself", (
            "A new token does not see itself. The window ends with the token itself."
        ), _attends(hidden=lambda window, T, n: _hidden(window, T, n) | (
            torch.arange(n - T, n)[:, None] == torch.arange(n)))),
        Misconception("not-scaled", (
            "The scores are not scaled: divide them by √d_k."
        ), _attends(scale=lambda q: 1.0)),
        Misconception("softmax-over-queries", (
            "Your softmax runs over the queries. It runs over the keys, the last axis."
        ), _attends(axis=-2)),
        Misconception("hidden-with-0", (
            "You set hidden scores to 0, which is a score like any other: e⁰ = 1. Use -inf."
        ), _attends(bar=0.0)),
        Misconception("after-the-softmax", (
            "You set weights outside the window to 0 after the softmax, so the others no longer sum to 1. "
            "Hide the scores before it."
        ), _after_softmax),
        Misconception("cache-swapped", (
            "The cache is given back as (V, K). It is (K, V)."
        ), _attends(keep=lambda window, k, v, cache: _last(window - 1, *_joined(k, v, cache))[::-1])),
        Misconception("only-the-output", (
            "You return the output alone. The caller needs the new cache too: return output, (K, V)."
        ), lambda q, k, v, cache, window: window_attention(q, k, v, cache, window)[0]),
        Misconception("three-values", (
            "You return three things. Keys and values belong into one tuple: return output, (K, V)."
        ), lambda q, k, v, cache, window: (lambda out, kept: (out, *kept))(
            *window_attention(q, k, v, cache, window))),
    ),
    contracts=(Contract("a window of 0", lambda rng: _cached(1, 1, 2, None, 2, 0)(rng)),),
)

# ---------------------------------------------------------------- min_p


def _logits(V, temperature, p, scale=1.5):
    return lambda rng: (_normal(rng, V, scale=scale), temperature, p)


def _shares(*numbers, temperature, p, shift=0.0):
    """Logits with these probabilities, in some order: one of 0 is a word that was ruled out."""
    return lambda rng: (
        torch.tensor(rng.permutation(numbers)).log() + float(rng.normal()) + shift, temperature, p)


def _kept(keep, finish=lambda logits, temperature, gone: torch.softmax(
        (logits / temperature).masked_fill(gone, -math.inf), dim=-1)):
    """``keep(probabilities, p)`` says who stays."""
    def function(logits, temperature, p):
        return finish(logits, temperature, ~keep(torch.softmax(logits, dim=-1), p))
    return function


def _near_the_best(probabilities, p):
    return probabilities >= p * probabilities.max()


def _temperature_first(logits, temperature, p):
    return min_p(logits / temperature, 1.0, p)


def _nucleus(probabilities, p):
    ordered, ids = probabilities.sort(descending=True)
    kept = ids[ordered.cumsum(0) - ordered < p]
    return torch.zeros_like(probabilities, dtype=torch.bool).index_fill(0, kept, True)


def _nucleus_of_lesson_16(logits, temperature, p):
    if p == 0:
        raise ValueError("It takes a p above 0.")
    return _kept(_nucleus)(logits, temperature, p)


def _naive(logits, temperature, p):
    e = torch.exp(logits)
    few = torch.exp(logits / temperature) * (e / e.sum() >= p * (e / e.sum()).max())
    return few / few.sum()


MIN_P = Exercise(
    reference=min_p,
    probes=(
        Probe("by hand", _shares(0.5, 0.3, 0.15, 0.05, temperature=1.0, p=0.4), (
            "0.5, 0.3, 0.15, 0.05 in some order and p = 0.4: words with at least 0.4 · 0.5 = 0.2 stay, "
            "with 0.5/0.8 = 0.625 and 0.375."
        )),
        Probe("hot", _shares(0.5, 0.3, 0.15, 0.05, temperature=2.0, p=0.4), (
            "The same words at temperature 2: the same two stay, since the cut comes before the temperature."
        )),
        Probe("cold", _shares(0.4, 0.35, 0.15, 0.1, temperature=0.25, p=0.3), (
            "A low temperature: three words stay, since the cut comes before the temperature."
        )),
        Probe("p is 1", lambda rng: (torch.tensor(rng.permutation([2.0, 2.0, 1.0, 0.0])), 0.5, 1.0), (
            "p = 1, and two words are equally probable: both have at least 1 times the best, so both stay."
        )),
        Probe("p is 0", _logits(6, 1.5, 0.0), (
            "p = 0: every word stays, and only the temperature acts."
        )),
        Probe("many words", _logits(30, 0.7, 0.1), (
            "Compare each probability with p times the largest. Those below it get 0."
        ), draws=4),
        Probe("a large logit", _shares(0.4, 0.35, 0.15, 0.1, temperature=0.25, p=0.3, shift=5000.0), (
            "Logits near 5000: exp overflows unless the largest logit is subtracted first, as torch.softmax "
            "does."
        ), extreme=True),
        Probe("words ruled out", _shares(0.5, 0.3, 0.15, 0.05, 0.0, temperature=2.0, p=0.4), (
            "A logit of -inf is a word that was ruled out: its probability is 0, and stays 0."
        ), extreme=True),
        larger(_logits(400, 1.3, 0.02)),
    ),
    misconceptions=(
        Misconception("temperature-first", (
            "You apply the temperature and then cut. Here the cut comes first, on the probabilities at "
            "temperature 1."
        ), _temperature_first),
        Misconception("temperature-twice", (
            "The temperature acts twice: on the probabilities that you cut, and again on what stays."
        ), lambda logits, temperature, p: min_p(logits / temperature, temperature, p)),
        Misconception("no-temperature", (
            "The temperature has no effect. Divide the logits of the words that stay by it."
        ), lambda logits, temperature, p: min_p(logits, 1.0, p)),
        Misconception("temperature-multiplied", (
            "You multiply by the temperature. Divide: a high temperature makes words more alike."
        ), lambda logits, temperature, p: min_p(logits, 1 / temperature, p)),
        Misconception("threshold", (
            "You keep words with probability p or more. The bar is p times the largest probability."
        ), _kept(lambda probabilities, p: probabilities >= p)),
        Misconception("nucleus", (
            "This is the nucleus of lesson 16: the fewest words with probability p together. Here the bar is "
            "p times the largest probability."
        ), _kept(_nucleus)),
        Misconception("nucleus-of-lesson-16", (
            "You call the nucleus of lesson 16: the fewest words with probability p together, and no p of 0. "
            "Here the bar is p times the largest probability."
        ), _nucleus_of_lesson_16),
        Misconception("share-of-the-logit", (
            "You compare logits. p is a share of the largest probability: take a softmax first."
        ), lambda logits, temperature, p: torch.softmax(
            (logits / temperature).masked_fill(logits < p * logits.max(), -math.inf), dim=-1)),
        Misconception("more-than-p", (
            "A word with exactly p times the best is dropped. At least p times is enough: ≥."
        ), _kept(lambda probabilities, p: probabilities > p * probabilities.max())),
        Misconception("mean", (
            "You compare with the mean probability. The bar is p times the largest."
        ), lambda logits, temperature, p: min_p(logits, temperature, p, yardstick=torch.mean)),
        Misconception("the-others", (
            "You keep the words below the bar and drop those above."
        ), _kept(lambda probabilities, p: ~_near_the_best(probabilities, p) | (p == 0))),
        Misconception("not-renormalised", (
            "What stays does not sum to 1. Normalise again after the cut."
        ), _kept(_near_the_best, lambda logits, temperature, gone: torch.softmax(
            logits / temperature, dim=-1).masked_fill(gone, 0.0))),
        Misconception("hidden-with-0", (
            "You set the logits of dropped words to 0, which is a logit like any other. Use -inf."
        ), _kept(_near_the_best, lambda logits, temperature, gone: torch.softmax(
            logits.masked_fill(gone, 0.0) / temperature, dim=-1))),
        Misconception("logits-back", (
            "You return logits. Probabilities are asked for: a softmax is missing at the end."
        ), _kept(_near_the_best, lambda logits, temperature, gone: (
            logits / temperature).masked_fill(gone, -math.inf))),
        Misconception("kept-only", (
            "You return only the words that stay. The result has shape (V,), with 0 for the others."
        ), lambda logits, temperature, p: (lambda few: few[few > 0])(min_p(logits, temperature, p))),
        Misconception("best-only", (
            "You keep only the most probable word. All with at least p times its probability stay."
        ), _kept(lambda probabilities, p: probabilities == probabilities.max())),
        Misconception("overflow", (
            "Right for small logits. exp of a large one overflows: subtract the largest first, or use "
            "torch.softmax."
        ), _naive),
    ),
    contracts=(Contract("a p above 1", lambda rng: (torch.tensor([0.0, 1.0]), 1.0, 1.5)),
               Contract("a temperature of 0", lambda rng: (torch.tensor([0.0, 1.0]), 0.0, 0.5))),
)

TASKS = {
    "abs_norm": Task(ABS_NORM, forbidden=("rms_norm", "layer_norm", "normalize")),
    "packed_mlp": Task(PACKED_MLP),
    "turn_half": Task(TURN_HALF),
    "window_attention": Task(WINDOW_ATTENTION),
    "min_p": Task(MIN_P),
}
