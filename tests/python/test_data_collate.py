"""Collation: the batches of samples, and the errors where samples do not fit together."""

from __future__ import annotations

import pickle
from collections import OrderedDict, UserDict, UserList, namedtuple

import pytest
import vesta
from vesta.utils import data
from vesta.utils.data.collate import CollateError, collate, default_collate, default_collate_fn_map

Point = namedtuple("Point", "x y")


class Pictures(data.Dataset):
    """Samples of which number 3 has a different shape."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> dict:
        return {"image": vesta.zeros(3, 4 if index == 3 else 5), "box": [index, {"p": Point(1, [2])}]}


@pytest.mark.differs
def test_errors_name_the_field_and_the_samples() -> None:
    loader = data.DataLoader(Pictures(), batch_sampler=[[5, 3]])
    with pytest.raises(RuntimeError) as caught:
        next(iter(loader))
    assert str(caught.value).startswith('batch["image"]: sample 5 has shape (3, 5), sample 3 (3, 4)')


def row(**changes) -> dict:
    return {"a": [1, {"p": Point(1, [2.0])}], "t": vesta.zeros(2), **changes}


@pytest.mark.differs
@pytest.mark.parametrize("batch, kind, text", [
    ([row(), row(a=[1, {"p": Point(1, [2.0, 3.0])}])], RuntimeError,
     'batch["a"][1]["p"].y: sample 0 of the batch has length 1, sample 1 of the batch 2'),
    ([row(), row(a=[1])], RuntimeError, 'batch["a"]: sample 0 of the batch has length 2, sample 1 of the batch 1'),
    ([row(), {"a": 1}], RuntimeError, 'batch["a"]: sample 0 of the batch has type list, sample 1 of the batch int'),
    ([row(), {"t": vesta.zeros(2)}], KeyError, 'batch: sample 0 of the batch has key "a", sample 1 of the batch has'),
    ([row(), row(t=3)], RuntimeError, 'batch["t"]: sample 0 of the batch has type Tensor, sample 1 of the batch int'),
    ([row(t=1), row(t="x")], RuntimeError, 'batch["t"]: sample 0 of the batch has type int, sample 1 of the batch str'),
    ([row(t=1.0), row(t=[1.0])], RuntimeError, 'batch["t"]: sample 0 of the batch has type float, sample 1 of'),
    ([row(t=object()), row()], TypeError, "batch must contain tensors, numpy arrays, numbers, dicts or lists; found"),
    ([row(), 5], TypeError, "batch: sample 0 of the batch is a mapping, sample 1 of the batch <class"),
    ([vesta.zeros(2), vesta.zeros(3)], RuntimeError, "batch: sample 0 of the batch has shape (2,), sample 1 of the"),
])  # fmt: skip
def test_messages(batch: list, kind: type, text: str) -> None:
    with pytest.raises(kind) as caught:
        data.default_collate(batch)
    assert text in str(caught.value)


def test_the_classes_of_errors_have_plain_names() -> None:
    """What a traceback shows; they are found by their names, so that workers can send them."""
    for batch in ([object()], [vesta.ones(1), vesta.ones(2)], [{"a": 1}, {}]):
        with pytest.raises(CollateError) as caught:
            default_collate(batch)
        assert caught.type.__name__ in ("CollateTypeError", "CollateMismatchError", "CollateKeyError")
        assert type(pickle.loads(pickle.dumps(caught.value))) is caught.type


def test_containers_keep_their_class() -> None:
    batch = data.default_collate([OrderedDict(b=1, a=2), OrderedDict(b=3, a=4)])
    assert type(batch) is OrderedDict and list(batch) == ["b", "a"] and batch["b"].tolist() == [1, 3]
    batch = data.default_collate([UserDict(a=1), UserDict(a=2)])
    assert type(batch) is UserDict and batch["a"].tolist() == [1, 2]
    batch = data.default_collate([UserList([1, "x"]), UserList([2, "y"])])
    assert type(batch) is UserList and batch[0].tolist() == [1, 2] and batch[1] == ("x", "y")
    assert [part.tolist() for part in data.default_collate([range(2), range(2)])] == [[0, 0], [1, 1]]
    assert data.default_collate([(1, "a"), (2, "b")])[1] == ("a", "b")


def test_conversion_keeps_containers() -> None:
    np = pytest.importorskip("numpy")
    made = data.default_convert({"p": Point(np.ones(2), "s"), "l": [np.int64(3), None], "t": (1, 2)})
    assert type(made["p"]) is Point and made["p"].x.tolist() == [1, 1] and made["p"].y == "s"
    assert made["l"][0].item() == 3 and made["l"][1] is None and made["t"] == [1, 2]
    texts = np.array(["a", "b"])
    assert data.default_convert(texts) is texts and data.default_convert(range(3)) == [0, 1, 2]


def test_numpy_kinds() -> None:
    np = pytest.importorskip("numpy")
    batch = data.default_collate([{"f": np.float64(1), "b": np.bool_(True), "m": np.zeros((2, 2), np.int16)}] * 3)
    assert batch["f"].dtype == vesta.float64 and batch["b"].dtype == vesta.bool
    assert batch["m"].shape == (3, 2, 2) and batch["m"].dtype == vesta.int16
    with pytest.raises(TypeError, match="found <U1"):
        data.default_collate([np.array(["a"]), np.array(["b"])])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        data.default_collate([np.zeros(2), np.zeros(3)])
    assert data.default_collate([np.str_("a"), np.str_("b")]) == ["a", "b"]


def test_the_map_can_be_extended(monkeypatch: pytest.MonkeyPatch) -> None:
    class Text:
        def __init__(self, words: str) -> None:
            self.words = words

    class Longer(Text):
        pass

    def joined(batch, *, collate_fn_map=None) -> str:
        return " ".join(text.words for text in batch)

    monkeypatch.setitem(default_collate_fn_map, Text, joined)
    assert data.default_collate([{"t": Longer("a")}, {"t": Longer("b")}]) == {"t": "a b"}
    assert collate([1, 2], collate_fn_map={int: lambda batch, *, collate_fn_map: batch[::-1]}) == [2, 1]
    with pytest.raises(TypeError, match="found"):
        collate([1, 2], collate_fn_map={})
