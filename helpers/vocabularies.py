"""What turns the words of a grammar into ids, and back."""

import torch

from helpers.words import NotUsable, shown

PAD, BOS, EOS = 0, 1, 2  # the first ids of every vocabulary
SPECIAL = ("<pad>", "<bos>", "<eos>")


class Vocabulary:
    """Words and their ids: the three of SPECIAL first, then ``words`` in the order given, each once.

    ``vocabulary[word]`` is an id, ``vocabulary.words[i]`` a word. Raises ValueError when a word is given twice.
    """

    def __init__(self, words):
        self.words = (*SPECIAL, *words)
        self._ids = {word: i for i, word in enumerate(self.words)}
        if len(self._ids) < len(self.words):
            twice = next(word for word in self.words if self.words.count(word) > 1)
            raise ValueError(f"Each word may stand in a vocabulary once, and {twice!r} is there twice.")

    def __len__(self):
        return len(self.words)

    def __contains__(self, word):
        return word in self._ids

    def __getitem__(self, word):
        if word not in self._ids:
            raise NotUsable(f"The vocabulary of {len(self)} words does not hold {shown(word)}: take words that it holds.")
        return self._ids[word]

    def encode(self, sentence):
        """Ids of a sentence: a string of words with blanks between them, or a list of words.
        Raises NotUsable for an unknown word; `words.words_in` brings a reader's text to such a list."""
        if not isinstance(sentence, (str, list, tuple)):
            raise NotUsable(f"A sentence is a text or a list of words, and {shown(sentence)} came.")
        return [self[word] for word in (sentence.split() if isinstance(sentence, str) else sentence)]

    def decode(self, ids):
        """The words of ``ids`` as one string, up to the first EOS, without the special ones."""
        words = []
        for i in map(int, ids):
            if i == EOS:
                break
            if i >= len(SPECIAL):
                words.append(self.words[i])
        return " ".join(words)


def pad(sequences):
    """Lists of ids as one tensor ``(N, T)``, PAD behind each; T is the longest sequence's."""
    length = max(map(len, sequences))
    return torch.tensor([[*ids, *[PAD] * (length - len(ids))] for ids in sequences])
