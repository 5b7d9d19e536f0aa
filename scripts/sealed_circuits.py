"""Train the models with planted rules again: python -m scripts.sealed_circuits

Nine models of about 40 seconds each, stored as float16 in one file. The same machine writes the same bytes; another may
differ in the last digits of the weights. A model that does not follow its rule in 99.5 % of 2,000 fresh texts is trained
once more from the next seed.
"""

import json

from safetensors.torch import save
from torch.nn import functional as F

from helpers import sealed, training
from helpers.store.files import write_whole
from helpers.transformer import Config, LanguageModel

TRAINING = {"steps": 1600, "lr": 0.004}  # arguments of training.fit
BATCH = 128


def train(rule, seed, train=TRAINING):
    """A model trained on one rule: (model, the share of 2,000 fresh texts in which it follows it)."""
    key = sealed.Key(rule, sealed.VOCABULARY[sealed.VERBS[0]], sealed.VOCABULARY[sealed.ADVERBS[0]], [])
    with training.seeded(seed):
        model = LanguageModel(Config(len(sealed.VOCABULARY), **sealed.SETTINGS))

    def batch(generator):
        ids = sealed.write(BATCH, generator)
        return ids, key.right(ids)

    training.fit(model, batch, lambda model, ids, right: F.cross_entropy(model(ids)[:, -1], right), seed=seed,
                 label="planted rule", **train)
    model = sealed.built({name: x.half() for name, x in model.state_dict().items()})
    fresh = sealed.texts(2000, seed=1000)
    return model, (model(fresh)[:, -1].argmax(-1) == key.right(fresh)).double().mean().item()


def build(path=sealed.FILE, rules=tuple(sealed.RULES)):
    """Train and write all models; returns the file's SHA-256."""
    weights, seeds = {}, {}
    for name in rules:
        for seed in range(10):
            model, share = train(sealed.RULES[name], seed)
            print(f"{name}: seed {seed}, {share:.2%} by the rule", flush=True)
            if share >= 0.995:
                break
        else:
            raise RuntimeError(f"The rule {name} was not learned from ten seeds.")
        seeds[name] = seed
        weights |= {f"{name}/{key}": x.half().contiguous() for key, x in model.state_dict().items()}
    about = {"settings": sealed.SETTINGS, "training": {**TRAINING, "batch": BATCH, "seeds": seeds},
             "rules": sealed.RULES, "vocabulary": sealed.VOCABULARY.words}
    return write_whole(path, save(weights, {"about": json.dumps(about)}))


if __name__ == "__main__":
    print(f"{build()}  {sealed.FILE.name}")
