"""``python -m nmt.translate``: given beginnings, shortlists, and where the model looked."""

import json
from pathlib import Path

import pytest
import torch

from nmt import checkpoint
from nmt.lexicon import Shortlist
from nmt.tokens import BOS, EOS, PAD, UNK
from tests.translate_runs import KEYS, SEQ2SEQ, TEXT, by_the_library, call, make_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "one", seed=1)


def test_translations_begin_with_the_text_of_their_prefix(trained, tmp_path, monkeypatch, capsys):
    """Letter by letter, whether it ends where a word ends or inside one."""
    whole = "eine frau liest ein buch"
    prefixes = [whole[:end] for end in range(len(whole) + 1)]
    (tmp_path / "prefixes").write_text("\n".join(prefixes), encoding="utf-8")
    stdin = "\n".join(["ein hund"] * len(prefixes)).encode()
    arguments = ["--checkpoint", trained, "--target-prefix", tmp_path / "prefixes"]
    found = call(monkeypatch, capsys, stdin, *arguments, "--max-length-b", 30).removesuffix("\n").split("\n")
    assert len(found) == len(prefixes)
    for text, prefix in zip(found, prefixes, strict=True):
        assert text.startswith(prefix.rstrip())
    by_one = call(monkeypatch, capsys, stdin, *arguments, "--max-length-b", 30, "--buffer-size", 1)
    assert by_one.removesuffix("\n").split("\n") == found
    with pytest.raises(ValueError, match=f"has 1 lines but .* has {len(prefixes)}"):
        call(monkeypatch, capsys, b"ein hund\n", *arguments, "--output", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["prefixes"]


def test_a_shortlist_is_what_translations_are_made_of(trained, tmp_path, monkeypatch, capsys):
    tokenizers = checkpoint.load(trained).tokenizers
    size = tokenizers.target.vocabulary_size
    candidates = torch.full((size, 1), EOS)
    allowed = torch.tensor([PAD, UNK, BOS, EOS, *tokenizers.target.encode("ein hund")]).unique()
    for name, always, digest in (
        ("few", allowed, tokenizers.digest),
        ("all", torch.arange(size), tokenizers.digest),
        ("others", allowed, "0" * 64),
    ):
        Shortlist(candidates, always, size, digest).save(tmp_path / name)
    stdin = "\n".join(TEXT[:4]).encode()
    arguments = ["--checkpoint", trained, "--output-format", "json"]

    def with_shortlist(name: str) -> list[list[str]]:
        out = call(monkeypatch, capsys, stdin, *arguments, "--shortlist", tmp_path / name).removesuffix("\n")
        return [json.loads(line)["translations"][0]["tokens"] for line in out.split("\n")]

    assert {token for tokens in with_shortlist("few") for token in tokens} <= set(tokenizers.target.pieces(allowed))
    assert with_shortlist("all") == [best.tokens for [best] in by_the_library(trained, TEXT[:4])]
    assert with_shortlist("all") != with_shortlist("few")
    for extra, message in (
        (["others"], "other subwords"),
        (["none"], "none: no shortlist"),
        (["all", "--sample"], "--sample"),
    ):
        with pytest.raises(ValueError, match=message):
            call(monkeypatch, capsys, stdin, *arguments, "--shortlist", tmp_path / extra[0], *extra[1:])


# --- where the model looked -------------------------------------------------------------------------------------------


def test_hard_alignments_are_a_column(trained, monkeypatch, capsys):
    lines = ["ein hund läuft", "", "zwei\u00a0kinder \u3000 im park"]
    stdin = "\n".join(lines).encode()
    out = call(monkeypatch, capsys, stdin, "--checkpoint", trained, "--align", "hard").removesuffix("\n").split("\n")
    plain = call(monkeypatch, capsys, stdin, "--checkpoint", trained).removesuffix("\n").split("\n")
    texts, links = zip(*(line.split(" ||| ") for line in out), strict=True)
    assert list(texts) == plain
    assert out[1] == " ||| "
    for source, text, written in zip(lines, texts, links, strict=True):
        pairs = [tuple(map(int, link.split("-"))) for link in written.split()]
        assert pairs == sorted(pairs)
        assert sorted(target for _, target in pairs) == list(range(len(text.split())))
        assert all(0 <= place < len(source.split()) for place, _ in pairs)
    n_best = call(monkeypatch, capsys, stdin, "--checkpoint", trained, "--align", "hard", "--n-best", 2).split("\n")
    assert n_best[0].split(" ||| ")[:2] == ["0", texts[0]]
    assert n_best[0].split(" ||| ")[3] == links[0]


def test_soft_alignments_have_their_tokens_and_words(trained, monkeypatch, capsys):
    lines = ["ein hund läuft", "", "zwei\u00a0kinder \u3000 im park"]
    arguments = ["--checkpoint", trained, "--output-format", "json", "--token-scores", "--n-best", 2]
    stdin = "\n".join(lines).encode()
    soft, hard = (call(monkeypatch, capsys, stdin, *arguments, "--align", kind) for kind in ("soft", "hard"))
    for line, entry, short in zip(lines, *(text.removesuffix("\n").split("\n") for text in (soft, hard)), strict=True):
        entry, short = json.loads(entry), json.loads(short)
        assert entry["source"] == line
        for translation, brief in zip(entry["translations"], short["translations"], strict=True):
            assert set(translation) == KEYS | {"token_log_probabilities", "alignment", "attention"} == set(brief)
            assert translation["alignment"] == brief["alignment"]
            if not line:
                assert (translation["alignment"], translation["attention"]) == ("", None)
                assert translation["token_log_probabilities"] == []
                continue
            assert sum(translation["token_log_probabilities"]) == pytest.approx(
                translation["log_probability"], abs=1e-4
            )
            attention = translation["attention"]
            whose = {"layer": 1, "layers": 1, "head": "mean", "heads": 1}
            assert brief["attention"] == whose
            assert whose.items() <= attention.items()
            end = ["</s>"] if translation["finished"] else []
            assert attention["source_tokens"] == [*entry["source_tokens"], "</s>"]
            assert attention["target_tokens"] == translation["tokens"] + end
            assert attention["source_words"] == [*line.split(), "</s>"]
            assert attention["target_words"] == translation["text"].split() + end
            for rows, columns, matrix in (
                ("target_tokens", "source_tokens", "weights"),
                ("target_words", "source_words", "word_weights"),
            ):
                assert len(attention[matrix]) == len(attention[rows])
                for row in attention[matrix]:
                    assert len(row) == len(attention[columns])
                    assert sum(row) == pytest.approx(1.0, abs=1e-4)


def test_what_cannot_be_aligned_is_refused_before_anything_is_read(trained, tmp_path, monkeypatch, capsys):
    def refused(match: str, *arguments: object) -> None:
        with pytest.raises(ValueError, match=match):
            call(monkeypatch, capsys, b"\xff", *arguments)

    usual = ("--checkpoint", trained)
    for reverse in ("true", "false"):
        fixed = make_run(tmp_path / reverse, 1, None, TEXT, *SEQ2SEQ, f"model.reverse_source={reverse}")
        refused("--align.*Seq2Seq reads one fixed vector", "--checkpoint", fixed, "--align", "hard")
    refused("--align.*ensemble", *usual, "--checkpoint", trained, "--align", "hard")
    refused("--align soft: .*--output-format json", *usual, "--align", "soft")
    refused("--token-scores: .*--output-format json", *usual, "--token-scores")
    refused("--align-layer: without effect", *usual, "--align-layer", 1)
    refused("--align-head: without effect", *usual, "--align-head", "mean")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [("--align-layer", 2, "layers 1 to 1, found 2"), ("--align-head", 0, "heads 1 to 1, found 0")],
)
def test_a_layer_or_head_that_there_is_not_is_named(trained, monkeypatch, capsys, option, value, message):
    with pytest.raises(ValueError, match=f"{option}.*{message}"):
        call(monkeypatch, capsys, b"ein hund\n", "--checkpoint", trained, "--align", "hard", option, value)


def test_a_layer_that_is_no_number_is_refused_in_words(trained, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        call(monkeypatch, capsys, b"ein hund\n", "--checkpoint", trained, "--align", "hard", "--align-layer", "last")
    assert "--align-layer: expected a number from 1 or mean, found last" in capsys.readouterr().err
