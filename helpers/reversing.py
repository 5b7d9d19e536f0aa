"""Sixteen digits that are to be written in reverse: the game on which lesson 05 compares divisors of the scores."""

import numpy as np
import torch

from helpers import training
from helpers.words import NotUsable, shown


def start(*shape, size):
    """Numbers to be learned, drawn at first with the standard deviation ``size``."""
    return torch.nn.Parameter(size * torch.randn(shape))


class Reverser(torch.nn.Module):
    """Attention over 16 digits, each a learned vector added to that of its place; the scores are divided by d_k ** power."""

    def __init__(self, power, d_k=256, d=32):
        super().__init__()
        self.divisor = d_k**power
        # digit and place have variance 1/2 each, so their sum has 1
        self.digit, self.place = start(10, d, size=0.5**0.5), start(16, d, size=0.5**0.5)
        self.W_q, self.W_k, self.W_v = (start(d, n, size=d**-0.5) for n in (d_k, d_k, 10))

    def qkv(self, digits):
        """Digits ``(B, 16)`` -> queries and keys ``(B, 16, d_k)``, values ``(B, 16, 10)``."""
        X = self.digit[digits] + self.place  # (B, 16, d)
        return X @ self.W_q, X @ self.W_k, X @ self.W_v

    def forward(self, digits):
        """Digits ``(B, 16)`` -> ``(B, 16, 10)``: at each place a number for each digit that may be written."""
        Q, K, V = self.qkv(digits)
        weights = torch.softmax(Q @ K.mT / self.divisor, dim=-1)  # (B, 16, 16)
        return weights @ V


def batch(generator):
    """32 times 16 random digits, and the same in reverse: ``(32, 16)`` twice."""
    digits = torch.randint(10, (32, 16), generator=generator)
    return digits, digits.flip(1)


def loss(model, digits, target):
    """The mean of -ln(probability of the right digit) over all places."""
    return torch.nn.functional.cross_entropy(model(digits).flatten(0, 1), target.flatten())


@torch.no_grad()
def right(model):
    """The share of right digits in a batch of its own."""
    digits, target = batch(torch.Generator().manual_seed(7))
    return (model(digits).argmax(-1) == target).float().mean().item()


def trained(power, seed):
    """A model after 80 steps, and what share of digits was right on the way: ``(20, 2)``, steps and share."""
    with training.seeded(seed):
        model = Reverser(power)
    history = training.fit(model, batch, loss, steps=80, label=None, metric=right, every=4)
    return model, np.array(history.measured)


def sixteen(text):
    """The digits of a reader's text, whatever is between them. Raises NotUsable unless there are 16."""
    digits = "".join(letter for letter in str(text) if letter in "0123456789")
    if len(digits) != 16:
        raise NotUsable(f"The models read 16 digits, and {shown(text)} has {len(digits)}: "
                        "write them as in my_digits = '3141592653589793'.")
    return digits


def qkv_of(model, digits):
    """Queries and keys ``(16, d_k)`` and values ``(16, 10)`` for 16 digits as text, in NumPy."""
    return [part.detach().numpy()[0] for part in model.qkv(torch.tensor([[*map(int, digits)]]))]
