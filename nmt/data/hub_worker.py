"""The process that reads from the Hub for ``hub``. It speaks lines of JSON.

In, first the data configuration, then a request a line: ``{"split": "train" | "validation" | "test"}``. Out, once,
``{"ready": true}``; for each request ``{"pairs": [[source, target, file], ...], "files": [name, ...]}`` any number of
times, ``file`` being a place in ``files``, then ``{"end": COUNT}``; at any time ``{"log": TEXT, "waits": SECONDS}``
and ``{"origin": {...}}``, facts for the report; ``{"error": TEXT}`` when it gives up. It ends with its input; whoever
has enough of a split ends it.
"""

import itertools
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, TypeVar

from nmt.config import HubData, parse
from nmt.data.corpus import DataError, record_text
from nmt.data.hub_http import GaveUpError, file_system, one_line, patiently
from nmt.data.hub_revision import UnreachableError, find_revision, within
from nmt.data.hub_sets import ROLES, config_names, is_sampled, missing_language
from nmt.data.hub_streams import in_shuffled_order, one_after_the_other
from nmt.data.hub_tables import (
    CachedTable,
    LocalBytes,
    MissingColumnError,
    ParquetTable,
    Record,
    RemoteBytes,
    Segment,
    Table,
    held_out_rows,
    in_order,
    in_sampled_order,
    mixed,
    rows_between,
    segments,
)

Result = TypeVar("Result")
Send = Callable[[dict[str, Any]], None]

_CHUNK = 256  # pairs sent at a time


class Source:
    """One data set, found once: all splits come from the same revision."""

    def __init__(self, config: HubData, send: Send) -> None:
        self._config = config
        self._send = send
        self._offline: bool | None = None  # whether only the local cache of `datasets` is left; None: not tried yet
        self._revision: str | None = None
        self._builder: Any = None
        self.files: list[str] = []  # of the split being read

    def pairs(self, role: str) -> Iterator[tuple[str, str, int]]:
        """Pairs of a split and the place of their file in :attr:`files`; a sample, if one is asked for, in its order.

        Raises:
            DataError: what stands in the way, and what there is instead.
        """
        if self._offline is None:
            self._connect()
        named = getattr(self._config.splits, role)
        split = named or self._config.splits.train
        where = f"{self._config.dataset}: {role if named is None else split}"
        records = self._records(split, role, where)
        count = 0
        try:
            for record, file in records:
                source, target = self._pair(record, f"{where}: record {count + 1}")
                yield source, target, file
                count += 1
        except DataError:
            raise
        except MissingColumnError as error:
            raise self._missing(error, where) from None
        except Exception as error:
            said = str(error) if isinstance(error, GaveUpError) else f"{type(error).__name__}: {one_line(error)}"
            raise DataError(
                f"{where}: the stream broke off after {count:,} pairs ({said}); nothing of it was kept: run the same "
                "command again, or use a local copy (data.folder=PATH)"
            ) from None
        expected = self._published_count(split)
        if expected is not None and not self._is_cut(role) and count < expected:
            raise DataError(
                f"{where}: the stream ended after {count:,} of {expected:,} pairs; run the same command again"
            )

    # --- finding the data set -----------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Ask the Hub for the newest revision, or find that only the cache is left."""
        config = self._config
        self._offline = False
        if Path(config.dataset).is_dir():
            return
        try:
            self._revision = patiently(
                config.dataset, lambda: within(config.timeout, lambda: find_revision(config)), self._tell
            )
            self._send({"origin": {"revision": self._revision}})
        except (UnreachableError, GaveUpError) as error:
            if config.revision is not None:
                raise self._unreachable(f"{error}; the cache of `datasets` does not tell revisions apart") from None
            self._tell(f"the Hugging Face Hub cannot be reached ({error}): trying the cache of `datasets`")
            self._offline = True
            import datasets.config

            datasets.config.HF_HUB_OFFLINE = True  # or it would ask again, for minutes

    def _tell(self, line: str, waits: float = 0.0) -> None:
        self._send({"log": line, "waits": waits})

    def _by_name(self, load: Callable[[str | None], Result]) -> Result:
        """What ``load`` gives for the configuration's name or, where there is none such, for its other name."""
        refused: ValueError | None = None
        for name in config_names(self._config):
            try:
                return load(name)
            except ValueError as error:  # "BuilderConfig 'x' not found", "Couldn't find cache for x"
                refused = refused or error
        assert refused is not None
        raise refused

    def _open(self) -> Any:
        """The builder of the data set: it knows its splits and their files."""
        import datasets
        import fsspec

        config = self._config
        if self._builder is None:
            fsspec.register_implementation("hf", file_system(config.timeout, self._tell), clobber=True)
            try:
                self._builder = patiently(
                    config.dataset,
                    lambda: self._by_name(
                        lambda name: datasets.load_dataset_builder(config.dataset, name, revision=self._revision)
                    ),
                    self._tell,
                )
            except Exception as error:
                raise self._explain(error) from None
        return self._builder

    def _explain(self, error: Exception) -> DataError:
        """Why the data set could not be opened, in terms of our keys; names what there is instead."""
        dataset = self._config.dataset
        if self._offline or isinstance(error, (ConnectionError, GaveUpError)):
            return self._unreachable(one_line(error))
        if isinstance(error, ValueError):  # "BuilderConfig 'x' not found. Available: [...]"
            key = "data.splits" if "split" in str(error).lower() else "data.pair"
            return DataError(f"{dataset}: {key}: {one_line(error)}")
        return DataError(f"{dataset}: cannot be read: {type(error).__name__}: {one_line(error)}")

    def _unreachable(self, why: str) -> DataError:
        return DataError(
            f"the Hugging Face Hub cannot be reached for {self._config.dataset} ({why}). Without a network: data=demo "
            "(embedded), data=files (your own text), data.folder=PATH (a local copy of this data set), what was "
            "prepared before in data.cache, or what `datasets` has in its own cache"
        )

    def _published_count(self, split: str) -> int | None:
        """How many pairs the publisher says the split has, if it says so."""
        splits = getattr(getattr(self._builder, "info", None), "splits", None) or {}
        return getattr(splits.get(split), "num_examples", None) or None

    # --- reading a split ----------------------------------------------------------------------------------------------

    def _records(self, split: str, role: str, where: str) -> Iterator[tuple[Record, int]]:
        """Records of a split with their files: in order, or as the sample wants them."""
        if self._offline:
            return self._of_table(self._cached(split), split, role, where)
        files = self._data_files(split)
        self.files = _short_names(files, self._config.dataset, self._revision)
        if all(file.endswith(".parquet") for file in files):
            config = self._config
            columns = [config.column] if config.column is not None else [config.source, config.target]
            return self._of_table(ParquetTable(files, self._bytes, columns), split, role, where)
        if self._is_cut(role):
            raise DataError(f"{where}: data.held_out_pairs needs rows that can be counted beforehand: Parquet files")
        streams = [self._stream(split, files, file) for file in range(len(files))]
        if role == "train" and is_sampled(self._config):
            assert self._config.sample_seed is not None
            return in_shuffled_order(streams, self._config.sample_seed)
        return one_after_the_other(streams)

    def _is_cut(self, role: str) -> bool:
        """Whether a split gets only some rows of the training split: what is held out, or what is left."""
        config = self._config
        return config.held_out_pairs is not None and (role == "train" or getattr(config.splits, role) is None)

    def _data_files(self, split: str) -> list[str]:
        found = self._open().config.data_files
        if split not in found:
            raise DataError(f"{self._config.dataset}: data.splits: no split {split!r}; found {', '.join(found)}")
        return [str(file) for file in found[split]]

    def _bytes(self, path: str) -> LocalBytes | RemoteBytes:
        if not path.startswith("hf://"):
            return LocalBytes(path)
        import datasets.config
        import fsspec

        return RemoteBytes(fsspec.filesystem("hf", endpoint=datasets.config.HF_ENDPOINT), path)

    def _stream(self, split: str, files: list[str], file: int) -> Callable[[], Iterator[Record]]:
        """What opens one file of a split that is not in Parquet."""

        def read() -> Iterator[Record]:
            stream = self._open().as_streaming_dataset(split=split)
            return iter(stream if len(files) == 1 else stream.shard(len(files), file))

        return read

    def _cached(self, split: str) -> CachedTable:
        import datasets

        try:
            dataset = self._by_name(lambda name: datasets.load_dataset(self._config.dataset, name, split=split))
        except Exception as error:
            raise self._explain(error) from None
        self.files = ["the cache of `datasets`"]
        return CachedTable(dataset, self.files[0])

    def _of_table(self, table: Table, split: str, role: str, where: str) -> Iterator[tuple[Record, int]]:
        config = self._config
        sampled = role == "train" and is_sampled(config)
        if not sampled and not self._is_cut(role):
            yield from in_order(table, (Segment(group, range(group.rows)) for group in table.groups()))
            return
        groups = list(table.groups())
        total = sum(group.rows for group in groups)
        if (expected := self._published_count(split)) is not None and total < expected:
            raise DataError(f"{where}: its files hold {total:,} of {expected:,} pairs")
        held_out: dict[str, list[range]] = {}
        if self._is_cut(role):
            assert config.held_out_pairs is not None
            cut = [name for name in ROLES[1:] if getattr(config.splits, name) is None]
            held_out = dict(zip(cut, held_out_rows(total, config.held_out_pairs, len(cut)), strict=True))
        if role != "train":
            wanted = held_out.get(role, [range(total)])
        else:
            wanted = rows_between(itertools.chain.from_iterable(held_out.values()), total)
        pieces = list(segments(groups, wanted))
        if not sampled:
            yield from in_order(table, pieces)
            return
        assert config.sample_seed is not None
        self._tell(
            f"{where}: {len(self.files)} files with {len(groups):,} row groups of up to "
            f"{max(group.rows for group in groups):,} neighbouring pairs, taken in an order drawn with "
            f"data.sample_seed={config.sample_seed}"
        )
        yield from mixed(table, in_sampled_order(pieces, config.sample_seed), config.sample_seed)

    def _pair(self, record: Record, where: str) -> tuple[str, str]:
        config = self._config
        if config.column is not None:
            if not isinstance(record.get(config.column), dict):
                raise self._missing(MissingColumnError(config.column, list(record)), where)
            record = record[config.column]
        for language in (config.source, config.target):
            if language not in record:
                raise self._missing(MissingColumnError(language, list(record)), where)
        source, target = (record_text(record[side], f"{where}: {side!r}") for side in (config.source, config.target))
        return source, target

    def _missing(self, error: MissingColumnError, where: str) -> DataError:
        found = f"found {', '.join(error.found) or 'none'}"
        if error.column == self._config.column:
            return DataError(f"{where}: data.column: no column {error.column!r} of texts by language; {found}")
        return DataError(f"{where}: {missing_language(self._config, error.column)}; {found}")


def _short_names(files: list[str], dataset: str, revision: str | None) -> list[str]:
    prefixes = (f"hf://datasets/{dataset}@{revision}/", f"{dataset}/")
    for prefix in prefixes:
        files = [file.removeprefix(prefix) for file in files]
    return files


def serve(requests: TextIO, send: Send) -> None:
    """Answer requests until there are no more, or until one cannot be met."""
    config = parse(HubData, json.loads(requests.readline()), "data")
    import datasets  # noqa: F401 (slow: done before we say that we are ready)

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # what fails in passing is told by us
    send({"ready": True})
    source = Source(config, send)
    for line in requests:
        count = 0
        pairs = source.pairs(json.loads(line)["split"])
        try:
            while chunk := list(itertools.islice(pairs, _CHUNK)):
                count += len(chunk)
                send({"pairs": chunk, "files": source.files})
        except DataError as error:
            send({"error": str(error)})
            return
        send({"end": count})


def main() -> None:
    """Serve the process that started us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for our parent, who then ends us
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    status = 0
    try:
        serve(sys.stdin, send)
    except BrokenPipeError:
        pass  # our parent is gone
    except Exception:
        traceback.print_exc()
        status = 1
    os._exit(status)  # threads of pyarrow and of a look-up that hangs would hold up, or crash, an orderly end


if __name__ == "__main__":
    main()
