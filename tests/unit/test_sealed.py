"""Sealed circuits: the language, the planted rules, twins, questions and what forecasts are worth, and the hunt."""

import numpy as np
import pytest
import torch
from sealed_solver import Solver, measured

from helpers import inside, sealed
from helpers.sealed import forecasts, hunts
from helpers.words import NotUsable

words_of = sealed.VOCABULARY.words


@pytest.fixture(scope="module")
def dealt():
    return sealed.deal("d", "a seed")


def spelt(row):
    return [words_of[i] for i in row]


def right_by_hand(text, rule, verb="asks", adverb="now"):
    """The right name of a text, a list of words."""
    return text[text.index(verb) + (rule.turned if text[-2] == adverb else rule.plain)]


def test_a_text_has_its_words_once_and_its_form():
    kinds = set()
    for text in map(spelt, sealed.texts(50, seed=3)):
        assert len(text) == sealed.T and text[0] == "<bos>" and text[-1] == "thanks" and text[-2] in sealed.ADVERBS
        assert sorted(w for w in text if w in sealed.NAMES) == sealed.NAMES
        assert sorted(w for w in text if w in sealed.VERBS) == sealed.VERBS
        core = [w for w in text[1:-2] if w not in sealed.FILLERS]
        assert [w == "." for w in core] == [False] * 5 + [True] + [False] * 5 + [True] + [False] * 5 + [True]
        assert [core[i] in sealed.VERBS for i in (2, 8, 14)] == [True] * 3
        kinds.add(text.index("asks"))
    assert len(kinds) > 6, "the listened verb is found at many places"


def test_the_other_text_by_hand():
    text = "<bos> so carl david asks emma kira . lars ida tells gina anna . oh jonas felix shows ben hugo . so then thanks"
    names = "<bos> so kira emma asks david carl . anna gina tells ida lars . oh hugo ben shows felix jonas . so then thanks"
    verbs = "<bos> so carl david shows emma kira . lars ida asks gina anna . oh jonas felix tells ben hugo . so then thanks"
    ids = torch.tensor([sealed.VOCABULARY.encode(text)])
    assert spelt(sealed.other(ids, "names")[0]) == names.split()
    assert spelt(sealed.other(ids, "verbs")[0]) == verbs.split()
    assert spelt(ids[0]) == text.split()
    with pytest.raises(ValueError, match="'names' or in 'verbs'"):
        sealed.other(ids, "both")
    with pytest.raises(ValueError, match="There is no rule"):
        sealed.load("z")


@pytest.mark.parametrize("name", sealed.RULES)
def test_each_model_follows_its_rule(name):
    """In 98 % of 600 texts at least, of which no other rule explains half: the baseline is the best of the others."""
    ids = sealed.texts(600, seed=77)
    said = [words_of[i] for i in sealed.load(name)(ids)[:, -1].argmax(-1).tolist()]
    follows = {rule: np.mean([right_by_hand(spelt(row), sealed.RULES[rule]) == word
                              for row, word in zip(ids, said, strict=True)]) for rule in sealed.RULES}
    assert follows.pop(name) >= 0.98
    assert max(follows.values()) < 0.75  # the same distance without the turn is right in two of three texts
    assert np.mean([right_by_hand(spelt(row), sealed.RULES[name], verb="shows") == word
                    for row, word in zip(ids, said, strict=True)]) < 0.1
    turned = [row[-2].item() == sealed.VOCABULARY["now"] for row in ids]
    assert 0.25 < np.mean(turned) < 0.42
    by_turn = [right_by_hand(spelt(row), sealed.RULES[name]) == word
               for row, word, t in zip(ids, said, turned, strict=True) if t]
    assert np.mean(by_turn) >= 0.97, "the rarer kind of text too"


@pytest.mark.parametrize("name", ["practice", "f"])
def test_a_twin_computes_the_same_with_other_weights(name):
    model = sealed.load(name)
    new, heads = sealed.twin(model, 5)
    ids = torch.randint(len(sealed.VOCABULARY), (200, sealed.T), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(new(ids), model(ids), rtol=0, atol=1e-5 * model(ids).abs().max().item())
    mine, its = inside.trace(new, ids[:20]).weights, inside.trace(model, ids[:20]).weights
    for layer in range(2):
        torch.testing.assert_close(mine[layer], its[layer][:, heads[layer]], rtol=0, atol=1e-4)
    old = dict(model.named_parameters())
    for key, x in new.named_parameters():
        if x.dim() == 2:
            assert abs(np.corrcoef(x.detach().flatten(), old[key].detach().flatten())[0, 1]) < 0.1, key
    again, same_heads = sealed.twin(model, 5)
    assert heads == same_heads and all(torch.equal(a, b) for a, b in zip(new.parameters(), again.parameters(), strict=True))
    another, _ = sealed.twin(model, 6)
    assert abs(np.corrcoef(another.embedding.weight.detach().flatten(), new.embedding.weight.detach().flatten())[0, 1]) < 0.1


def test_a_twin_is_right_for_any_gains_and_means():
    """A model whose norms, biases and means are far from those that training leaves."""
    model = sealed.built(sealed.load("a").state_dict())
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for x in model.parameters():
            x += 0.3 * torch.randn(x.shape, generator=generator)
        new, _ = sealed.twin(model.double(), "x")
        ids = sealed.texts(20)
        torch.testing.assert_close(new.double()(ids), model(ids), rtol=0, atol=1e-5 * model(ids).abs().max().item())
    with pytest.raises(ValueError, match="no rotary angles"):
        sealed.twin(sealed.LanguageModel(sealed.Config(9, positions="rope")), 0)


@pytest.mark.slow
def test_a_dealt_model_has_words_of_its_own_and_travels_as_text(dealt):
    model, key = dealt
    ids = sealed.texts(300, seed=5)
    rule, verb, adverb = sealed.RULES["d"], words_of[key.verb], words_of[key.adverb]
    right = [right_by_hand(spelt(row), rule, verb, adverb) for row in ids]
    assert spelt(key.right(ids)) == right
    said = spelt(model(ids)[:, -1].argmax(-1))
    assert np.mean([a == b for a, b in zip(said, right, strict=True)]) >= 0.98
    assert len({(sealed.deal("d", seed)[1].verb, sealed.deal("d", seed)[1].adverb) for seed in range(12)}) > 4
    packed = sealed.pack(model)
    assert packed.isascii() and not set("\"'\\") & set(packed) and len(packed) < 150_000
    torch.testing.assert_close(sealed.opened(packed[:99] + "\n" + packed[99:])(ids), model(ids), rtol=0, atol=0)
    for damaged in ("", packed[:-7], "x y z", 'a"b'):
        with pytest.raises(ValueError, match="damaged"):
            sealed.opened(damaged)


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name == "d" else pytest.mark.weekly)
                                  for name in list(sealed.RULES)[1:]])
def test_questions_are_answered_by_the_methods_of_lessons_12_and_17(name):
    """Whatever rule a student has, the judge's shares are those of a solver that shares no code with it; half of the
    interventions change much."""
    model, key = sealed.deal(name, "a seed")
    asked = forecasts.questions(model, key, "a seed")
    rule = [words_of[key.verb], key.rule.plain, words_of[key.adverb], key.rule.turned]
    assert [question.options[question.shares.index(1)] for question in asked["rule"]] == list(map(str, rule))
    said = measured(Solver(model, key.verb, key.adverb, key.rule.plain, key.rule.turned), asked)
    for part in said:
        assert forecasts.points(said[part], asked[part]) > 0.95, part
        for question, forecast in zip(asked[part], said[part], strict=True):
            assert abs(sum(question.shares) - 1) < 1e-9 and min(question.shares) >= 0
            p, q = np.atleast_1d(forecast)[0], question.shares[0]
            assert abs(p - q) < 5 * (0.25 / 200 + 0.25 / 400) ** 0.5, (part, question)
    assert 3 <= sum(question.shares[0] < 0.5 for question in asked["cut"]) <= 5
    assert forecasts.questions(model, key, "a seed") == asked != forecasts.questions(model, key, "another")


def test_points_by_hand_and_honesty_pays():
    yes = [forecasts.Question("", ("a", "b"), (0.9, 0.1)), forecasts.Question("", ("a", "b"), (0.2, 0.8))]
    assert forecasts.points([0.7, 0.2], yes) == pytest.approx(1 - 0.08 / 0.5)
    assert forecasts.points([[0.7, 0.3], np.array([0.2, 0.8])], yes) == pytest.approx(0.84)
    assert forecasts.points([0.9, 0.2], yes) == 1 and forecasts.points([0.5, 0.5], yes) == 0 > forecasts.points([0, 1], yes)
    # who believes 0.7 of one text expects most from saying so: the outcome is 1 with probability 0.7
    sure = [[forecasts.Question("", ("a", "b"), (x, 1 - x))] for x in (1.0, 0.0)]
    expected = {p: 0.7 * forecasts.points([p / 100], sure[0]) + 0.3 * forecasts.points([p / 100], sure[1])
                for p in range(101)}
    assert max(expected, key=expected.get) == 70


def test_rounded_shares_are_scaled_and_one_odd_row_costs_one_question():
    """By hand: shares rounded to one decimal that add up to 1.1 are divided by it; what is no forecast is even shares."""
    asked = [forecasts.Question("", ("a", "b", "c"), shares) for shares in ((0.5, 0.25, 0.25), (0.0, 0.0, 1.0))]
    assert forecasts.points([[0.5, 0.3, 0.3], [0, 0, 1]], asked) == pytest.approx(
        1 - ((0.5 - 0.5 / 1.1) ** 2 + 2 * (0.25 - 0.3 / 1.1) ** 2) / (1 / 24 + 2 / 3))
    assert forecasts.points([[0.4, 0.2, 0.2], [0, 0, 0.9]], asked) == 1
    even = [1 / 3] * 3
    assert forecasts.points([even, [0, 0, 1]], asked) == pytest.approx(1 - (1 / 24) / (1 / 24 + 2 / 3))
    for odd in ([0.5, 0.5, 0.5], [0.3, 0.2, 0.2], [1, 1], None):
        assert forecasts.points([odd, [0, 0, 1]], asked) == pytest.approx(forecasts.points([even, [0, 0, 1]], asked))
        assert forecasts.read([odd, [0, 0, 1]], asked)[1] == ["Question 1 asks for 3 shares from 0 to 1 that add up to 1."]


@pytest.mark.parametrize("odd", [
    None, 3, "0.5", [], [0.5], [0.5, 0.5, 0.5], [0.5, "x"], [0.5, 1.2], [0.5, -0.1], [0.5, float("nan")], [0.5, [0.5, 0.8]],
    [0.5, None], [0.5, 1j], [0.5, 10**400], [[[0.5]], 0.5], {0: 0.5, 1: 0.5}, [0.5, {}], np.zeros(()), torch.tensor(0.5)])
def test_what_is_not_a_forecast_is_one_sentence(odd):
    yes = [forecasts.Question("", ("a", "b"), (0.9, 0.1)), forecasts.Question("", ("a", "b"), (0.2, 0.8))]
    try:
        said = forecasts.read(odd, yes)[1]
        assert forecasts.points(odd, yes) == 0
    except ValueError as error:
        said = [str(error)]
    assert len(said) == 1 and ("Give a list" in said[0] or "asks for one share" in said[0])


@pytest.mark.slow
def test_a_hunt_counts_first_answers_and_hints_and_keeps_them(file, capsys):
    hunts.board()
    hunt = hunts.hunt(3)
    assert hunt.ask("rule")[0] == "the verb that is listened to"
    assert all(isinstance(step, forecasts.Step) for step in hunt.ask("cut"))
    hunt.ask("order")
    said = capsys.readouterr().out
    assert "S would be right if" in said and "six shares" in said and "same place of the other text" in said
    right = [question.shares for question in hunt._asked["rule"]]
    hunt.answer("rule", [1, 2])
    hunt.answer("rule", [[1 / len(q)] * len(q) for q in right])
    hunt.answer("rule", right)
    hunt.answer("find", [question.shares for question in hunt._asked["find"]])
    hunt.hint()
    said = capsys.readouterr().out.splitlines()
    assert "a forecast for each of the 4 questions" in said[0] and "rule: 0.0 of 20" in said[1]
    assert "20.0 of 20 points, for practice; your first answer had 0.0" in said[2] and "find: 20.0 of 20" in said[3]
    assert said[4].startswith("Hint 1, for 5 points. The verb that is listened to: ")
    assert f" {words_of[hunt._key.verb]}." in said[4]
    another = hunts.hunt(4)
    another.answer("rule", [question.shares for question in another._asked["rule"]])
    capsys.readouterr()
    hunts.board()
    assert capsys.readouterr().out.splitlines() == ["hunt 4: 20 points, 1 of 5 parts, 0 hints.",
                                                    "hunt 3: 15 points, 2 of 5 parts, 1 hint."]
    assert str(hunt) == repr(hunt) == "hunt 3: 15 points, 2 of 5 parts, 1 hint."
    hunt.answer("cut", [2.0] * 8)
    assert "Question 1 asks for one share" in capsys.readouterr().out and "2 of 5" in str(hunt), "nothing was answered"
    for part in forecasts.PARTS[2:]:
        hunt.answer(part, [question.shares for question in hunt._asked[part]])
    hunt.hint()
    assert "All parts are answered" in capsys.readouterr().out
    assert str(hunt) == "hunt 3: 75 points, 5 of 5 parts, 1 hint."
    for wrong in (lambda: hunt.answer("all", []), lambda: hunt.ask(7), lambda: hunts.hunt("3")):
        with pytest.raises(NotUsable, match="The parts are|a whole number"):
            wrong()
