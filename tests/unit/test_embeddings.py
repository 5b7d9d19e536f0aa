"""helpers/embeddings.py: the formulas, WordVectors, its file and how the file is made."""

import hashlib
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helpers import embeddings
from helpers.embeddings import WordVectors, analogy, cosine_similarity, nearest_neighbours
from helpers.minilm import find_model
from scripts import word_vectors

ROOT = Path(__file__).resolve().parents[2]


def matrices(most=6, fewest=1):
    """Finite matrices whose entries are 0 or of ordinary size, so that no product under- or overflows."""
    numbers = st.one_of(st.just(0.0), st.floats(0.01, 100), st.floats(-100, -0.01))
    shapes = st.tuples(st.integers(fewest, most), st.integers(1, 5))
    return shapes.flatmap(lambda shape: arrays(float, shape, elements=numbers))


@pytest.fixture(scope="module")
def vectors():
    return WordVectors.load()


# The formulas


@given(matrices(), st.integers(0, 2**32 - 1))
def test_cosine_equals_the_loop(X, seed):
    """A row of zeros has similarity 0."""
    Y = np.random.default_rng(seed).normal(size=(4, X.shape[1]))
    Y[1] = 0
    similarity = cosine_similarity(X, Y)
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            length = np.sqrt((x**2).sum()) * np.sqrt((y**2).sum())
            assert similarity[i, j] == pytest.approx(x @ y / length if length else 0, abs=1e-12)


def test_cosine_by_hand_without_warning(recwarn):
    similarity = cosine_similarity(np.array([[3, 0], [0, 0]]), np.array([[1, 1], [0, 2], [-5, 0]]))
    np.testing.assert_allclose(similarity, [[1 / np.sqrt(2), 0, -1], [0, 0, 0]])
    assert not recwarn.list


@given(matrices(8), st.data())
def test_nearest_neighbours_are_sorted_and_the_best(V, data):
    query = data.draw(arrays(float, V.shape[1], elements=st.floats(-9, 9).map(lambda x: round(x, 2))))
    k = data.draw(st.integers(1, len(V)))
    before = query.copy(), V.copy()
    found = nearest_neighbours(query, V, k)
    assert found.shape == (k,) and len(set(found.tolist())) == k
    similarity = cosine_similarity(query[None], V)[0]
    assert (np.diff(similarity[found]) <= 0).all()
    assert (np.delete(similarity, found) <= similarity[found[-1]]).all()
    assert np.array_equal(query, before[0]) and np.array_equal(V, before[1])


@given(matrices(8, 4), st.data())
def test_analogy_never_returns_an_input(V, data):
    a, b, c = (data.draw(st.integers(0, len(V) - 1)) for _ in range(3))
    before = V.copy()
    answer = analogy(a, b, c, V)
    assert type(answer) is int and 0 <= answer < len(V) and answer not in (a, b, c)
    similarity = cosine_similarity((V[b] - V[a] + V[c])[None], V)[0]
    assert similarity[answer] == max(similarity[i] for i in range(len(V)) if i not in (a, b, c))
    assert np.array_equal(V, before)


def test_analogy_uses_raw_vectors():
    V = np.array([[10.0, 0], [0, 10], [1, 0], [-1, 1.2], [-1, 0.9], [0, 1]])
    # b - a + c = (-9, 10). With unit vectors it would be (0, 1), and the answer row 5.
    assert analogy(0, 1, 2, V) == 3


def test_analogy_without_a_word_left():
    with pytest.raises(ValueError, match="3 vectors leave no answer"):
        analogy(0, 1, 2, np.eye(3))


# WordVectors


def test_file_has_what_it_says(vectors):
    assert len(vectors) == len(set(vectors.words)) == word_vectors.N_WORDS
    assert vectors.vectors.shape == (5000, 384) and vectors.vectors.dtype == np.float32
    assert np.isfinite(vectors.vectors).all() and np.linalg.norm(vectors.vectors, axis=1).min() > 0.5
    with np.load(embeddings.VECTORS_FILE) as file:
        assert file["vectors"].dtype == np.float16
    assert embeddings.VECTORS_FILE.stat().st_size < 4_200_000
    several = [word for word, n in zip(vectors.words, vectors.pieces, strict=True) if n > 1]
    assert several == ["didn't", "soar", "soars", "today's"]


def test_every_word_that_the_course_needs_is_known(vectors):
    required = word_vectors.REQUIRED_FILE.read_text(encoding="utf-8").split("\n")
    assert required[-1] == "" and required[:-1] == sorted(set(required[:-1]))
    assert [word for word in required[:-1] if word not in vectors] == []


def test_left_out_words_are_left_out(vectors):
    left_out = word_vectors.LEFT_OUT_FILE.read_text(encoding="utf-8").split()
    assert left_out == sorted(set(left_out)) and not set(left_out) & set(vectors.words)


def test_lookup(vectors):
    row = vectors["king"]
    assert row.shape == (384,) and (row == vectors.vectors[vectors.index("king")]).all()
    row += 1  # a copy: the store stays as it was
    assert not (row == vectors["king"]).any()
    with pytest.raises(ValueError, match="read-only"):
        vectors.vectors[0] = 0
    assert "king" in vectors and "kng" not in vectors and 3 not in vectors
    assert vectors.rows(["king", "queen", "king"]).shape == (3, 384) and vectors.rows([]).shape == (0, 384)
    assert repr(vectors) == "WordVectors(5,000 words, d = 384)"


def test_exclude(vectors):
    assert "queen" not in [word for word, _ in vectors.nearest("king", 5, exclude=["queen"])]
    assert [word for word, _ in vectors.nearest("king", 2, exclude=("kings",))] == ["queen", "monarch"]


@pytest.mark.parametrize(("word", "meant"), [
    ("fruut", "fruit or fruits?"), ("King", "king, kings or taking?"),
    *((strange, "none is spelt like it") for strange in ("xqzzzq", 7, ["a"]))])
def test_unknown_word(vectors, word, meant):
    """The message names the word and the known ones that are spelt like it."""
    for use in (vectors.__getitem__, vectors.index, lambda w: vectors.rows(["king", w])):
        with pytest.raises(KeyError) as error:
            use(word)
        assert repr(word) in str(error.value) and meant in str(error.value)


@pytest.mark.parametrize("k", [0, 5000])
def test_nearest_refuses_an_impossible_k(vectors, k):
    with pytest.raises(ValueError, match=f"^k must be between 1 and 4999, .* but it is {k}\\.$"):
        vectors.nearest("king", k)


# The file


def npz(**arrays):
    contents = io.BytesIO()
    np.savez(contents, **arrays)
    return contents.getvalue()


def test_damaged_file(tmp_path):
    whole = embeddings.VECTORS_FILE.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    other = npz(words=np.array([b"a"]))
    uneven = npz(words=np.array([b"a"]), vectors=np.eye(2), pieces=np.ones(1))
    for contents in (b"", b"not an archive", whole[:100_000], whole[:-1], bytes(flipped), other, uneven):
        path = tmp_path / "vectors.npz"
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=r"vectors\.npz are damaged, so run `python -m scripts\.word_vectors`"):
            WordVectors.load(path)


def test_rebuilding_gives_the_same_bytes(tmp_path):
    digest = word_vectors.build(tmp_path / "again.npz", find_model(download=False))
    contents = (tmp_path / "again.npz").read_bytes()
    assert digest == hashlib.sha256(contents).hexdigest()
    if sys.platform == "win32":  # a zip archive notes the system that wrote it
        again, stored = WordVectors.load(tmp_path / "again.npz"), WordVectors.load()
        assert again.words == stored.words and np.array_equal(again.vectors, stored.vectors)
    else:
        assert contents == embeddings.VECTORS_FILE.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["again.npz"]
