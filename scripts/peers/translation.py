"""The comparison of translation: one trained Transformer, the same numbers in every toolkit, the same text.

OpenNMT-py gets the parameters under its own names (opennmt_checkpoint.py), CTranslate2 what ``nmt.export`` writes.
Every side searches with the same beam, the same score and as many source tokens at once, hypotheses included, and is
done with a sentence when as many translations have ended as the beam is wide. OpenNMT-py usually stops sooner, when the
best hypothesis has ended; it is measured in that way too.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from .corpus import REPOSITORY
from .environments import PeerError, tail
from .report import Record
from .translate_runner import Task
from .turns import child_environment, install, probe, say, turns

RUNNER = Path(__file__).with_name("translate_runner.py")
RUN_SECONDS = 3600
EXPORT_SECONDS = 600


@dataclass(frozen=True)
class Side:
    """One row of the table."""

    name: str
    toolkit: str
    model: str  # which form of the checkpoint: a key of what `models` gives
    precision: str
    workers: int = 1  # that share the threads
    shortlist: str | None = None  # see Task, as the next one
    whole_beam: bool = False

    def task(self, models: dict[str, str], arguments: argparse.Namespace, source: Path, tokenizers: list[str]) -> Task:
        """What its process is told."""
        return Task(
            toolkit=self.toolkit,
            model=models[self.model],
            tokenizers=tokenizers,
            input=str(source),
            beams=arguments.beam_size,
            alpha=arguments.alpha,
            batch_tokens=arguments.batch_tokens,
            warm_up=arguments.warm_up,
            workers=self.workers,
            threads=max(1, arguments.threads // self.workers),
            precision=self.precision,
            longest=arguments.longest,
            shortlist=self.shortlist,
            whole_beam=self.whole_beam,
        )


def sides(precisions: Sequence[str], shortlist: str | None, threads: int) -> list[Side]:
    """The peers first; CTranslate2 and ours also with a worker for every thread.

    Args:
        precisions: of our own sides.
        shortlist: a file, for more sides of our own.
        threads: of every side, all workers together.
    """
    opennmt = Side("OpenNMT-py 3.5.1 fp32", "opennmt", "opennmt", "fp32")
    rows = [opennmt, replace(opennmt, name=f"{opennmt.name}, whole beam", whole_beam=True)]
    workers = [(number, f", {number} workers" if number > 1 else "") for number in dict.fromkeys((1, threads))]
    for (number, note), name in product(workers, ("float32", "int8")):
        rows.append(Side(f"CTranslate2 4.8.5 {name}{note}", "ctranslate2", name, name, number))
    for (number, note), name in product(workers, precisions):
        rows.append(Side(f"nmt {name}{note}", "nmt", "nmt", name, number))
    if shortlist is not None:
        rows += [
            replace(side, name=f"{side.name}, shortlist", shortlist=shortlist) for side in rows if side.toolkit == "nmt"
        ]
    return rows


def models(run: Path, work: Path) -> dict[str, str]:
    """The trained model in every form that a side reads.

    Raises:
        PeerError: it cannot be converted.
    """
    from .opennmt_checkpoint import convert

    folder = work / "models"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    convert(run, folder / "opennmt.pt")
    found = {"nmt": str(run), "opennmt": str(folder / "opennmt.pt")}
    for name in ("float32", "int8"):
        command = [sys.executable, "-m", "nmt.export", "--checkpoint", str(run), "--format", "ctranslate2"]
        command += ["--output", str(folder / name), "--quantization", name]
        done = subprocess.run(command, cwd=REPOSITORY, env=child_environment(1), timeout=EXPORT_SECONDS)
        if done.returncode != 0:
            raise PeerError(f"nmt.export failed with status {done.returncode}; its message is above")
        found[name] = str(folder / name)
    return found


def compare(arguments: argparse.Namespace, keep: Callable[[list[Record]], None]) -> list[Record]:
    """All rounds; the records of all runs so far go to ``keep`` after each."""
    from nmt.checkpoint import resolve
    from nmt.data.tokenizer import TokenizerPair

    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    lines, references = texts(arguments)
    source = work / "source.txt"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    run = resolve(arguments.checkpoint).resolve()
    say("converting the model")
    forms = models(run, work)
    pair = TokenizerPair.load(run)
    names = ("tokenizer.model", "tokenizer.model") if pair.joint else ("source.model", "target.model")
    tokenizers = [str(run / name) for name in names]
    pythons, failures = install(["opennmt", "ctranslate2"], work)
    shortlist = None if arguments.shortlist is None else str(arguments.shortlist.resolve())
    records: list[Record] = []
    for number, order, side in turns(arguments.rounds, sides(arguments.precision, shortlist, arguments.threads)):
        record: Record = {"side": side.name, "round": number, "order": order, "toolkit": side.toolkit}
        record |= probe(arguments.threads)
        if side.toolkit in pythons:
            task = side.task(forms, arguments, source, tokenizers)
            record |= run_side(task, pythons[side.toolkit], work, references, pair)
        else:
            record["error"] = failures[side.toolkit]
        records.append(record)
        say(line(record))
        keep([without_texts(one) for one in records])
    return records


def without_texts(record: Record) -> Record:
    """The same for a file of figures."""
    if "result" not in record:
        return record
    passes = [{name: value for name, value in one.items() if name != "texts"} for one in record["result"]["passes"]]
    return {**record, "result": {**record["result"], "passes": passes}}


def texts(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """What to translate, and the references.

    Raises:
        PeerError: they do not match line by line, or a line is blank (not every toolkit takes one).
    """
    from nmt.data.corpus import clean_line, is_blank, read_lines

    lines, references = list(read_lines(arguments.input)), list(read_lines(arguments.reference))
    if len(lines) != len(references) or not lines:
        raise PeerError(f"--input has {len(lines)} lines, --reference {len(references)}: they must match line by line")
    if any(map(is_blank, lines)):
        raise PeerError(f"--input {arguments.input}: a line is blank; not every toolkit takes that")
    return [clean_line(text)[0] for text in lines], references


def run_side(task: Task, python: str, work: Path, references: list[str], tokenizers: Any) -> dict[str, Any]:
    """Translate with one side; what it took and how good it was, or its error, as a part of its record."""
    from nmt.evaluation.metrics import bleu

    folder = work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "task.json").write_text(json.dumps(asdict(task)), encoding="utf-8")
    env = child_environment(task.threads)
    if task.toolkit != "nmt":
        del env["PYTHONPATH"]
    command = [python, str(RUNNER), str(folder / "task.json"), str(folder / "result.json")]
    try:
        finish(command, folder / "log.txt", REPOSITORY if task.toolkit == "nmt" else folder, env)
    except PeerError as error:
        return {"error": str(error)}
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    for one in result["passes"]:
        text = (folder / f"result.json.beam{one['beam']}").read_text(encoding="utf-8")
        hypotheses = text.removesuffix("\n").split("\n")
        one |= {
            "sentences_per_second": one["sentences"] / one["seconds"],
            "tokens": sum(len(ids) + 1 for ids in tokenizers.target.encode_batch(hypotheses)),
            "bleu": bleu(hypotheses, references).value,
            "texts": hypotheses,
        }
    return {"result": result}


def finish(command: list[str], log: Path, cwd: Path, env: dict[str, str]) -> None:
    """Run a command to its end, and end whatever it has started.

    Raises:
        PeerError: it failed, or took too long.
    """
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL, cwd=cwd, env=env, start_new_session=True
        )
    try:
        status = process.wait(RUN_SECONDS)
    except subprocess.TimeoutExpired:
        raise PeerError(f"not done after {RUN_SECONDS} seconds\n{tail(log)}") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if status != 0:
        raise PeerError(f"ended with status {status}\n{tail(log)}")


def line(record: Record) -> str:
    """Progress, for people."""
    what = f"round {record['round']}, {record['side']}"
    if "error" in record:
        return f"{what}: failed\n{record['error']}"
    passes = ", ".join(
        f"beam {one['beam']} {one['sentences_per_second']:,.1f} sentences/s, BLEU {one['bleu']:.2f}"
        for one in record["result"]["passes"]
    )
    return f"{what}: {passes}"
