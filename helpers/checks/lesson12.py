"""The exercises of lesson 12: attention rollout, a score for heads, a head taken away, a head from another run."""

import torch

from helpers.checks.core import Contract, Exercise, Probe, inputs, larger, variants
from helpers.inside import ablate_head, attention_rollout, patch_head, previous_token_score


def _tensor(x):
    """In float32, as torch makes everything: zeros and identities that an attempt makes have to fit."""
    return torch.tensor(x, dtype=torch.float32)


NUDGES = (
    ("no attribute 'copy'", "A tensor is copied with .clone(); .copy() is NumPy's."),
    ("no attribute 'astype'", "A tensor changes its kind of numbers with .to(...); .astype() is NumPy's."),
)


def _rows(rng, *shape):
    """Random weights whose rows sum to 1; no two rows and no two columns are alike."""
    return _tensor(rng.dirichlet([0.5] * shape[-1], size=shape[:-1]))


# ---------------------------------------------------------------- attention_rollout


def _layers(n, h, T):
    return lambda rng: ([_rows(rng, h, T, T) for _ in range(n)],)


@inputs
def _with_a_padded_row(rng, heads):
    """Three layers; in the second, row 2 of these heads is 0."""
    layers = [_rows(rng, 3, 4, 4) for _ in range(3)]
    layers[1][heads, 2] = 0
    return (layers,)


@variants
def _roll(attentions, *, join=lambda w: w.mean(0), own=0.5, norm=lambda a: a / a.sum(-1, keepdim=True),
          times=lambda later, so_far: later @ so_far):
    """The reference with the faults that the arguments choose."""
    result = None
    for w in attentions:
        a = join(w)
        a = (1 - own) * a + own * torch.eye(a.shape[-1], dtype=a.dtype)
        a = norm(a)
        result = a if result is None else times(a, result)
    return result


def _identity_once(attentions):
    product = _roll(own=0.0)(attentions)
    return 0.5 * product + 0.5 * torch.eye(product.shape[-1], dtype=product.dtype)


ATTENTION_ROLLOUT = Exercise(attention_rollout, nudges=NUDGES, probes=(
    Probe("one token", _layers(2, 2, 1),
        "With one token everything comes from itself: the result is [[1]]. Do your rows sum to 1?"),
    Probe("one layer, one head", _layers(1, 1, 3),
        "With one layer and one head the result is half the weights plus half the identity."),
    Probe("one layer, several heads", _layers(1, 4, 3),
        "With one layer the result is half the mean over the heads, axis 0, plus half the identity."),
    Probe("two layers, one head", _layers(2, 1, 3), "Two layers are two matrices, each half weights and "
        "half identity, joined by a matrix product. The later layer is on the left."),
    Probe("three layers", _layers(3, 2, 4), "Go from the first layer up: multiply what you have so far, "
        "from the left, by the matrix of each next layer."),
    Probe("a row of zeros", _with_a_padded_row(slice(None)), "In one layer a query attends to nothing, as a padded "
        "one does: its weights are all 0. Only the identity is left: bring the row back to sum 1.", extreme=True),
    Probe("a row of zeros in one head", _with_a_padded_row(0), "In one layer a query of one head attends to "
        "nothing, so its row of the mean sums to less than 1. Divide every row by its own sum.", extreme=True),
), misconceptions=(
    ("no-identity", "You multiply the weights alone. In a real layer each token also keeps its own vector, "
        "through the residual stream: half of each layer's matrix is the identity.", _roll(own=0.0)),
    ("order-reversed", "Your layers are multiplied in the wrong order. The first layer acts first, so it is on "
        "the right: later @ so_far.", _roll(times=lambda later, so_far: so_far @ later)),
    ("last-layer-only", "The result is the last layer's matrix alone. Its tokens are already mixtures: "
        "multiply by all layers before it.", lambda a: attention_rollout(a[-1:])),
    ("first-layer-only", "The result is the first layer's matrix alone. Is your return inside the loop?",
        lambda a: attention_rollout(a[:1])),
    ("identity-once", "You put the identity in once, after the product. Every layer has a residual "
        "stream of its own: mix each matrix with the identity before you multiply.", _identity_once),
    ("rows-grow", "Your rows do not sum to 1: weights plus identity sum to 2, and the sums double with each "
        "layer. Bring the rows of each layer back to sum 1.", lambda a: 2 ** len(a) * _roll(norm=lambda m: m)(a)),
    ("heads-summed", "You add the heads up, so attention outweighs the identity the more heads there "
        "are. Take their mean.", _roll(join=lambda w: w.sum(0))),
    ("heads-max", "You take the largest of the heads. That is a variant that some papers use; here it is "
        "the mean over the heads.", _roll(join=lambda w: w.max(0).values)),
    ("first-head", "You use one head. Take the mean over all heads, axis 0.", _roll(join=lambda w: w[0])),
    ("each-head-alone", "You follow each head through the layers on its own and average at the end. But what head "
        "0 wrote is read by all heads of the next layer: average the heads in each layer first.",
        lambda a: torch.stack([attention_rollout([w[i:i + 1] for w in a]) for i in range(len(a[0]))]).mean(0)),
    ("layers-for-heads", "You average over the layers and multiply over the heads. It is the reverse: each entry "
        "of the list is a layer.", lambda a: attention_rollout([head[None] for head in torch.stack(tuple(a)).mean(0)])),
    ("elementwise", "You multiply number by number with *. Following a path over two layers is a sum over the "
        "token in between: a matrix product, @.", _roll(times=lambda later, so_far: later * so_far)),
    ("layers-added", "You add the layers up. Layers act one after the other, so their matrices are "
        "multiplied.", _roll(times=lambda later, so_far: later + so_far)),
    ("columns-normalised", "Your columns sum to 1. A row says where a token's content comes from, so each row "
        "sums to 1: the last axis.", _roll(norm=lambda m: m / m.sum(-2, keepdim=True))),
    ("softmax-again", "You put a softmax over the rows. They hold weights already: divide each row by "
        "its sum.", _roll(norm=lambda m: torch.softmax(m, -1))),
    ("transposed", "Rows and columns have changed places: the row is the token you ask about, the column "
        "where its content comes from.", lambda a: attention_rollout(a).T),
    ("not-renormalised", "Your rows are right as long as all weights sum to 1. A padded query has weights of 0, "
        "and then its row sums to ½: divide each row by its sum.", _roll(norm=lambda m: m)),
    ("sums-across", "Without keepdim=True the sums lie across: column j is divided by the sum of row j. Keep that axis, "
        "so that each row is divided by its own sum.", _roll(norm=lambda m: m / m.sum(-1))),
), contracts=(
    Contract("an empty list", lambda rng: ([],)),
))

# ---------------------------------------------------------------- previous_token_score


def _heads(h, T):
    return lambda rng: (_rows(rng, h, T, T),)


def _back_and_forth(rng):
    """Head 0 looks back, head 1 ahead, head 2 at itself; what has nowhere to look stays at home."""
    back, ahead = torch.eye(5).roll(-1, 1), torch.eye(5).roll(1, 1)
    back[0], ahead[-1] = torch.eye(5)[0], torch.eye(5)[-1]
    return (torch.stack([back, ahead, torch.eye(5)]),)


def _every_second(rng):
    """One head: rows 1 and 3 look back, the others at themselves."""
    weights = torch.eye(5)
    weights[[1, 3]] = torch.eye(5)[[0, 2]]
    return (weights[None],)


def _diagonal(weights, offset):
    return weights.diagonal(offset=offset, dim1=-2, dim2=-1)


def _argmax_share(weights):
    i = torch.arange(1, weights.shape[-1])
    return (weights[:, 1:].argmax(-1) == i - 1).to(weights.dtype).mean(-1)


PREVIOUS_TOKEN_SCORE = Exercise(previous_token_score, nudges=NUDGES, probes=(
    Probe("two tokens", _heads(1, 2), "Two tokens are one pair: the score is the weight in row 1, column 0.", ),
    Probe("looks back, ahead, at itself", _back_and_forth,
        "Head 0 always looks one token back here, so its score is 1; the other two never do.", draws=1),
    Probe("three tokens", _heads(1, 3), "Average the weights in row 1, column 0 and in row 2, column 1."),
    Probe("looks back from every second token", _every_second, "The head looks one token back from two of four "
        "places here, so its score is ½. A weight of 0 counts in the mean like any other.", draws=1),
    larger(_heads(9, 10)),
), misconceptions=(
    ("next-token", "You average the weights to the token that comes next. The row is the query: one back "
        "is one column to the left, below the diagonal.", lambda w: _diagonal(w, 1).mean(-1)),
    ("itself", "You average the diagonal: the weight of each token on itself. The token before it is one "
        "column to the left.", lambda w: _diagonal(w, 0).mean(-1)),
    ("two-back", "You look two tokens back. One back is the first diagonal below the main one, offset -1.",
        lambda w: _diagonal(w, -2).mean(-1)),
    ("divided-by-T", "The sum is right, but you divide by T. Token 0 has none before it, so there are T "
        "- 1 weights to average.", lambda w: _diagonal(w, -1).sum(-1) / w.shape[-1]),
    ("sum", "You add the weights up. The score is their mean, between 0 and 1.", lambda w: _diagonal(w, -1).sum(-1)),
    ("wraps-around", "For token 0 you use index -1, which is the last token. Begin at token 1.",
        lambda w: w.roll(1, -1).diagonal(0, -2, -1).mean(-1)),
    ("heads-averaged", "You give one number for all heads. Each head has its own: keep the first axis.",
        lambda w: _diagonal(w, -1).mean()),
    ("wrong-axes", "The diagonal runs through heads and queries. torch.diagonal takes the first two axes "
        "unless you say dim1=-2, dim2=-1.", lambda w: w.diagonal(offset=-1).mean(-1)),
    ("block", "A slice [1:, :-1] is a whole block: it pairs every query with every earlier and later "
        "key. Take its diagonal only.", lambda w: w[:, 1:, :-1].mean((-2, -1))),
    ("share-of-winners", "You count how often the previous token has the largest weight. The score is "
        "the mean of the weights themselves.", _argmax_share),
    ("largest", "You take the largest weight. The score is their mean.", lambda w: _diagonal(w, -1).max(-1).values),
    ("all-earlier", "You add up the weights to all earlier tokens. The score asks for the one just "
        "before.", lambda w: w.tril(-1)[:, 1:].sum(-1).mean(-1)),
    ("one-head", "You give the score of head 0 alone. Every head has one: shape (h,).",
        lambda w: _diagonal(w[:1], -1).mean(-1)),
), contracts=(
    Contract("a single token, which has none before it", lambda rng: (_rows(rng, 2, 1, 1),)),
))

# ---------------------------------------------------------------- ablate_head


_ALL = slice(None)


@inputs
def _outputs(rng, B, h, T, d_k, head=None):
    which = int(rng.integers(h)) if head is None else head
    return _tensor(rng.normal(size=(B, h, T, d_k))), _tensor(rng.normal(size=(h * d_k, h * d_k))), which


def _merged(z):
    return z.transpose(1, 2).flatten(2)


def _without(z, head):
    z = z.clone()
    z[:, head] = 0
    return z


def _columns_zeroed(z, W_o, head):
    W, d_k = W_o.clone(), z.shape[-1]
    W[:, head * d_k:(head + 1) * d_k] = 0
    return _merged(z) @ W


def _closed_up(z, W_o, head):
    kept = torch.cat([z[:, :head], z[:, head + 1:]], dim=1)
    return _merged(kept) @ W_o[:kept.shape[1] * z.shape[-1]]


def _interleaved(z, W_o, head):
    merged = _merged(z).clone()
    merged[..., head::z.shape[1]] = 0
    return merged @ W_o


def _changed(at, put=lambda z, head: 0):
    """Something else is written into the places that ``at`` names."""
    def function(z, W_o, head):
        z = z.clone()
        z[at(head)] = put(z, head)
        return _merged(z) @ W_o
    return function


def _not_transposed(z, W_o, head):
    B, h, T, d_k = z.shape
    return _without(z, head).reshape(B, T, h * d_k) @ W_o


ABLATE_HEAD = Exercise(ablate_head, probes=(
    Probe("the only head", _outputs(1, 1, 1, 2, 0),
        "With one head nothing is left when it goes: the result is 0, with shape (B, T, d).", draws=1),
    Probe("first of two heads", _outputs(1, 2, 1, 2, 0), "Head 0 goes, head 1 stays: the result is the "
        "output of head 1 times the second half of the rows of W_o."),
    Probe("second of two heads", _outputs(1, 2, 1, 3, 1), "Head 1 goes, head 0 stays: the result is the "
        "output of head 0 times the first half of the rows of W_o."),
    Probe("several tokens", _outputs(1, 3, 4, 2, 1), "B = 1, T = 4, h = 3. In the concatenation each "
        "token has the numbers of head 0 first, then those of head 1, and so on."),
    larger(_outputs(5, 6, 9, 10)),
), misconceptions=(
    ("only-that-head", "You return the contribution of the head itself. Return the output without it.",
        lambda z, W, i: _merged(z) @ W - ablate_head(z, W, i)),
    ("nothing-removed", "The head is still there: this is the full output. Did you change a copy and "
        "then use the original?", lambda z, W, i: _merged(z) @ W),
    ("counted-from-1", "Another head is missing: heads are counted from 0.",
        lambda z, W, i: ablate_head(z, W, (i - 1) % z.shape[1])),
    ("token-removed", "A token is set to 0 in all heads. The heads are axis 1 of (B, h, T, d_k).",
        _changed(lambda head: (_ALL, _ALL, head))),
    ("sentence-removed", "A whole sentence of the batch is set to 0. The heads are axis 1 of (B, h, T, "
        "d_k).", _changed(lambda head: head)),
    ("column-removed", "One number of every head is set to 0. The heads are axis 1 of (B, h, T, d_k).",
        _changed(lambda head: (..., head))),
    ("heads-not-merged", "You reshape (B, h, T, d_k) to (B, T, d) without moving the heads behind the tokens "
        "first, so heads and tokens are mixed up. Transpose axes 1 and 2 before.", _not_transposed),
    ("W_o-transposed", "You multiply by the transpose of W_o. Here it is concat @ W_o, from the right, "
        "as in lesson 07.", lambda z, W, i: _merged(_without(z, i)) @ W.T),
    ("columns-of-W_o", "You set columns of W_o, or of the output, to 0. A head enters through the rows of W_o; its columns "
        "are where the output goes.", _columns_zeroed),
    ("first-rows", "You take the head away through the first rows of W_o, whichever head it is. Head i "
        "owns rows i·d_k to (i+1)·d_k.", lambda z, W, i: _merged(z) @ W - z[:, i] @ W[:z.shape[-1]]),
    ("closed-up", "You drop the head and push the others together, so those behind it meet the rows of "
        "W_o that belong to another head. Leave its place, filled with 0.", _closed_up),
    ("rescaled", "You stretch the other heads by h / (h - 1), as dropout does. Leave them as they are.",
        lambda z, W, i: ablate_head(z, W, i) * (z.shape[1] / max(z.shape[1] - 1, 1))),
    ("averaged-out", "You put the head's mean over the tokens in its place. That is mean ablation, a "
        "respectable variant; here the contribution is removed, so it is 0.",
        _changed(lambda head: (_ALL, head), lambda z, head: z[:, head].mean(-2, keepdim=True))),
    ("interleaved", "You remove every h-th column. In the concatenation the numbers of a head stand side "
        "by side: columns i·d_k to (i+1)·d_k.", _interleaved),
    ("sum-of-nothing", "With one head nothing is left to add up, and Python's sum of nothing is the "
        "number 0. The result has the shape (B, T, d) all the same: begin with zeros of that shape.",
        lambda z, W, i: ablate_head(z, W, i) if z.shape[1] > 1 else 0),
    ("no-W_o", "The head is gone, but multiply by W_o at the end.", lambda z, W, i: _merged(_without(z, i))),
), contracts=(
    Contract("a head that does not exist, such as head 3 of 3", lambda rng: (*_outputs(2, 3, 4, 2)(rng)[:2], 3)),
    Contract("a negative head, such as -1", lambda rng: (*_outputs(2, 3, 4, 2)(rng)[:2], -1)),
), nudges=(
    ("inner sizes|mat1 and mat2|size of tensor|core dimension", "W_o wants all h · d_k numbers of a token side by side. "
        "Move the heads behind the tokens before you join them, and set a head that goes to 0: do not cut it out."),
    ("non-empty list", "When the only head goes, nothing is left to join: the result is 0, with shape (B, T, d)."),
    *NUDGES,
))

# ---------------------------------------------------------------- patch_head


@inputs
def _two_runs(rng, B, h, T, d_k, head=None, position=None):
    which = int(rng.integers(h)) if head is None else head
    where = int(rng.integers(T)) if position is None else position
    return *(_tensor(rng.normal(size=(B, h, T, d_k))) for _ in range(2)), which, where


def _put(into, source):
    """A wrong version: what ``source`` gives is written into the places that ``into`` names."""
    def function(heads, other, head, position):
        patched = heads.clone()
        patched[into(head, position)] = source(heads, other, head, position)
        return patched
    return function


def _from(into):
    """A wrong version that takes from the other run, at the same places, more or something else than it should."""
    return _put(into, lambda heads, other, head, position: other[into(head, position)])


def _here(head, position):
    return _ALL, head, position


PATCH_HEAD = Exercise(patch_head, nudges=NUDGES, probes=(
    Probe("one head, one token", _two_runs(1, 1, 1, 2, 0, 0), "With one head and one position all of it "
        "comes from `other`.", draws=1),
    Probe("two heads, one token", _two_runs(1, 2, 1, 2, 1, 0), "Head 1 comes from `other`, head 0 from `heads`.", ),
    Probe("one head, two tokens", _two_runs(1, 1, 2, 3, None, 1),
        "At position 1 the head comes from `other`, at position 0 it stays as it is in `heads`."),
    Probe("several texts", _two_runs(3, 2, 2, 2),
        "B = 3: each text of the batch is patched, and from the text of the same number in `other`."),
    Probe("all sizes differ", _two_runs(3, 4, 5, 6, 2, 3),
        "B = 3, h = 4, T = 5, d_k = 6: the heads are axis 1, the positions axis 2."),
    Probe("first head, first position", _two_runs(2, 3, 4, 5, 0, 0),
        "Head 0 at position 0: both are counted from 0, and everything else stays."),
    Probe("last head, a position in the middle", _two_runs(2, 5, 4, 3, 4, 1),
        "Head 4 of 5 at position 1 of 4: all other heads and positions stay."),
    larger(_two_runs(6, 7, 11, 10, 5, 9)),
), misconceptions=(
    ("arguments-exchanged", "The two runs have changed places. The first argument is what is kept, the second "
        "gives the one piece.", lambda heads, other, head, position: patch_head(other, heads, head, position)),
    ("nothing-patched", "Nothing has changed: this is `heads`. Did you write into one copy and return "
        "another?", lambda heads, other, head, position: heads.clone()),
    ("all-other", "You return all of `other`. Take one head at one position from it, and the rest from "
        "`heads`.", lambda heads, other, head, position: other.clone()),
    ("whole-head", "You take the head at every position. Only one position comes from `other`: index "
        "axis 2 as well.", _from(lambda head, position: (_ALL, head))),
    ("whole-position", "You take every head at that position. Only one head comes from `other`: index "
        "axis 1 as well.", _from(lambda head, position: (_ALL, _ALL, position))),
    ("first-text-only", "You patch the first text of the batch alone. A colon, :, in the place of the "
        "first index takes all of them.", _from(lambda head, position: (0, head, position))),
    ("batch-forgotten", "Your first index runs over the texts of the batch, as axis 0 does. Heads are axis 1 and "
        "positions axis 2: begin with a colon.", _from(lambda head, position: (head, position))),
    ("axes-exchanged", "Head and position have changed places: the heads are axis 1 of (B, h, T, d_k), "
        "the positions axis 2.", _from(lambda head, position: (_ALL, position, head))),
    ("donor-axes-exchanged", "The right place is written, but head and position have changed places where you "
        "read from `other`.", _put(_here, lambda heads, other, head, position: other[:, position, head])),
    ("text-for-head", "You use the number of the head for the batch, axis 0. The heads are axis 1 of (B, "
        "h, T, d_k).", _from(lambda head, position: (head, _ALL, position))),
    ("column-for-position", "You use the position on the last axis, which holds the d_k numbers of a "
        "head. Positions are axis 2.", _from(lambda head, position: (_ALL, head, _ALL, position))),
    ("one-number", "Only the first of the d_k numbers comes from `other`. A head's output at a position "
        "is all of them.", _from(lambda head, position: (_ALL, head, position, 0))),
    ("head-counted-from-1", "Another head is patched: heads are counted from 0.",
        lambda heads, other, head, position: patch_head(heads, other, (head - 1) % heads.shape[1], position)),
    ("position-counted-from-1", "Another position is patched, the one before: positions are counted from 0.",
        lambda heads, other, head, position: patch_head(heads, other, head, (position - 1) % heads.shape[2])),
    ("next-position", "Another position is patched, the one behind: positions are counted from 0.",
        lambda heads, other, head, position: patch_head(heads, other, head, (position + 1) % heads.shape[2])),
    ("counted-from-the-end", "A minus sign counts from the end. Head and position are counted from the "
        "front, from 0.", _from(lambda head, position: (_ALL, head, -position))),
    ("always-the-last-position", "You patch the last position, whichever was asked for.",
        _from(lambda head, position: (_ALL, head, -1))),
    ("always-head-0", "You patch head 0, whichever was asked for.",
        _from(lambda head, position: (_ALL, 0, position))),
    ("from-there-on", "You take the head at that position and at all behind it. A slice with a colon, "
        "position:, is too much.", _from(lambda head, position: (_ALL, head, slice(position, None)))),
    ("up-to-there", "You take the head at all positions up to that one. Only that one comes from `other`.",
        _from(lambda head, position: (_ALL, head, slice(None, position + 1)))),
    ("before-it", "You take the head at all positions before that one, which itself stays. A slice ends "
        "before its second number.", _from(lambda head, position: (_ALL, head, slice(None, position)))),
    ("heads-up-to", "You take all heads up to that one. Only that one comes from `other`.",
        _from(lambda head, position: (_ALL, slice(None, head + 1), position))),
    ("added", "You add the other run's output to this run's. It takes its place.",
        _put(_here, lambda heads, other, head, position: heads[:, head, position] + other[:, head, position])),
    ("half-and-half", "You put the mean of the two runs there. Only the other run's output belongs there.",
        _put(_here, lambda heads, other, head, position: (heads + other)[:, head, position] / 2)),
    ("difference", "You put the difference of the two runs there. The other run's output itself belongs "
        "there.", _put(_here, lambda heads, other, head, position: (other - heads)[:, head, position])),
    ("ablated", "You write zeros there. That takes the head away at that position; here it gets the "
        "other run's output.", _put(_here, lambda heads, other, head, position: 0.0)),
    ("one-donor", "All texts get the output from the first text of `other`. Each takes it from the text of its "
        "own number.", _put(_here, lambda heads, other, head, position: other[:1, head, position])),
    ("mean-over-texts", "All texts get the mean over the texts of `other`. Each takes it from the text of its own "
        "number.", _put(_here, lambda heads, other, head, position: other[:, head, position].mean(0))),
    ("mean-over-positions", "You write the head's mean over all positions of `other`. Take its output at "
        "that one position.", _put(_here, lambda heads, other, head, position: other[:, head].mean(1))),
    ("rest-is-zero", "Around the patched place everything is 0. The rest is `heads`: begin with a copy of it.",
        lambda heads, other, head, position: patch_head(torch.zeros_like(heads), other, head, position)),
    ("only-the-piece", "You return the piece alone, (B, d_k). Return all of `heads`, with this piece in "
        "its place.", lambda heads, other, head, position: other[:, head, position]),
), contracts=(
    Contract("a head that does not exist, such as head 3 of 3", _two_runs(2, 3, 4, 2, 3, 1)),
    Contract("a negative position, such as -1", _two_runs(2, 3, 4, 2, 1, -1)),
))

EXERCISES = (PREVIOUS_TOKEN_SCORE, ABLATE_HEAD, PATCH_HEAD, ATTENTION_ROLLOUT)
