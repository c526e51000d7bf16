"""Arms: order, what is finished, failures and stops; a stand-in for ``nmt.train`` that trains nothing."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import yaml

from nmt.config import to_tree
from nmt.parse import ConfigError
from scripts import arms
from scripts.arms import Arm, Training, train_all, trainings
from tests.tiny_run import tiny_overrides, write_corpus

STAND_IN = """
    import os, pathlib, signal, sys, time
    keys = dict(argument.split("=", 1) for argument in sys.argv[1:])
    run = pathlib.Path(keys["runs"], f"{keys['tag']}_s{keys['seed']}")
    run.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: ((run / "saved").touch(), sys.exit(143)))
    (run / f"began_{time.monotonic_ns()}").touch()
    print("threads", os.environ["OMP_NUM_THREADS"])
    if keys["tag"] == "bad":
        time.sleep(0.5)
        print("error: this arm cannot be")
        sys.exit(2)
    time.sleep(30 if keys["tag"] == "long" else 0.05)
    (run / "summary.json").write_text("{}")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_corpus(tmp_path)
    (tmp_path / "stand_in.py").write_text(textwrap.dedent(STAND_IN))
    monkeypatch.setattr(arms, "TRAIN", (str(tmp_path / "stand_in.py"),))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    return tmp_path


def wanted(folder: Path, *tags: str, seeds: tuple[int, ...] = (1,)) -> list[Training]:
    shared = [item for item in tiny_overrides(folder) if not item.startswith("runs=")]
    return trainings([Arm(tag, tuple(shared)) for tag in tags], seeds, folder / "runs", [])


def beginnings(folder: Path) -> list[str]:
    """Runs in the order in which they began."""
    return [path.parent.name for path in sorted(folder.rglob("began_*"), key=lambda path: path.name)]


def test_all_arms_of_a_seed_before_the_next_seed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_all(wanted(folder, "a", "b", seeds=(2, 1)), jobs=1)
    assert beginnings(folder) == ["a_s2", "b_s2", "a_s1", "b_s1"]
    shown = capsys.readouterr().err
    assert "4 runs, 0 finished before; 1 at once" in shown
    assert "more wait, about" in shown
    log = (folder / "runs" / "logs" / "a_s2.log").read_text()
    assert log == f"threads {arms.cores()}\n", "one at a time has all cores"


def test_a_finished_run_is_taken_as_it_is_and_a_changed_recipe_is_not(folder: Path) -> None:
    both = wanted(folder, "a", "b")
    train_all(both, jobs=2)
    for training in both:
        (training.run / "config.yaml").write_text(yaml.safe_dump(to_tree(training.config)))
    assert all(training.is_finished for training in both)
    train_all(both, jobs=2)
    assert sorted(beginnings(folder)) == ["a_s1", "b_s1"], "nothing was started again"

    shared = both[0].arm.overrides
    (other,) = trainings([Arm("a", (*shared, "model.dropout=0.3"))], [1], folder / "runs", [])
    assert not other.is_finished, "nmt.train has to say what it thinks of it"
    (longer,) = trainings([Arm("a", (*shared, "training.max_steps=99"))], [1], folder / "runs", [])
    assert not longer.is_finished
    (louder,) = trainings([Arm("a", (*shared, "training.log_every=9"))], [1], folder / "runs", [])
    assert louder.is_finished


def test_one_that_fails_stops_the_others_saved_and_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        train_all(wanted(folder, "bad", "long", "a"), jobs=2)
    assert stopped.value.code == 2
    shown = capsys.readouterr().err
    assert "bad_s1: stopped with status 2; the end of " in shown
    assert "    error: this arm cannot be" in shown
    assert (folder / "runs" / "long_s1" / "saved").exists()
    assert sorted(beginnings(folder)) == ["bad_s1", "long_s1"], "no new one was started"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 130), (signal.SIGINT, 130)])
def test_a_stop_reaches_every_training(folder: Path, number: signal.Signals, status: int) -> None:
    script = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent.parent.parent.parent)!r})
        from pathlib import Path
        from tests.unit.scripts.test_arms import arms, wanted
        arms.TRAIN = ({str(folder / "stand_in.py")!r},)
        arms.train_all(wanted(Path({str(folder)!r}), "long", "long2"), jobs=2)
    """
    (folder / "stand_in.py").write_text(
        (folder / "stand_in.py").read_text().replace('"long" else', '"long" or keys["tag"] == "long2" else')
    )
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while len(beginnings(folder)) < 2:
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # what a terminal does
    else:
        process.send_signal(number)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == status, shown
    assert "the same command goes on from here" in shown
    if number == signal.SIGTERM:
        assert len(list(folder.rglob("saved"))) == 2


def test_mistakes_are_found_before_anything_is_trained(folder: Path) -> None:
    shared = wanted(folder, "a")[0].arm.overrides
    with pytest.raises(ConfigError, match="nonsense"):
        trainings([Arm("a", shared), Arm("b", (*shared, "model.nonsense=1"))], [1], folder / "runs", [])
    assert beginnings(folder) == []
