"""Images as sentences of patches: handwritten digits, and a transformer that reads them with lesson 09's block (lesson 20).

The digits are 8 × 8 numbers between 0 (paper) and 1 (ink). Source of the model: Dosovitskiy et al. 2021.
"""

import functools
import gzip
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from helpers.transformer import Block
from helpers.words import NotUsable

FILE = Path(__file__).resolve().parents[1] / "data" / "digits.csv.gz"
TRAINING = 1200  # the first digits of the file; nearly all of the others are by other writers
SIDE = 8
INK, PAPER = "#", "."


@functools.cache
def digits():
    """The 1,797 digits of data/digits.csv.gz: images ``(1797, 8, 8)``, from 0 to 1, and labels ``(1797,)``, 0 to 9."""
    with gzip.open(FILE, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.float32)
    return torch.from_numpy(table[:, :-1]).view(-1, SIDE, SIDE) / 16, torch.from_numpy(table[:, -1]).long()


def to_patches(images, size):
    """Cut images into squares of ``size`` × ``size`` pixels: squares in reading order, and in each of them its pixels too.

    ``images``: ``(B, H, W)``. Returns ``(B, N, size²)``, N = HW / size². Raises ValueError where ``size`` does not divide H
    and W. Source: Dosovitskiy et al. 2021, section 3.1.
    """
    B, H, W = images.shape
    if H % size or W % size:
        raise ValueError(f"Patches of {size} × {size} do not fill an image of {H} × {W}: choose a size that divides both.")
    grid = images.reshape(B, H // size, size, W // size, size)  # row of patches, row in it, column of patches, column in it
    return grid.transpose(2, 3).reshape(B, -1, size * size)


def vision_transformer(images, size, W_in, cls, positions, blocks, norm, W_out):
    """What an image shows: patches become vectors, one more token asks, and its vector at the end is read.

    ``images``: ``(B, H, W)``; ``W_in``: ``(size², d)``; ``cls``: ``(d,)``, the token that asks; ``positions``:
    ``(N + 1, d)``, the first is its own; ``blocks``: functions ``(B, N + 1, d)`` -> same; ``norm``: one more;
    ``W_out``: ``(d, classes)``. Returns logits ``(B, classes)``. Raises ValueError where there are not N + 1 positions.
    Source: Dosovitskiy et al. 2021, equations 1 to 4.
    """
    x = to_patches(images, size) @ W_in  # (B, N, d)
    x = torch.cat([cls.expand(len(x), 1, -1), x], dim=1)  # (B, N + 1, d)
    if len(positions) != x.shape[1]:
        raise ValueError(f"There are {len(positions)} positions for {x.shape[1]} tokens: {x.shape[1] - 1} patches and the "
                         "token that asks.")
    x = x + positions
    for block in blocks:
        x = block(x)
    return norm(x[:, 0]) @ W_out


class VisionModel(nn.Module):
    """The numbers that ``vision_transformer`` needs: ``d`` wide, ``n_layers`` of lesson 09's ``Block``, for images of
    ``side`` × ``side`` pixels and patches of ``size`` × ``size``.

    ``positions=False`` leaves the positions at zero; ``read`` is a learner's ``vision_transformer``, or the course's.
    """

    def __init__(self, d=48, n_heads=4, n_layers=2, side=SIDE, size=2, classes=10, positions=True,
                 read=vision_transformer):
        super().__init__()
        self.size = size
        n_patches = (side // size) ** 2
        self.W_in = nn.Parameter(torch.randn(size * size, d) / size)
        self.cls = nn.Parameter(torch.zeros(d))
        self.positions = nn.Parameter(0.3 * torch.randn(n_patches + 1, d)) if positions else torch.zeros(n_patches + 1, d)
        self.blocks = nn.ModuleList(Block(d, n_heads, mlp=2 * d) for _ in range(n_layers))
        self.norm = nn.LayerNorm(d)
        self.W_out = nn.Parameter(torch.zeros(d, classes))
        self.read = read

    def forward(self, images):
        """Logits ``(B, classes)`` of ``images`` ``(B, side, side)``."""
        return self.read(images, self.size, self.W_in, self.cls, self.positions, self.blocks, self.norm, self.W_out)

    def attention(self, images):
        """The weights of each block ``(B, h, N + 1, N + 1)``, a list; token 0 is the one that asks."""
        weights_of_blocks = []

        def watched(block):
            def run(x):
                x, weights = block(x, weights=True)
                weights_of_blocks.append(weights)
                return x
            return run

        with torch.no_grad():
            self.read(images, self.size, self.W_in, self.cls, self.positions, [watched(block) for block in self.blocks],
                      self.norm, self.W_out)
        return weights_of_blocks


def shifted(images, generator):
    """Each image moved by at most one pixel in each direction, with paper coming in at the edge. ``(B, 8, 8)`` -> same."""
    padded = F.pad(images, (1, 1, 1, 1))
    rows, columns = torch.randint(0, 3, (2, len(images)), generator=generator)
    pixels = torch.arange(SIDE)
    return padded[torch.arange(len(images))[:, None, None], (rows[:, None] + pixels)[:, :, None],
                  (columns[:, None] + pixels)[:, None, :]]


def accuracy(model, images, labels):
    """The share of images whose largest logit is at their label, from 0 to 1."""
    with torch.no_grad():
        return (model(images).argmax(-1) == labels).float().mean().item()


def drawing(text):
    """A drawing of eight lines of ``#`` and ``.`` as an image ``(8, 8)`` as soft as the digits that the model knows.

    Raises NotUsable, which says what is wrong with the lines.
    """
    if not isinstance(text, str):
        raise NotUsable(f"A drawing is a text of eight lines of {INK} and {PAPER}, and this is {text!r:.60}.")
    lines = text.split()
    if others := {*"".join(lines)} - {INK, PAPER}:
        raise NotUsable(f"A drawing has {INK} for ink and {PAPER} for paper, and here is {min(others)!r} as well.")
    if [len(line) for line in lines] != [SIDE] * SIDE:
        lengths = ", ".join(str(len(line)) for line in lines[:12])
        has = f"this one has {len(lines)}, of {lengths}" if lines else "this one has none"
        raise NotUsable(f"A drawing has eight lines of eight signs each; {has}.")
    ink = torch.tensor([[float(sign == INK) for sign in line] for line in lines])
    if not ink.any():
        raise NotUsable(f"There is no ink in the drawing: put a {INK} where the pen goes.")
    spread = F.conv2d(ink[None, None], torch.tensor([[[[0.0, 0.25, 0.0], [0.25, 1.0, 0.25], [0.0, 0.25, 0.0]]]]), padding=1)
    return spread[0, 0].clamp(max=1)
