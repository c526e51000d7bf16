"""The wheel carries the configs and works away from the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_every_config_is_packed(unpacked: Path) -> None:
    shipped = {path.relative_to(ROOT / "configs") for path in (ROOT / "configs").rglob("*.yaml")}
    packed = {path.relative_to(unpacked / "nmt/configs") for path in (unpacked / "nmt/configs").rglob("*.yaml")}
    assert packed == shipped
    assert shipped


def test_the_installed_package_finds_its_configs(unpacked: Path, tmp_path: Path) -> None:
    code = "import nmt.config as c; print(c.__file__); print(c.CONFIG_DIR)"
    environment = os.environ | {"PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    module, configs = done.stdout.splitlines()
    assert Path(module).is_relative_to(unpacked)
    assert Path(configs) == unpacked / "nmt/configs"


def test_the_installed_package_trains_from_its_own_configs(unpacked: Path, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, "-m", "nmt.train", "--cfg", "job"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "kind: demo" in done.stdout
