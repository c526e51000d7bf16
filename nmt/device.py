"""Where to compute and in which number format: devices, ``precision: auto``, autocast."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import torch
from torch import Tensor

Precision = Literal["fp32", "bf16"]
SearchPrecision = Literal["fp32", "bf16", "int8"]


def resolve_device(name: str) -> torch.device:
    """``auto`` is the first GPU if there is one, else the CPU.

    Raises:
        ValueError: the name is no device, or this machine does not have it.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device: torch.device | None
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ValueError(f"device: expected auto, cpu, cuda or cuda:N, found {name!r}")
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise ValueError(f"device: {name} asked for, but this machine has {torch.cuda.device_count()} CUDA devices")
    return device


def move(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device. A copy to a GPU goes through pinned memory, so that nothing has to wait for it."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 matrices itself (emulation is slower than float32)."""
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    capabilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(bool(capabilities.get(name)) for name in ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16"))


def resolve_precision(name: str, device: torch.device) -> Precision:
    """``auto`` is bf16 where :func:`has_bf16`, else fp32; the other names stand for themselves."""
    if name == "auto":
        return "bf16" if has_bf16(device) else "fp32"
    if name == "bf16":
        return "bf16"
    if name == "fp32":
        return "fp32"
    raise ValueError(f"precision: expected auto, fp32 or bf16, found {name!r}")


def resolve_search_precision(name: str, device: torch.device) -> SearchPrecision:
    """:func:`resolve_precision`, or int8 (see ``nmt/models/int8.py``): for translating, not for training.

    Raises:
        ValueError: an unknown name, or this device has no such arithmetic.
    """
    if name != "int8":
        return resolve_precision(name, device)
    if device.type != "cpu" or "onednn" not in torch.backends.quantized.supported_engines:
        raise ValueError("precision: int8 needs --device cpu and a torch built with oneDNN; use bf16 instead")
    return "int8"


def limit_threads(number: int | None) -> None:
    """Let torch use so many CPU threads; None leaves it to torch.

    Raises:
        ValueError: fewer than one.
    """
    if number is None:
        return
    if number < 1:
        raise ValueError(f"threads (--threads): expected 1 or more, found {number}")
    torch.set_num_threads(number)


def autocast(device: torch.device, precision: SearchPrecision) -> AbstractContextManager[object]:
    """Context in which matrix products run in ``precision``; parameters stay float32. int8 is the model's business."""
    if precision != "bf16":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


@contextmanager
def tf32(device: torch.device, wanted: bool) -> Iterator[None]:
    """Context in which a GPU may round the factors of float32 matrix products to TF32 (10 bits of mantissa)."""
    if device.type != "cuda":
        yield
        return
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = wanted
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


def keep_freed_memory() -> None:
    """Have the C library keep what this process frees for its next tensors, instead of giving it back to the system.

    On a CPU every activation is a block of megabytes. The allocator of glibc gives such blocks back as soon as they are
    free, and the system clears every page anew when the next layer asks: a tenth of the time of an update. Does nothing
    where the C library is another.
    """
    mallopt = _of_the_c_library("mallopt")
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h
        mallopt(mmap_threshold, 1 << 30)  # blocks below 1 GiB come from the heap ...
        mallopt(trim_threshold, (1 << 31) - 1)  # ... whose end is given back only beyond 2 GiB


def give_back_freed_memory() -> None:
    """Give back what :func:`keep_freed_memory` keeps.

    To be called at intervals: batches of ever other shapes leave gaps between blocks, which add up to gigabytes.
    """
    malloc_trim = _of_the_c_library("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def _of_the_c_library(name: str) -> Any:
    """A function that glibc has, or None."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform.startswith("linux") else None


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has done what it was told to do, so that a clock can be read. A CPU is never behind."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
