"""Images as sentences: the digits, their patches, the model that reads them, and a drawing of one's own."""

import hashlib

import pytest
import torch

from helpers import training, vision
from helpers.page import board

SEVEN = """
.######.
......#.
.....#..
....#...
...#....
...#....
...#....
...#....
"""


def test_the_digits_are_those_that_were_published():
    assert hashlib.sha256(vision.FILE.read_bytes()).hexdigest() == (
        "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22")
    images, labels = vision.digits()
    assert images.shape == (1797, 8, 8) and labels.shape == (1797,)
    assert images.min() == 0 and images.max() == 1 and sorted(set(labels.tolist())) == list(range(10))


@pytest.mark.parametrize("shape, size", [((2, 4, 6), 2), ((1, 9, 3), 3), ((3, 2, 2), 1)])
def test_a_patch_is_a_square_in_reading_order(shape, size):
    images = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    by_hand = [[image[row:row + size, column:column + size].flatten() for row in range(0, shape[1], size)
                for column in range(0, shape[2], size)] for image in images]
    assert torch.equal(vision.to_patches(images, size), torch.stack([torch.stack(patches) for patches in by_hand]))


@pytest.fixture
def model():
    with training.seeded(0):
        model = vision.VisionModel(d=8, n_heads=2)
        torch.nn.init.normal_(model.W_out)
    return model


def test_an_answer_depends_on_every_patch_and_on_its_place(model):
    image = torch.rand(1, 8, 8, generator=torch.Generator().manual_seed(1))
    before = model(image)
    for patch in range(16):
        row, column = 2 * (patch // 4), 2 * (patch % 4)
        other = image.clone()
        other[0, row:row + 2, column:column + 2] += 0.5
        assert not torch.allclose(model(other), before, atol=1e-6)
    assert not torch.allclose(model(image.roll(2, 1)), before, atol=1e-6)
    with training.seeded(0):
        bag = vision.VisionModel(d=8, n_heads=2, positions=False)
        torch.nn.init.normal_(bag.W_out)
    assert torch.allclose(bag(image.roll(2, 1)), bag(image), atol=1e-5), "without positions patches are a bag"


def test_attention_is_what_the_blocks_computed(model):
    weights = model.attention(torch.rand(3, 8, 8))
    assert [layer.shape for layer in weights] == [(3, 2, 17, 17)] * 2
    assert torch.allclose(weights[0].sum(-1), torch.ones(3, 2, 17))


def test_an_image_moves_by_one_pixel_at_most():
    image = torch.zeros(200, 8, 8)
    image[:, 4, 4] = 1
    moved = vision.shifted(image, torch.Generator().manual_seed(0))
    places = {tuple(place.tolist()) for place in moved.nonzero()[:, 1:]}
    assert places == {(row, column) for row in (3, 4, 5) for column in (3, 4, 5)} and moved.sum() == 200


def test_a_drawing_is_read_as_it_is_written():
    image = vision.drawing(SEVEN)
    ink = [[sign == "#" for sign in line] for line in SEVEN.split()]
    assert image.shape == (8, 8) and torch.equal(image == 1, torch.tensor(ink))
    assert 0 < image[1, 3] < 0.5, "softened like a scan"


def test_the_board_reacts_to_each_cell(file, displayed):
    seen = []
    board.board(SEVEN, seen.append)
    grid, wipe, _ = displayed[0].children
    assert len(grid.children) == 64 and torch.equal(seen[-1], vision.drawing(SEVEN))
    grid.children[0].value = True
    assert seen[-1][0, 0] == 1
    wipe.click()
    assert not any(cell.value for cell in grid.children) and len(seen) == 2, "nothing is drawn, so nothing is read"
