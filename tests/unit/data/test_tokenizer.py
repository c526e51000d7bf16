"""Subwords: reserved ids, user text that looks like them, one line in and one line out."""

import io
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config import CONFIG_DIR, ConfigError, TokenizerConfig, parse
from nmt.data.corpus import DataError
from nmt.data.tokenizer import (
    WORD_BEGIN,
    Tokenizer,
    TokenizerPair,
    _sample,
    check_tokenizer_config,
    train_tokenizers,
)
from nmt.tokens import BOS, EOS, PAD, UNK
from tests.data_configs import ENGLISH, GERMAN

RESERVED = {PAD, UNK, BOS, EOS}
CONTROL = ["</s>", "<s>", "<pad>"]


def tokenizer_config(**changes: Any) -> TokenizerConfig:
    tree = yaml.safe_load((CONFIG_DIR / "data" / "tokenizer" / "sentencepiece.yaml").read_text(encoding="utf-8"))
    return parse(TokenizerConfig, tree | {"vocabulary_size": 60, "num_threads": 1} | changes)


def trained(sources: list[str] = ENGLISH, targets: list[str] = GERMAN, **changes: Any) -> TokenizerPair:
    return train_tokenizers(tokenizer_config(**changes), sources, targets, len(sources), seed=1)


@pytest.fixture(scope="module")
def joint() -> Tokenizer:
    return trained().source


@pytest.fixture(scope="module")
def with_bytes() -> Tokenizer:
    return trained(byte_fallback=True, vocabulary_size=310).source


# --- the reserved ids -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("text", [*CONTROL, "<unk>", "a </s> dog", "x</s></s>y", "<s>a dog</s>", "<0x0A>"])
def test_reserved_pieces_typed_by_a_user_are_text(kind: str, byte_fallback: bool, text: str) -> None:
    lines = ENGLISH + ["< / > </s> <pad> <s> <unk> <0x0A> 0 x y A"] * 3
    size = 290 if byte_fallback else 40
    tokenizer = trained(lines, lines, kind=kind, byte_fallback=byte_fallback, vocabulary_size=size).source
    ids = tokenizer.encode(text)
    assert not set(ids) & RESERVED
    assert tokenizer.decode(ids) == text


def test_nothing_typed_becomes_a_control_id(joint: Tokenizer, with_bytes: Tokenizer) -> None:
    for text in (*CONTROL, "a</s>b", f"{WORD_BEGIN}</s>", "\x03", "\ufeff</s>"):
        for tokenizer in (joint, with_bytes):
            assert not set(tokenizer.encode(text)) & {PAD, BOS, EOS}


@pytest.mark.parametrize(
    "ids",
    [{"pad_id": -1}, {"pad_id": 3, "eos_id": 0}, {"unk_id": 0, "pad_id": 1}, {"bos_id": -1}],
    ids=["no pad", "pad and eos swapped", "unk first", "no bos"],
)
def test_a_tokenizer_with_other_ids_is_refused(ids: dict[str, int]) -> None:
    model = io.BytesIO()
    wanted = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3} | ids
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(ENGLISH), model_writer=model, vocab_size=40, minloglevel=2, model_type="bpe", **wanted
    )
    with pytest.raises(DataError, match="reserved ids"):
        Tokenizer(model.getvalue())


@pytest.mark.parametrize("data", [b"", b"no model", b"\x00" * 100])
def test_what_is_no_model_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"x\.model"):
        Tokenizer(data, "x.model")


def test_a_truncated_model_is_refused(joint: Tokenizer) -> None:
    for size in (len(joint.model_bytes) // 2, len(joint.model_bytes) - 1):
        with pytest.raises(DataError):
            Tokenizer(joint.model_bytes[:size])


# --- text in, text out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [*ENGLISH[:5], *GERMAN[:5]])
def test_known_text_comes_back(joint: Tokenizer, line: str) -> None:
    assert joint.decode(joint.encode(line)) == line
    assert UNK not in joint.encode(line)


def test_a_batch_is_its_lines(joint: Tokenizer) -> None:
    assert joint.encode_batch(ENGLISH) == [joint.encode(line) for line in ENGLISH]
    assert joint.encode_batch([]) == []
    assert all(type(i) is int for row in joint.encode_batch(ENGLISH) for i in row)


@pytest.mark.parametrize("blank", ["", " ", "\t", "\r", "\u00a0", "\u2028", " \u3000 ", "\x00"])
def test_a_blank_line_has_no_ids(joint: Tokenizer, blank: str) -> None:
    assert joint.encode(blank) == []
    assert joint.decode([]) == ""


@pytest.mark.parametrize(
    "space", ["\r", "\t", "\n", "\u00a0", "\u202f", "\u2028", "  ", "\x0b", "\x0c", "\x85", "\x1e"]
)
def test_white_space_of_any_kind_is_a_space(joint: Tokenizer, space: str) -> None:
    assert joint.encode(f"a dog{space}runs .") == joint.encode("a dog runs .")
    assert joint.encode(f"a dog runs .{space}") == joint.encode("a dog runs .")


@pytest.mark.parametrize("normalization", ["identity", "nmt_nfkc"])
def test_a_carriage_return_is_white_space_for_every_normalizer(normalization: str) -> None:
    tokenizer = trained(normalization=normalization).source
    assert tokenizer.encode("a dog\rruns .\r") == tokenizer.encode("a dog runs .")


def test_the_normalizer_is_the_one_named() -> None:
    lines = ["½ ﬁx ² fix 1 2 ⁄"] * 20
    assert "½" in trained(lines, lines, normalization="identity", vocabulary_size=16).source.decode([*range(4, 16)])
    tokenizer = trained(lines, lines, normalization="nmt_nfkc", vocabulary_size=14).source
    assert tokenizer.decode(tokenizer.encode("ﬁx ²")) == "fix 2"


@settings(deadline=None)
@given(st.lists(st.integers(0, 309), max_size=30))
def test_decoding_gives_one_line(with_bytes: Tokenizer, ids: list[int]) -> None:
    text = with_bytes.decode(ids)
    assert "\n" not in text
    assert "\r" not in text
    assert "\x00" not in text
    text.encode("utf-8")


def test_a_newline_spelled_in_bytes_is_a_space(with_bytes: Tokenizer) -> None:
    newline, letter = (with_bytes._model.piece_to_id(piece) for piece in ("<0x0A>", "<0x41>"))
    assert with_bytes.decode([letter, newline, letter]) == "A A"


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_byte_fallback_knows_every_character(with_bytes: Tokenizer, text: str) -> None:
    assert UNK not in with_bytes.encode(text)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_can_be_encoded(joint: Tokenizer, text: str) -> None:
    ids = joint.encode(text)
    assert all(UNK <= i < joint.vocabulary_size and i not in (BOS, EOS) for i in ids)
    joint.decode(ids)


# --- what a piece stands for ------------------------------------------------------------------------------------------

ODD = [
    "½ dog",
    "dog\u00a0cat",
    "  the  dog ",
    "a\tdog",
    "日本 dog",
    "日\u3000本",
    "a´b",
    "do\u200bg",
    "d\x00og",
    "\x85dog\x01 \x02",
]
ODD += ["\ufeffdog", "▁dog ▁", "dog\r\ncat", "ﬁ ﬂ", "e\u0301", "ё</s>", "<0x41>A", "\U0001f600 x"]


@pytest.mark.parametrize("normalization", ["identity", "nmt_nfkc"])
@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("text", [*ENGLISH[:3], *ODD, "", " "])
def test_source_spans_are_what_a_piece_was_made_of(normalization: str, byte_fallback: bool, text: str) -> None:
    size = 320 if byte_fallback else 60
    tokenizer = trained(normalization=normalization, byte_fallback=byte_fallback, vocabulary_size=size).source
    ids, spans = tokenizer.encode(text), tokenizer.source_spans(text)
    assert len(spans) == len(ids)
    assert spans == sorted(spans)
    assert all(0 <= begin < end <= len(text) for begin, end in spans)
    covered = {place for begin, end in spans for place in range(begin, end)}
    assert {place for place, character in enumerate(text) if character.isalpha()} <= covered
    for piece, (begin, end) in zip(tokenizer.pieces(ids), spans, strict=True):
        letters = piece.replace(WORD_BEGIN, "")
        if normalization == "identity" and letters and not piece.startswith("<"):
            assert text[begin:end].strip(WORD_BEGIN + "\x00\x01\x02\ufeff \r\n\x85") == letters


def test_source_spans_by_hand(joint: Tokenizer, with_bytes: Tokenizer) -> None:
    assert joint.encode("日本") == [joint.encode("日")[0], UNK]  # the mark of a beginning, and one UNK
    assert joint.source_spans("日本 日") == [(0, 1), (0, 2), (2, 3), (3, 4)]
    assert with_bytes.source_spans("é日") == [(0, 1), (0, 1), (0, 1), (1, 2), (1, 2), (1, 2)]
    assert joint.source_spans("\x00日") == [(1, 2), (1, 2)]


@settings(deadline=None)
@given(st.data())
def test_target_spans_cut_the_text_into_what_each_id_writes(
    joint: Tokenizer, with_bytes: Tokenizer, data: st.DataObject
) -> None:
    tokenizer = data.draw(st.sampled_from([joint, with_bytes]))
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocabulary_size - 1), max_size=12))
    text, spans = tokenizer.decode(ids), tokenizer.target_spans(ids)
    assert len(spans) == len(ids)
    assert "".join(text[begin:end] for begin, end in spans) == text
    for place, (begin, _) in enumerate(spans):
        before = tokenizer.decode(ids[:place])
        if "\ufffd" not in before:  # no half characters
            assert text[:begin] == before


def test_target_spans_of_bytes(with_bytes: Tokenizer) -> None:
    ids = with_bytes.encode("é dog")
    spans = with_bytes.target_spans(ids)
    assert "".join("é dog"[begin:end] for begin, end in spans) == "é dog"
    assert spans[:3] == [(0, 0), (0, 0), (0, 1)]


def test_reserved_ids_have_names(joint: Tokenizer) -> None:
    assert joint.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


# --- training ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_the_bounds_of_the_vocabulary_are_named_and_exact(kind: str, byte_fallback: bool) -> None:
    bounds = []
    for size in (5 + 256 * byte_fallback, 100_000):
        with pytest.raises(DataError) as caught:
            trained(kind=kind, byte_fallback=byte_fallback, vocabulary_size=size)
        message = str(caught.value)
        assert message.startswith(f"data.tokenizer.vocabulary_size: {size} is ")
        bounds.append(int(message.split("possible value is ")[1].split()[0]))
    smallest, largest = bounds
    assert smallest < largest
    for size in bounds:
        assert trained(kind=kind, byte_fallback=byte_fallback, vocabulary_size=size).source.vocabulary_size == size
    for size in (smallest - 1, largest + 1):
        with pytest.raises(DataError, match="possible value"):
            trained(kind=kind, byte_fallback=byte_fallback, vocabulary_size=size)


def test_which_side_is_at_fault_is_named() -> None:
    with pytest.raises(DataError, match="the target"):
        trained(ENGLISH, ["ja nein"] * len(ENGLISH), joint=False, vocabulary_size=40)


def test_each_side_may_have_a_size_of_its_own() -> None:
    pair = trained(joint=False, vocabulary_size=45, source_vocabulary_size=40)
    assert (pair.source.vocabulary_size, pair.target.vocabulary_size) == (40, 45)
    with pytest.raises(DataError, match=r"data\.tokenizer\.source_vocabulary_size: 9999 is more .*the source"):
        trained(joint=False, vocabulary_size=45, source_vocabulary_size=9999)
    with pytest.raises(ConfigError, match="joint=false"):
        check_tokenizer_config(tokenizer_config(joint=True, source_vocabulary_size=40))


def test_text_without_words_is_an_error() -> None:
    with pytest.raises(DataError, match=r"data\.tokenizer"):
        trained(["", " "], ["", "\x00"])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_long_lines_take_part_in_training(kind: str) -> None:
    long = " ".join(["zebra"] * 2000)
    tokenizer = trained([*ENGLISH, long, "q" * 20_000], [*GERMAN, "", ""], kind=kind, vocabulary_size=60).source
    assert UNK not in tokenizer.encode("zebra qq")


def test_a_very_long_word_is_encoded_whole(joint: Tokenizer) -> None:
    word = "dog" * 7000
    assert joint.decode(joint.encode(word)) == word


def test_training_is_repeatable_and_follows_the_sample() -> None:
    lines = [f"{word}{i} " * 3 for i, word in enumerate(ENGLISH * 5)]
    digests = [trained(lines, lines, sample_sentences=20, vocabulary_size=40).digest for _ in range(2)]
    assert digests[0] == digests[1]
    assert digests[0] != trained(lines, lines, vocabulary_size=40).digest


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5))
def test_a_sample_has_its_size_and_keeps_the_order(count: int, limit: int, seed: int) -> None:
    lines = [str(i) for i in range(count)]
    sample = list(_sample(lines, count, limit, seed))
    assert len(sample) == min(count, limit)
    assert sample == sorted(sample, key=int)
    assert len(set(sample)) == len(sample)


def test_every_line_is_sampled_alike() -> None:
    hits = [0] * 10
    for seed in range(2000):
        for line in _sample((str(i) for i in range(10)), 10, 3, seed):
            hits[int(line)] += 1
    assert all(500 < hit < 700 for hit in hits)  # 600 expected, standard deviation 20


def test_no_more_than_the_sample_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def record(sentence_iterator: Iterator[str], **_: Any) -> None:
        seen.extend(sentence_iterator)
        raise RuntimeError("enough")

    monkeypatch.setattr(sentencepiece.SentencePieceTrainer, "train", record)
    with pytest.raises(DataError, match="enough"):
        trained(ENGLISH, GERMAN, sample_sentences=10)
    assert len(seen) == 10
    assert sum(line in ENGLISH for line in seen) == 5


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocabulary_size", 4),
        ("character_coverage", 0.5),
        ("character_coverage", 1.1),
        ("sample_sentences", 0),
        ("num_threads", 0),
    ],
)
def test_impossible_settings_are_named(key: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"data\.tokenizer\.{key}: .*found {value}"):
        check_tokenizer_config(tokenizer_config(**{key: value}))


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [True, False])
def test_saved_and_loaded(tmp_path: Path, joint: bool) -> None:
    pair = trained(joint=joint, vocabulary_size=45)
    pair.save(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == ({"tokenizer.model"} if joint else {"source.model", "target.model"})
    loaded = TokenizerPair.load(tmp_path)
    assert loaded.joint == pair.joint == joint
    assert loaded.digest == pair.digest
    assert loaded.target.encode(GERMAN[0]) == pair.target.encode(GERMAN[0])


def test_the_digest_tells_sides_apart() -> None:
    pair = trained(joint=False, vocabulary_size=45)
    digests = {
        pair.digest,
        TokenizerPair(pair.target, pair.source).digest,
        TokenizerPair(pair.source, pair.source).digest,
    }
    assert len(digests) == 3


def test_a_folder_without_tokenizers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"neither tokenizer\.model"):
        TokenizerPair.load(tmp_path)


def test_tokenizers_can_be_sent_to_another_process(joint: Tokenizer) -> None:
    assert pickle.loads(pickle.dumps(joint)).encode(ENGLISH[0]) == joint.encode(ENGLISH[0])
