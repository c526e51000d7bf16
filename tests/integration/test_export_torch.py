"""``--format torch-export``: the programs, loaded by torch alone, compute what the models do."""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.checkpoint import Checkpoint
from nmt.engine import TorchEngine
from nmt.export import FORMATS
from nmt.formats import ExportError, Options, torch_export
from nmt.models.memory import select_rows
from nmt.tokens import BOS, EOS, PAD, UNK
from nmt.translator import Translator
from tests.checkpoints import SOURCES, lively_checkpoint, tokenizer_config, train_pair
from tests.model_configs import CONFIGS, VOCABULARY, random_rows

Exported = Callable[[str], tuple[Checkpoint, Path]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """The checkpoint of a name in ``CONFIGS`` and the folder that it was written to, once: tracing takes seconds."""

    @functools.cache
    def export(name: str) -> tuple[Checkpoint, Path]:
        config = tokenizer_config(joint=str(name != "bahdanau").lower())
        config = replace(config, search=replace(config.search, min_length=2, max_length_a=1.0, max_length_b=3))
        found = lively_checkpoint(CONFIGS[name], train_pair(config), config, seed=3)
        folder = tmp_path_factory.mktemp(name)
        FORMATS["torch-export"](found, folder, Options(quantization=None))
        return found, folder

    return export


def loaded(folder: Path) -> tuple[Any, Any]:
    encode, step = (torch.export.load(folder / f"{name}.pt2").module() for name in ("encode", "step"))
    return encode, step


def repeated(tensors: tuple[Tensor, ...], times: int) -> tuple[Tensor, ...]:
    return tuple(tensor.repeat_interleave(times, dim=0) for tensor in tensors)


SIZES = [  # lengths of the sources (0: a row of padding), hypotheses of each, target tokens
    ([1], 1, 3),
    ([4, 2], 1, 9),
    ([0, 3], 2, 2),
    ([8] * 8, 1, 2),  # as many as many an axis of the models has
    ([35, 1, 16, 7, 12], 3, 40),
]


@pytest.mark.parametrize(
    "name", ["seq2seq", "seq2seq-shallow", "bahdanau", "bahdanau-reversed", "transformer", "transformer-learned"]
)
@pytest.mark.filterwarnings("ignore:a sentence is longer than")
def test_probabilities_are_ours(name: str, exported: Exported) -> None:
    found, folder = exported(name)
    model, (encode, step) = found.model, loaded(folder)
    for seed, (source_lengths, beams, tgt_len) in enumerate(SIZES):
        source, lengths = random_rows(source_lengths, seed, extra_padding=seed % 3)
        generator = torch.Generator().manual_seed(seed)
        first = torch.arange(len(lengths)).repeat_interleave(beams) * beams  # [rows], the first row of its sentence
        previous = torch.full_like(first, BOS)
        with torch.inference_mode():
            memory = model.encode(source, lengths)
            state = select_rows(model.init_state(memory), first // beams)
            their_memory, their_state = (repeated(tensors, beams) for tensors in encode(source, lengths))
            for _ in range(tgt_len):
                features, state, _ = model.step(previous, state, memory)
                log_probabilities, their_state = step(previous, their_state, their_memory)
                expected = model.project(features).log_softmax(dim=1)
                torch.testing.assert_close(log_probabilities, expected, atol=1e-5, rtol=1e-5)
                parents = first + torch.randint(beams, first.shape, generator=generator)
                state = select_rows(state, parents)
                their_state = tuple(tensor.index_select(0, parents) for tensor in their_state)
                previous = torch.randint(4, VOCABULARY, first.shape, generator=generator)


def test_the_description_says_what_the_tensors_are(exported: Exported) -> None:
    found, folder = exported("bahdanau")
    facts = json.loads((folder / "nmt.json").read_text(encoding="utf-8"))
    assert facts["ids"] == {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS}
    assert [p.name for p in sorted(folder.iterdir())] == [
        "config.yaml", "encode.pt2", "nmt.json", "source.model", "step.pt2", "target.model", "translate.py"
    ]  # fmt: skip
    encode, step = loaded(folder)
    inputs = [torch.full((2, 5), EOS), torch.tensor([5, 3])]
    memory, state = encode(*inputs)
    log_probabilities, new = step(torch.tensor([BOS, BOS]), state, memory)
    free = {"rows": 2, "src_len": 5, "vocabulary": found.tokenizers.target.vocabulary_size}

    def check(described: Any, tensors: Any) -> None:
        if isinstance(described, dict):
            assert [free.get(axis, axis) for axis in described["shape"]] == list(tensors.shape), described["name"]
            assert f"torch.{described['dtype']}" == str(tensors.dtype), described["name"]
            return
        for one, other in zip(described, tensors, strict=True):
            check(one, other)

    check(facts["programs"]["encode"]["inputs"], inputs)
    check(facts["programs"]["encode"]["outputs"], (memory, state))
    check(facts["programs"]["step"]["inputs"], (torch.tensor([BOS, BOS]), state, memory))
    check(facts["programs"]["step"]["outputs"], (log_probabilities, new))


def test_an_option_it_does_not_have_is_refused(tmp_path: Path) -> None:
    config = tokenizer_config()
    found = lively_checkpoint(CONFIGS["seq2seq"], train_pair(config), config)
    with pytest.raises(ExportError, match="--quantization: found int8"):
        torch_export.export(found, tmp_path, Options(quantization="int8"))
    assert not list(tmp_path.iterdir())


LINES = [*SOURCES[:5], "", "   ", "Über", "ein Hund und noch ein Hund", "漢字 </s> <s>", SOURCES[0] * 2] * 4


@pytest.mark.parametrize("name", ["seq2seq", "bahdanau", "transformer"])
def test_the_example_is_our_greedy_search(name: str, exported: Exported, tmp_path: Path) -> None:
    """In a process that cannot import this package."""
    found, folder = exported(name)
    (tmp_path / "nmt.py").write_text("raise ImportError('this package is not to be used')")
    done = subprocess.run(
        [sys.executable, "-W", "error", folder / "translate.py"],
        input="".join(f"{line}\n" for line in LINES).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr.decode()
    engine = TorchEngine([found.model], torch.device("cpu"), "fp32")
    translator = Translator(engine, found.tokenizers, found.config.search)
    expected = [translation.text for translation in translator.translate(LINES, beam_size=1)]
    assert done.stdout.decode().split("\n") == [*expected, ""]
    assert len(set(expected)) > 4, "the source should matter"
