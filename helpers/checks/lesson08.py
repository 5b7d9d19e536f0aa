"""The exercises of lesson 08: sinusoidal positions, rotary positions, ALiBi."""

import inspect

import numpy as np

from helpers.attention import alibi_bias, rotate, sinusoidal_encoding
from helpers.checks.core import Contract, Exercise, Probe, example, inputs, larger, variants

# Positions stay below 20, so that a right attempt in float32 is right to the tolerance.


@variants
def _waves(T, d, *, omega=lambda d: 10000.0 ** (-np.arange(0, d, 2) / d), first=0, even=np.sin, odd=np.cos):
    """The reference with the faults that the arguments choose; ``omega(d)``: (d/2,)."""
    angles = (np.arange(T) + first)[:, None] * omega(d)  # (T, d/2)
    return np.stack([even(angles), odd(angles)], axis=-1).reshape(T, d)


def _a_wave_for_each_column(T, d):
    angles = np.arange(T)[:, None] * 10000.0 ** (-np.arange(d) / d)  # (T, d)
    return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))


def _columns_as_i(T, d):
    angles = np.arange(T)[:, None] * 10000.0 ** (-2 * np.arange(d) / d)  # (T, d)
    return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))


def _concatenated(encoding):
    return np.concatenate([encoding[..., 0::2], encoding[..., 1::2]], axis=-1)


LAST_WAVE = ("You spread the waves so that the last one has ω = 1/10000 exactly. One well-known library does so. Here the "
             "exponent is 2i/d, which stops just short of 1.")

EACH_WITH_EACH = ("mismatch in its core dimension|not aligned|could not (be )?broadcast", (
    "Each position meets each wave or head, and nothing is summed: make one of the two a column, such as "
    "np.arange(T)[:, None], and multiply with *."))

SINUSOIDAL_ENCODING = Exercise(sinusoidal_encoding, nudges=(
    EACH_WITH_EACH,
    ("to negative integer powers", "The exponent -2i/d is a fraction. ** goes before /, so here d divides the power, and "
        "the exponent is a whole number."),
), probes=(
    example("position 0, one wave", (1, 2),
        "At position 0 every angle is 0: the even column is sin 0 = 0, the odd column is cos 0 = 1."),
    Probe("position 0, more waves", lambda rng: (1, int(rng.choice([6, 10]))), "At position 0 every angle is 0, "
        "so the row is 0, 1, 0, 1, …: sin in the even columns, cos in the odd ones."),
    Probe("one wave", lambda rng: (int(rng.integers(3, 9)), 2), "With d = 2 there is one wave, and ω_0 = "
        "1: row t is sin(t), cos(t), with t counted from 0, in radians."),
    example("two waves", (2, 4), "With d = 4 the second wave has ω_1 = 10000^(-2/4) = 0.01. Work out the "
        "exponent for i = 1 by hand."),
    Probe("more positions than columns", lambda rng: (int(rng.integers(9, 14)), 6),
        "T is larger than d here. Column pair i has the angle t · 10000^(-2i/d) in row t."),
), misconceptions=(
    ("concatenated", "All sines stand left and all cosines right, as in some libraries. Here they alternate: sin in "
        "columns 0, 2, 4, … and cos in columns 1, 3, 5, …", lambda T, d: _concatenated(sinusoidal_encoding(T, d))),
    ("sin-cos-swapped", "Sine and cosine have changed places. Sine goes into the even columns, so the "
        "first row is 0, 1, 0, 1, …", _waves(even=np.cos, odd=np.sin)),
    ("positions-from-1", "Your first row belongs to position 1. Positions count from 0: row 0 is 0, 1, "
        "0, 1, …", _waves(first=1)),
    ("exponent-i", "Your waves are too fast: the exponent is i/d. It is 2i/d, where i counts the pairs.",
        _waves(omega=lambda d: 10000.0 ** (-np.arange(d // 2) / d))),
    ("exponent-4i", "You double twice. np.arange(0, d, 2) already counts 0, 2, 4, …, which is 2i: divide it by d "
        "and do not multiply by 2 again.", _waves(omega=lambda d: 10000.0 ** (-2 * np.arange(0, d, 2) / d))),
    ("wave-for-each-column", "Every column has a wave of its own. The two columns of a pair, 2i and 2i+1, share "
        "the angle t · 10000^(-2i/d): one is its sine, the other its cosine.", _a_wave_for_each_column),
    ("column-taken-for-i", "You take i for the number of the column. It is the number of the pair: columns 0 and "
        "1 have i = 0, columns 2 and 3 have i = 1, and both columns of a pair share one angle.", _columns_as_i),
    ("base-1000", "The base is 1000. It is 10000: the second wave of d = 4 has ω = 0.01.",
        _waves(omega=lambda d: 1000.0 ** (-np.arange(0, d, 2) / d))),
    ("power-divided", "Your first wave has ω = 1/d, and it should be 1: ** goes before /, so d divides the power and not "
        "its exponent.", _waves(omega=lambda d: 10000.0 ** -np.arange(0, d, 2) / d)),
    ("whole-numbers", "All your numbers are whole: an array made for integers cuts every sine and cosine to 0, 1 or -1.",
        lambda T, d: np.trunc(sinusoidal_encoding(T, d))),
    ("exponent-sign", "Your waves get faster from left to right. The exponent is negative: ω falls from "
        "1 to nearly 1/10000.", _waves(omega=lambda d: 10000.0 ** (np.arange(0, d, 2) / d))),
    ("last-wave-at-10000", LAST_WAVE, _waves(omega=lambda d: np.geomspace(1, 1e-4, d // 2))),
    ("last-wave-nan", LAST_WAVE + " (With d = 2 you divide 0 by 0.)",
        _waves(omega=lambda d: 10000.0 ** (-np.arange(d // 2) / np.float64(d // 2 - 1)))),
    ("degrees", "The angles are taken as degrees. np.sin and np.cos work in radians: convert nothing.",
        _waves(omega=lambda d: np.deg2rad(10000.0 ** (-np.arange(0, d, 2) / d)))),
    ("times-2-pi", "You multiply the angle by 2π, so the first wave returns after every step. The angle is t · ω_i; "
        "the first wavelength is 2π.", _waves(omega=lambda d: 2 * np.pi * 10000.0 ** (-np.arange(0, d, 2) / d))),
    ("one-wave", "All pairs have the same wave, sin(t) and cos(t). Multiply t by ω_i = 10000^(-2i/d), "
        "which differs from pair to pair.", _waves(omega=lambda d: np.ones(d // 2))),
    ("only-sines", "Every column is a sine. The odd columns hold the cosine of the same angle.", _waves(odd=np.sin)),
    ("no-cosines", "The odd columns are all 0. They hold the cosine of the same angle as the column "
        "before.", _waves(odd=np.zeros_like)),
    ("transposed", "Rows and columns are swapped: a row for each position, a column for each dimension, "
        "(T, d).", lambda T, d: sinusoidal_encoding(T, d).T),
), contracts=(
    Contract("an odd d, such as 5", lambda rng: (3, 5)),
))


def _places(rng, T):
    """T different positions in no order, with gaps."""
    return rng.permutation(np.arange(1, 20))[:T]


@inputs
def _vectors(rng, shape):
    return rng.normal(size=shape), _places(rng, shape[-2])


def _omega(x, base=10000.0, step=2):
    return base ** (-np.arange(0, step * (x.shape[-1] // 2), step) / x.shape[-1])


def _turn(x, angles):
    """Turn pairs (2i, 2i+1) of x (..., T, d) by angles (T, d/2)."""
    e, o = x[..., 0::2], x[..., 1::2]
    return _woven(e * np.cos(angles) - o * np.sin(angles), e * np.sin(angles) + o * np.cos(angles))


def _woven(even, odd):
    return np.stack([even, odd], axis=-1).reshape(*even.shape[:-1], -1)


def _angles(x, positions, **options):
    return np.asarray(positions)[:, None] * _omega(x, **options)


@variants
def _rotated(x, positions, *, omega=_omega, places=lambda positions: np.asarray(positions), unit=lambda angles: angles,
             way=1, pairs="neighbours"):
    """The reference with the faults that the arguments choose; ``omega(x)``: (d/2,)."""
    angles = way * unit(places(positions)[:, None] * omega(x))
    if pairs == "neighbours":
        return _turn(x, angles)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)],
                          axis=-1)


def _swapped_pairs(x):
    """(x, y) becomes (-y, x) in every pair (2i, 2i+1)."""
    return _woven(-x[..., 1::2], x[..., 0::2])


def _angles_in_halves(x, positions):
    angles = np.concatenate([_angles(x, positions)] * 2, axis=-1)  # (T, d)
    return x * np.cos(angles) + _swapped_pairs(x) * np.sin(angles)


def _partners_in_halves(x, positions):
    angles = np.repeat(_angles(x, positions), 2, axis=-1)  # (T, d)
    a, b = np.split(x, 2, axis=-1)
    return x * np.cos(angles) + np.concatenate([-b, a], axis=-1) * np.sin(angles)


def _angle_for_each_column(x, positions):
    angles = np.asarray(positions)[:, None] * 10000.0 ** (-np.arange(x.shape[-1]) / x.shape[-1])  # (T, d)
    return x * np.cos(angles) + _swapped_pairs(x) * np.sin(angles)


def _overwritten(x, positions, clockwise=False):
    angles = _angles(x, positions) * (-1 if clockwise else 1)
    cos, sin = np.cos(angles), np.sin(angles)
    even = x[..., 0::2] * cos - x[..., 1::2] * sin
    return _woven(even, even * sin + x[..., 1::2] * cos)


def _signed(sine, cosine):
    """The sign of the first number's sine, and that of the second one's cosine."""
    return lambda x, p: _woven(x[..., 0::2] * np.cos(_angles(x, p)) + sine * x[..., 1::2] * np.sin(_angles(x, p)),
                               x[..., 0::2] * np.sin(_angles(x, p)) + cosine * x[..., 1::2] * np.cos(_angles(x, p)))


def _second_axis(x, positions):
    angles, turned = _angles(x, positions), np.empty(x.shape)
    turned[:, 0::2] = x[:, 0::2] * np.cos(angles) - x[:, 1::2] * np.sin(angles)
    turned[:, 1::2] = x[:, 0::2] * np.sin(angles) + x[:, 1::2] * np.cos(angles)
    return turned


def _added(x, positions):
    angles = _angles(x, positions)
    return x + _woven(np.sin(angles), np.cos(angles))


def _with_a_base(function, x, positions, base=None):
    """What a rotate gives. The base is asked of one that takes it, as lesson 16's does, and no other can be wrong there."""
    if base is None:
        return function(x, positions)
    takes = [p for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return function(x, positions, base) if len(takes) > 2 else _turn(x, _angles(x, positions, base=base))


ADDED = "You add sines and cosines to x. Rotary positions add nothing: they turn pairs of columns."

ROTATE = Exercise(rotate, nudges=(
    EACH_WITH_EACH,
), use=_with_a_base, probes=(
    Probe("position 0", lambda rng: (rng.normal(size=(1, 4)), np.array([0])),
        "At position 0 every angle is 0, so nothing turns: the result must be x itself."),
    Probe("one pair", lambda rng: (rng.normal(size=(1, 2)), np.array([1])),
        "One pair (x, y) turned by the angle 1: (x cos 1 - y sin 1, x sin 1 + y cos 1), in radians."),
    Probe("two pairs", lambda rng: (rng.normal(size=(1, 4)), np.array([int(rng.integers(2, 8))])), "Columns 0 and 1 "
        "turn by position · 1, columns 2 and 3 by position · 0.01. Check which columns form a pair.", ),
    Probe("positions with gaps", lambda rng: (rng.normal(size=(3, 4)), _places(rng, 3)),
        "Row t turns by positions[t], which need not be t: the positions given may have gaps and any order."),
    Probe("batch and heads", _vectors((2, 3, 4, 10)), "x may have more axes in front, such as (B, h, T, "
        "d). Use x[..., 0::2], and angles of shape (T, d/2).", draws=1),
    Probe("far from the beginning", lambda rng: (rng.normal(size=(3, 4)), np.array([1000, 3, 40])), "A text may be "
        "long: at position 1000 the first pair turns by 1000, the second by 10, as anywhere else.", draws=1),
    Probe("before the beginning", lambda rng: (rng.normal(size=(3, 4)), np.array([-5, -5, 9])), "Positions may be "
        "negative, and two rows may have the same. Use them in the angles, and not to look up a row.", draws=1),
    Probe("another base", lambda rng: (rng.normal(size=(3, 4)), _places(rng, 3), 50.0), "Your rotate takes a base, which "
        "is 50 here: pair i turns by position · base^(-2i/d).", extreme=True),
    larger(_vectors((5, 6, 11, 12))),
), misconceptions=(
    ("half-split-pairs", "You pair column i with column i + d/2. Some libraries do, and it is as good, but weights "
        "made for one layout are wrong in the other. Here the neighbours 2i and 2i+1 form a pair.",
        _rotated(pairs="halves")),
    ("wrong-way", "You turn the other way round. The minus belongs to the first number of a pair: (x cos "
        "- y sin, x sin + y cos).", _rotated(way=-1)),
    ("no-minus", "The minus sign is missing in x cos - y sin. Without it lengths change.", _signed(1, 1)),
    ("minus-in-both", "A minus stands in both numbers of a pair. The second has a plus: x sin + y cos.", _signed(-1, -1)),
    ("degrees", "The angles are taken as degrees. np.sin and np.cos work in radians: convert nothing.",
        _rotated(unit=np.deg2rad)),
    ("plus-in-the-exponent", "Your later pairs turn faster and faster: the exponent is -2i/d, with a minus.",
        _rotated(omega=lambda x: 1 / _omega(x))),
    ("sine-and-cosine-exchanged", "You have exchanged sine and cosine: at position 0 a pair has to stay as it is, and cos 0 "
        "is 1.", lambda x, p: _turn(x, np.pi / 2 - _angles(x, p))),
    ("base-1000", "The base is 1000. It is 10000: with d = 4 the second pair turns by position · 0.01.",
        _rotated(omega=lambda x: _omega(x, base=1000.0))),
    ("base-100000", "Without a base, yours turns by 100,000. It is 10000 then, and lesson 16's model hands its own on.",
        lambda x, p, base=100000.0: _turn(x, _angles(x, p, base=base))),
    ("base-ignored", "Your rotate takes a base, and turns by 10000 whatever base it is given. Write base where 10000 was.",
        lambda x, p, base=10000.0: rotate(x, p)),
    ("exponent-i", "Your later pairs turn too fast: the exponent is i/d. It is 2i/d, where i counts the "
        "pairs.", _rotated(omega=lambda x: _omega(x, step=1))),
    ("exponent-4i", "You double twice. np.arange(0, d, 2) already counts 0, 2, 4, …, which is 2i: divide "
        "it by d and do not multiply by 2 again.", _rotated(omega=lambda x: _omega(x, step=4))),
    ("same-angle", "All pairs turn by the same angle, the position. Multiply it by ω_i = 10000^(-2i/d), which "
        "differs from pair to pair.", _rotated(omega=lambda x: np.ones(x.shape[-1] // 2))),
    ("own-positions", "You use 0, 1, 2, … instead of the positions given. Row t turns by positions[t].",
        _rotated(places=lambda p: np.arange(len(p)))),
    ("positions-from-1", "You add 1 to the positions. At position 0 nothing turns.",
        _rotated(places=lambda p: np.asarray(p) + 1)),
    ("overwritten", "You change the even columns first, then use the changed ones for the odd columns. Both need "
        "the old values. A slice such as x[..., 0::2] is no copy: write into a new array.", _overwritten),
    ("overwritten-and-clockwise", "You turn the other way round, and you change the even columns before "
        "the odd ones are made of them. Right is (x cos - y sin, x sin + y cos), with the old x and y "
        "in both: write into a new array.", lambda x, p: _overwritten(x, p, clockwise=True)),
    ("halves-out", "The pairs are turned rightly, but you return all first members and then all second members. "
        "Put them back where they were, in columns 2i and 2i+1.", lambda x, p: _concatenated(rotate(x, p))),
    ("angles-in-halves", "You mix two layouts: neighbours are turned together, but the angles are repeated in "
        "halves, so the columns of a pair differ. Repeat each angle twice in a row.", _angles_in_halves),
    ("partners-in-halves", "You mix two layouts: the angles are those of neighbours, but each column is turned "
        "together with the one half a row away. The partner of column 2i is column 2i+1.", _partners_in_halves),
    ("angle-for-each-column", "The two columns of a pair get different angles. There is one angle for "
        "each pair, d/2 in all: 10000^(-2i/d) for columns 2i and 2i+1.", _angle_for_each_column),
    ("second-axis", "Your function is right for x of shape (T, d), and stops when x has more axes in front, such as "
        "(B, h, T, d). Count from the back: x[..., ::2] in place of x[:, ::2], and d = x.shape[-1].", _second_axis),
    ("each-by-itself", "You multiply each number of a pair by a cosine or a sine of its own. After a turn each of the two "
        "is made of both.", lambda x, p: x * _woven(np.cos(_angles(x, p)), np.sin(_angles(x, p)))),
    ("added", ADDED, _added),
    ("added-in-order", ADDED, lambda x, p: x + sinusoidal_encoding(*x.shape[-2:])),
), contracts=(
    Contract("an odd d, such as 5", lambda rng: (rng.normal(size=(3, 5)), np.arange(3))),
))


def _distance(T):
    return np.arange(T)[:, None] - np.arange(T)  # query minus key


def _slopes(h, first=1):
    return 2.0 ** (-8 * np.arange(first, h + first) / h)


@variants
def _bias(h, T, *, slopes=_slopes, sign=-1, distance=_distance, turned=lambda bias: bias):
    """The reference with the faults that the arguments choose; ``slopes(h)``: (h,)."""
    return turned(np.where(_distance(T) >= 0, sign * slopes(h)[:, None, None] * distance(T), -np.inf))


def _zero_times_infinity(h, T):
    with np.errstate(invalid="ignore"):
        return -_slopes(h)[:, None, None] * _distance(T) + (_distance(T) < 0) * -np.inf


def _weights(h, T):
    weights = np.exp(alibi_bias(h, T))
    return weights / weights.sum(axis=-1, keepdims=True)


ALIBI_BIAS = Exercise(alibi_bias, nudges=(
    EACH_WITH_EACH,
), probes=(
    Probe("one position", lambda rng: (int(rng.integers(2, 5)), 1), "With T = 1 each query sees only "
        "itself, at distance 0: the bias is 0 in every head, shape (h, 1, 1)."),
    example("one head", (1, 2),
        "With one head the slope is 2^(-8) = 1/256. Row 0 is [0, -inf] and row 1 is [-1/256, 0]."),
    example("two heads", (2, 3), "With two heads the slopes are 2^(-4) and 2^(-8). The row of the query "
        "i has -slope · (i - j) for each key j."),
), misconceptions=(
    ("same-slope", "All heads have the same slope. Each head has its own, 2^(-8(head+1)/h): the first is "
        "steep, the last nearly flat.", _bias(slopes=lambda h: np.full(h, 2.0 ** (-8 / h)))),
    ("slopes-from-0", "Your first head has slope 2^0 = 1: heads are counted from 0, so the exponent needs a + 1. "
        "The exponents are -8(head+1)/h, so the last head has slope 2^(-8).", _bias(slopes=lambda h: _slopes(h, 0))),
    ("slopes-for-8-heads", "Your slopes are 1/2, 1/4, 1/8, … whatever h is. That is right for 8 heads "
        "only: the exponent is -8(head+1)/h.", _bias(slopes=lambda h: 2.0 ** -np.arange(1, h + 1))),
    ("slopes-reversed", "The heads are in reverse order: head 0 has the steepest slope, 2^(-8/h).",
        _bias(slopes=lambda h: _slopes(h)[::-1])),
    ("not-multiplied", "The slope does not multiply the distance here. The bias is -slope · (i - j).",
        _bias(distance=lambda T: 1.0 * (_distance(T) > 0))),
    ("symmetric", "You penalise keys on both sides alike. Here a query sees no key to its right: -inf "
        "there.", lambda h, T: -_slopes(h)[:, None, None] * np.abs(_distance(T))),
    ("future-rewarded", "Nothing keeps a query from the keys to its right, and their bias is even "
        "positive. Put -inf where j > i.", lambda h, T: -_slopes(h)[:, None, None] * _distance(T)),
    ("future-zero", "The keys to the right have bias 0, so they are seen in full. Put -inf where j > i: "
        "only that gives weight 0.", lambda h, T: np.tril(-_slopes(h)[:, None, None] * _distance(T))),
    ("positive", "The bias grows with the distance, so far keys win. It is a penalty: put a minus before the "
        "slope.", _bias(sign=1)),
    ("transposed", "Query and key have changed places: rows are queries, so -inf belongs above the "
        "diagonal.", _bias(turned=lambda bias: bias.swapaxes(1, 2))),
    ("large-negative", "You use a large negative number for -inf. Then masked keys keep a tiny weight, "
        "or all of it when a row has nothing else. Use -np.inf.",
        lambda h, T: np.where(_distance(T) >= 0, -_slopes(h)[:, None, None] * _distance(T), -1e9)),
    ("nan-from-zero-times-inf", "0 · inf is NaN, so multiplying a mask by -inf spoils the part that "
        "should be 0. Choose with np.where instead.", _zero_times_infinity),
    ("infinity-positive", "The keys to the right have bias +inf, which makes them win over all others. "
        "Put -inf where j > i.", lambda h, T: np.where(_distance(T) >= 0, alibi_bias(h, T), np.inf)),
    ("softmax-too-early", "Your rows sum to 1: you have put the bias through the softmax. Return what is "
        "added to the scores; the softmax comes after that.", _weights),
    ("diagonal-masked", "You mask the diagonal too. A query may see itself: the bias there is 0.",
        lambda h, T: np.where(_distance(T) > 0, -_slopes(h)[:, None, None] * _distance(T), -np.inf)),
    ("key-position", "Your bias is slope · j, the key's own position. After softmax that gives the same weights, "
        "because each row is shifted by a constant; but here the diagonal is 0: use the distance i - j.",
        lambda h, T: np.where(_distance(T) >= 0, _slopes(h)[:, None, None] * np.arange(T), -np.inf)),
    ("slopes-along-keys", "The slopes meet the keys, not the heads: NumPy lines up from the right, so (h,) runs "
        "along the last axis of the distances. Each slope multiplies a whole (T, T) matrix, so it needs two axes of "
        "length 1 behind it.", lambda h, T: np.where(_distance(T) >= 0, -_slopes(h) * _distance(T), -np.inf)),
    ("slopes-along-queries", "The slopes meet the queries, and not the heads: a column (h, 1) lines up with the "
        "(T, T) distances row by row. Each slope multiplies a whole (T, T) matrix, so it needs one more axis of "
        "length 1.", lambda h, T: np.where(_distance(T) >= 0, -_slopes(h)[:, None] * _distance(T), -np.inf)),
    ("heads-last", "The shape is (h, T, T): one matrix for each head, heads first.",
        lambda h, T: np.moveaxis(alibi_bias(h, T), 0, -1)),
))

EXERCISES = (SINUSOIDAL_ENCODING, ROTATE, ALIBI_BIAS)
