"""Whatever the text, ``nmt.translate`` gives a line for a line: no crash, no control character, blank for blank."""

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.data.tokenizer import train_tokenizers
from tests.tiny_run import MODELS, compose_config
from tests.translate_runs import TEXT, call, make_run

HOSTILE = ["</s>", "<pad> <s>", "<unk>", "<0x0A>", " ||| ", "-", "--help", "\x00", "\u2028", "\x85", "\r", "a\rb", "\t"]
HOSTILE += ["\u202eein\u202c hund", "\ufeffein", "½ﬁ²", "e\u0301", "\U0001f469\u200d\U0001f52c", "\ufdfa", "\x1b[2J"]
LINES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30),
        st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Zs"], exclude_characters="\n"), max_size=8),
        st.sampled_from(HOSTILE),
        st.sampled_from(TEXT),
    ),
    max_size=6,
)
BATCHES = (
    [],
    ["--beam-size", "1", "--buffer-size", "2"],
    ["--batch-tokens", "1"],
    ["--precision", "int8"],
)
FAST = settings(
    max_examples=6,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module", params=list(MODELS))
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained model whose subwords spell what they do not know in bytes, a newline among them."""
    spelling = compose_config("data.tokenizer.vocabulary_size=290", "data.tokenizer.byte_fallback=true")
    tokenizers = train_tokenizers(spelling.data.tokenizer, TEXT, TEXT, len(TEXT), seed=1)
    folder = tmp_path_factory.mktemp(request.param)
    return make_run(folder, 1, tokenizers, TEXT, f"model={request.param}", *MODELS[request.param])


def sent(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def received(out: str) -> list[str]:
    """The lines of an output, none of which holds what a terminal or a reader of lines would stumble on."""
    assert not out or out.endswith("\n")
    lines = out.split("\n")[:-1]
    for line in lines:
        assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in line), repr(line)
    return lines


def as_given(lines: list[str]) -> list[str]:
    """What the rule for files makes of lines: no byte order mark at the start, no ``\\r`` at an end."""
    lines = [line.removesuffix("\r") for line in lines]
    return [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else []


@FAST
@given(lines=LINES, options=st.sampled_from(BATCHES))
def test_a_line_for_a_line(run, monkeypatch, capsys, lines, options):
    out = received(call(monkeypatch, capsys, sent(lines), "--checkpoint", run, *options))
    assert len(out) == len(lines)
    for line, translation in zip(as_given(lines), out, strict=True):
        assert not line.isspace() or not translation


@FAST
@given(lines=LINES, options=st.sampled_from(([], ["--align", "hard"])))
def test_an_object_for_a_line(run, monkeypatch, capsys, lines, options):
    if "seq2seq" in str(run):  # reads one vector, has no alignment
        options = []
    arguments = ["--checkpoint", run, "--output-format", "json", "--n-best", "2", "--beam-size", "2", *options]
    out = [json.loads(line) for line in received(call(monkeypatch, capsys, sent(lines), *arguments))]
    assert [entry["source"] for entry in out] == as_given(lines)
    for entry in out:
        assert 1 <= len(entry["translations"]) <= 2
        blank = not entry["source"] or entry["source"].isspace()
        for translation in entry["translations"]:
            received(translation["text"] + "\n")
            assert not blank or (translation["text"], translation["length"]) == ("", 0)


@FAST
@given(lines=LINES)
def test_n_best_is_numbered_by_line(run, monkeypatch, capsys, lines):
    arguments = ["--checkpoint", run, "--n-best", "3", "--beam-size", "3"]
    out = received(call(monkeypatch, capsys, sent(lines), *arguments))
    numbers = [int(line.split(" ||| ")[0]) for line in out]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(len(lines)))


def test_lines_that_are_long(run, monkeypatch, capsys):
    lines = ["ein hund", "ein" * 6667, "", " ".join(["zwei kinder spielen"] * 1000), "</s> " * 500]
    out = received(call(monkeypatch, capsys, sent(lines), "--checkpoint", run, "--beam-size", "1"))
    assert len(out) == 5
    assert out[2] == ""
