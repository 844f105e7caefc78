"""docs/interoperability.md: each library as its user calls it. Row 22 of tests/EXCEPTIONS.md where one is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vesta

ARRAY = np.random.default_rng(0).normal(size=(20, 2)).astype("float32")
X, Y = vesta.tensor(ARRAY), vesta.arange(20) % 2


def test_pandas() -> None:
    """Tables of tensors have the columns and dtypes of those of arrays."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b"])
    assert table.equals(pandas.DataFrame(ARRAY, columns=["a", "b"])) and str(table.dtypes["a"]) == "float32"
    assert pandas.DataFrame({"a": X[:, 0], "y": Y}).dtypes.astype(str).tolist() == ["float32", "int64"]
    assert pandas.Series(Y).value_counts().tolist() == [10, 10]
    table["c"] = Y
    assert table["c"].tolist() == Y.tolist() and table.iloc[vesta.tensor([3, 1])].index.tolist() == [3, 1]
    assert pandas.isna(X).shape == (20, 2) and len(pandas.cut(X[:, 0], 3)) == 20
    with pytest.raises(RuntimeError, match="requires grad"):
        pandas.DataFrame(X.clone().requires_grad_())


def test_a_tensor_of_a_table() -> None:
    """``vesta.tensor`` takes a DataFrame, and a Series whatever its index; texts are refused."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
    assert vesta.tensor(table).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert vesta.tensor(table["a"][1:]).tolist() == [2, 3] and vesta.tensor(table["a"]).dtype == vesta.float64
    mixed = pandas.DataFrame({"a": ["x"], "b": [1]})
    with pytest.raises(TypeError, match=r"tensor: .* a DataFrame with columns of text .*select_dtypes\('number'\)"):
        vesta.tensor(mixed)
    assert vesta.tensor(mixed.select_dtypes("number")).tolist() == [[1]]


class Table:
    """What pandas' DataFrame is to ``vesta.tensor``."""

    def __init__(self, values: list) -> None:
        self.values = np.array(values, dtype=object)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values

    def select_dtypes(self, kind: str) -> Table:
        return self


def test_a_table_with_text_is_told_of_select_dtypes() -> None:
    for make in (vesta.tensor, vesta.as_tensor):
        with pytest.raises(TypeError, match=rf"^{make.__name__}: expected a table of numbers, .*select_dtypes"):
            make(Table([["x", 1]]))


def test_scikit_learn() -> None:
    """Estimators, metrics and splits give what they give for arrays."""
    sklearn = pytest.importorskip("sklearn")
    from sklearn import cluster, linear_model, metrics, model_selection, preprocessing

    assert sklearn.__version__
    model = linear_model.LogisticRegression().fit(X, Y)
    assert np.array_equal(model.predict(X), linear_model.LogisticRegression().fit(ARRAY, Y.numpy()).predict(ARRAY))
    assert metrics.accuracy_score(Y, Y) == 1.0 and metrics.confusion_matrix(Y, Y).tolist() == [[10, 0], [0, 10]]
    parts = model_selection.train_test_split(X, Y, stratify=Y, random_state=0)
    assert all(isinstance(part, vesta.Tensor) for part in parts) and parts[0].shape == (15, 2)
    assert [X[train].shape[0] for train, _ in model_selection.KFold(4).split(X)] == [15] * 4
    np.testing.assert_allclose(preprocessing.StandardScaler().fit_transform(X).mean(0), 0, atol=1e-6)
    assert cluster.KMeans(2, n_init=1, random_state=0).fit(X).labels_.shape == (20,)


@pytest.fixture(scope="module")
def plt() -> Any:
    """Draws into memory; no window opens."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    return pyplot


def test_seaborn(plt: Any) -> None:
    """Plots that name their axes and columns."""
    seaborn = pytest.importorskip("seaborn")
    drawn: list[Any] = [
        lambda: seaborn.heatmap(X),
        lambda: seaborn.scatterplot(x=X[:, 0], y=X[:, 1], hue=Y),
        lambda: seaborn.histplot(X),
        lambda: seaborn.boxplot(x=Y, y=X[:, 0]),
        lambda: seaborn.regplot(x=X[:, 0], y=X[:, 1], n_boot=5),
        lambda: seaborn.lineplot(data={"a": X[:, 0], "b": X[:, 1]}, x="a", y="b"),
    ]
    for draw in drawn:
        axes = draw()
        assert axes.has_data() and axes.get_xlabel() in ("", "a")
        plt.close("all")


def test_xarray() -> None:
    """Arrays with names, of tensors and back."""
    xarray = pytest.importorskip("xarray")
    named = xarray.DataArray(X, dims=("row", "column"), coords={"row": vesta.arange(20)})
    assert isinstance(named.data, np.ndarray) and named.sel(row=3).values.tolist() == X[3].tolist()
    np.testing.assert_allclose(named.mean("row"), ARRAY.mean(0), rtol=1e-5)
    assert named.isel(row=vesta.tensor([1, 2])).shape == (2, 2) and (named * 2).shape == (20, 2)
    assert xarray.Dataset({"v": (("a", "b"), X)})["v"].dtype == "float32"


def test_a_tensor_of_named_arrays() -> None:
    """``vesta.tensor`` takes what has ``__array__``."""
    xarray = pytest.importorskip("xarray")
    assert vesta.tensor(xarray.DataArray(ARRAY)).tolist() == ARRAY.tolist()


def test_a_tensor_of_an_image() -> None:
    """Pillow 13 shows its pixels by ``__array_interface__`` only."""
    image = pytest.importorskip("PIL.Image").new("RGB", (3, 2), (1, 2, 3))
    for make in (vesta.tensor, vesta.as_tensor, vesta.asarray):
        made = make(image)
        assert made.shape == (2, 3, 3) and made[0, 0].tolist() == [1, 2, 3] and made.dtype == vesta.uint8
    assert vesta.tensor(image, dtype=vesta.float32).dtype == vesta.float32


class OnlyInterface:
    __array_interface__ = ARRAY.__array_interface__


class OnlyArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return ARRAY


class OnlyDlpack:
    def __init__(self, x: vesta.Tensor) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__()


class ElsewhereDlpack(OnlyDlpack):
    """An array of another device, which refuses to become NumPy's, as CuPy's do."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError("implicit conversion to a NumPy array")


@pytest.mark.parametrize("kind", [OnlyInterface, OnlyArray, OnlyDlpack, ElsewhereDlpack])
def test_any_protocol_of_arrays_will_do(kind: Any) -> None:
    """``tensor`` copies; ``as_tensor`` shares what DLPack gives, and copies the rest."""
    memory = X.clone()
    value = kind(memory) if issubclass(kind, OnlyDlpack) else kind()
    copied, shared = vesta.tensor(value), vesta.as_tensor(value, dtype=vesta.float32)
    assert vesta.equal(copied, X) and vesta.equal(shared, X)
    memory[0, 0] = 9
    assert copied[0, 0] == X[0, 0] and shared[0, 0] == (9 if issubclass(kind, OnlyDlpack) else X[0, 0])
    assert vesta.tensor(value, dtype=vesta.float64).dtype == vesta.float64


def test_jax() -> None:
    """Arrays go both ways; JAX's are never written by what shares their memory through ``as_tensor``."""
    numpy = pytest.importorskip("jax.numpy")
    there = numpy.asarray(ARRAY)
    assert vesta.equal(vesta.tensor(there), X) and vesta.equal(vesta.as_tensor(there), X)
    assert vesta.equal(vesta.from_dlpack(there), X) and vesta.tensor(there > 0).dtype == vesta.bool
    with pytest.raises(RuntimeError, match="read-only"):
        vesta.as_tensor(there).add_(1)
    halves = numpy.asarray(ARRAY, dtype="bfloat16")
    assert vesta.tensor(halves).dtype == vesta.as_tensor(halves).dtype == vesta.bfloat16
    assert np.array_equal(numpy.from_dlpack(X), ARRAY) and np.array_equal(numpy.asarray(X), ARRAY)


def test_safetensors(tmp_path: Path) -> None:
    """Both libraries read each other's files."""
    numpy_files = pytest.importorskip("safetensors.numpy")
    vesta.save_file({"a": X, "y": Y}, tmp_path / "vesta")
    read = numpy_files.load_file(tmp_path / "vesta")
    assert np.array_equal(read["a"], ARRAY) and read["y"].dtype == "int64"
    numpy_files.save_file({"a": ARRAY, "mask": ARRAY > 0}, tmp_path / "numpy")
    read = vesta.load_file(tmp_path / "numpy")
    assert vesta.equal(read["a"], X) and vesta.equal(read["mask"], X > 0)


def test_storages_over_files(tmp_path: Path) -> None:
    """``UntypedStorage.from_file``, slices of it and ``asarray``: how ``safetensors.torch`` reads under as_torch."""
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    storage = vesta.UntypedStorage.from_file(str(path), nbytes=16)
    mapped = vesta.from_file(str(path), size=2, dtype=vesta.int64)
    assert mapped.tolist() == storage._bytes.view(vesta.int64).tolist() and mapped.dtype == vesta.int64
    with pytest.raises(RuntimeError, match="expected the CPU"):
        vesta.from_file(str(path), size=2, device="meta")
    part = vesta.asarray(storage[4:8], dtype=vesta.uint8)
    assert part.tolist() == [4, 5, 6, 7] and part.view(vesta.int32).tolist() == [0x07060504]
    part[0] = 99
    assert storage[4] == 99 and path.read_bytes()[4] == 4
    with pytest.raises(RuntimeError, match="expected a file of 17 bytes"):
        vesta.UntypedStorage.from_file(str(path), nbytes=17)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        vesta.UntypedStorage.from_file(str(path), nbytes=-1)
    with pytest.raises(RuntimeError, match="a slice of step 1"):
        storage[::2]
    shared = vesta.UntypedStorage.from_file(str(path), shared=True, nbytes=20)
    vesta.asarray(shared)[18] = 5
    del shared, storage, part
    assert path.read_bytes()[16:] == b"\0\0\5\0" and path.read_bytes()[4] == 4
