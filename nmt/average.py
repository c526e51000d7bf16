"""Average the weights of several checkpoints of one run, as Vaswani et al. (2017), section 6.1, do.

    python -m nmt.average --run runs/demo_transformer_s1 --last 5 --output averaged
    python -m nmt.average --checkpoints runs/X/checkpoints/step_001000 runs/X/checkpoints/step_002000 --output averaged

Writes a checkpoint folder that every other command takes. Checkpoints of runs that began with different parameters
have no mean that is of use, even where their configurations are equal. Training makes an average of its own at its end
(training.average_last), under checkpoints/average.
"""

import sys
from pathlib import Path

from nmt import checkpoint
from nmt.averaging import average
from nmt.checkpoint import Checkpoint, CheckpointError
from nmt.cli import CommandParser, run
from nmt.training.resume import changes
from nmt.training.start import FREE


def parser() -> CommandParser:
    """Command line of ``nmt.average``."""
    parser = CommandParser("nmt.average", __doc__)
    add = parser.add_argument
    add("--checkpoints", type=Path, nargs="+", action="extend", metavar="PATH", help="two or more checkpoint folders")
    add("--run", type=Path, metavar="DIR", help="a run folder, of which take ...")
    add("--last", type=int, metavar="N", help="... the N newest checkpoints")
    add("--output", type=Path, required=True, metavar="DIR", help="the checkpoint folder to write; must not exist yet")
    return parser


def main() -> None:
    arguments = parser().parse_args()
    if arguments.output.exists():
        raise ValueError(f"output (--output): {arguments.output} exists already; name a new folder")
    folders = chosen(arguments.checkpoints, arguments.run, arguments.last)
    loaded = [checkpoint.load(folder) for folder in folders]
    check_alike(loaded)
    newest = max(loaded, key=lambda each: each.step)
    checkpoint.load_into(newest.model, average(folders), newest.path)
    weights = newest.model.state_dict()
    checkpoint.save(arguments.output, weights, newest.tokenizers, newest.config, newest.step)
    print(f"written: {arguments.output}: mean of {len(folders)}: {', '.join(map(str, folders))}", file=sys.stderr)


def chosen(checkpoints: list[Path] | None, run: Path | None, last: int | None) -> list[Path]:
    """The checkpoint folders that the options mean.

    Raises:
        ValueError: options that do not go together, fewer than two checkpoints, one of them twice.
    """
    if (checkpoints is None) == (run is None) or (run is None) != (last is None):
        raise ValueError("expected either --checkpoints A B ... or --run DIR with --last N")
    if checkpoints is not None:
        folders = [checkpoint.resolve(path) for path in checkpoints]
        for place, folder in enumerate(folders):
            if folder.resolve() in [other.resolve() for other in folders[:place]]:
                raise ValueError(f"--checkpoints: {checkpoints[place]} is {folder}, which is there already")
        if len(folders) < 2:
            raise ValueError("--checkpoints: one checkpoint has no other to be averaged with; name two or more")
        return folders
    assert run is not None
    assert last is not None
    if last < 2:
        raise ValueError(f"--last: expected 2 or more, found {last}")
    folders = checkpoint.step_folders(run / "checkpoints")
    if len(folders) < last:
        raise ValueError(
            f"--last: {run} holds {len(folders)} checkpoints, {last} are wanted; training.keep_last says how many a "
            "run keeps"
        )
    return folders[-last:]


def check_alike(loaded: list[Checkpoint]) -> None:
    """Refuse to average weights that do not mean the same.

    Raises:
        CheckpointError: models or tokenizers differ; names every key.
    """
    first = loaded[0]
    for other in loaded[1:]:
        differing = changes(first.config.model, other.config.model, "model").items()
        keys = [f"{key} ({one} and {two})" for key, (one, two) in differing if key not in FREE]
        if keys:
            raise CheckpointError(f"{first.path} and {other.path} hold different models: {'; '.join(keys)}")
        if first.tokenizers.digest != other.tokenizers.digest:
            raise CheckpointError(f"{first.path} and {other.path} have different tokenizers")


if __name__ == "__main__":
    run(main)
