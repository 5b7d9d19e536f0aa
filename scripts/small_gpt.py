"""Train the small GPT of the explainer again: python -m scripts.small_gpt

It reads the addresses of 1861 to 1944 in small letters, with byte pairs as in lesson 15, for about twenty minutes on one
thread, is tried on the addresses from 1945 on, and is stored in 8 bits: each row of a matrix as whole numbers from -127 to
127 and one scale. Another machine may differ in the last digits of the weights.
"""

import json
import re

import torch
from safetensors import safe_open
from safetensors.torch import save

from helpers import texts, tokens, training
from helpers.store.files import write_whole
from helpers.transformer import Config, LanguageModel, language_model_loss
from scripts import ROOT

FILE = ROOT / "data" / "small_gpt.safetensors"
FIRST_YEAR, HELD_OUT_FROM, MERGES, BATCH = 1861, 1945, 1500, 24
BOS = 256 + MERGES  # the last id: it begins every text
SETTINGS = {"d": 128, "n_heads": 4, "n_layers": 4, "mlp": 384, "max_length": 96}  # arguments of Config
TRAINING = {"steps": 3500, "lr": 0.004, "seed": 0}  # arguments of training.fit


def reading(text):
    """A text as the model reads it: in small letters, with one blank before it and between its words."""
    words = re.sub(r"[ \t\r\n]+", " ", text.lower()).strip(" ")
    return words and f" {words}"


def encode(text, tokenizer):
    """The ids of a text, ``BOS`` first."""
    return [BOS, *tokenizer.encode(reading(text))]


def corpora():
    """What it learns from and what it is tried on, two strings."""
    years = {name: int(name.split()[0]) for name in texts.addresses()}
    return ["".join(reading(text) for name, text in texts.addresses().items() if first <= years[name] < last)
            for first, last in ((FIRST_YEAR, HELD_OUT_FROM), (HELD_OUT_FROM, 9999))]


def windows(ids, tokenizer, length):
    """The text ``ids`` ``(n,)`` as a function from a generator to ``(BATCH, length)`` ids: ``BOS``, then what follows one
    blank or another."""
    begins = torch.tensor([tokenizer.bytes_of(i).startswith(b" ") for i in ids[:-length].tolist()]).nonzero()[:, 0]
    steps = torch.arange(length - 1)

    def batch(generator):
        at = begins[torch.randint(len(begins), (BATCH,), generator=generator)]
        return (torch.cat([torch.full((BATCH, 1), BOS), ids[at[:, None] + steps]], dim=1),)

    return batch


@torch.no_grad()
def held_out_bits(model, ids, n_bytes):
    """Bits for each byte of the text ``ids``, read in pieces that begin with ``BOS``."""
    length = model.config.max_length - 1
    total = sum(len(piece) * language_model_loss(model(piece[None]), piece[None], pad=-1).item()
                for piece in (torch.cat([torch.tensor([BOS]), part]) for part in ids.split(length)))
    return tokens.bits_per_byte(total / len(ids), len(ids), n_bytes)


def in_8_bits(weights):
    """Each matrix as ``name`` (int8) and ``name.scale`` (a number for each row); a vector stays as it is, in 16 bits."""
    stored = {}
    for name, x in weights.items():
        if x.ndim == 2:
            scale = (x.abs().amax(dim=1) / 127).clamp_min(1e-12)
            stored[name + ".scale"] = scale
            stored[name] = (x / scale[:, None]).round().to(torch.int8)
        else:
            stored[name] = x.half()
    return stored


def in_full(stored):
    """``in_8_bits`` back again, as 32-bit numbers."""
    return {name: x.float() * stored[name + ".scale"][:, None] if x.dtype == torch.int8 else x.float()
            for name, x in stored.items() if not name.endswith(".scale")}


def build(path=FILE, train=TRAINING):
    """Train, measure and write the model; returns the file's SHA-256. ``train``: arguments of `training.fit`."""
    learned, held_out = corpora()
    merges = tokens.train_bpe(learned, MERGES)
    tokenizer = tokens.Tokenizer(merges)
    ids, new = (torch.tensor(tokenizer.encode(text)) for text in (learned, held_out))
    with training.seeded(train["seed"]):
        model = LanguageModel(Config(BOS + 1, **SETTINGS))
    history = training.fit(model, windows(ids, tokenizer, SETTINGS["max_length"]),
                           lambda model, tokens: language_model_loss(model(tokens), tokens, pad=-1), **train)
    n_bytes = len(held_out.encode())
    bits = [held_out_bits(model, new, n_bytes)]
    stored = in_8_bits(model.state_dict())
    model.load_state_dict(in_full(stored))
    bits.append(held_out_bits(model, new, n_bytes))
    about = {"settings": SETTINGS, "training": train, "loss": round(sum(history[-100:]) / 100, 3), "merges": list(merges),
             "bits": [round(b, 4) for b in bits], "learned": len(learned.encode()),
             "weights": sum(x.numel() for x in model.parameters())}
    return write_whole(path, save({name: x.contiguous() for name, x in stored.items()}, {"about": json.dumps(about)}))


def load(path=FILE):
    """The model as it is stored and its tokenizer: (``LanguageModel``, ``tokens.Tokenizer``)."""
    with safe_open(path, framework="pt") as file:
        about = json.loads(file.metadata()["about"])
        model = LanguageModel(Config(BOS + 1, **about["settings"]))
        model.load_state_dict(in_full({name: file.get_tensor(name) for name in file.keys()}))
    return model.eval(), tokens.Tokenizer({tuple(pair): 256 + n for n, pair in enumerate(about["merges"])})


if __name__ == "__main__":
    print(f"{build()}  {FILE.name}")
