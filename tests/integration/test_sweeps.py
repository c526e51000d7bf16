"""Our configuration under the launchers that sweeps use."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobRuntime
from hydra.errors import MissingConfigException
from hydra.types import RunMode
from omegaconf import OmegaConf

from nmt.composition import register_resolvers
from nmt.config import CONFIG_DIR, TrainConfig, parse


@dataclass
class SlurmLauncher:
    """The keys of hydra-submitit-launcher 1.2 that a Slurm job is made of; stands in for the plugin itself."""

    _target_: str = "hydra_plugins.hydra_submitit_launcher.submitit_launcher.SlurmLauncher"
    submitit_folder: str = "${hydra.sweep.dir}/.submitit/%j"
    timeout_min: int = 60
    cpus_per_task: int | None = None
    gpus_per_node: int | None = None
    tasks_per_node: int = 1
    mem_gb: int | None = None
    nodes: int = 1
    name: str = "${hydra.job.name}"
    stderr_to_stdout: bool = False
    partition: str | None = None
    max_num_timeout: int = 0
    array_parallelism: int = 256
    setup: list[str] | None = None
    additional_parameters: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def plugin() -> Iterator[None]:
    """The launcher's configuration where the plugin would have registered it."""
    store = ConfigStore.instance()
    store.store(group="hydra/launcher", name="submitit_slurm", node=SlurmLauncher, provider="submitit_launcher")
    yield
    del store.repo["hydra"]["launcher"]["submitit_slurm.yaml"]  # only ours: Hydra may have added its own meanwhile


@pytest.mark.usefixtures("plugin")
def test_the_slurm_launcher_composes_with_our_tree(tmp_path: Path) -> None:
    overrides = [
        "hydra/launcher=submitit_slurm",
        "hydra.launcher.partition=gpu",
        "hydra.launcher.gpus_per_node=1",
        "hydra.launcher.timeout_min=600",
        f"runs={tmp_path}/runs",
        "seed=2",
        "model=bahdanau",
    ]
    register_resolvers()
    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        tree = compose("train", overrides=overrides, return_hydra_config=True)
    OmegaConf.set_readonly(tree.hydra, False)
    tree.hydra.mode = RunMode.MULTIRUN
    tree.hydra.job.name = JobRuntime.instance().get("name") or "train"
    HydraConfig.instance().set_config(tree)
    launcher = OmegaConf.to_container(tree, resolve=False)["hydra"]["launcher"]  # type: ignore[call-overload, index]
    assert launcher["_target_"].endswith("SlurmLauncher")
    assert (launcher["partition"], launcher["gpus_per_node"], launcher["timeout_min"]) == ("gpu", 1, 600)
    assert tree.hydra.launcher.submitit_folder == f"{tmp_path}/runs/.submitit/%j"
    del tree.hydra
    config = parse(TrainConfig, OmegaConf.to_container(tree, resolve=True, throw_on_missing=True))
    assert config.run_dir == tmp_path / "runs" / "demo_bahdanau_s2"


def test_without_the_plugin_its_name_is_an_error() -> None:
    """What makes the test above one that can fail."""
    if find_spec("submitit") is not None:
        pytest.skip("the plugin is installed")
    with (
        initialize_config_dir(str(CONFIG_DIR), version_base="1.3"),
        pytest.raises(MissingConfigException, match="submitit_slurm"),
    ):
        compose("train", overrides=["hydra/launcher=submitit_slurm"], return_hydra_config=True)
