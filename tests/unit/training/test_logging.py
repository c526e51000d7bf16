"""What a run writes down."""

import os
from pathlib import Path

from nmt.training.logging import RunLog


def test_a_line_may_name_a_file_of_any_bytes(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.say(f"part {os.fsdecode(b'caf' + bytes([0xE9]))}: 3 pairs")
    assert "part caf\\udce9: 3 pairs" in (tmp_path / "train.log").read_text(encoding="utf-8")
