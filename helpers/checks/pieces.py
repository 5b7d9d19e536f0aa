"""What the checkers of several lessons draw, and what their wrong functions are built of: torch tensors all."""

import functools
import math

import torch

from helpers.checks.core import variants


def tensor(rng, *shape, mean=0.0, std=1.0):
    """Normal numbers of this mean and standard deviation, float64, drawn from a generator of NumPy's."""
    return torch.tensor(rng.normal(mean, std, size=shape))


def single(rng, *shape, mean=0.0, std=1.0):
    """The same in float32, as in a model, and as what torch.full makes: a mask of -inf, for example."""
    return tensor(rng, *shape, mean=mean, std=std).float()


def same(x, *others):
    """A step left out: what goes in comes out."""
    return x


def joined(k, v, cache, axis=-2):
    """The keys and values of a cache, None at the beginning, with the new ones behind them."""
    return (k, v) if cache is None else (torch.cat([cache[0], k], axis), torch.cat([cache[1], v], axis))


def spread(x, h):
    """(B, g, T, d_k) -> (B, h, T, d_k): every query head gets its group, 0 0 1 1."""
    return x.repeat_interleave(h // x.shape[1], 1)


def spread_in_turn(x, h):
    """The groups handed out wrongly, 0 1 0 1."""
    return x.repeat(1, h // x.shape[1], 1, 1)


# ---------------------------------------------------------------- attention with groups and a cache: lessons 14 and 16


@variants
def attends(q, k, v, cache=None, *, see=joined, keep=joined, spread_keys=spread, spread_values=spread,
            offset=lambda T, n: n - T, scale=lambda q: math.sqrt(q.shape[-1]), dim=-1, form=same,
            hide=lambda scores, may: scores.masked_fill(~may, -math.inf), share=lambda weights, may: weights):
    """`cached_attention`, with the faults that the arguments choose: ``see`` and ``keep`` join new keys and values with
    the cache, ``offset(T, n)`` is the diagonal of the mask for T new tokens and n keys, ``hide`` hides scores, ``dim`` is
    the axis of the softmax, ``share`` changes the weights and ``form`` the output."""
    h, T = q.shape[1:3]
    K, V = see(k, v, cache)
    may = torch.ones(T, K.shape[2]).tril(offset(T, K.shape[2])).bool()
    scores = q @ spread_keys(K, h).mT / scale(q)
    weights = share(torch.softmax(hide(scores, may), dim), may)
    return form(weights @ spread_values(V, h)), keep(k, v, cache)


def both(attends, spread):
    """Keys and values spread in one wrong way."""
    return attends(spread_keys=spread, spread_values=spread)


def _of_scaling(attends):
    """How scores are scaled."""
    return (
        ("not-scaled", "The scores are not scaled: divide them by √d_k before the softmax.", attends(scale=lambda q: 1.0)),
        ("scaled-by-d", "You divide by d_k. Lesson 05: it is √d_k.", attends(scale=lambda q: q.shape[-1])),
    )


def _of_groups(attends):
    """How query heads share keys and values in groups."""
    return (
        ("groups-in-turn", "You give the groups to the heads in turn: 0, 1, 0, 1. Heads of one group stand side by side: "
            "0, 0, 1, 1. torch's repeat does the former, repeat_interleave the latter.", both(attends, spread_in_turn)),
        ("keys-in-turn", "The values go to the right heads, the keys do not: you spread K over the heads in turn, 0, 1, 0, "
            "1. It is 0, 0, 1, 1 for both.", attends(spread_keys=spread_in_turn)),
        ("values-in-turn", "The keys go to the right heads, the values do not: you spread V over the heads in turn, 0, 1, "
            "0, 1. It is 0, 0, 1, 1 for both.", attends(spread_values=spread_in_turn)),
        ("first-group-for-all", "All heads use group 0. That is right for g = 1 only: head i uses group i // (h // g).",
            both(attends, lambda x, h: x[:, :1])),
        ("scaled-by-the-model-width", "You divide by √(h · d_k), the root of the model's width. Each head is scaled by its "
            "own width, √d_k.", attends(scale=lambda q: math.sqrt(q.shape[1] * q.shape[-1]))),
        ("softmax-over-queries", "Your softmax runs over the queries. It runs over the keys, the last axis.",
            attends(dim=-2)),
        ("merged", "You merge the heads, (B, T, h · d_k). Return them apart, (B, h, T, d_k): merging comes later.",
            attends(form=lambda out: out.transpose(1, 2).flatten(2))),
    )


def _of_a_cache(attends):
    """How a cache is taken, and the longer one returned."""
    def uncached(q, k, v, cache=None):
        return attends()(q, k, v, None)

    return (
        ("cache-not-used", "You do not look at `cache`: what is new sees nothing of the past, and nothing of the past is "
            "kept. Append k and v first.", uncached),
        ("nothing-appended", "You give back the old cache: what comes next will not see what is new here. Return the "
            "longer one.", attends(keep=lambda k, v, cache: (k, v) if cache is None else cache)),
        ("keeps-the-new-only", "Your new cache holds only what is new: the rest is lost for the next call.",
             attends(keep=lambda k, v, cache: (k, v))),
        ("values-not-appended", "You append the keys and not the values to the cache you return. Both grow together.",
            attends(keep=lambda k, v, cache: (joined(k, v, cache)[0], v if cache is None else cache[1]))),
        ("cache-swapped", "The cache is given back as (V, K). It is (K, V).",
            attends(keep=lambda k, v, cache: joined(k, v, cache)[::-1])),
        ("along-the-heads", "You join the tensors along the axis of the heads. Tokens are the last axis but one, dim=-2.",
            attends(see=functools.partial(joined, axis=1), keep=functools.partial(joined, axis=1))),
        ("only-the-output", "You return the output alone. The caller needs the new cache too: return output, (K, V).",
            lambda q, k, v, cache=None: attends()(q, k, v, cache)[0]),
        ("three-values", "You return three things. Keys and values belong into one tuple: return output, (K, V).",
            lambda q, k, v, cache=None: (attends()(q, k, v, cache)[0], *joined(k, v, cache))),
        ("none-not-handled", "At the beginning the cache is None, and there is nothing to append to: then k and v "
            "themselves are the keys and values.", lambda q, k, v, cache=None: attends()(q, k, v, (cache[0], cache[1]))),
    )


def rows_of_attention(attends, groups=False, cache=False):
    """Misconceptions of a template like `attends`: of scaling, of ``groups`` and of a ``cache`` where it has them."""
    return *_of_a_cache(attends) * cache, *_of_groups(attends) * groups, *_of_scaling(attends)
