"""Train the mini-transformer of lesson 12 again: python -m scripts.mini_transformer

It is lesson 11's model and grammar, trained for half as many steps again, in about 20 seconds, stored as float16. The same
machine writes the same bytes; another may differ in the last digits of the weights.
"""

import json

from safetensors.torch import save

from helpers import grammars, training
from helpers.inside import MINI_FILE
from helpers.store.files import write_whole
from helpers.transformer import Config, LanguageModel, language_model_loss

SETTINGS = {"d": 64, "n_heads": 4, "n_layers": 2, "mlp": 128, "max_length": 64}  # arguments of Config
TRAINING = {"steps": 600, "lr": 0.015, "seed": 0}  # arguments of training.fit


def build(path=MINI_FILE, train=TRAINING):
    """Train and write the model; returns the file's SHA-256. ``train``: arguments of `training.fit`."""
    grammar = grammars.agreement_grammar()
    with training.seeded(train["seed"]):
        model = LanguageModel(Config(len(grammar.vocabulary), **SETTINGS))
    training.fit(model, lambda generator: (grammar.write(32, SETTINGS["max_length"], generator).tokens,),
                 lambda model, tokens: language_model_loss(model(tokens), tokens, grammars.PAD),
                 label="mini-transformer", **train)
    weights = {name: x.half().contiguous() for name, x in model.state_dict().items()}
    about = {"settings": SETTINGS, "training": train, "vocabulary": grammar.vocabulary.words}
    contents = save(weights, {"about": json.dumps(about)})  # of several entries the order would be left to chance
    return write_whole(path, contents)


if __name__ == "__main__":
    print(f"{build()}  {MINI_FILE.name}")
