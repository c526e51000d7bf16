"""The process that reads from the Hub for ``hub``. It speaks lines of JSON.

In, first the data configuration, then a request a line: ``{"split": NAME, "limit": N or null}``. Out, once,
``{"ready": true}``; for each request ``{"pairs": [[source, target], ...]}`` any number of times, then
``{"end": COUNT}``; at any time ``{"log": TEXT}`` and ``{"origin": {...}}``, facts for the report; ``{"error": TEXT}``
when it gives up. It ends with its input.
"""

import itertools
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO, TypeVar

from nmt.config import HubData, parse
from nmt.data.corpus import DataError, record_text

Result = TypeVar("Result")
Send = Callable[[dict[str, Any]], None]

_CHUNK = 256  # pairs sent at a time


class UnreachableError(Exception):
    """The Hub did not answer."""


class Source:
    """One data set, found once: all splits come from the same revision."""

    def __init__(self, config: HubData, send: Send) -> None:
        self._config = config
        self._send = send
        self._offline: bool | None = None  # whether only the local cache of `datasets` is left; None: not tried yet
        self._revision: str | None = None

    def pairs(self, split: str, limit: int | None) -> Iterator[tuple[str, str]]:
        """Pairs of a split, the first ``limit`` of them; no record beyond them is asked for.

        Raises:
            DataError: what stands in the way, and what there is instead.
        """
        if self._offline is None:
            self._connect()
        stream = self._load(split)
        where = f"{self._config.dataset}: {split}"
        count = 0
        try:
            for record in itertools.islice(stream, limit):
                yield self._pair(record, f"{where}: record {count + 1}")
                count += 1
        except DataError:
            raise
        except Exception as error:
            raise DataError(
                f"{where}: the stream broke off after {count:,} pairs ({type(error).__name__}: {_one_line(error)}); "
                "nothing of it was kept: run the same command again, or use a local copy (data.folder=PATH)"
            ) from None
        expected = _published_count(stream, split)
        if expected is not None and count < min(expected, limit or expected):
            raise DataError(
                f"{where}: the stream ended after {count:,} of {expected:,} pairs; run the same command again"
            )

    def _connect(self) -> None:
        """Ask the Hub for the newest revision, or find that only the cache is left."""
        config = self._config
        self._offline = False
        if Path(config.dataset).is_dir():
            return
        try:
            self._revision = within(config.timeout, lambda: _find_revision(config))
            self._send({"origin": {"revision": self._revision}})
        except UnreachableError as error:
            if config.revision is not None:
                raise self._unreachable(f"{error}; the cache of `datasets` does not tell revisions apart") from None
            self._send({"log": f"the Hugging Face Hub cannot be reached ({error}): trying the cache of `datasets`"})
            self._offline = True
            import datasets.config

            datasets.config.HF_HUB_OFFLINE = True  # or it would ask again, for minutes

    def _load(self, split: str) -> Any:
        """The stream of a split, not begun."""
        import datasets
        from pyarrow.dataset import ParquetFragmentScanOptions  # type: ignore[import-untyped]

        def load(**options: Any) -> Any:
            config, revision = self._config, self._revision
            return datasets.load_dataset(
                config.dataset, config.pair, split=split, streaming=True, revision=revision, **options
            )

        try:
            if self._offline:  # the cache goes by options: only without any is the whole data set found
                return load()
            try:
                # Without this, reading one row of a Parquet file fetches the whole file.
                return load(fragment_scan_options=ParquetFragmentScanOptions(pre_buffer=False))
            except Exception as error:
                if "fragment_scan_options" not in str(error):
                    raise
                return load()  # files of another kind have no such option, and older versions neither
        except Exception as error:
            raise self._explain(error) from None

    def _explain(self, error: Exception) -> DataError:
        """Why a split could not be opened, in terms of our keys; names what there is instead."""
        dataset = self._config.dataset
        if self._offline or isinstance(error, ConnectionError):
            return self._unreachable(_one_line(error))
        if isinstance(
            error, ValueError
        ):  # "BuilderConfig 'x' not found. Available: [...]", "Bad split: x. Available ..."
            key = "data.splits" if "split" in str(error).lower() else "data.pair"
            return DataError(f"{dataset}: {key}: {_one_line(error)}")
        return DataError(f"{dataset}: cannot be read: {type(error).__name__}: {_one_line(error)}")

    def _unreachable(self, why: str) -> DataError:
        return DataError(
            f"the Hugging Face Hub cannot be reached for {self._config.dataset} ({why}). Without a network: data=demo "
            "(embedded), data=files (your own text), data.folder=PATH (a local copy of this data set), what was "
            "prepared before in data.cache, or what `datasets` has in its own cache"
        )

    def _pair(self, record: dict[str, Any], where: str) -> tuple[str, str]:
        config = self._config
        if config.column is not None:
            if not isinstance(record.get(config.column), dict):
                raise DataError(
                    f"{where}: data.column: no column {config.column!r} of texts by language; {_keys(record)}"
                )
            record = record[config.column]
        for key, language in (("source", config.source), ("target", config.target)):
            if language not in record:
                raise DataError(f"{where}: data.{key}: no {language!r} here; {_keys(record)}")
        source, target = (record_text(record[side], f"{where}: {side!r}") for side in (config.source, config.target))
        return source, target


def _find_revision(config: HubData) -> str:
    """Commit of the data set, which all splits are then read from.

    Raises:
        DataError: the Hub answers that there is no such data set or revision, or not for us.
        UnreachableError: it does not answer.
    """
    import huggingface_hub
    from huggingface_hub import errors

    try:
        info = huggingface_hub.HfApi().dataset_info(config.dataset, revision=config.revision, timeout=config.timeout)
    except errors.GatedRepoError:
        raise DataError(
            f"data.dataset: {config.dataset} asks for consent: see its page on the Hub, then log in"
        ) from None
    except errors.RevisionNotFoundError:
        raise DataError(f"data.revision: {config.dataset} has no revision {config.revision!r}") from None
    except errors.RepositoryNotFoundError:
        raise DataError(f"data.dataset: no data set {config.dataset!r} on the Hub (and no such folder)") from None
    except errors.HFValidationError as error:
        raise DataError(f"data.dataset: {_one_line(error)}") from None
    except Exception as error:  # refused, no route, no name, offline mode, a proxy's page in place of an answer
        raise UnreachableError(f"{type(error).__name__}: {_one_line(error)}") from None
    return str(info.sha)


def _published_count(stream: Any, split: str) -> int | None:
    """How many pairs the publisher says the split has, if it says so."""
    splits = getattr(getattr(stream, "info", None), "splits", None) or {}
    return getattr(splits.get(split), "num_examples", None) or None


def _keys(record: dict[str, Any]) -> str:
    return f"found {', '.join(map(str, record)) or 'none'}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:400] or type(error).__name__


def within(seconds: float, work: Callable[[], Result]) -> Result:
    """Result of ``work``, done in a thread; what it raises is raised here.

    Raises:
        UnreachableError: no result within ``seconds``. The thread is left to itself: a name look-up cannot be stopped.
    """
    answer: queue.SimpleQueue[tuple[list[Result], BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answer.put(([work()], None))
        except BaseException as error:
            answer.put(([], error))

    threading.Thread(target=run, daemon=True).start()
    try:
        result, error = answer.get(timeout=seconds)
    except queue.Empty:
        raise UnreachableError(f"no answer in {seconds:g} s") from None
    if error is not None:
        raise error
    return result[0]


def serve(requests: TextIO, send: Send) -> None:
    """Answer requests until there are no more, or until one cannot be met."""
    config = parse(HubData, json.loads(requests.readline()), "data")
    import datasets  # noqa: F401 (slow: done before we say that we are ready)

    send({"ready": True})
    source = Source(config, send)
    for line in requests:
        request = json.loads(line)
        count = 0
        pairs = source.pairs(request["split"], request["limit"])
        try:
            while chunk := list(itertools.islice(pairs, _CHUNK)):
                count += len(chunk)
                send({"pairs": chunk})
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
