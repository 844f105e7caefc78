"""Records what PyTorch's layers say and compute, for ``python/test_torch_layers.py``; run it where PyTorch is.

python record.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
from torch_layers.run import outcome
from torch_layers.table import ROWS


def main() -> None:
    """Writes ``recorded.json``, a line for each row."""
    torch.set_num_threads(1)
    lines = []
    for row in ROWS:
        lines.append(f"{json.dumps(str(row))}: {json.dumps(outcome(torch, row), separators=(',', ':'))}")
    version = torch.__version__.partition("+")[0]
    table = Path(__file__).parent / "recorded.json"
    table.write_text("{\n" + ",\n".join([f'"version": "{version}"', *lines]) + "\n}\n")


if __name__ == "__main__":
    main()
