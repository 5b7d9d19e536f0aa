"""The exercises of lesson 09: layer normalisation, the MLP of a block, the pre-norm block. Inputs are torch
tensors."""

import numpy as np
import torch
from torch.nn import functional as F

from helpers.checks.core import Exercise, Probe, inputs, larger, variants
from helpers.checks.pieces import same, tensor
from helpers.transformer import feed_forward, layer_norm, pre_norm_block

# ---------------------------------------------------------------- layer_norm


def _gain(rng, d):
    """Entries between 0.5 and 2 in size, of both signs, so that no fault cancels."""
    return torch.tensor(rng.uniform(0.5, 2.0, size=d) * rng.choice([-1, 1], size=d))


def _exact(rng, *shape, mean=0.0, std=1.0):
    """Random numbers whose rows have means that are exact in binary, so that rounding decides nothing."""
    unit = 2.0 ** np.round(np.log2(std / 40))
    whole = np.round(rng.normal(mean, std, size=shape) / unit)
    whole[..., 0] -= whole.sum(axis=-1) % shape[-1]  # now the sum of a row is a multiple of d
    return torch.tensor(whole * unit)


@inputs
def _norm_inputs(rng, *shape, mean=0.0, std=1.0, eps=1e-3, learned=True):
    d = shape[-1]
    gain, bias = (_gain(rng, d), _gain(rng, d)) if learned else (torch.ones(d).double(),
                                                                 torch.zeros(d).double())
    return _exact(rng, *shape, mean=mean, std=std), gain, bias, eps


def _by_hand(rng):
    """Four whole numbers with mean 3 and standard deviation 2, in some order."""
    return (torch.tensor(rng.permutation([1.0, 1.0, 5.0, 5.0])), torch.ones(4).double(),
            torch.zeros(4).double(), 1e-5)


@variants
def _norm(x, gain, bias, eps, *, dims=(-1,), correction=0, centre=True, finish=lambda y, gain, bias: gain * y + bias,
          divisor=lambda variance, eps: torch.sqrt(variance + eps)):
    """The reference over other axes (None: all), with another divisor, or another use of gain and bias."""
    axes = tuple(range(x.ndim)) if dims is None else dims
    mean = x.mean(dim=axes, keepdim=True)
    variance = x.var(dim=axes, correction=correction, keepdim=True)
    return finish((x - mean if centre else x) / divisor(variance, eps), gain, bias)


def _outside(variance, eps):
    return torch.sqrt(variance) + eps


def _mean_of(measure):
    """σ from another measure of the deviations: (deviations, x) -> (..., d), averaged; then eps and the
    root."""
    def function(x, gain, bias, eps):
        deviation = x - x.mean(dim=-1, keepdim=True)
        return gain * deviation / torch.sqrt(measure(deviation, x).mean(dim=-1, keepdim=True) + eps) + bias
    return function


def _square_forgotten(x, gain, bias, eps, added=0.0):
    deviation = x - x.mean(dim=-1, keepdim=True)
    return gain * deviation / (deviation.mean(dim=-1, keepdim=True).sqrt() + added) + bias


@variants
def _axis_lost(x, gain, bias, eps, *, mean=False, variance=False, steps=False):
    """Which of the two keeps its axis? ``steps``: the variance is that of what is left of x, and not torch's own."""
    deviation = x - x.mean(-1, keepdim=mean)
    var = deviation.square().mean(-1, keepdim=variance) if steps else x.var(-1, correction=0, keepdim=variance)
    return gain * deviation / torch.sqrt(var + eps) + bias


def _absolute(x, gain, bias, eps):
    deviation = x - x.mean(dim=-1, keepdim=True)
    return gain * deviation / (deviation.abs().mean(dim=-1, keepdim=True) + eps) + bias


BATCH_NORM = ("You take mean and variance over all tokens of the batch, column by column. That is batch normalisation. "
              "Here each token is normalised by itself: dim=-1.")

ONE_VARIANCE = "Each token has its own mean, but all share one variance. It needs dim=-1 and keepdim=True, too."

LAYER_NORM = Exercise(layer_norm, probes=(
    Probe("one number", lambda rng: (_exact(rng, 2, 1), _gain(rng, 1), _gain(rng, 1), 1e-5),
        "With d = 1 a number equals its own mean, so x - μ is 0 and the result is the bias. A variance "
        "that divides by d - 1 divides by 0 here."),
    Probe("by hand", _by_hand, "The numbers 1, 1, 5, 5 have mean 3 and standard deviation 2, so each "
        "becomes -1 or 1 (gain 1, bias 0)."),
    Probe("one row, no gain and bias", _norm_inputs(6, std=2.0, mean=1.0, learned=False, eps=1e-5),
        "Gain is 1 and bias is 0 here. Check that the result has mean 0 and variance 1 (dividing by d)."),
    Probe("a large eps", _norm_inputs(2, 5, eps=3.0, learned=False),
        "eps is 3 here: use the argument. It stands under the root, √(σ² + eps).", special=True),
    Probe("gain and bias", _norm_inputs(3, 4), "First normalise, then multiply by gain, then add bias; "
        "both have shape (d,) and work on the last axis."),
    Probe("sizes all equal", _norm_inputs(4, 4, 4, mean=-1.0), "B, T and d are all 4 here, so a mean "
        "without keepdim=True, or over the wrong axis, goes through without an error."),
    larger(_norm_inputs(5, 9, 10)),
), misconceptions=(
    ("square-forgotten", "The mean of x - μ is always 0: what lies above the mean cancels what lies below. So "
        "your σ is √eps for every row. Square the deviations before you average them.", _mean_of(lambda d, x: d)),
    ("square-forgotten-no-eps", "The mean of x - μ is always 0: what lies above the mean cancels what lies below. "
        "You divide by its root, 0. Square the deviations before you average, and add eps.", _square_forgotten),
    ("square-forgotten-eps-outside", "The mean of x - μ is always 0: what lies above the mean cancels what lies "
        "below. You divide by eps alone. Square the deviations before you average them, and add eps under the "
        "root.", lambda x, gain, bias, eps: _square_forgotten(x, gain, bias, eps, added=eps)),
    ("keepdim-forgotten", "Without keepdim=True the mean of (B, T, d) has shape (B, T), and no longer "
        "lines up with x. Give it to the mean and to the variance.", _axis_lost()),
    ("keepdim-in-the-mean-only", "Your mean keeps its axis, your variance does not, so it no longer "
        "lines up with x. Give keepdim=True to both.", _axis_lost(mean=True)),
    ("keepdim-in-the-variance-only", "Your variance keeps its axis, your mean does not, so it no longer "
        "lines up with x. Give keepdim=True to both.", _axis_lost(variance=True)),
    ("keepdim-forgotten-step-by-step", "Without keepdim=True the mean of (B, T, d) has shape (B, T), and no "
        "longer lines up with x. Give it to the mean and to the variance.", _axis_lost(steps=True)),
    ("keepdim-in-the-variance-only-step-by-step", "Your variance keeps its axis, your mean does not, so it no "
        "longer lines up with x. Give keepdim=True to both.", _axis_lost(variance=True, steps=True)),
    ("std-alone", "You divide by torch's std. It divides by d - 1 without correction=0, and eps is missing: it goes "
        "to the variance, under the root.", _norm(correction=1, divisor=lambda variance, eps: torch.sqrt(variance))),
    ("divides-by-d-minus-1", "Your variance divides by d - 1, which is what torch's std and var do unless you tell them "
        "otherwise. Layer normalisation divides by d: correction=0.", _norm(correction=1)),
    ("divides-by-d-minus-1-own-eps", "Your variance divides by d - 1: give it correction=0. And eps is a number of your "
        "own: take the one handed over.", _norm(correction=1, divisor=lambda variance, eps: torch.sqrt(variance + 1e-5))),
    ("std-plus-eps", "You divide by std + eps, with torch's std, which divides by d - 1. Here the variance divides "
        "by d (correction=0), and eps stands under the root.", _norm(correction=1, divisor=_outside)),
    ("eps-outside", "You add eps to the standard deviation. It is added to the variance, under the root: "
        "√(σ² + eps).", _norm(divisor=_outside)),
    ("no-eps", "eps is missing. A row of equal numbers then gives 0 / 0 = NaN. Add eps to the variance, "
        "under the root.", _norm(divisor=lambda variance, eps: torch.sqrt(variance))),
    ("own-eps", "eps is a number of your own: take the one that is handed over.",
        _norm(divisor=lambda variance, eps: torch.sqrt(variance + 1e-5))),
    ("divides-by-variance", "You divide by the variance. Divide by its square root: only then is the new "
        "variance 1.", _norm(divisor=torch.add)),
    ("divides-by-variance-no-eps", "You divide by the variance. Divide by its square root, and add eps to it under "
        "the root.", _norm(divisor=lambda variance, eps: variance)),
    ("not-centred", "You divide by the standard deviation, and the mean stays in. Subtract the mean "
        "first.", _norm(centre=False)),
    ("rms-norm", "You leave the mean in, and divide by the root of the mean square. That is RMSNorm, "
        "which many newer models use. LayerNorm subtracts the mean first.",
        lambda x, gain, bias, eps: gain * x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + eps) + bias),
    ("mean-square-of-x", "You subtract the mean, but your σ comes from x itself. Average the squares of "
        "x - μ.", _mean_of(lambda d, x: x.square())),
    ("mean-absolute-deviation", "You divide by the mean of |x - μ|. The standard deviation is the root "
        "of the mean of (x - μ)².", _absolute),
    ("unit-length", "You divide by the length of x - μ, the root of the sum of squares. Take the mean of the "
        "squares: the result then has length √d, and variance 1.", _mean_of(lambda d, x: d.square() * d.shape[-1])),
    ("not-divided", "You subtract the mean. Divide by √(σ² + eps) as well.", _norm(divisor=lambda variance, eps: 1)),
    ("across-tokens", "You normalise each column over the tokens (dim=-2), so the tokens mix. Each token "
        "is normalised by itself, over its d numbers: dim=-1.", _norm(dims=(-2,))),
    ("first-axis", "You normalise over the first axis (dim=0), over the sentences of a batch. Each token "
        "is normalised by itself, over its d numbers: dim=-1.", _norm(dims=(0,))),
    ("second-axis", "You count the axes from the front: dim=1 is the last axis of a (T, d) matrix, and "
        "the tokens of a (B, T, d) batch. dim=-1 is always the last.", _norm(dims=(1,))),
    ("batch-norm", BATCH_NORM,
        lambda x, gain, bias, eps: _norm(dims=tuple(range(x.ndim - 1)))(x, gain, bias, eps)),
    ("batch-norm-of-two-axes", BATCH_NORM, _norm(dims=(0, 1))),
    ("whole-sentence", "You take one mean and one variance for a whole sentence. Each token has its own: "
        "dim=-1.", _norm(dims=(-2, -1))),
    ("everything-at-once", "You take one mean and one variance of all numbers together: x.mean() without "
        "dim. Each token has its own: dim=-1, keepdim=True.", _norm(dims=None)),
    ("variance-of-everything", ONE_VARIANCE, _mean_of(lambda d, x: x.var(correction=0).expand_as(x))),
    ("mean-square-of-everything", ONE_VARIANCE, _mean_of(lambda d, x: d.square().mean().expand_as(x))),
    ("no-gain", "gain is not used. Multiply the normalised x by it.", _norm(finish=lambda y, gain, bias: y + bias)),
    ("no-bias", "bias is not used. Add it at the end.", _norm(finish=lambda y, gain, bias: gain * y)),
    ("neither-gain-nor-bias", "gain and bias are not used. Multiply by gain, then add bias.", _norm(finish=same)),
    ("gain-and-bias-swapped", "You multiply by bias and add gain. It is gain · normalised + bias.",
        _norm(finish=lambda y, gain, bias: bias * y + gain)),
    ("bias-before-gain", "You add bias before you multiply by gain. It is gain · normalised + bias: bias "
        "comes last.", lambda x, gain, bias, eps: layer_norm(x, gain, gain * bias, eps)),
    ("gain-first", "You use gain and bias before normalising, which takes most of both out again. Normalise first.",
        lambda x, gain, bias, eps: layer_norm(gain * x + bias, torch.ones_like(gain), torch.zeros_like(bias), eps)),
))


# ---------------------------------------------------------------- feed_forward


@inputs
def _mlp_inputs(rng, *shape, m, std=1.0):
    d = shape[-1]
    W1, W2 = tensor(rng, d, m, std=d**-0.5), tensor(rng, m, d, std=m**-0.5)
    return tensor(rng, *shape, std=std), W1, _gain(rng, m) / 2, W2, _gain(rng, d) / 2


def _absolute_value(rng):
    """Two hidden units for each number, which together make |x|."""
    one = torch.eye(2).double()
    return (tensor(rng, 2, 2), torch.cat([one, -one], dim=1), torch.zeros(4).double(),
            torch.cat([one, one]), torch.zeros(2).double())


def _all_off(rng):
    """b1 is so low that no hidden unit is on: the result is b2."""
    x, W1, b1, W2, b2 = _mlp_inputs(2, 3, m=4)(rng)
    return x, W1, b1 - 100, W2, b2


def _bend(bend):
    return lambda x, W1, b1, W2, b2: bend(x @ W1 + b1) @ W2 + b2


FEED_FORWARD = Exercise(feed_forward, nudges=(
    ("return_types\\.max|^TypeError: max(imum)?\\(\\)", "torch.maximum compares two tensors, and torch.max takes "
        "a number for an axis. To cut off below 0 there are torch.relu(h) and h.clamp(min=0)."),
    ("'ReLU' and 'Tensor'", "nn.ReLU(h) makes a layer and does not run it. torch.relu(h) gives the numbers."),
), probes=(
    Probe("all units off", _all_off, "b1 is about -100 here, so x W1 + b1 is negative everywhere, the "
        "ReLU gives 0, and the result is b2 in every row."),
    Probe("the absolute value", _absolute_value, "These weights make |x| of every number, as ReLU(x) + "
        "ReLU(-x): first x W1 + b1, then the ReLU, then W2 and b2."),
    Probe("square matrices", _mlp_inputs(2, 3, 4, m=4), "W1 and W2 are square here, so a transposed "
        "matrix goes through without an error. It is x @ W1, as it stands."),
    larger(_mlp_inputs(5, 9, 10, m=11)),
), misconceptions=(
    ("no-relu", "There is no ReLU between the two layers, so they amount to a single matrix, W1 W2. "
        "Replace negative numbers of the hidden layer by 0.", _bend(lambda h: h)),
    ("relu-at-the-end", "The ReLU stands after the second layer. It belongs between the two: at the end it would "
        "only let the MLP add, never subtract.", lambda x, W1, b1, W2, b2: torch.relu((x @ W1 + b1) @ W2 + b2)),
    ("relu-twice", "You apply the ReLU after the second layer as well. The result may be negative: one ReLU, "
        "between the layers.", lambda x, W1, b1, W2, b2: torch.relu(feed_forward(x, W1, b1, W2, b2))),
    ("relu-on-the-input", "The ReLU acts on x. It belongs after the first layer: x W1 + b1 first.",
        lambda x, W1, b1, W2, b2: (torch.relu(x) @ W1 + b1) @ W2 + b2),
    ("relu-before-b1", "You add b1 after the ReLU. It comes before: b1 decides from where on a hidden "
        "unit is on.", lambda x, W1, b1, W2, b2: (torch.relu(x @ W1) + b1) @ W2 + b2),
    ("keeps-the-negative", "You keep the negative numbers and drop the positive ones. ReLU(x) is max(0, "
        "x).", _bend(lambda h: h.clamp(max=0))),
    ("gelu", "You use GELU, as BERT and GPT do. Here, as in 2017, it is ReLU: max(0, x).", _bend(F.gelu)),
    ("sigmoid", "You use the sigmoid. ReLU(x) is max(0, x): it keeps positive numbers.", _bend(torch.sigmoid)),
    ("tanh", "You use tanh. ReLU(x) is max(0, x): it keeps positive numbers as they are.", _bend(torch.tanh)),
    ("softmax", "You put the hidden layer through a softmax. Hidden units do not compete: use ReLU(x) = "
        "max(0, x).", _bend(lambda h: torch.softmax(h, dim=-1))),
    ("absolute-value", "You take the absolute value of the hidden layer. ReLU turns negative numbers "
        "into 0, not into positive ones.", _bend(torch.abs)),
    ("leaky-relu", "Negative numbers become small, not 0: a leaky ReLU. Use max(0, x).", _bend(F.leaky_relu)),
    ("step", "Your hidden units are 0 or 1: you keep whether a number is positive, and lose how large it "
        "is.", _bend(lambda h: (h > 0).to(h.dtype))),
    ("no-b1", "b1 is not used. Add it before the ReLU.",
        lambda x, W1, b1, W2, b2: feed_forward(x, W1, torch.zeros_like(b1), W2, b2)),
    ("no-b2", "b2 is not used. Add it at the end.",
        lambda x, W1, b1, W2, b2: feed_forward(x, W1, b1, W2, torch.zeros_like(b2))),
    ("no-biases", "b1 and b2 are not used. Add b1 before the ReLU and b2 at the end.",
        lambda x, W1, b1, W2, b2: torch.relu(x @ W1) @ W2),
    ("adds-x", "You add x. That is the residual connection, which belongs to the block around the MLP, "
        "not into it.", lambda x, W1, b1, W2, b2: x + feed_forward(x, W1, b1, W2, b2)),
    ("first-layer-only", "You stop after the first layer. The hidden layer is multiplied by W2, which brings it "
        "back to d numbers, and b2 is added.", lambda x, W1, b1, W2, b2: torch.relu(x @ W1 + b1)),
    ("transposed", "You transpose the matrices. torch's nn.Linear and F.linear store them as (out, in). Here they "
        "are (in, out): x @ W1.", lambda x, W1, b1, W2, b2: F.linear(torch.relu(F.linear(x, W1, b1)), W2, b2)),
    ("max-over-axis-0", "torch.max(h, 0) does not compare with 0: it takes the maximum along axis 0. Use "
        "torch.relu(h) or h.clamp(min=0).", _bend(lambda h: torch.max(h, 0).values)),
))


# ---------------------------------------------------------------- pre_norm_block


def _zero(x):
    return torch.zeros_like(x)


def _mixing(rng, T):
    """A stand-in for attention: every row becomes its own mean of the rows, bent a little."""
    M = torch.softmax(tensor(rng, T, T), dim=-1)
    shift = tensor(rng, 1)
    return lambda x: torch.tanh(M.to(x) @ x) + shift.to(x)


def _row_by_row(rng, d):
    """A stand-in for the MLP."""
    W1, b1, W2, b2 = tensor(rng, d, 2 * d), tensor(rng, 2 * d), tensor(rng, 2 * d, d) / d, tensor(rng, d)
    return lambda x: feed_forward(x, W1.to(x), b1.to(x), W2.to(x), b2.to(x))


def _a_norm(rng, d):
    gain, bias = _gain(rng, d), _gain(rng, d)
    return lambda x: layer_norm(x, gain.to(x), bias.to(x), 1e-5)


@inputs
def _block_inputs(rng, *shape, silent=False, std=1.0):
    T, d = shape[-2:]
    return (tensor(rng, *shape, mean=0.5, std=std), _zero if silent else _mixing(rng, T),
            _zero if silent else _row_by_row(rng, d), _a_norm(rng, d), _a_norm(rng, d))


def _whole_numbers(rng):
    """Everything can be followed by hand: the sublayers multiply, the norms add."""
    x = torch.tensor(rng.integers(1, 5, size=(1, 1, 2)) * 1.0)
    return x, lambda x: 2 * x, lambda x: 3 * x, lambda x: x + 10, lambda x: x + 100


@variants
def _steps(x, a, f, n1, n2, *, first=lambda x, a, n: x + a(n(x)), second=lambda x, y, f, n: y + f(n(y)),
           norms=lambda n1, n2: (n1, n2)):
    """The reference with other norms, or another step in the place of one of its two; the second gets x and what came of
    the first, y."""
    n1, n2 = norms(n1, n2)
    return second(x, first(x, a, n1), f, n2)


PRE_NORM_BLOCK = Exercise(pre_norm_block, nudges=(
    ("expected 2, got 1", "The functions that are given here return one tensor, not a pair."),
    ("'function' object has no attribute", "attention is your argument here, a function: attention(norm1(x))."),
), probes=(
    Probe("whole numbers", _whole_numbers, "Follow it by hand: attention doubles, feed_forward triples, "
        "norm1 adds 10, norm2 adds 100. First x + 2 (x + 10)."),
    Probe("a sentence without a batch", _block_inputs(3, 2), "x has shape (T, d) = (3, 2) here, with no "
        "batch in front. The block only adds and calls: it need not know B."),
    larger(_block_inputs(5, 9, 10)),
), misconceptions=(
    ("post-norm", "You normalise after each sum. That is post-norm, as in the original transformer of "
        "2017. In a pre-norm block the norm stands in front of each sublayer, inside the sum.",
        _steps(first=lambda x, a, n: n(x + a(x)), second=lambda x, y, f, n: n(y + f(y)))),
    ("normed-at-the-end", "You normalise what the block returns. The stream goes on as it is; the next block "
        "normalises what it reads.", _steps(second=lambda x, y, f, n: n(y + f(n(y))))),
    ("normed-at-the-end-by-norm1", "You normalise what the block returns. The stream goes on as it is; the next "
        "block normalises what it reads.", lambda x, a, f, n1, n2: n1(pre_norm_block(x, a, f, n1, n2))),
    ("no-residuals", "Nothing is added to x: each sublayer replaces the stream. Add each result to what "
        "went in.", lambda x, a, f, n1, n2: f(n2(a(n1(x))))),
    ("no-first-residual", "Attention replaces the stream. Add it to x.", _steps(first=lambda x, a, n: a(n(x)))),
    ("no-second-residual", "The MLP replaces the stream. Add its result to what went in.",
        _steps(second=lambda x, y, f, n: f(n(y)))),
    ("stream-normalised", "You write x = norm1(x) and then add to that, so the stream itself is "
        "normalised. Only the copy that the sublayer reads is: x + attention(norm1(x)).",
        _steps(first=lambda x, a, n: n(x) + a(n(x)), second=lambda x, y, f, n: n(y) + f(n(y)))),
    ("first-stream-normalised", "In the first step the stream itself is normalised: norm1(x) + …. Add to "
        "x as it is.", _steps(first=lambda x, a, n: n(x) + a(n(x)))),
    ("second-stream-normalised", "In the second step the stream itself is normalised: norm2(…) + …. Add to the "
        "stream as it is.", _steps(second=lambda x, y, f, n: n(y) + f(n(y)))),
    ("second-sum-from-x", "The second sum starts from the block's input again, so what attention added "
        "is lost from the stream. One source prints its block like that. Start from the result of the "
        "first sum.", _steps(second=lambda x, y, f, n: x + f(n(y)))),
    ("second-sum-without-x", "Your second sum is what attention has written plus what the MLP writes, "
        "and x itself is gone. Give the first sum a name, such as x, and start from it in both places "
        "of the second step.", lambda x, a, f, n1, n2: a(n1(x)) + f(n2(x + a(n1(x))))),
    ("parallel", "Both sublayers read the block's input, side by side. Some models do that. Here the MLP reads "
        "the stream after attention has written to it.", lambda x, a, f, n1, n2: x + a(n1(x)) + f(n2(x))),
    ("norms-swapped", "norm1 belongs to the attention and norm2 to the MLP; yours have changed places. Each has "
        "its own learned gain and bias.", _steps(norms=lambda n1, n2: (n2, n1))),
    ("norm1-twice", "You use norm1 for both sublayers. The MLP has a norm of its own, norm2.",
        _steps(norms=lambda n1, n2: (n1, n1))),
    ("mlp-first", "The MLP comes before the attention. Attention gathers first, then the MLP works on "
        "what was gathered.", lambda x, a, f, n1, n2: pre_norm_block(x, f, a, n2, n1)),
    ("mlp-first-norms-kept", "The MLP comes before the attention, and reads norm1. Attention comes "
        "first, with norm1.", lambda x, a, f, n1, n2: pre_norm_block(x, f, a, n1, n2)),
    ("no-norms", "norm1 and norm2 are not used. Each sublayer reads a normalised copy of the stream.",
        _steps(norms=lambda n1, n2: (same, same))),
    ("no-norm1", "The attention reads norm1(x), not x.", _steps(norms=lambda n1, n2: (same, n2))),
    ("no-norm2", "norm2 is not used. The MLP reads a normalised copy of the stream, too.",
        _steps(norms=lambda n1, n2: (n1, same))),
    ("norm-after-sublayer", "You normalise what a sublayer returns. The norm comes first: attention(norm1(x)).",
        lambda x, a, f, n1, n2: pre_norm_block(x, lambda v: n1(a(v)), lambda v: n2(f(v)), same, same)),
    ("attention-only", "The MLP is missing. After attention, add feed_forward of the normalised stream.",
        lambda x, a, f, n1, n2: x + a(n1(x))),
    ("first-of-a-pair", "You take [0] of what attention returns. The function that is given here returns "
        "one tensor, not a pair, so [0] is its first sentence, or its first row.",
        lambda x, a, f, n1, n2: pre_norm_block(x, lambda v: a(v)[0], f, n1, n2)),
    ("mlp-result-only-on-attention", "The MLP reads norm2 of what attention returned, without the stream. It reads "
        "norm2 of the whole sum.", _steps(first=lambda x, a, n: a(n(x)), second=lambda x, y, f, n: x + y + f(n(y)))),
))

EXERCISES = (LAYER_NORM, FEED_FORWARD, PRE_NORM_BLOCK)
