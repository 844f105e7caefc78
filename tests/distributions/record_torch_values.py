"""Records PyTorch's values of the table in ``distribution_cases.py`` in ``torch_values.json``.

Run it in an environment with PyTorch and mpmath: ``python tests/distributions/record_torch_values.py``.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import distribution_cases as cases
import mpmath as mp
import torch
import torch.distributions.kl


def rounded(value: Any) -> Any:
    """Keeps 14 digits of numbers; infinities and NaN become text."""
    if isinstance(value, float):
        return float(f"{value:.14g}") if value - value == 0 else str(value)
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return [rounded(v) for v in value] if isinstance(value, list) else value


def implicit_gradients() -> dict[str, list[list[float]]]:
    """Returns dx/da of samples x of the gamma and beta distributions, by 60 digits (not PyTorch's, which has three)."""
    mp.mp.dps = 60

    def derivative(cdf: Any, density: Any, a: float) -> float:
        h = mp.mpf(a) * mp.mpf(10) ** -20
        return float(-(cdf(mp.mpf(a) + h) - cdf(mp.mpf(a) - h)) / (2 * h) / density)

    gamma, beta = [], []
    for a in (0.001, 0.1, 1.0, 7.0, 300.0, 20000.0):
        for ratio in (0.01, 0.5, 0.97, 1.0, 1.03, 1.5, 8.0) if a < 100 else (0.97, 1.0, 1.02):
            x = mp.mpf(a * ratio)
            density = mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))
            gamma.append([a, float(x), derivative(lambda a, x=x: mp.gammainc(a, 0, x, regularized=True), density, a)])
    for a, b in ((0.02, 0.5), (0.5, 0.02), (1.0, 1.0), (3.0, 0.7), (30.0, 80.0), (300.0, 0.3)):
        for x in (1e-12, 0.01, 0.3, 0.7, 0.99):
            density = mp.mpf(x) ** (a - 1) * (1 - mp.mpf(x)) ** (b - 1) / mp.beta(a, b) * (1 - mp.mpf(x))
            # Of the smaller tail: the other one is 1 in all its digits.
            if x < a / (a + b):
                cdf = lambda a, b=b, x=x: mp.betainc(a, b, 0, mp.mpf(x), regularized=True)
            else:
                cdf = lambda a, b=b, x=x: -mp.betainc(b, a, 0, 1 - mp.mpf(x), regularized=True)
            beta.append([a, b, x, derivative(cdf, density, a)])
    return {"gamma": gamma, "beta": beta}


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
        "implicit": implicit_gradients(),
        "names": sorted(torch.distributions.__all__),
        "signatures": {
            name: cases.signature(torch, name)
            for name in sorted(torch.distributions.__all__)
            if inspect.isroutine(value := getattr(torch.distributions, name)) or isinstance(value, type)
        },
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
