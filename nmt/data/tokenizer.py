"""Subwords: SentencePiece models (Kudo and Richardson 2018), BPE (Sennrich et al. 2016) or unigram (Kudo 2018).

The four reserved ids are those of ``nmt/tokens.py`` in every model; a file in which they differ is refused. Reserved
pieces are control symbols: typed by a user, ``</s>`` is text like any other. Text passes through ``clean_line`` on its
way in and out, so that training and translation see the same, and one line in is one line out even where byte fallback
spells a newline.
"""

import hashlib
import io
import math
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config import ConfigError, TokenizerConfig
from nmt.data.corpus import DataError, clean_line, is_blank
from nmt.tokens import BOS, EOS, PAD, UNK

WORD_BEGIN = "▁"
"""SentencePiece's mark of a piece that begins a word."""

_LONGEST_TRAINING_LINE = 1000  # characters; SentencePiece leaves longer lines (4,192 bytes) out of its training
_RESERVED = {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS}


class Tokenizer:
    """One side's subwords.

    Raises:
        DataError: ``model_bytes`` is no SentencePiece model, or its pad, unk, bos and eos ids are not 0, 1, 2 and 3.
    """

    def __init__(self, model_bytes: bytes, origin: str = "tokenizer") -> None:
        import sentencepiece

        self.model_bytes = model_bytes
        self._model = sentencepiece.SentencePieceProcessor()
        try:
            self._model.LoadFromSerializedProto(model_bytes)
        except (RuntimeError, ValueError):
            raise DataError(f"{origin}: not a SentencePiece model (damaged or cut short?)") from None
        found = {name: int(getattr(self._model, f"{name}_id")()) for name in _RESERVED}
        if found != _RESERVED:
            raise DataError(f"{origin}: reserved ids are {found}, expected {_RESERVED}; train it with nmt.prepare")
        self.vocabulary_size = int(self._model.get_piece_size())
        """Number of pieces, the reserved ones included: what embeddings are sized by."""

    def encode(self, text: str) -> list[int]:
        """Ids of a line, without BOS and EOS; empty for a blank line."""
        ids: list[int] = self._model.encode(clean_line(text)[0])
        return ids

    def encode_batch(self, texts: Sequence[str], threads: int = -1) -> list[list[int]]:
        """:meth:`encode` for many lines, on all cores or with so many threads."""
        ids: list[list[int]] = self._model.encode([clean_line(text)[0] for text in texts], num_threads=threads)
        return ids

    def normalize(self, text: str) -> str:
        """A line as its pieces spell it: cleaned, normalised, :data:`WORD_BEGIN` before each word; empty if blank."""
        return str(self._model.normalize(clean_line(text)[0]))

    def normal_pieces(self) -> dict[str, tuple[int, float]]:
        """Id and score of every piece that stands for text: no reserved ones, no bytes."""
        model = self._model
        ids = (i for i in range(self.vocabulary_size) if i not in _RESERVED.values() and not model.is_byte(i))
        used = (i for i in ids if not model.is_control(i) and not model.is_unused(i))
        return {str(model.id_to_piece(i)): (i, float(model.get_score(i))) for i in used}

    def character_ids(self, character: str) -> list[int]:
        """Ids of a character that has no piece: its bytes, or UNK where the model has none."""
        ids = [int(self._model.piece_to_id(f"<0x{byte:02X}>")) for byte in character.encode("utf-8")]
        return [UNK] if UNK in ids else ids

    def decode(self, ids: Iterable[int]) -> str:
        """Text of ids; reserved ids but UNK are silent. Never holds a line break or another control character."""
        return clean_line(self._model.decode([int(i) for i in ids]))[0]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Piece of each id, with :data:`WORD_BEGIN` where a word begins; reserved ids by name (``</s>``)."""
        return [str(self._model.id_to_piece(int(i))) for i in ids]

    def source_spans(self, text: str) -> list[tuple[int, int]]:
        """What of a line each piece of ``encode(line)`` stands for: [begin, end) in its characters, as they were before
        anything was cleaned or normalised. Pieces that share a character (its bytes, the parts of ``½``) have the same
        span or overlap; the mark of a word's beginning has the white space before it, if there is any."""
        kept = [place for place, character in enumerate(text) if clean_line(character)[0]]
        cleaned = clean_line(text)[0]
        normal, offsets = self._model.normalize(cleaned, with_offsets=True)  # place in `cleaned` of each character
        ends = [len(cleaned)] * (len(normal) + 1)  # where the next one begins
        for place in reversed(range(len(normal))):
            ends[place] = offsets[place + 1] if offsets[place + 1] > offsets[place] else ends[place + 1]
        spans, first = [], 0
        for token, piece in zip(self.encode(text), self._model.encode(cleaned, out_type=str), strict=True):
            size = len(piece)
            if self._model.is_byte(token):  # <0x41>; all but the first of a character are 0x80 to 0xBF
                size = 1
                first -= 0x80 <= int(piece[1:-1], 16) < 0xC0
            spans.append((kept[offsets[first]], kept[ends[first + size - 1] - 1] + 1))
            first += size
        return spans

    def target_spans(self, ids: Sequence[int]) -> list[tuple[int, int]]:
        """What of the text ``decode(ids)`` each id has written: [begin, end) in its characters, one after the other. A
        character of several bytes belongs to the last of them."""
        text = self.decode(ids)
        beginnings = self._model.decode([[int(i) for i in ids[: count + 1]] for count in range(len(ids))])
        spans, begin = [], 0
        for beginning in beginnings:
            same = takewhile(lambda pair: pair[0] == pair[1], zip(clean_line(beginning)[0], text, strict=False))
            end = max(begin, sum(1 for _ in same))
            spans.append((begin, end))
            begin = end
        return spans

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[bytes]]:
        return Tokenizer, (self.model_bytes,)


class TokenizerPair(NamedTuple):
    """Subwords of both sides: the same object twice when joint."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        return self.source is self.target

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the model files: equal exactly when ids mean the same."""
        models = [self.source.model_bytes] if self.joint else [self.source.model_bytes, self.target.model_bytes]
        return hashlib.sha256(b"".join(hashlib.sha256(model).digest() for model in models)).hexdigest()

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.model`` (joint), or ``source.model`` and ``target.model``."""
        for name, tokenizer in self._files().items():
            (folder / name).write_bytes(tokenizer.model_bytes)

    def _files(self) -> dict[str, Tokenizer]:
        if self.joint:
            return {"tokenizer.model": self.source}
        return {"source.model": self.source, "target.model": self.target}

    @classmethod
    def load(cls, folder: Path) -> "TokenizerPair":
        """Read what :meth:`save` wrote.

        Raises:
            DataError: no such files, or no tokenizers of this project.
        """
        joint = folder / "tokenizer.model"
        sides = [joint] if joint.exists() else [folder / "source.model", folder / "target.model"]
        missing = [path for path in sides if not path.exists()]
        if missing:
            raise DataError(f"{folder}: holds neither tokenizer.model nor source.model and target.model")
        tokenizers = [Tokenizer(path.read_bytes(), str(path)) for path in sides]
        return cls(tokenizers[0], tokenizers[-1])


# --- training ---------------------------------------------------------------------------------------------------------


def train_tokenizers(
    config: TokenizerConfig, sources: Iterable[str], targets: Iterable[str], pairs: int, seed: int
) -> TokenizerPair:
    """Train on a seeded sample of ``pairs`` lines a side; a joint model gets half of its sample from each.

    Raises:
        DataError: the vocabulary is larger than the text allows or smaller than its alphabet; names the bound.
    """
    limit = config.sample_sentences // 2 if config.joint else config.sample_sentences
    source_lines = _sample(sources, pairs, limit, seed)
    target_lines = _sample(targets, pairs, limit, seed)
    if config.joint:
        joint = _train(config, "vocabulary_size", chain(source_lines, target_lines), "both sides")
        return TokenizerPair(joint, joint)
    source_key = "vocabulary_size" if config.source_vocabulary_size is None else "source_vocabulary_size"
    return TokenizerPair(
        _train(config, source_key, source_lines, "the source"),
        _train(config, "vocabulary_size", target_lines, "the target"),
    )


def _sample(lines: Iterable[str], count: int, limit: int, seed: int) -> Iterator[str]:
    """``limit`` of ``count`` lines in order, every subset equally likely (Knuth, TAOCP 3.4.2, algorithm S)."""
    generator = random.Random(seed)
    wanted = min(limit, count)
    for seen, line in enumerate(lines):
        if generator.random() * (count - seen) < wanted:
            wanted -= 1
            yield line


def _train(config: TokenizerConfig, size_key: str, lines: Iterator[str], side: str) -> Tokenizer:
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_training_lines(lines),
            model_writer=model,
            model_type=config.kind,
            vocab_size=getattr(config, size_key),
            character_coverage=config.character_coverage,
            normalization_rule_name=config.normalization,
            byte_fallback=config.byte_fallback,
            num_threads=config.num_threads,
            max_sentence_length=1 << 20,  # bytes: nothing is skipped, `_training_lines` has cut
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise DataError(_explain(f"data.tokenizer.{size_key}: {getattr(config, size_key)}", side, str(error))) from None
    return Tokenizer(model.getvalue())


def _training_lines(lines: Iterable[str]) -> Iterator[str]:
    """Cleaned lines that are not blank, cut at spaces where they are longer than SentencePiece would take."""
    for line in lines:
        text = clean_line(line)[0]
        while len(text) > _LONGEST_TRAINING_LINE:
            cut = text.rfind(" ", 1, _LONGEST_TRAINING_LINE)
            cut = cut if cut > 0 else _LONGEST_TRAINING_LINE
            yield text[:cut]
            text = text[cut:]
        if not is_blank(text):
            yield text


def _explain(key_and_value: str, side: str, message: str) -> str:
    """SentencePiece's complaint in terms of our keys."""
    if largest := re.search(r"value <= (\d+)", message):
        return f"{key_and_value} is more than the text of {side} allows; the largest possible value is {largest[1]}"
    if smallest := re.search(r"required_chars\. \d+ vs (\d+)", message):
        return (
            f"{key_and_value} is less than the alphabet of {side} needs; the smallest possible value is {smallest[1]} "
            "(or lower data.tokenizer.character_coverage)"
        )
    return f"data.tokenizer: SentencePiece could not be trained on {side}: {message.strip()}"


def check_tokenizer_config(config: TokenizerConfig) -> None:
    """Refuse values out of range before any text is read.

    Raises:
        ConfigError: naming the key and its range.
    """
    if config.source_vocabulary_size is not None and config.joint:
        raise ConfigError(
            "data.tokenizer.source_vocabulary_size: needs data.tokenizer.joint=false; a joint vocabulary has one size"
        )
    smallest = len(_RESERVED) + 1 + 256 * config.byte_fallback
    source_size = config.vocabulary_size if config.source_vocabulary_size is None else config.source_vocabulary_size
    ranges: list[tuple[str, Any, bool, str]] = [
        ("vocabulary_size", config.vocabulary_size, config.vocabulary_size >= smallest, f"{smallest} or more"),
        ("source_vocabulary_size", source_size, source_size >= smallest, f"{smallest} or more"),
        ("character_coverage", config.character_coverage, 0.98 <= config.character_coverage <= 1, "0.98 to 1"),
        ("sample_sentences", config.sample_sentences, config.sample_sentences >= 2, "2 or more"),
        ("num_threads", config.num_threads, 1 <= config.num_threads <= 1024, "1 to 1024"),
    ]
    rate = config.subword_regularization
    if rate is not None and config.kind == "bpe":
        ranges.append(("subword_regularization", rate, 0 < rate < 1, "null or a rate of BPE-dropout between 0 and 1"))
    elif rate is not None:
        ranges.append(
            ("subword_regularization", rate, 0 < rate < math.inf, "null or the unigram model's alpha, above 0")
        )
    for name, value, valid, expected in ranges:
        if not valid:
            raise ConfigError(f"data.tokenizer.{name}: expected {expected}, found {value}")
