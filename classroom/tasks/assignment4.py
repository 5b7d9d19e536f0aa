"""Assignment 4: block, decoding, a trained model (lessons 09 to 11). Inputs are torch tensors."""

import torch
from torch.nn import functional as F

from classroom.tasks import Task, by_name, in_variants, mistakes, rounded
from helpers.checks.core import Contract, Exercise, Probe, inputs, larger
from helpers.checks.pieces import tensor

ROOTS = {"inside": lambda square, eps, root=torch.sqrt: root(square + eps),
         "outside": lambda square, eps, root=torch.sqrt: root(square) + eps,
         "least": lambda square, eps, root=torch.sqrt: root(square).clamp(min=eps)}


def rms_norm(x, gain, eps, *, part="all", plus_one=False, place="inside"):
    """x (..., d), gain (d,) -> (..., d): x / sqrt(mean(x²) + eps) * gain, over the last axis (Zhang and
    Sennrich 2019). ``part``: the entries whose mean square it is, "all" or the "first half" (their pRMSNorm);
    ``plus_one``: 1 + gain multiplies; ``place``: of eps, "inside" the root, "outside" it, or the "least" that
    is divided by, a key of ROOTS."""
    of = x if part == "all" else x[..., :x.shape[-1] // 2]
    mean_square = (of * of).mean(dim=-1, keepdim=True)
    return x / ROOTS[place](mean_square, eps) * (1 + gain if plus_one else gain)


BENDS = {"silu": F.silu, "gelu": F.gelu, "sigmoid": torch.sigmoid, "relu": torch.relu, "tanh": torch.tanh,
         "relu2": lambda z: torch.relu(z) ** 2}


def gated_feed_forward(x, W_gate, W_up, W_down, *, bend="silu", plus_one=False):
    """x (..., d), W_gate and W_up (d, m), W_down (m, d) -> (..., d): (silu(x W_gate) * (x W_up)) W_down, with
    silu(z) = z sigmoid(z) (Shazeer 2020, "SwiGLU"). ``bend``: the gate's function, a key of BENDS;
    ``plus_one``: x W_up + 1 is gated."""
    up = x @ W_up
    return (BENDS[bend](x @ W_gate) * (up + 1 if plus_one else up)) @ W_down


def beam_step(scores, log_probs, k, *, given="beams, tokens, scores", best_last=False, costs=False):
    """scores (b,), log_probs (b, V) -> beams (k,), tokens (k,), scores (k,): the k best continuations, best
    first. ``given``: the results in their order; ``best_last``: best last; ``costs``: scores have the other
    sign, and the smallest is best."""
    b, V = log_probs.shape
    if not 1 <= k <= b * V:
        raise ValueError(f"There are {b * V} continuations; k is {k}.")
    total = scores[:, None] - log_probs if costs else scores[:, None] + log_probs
    best, index = total.flatten().topk(k, largest=not costs)
    if best_last:
        best, index = best.flip(0), index.flip(0)
    results = {"beams": index // V, "tokens": index % V, "scores": best}
    return tuple(results[name] for name in given.split(", "))


def token_accuracy(logits, targets, pad):
    """logits (B, T, V), targets (B, T) -> a scalar: the share of tokens other than ``pad`` that the largest
    logit names; 0 when there are none."""
    real = targets != pad
    right = (logits.argmax(dim=-1) == targets) & real
    return right.sum() / real.sum().clamp(min=1)


def _rms(*shape, scale=1.0, shift=0.0, eps=1e-5):
    return lambda rng: (tensor(rng, *shape, std=scale, mean=shift), tensor(rng, shape[-1], mean=1.5),
                        eps)


EPS = {  # (what a large one shows, what a mistake makes of it, what it should be, what to do with it)
    "inside": ("where it stands: inside the root, added once", "You add eps inside the root.",
               "It belongs inside, beside the mean square.", "Add it to the mean square."),
    "outside": ("where it stands: outside the root, added once", "You add eps outside the root.",
                "It is added to the root itself.", "Add it to the root."),
    "least": ("what it is: the least that you divide by", "You use eps as the least that you divide by.",
              "It is the least that you divide by, and not added.",
              "Divide by it where the root is smaller."),
}


@in_variants(rms_norm, {"part": ("all", "first half"), "plus_one": (False, True), "place": tuple(ROOTS)},
             forbidden=("RMSNorm", "layer_norm"))
def _rms_norm(like, part, plus_one, place):
    half = part == "first half"
    square_of = "the mean square of its first d/2 entries" if half else "its mean square"

    def entries(x):
        return x[..., :x.shape[-1] // 2] if half else x

    def divided(square, eps_in=lambda eps: eps, **others):
        """x over the root of another ``square(x)``, with eps and gain as they should be."""
        return lambda x, g, eps: x / ROOTS[place](square(x), eps_in(eps), **others) * (1 + g if plus_one else g)

    def mean_square(x):
        return entries(x).square().mean(dim=-1, keepdim=True)

    def even(*shape, **others):
        return _rms(*shape[:-1], shape[-1] + shape[-1] % 2 if half else shape[-1], **others)

    right, ones = like(), 0 if plus_one else 1
    of_the_half = (
        ("all-entries", "You take the mean square of all entries. Here it is that of the first d/2.",
            like(part="all")),
        ("last-half", "You take the mean square of the last d/2 entries. Here it is that of the first d/2.",
            divided(lambda x: x[..., x.shape[-1] // 2:].square().mean(dim=-1, keepdim=True))),
        ("half-divided", "You divide the first d/2 entries alone. Their root divides all d.",
            lambda x, g, eps: torch.cat([
                entries(right(x, g, eps)), (x * (1 + g if plus_one else g))[..., x.shape[-1] // 2:]], dim=-1)),
    )
    x, gain = torch.tensor([[3.0, 4.0], [-5.0, 5.0]]).double(), torch.tensor([1.0, 2.0]).double()
    small, large = (rounded(like()(x, gain, eps), 4) for eps in (0.0, 4.0))
    times, of = "1 + gain" if plus_one else "gain", "half" if half else "x"
    square = f"mean({'x[:d/2]' if half else 'x'}²)"
    size = {"inside": "torch.sqrt(mean_square + eps)", "outside": "(torch.sqrt(mean_square) + eps)",
            "least": "torch.sqrt(mean_square).clamp(min=eps)"}[place]
    words = {
        "size": "the root of the mean square of **its first d/2 entries** (d is even)" if half
                else "the root of its mean square",
        "gain": f"multiplied by {'**1 + gain**' if plus_one else 'the gain'}, entry by entry.",
        "eps": {"inside": "`eps` is added to the mean square, inside the root.",
                "outside": "`eps` is added to that root, outside it.",
                "least": "Where that root is smaller than `eps`, divide by `eps`."}[place],
        "docstring": "x / {}, times {}.".format({
            "inside": f"sqrt({square} + eps)", "outside": f"(sqrt({square}) + eps)",
            "least": f"max(sqrt({square}), eps)"}[place], times if plus_one else "the gain"),
        "mean square": ("half = x[..., :x.shape[-1] // 2]\n    " if half else "")
                       + f"mean_square = ({of} * {of}).mean",
        "solution": f"return x / {size} * {f'({times})' if plus_one else times}",
        "expected": f"expected = torch.tensor({small})",
        "with eps": f"expected = torch.tensor({large})",
    }
    return Exercise(right, probes=(
        Probe("one vector", even(4), f"One vector: divide by the root of {square_of}, then multiply "
            f"by {'1 + gain' if plus_one else 'the gain'}."),
        Probe("rows with a mean", even(2, 3, shift=4.0), "The mean is not subtracted here, unlike in LayerNorm."),
        Probe("three axes", even(2, 3, 5, scale=3.0), "Each vector along the last axis is treated by itself."),
        Probe("a large eps", even(3, 4, eps=2.0), f"eps is large here, to show {EPS[place][0]}."),
        Probe("zeros", lambda rng: (torch.zeros(2, 4, dtype=torch.float64), tensor(rng, 4), 1e-05),
            "A vector of zeros stays zeros: eps keeps the division from 0/0.", extreme=True),
        larger(even(5, 9, 10)),
    ), misconceptions=mistakes(
        ("layer-norm", "You subtract the mean, as LayerNorm does. RMSNorm leaves the mean where it is.",
            lambda x, g, eps: right(x - x.mean(-1, keepdim=True), g, eps)),
        ("no-root", "You divide by the mean square. Divide by its root.",
            divided(mean_square, root=lambda square: square)),
        ("sum", "You sum the squares. RMS takes their mean.",
            divided(lambda x: entries(x).square().sum(dim=-1, keepdim=True))),
        half and of_the_half,
        like.others("place", {other: (f"eps-{other}", f"{EPS[other][1]} {EPS[place][2]}") for other in EPS}),
        ("no-eps", "eps has no effect in your function, and a vector of zeros gives NaN. " + EPS[place][3],
            divided(mean_square, eps_in=lambda eps: 0.0)),
        ("no-gain", f"You leave out the gain{': multiply by 1 + gain' if plus_one else ''}.",
            lambda x, g, eps: right(x, torch.full_like(g, ones), eps)),
        like.others("plus_one", {
            False: ("gain-alone", "You multiply by the gain. Multiply by 1 + gain."),
            True: ("gain-plus-one", "You multiply by 1 + gain. Multiply by the gain."),
        }),
        ("whole-array", "You take the mean square of everything. Each vector has its own: dim=-1, "
            "keepdim=True.", divided(lambda x: entries(x).square().mean())),
        ("first-axis", "You normalise along the first axis. A vector lies along the last: dim=-1.",
            divided(lambda x: x.square().mean(dim=0, keepdim=True))),
    )), words


def _gated(d, m, *shape):
    return lambda rng: (tensor(rng, *shape, d), tensor(rng, d, m), tensor(rng, d, m), tensor(rng, m, d))


FORMULAS = {"silu": "silu(z) = z · sigmoid(z)", "gelu": "gelu(z) = z · Φ(z)",
            "sigmoid": "sigmoid(z) = 1 / (1 + exp(-z))", "relu": "relu(z) = max(0, z)",
            "tanh": "tanh(z) = (exp(z) - exp(-z)) / (exp(z) + exp(-z))", "relu2": "relu2(z) = max(0, z)²"}
CODE = {"silu": "z * torch.sigmoid(z)", "gelu": "z * torch.special.ndtr(z)", "sigmoid": "torch.sigmoid(z)",
        "relu": "torch.relu(z)", "tanh": "torch.tanh(z)", "relu2": "torch.relu(z) ** 2"}


@in_variants(gated_feed_forward, {"bend": tuple(BENDS), "plus_one": (False, True)})
def _gated_feed_forward(like, bend, plus_one):
    act, formula = BENDS[bend], FORMULAS[bend]
    second, factor = ("x W_up + 1", "(x W_up + 1)") if plus_one else ("x W_up", "x W_up")

    def joined(join):
        """``join(x W_gate, x W_up)``, to the second of which 1 is added where it should be, times W_down."""
        return lambda x, W_gate, W_up, W_down: join(x @ W_gate, x @ W_up + plus_one) @ W_down

    right = like()
    one, two = torch.ones(1, 1).double(), torch.full((1, 1), 2.0).double()
    low, high = (rounded(like()(one, gate, two, two), 4) for gate in (-two, two))
    in_full = formula + (", Φ is the distribution function of the standard normal distribution "
                                "(`torch.special.ndtr`)," if bend == "gelu" else "")
    words = {
        "formula": f"({bend}(x W_gate) ⊙ (x W_up{' + 1' if plus_one else ''})) W_down, where {in_full} and",
        "biases": "The 1 is added to every number; there are no bias vectors." if plus_one else
                  "There are no bias vectors.",
        "solution": "return ({} * {}) @ W_down".format(
            f"({CODE[bend]})" if "**" in CODE[bend] else CODE[bend],
            "(x @ W_up + 1)" if plus_one else "(x @ W_up)"),
        "at -2": f"torch.tensor({low})",
        "at 2": f"torch.tensor({high})",
    }
    return Exercise(right, probes=(
        Probe("one number", _gated(1, 1, 1), "With one number each: "
            f"{'z sigmoid' if bend == 'silu' and not plus_one else bend}(z) times {factor}, times "
            "W_down, for z = x W_gate."),
        Probe("wider inside", _gated(2, 5, 3), "d = 2 and m = 5: two products lead up to m, one leads "
            "back to d."),
        Probe("a batch", _gated(3, 4, 2, 5), "Any axes may stand in front; the last has the d numbers "
            "of a token."),
        larger(_gated(9, 10, 5, 11)),
    ), misconceptions=mistakes(
        ("no-gate", f"You leave out the second factor, {second}.", joined(lambda gate, up: act(gate))),
        like.others("bend", {other: (other,
            f"You use {'the square of relu' if other == 'relu2' else other}. The gate is {formula}"
            f"{', which is close, but not the same' if {bend, other} == {'silu', 'gelu'} else ''}.")
            for other in BENDS}),
        ("factors-swapped", f"{bend} stands on the wrong factor: it belongs to x W_gate.",
            lambda x, a, b, c: right(x, b, a, c)),
        ("added", "You add the two factors. A gate multiplies.", joined(lambda gate, up: act(gate) + up)),
        ("residual", "You add x. The residual connection belongs to the block around it.",
            lambda x, a, b, c: x + right(x, a, b, c)),
        ("both-gated", f"You apply {bend} to both factors. Only the gate is bent.",
            joined(lambda gate, up: act(gate) * act(up))),
        plus_one and ("one-left-out", f"You leave out the 1: the second factor is {second}.",
            like(plus_one=False)),
        plus_one and ("one-on-the-gate", "You add the 1 to the gate. It belongs to the other"
            f" factor, {second}.", lambda x, a, b, c: ((act(x @ a) + 1) * (x @ b)) @ c),
    )), words


ORDERS = ("beams, tokens, scores", "tokens, beams, scores", "scores, beams, tokens")


@in_variants(beam_step, {"given": ORDERS, "best_last": (False, True), "costs": (False, True)})
def _beam_step(like, given, best_last, costs):
    sign, word = (-1, "cost") if costs else (1, "score")
    order = given.replace("score", word)

    @inputs
    def beams(rng, b, V, k):
        log_probs = torch.log_softmax(tensor(rng, b, V, std=1.5), dim=-1)
        return sign * tensor(rng, b, std=1.5, mean=-4.0), log_probs, k

    def give(beams, tokens, best, names=given):
        results = {"beams": beams, "tokens": tokens, "scores": best}
        return tuple(results[name].flip(0) if best_last else results[name] for name in names.split(", "))

    def with_total(total, give=give, largest=not costs, width=lambda L: L.shape[1]):
        """The best of another table ``total(scores as a column, log probabilities with their sign)``."""
        def function(s, L, k):
            best, index = total(s[:, None], sign * L).flatten().topk(k, largest=largest)
            return give(index // width(L), index % width(L), best)
        return function

    def added(s, L):
        return s + L

    def one_each(s, L, k):
        """The best token of each beam."""
        best, tokens = (sign * s[:, None] + L).max(dim=-1)
        first = best.argsort(descending=True)[:k]
        return give(first, tokens[first], sign * best[first])

    def flat(s, L, k):
        best, index = (s[:, None] + sign * L).flatten().topk(k, largest=not costs)
        return give(index, index, best)

    right = like()
    names = given.split(", ")
    best = "best last" if best_last else "best first"
    scores = torch.tensor([1.0, 3.0] if costs else [-1.0, -3.0])
    log_probs = torch.tensor([[-2.0, -1.0, -5.0], [-0.5, -9.0, -4.0]])
    results = dict(zip(names, like()(scores, log_probs, 3), strict=True))
    meaning = {"beams": "the number of the beam that is continued", "tokens": "the token",
            "scores": f"the new {word}"}
    named = {"beams": "beams (k,)", "tokens": "tokens (k,)", "scores": f"new {word}s (k,)"}
    code = {"beams": "index // V", "tokens": "index % V", "scores": "best"}
    one, two, three = (meaning[name] for name in names)
    words = {
        "scores": "`scores` `(b,)`, which are **costs**: the sums of their log probabilities so far with the "
                  "opposite sign, so that the smallest is the best." if costs else
                  "`scores` `(b,)`, the sums of their log probabilities so far.",
        "results": f"continuations, {best}, as three tensors of shape `(k,)`: {one}, {two}, and {three}.",
        "docstring": f"-> {', '.join(named[name] for name in names)}, {best}.",
        "total": "(scores[:, None] - log_probs).flatten().topk(k, largest=False)" if costs else
                 "(scores[:, None] + log_probs).flatten().topk(k)",
        "return": ("best, index = best.flip(0), index.flip(0)\n    " if best_last else "")
                  + "return " + ", ".join(code[name] for name in names),
        "given": f"scores = torch.tensor({scores.tolist()})",
        "call": f"{given.replace('scores', 'best')} = beam_step(scores",
        "expected": f"assert beams.tolist() == {results['beams'].tolist()} and tokens.tolist() == "
                    f"{results['tokens'].tolist()}\n"
                    f"assert torch.allclose(best, torch.tensor({results['scores'].tolist()}))",
    }
    return Exercise(right, probes=(
        Probe("one beam", beams(1, 4, 2), "With one beam: its k best tokens, each with the old "
            f"{'cost minus' if costs else 'score plus'} its log probability."),
        Probe("k is 1", beams(3, 4, 1), "The best of all b · V continuations."),
        Probe("three of two beams", beams(2, 5, 3), "All continuations of all beams compete with each "
            "other; one beam may have several.", draws=4),
        Probe("wider", beams(4, 9, 6), "b = 4, V = 9, k = 6: three results of shape (6,), sorted by "
            f"{word}, best {'last' if best_last else 'first'}.", draws=4),
        larger(beams(9, 10, 8)),
    ), misconceptions=mistakes(
        ("one-each", "You take the best token of each beam. All continuations compete: a good beam "
            "may go on twice.", one_each),
        ("old-scores-ignored", "You look at the new log probabilities alone. The "
            + ("cost of a continuation is the old cost minus the new log probability." if costs else
               "score of a continuation is the sum."), with_total(lambda s, L: L)),
        ("product", f"You multiply {word}s and log probabilities. "
            + ("Subtract: these are logarithms." if costs else "Logarithms of a product are added."),
            with_total(lambda s, L: s * sign * L)),
        ("probabilities", "You "
            f"{'subtract probabilities from costs' if costs else 'add probabilities to log scores'}. Stay with "
            "logarithms.", with_total(lambda s, L: s + sign * (sign * L).exp())),
        costs and ("costs-as-scores", "You treat the scores as log probabilities. They are"
            " costs: subtract log probabilities from them, and the smallest is the best.", like(costs=False)),
        costs and ("sign", "You add log probabilities to costs, which have the other sign."
            " Subtract them.", with_total(lambda s, L: s - L)),
        ("flat-index", "You return positions in the flattened table. Divide by V: the quotient is the "
            "beam, the rest the token.", flat),
        ("beam-and-token-swapped", f"Beams and tokens have changed places: {order}.",
            with_total(added, lambda beams, tokens, best: give(tokens, beams, best))),
        ("scores-first", f"The new {word}s stand first. They belong last: {order}.",
            with_total(added, lambda *three: give(*three, f"scores, {given.removesuffix(', scores')}")))
        if given.endswith("scores") else
        ("scores-last", f"The new {word}s stand last. They belong first: {order}.",
            with_total(added, lambda *three: give(*three, "beams, tokens, scores"))),
        ("worst", "You return the worst continuations: the "
            f"{'smallest cost' if costs else 'largest log probability'} is the best.",
            with_total(added, largest=costs)),
        ("divided-by-b", "You divide the position by the number of beams. A row of the table has V "
            "entries.", with_total(added, width=lambda L: L.shape[0])),
        like.others("best_last", {
            False: ("best-first", "The right continuations, the best first. The best comes last."),
            True: ("worst-first", "The right continuations, the best last. The best comes first."),
        }),
    ), contracts=(Contract("a k larger than b · V", beams(1, 2, 3)),)), words


@inputs
def _text(rng, B, T, V, padded=0.3):
    logits, pad = tensor(rng, B, T, V), int(rng.integers(V))
    targets = torch.where(torch.tensor(rng.random((B, T)) < 0.6), logits.argmax(-1),
                          torch.tensor(rng.integers(V, size=(B, T))))
    targets[torch.tensor(rng.random((B, T)) < padded)] = pad
    targets[0, 0] = (pad + 1) % V
    return logits, targets, pad


def _shares(logits, targets, pad):
    real = targets != pad
    return (logits.argmax(-1) == targets) & real, real


def _mean_of_rows(logits, targets, pad):
    right, real = _shares(logits, targets, pad)
    return (right.sum(1) / real.sum(1).clamp(min=1)).mean()


TOKEN_ACCURACY = Exercise(token_accuracy, probes=(
    Probe("no padding", _text(1, 6, 5, padded=0.0), "The share of positions where the largest logit "
        "is that of the target.", draws=3),
    Probe("padding", _text(3, 8, 4), "Padding counts neither as right nor as a token: divide by the "
        "number of real tokens.", draws=4),
    Probe("uneven rows", _text(4, 9, 3, padded=0.6), "All tokens of the batch count alike, those of "
        "short rows as well.", draws=4),
    Probe("a single token", lambda rng: (torch.eye(3)[None, :2].double(), torch.tensor([[0, 2]]), 2),
        "One real token, and it is right: the share is 1.", draws=1),
    Probe("only padding", lambda rng: (tensor(rng, 2, 3, 4), torch.full((2, 3), 1), 1),
        "Nothing but padding: 0 by convention, not NaN.", extreme=True),
    larger(_text(9, 10, 11)),
), misconceptions=(
    ("padding-counts", "You count padding as well. Leave it out of both sums.",
        lambda L, t, pad: (L.argmax(-1) == t).double().mean()),
    ("divided-by-all", "You divide by all positions. Divide by the number of real tokens.",
        lambda L, t, pad: _shares(L, t, pad)[0].double().mean()),
    ("padding-is-right", "Padding adds to the right answers. Only real tokens may.",
        lambda L, t, pad: (L.argmax(-1) == t).sum() / _shares(L, t, pad)[1].sum().clamp(min=1)),
    ("mean-of-rows", "You average over rows, so tokens of short rows count for more. Sum over the "
        "batch first.", _mean_of_rows),
    ("error-rate", "This is the share of wrong tokens.", lambda L, t, pad: 1 - token_accuracy(L, t, pad)),
    ("count", "You return the number of right tokens. Divide by the number of real ones.",
        lambda L, t, pad: _shares(L, t, pad)[0].sum().double()),
    ("smallest", "You take the smallest logit. The model's choice is the largest.",
        lambda L, t, pad: token_accuracy(-L, t, pad)),
    ("shifted", "You compare with the token one place on. The targets are already in place here.",
        lambda L, t, pad: token_accuracy(L[:, :-1], t[:, 1:], pad)),
    ("zero-over-zero", "Right unless everything is padding: then 0/0 gives NaN, and 0 is asked for.",
        lambda L, t, pad: _shares(L, t, pad)[0].sum() / _shares(L, t, pad)[1].sum()),
))


TASKS = by_name(_rms_norm, _gated_feed_forward, _beam_step, Task(TOKEN_ACCURACY))
