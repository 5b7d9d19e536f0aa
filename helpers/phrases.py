"""Phrases such as "bear country", and three matrices that are learned from them, for lesson 04.

Six kinds of nouns, each with modifiers that suit it: animals go with places, ways of moving with journeys. Every fourth
word is held out, which training never sees; *bear*, *country*, *hiking* and *trail* are among them.
"""

import numpy as np

from helpers.embeddings import WordVectors

KINDS = {  # nouns | the modifiers that suit them
    "place": "country land valley territory forest habitat hills region woods park island desert wilderness coast lake "
             "river garden kingdom | bear wolf lion deer tiger elephant horse sheep fox snake bird buffalo rabbit eagle "
             "goat whale monkey duck cow fish crane dragon",
    "journey": "trail path road route track course lane circuit trip journey tour ride race street | hiking running "
               "skiing walking racing riding climbing swimming driving bike bicycle bus train boat truck car horseback",
    "food": "pie cake soup bread sandwich salad juice dessert | cheese apple lemon chicken banana tomato potato cherry "
            "peach butter orange honey rice sugar coconut almond grape carrot berry",
    "school": "museum school student professor teacher class academy book college department library degree | history "
              "music art science physics law chemistry mathematics dance philosophy poetry medicine economics english "
              "engineering",
    "clothes": "jacket coat dress shirt hat shoes ring crown belt pants uniform | leather cotton fur silver gold diamond "
               "plastic metal steel iron",
    "season": "holiday evening morning break festival weather rain night sun afternoon | summer winter spring autumn "
              "christmas april july october january june"}
MODIFIERS, NOUNS = [1, 6], [2, 7]  # their places in every sentence


def split():
    """(known, held out): two lists with the nouns and the modifiers of each kind; every fourth word is held out."""
    known, new = [], []
    for text in KINDS.values():
        sides = [side.split() for side in text.split("|")]
        new.append([side[::4] for side in sides])
        known.append([[word for word in side if word not in side[::4]] for side in sides])
    return known, new


def sentences(kinds, n, rng):
    """n sentences of eight words, built as "the hiking trail led us through bear country": lists of words."""
    texts = []
    for _ in range(n):
        two = rng.permutation(len(kinds))[:2]  # two different kinds
        (noun1, mod1), (noun2, mod2) = ([rng.choice(side) for side in kinds[i]] for i in two)
        verb, link = rng.choice(["led", "took", "brought"]), rng.choice(["through", "to", "from"])
        texts.append(["the", mod1, noun1, verb, "us", link, mod2, noun2])
    return texts


def learn(steps=150, d_k=16, d_v=32):
    """Learn W_q and W_k ``(384, d_k)`` and W_v ``(384, d_v)`` from 1,000 sentences of known words, in a few seconds.

    The game: from its output, a noun has to tell which of the eight values is that of its modifier. Returns (the three
    matrices before training, after it, the loss of each step), in NumPy.
    """
    import torch

    from helpers import training

    text = sentences(split()[0], 1000, np.random.default_rng(0))
    X_train = torch.tensor(WordVectors.load().rows([word for s in text for word in s]).reshape(1000, 8, 384))

    class Attention(torch.nn.Module):
        """softmax(Q Kᵀ) V in B sentences at once."""

        def __init__(self):
            super().__init__()
            self.W_q, self.W_k, self.W_v = (  # / √d: small first scores, so even first weights
                torch.nn.Parameter(torch.randn(384, size) / 384**0.5) for size in (d_k, d_k, d_v))

        def forward(self, X):  # (B, 8, 384)
            Q, K, V = X @ self.W_q, X @ self.W_k, X @ self.W_v
            return torch.softmax(Q @ K.mT, dim=-1) @ V, V  # (B, 8, d_v) twice

    def batch(generator):
        return (X_train[torch.randint(1000, (32,), generator=generator)],)

    def loss(model, X):
        output, V = model(X)
        likeness = (output[:, NOUNS] @ V.mT).flatten(0, 1)  # (64, 8): each noun's output with the eight values
        right = torch.tensor(MODIFIERS).repeat(len(X))  # (64,): the places of the modifiers
        return torch.nn.functional.cross_entropy(likeness, right)  # mean of -ln(probability of the right one)

    with training.seeded(0):  # the same first numbers in every run
        model = Attention()
    before = [W.detach().numpy().copy() for W in model.parameters()]
    losses = training.fit(model, batch, loss, steps=steps, lr=0.01)
    return before, [W.detach().numpy() for W in model.parameters()], losses
