"""What the assignments in torch share."""

import torch


def normal(rng, *shape, scale=1.0, shift=0.0):
    """A tensor of normal numbers, in float64."""
    return torch.tensor(rng.normal(size=shape) * scale + shift)


def rounded(values, digits):
    """A tensor, a list or a number as a test cell or a text shows it, and never -0."""
    values = values.tolist() if isinstance(values, torch.Tensor) else values
    return [rounded(value, digits) for value in values] if isinstance(values, list) else round(values, digits) + 0.0
