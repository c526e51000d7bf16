#!/usr/bin/env bash
# Does training work on this machine's GPU? Takes about 3 minutes, needs no network:  bash scripts/gpu_check.sh --help
# Runs in a bare copy of the repository with .venv where that works here, else with the current python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=.venv/bin/python
if ! "$python" -c 'import torch' 2>/dev/null; then
    python=$(command -v python3 || command -v python || true)
    if [ -z "$python" ]; then
        echo "error: no python here; install Python 3.11 or newer with torch" >&2
        exit 2
    fi
fi
PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" exec "$python" scripts/gpu_check.py "$@"
