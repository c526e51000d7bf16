"""Train the same two models in JoeyNMT, in OpenNMT-py and here, in turn, and print target tokens/s of all sides.

    python scripts/compare_peers.py --data FOLDER --rounds 3 --seconds 40 --models T R > peers.md

FOLDER holds train.de, train.en, val.de and val.en (plain or compressed), such as Multi30k. The peers are installed from
the package index, each into an environment of its own under --work; environments and prepared data are reused by the
next call. All sides read the same subwords, have the same token budget a batch and the same recipe (peers/sides.py),
neither validate nor save while they are timed, and are counted by the same clock (peers/runner.py). A round runs every
side once, each after a matrix product whose rate shows how fast the machine is just then; even rounds go backwards.

Markdown goes to stdout; all runs so far, after each of them, to --output as JSON. Status 1 if one of our own sides
failed; a peer that does is reported, and the rest goes on. A run takes --warm-up and --seconds and some 20 seconds
more, and there are 13 of them in a round of both models: the command above takes about 50 minutes, and 5 more the first
time. Nothing else should run on the machine.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from peers.corpus import REPOSITORY, Corpus, our_environment, prepare
from peers.environments import PEERS, PeerError, environment
from peers.measure import measure
from peers.report import Record, markdown
from peers.sides import BATCH_TOKENS, Side, sides

PROBE = Path(__file__).resolve().parent / "peers" / "probe.py"
PROBE_SECONDS = 120


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="FOLDER", help="holds train.<language> and val.<language>")
    add("--source", default="de", metavar="LANGUAGE", help="translated from (default: %(default)s)")
    add("--target", default="en", metavar="LANGUAGE", help="translated into (default: %(default)s)")
    add("--models", nargs="+", choices=["T", "R"], default=["T", "R"], help="(default: both)")
    add("--rounds", type=int, default=3, metavar="N", help="runs of every side (default: %(default)s)")
    add("--seconds", type=float, default=60, metavar="S", help="measured in every run (default: %(default)s)")
    add("--warm-up", type=float, default=10, metavar="S", help="trained before that (default: %(default)s)")
    add("--threads", type=int, default=os.cpu_count(), metavar="N", help="of every side (default: all cores)")
    add("--work", type=Path, default=Path("runs/peers"), metavar="DIR", help="what is kept (default: %(default)s)")
    add("--output", type=Path, metavar="FILE", help="JSON of all runs (default: peers.json in --work)")
    our = "for our own runs, as nmt.train takes them"
    add("--override", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help=our)
    parsed = parser.parse_args(arguments)
    for name in ("rounds", "seconds", "threads"):
        if getattr(parsed, name) <= 0:
            parser.error(f"--{name}: expected a number above 0, found {getattr(parsed, name)}")
    if parsed.warm_up < 0:
        parser.error(f"--warm-up: expected 0 or more, found {parsed.warm_up}")
    for name in (f"{split}.{language}" for split in ("train", "val") for language in (parsed.source, parsed.target)):
        if not any(parsed.data.glob(f"{name}*")):
            parser.error(f"--data: {parsed.data} holds no {name}")
    return parsed


def torch_version() -> str:
    """The release that runs us, without the build behind the plus sign: CPU and GPU builds are called the same."""
    from importlib.metadata import version

    return version("torch").split("+")[0]


def install(work: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The interpreter of every toolkit that could be installed, and the message of every one that could not."""
    pythons, failures = {"nmt": sys.executable}, {}
    for name in PEERS:
        say(f"environment of {name}")
        try:
            pythons[name] = str(environment(name, work, torch_version()))
        except PeerError as error:
            failures[name] = str(error)
            say(str(error))
    return pythons, failures


def probe(threads: int) -> dict[str, Any]:
    """GFLOP/s of a matrix product by precision, as a part of a record; nothing if there is no telling."""
    command, env = [sys.executable, str(PROBE), str(threads)], child_environment(threads)
    try:
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, timeout=PROBE_SECONDS, check=True)
    except subprocess.SubprocessError as error:
        say(f"no probe: {error}")
        return {}
    return {"probe": json.loads(done.stdout)}


def child_environment(threads: int) -> dict[str, str]:
    """Environment of everything that is timed: ours, with the number of threads."""
    return {**our_environment(), "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


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


def compare(arguments: argparse.Namespace, settings: dict[str, Any]) -> list[Record]:
    """All rounds of all models; the records of all runs, written to --output after each."""
    work = arguments.work.resolve()
    say("preparing the data")
    corpus = prepare(arguments.data.resolve(), arguments.source, arguments.target, work)
    pythons, failures = install(work)
    output = arguments.output or work / "peers.json"
    records: list[Record] = []
    for number in range(1, arguments.rounds + 1):
        for model in arguments.models:
            entries = list(enumerate(sides(model, arguments.override)))
            for order, side in entries if number % 2 else reversed(entries):
                record: Record = {"model": model, "side": side.name, "round": number, "order": order}
                record |= {"toolkit": side.toolkit, **probe(arguments.threads)}
                if side.toolkit in pythons:
                    record |= run_side(side, pythons[side.toolkit], corpus, work, arguments)
                else:
                    record["error"] = failures[side.toolkit]
                records.append(record)
                say(line(record))
                output.write_text(json.dumps({**settings, "runs": records}, indent=2) + "\n", encoding="utf-8")
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


def say(message: str) -> None:
    """A line of progress on stderr."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


def main() -> None:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is running is ended as well
    settings = {
        "torch": torch_version(),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "threads": arguments.threads,
        "seconds": arguments.seconds,
        "warm_up": arguments.warm_up,
        "batch_tokens": BATCH_TOKENS,
        "override": arguments.override,
    }
    records = compare(arguments, settings)
    title = (
        f"torch {settings['torch']}, {settings['machine']}, {arguments.threads} threads, batches of up to "
        f"{BATCH_TOKENS:,} tokens with padding, {arguments.seconds:g} s measured after {arguments.warm_up:g} s of "
        f"training, in every run. {' '.join(arguments.override)}"
    )
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print(markdown(title.strip(), records), end="", flush=True)
    if any("error" in record and record["toolkit"] == "nmt" for record in records):
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except PeerError as error:
        sys.exit(f"error: {error}")
