"""Assignment 4: block, decoding, a trained model (lessons 09 to 11). Inputs are torch tensors."""

import torch

from classroom.tasks import Task
from helpers.checks.core import Contract, Exercise, Misconception, Probe, larger


def rms_norm(x, gain, eps):
    """x (..., d), gain (d,) -> (..., d): x / sqrt(mean(x²) + eps) * gain, over the last axis (Zhang and
    Sennrich " "2019)."""
    return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + eps) * gain


def gated_feed_forward(x, W_gate, W_up, W_down):
    """x (..., d), W_gate and W_up (d, m), W_down (m, d) -> (..., d): (silu(x W_gate) * (x W_up)) W_down, with
    silu(z) = z sigmoid(z) (Shazeer 2020, "SwiGLU")."""
    z = x @ W_gate
    return (z * torch.sigmoid(z) * (x @ W_up)) @ W_down


def beam_step(scores, log_probs, k):
    """scores (b,), log_probs (b, V) -> beams (k,), tokens (k,), scores (k,): the k best continuations, best
    first."""
    b, V = log_probs.shape
    if not 1 <= k <= b * V:
        raise ValueError(f"There are {b * V} continuations; k is {k}.")
    best, index = (scores[:, None] + log_probs).flatten().topk(k)
    return index // V, index % V, best


def token_accuracy(logits, targets, pad):
    """logits (B, T, V), targets (B, T) -> a scalar: the share of tokens other than ``pad`` that the largest
    logit names; 0 when there are none."""
    real = targets != pad
    right = (logits.argmax(dim=-1) == targets) & real
    return right.sum() / real.sum().clamp(min=1)


def _normal(rng, *shape, scale=1.0, shift=0.0):
    return torch.tensor(rng.normal(size=shape) * scale + shift)


# ---------------------------------------------------------------- rms_norm


def _rms(*shape, scale=1.0, shift=0.0, eps=1e-5):
    return lambda rng: (_normal(rng, *shape, scale=scale, shift=shift), _normal(rng, shape[-1], shift=1.5),
                        eps)


def _mean_square(x, axis=-1):
    return (x * x).mean(dim=axis, keepdim=True)


RMS_NORM = Exercise(
    reference=rms_norm,
    probes=(
        Probe("one vector", _rms(4), (
            "One vector: divide by the root of its mean square, then multiply by the gain."
        )),
        Probe("rows with a mean", _rms(2, 3, shift=4.0), (
            "The mean is not subtracted here, unlike in LayerNorm."
        )),
        Probe("three axes", _rms(2, 3, 5, scale=3.0), (
            "Each vector along the last axis is treated by itself."
        )),
        Probe("a large eps", _rms(3, 4, eps=2.0), (
            "eps is large here, to show where it stands: inside the root, added once."
        )),
        Probe("zeros", lambda rng: (torch.zeros(2, 3, dtype=torch.float64), _normal(rng, 3), 1e-5), (
            "A vector of zeros stays zeros: eps keeps the division from 0/0."
        ), extreme=True),
        larger(_rms(5, 9, 10)),
    ),
    misconceptions=(
        Misconception("layer-norm", (
            "You subtract the mean: this is LayerNorm. RMSNorm leaves the mean where it is."
        ),
            lambda x, g, eps: (x - x.mean(-1, keepdim=True))
            / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps) * g),
        Misconception("no-root", (
            "You divide by the mean square. Divide by its root."
        ), lambda x, g, eps: x / (_mean_square(x) + eps) * g),
        Misconception("sum", (
            "You sum the squares. RMS takes their mean."
        ), lambda x, g, eps: x / torch.sqrt((x * x).sum(-1, keepdim=True) + eps) * g),
        Misconception("eps-outside", (
            "eps stands outside the root. It belongs inside, beside the mean square."
        ), lambda x, g, eps: x / (torch.sqrt(_mean_square(x)) + eps) * g),
        Misconception("no-eps", (
            "eps has no effect in your function, and a vector of zeros gives NaN. Add it to the mean "
            "square."
        ), lambda x, g, eps: x / torch.sqrt(_mean_square(x)) * g),
        Misconception("no-gain", (
            "You leave out the gain."
        ), lambda x, g, eps: rms_norm(x, torch.ones_like(g), eps)),
        Misconception("gain-plus-one", (
            "You multiply by 1 + gain. Multiply by the gain."
        ), lambda x, g, eps: rms_norm(x, 1 + g, eps)),
        Misconception("whole-array", (
            "You take the mean square of everything. Each vector has its own: dim=-1, keepdim=True."
        ), lambda x, g, eps: x / torch.sqrt((x * x).mean() + eps) * g),
        Misconception("first-axis", (
            "You normalise along the first axis. A vector lies along the last: dim=-1."
        ), lambda x, g, eps: x / torch.sqrt(_mean_square(x, 0) + eps) * g),
    ),
)

# ---------------------------------------------------------------- gated_feed_forward


def _gated(d, m, *shape):
    return lambda rng: (_normal(rng, *shape, d), _normal(rng, d, m), _normal(rng, d, m), _normal(rng, m, d))


def _gate(function, swapped=False):
    def gated(x, W_gate, W_up, W_down):
        if swapped:
            W_gate, W_up = W_up, W_gate
        return (function(x @ W_gate) * (x @ W_up)) @ W_down
    return gated


silu = torch.nn.functional.silu

GATED_FEED_FORWARD = Exercise(
    reference=gated_feed_forward,
    probes=(
        Probe("one number", _gated(1, 1, 1), (
            "With one number each: z sigmoid(z) times x W_up, times W_down, for z = x W_gate."
        )),
        Probe("wider inside", _gated(2, 5, 3), (
            "d = 2 and m = 5: two products lead up to m, one leads back to d."
        )),
        Probe("a batch", _gated(3, 4, 2, 5), (
            "Any axes may stand in front; the last has the d numbers of a token."
        )),
        larger(_gated(9, 10, 5, 11)),
    ),
    misconceptions=(
        Misconception("no-gate", (
            "You leave out the second factor, x W_up."
        ), lambda x, a, b, c: silu(x @ a) @ c),
        Misconception("sigmoid", (
            "You use sigmoid(z) as the gate. silu(z) is z sigmoid(z)."
        ), _gate(torch.sigmoid)),
        Misconception("relu", "You use ReLU. The gate is silu(z) = z sigmoid(z).", _gate(torch.relu)),
        Misconception("gelu", (
            "You use GELU. The gate is silu(z) = z sigmoid(z), which is close, but not the same."
        ), _gate(torch.nn.functional.gelu)),
        Misconception("tanh", "You use tanh. The gate is silu(z) = z sigmoid(z).", _gate(torch.tanh)),
        Misconception("factors-swapped", (
            "silu stands on the wrong factor: it belongs to x W_gate."
        ), _gate(silu, swapped=True)),
        Misconception("added", (
            "You add the two factors. A gate multiplies."
        ), lambda x, a, b, c: (silu(x @ a) + x @ b) @ c),
        Misconception("residual", (
            "You add x. The residual connection belongs to the block around it."
        ), lambda x, a, b, c: x + gated_feed_forward(x, a, b, c)),
        Misconception("both-gated", (
            "You apply silu to both factors. Only the gate is bent."
        ), lambda x, a, b, c: (silu(x @ a) * silu(x @ b)) @ c),
    ),
)

# ---------------------------------------------------------------- beam_step


def _beams(b, V, k):
    def make(rng):
        log_probs = torch.log_softmax(_normal(rng, b, V, scale=1.5), dim=-1)
        return _normal(rng, b, scale=1.5, shift=-4.0), log_probs, k
    return make


def _one_each(scores, log_probs, k):
    """The best token of each beam."""
    best, tokens = (scores[:, None] + log_probs).max(dim=-1)
    order = best.argsort(descending=True)[:k]
    return order, tokens[order], best[order]


def _with_total(total, given=None):
    best, index = total.flatten().topk(given)
    return index // total.shape[1], index % total.shape[1], best


BEAM_STEP = Exercise(
    reference=beam_step,
    probes=(
        Probe("one beam", _beams(1, 4, 2), (
            "With one beam: its k best tokens, each with the old score plus its log probability."
        )),
        Probe("k is 1", _beams(3, 4, 1), "The best of all b · V continuations."),
        Probe("three of two beams", _beams(2, 5, 3), (
            "All continuations of all beams compete with each other; one beam may have several."
        ), draws=4),
        Probe("wider", _beams(4, 9, 6), (
            "b = 4, V = 9, k = 6: three results of shape (6,), sorted by score, best first."
        ), draws=4),
        larger(_beams(9, 10, 8)),
    ),
    misconceptions=(
        Misconception("one-each", (
            "You take the best token of each beam. All continuations compete: a good beam may go on twice."
        ), _one_each),
        Misconception("old-scores-ignored", (
            "You look at the new log probabilities alone. The score of a continuation is the sum."
        ), lambda s, L, k: _with_total(L, k)),
        Misconception("product", (
            "You multiply scores and log probabilities. Logarithms of a product are added."
        ), lambda s, L, k: _with_total(s[:, None] * L, k)),
        Misconception("probabilities", (
            "You add probabilities to log scores. Stay with logarithms."
        ), lambda s, L, k: _with_total(s[:, None] + L.exp(), k)),
        Misconception("flat-index", (
            "You return positions in the flattened table. Divide by V: the quotient is the beam, the rest "
            "the token."
        ), lambda s, L, k: (lambda best, index: (index, index, best))(*(s[:, None] + L).flatten().topk(k))),
        Misconception("beam-and-token-swapped", (
            "The first two results have changed places: beams, tokens, scores."
        ), lambda s, L, k: (lambda beams, tokens, best: (tokens, beams, best))(*beam_step(s, L, k))),
        Misconception("worst", (
            "You return the worst continuations: the largest log probability is the best."
        ), lambda s, L, k: (lambda b, t, v: (b, t, -v))(*_with_total(-(s[:, None] + L), k))),
        Misconception("divided-by-b", (
            "You divide the position by the number of beams. A row of the table has V entries."
        ),
            lambda s, L, k: (lambda best, index: (index // L.shape[0], index % L.shape[0], best))(
                *(s[:, None] + L).flatten().topk(k))),
        Misconception("worst-first", (
            "The right continuations, the best last. The best comes first."
        ), lambda s, L, k: tuple(value.flip(0) for value in beam_step(s, L, k))),
    ),
    contracts=(Contract("a k larger than b · V", lambda rng: _beams(1, 2, 3)(rng)),),
)

# ---------------------------------------------------------------- token_accuracy


def _text(B, T, V, padded=0.3):
    def make(rng):
        logits, pad = _normal(rng, B, T, V), int(rng.integers(V))
        targets = torch.where(torch.tensor(rng.random((B, T)) < 0.6), logits.argmax(-1),
                              torch.tensor(rng.integers(V, size=(B, T))))
        targets[torch.tensor(rng.random((B, T)) < padded)] = pad
        targets[0, 0] = (pad + 1) % V
        return logits, targets, pad
    return make


def _shares(logits, targets, pad):
    real = targets != pad
    return (logits.argmax(-1) == targets) & real, real


def _mean_of_rows(logits, targets, pad):
    right, real = _shares(logits, targets, pad)
    return (right.sum(1) / real.sum(1).clamp(min=1)).mean()


TOKEN_ACCURACY = Exercise(
    reference=token_accuracy,
    probes=(
        Probe("no padding", _text(1, 6, 5, padded=0.0), (
            "The share of positions where the largest logit is that of the target."
        ), draws=3),
        Probe("padding", _text(3, 8, 4), (
            "Padding counts neither as right nor as a token: divide by the number of real tokens."
        ), draws=4),
        Probe("uneven rows", _text(4, 9, 3, padded=0.6), (
            "All tokens of the batch count alike, those of short rows as well."
        ), draws=4),
        Probe("a single token", lambda rng: (torch.eye(3)[None, :2].double(), torch.tensor([[0, 2]]), 2), (
            "One real token, and it is right: the share is 1."
        ), draws=1),
        Probe("only padding", lambda rng: (_normal(rng, 2, 3, 4), torch.full((2, 3), 1), 1), (
            "Nothing but padding: 0 by convention, not NaN."
        ), extreme=True),
        larger(_text(9, 10, 11)),
    ),
    misconceptions=(
        Misconception("padding-counts", (
            "You count padding as well. Leave it out of both sums."
        ), lambda L, t, pad: (L.argmax(-1) == t).double().mean()),
        Misconception("divided-by-all", (
            "You divide by all positions. Divide by the number of real tokens."
        ), lambda L, t, pad: _shares(L, t, pad)[0].double().mean()),
        Misconception("padding-is-right", (
            "Padding adds to the right answers. Only real tokens may."
        ), lambda L, t, pad: (L.argmax(-1) == t).sum() / _shares(L, t, pad)[1].sum().clamp(min=1)),
        Misconception("mean-of-rows", (
            "You average over rows, so tokens of short rows count for more. Sum over the batch first."
        ), _mean_of_rows),
        Misconception("error-rate", (
            "This is the share of wrong tokens."
        ), lambda L, t, pad: 1 - token_accuracy(L, t, pad)),
        Misconception("count", (
            "You return the number of right tokens. Divide by the number of real ones."
        ), lambda L, t, pad: _shares(L, t, pad)[0].sum().double()),
        Misconception("smallest", (
            "You take the smallest logit. The model's choice is the largest."
        ), lambda L, t, pad: token_accuracy(-L, t, pad)),
        Misconception("shifted", (
            "You compare with the token one place on. The targets are already in place here."
        ), lambda L, t, pad: token_accuracy(L[:, :-1], t[:, 1:], pad)),
        Misconception("zero-over-zero", (
            "Right unless everything is padding: then 0/0 gives NaN, and 0 is asked for."
        ), lambda L, t, pad: _shares(L, t, pad)[0].sum() / _shares(L, t, pad)[1].sum()),
    ),
)

TASKS = {
    "rms_norm": Task(RMS_NORM, forbidden=("RMSNorm", "layer_norm")),
    "gated_feed_forward": Task(GATED_FEED_FORWARD),
    "beam_step": Task(BEAM_STEP),
    "token_accuracy": Task(TOKEN_ACCURACY),
}
