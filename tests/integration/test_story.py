"""docs/story.md: every command is run, every file, function and test that it names is there."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from nmt.composition import composed
from nmt.training.trainer import train
from tests.doc_commands import Command, commands
from tests.tiny_run import MODELS, compose_config

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "story.md"
COMMANDS = list({(command.module, *command.words): command for command in commands(PAGE)}.values())

TINY_DATA = [
    "data.train_pairs=200",
    "data.validation_pairs=6",
    "data.test_pairs=6",
    "data.max_words=8",
    "data.mean_words=5",
    "data.tokenizer.vocabulary_size=500",
]
TINY_TRAINING = [
    "training.max_steps=4",
    "training.validate_every=2",
    "training.batch_tokens=200",
    "training.device=cpu",
    "training.precision=fp32",
    "search.max_length_a=1",
    "search.max_length_b=2",
]
LESS = {
    "nmt.diagnose": [
        *("--sentences", "2", "--maps", "1", "--pairs", "4", "--probe-sentences", "40", "--probe-updates", "2"),
        *("--max-length-a", "1", "--max-length-b", "2", "--device", "cpu"),
    ],
    "nmt.compare": ["--max-length-a", "1", "--max-length-b", "2", "--device", "cpu"],
    "nmt.train": [*TINY_DATA, *TINY_TRAINING, *MODELS["transformer"], "model.tie_embeddings=none"],
    "nmt.benchmark paths": [],
    "nmt.benchmark scaling": ["--lengths", "2", "4", "--models", "seq2seq", "--vocabulary", "50", "--sentences", "1"],
    "nmt.benchmark translate": [
        *("--lengths", "2", "3", "--models", "S", "--vocabulary", "50"),
        *("--rounds", "1", "--warm-up", "1", "--beam-size", "1"),
    ],
}
"""Added so that a command takes seconds: its own options, for a smaller job. Of two the last one holds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``make demo`` leaves behind, with models that have hardly been trained."""
    folder = tmp_path_factory.mktemp("story")
    for model, sizes in MODELS.items():
        places = [f"runs={folder}/runs", f"data.cache={folder}/data/cache", f"tag=quick_{model}"]
        tied = ["model.tie_embeddings=none"]
        train(compose_config(f"experiment=demo_{model}", *TINY_DATA, *TINY_TRAINING, *sizes, *tied, *places))
    return folder


def less(command: Command) -> list[str]:
    name = f"{command.module} {command.words[0]}" if command.module == "nmt.benchmark" else command.module
    return LESS[name]


def test_the_page_has_its_commands() -> None:
    assert {command.module for command in COMMANDS} >= {"nmt.diagnose", "nmt.compare", "nmt.train", "nmt.benchmark"}
    text = PAGE.read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"^\*\*(\d+)\.", text, re.MULTILINE)] == list(range(1, 21))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join([command.module, *command.words]))
def test_a_command_of_the_story_runs(
    command: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    quick_figures: None,
) -> None:
    monkeypatch.chdir(folder)
    (folder / "diagnosis").mkdir(exist_ok=True)
    if command.module == "nmt.train":
        train(composed([*command.words, *less(command)]))
        assert (folder / "runs" / "unordered_s1" / "summary.json").exists()
        return
    monkeypatch.setattr(sys, "argv", [command.module, *command.words, *less(command)])
    module = "nmt.benchmark.__main__" if command.module == "nmt.benchmark" else command.module
    importlib.import_module(module).main()
    shown = capsys.readouterr()
    assert len(shown.out + shown.err) > 100
    if command.module == "nmt.diagnose":
        parts = command.words[command.words.index("--parts") + 1 :]
        assert shown.out.count("\n## ") >= sum(part in ("maps", "alignment", "health", "exposure") for part in parts)
    else:
        assert "|" in shown.out


def test_make_targets_are_there() -> None:
    targets = re.findall(r"^    make ([a-z-]+)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(targets) >= {"demo", "reproduce-reversal"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in targets:
        assert f"\n{target}: " in makefile


def test_what_the_page_names_is_there() -> None:
    """In each paragraph, a name in back-quotes stands in a file of that paragraph."""
    text = PAGE.read_text(encoding="utf-8")
    for paragraph in text.split("\n\n"):
        quoted = re.findall(r"`([^`\n]+)`", paragraph)
        files = [name for name in quoted if re.fullmatch(r"(nmt|tests|docs|scripts)/[\w/.]+", name)]
        for name in files:
            assert (ROOT / name).is_file(), name
        sources = "".join((ROOT / name).read_text(encoding="utf-8") for name in files)
        for name in quoted:
            if sources and re.fullmatch(r"[A-Za-z_]+(\.[a-z_]+)?", name) and name not in ("health", "encode"):
                for part in name.split("."):
                    assert re.search(rf"(def|class) {part}\b", sources), f"{name}: in none of {', '.join(files)}"
