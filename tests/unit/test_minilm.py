"""The small pretrained encoder: its file, and that it computes what transformers' own does."""

import numpy as np
import pytest
import torch

from helpers import minilm


def test_what_its_files_hold():
    folder = minilm.find_model(download=False)
    config = minilm.load_config(folder)
    assert (config["num_hidden_layers"], config["num_attention_heads"], config["hidden_size"]) == (6, 12, 384)
    tokenizer = minilm.load_tokenizer(folder)
    encoded = tokenizer.encode("The bears soar.", "Time flies.")
    assert " ".join(encoded.tokens) == "[CLS] the bears so ##ar . [SEP] time flies . [SEP]"
    assert encoded.type_ids == [0] * 7 + [1] * 4
    assert len(tokenizer.encode("word " * 300).ids) == 302  # neither padded nor cut
    weights = minilm.load_weights(folder)
    assert len(weights) == 104
    assert weights["embeddings.word_embeddings.weight"].shape == (30522, 384)
    assert weights["encoder.layer.5.output.dense.weight"].shape == (384, 1536)
    assert str(weights["embeddings.LayerNorm.weight"].dtype) == "torch.float32"


@pytest.mark.slow
@pytest.mark.parametrize("texts", [("The bears won the game.", None),
                                   ("time flies like an arrow", "fruit flies like a banana")])
def test_reading_agrees_with_the_reference_implementation(texts):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    folder = str(minilm.find_model())
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")
    encoded = transformers.AutoTokenizer.from_pretrained(folder)(*[t for t in texts if t], return_tensors="pt")
    with torch.inference_mode():
        expected = model(**encoded, output_attentions=True, output_hidden_states=True)
    reading = minilm.read(*texts)
    assert len(reading.tokens) == encoded["input_ids"].shape[1]
    assert np.abs(torch.cat(expected.hidden_states).numpy() - reading.vectors).max() < 1e-5
    assert np.abs(torch.cat(expected.attentions).numpy() - reading.weights).max() < 1e-5


def test_reading_finds_a_token():
    reading = minilm.read("the bear bears the pain")
    assert reading.tokens[reading.find("the", 1)] == "the"
    assert reading.find("bears") == 3
    with pytest.raises(ValueError, match="is not among the tokens"):
        reading.find("lion")


def test_heads_of_the_pretrained_model_are_switched_off():
    text = "time flies like an arrow"
    whole = minilm.read(text)
    assert whole.queries.shape == whole.keys.shape == whole.values.shape == (6, 12, 7, 32)
    scores = torch.tensor(whole.queries @ whole.keys.swapaxes(-1, -2)) / 32**0.5
    np.testing.assert_allclose(torch.softmax(scores, -1), whole.weights, atol=1e-5)
    keep = np.ones((3, 6, 12), dtype=bool)
    keep[1, 5, 11] = keep[2, 0, 2] = False
    several = minilm.read(text, keep=keep)
    assert several.vectors.shape == (3, 7, 7, 384) and several.weights.shape == (3, 6, 12, 7, 7)
    np.testing.assert_allclose(several.vectors[0], whole.vectors, atol=1e-5)
    np.testing.assert_allclose(several.vectors[1, :6], whole.vectors[:6], atol=1e-5)  # nothing before the head changes
    assert np.abs(several.vectors[1, 6] - whole.vectors[6]).max() > 0.01
    assert np.abs(several.vectors[2, 1] - whole.vectors[1]).max() > 0.01
    one = minilm.read(text, keep=keep[1])
    assert one.vectors.shape == whole.vectors.shape
    np.testing.assert_allclose(one.vectors, several.vectors[1], atol=1e-5)
