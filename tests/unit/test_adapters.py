"""Adapters beside the chat model's matrices: equal to plain torch, gradients and merged model included; and examples."""

import json

import pytest
import torch
from sentences import refusal
from small_models import chat_model
from torch.nn import functional as F

from helpers import adapters, smollm2
from helpers.words import NotUsable


class Words:
    """A tokenizer of whole words, as far as these tests need one."""

    def encode(self, text):
        return [3 + sum(map(ord, word)) % 57 for word in text.split()]

    def bytes_of(self, i):
        return f"w{i} ".encode()


@pytest.fixture(scope="module")
def model():
    """Of 60 tokens, in four layers."""
    return chat_model(60, 8, h=4, g=2, d_k=2, m=12, layers=range(4), tokens=Words(), base=1e5)


@pytest.fixture
def adapter(model):
    """One whose B is no longer zero."""
    made = adapters.Adapter.beside(model, range(2, 4), ("W_q", "W_v"), rank=2, alpha=3.0)
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for B in made.B.values():
            B.copy_(torch.randn(B.shape, generator=g) / 3)
    return made


IDS = torch.tensor([[1, 17, 33, 8, 59], [5, 4, 9, 9, 20]])
PAIRS = [(f"what is {word} {n}", f"it is {word}") for n, word in enumerate("ant bee cat dog eel fox".split())]


def test_a_linear_map_with_an_adapter_is_that_of_plain_torch():
    """Output and all gradients, against torch's own layers; float64, so that only a mistake makes a difference."""
    g = torch.Generator().manual_seed(0)
    x, W, A, B = (torch.randn(size, generator=g, dtype=torch.float64, requires_grad=True)
                  for size in ((2, 3, 5), (5, 7), (5, 2), (2, 7)))
    frozen, down, up = (torch.nn.Linear(*size, bias=False, dtype=torch.float64) for size in ((5, 7), (5, 2), (2, 7)))
    with torch.no_grad():
        for layer, part in ((frozen, W), (down, A), (up, B)):
            layer.weight.copy_(part.T)
    other = x.detach().clone().requires_grad_()
    theirs = frozen(other) + 6.0 / 2 * up(down(other))
    ours = adapters.lora_linear(x, W, A, B, 6.0)
    assert torch.allclose(ours, theirs, atol=1e-12)
    assert torch.allclose(x @ adapters.merge_lora(W, A, B, 6.0), theirs, atol=1e-12)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    for mine, want in ((x, other.grad), (A, down.weight.grad.T), (B, up.weight.grad.T), (W, frozen.weight.grad.T)):
        assert torch.allclose(mine.grad, want, atol=1e-10)


def test_a_new_adapter_changes_nothing(model):
    new = adapters.Adapter.beside(model, range(1, 4))
    assert torch.equal(new.on(model).run(IDS)[0], model.run(IDS)[0]) and new.below() == 1
    assert torch.equal(new.merged(model).run(IDS)[0], model.run(IDS)[0])


def test_the_adapted_and_the_merged_model_agree(model, adapter):
    adapted, plain = adapter.on(model).run(IDS)[0], adapter.merged(model).run(IDS)[0]
    assert torch.allclose(adapted, plain, atol=1e-5) and not torch.allclose(adapted, model.run(IDS)[0], atol=1e-2)
    assert all(torch.is_tensor(W) for w in adapter.merged(model).layers for W in w.values())
    assert adapter.size() == 2 * (2 * 8 + 2 * 8 + 2 * 8 + 2 * 4)


@pytest.mark.parametrize("times", [
    lambda x, W: x @ W, torch.matmul, lambda x, W: x.matmul(W), lambda x, W: F.linear(x, W.T),
    lambda x, W: torch.einsum("btd,de->bte", x, W)])
def test_however_a_layer_multiplies_it_runs_with_the_adapter(model, adapter, times):
    called = []

    def linear(*args):
        called.append(args[0].shape)
        return adapters.lora_linear(*args)

    x = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(2))
    W = adapter.on(model, linear).layers[2]["W_q"]
    assert torch.allclose(times(x, W), x @ adapter.merged(model).layers[2]["W_q"], atol=1e-5)
    assert W.shape == (8, 8) and len(called) <= 1


def test_frozen_layers_once_and_upper_layers_make_the_whole(model, adapter):
    kept = adapters.keep(model, PAIRS, "say it", below=2)
    rows = torch.tensor([4, 1])
    x, ids, first = kept.batch(rows)
    whole = adapter.on(model).run(ids.clamp(min=0))[0]
    upper = adapters.upper(adapter.on(model), x, kept.below)
    assert torch.allclose(upper, whole, atol=1e-4)
    start = int(first.min()) - 1
    cut = adapters.upper(adapter.on(model), x, kept.below, start)
    assert torch.allclose(adapters.answer_loss(cut, ids[:, start:], first - start),
                          adapters.answer_loss(whole, ids, first), atol=1e-5)
    ends = [row[row >= 0][-1].item() for row in ids]
    assert ends == [smollm2.END] * 2


@pytest.mark.parametrize(("tries", "low", "high"), [((12, 12), 0.757, 1.0), ((0, 8), 0.0, 0.324), ((10, 20), 0.299, 0.701)])
def test_the_interval_is_wilsons(tries, low, high):
    assert adapters.wilson_interval(*tries) == pytest.approx((low, high), abs=1e-3)


@pytest.mark.slow
def test_it_learns_its_examples_and_nothing_below_moves(model):
    before = [{name: W.clone() for name, W in w.items()} for w in model.layers]
    new = adapters.Adapter.beside(model, range(1, 4), ("W_q", "W_v", "W_up", "W_down"), rank=4)
    kept = adapters.keep(model, PAIRS, "say it", below=1)
    history = adapters.train(model, new, kept, steps=60, batch=4, lr=0.02, label=None)
    assert sum(history[-5:]) < 0.5 * sum(history[:5])
    assert all(torch.equal(W, w[name]) for old, w in zip(before, model.layers, strict=True) for name, W in old.items())
    with pytest.raises(ValueError, match="begins at layer 1"):
        adapters.train(model, new, adapters.keep(model, PAIRS, "say it", below=2))


def test_a_round_has_each_example_once(model):
    kept = adapters.keep(model, PAIRS, "", below=1)
    draw, g = kept.draw(batch=3), torch.Generator().manual_seed(0)
    seen = torch.cat([draw(g)[2] for _ in range(2)])
    assert sorted(seen.tolist()) == sorted(kept.first.tolist())


def greedy(model, prompt, n):
    written = []
    for _ in range(n):
        written.append(int(model.run(torch.tensor([prompt + written]))[0][0, -1].argmax()))
        if written[-1] == smollm2.END:
            break
    return written


@pytest.mark.parametrize("shots", [(), PAIRS[:2]])
def test_answers_of_a_batch_are_those_one_by_one(model, adapter, shots):
    """Rows of different lengths, with and without something in common."""
    model = adapter.on(model)
    asked = ["what is it", "why", "what is the whole of it", "where", "what is it now"]
    prompts = [smollm2.prompt_ids(model.tokens, adapters.messages(q, "say it", shots)) for q in asked]
    alone = [b"".join(map(model.tokens.bytes_of, [i for i in greedy(model, prompt, 7) if i != smollm2.END])).decode()
             for prompt in prompts]
    assert adapters.answers(model, asked, "say it", shots, max_tokens=7, at_once=3) == alone
    said = [(q, "x " + a) for q, a in zip(asked, alone, strict=True)]
    assert adapters.exact(model, said, "say it", shots) == [False] * 5


def test_one_look_tells_whether_an_answer_comes_out(model):
    """After training most examples come out; what is counted without writing is what is written."""
    new = adapters.Adapter.beside(model, range(1, 4), [name for name in model.layers[0] if "W" in name], rank=8)
    adapters.train(model, new, adapters.keep(model, PAIRS, "say it", below=1), steps=80, batch=6, lr=0.01, label=None)
    tuned = new.on(model)
    asked = [*PAIRS, ("what is ant 9", "it was ant")]
    wanted = [b"".join(map(model.tokens.bytes_of, model.tokens.encode(answer))).decode() for _, answer in asked]
    written = adapters.answers(tuned, [question for question, _ in asked], "say it", max_tokens=9, at_once=4)
    right = adapters.exact(tuned, asked, "say it", at_once=3)
    assert right == [one == other for one, other in zip(written, wanted, strict=True)]
    assert any(right) and not all(right)


def test_a_file_brings_an_adapter_back(model, adapter, tmp_path):
    size = adapter.save(tmp_path / "a.safetensors")
    back = adapters.Adapter.load(tmp_path / "a.safetensors")
    assert size == (tmp_path / "a.safetensors").stat().st_size and back.alpha == 3.0 and back.below() == 2
    assert torch.equal(back.on(model).run(IDS)[0], adapter.on(model).run(IDS)[0])


@pytest.mark.parametrize("contents", [b"", b"not a file of numbers", None])
def test_another_file_is_refused_in_one_sentence(tmp_path, contents):
    path = tmp_path / "b.safetensors"
    if contents is not None:
        path.write_bytes(contents)
    assert "is not the file of an adapter" in refusal(NotUsable, adapters.Adapter.load, path)


def test_sentences_are_different_and_the_test_shares_no_name():
    learned, fresh = adapters.sentences(64, 0), adapters.sentences(40, 1, adapters.NEW_NAMES, adapters.NEW_CITIES)
    assert len(dict(learned)) == 64 and learned == adapters.sentences(64, 0)
    for sentence, answer in learned + fresh:
        facts = json.loads(answer)
        assert list(facts) == ["who", "whom", "where", "when"] and all(fact in sentence for fact in facts.values())
    known = {fact for _, answer in learned for fact in list(json.loads(answer).values())[:3]}
    assert not known & {fact for _, answer in fresh for fact in list(json.loads(answer).values())[:3]}


GOOD = "".join(json.dumps({"question": f"what is {n}", "answer": f"it is {n}"}) + "\n" for n in range(25))


@pytest.mark.parametrize(("answer", "where"), [
    ('{"who": "A", "whom": "B", "where": "Rome", "when": ""}', "Rome"),
    ('{"who": 1, "whom": 2, "where": null, "when": 3}', ""),
    ('{"who": "A", "whom": "B", "where": "Rome", "when', None), ('{"who": "A"}', None), ("[1, 2]", None), ("7", None),
    ("", None)])
def test_the_facts_of_an_answer_or_none(answer, where):
    facts = adapters.facts(answer)
    assert (facts and facts["where"]) == where


@pytest.mark.parametrize("change", [lambda t: t, lambda t: "\ufeff" + t, lambda t: t.replace("\n", "\r\n\r\n")])
def test_examples_are_read_and_a_fifth_is_kept_for_the_test(tmp_path, change):
    path = tmp_path / "mine.jsonl"
    path.write_bytes(change('{"system": "Say it."}\n' + GOOD).encode())
    task = adapters.read_examples(path, Words())
    assert task.system == "Say it." and len(task.train) == 20 and len(task.test) == 5
    assert not set(task.train) & set(task.test) and task.train[0] == ("what is 0", "it is 0")


@pytest.mark.parametrize(("text", "said"), [
    (GOOD.replace('"what is 3"', "“what is 3”"), "Line 4 of mine.jsonl is no object of JSON"),
    (GOOD.replace('"answer": "it is 2"', '"reply": "it is 2"'), 'Line 3 of mine.jsonl lacks its "question" or its "answer"'),
    (GOOD.replace('"it is 1"', "7", 1), "Line 2 of mine.jsonl lacks"), (GOOD + "[1, 2]\n", "and no list around the lines"),
    (GOOD.replace('"it is 4"', json.dumps("so " * 81)), "Line 5 of mine.jsonl has an answer of 81 tokens, and 80 is"),
    (GOOD.replace('"what is 4"', json.dumps("so " * 99)), "has a question of 99 tokens"),
    (GOOD + GOOD.replace("it is 0", "it was 0"), "Line 26 of mine.jsonl answers a question again"),
    ("\n".join(GOOD.splitlines()[:7]), "mine.jsonl has 7 examples, and it takes 20 or more"), ("", "has 0 examples"),
    (GOOD.splitlines()[0], "has 1 example, and")])
def test_a_file_that_cannot_be_used_is_told_in_one_sentence(tmp_path, text, said):
    path = tmp_path / "mine.jsonl"
    path.write_text(text, encoding="utf-8")
    assert said in refusal(NotUsable, adapters.read_examples, path, Words())
