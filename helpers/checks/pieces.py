"""What the checkers of several lessons draw, and what their wrong functions are built of: torch tensors all."""

import torch


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
