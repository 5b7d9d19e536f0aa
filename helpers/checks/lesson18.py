"""The exercises of lesson 18: a linear map with a low-rank adapter, its merging, the loss of the answer, an interval."""

import math

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from helpers.adapters import answer_loss, lora_linear, merge_lora, wilson_interval
from helpers.checks.calls import as_list
from helpers.checks.core import Contract, Exercise, Probe, example, inputs, larger, variants


def _tensor(rng, *shape, std=1.0):
    return torch.tensor(rng.normal(0, std, size=shape))


# ---------------------------------------------------------------- lora_linear


class _Watching(TorchFunctionMode):
    """Notes whether a new matrix of W's size is computed, or filled row by row: a view of W is none, a copy neither."""

    COMPUTES = {"matmul", "rmatmul", "mm", "einsum", "mul", "rmul", "imul", "multiply", "outer", "ger", "add", "radd",
                "iadd", "addmm", "bmm", "dot", "tensordot", "div", "truediv", "linear", "sum", "setitem"}  # __mul__, add_, …

    def __init__(self, W):
        super().__init__()
        self.sizes, self.formed = {tuple(W.shape), tuple(W.mT.shape)}, False

    def __torch_function__(self, function, types, args=(), named=None):
        out = function(*args, **(named or {}))
        made = args[0] if function.__name__ == "__setitem__" else out
        if function.__name__.strip("_") in self.COMPUTES and torch.is_tensor(made) and tuple(made.shape) in self.sizes:
            self.formed = True
        return out


def _without_large_matrices(function, *args):
    """What comes out, and whether a matrix of W's size was formed on the way. The sizes of the probes tell it from
    an output."""
    W = args[1]
    with _Watching(W) as seen:
        out = function(*args)
    return None if out is None else (out, float(seen.formed))


def _adapted(*before, d_in, d_out, r, alpha=3.0):
    """x (*before, d_in) and the matrices."""
    return lambda rng: (_tensor(rng, *before, d_in), _tensor(rng, d_in, d_out), _tensor(rng, d_in, r),
                        _tensor(rng, r, d_out), alpha)


@variants
def _scaled(x, W, A, B, alpha, *, frozen=torch.matmul, scale=lambda alpha, A, B: alpha / A.shape[1],
            thin=lambda x, A, B: x @ A @ B):
    return frozen(x, W) + scale(alpha, A, B) * thin(x, A, B)


LORA_LINEAR = Exercise(lora_linear, use=_without_large_matrices,
    results=("the output", "matrices of W's size formed (0: none)"), probes=(
    example("by hand",
        (torch.tensor([1.0, 2.0]).double(), torch.tensor([[1.0, 0, 2], [0, 1, 1]]).double(),
                                  torch.tensor([[1.0], [1]]).double(), torch.tensor([[1.0, 0, -1]]).double(), 2.0),
        "x = (1, 2): x W = (1, 2, 4). x A = 3, times B gives (3, 0, -3), times alpha / r = 2 gives (6, "
        "0, -6). Together (7, 2, -2)."),
    Probe("rank 1", _adapted(4, d_in=3, d_out=5, r=1, alpha=0.5),
        "r is 1 here, and alpha 0.5: the adapter's part is multiplied by 0.5."),
    Probe("a square W", _adapted(2, d_in=6, d_out=6, r=3, alpha=1.5), "W is square here, so a transposed "
        "one goes through without an error. It is x @ W, as it is given.", special=True),
    Probe("a batch", _adapted(2, 3, d_in=5, d_out=4, r=2),
        "x is (B, T, d_in) here. @ takes the last axis of x, so nothing needs to be turned."),
    larger(_adapted(9, 10, d_in=12, d_out=13, r=11, alpha=7.0)),
), misconceptions=(
    ("formed-and-not-divided", "You multiply by alpha alone, not alpha / r. And you form a matrix of W's size, A B: "
        "go from the left, x A is thin, and then times B.", lambda x, W, A, B, alpha: x @ W + alpha * (x @ (A @ B))),
    ("alpha-not-divided", "You multiply by alpha alone. It is alpha / r, with r the number of columns of "
        "A.", _scaled(scale=lambda alpha, A, B: alpha)),
    ("alpha-forgotten", "The adapter's part comes times alpha / r.", _scaled(scale=lambda alpha, A, B: 1.0)),
    ("divided-by-r-only", "You divide by r, and alpha is not used. The factor is alpha / r.",
        _scaled(scale=lambda alpha, A, B: 1 / A.shape[1])),
    ("times-r", "You multiply by r. Divide: alpha / r.", _scaled(scale=lambda alpha, A, B: alpha * A.shape[1])),
    ("upside-down", "Your factor is r / alpha. It is alpha / r.",
        _scaled(scale=lambda alpha, A, B: A.shape[1] / alpha if alpha else math.inf)),
    ("floor-division", "You divide with //, which cuts off what is behind the point. The factor is alpha / r.",
        _scaled(scale=lambda alpha, A, B: alpha // A.shape[1])),
    ("root-of-r", "You divide alpha by √r. It is r itself here. (A later variant does take the root.)",
        _scaled(scale=lambda alpha, A, B: alpha / A.shape[1]**0.5)),
    ("divided-by-d-in", "You divide alpha by the number of rows of A, which is d_in. r is the number of "
        "its columns: A.shape[1].", _scaled(scale=lambda alpha, A, B: alpha / A.shape[0])),
    ("divided-by-d-out", "You divide alpha by the number of columns of B, which is d_out. r is the number of its "
        "rows: B.shape[0].", _scaled(scale=lambda alpha, A, B: alpha / B.shape[1])),
    ("everything-scaled", "You multiply the whole sum by alpha / r. Only the adapter's part is: x W "
        "stays as it is.", lambda x, W, A, B, alpha: alpha / A.shape[1] * (x @ W + x @ A @ B)),
    ("w-scaled", "You multiply x W by alpha / r, and add the adapter's part as it is. It is the other "
        "way round.", lambda x, W, A, B, alpha: alpha / A.shape[1] * (x @ W) + x @ A @ B),
    ("adapter-only", "What the frozen matrix says is missing: add x W.",
        _scaled(frozen=lambda x, W: 0.0)),
    ("no-adapter", "You give x W alone. Add (alpha / r) (x A) B.", lambda x, W, A, B, alpha: x @ W),
    ("subtracted", "You subtract the adapter's part. It is added.", _scaled(scale=lambda alpha, A, B: -alpha / A.shape[1])),
    ("adapter-after-w", "You let the adapter read what W gives. Both read x: the adapter lies beside W, "
        "and not behind it. (It fits only where W is square.)",
        lambda x, W, A, B, alpha: (x @ W) + alpha / A.shape[1] * (
        (x @ W) @ A @ B if W.shape[0] == W.shape[1] else x @ A @ B)),
    ("w-transposed", "You transpose W where it fits. Tokens are rows here: it is x @ W.",
        lambda x, W, A, B, alpha: x @ (W.mT if W.shape[0] == W.shape[1] else W) + alpha / A.shape[1] * (x @ A @ B)),
    ("a-nonlinearity", "There is a ReLU between A and B. The two are matrices and nothing else, so that they can "
        "be merged.", _scaled(thin=lambda x, A, B: torch.relu(x @ A) @ B)),
    ("number-by-number", "You multiply by B number by number. It is the product of matrices: x @ A @ B.",
        _scaled(thin=lambda x, A, B: x @ A * B)),
    ("x-added", "You add x as well, like a residual connection. The result is x W + (alpha / r) (x A) B.",
        lambda x, W, A, B, alpha: lora_linear(x, W, A, B, alpha) + (x if W.shape[0] == W.shape[1] else 0)),
    ("product-formed", "The numbers are right, but you form a matrix of W's size: A B has as many numbers as W, "
        "and is formed anew at every call. The same goes for W + A B. Go from the left: x A is thin, and then times B.",
        _scaled(thin=lambda x, A, B: x @ (A @ B))),
), nudges=(
    ("cannot be multiplied|size mismatch|must match the size", "x is (…, d_in), A is (d_in, r) and B is (r, d_out): x "
        "meets A first, what comes out meets B, and nothing is turned."),
))

# ---------------------------------------------------------------- merge_lora


def _matrices(d_in, d_out, r, alpha=3.0):
    return lambda rng: (_tensor(rng, d_in, d_out), _tensor(rng, d_in, r), _tensor(rng, r, d_out), alpha)


@variants
def _merged(W, A, B, alpha, *, frozen=1.0, scale=lambda alpha, A, B: alpha / A.shape[1], product=lambda W, A, B: A @ B):
    return frozen * W + scale(alpha, A, B) * product(W, A, B)


def _in_place(W, A, B, alpha):
    W += alpha / A.shape[1] * (A @ B)
    return W + alpha / A.shape[1] * (A @ B)


MERGE_LORA = Exercise(merge_lora, probes=(
    example("by hand", (torch.zeros(2, 2).double(), torch.tensor([[1.0], [2]]).double(),
                                  torch.tensor([[3.0, -1]]).double(), 2.0),
        "W is 0, A the column (1, 2), B the row (3, -1), alpha / r = 2: A B is [[3, -1], [6, -2]], and "
        "the result twice that."),
    Probe("rank 1", _matrices(3, 5, 1, alpha=0.5), "r is 1: A is a column, B a row, and A B has the shape of W.", ),
    Probe("a rank and an alpha", _matrices(5, 4, 3, alpha=12.0),
        "r is 3 and alpha 12: A B is multiplied by 4, and W by nothing."),
    Probe("all of one size", _matrices(4, 4, 4, alpha=2.0),
        "All matrices are 4 × 4 here, so a wrong order goes through without an error: it is A @ B."),
    larger(_matrices(12, 13, 11, alpha=7.0)),
), misconceptions=(
    ("alpha-not-divided", "You multiply by alpha alone. It is alpha / r, with r the number of columns of "
        "A.", _merged(scale=lambda alpha, A, B: alpha)),
    ("alpha-forgotten", "You add A B as it is. Multiply it by alpha / r, as lora_linear does.",
        _merged(scale=lambda alpha, A, B: 1.0)),
    ("divided-by-r-only", "You divide by r, and alpha is not used. The factor is alpha / r.",
        _merged(scale=lambda alpha, A, B: 1 / A.shape[1])),
    ("times-r", "You multiply by r. Divide: alpha / r.", _merged(scale=lambda alpha, A, B: alpha * A.shape[1])),
    ("upside-down", "Your factor is r / alpha. It is alpha / r.", _merged(scale=lambda alpha, A, B: A.shape[1] / alpha)),
    ("floor-division", "You divide with //, which cuts off what is behind the point. The factor is alpha / r.",
        _merged(scale=lambda alpha, A, B: alpha // A.shape[1])),
    ("root-of-r", "You divide alpha by √r. It is r itself here.",
        _merged(scale=lambda alpha, A, B: alpha / A.shape[1]**0.5)),
    ("divided-by-d-in", "You divide alpha by the number of rows of A, which is d_in. r is the number of "
        "its columns.", _merged(scale=lambda alpha, A, B: alpha / A.shape[0])),
    ("divided-by-d-out", "You divide alpha by the number of columns of B, which is d_out. r is the "
        "number of its rows.", _merged(scale=lambda alpha, A, B: alpha / B.shape[1])),
    ("w-left-out", "You give the adapter's matrix alone. Add W: the merged matrix takes its place.",
        _merged(frozen=0.0)),
    ("everything-scaled", "You multiply W by alpha / r too. Only A B is.",
        lambda W, A, B, alpha: alpha / A.shape[1] * (W + A @ B)),
    ("subtracted", "You subtract the adapter. It is added.", _merged(scale=lambda alpha, A, B: -alpha / A.shape[1])),
    ("order-of-the-two", "B comes before A. x meets A first, so the product is A @ B.",
        _merged(product=lambda W, A, B: B @ A)),
    ("number-by-number", "You multiply A and B number by number where it fits. It is the product of matrices: A @ "
        "B.", _merged(product=lambda W, A, B: A * B if A.shape == B.shape else A @ B)),
    ("added-twice", "The adapter is in it twice: does W += … change W before you add to it again?", _in_place),
    ("through-w", "You multiply the adapter by W where it fits. It lies beside W: add the two.",
        _merged(product=lambda W, A, B: W @ A @ B if W.shape[0] == W.shape[1] else A @ B)),
    ("w-times-adapter", "You multiply W by the adapter's matrix. It lies beside W: add the two.",
        lambda W, A, B, alpha: W @ (alpha / A.shape[1] * (A @ B))),
), nudges=(
    ("must match the size", "A is (d_in, r) and B is (r, d_out). * multiplies number by number; their product is A @ B."),
))

# ---------------------------------------------------------------- answer_loss


@inputs
def _dialogues(rng, B, T, V, pad=-1, first=None, padding=0, scale=1.0):
    """Rows of T ids, up to ``padding`` of them padding at the end; the answer begins at ``first``, or at various places."""
    words = [i for i in range(V) if i != pad]
    ids = torch.tensor(rng.choice(words, size=(B, T)))
    cut = [T - n % (padding + 1) for n in range(padding, padding + B)]
    for row, end in zip(ids, cut, strict=True):
        row[end:] = pad
    begins = [int(rng.integers(1, end)) for end in cut] if first is None else [first] * B
    return _tensor(rng, B, T, V, std=2 * scale), ids, torch.tensor(begins), pad


def _foreseen(rng):
    """The logits leave no doubt of the first token of the answer."""
    logits, ids, first, pad = _dialogues(1, 5, 4, first=2)(rng)
    logits[0, 1, ids[0, 2]] = 1000.0
    return logits, ids, first, pad


def _cut_short(rng):
    """Only the first of the three answers is there: the others begin behind the end of their rows."""
    ids = torch.tensor([[1, 2, 3, 4], [1, 2, -1, -1], [2, 3, 1, 0]])
    return _tensor(rng, 3, 4, 5, std=2.0), ids, torch.tensor([2, 3, 4]), -1


def _nll(logits, ids, axis=-1):
    """(B, T): minus the log probability of token t, by the logits before it; 0 for token 0 and where the id is negative."""
    log_p = logits.log_softmax(axis)[:, :-1].gather(-1, ids[:, 1:, None].clamp(min=0))[..., 0]
    return F.pad(-log_p, (1, 0))


def _counted(ids, first, pad, before=0, after=0):
    """(B, T) bool: t ≥ first + ``after`` - ``before``, not padding, not token 0."""
    places = torch.arange(ids.shape[1])
    return (places >= first[:, None] + after - before) & (ids != pad) & (places > 0)


def _by(finish, counted=_counted, axis=-1):
    """``finish(losses, counted)``, both (B, T)."""
    def function(logits, ids, first, pad=-1):
        return finish(_nll(logits, ids, axis), counted(ids, first, pad))
    return function


def _mean(loss, keep):
    return loss[keep].mean()


def _no_shift(logits, ids, first, pad=-1):
    loss = -logits.log_softmax(-1).gather(-1, ids[..., None].clamp(min=0))[..., 0]
    return loss[_counted(ids, first, pad)].mean()


def _no_shift_from_0(logits, ids, first, pad=-1):
    counted = (torch.arange(ids.shape[1]) >= first[:, None]) & (ids != pad)
    return F.cross_entropy(logits[counted], ids[counted])


def _shifted_back(logits, ids, first, pad=-1):
    """The logits at t + 1 for the token at t."""
    loss = -logits.log_softmax(-1)[:, 1:].gather(-1, ids[:, :-1, None].clamp(min=0))[..., 0]
    return loss[_counted(ids, first, pad)[:, :-1]].mean()


def _no_softmax(logits, ids, first, pad=-1):
    chosen = logits[:, :-1].gather(-1, ids[:, 1:, None].clamp(min=0))[..., 0]
    return -F.pad(chosen, (1, 0))[_counted(ids, first, pad)].mean()


def _masked(counted, guard=True):
    """The loss with a mask ``(B, T - 1)`` of the learner's own, and the guard that the task asks for."""
    def function(logits, ids, first, pad=-1):
        mask = counted(ids, first, pad)
        if guard and not mask.any():
            raise ValueError
        return F.cross_entropy(logits[:, :-1][mask], ids[:, 1:][mask])
    return function


ANSWER_LOSS = Exercise(answer_loss, probes=(
    Probe("one token", _dialogues(1, 2, 3, first=1), "T = 2, and the answer begins at 1: one token "
        "counts, token 1, and the logits at place 0 predict it."),
    Probe("an answer of two tokens", _dialogues(1, 5, 4, first=3), "The answer is tokens 3 and 4. The "
        "logits at places 2 and 3 predict them: those two losses, and their mean."),
    Probe("all of it", _dialogues(1, 4, 5, first=0),
        "first is 0 here. Token 0 has nothing before it, so it never counts: tokens 1, 2 and 3 do."),
    Probe("one row, padding", _dialogues(1, 6, 5, padding=2, first=2),
        "The last ids are padding. They count neither in the sum nor in the number to divide by."),
    Probe("two rows", _dialogues(2, 6, 4),
        "Each row has a first of its own: compare a row of places with first[:, None], which is (B, 1)."),
    Probe("another id for padding", _dialogues(3, 6, 7, pad=2, padding=2), "pad is 2 here: use the argument.", ),
    Probe("a token foreseen", _foreseen, "The model is sure of token 2 here, and right: its loss is 0, "
        "and it counts all the same. Count the places, not the losses above 0."),
    Probe("answers cut off", _cut_short, "Rows 1 and 2 end before their answers begin: no token of theirs counts, "
        "and the mean is that of row 0. ValueError is for a batch without any that counts.", draws=1, extreme=True),
    larger(_dialogues(9, 12, 11, padding=4)),
), misconceptions=(
    ("question-counts", "The tokens of the question count as well. It need not learn to ask: only places t ≥ first "
        "of their row count.", _by(_mean, lambda ids, first, pad: _counted(ids, torch.zeros_like(first), pad))),
    ("no-shift", "You compare the logits at t with the token at t, which the model has just read. The "
        "logits at t - 1 predict it.", _no_shift),
    ("no-shift-from-0", "You compare the logits at t with the token at t, which the model has just read, the first one too. "
        "The logits at t - 1 predict it: logits[:, :-1] against ids[:, 1:].", _no_shift_from_0),
    ("backwards", "You shift the wrong way: logits[:, 1:] against ids[:, :-1]. The logits come first: "
        "logits[:, :-1] against ids[:, 1:].", _shifted_back),
    ("first-token-missed", "The first token of the answer does not count: your mask is one place too late. After "
        "the shift, entry i belongs to token i + 1: build the mask over all places, and cut it like the ids, [:, "
        "1:].", _by(_mean, lambda ids, first, pad: _counted(ids, first, pad, after=1))),
    ("mask-cut-at-the-end", "You cut the mask at its end, [:, :-1], so it is one place too late, and can leave "
        "nothing where a token counts. Cut it like the ids, [:, 1:]: entry i then belongs to token i + 1.",
        _masked(lambda ids, first, pad: ((torch.arange(ids.shape[1]) >= first[:, None]) & (ids != pad))[:, :-1])),
    ("later-than-first", "Where one token counts, your mask leaves nothing, and your own guard stops. "
        "The first token of the answer counts: is it >= and not >, and is the mask cut like the ids, "
        "[:, 1:]?", _masked(lambda ids, first, pad: _counted(ids, first, pad, after=1)[:, 1:])),
    ("one-too-early", "The last token of the question counts too: your mask is one early. Build it over all places, "
        "and cut it like ids: [:, 1:].", _by(_mean, lambda ids, first, pad: _counted(ids, first, pad, before=1))),
    ("parentheses-behind", "& is computed before >=, so the places meet the other mask first. Each comparison needs "
        "parentheses of its own: (places >= first[:, None]) & (ids != pad).",
        _masked(lambda ids, first, pad: (torch.arange(ids.shape[1]) >= first[:, None] & (ids != pad))[:, 1:])),
    ("parentheses-before", "& is computed before >=, so the other mask meets the places first. Each comparison needs "
        "parentheses of its own: (ids != pad) & (places >= first[:, None]).",
        _masked(lambda ids, first, pad: ((ids != pad) & torch.arange(ids.shape[1]) >= first[:, None])[:, 1:], guard=False)),
    ("pad-counts", "Padding counts as a token of the answer. Leave out the places where ids equal pad.",
        _by(_mean, lambda ids, first, pad: _counted(ids, first, -10**9))),
    ("pads-in-the-divisor", "The loss of what does not count is 0, but you divide by all places. Divide "
        "by the number of those that count.", _by(lambda loss, keep: (loss * keep)[:, 1:].mean())),
    ("sum", "You return the sum. Divide by the tokens that count.", _by(lambda loss, keep: loss[keep].sum())),
    ("minus-the-sum", "You return minus the sum. The loss is the mean of -log p over the tokens that count.",
        _by(lambda loss, keep: -loss[keep].sum())),
    ("divided-by-rows", "You divide by the number of rows. Divide by the number of tokens that count.",
        _by(lambda loss, keep: loss[keep].sum() / len(loss))),
    ("mean-of-means", "You average each answer first, and then the answers, so tokens of short ones weigh more. "
        "Take one mean over all counted ones.", _by(lambda loss, keep: ((loss * keep).sum(1) / keep.sum(1)).mean())),
    ("first-of-row-0", "You use the first of row 0 for all rows. Each row has its own: first[:, None].",
        _by(_mean, lambda ids, first, pad: _counted(ids, first[:1], pad))),
    ("earliest-first", "You let all rows begin at the earliest first. Each row has its own: first[:, "
        "None].", _by(_mean, lambda ids, first, pad: _counted(ids, first.min()[None], pad))),
    ("only-the-first", "Only the first token of each answer counts. All from there on do: t ≥ first.",
        _by(_mean, lambda ids, first, pad: _counted(ids, first, pad) & (
        torch.arange(ids.shape[1]) == first.clamp(min=1)[:, None]))),
    ("answer-left-out", "You count the question and leave out the answer. It is the other way round: t ≥ "
        "first.", _by(_mean, lambda ids, first, pad: ~_counted(ids, first, -10**9) & (ids != pad) & (
        torch.arange(ids.shape[1]) > 0) | (first[:, None] < 2) & (torch.arange(ids.shape[1]) == 1))),
    ("pad-is-minus-1", "You take -1 for padding, whatever pad is. Compare ids with the argument pad.",
        _by(_mean, lambda ids, first, pad: _counted(ids, first, -1))),
    ("id-0-left-out", "You keep the ids above 0, but 0 is a token too. Leave out those that equal pad.",
        _by(_mean, lambda ids, first, pad: _counted(ids, first, -10**9) & (ids > 0))),
    ("softmax-twice", "You apply a softmax before cross_entropy, which has one inside. Give it the logits "
        "themselves.", lambda logits, ids, first, pad=-1: answer_loss(logits.softmax(-1), ids, first, pad)),
    ("softmax-over-places", "Your softmax runs over the places. The probabilities of the V words sum to "
        "1: use the last axis.", _by(_mean, axis=1)),
    ("no-softmax", "You take the logit itself. The loss is minus the logarithm of the probability: "
        "log_softmax first.", _no_softmax),
    ("no-log", "You take the probabilities as they are. The loss is minus their LOGARITHM.",
        _by(lambda loss, keep: -(-loss[keep]).exp().mean())),
    ("sign", "Your loss is negative. The loss is -log p.", _by(lambda loss, keep: -loss[keep].mean())),
    ("bits", "These are bits. Use the natural logarithm.", _by(lambda loss, keep: loss[keep].mean() / math.log(2))),
    ("not-averaged", "You give a loss for each token. Return their mean.", _by(lambda loss, keep: loss[keep])),
    ("zeros-not-counted", "You count the losses that are not 0. That of a token that counts may be 0 too: divide by "
        "the places in your mask.", _by(lambda loss, keep: (loss * keep).sum() / (loss * keep != 0).sum())),
), nudges=(
    ("^ValueError: Expected input batch_size", "You have more ids than logits, or fewer. Token 0 never "
        "counts: where first is 0, first - 1 is -1, which counts from the end."),
    ("^ValueError: (?!Expected|.*values to unpack)", "Here a token counts, and your guard stops: is the "
        "mask cut like the ids, [:, 1:], is it >= first, with parentheses around each comparison, and does the guard ask "
        "all rows together?"),
    ("Boolean value of Tensor", "Join two conditions with &, each in parentheses: (places >= first[:, None]) & "
        "(ids != pad). Of a mask, ask .any()."),
    ("^IndexError: The shape of the mask", "The mask and what it picks from must have the same places. The logits "
        "lose their last one, logits[:, :-1], so ids and mask both lose their first: [:, 1:]."),
    ("Expected target size|too many indices for tensor of dimension 1",
        "cross_entropy takes (n, V) and (n,). Pick with the mask first: logits[:, :-1][mask] is (n, V)."),
    ("Target -?\\d+ is out of bounds", "Padding must not reach cross_entropy: pad, such as -1, is the id of no "
        "token. Leave out the places where ids equal pad, in logits and in ids, before you call cross_entropy."),
), contracts=(
    Contract("a batch in which no token counts, as where only padding is left",
        lambda rng: (torch.zeros(2, 4, 4), torch.tensor([[1, 2, -1, -1], [1, 2, 3, 1]]), torch.tensor([2, 5]), -1)),
    Contract("a batch in which only token 0 would count", lambda rng: (torch.zeros(1, 3, 4), torch.tensor([[2, -1, -1]]),
        torch.tensor([0]), -1)),
))

# ---------------------------------------------------------------- wilson_interval


def _drawn(rng):
    n = int(rng.integers(5, 60))
    return int(rng.integers(1, n)), n


def _textbook(s, n, z):
    return z * (s / n * (1 - s / n) / n) ** 0.5


@variants
def _wilson(successes, n, *, z=1.96, middle=lambda s, n, z: (s + z**2 / 2) / (n + z**2),
            half=lambda s, n, z: z / (n + z**2) * (s * (n - s) / n + z**2 / 4) ** 0.5):
    m, h = middle(successes, n, z), half(successes, n, z)
    return m - h, m + h


_CLOSE = 2e-4  # more than it makes if z² is 3.84, as in the text

WILSON_INTERVAL = Exercise(wilson_interval, use=as_list, results=("low", "high"), probes=(
    example("12 of 12", (12, 12), "All 12 went well. The interval ends at 1, and begins at 12 / (12 "
        "+ 3.84) = 0.76 (3.84 is z², and not z): with a true share of 0.8 one still sees 12 of 12 in 7 "
        "% of all tests.", absolute=_CLOSE),
    example("0 of 8", (0, 8), "None of 8 went well: from 0 to 3.84 / (8 + 3.84) = 0.32.", absolute=_CLOSE),
    example("half", (10, 20), "Half of 20: it is symmetric about 0.5, from 0.30 to 0.70.", absolute=_CLOSE),
    Probe("any", _drawn, "The middle is (successes + z²/2) / (n + z²), and on both sides of it lies z / (n + z²) "
        "times the root of successes · (n - successes) / n + z²/4, with z = 1.96.", draws=4, absolute=_CLOSE),
), misconceptions=(
    ("textbook-interval", "You take p ± 1.96 √(p (1 - p) / n). With 12 of 12 it says from 1 to 1, as if "
        "nothing could go wrong. Wilson's interval draws the middle towards a half, and never shrinks "
        "to nothing.", _wilson(middle=lambda s, n, z: s / n, half=_textbook)),
    ("middle-not-drawn-in", "Your half-width is right, but it lies around successes / n. The middle is "
        "(successes + z²/2) / (n + z²).", _wilson(middle=lambda s, n, z: s / n)),
    ("textbook-width", "Your middle is right, but the half-width is the textbook's. It is z / (n + z²) · "
        "√(successes (n - successes) / n + z²/4).", _wilson(half=_textbook)),
    ("z-not-squared", "You write z where z² belongs. The middle is (successes + z²/2) / (n + z²), and z² "
        "occurs in the half-width too.", _wilson(middle=lambda s, n, z: (s + z / 2) / (n + z),
               half=lambda s, n, z: z / (n + z) * (s * (n - s) / n + z / 4) ** 0.5)),
    *((f"z-is-{z}", f"You take z = {z}, which is for {percent} %. For 95 % it is 1.96.", _wilson(z=z))
        for z, percent in ((1.645, 90), (1.64, 90), (2.576, 99), (1, 68), (2, "95.4"))),
    ("no-brackets-before-the-root", "Before the root you divide by n alone: / goes before +. Put brackets round n + z².",
        _wilson(half=lambda s, n, z: z / n + z**2 * (s * (n - s) / n + z**2 / 4) ** 0.5)),
    ("no-brackets-in-the-middle", "In the middle you divide by n alone: / goes before +. Put brackets round n + z².",
        _wilson(middle=lambda s, n, z: (s + z**2 / 2) / n + z**2)),
    ("root-forgotten", "The root is missing in the half-width.",
        _wilson(half=lambda s, n, z: z / (n + z**2) * (s * (n - s) / n + z**2 / 4))),
    ("divided-by-n", "Before the root you divide by n. It is z / (n + z²).",
        _wilson(half=lambda s, n, z: z / n * (s * (n - s) / n + z**2 / 4) ** 0.5)),
    ("z-squared-before-the-root", "Before the root you take z². It is z / (n + z²).",
        _wilson(half=lambda s, n, z: z**2 / (n + z**2) * (s * (n - s) / n + z**2 / 4) ** 0.5)),
    ("z-before-the-root-forgotten", "Before the root there is a z too: z / (n + z²).",
        _wilson(half=lambda s, n, z: (s * (n - s) / n + z**2 / 4) ** 0.5 / (n + z**2))),
    ("n-forgotten", "Under the root the product of successes and failures is divided by n.",
        _wilson(half=lambda s, n, z: z / (n + z**2) * (s * (n - s) + z**2 / 4) ** 0.5)),
    ("quarter-forgotten", "z²/4 is missing under the root, so that the interval of 12 of 12 has no width.",
        _wilson(half=lambda s, n, z: z / (n + z**2) * (s * (n - s) / n) ** 0.5)),
    ("half-under-the-root", "Under the root stands z²/4, and not z²/2 as in the middle.",
        _wilson(half=lambda s, n, z: z / (n + z**2) * (s * (n - s) / n + z**2 / 2) ** 0.5)),
    ("half-forgotten", "The middle is drawn in too far: z² is added to the successes where z²/2 belongs.",
        _wilson(middle=lambda s, n, z: (s + z**2) / (n + z**2))),
    ("plus-two-plus-four", "You add two successes and two failures, and take the textbook's interval of "
        "that (Agresti and Coull 1998). It is close to Wilson's, and another one.",
        _wilson(middle=lambda s, n, z: (s + 2) / (n + 4), half=lambda s, n, z: _textbook(s + 2, n + 4, z))),
    ("failures", "You have the interval of the failures: successes and failures have changed places.",
        lambda successes, n: _wilson()(n - successes, n)),
    ("swapped", "Low and high have changed places.", lambda successes, n: _wilson()(successes, n)[::-1]),
    ("percent", "You give percentages. The ends are shares, from 0 to 1.",
        lambda successes, n: tuple(100 * end for end in _wilson()(successes, n))),
    ("counts", "You give numbers of successes. Divide by n: the ends are shares, from 0 to 1.",
        lambda successes, n: tuple(n * end for end in _wilson()(successes, n))),
    ("middle-and-half", "You give the middle and the half-width. Return the two ends: middle - half, "
        "middle + half.", lambda successes, n: (sum(_wilson()(successes, n)) / 2,
                             (_wilson()(successes, n)[1] - _wilson()(successes, n)[0]) / 2)),
    ("rounded", "You round the ends. Return them as they are, and round where you print.",
        lambda successes, n: tuple(round(end, 2) for end in _wilson()(successes, n))),
    ("whole-division", "You divide by // somewhere, which drops what is behind the point: 3 // 4 is 0. "
        "Use /.", _wilson(half=lambda s, n, z: z / (n + z**2) * (s * (n - s) // n + z**2 / 4) ** 0.5)),
), contracts=(
    Contract("no tries", lambda rng: (0, 0)),
    Contract("more successes than tries", lambda rng: (5, 4)),
    Contract("fewer successes than none", lambda rng: (-1, 4)),
))

EXERCISES = (LORA_LINEAR, MERGE_LORA, ANSWER_LOSS, WILSON_INTERVAL)
