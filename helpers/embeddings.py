"""Word vectors: similarity, neighbours and analogies on real pretrained embeddings.

The vectors in ``data/word_vectors.npz`` are input embeddings of all-MiniLM-L6-v2: what the model knows of a word
before it has seen any context. ``scripts/word_vectors.py`` made them, and ``data/README.md`` says how.
"""

import difflib
from pathlib import Path

import numpy as np

from helpers.words import Unknown, listed

VECTORS_FILE = Path(__file__).resolve().parent.parent / "data" / "word_vectors.npz"


def cosine_similarity(X, Y):
    """Cosine of the angle between every row of X and every row of Y.

    X (n, d), Y (m, d) -> (n, m), between -1 and 1. A row of zeros has no direction: its similarity is 0.
    """
    lengths = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Y, axis=1)  # (n, m)
    return X @ Y.T / np.where(lengths == 0, 1, lengths)


def nearest_neighbours(query, vectors, k):
    """Indices of the k rows of `vectors` with the highest cosine to `query`, most similar first.

    query (d,), vectors (n, d) -> (k,). Raises ValueError unless 1 <= k <= n.
    """
    if not 1 <= k <= len(vectors):
        raise ValueError(f"k must be between 1 and the number of vectors, {len(vectors)}, but it is {k}.")
    similarity = cosine_similarity(query[None, :], vectors)[0]  # (n,)
    return np.argsort(-similarity, kind="stable")[:k]


def analogy(a, b, c, vectors):
    """Solve "a is to b as c is to ?": the row with the highest cosine to b - a + c, a, b and c excluded.

    a, b, c are row indices, vectors (n, d) is used as it is (not normalised) -> a row index, an int.
    Raises ValueError if no row is left besides the three.
    """
    if len(vectors) <= len({a, b, c}):
        raise ValueError(f"{len(vectors)} vectors leave no answer besides the three words of the question.")
    target = vectors[b] - vectors[a] + vectors[c]  # (d,)
    similarity = cosine_similarity(target[None, :], vectors)[0]  # (n,)
    similarity[[a, b, c]] = -np.inf
    return int(np.argmax(similarity))


class WordVectors:
    """Words and their vectors.

    words    tuple of n strings, the most frequent first, words of several pieces last
    vectors  (n, d) float32 array, read-only; row i belongs to words[i]
    pieces   (n,) array: of how many word pieces a vector is the average (1 for nearly all)
    """

    def __init__(self, words, vectors, pieces=None):
        self.words = tuple(words)
        self.vectors = np.array(vectors, dtype=np.float32)
        self.pieces = np.ones(len(self.words), dtype=int) if pieces is None else np.array(pieces, dtype=int)
        if self.vectors.ndim != 2 or not len(self.words) == len(self.vectors) == len(self.pieces):
            raise ValueError(f"{len(self.words)} words need as many rows of vectors and numbers of pieces, "
                             f"but the vectors are {self.vectors.shape} and the pieces {self.pieces.shape}.")
        self.vectors.setflags(write=False)
        self._index = {word: i for i, word in enumerate(self.words)}

    @classmethod
    def load(cls, path=None):
        """Read a file made by ``scripts/word_vectors.py``, by default ``data/word_vectors.npz``.

        Raises FileNotFoundError if it is missing and ValueError if it is damaged.
        """
        path = Path(path or VECTORS_FILE)
        remedy = "run `python -m scripts.word_vectors` or fetch the file again"
        try:
            with np.load(path) as file:
                words, vectors, pieces = file["words"], file["vectors"], file["pieces"]
            return cls(words.astype(str).tolist(), vectors, pieces)
        except FileNotFoundError:
            raise FileNotFoundError(f"There are no word vectors at {path}; {remedy}.") from None
        except Exception:  # cut short, a flipped bit, another kind of file: each has its own error
            raise ValueError(f"The word vectors at {path} are damaged, so {remedy}.") from None

    def __len__(self):
        return len(self.words)

    def __contains__(self, word):
        return word in self._index

    def __getitem__(self, word):
        """The vector of a word: a copy, (d,). Raises Unknown, a KeyError."""
        return self.vectors[self.index(word)].copy()

    def __repr__(self):
        return f"WordVectors({len(self):,} words, d = {self.vectors.shape[1]})"

    def index(self, word):
        """The row of a word. Raises Unknown, a KeyError."""
        try:
            return self._index[word]
        except (KeyError, TypeError):
            close = difflib.get_close_matches(str(word).lower(), self.words, n=3, cutoff=0.7)
            hint = f"; did you mean {listed(close, 'or')}?" if close else ", and none is spelt like it."
            raise Unknown(f"{word!r} is not one of the {len(self):,} known words{hint}") from None

    def rows(self, words):
        """The vectors of several words, stacked: (len(words), d). Raises Unknown, a KeyError."""
        return self.vectors[np.array([self.index(word) for word in words], dtype=int)]

    def nearest(self, word_or_vector, k=5, exclude=()):
        """The k most similar words as a list of (word, cosine), most similar first.

        Takes a word, which is left out of its own neighbours, or a vector (d,). The words in `exclude` are
        left out too.
        Raises Unknown, a KeyError, and ValueError if k is not between 1 and the number of words left.
        """
        if isinstance(word_or_vector, str):
            query, exclude = self[word_or_vector], (word_or_vector, *exclude)
        else:
            query = np.asarray(word_or_vector)
        excluded = {self.index(word) for word in exclude}
        if not 1 <= k <= len(self) - len(excluded):
            raise ValueError(f"k must be between 1 and {len(self) - len(excluded)}, the number of words "
                             f"to choose from, but it is {k}.")
        similarity = cosine_similarity(query[None, :], self.vectors)[0]  # (n,)
        best = [i for i in np.argsort(-similarity, kind="stable") if i not in excluded][:k]
        return [(self.words[i], float(similarity[i])) for i in best]

    def analogy(self, a, b, c, k=1, exclude_inputs=True):
        """Solve "a is to b as c is to ?" for three words: the k best answers as a list of (word, cosine).

        Ranks by cosine to b - a + c, not normalised. Raises Unknown and ValueError as `nearest` does.
        """
        target = self[b] - self[a] + self[c]  # (d,)
        return self.nearest(target, k, exclude=(a, b, c) if exclude_inputs else ())
