"""matplotlib draws a tensor as it draws the tensor's NumPy array: to the pixel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import vesta

matplotlib = pytest.importorskip("matplotlib", reason="row 22 of tests/EXCEPTIONS.md")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

COLUMNS = np.random.default_rng(0).normal(size=(40, 2))
IMAGE = np.random.default_rng(1).random((6, 8, 3)).astype("float32")
STEPS = np.arange(40)
GRID = np.random.default_rng(2).random((7, 9))

#: How each plot is made, on axes ``a``, by ``t``: what turns an array into the kind that is drawn.
PLOTS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "plot of two columns": lambda a, t: a.plot(t(COLUMNS)),
    "plot of x and y": lambda a, t: a.plot(t(STEPS), t(COLUMNS), "o--"),
    "plot of a list of numbers": lambda a, t: a.plot([t(v) for v in COLUMNS[:, 0]]),
    "plot of integers": lambda a, t: a.plot(t(STEPS.astype("int32")), t(STEPS % 5)),
    "plot of half precision": lambda a, t: a.plot(t(COLUMNS.astype("float16"))),
    "scatter": lambda a, t: a.scatter(t(COLUMNS[:, 0]), t(COLUMNS[:, 1]), c=t(STEPS), s=t(STEPS + 4.0)),
    "scatter of two columns": lambda a, t: a.scatter(t(COLUMNS), t(COLUMNS[:, ::-1].copy())),
    "scatter in given colours": lambda a, t: a.scatter(t(STEPS[:8]), t(STEPS[:8]), c=t(IMAGE[0])),
    "hist of two columns": lambda a, t: a.hist(t(COLUMNS)),
    "hist of bins and weights": lambda a, t: a.hist(
        t(COLUMNS[:, 0]), bins=t(np.linspace(-2, 2, 9)), weights=t(STEPS * 1.0)
    ),
    "hist of a list": lambda a, t: a.hist([t(COLUMNS[:, 0]), t(COLUMNS[:20, 1])], stacked=True),
    "hist2d": lambda a, t: a.hist2d(t(COLUMNS[:, 0]), t(COLUMNS[:, 1])),
    "boxplot": lambda a, t: a.boxplot(t(COLUMNS)),
    "violinplot": lambda a, t: a.violinplot(t(COLUMNS)),
    "imshow": lambda a, t: a.imshow(t(GRID), vmin=t(GRID).min(), vmax=t(GRID).max()),
    "imshow of colours": lambda a, t: a.imshow(t(IMAGE)),
    "pcolormesh": lambda a, t: a.pcolormesh(t(GRID)),
    "contourf": lambda a, t: a.contourf(t(GRID)),
    # Places that are floats: matplotlib adds the width to the first, and an integer tensor plus 0.4 is float32.
    "bar": lambda a, t: a.bar(t(STEPS[:5] + 0.5), t(STEPS[:5] + 1), yerr=t(STEPS[:5] / 4)),
    "errorbar": lambda a, t: a.errorbar(t(STEPS), t(COLUMNS[:, 0]), yerr=t(np.abs(COLUMNS.T))),
    "fill_between": lambda a, t: a.fill_between(t(STEPS), t(COLUMNS[:, 0]), t(COLUMNS[:, 1]), where=t(STEPS > 5)),
    "stackplot": lambda a, t: a.stackplot(t(STEPS), t(np.abs(COLUMNS.T).copy())),
    "stem": lambda a, t: a.stem(t(STEPS), t(COLUMNS[:, 0])),
    "step": lambda a, t: a.step(t(STEPS), t(COLUMNS[:, 0])),
    "eventplot": lambda a, t: a.eventplot(t(COLUMNS[:6])),
    "hexbin": lambda a, t: a.hexbin(t(COLUMNS[:, 0]), t(COLUMNS[:, 1]), gridsize=6),
    "pie": lambda a, t: a.pie(t(STEPS[1:5])),
    "quiver": lambda a, t: a.quiver(t(GRID), t(GRID.copy())),
    "limits and lines": lambda a, t: (a.set_xlim(t(GRID[0, 0]), t(np.float64(2))), a.axhline(t(GRID[0, 1]))),
}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def pixels(draw: Callable[[Any, Callable[[Any], Any]], Any], kind: Callable[[Any], Any]) -> np.ndarray:
    """Returns what ``draw`` draws, [height, width, 4]."""
    figure, axes = plt.subplots(figsize=(3, 2), dpi=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns where it guesses
        draw(axes, kind)
    figure.canvas.draw()
    shown = np.asarray(figure.canvas.buffer_rgba()).copy()
    plt.close(figure)
    return shown


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_of_a_tensor_is_that_of_its_array(name: str) -> None:
    """The pixels of the two are the same, and differ from those of empty axes."""
    draw = PLOTS[name]
    of_array = pixels(draw, np.asarray)
    assert np.array_equal(pixels(draw, lambda array: vesta.tensor(array)), of_array)
    assert not np.array_equal(of_array, pixels(lambda axes, _: None, np.asarray))


def test_two_columns_are_two_series() -> None:
    """A tensor [N, 2] is two histograms, boxes, violins and lines, not N."""
    x = vesta.tensor(COLUMNS)
    assert len(plt.hist(x)[0]) == len(plt.boxplot(x)["boxes"]) == len(plt.violinplot(x)["bodies"]) == 2
    assert len(plt.plot(x)) == 2


@pytest.mark.parametrize("name", ["plot of two columns", "hist of two columns", "scatter", "imshow", "boxplot"])
def test_a_tensor_that_requires_grad_is_refused(name: str) -> None:
    """It raises, as PyTorch's, and says what to write."""
    with pytest.raises(RuntimeError, match=r"requires grad. Use tensor.detach\(\)"):
        pixels(PLOTS[name], lambda array: vesta.tensor(array, dtype=vesta.float64).requires_grad_())


def test_to_numpy_shares_memory_and_refuses_what_numpy_has_not() -> None:
    """``to_numpy`` is ``numpy`` under the name that other libraries look for."""
    x = vesta.zeros(3)
    x.to_numpy()[1] = 5
    assert x.tolist() == [0, 5, 0]
    for bad, message in ((x.bfloat16(), "BFloat16"), (vesta.eye(2).to_sparse(), "to_dense")):
        with pytest.raises(TypeError, match=message):
            bad.to_numpy()
