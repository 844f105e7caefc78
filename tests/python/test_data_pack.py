"""pack=True: containers in a sealed block behave as before, and are read-only."""

from __future__ import annotations

import gc
import os
import pickle
from collections import OrderedDict

import pytest
from vesta.utils import data
from vesta.utils.data.pack import PackedDict, PackedSequence, pack_dataset

N = 6000


class Records(data.Dataset):
    def __init__(self) -> None:
        self.rows = [{"id": i, "name": f"n{i}", "box": (i, i + 0.5)} for i in range(N)]
        self.by_name = {f"n{i}": i for i in range(N)}
        self.keys = OrderedDict(((i, "k", None), -i) for i in range(N))
        self.pair = (list(range(N)), ["small"])
        self.splits = {"train": list(range(N)), "test": [1, 2]}
        self.short = [1, 2, 3]
        self.nested = data.Subset(Inner(), [0])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict:
        return {"row": self.rows[index], "again": self.by_name[f"n{index}"], "key": self.keys[index, "k", None]}


class Inner(data.Dataset):
    def __init__(self) -> None:
        self.words = tuple(str(i) for i in range(N))


def test_what_is_large_is_packed() -> None:
    packed = pack_dataset(Records())
    same = Records()
    for found, expected in (
        (packed.rows, same.rows), (packed.pair[0], same.pair[0]), (packed.splits["train"], same.splits["train"]),
        (packed.nested.dataset.words, same.nested.dataset.words),
    ):  # fmt: skip
        assert type(found) is PackedSequence and found == expected and len(found) == N
        assert found[-1] == expected[-1] and found[3:9:2] == expected[3:9:2] and list(found) == list(expected)
    assert type(packed.by_name) is PackedDict and type(packed.keys) is PackedDict
    assert packed.by_name == same.by_name and dict(packed.keys.items()) == dict(same.keys)
    assert packed.short == [1, 2, 3] and type(packed.short) is list and packed.pair[1] == ["small"]
    assert packed.splits["test"] == [1, 2]


def test_packed_containers_are_read_only_sequences() -> None:
    packed = pack_dataset(Records())
    rows, names = packed.rows, packed.by_name
    with pytest.raises(TypeError, match="read-only"):
        rows[0] = 1
    with pytest.raises(TypeError, match="read-only"):
        rows.append(1)
    with pytest.raises(TypeError, match="read-only"):
        names["x"] = 1
    with pytest.raises(IndexError):
        rows[N]
    with pytest.raises(TypeError, match="indices must be integers"):
        rows["a"]
    with pytest.raises(KeyError):
        names["nobody"]
    with pytest.raises(TypeError, match="unhashable"):
        [] in names  # noqa: B015
    assert "n17" in names and names.get("x", 4) == 4 and object() not in names
    assert packed.pair[0].index(17) == 17 and 5 in packed.pair[0] and packed.pair[0][:2] + [9] == [0, 1, 9]
    assert ([7] + packed.pair[0])[:3] == [7, 0, 1] and repr(rows) == f"<packed list of {N}>"


def test_equal_keys_find_the_same_entry() -> None:
    numbers = pack_dataset({i: i for i in range(N)})
    assert numbers[3.0] == 3 and numbers[True] == 1 and -1 not in numbers
    np = pytest.importorskip("numpy")
    assert numbers[np.int64(7)] == 7
    objects = pack_dataset(np.array([{"a": i} for i in range(N)], dtype=object))
    assert objects[5] == {"a": 5} and len(objects) == N


def test_what_cannot_be_packed_stays_and_is_named() -> None:
    class Odd(data.Dataset):
        def __init__(self) -> None:
            self.functions = [lambda: 1] * N
            self.by_object = {object(): i for i in range(N)}

    odd = Odd()
    with pytest.warns(UserWarning) as caught:
        pack_dataset(odd)
    assert type(odd.functions) is list and type(odd.by_object) is dict
    assert sorted(str(w.message).split(" is not packed")[0] for w in caught) == [
        "pack: dataset.by_object",
        "pack: dataset.functions",
    ]


def test_datasets_in_a_list_are_looked_into() -> None:
    both = data.ConcatDataset([Records(), Records()])
    pack_dataset(both)
    assert all(type(part.rows) is PackedSequence for part in both.datasets)
    assert both[N + 3]["row"]["name"] == "n3"


def test_a_loader_packs_and_gives_the_same_batches() -> None:
    def batches(**options) -> list:
        loader = data.DataLoader(Records(), batch_size=512, **options)
        return [(batch["row"]["name"], batch["row"]["box"][1].tolist(), batch["again"].tolist()) for batch in loader]

    assert batches(pack=True) == batches()
    loader = data.DataLoader(list(range(N)), batch_size=N, pack=True)
    assert type(loader.dataset) is PackedSequence and next(iter(loader)).tolist() == list(range(N))


def test_copies_by_pickle_hold_the_same() -> None:
    packed = pack_dataset(Records())
    copy = pickle.loads(pickle.dumps(packed.rows))
    assert copy == packed.rows and copy[N - 1]["id"] == N - 1


def test_the_block_is_sealed_and_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    rows = pack_dataset(list(range(N)))
    block = rows._block
    with pytest.raises(OSError):
        os.write(block._descriptor, b"x")
    with pytest.raises(OSError):
        os.ftruncate(block._descriptor, 1 << 20)
    del rows, block
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
