"""Translate stdin line by line, greedily: python translate.py < in.txt > out.txt

It needs torch and sentencepiece, nothing else, and reads what lies beside it: encode.pt2, step.pt2, nmt.json and the
SentencePiece models. An example, written to be read; ``nmt.json`` says what every tensor is.
"""

import json
import sys
from itertools import islice
from pathlib import Path

import torch
from sentencepiece import SentencePieceProcessor
from torch.nn.utils.rnn import pad_sequence

BATCH = 32
"""Lines translated at once."""


class Translator:
    """The programs and subword models in a folder."""

    def __init__(self, folder: Path) -> None:
        self.facts = json.loads((folder / "nmt.json").read_text(encoding="utf-8"))
        self.encode = torch.export.load(folder / "encode.pt2").module()
        self.step = torch.export.load(folder / "step.pt2").module()
        names = self.facts["sentencepiece"]
        self.source = SentencePieceProcessor(model_file=str(folder / names["source"]))
        self.target = SentencePieceProcessor(model_file=str(folder / names["target"]))

    @torch.inference_mode()
    def translate(self, lines: list[str]) -> list[str]:
        """The most probable next subword, again and again, for all lines at once."""
        pad, bos, eos = (self.facts["ids"][name] for name in ("pad", "bos", "eos"))
        options = self.facts["search"]
        ids = [torch.tensor([*self.source.encode(line), eos]) for line in lines]
        lengths = torch.tensor([len(row) for row in ids])
        limits = (options["max_length_a"] * lengths.double() + options["max_length_b"]).long()
        limits = limits.clamp(min=options["min_length"] + 1)  # subwords, EOS counted
        memory, state = self.encode(pad_sequence(ids, batch_first=True, padding_value=pad), lengths)
        # A beam of k has k rows for each line: repeat all tensors of memory and state, tensor.repeat_interleave(k, 0),
        # and let rows go on from others by tensor.index_select(0, parents) on all tensors of the state.
        previous = torch.full((len(lines),), bos)
        done = torch.zeros(len(lines), dtype=torch.bool)
        chosen: list[torch.Tensor] = []
        while not done.all():
            log_probabilities, state = self.step(previous, state, memory)  # [rows, vocabulary]
            log_probabilities[:, [pad, bos]] = -torch.inf  # no translation holds them
            if len(chosen) < options["min_length"]:
                log_probabilities[:, eos] = -torch.inf
            previous = log_probabilities.argmax(dim=1).masked_fill(done, eos)
            chosen.append(previous)
            done |= (previous == eos) | (len(chosen) >= limits)
        rows = torch.stack(chosen, dim=1).tolist()
        return [self.target.decode([token for token in row if token != eos]) for row in rows]


def main() -> None:
    """A line for each line; a blank one for a blank one."""
    translator = Translator(Path(__file__).parent)
    sys.stdin.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    while lines := [line.rstrip("\r\n") for line in islice(sys.stdin, BATCH)]:
        spoken = [line for line in lines if line.strip()]
        translations = iter(translator.translate(spoken) if spoken else [])
        print("\n".join(next(translations) if line.strip() else "" for line in lines))


if __name__ == "__main__":
    main()
