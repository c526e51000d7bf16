"""The command; see the package."""

import argparse
import json

import torch

import nmt.benchmark
from nmt.analysis.benchmark_report import machine, machine_line
from nmt.benchmark import memory, paths, scaling, train, translate
from nmt.benchmark.options import add_common
from nmt.cli import CommandParser, run
from nmt.device import keep_freed_memory
from nmt.training.distributed import connect

TIMEOUT = 600.0
"""Seconds that one of several processes waits for the others, which may be measuring memory."""


def parser() -> CommandParser:
    """Command line of ``nmt.benchmark``."""
    parser = CommandParser("nmt.benchmark", nmt.benchmark.__doc__)
    commands = parser.add_subparsers(dest="what", required=True, metavar="WHAT", prog="nmt.benchmark")
    modules = (("train", train), ("memory", memory), ("translate", translate), ("scaling", scaling), ("paths", paths))
    for name, module in modules:
        text = str(module.__doc__)
        command = commands.add_parser(name, help=text.split("\n", 1)[0], description=text)
        command.set_defaults(work=module.measure)
        module.add_options(command)
        add_common(command)
    return parser


def main() -> None:
    """Read the command line and measure."""
    arguments: argparse.Namespace = parser().parse_args()
    if arguments.json is not None and not arguments.json.parent.is_dir():
        raise ValueError(f"--json {arguments.json}: no folder {arguments.json.parent}; make it first")
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    keep_freed_memory()  # as training does
    with connect(arguments.device, TIMEOUT) as processes:
        facts = machine(processes.device(arguments.device)) | {"processes": processes.size}
        if processes.is_main:
            print(machine_line(facts), end="\n\n", flush=True)
        figures = arguments.work(arguments, processes)
        if arguments.json is not None and processes.is_main:
            text = json.dumps({"machine": facts, **figures}, indent=2)
            arguments.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    run(main)
