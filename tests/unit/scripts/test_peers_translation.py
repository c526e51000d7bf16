"""The comparison of translation: weights in another toolkit's names, what each side is told, its tables."""

import json
import math
import os
import subprocess
import sys
import time
from argparse import Namespace
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt import checkpoint
from nmt.data.tokenizer import TokenizerPair, train_tokenizers
from nmt.models import build
from nmt.models.transformer import Transformer
from nmt.translator import Translator
from scripts.peers import opennmt_checkpoint, translation, translation_report, turns
from scripts.peers.environments import PeerError
from scripts.peers.report import Record
from scripts.peers.translate_runner import PATIENCE, Task
from tests.model_configs import TRANSFORMER, lively, random_rows, shake, shift_right
from tests.oracles import options
from tests.tiny_run import WORDS, tiny_config

ROOT = Path(__file__).resolve().parent.parent.parent.parent
RUNNER = ROOT / "scripts" / "peers" / "translate_runner.py"
TEXT = ["eins zwei drei", "acht", "fünf vier sechs sechs", "zwei"]


def saved(folder: Path, model: str, *overrides: str) -> Path:
    """A checkpoint of an untrained model that reads and writes the tiny corpus."""
    config = tiny_config(folder, model, *overrides)
    lines = [" ".join((word, *WORDS)) for word in WORDS]
    tokenizers = train_tokenizers(config.data.tokenizer, lines, list(WORDS.values()) * 20, len(lines), seed=1)
    network = build(config.model, tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size, seed=1)
    shake(network)
    path = folder / "checkpoint"
    checkpoint.save(path, network.state_dict(), tokenizers, config, step=1)
    return path


# --- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tying", ["none", "two-way", "three-way"])
def test_the_other_toolkits_names_hold_the_same_function(tying: str) -> None:
    """Its Transformer, written out once more from its tensors, gives our logits."""
    config = replace(TRANSFORMER, tie_embeddings=tying, encoder_layers=3, decoder_layers=3)
    model = lively(config)
    assert isinstance(model, Transformer)
    source, lengths = random_rows([6, 6], seed=1)
    target = shift_right(random_rows([5, 5], seed=2)[0])
    state = Noted(opennmt_checkpoint.weights(model))
    told = opennmt_checkpoint.options(config)
    found = F.linear(decoded(state, told, target, encoded(state, told, source)), model.embeddings.output_matrix)
    torch.testing.assert_close(found, model.project(model(source, lengths, target)))
    assert state.read == state.keys()


class Noted(dict[str, Tensor]):
    """Remembers what was read."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        super().__init__(tensors)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Tensor:
        self.read.add(name)
        return super().__getitem__(name)


def encoded(state: dict[str, Tensor], told: dict[str, Any], ids: Tensor) -> Tensor:
    x = embedded(state, "encoder", ids)
    for layer in range(told["layers"]):
        here = f"encoder.transformer.{layer}."
        h = norm(state, told, here + "layer_norm", x)
        x = x + attention(state, told, here + "self_attn", h, h)
        x = feedforward(state, told, here + "feed_forward", x)
    return norm(state, told, "encoder.layer_norm", x)


def decoded(state: dict[str, Tensor], told: dict[str, Any], ids: Tensor, memory: Tensor) -> Tensor:
    x = embedded(state, "decoder", ids)
    for layer in range(told["layers"]):
        here = f"decoder.transformer_layers.{layer}."
        h = norm(state, told, here + "layer_norm_1", x)
        x = x + attention(state, told, here + "self_attn", h, h, causal=True)
        x = x + attention(state, told, here + "context_attn", norm(state, told, here + "layer_norm_2", x), memory)
        x = feedforward(state, told, here + "feed_forward", x)
    return norm(state, told, "decoder.layer_norm", x)


def embedded(state: dict[str, Tensor], side: str, ids: Tensor) -> Tensor:
    table = state[f"{side}.embeddings.make_embedding.emb_luts.0.weight"]
    positions = state[f"{side}.embeddings.make_embedding.pe.pe"][: ids.size(1), 0]
    return table[ids] * math.sqrt(table.size(1)) + positions


def linear(state: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])


def norm(state: dict[str, Tensor], told: dict[str, Any], name: str, x: Tensor) -> Tensor:
    weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
    return F.layer_norm(x, x.shape[-1:], weight, bias, told["norm_eps"])


def feedforward(state: dict[str, Tensor], told: dict[str, Any], name: str, x: Tensor) -> Tensor:
    inner = linear(state, f"{name}.w_1", norm(state, told, f"{name}.layer_norm", x))
    return x + linear(state, f"{name}.w_2", inner.relu())


def attention(
    state: dict[str, Tensor], told: dict[str, Any], name: str, x: Tensor, looked_at: Tensor, causal: bool = False
) -> Tensor:
    projected = [
        linear(state, f"{name}.linear_{part}", of).unflatten(2, (told["heads"], -1)).transpose(1, 2)
        for part, of in (("query", x), ("keys", looked_at), ("values", looked_at))
    ]
    context = F.scaled_dot_product_attention(*projected, is_causal=causal)
    return linear(state, f"{name}.final_linear", context.transpose(1, 2).flatten(2))


def test_a_checkpoint_is_converted_whole(tmp_path: Path) -> None:
    run = saved(tmp_path, "transformer", "model.encoder_layers=2")
    opennmt_checkpoint.convert(run, tmp_path / "other.pt")
    with torch.serialization.safe_globals([Namespace]):
        other = torch.load(tmp_path / "other.pt", weights_only=True)
    found = checkpoint.load(run)
    size = found.tokenizers.target.vocabulary_size
    pieces = found.tokenizers.target.pieces(range(size))
    assert other["vocab"]["tgt"] == ["<blank>", *pieces[1:]]
    assert other["generator"]["weight"].shape == (size, 16)
    assert other["generator"]["bias"].tolist() == [0.0] * size
    assert (other["opt"].layers, other["opt"].hidden_size, other["opt"].share_embeddings) == (2, 16, True)
    assert other["model"]["decoder.transformer_layers.1.context_attn.linear_keys.weight"].shape == (16, 16)


@pytest.mark.parametrize(
    ("model", "overrides", "message"),
    [
        ("bahdanau", [], "found bahdanau"),
        ("transformer", ["model.encoder_layers=2", "model.norm=post"], "'norm': 'pre'"),
        ("transformer", [], "as many layers on both sides"),
    ],
)
def test_what_the_other_toolkit_cannot_compute_is_refused(
    model: str, overrides: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(PeerError, match=message):
        opennmt_checkpoint.convert(saved(tmp_path, model, *overrides), tmp_path / "other.pt")


# --- running ----------------------------------------------------------------------------------------------------------


def test_a_round_runs_every_side_once_and_every_second_backwards() -> None:
    assert list(turns.turns(2, ["a", "b"])) == [(1, 0, "a"), (1, 1, "b"), (2, 1, "b"), (2, 0, "a")]


def test_all_sides_have_the_same_threads_and_the_same_work(tmp_path: Path) -> None:
    arguments = Namespace(beam_size=[1, 5], alpha=1.0, batch_tokens=2048, longest=99, warm_up=3, threads=2)
    forms = {name: name for name in ("nmt", "opennmt", "float32", "int8")}
    sides = translation.sides(["fp32", "bf16"], "file", threads=2)
    tasks = [side.task(forms, arguments, Path("x"), ["t", "t"]) for side in sides]
    assert {task.workers * task.threads for task in tasks} == {2}
    assert {(tuple(task.beams), task.batch_tokens, task.longest, task.warm_up) for task in tasks} == {
        ((1, 5), 2048, 99, 3)
    }
    assert [side.workers for side in sides if side.toolkit == "ctranslate2"] == [1, 1, 2, 2]
    ours = [(side.precision, side.workers, side.shortlist) for side in sides if side.toolkit == "nmt"]
    assert sorted(ours, key=str) == sorted(product(("fp32", "bf16"), (1, 2), (None, "file")), key=str)


def test_our_side_translates_like_the_translator(tmp_path: Path) -> None:
    run = saved(tmp_path, "transformer")
    source = tmp_path / "source"
    source.write_text("".join(f"{line}\n" for line in TEXT), encoding="utf-8")
    task = Task("nmt", str(run), [str(run / "tokenizer.model")] * 2, str(source), [1, 2], 0.5, 400, 2, 1, 1, "fp32")
    record = translation.run_side(task, sys.executable, tmp_path, TEXT, TokenizerPair.load(run))
    assert "error" not in record, record
    result = record["result"]
    assert min(result["load"], result["first"], result["again"]) > 0
    assert [one["beam"] for one in result["passes"]] == [1, 2]
    translator = Translator.load(run, "cpu")
    for one in result["passes"]:
        search = options(
            beam_size=one["beam"],
            length_penalty="simple",
            alpha=0.5,
            max_length_a=0.0,
            max_length_b=256,
            patience=PATIENCE,
            batch_tokens=400,
        )
        assert one["texts"] == [best.text for best in translator.translate(TEXT, search)]
        assert one["sentences_per_second"] == pytest.approx(len(TEXT) / one["seconds"])
    kept = translation.without_texts(record)["result"]["passes"][0]
    assert kept.keys() == result["passes"][0].keys() - {"texts"}


def test_a_side_that_fails_is_reported_with_its_last_words(tmp_path: Path) -> None:
    task = Task("nmt", str(tmp_path / "nothing"), ["t", "t"], "nothing", [1], 1.0, 400, 2, 1, 1, "fp32")
    record = translation.run_side(task, sys.executable, tmp_path, TEXT, None)
    assert "status 1" in record["error"]
    assert "nothing" in record["error"]


def test_what_a_side_has_started_ends_with_it(tmp_path: Path) -> None:
    code = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(900)']).pid)"
    translation.finish([sys.executable, "-c", code], tmp_path / "log", tmp_path, dict(os.environ))
    pid = int((tmp_path / "log").read_text())
    deadline = time.monotonic() + 60
    while runs(pid):  # it has been told to end, and has to get around to it
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """Whether a process does anything; one that has ended may stay in the system's table for a while."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


# --- tables -----------------------------------------------------------------------------------------------------------


def record(side: str, number: int, rate: float | None, order: int, texts: list[str] = TEXT) -> Record:
    base = {"side": side, "round": number, "order": order, "toolkit": side.split()[0]}
    if rate is None:
        return {**base, "error": "out of luck"}
    one = {"beam": 5, "seconds": 4.0, "sentences": 4, "sentences_per_second": rate, "tokens": 80, "bleu": 30.0}
    result = {"load": 0.5, "first": 0.25, "again": 0.125, "niceness": 0, "threads": 2}
    return {**base, "probe": {"fp32": 90, "bf16": 200}, "result": {**result, "passes": [{**one, "texts": texts}]}}


def test_tables_show_every_side_its_quality_and_what_failed() -> None:
    changed = ["other", *TEXT[1:]]
    records = [record("peer", 1, 50, 0, changed), record("nmt fp32", 1, 100, 1), record("odd", 1, None, 2)]
    records += [record("nmt fp32", 2, 120, 1), record("peer", 2, 80, 0, changed)]
    text = translation_report.markdown("machine", records)
    assert "| side | round 1 | round 2 | median | target tokens/s | BLEU 13a | same text as nmt fp32 |" in text
    assert "| peer | 50.0 | 80.0 | **65.0** | 20 | 30.00 | 3 |" in text
    assert "| nmt fp32 | 100.0 | 120.0 | **110.0** | 20 | 30.00 | 4 |" in text
    assert "| odd | failed |  |  |  |  |  |" in text
    assert "| nmt fp32 | 1.75 (1.50 to 2.00) |" in text
    assert "| peer | 0.50 | 0.25 | 0.12 |" in text
    assert "| peer | 90 / 200 | 90 / 200 |" in text
    assert "out of luck" in text
    assert translation_report.warnings([one for one in records if "result" in one]) == []


def test_what_makes_sides_incomparable_is_said() -> None:
    fine, odd = record("nmt fp32", 1, 100, 0), record("peer", 1, 100, 1)
    odd["result"] |= {"threads": 1, "niceness": 5}
    odd["result"]["passes"][0]["bleu"] = 20.0
    found = " ".join(translation_report.warnings([fine, odd]))
    assert all(word in found for word in ("threads", "nice", "BLEU differs by 10.00"))


@pytest.mark.parametrize(
    ("source", "reference", "message"),
    [("a\nb\n", "a\n", "2 lines, --reference 1"), ("a\n \n", "a\nb\n", "a line is blank")],
)
def test_texts_that_not_every_side_can_read_are_refused(
    source: str, reference: str, message: str, tmp_path: Path
) -> None:
    for name, text in (("source", source), ("reference", reference)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(PeerError, match=message):
        translation.texts(Namespace(input=tmp_path / "source", reference=tmp_path / "reference"))


def test_a_task_survives_its_file() -> None:
    task = Task("nmt", "m", ["s", "t"], "i", [1, 5], 1.0, 4096, 32, 2, 1, "fp32")
    assert Task(**json.loads(json.dumps(asdict(task)))) == task


def test_mistakes_on_the_command_line_are_said() -> None:
    words = ["translate", "--checkpoint", "x", "--input", "y", "--reference", "z", "--beam-size", "1", "0"]
    done = subprocess.run(
        [sys.executable, "scripts/compare_peers.py", *words], cwd=ROOT, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 2
    assert "--beam-size: expected 1 or more, found 0" in done.stderr
