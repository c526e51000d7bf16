"""Train the three models on the embedded data, let them translate, and set them side by side. Called by ``make demo``.

    python scripts/demo.py                          # everything
    python scripts/demo.py training.max_steps=50    # what follows goes to every training run

Nothing is done twice: a finished model is only loaded, an interrupted one goes on where it stopped.
"""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import yaml

CONFIG = Path(__file__).parent.parent / "configs" / "train.yaml"
MODELS = ("seq2seq", "bahdanau", "transformer")

SENTENCES = [
    "The old teacher reads a book.",
    "Yesterday the children bought three red apples at the market.",
    "The teacher knows that the boy has brought back the blankets because the girls were tired.",
    "The happy painter can offer the shy cook the big bananas, but the brave king for whom the tall judge waits has "
    "not ordered the fresh milk, although his friends wanted to protect the old rabbit from a fox.",
]


def run_folder(model: str, overrides: list[str]) -> Path:
    """Where the run of a model lies, given what was set on the command line."""
    settings = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    settings["tag"] = f"quick_{model}"
    settings.update(item.split("=", 1) for item in overrides if item.startswith(("runs=", "seed=")))
    return Path(settings["runs"]) / f"{settings['tag']}_s{settings['seed']}"


def python(module: str, *arguments: str, text: str | None = None) -> str:
    """Run a command of this project; its stdout comes back where it is given ``text`` to read, else it is shown."""
    piped = subprocess.PIPE if text is not None else None
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.Popen(command, stdin=piped, stdout=piped, encoding="utf-8")
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    while True:
        try:
            output, _ = process.communicate(text)
            break
        except KeyboardInterrupt:  # the command got the same Ctrl-C: it saves and stops by itself
            text = None  # sent already
    if process.returncode != 0:
        then = "the message above says why" if process.returncode == 2 else "the same command goes on from here"
        print(f"stopped: {module} did not finish; {then} (to start afresh, remove the runs quick_*)", file=sys.stderr)
        sys.exit(process.returncode if process.returncode > 0 else 128 - process.returncode)
    return output or ""


def main() -> None:
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    overrides = sys.argv[1:]
    started = time.monotonic()
    runs = {model: run_folder(model, overrides) for model in MODELS}
    for number, (model, run) in enumerate(runs.items(), 1):
        print(f"\n=== {number} of {len(MODELS)}: {model} ({run}) ===", file=sys.stderr, flush=True)
        python("nmt.train", f"experiment=demo_{model}", f"tag=quick_{model}", *overrides)

    print("\n=== translations ===", file=sys.stderr, flush=True)
    lines = "".join(f"{sentence}\n" for sentence in SENTENCES)
    translations = {
        model: python("nmt.translate", "--checkpoint", str(run), text=lines).split("\n") for model, run in runs.items()
    }
    for number, sentence in enumerate(SENTENCES):
        print()
        for name, line in [("English", sentence), *((model, translations[model][number]) for model in MODELS)]:
            print(textwrap.fill(line, 110, initial_indent=f"{name:>12}  ", subsequent_indent=" " * 14))

    print("\n=== comparison ===", file=sys.stderr, flush=True)
    print(flush=True)
    report = next(iter(runs.values())).parent / "demo_report"
    python("nmt.compare", *map(str, runs.values()), "--output", str(report))
    minutes = (time.monotonic() - started) / 60
    print(f"\nDone in {minutes:.1f} minutes. The whole report: {report / 'report.html'}", file=sys.stderr)


if __name__ == "__main__":
    main()
