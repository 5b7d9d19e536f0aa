"""Assignment 6: an adapter, an advantage and a leash, each with details changed (lessons 18 and 19). Inputs are
torch tensors. What makes a task this one and not its neighbour is an argument behind the * of its reference."""

import math

import torch

from classroom.tasks import by_name, in_variants, mistakes, rounded
from helpers.checks.core import Contract, Exercise, Probe, inputs, larger
from helpers.checks.pieces import tensor

STRENGTHS = {"root": lambda alpha, r: alpha / math.sqrt(r), "rank": lambda alpha, r: alpha / r,
             "plain": lambda alpha, r: alpha}
PLACES = {"path": lambda road, path, gain: road + path * gain,
          "whole": lambda road, path, gain: (road + path) * gain,
          "frozen": lambda road, path, gain: road * gain + path}


def adapter_output(x, W, A, B, alpha, gain, *, strength="root", place="path"):
    """x (..., d_in), W (d_in, d_out), A (d_in, r), B (r, d_out), gain (d_out,) -> (..., d_out): x W + alpha / √r
    times (x A) B (Kalajdzievski 2023), with a gain for each output. ``strength``: what the adapter is multiplied
    by, a key of STRENGTHS; ``place``: what the gain multiplies, a key of PLACES: the adapter's part (as in Kopiczko
    et al. 2024), the sum, or x W."""
    path = STRENGTHS[strength](alpha, A.shape[1]) * (x @ A @ B)
    return PLACES[place](x @ W, path, gain)


USUAL = {"others": lambda r: (r.sum(-1, keepdim=True) - r) / (r.shape[-1] - 1),
         "median": lambda r: r.quantile(0.5, dim=-1, keepdim=True),
         "all": lambda r: r.mean(-1, keepdim=True)}
SPREADS = {"none": None, "sample": lambda r: r.std(-1, keepdim=True),
           "range": lambda r: r.amax(-1, keepdim=True) - r.amin(-1, keepdim=True)}


def group_advantage(rewards, *, usual="others", spread="none"):
    """rewards (G, n), n > 1 -> (G, n): minus the mean of the other texts of the row (Kool et al. 2019). ``usual``:
    what is subtracted, a key of USUAL; ``spread``: what is divided by, plus 1e-6, a key of SPREADS."""
    if rewards.shape[-1] < 2:
        raise ValueError("A group of one text has nothing to be compared with.")
    better = rewards - USUAL[usual](rewards)
    return better if spread == "none" else better / (SPREADS[spread](rewards) + 1e-6)


def _kl(log_p, log_q):
    return (log_p.exp() * (log_p - log_q)).sum(-1)


DIRECTIONS = {"reference": lambda log_p, log_q: _kl(log_q, log_p), "policy": _kl,
              "both": lambda log_p, log_q: (_kl(log_p, log_q) + _kl(log_q, log_p)) / 2}
POOLS = {"sum": lambda each, mask: (each * mask).sum(-1), "mean": lambda each, mask: (each * mask).sum(-1) / mask.sum(-1),
         "largest": lambda each, mask: (each * mask).amax(-1)}


def text_kl(logits, reference_logits, mask, *, direction="reference", pool="sum"):
    """logits and reference_logits (B, T, V), mask (B, T) bool -> scalar: at each place KL(reference ‖ policy), summed
    over the words of a text that count, the mean over texts with such a word. ``direction``: a key of DIRECTIONS;
    ``pool``: what becomes of the places of a text, a key of POOLS."""
    texts = mask.any(1)
    if not texts.any():
        raise ValueError("No word counts: the mask is False everywhere.")
    each = DIRECTIONS[direction](logits.log_softmax(-1), reference_logits.log_softmax(-1))
    return POOLS[pool](each[texts], mask[texts]).mean()


FACTORS = {"root": "alpha / √r", "rank": "alpha / r", "plain": "alpha"}
MULTIPLIED = {"path": "the adapter's part alone", "whole": "the sum of x W and the adapter's part", "frozen": "x W alone"}


@inputs
def _adapter(rng, *before, d_in, d_out, r, alpha=3.0, zero=()):
    """x (*before, d_in) and the rest; ``zero``: which of W and B are 0."""
    parts = {"x": tensor(rng, *before, d_in), "W": tensor(rng, d_in, d_out), "A": tensor(rng, d_in, r),
             "B": tensor(rng, r, d_out)}
    gain = torch.tensor(rng.uniform(0.3, 2.5, size=d_out) * rng.choice([-1, 1], size=d_out))
    return *(torch.zeros_like(part) if name in zero else part for name, part in parts.items()), alpha, gain


def _row(values):
    return "({})".format(", ".join(f"{value:g}" for value in values))


@in_variants(adapter_output, {"strength": tuple(STRENGTHS), "place": tuple(PLACES)}, forbidden=("lora_linear",))
def _adapter_output(like, strength, place):
    factor, gained = FACTORS[strength], MULTIPLIED[place]
    right, join, of_alpha = like(), PLACES[place], STRENGTHS[strength]

    def scaled(number):
        """``number(alpha, A, B)`` as the factor of the adapter."""
        return lambda x, W, A, B, alpha, gain: join(x @ W, number(alpha, A, B) * (x @ A @ B), gain)

    def joined(put):
        """``put(x, x W, the adapter's part, gain)``."""
        return lambda x, W, A, B, alpha, gain: put(x, x @ W, of_alpha(alpha, A.shape[1]) * (x @ A @ B), gain)

    def transposed(x, W, A, B, alpha, gain):
        return right(x, W.mT if W.shape[0] == W.shape[1] else W, A, B, alpha, gain)

    def gain_on_x(x, W, A, B, alpha, gain):
        if len(gain) != x.shape[-1]:
            return right(x, W, A, B, alpha, gain)
        one = torch.ones_like(gain)
        by = {"path": (x, x * gain), "whole": (x * gain, x * gain), "frozen": (x * gain, x)}[place]
        return right(by[0], W, A, torch.zeros_like(B), alpha, one) + right(by[1], torch.zeros_like(W), A, B, alpha, one)

    here = f"Here it is {factor}."
    on = f"It multiplies {gained}."
    of_the_rank = () if strength == "plain" else (
        ("no-strength", f"You add the adapter's part as it is. Its strength is {factor}.",
            scaled(lambda alpha, A, B: 1.0)),
        ("multiplied-by-it", f"You multiply where you should divide: the strength is {factor}, so that more "
            "columns count less each.", scaled(lambda alpha, A, B: alpha**2 / of_alpha(alpha, A.shape[1]))),
        ("rows-of-a", "You take the number of rows of A, which is d_in. r is the number of its columns: "
            "A.shape[1].", scaled(lambda alpha, A, B: of_alpha(alpha, A.shape[0]))),
        ("columns-of-b", "You take the number of columns of B, which is d_out. r is the number of its "
            "rows: B.shape[0].", scaled(lambda alpha, A, B: of_alpha(alpha, B.shape[1]))),
    )
    x, W, A = torch.tensor([[2.0]]), torch.tensor([[1.0, 3.0]]), torch.ones(1, 4)
    B, gain = torch.tensor([[1.0, -1.0]] * 4), torch.tensor([1.0, 3.0])
    road, path = torch.tensor([2.0, 6.0]), STRENGTHS[strength](4, 4) * torch.tensor([8.0, -8.0])
    result = like()(x, W, A, B, 4.0, gain)[0].tolist()
    without_w = like()(x, 0 * W, A, B, 2.0, gain)[0].tolist()
    by_hand, gain_text, joined_code = {
        "path": (f"The gain (1, 3) makes it {_row((path * gain).tolist())}, and x W = (2, 6) is added: the result is",
                 "**only what the adapter adds**, output by output, and not x W.", "x @ W + path * gain"),
        "whole": (f"Together with x W = (2, 6) that is {_row((road + path).tolist())}, and the gain (1, 3) makes it",
                  "**the sum**, output by output: x W and what the adapter adds.", "(x @ W + path) * gain"),
        "frozen": ("The gain (1, 3) makes (2, 18) of x W = (2, 6), and the sum is",
                   "**only x W**, output by output, and not what the adapter adds.", "x @ W * gain + path")}[place]
    multiplied, strength_text, strength_code = {
        "root": ("4 / √4 = 2", "**alpha / √r**, with the root of the rank,", "alpha / math.sqrt(A.shape[1])"),
        "rank": ("4 / 4 = 1", "**alpha / r**, as in lesson 18,", "alpha / A.shape[1]"),
        "plain": ("alpha itself", "**alpha** itself, whatever the rank is,", "alpha")}[strength]
    words = {
        "strength": strength_text,
        "gain": f"It multiplies {gain_text}",
        "factor": f"that is multiplied by {multiplied} and makes {_row(path.tolist())}.",
        "by hand": f"{by_hand} {_row(result)}.",
        "path": f"path = {strength_code} * (x @ A @ B)",
        "join": f"return {joined_code}",
        "expected": f"adapter_output(x, W, A, B, 4.0, gain), torch.tensor([{result}])",
        "without W": f"adapter_output(x, 0 * W, A, B, 2.0, gain), torch.tensor([{without_w}])",
    }
    return Exercise(right, probes=(
        Probe("an adapter of zeros", _adapter(3, d_in=4, d_out=6, r=2, zero=("B",)), "B is 0, so the "
            f"adapter adds nothing. The gain multiplies {gained}."),
        Probe("only the adapter", _adapter(3, d_in=5, d_out=4, r=2, zero=("W",)), "W is 0: what comes "
            f"out is the adapter's part. Its strength is {factor}; the gain multiplies {gained}."),
        Probe("rank 1", _adapter(4, d_in=3, d_out=5, r=1, alpha=0.5), "r is 1 here and alpha 0.5. The "
            f"gain multiplies {gained}."),
        Probe("a rank and an alpha", _adapter(2, d_in=6, d_out=7, r=4, alpha=12.0), "r is 4 and alpha "
            f"12: the adapter's part is multiplied by {of_alpha(12, 4):g}."),
        Probe("a square W", _adapter(2, d_in=6, d_out=6, r=3, alpha=1.5), "W is square here, so what does not "
            "fit elsewhere goes through without an error: x @ W, and the gain has a number for each output."),
        Probe("a batch", _adapter(2, 3, d_in=5, d_out=4, r=2), "x is (B, T, d_in) here: any axes may "
            "stand in front of the last."),
        larger(_adapter(9, 10, d_in=12, d_out=13, r=11, alpha=7.0)),
    ), misconceptions=mistakes(
        like.others("strength", {
            "rank": ("strength-rank", f"You multiply by alpha / r, as lesson 18 does. {here}"),
            "root": ("strength-root", f"You divide alpha by the root of r. {here}"),
            "plain": ("strength-plain", f"You multiply by alpha alone. {here}"),
        }),
        of_the_rank,
        strength == "root" and ("root-of-alpha-too", "You take the root of alpha as well. Only"
            " r is under it: alpha / √r.", scaled(lambda alpha, A, B: math.sqrt(alpha / A.shape[1]))),
        strength == "root" and ("square", "You divide by r². It is the root of r.",
            scaled(lambda alpha, A, B: alpha / A.shape[1] ** 2)),
        ("alpha-unused", f"Your function does not use alpha. The adapter's strength is {factor}.",
            scaled(lambda alpha, A, B: of_alpha(1, A.shape[1]))),
        ("upside-down", f"Your factor is upside down. It is {factor}.",
            scaled(lambda alpha, A, B: 1 / of_alpha(alpha, A.shape[1]))),
        like.others("place", {
            "path": ("gain-on-path", f"You multiply only the adapter's part by the gain. {on}"),
            "whole": ("gain-on-whole", f"You multiply the whole sum by the gain. {on}"),
            "frozen": ("gain-on-frozen", f"You multiply x W by the gain, and not the adapter. {on}"),
        }),
        ("no-gain", f"The gain has no effect in your function. It multiplies {gained}.",
            joined(lambda x, road, path, gain: road + path)),
        ("one-plus-gain", f"You multiply by 1 + gain. It is the gain itself, on {gained}.",
            joined(lambda x, road, path, gain: join(road, path, 1 + gain))),
        ("gain-added", "You add the gain. It multiplies, output by output.",
            joined(lambda x, road, path, gain: road + path + gain)),
        ("gain-on-x", "You multiply x by the gain where the two fit. It has a number for each output: "
            "multiply after W and B.", gain_on_x),
        ("everything-scaled", f"You multiply x W by {factor} too. Only the adapter's part is.",
            lambda x, W, A, B, alpha, gain: right(x, of_alpha(alpha, A.shape[1]) * W, A, B, alpha, gain)),
        ("adapter-only", "What the frozen matrix says is missing: add x W.",
            joined(lambda x, road, path, gain: join(0 * road, path, gain))),
        ("no-adapter", f"The adapter's part is missing: {factor} times (x A) B.",
            joined(lambda x, road, path, gain: join(road, 0 * path, gain))),
        ("subtracted", "You subtract the adapter's part. It is added.",
            joined(lambda x, road, path, gain: join(road, -path, gain))),
        ("a-nonlinearity", "There is a ReLU between A and B. The two are matrices and nothing else.",
            lambda x, W, A, B, alpha, gain: join(
                x @ W, of_alpha(alpha, A.shape[1]) * (torch.relu(x @ A) @ B), gain)),
        ("w-transposed", "You transpose W where it is square. Tokens are rows here: it is x @ W.", transposed),
        ("x-added", "You add x as well where it fits. The residual connection belongs to the block around it.",
            joined(lambda x, road, path, gain: join(road, path, gain) + (x if x.shape == road.shape else 0))),
    )), words


SUBTRACTED = {"others": "the mean of the other texts of its row", "median": "the median of its row",
              "all": "the mean of its row"}
DIVIDED = {"none": "nothing is divided", "sample": "divide by the standard deviation of the row, with n - 1, plus 1e-6",
           "range": "divide by the distance from the smallest reward of the row to the largest, plus 1e-6"}


@inputs
def _rewards(rng, G, n, size=1.0, shift=0.0):
    """Each group has a level and a spread of its own."""
    levels, spreads = rng.normal(size=(G, 1)) * 3, rng.uniform(0.5, 3, size=(G, 1))
    return (torch.tensor((levels + spreads * rng.normal(size=(G, n))) * size + shift),)


@in_variants(group_advantage, {"usual": tuple(USUAL), "spread": tuple(SPREADS)})
def _group_advantage(like, usual, spread):
    less, then = SUBTRACTED[usual], DIVIDED[spread]

    right, base = like(), USUAL[usual]
    instead = f"What is subtracted here is {less}."

    def over(r, better, by=SPREADS[spread]):
        return better / (by(r) + 1e-6) if by else better

    def one_for_all(r):
        """The row's baseline, computed over all texts of all groups."""
        return base(r.reshape(1, -1)).reshape(r.shape if usual == "others" else (1, 1))

    def columns(r):
        return over(r.mT, r.mT - base(r.mT)).mT if len(r) > 1 else right(r)

    of_others = (
        ("others-over-n", "You leave out the text's own reward above the line, but divide by n. The "
            "others are n - 1.", lambda r: over(r, r - (r.sum(-1, keepdim=True) - r) / r.shape[-1])),
        ("all-over-n-minus-1", "You divide the sum of the whole row by n - 1. Subtract the text's own reward "
            "from the sum first.", lambda r: over(r, r - r.sum(-1, keepdim=True) / (r.shape[-1] - 1))),
        ("sum-of-others", "You subtract the sum of the others. Divide it by their number, n - 1.",
            lambda r: over(r, r - (r.sum(-1, keepdim=True) - r))),
        ("neighbour", "You compare a text with the one before it. It is the mean of all others of its row.",
            lambda r: over(r, r - r.roll(1, -1))),
    )
    of_the_median = (
        ("lower-median", "Where n is even you take the smaller of the two in the middle, as torch.median "
            "does. The median is their mean.", lambda r: over(r, r - r.median(-1, keepdim=True).values)),
        ("unsorted-middle", "You take what stands in the middle of the row. Sort the rewards first.",
            lambda r: over(r, r - (r[:, [(r.shape[-1] - 1) // 2]] + r[:, [r.shape[-1] // 2]]) / 2)),
        ("middle-of-the-ends", "You take the middle between the smallest and the largest. The median has "
            "as many rewards below as above it.",
            lambda r: over(r, r - (r.amax(-1, keepdim=True) + r.amin(-1, keepdim=True)) / 2)),
    )
    of_the_spread = (
        ("no-eps", "You add nothing to what you divide by. In a group of equal rewards it is 0, and 0 / 0 "
            "is NaN: add 1e-6.", lambda r: (r - base(r)) / SPREADS[spread](r)),
        ("not-subtracted", f"You divide the rewards themselves. Subtract {less} first.", lambda r: over(r, r)),
        ("no-brackets", "A division comes before a subtraction: you divide only what is subtracted. Put "
            "brackets round the difference.", lambda r: r - over(r, base(r))),
        ("one-spread", "You divide all groups by one number. Every row has its own.",
            lambda r: over(r, r - base(r), lambda r: SPREADS[spread](r.reshape(1, -1)))),
    )

    def advantages(*rows):
        return rounded(like()(torch.tensor(rows, dtype=torch.float64)), 4)

    rewards = torch.tensor([[1.0, 2.0, 6.0]], dtype=torch.float64)
    better = rounded((rewards - USUAL[usual](rewards))[0], 3)
    last = rounded(like()(rewards)[0], 2)
    first, usual_text, code, shape = {
        "others": ("For the first text the others have the mean 4, for the second 3.5, for the third 1.5",
                   "**the mean of the other texts of its group**, without the text itself.",
                   "(rewards.sum(dim=-1, keepdim=True) - rewards) / (n - 1)", "(G, n)"),
        "median": ("The median is 2", "**the median of its group**; where n is even, the mean of the two in the middle.",
                   "rewards.quantile(0.5, dim=-1, keepdim=True)", "(G, 1)"),
        "all": ("The mean is 3", "**the mean of its group**, the text itself included.",
                "rewards.mean(dim=-1, keepdim=True)", "(G, 1)")}[usual]
    after, spread_text, result_code = {
        "none": (", and that is the result.", ", and **nothing is divided**.", "return rewards - usual"),
        "sample": (f". The standard deviation is √((4 + 1 + 9) / 2) = 2.65, so the result is {_row(last)}.",
                   ". Then the difference is divided by **the standard deviation of the group with n - 1 below the line**, "
                   "plus 1e-6.", "return (rewards - usual) / (rewards.std(dim=-1, keepdim=True) + 1e-6)"),
        "range": (f". From 1 to 6 it is 5, so the result is {_row(last)}.",
                  ". Then the difference is divided by **the distance from the smallest reward of the group to the "
                  "largest**, plus 1e-6.", "low, high = rewards.aminmax(dim=-1, keepdim=True)\n"
                  "    return (rewards - usual) / (high - low + 1e-6)")}[spread]
    words = {
        "usual": usual_text,
        "spread": f"This is subtracted from the reward{spread_text}",
        "by hand": f"{first}. So the differences are {_row(better)}{after}",
        "code": f"usual = {code}  # {shape}",
        "result": result_code,
        "expected": f"expected = torch.tensor({advantages([1, 2, 6], [5, 9, 4])})",
        "of four": f"torch.tensor({advantages([0, 6, 0, 2])})",
    }
    return Exercise(right, probes=(
        Probe("two texts", _rewards(1, 2), f"One group of two texts. From each reward {less} is "
            f"subtracted; {then}."),
        Probe("one group of five", _rewards(1, 5), f"One group: from each reward {less} is subtracted; {then}."),
        Probe("three groups of four", _rewards(3, 4), "Three groups with levels of their own: a text "
            "is compared with its own row and no other."),
        Probe("as many groups as texts", _rewards(4, 4), "G and n are both 4 here, so nothing warns "
            "you: a group is a row. Keep the axis, with keepdim=True."),
        Probe("negative rewards", _rewards(2, 6, shift=-20.0), "All rewards are negative here. The "
            "best text of a group still has a positive advantage."),
        Probe("equal rewards", lambda rng: (torch.tensor([[2.0, 2, 2], [0, 1, 5]], dtype=torch.float64),),
            "In the first group all texts earned the same: none is better than usual, and all "
            "advantages are 0.", draws=1, extreme=True),
        Probe("rewards that hardly differ", _rewards(2, 3, size=2e-6), "The rewards differ by "
            f"millionths: {then}.", extreme=True),
        larger(_rewards(9, 11)),
    ), misconceptions=mistakes(
        ("lesson-19", f"These are the advantages of lesson 19. Here {less} is subtracted, and {then}.",
            lambda r: (r - USUAL["all"](r)) / (r.std(-1, unbiased=False, keepdim=True) + 1e-6)),
        like.others("usual", {
            "others": ("usual-others", f"You compare a text with the mean of the others. {instead}"),
            "median": ("usual-median", f"You subtract the median. {instead}"),
            "all": ("usual-all", f"You subtract the mean of the whole row. {instead}"),
        }),
        like.others("spread", {
            "none": ("spread-none", f"You divide by nothing. Here {then}."),
            "sample": ("spread-sample", f"You divide by the standard deviation with n - 1. Here {then}."),
            "range": ("spread-range", "You divide by the distance from the smallest to the largest reward."
                f" Here {then}."),
        }),
        usual == "others" and of_others,
        usual == "median" and of_the_median,
        spread != "none" and of_the_spread,
        spread == "sample" and ("variance", "You divide by the variance. The standard deviation"
            " is its root.", lambda r: over(r, r - base(r), lambda r: r.var(-1, keepdim=True))),
        ("standard-deviation-of-n", "You divide by the standard deviation that has n below the line. Here "
            f"{then}.", lambda r: over(r, r - base(r), lambda r: r.std(-1, unbiased=False, keepdim=True)))
        if usual != "all" else
        ("only-above", "You make 0 of everything below usual. A worse text teaches too: its advantage "
            "is negative.", lambda r: right(r).clamp(min=0)),
        ("the-rewards", f"You give the rewards themselves. Subtract {less}.", lambda r: r * 1.0),
        ("all-groups-together", "You compare a text with the texts of all groups. Its group is its "
            "own row.", lambda r: over(r, r - one_for_all(r))),
        ("columns", "You compare down the columns, texts of different groups. A group is a row: the "
            "last axis.", columns),
        ("sign", "The sign is turned round. Better than usual is positive.", lambda r: -right(r)),
        ("ratio", f"You divide by {less}. Subtract it.", lambda r: r / base(r)),
        ("best-subtracted", "You subtract the best reward, so that no text is above usual. Subtract "
            f"{less}.", lambda r: over(r, r - r.amax(-1, keepdim=True))),
        ("sign-only", "You only say whether a text is above or below. Say by how much.",
            lambda r: torch.sign(r - base(r))),
        ("size-only", "You give the distance without its sign. Worse than usual is negative.",
            lambda r: right(r).abs()),
        ("flattened", "The numbers are in one row. Keep the shape (G, n).", lambda r: right(r).flatten()),
    ), contracts=(Contract("a group of one text", _rewards(2, 1)),)), words


SUMS = {"reference": "Σ q log(q / p)", "policy": "Σ p log(p / q)", "both": "half of Σ p log(p / q) + Σ q log(q / p)"}
POOLED = {"sum": "the sum over its words that count", "mean": "the mean over its words that count",
          "largest": "the largest of its words that count"}


@inputs
def _models(rng, B, T, V, lengths=None, start=0, size=1.5, shift=0.0, equal=False):
    """Logits of two models, which have not been normalised: each place has its own constant added."""
    z, reference = (torch.tensor(rng.normal(size=(B, T, V)) * size + rng.normal(size=(B, T, 1)) * (1 + shift))
                    for _ in range(2))
    mask = torch.arange(T)[None] < torch.tensor(lengths or [T] * B)[:, None]
    return z, (z + 3.0 if equal else reference), mask & (torch.arange(T) >= start)


@in_variants(text_kl, {"direction": tuple(DIRECTIONS), "pool": tuple(POOLS)},
             forbidden=("kl_div", "kl_divergence", "kl_to_reference"))
def _text_kl(like, direction, pool):
    place, text, right = SUMS[direction], POOLED[pool], like()
    number = f"Here a text's number is {text}."

    def of_each_text(each, mask):
        """The number of each text in which a word counts."""
        return POOLS[pool](each[mask.any(-1)], mask[mask.any(-1)])

    def mean(each, mask):
        return of_each_text(each, mask).mean()

    def measured(of_place=DIRECTIONS[direction], of_texts=mean, logs=lambda z: z.log_softmax(-1)):
        """With another number at a place (of the log probabilities), or another way from logits or to the result."""
        return lambda z, r, m: of_texts(of_place(logs(z), logs(r)), m)

    def middle(p, q):
        half = ((p.exp() + q.exp()) / 2).log()
        return (_kl(p, half) + _kl(q, half)) / 2

    def every_text(each, mask):
        """Texts without a word are counted, as 0."""
        return POOLS[pool](each, mask).nan_to_num(0).mean()

    of_both = (
        ("not-halved", "You add the two directions. Take half of the sum.",
            measured(lambda p, q: _kl(p, q) + _kl(q, p))),
    ) if direction == "both" else (
        ("entropy-missing", "You have only one of the two logarithms, which makes a cross-entropy. It is "
            f"{place}.", measured(lambda p, q: -(p.exp() * q if direction == "policy" else q.exp() * p).sum(-1))),
        ("sign", "Your result is negative: the fraction under the logarithm is upside down. It is "
            f"{place}.", measured(lambda p, q: -DIRECTIONS[direction](p, q))),
    )
    of_mean = (
        ("sum-of-everything", "You add up all words of all texts. Both of these are means: over the words "
            "of a text, and over the texts.", measured(of_texts=lambda each, mask: (each * mask).sum())),
        ("divided-by-all-places", "You divide by the number of places, T. Divide by the number of words "
            "of the text that count.",
            measured(of_texts=lambda each, mask: (each * mask).mean(-1)[mask.any(-1)].mean())),
    )
    half, sure = torch.tensor([0.5, 0.5]).double().log(), torch.tensor([0.9, 0.1]).double().log()
    of_place = DIRECTIONS[direction](half, sure).item()
    of_text = {"sum": 2 * of_place, "mean": 2 * of_place / 3, "largest": of_place}[pool]
    forward, backward = "0.5 · log(0.5 / 0.9) + 0.5 · log(0.5 / 0.1)", "0.9 · log(0.9 / 0.5) + 0.1 · log(0.1 / 0.5)"
    by_hand = {"reference": f"{backward} = 0.368", "policy": f"{forward} = 0.511",
               "both": "half of 0.511 + 0.368, which is 0.439"}[direction]
    does = f"{'the' if pool == 'largest' else 'their'} {pool} is {of_text:.3f}"
    p, q = "log_p.exp() * (log_p - log_q)", "log_q.exp() * (log_q - log_p)"
    code = {"reference": f"({q}).sum(dim=-1)", "policy": f"({p}).sum(dim=-1)",
            "both": "((log_p.exp() - log_q.exp()) * (log_p - log_q) / 2).sum(dim=-1)"}[direction]
    pooled = {"sum": "each.sum(dim=-1)", "mean": "(each.sum(dim=-1) / mask.sum(dim=-1))",
              "largest": "each.amax(dim=-1)"}[pool]
    words = {
        "place": {"reference": "**Σ q log(q / p)**, with the reference's probabilities q in front, and p for the policy's.",
                  "policy": "**Σ p log(p / q)**, with the policy's probabilities p in front, and q for the reference's.",
                  "both": "**half of Σ p log(p / q) + Σ q log(q / p)**, with p for the policy's probabilities and q for the "
                          "reference's."}[direction],
        "text": f"The number of a text is **the {pool}** {text.removeprefix(f'the {pool} ')},",
        "by hand": f"So the place has {by_hand}.",
        "of a text": f"{does}. Another text, in which the two agree everywhere, has 0, so the result for both is "
                     f"{of_text / 2:.3f}.",
        "code": f"each = {code}  # (B, T)",
        "pool": f"return {pooled}.mean()",
        "expected": f"result, torch.tensor({rounded(of_text / 2, 4)})",
        "alone": f"alone, torch.tensor({rounded(of_place, 4)})",
    }
    return Exercise(right, probes=(
        Probe("one word of two", _models(1, 1, 2), "One place, two words: make probabilities p "
            f"(policy) and q (reference) of the logits, then {place}."),
        Probe("one text", _models(1, 4, 3), f"One text, and all four places count: the text's number is {text}."),
        Probe("shifted logits", _models(2, 2, 3, shift=20.0), "A constant was added to all logits of "
            "a place, which changes no probability: take log_softmax first."),
        Probe("the same model", _models(2, 3, 4, equal=True), "Both models give the same "
            "probabilities here, so the result is 0.", draws=1, absolute=1e-9),
        Probe("a prompt", _models(2, 5, 3, start=2), "The first two places belong to the prompt, "
            "where the mask is False: they do not count."),
        Probe("texts of different lengths", _models(3, 5, 4, lengths=[5, 1, 2]), "Texts of 5, 1 and 2 "
            f"words: each becomes one number, {text}, and the result is the mean of the three."),
        Probe("as many words as places", _models(3, 3, 3, lengths=[3, 1, 2]), "B, T and V are all 3 "
            "here, so nothing warns you: probabilities sum to 1 along the last axis."),
        Probe("sure models", _models(2, 2, 3, size=5000.0), "Some probabilities are 0 to the computer here, and "
            "their logarithm is -inf. Use log_softmax, and not the logarithm of a softmax.", extreme=True),
        Probe("a text without a word", _models(3, 4, 3, lengths=[2, 0, 4]), "In the second text no "
            "word counts: it takes no part, and the result is the mean of the other two.",
            extreme=True),
        larger(_models(9, 10, 11, lengths=[10, 2, 7, 5, 8, 3, 6, 1, 9])),
    ), misconceptions=mistakes(
        like.others("direction", {
            "policy": ("direction-policy", f"You compute Σ p log(p / q), as lesson 19 does. Here it is {place}."),
            "reference": ("direction-reference", "You compute Σ q log(q / p), with the reference's"
                f" probabilities in front. Here it is {place}."),
            "both": ("direction-both", f"You take the mean of the two directions. Here it is {place}."),
        }),
        like.others("pool", {
            "sum": ("pool-sum", f"You add up the words of a text. {number}"),
            "mean": ("pool-mean", f"You take the mean over the words of a text. {number}"),
            "largest": ("pool-largest", f"You take the largest of the words of a text. {number}"),
        }),
        ("lesson-19", f"This is lesson 19's kl_to_reference. Here a place has {place}, and a text "
            f"{text}.", measured(_kl, lambda each, mask: each[mask].mean()))
        if direction != "policy" else
        ("middle", f"You compare both models with the middle between them. It is {place}.", measured(middle)),
        ("mean-over-words", "You take one mean over the words of all texts. Each text becomes a "
            f"number first, {text}.", measured(of_texts=lambda each, mask: each[mask].mean())),
        of_both,
        pool == "mean" and of_mean,
        ("mask-forgotten", "You count all places. Take only those where the mask is True.",
            measured(of_texts=lambda each, mask: POOLS[pool](each, torch.ones_like(mask)).mean())),
        ("mask-turned", "You take the places where the mask is False. True means: this word counts.",
            measured(of_texts=lambda each, mask: every_text(each, ~mask))),
        ("every-text", "You count a text in which no word counts, as 0. It takes no part: leave it "
            "out of the mean.", measured(of_texts=every_text)),
        ("texts-added", "You add up the texts. Take their mean.",
            measured(of_texts=lambda each, mask: of_each_text(each, mask).sum())),
        ("number-a-text", "You give a number for each text. Return one number, their mean.",
            measured(of_texts=of_each_text)),
        ("log-of-softmax", "You take the logarithm of a softmax. Where a probability is 0 to the "
            "computer it is -inf: use log_softmax.", measured(logs=lambda z: z.softmax(-1).log())),
        ("softmax-over-places", "Your softmax runs over the places. The probabilities of the V words "
            "sum to 1: use the last axis.", measured(logs=lambda z: z.log_softmax(1))),
        ("no-softmax", "You use the logits as if they were log probabilities. Apply log_softmax first.",
            measured(logs=lambda z: z)),
        ("mean-over-the-vocabulary", "You take the mean over the vocabulary. Sum over it: the probabilities are "
            "the weights.", measured(lambda p, q: DIRECTIONS[direction](p, q) / p.shape[-1])),
        ("bits", "Your result is in bits. Use the natural logarithm.",
            measured(lambda p, q: DIRECTIONS[direction](p, q) / math.log(2))),
    ), contracts=(Contract("a mask that counts no word", _models(2, 3, 3, lengths=[0, 0])),)), words


TASKS = by_name(_adapter_output, _group_advantage, _text_kl)
