"""The bottleneck: memories that keep words, none, or those of short sentences; and words against numbers."""

import dataclasses
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.analysis.bottleneck import Bottleneck, Probing, measure
from nmt.analysis.bottleneck_report import bottleneck, statements, text
from nmt.analysis.diagnosis import LeftOut, Subject
from nmt.analysis.ratios import Ratio
from nmt.checkpoint import Checkpoint
from nmt.data.dataset import prepare
from nmt.models import build
from nmt.scorer import Scorer
from tests.oracles import options
from tests.readers import Reader
from tests.tiny_run import WORDS, tiny_config

CPU = torch.device("cpu")


def lines(number: int) -> tuple[str, ...]:
    generator = random.Random(11)
    return tuple(" ".join(generator.choices(list(WORDS), k=generator.randint(1, 12))) for _ in range(number))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bottleneck")


def subject(folder: Path, keeps: str, **changes: object) -> Subject:
    """Numerals that are to be copied."""
    config = tiny_config(folder, "transformer")
    tokenizers = prepare(config.data, lambda message: None).tokenizers
    size = tokenizers.source.vocabulary_size
    reader = Reader(size, keeps)  # type: ignore[arg-type]
    made = Subject(Checkpoint(reader, tokenizers, config, folder, 7), CPU, "fp32", options(max_length_b=60), print)
    start = {"lines": lines(80), "references": lines(80), "probe_updates": 150}
    return dataclasses.replace(made, **start | changes)


def test_a_table_that_keeps_words_shows_no_bottleneck(folder: Path) -> None:
    finding = bottleneck(subject(folder, "words"))
    probes = {(each["given"], each["trained"]): each for each in finding.tree["probing"]["probes"]}
    assert probes["row", True]["accuracy"]["value"] > 0.97
    assert probes["place", True]["accuracy"]["value"] < 0.7
    assert {given for given, trained in probes if not trained} == {"row", "mean of rows"}
    assert "Bottleneck: not shown: the memory keeps words whatever the length" in finding.text
    assert all(each["value"] == pytest.approx(100) for each in finding.tree["bleu"])
    assert finding.tree["nll"]["value"] < 1e-6
    json.dumps(finding.tree, allow_nan=False)
    assert set(finding.figures) == {"bottleneck"}


def test_a_table_that_keeps_nothing_tells_what_the_place_tells(folder: Path) -> None:
    found = measure(subject(folder, "nothing"))
    assert isinstance(found.probing, Probing)
    row = found.probing.probes[0]
    assert row.given == "row"
    assert abs(row.beyond_place.value) < 0.05
    assert "tells next to nothing of the source" in statements(found)[-1]


def test_one_that_keeps_short_sentences_shows_it(folder: Path) -> None:
    generator = random.Random(5)
    some = tuple(" ".join(generator.choices(list(WORDS), k=size)) for size in (3, 11) for _ in range(60))
    found = measure(subject(folder, "short", lines=some, references=some))
    assert isinstance(found.probing, Probing)
    row = found.probing.probes[0]
    short, long, apart = row.shortest_to_longest
    assert row.by_length.means[row.by_length.names.index(short)].value > 0.9
    assert row.by_length.means[row.by_length.names.index(long)].value < 0.1
    assert apart.high < -0.5
    assert row.by_length.slope.high < 0
    assert "Bottleneck: shown" in statements(found)[-1]


def test_a_probe_is_never_tested_on_what_it_was_trained_on(folder: Path) -> None:
    """Sentences of training among those that are looked at are left out of probing, and of nothing else."""
    config = tiny_config(folder, "transformer")
    data = prepare(config.data, lambda message: None)
    known = tuple(data.tokenizers.source.decode(data.train.source[row][:-1].tolist()) for row in range(20))
    fresh = tuple(line for line in lines(40) if len(line.split()) > 7)  # longer than any of training
    found = measure(subject(folder, "words", lines=(*known, *fresh), references=(*known, *fresh), probe_updates=3))
    assert found.pairs == len(known) + len(fresh)
    assert isinstance(found.probing, Probing)
    assert found.probing.tested == len(fresh)


def test_likelihood_is_that_of_the_scorer(folder: Path) -> None:
    """A real model's: summed over groups, it is what the scorer sums over pairs."""
    start = subject(folder, "words", probe_updates=1)
    config = start.checkpoint.config
    size = start.checkpoint.tokenizers.source.vocabulary_size
    model = build(config.model, size, size, 3).eval()
    made = dataclasses.replace(start, checkpoint=start.checkpoint._replace(model=model), search=options(beam_size=1))
    found = measure(made)
    scores = Scorer([model], made.checkpoint.tokenizers, CPU, "fp32").score(zip(lines(80), lines(80), strict=True))
    tokens, total = sum(each.length for each in scores), -sum(each.log_probability for each in scores)
    assert found.nll.value == pytest.approx(total / tokens, rel=1e-5)
    for curve in (found.nll_by_length, found.nll_by_place, found.nll_by_share):
        assert sum(each.tokens for each in curve.means) == tokens
        summed = sum(each.tokens * each.value for each in curve.means if each.tokens)
        assert summed == pytest.approx(total, rel=1e-5)


def test_without_references_there_is_nothing_to_ask(folder: Path) -> None:
    with pytest.raises(LeftOut, match="--reference"):
        measure(subject(folder, "words", references=None))


def test_without_training_text_there_is_likelihood_and_a_reason(folder: Path, tmp_path: Path) -> None:
    made = subject(folder, "words")
    config = made.checkpoint.config
    gone = dataclasses.replace(config.data, cache=str(tmp_path), train=[str(tmp_path / "no")])
    checkpoint = made.checkpoint._replace(config=dataclasses.replace(config, data=gone))
    finding = bottleneck(dataclasses.replace(made, checkpoint=checkpoint))
    assert "No probing: the data of the run cannot be had" in finding.text
    assert "Bottleneck: cannot be told" in finding.text


# --- words ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured(folder: Path) -> Bottleneck:
    return measure(subject(folder, "words", probe_updates=3))


def with_main(found: Bottleneck, beyond: Ratio, apart: Ratio, slope: Ratio) -> Bottleneck:
    """With other figures of the row's probe."""
    assert isinstance(found.probing, Probing)
    first, *others = found.probing.probes
    changed = first._replace(
        beyond_place=beyond,
        shortest_to_longest=(*first.shortest_to_longest[:2], apart),
        from_start=first.from_start._replace(slope=slope),
    )
    return found._replace(probing=found.probing._replace(probes=[changed, *others]))


@pytest.mark.parametrize(
    ("beyond", "apart", "said"),
    [
        ((0.6, 0.5, 0.7), (-0.3, -0.4, -0.2), "Bottleneck: shown"),
        ((0.6, 0.5, 0.7), (-0.03, -0.04, -0.02), "not less of longer sentences"),  # too small to be worth the name
        ((0.6, 0.5, 0.7), (-0.3, -0.7, 0.1), "not less of longer sentences"),  # the interval leaves none open
        ((0.98, 0.97, 0.99), (0.0, -0.01, 0.01), "keeps words whatever the length"),
        ((0.01, 0.0, 0.02), (-0.1, -0.2, -0.06), "next to nothing"),
    ],
)
def test_words_say_what_the_numbers_do(measured: Bottleneck, beyond: tuple, apart: tuple, said: str) -> None:
    level = Ratio(-0.01, -0.02, -0.005, 9)
    assert said in statements(with_main(measured, Ratio(*beyond, 9), Ratio(*apart, 9), level))[-1]


def test_every_curve_is_in_the_text(measured: Bottleneck) -> None:
    shown = text(measured)
    for curve in (measured.nll_by_length, measured.nll_by_place, measured.nll_by_share):
        assert " | ".join(curve.names) in shown
    nothing = Ratio(math.nan, math.nan, math.nan, 0)
    only = measured._replace(nll_by_length=measured.nll_by_length._replace(slope=nothing))
    assert "nothing can be said about -log p by length" in " ".join(statements(only))
    assert np.isfinite(measured.nll.value)
