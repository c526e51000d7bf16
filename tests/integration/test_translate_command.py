"""``python -m nmt.translate`` as a user meets it: bytes in, bytes out, exit status, files."""

import dataclasses
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nmt import checkpoint, translate
from nmt.cli import default_search
from nmt.config import Sampling
from nmt.data.tokenizer import TokenizerPair, train_tokenizers
from nmt.lexicon import Shortlist
from nmt.models import build
from nmt.tokens import BOS, EOS, PAD, UNK
from nmt.translator import Translator
from tests.tiny_run import compose_config

TEXT = ["ein hund läuft", "eine frau liest ein buch", "zwei kinder spielen im park", "ein mann schläft ½ tag"] * 5
KEYS = {"text", "score", "log_probability", "log_probability_per_token", "tokens", "length", "finished"}
SHORT = ["--max-length-a", "0", "--max-length-b", "6", "--precision", "fp32"]
"""An untrained model rarely ends by itself: keep its translations short."""
BAHDANAU = ("model=bahdanau", *(f"model.{name}_dim=8" for name in ("embedding", "attention", "maxout")))
BAHDANAU += ("model.hidden_dim=12",)
SEQ2SEQ = ("model=seq2seq", "model.embedding_dim=8", "model.hidden_dim=12")


def make_run(
    folder: Path, seed: int, tokenizers: TokenizerPair | None = None, text: list[str] = TEXT, *model: str
) -> Path:
    """A run folder with one checkpoint of an untrained model."""
    config = compose_config(
        *(model or BAHDANAU), f"seed={seed}", "data.tokenizer.vocabulary_size=60", "training.precision=fp32"
    )
    if tokenizers is None:
        tokenizers = train_tokenizers(config.data.tokenizer, text, text, len(text), seed=1)
    model = build(config.model, tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size, seed)
    for parameter in model.parameters():
        parameter.data.mul_(3.0)  # away from the uniform distribution
    checkpoints = folder / "checkpoints"
    checkpoint.save(checkpoint.step_folder(checkpoints, 1), model.state_dict(), tokenizers, config, step=1)
    checkpoint.link(checkpoints, "last", checkpoint.step_folder(checkpoints, 1))
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "one", seed=1)


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "nmt.translate", *map(str, arguments)]


def call(monkeypatch, capsys, stdin: bytes, *arguments: object) -> str:
    """The command within this process: stdout."""
    monkeypatch.setattr(sys, "argv", ["nmt.translate", *map(str, arguments), *SHORT])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii"))
    translate.main()
    return capsys.readouterr().out


def by_the_library(run: Path | list[Path], lines: list[str], n_best: int = 1, **changes: object):
    config = dataclasses.replace(default_search(), max_length_a=0.0, max_length_b=6, **changes)
    return Translator.load(run, "cpu", "fp32").n_best(lines, n_best, config)


# --- text in, text out ------------------------------------------------------------------------------------------------


def test_one_line_in_one_line_out(trained, monkeypatch, capsys):
    lines = ["ein hund", "", "im park", "  ", "zwei\u2028kinder\u0085spielen\x0bim\x1cpark", "ein\rhund", "½"]
    expected = "".join(f"{best.text}\n" for [best] in by_the_library(trained, lines))
    assert expected.count("\n") == 7
    assert call(monkeypatch, capsys, "\n".join(lines).encode() + b"\n", "--checkpoint", trained) == expected
    assert call(monkeypatch, capsys, "\n".join(lines).encode(), "--checkpoint", trained) == expected
    assert call(monkeypatch, capsys, "\r\n".join(lines).encode(), "--checkpoint", trained) == expected
    assert call(monkeypatch, capsys, b"\xef\xbb\xbf" + "\n".join(lines).encode(), "--checkpoint", trained) == expected
    by_one = call(monkeypatch, capsys, "\n".join(lines).encode(), "--checkpoint", trained, "--buffer-size", 1)
    assert by_one == expected


@pytest.mark.parametrize("stdin", [b"", b"\xef\xbb\xbf"])
def test_nothing_in_nothing_out(trained, monkeypatch, capsys, stdin):
    assert call(monkeypatch, capsys, stdin, "--checkpoint", trained) == ""


def test_files_and_the_summary(trained, tmp_path, monkeypatch, capsys):
    with gzip.open(tmp_path / "in.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join([*TEXT, "", "im park"]))
    arguments = ["--checkpoint", trained, "--input", tmp_path / "in.txt.gz", "--output", tmp_path / "out.txt"]
    monkeypatch.setattr(sys, "argv", ["nmt.translate", *map(str, arguments), *SHORT])
    translate.main()
    captured = capsys.readouterr()
    assert captured.out == ""
    found = by_the_library(trained, [*TEXT, "", "im park"])
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == "".join(f"{best.text}\n" for [best] in found)
    assert "22 lines (1 blank)" in captured.err
    assert f"{sum(not best.finished for [best] in found)} cut at the length limit" in captured.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt.gz", "out.txt"]


def test_n_best_text(trained, monkeypatch, capsys):
    out = call(monkeypatch, capsys, b"ein hund\n\nim park\n", "--checkpoint", trained, "--n-best", 3, "--beam-size", 4)
    expected = [
        f"{number} ||| {translation.text} ||| {translation.score:.6f}"
        for number, entries in enumerate(by_the_library(trained, ["ein hund", "", "im park"], n_best=3, beam_size=4))
        for translation in entries
    ]
    assert out == "\n".join(expected) + "\n"
    assert len({line.split(" ||| ")[0] for line in expected}) == 3


def test_json(trained, monkeypatch, capsys):
    lines = ["ein hund läuft", "", 'zwei "kinder"']
    arguments = ["--checkpoint", trained, "--n-best", 2, "--output-format", "json"]
    out = call(monkeypatch, capsys, "\n".join(lines).encode(), *arguments)
    assert "ä" in out
    found = [json.loads(line) for line in out.removesuffix("\n").split("\n")]
    assert [entry["source"] for entry in found] == lines
    tokenizer = checkpoint.load(trained).tokenizers.source
    assert [entry["source_tokens"] for entry in found] == [tokenizer.pieces(tokenizer.encode(line)) for line in lines]
    for entry, expected in zip(found, by_the_library(trained, lines, n_best=2), strict=True):
        assert set(entry["translations"][0]) == KEYS
        assert [t["text"] for t in entry["translations"]] == [t.text for t in expected]
        assert [t["tokens"] for t in entry["translations"]] == [t.tokens for t in expected]
        assert [t["score"] for t in entry["translations"]] == pytest.approx([t.score for t in expected], abs=1e-5)
        assert [t["length"] for t in entry["translations"]] == [t.length for t in expected]
        assert [t["log_probability_per_token"] for t in entry["translations"]] == [
            pytest.approx(t.log_probability / t.length, abs=1e-5) if t.length else None for t in expected
        ]


def test_samples(trained, monkeypatch, capsys):
    arguments = ["--checkpoint", trained, "--sample", "--n-best", 3, "--temperature", 0.9, "--top-k", 20, "--seed", 4]
    out = call(monkeypatch, capsys, b"ein hund\n\nim park\n", *arguments)
    sampling = Sampling(temperature=0.9, top_k=20, top_p=1.0, seed=4)
    config = dataclasses.replace(default_search(), max_length_a=0.0, max_length_b=6)
    made = Translator.load(trained, "cpu").n_best(["ein hund", "", "im park"], 3, config, sampling=sampling)
    assert out == "".join(f"{n} ||| {t.text} ||| {t.score:.6f}\n" for n, found in enumerate(made) for t in found)
    by_one = call(monkeypatch, capsys, b"ein hund\n\nim park\n", *arguments, "--buffer-size", 1)
    assert [line.split(" ||| ")[:2] for line in by_one.split("\n")] == [
        line.split(" ||| ")[:2] for line in out.split("\n")
    ]
    with pytest.raises(ValueError, match="--top-p"):
        call(monkeypatch, capsys, b"", "--checkpoint", trained, "--sample", "--top-p", 0)


def test_search_options_reach_the_search(trained, monkeypatch, capsys):
    stdin = "\n".join(TEXT[:4]).encode()
    default = call(monkeypatch, capsys, stdin, "--checkpoint", trained)
    for changes in (
        {"beam_size": 1},
        {"length_penalty": "none"},
        {"alpha": -3.0},
        {"min_length": 5},
        {"no_repeat_ngram": 1},
    ):
        arguments = [part for name, value in changes.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        out = call(monkeypatch, capsys, stdin, "--checkpoint", trained, *arguments)
        assert out == "".join(f"{best.text}\n" for [best] in by_the_library(trained, TEXT[:4], **changes))
    longer = call(monkeypatch, capsys, stdin, "--checkpoint", trained, "--min-length", 5)
    assert longer != default


def test_an_ensemble(trained, tmp_path, monkeypatch, capsys):
    tokenizers = checkpoint.load(trained).tokenizers
    other = make_run(tmp_path / "two", seed=2, tokenizers=tokenizers)
    stdin = "\n".join(TEXT[:4]).encode()
    out = call(monkeypatch, capsys, stdin, "--checkpoint", trained, "--checkpoint", other)
    assert out == "".join(f"{best.text}\n" for [best] in by_the_library([trained, other], TEXT[:4]))
    assert out == call(monkeypatch, capsys, stdin, "--checkpoint", trained, other)
    twice = call(monkeypatch, capsys, stdin, "--checkpoint", trained, "--checkpoint", trained)
    assert twice == call(monkeypatch, capsys, stdin, "--checkpoint", trained)
    stranger = make_run(tmp_path / "three", seed=2, text=[line.upper() for line in TEXT])
    with pytest.raises(ValueError, match="tokenizers"):
        call(monkeypatch, capsys, stdin, "--checkpoint", trained, "--checkpoint", stranger)


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
        refused("Seq2Seq reads one fixed vector", "--checkpoint", fixed, "--align", "hard")
    refused("ensemble", *usual, "--checkpoint", trained, "--align", "hard")
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


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_a_bad_byte_leaves_no_file_behind(trained, tmp_path):
    (tmp_path / "out.txt").write_text("older\n")
    arguments = ["--checkpoint", trained, "--buffer-size", 1, "--output", tmp_path / "out.txt", *SHORT]
    result = subprocess.run(command(*arguments), input=b"ein hund\nf\xfcr\n", capture_output=True, check=False)
    assert result.returncode == 2
    assert "stdin: line 2" in result.stderr.decode()
    assert "0xfc" in result.stderr.decode()
    assert "Traceback" not in result.stderr.decode()
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]
    assert (tmp_path / "out.txt").read_text() == "older\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--n-best", 9], "--beam-size"),
        (["--beam-size", 0], "--beam-size"),
        (["--buffer-size", 0], "--buffer-size"),
        (["--threads", 0], "--threads"),
        (["--device", "abacus"], "device"),
        (["--device", "meta"], "device"),
        (["--input", "nowhere.txt"], "nowhere.txt"),
        (["--output", "nowhere/out.txt"], "nowhere"),
        (["--checkpoint", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_named(trained, tmp_path, monkeypatch, capsys, arguments, named):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, OSError), match=named):
        call(monkeypatch, capsys, b"ein hund\n", "--checkpoint", trained, *arguments)


@pytest.mark.parametrize("option", ["--alpha=much", "--nonsense", "--output-format=xml", "--checkpoint"])
def test_a_wrong_option_is_one_line_and_status_2(option):
    result = subprocess.run(command("--checkpoint", "x", option), capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert option.split("=")[0] in result.stderr


def test_output_to_what_is_no_file_and_through_a_link(trained, tmp_path, monkeypatch, capsys):
    call(monkeypatch, capsys, b"ein hund\n", "--checkpoint", trained, "--output", os.devnull)
    assert not Path(os.devnull).is_file()
    (tmp_path / "real.txt").write_text("older\n")
    (tmp_path / "link.txt").symlink_to("real.txt")
    call(monkeypatch, capsys, b"ein hund\n", "--checkpoint", trained, "--output", tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text(encoding="utf-8") != "older\n"


# --- the process ------------------------------------------------------------------------------------------------------


def test_a_pipe_answers_each_line_as_it_comes_whatever_the_locale(trained):
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    arguments = command("--checkpoint", trained, "--buffer-size", 1, *SHORT)
    lines = ["ein mann schläft", "", "eine frau ½"]
    expected = [best.text for [best] in by_the_library(trained, lines)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(arguments, env=environment, **pipes) as process:
        for line, answer in zip(lines, expected, strict=True):
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            assert process.stdout.readline().decode() == f"{answer}\n"  # before the next line is sent
        rest, messages = process.communicate(timeout=60)
    assert (rest, process.returncode) == (b"", 0)
    assert b"3 lines (1 blank)" in messages


def test_a_reader_that_goes_away_is_no_error(trained):
    arguments = command("--checkpoint", trained, "--buffer-size", 1, *SHORT)
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"ein hund\n" * 50)
        process.stdin.close()
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""


def test_help_states_the_formula():
    result = subprocess.run(command("--help"), capture_output=True, text=True, check=True)
    text = " ".join(result.stdout.split())
    assert "((5 + |y|) / 6)^alpha" in text
    assert "counts subwords with EOS" in text
