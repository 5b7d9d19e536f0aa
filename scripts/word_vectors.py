"""Make data/word_vectors.npz again, bit for bit: python -m scripts.word_vectors

The vectors are rows of the pretrained model's embedding matrix. The words are those of ``data/required_words.txt`` and,
up to 5,000, the first whole words of the model's vocabulary, which is roughly ordered by frequency.
"""

import io
import re

import numpy as np

from helpers.embeddings import VECTORS_FILE
from helpers.minilm import WEIGHTS, find_model, load_tokenizer
from helpers.store.files import write_whole

REQUIRED_FILE = VECTORS_FILE.with_name("required_words.txt")
LEFT_OUT_FILE = VECTORS_FILE.with_name("left_out_words.txt")
N_WORDS = 5000
SHORT_WORDS = ("a i ah am an as at be by do dr ed go ha he hi if in is it me mi mr my no of oh ok on or so st to tv uk "
               "um up us we ye")


def build(path=VECTORS_FILE, model=None):
    """Write the word vectors from the verified model, in the folder ``model`` or where `minilm.find_model` looks. Returns
    the file's SHA-256. Raises ModelNotAvailable, and OSError if it cannot be written; then an older one stays as it was."""
    from safetensors import safe_open

    folder = find_model(model)
    tokenizer = load_tokenizer(folder)
    with safe_open(folder / WEIGHTS, framework="numpy") as weights:
        embeddings = weights.get_tensor("embeddings.word_embeddings.weight")  # (30522, 384) float32

    required, left_out = (file.read_text(encoding="utf-8").split() for file in (REQUIRED_FILE, LEFT_OUT_FILE))
    words = choose_words(tokenizer.get_vocab(), required, left_out)
    ids = [tokenizer.encode(word, add_special_tokens=False).ids for word in words]
    vectors = [embeddings[i].astype(np.float64).mean(axis=0) for i in ids]  # several pieces: their average
    contents = io.BytesIO()
    np.savez(contents, words=np.array(words, dtype=bytes), vectors=np.array(vectors).astype("<f2"),
             pieces=np.array([len(i) for i in ids], dtype="u1"))
    return write_whole(path, contents.getvalue())


def choose_words(vocabulary, required, left_out):
    """The file's words: required and common ones in the vocabulary's order, then those of several pieces."""
    taken = set(required) | set(left_out)
    ordered = sorted(vocabulary, key=vocabulary.get)
    common = [word for word in ordered if is_common(word) and word not in taken][: N_WORDS - len(required)]
    whole = [word for word in required if word in vocabulary]
    pieced = [word for word in required if word not in vocabulary]
    return sorted(whole + common, key=vocabulary.get) + sorted(pieced)


def is_common(word):
    """Whether a vocabulary entry is a plain word: letters only, with a vowel, and no Roman numeral."""
    if len(word) <= 2:
        return word in SHORT_WORDS.split()
    return re.fullmatch("[a-z]+", word) and re.search("[aeiouy]", word) and not re.fullmatch("[ivx]+", word)


if __name__ == "__main__":
    print(f"{build()}  {VECTORS_FILE.name}")
