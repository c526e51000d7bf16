"""``nmt.diagnose``: all parts on trained runs, and what is said where a part cannot be."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from nmt import checkpoint, diagnose
from nmt.analysis.alignment_quality import measure
from nmt.analysis.diagnosis import Subject
from nmt.cli import default_search
from nmt.data.dataset import prepare
from nmt.models import attention, build
from nmt.training.trainer import train
from tests.tiny_run import WORDS, compose_config, tiny_config

SENTENCES = [
    "eins zwei drei",
    "",
    "fünf acht vier sechs eins",
    "zwei sechs fünf acht",
    "drei eins",
    "acht vier zwei fünf",
]
SPOKEN = [line for line in SENTENCES if line]


def diagnose_command(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["nmt.diagnose", *map(str, arguments)])
    diagnose.main()


@pytest.fixture
def run(scored_runs: Path, tmp_path: Path) -> Path:
    """A run on numerals that are translated in reverse order."""
    return Path(shutil.copytree(scored_runs / "a_s1", tmp_path / "runs" / "a_s1", symlinks=True))


@pytest.fixture
def gold(tmp_path: Path) -> list[str | Path]:
    """Options for gold of which every word is known: the first is translated last."""
    for name, lines in (
        ("gold.de", SPOKEN),
        ("gold.en", [" ".join(WORDS[word] for word in reversed(line.split())) for line in SPOKEN]),
        ("links", [" ".join(f"{i}-{len(line.split()) - 1 - i}" for i in range(len(line.split()))) for line in SPOKEN]),
    ):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = (("--gold", "links"), ("--gold-source", "gold.de"), ("--gold-target", "gold.en"))
    return [part for option, name in files for part in (option, tmp_path / name)]


def test_every_part_has_text_figures_and_pictures(
    run: Path,
    gold: list[str | Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "in.de").write_text("".join(f"{line}\n" for line in SENTENCES), encoding="utf-8")
    out, board = tmp_path / "out", tmp_path / "board"
    options = (
        "--input",
        tmp_path / "in.de",
        "--output",
        out,
        "--tensorboard",
        board,
        "--maps",
        "2",
        "--sentences",
        "3",
    )
    diagnose_command(monkeypatch, "--checkpoint", run, *gold, *options)
    shown = capsys.readouterr().out
    for heading in ("## Where it looked", "## Attention as alignment", "## Is attention an explanation?", "## Health"):
        assert heading in shown
    for part in ("bottleneck", "exposure"):
        assert f"- {part}: needs references of the sentences: --reference" in shown
    written = (out / "diagnosis.md").read_text(encoding="utf-8")
    assert written.startswith(shown.rstrip("\n"))
    tree = json.loads((out / "diagnosis.json").read_text(encoding="utf-8"))
    assert set(tree) == {"maps", "alignment", "explanation", "health", "left_out"}
    assert set(tree["left_out"]) == {"bottleneck", "exposure"}
    pictures = {path.stem for path in out.glob("*.png")}
    assert pictures >= {"attention_1", "attention_2", "attention_2_heads", "alignment_error", "explanation"}
    assert "attention_by_position" in pictures
    assert all(f"({name}.png)" in written for name in pictures)

    assert [entry["source"] for entry in tree["maps"]["maps"]] == ["eins zwei drei", "fünf acht vier sechs eins"]
    for entry in tree["maps"]["maps"]:
        weights = torch.tensor(entry["weights"])
        assert weights.shape == (len(entry["target_tokens"]), len(entry["source_tokens"]))
        assert torch.allclose(weights.sum(dim=1), torch.ones(len(weights)), atol=1e-4)
        assert entry["source_tokens"][-1] == "</s>"
        assert entry["weights_of"] == "layer 1 of 2, mean over 2 heads"
    assert tree["explanation"]["target"] == "its own translations"
    assert tree["health"]["broken"] is None
    assert {each["state"] for each in tree["health"]["invariants"]} == {"holds"}

    events = EventAccumulator(str(board), size_guidance={"images": 0})
    events.Reload()
    assert set(events.Tags()["images"]) == {f"attention/{name}" for name in pictures if name.startswith("attention")}


def test_alignment_has_everything_beside_attention(
    run: Path,
    gold: list[str | Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The other direction is a model trained on the same text with its sides in each other's place."""
    back = tiny_config(tmp_path, "bahdanau", "training.max_steps=6", "tag=back", "data.source=en", "data.target=de")
    train(back)
    out = tmp_path / "out"
    options = ("--reverse-checkpoint", back.run_dir, "--parts", "alignment", "--output", out)
    diagnose_command(monkeypatch, "--checkpoint", run, *gold, *options)
    capsys.readouterr()
    tree = json.loads((out / "diagnosis.json").read_text(encoding="utf-8"))["alignment"]
    names = [(row["aligner"], row["links"]) for row in tree["rows"]]
    for name in ("attention", "IBM Model 1"):
        for method in ("union", "intersection", "grow-diag", "grow-diag-final"):
            assert (f"{name}, both directions", method) in names
    rows = {row["aligner"]: row for row in tree["rows"]}
    assert rows["IBM Model 1"]["aer"] < rows["uniform"]["aer"]  # words that have one translation each
    assert tree["pairs"] == len(SPOKEN)
    assert tree["reported_pairs"] == 3
    assert len(tree["ranking"]) == 2 * 3 * 3 * 9
    chosen = [each["aer_chosen_on"] for each in tree["ranking"]]
    assert chosen == sorted(chosen)
    best = tree["ranking"][0]
    assert rows["attention, best"]["aer"] == pytest.approx(best["aer_reported"])
    usual = next(
        each
        for each in tree["ranking"]
        if (each["layer"], each["head"], each["step"], each["links"]) == (1, "mean", "output", "argmax")
    )
    assert rows["attention, as --align"]["aer"] == pytest.approx(usual["aer_reported"])
    assert tree["by_layer_and_head"]["output"][0][2] == pytest.approx(usual["aer_reported"])

    with pytest.raises(ValueError, match=r"--reverse-checkpoint .* translates de to en, expected en to de"):
        diagnose_command(monkeypatch, "--checkpoint", run, *gold, "--reverse-checkpoint", run)


def test_the_demo_brings_its_own_gold(tmp_path: Path) -> None:
    """An untrained model: its attention is no aligner, Model 1 is."""
    config = compose_config(
        "model=transformer",
        "model.dim=16",
        "model.heads=2",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "model.feedforward_dim=16",
        "data=demo",
        f"data.cache={tmp_path}/cache",
        "data.train_pairs=600",
        "data.validation_pairs=20",
        "data.test_pairs=60",
        "data.max_words=20",
        "data.mean_words=9",
        "data.tokenizer.vocabulary_size=700",
    )
    tokenizers = prepare(config.data, lambda message: None).tokenizers
    model = build(config.model, tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size, 1)
    checkpoint.save(tmp_path / "model", model.state_dict(), tokenizers, config, step=0)
    loaded = checkpoint.load(tmp_path / "model")
    search = default_search()
    assert search is not None
    found = measure(Subject(loaded, torch.device("cpu"), "fp32", search, lambda message: None))
    assert found.pairs == 60
    rows = {row.aligner: row.quality for row in found.rows}
    assert rows["IBM Model 1"].high < rows["attention, best"].low
    assert rows["IBM Model 1"].high < rows["diagonal"].low < rows["uniform"].low
    assert found.against_lexicon is not None
    assert found.against_lexicon[1] > 0


def test_a_fixed_vector_says_why_parts_are_left_out(
    tmp_path: Path, gold: list[str | Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny_config(tmp_path, "seq2seq", "training.max_steps=6", "tag=fixed")
    train(config)
    options = ("--sentences", "4", "--probe-updates", "5", "--output", tmp_path / "pictures")
    diagnose_command(monkeypatch, "--checkpoint", config.run_dir, *gold, *options)
    shown = capsys.readouterr().out
    assert "- maps: seq2seq reads one fixed vector" in shown
    assert "- alignment: seq2seq reads one fixed vector" in shown
    assert "| occlusion | gradient x input |" in shown
    assert "7 hold, none is broken, 3 do not apply" in shown
    assert "| the fixed vector | the model |" in shown
    assert "Behind prefixes of its own" in shown
    assert {path.stem for path in (tmp_path / "pictures").glob("*.png")} >= {"explanation", "bottleneck", "exposure"}
    with pytest.raises(ValueError, match=r"maps \(--parts\): seq2seq reads one fixed vector"):
        diagnose_command(monkeypatch, "--checkpoint", config.run_dir, "--parts", "maps", "--output", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_broken_promise_has_a_status_of_its_own(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trained model whose decoder sees what comes next: all is written first, then the command fails."""
    real = attention.scaled_dot_product

    def all_visible(query, keys, values, mask, causal=False, dropout_p=0.0, with_weights=False):
        return real(query, keys, values, mask, False, dropout_p, with_weights)

    monkeypatch.setattr(attention, "scaled_dot_product", all_visible)
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        diagnose_command(monkeypatch, "--checkpoint", run, "--parts", "health", "--output", out)
    assert ended.value.code == diagnose.BROKEN == 3
    captured = capsys.readouterr()
    assert "**Broken**" in captured.out
    [said] = [line for line in captured.err.split("\n") if line.startswith("broken: ")]
    assert "future: features" in said
    tree = json.loads((out / "diagnosis.json").read_text(encoding="utf-8"))["health"]
    states = {each["name"]: each["state"] for each in tree["invariants"]}
    assert states["future: features"] == states["future: gradients"] == states["steps"] == "broken"
    assert states["padding: weights"] == "holds"
    assert tree["length_ratio"] > 0  # references are those of validation


def test_what_is_lost_and_what_own_prefixes_cost(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the run's own validation pairs, as many as are asked for."""
    out = tmp_path / "out"
    options = ("--parts", "bottleneck", "exposure", "--pairs", "9", "--probe-updates", "40", "--probe-sentences", "150")
    diagnose_command(monkeypatch, "--checkpoint", run, *options, "--output", out)
    assert "Bottleneck: " in capsys.readouterr().out
    tree = json.loads((out / "diagnosis.json").read_text(encoding="utf-8"))
    assert tree["bottleneck"]["pairs"] == tree["exposure"]["pairs"] == 9
    assert tree["bottleneck"]["nll"]["value"] == pytest.approx(tree["exposure"]["nll"]["value"], rel=1e-4)
    assert tree["bottleneck"]["probing"]["sentences"] == 150
    assert tree["bottleneck"]["probing"]["updates"] == 40
    rows = {(each["given"], each["trained"]): each for each in tree["bottleneck"]["probing"]["probes"]}
    assert rows["row", True]["accuracy"]["value"] > rows["place", True]["accuracy"]["value"]


def test_without_gold_or_a_place_for_pictures_it_says_what_to_give(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    diagnose_command(monkeypatch, "--checkpoint", run, "--sentences", "3", "--probe-updates", "5")
    shown = capsys.readouterr().out
    assert "- maps: pictures need a place: --output FOLDER" in shown
    assert "- alignment: no gold: give --gold, --gold-source and --gold-target" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--reference", "x"], "give them with --input"),
        (["--sentences", "0"], "--sentences: expected 1 or more"),
        (["--probe-updates", "0"], "--probe-updates: expected 1 or more"),
        (["--gold", "x"], "--gold-source and --gold-target missing"),
        (["--gold-detokenize"], "which gold"),
        (["--gold-base", "1"], "which gold"),
        (["--tensorboard", "x"], "give both"),
        (["--precision", "int8"], "not in int8"),
        (["--parts", "explanation", "--input", "nowhere"], "nowhere: no such file"),
        (["--parts", "alignment"], r"alignment \(--parts\): no gold"),
    ],
)
def test_mistakes_are_named(run: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        diagnose_command(monkeypatch, "--checkpoint", run, *arguments)
