"""Cuts and samples of rows by number: exact, disjoint, in proportion; the same from files and from a cache."""

import random
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data import hub_streams, hub_tables
from nmt.data.corpus import DataError
from nmt.data.hub_streams import in_shuffled_order, one_after_the_other
from nmt.data.hub_tables import (
    CachedTable,
    Group,
    LocalBytes,
    MissingColumnError,
    ParquetTable,
    Record,
    Segment,
    held_out_rows,
    in_order,
    in_sampled_order,
    mixed,
    rows_between,
    segments,
)


def grouped(*files: list[int]) -> list[Group]:
    """Groups of so many rows each, file by file."""
    groups: list[Group] = []
    for file, sizes in enumerate(files):
        for number, rows in enumerate(sizes):
            first = groups[-1].first + groups[-1].rows if groups else 0
            groups.append(Group(file, number, first, rows))
    return groups


def rows_of(pieces: list[Segment]) -> list[int]:
    return [piece.group.first + row for piece in pieces for row in piece.rows]


def whole(groups: list[Group]) -> list[Segment]:
    return [Segment(group, range(group.rows)) for group in groups]


class Numbers:
    """A table whose records are their own numbers; notes which groups are fetched."""

    def __init__(self, groups: list[Group]) -> None:
        self.files = [str(file) for file in sorted({group.file for group in groups})]
        self._groups = groups
        self.fetched: list[Group] = []

    def groups(self) -> Any:
        return iter(self._groups)

    def read(self, group: Group, ahead: bool) -> list[Record]:
        self.fetched.append(group)
        return [{"row": group.first + row} for row in range(group.rows)]


# --- held-out cuts ----------------------------------------------------------------------------------------------------

sizes = st.lists(st.integers(1, 700), min_size=1, max_size=12)


@settings(deadline=None, max_examples=40)
@given(st.lists(sizes, min_size=1, max_size=4), st.integers(1, 500), st.integers(1, 2))
def test_a_cut_is_exact_and_what_is_left_is_the_rest(files: list[list[int]], pairs: int, parts: int) -> None:
    groups = grouped(*files)
    total = sum(group.rows for group in groups)
    try:
        cut = held_out_rows(total, pairs, parts)
    except DataError:
        assert 2 * parts * (pairs + 99) > total - 100  # that is, nearly half of it or more
        return
    taken = [rows_of(list(segments(groups, ranges))) for ranges in cut]
    left = rows_of(list(segments(groups, rows_between([rows for ranges in cut for rows in ranges], total))))
    assert [len(rows) for rows in taken] == [pairs] * parts
    assert sorted(left + [row for rows in taken for row in rows]) == list(range(total))  # each once: disjoint, complete
    assert left == sorted(left)
    assert all(rows == sorted(rows) for rows in taken)


def test_a_cut_is_the_same_however_the_rows_are_grouped() -> None:
    cut = held_out_rows(10_000, 450, 2)
    grouping = [grouped([10_000]), grouped([1000] * 10), grouped([7] * 1000, [3000])]
    assert len({tuple(rows_of(list(segments(groups, cut[0])))) for groups in grouping}) == 1


def test_a_cut_comes_from_all_over() -> None:
    (rows,) = held_out_rows(1_000_000, 2000, 1)
    assert len(rows) == 20
    assert min(block.start for block in rows) < 250_000
    assert max(block.start for block in rows) > 750_000


def test_more_than_half_cannot_be_held_out() -> None:
    with pytest.raises(DataError, match=r"held_out_pairs: 2 x 300 .*at most 200 can"):
        held_out_rows(999, 300, 2)
    assert held_out_rows(999, 200, 2)


# --- samples ----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(0, 1000), st.data())
def test_every_beginning_of_a_sample_takes_from_all_files_in_proportion(
    counts: list[int], seed: int, data: st.DataObject
) -> None:
    pieces = whole(grouped(*[[10] * count for count in counts]))
    order = in_sampled_order(pieces, seed)
    assert sorted(order) == sorted(pieces)
    length = data.draw(st.integers(0, len(order)))
    taken = Counter(piece.group.file for piece in order[:length])
    for file, count in enumerate(counts):
        share = length * count / len(pieces)
        assert abs(taken[file] - share) < 2 + len(counts) / 2  # rounding, of this file and of the others


def test_every_row_group_of_a_file_is_as_likely_as_any_other() -> None:
    pieces = whole(grouped([10] * 6, [10] * 3))
    taken: Counter[tuple[int, int]] = Counter()
    seeds = 1000
    for seed in range(seeds):
        for piece in in_sampled_order(pieces, seed)[:3]:
            taken[piece.group.file, piece.group.number] += 1
    expected = 3 * seeds / 9
    statistic = sum((taken[piece.group.file, piece.group.number] - expected) ** 2 / expected for piece in pieces)
    assert statistic < 26.1  # chi-square with 8 degrees of freedom: one in a thousand; the seeds are fixed


def test_a_sample_follows_its_seed_and_grows_with_its_size() -> None:
    pieces = whole(grouped([10] * 50, [10] * 20))
    assert in_sampled_order(pieces, 1) == in_sampled_order(pieces, 1)
    assert in_sampled_order(pieces, 1) != in_sampled_order(pieces, 2)


def test_a_sample_fetches_little_more_than_it_gives() -> None:
    table = Numbers(grouped(*[[100] * 100] * 5))
    order = in_sampled_order(whole(list(table.groups())), 3)
    taken = list(islice(mixed(table, order, 3), 5000))
    rows = [record["row"] for record, _ in taken]
    assert len(set(rows)) == 5000
    assert len(table.fetched) <= 64  # 50 at least, 16 at a time
    assert len({row // 100 for row in rows[:200]}) == 16  # rows of 16 groups, mixed
    assert {file for _, file in taken[:1600]} == {0, 1, 2, 3, 4}


def test_mixing_and_reading_in_order_lose_nothing() -> None:
    groups = grouped([3, 40], [25_000, 7])
    pieces = [Segment(groups[0], range(1, 3)), Segment(groups[1], range(40)), Segment(groups[3], range(2))]
    expected = [(row, group.file) for group, rows in pieces for row in (group.first + place for place in rows)]
    ordered = [(record["row"], file) for record, file in in_order(Numbers(groups), pieces)]
    shuffled = [(record["row"], file) for record, file in mixed(Numbers(groups), pieces, 1)]
    assert ordered == expected
    assert sorted(shuffled) == sorted(expected) != shuffled


def test_files_read_from_their_beginnings_are_mixed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_streams, "BUFFER", 100)

    def opened(file: int, count: int) -> Any:
        return lambda: iter([{"row": row, "file": file} for row in range(count)])

    streams = [opened(0, 300), opened(1, 5), opened(2, 300)]
    everything = list(one_after_the_other(streams))
    assert [record["file"] for record, _ in everything] == [file for _, file in everything]
    drawn = list(in_shuffled_order(streams, 4))
    key = [(record["file"], record["row"]) for record, _ in drawn]
    assert sorted(key) == [(record["file"], record["row"]) for record, _ in everything]
    assert drawn == list(in_shuffled_order(streams, 4)) != list(in_shuffled_order(streams, 5))
    first = Counter(file for file, _ in key[:100])
    assert min(first[0], first[2]) > 30
    assert key[:5] != sorted(key[:5])


# --- tables -----------------------------------------------------------------------------------------------------------


def parquet_table(folder: Path, columns: list[str], sizes: list[int], **options: Any) -> tuple[ParquetTable, Any]:
    records = [{"en": f"{row} " * 20, "fr": f"f {row}", "other": "x" * 3000} for row in range(sum(sizes))]
    whole_table = pa.Table.from_pylist(records)
    files, first = [], 0
    for number, size in enumerate(sizes):
        files.append(str(folder / f"{number}.parquet"))
        pyarrow.parquet.write_table(whole_table.slice(first, size), files[-1], row_group_size=70, **options)
        first += size
    return ParquetTable(files, LocalBytes, columns), records


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "compression": "none"}, {"compression": "zstd"}])
@pytest.mark.parametrize("columns", [["en", "fr"], ["fr"], ["en", "other"], ["other", "fr", "en"]], ids=str)
def test_parquet_rows_by_group(tmp_path: Path, columns: list[str], options: dict[str, Any]) -> None:
    table, records = parquet_table(tmp_path, columns, [200, 1, 333], **options)
    groups = list(table.groups())
    assert [group.rows for group in groups] == [70, 70, 60, 1, 70, 70, 70, 70, 53]
    wanted = [{column: record[column] for column in columns} for record in records]
    for ahead in (True, False):
        shuffled = random.Random(1).sample(groups, len(groups))
        for group in shuffled:
            assert table.read(group, ahead) == wanted[group.first : group.first + group.rows]
    assert [record for record, _ in in_order(table, whole(groups))] == wanted


def test_a_missing_column_is_named_with_what_there_is(tmp_path: Path) -> None:
    table, _ = parquet_table(tmp_path, ["en", "cs"], [5])
    with pytest.raises(MissingColumnError, match="no column 'cs'; found en, fr, other") as caught:
        list(table.groups())
    assert (caught.value.column, caught.value.found) == ("cs", ["en", "fr", "other"])


def test_columns_that_nobody_asked_for_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with the images of a Multi30k that has them beside its text."""
    read = 0
    fetch = LocalBytes.fetch

    def counted(self: LocalBytes, start: int, end: int) -> bytes:
        nonlocal read
        read += end - start
        return fetch(self, start, end)

    monkeypatch.setattr(LocalBytes, "fetch", counted)
    table, _ = parquet_table(tmp_path, ["en", "fr"], [2000], use_dictionary=False, compression="none")
    assert len([record for record, _ in in_order(table, whole(list(table.groups())))]) == 2000
    assert len(table.files) == 1
    assert 50_000 < read < Path(table.files[0]).stat().st_size / 10


def test_what_is_read_in_order_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_tables, "_AHEAD", 1_000_000)
    table, records = parquet_table(tmp_path, ["en", "fr", "other"], [2000], use_dictionary=False, compression="none")
    fetched: list[int] = []
    fetch = LocalBytes.fetch

    def noted(self: LocalBytes, start: int, end: int) -> bytes:
        fetched.append(end - start)
        return fetch(self, start, end)

    groups = list(table.groups())
    monkeypatch.setattr(LocalBytes, "fetch", noted)
    assert [record for record, _ in in_order(table, whole(groups))] == records
    size = Path(table.files[0]).stat().st_size
    assert size > 6_000_000
    assert sum(fetched) < size * 1.3  # a group at the border of two stretches is fetched anew
    assert len(fetched) <= 9


@pytest.mark.parametrize("rows", [1, 999, 1000, 2345])
def test_cached_rows_by_group(rows: int) -> None:
    records = [{"translation": {"en": f"e{row}", "fr": f"f{row}"}} for row in range(rows)]
    table = CachedTable(datasets.Dataset.from_list(records), "cache")
    groups = list(table.groups())
    assert [record for record, _ in in_order(table, whole(groups))] == records
    assert rows_of(whole(groups)) == list(range(rows))
