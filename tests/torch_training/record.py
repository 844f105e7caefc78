"""Records PyTorch's training runs, for ``python/test_torch_training.py``; run it where PyTorch is.

python record.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
from torch_training.run import DTYPES, RUNS


def main() -> None:
    """Writes ``recorded.json``, a line for each run."""
    torch.set_num_threads(1)
    cases = {f"{name}-{d}": run(torch, getattr(torch, d)) for name, run in RUNS.items() for d in DTYPES}
    lines = [f"{json.dumps(name)}: {json.dumps(result, separators=(',', ':'))}" for name, result in cases.items()]
    version = torch.__version__.partition("+")[0]
    table = Path(__file__).parent / "recorded.json"
    table.write_text("{\n" + ",\n".join([f'"version": "{version}"', *lines]) + "\n}\n")


if __name__ == "__main__":
    main()
