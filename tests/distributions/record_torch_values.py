"""Records PyTorch's values of the table in ``distribution_cases.py`` in ``torch_values.json``.

Run it in an environment with PyTorch: ``python tests/distributions/record_torch_values.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import distribution_cases as cases
import torch
import torch.distributions.kl


def rounded(value: Any) -> Any:
    """Keeps 14 digits of numbers; infinities and NaN become text."""
    if isinstance(value, float):
        return float(f"{value:.14g}") if value - value == 0 else str(value)
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def main() -> None:
    torch.set_num_threads(1)
    names = set(cases.divergence_names())
    record = {
        "torch": torch.__version__.split("+")[0],
        "distributions": {case.label: cases.measure(torch, case) for case in cases.CASES},
        "pairs": cases.pairs(torch),
        "divergences": {},
        "transforms": {name: cases.measure_transform(torch, name) for name in cases.TRANSFORMS},
        "constraints": {name: cases.measure_constraint(torch, name) for name in cases.CONSTRAINTS},
        "names": sorted(torch.distributions.__all__),
    }
    wanted = {*cases.pairs(torch), ("LogNormal", "LogNormal"), ("Chi2", "Gamma"), ("Wishart", "Wishart")}
    for p, q in sorted(wanted):
        if {p, q} <= names and (p, q) not in cases.PYTORCH_IS_WRONG:
            record["divergences"][f"{p} {q}"] = cases.divergence(torch, p, q)
    lines = []
    for part, content in rounded(record).items():
        if isinstance(content, dict):
            rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in content.items())
            lines.append(f"{json.dumps(part)}: {{\n{rows}\n}}")
        else:
            lines.append(f"{json.dumps(part)}: {json.dumps(content)}")
    target = Path(__file__).with_name("torch_values.json")
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
