"""Health: nothing found where nothing is wrong, and what is broken on purpose is said."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.alignment import AttentionChoice
from nmt.analysis.diagnosis import LeftOut, Subject
from nmt.analysis.health import Health, Sign, measure, signs
from nmt.analysis.health_report import PICTURE, failure, health, text, tree, verdict
from nmt.models.seq2seq import Seq2Seq
from nmt.tokens import EOS
from tests.model_configs import CONFIGS, VOCABULARY
from tests.subjects import LINES, REFERENCES, WORDS, subject

SAID = 7
"""The subword that a stuck decoder says."""

MANY = tuple(f"{one} {other} w5 w6 w7 w8 w9 w10" for one in WORDS[:5] for other in WORDS[:4])
"""Twenty different sentences of eight words."""


def found_in(health_: Health) -> set[str]:
    return {each.name for each in signs(health_) if each.found}


def by_name(health_: Health, begin: str) -> Sign:
    (sign,) = [each for each in signs(health_) if each.name.startswith(begin)]
    return sign


def unlearned(name: str, tmp_path: Path, **changes: object) -> Subject:
    """It is led along its own translations."""
    return subject(name, tmp_path, lines=MANY, references=None, **changes)


def with_model(made: Subject, kind: type, name: str) -> Subject:
    """The same weights in a model of another class."""
    other = kind(CONFIGS[name], VOCABULARY, VOCABULARY).eval()
    other.load_state_dict(made.checkpoint.model.state_dict())
    return replace(made, checkpoint=made.checkpoint._replace(model=other))


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_a_healthy_model_breaks_nothing(name: str, tmp_path: Path) -> None:
    finding = health(subject(name, tmp_path))
    assert finding.failure is None
    assert "none is broken" in finding.text
    assert finding.tree["broken"] is None
    json.dumps(finding.tree, allow_nan=False)
    assert finding.tree["target"] == "the given references"
    assert finding.tree["length_ratio"] is not None
    if name == "seq2seq":
        assert finding.tree["attention"] is None
        assert not finding.figures
        assert "not measured: it reads one fixed vector" in finding.text
    else:
        assert set(finding.figures) == {PICTURE} == set(finding.images)
        assert finding.tree["attention"]["long"] is None
        assert "30 source subwords or more: none" in finding.text


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_a_decoder_that_is_stuck_is_seen(name: str, tmp_path: Path) -> None:
    """It says one word until the limit stops it, whatever it reads."""
    made = unlearned(name, tmp_path)
    say(made, SAID)
    found = measure(made)
    assert found_in(found) >= {
        "loops",
        "a 4-gram comes twice",
        "cut at the length limit",
        "different outputs / different inputs",
        "inputs with the most frequent output",
    }
    assert "empty" not in found_in(found)
    assert found.outputs.outputs == 1
    assert found.outputs.times == len(MANY)
    assert by_name(found, "loops").value == 1.0
    said = text(found)
    assert "**Look at**: " in verdict(found)[1]
    assert "loops (1, expected 0.01 or less)" in verdict(found)[1]
    assert "- loops: 17 more" in said
    assert failure(found) is None  # it may be useless, but it keeps its promises


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_empty_translations_are_seen(name: str, tmp_path: Path) -> None:
    made = unlearned(name, tmp_path)
    say(made, EOS)
    found = measure(made)
    assert by_name(found, "empty").value == 1.0
    assert "empty" in found_in(found)
    assert not found_in(found) & {"loops", "cut at the length limit", "a 4-gram comes twice"}


def say(made: Subject, token: int) -> None:
    """The model gives this subword all probability."""
    model: Any = made.checkpoint.model
    project = model.project
    model.project = lambda features: project(features) + 1e4 * torch.eye(VOCABULARY)[token]


def test_attention_that_is_stuck_is_seen(tmp_path: Path) -> None:
    made = unlearned("bahdanau", tmp_path)
    say(made, SAID)
    with torch.no_grad():
        made.checkpoint.model.reader.query.weight.zero_()  # type: ignore[union-attr, operator]
    found = measure(made)
    stays = [by_name(found, f"attention stays at {where}") for where in ("a word", "EOS")]
    assert sum(each.value or 0.0 for each in stays) == 1.0  # every sentence, here or there
    assert any(each.found for each in stays)


def test_uniform_attention_is_seen(tmp_path: Path) -> None:
    made = unlearned("bahdanau", tmp_path)
    with torch.no_grad():
        made.checkpoint.model.reader.score.weight.zero_()  # type: ignore[union-attr, operator]
    found = measure(made)
    assert "entropy of attention" in found_in(found)
    last = by_name(found, "last quarter")
    assert last.value is None
    assert "nothing is reached" in (last.missing or "")


def test_ends_that_nobody_reads_are_seen(tmp_path: Path) -> None:
    found = measure(subject("transformer", tmp_path))
    assert found.attention is not None
    for last, worth in ((0.2, True), (0.7, False)):
        every = found.attention.every._replace(reached_before=0.8, reached_last=last)
        changed = found._replace(attention=found.attention._replace(every=every))
        assert by_name(changed, "last quarter").found is worth
    long = found.attention.every._replace(sentences=9, reached_before=0.8, reached_last=0.1)
    every = long._replace(reached_last=0.8)
    changed = found._replace(attention=found.attention._replace(every=every, long=long))
    assert by_name(changed, "last quarter reached / rest reached (9 sentences of 30").found


def test_lengths_and_words_beside_references(tmp_path: Path) -> None:
    """The stuck decoder says seven words, all alike, where its references have two to five."""
    made = subject("seq2seq", tmp_path)
    say(made, SAID)
    found = measure(made)
    words = sum(len(line.split()) for line in REFERENCES)
    assert found.length_ratio == pytest.approx(7 * 4 / words)
    assert {"length / references", "different pairs of words, beside references"} <= found_in(found)
    assert by_name(found, "different outputs").value is None  # of four inputs nothing can be said
    assert [each.source for each in found.own] == [line for line in LINES if line]


def test_without_references_it_is_said(tmp_path: Path) -> None:
    found = measure(unlearned("bahdanau", tmp_path))
    assert found.length_ratio is found.references is None
    assert "no references" in (by_name(found, "length").missing or "")


class NeighboursMatter(Seq2Seq):
    """What a sentence says depends on the batch."""

    def decode(self, target_in: Tensor, memory: Any) -> Tensor:
        features = super().decode(target_in, memory)
        return features - features.mean(dim=0, keepdim=True)


def test_a_broken_promise_is_a_failure(tmp_path: Path) -> None:
    made = with_model(subject("seq2seq", tmp_path), NeighboursMatter, "seq2seq")
    finding = health(made)
    assert finding.failure is not None
    assert "batch (a sentence gives the same alone and beside longer ones: off by 0." in finding.failure
    assert finding.text.count("**Broken**") == 1
    assert finding.tree["broken"] == finding.failure


def test_what_is_no_number_is_written_as_such(tmp_path: Path) -> None:
    found = measure(subject("bahdanau", tmp_path))
    first = found.invariants[0]._replace(deviation=math.inf)
    changed = found._replace(invariants=[first, *found.invariants[1:]])
    assert "off by not a number" in (failure(changed) or "")
    written = json.loads(json.dumps(tree(changed), allow_nan=False))
    assert written["invariants"][0]["deviation"] is None
    assert written["invariants"][0]["state"] == "broken"


def test_layers_and_sentences_are_those_asked_for(tmp_path: Path) -> None:
    found = measure(subject("transformer", tmp_path, choice=AttentionChoice(2, 1), sentences=2))
    assert found.attention is not None
    assert found.attention.weights_of == "layer 2 of 2, head 1 of 2"
    assert found.attention.every.sentences == 2
    assert found.attention.every.entropy == pytest.approx(found.attention.entropy_by_head[1][0])


def test_nothing_to_look_at_is_said(tmp_path: Path) -> None:
    with pytest.raises(LeftOut, match="--input"):
        measure(subject("bahdanau", tmp_path, lines=("", " "), references=None))
