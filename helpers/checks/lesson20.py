"""The exercises of lesson 20: an image cut into patches, and a transformer that reads them."""

import torch
from torch.nn import functional as F

from helpers.checks.core import Contract, Exercise, Probe, inputs, larger, variants
from helpers.checks.pieces import same, tensor
from helpers.vision import to_patches, vision_transformer

# ---------------------------------------------------------------- to_patches


def _images(B, H, W, size):
    return lambda rng: (tensor(rng, B, H, W), size)


def _pixels_by_column(images, size):
    patches = to_patches(images, size).unflatten(-1, (size, size))
    return patches.transpose(-1, -2).flatten(2)


def _rows_of_pixels(images, size):
    return images.reshape(len(images), -1, size * size)


def _every_nth_pixel(images, size):
    B, H, W = images.shape
    grid = images.reshape(B, size, H // size, size, W // size)
    return grid.permute(0, 2, 4, 1, 3).reshape(B, -1, size * size)


def _split_the_other_way(images, size):
    B, H, W = images.shape
    return images.reshape(B, size, H // size, size, W // size).transpose(2, 3).reshape(B, -1, size * size)


def _width_for_height(images, size):
    B, H, W = images.shape
    grid = images.reshape(B, W // size, size, H // size, size)
    return grid.transpose(2, 3).reshape(B, -1, size * size)


TO_PATCHES = Exercise(to_patches, probes=(
    Probe("one pixel a patch", _images(1, 2, 3, 1), "A patch is one pixel here, so the result is the pixels in "
        "reading order: (1, 6, 1)."),
    Probe("one patch", _images(1, 2, 2, 2), "The patch is the whole image: its pixels row by row, (1, 1, 4)."),
    Probe("wider than high", _images(1, 2, 6, 2), "H is 2 and W is 6: three patches in one row."),
    larger(_images(9, 9, 12, 3)),
), misconceptions=(
    ("rows-of-pixels", "You cut the long row of pixels into pieces, so a patch is a strip of one line. A patch is a "
        "square: split H and W into (patches, size) each, then bring the two axes of size together.", _rows_of_pixels),
    ("columns-first", "Your patches go down the columns, and their pixels too: the image is turned round. Reading "
        "order is along a row first.", lambda images, size: to_patches(images.transpose(1, 2), size)),
    ("patches-by-column", "Your patches are right, in another order: down first. Reading order is along a row "
        "first.", lambda images, size: _pixels_by_column(images.transpose(1, 2), size)),
    ("pixels-by-column", "The pixels inside a patch go down first. They are in reading order too: along a row "
        "first.", _pixels_by_column),
    ("every-nth-pixel", "You take every so-many-th pixel of the whole image into one patch. Split H into (rows of "
        "patches, size), in this order, and W likewise.", _every_nth_pixel),
    ("width-for-height", "H and W have changed places: that works for squares only.", _width_for_height),
    ("overlapping", "Your squares overlap: each begins one pixel after the last. They lie side by side, `size` "
        "pixels apart.", lambda images, size: images.unfold(1, size, 1).unfold(2, size, 1).flatten(3).flatten(1, 2)),
    ("neither-flat", "Patches still stand in rows and columns, and so do their pixels. Join the two axes of patches into "
        "one, and the two axes of size into another: (B, N, size²).", lambda images, size: to_patches(
            images, size).unflatten(1, (images.shape[1] // size, -1)).unflatten(3, (size, size))),
    ("split-the-other-way", "You split H into (size, rows of patches). It is the other way round: (rows of patches, size), "
        "and W likewise.", _split_the_other_way),
    ("not-flat", "A patch is still a square of size × size. Flatten its pixels into one axis: (B, N, size²).",
        lambda images, size: to_patches(images, size).unflatten(-1, (size, size))),
    ("grid-kept", "The patches still stand in rows and columns. Flatten them into one axis, N: (B, N, size²).",
        lambda images, size: to_patches(images, size).unflatten(1, (images.shape[1] // size, -1))),
    ("pixels-then-patches", "The last two axes have changed places: patches are axis 1, their pixels axis 2.",
        lambda images, size: to_patches(images, size).transpose(1, 2)),
    ("size-of-two", "You use 2 whatever size is given.", lambda images, size: to_patches(images, 2)),
    ("batch-second", "Your patches come first and the images second. The first axis stays the images: (B, N, size²).",
        lambda images, size: to_patches(images, size).transpose(0, 1)),
    ("batch-lost", "All patches of all images are in one list. The first axis stays the images.",
        lambda images, size: to_patches(images, size).flatten(0, 1)),
), contracts=(
    Contract("patches that do not fill the image", lambda rng: (tensor(rng, 2, 4, 6), 4)),
))


# ---------------------------------------------------------------- vision_transformer


def _nudge(strength):
    """A stand-in for a block, which mixes tokens so that each place counts, and doing it twice is not doing it once."""
    return lambda x: x + strength * torch.tanh(x.cumsum(1).flip(1))


def _norm(x):
    return F.layer_norm(x, x.shape[-1:])


@inputs
def _model(rng, B, H, W, size, d, classes, blocks=2, positions=1.0):
    n = H * W // size ** 2
    return (tensor(rng, B, H, W), size, tensor(rng, size * size, d), tensor(rng, d), positions * tensor(rng, n + 1, d),
            [_nudge(0.5 + i) for i in range(blocks)], _norm, tensor(rng, d, classes))


@inputs
def _with_positions(rng, some):
    """The arguments of a model with only some of its positions."""
    images, size, W_in, cls, positions, *others = _model(2, 4, 4, 2, 5, 3)(rng)
    return images, size, W_in, cls, positions[some], *others


def _places_for_patches(x, cls, positions):
    x = x + positions[1:]
    return torch.cat([cls.expand(len(x), 1, -1), x], 1)


def _at_the_end(x, cls, positions):
    return torch.cat([x, cls.expand(len(x), 1, -1)], 1) + positions


def _in_front(x, cls, positions):
    return torch.cat([cls.expand(len(x), 1, -1), x], 1) + positions


def _first(x):
    return x[:, 0]


@variants
def _read(images, size, W_in, cls, positions, blocks, norm, W_out, *, tokens=_in_front, run=same, before=same, reader=_first,
          normed=True, pooled=same, last=same, patches=to_patches):
    """The reference with one of its steps exchanged."""
    x = tokens(patches(images, size) @ W_in, cls, positions)
    x = before(x)
    for block in run(list(blocks)):
        x = block(x)
    answer = reader(x)
    return last(pooled(norm(answer) if normed else answer) @ W_out)


VISION_TRANSFORMER = Exercise(vision_transformer, probes=(
    Probe("no block, no positions", _model(1, 2, 2, 2, 3, 2, blocks=0, positions=0.0), "There is no block and the "
        "positions are 0, so nothing of the image reaches the token that asks: the logits are norm(cls) @ W_out."),
    Probe("one patch", _model(1, 2, 2, 2, 3, 2, blocks=1), "There are two tokens: cls in front and one patch."),
    Probe("not square", _model(2, 2, 6, 2, 4, 3, blocks=3), "The image is 2 by 6: N is 3, and there are 4 positions."),
    larger(_model(9, 9, 12, 3, 10, 9, blocks=3)),
), misconceptions=(
    ("cls-at-the-end", "Your asking token stands behind the patches. It stands in front of them: token 0.",
        _read(tokens=_at_the_end, reader=lambda x: x[:, -1])),
    ("cls-at-the-end-and-not-read", "Your asking token stands behind the patches, and you read token 0, which is "
        "then a patch. Put the asking token in front.", _read(tokens=_at_the_end)),
    ("positions-for-patches-only", "The asking token gets no position. All N + 1 tokens get one, cls the first.",
        _read(tokens=_places_for_patches)),
    ("positions-forgotten", "The positions are missing: add them to all N + 1 tokens before the first block.",
        _read(tokens=lambda x, cls, positions: _in_front(x, cls, 0 * positions))),
    ("positions-multiplied", "You multiply by the positions. They are added.",
        _read(tokens=lambda x, cls, positions: _in_front(x, cls, 0 * positions) * positions)),
    ("positions-after", "You add the positions after the blocks, which then cannot use them. Add them before.",
        lambda images, size, W_in, cls, positions, blocks, norm, W_out: vision_transformer(
            images, size, W_in, cls, 0 * positions, [*blocks, lambda x: x + positions], norm, W_out)),
    ("positions-at-each-block", "You add the positions before every block. Once is enough: before the first.",
        lambda images, size, W_in, cls, positions, blocks, norm, W_out: vision_transformer(
            images, size, W_in, cls, positions, [*blocks[:1], *(lambda x, b=b: b(x + positions) for b in blocks[1:])],
            norm, W_out)),
    ("mean-of-all", "You average over all tokens. The answer is read from the one that asks, token 0.",
        _read(reader=lambda x: x.mean(1))),
    ("mean-of-patches", "You average over the patches. The answer is read from the token that asks, token 0.",
        _read(reader=lambda x: x[:, 1:].mean(1))),
    ("mean-after-the-norm", "You average over all tokens once they are normed. The answer is read from the one "
        "that asks, token 0.", _read(reader=same, pooled=lambda x: x.mean(1))),
    ("mean-of-patches-after-the-norm", "You average over the patches once they are normed. The answer is read "
        "from the token that asks, token 0.", _read(reader=same, pooled=lambda x: x[:, 1:].mean(1))),
    ("softmax", "You put a softmax at the end. Logits are the scores before it: the loss has its own.",
        _read(last=lambda logits: logits.softmax(-1))),
    ("log-softmax", "You take the log of a softmax at the end. Logits are the scores before it: the loss has its "
        "own.", _read(last=lambda logits: logits.log_softmax(-1))),
    ("softmax-over-the-batch", "You put a softmax at the end, and over the images at that. Logits are the scores "
        "before it, of each image by itself.", _read(last=lambda logits: logits.softmax(0))),
    ("likeliest-class", "You give the number of the likeliest class. A loss needs the logits of all: (B, "
        "classes).", _read(last=lambda logits: logits.argmax(-1))),
    ("first-image", "[0] is the first image, with all its tokens. The token that asks is [:, 0], in every image.",
        _read(reader=lambda x: x[0])),
    ("last-token", "You read the last token. The one that asks is the first.", _read(reader=lambda x: x[:, -1])),
    ("every-token", "You give logits for every token. Only the first one answers: (B, classes).", _read(reader=same)),
    ("norm-forgotten", "The norm before W_out is missing.", _read(normed=False)),
    ("norm-first", "You normalise before the blocks. The norm comes after the last one, before W_out.",
        _read(before=_norm, normed=False)),
    ("one-block", "Only one block runs. All of them do, in order.", _read(run=lambda blocks: blocks[:1])),
    ("no-block", "What your blocks return is lost, or they never run. Keep it: x = block(x).", _read(run=lambda blocks: [])),
    ("blocks-reversed", "Your blocks run in the wrong order: the first of the list comes first.",
        _read(run=lambda blocks: blocks[::-1])),
    ("blocks-side-by-side", "Every block gets the same input, and you add the results up. Each gets what the one before "
        "it made.", lambda images, size, W_in, cls, positions, blocks, norm, W_out: vision_transformer(
            images, size, W_in, cls, positions, [lambda x: sum((b(x) for b in blocks), 0 * x) if blocks else x], norm,
            W_out)),
    ("added-to-itself", "You add what a block returns to x. A block has done that already: x = block(x).",
        lambda images, size, W_in, cls, positions, blocks, norm, W_out: vision_transformer(
            images, size, W_in, cls, positions, [lambda x, b=b: x + b(x) for b in blocks], norm, W_out)),
    ("rows-of-pixels", "Your patches are strips of one line. Use your to_patches.", _read(patches=_rows_of_pixels)),
), nudges=(
    ("UnboundLocalError", "Without blocks that name has no value. What a block returns takes the place of x: x = block(x)."),
    ("same number of dimensions|Dimension out of range", "cls is (d,), and the patches are (B, N, d). Make it (B, 1, d) "
        "first with cls.expand(B, 1, -1), and put it in front along dim=1."),
), contracts=(
    Contract("one position too few", _with_positions(slice(-1))),
    Contract("a single position, which would fit all", _with_positions(slice(1))),
))

EXERCISES = (TO_PATCHES, VISION_TRANSFORMER)
