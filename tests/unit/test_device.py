"""What is asked of the machine: devices, number formats, the allocator."""

import subprocess
import sys
import textwrap

import pytest
import torch

from nmt.device import resolve_device, resolve_precision


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "mps", ""])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="device"):
        resolve_device(name)


def test_precision_is_named_or_found() -> None:
    cpu = torch.device("cpu")
    assert resolve_precision("fp32", cpu) == "fp32"
    assert resolve_precision("bf16", cpu) == "bf16"
    assert resolve_precision("auto", cpu) in ("fp32", "bf16")
    with pytest.raises(ValueError, match="precision"):
        resolve_precision("fp16", cpu)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an allocator of Linux")
def test_freed_memory_is_kept_for_the_next_tensor() -> None:
    """Pages that the system must clear anew, counted over tensors that come and go: thousands without, few with."""
    script = textwrap.dedent(
        """
        import resource, sys, torch
        from nmt.device import keep_freed_memory
        if sys.argv[1] == "keep":
            keep_freed_memory()
        def faults():
            for _ in range(20):
                torch.zeros(64 << 18)  # 64 MiB
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        faults()
        print(-faults() + faults())
        """
    )
    kept, given_back = (
        int(subprocess.run([sys.executable, "-c", script, how], capture_output=True, text=True, check=True).stdout)
        for how in ("keep", "no")
    )
    assert kept < given_back / 10


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an allocator of Linux")
def test_kept_memory_can_be_given_back() -> None:
    script = textwrap.dedent(
        """
        import torch
        from nmt.device import give_back_freed_memory, keep_freed_memory
        keep_freed_memory()
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
        before = resident()
        tensors = [torch.ones(16 << 18) for _ in range(20)]  # 320 MiB
        del tensors
        kept = resident() - before
        give_back_freed_memory()
        print(kept, resident() - before)
        """
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert int(found[0]) > 250
    assert int(found[1]) < 50
