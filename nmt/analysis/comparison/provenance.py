"""What one needs to make a report again."""

import platform
from collections.abc import Sequence

from nmt.analysis.comparison.runs import LoadedRun
from nmt.analysis.comparison.tree import Provenance
from nmt.analysis.document import Code, Entries, Section, Table
from nmt.device import cores
from nmt.machine import processor


def provenance(runs: Sequence[LoadedRun], text: str, commands: Sequence[str], data: Sequence[str]) -> Provenance:
    """Commands, versions, hardware, data and dates of evaluated runs.

    Args:
        runs: with an evaluation of the text.
        text: its name.
        commands: that were given after training.
        data: names and fingerprints of the training text, as far as they are known.
    """
    versions: dict[str, str] = {}
    for run in runs:
        versions |= run.evaluations[text].metrics["versions"] | run.summary.get("versions", {})
    hardware = [
        f"trained on {made['cpu'] if made['device'] == 'cpu' else made['device']}, {made['cores']} cores, "
        f"threads: {run.summary['threads']}, {run.summary['precision']}"
        for run in runs
        if (made := run.summary.get("hardware")) is not None
    ]
    hardware.append(f"evaluated on {processor()}, {cores()} cores")
    dates = [run.summary["finished"][:10] for run in runs if "finished" in run.summary]
    return Provenance(
        (*dict.fromkeys(map(_command, runs)), *commands),
        dict(sorted(versions.items())) or {"python": platform.python_version()},
        tuple(dict.fromkeys(hardware)),
        tuple(data or sorted({run.config.data.name for run in runs})),
        (f"trained {min(dates)} to {max(dates)}",) if dates else (),
    )


def _command(run: LoadedRun) -> str:
    """What trained a run; its configuration where that was not written down."""
    made = run.summary.get("command")
    return str(made) if made else f"# {run.name}: its command is not on record; all of it stands in its config.yaml"


def provenance_section(made: Provenance) -> Section:
    """The last part of a report."""
    facts = [("data", made.data), ("hardware", made.hardware), ("dates", made.dates)]
    return Section(
        "How to do it again",
        [
            Code("\n".join(made.commands)),
            Table(["package", "version"], list(made.versions.items()), left=(0, 1)),
            Entries([(name, "; ".join(lines)) for name, lines in facts if lines]),
        ],
    )
