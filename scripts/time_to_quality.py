"""Train the three models on Multi30k and say after how many minutes each reached a validation BLEU.

    python scripts/time_to_quality.py --processes 2                     # text from the Hugging Face Hub
    python scripts/time_to_quality.py data.folder=PATH runs=runs/fast   # or from local files; any key of configs/

One process per core, validations included in the time, everything before the first update (imports, preparing the data)
not. Finished runs are not trained again. The table goes to stdout. Nothing else should run on the machine.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

MODELS = ("seq2seq", "bahdanau", "transformer")
THRESHOLDS = (25, 30, 35)


def main() -> None:
    """Train, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS, help="(default: all)")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N", help="(default: one per core)")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="as nmt.train takes them")
    arguments = parser.parse_args()
    rows = []
    for model in arguments.models:
        folder = train(model, arguments.processes, arguments.overrides)
        rows.append(row(model, folder))
    columns = ["model", "parameters", *(f"BLEU {value}" for value in THRESHOLDS), "best BLEU", "in all", "tokens/s"]
    print(f"| {' | '.join(columns)} |\n|---|{'--:|' * (len(columns) - 1)}")
    for cells in rows:
        print(f"| {' | '.join(cells)} |")


def train(model: str, processes: int, overrides: list[str]) -> Path:
    """Run ``nmt.train``, and say where."""
    options = [f"experiment=multi30k_fast_{model}", *overrides]
    shown = subprocess.run(
        [sys.executable, "-m", "nmt.train", *options, "--cfg", "job", "--resolve"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if shown.returncode:
        sys.exit(f"experiment=multi30k_fast_{model}: {shown.stderr.strip()}")
    keys = yaml.safe_load(shown.stdout)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    finished = subprocess.run([sys.executable, *launcher, "-m", "nmt.train", *options], check=False)
    if finished.returncode:
        sys.exit(f"experiment=multi30k_fast_{model}: training ended with status {finished.returncode}")
    return Path(keys["runs"]).expanduser() / f"{keys['tag']}_s{keys['seed']}"


def row(model: str, folder: Path) -> list[str]:
    """One line of the table, from what the run has written down."""
    with open(folder / "metrics.jsonl", encoding="utf-8") as file:
        validations = [event for event in map(json.loads, file) if event["event"] == "validation"]
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    best = max(validations, key=lambda event: event["bleu"])
    return [
        model,
        f"{summary['parameters'] / 1e6:.1f}M",
        *(minutes(next((event for event in validations if event["bleu"] >= value), None)) for value in THRESHOLDS),
        f"{best['bleu']:.1f} ({minutes(best)})",
        f"{summary['minutes']:.1f} min",
        f"{summary['target_tokens_per_second']:,.0f}",
    ]


def minutes(event: dict[str, Any] | None) -> str:
    """When a validation was done."""
    return "not reached" if event is None else f"{event['time']['minutes']:.1f} min"


if __name__ == "__main__":
    main()
