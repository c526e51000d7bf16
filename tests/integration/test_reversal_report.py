"""The figures of a reversal report are those of the evaluations that it stands on."""

import json
import math
import shutil
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import sacrebleu

from nmt.analysis.reversal.build import ReversalPair, write_report
from nmt.evaluation.significance import paired_test
from nmt.training.trainer import train
from tests.integration.conftest import SCORED
from tests.tiny_run import tiny_config

ARMS = ("forward", "backward")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``forward_s1`` and ``backward_s1``, and a second seed of each; evaluated by the first report."""
    folder = tmp_path_factory.mktemp("reversal")
    for seed in (1, 2):
        for arm in ARMS:
            key = f"model.reverse_source={str(arm == 'backward').lower()}"
            shorter = ("training.max_steps=40", "training.validate_every=20", "training.log_every=20")
            train(tiny_config(folder, "seq2seq", *SCORED, key, *shorter, f"tag={arm}", f"seed={seed}"))
    return folder / "runs"


def pair(runs: Path, *seeds: int, name: str = "seq2seq") -> ReversalPair:
    forward, backward = ({seed: runs / f"{arm}_s{seed}" for seed in seeds} for arm in ARMS)
    return ReversalPair(name, "seq2seq", None, forward, backward)


def report(output: Path, *pairs: ReversalPair) -> list[dict[str, Any]]:
    write_report("Title", pairs, output, ["make"], 1, lambda message: None)
    found: list[dict[str, Any]] = json.loads((output / "report.json").read_text(encoding="utf-8"))["pairs"]
    return found


def effects(found: dict[str, Any]) -> dict[str, Any]:
    return {effect["name"]: effect for effect in found["effects"]}


def evaluation(run: Path, beam: int) -> Path:
    """The data has no test set, so the validation set stands for it."""
    return run / "evaluation" / f"validation_beam{beam}"


def lines(run: Path, beam: int, name: str) -> list[str]:
    return (evaluation(run, beam) / f"{name}.txt").read_text(encoding="utf-8").split("\n")[:-1]


def test_every_figure_of_two_seeds(trained: Path, tmp_path: Path) -> None:
    (found,) = report(tmp_path, pair(trained, 1, 2))
    assert (found["seeds"], found["lags"], found["contrasts"]) == ([1, 2], None, [])
    assert found["sentences"] == len(lines(trained / "forward_s1", 1, "sources"))
    measured = effects(found)
    for beam in (1, 2, 12):
        for metric, score in (("BLEU 13a", sacrebleu.corpus_bleu), ("chrF2", sacrebleu.corpus_chrf)):
            effect = measured.pop(f"{metric}, beam {beam}")
            for arm in ARMS:
                values = [
                    score(lines(run, beam, "hypotheses"), [lines(run, beam, "references")]).score
                    for run in (trained / f"{arm}_s1", trained / f"{arm}_s2")
                ]
                assert effect[arm]["seeds"] == pytest.approx(values)
                assert effect[arm]["value"] == pytest.approx(fmean(values))
                assert effect[arm]["spread"] == pytest.approx(stdev(values))
    for effect in measured.values():
        assert effect["less_is_better"]
        for arm in ARMS:
            values = [
                json.loads((evaluation(trained / f"{arm}_s{seed}", 1) / "metrics.json").read_text())["perplexity"]
                for seed in (1, 2)
            ]
            assert effect[arm]["seeds"] == pytest.approx(values, rel=1e-4)
    assert list(measured) == ["validation perplexity", "test perplexity"]
    assert {name: effect["paper"] for name, effect in effects(found).items() if effect["paper"]} == {
        "test perplexity": [5.8, 4.7],
        "BLEU 13a, beam 12": [25.9, 30.6],
    }
    assert [[point["step"] for point in curve["points"]] for curve in found["curves"]] == [[20, 40]] * 4


def test_one_seed_is_tested_by_sacrebleu(trained: Path, tmp_path: Path) -> None:
    (found,) = report(tmp_path, pair(trained, 1))
    runs = {arm: trained / f"{arm}_s1" for arm in ARMS}
    for name, key in (("BLEU 13a", "bleu"), ("chrF2", "chrf")):
        systems = {arm: lines(run, 2, "hypotheses") for arm, run in runs.items()}
        tested = paired_test(systems, lines(runs["forward"], 2, "references"), "forward", key, "bootstrap")
        assert effects(found)[f"{name}, beam 2"]["p_value"] == tested.results[1].p_value
    assert effects(found)["BLEU 13a, beam 2"]["forward"]["spread"] is None
    assert "one seed (chance of the seed is not in the interval)" in (tmp_path / "report.md").read_text()


def test_a_control_is_set_against_the_first_pair(trained: Path, tmp_path: Path) -> None:
    """Beside itself it shows no difference; with other translations that of the two effects."""
    main = pair(trained, 1)
    report(tmp_path / "first", main)
    other = Path(shutil.copytree(trained, tmp_path / "runs", symlinks=True))
    translations = evaluation(other / "backward_s1", 12) / "hypotheses.txt"
    translations.write_text("".join(f"{line}\n" for line in lines(trained / "forward_s1", 12, "references")))
    likelihoods = evaluation(other / "backward_s1", 12) / "likelihoods.tsv"
    rows = [line.split("\t") for line in likelihoods.read_text(encoding="utf-8").split("\n")[:-1]]
    doubled = "".join(f"{float(nll) + math.log(2) * int(tokens)}\t{tokens}\n" for nll, tokens in rows)
    likelihoods.write_text(doubled)  # every subword half as probable
    same, perfect = pair(trained, 1, name="the same"), pair(other, 1, name="all right")
    found = report(tmp_path / "second", main, same, perfect, pair(trained, 2, name="another seed"))
    bleu = [effects(each)["BLEU 13a, beam 12"]["difference"] for each in found]
    assert [contrast["name"] for contrast in found[1]["contrasts"]] == ["test perplexity", "BLEU 13a, beam 12"]
    for contrast in found[1]["contrasts"]:
        assert list(contrast.values())[1:] == [0.0, 0.0, 0.0, 1.0]
    by_perplexity, by_bleu = found[2]["contrasts"]
    assert by_bleu["difference"] == pytest.approx(bleu[2] - bleu[0])
    assert by_bleu["low"] < bleu[2] - bleu[0] < by_bleu["high"]
    assert by_bleu["p_value"] < 0.05, "next to nothing against all right"
    assert by_perplexity["difference"] == pytest.approx(math.log(2), abs=1e-3)
    assert found[3]["contrasts"] == []
    assert [effect["paper"] for each in found[1:] for effect in each["effects"]] == [None] * 24


def test_a_run_of_another_seed_than_is_said_is_refused(trained: Path, tmp_path: Path) -> None:
    swapped = pair(trained, 1)._replace(backward={1: trained / "backward_s2"})
    with pytest.raises(ValueError, match="backward_s2: its seed is 2, expected 1"):
        report(tmp_path, swapped)


def test_seeds_of_other_recipes_are_refused(trained: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(trained, tmp_path / "runs", symlinks=True))
    for path in other.glob("*_s2/**/config.yaml"):
        path.write_text(path.read_text().replace("batch_tokens: 160", "batch_tokens: 161"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"forward_s1 and .*forward_s2 differ in more than .*: training.batch_tokens"):
        report(tmp_path / "report", pair(other, 1, 2))
