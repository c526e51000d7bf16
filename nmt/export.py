"""Write a trained model in the format of another program.

    python -m nmt.export --checkpoint runs/X --format ctranslate2 --output exported
    python -m nmt.export --checkpoint runs/X --format ctranslate2 --output exported_int8 --quantization int8
    python -m nmt.export --checkpoint runs/X --format huggingface --output exported_hf
    python -m nmt.export --checkpoint runs/X --format torch-export --output exported_torch

The output is a new folder; it appears under its name when everything is in it.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nmt import checkpoint
from nmt.checkpoint import Checkpoint
from nmt.cli import CommandParser, add_checkpoint_argument, naming, run
from nmt.data.staging import publish
from nmt.formats import Options, ctranslate2, huggingface, torch_export

FORMATS: dict[str, Callable[[Checkpoint, Path, Options], None]] = {
    "ctranslate2": ctranslate2.export,
    "huggingface": huggingface.export,
    "torch-export": torch_export.export,
}
"""Each writes into an empty folder."""

QUANTIZATIONS = ["int8", "int8_float32", "int16", "float16", "bfloat16", "float32"]


def parser() -> CommandParser:
    """Command line of ``nmt.export``."""
    parser = CommandParser("nmt.export", __doc__)
    add = parser.add_argument
    add_checkpoint_argument(parser)
    add("--format", choices=sorted(FORMATS), required=True, help="what to write")
    add("--output", type=Path, required=True, metavar="DIR", help="a folder that is not there yet, or is empty")
    add(
        "--quantization",
        choices=QUANTIZATIONS,
        help="ctranslate2: number format of the stored matrices (default: float32)",
    )
    return parser


def main() -> None:
    arguments = parser().parse_args()
    with whole_folder(arguments.output) as folder:
        found = checkpoint.load(arguments.checkpoint)
        FORMATS[arguments.format](found, folder, Options(arguments.quantization))
    print(f"{found.path} (update {found.step}) as {arguments.format}: {arguments.output}", file=sys.stderr)


@contextmanager
def whole_folder(output: Path) -> Iterator[Path]:
    """An empty folder to write files into; it becomes ``output``, flushed to disk, when the context is left in peace.

    Raises:
        ValueError: ``output`` holds something already, or there is no folder to put it in.
    """
    final = Path(os.path.realpath(output))  # through a link to what it points to
    if not final.parent.is_dir():
        raise ValueError(f"output (--output): no folder {final.parent}; make it first")
    if final.exists() and not final.is_dir():
        raise ValueError(f"output (--output): {output} is a file; name a folder that is not there yet")
    if final.exists() and any(final.iterdir()):
        raise ValueError(f"output (--output): {output} is not empty; remove it or name another folder")
    with tempfile.TemporaryDirectory(prefix=f".{final.name}.", suffix=".part", dir=final.parent) as temporary:
        folder = Path(temporary) / final.name
        folder.mkdir()
        with naming(output):
            yield folder
            publish(folder, final)


if __name__ == "__main__":
    run(main)
