"""The comparison of training: every side trains for a while."""

import argparse
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .corpus import REPOSITORY, Corpus, prepare
from .environments import PeerError
from .measure import measure
from .report import Record
from .sides import Side, sides
from .turns import child_environment, install, probe, say, turns


def run_side(side: Side, python: str, corpus: Corpus, work: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train one side; its speed or its error, as a part of its record."""
    folder = work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    share = max(1, arguments.threads // side.processes)
    env = child_environment(share)
    if side.toolkit != "nmt":
        del env["PYTHONPATH"]
    command = side.command(python, folder / "log", share, side.arguments(corpus, folder))
    cwd = REPOSITORY if side.toolkit == "nmt" else folder
    try:
        speed = measure(command, folder / "log", side.processes, cwd, env, arguments.warm_up, arguments.seconds)
    except PeerError as error:
        return {"error": str(error)}
    return {"speed": asdict(speed)}


def compare(arguments: argparse.Namespace, keep: Callable[[list[Record]], None]) -> list[Record]:
    """All rounds of all models; the records of all runs so far go to ``keep`` after each."""
    work = arguments.work.resolve()
    say("preparing the data")
    corpus = prepare(arguments.data.resolve(), arguments.source, arguments.target, work)
    pythons, failures = install(["joeynmt", "opennmt"], work)
    records: list[Record] = []
    entries = [(model, side) for model in arguments.models for side in sides(model, arguments.override)]
    for number, order, (model, side) in turns(arguments.rounds, entries):
        record: Record = {"model": model, "side": side.name, "round": number, "order": order}
        record |= {"toolkit": side.toolkit, **probe(arguments.threads)}
        if side.toolkit in pythons:
            record |= run_side(side, pythons[side.toolkit], corpus, work, arguments)
        else:
            record["error"] = failures[side.toolkit]
        records.append(record)
        say(line(record))
        keep(records)
    return records


def line(record: Record) -> str:
    """Progress, for people."""
    what = f"round {record['round']}, {record['model']}, {record['side']}"
    if "error" in record:
        return f"{what}: failed\n{record['error']}"
    speed = record["speed"]
    return (
        f"{what}: {speed['tokens_per_second']:,.0f} target tokens/s over {speed['seconds']:.0f} s, "
        f"{speed['tokens_per_update']:,.0f} an update, {speed['parameters']:,} parameters"
    )
