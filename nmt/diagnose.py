"""Look into a trained model: where attention looks, how good an aligner it is, whether it explains anything;
whether anything is wrong with the model, what its memory keeps of the source, and what prefixes of its own cost it.

    python -m nmt.diagnose --checkpoint runs/demo_bahdanau_s1 --output diagnosis
    python -m nmt.diagnose --checkpoint runs/X --parts maps --input in.txt --output diagnosis
    python -m nmt.diagnose --checkpoint runs/X --reverse-checkpoint runs/Y --parts alignment \\
        --gold links.txt --gold-source gold.en --gold-target gold.fr

Text goes to stdout; --output gets it as diagnosis.md, with every figure in diagnosis.json, and the pictures. Parts that
the model or the given files do not allow are left out, with the reason. The status is 0 whatever is found, but 3 when
the model breaks what every model promises (part health), with a line on stderr that says what.
"""

import argparse
import json
import sys
from pathlib import Path

from nmt.alignment import AttentionChoice
from nmt.analysis.alignment_report import alignment
from nmt.analysis.attention_maps import maps
from nmt.analysis.bottleneck_report import bottleneck
from nmt.analysis.diagnosis import Diagnosis, Part, Subject, diagnose
from nmt.analysis.evaluated_runs import write_text
from nmt.analysis.explanation_report import explanation
from nmt.analysis.exposure_report import exposure
from nmt.analysis.gold import GoldFiles
from nmt.analysis.health_report import health
from nmt.checkpoint import Checkpoint, load
from nmt.cli import (
    CommandParser,
    add_align_arguments,
    add_checkpoint_argument,
    add_device_arguments,
    add_search_arguments,
    run,
    search_config,
)
from nmt.data.corpus import in_step, read_lines
from nmt.device import resolve_device, resolve_precision

PARTS: dict[str, Part] = {
    "maps": maps,
    "alignment": alignment,
    "explanation": explanation,
    "health": health,
    "bottleneck": bottleneck,
    "exposure": exposure,
}
"""In the order of the report."""

BROKEN = 3
"""Exit status when the model breaks what every model promises: neither the user's mistake nor the machine's."""


def parser() -> CommandParser:
    """Command line of ``nmt.diagnose``."""
    parser = CommandParser("nmt.diagnose", __doc__)
    add = parser.add_argument
    add_checkpoint_argument(parser)
    add("--parts", nargs="+", choices=list(PARTS), help="which (default: all that can be)")
    add("--input", type=Path, metavar="FILE", help="sentences to look at (default: the run's validation set)")
    add(
        "--reference",
        type=Path,
        metavar="FILE",
        help="lead the model along these, line by line (default: its own translations)",
    )
    add(
        "--sentences",
        type=int,
        default=100,
        metavar="N",
        help="how many explanation and health look at (default: %(default)s)",
    )
    add("--pairs", type=int, default=500, metavar="N", help="bottleneck and exposure look at (default: %(default)s)")
    add("--probe-updates", type=int, default=300, metavar="N", help="of bottleneck's probes (default: %(default)s)")
    add("--probe-sentences", type=int, default=10000, metavar="N", help="those are trained on (default: %(default)s)")
    add("--maps", type=int, default=3, metavar="N", help="how many have a picture (default: %(default)s)")
    add("--output", type=Path, metavar="FOLDER", help="for text, figures and pictures")
    add("--tensorboard", type=Path, metavar="FOLDER", help="attention as images there, too")
    add("--seed", type=int, default=1, metavar="S", help="of all that is drawn (default: %(default)s)")
    add_align_arguments(parser)
    group = parser.add_argument_group(
        "gold alignments", "without them alignment is for the demo's data, which brings its own"
    )
    add = group.add_argument
    add("--gold", type=Path, metavar="FILE", help="links: Pharaoh (0-0 sure, 0?0 or 0p0 possible) or NAACL, see docs")
    add("--gold-source", type=Path, metavar="FILE", help="the sentences, their words between spaces")
    add("--gold-target", type=Path, metavar="FILE", help="their translations")
    add("--gold-possible", type=Path, metavar="FILE", help="possible links, where they have a file of their own")
    add("--gold-base", type=int, choices=[0, 1], default=0, help="Pharaoh: the first word's number (default: 0)")
    add("--gold-inverse", action="store_true", help="links are target-source")
    add(
        "--gold-detokenize",
        action="store_true",
        help="the gold text is tokenised: let the model read it as people write it",
    )
    add(
        "--reverse-checkpoint",
        type=Path,
        metavar="PATH",
        help="a model of the other direction, for alignments symmetrised",
    )
    add_search_arguments(parser)
    add_device_arguments(parser)
    return parser


def main() -> None:
    arguments = parser().parse_args()
    subject = _subject(arguments)
    found = diagnose(subject, PARTS, arguments.parts)
    if not found.findings:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
        raise ValueError(f"nothing to say about {arguments.checkpoint}: {reasons}")
    text = _text(subject.checkpoint, found)
    print(text)
    if arguments.output is not None:
        _write(arguments.output, text, found)
    if arguments.tensorboard is not None:
        _show(arguments.tensorboard, subject.checkpoint, found)
    failures = [finding.failure for finding in found.findings.values() if finding.failure is not None]
    if failures:
        sys.stdout.flush()  # a reader who has gone away is no error here, either
        _say(f"broken: {'; '.join(failures)}")
        sys.exit(BROKEN)


def _subject(arguments: argparse.Namespace) -> Subject:
    """What the command line asks to look at.

    Raises:
        ValueError: an option that lacks its partner, a missing file, a number out of range.
    """
    if arguments.reference is not None and arguments.input is None:
        raise ValueError("--reference: translations of which sentences? give them with --input")
    for name in ("sentences", "pairs", "probe_sentences", "probe_updates", "maps"):
        if (value := getattr(arguments, name)) < 1:
            name = "--" + name.replace("_", "-")
            raise ValueError(f"{name}: expected 1 or more, found {value}")
    if arguments.output is not None and arguments.output.is_file():
        raise ValueError(f"--output {arguments.output}: is a file; expected a folder, or a name for a new one")
    if arguments.tensorboard is not None and arguments.output is None:
        raise ValueError("--tensorboard: shows the pictures that --output gets; give both")
    device = resolve_device(arguments.device)
    if arguments.precision == "int8":
        raise ValueError("precision (--precision): gradients and weights are looked at in fp32 or bf16, not in int8")
    checkpoint = load(arguments.checkpoint, device)
    lines, references = _lines(arguments.input, arguments.reference)
    return Subject(
        checkpoint,
        device,
        resolve_precision(arguments.precision, device),
        search_config(arguments, checkpoint.config.search),
        _say,
        AttentionChoice(arguments.align_layer, "mean" if arguments.align_head is None else arguments.align_head),
        _reverse(arguments, checkpoint),
        lines,
        references,
        _gold(arguments, checkpoint),
        arguments.sentences,
        arguments.maps,
        arguments.seed,
        arguments.output,
        arguments.pairs,
        arguments.probe_sentences,
        arguments.probe_updates,
    )


def _lines(source: Path | None, reference: Path | None) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    if source is None:
        return None, None
    if reference is None:
        return tuple(read_lines(source)), None
    pairs = list(in_step(read_lines(source), read_lines(reference), str(source), str(reference)))
    return tuple(line for line, _ in pairs), tuple(line for _, line in pairs)


def _reverse(arguments: argparse.Namespace, checkpoint: Checkpoint) -> Checkpoint | None:
    if arguments.reverse_checkpoint is None:
        return None
    reverse = load(arguments.reverse_checkpoint, resolve_device(arguments.device))
    ours, theirs = ((each.config.data.source, each.config.data.target) for each in (checkpoint, reverse))
    if theirs != ours[::-1]:
        raise ValueError(
            f"--reverse-checkpoint {arguments.reverse_checkpoint}: translates {theirs[0]} to {theirs[1]}, "
            f"expected {ours[1]} to {ours[0]}"
        )
    if not reverse.model.attends:
        raise ValueError(f"--reverse-checkpoint {arguments.reverse_checkpoint}: a fixed-vector model has no attention")
    return reverse


def _gold(arguments: argparse.Namespace, checkpoint: Checkpoint) -> GoldFiles | None:
    files = {name: getattr(arguments, name) for name in ("gold", "gold_source", "gold_target")}
    missing = [f"--{name.replace('_', '-')}" for name, path in files.items() if path is None]
    if len(missing) == len(files):
        more = [name for name in ("gold_possible", "gold_inverse", "gold_detokenize") if getattr(arguments, name)]
        if more or arguments.gold_base:
            raise ValueError("--gold-...: which gold? give --gold, --gold-source and --gold-target")
        return None
    if missing:
        raise ValueError(f"--gold, --gold-source and --gold-target go together: {' and '.join(missing)} missing")
    data = checkpoint.config.data
    return GoldFiles(
        arguments.gold_source,
        arguments.gold_target,
        arguments.gold,
        arguments.gold_possible,
        arguments.gold_base,
        arguments.gold_inverse,
        (data.source, data.target) if arguments.gold_detokenize else None,
    )


def _text(checkpoint: Checkpoint, found: Diagnosis) -> str:
    blocks = [f"# Diagnosis of {checkpoint.path}"]
    blocks += [f"## {finding.heading}\n\n{finding.text}" for finding in found.findings.values()]
    if found.left_out:
        blocks.append("## Left out\n\n" + "\n".join(f"- {name}: {why}" for name, why in found.left_out.items()))
    return "\n\n".join(blocks)


def _write(folder: Path, text: str, found: Diagnosis) -> None:
    """Text, figures, pictures; the text shows the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    for finding in found.findings.values():
        for name, figure in finding.figures.items():
            figure.savefig(folder / f"{name}.png")
            pictures.append(f"![{finding.heading}: {name.replace('_', ' ')}]({name}.png)")
    tree = {name: finding.tree for name, finding in found.findings.items()} | {"left_out": found.left_out}
    write_text(folder / "diagnosis.json", json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_text(folder / "diagnosis.md", "\n\n".join([text, *pictures]) + "\n")
    _say(f"written: {folder}")


def _show(folder: Path, checkpoint: Checkpoint, found: Diagnosis) -> None:
    """Maps for TensorBoard, at the step of the checkpoint."""
    from torch.utils.tensorboard import SummaryWriter  # slow to import

    with SummaryWriter(str(folder)) as board:
        for finding in found.findings.values():
            for name in finding.images:
                board.add_figure(f"attention/{name}", finding.figures[name], checkpoint.step)


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run(main)
