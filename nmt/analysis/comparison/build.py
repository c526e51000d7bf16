"""From evaluated runs to a comparison: each part is measured, or a reason stands in its place."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from nmt.analysis.comparison.looks import attention, beam_curve, examples, rates
from nmt.analysis.comparison.provenance import provenance
from nmt.analysis.comparison.runs import LoadedSystem, TrainingText, check_comparable, training_text
from nmt.analysis.comparison.scores import Scores, pair
from nmt.analysis.comparison.training import Budget, budget, cost, curve
from nmt.analysis.comparison.tree import Comparison, Part, System, TextResults
from nmt.analysis.report import CHANGED, SIGNED, hardware_name, search_name, text_changed, text_name
from nmt.evaluation.repetition import ORDER, repeated_share
from nmt.evaluation.significance import Method


class Options(NamedTuple):
    """What a comparison is asked for beside its systems."""

    title: str | None  # None: made from the systems and the first text
    baseline: str | None  # a system's name; None: the best by BLEU on the first text
    test: Method
    budget: Budget | None
    command: str
    training_text: bool  # whether it may be prepared


def build(
    systems: Sequence[LoadedSystem], texts: Sequence[str], options: Options, log: Callable[[str], None]
) -> Comparison:
    """Measure everything.

    Args:
        systems: every run with an evaluation of every text.
        texts: their names.
        options: see there.
        log: takes progress for people.

    Raises:
        ValueError: the runs cannot be compared, there is no such baseline, or the declared budget was not kept.
    """
    names = [system.name for system in systems]
    if options.baseline is not None and options.baseline not in names:
        raise ValueError(f"--baseline {options.baseline}: none of the systems; they are {', '.join(names)}")
    for text in texts:
        check_comparable([run for system in systems for run in system.runs], text)
    costs = {system.name: cost(system, texts) for system in systems}
    said = budget(costs, options.budget)
    scores = {text: Scores(systems, text) for text in texts}
    trained_on = _TrainingTexts(systems, options.training_text, log)
    baseline = options.baseline or _best(systems, texts[0])
    results = [
        _Text(systems, scores[text], text, baseline, options.test, trained_on, log).results(attention_too=number == 0)
        for number, text in enumerate(texts)
    ]
    return Comparison(
        options.title or f"{', '.join(names)} on {results[0].name}",
        baseline,
        options.test,
        said,
        tuple(System(system.name, system.model, tuple(run.plain for run in system.runs)) for system in systems),
        tuple(results),
        tuple(curve(system.name, run) for system in systems for run in system.runs),
        costs,
        provenance([run for system in systems for run in system.runs], texts[0], [options.command], trained_on.names()),
    )


def _best(systems: Sequence[LoadedSystem], text: str) -> str:
    """By BLEU, mean over the seeds."""

    def bleu(system: LoadedSystem) -> float:
        return fmean(run.evaluations[text].metrics["bleu"]["value"] for run in system.runs)

    return max(systems, key=bleu).name


class _TrainingTexts:
    """What the systems were trained on, as far as it can be had."""

    def __init__(self, systems: Sequence[LoadedSystem], allowed: bool, log: Callable[[str], None]) -> None:
        self.missing = "" if allowed else "training text is not read with --no-evaluate"
        self.by_system: dict[str, TrainingText] = {}
        known: dict[str, TrainingText] = {}  # systems mostly share their data
        for system in systems:
            if self.missing:
                break
            key = str(system.first.config.data) + str(system.first.config.init_from)
            try:
                found = known[key] if key in known else training_text(system.first, log)
            except (ValueError, OSError) as error:
                self.missing = f"the training text of {system.name} cannot be had ({error})"
            else:
                self.by_system[system.name] = known[key] = found

    @property
    def different(self) -> bool:
        """Whether the systems are known to have been trained on different text, or in other proportions."""
        return len({found.identity for found in self.by_system.values()}) > 1

    def counts(self) -> Counter[str] | str:
        """Of source words; or why there are none."""
        if self.missing:
            return self.missing
        if self.different:
            return "the systems were trained on different text, in which other words are rare"
        return next(iter(self.by_system.values())).word_counts()

    def names(self) -> list[str]:
        """For people."""
        return list(dict.fromkeys(found.name for found in self.by_system.values()))


class _Text:
    """Results on one text."""

    def __init__(
        self,
        systems: Sequence[LoadedSystem],
        scores: Scores,
        text: str,
        baseline: str,
        test: Method,
        trained_on: _TrainingTexts,
        log: Callable[[str], None],
    ) -> None:
        self.systems = systems
        self.scores = scores
        self.text = text
        self.baseline = baseline
        self.test = test
        self.trained_on = trained_on
        self.log = log
        self.runs = [run for system in systems for run in system.runs]
        self.metrics = {run.name: run.evaluations[text].metrics for run in self.runs}

    def results(self, attention_too: bool) -> TextResults:
        """Everything on this text."""
        first = self.metrics[self.runs[0].name]
        name = text_name(first) if "name" in first["data"] else first["split"]  # paths are too long for a title
        self.log(f"{name}: scores, intervals, tests ...")
        left_out: dict[Part, str] = {}
        quality = self.scores.quality()
        pairing = pair(self.systems) if len(self.systems) > 1 else None
        if len(self.systems) == 1:
            left_out["differences"] = "there is one system only"
        elif pairing is None:
            left_out["differences"] = "the systems have no seed in common, so there is nothing to be paired"
        counts = self.trained_on.counts()
        if isinstance(counts, str):
            left_out["by_rarest_word"] = counts
        beams = {
            system.name: beam_curve(found) for system in self.systems if (found := system.first.beams.get(self.text))
        }
        if not beams:
            left_out["beams"] = "give sizes with --beams"
        chosen = examples(self.systems, self.scores)
        seen = attention(self.systems, chosen, self.log) if attention_too and chosen else ()
        if not seen:
            left_out["attention"] = (
                "no system has attention, or it translates the sentence with nothing"
                if attention_too
                else "on the first text"
            )
        return TextResults(
            name=name,
            sentences=len(self.scores.sources),
            quality=quality,
            differences=() if pairing is None else self.scores.differences(self.baseline, pairing, self.test),
            by_length=self.scores.by_length(),
            by_rarest_word=None if isinstance(counts, str) else self.scores.by_rarest_word(counts),
            rates=rates(self.scores),
            beams=beams,
            examples=chosen,
            attention=seen,
            notes=tuple(self._notes("" if pairing is None else pairing.note)),
            left_out=left_out,
        )

    def _notes(self, of_pairing: str) -> list[str]:
        first = self.metrics[self.runs[0].name]
        notes = [f"{name}: {first[key]['signature']}" for name, key in SIGNED if key != "bleu_tok_lc"]
        notes += [
            f"search: {search_name(first)}",
            _same_or_each("translated on", {name: hardware_name(found) for name, found in self.metrics.items()}),
            f"repetition: share of {ORDER}-grams of words that their translation has had before; in the references "
            f"{repeated_share(self.scores.references):.2%}",
            "side by side: sentences chosen by their length alone, the first seed's translations",
        ]
        if len({found["tokenizers_sha256"] for found in self.metrics.values()}) > 1:
            notes.append("perplexities of subwords cannot be compared: the systems have different subwords")
        if self.trained_on.different:
            notes.append("the systems were trained on different text: this compares data as well as models")
        changed = [run.name for run in self.runs if text_changed(run.evaluations[self.text].metrics)]
        if changed:
            notes.append(f"{', '.join(changed)}: {CHANGED}")
        unfinished = [run.name for run in self.runs if not run.summary]
        if unfinished:
            notes.append(f"no summary.json, so not (yet) trained to the end: {', '.join(unfinished)}")
        if of_pairing:
            notes.append(of_pairing)
        return notes


def _same_or_each(label: str, values: Mapping[str, str]) -> str:
    if len(set(values.values())) == 1:
        return f"{label}: {next(iter(values.values()))}"
    each = "; ".join(f"{name}: {value}" for name, value in values.items())
    return f"{label}, not the same for all, so that speeds cannot be compared: {each}"
