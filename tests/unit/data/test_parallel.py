"""Work in other processes: the same results in the same order, errors that arrive, processes that end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.data import parallel
from nmt.data.parallel import Parallel
from tests.processes import processes_of


@pytest.fixture(autouse=True)
def nothing_alone() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "ALONE", 1)
        yield


def square(number: int) -> tuple[int, int]:
    """The answer, and who gave it."""
    time.sleep(0.001 * (number % 3))
    return number * number, os.getpid()


def refuse(number: int) -> int:
    if number == 5:
        raise ValueError(f"no {number} today")
    return number


def die(number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def talk(number: int) -> int:
    print("not an answer")
    return number


def large(number: int) -> bytes:
    """More than a pipe holds."""
    return bytes(1 << 20)


def run(work: object, numbers: list[int], workers: int) -> list[object]:
    results: list[object] = []
    with Parallel(work, workers) as pool:  # type: ignore[arg-type]
        for number in numbers:
            while pool.full:
                results.append(pool.get())
            pool.put(number)
        while pool.pending:
            results.append(pool.get())
    return results


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    results = run(square, list(range(40)), workers)
    assert [value for value, _ in results] == [number * number for number in range(40)]  # type: ignore[misc]
    processes = {process for _, process in results}  # type: ignore[misc]
    assert os.getpid() in processes, "the first item"
    assert len(processes) == (1 if workers == 1 else 1 + workers)


def test_nothing_to_do() -> None:
    assert run(square, [], 2) == []


def test_items_and_results_may_be_larger_than_a_pipe() -> None:
    assert run(len, [bytes(3 << 20)] * 5, 2) == [3 << 20] * 5  # type: ignore[list-item]
    assert run(large, list(range(5)), 2) == [bytes(1 << 20)] * 5


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_the_work_arrives(workers: int) -> None:
    with pytest.raises(ValueError, match="no 5 today"):
        run(refuse, list(range(9)), workers)


def test_a_process_that_is_killed_is_an_error() -> None:
    with pytest.raises(OSError, match=r"a process of the preparation has ended: SIGKILL \(out of memory\?\)"):
        run(die, list(range(9)), 2)


def test_what_a_library_prints_is_no_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(talk, list(range(4)), 2) == [0, 1, 2, 3]
    assert "not an answer" in capfd.readouterr().err


def test_leaving_ends_the_processes_whatever_they_are_at() -> None:
    before = set(processes_of(os.getpid()))
    with Parallel(time.sleep, 2) as pool:
        for seconds in (0, 100, 100):
            pool.put(seconds)
        assert len(set(processes_of(os.getpid())) - before) == 2
    assert set(processes_of(os.getpid())) == before


def test_they_end_with_a_parent_that_is_killed() -> None:
    code = """
import time
from nmt.data import parallel
parallel.ALONE = 0
with parallel.Parallel(time.sleep, 2) as pool:
    for _ in range(4):
        pool.put(0.1)
    print("here", flush=True)
    time.sleep(100)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    children = processes_of(process.pid)
    assert len(children) == 2
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_script_without_a_guard_can_use_them(tmp_path: Path) -> None:
    """Its main module is not imported again by the processes."""
    script = tmp_path / "script.py"
    script.write_text(
        "from nmt.data import parallel\nparallel.ALONE = 0\nprint('once')\n"
        "with parallel.Parallel(len, 2) as pool:\n    pool.put('abc')\n    print(pool.get())\n"
    )
    env = os.environ | {"PYTHONPATH": str(Path(parallel.__file__).parent.parent.parent)}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "once\n3\n", done.stderr
