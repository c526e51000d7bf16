"""Preparation: what is kept, dropped, counted, stored and found again."""

import gzip
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.config import ConfigError, DataConfig
from nmt.data.corpus import DataError
from nmt.data.dataset import PreparedData, open_prepared, prepare
from nmt.data.store import id_type
from nmt.tokens import EOS
from tests.data_configs import ENGLISH, GERMAN, data_config, files_config, small_corpus, write_corpus


class Log(list[str]):
    """Takes what preparation says."""

    def __call__(self, line: str) -> None:
        self.append(line)

    @property
    def text(self) -> str:
        return "\n".join(self)


def prepared(config: DataConfig) -> PreparedData:
    return prepare(config, Log())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_corpus(tmp_path / "text")
    return tmp_path


def config_of(folder: Path, **changes: Any) -> DataConfig:
    return files_config(folder / "text", folder / "cache", **changes)


def changed_text(folder: Path, name: str, lines: list[str]) -> None:
    (folder / "text" / name).write_bytes("".join(f"{line}\n" for line in lines).encode())


# --- what is stored ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [True, False])
def test_ids_are_what_the_tokenizer_says(folder: Path, joint: bool) -> None:
    data = prepared(config_of(folder, tokenizer={"joint": joint, "vocabulary_size": 45}))
    assert len(data.train) == len(ENGLISH)
    assert data.test is None
    for i, (source, target) in enumerate(zip(ENGLISH, GERMAN, strict=True)):
        expected = [*data.tokenizers.source.encode(source), EOS], [*data.tokenizers.target.encode(target), EOS]
        assert [side.tolist() for side in data.train.pair(i)] == list(expected)
        assert data.train.source_lengths[i] == len(expected[0])
        assert data.train.target_lengths[i] == len(expected[1])
    assert data.tokenizers.joint == joint


def test_the_split_may_have_a_test_set_and_be_packed(folder: Path) -> None:
    for language, line in (("en", "a dog ."), ("de", "ein Hund .")):
        (folder / "text" / f"test.{language}.gz").write_bytes(gzip.compress(f"{line}\r\n".encode()))
    data = prepared(config_of(folder, test=str(folder / "text" / "test")))
    assert data.test is not None
    assert (data.test.sources(), data.test.references()) == (["a dog ."], ["ein Hund ."])


def test_windows_line_ends_on_one_side_change_nothing(folder: Path) -> None:
    plain = prepared(config_of(folder))
    text = (folder / "text" / "train.en").read_bytes()
    (folder / "text" / "train.en").write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    windows = prepared(config_of(folder))
    assert windows.folder != plain.folder
    assert windows.tokenizers.digest == plain.tokenizers.digest
    assert all(
        np.array_equal(windows.train.pair(i)[side], plain.train.pair(i)[side])
        for i in range(len(plain.train))
        for side in (0, 1)
    )
    assert windows.report["splits"]["train"]["sha256"] == plain.report["splits"]["train"]["sha256"]


def test_the_hash_is_that_of_the_plain_text(folder: Path) -> None:
    report = prepared(config_of(folder)).report
    for side, language in (("source", "en"), ("target", "de")):
        expected = hashlib.sha256((folder / "text" / f"train.{language}").read_bytes()).hexdigest()
        assert report["splits"]["train"]["sha256"][side] == expected


@pytest.mark.parametrize(("size", "name"), [(60, "uint16"), (65_536, "uint16"), (65_537, "int32")])
def test_ids_take_the_narrowest_type(size: int, name: str) -> None:
    assert id_type(size).name == name
    assert np.array([size - 1]).astype(id_type(size))[0] == size - 1


def test_training_keeps_no_text(folder: Path) -> None:
    data = prepared(config_of(folder))
    with pytest.raises(DataError, match="keeps no text"):
        data.train.sources()
    assert data.train.alignments() is None


# --- what is dropped --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["", " ", "\u00a0", "\r", "\x00", "\u2028"])
@pytest.mark.parametrize("side", ["en", "de"])
def test_a_pair_with_an_empty_side_goes_from_training_only(folder: Path, blank: str, side: str) -> None:
    for split, lines in (("train", ENGLISH if side == "en" else GERMAN), ("validation", ["x", "y", "z"])):
        changed_text(folder, f"{split}.{side}", [lines[0], blank, *lines[2:]])
    data = prepared(config_of(folder))
    counts = data.report["splits"]
    assert len(data.train) == counts["train"]["kept"] == len(ENGLISH) - 1
    assert counts["train"]["read"] == len(ENGLISH)
    assert counts["train"]["dropped"] == {"empty": 1, "too_long": 0}
    assert data.train.pair(1)[0].tolist() == [*data.tokenizers.source.encode(ENGLISH[2]), EOS]
    assert len(data.validation) == counts["validation"]["read"] == counts["validation"]["kept"] == 3
    assert counts["validation"]["blank"] == 1
    assert counts["validation"]["dropped"] == {}


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_length_limit_counts_subwords_with_eos(folder: Path, side: str) -> None:
    lengths = getattr(prepared(config_of(folder)).train, f"{side}_lengths")
    other = prepared(config_of(folder)).train
    longest = np.maximum(other.source_lengths, other.target_lengths)
    for limit in (int(lengths.max()), int(lengths.max()) - 1):
        data = prepared(config_of(folder, max_length=limit))
        assert len(data.train) == int((longest <= limit).sum())
        dropped = data.report["splits"]["train"]["dropped"]["too_long"]
        assert dropped == len(ENGLISH) - len(data.train)
    assert dropped > 0
    assert max(data.train.source_lengths.max(), data.train.target_lengths.max()) <= limit


def test_held_out_pairs_are_never_filtered(folder: Path) -> None:
    changed_text(folder, "validation.en", ["a dog " * 100, "a", "b"])
    data = prepared(config_of(folder, max_length=20))
    assert len(data.validation) == 3
    assert data.validation.source_lengths[0] > 100


def test_a_letter_by_letter_word_is_as_long_as_its_subwords(folder: Path) -> None:
    changed_text(folder, "train.en", ["g" * 20_000, *ENGLISH[1:]])
    data = prepared(config_of(folder))
    assert data.report["splits"]["train"]["dropped"] == {"empty": 0, "too_long": 1}


def test_nothing_left_is_an_error_with_the_reasons(folder: Path) -> None:
    changed_text(folder, "train.en", ["", *ENGLISH[1:]])
    with pytest.raises(DataError, match=r"none of 20 .*; an empty side: 1, over 2 subwords: 19 .*data\.max_length"):
        prepared(config_of(folder, max_length=2))


@pytest.mark.parametrize("split", ["train", "validation"])
def test_an_empty_split_is_an_error(folder: Path, split: str) -> None:
    for lines, message in (([], "holds no pairs"), (["", " "], "every one of its 2 pairs")):
        for language in ("en", "de"):
            changed_text(folder, f"{split}.{language}", lines)
        with pytest.raises(DataError, match=f"{split}: {message}"):
            prepared(config_of(folder))


def test_max_pairs_takes_the_first(folder: Path) -> None:
    data = prepared(config_of(folder, max_pairs=7, tokenizer={"vocabulary_size": 45}))
    assert len(data.train) == 7
    assert len(data.validation) == 3


# --- what is counted --------------------------------------------------------------------------------------------------


def test_overlap_duplicates_and_control_characters_are_counted_and_shown(folder: Path) -> None:
    write_corpus(
        folder / "text",
        train=([*ENGLISH[:5], "a new\x00 one .", "a\x01\x02 b"], [*GERMAN[:5], "ein neu er .", "a b"]),
        validation=([ENGLISH[0], ENGLISH[1], ENGLISH[0], "a new one ."], [GERMAN[0], "anders .", GERMAN[0], "x"]),
        test=(["nothing known", "a"], ["nichts", "b"]),
    )
    log = Log()
    changed_text(folder, "train.en", [*ENGLISH[:5], ENGLISH[0], "a new\x00 one .", "a\x01\x02 b"])
    changed_text(folder, "train.de", [*GERMAN[:5], GERMAN[0], "ein neu er .", "a b"])
    config = config_of(folder, test=str(folder / "text" / "test"), tokenizer={"vocabulary_size": 45})
    report = prepare(config, log).report
    assert report["overlap"] == {
        "validation": {"source": 4, "target": 2, "pair": 2},
        "test": {"source": 0, "target": 0, "pair": 0},
    }
    assert report["splits"]["train"]["duplicates"] == 1
    assert report["splits"]["validation"]["duplicates"] == 1
    assert report["splits"]["train"]["control_characters"] == 3
    assert "validation: 4 of 4 sources occur in training too, 2 with the same translation" in log.text
    assert "3 control characters removed" in log.text
    assert "1 pairs repeat an earlier one" in log.text


def test_the_table_shows_every_drop(folder: Path) -> None:
    changed_text(folder, "train.en", ["", *ENGLISH[1:]])
    log = Log()
    data = prepare(config_of(folder, max_length=14), log)
    dropped = data.report["splits"]["train"]["dropped"]
    row = next(line for line in log if line.startswith("train "))
    assert row.split()[:4] == ["train", "20", str(len(data.train)), str(20 - len(data.train))]
    assert f"an empty side: 1, over 14 subwords: {dropped['too_long']}" in row
    assert dropped["too_long"] > 0


def test_tokens_and_unknowns_are_counted(folder: Path) -> None:
    changed_text(folder, "validation.en", ["Ж dog", "Ж Ж", "a"])
    data = prepared(config_of(folder))
    assert data.report["splits"]["validation"]["unknown"] == {"source": 3, "target": 0}
    assert data.report["splits"]["train"]["tokens"]["source"] == int(data.train.source_lengths.sum())


# --- what is found again ----------------------------------------------------------------------------------------------


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_mtime_ns, path.stat().st_ino) for path in [folder, *folder.iterdir()]}


def test_the_second_time_nothing_is_done(folder: Path) -> None:
    first = prepared(config_of(folder))
    before = snapshot(first.folder)
    log = Log()
    second = prepare(config_of(folder), log)
    assert snapshot(first.folder) == before
    assert second.folder == first.folder
    assert second.fingerprint == first.fingerprint
    assert second.report == first.report
    assert "cached" in log.text
    assert [path.name for path in (folder / "cache").iterdir()] == [first.folder.name]


def test_the_folder_is_named_after_data_and_fingerprint(folder: Path) -> None:
    data = prepared(config_of(folder, name="mine"))
    assert data.folder == folder / "cache" / f"mine-{data.fingerprint[:16]}"
    assert json.loads((data.folder / "preparation.json").read_text())["fingerprint"] == data.fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"max_length": 255},
        {"max_pairs": 19},
        {"source": "de", "target": "en"},
        {"tokenizer": {"vocabulary_size": 61}},
        {"tokenizer": {"kind": "unigram"}},
        {"tokenizer": {"num_threads": 2}},
        {"tokenizer": {"normalization": "nfkc"}},
        {"tokenizer": {"joint": False}},
    ],
    ids=str,
)
def test_a_change_that_matters_is_prepared_anew(folder: Path, changes: dict[str, Any]) -> None:
    base = {"vocabulary_size": 45}
    changed = config_of(folder, **(changes | {"tokenizer": base | changes.get("tokenizer", {})}))
    assert prepared(changed).fingerprint != prepared(config_of(folder, tokenizer=base)).fingerprint


def test_a_changed_file_is_prepared_anew(folder: Path) -> None:
    before = prepared(config_of(folder))
    changed_text(folder, "validation.de", ["Kind .", "Katze .", "."])  # as many bytes as before
    os.utime(folder / "text" / "validation.de", ns=(1, 1))
    after = prepared(config_of(folder))
    assert after.fingerprint != before.fingerprint
    assert after.validation.references()[0] == "Kind ."


def test_where_things_lie_does_not_matter(folder: Path) -> None:
    before = prepared(config_of(folder))
    shutil.copytree(folder / "text", folder / "moved" / "text")  # copies times as well
    shutil.copytree(folder / "cache", folder / "moved" / "cache")
    moved = config_of(folder / "moved")
    after = prepared(moved)
    assert after.fingerprint == before.fingerprint
    assert after.folder.parent == folder / "moved" / "cache"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"target": "en"}, r"data\.target"),
        ({"name": "a/b"}, r"data\.name"),
        ({"name": ".."}, r"data\.name"),
        ({"max_length": 1}, r"data\.max_length"),
        ({"max_pairs": 0}, r"data\.max_pairs"),
        ({"tokenizer": {"num_threads": 0}}, r"data\.tokenizer\.num_threads"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_by_key(folder: Path, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        prepared(config_of(folder, **changes))
    assert not (folder / "cache").exists()


@pytest.mark.parametrize(
    ("group", "changes", "key"),
    [
        ("demo", {"source": "de", "target": "en"}, r"data\.source"),
        ("demo", {"target": "fr"}, r"data\.target"),
        ("demo", {"test_pairs": 0}, r"data\.test_pairs"),
        ("multi30k", {"timeout": 0.0}, r"data\.timeout"),
    ],
    ids=str,
)
def test_what_a_kind_of_data_cannot_be_is_refused_by_key(
    tmp_path: Path, group: str, changes: dict[str, Any], key: str
) -> None:
    with pytest.raises(ConfigError, match=key):
        prepared(data_config(group, tmp_path / "cache", **changes))
    assert not (tmp_path / "cache").exists()


def test_a_missing_folder_is_no_prepared_data(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="damaged"):
        open_prepared(tmp_path / "nothing")


def test_data_of_another_form_is_named_and_not_read(folder: Path) -> None:
    data = prepared(config_of(folder))
    report = json.loads((data.folder / "preparation.json").read_text())
    for key in ("parts", "stages", "reasons"):  # which the first form had not
        del report[key]
    (data.folder / "preparation.json").write_text(json.dumps(report | {"format": 1}))
    with pytest.raises(DataError, match=r"another version of nmt \(form 1, .*prepare again"):
        open_prepared(data.folder)


# --- the embedded grammar ---------------------------------------------------------------------------------------------


def test_the_demo_has_gold_alignments_beside_its_pairs(tmp_path: Path) -> None:
    sizes = {"train_pairs": 300, "validation_pairs": 20, "test_pairs": 10}
    data = prepared(data_config("demo", tmp_path, tokenizer={"vocabulary_size": 300}, max_length=40, **sizes))
    assert data.test is not None
    assert (len(data.validation), len(data.test)) == (20, 10)
    assert len(data.train) < 300  # the limit drops some, and their alignments with them
    for split in (data.train, data.validation, data.test):
        alignments = split.alignments()
        assert alignments is not None
        assert len(alignments) == len(split)
        for i, links in enumerate(alignments):
            words = [
                len(tokenizer.decode(ids).split())
                for tokenizer, ids in zip(data.tokenizers, split.pair(i), strict=True)
            ]
            assert links
            assert max(source for source, _ in links) < words[0]
            assert max(target for _, target in links) < words[1]
    sources = data.validation.sources()
    assert all(
        len(data.tokenizers.source.decode(data.validation.pair(i)[0]).split()) == len(line.split())
        for i, line in enumerate(sources)
    )
