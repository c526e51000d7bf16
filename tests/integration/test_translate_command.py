"""``python -m nmt.translate`` as a user meets it: bytes in, bytes out, exit status, files."""

import dataclasses
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt import checkpoint, translate
from nmt.cli import default_search
from nmt.config import Sampling
from nmt.translator import Translator
from tests.translate_runs import BAHDANAU, KEYS, SHORT, TEXT, by_the_library, call, make_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "one", seed=1)


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "nmt.translate", *map(str, arguments)]


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


def test_search_options_belong_to_the_command_not_to_the_checkpoint(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "validated", 1, None, TEXT, *BAHDANAU, "search=greedy", "search.min_length=3")
    assert Translator.load(run, "cpu").search == default_search()
    stdin = "\n".join(TEXT[:4]).encode()
    out = call(monkeypatch, capsys, stdin, "--checkpoint", run)
    assert out == "".join(f"{best.text}\n" for [best] in by_the_library(run, TEXT[:4]))


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
