"""Prepared data: made once from a configuration, cached under a fingerprint of all that went into it, memory-mapped.

:func:`prepare` is the one way from a data configuration to ids; ``nmt.prepare`` and ``nmt.train`` both call it.
"""

import errno
import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import nmt
from nmt.config import ConfigError, DataConfig, DemoData, FilesData, HubData, to_tree
from nmt.data.corpus import Corpus, DataError, Part, TextPair, pharaoh
from nmt.data.filters import check_filters
from nmt.data.preparation import build
from nmt.data.report import table
from nmt.data.staging import claim, publish
from nmt.data.store import PairDataset, RowRange
from nmt.data.tokenizer import TokenizerPair, check_tokenizer_config

__all__ = ["PairDataset", "PreparedData", "fingerprint", "open_prepared", "prepare"]

FORMAT = 2
"""Version of the prepared form; a change makes every cached folder stale."""

REPORT = "preparation.json"

_IRRELEVANT = {"name", "cache", "timeout"}  # keys that do not change what is prepared


@dataclass(frozen=True)
class PreparedData:
    """A prepared folder."""

    folder: Path
    fingerprint: str
    tokenizers: TokenizerPair
    train: PairDataset
    validation: PairDataset
    test: PairDataset | None
    parts: list[RowRange]
    """Which rows of training come from which part of its text, and how often they are to occur in an epoch."""
    report: dict[str, Any]
    """Counts read, kept and dropped by reason, overlap of held-out splits with training, hashes, versions."""

    @property
    def contents(self) -> dict[str, dict[str, str]]:
        """Hashes of the text of training and validation, by split and side: the same wherever the files lie."""
        splits = self.report["splits"]
        return {name: dict(splits[name]["sha256"]) for name in ("train", "validation")}


def prepare(config: DataConfig, log: Callable[[str], None], tokenizers: TokenizerPair | None = None) -> PreparedData:
    """Prepare the data, or open what an earlier call prepared.

    The folder appears whole or not at all; a second process that wants the same waits for the first.

    Args:
        config: what to prepare; ``config.cache`` is where.
        log: takes lines of progress and the final table.
        tokenizers: encode with these; None trains subwords on the training text as ``config.tokenizer`` says.

    Raises:
        ConfigError: a value out of range.
        DataError: text that cannot be read or used, a Hub that cannot be reached, an impossible vocabulary.
        OSError: the disk is full or not writable.
    """
    check_config(config)
    corpus = _open_corpus(config, log)
    key = fingerprint(config, corpus, tokenizers)
    target = Path(config.cache).expanduser() / f"{config.name}-{key[:16]}"
    if (found := _open_cached(target, log)) is not None:
        return _weighted(found, corpus)
    with claim(target, log) as building:
        if (found := _open_cached(target, log)) is not None:  # made by the process we waited for
            return _weighted(found, corpus)
        shutil.rmtree(target, ignore_errors=True)
        try:
            report = {"format": FORMAT, "fingerprint": key, "name": config.name} | build(
                config, corpus, building, log, tokenizers
            )
            _seal(building, report)
            publish(building, target)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            message = f"cannot write the prepared data in {config.cache} ({error.strerror}); nothing of it was kept"
            raise OSError(error.errno, message) from error
        finally:
            corpus.close()
    prepared = open_prepared(target)
    for line in table(prepared.report):
        log(line)
    log(f"prepared data: {target}")
    return prepared


def open_prepared(folder: Path) -> PreparedData:
    """Open a prepared folder.

    Raises:
        DataError: it is damaged: a file is missing or has another size than when it was written; or of another form.
    """
    try:
        report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        for name, size in report["sizes"].items():
            if (folder / name).stat().st_size != size:
                raise DataError(f"{folder / name}: has {(folder / name).stat().st_size:,} bytes, expected {size:,}")
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"prepared data is damaged: {error}; remove {folder} and prepare again") from None
    if (found := report.get("format")) != FORMAT:
        raise DataError(
            f"{folder}: prepared by another version of nmt (form {found}, this one has {FORMAT}): prepare again"
        )
    tokenizers = TokenizerPair.load(folder)
    if tokenizers.digest != report["vocabulary"]["sha256"]:
        raise DataError(f"{folder}: its tokenizer is not the one the data was encoded with; remove it, prepare again")
    sizes = (tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size)
    splits = {name: PairDataset(folder, name, sizes) for name in report["splits"]}
    return PreparedData(
        folder,
        report["fingerprint"],
        tokenizers,
        splits["train"],
        splits["validation"],
        splits.get("test"),
        [RowRange(part["name"], part["weight"], *part["rows"]) for part in report["parts"]],
        report,
    )


def _weighted(prepared: PreparedData, corpus: Corpus) -> PreparedData:
    """With the weights that are asked for now: the same rows serve mixtures with other weights, and from elsewhere."""
    parts = [
        part._replace(name=asked.name, weight=asked.weight)
        for part, asked in zip(prepared.parts, corpus.splits["train"], strict=True)
    ]
    return replace(prepared, parts=parts)


def _open_cached(target: Path, log: Callable[[str], None]) -> PreparedData | None:
    if not target.exists():
        return None
    try:
        prepared = open_prepared(target)
    except DataError as error:
        log(f"{error}: preparing again")
        return None
    log(f"prepared data: {target} (cached)")
    return prepared


def _seal(folder: Path, report: dict[str, Any]) -> None:
    """Write the report, last: with the versions and the size of every file."""
    import sentencepiece

    report["versions"] = {"nmt": nmt.__version__, "sentencepiece": sentencepiece.__version__}
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    report["sizes"] = {str(path.relative_to(folder)): path.stat().st_size for path in files}
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    (folder / REPORT).write_text(text, encoding="utf-8", errors="backslashreplace")  # a file's name may be any bytes


# --- what goes in -----------------------------------------------------------------------------------------------------


def check_config(config: DataConfig) -> None:
    """Refuse what cannot work before anything is read.

    Raises:
        ConfigError: naming the key.
    """
    if config.source == config.target:
        raise ConfigError(f"data.target: is {config.target!r} like data.source; two languages are wanted")
    if not config.name or "/" in config.name or config.name.startswith("."):
        raise ConfigError(f"data.name: names a folder, so it cannot be {config.name!r}")
    if config.max_length < 2:
        raise ConfigError(f"data.max_length: counts subwords with EOS, so 2 is the least; found {config.max_length}")
    if isinstance(config, DemoData):
        _check_demo(config)
    else:
        _check_text(config)
    if isinstance(config, HubData) and not 0 < config.timeout < math.inf:
        raise ConfigError(f"data.timeout: expected a number of seconds above 0, found {config.timeout}")
    check_tokenizer_config(config.tokenizer)


def _check_text(config: FilesData | HubData) -> None:
    if config.max_pairs is not None and config.max_pairs < 1:
        raise ConfigError(f"data.max_pairs: expected 1 or more, or null, found {config.max_pairs}")
    if config.sample_seed is not None and config.sample_seed < 0:
        raise ConfigError(f"data.sample_seed: expected 0 or more, or null, found {config.sample_seed}")
    if isinstance(config, FilesData) and config.sample_seed is not None and config.max_pairs is None:
        raise ConfigError("data.sample_seed: draws data.max_pairs of the training pairs, but that is null; give both")
    check_filters(config.filters, config.source, config.target)


def _check_demo(config: DemoData) -> None:
    for key, value, written in (("source", config.source, "en"), ("target", config.target, "de")):
        if value != written:
            raise ConfigError(
                f"data.{key}: the demo's grammar is English to German, so it must be {written}, not {value}"
            )
    for key in ("train_pairs", "validation_pairs", "test_pairs"):
        if getattr(config, key) < 1:
            raise ConfigError(f"data.{key}: expected 1 or more, found {getattr(config, key)}")


def _open_corpus(config: DataConfig, log: Callable[[str], None]) -> Corpus:
    """Find the text; nothing is read yet but the names and sizes of files."""
    if isinstance(config, DemoData):
        return _open_demo(config)
    if isinstance(config, FilesData):
        from nmt.data.files import open_files

        return open_files(config)
    from nmt.data.official import checked

    if config.folder is not None:
        from nmt.data.files import open_folder

        return checked(open_folder(config), config, log)
    from nmt.data.hub import open_hub

    return checked(open_hub(config, log), config, log)


def _open_demo(config: DemoData) -> Corpus:
    from nmt.data.demo import DemoPair, generate

    made: dict[str, list[DemoPair]] = {}

    def read(split: str) -> Iterator[TextPair]:
        if not made:
            made.update(
                generate(
                    seed=config.seed,
                    train_pairs=config.train_pairs,
                    validation_pairs=config.validation_pairs,
                    test_pairs=config.test_pairs,
                    word_order=config.word_order,
                    min_words=config.min_words,
                    max_words=config.max_words,
                    mean_words=config.mean_words,
                )
            )
        return (TextPair(pair.source, pair.target, pharaoh(pair.alignment)) for pair in made[split])

    splits = {split: (Part(split, partial(read, split)),) for split in ("train", "validation", "test")}
    return Corpus(splits, {"grammar": _grammar_hash()})


def _grammar_hash() -> str:
    """Hash of the demo's source code: what it generates follows from that and the configuration."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("demo*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def fingerprint(config: DataConfig, corpus: Corpus, tokenizers: TokenizerPair | None = None) -> str:
    """SHA-256 (hex) of all that decides what is prepared: keys, format, and the identity of what is read.

    Files go by name, size and time of change, not by folder; the Hub by data set, configuration and revision; given
    tokenizers by the hash of their models.
    """
    tree = {key: value for key, value in to_tree(config).items() if key not in _IRRELEVANT}
    if isinstance(config, FilesData):
        tree = {key: value for key, value in tree.items() if key not in ("train", "corpora", "validation", "test")}
    elif isinstance(config, HubData):
        local = ("dataset", "pair", "revision", "column", "splits", "held_out_pairs", "folder", "folder_splits")
        remote = ("folder", "folder_splits")
        tree = {key: value for key, value in tree.items() if key not in (remote if config.folder is None else local)}
    tree["tokenizer"] = dict(tree["tokenizer"] if tokenizers is None else {"sha256": tokenizers.digest})
    # Whether the text of training is kept; how it is cut anew is the loader's.
    tree["tokenizer"]["subword_regularization"] = config.tokenizer.subword_regularization is not None
    what = {"format": FORMAT, "config": tree, "origin": _identity(corpus)}
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _identity(corpus: Corpus) -> dict[str, Any]:
    files: dict[str, list[str]] = corpus.origin.get("files", {})
    identity: dict[str, Any] = {key: value for key, value in corpus.origin.items() if key != "files"}
    for split, paths in files.items():
        stats = [(Path(path).name, Path(path).stat()) for path in paths]
        identity[split] = [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]
    return identity
