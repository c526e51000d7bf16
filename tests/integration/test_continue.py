"""Going on: fine-tuning from another run's checkpoint, resets on resume, and which value won."""

import dataclasses
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt import checkpoint
from nmt.analysis.evaluated_runs import evaluate_run
from nmt.config import ConfigError, TrainConfig
from nmt.data.dataset import prepare
from nmt.data.loader import Loader
from nmt.evaluation.likelihood import evaluate_likelihood
from nmt.training.trainer import train
from nmt.training.update import Updater
from tests.tiny_run import assert_equal, assert_same_end, limited, metrics, saved, tiny_config

pytestmark = pytest.mark.usefixtures("quick_figures")

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("continue")


@pytest.fixture
def base(shared: Path) -> TrainConfig:
    """A finished run of 12 updates. Not to be changed: take a :func:`copy_of` it."""
    config = tiny_config(shared, "transformer", "tag=base", "training.log_every=1")
    if not config.run_dir.exists():
        train(config)
    return config


def copy_of(config: TrainConfig, tag: str) -> TrainConfig:
    copy = dataclasses.replace(config, tag=tag)
    shutil.copytree(config.run_dir, copy.run_dir, symlinks=True)
    return copy


def with_optim(config: TrainConfig, **changes: object) -> TrainConfig:
    return dataclasses.replace(config, optim=dataclasses.replace(config.optim, **changes))  # type: ignore[arg-type]


def with_rate(config: TrainConfig, rate: float) -> TrainConfig:
    return with_optim(config, optimizer=dataclasses.replace(config.optim.optimizer, learning_rate=rate))


def logged(config: TrainConfig) -> str:
    return (config.run_dir / "train.log").read_text(encoding="utf-8")


# --- fine-tuning ------------------------------------------------------------------------------------------------------


def fine_config(folder: Path, base: TrainConfig, tag: str, *overrides: str) -> TrainConfig:
    """Other text: two words only, from which no vocabulary of 48 subwords could be trained."""
    folder.mkdir(exist_ok=True)
    generator = random.Random(3)
    for split, pairs in (("train", 60), ("dev", 8)):
        if (folder / f"{split}.en").exists():
            continue
        sentences = [generator.choices(["eins", "zwei"], k=generator.randint(1, 6)) for _ in range(pairs)]
        words = {"eins": "one", "zwei": "two"}
        for ending, lines in (("de", sentences), ("en", [[words[word] for word in line] for line in sentences])):
            (folder / f"{split}.{ending}").write_text("".join(" ".join(line) + "\n" for line in lines))
    options = ("training.log_every=1", "data.tokenizer.vocabulary_size=999", f"init_from={base.run_dir}", f"tag={tag}")
    return tiny_config(folder, "transformer", *options, *overrides)


def test_fine_tuning_begins_with_the_checkpoint_its_tokenizer_and_a_new_optimizer(
    shared: Path, base: TrainConfig
) -> None:
    old = checkpoint.load(base.run_dir)
    config = fine_config(shared / "other", base, "fine", "model.dropout=0.0", "training.average_last=0")
    train(config)
    best = checkpoint.load(config.run_dir)
    assert best.tokenizers.digest == old.tokenizers.digest

    prepared = prepare(best.config.data, lambda line: None, old.tokenizers)
    assert prepared.tokenizers.digest == old.tokenizers.digest
    loader = Loader(prepared.validation, 160, None, seed=1, shuffle=False)
    likelihood = evaluate_likelihood(old.model, loader, CPU, "fp32")
    first = metrics(config.run_dir, "validation")[0]
    assert (first["step"], first["loss"]) == (0, likelihood.nll / likelihood.tokens)
    start = saved(config, 0)
    assert_equal(start["weights"], old.model.state_dict())
    assert start["optimizer"]["state"] == {}
    rates = [[line["learning_rate"] for line in metrics(c.run_dir, "train")] for c in (base, config)]
    assert rates[0] == rates[1], "the schedule begins anew"

    assert best.config.data.tokenizer == base.data.tokenizer, "what is stored is what was used"
    assert f"init_from: parameters and tokenizer of {old.path} (de to en, after update {old.step})" in logged(config)
    assert "data.tokenizer.vocabulary_size: 999 (config) -> 48 (checkpoint's)" in logged(config)
    said: list[str] = []
    evaluate_run(config.run_dir, "validation", config.search, CPU, "fp32", said.append)
    assert any("(cached)" in line for line in said), said


def test_fine_tuning_is_resumed_bit_for_bit_without_the_checkpoint_it_began_with(
    shared: Path, base: TrainConfig
) -> None:
    gone = copy_of(base, "gone")
    straight = fine_config(shared / "other", gone, "fine_straight")
    broken = dataclasses.replace(straight, tag="fine_broken")
    train(straight)
    with killed_after(5), pytest.raises(Killed):
        train(broken)
    shutil.rmtree(gone.run_dir)
    shutil.rmtree(broken.data.cache)
    train(broken)
    assert_same_end(straight, broken, 12)
    with pytest.raises(ConfigError, match=r"init_from \(was .*gone_s1, now null\)"):
        train(dataclasses.replace(broken, init_from=None))


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.dim=32", r"model\.dim \(16 there, 32 here\)"),
        ("model.heads=4", r"model\.heads \(2 there, 4 here\)"),
        ("model.tie_embeddings=two-way", r"model\.tie_embeddings \(three-way there, two-way here\)"),
        ("model.norm=post", r"model\.norm \(pre there, post here\)"),
    ],
)
def test_another_model_than_the_checkpoint_is_refused_by_key(
    shared: Path, base: TrainConfig, override: str, message: str
) -> None:
    config = fine_config(shared / "other", base, "unfit", override)
    with pytest.raises(ConfigError, match=message):
        train(config)
    assert not config.run_dir.exists()


def cut_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:200])


def tamper_with_tokenizer(folder: Path) -> None:
    """A valid tokenizer, but another one: its pieces mean something else."""
    import sentencepiece.sentencepiece_model_pb2 as format_of

    path = folder / "tokenizer.model"
    model = format_of.ModelProto()
    model.ParseFromString(path.read_bytes())
    one, two = model.pieces[-1].piece, model.pieces[-2].piece
    model.pieces[-1].piece, model.pieces[-2].piece = two, one
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (shutil.rmtree, "no checkpoint here"),
        (cut_weights, r"model\.safetensors: missing or damaged"),
        (tamper_with_tokenizer, "tokenizer is not the one"),
        (lambda folder: (folder / "tokenizer.model").write_bytes(b"other"), "tokenizer: missing or damaged"),
    ],
)
def test_checkpoint_that_cannot_be_used_is_named(
    shared: Path, base: TrainConfig, harm: Callable[[Path], None], message: str
) -> None:
    bad = copy_of(base, "bad")
    config = fine_config(shared / "other", bad, "never")
    for folder in (bad.run_dir / "checkpoints").iterdir():
        if not folder.is_symlink():
            harm(folder)
    with pytest.raises(ConfigError, match=rf"^init_from: .*bad_s1.*{message}"):
        train(config)
    assert not config.run_dir.exists()
    shutil.rmtree(bad.run_dir)
    with pytest.raises(ConfigError, match=r"^init_from: .*bad_s1: no such checkpoint or run folder"):
        train(config)


def test_prepared_data_of_several_tokenizers_are_kept_apart(shared: Path, base: TrainConfig) -> None:
    own = prepare(base.data, lambda line: None)
    other = prepare(
        tiny_config(shared, "transformer", "data.tokenizer.vocabulary_size=40").data, lambda line: None
    ).tokenizers
    given = prepare(base.data, lambda line: None, other)
    assert own.folder != given.folder
    assert own.tokenizers.digest != given.tokenizers.digest
    assert given.tokenizers.digest == other.digest
    said: list[str] = []
    assert prepare(base.data, said.append, other).folder == given.folder
    assert said == [f"prepared data: {given.folder} (cached)"]
    assert prepare(base.data, lambda line: None).tokenizers.digest == own.tokenizers.digest
    source = given.train.pair(0)[0].tolist()
    assert other.source.decode(source[:-1]) in (Path(shared) / "train.de").read_text().split("\n")


# --- resets on resume -------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The end of a process, as far as nothing after it runs."""


class killed_after:  # noqa: N801 (reads as what it does)
    """While entered, a run dies after so many updates."""

    def __init__(self, updates: int) -> None:
        self.left = updates

    def __enter__(self) -> None:
        update = self.update = Updater.update

        def dying(*arguments: object) -> object:
            if self.left == 0:
                raise Killed
            self.left -= 1
            return update(*arguments)  # type: ignore[arg-type]

        Updater.update = dying  # type: ignore[method-assign, assignment]

    def __exit__(self, *arguments: object) -> None:
        Updater.update = self.update  # type: ignore[method-assign]


def test_reset_optimizer_forgets_the_moments(base: TrainConfig) -> None:
    config = copy_of(base, "forgetful")
    optimizer = dataclasses.replace(config.optim.optimizer, beta1=0.5)
    with pytest.raises(ConfigError, match=r"beta1 \(was 0\.9, now 0\.5\).*training\.reset_optimizer=true"):
        train(limited(with_optim(config, optimizer=optimizer), max_steps=18))
    with pytest.raises(ConfigError, match=r"beta1 \(was 0\.9, now 0\.5\)"):  # the moments were made by the old one
        train(limited(with_optim(config, optimizer=optimizer), max_steps=18, reset_schedule=True))
    train(limited(with_optim(config, optimizer=optimizer), max_steps=18, reset_optimizer=True))
    stored = saved(config, 18)["optimizer"]
    assert {int(state["step"]) for state in stored["state"].values()} == {6}
    assert stored["param_groups"][0]["betas"] == (0.5, 0.98)
    assert "training.reset_optimizer: the moments are forgotten after update 12" in logged(config)
    assert "optim.optimizer.beta1: 0.9 (checkpoint) -> 0.5 (now)" in logged(config)
    rates = [line["learning_rate"] for line in metrics(config.run_dir, "train")]
    assert rates == sorted(rates[:5]) + sorted(rates[5:], reverse=True), "the schedule goes on"


def test_reset_schedule_begins_warm_up_and_decay_anew(base: TrainConfig) -> None:
    config = copy_of(base, "anew")
    train(limited(config, max_steps=24, reset_schedule=True))
    rates = [line["learning_rate"] for line in metrics(config.run_dir, "train")]
    assert rates[12:] == rates[:12]
    assert {int(state["step"]) for state in saved(config, 24)["optimizer"]["state"].values()} == {24}
    # Asked in a new way: another recipe. Then the recipe without the flag is the one that counts.
    train(limited(with_rate(config, 0.01), max_steps=30, reset_schedule=True))
    train(limited(with_rate(config, 0.01), max_steps=36))
    more = [line["learning_rate"] for line in metrics(config.run_dir, "train")][24:]
    assert more == pytest.approx([10 * rate for rate in rates[:12]])
    with pytest.raises(ConfigError, match=r"learning_rate \(was 0\.01, now 0\.001\)"):
        train(limited(config, max_steps=48))


def test_reset_schedule_forgets_plateau_cuts_and_patience(shared: Path) -> None:
    config = tiny_config(
        shared, "seq2seq", "tag=plateau", "optim/schedule=plateau", "optim.schedule.patience=1", "training.patience=2",
        "optim.optimizer.learning_rate=1e-6", "optim.schedule.min_learning_rate=1e-9", "training.log_every=1",
    )  # fmt: skip
    train(limited(config, max_steps=None))  # nothing improves: cut, cut, stop
    assert metrics(config.run_dir, "train")[-1]["learning_rate"] == 5e-7
    steps = saved(config, 18)["state"]["step"]
    train(limited(config, max_steps=steps + 6, reset_schedule=True))
    assert metrics(config.run_dir, "train")[-1]["learning_rate"] == 1e-6


@pytest.mark.parametrize("lives", [(2, 2), (8, 3)])
def test_a_reset_is_made_once_whatever_interrupts_it(base: TrainConfig, lives: tuple[int, int]) -> None:
    """Killed before the first checkpoint after the reset (at 18), or after it: the same command makes no second one."""
    straight, broken = copy_of(base, f"once_{lives[0]}"), copy_of(base, f"killed_{lives[0]}")
    straight, broken = (
        limited(with_rate(c, 0.003), max_steps=24, reset_optimizer=True, reset_schedule=True)
        for c in (straight, broken)
    )
    train(straight)
    for updates in lives:
        with killed_after(updates), pytest.raises(Killed):
            train(broken)
    train(broken)
    assert_same_end(straight, broken, 24)
    again = ", not once more" if lives[0] > 6 else ""
    last = logged(broken).split("resuming")[-1]
    assert f"training.reset_optimizer: the moments are forgotten after update 12{again}\n" in last
    assert f"training.reset_schedule: warm-up and decay begin anew after update 12{again}\n" in last


@pytest.mark.parametrize("key", ["reset_optimizer", "reset_schedule"])
def test_a_new_run_has_nothing_to_reset(shared: Path, key: str) -> None:
    config = limited(tiny_config(shared, "seq2seq", "tag=nothing"), **{key: True})
    with pytest.raises(ConfigError, match=rf"^training\.{key}: there is nothing to reset"):
        train(config)
    assert not config.run_dir.exists()


def test_a_finished_run_goes_on_with_more_updates_and_says_which_value_won(base: TrainConfig) -> None:
    config = copy_of(base, "longer")
    assert (config.run_dir / "summary.json").exists()
    with killed_after(3), pytest.raises(Killed):
        train(limited(config, max_steps=24, log_every=2))
    assert not (config.run_dir / "summary.json").exists(), "it is not finished any more"
    assert "training.max_steps: 12 (checkpoint) -> 24 (now)" in logged(config)
    assert "training.log_every: 1 (checkpoint) -> 2 (now)" in logged(config)
    train(limited(config, max_steps=24, log_every=2))
    assert json.loads((config.run_dir / "summary.json").read_text())["steps"] == 24
    assert [line["step"] for line in metrics(config.run_dir, "average")] == [12, 24]
    values = {line["step"]: line["bleu"] for line in metrics(config.run_dir, "validation", "average")}
    best = saved(config, 24)["state"]["best_value"]
    assert best == max(values.values())


def test_checkpoint_from_before_these_keys_is_read(base: TrainConfig) -> None:
    old = copy_of(base, "old")
    for path in old.run_dir.rglob("config.yaml"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.strip().startswith(("init_from", "reset_"))))
    assert checkpoint.load(old.run_dir).config.init_from is None
    train(limited(old, max_steps=13))
