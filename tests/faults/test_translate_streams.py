"""Input of any length goes through in flat memory, and what is read is not far ahead of what is answered."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.translate_runs import SHORT, TEXT, make_run

FEW, MANY = 20_000, 100_000
MEGABYTE = 1 << 20


def peak(process: int) -> int:
    """Largest resident size of a process so far, in bytes."""
    text = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_hundred_thousand_lines_in_flat_memory(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seed=1)
    command = [sys.executable, "-m", "nmt.translate", "--checkpoint", str(run), *SHORT, "--beam-size", "1"]
    process = subprocess.Popen([*command, "--buffer-size", "1000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    written = 0

    def write() -> None:
        nonlocal written
        assert process.stdin is not None
        with process.stdin:
            for number in range(MANY):
                process.stdin.write(f"{TEXT[number % len(TEXT)]}\n".encode())
                written += 1

    threading.Thread(target=write, daemon=True).start()
    peaks, answered, farthest = {}, 0, 0
    for _ in process.stdout:
        answered += 1
        farthest = max(farthest, written - answered)
        if answered in (FEW, MANY):
            peaks[answered] = peak(process.pid) if process.poll() is None else peaks[FEW]
    assert process.wait(timeout=60) == 0
    assert answered == MANY
    # Two buffers of lines, what a pipe holds and what Python's own buffers hold: some thousands of these short lines.
    assert farthest < 20_000
    assert peaks[MANY] - peaks[FEW] < 40 * MEGABYTE
