"""Folders that appear whole or not at all, built by one process at a time.

A folder is built as ``.<name>.partial`` beside its final place, flushed to disk and renamed. The builder holds a lock
on the partial folder itself, which the system drops with the process: what is found unlocked was left by a killed one.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claim(target: Path, log: Callable[[str], None]) -> Iterator[Path]:
    """Hold the right to build ``target``; yields its empty partial folder, which is gone afterwards unless published.

    Waits while another process builds the same folder: look for ``target`` again once inside.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    partial = target.parent / f".{target.name}.partial"
    lock = _lock(partial, log)
    try:
        yield partial
    finally:
        if _same(partial, lock):  # neither published nor taken away
            shutil.rmtree(partial, ignore_errors=True)
        os.close(lock)


def publish(partial: Path, target: Path) -> None:
    """Flush all of ``partial`` to disk and give it its final name."""
    for path in [*partial.rglob("*"), partial]:
        flush(path)
    partial.rename(target)
    flush(target.parent)


def _lock(partial: Path, log: Callable[[str], None]) -> int:
    """Create the folder and lock it, emptied of a killed builder's remains; returns the lock's descriptor."""
    while True:
        partial.mkdir(exist_ok=True)
        try:
            descriptor = os.open(partial, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another process published or removed it this very moment
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(f"waiting for another process that prepares {partial.name.removeprefix('.').removesuffix('.partial')}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _same(partial, descriptor):
            for path in partial.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            return descriptor
        os.close(descriptor)  # it was published or removed while we waited


def _same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Remove partial folders whose builder is dead."""
    for partial in folder.glob(".*.partial"):
        try:
            descriptor = os.open(partial, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(partial, descriptor):
                shutil.rmtree(partial, ignore_errors=True)
        except BlockingIOError:
            pass  # someone is at work in it
        finally:
            os.close(descriptor)


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
