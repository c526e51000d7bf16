"""One virtual environment per peer: made once from pinned versions, reused as long as the pins stay the same."""

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

INSTALL_SECONDS = 1800
TAIL_LINES = 15


class PeerError(RuntimeError):
    """A side could not be installed or run; the message ends with the end of its log."""


@dataclass(frozen=True)
class Peer:
    """A toolkit from the package index.

    JoeyNMT and OpenNMT-py were written for older releases of what they stand on, and say so in their metadata; with the
    ones listed here they work. So the package itself is installed without its dependencies, and those after it.
    """

    package: str
    dependencies: tuple[str, ...]
    needs_torch: bool = True


PEERS = {
    "joeynmt": Peer(
        package="joeynmt==2.3.0",
        dependencies=(
            "importlib_metadata==10.2.0",
            "matplotlib==3.11.2",
            "numpy==2.4.6",
            "packaging==26.4",
            "pandas==3.1.1",
            "pyyaml==6.0.4",
            "sacrebleu==2.6.0",
            "sacremoses==0.2.0",
            "seaborn==0.13.2",
            "sentencepiece==0.2.0",
            "setuptools==80.9.0",  # 81 took pkg_resources away
            "six==1.17.0",
            "subword-nmt==0.3.8",
            "tensorboard==2.21.0",
        ),
    ),
    "opennmt": Peer(
        package="OpenNMT-py==3.5.1",
        dependencies=(
            "configargparse==1.9.0",
            "ctranslate2==4.8.5",
            "numpy==2.4.6",
            "pyonmttok==1.38.1",
            "pyyaml==6.0.4",
            "rapidfuzz==3.14.6",
            "sacrebleu==2.6.0",
            "sentencepiece==0.2.3",
            "six==1.17.0",
            "tensorboard==2.21.0",
        ),
    ),
    "ctranslate2": Peer(
        package="ctranslate2==4.8.5",
        dependencies=("numpy==2.4.6", "pyyaml==6.0.4", "sentencepiece==0.2.3"),
        needs_torch=False,
    ),
}


def environment(name: str, work: Path, torch_version: str) -> Path:
    """The interpreter of a peer's environment, installed if it is not there yet.

    Args:
        name: key of :data:`PEERS`.
        work: folder of all environments.
        torch_version: the release that this project runs, so that all sides compute with the same kernels.

    Raises:
        PeerError: the installation failed.
    """
    peer = PEERS[name]
    pins = (*((f"torch=={torch_version}",) if peer.needs_torch else ()), *peer.dependencies)
    digest = hashlib.sha256("\n".join((sys.version, peer.package, *pins)).encode()).hexdigest()[:12]
    folder = work / f"{name}-{digest}"
    python = folder / "bin" / "python"
    if (folder / ".ready").exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)  # begun, but not finished
    log = work / f"{name}-install.log"
    work.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    pip = (str(python), "-m", "pip", "install", "--disable-pip-version-check")
    _step(log, sys.executable, "-m", "venv", str(folder))
    _step(log, *pip, *pins)
    _step(log, *pip, "--no-deps", peer.package)
    (folder / ".ready").touch()
    return python


def _step(log: Path, *command: str) -> None:
    with log.open("ab") as stream:
        try:
            subprocess.run(
                command, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, timeout=INSTALL_SECONDS, check=True
            )
        except (subprocess.SubprocessError, OSError) as error:
            raise PeerError(f"installation failed: {error}\n{tail(log)}") from None


def tail(log: Path) -> str:
    """The last lines of a log file, empty if there is none."""
    if not log.exists():
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").rstrip("\n").split("\n")
    return "\n".join(lines[-TAIL_LINES:])
