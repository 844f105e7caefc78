"""Datasets, samplers, collation and the loader."""

from __future__ import annotations

from collections import namedtuple

import pytest
import vesta
from vesta.utils import data

Point = namedtuple("Point", "x y")


def numbers(count: int = 5) -> data.TensorDataset:
    return data.TensorDataset(vesta.arange(2 * count).reshape(count, 2), vesta.arange(count))


def listed(batches) -> list:
    return [[part.tolist() for part in batch] for batch in batches]


class Slow(data.TensorDataset):
    """The same samples without the loader's short cut."""


@pytest.mark.parametrize("options", [
    {"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}, {"batch_sampler": [[4, 0], [2]]},
    {"sampler": [3, 1, 1], "batch_size": 2},
])  # fmt: skip
@pytest.mark.parametrize("part", [lambda d: d, lambda d: data.Subset(d, [4, 2, 0, 1, 3])])
def test_the_short_cut_changes_nothing(options: dict, part) -> None:
    fast, slow = (data.DataLoader(part(d), **options) for d in (numbers(), Slow(*numbers().tensors)))
    assert listed(fast) == listed(slow) and len(fast) == len(slow) == len(list(fast))


def test_batches_are_what_the_samples_were() -> None:
    assert listed(data.DataLoader(numbers(3), batch_size=2)) == [[[[0, 1], [2, 3]], [0, 1]], [[[4, 5]], [2]]]
    assert listed(data.DataLoader(numbers(3), batch_size=2, drop_last=True)) == [[[[0, 1], [2, 3]], [0, 1]]]


def test_shuffling_follows_the_seed() -> None:
    def order(generator=None) -> list[int]:
        loader = data.DataLoader(numbers(50), batch_size=50, shuffle=True, generator=generator)
        return next(iter(loader))[1].tolist()

    vesta.manual_seed(3)
    first, second = order(), order()
    vesta.manual_seed(3)
    assert order() == first != second and sorted(first) == list(range(50))
    assert order(vesta.Generator().manual_seed(5)) == order(vesta.Generator().manual_seed(5))


def test_collation() -> None:
    batch = data.default_collate([Point(1, [2.0, "a"]), Point(3, [4.0, "b"])])
    assert type(batch) is Point and batch.x.tolist() == [1, 3] and batch.x.dtype == vesta.int64
    assert batch.y[0].dtype == vesta.float64 and batch.y[1] == ("a", "b")
    assert data.default_collate([{"k": True}, {"k": False}])["k"].tolist() == [True, False]
    with pytest.raises(TypeError, match="batch must contain tensors, numpy arrays, numbers, dicts or lists"):
        data.default_collate([object()])
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([[1, 2], [1]])


def test_numpy_samples() -> None:
    np = pytest.importorskip("numpy")
    arrays = data.default_collate([np.ones(2, np.float32), np.zeros(2, np.float32)])
    assert arrays.tolist() == [[1.0, 1.0], [0.0, 0.0]] and arrays.dtype == vesta.float32
    assert data.default_collate([np.float32(1), np.float32(2)]).tolist() == [1.0, 2.0]


def test_streams() -> None:
    class Count(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [b.tolist() for b in data.DataLoader(Count(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in data.DataLoader(Count(), batch_size=2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(data.DataLoader(Count() + Count(), batch_size=None)) == [0, 1, 2, 3, 4] * 2
    with pytest.raises(ValueError, match="unspecified shuffle"):
        data.DataLoader(Count(), shuffle=True)


def test_datasets_of_datasets() -> None:
    both = numbers(2) + numbers(3)
    assert len(both) == 5 and both[3][1].item() == 1 and both[-1][1].item() == 2
    with pytest.raises(IndexError):
        both[5]
    assert data.StackDataset(a=[1, 2], b=[3, 4])[1] == {"a": 2, "b": 4}
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(vesta.ones(2), vesta.ones(3))


def test_random_split() -> None:
    parts = data.random_split(range(11), [0.5, 0.3, 0.2])
    assert [len(part) for part in parts] == [6, 3, 2]
    assert sorted(sample for part in parts for sample in part) == list(range(11))
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(range(3), [1, 1])


def test_samplers() -> None:
    assert list(data.BatchSampler(range(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert len(list(data.RandomSampler(range(3), num_samples=7))) == 7
    assert set(data.RandomSampler(range(3), replacement=True, num_samples=50)) == {0, 1, 2}
    drawn = list(data.WeightedRandomSampler([0.2, 0.0, 0.8], 4000))
    assert 0 < drawn.count(0) < 1200 and 1 not in drawn
    assert sorted(data.WeightedRandomSampler([0.2, 0.0, 0.8], 2, replacement=False)) == [0, 2]
    assert sorted(data.SubsetRandomSampler([7, 9])) == [7, 9]


@pytest.mark.parametrize("options, message", [
    ({"num_workers": -1}, "num_workers=0"),
    ({"shuffle": True, "sampler": [0]}, "mutually exclusive"), ({"batch_size": 0}, "positive integer"),
    ({"batch_sampler": [[0]], "batch_size": 3}, "mutually exclusive"), ({"prefetch_factor": 2}, "prefetch_factor"),
    ({"batch_size": None, "drop_last": True}, "mutually exclusive"), ({"timeout": -1}, "non-negative"),
])  # fmt: skip
def test_options_that_do_not_go_together(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        data.DataLoader([1, 2], **options)


def test_a_loader_keeps_its_order() -> None:
    loader = data.DataLoader([1, 2])
    with pytest.raises(ValueError, match="should not be set after DataLoader is initialized"):
        loader.batch_size = 3


class Stopping(data.Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        if index == 2:
            raise StopIteration
        return index


@pytest.mark.differs
def test_a_dataset_that_stops_is_an_error() -> None:
    batches = iter(data.DataLoader(Stopping(), batch_size=2))
    assert next(batches).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="Stopping.__getitem__ raised StopIteration"):
        next(batches)


def test_samples_side_by_side_are_asked_together() -> None:
    class Many(data.Dataset):
        asked = 0

        def __len__(self) -> int:
            return 4

        def __getitems__(self, indices: list) -> list:
            self.asked += 1
            return [10 * i for i in indices]

    many = Many()
    loader = data.DataLoader(data.StackDataset(a=many, b=[1, 2, 3, 4]), batch_size=4)
    assert {k: v.tolist() for k, v in next(iter(loader)).items()} == {"a": [0, 10, 20, 30], "b": [1, 2, 3, 4]}
    assert many.asked == 1
    many.__class__.__getitems__ = lambda self, indices: [1]
    with pytest.raises(ValueError, match="Nested dataset's output size mismatch. Expected 4, got 1"):
        next(iter(loader))


def test_a_part_of_a_dataset_of_a_process() -> None:
    for count, replicas in ((10, 3), (7, 4), (2, 5), (0, 2)):
        for drop in (False, True):
            parts = [
                list(data.DistributedSampler(range(count), replicas, rank, drop_last=drop)) for rank in range(replicas)
            ]
            sizes = {len(part) for part in parts}
            assert len(sizes) == 1 and len(data.DistributedSampler(range(count), replicas, 0, drop_last=drop)) in sizes
            seen = [index for part in parts for index in part]
            assert set(seen) == set(range(count)) if not drop else len(set(seen)) == len(seen)
    sampler = data.DistributedSampler(range(50), 2, 0, seed=3)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first and sampler.epoch == 1
    with pytest.raises(ValueError, match="Invalid rank 2, rank should be in the interval"):
        data.DistributedSampler([1], 2, 2)


def test_a_stream_longer_than_it_said_is_warned_of() -> None:
    class Short(data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __len__(self) -> int:
            return 2

    loader = data.DataLoader(Short(), batch_size=None)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2.*but 3 samples have been fetched"):
        assert list(loader) == [0, 1, 2]


def test_a_subset_must_override_both() -> None:
    class Odd(data.Subset):
        def __getitem__(self, index):
            return 0

    with pytest.raises(NotImplementedError, match="overrides __getitem__ but not __getitems__"):
        Odd([1], [0])
    with pytest.warns(FutureWarning, match="renamed"):
        assert data.ConcatDataset([[1, 2], [3]]).cummulative_sizes == [2, 3]


def test_a_loader_that_never_ends_sets_its_batch_sampler() -> None:
    class Repeated:
        def __init__(self, batches: data.BatchSampler) -> None:
            self.batches = batches

        def __iter__(self):
            while True:
                yield from self.batches

    class Endless(data.DataLoader):
        def __init__(self, *args, **kwargs) -> None:
            super().__init__(*args, **kwargs)
            self._DataLoader__initialized = False
            self.batch_sampler = Repeated(self.batch_sampler)
            self._DataLoader__initialized = True
            self.batches = super().__iter__()

        def __iter__(self):
            for _ in range(len(self.batch_sampler.batches)):
                yield next(self.batches)

    loader = Endless(vesta.arange(4), batch_size=2)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="should not be set"):
        loader.batch_sampler = None
