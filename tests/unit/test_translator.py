"""Text in, text out: order, batches, blank lines, ensembles; with models whose answers are known."""

import dataclasses
import random

import pytest
import torch

from nmt.alignment import AttentionChoice
from nmt.config import Sampling, SearchConfig
from nmt.data.tokenizer import TokenizerPair
from nmt.engine import Request, TorchEngine
from nmt.search import search
from nmt.tokens import EOS
from nmt.translation import BLANK, batches_by_length
from nmt.translator import Translator
from tests.fakes import AutomatonModel, CopyModel, WordTokenizer

WORDS = [f"w{number}" for number in range(40)]


def options(**changes: object) -> SearchConfig:
    start = SearchConfig(
        beam_size=3,
        length_penalty="gnmt",
        alpha=1.0,
        min_length=0,
        max_length_a=2.0,
        max_length_b=5,
        patience=None,
        no_repeat_ngram=0,
        forbid_unk=False,
        batch_tokens=200,
    )
    return dataclasses.replace(start, **changes)


def translator(*models, precision="fp32") -> Translator:
    source, target = WordTokenizer(WORDS), WordTokenizer([word.upper() for word in WORDS])
    return Translator(TorchEngine(models, torch.device("cpu"), precision), TokenizerPair(source, target), options())


def copier() -> Translator:
    """Translates each word into itself in capitals."""
    return translator(CopyModel(vocabulary=44))


def random_lines(count: int, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    lines = [" ".join(generator.choices(WORDS, k=generator.randint(1, 30))) for _ in range(count)]
    return [generator.choice(["", " ", "\t \u3000"]) if generator.random() < 0.1 else line for line in lines]


def test_lines_come_back_in_order_and_blank_lines_stay_blank():
    lines = random_lines(200)
    results = copier().translate(lines, options())
    assert [best.text for best in results] == [" ".join(line.upper().split()) for line in lines]
    assert all((result == BLANK) == (not line.strip()) for result, line in zip(results, lines, strict=True))
    assert sum(not line.strip() for line in lines) > 5


def test_no_lines_and_only_blank_lines():
    assert copier().translate([], options()) == []
    assert copier().translate(["", "   "], options()) == [BLANK, BLANK]


def test_a_line_of_nothing_that_the_tokenizer_knows_how_to_keep_is_blank():
    class Forgetful(WordTokenizer):
        def encode(self, text: str) -> list[int]:
            return [token for token in super().encode(text) if token != 1]

    made = translator(CopyModel(vocabulary=44))
    made.tokenizers = TokenizerPair(Forgetful(WORDS), made.tokenizers.target)
    assert [best.text for best in made.translate(["w1 w2", "?", "w3"], options())] == ["W1 W2", "", "W3"]


def test_what_a_translation_says_of_itself():
    [best] = copier().translate(["w1 w2"], options(max_length_a=0.0, max_length_b=9))
    assert (best.ids, best.tokens, best.length, best.finished) == ([5, 6], ["▁W1", "▁W2"], 3, True)
    assert best.score == pytest.approx(best.log_probability / ((5 + 3) / 6))
    [cut] = copier().translate(["w1 w2 w3"], options(max_length_a=0.0, max_length_b=2))
    assert (cut.text, cut.length, cut.finished) == ("W1 W2", 2, False)


def test_results_are_those_of_a_search_of_each_line_alone():
    model = AutomatonModel(seed=2, vocabulary=44)
    made, config = translator(model), options(max_length_b=4, max_length_a=0.5)
    lines = random_lines(60, seed=1)
    for line, found in zip(lines, made.n_best(lines, 3, config), strict=True):
        if not line.strip():
            assert found == [BLANK]
            continue
        ids = [*made.tokenizers.source.encode(line), EOS]
        [expected] = search([model], torch.tensor([ids]), torch.tensor([len(ids)]), config, n_best=3)
        assert [t.ids for t in found] == [h.tokens for h in expected]
        assert [t.text for t in found] == [made.tokenizers.target.decode(h.tokens) for h in expected]
        assert [t.score for t in found] == pytest.approx([h.score for h in expected], abs=1e-5)


@pytest.mark.parametrize("batch_tokens", [1, 40, 333, 100_000])
def test_the_token_budget_changes_nothing(batch_tokens):
    made, lines = translator(AutomatonModel(seed=2, vocabulary=44)), random_lines(40, seed=1)
    budgeted = made.translate(lines, options(batch_tokens=batch_tokens, max_length_a=0.5))
    assert [t.text for t in budgeted] == [t.text for t in made.translate(lines, options(max_length_a=0.5))]


def test_stream_equals_translate_and_reads_no_further_than_its_buffer():
    lines, made = random_lines(50), copier()
    whole = made.n_best(lines, 2, options())
    for buffer_size in (1, 7, 50, 1000):
        taken = []

        def reading(taken=taken):
            for line in lines:
                taken.append(line)
                yield line

        answers = made.stream(reading(), options(), buffer_size=buffer_size, n_best=2)
        first = next(answers)
        assert len(taken) == min(buffer_size, 50)
        answers = [first, *answers]
        assert [(answer.source, answer.translations) for answer in answers] == list(zip(lines, whole, strict=True))
        assert [answer.source_tokens for answer in answers] == [[f"▁{word}" for word in line.split()] for line in lines]
    with pytest.raises(ValueError, match="--buffer-size"):
        made.stream(lines, options(), buffer_size=0)


@pytest.mark.parametrize("budget", [1, 10, 57, 1000])
def test_batches_keep_the_budget_and_every_row(budget):
    generator = random.Random(0)
    lengths = {place * 3: generator.randint(2, 41) for place in range(100)}
    batches = list(batches_by_length(lengths, budget))
    assert sorted(place for batch in batches for place in batch) == sorted(lengths)
    for batch in batches:
        assert len(batch) * max(lengths[place] for place in batch) <= budget or len(batch) == 1
    if budget == 1000:
        padded = sum(len(batch) * max(lengths[place] for place in batch) for batch in batches)
        assert padded < 1.5 * sum(lengths.values())
        assert len(batches) < 5


def test_batches_count_hypotheses():
    model = CopyModel(vocabulary=44)
    lines = [" ".join(WORDS[:9])] * 20  # 10 source tokens each
    translator(model).translate(lines, options(beam_size=2, batch_tokens=100))
    assert max(model.rows_per_step) == 10  # 5 sentences x 2 hypotheses x 10 tokens


def test_one_huge_line_among_small_ones():
    lines = ["w1", " ".join(WORDS * 30), "w2"]
    assert [t.text for t in copier().translate(lines, options())] == [line.upper() for line in lines]


def test_an_ensemble_is_searched_as_one():
    first, second = AutomatonModel(seed=1, vocabulary=44), AutomatonModel(seed=2, vocabulary=44)
    lines = random_lines(10)
    both = translator(first, second).translate(lines, options())
    assert both != translator(first).translate(lines, options())
    made = translator(first, second)
    for line, found in zip(lines, both, strict=True):
        if line.strip():
            ids = [*made.tokenizers.source.encode(line), EOS]
            [[expected]] = search([first, second], torch.tensor([ids]), torch.tensor([len(ids)]), options())
            assert found.ids == expected.tokens


def test_samples_go_with_the_line_and_its_number():
    made, lines = translator(AutomatonModel(seed=2, vocabulary=44, spread=0.5)), random_lines(30, seed=1)
    config, sampling = options(max_length_a=0.5, batch_tokens=40), Sampling(1.0, top_k=0, top_p=1.0, seed=5)
    whole = made.n_best(lines, 2, config, sampling=sampling)
    assert all(len(found) == 2 for found, line in zip(whole, lines, strict=True) if line.strip())
    large = dataclasses.replace(config, batch_tokens=100_000)
    assert [[t.ids for t in found] for found in made.n_best(lines, 2, large, sampling=sampling)] == [
        [t.ids for t in found] for found in whole
    ]
    for buffer_size in (1, 7):
        streamed = made.stream(lines, config, buffer_size=buffer_size, n_best=2, sampling=sampling)
        assert [[t.ids for t in answer.translations] for answer in streamed] == [
            [t.ids for t in found] for found in whole
        ]
    twice = made.translate(["w1 w2 w3 w4 w5 w6", "w1 w2 w3 w4 w5 w6"], config, sampling=sampling)
    assert twice[0] != twice[1]


def test_batches_count_samples():
    model = CopyModel(vocabulary=44)
    lines = [" ".join(WORDS[:9])] * 20  # 10 source tokens each
    translator(model).n_best(lines, 2, options(beam_size=7, batch_tokens=100), sampling=Sampling(1.0, 0, 1.0, 1))
    assert max(model.rows_per_step) == 10


def test_options_are_checked_before_anything_is_read():
    with pytest.raises(ValueError, match="--beam-size"):
        copier().n_best([""], 3, options(beam_size=2))


class Recorder:
    """An engine that writes down what it is asked."""

    def __init__(self, engine: TorchEngine) -> None:
        self.engine = engine
        self.requests: list[Request] = []

    def run(self, requests):
        def recorded():
            for request in requests:
                self.requests.append(request)
                yield request

        return self.engine.run(recorded())


def test_options_are_the_translators_own_unless_others_are_given():
    made = copier()
    made.engine = Recorder(made.engine)
    for arguments, keywords, expected in (
        ([], {}, options()),
        ([options(alpha=0.5)], {}, options(alpha=0.5)),
        ([], {"beam_size": 2}, options(beam_size=2)),
        ([options(alpha=0.5)], {"beam_size": 1}, options(alpha=0.5, beam_size=1)),
    ):
        made.engine.requests.clear()
        made.translate(["w1", "w2"], *arguments, **keywords)
        assert {request.config for request in made.engine.requests} == {expected}
        assert len(made.engine.requests) > 1


def test_one_line_in_place_of_a_list_is_refused():
    with pytest.raises(TypeError, match=r"write \['w1 w2'\]"):
        copier().translate("w1 w2")


def test_the_engine_is_asked_whether_it_can_before_a_line_is_read():
    made, read = translator(AutomatonModel(1, 44), AutomatonModel(2, 44)), []

    def lines():
        read.append("w1")
        yield "w1"

    with pytest.raises(ValueError, match="ensemble"):
        next(made.stream(lines(), alignment=AttentionChoice()))
    assert read == []


def test_token_scores_are_those_of_the_search():
    made = translator(AutomatonModel(seed=2, vocabulary=44))
    config = options(max_length_a=0.5, beam_size=2)
    lines = random_lines(20)
    plain = made.n_best(lines, 2, config)
    for with_scores, without in zip(made.n_best(lines, 2, config, token_scores=True), plain, strict=True):
        for translation in with_scores:
            if translation != BLANK:
                assert len(translation.token_log_probabilities) == translation.length
                assert sum(translation.token_log_probabilities) == pytest.approx(translation.log_probability, abs=1e-4)
        assert [t._replace(token_log_probabilities=None) for t in with_scores] == without


def test_a_buffer_of_blank_lines_is_answered_before_the_next_line_is_read():
    lines, read = ["", "w1", " "], []

    def reading():
        for line in lines:
            read.append(line)
            yield line

    for count, answer in enumerate(copier().stream(reading(), buffer_size=1), 1):
        assert len(read) == count
        assert answer.source == lines[count - 1]


# --- given beginnings -------------------------------------------------------------------------------------------------


def test_each_translation_begins_with_its_prefix_and_goes_on_from_there():
    lines = ["w1 w2 w3", "", "w4 w5", "w6 w7 w8 w9", "w1", "  "]
    prefixes = ["W7", "W1", " ", "W1 W2", "", ""]
    expected = ["W7 W2 W3", "", "W4 W5", "W1 W2 W8 W9", "W1", ""]  # the copier goes on behind what it has been given
    assert [t.text for t in copier().translate(lines, prefixes=prefixes)] == expected
    for buffer_size in (1, 4, 10):
        found = copier().stream(iter(lines), buffer_size=buffer_size, prefixes=iter(prefixes))
        assert [answer.translations[0].text for answer in found] == expected


def test_a_prefix_is_free_where_it_is_blank():
    made, lines = translator(AutomatonModel(seed=2, vocabulary=44)), random_lines(30, seed=1)
    config = options(max_length_a=0.5)
    free = made.translate(lines, config)
    prefixes = ["" if place % 3 else "W3 W4" for place in range(len(lines))]
    found = made.translate(lines, config, prefixes=prefixes)
    for line, prefix, one, other in zip(lines, prefixes, found, free, strict=True):
        if prefix and line.strip():
            assert one.text.startswith("W3 W4")
        else:
            assert one.text == other.text


def test_prefixes_are_read_in_step_with_the_lines():
    read: list[str] = []

    def reading(items):
        for item in items:
            read.append(item)
            yield item

    answers = copier().stream(reading(["w1", "w2", "w3"]), buffer_size=1, prefixes=reading(["W4", "W5", "W6"]))
    assert next(answers).translations[0].text == "W4"
    assert read == ["w1", "W4"]


@pytest.mark.parametrize(("lines", "prefixes"), [(3, 2), (2, 3), (0, 1), (1, 0)])
def test_another_number_of_prefixes_than_of_lines_is_refused_with_both(lines, prefixes):
    with pytest.raises(ValueError, match=f"input has {lines} lines but target prefix has {prefixes}:"):
        copier().translate(["w1"] * lines, prefixes=["W1"] * prefixes)


def test_a_prefix_that_cannot_be_written_is_refused_with_its_line():
    lines, prefixes = ["w1"] * 5, ["W1", "", "W2", "W1 ?? W2 !", "W1"]
    for buffer_size in (1, 3, 5):
        with pytest.raises(ValueError, match=r"line 4: .*cannot write '\?\? !'"):
            list(copier().stream(lines, buffer_size=buffer_size, prefixes=prefixes))
    with pytest.raises(TypeError, match="prefixes"):
        copier().translate(lines, prefixes="W1")
