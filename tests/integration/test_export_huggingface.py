"""``--format huggingface``: the folder, read by ``transformers`` itself, is our model and our tokenizer."""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from nmt import checkpoint
from nmt.checkpoint import Checkpoint
from nmt.config import ModelConfig
from nmt.data.batch import encode_source, pad_rows
from nmt.data.tokenizer import train_tokenizers
from nmt.formats import ExportError, Options, huggingface
from nmt.search import Hypothesis, search
from nmt.tokens import BOS, EOS, PAD, UNK
from tests.checkpoints import TARGETS, lively_checkpoint, tokenizer_config, train_pair
from tests.model_configs import BAHDANAU, SEQ2SEQ, TRANSFORMER, random_rows, shift_right
from tests.oracles import options

SMALL = replace(
    TRANSFORMER, dim=12, heads=3, feedforward_dim=20, encoder_layers=2, decoder_layers=1, tie_embeddings="three-way"
)
POST = replace(SMALL, norm="post")
VARIANTS: dict[str, tuple[ModelConfig, bool]] = {  # and whether both sides have one vocabulary
    "post": (POST, True),
    "post-gelu": (replace(POST, activation="gelu", encoder_layers=1, decoder_layers=2), True),
    "post-two-way": (replace(POST, tie_embeddings="two-way"), False),
    "post-two-way-joint": (replace(POST, tie_embeddings="two-way"), True),
    "post-untied": (replace(POST, tie_embeddings="none"), False),
    "pre": (SMALL, True),
    "pre-gelu": (replace(SMALL, activation="gelu", encoder_layers=1, decoder_layers=2), True),
}
LETTERS = ["abc cba bac ab cab", "bb ac ca", "a b c ba ba"] * 3

NASTY = [
    "Ein Hund läuft über die Straße .",
    "",
    "   ",
    "  leading,   double\tand trailing spaces  ",
    "½ ﬁ ² Ⅳ ﾊﾝｶｸ a\u0308 ä",
    "“Zitat” ‚so‘ „oder“ so — oder … «so»",
    "non\u00a0breaking, narrow\u202fspace, zero\u200bwidth, soft\u00adhyphen, \ufeffmark",
    "<s> </s> <pad> <unk> </s>",
    "<0x41> ▁ ▁x x▁y <0xC3>",
    "🙂 漢字 Ελλάδα \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "a\u2028b\u2029c",
    "1.000,5 % & &amp; 'x' `y` ''z'' -- ( a ) [ b ]",
    "x >>de<< y >> z << >>",
    "\\ / | # @-@ $$ ^",
    "x" * 300,
]
TOKENIZERS: dict[str, dict[str, Any]] = {
    "joint": {},
    "one each": {"joint": "false"},
    "lower case": {"normalization": "nfkc_cf"},
    "bytes": {"kind": "unigram", "byte_fallback": "true", "vocabulary_size": 330, "normalization": "identity"},
    "bytes, one each": {"joint": "false", "kind": "unigram", "byte_fallback": "true", "vocabulary_size": 330},
}


@pytest.fixture(scope="module")
def checkpoints() -> dict[str, Checkpoint]:
    """A small lively model of every variant, untrained."""
    configs = {joint: tokenizer_config(joint=str(joint).lower()) for joint in (True, False)}
    pairs = {joint: train_pair(config) for joint, config in configs.items()}
    return {
        name: lively_checkpoint(model, pairs[joint], configs[joint], seed=4)
        for name, (model, joint) in VARIANTS.items()
    }


def exported(found: Checkpoint, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    huggingface.export(found, folder, Options(quantization=None))
    return folder


def loaded(folder: Path) -> Any:
    """The model, and nothing is missing, left over, or of another shape."""
    model, report = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    return model.eval()


def both_logits(found: Checkpoint, model: Any, lengths: list[int], seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Theirs, ours, [batch, tgt_len, vocabulary], and the real positions."""
    source, source_lengths = random_rows(lengths, seed, extra_padding=seed % 3)
    target_out, target_lengths = random_rows(lengths[::-1], seed + 100)
    target_in = shift_right(target_out)
    with torch.inference_mode():
        ours = found.model.project(found.model(source, source_lengths, target_in))
        mask = (source != PAD).long()
        theirs = model(input_ids=source, attention_mask=mask, decoder_input_ids=target_in).logits
    return theirs, ours, torch.arange(target_in.size(1)) < target_lengths[:, None]


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_ours(variant: str, checkpoints: dict[str, Checkpoint], tmp_path: Path) -> None:
    found = checkpoints[variant]
    folder = exported(found, tmp_path / "exported")
    model = loaded(folder)
    model.save_pretrained(tmp_path / "again")  # leaves a Marian's positions out: it computes them anew
    for again in (model, loaded(tmp_path / "again")):
        for seed, lengths in enumerate([[5, 1, 9, 7], [3], [2, 40, 11]]):
            theirs, ours, real = both_logits(found, again, lengths, seed)
            torch.testing.assert_close(theirs[real], ours[real], atol=2e-5, rtol=1e-5)


def talkative(variant: str, sources: list[list[int]]) -> tuple[Checkpoint, list[Hypothesis]]:
    """A model of few subwords on which greedy search shows everything: sentences that end and that are cut, sources
    that matter, places where PAD or BOS is the most probable token; and what our search makes of ``sources``."""
    model_config, joint = VARIANTS[variant]
    config = tokenizer_config(joint=str(joint).lower(), vocabulary_size=12)
    pair = train_tokenizers(config.data.tokenizer, LETTERS, LETTERS, len(LETTERS), seed=1)
    for seed in range(50):
        found = lively_checkpoint(model_config, pair, config, seed)
        model, (source, lengths) = found.model, encode_source(sources)
        best = [hypotheses[0] for hypotheses in search([model], source, lengths, options(beam_size=1, max_length_b=12))]
        target_in, _ = pad_rows([[BOS, *hypothesis.tokens] for hypothesis in best])
        wanted = model.project(model(source, lengths, target_in)).argmax(dim=2)
        forbidden = ((wanted == PAD) | (wanted == BOS)) & (target_in != PAD)
        various = len({tuple(hypothesis.tokens) for hypothesis in best}) > 3
        if various and len({hypothesis.finished for hypothesis in best}) == 2 and forbidden.any():
            return found, best
    raise AssertionError("no such model among so many")


@pytest.mark.parametrize("variant", VARIANTS)
def test_generate_is_our_greedy_search(variant: str, tmp_path: Path) -> None:
    draw = random.Random(1)
    sources = [[draw.randrange(EOS + 1, 12) for _ in range(draw.randint(1, 9))] for _ in range(12)]
    found, expected = talkative(variant, sources)
    folder = exported(found, tmp_path / "exported")
    model, tokenizer = loaded(folder), transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer.pad({"input_ids": [[*ids, EOS] for ids in sources]}, return_tensors="pt")
    rows = model.generate(**batch, max_length=13).tolist()  # BOS counted
    assert all(row[0] == BOS for row in rows)
    ends = [row.index(EOS) if EOS in row else len(row) for row in rows]
    assert [row[1:end] for row, end in zip(rows, ends, strict=True)] == [best.tokens for best in expected]
    assert [EOS in row for row in rows] == [best.finished for best in expected]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_ids_and_text_are_ours(kind: str, tmp_path: Path) -> None:
    config = tokenizer_config(**TOKENIZERS[kind])
    pair = train_pair(config)
    found = lively_checkpoint(replace(POST, tie_embeddings="none"), pair, config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported(found, tmp_path / "exported"))
    assert type(tokenizer).__name__ == "MarianTokenizer"
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.bos_token_id) == (PAD, UNK, BOS)

    assert tokenizer(NASTY).input_ids == [[*ids, EOS] for ids in pair.source.encode_batch(NASTY)]
    targets = pair.target.encode_batch(NASTY + TARGETS)
    assert tokenizer(text_target=NASTY + TARGETS).input_ids == [[*ids, EOS] for ids in targets]
    known = [ids for ids in targets if UNK not in ids]
    assert len(known) >= len(TARGETS)
    padded = [[BOS, *ids, EOS, PAD, PAD] for ids in known]
    decoded = tokenizer.batch_decode(padded, skip_special_tokens=True)
    assert [text.split() for text in decoded] == [pair.target.decode(ids).split() for ids in known]


def test_what_marian_tokenizes_otherwise(tmp_path: Path) -> None:
    """As the module says."""
    config = tokenizer_config(**TOKENIZERS["bytes"])
    pair = train_pair(config)
    found = lively_checkpoint(POST, pair, config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported(found, tmp_path / "exported"))
    source, target = pair
    assert tokenizer("Ein\nHund\x07").input_ids != [*source.encode("Ein\nHund\x07"), EOS]
    assert source.encode("Ein\nHund\x07") == source.encode("Ein Hund")
    assert tokenizer(">>de<< Ein Hund").input_ids == [UNK, *source.encode("Ein Hund"), EOS]
    assert tokenizer.decode([BOS, *target.encode("A dog"), UNK, EOS], skip_special_tokens=True) == "A dog"
    assert target.decode([*target.encode("A dog"), UNK]) == "A dog \u2047 "


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SEQ2SEQ, "model.name: seq2seq has no equal.*needs model=transformer"),
        (BAHDANAU, "model.name: bahdanau has no equal.*needs model=transformer"),
        (replace(POST, positions="learned", max_positions=30), "model.positions: found learned.*needs sinusoidal"),
        (replace(SMALL, positions="none"), "model.positions: found none.*needs sinusoidal"),
        (replace(SMALL, tie_embeddings="two-way"), "model.tie_embeddings: found two-way.*needs three-way"),
        (replace(SMALL, tie_embeddings="none"), "model.tie_embeddings: found none.*needs three-way"),
    ],
)
def test_what_it_cannot_express_is_refused(
    model: ModelConfig, message: str, checkpoints: dict[str, Checkpoint], tmp_path: Path
) -> None:
    found = checkpoints["post"]
    found = found._replace(config=replace(found.config, model=model))
    with pytest.raises(ExportError, match=message):
        huggingface.export(found, tmp_path, Options(quantization=None))
    assert not list(tmp_path.iterdir())


def test_an_option_it_does_not_have_is_refused(checkpoints: dict[str, Checkpoint], tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="--quantization: found int8"):
        huggingface.export(checkpoints["post"], tmp_path, Options(quantization="int8"))


def test_the_command_needs_no_transformers_to_write(checkpoints: dict[str, Checkpoint], tmp_path: Path) -> None:
    found = checkpoints["pre"]
    checkpoint.save(tmp_path / "step_000007", found.model.state_dict(), found.tokenizers, found.config, step=7)
    arguments = ["--checkpoint", tmp_path / "step_000007", "--format", "huggingface", "--output", tmp_path / "exported"]
    code = (
        "import sys, runpy; sys.modules['transformers'] = sys.modules['tokenizers'] = None; "
        "runpy.run_module('nmt.export', run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    theirs, ours, real = both_logits(found, loaded(tmp_path / "exported"), [4, 2], seed=9)
    torch.testing.assert_close(theirs[real], ours[real], atol=2e-5, rtol=1e-5)
    generation = json.loads((tmp_path / "exported" / "generation_config.json").read_text())
    longest, search_config = found.config.data.max_length, found.config.search
    assert generation["max_length"] == 1 + int(search_config.max_length_a * longest + search_config.max_length_b), (
        "what our search allows, and BOS"
    )
