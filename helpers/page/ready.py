"""Whether a computer has what the lessons use: lesson 00 asks, and every line of the answer should say *ok*."""

import importlib.util
import sys

from helpers import embeddings, minilm, tokens
from helpers.store import model_files

PACKAGES = {"lessons 01-08": ["numpy", "matplotlib", "ipywidgets"], "training, lessons 03-20": ["torch", "tqdm"],
            "the pretrained model": ["safetensors", "tokenizers"]}


def packages():
    """Say for each purpose whether its packages are installed, and which are missing."""
    print("Python 3.10 or newer:", "ok" if sys.version_info >= (3, 10) else "no: install a newer one")
    for purpose, names in PACKAGES.items():
        missing = [name for name in names if importlib.util.find_spec(name) is None]
        print(f"packages for {purpose}:", f"missing: {', '.join(missing)}" if missing else "ok")


def files():
    """Say whether the word vectors and the files of the two models are here, and what to do where one is not."""
    print("word vectors:", "ok" if len(embeddings.WordVectors.load()) >= 5000 else "incomplete")
    for name, find in [("model all-MiniLM-L6-v2", minilm.find_model),
                       ("chat model SmolLM2, lessons 14-18", lambda: model_files.find(tokens.SMOLLM2, download=False))]:
        try:
            find()
            print(f"{name}: ok")
        except model_files.ModelNotAvailable as problem:
            print(f"{name}: {problem}")
