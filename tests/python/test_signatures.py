"""PyTorch's recorded signatures: their notation, the comparison with made-up registries, and Vesta's own functions."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Callable

import pytest
from signatures.compare import Report, compare, forms_of_package, forms_of_registry
from signatures.notation import (
    MODULES,
    Forms,
    Parameter,
    methods_of,
    overload_of_function,
    parse_overload,
    read_others,
    read_table,
    surface,
    write_table,
)

TABLE = read_table()

#: Public names whose signatures may differ from PyTorch's, and why.
NUMBERED = "the reduction of PyTorch's calls is 0 (none) by default, whatever its signature says"
OUT_DTYPE = "out_dtype (a float32 result of 16-bit operands) is not there yet"
UNBIASED = "the forms with unbiased want it: without, var(x) is the form with correction, which gives the same"
ONE_FORM = "one function for PyTorch's forms, which a signature of Python cannot say"
RETURNED = "functions return it; its constructor is not for callers, and takes what it is made of here"
CUDA_FLAG = "use_cuda, which older programs give, is still taken"
REFUSED = "proj_size has its own error, as in PyTorch, whose stubs leave it out"
ALLOWED = {
    "binary_cross_entropy_with_logits": NUMBERED,
    "cosine_embedding_loss": NUMBERED,
    "ctc_loss": NUMBERED,
    "hinge_embedding_loss": NUMBERED,
    "kl_div": NUMBERED,
    "margin_ranking_loss": NUMBERED,
    "triplet_margin_loss": NUMBERED,
    "addmm": OUT_DTYPE,
    "baddbmm": OUT_DTYPE,
    "bmm": OUT_DTYPE,
    "mm": OUT_DTYPE,
    "var": UNBIASED,
    "std": UNBIASED,
    "nonzero": "two forms, with as_tuple and without; together they take PyTorch's calls",
    "native_dropout": "train is a bool; PyTorch's None means True",
    "nn.functional.normalize": "dim may be several dimensions",
    "subtract": "the same forms as sub: alpha is a keyword for numbers too",
    "subtract_": "the same forms as sub_",
    "true_divide": "the same forms as div",
    "true_divide_": "the same forms as div_",
    "addmv_": "the function takes the deprecated forms of the method too",
    "to_sparse": "there is no layout but sparse_coo",
    "nuclear_norm": ONE_FORM,
    **dict.fromkeys(("sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor"), ONE_FORM),
    "to": ONE_FORM,
    "view_copy": ONE_FORM,
    "TypedStorage": RETURNED,
    "storage.TypedStorage": RETURNED,
    "autograd.profiler.FunctionEvent": RETURNED,
    "library.CustomOpDef": RETURNED,
    "multiprocessing.ProcessContext": RETURNED,
    "multiprocessing.SpawnContext": RETURNED,
    "nn.attention.flex_attention.BlockMask": RETURNED,
    "serialization.StorageType": RETURNED,
    "utils.benchmark.Measurement": RETURNED,
    "autograd.profiler.profile": CUDA_FLAG,
    "profiler.profile": CUDA_FLAG,
    "nn.GRU": REFUSED,
    "nn.RNN": REFUSED,
    "hub.load_state_dict_from_url": "weights_only is True by default: what comes from a network runs no code",
    "utils.benchmark.Timer": "the default clock and language have no names of PyTorch's",
    "utils.data.DataLoader": "device and pack are Vesta's own",
}


def unexpected(report: Report, names: Iterable[str]) -> list[str]:
    """Returns the differences that no row of ALLOWED stands for, and rows for names that agree."""
    lines = [line for line in report.lines() if line.partition(": ")[0] not in ALLOWED]
    return lines + [
        f"{name}: agrees, its row goes" for name in ALLOWED if name in names and name not in report.differences
    ]


@pytest.mark.differs
def test_everything_has_pytorchs_signatures() -> None:
    """Functions, methods and constructors take the arguments that PyTorch's take, overload by overload."""
    import vesta

    forms = {name: found for name, found in forms_of_package(vesta).items() if name in TABLE}
    assert len(forms) > 1700
    for name in ("exp", "exp_", "range", "nn.functional.relu", "nn.init.normal_", "optim.SGD", "nn.Linear"):
        assert forms[name].function, name
    assert forms["numpy"].method
    assert unexpected(compare(TABLE, forms, read_others()), forms) == []


def shown() -> set[str]:
    """Returns the public names of Vesta as ``dir()`` shows them."""
    import vesta

    names = {f"Tensor.{name}" for name in dir(vesta.Tensor) if not name.startswith("_")}
    for path in MODULES:
        module = importlib.import_module(f"vesta.{path}".rstrip("."))
        names |= {f"{path}.{name}".lstrip(".") for name in surface(module)}
    return names


def test_names_are_pytorchs_or_listed() -> None:
    """What ``dir()`` shows is PyTorch's, or stands in ``docs/own_names.md``; what stands there is shown."""
    theirs = read_others() | {name for name, forms in TABLE.items() if forms.function}
    theirs |= {f"Tensor.{name}" for name, forms in TABLE.items() if forms.method}
    command = [sys.executable, "-c", "import test_signatures as t; print(*t.shown())"]  # where no test imported more
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(here.parent), *filter(None, sys.path)])}
    ours = set(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split())
    text = (Path(__file__).parents[2] / "docs" / "own_names.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall("`([^`]+)`", row)}
    assert ours - theirs == listed


def test_the_list_of_differences_says_how_many_there_are() -> None:
    """``docs/differences.md`` has the number of names in ALLOWED."""
    text = (Path(__file__).parents[2] / "docs" / "differences.md").read_text()
    assert f" {len(ALLOWED)} names differ in an overload or a default" in text


def test_what_pytorch_refuses_is_refused() -> None:
    """Arguments that PyTorch takes by name only, or not at all, and those that it takes by another name."""
    import vesta
    import vesta.nn.functional as F

    x = vesta.ones(2, 2)
    refused: list[Callable[[], Any]] = [
        lambda: vesta.tensor([1], vesta.float32),
        lambda: vesta.as_tensor([1], vesta.float32),
        lambda: vesta.frombuffer(b"12345678", vesta.uint8),
        lambda: x.numpy(True),
        lambda: x.new_tensor([1], vesta.float32),
        lambda: x.float(vesta.contiguous_format),
        lambda: x.exp(out=x),
        lambda: x.add_(1, out=x),
        lambda: F.elu_(x, out=x),
        lambda: vesta.range(3),
        lambda: vesta.frobenius_norm(x),
    ]
    for call in refused:
        with pytest.raises(TypeError):
            call()
    assert vesta.equal(x, vesta.ones(2, 2))
    assert vesta.result_type(tensor=x, other=1.0) == vesta.result_type(scalar=1.0, tensor=x) == vesta.float32
    assert vesta.linalg.norm(input=x).item() == 2.0 and vesta.is_same_size(input=x, other=x)
    assert len(vesta.histogram(x).hist) == 100 and vesta.exp_(input=x.clone()).shape == (2, 2)
    assert vesta.nuclear_norm(x, True).shape == (1, 1)
    inverse, info = vesta.zeros(2, 2), vesta.zeros((), dtype=vesta.int32)
    assert vesta.linalg.inv_ex(vesta.eye(2), out=(inverse, info)).inverse is inverse and vesta.equal(
        inverse, vesta.eye(2)
    )
    copy = vesta.from_dlpack(x, copy=True)
    assert copy.data_ptr() != x.data_ptr() and vesta.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()


def entry(name: str, text: str, **facts: Any) -> dict[str, Any]:
    """Makes an entry of a registry of the notation's text."""
    overload = parse_overload(text)
    parameters = [
        {"name": p.name, "keyword_only": p.keyword_only, "type": p.type, "default": p.default}
        for p in overload.parameters
    ]
    plain = {"overload": "", "space": "", "function": True, "method": False, "inplace": False, "aliases": []}
    flags = {"out": overload.out, "factory": overload.factory, "deprecated": overload.deprecated}
    return {"name": name, **plain, **flags, "parameters": parameters, **facts}


def told(*entries: dict[str, Any], table: dict[str, Forms] = TABLE) -> list[str]:
    """Compares made-up entries with the table."""
    return compare(table, forms_of_registry(entries)).lines()


def test_notation_reads_what_it_writes() -> None:
    for name, forms in TABLE.items():
        for overload in (*forms.function, *forms.method):
            assert parse_overload(str(overload)) == overload, name


def test_notation_of_every_kind_of_parameter() -> None:
    overload = parse_overload(
        "(Tensor input, int[2] stride=(-2, -1), *, str? mode='a, b', other, **rest) out deprecated"
    )
    assert overload.parameters == (
        Parameter("input", "Tensor"),
        Parameter("stride", "int[2]", "(-2, -1)"),
        Parameter("mode", "str?", "'a, b'", keyword_only=True),
        Parameter("other", keyword_only=True),
        Parameter("**rest", keyword_only=True),
    )
    assert (overload.out, overload.factory, overload.deprecated) == (True, False, True)
    assert str(parse_overload("(*tensors, str? indexing=None)")) == "(*tensors, str? indexing=None)"


def test_table_is_written_as_it_was_read(tmp_path: Any) -> None:
    path = tmp_path / "table.json"
    write_table(TABLE, {"": ["pi"], "nn": ["init"]}, "1.0", path)
    assert read_table(path) == TABLE
    assert read_others(path) == {"pi", "nn.init"}


def test_table_holds_what_pytorch_says() -> None:
    """Some facts of each source of the table."""
    assert [str(o) for o in TABLE["max"].function] == [
        "(Tensor input) out",
        "(Tensor input, Tensor other) out",
        "(Tensor input, int dim, bool keepdim=False) out",
    ]
    assert TABLE["max"].method == methods_of(TABLE["max"].function)
    assert parse_overload("(Tensor input, Scalar alpha, Tensor other) out deprecated") in TABLE["add"].function
    assert [str(o) for o in TABLE["tensor"].function] == [
        "(data, *, dtype dtype=None, device? device=None, bool pin_memory=False, bool requires_grad=False)"
    ]
    assert [str(o) for o in TABLE["linalg.det"].function] == ["(Tensor A) out"]
    assert [str(o) for o in TABLE["nn.functional.relu"].function] == ["(Tensor input, bool inplace=False)"]
    assert [str(o) for o in TABLE["item"].method] == ["()"]


def test_signature_of_a_python_function() -> None:
    def some(input: Tensor, dim: int | None = None, _n: int = 3, *, sizes: list[int], out=None) -> None:  # noqa: F821
        """Has a parameter of every kind that matters."""

    assert str(overload_of_function(some)) == "(Tensor input, int? dim=None, *, int[] sizes) out"
    assert str(overload_of_function(some, method=True)) == "(int? dim=None, *, int[] sizes) out"


@pytest.mark.parametrize("name", ["max", "std", "addmm", "where", "randint", "conv2d", "sum", "norm"])
def test_the_same_overloads_are_no_difference(name: str) -> None:
    entries = [entry(name, str(overload)) for overload in TABLE[name].function]
    functions = {name: Forms(TABLE[name].function)}
    assert told(*entries, table=functions) == []


def test_the_whole_table_agrees_with_itself() -> None:
    assert compare(TABLE, TABLE) == Report()


def test_methods_and_in_place_methods() -> None:
    both = {"method": True, "inplace": True}
    assert told(entry("exp", "(Tensor input) out", **both)) == []
    assert told(entry("exp", "(Tensor input) out", inplace=True)) == [
        "exp: there is no method",
        "exp_: there is no method",
    ]
    assert told(entry("maximum", "(Tensor input, Tensor other) out", **both)) == ["maximum_: PyTorch has no such name"]


def test_aliases_and_spaces() -> None:
    text = "(Tensor input, Tensor other) out"
    assert told(entry("mul", text, method=True, aliases=["multiply"])) == []
    assert told(entry("det", "(Tensor A) out", space="linalg")) == []
    assert told(entry("gelu", "(Tensor input, *, str approximate='none') out", space="nn")) == []
    assert told(entry("softmax_rows", "(Tensor input)", space="private")) == []
    assert told(entry("softmax_rows", "(Tensor input)")) == ["softmax_rows: PyTorch has no such name"]


def test_a_missing_overload_and_one_too_many() -> None:
    entries = [
        entry("max", "(Tensor input) out", method=True),
        entry("max", "(Tensor input, int dim, bool keepdim=False) out", method=True),
        entry("max", "(Tensor input, int axis) out", method=True),
    ]
    assert told(*entries) == [
        "max: function (Tensor input, Tensor other) out is missing",
        "max: function (Tensor input, int axis) out is only in Vesta",
        "max: method (Tensor other) is missing",
        "max: method (int axis) is only in Vesta",
    ]


def test_a_deprecated_overload_is_missed() -> None:
    lines = told(entry("add", "(Tensor input, Tensor other, *, Scalar alpha=1) out", method=True))
    assert lines == [
        "add: function (Tensor input, Scalar alpha, Tensor other) out deprecated is missing",
        "add: method (Scalar alpha, Tensor other) deprecated is missing",
    ]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("(Tensor input, *, int dim, Scalar? dtype=None) out", "dtype is dtype? in PyTorch, Scalar? in Vesta"),
        ("(Tensor input, *, int dim, dtype? dtype=None) out", "dim is positional in PyTorch, keyword-only in Vesta"),
        ("(Tensor input, int dim, dtype? dtype=None) out", "dtype is keyword-only in PyTorch, positional in Vesta"),
        ("(Tensor input, int dim=0, *, dtype? dtype=None) out", "dim is required in PyTorch, has default 0 in Vesta"),
        (
            "(int dim, Tensor input, *, dtype? dtype=None) out",
            "the order is input, dim in PyTorch, dim, input in Vesta",
        ),
        ("(Tensor input, int dim, *, dtype? dtype=None)", "PyTorch has an out form, Vesta has none"),
        (
            "(Tensor input, int dim, *, dtype? dtype=None) out deprecated",
            "PyTorch has no deprecated form, Vesta has one",
        ),
    ],
)
def test_facts_that_differ(text: str, fact: str) -> None:
    table = {"cumsum": Forms(TABLE["cumsum"].function)}
    assert f"cumsum: function (Tensor input, int dim, *, dtype? dtype=None) out: {fact}" in told(
        entry("cumsum", text), table=table
    )


def test_other_words_for_the_same() -> None:
    table = {"f": Forms((parse_overload("(int[2] stride, float eps=1e-05, dtype? dtype=None, int[1]? dim=None)"),))}
    assert told(entry("f", "(int[] stride, Scalar eps=0.00001, dtype dtype=None, int[] dim=())"), table=table) == []
    untyped = {"f": Forms((parse_overload("(stride, eps=1.0)"),))}
    assert told(entry("f", "(int[] stride, float eps=1)"), table=untyped) == []


def test_numbers_for_tensors_need_no_overload() -> None:
    """A tensor operand takes numbers, so that one overload stands for PyTorch's two; not so the other way round."""
    assert told(entry("eq", "(Tensor input, Tensor other) out", method=True)) == []
    assert told(entry("pow", "(Tensor input, Tensor exponent) out", method=True)) == []
    assert told(entry("eq", "(Tensor input, Scalar other) out", method=True)) == [
        "eq: function (Tensor input, Tensor other) out is missing",
        "eq: method (Tensor other) is missing",
    ]


def test_floats_for_numbers_are_counted_apart() -> None:
    table = {"f": Forms((parse_overload("(Tensor input, Scalar value=1, float eps=0.1)"),))}
    report = compare(table, forms_of_registry([entry("f", "(Tensor input, float value=1, float eps=0.1)")]))
    assert report.lines() == []
    assert report.scalar_floats == ["f function (Tensor input, Scalar value=1, float eps=0.1): value"]


def test_factories() -> None:
    options = "dtype? dtype=None, layout? layout=None, device? device=None, bool? pin_memory=False, requires_grad=False"
    assert told(entry("zeros", f"(int[] size, *, {options}) out factory")) == []
    assert told(entry("zeros", "(int[] size) out factory")) == []
    assert told(entry("zeros", "(int[] size) out")) == [
        "zeros: function (int[] size) out factory: PyTorch has a factory form, Vesta has none"
    ]


def test_a_line_of_the_op_list_is_checked_when_it_is_read() -> None:
    """What the parser of calls has no room for, or could not express, is refused; no array is written past its end."""
    import vesta

    read = vesta._C._read_parameters

    def is_read(text: str) -> bool:
        try:
            read(text)
        except NotImplementedError:
            return False
        return True

    assert [p["name"] for p in read("(const Tensor& input, IntTuple size = {2, -1}, Kw<bool> on = true)")] == [
        "input",
        "size",
        "on",
    ]
    many = [f"int64_t p{i}" for i in range(100)]
    most = max(n for n in range(100) if is_read(f"({', '.join(many[:n])})"))
    assert 20 <= most < 30 and len(read(f"({', '.join(many[:most])})")) == most
    for n in (most + 1, most + 2, 99):
        with pytest.raises(NotImplementedError, match=rf"at most {most} parameters, got {n}"):
            read(f"({', '.join(many[:n])})")
    with pytest.raises(NotImplementedError, match="a parameter type that Python knows, got Matrix"):
        read("(Matrix m)")
    with pytest.raises(NotImplementedError, match="expected no default for a parameter of type Scalar, got 0.5"):
        read("(Scalar s = 0.5)")
    with pytest.raises(TypeError):
        read(3)
