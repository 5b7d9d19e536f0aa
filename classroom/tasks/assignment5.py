"""Assignment 5: the parts of a decoder of today, each with a detail changed (lesson 16). Inputs are torch
tensors. What makes a task this one and not its neighbour is an argument behind the * of its reference."""

import math

import torch
from torch.nn import functional as F

from classroom.tasks import Task, by_name, in_variants, mistakes, rounded
from helpers.checks.core import Contract, Exercise, Probe, inputs, larger
from helpers.checks.pieces import joined, tensor

MEASURES = {"mean": torch.mean, "largest": torch.amax, "sum": torch.sum}


def abs_norm(x, gain, eps, *, measure="mean", offset=1, floor=False):
    """x (..., d), gain (d,) -> (..., d): x / (mean(|x|) + eps) * (1 + gain), over the last axis. ``measure``:
    what is taken of the absolute values, a key of MEASURES; ``offset``: what a gain of 0 multiplies by;
    ``floor``: eps is not added, but the least that is divided by."""
    size = MEASURES[measure](x.abs(), dim=-1, keepdim=True)
    return x / (size.clamp(min=eps) if floor else size + eps) * (offset + gain)


BENDS = {"gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid, "relu": torch.relu, "tanh": torch.tanh,
         "softplus": F.softplus}


def packed_mlp(x, W_in, W_out, *, bend="gelu", gate="right"):
    """x (..., d), W_in (d, 2m), W_out (m, d) -> (..., d): (a * GELU(b)) W_out, where a and b are the left and
    the right half of x W_in (Shazeer 2020, "GEGLU"). ``bend``: the gate's function, a key of BENDS; ``gate``:
    the half that it bends."""
    left, right = (x @ W_in).chunk(2, dim=-1)
    straight, bent = (left, right) if gate == "right" else (right, left)
    return (straight * BENDS[bend](bent)) @ W_out


SPLITS = {"neighbours": lambda z: (z[..., ::2], z[..., 1::2]), "halves": lambda z: z.chunk(2, dim=-1)}
JOINS = {"neighbours": lambda a, b: torch.stack([a, b], dim=-1).flatten(-2),
         "halves": lambda a, b: torch.cat([a, b], dim=-1)}


def turn_half(x, positions, *, base=1000, turned="last", pairs="neighbours"):
    """x (..., T, d), positions (T,) -> (..., T, d): RoPE on the last d/2 columns, base 1000, of neighbours.
    ``turned``: the half of the columns that is turned; ``pairs``: "neighbours" in it, or "halves": column i
    of it and the one half its width further."""
    if x.shape[-1] % 4:
        raise ValueError(f"4 must divide the number of columns, {x.shape[-1]}.")
    first, last = x.chunk(2, dim=-1)
    still, moving = (first, last) if turned == "last" else (last, first)
    a, b = SPLITS[pairs](moving)
    i = torch.arange(a.shape[-1], dtype=torch.float64)
    angles = positions[:, None] * base ** (-i / a.shape[-1])
    cos, sin = torch.cos(angles), torch.sin(angles)
    moving = JOINS[pairs](a * cos - b * sin, a * sin + b * cos)
    return torch.cat([still, moving] if turned == "last" else [moving, still], dim=-1)


def window_attention(q, k, v, cache, window, *, own=1):
    """q, k, v (B, h, T, d_k) of T new tokens, cache None or (K, V) of t earlier ones -> output as q, and the
    cache of the last window - 1 tokens. A token sees ``window`` tokens, up to itself. ``own``: how many of
    these are the token itself (Beltagy et al. 2020, section 3.1, with the window on the left)."""
    reach = window - own
    if reach < 0:
        raise ValueError(f"A window of {window} tokens has no room for the token itself.")
    k, v = joined(k, v, cache)
    T, n = q.shape[2], k.shape[2]
    back = torch.arange(n - T, n)[:, None] - torch.arange(n)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill((back < 0) | (back > reach), -math.inf), dim=-1)
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


def _vectors(*shape, scale=1.0, shift=0.0, eps=1e-5):
    return lambda rng: (tensor(rng, *shape, std=scale, mean=shift), tensor(rng, shape[-1], std=0.5),
                        eps)


def _small_and_large(rng):
    """Three vectors, of which the first is smaller than eps in any measure and the last larger."""
    return tensor(rng, 3, 4) * torch.tensor([[0.1], [1.0], [20.0]]), tensor(rng, 4, std=0.5), 2.0


SIZES = {"mean": "the mean of the absolute values", "largest": "the largest absolute value",
         "sum": "the sum of the absolute values"}


@in_variants(abs_norm, {"measure": tuple(MEASURES), "offset": (1, 0), "floor": (False, True)},
             forbidden=("rms_norm", "layer_norm", "normalize"))
def _abs_norm(like, measure, offset, floor):
    size, gain = SIZES[measure], "1 + gain" if offset else "the gain"
    shows, eps_is = ("what it is", "the least that you divide by") if floor else (
        "where it stands", f"added to {size}")

    def divided(number, x, g, eps):
        """x over another number, with eps and gain as they should be."""
        return x / (number.clamp(min=eps) if floor else number + eps) * (offset + g)

    def along(axis):
        return lambda x, g, eps: divided(MEASURES[measure](x.abs(), dim=axis, keepdim=True), x, g, eps)

    def measured(x, axis=-1):
        return MEASURES[measure](x, dim=axis, keepdim=True)

    right = like()
    signs = "which may be negative" if measure == "largest" else "in which numbers of both signs cancel"
    of_x = {"mean": "the mean of x", "largest": "the largest entry of x", "sum": "the sum of x"}[measure]
    it = {"mean": "that mean", "largest": "that number", "sum": "that sum"}[measure]
    x, gains = torch.tensor([[3.0, -5.0], [0.0, 1.0]]).double(), torch.tensor([0.0, 1.0]).double()
    plain = abs_norm(x, gains * 0, 0.0, measure=measure)[0].tolist()
    result, large = (rounded(like()(x, gains, eps), 6) for eps in (0.0, 2.0))
    call = {"mean": "mean", "largest": "amax", "sum": "sum"}[measure]
    with_size = {"mean": "with mean", "largest": "of which the largest is", "sum": "with sum"}[measure]
    words = {
        "measure": {"mean": "**mean of its absolute values**",
                    "largest": "**largest of its absolute values**",
                    "sum": "**sum of its absolute values**"}[measure],
        "eps": f"Where {it} is smaller than `eps`, divide by `eps`." if floor else f"`eps` is added to {it}.",
        "gain": "Then each entry is multiplied by **1 + gain**, so that a gain of 0 changes nothing."
                if offset else "Then each entry is multiplied by **its gain**.",
        "by hand": "{} {:g}. So x becomes ({:g}, {:g}). With the gains (0, 1) the result is ({:g}, {:g})."
                   .format(with_size, 3 / plain[0], *plain, *result[0]),
        "formula": "x / {}, times {}.".format(
            f"max({measure}(|x|), eps)" if floor else f"({measure}(|x|) + eps)",
            "1 + gain" if offset else "gain"),
        "size": f"size = x.abs().{call}(dim=-1, keepdim=True)",
        "result": "return x / {} * {}".format("size.clamp(min=eps)" if floor else "(size + eps)",
                                             "(1 + gain)" if offset else "gain"),
        "expected": str(result),
        "with eps": str(large),
    }
    return Exercise(right, probes=(
        Probe("one vector", _vectors(4), f"One vector: divide by {size}, then multiply by {gain}."),
        Probe("rows with a mean", _vectors(2, 3, shift=4.0), "The mean of x is not subtracted here, "
            "unlike in LayerNorm."),
        Probe("three axes", _vectors(2, 3, 5, scale=3.0), "Each vector along the last axis is treated "
            "by itself."),
        Probe("a large eps", _small_and_large, f"eps is large here, to show {shows}: it is {eps_is}."),
        Probe("zeros", lambda rng: (torch.zeros(2, 3, dtype=torch.float64), tensor(rng, 3), 1e-5),
            "A vector of zeros stays zeros: eps keeps the division from 0/0.", extreme=True),
        larger(_vectors(5, 9, 10)),
    ), misconceptions=mistakes(
        ("rms", f"You divide by the root of the mean square, as lesson 16 does. Here it is {size}.",
            lambda x, g, eps: x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * (offset + g)),
        like.others("offset", {
            0: ("gain-alone", "You multiply by the gain. Here it is 1 + gain, so that a gain of 0 changes"
                " nothing."),
            1: ("one-plus-gain", "You multiply by 1 + gain. Here it is the gain alone."),
        }),
        ("no-gain", f"You leave out the gain: multiply by {gain}.",
            lambda x, g, eps: like(offset=1)(x, torch.zeros_like(g), eps)),
        ("gain-added", f"You add {gain}. It multiplies.",
            lambda x, g, eps: like(offset=1)(x, torch.zeros_like(g), eps) + (offset + g)),
        ("no-absolute", f"You divide by {of_x}, {signs}. Take absolute values first.",
            lambda x, g, eps: divided(measured(x), x, g, eps)),
        measure != "largest" and ("absolute-of-the-mean",
            f"You take the absolute value of {of_x}. It is {size}.",
            lambda x, g, eps: divided(measured(x).abs(), x, g, eps)),
        like.others("measure", {
            other: (other, f"You divide by {words}. Divide by {size}.") for other, words in SIZES.items()}),
        ("mean-subtracted", "You subtract the mean of x first, as LayerNorm does. Leave it where it "
            "is.", lambda x, g, eps: right(x - x.mean(-1, keepdim=True), g, eps)),
        ("eps-for-each", f"You add eps to x. It is {eps_is}.",
            lambda x, g, eps: (x + eps) / measured((x + eps).abs()) * (offset + g)),
        like.others("floor", {
            False: ("eps-added", "You add eps. It is the least that you divide by: divide by eps where"
                f" {size} is smaller."),
            True: ("eps-least", f"You divide by eps where {size} is smaller than it. eps is added, always."),
        }),
        ("no-eps", "eps has no effect in your function, and a vector of zeros gives NaN. It is "
            f"{eps_is}.", lambda x, g, eps: x / measured(x.abs()) * (offset + g)),
        ("whole-array", f"You take {size} over everything. Each vector has its own: dim=-1, keepdim=True.",
            lambda x, g, eps: divided(MEASURES[measure](x.abs().flatten(), dim=0), x, g, eps)),
        ("first-axis", "You normalise along the first axis. A vector lies along the last: dim=-1.", along(0)),
    )), words


def _packed(d, m, *shape):
    return lambda rng: (tensor(rng, *shape, d), tensor(rng, d, 2 * m), tensor(rng, m, d))


GATES = ("gelu", "sigmoid", "relu", "tanh", "softplus")  # SiLU is the gate of lesson 16
FORMULAS = {"gelu": "GELU({0}) = {0} · Φ({0})",
            "sigmoid": "σ({0}) = 1 / (1 + exp(-{0}))", "relu": "ReLU({0}) = max(0, {0})",
            "tanh": "tanh({0}), the hyperbolic tangent", "softplus": "softplus({0}) = log(1 + exp({0}))"}
NAMES = {"gelu": "GELU", "sigmoid": "σ", "relu": "ReLU", "tanh": "tanh", "softplus": "softplus"}
CALLS = {"gelu": "F.gelu", "sigmoid": "torch.sigmoid", "relu": "torch.relu",
         "tanh": "torch.tanh", "softplus": "F.softplus"}
ONLY_GELU = (  # (misconception, what is said of it, the gate's function)
    ("tanh-form", "You use the approximation of GELU by tanh, which is close, but not the same.",
     lambda z: F.gelu(z, approximate="tanh")),
    ("sigmoid-form", "You use the approximation z · sigmoid(1.702 z), which is close, but not the same.",
     lambda z: z * torch.sigmoid(1.702 * z)),
    ("erf-without-root", "Φ(z) is (1 + erf(z / √2)) / 2: the root of 2 is missing.",
     lambda z: z * (1 + torch.erf(z)) / 2),
    ("no-factor", "You use Φ as the gate.", torch.special.ndtr),
)


@in_variants(packed_mlp, {"bend": GATES, "gate": ("right", "left")})
def _packed_mlp(like, bend, gate):
    name, formula = NAMES[bend], FORMULAS[bend].format("b" if gate == "right" else "a")
    other, act = "left" if gate == "right" else "right", BENDS[bend]
    product = f"a · {name}(b)" if gate == "right" else f"{name}(a) · b"

    def joined(join):
        """``join(straight, bent)`` of the two halves, then W_out."""
        def function(x, W_in, W_out):
            left, right = (x @ W_in).chunk(2, dim=-1)
            return (join(left, right) if gate == "right" else join(right, left)) @ W_out
        return function

    def every_other(x, W_in, W_out):
        h = x @ W_in
        a, b = h[..., ::2], h[..., 1::2]
        return (a * act(b) if gate == "right" else act(a) * b) @ W_out

    def wrongly(function):
        return joined(lambda straight, bent: straight * function(bent))
    z = "b" if gate == "right" else "a"
    number = torch.tensor(2.0 if gate == "right" else 3.0, dtype=torch.float64)
    bent = BENDS[bend](number).item()
    numbers, letters = (f"3 · {bent:.4g}", f"a ⊙ {name}(b)") if gate == "right" else (
        f"{bent:.4g} · 2", f"{name}(a) ⊙ b")
    result = (3 if gate == "right" else 2) * bent * 10
    phi = torch.special.ndtr(number).item()
    within = f", Φ({number:g}) = {phi:.3f}" if bend == "gelu" else ""
    says = {"gelu": "Φ is the distribution function of the standard normal distribution, and "
                    f"`F.gelu({z})` computes {z} · Φ({z}).",
            "tanh": f"`torch.tanh({z})` computes tanh({z})."}.get(bend, f"`{CALLS[bend]}({z})` computes it.")
    with_it = "" if bend == "tanh" else f", with {FORMULAS[bend].format(z)}"
    called = {"sigmoid": "the sigmoid σ", "tanh": "the hyperbolic tangent"}.get(bend, name)
    negative = torch.tensor([[3.0, -2.0] if gate == "right" else [-3.0, 2.0]])
    expected, expected_of_it = (rounded(like()(torch.ones(1, 1), W_in, torch.full((1, 1), 10.0)), 3)
                                for W_in in (negative.abs(), negative))
    code = f"a * {CALLS[bend]}(b)" if gate == "right" else f"{CALLS[bend]}(a) * b"
    words = {
        "gate": f"**The {gate} half is the gate**, and its function is {called}: the result is "
                f"({letters}) W_out{with_it}. {says}",
        "by hand": f"So a = 3, b = 2{within} and {name}({number:g}) = {bent:.4g}. The result is {numbers} "
                   f"· 10 = {result:.3g}.",
        "code": f"return ({code}) @ W_out",
        "expected": str(expected),
        "negative": str(negative.tolist()),
        "expected of it": str(expected_of_it),
    }
    return Exercise(like(), probes=(
        Probe("one number", _packed(1, 1, 1), "d = m = 1: x W_in has two numbers, a and b. The result "
            f"is {product} · W_out.", draws=3),
        Probe("wider inside", _packed(2, 5, 3), "d = 2 and m = 5: x W_in has 10 columns. The left "
            "five are a, the right five b."),
        Probe("a batch", _packed(3, 4, 2, 5), "Any axes may stand in front; the last has the d "
            "numbers of a token."),
        larger(_packed(9, 10, 5, 11)),
    ), misconceptions=mistakes(
        ("wrong-half", f"{name} stands on the {other} half. The gate is the {gate} one: {product}.",
            like(gate=other)),
        ("silu", f"You use SiLU, as lesson 16 does. Here the gate is {formula}.", like(bend="silu")),
        ("silu-wrong-half", f"You use SiLU, and on the {other} half. Here it is {name}, on the {gate} "
            f"half: {product}.", like(bend="silu", gate=other)),
        *((id, f"{words} The gate is {formula}.", wrongly(function))
          for id, words, function in ONLY_GELU if bend == "gelu"),
        like.others("bend", {wrong: (wrong, f"You use {words}. The gate is {formula}.") for wrong, words in (
            ("gelu", "GELU"), ("relu", "ReLU"), ("sigmoid", "the sigmoid"))}),
        ("both-bent", f"You apply {name} to both halves. Only the gate, the {gate} half, is bent.",
            joined(lambda straight, bent: act(straight) * act(bent))),
        ("product-bent", f"You apply {name} to the product. Bend the {gate} half first, then multiply.",
            joined(lambda straight, bent: act(straight * bent))),
        ("added", "You add the two halves. A gate multiplies.",
            joined(lambda straight, bent: straight + act(bent))),
        ("no-gate", f"You leave out the {other} half. It is {product}.",
            joined(lambda straight, bent: act(bent))),
        ("every-other", "You take every other column. a is the left half of the columns, b the right "
            "half.", every_other),
        ("residual", "You add x. The residual connection belongs to the block around it.",
            lambda x, W_in, W_out: x + like()(x, W_in, W_out)),
    )), words


AT = torch.arange


def _tokens(*shape, first=0, step=1):
    return lambda rng: (tensor(rng, *shape), first + step * AT(shape[-2]))


def _everything(base, pairs):
    """RoPE on all columns."""
    def function(x, positions):
        if x.shape[-1] % 2:
            raise ValueError("An odd number of columns has no pairs.")
        a, b = SPLITS[pairs](x)
        angles = positions[:, None] * base ** (-AT(a.shape[-1], dtype=torch.float64) / a.shape[-1])
        cos, sin = torch.cos(angles), torch.sin(angles)
        return JOINS[pairs](a * cos - b * sin, a * sin + b * cos)
    return function


@in_variants(turn_half, {"base": (1000, 200, 5000, 20000), "turned": ("last", "first"), "pairs": tuple(SPLITS)})
def _turn_half(like, base, turned, pairs):
    still = "first" if turned == "last" else "last"
    way = "halves" if pairs == "neighbours" else "neighbours"
    columns = {"last": ("0 and 1 stay", "2 and 3"), "first": ("2 and 3 stay", "0 and 1")}[turned]

    def in_order(first, second):
        """What stays and what is turned, in the order of the columns, or columns in the order of these two."""
        return (first, second) if turned == "last" else (second, first)

    def other(angle=lambda i, m: float(base) ** (-i / m), join=JOINS[pairs],
              together=lambda stays, moved: torch.cat(in_order(stays, moved), dim=-1)):
        """With other angles, or another way to put the pairs back."""
        def function(x, positions):
            stays, moving = in_order(*x.chunk(2, dim=-1))
            a, b = SPLITS[pairs](moving)
            m = a.shape[-1]
            angles = positions[:, None] * angle(AT(m, dtype=torch.float64), m)
            cos, sin = torch.cos(angles), torch.sin(angles)
            return together(stays, join(a * cos - b * sin, a * sin + b * cos))
        return function

    right = like()
    in_pairs = {
        "neighbours": "You pair each column with the one half the turned part away. Neighbours are pairs here.",
        "halves": "You pair neighbours. Here a column's partner is half the turned part away."}[pairs]
    put_back = {
        "neighbours": "the two numbers of a pair stay neighbours.",
        "halves": "the first numbers of all pairs come first, then the second ones."}[pairs]
    kept, moved = ["5", "6"], (["1", "0"], ["cos 1", "sin 1"], ["0.54", "0.84"])
    before, exact, decimal = (f"({', '.join(kept + m if turned == 'last' else m + kept)})" for m in moved)
    partners = {"neighbours": "neighbours are pairs as in lesson 08, and pair i",
                "halves": "the number at place i and the one at place i + d/4 are a pair, and pair i"}[pairs]
    halves = [5.0, 6.0, 7.0, 8.0], [1.0, 0.0, 1.0, 0.0] if pairs == "neighbours" else [1.0, 1.0, 0.0, 0.0]
    x = torch.tensor([sum(halves if turned == "last" else halves[::-1], [])] * 2, dtype=torch.float64)
    after = rounded(like()(x, AT(2)), 4)[1]
    turn = "[a * cos - b * sin, a * sin + b * cos], dim=-1)"
    words = {
        "half": f"**{turned} half of the columns**",
        "base": f"**base is {base}**",
        "pairs": f"The {still} d/2 columns stay as they are. In the {turned} d/2, {partners}",
        "angle": f"p · {base}^(-2i / (d/2))",
        "by hand": f"the vector {before} becomes {exact} = {decimal}.",
        "docstring": f"the {turned} d/2 columns turned, base {base}.",
        "halves": "still, turned = x.chunk" if turned == "last" else "turned, still = x.chunk",
        "split": "turned[..., 0::2], turned[..., 1::2]" if pairs == "neighbours"
                 else "turned.chunk(2, dim=-1)",
        "power": f"positions[:, None] * {base} **",
        "join": f"torch.stack({turn}.flatten(-2)" if pairs == "neighbours" else f"torch.cat({turn}",
        "order": "return torch.cat([still, turned], dim=-1)" if turned == "last"
                 else "return torch.cat([turned, still], dim=-1)",
        "given": f"x = torch.tensor([{x[0].tolist()}] * 2)",
        "expected": f"expected = torch.tensor({after})",
    }
    return Exercise(right, probes=(
        Probe("one pair", _tokens(3, 4), f"d = 4: columns {columns[0]}, columns {columns[1]} are one "
            "pair, turned by the position itself.", absolute=1e-5),
        Probe("two pairs", _tokens(4, 8), f"d = 8: of the {turned} four columns, the first pair is "
            f"turned by p, the second by p · {base}^(-1/2).", absolute=1e-5),
        Probe("one position", _tokens(1, 8, first=3), "One token at position 3: the positions need "
            "not begin at 0.", absolute=1e-5),
        Probe("heads", _tokens(2, 4, 5, 12, first=2, step=3), "x is (B, h, T, d) here, and positions "
            "are 2, 5, 8 …: any axes may stand in front.", absolute=1e-5),
        larger(_tokens(5, 7, 13, 24)),
    ), misconceptions=mistakes(
        (f"{still}-half", f"You turn the {still} half of the columns. Here it is the {turned} half; "
            f"the {still} stays as it is.", like(turned=still)),
        ("all-columns", f"You turn all columns. Only the {turned} half is turned; the {still} stays "
            "as it is.", _everything(base, pairs)),
        ("lesson-08", "This is lesson 08's rotate: it turns all columns, with base 10000. Here it is "
            f"the {turned} half, with base {base}.", _everything(10000, "neighbours")),
        like.others("base", {
            number: (f"base-{number}", f"You use base {number}, as {whose}. Here it is {base}.") for number, whose in (
                (10000, "lesson 08 does"), (100000, "the model of lesson 16 does"), (1000, "many do"))}),
        ("d-in-the-exponent", "You divide by all d columns in the exponent. Only d/2 are turned: pair "
            "i has -2i / (d/2).", other(lambda i, m: float(base) ** (-i / (2 * m)))),
        turned == "last" and ("places-in-the-whole", "You count the pairs from column 0. The"
            " first pair that is turned has i = 0.", other(lambda i, m: float(base) ** (-(i + m) / (2 * m)))),
        ("counted-from-1", "You count the pairs from 1. The first has i = 0 and is turned by the "
            "position itself.", other(lambda i, m: float(base) ** (-(i + 1) / m))),
        ("frequencies-grow", "Your later pairs turn faster. The exponent is negative: they turn more "
            "slowly.", other(lambda i, m: float(base) ** (i / m))),
        ("one-angle", f"All your pairs turn by the same angle. Pair i turns by p · {base}^(-2i / "
            "(d/2)).", other(lambda i, m: torch.ones_like(i))),
        (way, in_pairs, like(pairs=way)),
        (f"put-back-in-{way}", f"The pairs are turned right and put back wrongly: {put_back}",
            other(join=JOINS[way])),
        ("other-way", "You turn the other way: (a, b) becomes (a cos - b sin, a sin + b cos).",
            lambda x, p: right(x, -p)),
        ("mirrored", "This is a reflection and not a turn: one of the signs is wrong. (a, b) becomes "
            "(a cos - b sin, a sin + b cos).", other(join=lambda a, b: JOINS[pairs](a, -b))),
        ("turned-part-only", f"You return the turned half alone. The {still} half stands beside it, "
            "as it was.", other(together=lambda stays, moved: moved)),
        (f"turned-{'in-front' if turned == 'last' else 'behind'}", "The turned half stands "
            f"{'in front' if turned == 'last' else 'behind'}. The order of the columns stays.",
            other(together=lambda stays, moved: torch.cat(in_order(moved, stays), dim=-1))),
        ("positions-ignored", "You count the rows of x. The positions are given, and need not begin "
            "at 0.", lambda x, positions: right(x, AT(x.shape[-2]))),
        ("one-based-positions", "You add 1 to the positions. Position 0 is not turned.",
            lambda x, p: right(x, p + 1)),
    ), contracts=(Contract("a d that 4 does not divide", _tokens(2, 6)),)), words


@inputs
def _cached(rng, B, h, T, t, d_k, window):
    q, k, v = (tensor(rng, B, h, T, d_k, std=1.5) for _ in range(3))
    cache = (tensor(rng, B, h, t, d_k, std=1.5), tensor(rng, B, h, t, d_k)) if t is not None else None
    return q, k, v, cache, window


def _last(number, k, v):
    first = max(k.shape[2] - number, 0)
    return k[:, :, first:], v[:, :, first:]


def _back(T, n):
    """(T, n): how many places before each of the last T tokens each token stands."""
    return torch.arange(n - T, n)[:, None] - torch.arange(n)


def _hidden(window, T, n):
    return (_back(T, n) < 0) | (_back(T, n) >= window)


def _itself(T, n):
    return _back(T, n) == 0


def _attends(see=joined, hidden=_hidden,
             keep=lambda window, k, v, cache: _last(window - 1, *joined(k, v, cache)),
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
    few = _last(max(window, q.shape[2]), *joined(k, v, cache))
    return _attends(see=lambda *_: few)(q, k, v, cache, window)


def _after_softmax(q, k, v, cache, window):
    K, V = joined(k, v, cache)
    T, n = q.shape[2], K.shape[2]
    causal, hidden = _hidden(n, T, n), _hidden(window, T, n)
    weights = torch.softmax((q @ K.mT / math.sqrt(q.shape[-1])).masked_fill(causal, -math.inf), dim=-1)
    return weights.masked_fill(hidden, 0.0) @ V, window_attention(q, k, v, cache, window)[1]


def _no_offset(window, T, n):
    back = torch.arange(T)[:, None] - torch.arange(n)
    return (back < 0) | (back >= window)


def _new_first(k, v, cache):
    return (k, v) if cache is None else joined(*cache, (k, v))


WINDOW_ATTENTION = Exercise(window_attention, probes=(
    Probe("one token, nothing cached", _cached(1, 1, 1, None, 2, 3), "One token without a cache sees "
        "itself: the output is its value, and the cache holds it."),
    Probe("a prompt within the window", _cached(1, 2, 3, None, 4, 5), "Three tokens, a window of "
        "five, nothing cached: this is the triangle of lesson 06."),
    Probe("a prompt longer than the window", _cached(2, 1, 6, None, 3, 3), "Six tokens, a window of "
        "three: token 5 sees tokens 3, 4 and 5. The cache keeps tokens 4 and 5."),
    Probe("one more token", _cached(1, 2, 1, 3, 4, 4), "Three tokens in the cache and a window of "
        "four: the new token sees all of them and itself."),
    Probe("several more tokens", _cached(2, 3, 4, 2, 5, 3), "Two cached tokens, four new ones, a "
        "window of three. New token i stands at place t + i: it sees places t + i - 2 to t + i."),
    Probe("a longer cache than the window", _cached(1, 2, 2, 7, 3, 3), "The cache may hold more than the window: "
        "new tokens see only the last `window` tokens all the same, and the new cache is cut."),
    Probe("a cache of few", _cached(1, 1, 2, 1, 3, 6), "Three tokens in all and a window of six: "
        "everything is seen and everything is kept."),
    Probe("an empty cache", _cached(1, 1, 2, 0, 3, 3), "A cache of no tokens is like none."),
    Probe("a window of one", _cached(1, 2, 3, 2, 4, 1), "With a window of one each token sees itself "
        "alone, and the cache keeps 0 tokens: its shape is (B, h, 0, d_k)."),
    larger(_cached(5, 6, 9, 7, 10, 8)),
), misconceptions=(
    ("no-window", "The window has no effect on what is seen: tokens further back than `window` - 1 "
        "are hidden.", _attends(hidden=lambda window, T, n: _hidden(n, T, n))),
    ("no-window-at-all", "This is the attention of lesson 16: your window has no effect, neither on "
        "what is seen nor on what is kept.",
        _attends(hidden=lambda window, T, n: _hidden(n, T, n), keep=lambda window, *kv: joined(*kv))),
    ("window-one-larger", "Your tokens see one token too many: the token itself counts, so it sees "
        "window - 1 before it.", _attends(hidden=lambda window, T, n: _hidden(window + 1, T, n))),
    ("window-without-itself", "You count the window without the token itself, in what is seen and in "
        "what is kept. It counts: window - 1 tokens before it.",
        lambda q, k, v, cache, window: window_attention(q, k, v, cache, window, own=0)),
    ("no-offset", "Your mask begins at the left again, as if nothing were cached. New token i stands "
        "at place t + i.", _attends(hidden=_no_offset)),
    ("both-sides", "Your window reaches to both sides: tokens see the future. Only the past is seen.",
        _attends(hidden=lambda window, T, n: _back(T, n).abs() >= window)),
    ("first-tokens-seen", "Your tokens see the first tokens of the text. The window holds the last "
        "ones, up to the token itself.",
        _attends(hidden=lambda window, T, n: _hidden(n, T, n) | (torch.arange(n) >= window) & ~_itself(T, n))),
    ("cache-cut-only", "You cut the cache, and new tokens still see too far among themselves: a "
        "prompt may be longer than the window.", _attends(hidden=lambda window, T, n: (
            _hidden(n, T, n) | (torch.arange(n) < n - T) & _hidden(window, T, n)))),
    ("cut-before", "You cut keys and values before attending. The first of several new tokens loses "
        "cached ones that it may see: attend first, cut afterwards.", _cut_first),
    ("cache-not-cut", "The output is right, and the cache grows for ever. Keep the last window - 1 "
        "tokens: nobody sees the others again.", _attends(keep=lambda window, *kv: joined(*kv))),
    ("keeps-one-too-many", "The output is right, and the cache holds one token more than any new token can see: "
        "keep window - 1.", _attends(keep=lambda window, *kv: _last(window, *joined(*kv)))),
    ("keeps-one-too-few", "The output is right, and the cache holds one token too few. The next token sees "
        "window - 1 before it.", _attends(keep=lambda window, *kv: _last(max(window - 2, 0), *joined(*kv)))),
    ("minus-zero", "Right, except for a window of 1: [-0:] is everything, and nothing should be kept.",
        _attends(keep=lambda window, *kv: tuple(x[:, :, -(window - 1):] for x in joined(*kv)))),
    ("keeps-the-first", "The output is right, and the cache keeps the first tokens of the text. Keep the last.",
        _attends(keep=lambda window, *kv: tuple(x[:, :, :window - 1] for x in joined(*kv)))),
    ("keeps-the-new-only", "The output is right, and your new cache holds new tokens only. Old ones stay while "
        "somebody can see them.", _attends(keep=lambda window, k, v, cache: _last(window - 1, k, v))),
    ("old-cache", "The output is right, and you give back the old cache: the next token will not see "
        "these.", _attends(keep=lambda window, k, v, cache: (k, v) if cache is None else cache)),
    ("cache-not-read", "Your new tokens do not see the cache. Put it in front of the new keys and "
        "values, then attend.", _attends(see=lambda k, v, cache: (k, v))),
    ("new-in-front", "You put the new tokens in front of the cached ones. The cache is in the order of the text.",
        _attends(_new_first, keep=lambda window, *kv: _last(window - 1, *_new_first(*kv)))),
    ("does-not-see-itself", "A new token does not see itself. The window ends with the token itself.",
        _attends(hidden=lambda window, T, n: _hidden(window, T, n) | _itself(T, n))),
    ("not-scaled", "The scores are not scaled: divide them by √d_k.", _attends(scale=lambda q: 1.0)),
    ("columns-sum-to-1", "Your softmax runs over the queries. It runs over the keys, the last axis.",
        _attends(axis=-2)),
    ("hidden-with-0", "You set hidden scores to 0, which is a score like any other: e⁰ = 1. Use -inf.",
        _attends(bar=0.0)),
    ("not-normalised-again", "You set weights outside the window to 0 after the softmax, so the "
        "others no longer sum to 1. Hide the scores before it.", _after_softmax),
    ("cache-swapped", "The cache is given back as (V, K). It is (K, V).",
        _attends(keep=lambda window, k, v, cache: _last(window - 1, *joined(k, v, cache))[::-1])),
    ("output-only", "You return the output alone. The caller needs the new cache too: return output, "
        "(K, V).", lambda q, k, v, cache, window: window_attention(q, k, v, cache, window)[0]),
    ("three-values", "You return three things. Keys and values belong into one tuple: return output, "
        "(K, V).",
        lambda q, k, v, cache, window: (lambda out, kept: (out, *kept))(*window_attention(q, k, v, cache, window))),
), contracts=(Contract("a window of 0", _cached(1, 1, 2, None, 2, 0)),))


def _logits(V, temperature, p, scale=1.5):
    return lambda rng: (tensor(rng, V, std=scale), temperature, p)


def _shares(*numbers, temperature, p, shift=0.0):
    """Logits with these probabilities, in some order: one of 0 is a word that was ruled out."""
    return lambda rng: (
        torch.tensor(rng.permutation(numbers)).log() + float(rng.normal()) + shift, temperature, p)


def _near_the_best(probabilities, p):
    return probabilities >= p * probabilities.max()


def _finished(finish, keep=_near_the_best):
    """``keep(probabilities, p)`` says who stays; ``finish(logits, temperature, who is gone)`` gives the result."""
    return lambda logits, temperature, p: finish(logits, temperature, ~keep(torch.softmax(logits, dim=-1), p))


def _kept(keep):
    return _finished(lambda logits, t, gone: torch.softmax((logits / t).masked_fill(gone, -math.inf), dim=-1), keep)


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


MIN_P = Exercise(min_p, probes=(
    Probe("by hand", _shares(0.5, 0.3, 0.15, 0.05, temperature=1.0, p=0.4), "0.5, 0.3, 0.15, 0.05 in some order "
        "and p = 0.4: words with at least 0.4 · 0.5 = 0.2 stay, with 0.5/0.8 = 0.625 and 0.375."),
    Probe("hot", _shares(0.5, 0.3, 0.15, 0.05, temperature=2.0, p=0.4), "The same words at "
        "temperature 2: the same two stay, since the cut comes before the temperature."),
    Probe("cold", _shares(0.4, 0.35, 0.15, 0.1, temperature=0.25, p=0.3), "A low temperature: three "
        "words stay, since the cut comes before the temperature."),
    Probe("p is 1", lambda rng: (torch.tensor(rng.permutation([2.0, 2.0, 1.0, 0.0])), 0.5, 1.0),
        "p = 1, and two words are equally probable: both have at least 1 times the best, so both stay."),
    Probe("p is 0", _logits(6, 1.5, 0.0), "p = 0: every word stays, and only the temperature acts."),
    Probe("many words", _logits(30, 0.7, 0.1), "Compare each probability with p times the largest. "
        "Those below it get 0.", draws=4),
    Probe("a large logit", _shares(0.4, 0.35, 0.15, 0.1, temperature=0.25, p=0.3, shift=5000.0),
        "Logits near 5000: exp overflows unless the largest logit is subtracted first, as "
        "torch.softmax does.", extreme=True),
    Probe("words ruled out", _shares(0.5, 0.3, 0.15, 0.05, 0.0, temperature=2.0, p=0.4), "A logit of "
        "-inf is a word that was ruled out: its probability is 0, and stays 0.", extreme=True),
    larger(_logits(400, 1.3, 0.02)),
), misconceptions=(
    ("temperature-first", "You apply the temperature and then cut. Here the cut comes first, on the "
        "probabilities at temperature 1.", lambda logits, temperature, p: min_p(logits / temperature, 1.0, p)),
    ("temperature-twice", "The temperature acts twice: on the probabilities that you cut, and again "
        "on what stays.", lambda logits, temperature, p: min_p(logits / temperature, temperature, p)),
    ("no-temperature", "The temperature has no effect. Divide the logits of the words that stay by it.",
        lambda logits, temperature, p: min_p(logits, 1.0, p)),
    ("multiplied", "You multiply by the temperature. Divide: a high temperature makes words more "
        "alike.", lambda logits, temperature, p: min_p(logits, 1 / temperature, p)),
    ("threshold", "You keep words with probability p or more. The bar is p times the largest "
        "probability.", _kept(lambda probabilities, p: probabilities >= p)),
    ("nucleus", "This is the nucleus of lesson 16: the fewest words with probability p together. Here "
        "the bar is p times the largest probability.", _kept(_nucleus)),
    ("nucleus-of-lesson-16", "You call the nucleus of lesson 16: the fewest words with probability p together, "
        "and no p of 0. Here the bar is p times the largest probability.", _nucleus_of_lesson_16),
    ("share-of-the-logit", "You compare logits. p is a share of the largest probability: take a "
        "softmax first.",
        lambda logits, temperature, p: torch.softmax(
            (logits / temperature).masked_fill(logits < p * logits.max(), -math.inf), dim=-1)),
    ("more-than-p", "A word with exactly p times the best is dropped. At least p times is enough: ≥.",
        _kept(lambda probabilities, p: probabilities > p * probabilities.max())),
    ("mean-as-the-bar", "You compare with the mean probability. The bar is p times the largest.",
        lambda logits, temperature, p: min_p(logits, temperature, p, yardstick=torch.mean)),
    ("the-others", "You keep the words below the bar and drop those above.",
        _kept(lambda probabilities, p: ~_near_the_best(probabilities, p) | (p == 0))),
    ("not-normalised-again", "What stays does not sum to 1. Normalise again after the cut.",
        _finished(lambda logits, t, gone: torch.softmax(logits / t, dim=-1).masked_fill(gone, 0.0))),
    ("hidden-with-0", "You set the logits of dropped words to 0, which is a logit like any other. Use -inf.",
        _finished(lambda logits, t, gone: torch.softmax(logits.masked_fill(gone, 0.0) / t, dim=-1))),
    ("logits-back", "You return logits. Probabilities are asked for: a softmax is missing at the end.",
        _finished(lambda logits, t, gone: (logits / t).masked_fill(gone, -math.inf))),
    ("kept-only", "You return only the words that stay. The result has shape (V,), with 0 for the others.",
        lambda logits, temperature, p: (lambda few: few[few > 0])(min_p(logits, temperature, p))),
    ("best-only", "You keep only the most probable word. All with at least p times its probability "
        "stay.", _kept(lambda probabilities, p: probabilities == probabilities.max())),
    ("overflow", "Right for small logits. exp of a large one overflows: subtract the largest first, "
        "or use torch.softmax.", _naive),
), contracts=(
    Contract("a p above 1", lambda rng: (torch.tensor([0.0, 1.0]), 1.0, 1.5)),
    Contract("a temperature of 0", lambda rng: (torch.tensor([0.0, 1.0]), 0.0, 0.5)),
))


TASKS = by_name(_abs_norm, _packed_mlp, _turn_half, Task(WINDOW_ATTENTION), Task(MIN_P))
