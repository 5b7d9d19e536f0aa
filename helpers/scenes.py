"""Scenes of coloured things, a bear, a cave and three others, on which lesson 07 races one head against two.

A word is 12 numbers: nine say what it is, three what colour it has. The last word, *?*, asks for colours and has none.
"""

import numpy as np
import torch
from matplotlib.colors import is_color_like, to_rgb

from helpers import training
from helpers.words import NotUsable, shown

THINGS = "bear cave boat hat rose drum star leaf ?".split()
PAIRS = [{"bear": "gold", "cave": "navy"}, {"bear": "green", "cave": "deeppink"},
         {"bear": "white", "cave": "orangered"}, {"bear": "deepskyblue", "cave": "black"}]
TRIALS = {"split_heads": (torch.ones(2, 3, 4), 2), "merge_heads": (torch.ones(2, 2, 3, 2),)}  # what `adopt_all` tries


def batch(n, generator):
    """n random scenes: the words ``(n, 6, 12)``, and the colours of bear and cave, ``(n, 6)``, from 0 to 1."""
    others = torch.rand(n, 6, generator=generator).argsort(dim=1)[:, :3] + 2
    things = torch.cat([torch.tensor([[0, 1]]).expand(n, 2), others, torch.full((n, 1), 8)], dim=1)
    colours = torch.rand(n, 6, 3, generator=generator)
    colours[:, 5] = 0  # *?* has none
    return torch.cat([torch.eye(9)[things], colours], dim=2), colours[:, :2].flatten(1)


def fresh():
    """A thousand scenes on which no model is trained, as `batch` gives them."""
    return batch(1000, torch.Generator().manual_seed(99))


def loss(model, X, colours):
    """The mean squared error of the colours that are asked: the bear's, and the cave's too if ``model.asked`` is 2."""
    return (model(X) - colours[:, :3 * model.asked]).square().mean()


def trained(model_class, n_heads, asked, seed, steps=200):
    """``model_class(n_heads, asked)`` after training, and its typical error on fresh scenes, from 0 to 100."""
    with training.seeded(seed):
        model = model_class(n_heads, asked)
    training.fit(model, lambda generator: batch(64, generator), loss, steps, lr=0.05, seed=seed, label=None)
    with torch.no_grad():
        return model, 100 * loss(model, *fresh()).sqrt().item()


def race(model_class, n_heads, asked):
    """Five models, trained from the seeds 0 to 4: the best of them, and the list of their typical errors."""
    models, errors = zip(*(trained(model_class, n_heads, asked, seed) for seed in range(5)), strict=True)
    return models[int(np.argmin(errors))], list(errors)


def scene_in(scene):
    """A reader's scene, {thing: colour}, with its names in small letters.

    Raises NotUsable for what is no such dict, without a bear or a cave, with other things, and for what is no colour.
    """
    if not isinstance(scene, dict):
        example = '{"bear": "red", "cave": "blue"}'
        raise NotUsable(f"A scene gives things colours, as in {example}, and {shown(scene)} came.")
    scene = {str(thing).strip(" .,;:!?").lower(): colour.strip(" .,;:!?").lower() if isinstance(colour, str) else colour
             for thing, colour in scene.items()}
    wrong = [colour for colour in scene.values() if not is_color_like(colour)]
    if not {"bear", "cave"} <= {*scene} <= {*THINGS[:-1]} or wrong:
        raise NotUsable("A scene needs a bear and a cave, may have a boat, hat, rose, drum, star or leaf as well, and each "
                        f"has a colour such as red or #ff8800; {shown(wrong[0] if wrong else list(scene))} came.")
    return scene


def words(scene):
    """A scene as numbers, ``(1, T, 12)``: its things in their order, then *?*."""
    things = np.eye(len(THINGS))
    rows = [[*things[THINGS.index(thing)], *to_rgb(colour)] for thing, colour in scene.items()]
    return np.array([[*rows, [*things[-1], 0, 0, 0]]])


def answers(painted, attend, *models):
    """The colours of bear and cave that trained models name in each scene, ``(models, scenes, 2, 3)``, from 0 to 1.

    ``painted``: scenes, {thing: colour}; ``attend``: a multi_head_attention, which gets a scene and a model's four matrices.
    """
    outputs = [[attend(words(scene), *model.W.detach().numpy().astype(float), model.n_heads)[0, -1, :6] for scene in painted]
               for model in models]  # (models, scenes, 6)
    return np.array(outputs).reshape(len(models), len(painted), 2, 3).clip(0, 1)
