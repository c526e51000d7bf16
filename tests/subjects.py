"""What a diagnosis looks at: small models that nobody has trained, with sentences and no data behind them."""

from dataclasses import replace
from pathlib import Path

import torch

from nmt.analysis.diagnosis import Subject
from nmt.checkpoint import Checkpoint
from nmt.data.tokenizer import TokenizerPair
from tests.fakes import WordTokenizer
from tests.model_configs import CONFIGS, VOCABULARY, lively
from tests.oracles import options
from tests.tiny_run import compose_config

WORDS = [f"w{number}" for number in range(VOCABULARY - 4)]
PAIR = TokenizerPair(WordTokenizer(WORDS), WordTokenizer(WORDS))
LINES = ("w1 w2 w3 w4", "", "w5 w5 w6", "w7 w8 w9 w2 w1", "w3 w4")
REFERENCES = ("w4 w3 w2 w1", "", "w6 w5", "w1 w2 w9 w8 w7", "w4 w3")


def subject(name: str, tmp_path: Path, **changes: object) -> Subject:
    """A small model that nobody has trained; its data is nowhere."""
    config = compose_config(
        "data=files", "data.source=a", "data.target=b", f"data.train={tmp_path}/no", f"data.validation={tmp_path}/no"
    )
    config = replace(config, model=CONFIGS[name])
    checkpoint = Checkpoint(lively(CONFIGS[name]), PAIR, config, tmp_path, 7)
    made = Subject(checkpoint, torch.device("cpu"), "fp32", options(), lambda message: None)
    return replace(made, **{"lines": LINES, "references": REFERENCES} | changes)
