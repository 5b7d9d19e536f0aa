"""Look inside a trained model: where attention flows, what single heads do, and what is missed without them.

Also the mini-transformer of lesson 11, trained: ``load_mini`` reads it from ``data/mini_transformer.safetensors``,
which ``python -m helpers.inside build`` makes. Shapes: heads ``(B, h, T, d_k)``, weights ``(..., h, T, T)``, query by key.
"""

import contextlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional as F

from helpers import corpora, training
from helpers.files import write_whole
from helpers.transformer import LanguageModel

MINI_FILE = Path(__file__).resolve().parent.parent / "data" / "mini_transformer.safetensors"
MINI = {"d": 64, "n_heads": 4, "n_layers": 2, "mlp": 128, "max_length": 64}  # arguments of LanguageModel
TRAINING = {"steps": 600, "lr": 0.015, "seed": 0}  # arguments of training.fit; all as in lesson 11


def attention_rollout(attentions):
    """Follow attention through all layers: how much of each token, by the weights, has reached each position.

    ``attentions``: for each layer ``(h, T, T)``, the first layer first; T and the rows' sum of 1 are the same in all.
    A layer counts as ``½ mean over heads + ½ identity``, the identity being the residual stream, with rows brought to
    sum 1; the layers are multiplied, the later one on the left. Returns ``(T, T)``, rows sum to 1.
    Raises ValueError when there is no layer. Source: Abnar and Zuidema 2020, section 3.
    """
    if not len(attentions):
        raise ValueError("There is no layer to follow: give (h, T, T) for each layer.")
    rollout = None
    for weights in attentions:
        mean = weights.mean(dim=0)  # (T, T)
        layer = 0.5 * mean + 0.5 * torch.eye(len(mean)).to(mean)
        layer = layer / layer.sum(dim=1, keepdim=True)
        rollout = layer if rollout is None else layer @ rollout
    return rollout


def previous_token_score(weights):
    """The mean weight from position i to i - 1, over all i ≥ 1: 1 for a head that always looks one token back.

    ``weights``: ``(h, T, T)``. Returns ``(h,)``, each from 0 to 1. Raises ValueError when T is 1: nothing comes before.
    """
    if weights.shape[-1] < 2:
        raise ValueError("A sequence of one token has no previous token; T must be at least 2.")
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=1)


def ablate_head(head_outputs, W_o, head):
    """The output of multi-head attention with the contribution of one head removed.

    ``head_outputs``: ``(B, h, T, d_k)``, weights times values; ``W_o``: ``(d, d)``, multiplied from the right, d = h·d_k;
    ``head``: its number, from 0. Returns ``(B, T, d)``: the sum of the other heads' contributions.
    Raises ValueError when there is no such head. Source: Michel et al. 2019, section 2.2, with ξ = 0 for one head.
    """
    h = head_outputs.shape[1]
    if not 0 <= head < h:
        raise ValueError(f"There is no head {head}: the {h} heads are counted from 0 to {h - 1}.")
    kept = head_outputs.clone()
    kept[:, head] = 0
    return kept.transpose(1, 2).flatten(2) @ W_o  # (B, T, h·d_k) @ (d, d)


def contributions(weights, values, W_o):
    """What each head adds to each token from each other token: the vectors ``weight_ij · v_j W_o^(head)``.

    ``weights``: ``(..., h, T, T)``; ``values``: ``(..., h, T, d_k)``; ``W_o``: ``(..., d, d)``, from the right.
    Returns ``(..., h, T, T, d)``: summed over keys and heads it is the layer's output, without bias.
    Source: Kobayashi et al. 2020, equation 5.
    """
    by_head = W_o.unflatten(-2, (values.shape[-3], -1))  # (..., h, d_k, d)
    return weights[..., None] * (values @ by_head)[..., None, :, :]  # (..., h, T, T, 1) * (..., h, 1, T, d)


def few_colours(colours=96):
    """From now on show figures with a palette of ``colours``: a third of the bytes, in a notebook that is full of views.

    Call it in a notebook, before the first figure.
    """
    import matplotlib_inline.backend_inline  # noqa: F401  (sets its own way to show figures; ours comes after it)
    from IPython import get_ipython
    from IPython.core.pylabtools import print_figure
    from matplotlib.figure import Figure
    from PIL import Image

    def png(figure):
        packed = io.BytesIO()
        picture = Image.open(io.BytesIO(print_figure(figure, fmt="png"))).convert("RGB")
        picture = picture.quantize(colours, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        picture.save(packed, "png", optimize=True)
        return packed.getvalue()

    get_ipython().display_formatter.formatters["image/png"].for_type(Figure, png)


# ---------------------------------------------------------------- one of the course's own models


@dataclass(frozen=True)
class Trace:
    """What an ``Encoder`` computed for ids ``(B, T)``; a tensor for each layer in every list."""

    logits: torch.Tensor  #: (B, T, outputs)
    weights: list  #: (B, h, T, T)
    queries: list  #: (B, h, T, d_k)
    keys: list  #: (B, h, T, d_k)
    values: list  #: (B, h, T, d_k)


@torch.no_grad()
def trace(model, tokens, keep=None):
    """Run a ``transformer.Encoder`` on ids ``(B, T)`` and keep what its heads did, a ``Trace``.

    ``keep``: bool ``(layers, h)``; False switches a head off: its output becomes 0, as ``ablate_head`` has it.
    Queries and keys are those before RoPE, if the model has it.
    """
    found = {"W_q": [], "W_k": [], "W_v": []}

    def note(name):
        return lambda module, inputs, output: found[name].append(output.unflatten(-1, (model.n_heads, -1)).transpose(1, 2))

    def switch(on):
        return lambda module, inputs: (inputs[0] * on.to(inputs[0]).repeat_interleave(inputs[0].shape[-1] // len(on)),)

    with contextlib.ExitStack() as hooks:
        for layer, block in enumerate(model.blocks):
            for name in found:
                hooks.callback(getattr(block.attention, name).register_forward_hook(note(name)).remove)
            if keep is not None:
                on = torch.as_tensor(keep)[layer]  # (h,)
                hooks.callback(block.attention.W_o.register_forward_pre_hook(switch(on)).remove)
        logits, weights = model(tokens, weights=True)
    return Trace(logits, weights, found["W_q"], found["W_k"], found["W_v"])


# ---------------------------------------------------------------- the mini-transformer, trained


def load_mini(path=None):
    """The trained mini-transformer of lesson 11 and its vocabulary: (``LanguageModel``, ``corpora.Vocabulary``).

    Raises ValueError, in one sentence, when the file is missing, or is not this model.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path or MINI_FILE)
    repair = "put it back with git, or run `python -m helpers.inside build`."
    if not path.exists():
        raise ValueError(f"The file {path.name} is missing; {repair}")
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["about"])
            words = about["vocabulary"]
            model = LanguageModel(len(words), **about["settings"])
            model.load_state_dict({name: file.get_tensor(name).float() for name in file.keys()})
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        kind = type(error).__name__
        raise ValueError(f"The file {path.name} does not hold the mini-transformer ({kind}); {repair}") from None
    return model.eval(), corpora.Vocabulary(words[len(corpora.SPECIAL):])


def next_token_loss(model, tokens):
    """Mean loss in nats of each token given those before it: ids ``(B, T)`` -> scalar."""
    return F.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def build(path=MINI_FILE):
    """Train the mini-transformer on lesson 11's grammar, write it as float16, and return the file's SHA-256.

    About 20 seconds. The same machine writes the same bytes; another may differ in the last digits of the weights.
    """
    from safetensors.torch import save

    grammar = corpora.agreement_grammar()
    with training.seeded(TRAINING["seed"]):
        model = LanguageModel(len(grammar.vocabulary), **MINI)
    training.fit(model, lambda generator: (grammar.write(32, MINI["max_length"], generator).tokens,), next_token_loss,
                 label="mini-transformer", **TRAINING)
    weights = {name: x.half().contiguous() for name, x in model.state_dict().items()}
    about = {"settings": MINI, "training": TRAINING, "vocabulary": grammar.vocabulary.words}
    contents = save(weights, {"about": json.dumps(about)})  # of several entries the order would be left to chance
    return write_whole(path, contents)


def main(arguments):
    """The command line; returns the exit status."""
    if arguments != ["build"]:
        print("usage: python -m helpers.inside build", file=sys.stderr)
        return 2
    print(f"{build(MINI_FILE)}  {MINI_FILE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
