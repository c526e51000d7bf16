"""From folders to systems: which runs are one recipe, what each system is called, and whether they may stand side by
side at all.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from nmt.analysis.comparison.tree import Run
from nmt.analysis.evaluated_runs import Evaluated
from nmt.analysis.report import text_name
from nmt.checkpoint import Checkpoint, CheckpointError, load, load_config, resolve
from nmt.config import TrainConfig, to_tree
from nmt.data.dataset import PreparedData, prepare
from nmt.data.tokenizer import TokenizerPair
from nmt.evaluation.slices import count_words
from nmt.training.summary import SUMMARY_FILE

_BOOKKEEPING = (
    "seed",
    "tag",
    "runs",
    "search",
    "data.cache",
    "data.timeout",
    "training.keep_last",
    "training.log_every",
    "training.timeout",
    "training.max_bad_steps",
)
"""Keys that do not make another recipe: where things lie, what is shown."""


@dataclass(frozen=True)
class LoadedRun:
    """A run on disk, with its evaluations."""

    name: str
    path: Path  # of the run, or of one of its checkpoints
    config: TrainConfig
    summary: Mapping[str, Any]  # empty while the run is not finished
    evaluations: dict[str, Evaluated] = field(default_factory=dict)  # by text
    beams: dict[str, dict[int, Evaluated]] = field(default_factory=dict)  # by text, by size of the beam

    @classmethod
    def read(cls, name: str, path: Path) -> "LoadedRun":
        """Everything but evaluations.

        Raises:
            CheckpointError: there is no checkpoint, or it is damaged.
            ValueError: the summary is damaged.
        """
        summary = path / SUMMARY_FILE
        facts: dict[str, Any] = {}
        if summary.is_file():
            try:
                facts = json.loads(summary.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ValueError(f"{summary}: damaged ({error}); train on, which writes it again") from error
        return cls(name, path, load_config(resolve(path)), facts)

    @property
    def is_checkpoint(self) -> bool:
        """Whether one checkpoint is meant and not the run's best."""
        return self.path.parent.name == "checkpoints"

    @property
    def folder(self) -> Path:
        """Of the run, whose log tells how it was trained."""
        return self.path.parent.parent if self.is_checkpoint else self.path

    @property
    def plain(self) -> Run:
        """What a report says about it."""
        return Run(self.name, self.config.seed, str(self.path))

    def load(self) -> Checkpoint:
        """The model, on the CPU."""
        return load(self.path)


@dataclass(frozen=True)
class LoadedSystem:
    """Runs of one recipe, in the order of their seeds."""

    name: str
    runs: list[LoadedRun]

    @property
    def model(self) -> str:
        """Its architecture."""
        return self.runs[0].config.model.name

    @property
    def first(self) -> LoadedRun:
        """The run of the first seed, which stands for the system where one is looked at."""
        return self.runs[0]

    @property
    def seeds(self) -> list[int]:
        """In their order."""
        return [run.config.seed for run in self.runs]


# --- systems ----------------------------------------------------------------------------------------------------------


def systems_of(runs: Sequence[LoadedRun]) -> list[LoadedSystem]:
    """Runs that differ in nothing but their seed are one system; a checkpoint of its own, and a second run of the same
    recipe and seed, are systems by themselves. In the order of the first run of each.
    """
    groups: list[tuple[str, list[LoadedRun]]] = []
    for run in runs:
        recipe = _recipe(run)
        for other, group in groups:
            if other == recipe and run.config.seed not in [each.config.seed for each in group]:
                group.append(run)
                break
        else:
            groups.append((recipe, [run]))
    members = [sorted(group, key=lambda run: run.config.seed) for _, group in groups]
    return [LoadedSystem(name, group) for name, group in zip(_names(members), members, strict=True)]


def _recipe(run: LoadedRun) -> str:
    if run.is_checkpoint:
        return str(run.path)
    tree = to_tree(run.config)
    for key in _BOOKKEEPING:
        *groups, last = key.split(".")
        place = tree
        for group in groups:
            place = place[group]
        place.pop(last, None)
    return json.dumps(tree, sort_keys=True)


def _names(groups: Sequence[Sequence[LoadedRun]]) -> list[str]:
    """The shortest kind of name that tells all apart: the architecture, the tag, the name of the (first) run."""
    kinds: tuple[Callable[[LoadedRun], str], ...] = (
        lambda run: run.config.model.name,
        lambda run: run.config.tag,
        lambda run: run.name,
    )
    for kind in kinds:
        names = [kind(group[0]) for group in groups]
        if len(set(names)) == len(names):
            return names
    return [str(group[0].path) for group in groups]


def run_names(paths: Sequence[str], log: Callable[[str], None]) -> dict[Path, str]:
    """What to call each run: its folder's name, or the whole path where two share a name. Others are skipped.

    Raises:
        ValueError: none of the paths is a run.
    """
    found = []
    for path in dict.fromkeys(map(Path, paths)):
        try:
            resolve(path)
            found.append(path)
        except CheckpointError as error:
            log(f"skipped: {error}")
    if not found:
        raise ValueError("none of these is a run with a checkpoint: " + ", ".join(paths))
    names = Counter(map(_short, found))
    return {path: _short(path) if names[_short(path)] == 1 else str(path) for path in found}


def _short(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.name}" if path.parent.name == "checkpoints" else path.resolve().name


# --- what forbids a comparison ----------------------------------------------------------------------------------------


def check_comparable(runs: Sequence[LoadedRun], text: str) -> None:
    """Refuse runs whose scores on a text do not mean the same.

    Raises:
        ValueError: they were scored on other lines, with another search or by another version of a metric; naming the
            runs, what differs, and the ways out.
    """
    metrics = {run.name: run.evaluations[text].metrics for run in runs}
    _same(
        "they were scored on different text",
        {
            name: f"{text_name(found)}, {found['sentences']:,} sentences, SHA-256 {found['data']['text_sha256'][:8]}"
            for name, found in metrics.items()
        },
        "score all on one text: --source FILE --reference FILE",
    )
    _same(
        "they were searched differently",
        {name: _search(found["search"]) for name, found in metrics.items()},
        "give the options of the search on the command line, for all",
    )
    for key in ("bleu", "chrf"):
        _same(
            f"{metrics[runs[0].name][key]['name']} was not counted in the same way",
            {name: found[key]["signature"] for name, found in metrics.items()},
            "evaluate again: remove the evaluation folder of those that are older",
        )


def _same(what: str, values: Mapping[str, str], way_out: str) -> None:
    if len(set(values.values())) > 1:
        each = "; ".join(f"{name}: {value}" for name, value in values.items())
        raise ValueError(f"these runs cannot be compared: {what}: {each}. Way out: {way_out}")


def _search(search: Mapping[str, Any]) -> str:
    """Every option that can change a translation."""
    return ", ".join(f"{key} {value}" for key, value in search.items() if key != "batch_tokens")


# --- training text ----------------------------------------------------------------------------------------------------


class TrainingText(NamedTuple):
    """What a run was trained on."""

    identity: str  # of text and weights: equal for the same
    name: str  # for people, with the fingerprint
    prepared: PreparedData

    def word_counts(self) -> Counter[str]:
        """Occurrences of each source word (:func:`nmt.evaluation.slices.words`), read from its subwords."""
        return count_words(self._sources())

    def _sources(self) -> Iterator[str]:
        rows, tokenizer = self.prepared.train.source, self.prepared.tokenizers.source
        return (tokenizer.decode(rows[number].tolist()) for number in range(len(rows)))


def training_text(run: LoadedRun, log: Callable[[str], None]) -> TrainingText:
    """The prepared training text of a run, from the cache or made again.

    Raises:
        ValueError, OSError: it cannot be had.
    """
    given = (
        TokenizerPair.load(resolve(run.path)) if run.config.init_from is not None else None
    )  # else they follow from the data
    prepared = prepare(run.config.data, log, given)
    text = json.dumps([prepared.contents["train"], [part.weight for part in prepared.parts]], sort_keys=True)
    name = f"{run.config.data.name}, fingerprint {prepared.fingerprint[:16]}"
    return TrainingText(hashlib.sha256(text.encode()).hexdigest(), name, prepared)
