"""The comparison with other toolkits: how its logs are read, what it tells each side, and its tables."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from nmt.models import build, parameter_count
from scripts.peers import corpus, measure, report, sides
from scripts.peers.environments import PeerError
from tests.tiny_run import compose_config, tiny_overrides

ROOT = Path(__file__).resolve().parent.parent.parent.parent
RUNNER = ROOT / "scripts" / "peers" / "runner.py"


def log(times: list[float], tokens: int = 100) -> measure.Log:
    updates = [measure.Update(moment, tokens, 2 * tokens, 0) for moment in times]
    return measure.Log(pid=1, threads=1, niceness=0, parameters=7, updates=updates)


def test_speed_counts_what_was_made_after_the_clock_started_and_nothing_else() -> None:
    warm, timed, late = [10.0, 11.0, 12.0], [13.0, 14.0, 16.0], [17.0, 18.0]
    found = measure.speed([log(warm + timed + late)], warm_up=2.0, seconds=3.5)
    assert found is not None
    assert (found.updates, found.seconds, found.tokens_per_update, found.padding) == (3, 4.0, 100, 0.5)
    assert found.tokens_per_second == pytest.approx(300 / 4.0)


def test_speed_waits_for_warm_up_and_for_the_whole_time() -> None:
    times = [float(second) for second in range(10)]
    assert measure.speed([log(times)], warm_up=4.0, seconds=5.0) is not None
    assert measure.speed([log(times)], warm_up=4.0, seconds=5.5) is None
    assert measure.speed([log(times[: measure.WARM_UPDATES])], warm_up=0.0, seconds=0.0) is None
    assert measure.speed([], warm_up=0.0, seconds=0.0) is None


def test_processes_make_an_update_together() -> None:
    first, second = log([1.0, 2.0, 3.0, 4.0], tokens=100), log([1.5, 2.0, 3.5], tokens=50)
    merged = measure.merge([first, second])
    assert [update.time for update in merged] == [1.5, 2.0, 3.5]
    assert {update.tokens for update in merged} == {150}


def test_a_log_that_is_being_written_is_read_up_to_its_last_whole_line() -> None:
    lines = [
        {"pid": 5, "threads": 2, "niceness": 0},
        {"parameters": 9},
        *({"time": t, "tokens": 3, "slots": 4, "unknown": 0} for t in (1.0, 2.0)),
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    whole = measure.parse_log(text)
    assert whole is not None
    assert (whole.pid, whole.parameters, len(whole.updates)) == (5, 9, 2)
    cut = measure.parse_log(text[:-5])
    assert cut is not None
    assert len(cut.updates) == 1
    assert measure.parse_log('{"pid": 5') is None


FAKE = """
import json, os, subprocess, sys, time
with open(sys.argv[1] + ".0", "w", buffering=1) as log:
    log.write(json.dumps({"pid": os.getpid(), "threads": 1, "niceness": 0}) + "\\n")
    for number in range(int(sys.argv[2])):
        time.sleep(0.05)
        log.write(json.dumps({"time": time.monotonic(), "tokens": 10, "slots": 10, "unknown": 0}) + "\\n")
print("that was all")
sys.exit(3)
"""


def test_a_side_is_ended_when_it_has_run_long_enough(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", FAKE, str(tmp_path / "log"), "100000"]
    speed = measure.measure(command, tmp_path / "log", 1, tmp_path, dict(os.environ), warm_up=0.2, seconds=0.3)
    assert 0.3 <= speed.seconds < 10
    pid = json.loads((tmp_path / "log.0").read_text().split("\n")[0])["pid"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_side_that_ends_by_itself_is_reported_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", FAKE, str(tmp_path / "log"), "2"]
    with pytest.raises(PeerError, match=r"(?s)status 3.*that was all"):
        measure.measure(command, tmp_path / "log", 1, tmp_path, dict(os.environ), warm_up=0.0, seconds=60.0)


def test_a_side_that_stands_still_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "START_SECONDS", 0.3)
    command = [sys.executable, "-S", "-c", "import time; time.sleep(1000)"]
    started = time.monotonic()
    with pytest.raises(PeerError, match="no update"):
        measure.measure(command, tmp_path / "log", 1, tmp_path, dict(os.environ), warm_up=0.0, seconds=1.0)
    assert time.monotonic() - started < 100


# --- what each side is told -------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> corpus.Corpus:
    overrides = ("data=files", "data.source=de", "data.target=en", "data.train=a", "data.validation=b")
    return corpus.Corpus(overrides, tmp_path, "de", "en", pairs=29000)


@pytest.mark.parametrize(("model", "millions"), [("T", 7.58), ("R", 13.2)])
def test_our_sides_are_the_sizes_that_are_compared(model: sides.Model, millions: float, data: corpus.Corpus) -> None:
    ours = [side for side in sides.sides(model, ["seed=3"]) if side.toolkit == "nmt"]
    assert len(ours) == 4
    for side in ours:
        config = compose_config(*side.arguments(data, data.folder))
        assert config.seed == 3
        assert config.training.batch_tokens == sides.BATCH_TOKENS
        assert config.training.precision == side.name.split()[1].rstrip(",")
    found = parameter_count(build(config.model, 8000, 8000, seed=1))
    assert found / 1e6 == pytest.approx(millions, abs=0.05)


def test_the_recipe_is_the_same_everywhere(data: corpus.Corpus, tmp_path: Path) -> None:
    for model in ("T", "R"):
        config = compose_config(*sides.nmt(model, "fp32", [], data, tmp_path))
        sides.joeynmt(model, data, tmp_path)
        joeynmt = yaml.safe_load((tmp_path / "joeynmt.yaml").read_text())
        sides.opennmt(model, 512, data, tmp_path)
        opennmt = yaml.safe_load((tmp_path / "opennmt.yaml").read_text())
        training = joeynmt["training"]
        warm_up = config.optim.schedule.warmup_steps
        assert warm_up == training["learning_rate_warmup"] == opennmt["warmup_steps"]
        peak = opennmt["learning_rate"] * 512**-0.5 * warm_up**-0.5  # Vaswani et al. (2017), equation 3
        assert peak == pytest.approx(config.optim.optimizer.learning_rate) == training["learning_rate"]
        assert len({config.training.batch_tokens, training["batch_size"], opennmt["batch_size"]}) == 1
        assert len({config.optim.label_smoothing, training["label_smoothing"], opennmt["label_smoothing"]}) == 1
        assert len({config.optim.clip_norm, training["clip_grad_norm"], opennmt["max_grad_norm"]}) == 1
        embedding = joeynmt["model"]["encoder"]["embeddings"]
        assert len({config.model.dropout, embedding["dropout"], opennmt["dropout"][0]}) == 1


def test_several_processes_are_started_by_torchrun_with_a_share_of_the_threads_each() -> None:
    one, two = (side for side in sides.sides("T", []) if side.name.startswith("nmt bf16"))
    assert one.command("python", Path("log"), 2, ["a=1"]) == ["python", str(RUNNER), "nmt", "log", "2", "a=1"]
    command = two.command("python", Path("log"), 1, ["a=1"])
    assert command[:3] == ["python", "-m", "torch.distributed.run"]
    assert "--nproc-per-node=2" in command
    assert command[-5:] == [str(RUNNER), "nmt", "log", "1", "a=1"]


def test_peers_read_the_same_subwords() -> None:
    pieces = ["<pad>", "<unk>", "<s>", "</s>", "\u2581a", "b", "\u2581c"]
    row = [4, 5, 6, 3]
    words = corpus.vocabulary(pieces)
    read = corpus.text(row, pieces).split()
    assert [words.index(word) + corpus.RESERVED for word in read] == row[:-1]
    with pytest.raises(PeerError, match="spaces"):
        corpus.vocabulary([*pieces, "d\u00a0e"])


# --- counting in a real run -------------------------------------------------------------------------------------------


def test_the_clock_counts_every_real_token_of_our_own_training(tmp_path: Path) -> None:
    tiny_run = tiny_overrides_with_corpus(tmp_path)
    command = [sys.executable, str(RUNNER), "nmt", str(tmp_path / "log"), "1", *tiny_run]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=400)
    assert done.returncode == 0, done.stderr
    found = measure.parse_log((tmp_path / "log.0").read_text())
    (summary,) = (tmp_path / "runs").glob("*/summary.json")
    facts = json.loads(summary.read_text())
    assert found is not None
    assert (len(found.updates), found.parameters) == (facts["steps"], facts["parameters"])
    assert sum(update.tokens for update in found.updates) == facts["target_tokens"]
    assert all(update.slots >= update.tokens > 0 == update.unknown for update in found.updates)


def tiny_overrides_with_corpus(folder: Path) -> list[str]:
    from tests.tiny_run import write_corpus

    write_corpus(folder)
    return [*tiny_overrides(folder), "training.max_steps=4", "training.validate_every=4", "training.average_last=0"]


# --- tables -----------------------------------------------------------------------------------------------------------


def record(side: str, number: int, rate: float | None, order: int = 0) -> report.Record:
    base = {"model": "T", "side": side, "round": number, "order": order, "toolkit": side.split()[0]}
    if rate is None:
        return {**base, "error": "out of luck"}
    speed = measure.Speed(rate, 10, 300.0, 0.01, 0, 40.0, 7_580_000, 2, 0)
    return {**base, "probe": {"fp32": 100.0, "bf16": 300.0}, "speed": vars(speed)}


def rate(one: report.Record) -> float:
    return float(one["speed"]["tokens_per_second"])


def test_ratios_compare_runs_of_the_same_round() -> None:
    records = [record("nmt fp32", 1, 300), record("peer", 1, 100), record("peer", 2, 400), record("nmt fp32", 2, 600)]
    assert report.ratios(records, "nmt fp32", "peer", rate) == [3.0, 1.5]
    records += [record("nmt fp32", 3, 10), record("peer", 3, None)]
    good = [one for one in records if "speed" in one]
    assert report.ratios(good, "nmt fp32", "peer", rate) == [3.0, 1.5]


def test_tables_show_every_side_and_what_failed() -> None:
    records = [record("peer", 1, 100), record("nmt fp32", 1, 250, 1), record("other", 1, None, 2)]
    text = report.markdown("machine", records)
    assert "| nmt fp32 | 7.58M | 300 | 1.0% | 250 | **250** |" in text
    assert "| nmt fp32 | 2.50 (2.50 to 2.50) |" in text
    assert "| peer | 100 / 300 |" in text
    assert "| other |  |  |  | failed |  |" in text
    assert "out of luck" in text
    assert report.warnings(records) == []


def test_what_makes_sides_incomparable_is_said() -> None:
    fine, odd = record("nmt fp32", 1, 100), record("peer", 1, 100)
    odd["speed"] |= {"unknown": 50, "threads": 1, "niceness": 5}
    assert [
        word for word in ("unknown", "priorities", "threads") if word in " ".join(report.warnings([fine, odd]))
    ] == [
        "unknown",
        "priorities",
        "threads",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"), [(["--rounds", "0"], "--rounds"), ([], "holds no train.de"), (["--models", "X"], "X")]
)
def test_mistakes_on_the_command_line_are_said(arguments: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "scripts/compare_peers.py", "train", "--data", str(tmp_path), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=400)
    assert done.returncode == 2
    assert message in done.stderr
