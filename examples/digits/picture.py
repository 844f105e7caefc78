"""Draws the demo's picture with matplotlib: the loss of training, and digits with what the network takes them for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vesta import Tensor


def draw(path: Path, losses: Tensor, digits: Tensor, predicted: Tensor, labels: Tensor, accuracy: float) -> None:
    """Writes the picture as a PNG; no display is needed. matplotlib takes the tensors as they are.

    Args:
        path: the file.
        losses: [epochs, steps], the loss of every step.
        digits: [16, 8, 8], from 0 (paper) to 1 (ink).
        predicted: at least 16 integers: what the network takes the digits for.
        labels: likewise: what they are.
        accuracy: the share of all test digits that are recognised.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    epochs, steps = losses.shape
    figure: Any = Figure(figsize=(11, 5.5), dpi=100, layout="constrained")
    left, right = figure.subfigures(1, 2)

    axes = left.add_subplot()
    axes.plot([(i + 1) / steps for i in range(losses.numel())], losses.flatten(), color="#b2cde9", label="each step")
    axes.plot(
        [epoch + 0.5 for epoch in range(epochs)], losses.mean(1), color="#1f62ad", marker="o", label="mean of epoch"
    )
    axes.set(title="Loss while training", xlabel="epoch", ylabel="cross entropy", xlim=(0, epochs), ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend()

    right.suptitle(f"Test digits and predictions: {100 * accuracy:.1f}% right")
    for i, axes in enumerate(right.subplots(4, 4).flat):
        guess, label = int(predicted[i]), int(labels[i])
        axes.imshow(digits[i], cmap="gray_r", vmin=0, vmax=1)
        text = str(guess) if guess == label else f"{guess} (is {label})"
        axes.set_title(text, color="#16823e" if guess == label else "#c81e1e", fontsize=12, fontweight="bold", pad=3)
        axes.set_axis_off()
    figure.savefig(path)
