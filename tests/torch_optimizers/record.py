"""Records PyTorch's training runs and schedules, for ``python/test_torch_optimizers.py``; run it where PyTorch is.

python record.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import torch
import torch.optim.swa_utils
from torch_optimizers.run import OPTIMIZERS, SCHEDULES, name_of, rates, train


def main() -> None:
    """Writes ``recorded.json``, a line for each case."""
    torch.set_num_threads(1)
    cases = {name_of(case): train(torch, *case) for case in OPTIMIZERS}
    cases |= {name_of(case): rates(torch, *case) for case in SCHEDULES}
    lines = [f"{json.dumps(name)}: {json.dumps(result, separators=(',', ':'))}" for name, result in cases.items()]
    version = torch.__version__.partition("+")[0]
    table = Path(__file__).parent / "recorded.json"
    table.write_text("{\n" + ",\n".join([f'"version": "{version}"', *lines]) + "\n}\n")


if __name__ == "__main__":
    main()
