"""What shares memory with its operand and what does not, held against the table of PyTorch's answers."""

from __future__ import annotations

import aliasing
import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import describe, single
from op_db_row import DTYPES, Maker, Row

#: Where Vesta differs from PyTorch on purpose; the other rows are PyTorch's answers.
OWN = [entry for entry in aliasing.ROWS if entry.here and aliasing.exists(vesta, entry)]
HERE = [entry for entry in aliasing.ROWS if not entry.here and aliasing.exists(vesta, entry)]


@pytest.mark.parametrize("entry", HERE, ids=lambda entry: entry.name)
def test_what_shares_memory(entry: aliasing.Aliasing) -> None:
    """Per layout of the operand: the result is the operand, another tensor over its memory, or a copy."""
    assert answers_of(entry) == dict(zip(aliasing.LAYOUTS, entry.answers))


@pytest.mark.differs
@pytest.mark.parametrize("entry", OWN, ids=lambda entry: entry.name)
def test_what_shares_memory_here(entry: aliasing.Aliasing) -> None:
    """The rows in which PyTorch answers otherwise."""
    assert answers_of(entry) == dict(zip(aliasing.LAYOUTS, entry.here))


def answers_of(entry: aliasing.Aliasing) -> dict[str, str]:
    return {layout: aliasing.answer(vesta, entry, layout) for layout in aliasing.LAYOUTS}


@pytest.mark.parametrize("entry", HERE + OWN, ids=lambda entry: entry.name)
def test_a_write_reaches_what_shares_memory_and_nothing_else(entry: aliasing.Aliasing) -> None:
    """Writing to the result changes the operand where the table says so and leaves it alone elsewhere."""
    for layout, letter in zip(aliasing.LAYOUTS, entry.here or entry.answers):
        x = aliasing.LAYOUTS[layout](vesta)
        if letter not in "=vc" or layout == "expanded":  # elements that share memory must not be written
            continue
        before = x.clone()
        entry.call(vesta, x).detach().fill_(77)
        assert bool((x == before).all()) == (letter == "c"), layout


@pytest.mark.parametrize("row", single(row for row in OPS if row.ref and row.kind != "factory" and row.where != "nn"))
def test_whoever_shares_memory_has_a_row(row: Row) -> None:
    """No op returns its operand's memory without standing in the table."""
    names = {entry.name.split(" ")[0].split(",")[0] for entry in aliasing.ROWS}
    dtype = next(d for d in ("float32", "int64", "bool", "complex64") if row.accepts(d))
    for sample in row.samples(Maker(DTYPES[dtype], row.name)):
        args, kwargs = check.materialize(sample, dtype)
        if not args or not isinstance(args[0], vesta.Tensor) or not args[0].numel():
            continue
        for result in check.results(check.function_of(row)(*args, **kwargs)):
            if isinstance(result, vesta.Tensor) and result.numel() and aliasing.shares(result, args[0]):
                assert row.name in names or row.name.endswith("_"), describe(sample)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: vesta.nn.functional.adaptive_avg_pool2d(x, 3),
        lambda x: vesta.nn.functional.adaptive_avg_pool2d(x, (None, 3)),
        lambda x: vesta.nn.functional.adaptive_avg_pool2d(x[0], 3),
        lambda x: vesta.nn.functional.channel_shuffle(x, 4),
        lambda x: vesta.nn.functional.channel_shuffle(x, 1),
        lambda x: vesta.pixel_shuffle(x, 1),
        lambda x: vesta.pixel_unshuffle(x, 1),
    ],
)
def test_a_layer_that_has_nothing_to_do_copies(function) -> None:
    """The result may be written, whatever the layout of the image."""
    images = vesta.arange(72.0).reshape(2, 4, 3, 3)
    for x in (
        images.clone(),
        images.to(memory_format=vesta.channels_last),
        images.mT.clone().mT,
        vesta.arange(4.0).reshape(1, 4, 1, 1).expand(2, 4, 3, 3),
    ):
        before, y = x.clone(), function(x)
        assert y.data_ptr() != x.data_ptr()
        y.zero_()
        assert vesta.equal(x, before)
