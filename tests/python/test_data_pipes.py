"""Data pipes, and the internal names of PyTorch's loader that programs use."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
import vesta
from vesta.utils import data
from vesta.utils.data.datapipes.iter import Batcher, FileLister, IterableWrapper, Mapper
from vesta.utils.data.datapipes.map import SequenceWrapper

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def double(x):
    return 2 * x


def next_of(x):
    return x + 1


def even(x):
    return x % 2 == 0


def test_streams_are_put_together_by_methods_and_classes() -> None:
    ten = IterableWrapper(range(10))
    assert list(ten.map(double).filter(lambda x: x > 10)) == [12, 14, 16, 18]
    assert list(ten.batch(4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] == list(Batcher(ten, 4))
    assert len(ten.batch(4, drop_last=True)) == 2 == len(list(ten.batch(4, drop_last=True)))
    assert list(ten.batch(2).batch(2).unbatch(unbatch_level=2)) == list(range(10))
    assert list(ten.batch(2).batch(3).unbatch(unbatch_level=-1)) == list(range(10))
    assert sorted(ten.shuffle(buffer_size=3)) == list(range(10)) and len(ten.shuffle()) == 10
    assert list(ten.shuffle().set_seed(3)) == list(ten.shuffle().set_seed(3)) != list(range(10))
    assert list(ten.shuffle().set_shuffle(False)) == list(range(10))
    assert list(ten.zip(IterableWrapper(range(8)).map(double)))[3] == (3, 6)
    assert list(IterableWrapper([1, 2]).concat(IterableWrapper([3]))) == [1, 2, 3]
    assert list(IterableWrapper([1, 2]) + IterableWrapper([3])) == [1, 2, 3]
    assert list(IterableWrapper([1, 2]).mux(IterableWrapper([3, 4]))) == [1, 3, 2, 4]
    shard = ten.sharding_filter()
    shard.apply_sharding(3, 1)
    assert list(shard) == [1, 4, 7] and len(shard) == 3
    assert [x.tolist() for x in ten.batch(5).collate()] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert "map" in dir(ten) and repr(ten) == "IterableWrapper"
    for made in (pickle.loads(pickle.dumps(Mapper(ten, double))), copy.deepcopy(Mapper(ten, double))):
        assert list(made) == list(range(0, 20, 2))
    with pytest.raises(AttributeError, match="'IterableWrapper' object has no attribute 'fly'"):
        ten.fly()
    with pytest.raises(TypeError, match="valid length"):
        len(IterableWrapper(iter([1])))


def test_columns() -> None:
    rows = IterableWrapper([(0, 1), (2, 3)])
    assert list(rows.map(double, input_col=1)) == [(0, 2), (2, 6)]
    assert list(rows.map(lambda a, b: a + b, input_col=[0, 1])) == [(1,), (5,)]
    assert list(rows.map(double, input_col=1, output_col=-1)) == [(0, 1, 2), (2, 3, 6)]
    assert list(rows.map(double, input_col=1, output_col=0)) == [(2, 1), (6, 3)]
    named = IterableWrapper([{"a": 1}])
    assert list(named.map(double, input_col="a", output_col="b")) == [{"a": 1, "b": 2}]
    assert list(rows.filter(even, input_col=0)) == [(0, 1), (2, 3)]
    with pytest.raises(ValueError, match="Boolean output"):
        list(rows.filter(lambda row: "yes"))


def test_one_iterator_at_a_time_and_a_reset_before_each() -> None:
    class Counted(data.IterDataPipe):
        resets = 0

        def __iter__(self) -> Iterator[int]:
            yield from range(3)

        def reset(self) -> None:
            self.resets += 1

    class Plus(Counted):
        def __iter__(self) -> Iterator[int]:
            return map(next_of, super().__iter__())

    for kind, expected in ((Counted, [0, 1, 2]), (Plus, [1, 2, 3])):
        pipe = kind()
        first = iter(pipe)
        next(first)
        assert list(pipe) == expected and pipe.resets == 2
        with pytest.raises(RuntimeError, match="invalidated"):
            next(first)


def test_a_class_becomes_a_method_once() -> None:
    @data.functional_datapipe("every_other_of_the_test")
    class EveryOther(data.IterDataPipe):
        def __init__(self, source, first: int = 0) -> None:
            self.source, self.first = source, first

        def __iter__(self) -> Iterator[int]:
            return (x for i, x in enumerate(self.source) if i % 2 == self.first)

    try:
        assert list(IterableWrapper("abcd").every_other_of_the_test(first=1)) == ["b", "d"]
        with pytest.raises(Exception, match="already taken"):
            data.functional_datapipe("every_other_of_the_test")(EveryOther)
        with pytest.raises(TypeError, match="can only decorate"):
            data.functional_datapipe("x")(int)
    finally:
        del data.IterDataPipe.functions["every_other_of_the_test"]


def test_numbered_pipes() -> None:
    ten = SequenceWrapper(range(10))
    assert isinstance(ten, data.MapDataPipe) and ten.map(double)[3] == 6 and len(ten.map(double)) == 10
    assert ten.batch(4)[2] == [8, 9] and len(ten.batch(4)) == 3 and ten.zip(ten.map(double))[2] == (2, 4)
    assert SequenceWrapper([1]).concat(SequenceWrapper([2, 3]))[2] == 3
    assert sorted(ten.shuffle()) == list(range(10)) and list(ten.shuffle().set_seed(1)) == list(
        ten.shuffle().set_seed(1)
    )
    assert [b.tolist() for b in data.DataLoader(ten.map(double), batch_size=5)] == [
        [0, 2, 4, 6, 8],
        [10, 12, 14, 16, 18],
    ]
    with pytest.raises(IndexError):
        ten.batch(4)[3]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_loader_divides_and_shuffles_pipes(workers: int) -> None:
    vesta.manual_seed(1)
    pipe = IterableWrapper(range(20)).shuffle().sharding_filter().map(double)
    options = {"multiprocessing_context": "fork"} if workers else {}
    loader = data.DataLoader(pipe, batch_size=4, shuffle=True, num_workers=workers, **options)
    first, second = ([x for batch in loader for x in batch.tolist()] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(0, 40, 2)) and first != second
    plain = data.DataLoader(pipe, batch_size=None, shuffle=False)
    assert list(plain) == list(range(0, 40, 2))


def test_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.bin", "in/d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    names = [Path(path).name for path in FileLister(str(tmp_path), masks="*.txt")]
    assert names == ["a.txt", "b.txt"]
    assert [Path(p).name for p in FileLister([str(tmp_path)], masks=["*.txt"], recursive=True)] == [
        "a.txt", "b.txt", "d.txt",
    ]  # fmt: skip
    read = FileLister(str(tmp_path), "*.txt").open_files(mode="b").read_from_stream()
    assert [content for _, content in read] == [b"a.txt", b"b.txt"]


def test_inner_names_are_where_pytorch_has_them() -> None:
    from vesta.utils.data._utils.collate import collate_tensor_fn, default_collate, default_collate_fn_map
    from vesta.utils.data._utils.pin_memory import pin_memory
    from vesta.utils.data._utils.worker import WorkerInfo, get_worker_info
    from vesta.utils.data.dataloader import (
        _BaseDataLoaderIter,
        _MultiProcessingDataLoaderIter,
        _SingleProcessDataLoaderIter,
    )

    assert default_collate is data.default_collate and get_worker_info is data.get_worker_info
    assert default_collate_fn_map[vesta.Tensor] is collate_tensor_fn and callable(pin_memory)
    assert data._utils.worker._worker_info is None and WorkerInfo.__name__ == "WorkerInfo"
    assert importlib.import_module("vesta.utils.data._utils").collate.np_str_obj_array_pattern.search("<U3")
    here = iter(data.DataLoader([1, 2]))
    there = iter(data.DataLoader([1, 2], num_workers=1, multiprocessing_context="fork"))
    assert isinstance(here, _SingleProcessDataLoaderIter) and isinstance(here, _BaseDataLoaderIter)
    assert isinstance(there, _MultiProcessingDataLoaderIter) and isinstance(there, _BaseDataLoaderIter)
    assert len(list(there)) == 2


def test_a_tensor_without_dimensions_has_no_first_size() -> None:
    for ask in (lambda: vesta.tensor(3).size(0), lambda: vesta.tensor(3).stride(-1)):
        with pytest.raises(IndexError, match="tensor has no dimensions"):
            ask()
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        len(data.TensorDataset(vesta.tensor(3)))
