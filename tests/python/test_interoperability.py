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
    with pytest.raises(TypeError, match="tensor: can't convert"):
        vesta.tensor(pandas.DataFrame({"a": ["x"], "b": [1]}))


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
    """Draws text, before descriptors are counted: matplotlib keeps the files of its fonts open."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    pyplot.figure().text(0, 0, "text")
    pyplot.gcf().canvas.draw()
    pyplot.close("all")
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


def test_a_tensor_of_named_arrays_and_images() -> None:
    """``vesta.tensor`` takes what has ``__array__``."""
    xarray = pytest.importorskip("xarray")
    assert vesta.tensor(xarray.DataArray(ARRAY)).tolist() == ARRAY.tolist()
    image = pytest.importorskip("PIL.Image").new("RGB", (3, 2), (1, 2, 3))
    assert vesta.tensor(image).shape == (2, 3, 3) and vesta.tensor(image)[0, 0].tolist() == [1, 2, 3]


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
