"""PyTorch's small modules: settings of the process, printing, default device, storages, versions, backends, trees."""

from __future__ import annotations

import collections
import os
import subprocess
import sys
import textwrap
import types
from typing import Any

import pytest
import vesta
from vesta.torch_version import TorchVersion
from vesta.utils import _pytree as pytree

# ---- settings ---------------------------------------------------------------------------------------------------


def test_deterministic_algorithms() -> None:
    try:
        vesta.use_deterministic_algorithms(True, warn_only=True)
        assert vesta.are_deterministic_algorithms_enabled() and vesta.get_deterministic_debug_mode() == 1
        assert vesta.is_deterministic_algorithms_warn_only_enabled()
        vesta.set_deterministic_debug_mode("error")
        assert vesta.get_deterministic_debug_mode() == 2
        assert not vesta.is_deterministic_algorithms_warn_only_enabled()
    finally:
        vesta.set_deterministic_debug_mode(0)
    assert not vesta.are_deterministic_algorithms_enabled() and vesta.get_deterministic_debug_mode() == 0
    with pytest.raises(RuntimeError, match="expected 0, 1, 2, 'default', 'warn' or 'error', got 'loud'"):
        vesta.set_deterministic_debug_mode("loud")
    with pytest.raises(TypeError):
        vesta.set_deterministic_debug_mode(1.0)  # type: ignore[arg-type]


def test_the_precision_of_products_is_the_switch_of_the_backend() -> None:
    assert vesta.get_float32_matmul_precision() == "highest"
    try:
        vesta.set_float32_matmul_precision("medium")
        assert vesta.backends.cuda.matmul.allow_tf32 and vesta.get_float32_matmul_precision() == "medium"
        vesta.backends.cuda.matmul.allow_tf32 = False
        assert vesta.get_float32_matmul_precision() == "highest"
        vesta.backends.cuda.matmul.allow_tf32 = True
        assert vesta.get_float32_matmul_precision() in ("high", "medium")
    finally:
        vesta.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="got 'low'"):
        vesta.set_float32_matmul_precision("low")


@pytest.fixture
def print_options() -> Any:
    yield vesta.set_printoptions
    vesta.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("options", "values", "text"),
    [
        ({"precision": 2}, [3.14159, 1.0], "tensor([3.14, 1.00])"),
        ({"sci_mode": True}, [1.0, 20.0], "tensor([1.0000e+00, 2.0000e+01])"),
        ({"sci_mode": False}, [1e-7, 1.0], "tensor([0.0000, 1.0000])"),
        ({"threshold": 3, "edgeitems": 1}, [1, 2, 3, 40], "tensor([ 1,  ..., 40])"),
        ({"linewidth": 20}, [1, 2, 3, 4, 5], "tensor([1, 2, 3, 4,\n        5])"),
        ({"profile": "short"}, [0.123, 1.0], "tensor([0.12, 1.00])"),
        (
            {"precision": 1},
            [[1.5, float("nan")], [float("inf"), -2.0]],
            "tensor([[ 1.5,  nan],\n        [ inf, -2.0]])",
        ),
        ({"precision": 1}, [], "tensor([])"),
        ({"precision": 1}, [True, False], "tensor([ True, False])"),
        ({"precision": 1}, [1 + 2j], "tensor([1.+2.j])"),
    ],
)
def test_print_options(print_options: Any, options: dict[str, Any], values: Any, text: str) -> None:
    print_options(**options)
    shown = repr(vesta.tensor(values))
    assert " ".join(shown.split()) == " ".join(text.split())


def test_print_options_by_default_are_those_of_cpp(print_options: Any) -> None:
    samples = [
        vesta.arange(24).reshape(2, 3, 4) * 0.1,
        vesta.ones(50, 50, requires_grad=True),
        vesta.tensor([1e-9, 1.0]),
        vesta.ones(2, 0),
        vesta.tensor(2, dtype=vesta.int8),
        vesta.ones(30, dtype=vesta.float64) * 1j,
        vesta.ones(2, requires_grad=True).exp(),
    ]
    expected = [repr(x) for x in samples]
    from vesta import _printing

    assert [_printing._show(x) for x in samples] == expected
    print_options(precision=1)
    assert [repr(x) for x in samples] != expected
    print_options(precision=4)
    assert not isinstance(vesta.Tensor.__repr__, types.FunctionType) and [repr(x) for x in samples] == expected
    for bad in ({"precision": -1}, {"linewidth": "wide"}, {"profile": "long"}):
        with pytest.raises(ValueError, match="set_printoptions"):
            print_options(**bad)


def test_the_default_device_reaches_factories() -> None:
    plain = vesta.ones
    assert vesta.get_default_device() == vesta.device("cpu")
    with vesta.device("cuda:99"):
        assert vesta.get_default_device() == vesta.device("cuda:99") and vesta.ones is not plain
        for make in (
            lambda: vesta.ones(2),
            lambda: vesta.tensor([1.0]),
            lambda: vesta.arange(3),
            lambda: vesta.rand(1),
        ):
            with pytest.raises(RuntimeError):  # there is no such device, so that it was used
                make()
        assert vesta.ones(2, device="cpu").device.type == "cpu" and plain(2).device.type == "cpu"
        assert vesta.as_tensor(plain(2)).device.type == "cpu"
        with vesta.device("cpu"):
            assert vesta.ones(2).device.type == "cpu"
    assert vesta.ones is plain

    @vesta.device("cuda:99")
    def decorated() -> Any:
        return vesta.get_default_device()

    assert decorated().index == 99
    vesta.set_default_device("cuda:99")
    try:
        with pytest.raises(RuntimeError):
            vesta.zeros(1)
    finally:
        vesta.set_default_device(None)
    assert vesta.ones is plain
    with pytest.raises(RuntimeError):
        vesta.set_default_device("nowhere")


def test_generators_continue_after_a_fork() -> None:
    vesta.manual_seed(3)
    with vesta.random.fork_rng(devices=[]):
        inside = vesta.rand(2)
        vesta.manual_seed(4)
    assert vesta.equal(vesta.rand(2), inside)
    with vesta.random.fork_rng(enabled=False):
        first = vesta.rand(2)
    vesta.manual_seed(3)
    vesta.rand(2)
    assert vesta.equal(vesta.rand(2), first)


def test_checks_raise_what_they_say() -> None:
    vesta._check(True)
    for check, error in (
        (vesta._check, RuntimeError),
        (vesta._check_value, ValueError),
        (vesta._check_index, IndexError),
        (vesta._check_type, TypeError),
        (vesta._check_not_implemented, NotImplementedError),
    ):
        with pytest.raises(error, match="because"):
            check(False, lambda: "because")
    with pytest.raises(TypeError, match="cond must be a bool"):
        vesta._check(1)


# ---- tensors ----------------------------------------------------------------------------------------------------


def test_forms_of_older_programs() -> None:
    x = vesta.ones(2, dtype=vesta.float64)
    assert x.new(2, 3).shape == (2, 3) and x.new().shape == (0,) and x.new(vesta.Size([4])).shape == (4,)
    assert x.new([1, 2]).dtype == vesta.float64 and vesta.equal(x.new([1, 2]), vesta.tensor([1.0, 2.0]).double())
    assert isinstance(x, vesta.autograd.Variable) and not isinstance(1, vesta.autograd.Variable)
    y = vesta.autograd.Variable(x, requires_grad=True)
    assert y.requires_grad and y.data_ptr() == x.data_ptr() and not x.requires_grad
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        vesta.autograd.Variable([1.0])
    assert vesta.equal(vesta.arange(3.0).apply_(lambda v: v * 2), vesta.tensor([0.0, 2.0, 4.0]))
    assert vesta.equal(vesta.arange(3.0).map_(vesta.ones(1), lambda a, b: a - b), vesta.tensor([-1.0, 0.0, 1.0]))
    assert vesta.equal(vesta.Tensor.__reversed__(vesta.arange(3)), vesta.tensor([2, 1, 0]))
    assert vesta.zeros(2, 3, 4).permute(2, 0, 1).dim_order() == (1, 2, 0)
    assert not (x.is_mps or x.is_xpu or x.is_nested or x.is_conj() or x.is_neg())
    assert issubclass(vesta.optim.lr_scheduler._LRScheduler, vesta.optim.lr_scheduler.LRScheduler)


def test_storages() -> None:
    x = vesta.arange(6.0).reshape(2, 3)
    assert x[1].storage().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] and x.untyped_storage().nbytes() == 24
    made = vesta.FloatStorage([1, 2])
    assert (
        isinstance(made, vesta.FloatStorage) and not isinstance(made, vesta.LongStorage) and made.tolist() == [1.0, 2.0]
    )
    assert vesta.LongStorage(3).size() == 3 and isinstance(vesta.zeros(1).half().storage(), vesta.HalfStorage)
    with pytest.raises(TypeError, match="expected a size or a sequence, got 2 arguments"):
        vesta.ByteStorage(1, 2)


def test_numbers_have_their_names() -> None:
    assert vesta.tensor(vesta.pi).item() == pytest.approx(3.14159265) and vesta.isinf(vesta.tensor(vesta.inf))
    assert vesta.isnan(vesta.tensor(vesta.nan)) and vesta.ones(2)[:, vesta.newaxis].shape == (2, 1)


# ---- modules ----------------------------------------------------------------------------------------------------


def test_versions_compare_as_versions() -> None:
    version = TorchVersion("2.15.0")
    assert version > "2.2" and version >= "2.15" and version < "2.15.1" and version != "2.15.1" and version == "2.15"
    assert version >= (1, 8) and version > "2.15.0rc1" and TorchVersion("2.15.0+cpu") > version
    assert version != "other" and str(version) == "2.15.0" and version.split(".")[1] == "15" and {version: 1}["2.15.0"]
    with pytest.raises(ValueError, match="expected a version such as"):
        assert version > "other"
    assert vesta.version.__version__ == vesta.__version__ and vesta.version.cuda is None and not vesta.version.debug


def test_backends_answer_and_keep_settings() -> None:
    backends = vesta.backends
    assert not backends.openmp.is_available() and not backends.mkl.is_available() and not backends.mkldnn.is_available()
    assert not backends.opt_einsum.is_available() and not backends.mps.is_available() and not backends.flags_frozen()
    with backends.mkldnn.flags(enabled=False):
        assert backends.mkldnn.enabled is False
    assert backends.mkldnn.enabled is True
    with backends.cuda.sdp_kernel(enable_flash=False, enable_math=True):
        assert not backends.cuda.flash_sdp_enabled() and backends.cuda.math_sdp_enabled()
    assert backends.cuda.flash_sdp_enabled() and backends.cuda.preferred_linalg_library("magma") == "default"
    backends.cudnn.benchmark_limit = 10
    with pytest.raises(TypeError, match="expected a int, got str"):
        backends.cudnn.benchmark_limit = "many"


def test_cuda_without_a_device() -> None:
    code = (
        "import vesta; c = vesta.cuda; c.empty_cache(); c.reset_peak_memory_stats(); c.manual_seed_all(1); "
        "a = vesta.accelerator; a.synchronize(); "
        "print(c.memory_allocated(), c.max_memory_reserved(), c.memory_stats(), c.memory_snapshot(), "
        "c.get_rng_state_all(), a.is_available(), a.current_accelerator(), a.device_count(), a.memory_allocated(), "
        "c.nvtx.range_push('x'))\n"
        "assert 'no device' in c.memory_summary()\n"
        "with c.nvtx.range('part {}', 1): pass\n"
    )
    import os

    env = {**os.environ, "VESTA_CUDA_LIBRARY": "/nowhere/libvesta_cuda.so"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert out.split()[:5] == ["0", "0", "{}", "[]", "[]"] and out.split()[5:9] == ["False", "None", "0", "0"]


def test_texts_about_the_machine() -> None:
    assert (
        f"Vesta {vesta.__version__}" in vesta.__config__.show()
        and "native thread pool" in vesta.__config__.parallel_info()
    )
    from vesta.utils import collect_env

    text = collect_env.get_pretty_env_info()
    assert f"Vesta version: {vesta.__version__}" in text and "Python version: 3." in text and "CPU: " in text
    assert vesta.__config__.show() in text


def test_libraries_in_use_are_named_with_their_files() -> None:
    code = """
        import vesta
        from vesta import __config__
        before = __config__.libraries()
        vesta.linalg.qr(vesta.ones(2, 2))
        after = __config__.libraries()
        print(len(before["Vesta"]), len(before["SLEEF"]), len(before["LAPACK"]), len(after["LAPACK"]))
        print(*after["LAPACK"])
    """
    env = {**os.environ, "VESTA_SHOW_CONFIG": "1", "VESTA_ISA": "baseline"}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    counts, lapack = done.stdout.splitlines()
    assert counts == "1 1 0 1" and os.path.isfile(lapack)
    assert f"  - LAPACK: {lapack}\n" in done.stderr and "VESTA_ISA=baseline" in done.stderr
    assert "instructions of the CPU: DEFAULT" in done.stderr and "  - cuDNN: not open\n" in done.stderr
    done = subprocess.run(command, env={**env, "VESTA_SHOW_CONFIG": "0"}, capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.differs
def test_tensorboard_is_tensorboardx(monkeypatch: pytest.MonkeyPatch) -> None:
    from vesta.utils.tensorboard import SummaryWriter

    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match="expected the package tensorboardX, found none"):
        SummaryWriter()
    calls: list[Any] = []

    class Writer:
        def __init__(self, logdir: Any, *others: Any) -> None:
            self.logdir = logdir or "runs/now"

        def add_scalar(self, *args: Any, **kwargs: Any) -> None:
            calls.append((args, kwargs))

        def close(self) -> None:
            calls.append("closed")

    package = types.ModuleType("tensorboardX")
    package.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboardX", package)
    with SummaryWriter("logs") as writer:
        writer.add_scalar("loss", vesta.tensor(2.0, requires_grad=True), global_step=3)
        assert writer.get_logdir() == "logs"
        with pytest.raises(NotImplementedError, match="add_graph"):
            writer.add_graph(None)
        with pytest.raises(AttributeError):
            writer.add_nothing()
    (args, kwargs), end = calls
    assert (
        args[0] == "loss" and type(args[1]).__module__ == "numpy" and kwargs == {"global_step": 3} and end == "closed"
    )


def test_old_names_of_the_standard_library_and_types() -> None:
    assert isinstance("a", vesta._six.string_classes) and issubclass(dict, vesta._six.container_abcs.Mapping)
    assert vesta._six.inf == vesta.inf and isinstance(1, vesta.types.Number)
    from vesta.nn.modules.utils import _list_with_default, _pair, _quadruple, _reverse_repeat_tuple, _single, _triple

    assert (_single(3), _pair(3), _triple((1, 2, 3)), _quadruple(0)) == ((3,), (3, 3), (1, 2, 3), (0, 0, 0, 0))
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1) and _list_with_default((None, 3), [5, 6, 7]) == [6, 3]
    with pytest.raises(ValueError, match="at least 3"):
        _list_with_default((None, 3), [5])


Pair = collections.namedtuple("Pair", "a b")


def test_trees() -> None:
    tree = {"a": 1, "b": [2, (3, Pair(4, collections.deque([5], maxlen=2)))], "c": collections.OrderedDict(d=6)}
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, 5, 6] and spec.num_leaves == 6
    assert pytree.tree_unflatten(leaves, spec) == tree and pytree.tree_map(lambda x: x, tree) == tree
    assert pytree.tree_map(lambda x, y: x + y, [1, (2,)], [3, (4,)]) == [4, (6,)]
    assert pytree.tree_map_only(int, lambda x: -x, [1, "a"]) == [-1, "a"]
    assert pytree.tree_leaves([1, [2]], is_leaf=lambda x: x == [2]) == [1, [2]]
    paths, _ = pytree.tree_flatten_with_path({"a": [1, 2]})
    assert [(pytree.keystr(path), leaf) for path, leaf in paths] == [("['a'][0]", 1), ("['a'][1]", 2)]
    assert pytree.keystr(pytree.tree_flatten_with_path({"a": [Pair(1, 2)]})[0][1][0]) == "['a'][0].b"
    assert pytree.tree_structure([1, 2]) == pytree.tree_structure(["a", "b"]) != pytree.tree_structure([1, [2]])
    with pytest.raises(ValueError, match="expected 2 leaves, got 1"):
        pytree.tree_unflatten([1], pytree.tree_structure([1, 2]))
    with pytest.raises(ValueError, match="trees of one structure"):
        pytree.tree_map(lambda x, y: x, [1], [1, 2])


def test_results_of_ops_are_trees() -> None:
    found = vesta.sort(vesta.tensor([3.0, 1.0, 2.0]))
    leaves, spec = pytree.tree_flatten(found)
    assert leaves == list(found) and pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    doubled = pytree.tree_map(lambda x: 2 * x, found)
    assert type(doubled) is vesta.return_types.sort and doubled.indices.tolist() == [2, 4, 0]
    best = vesta.func.vmap(lambda x: vesta.topk(x, 2))(vesta.tensor([[1.0, 3.0, 2.0], [6.0, 5.0, 4.0]]))
    assert type(best) is vesta.return_types.topk and best.values.tolist() == [[3, 2], [6, 5]]
    assert best.indices.tolist() == [[1, 2], [0, 1]]


def test_a_tree_that_ends_early_stands_for_all_below() -> None:
    spec = pytree.tree_structure([1, (2, {"a": 3})])
    beginnings = (1, None, [1, 2], [1, (2, {"a": 3})], [1, (2, {"b": 3})], [1, 2, 3])
    found = [pytree._broadcast_to_and_flatten(tree, spec) for tree in beginnings]
    assert found == [[1, 1, 1], [None] * 3, [1, 2, 2], [1, 2, 3], None, None]


def test_structures_of_trees_are_written_as_pytorch_does() -> None:
    leaf = '{"type": null, "context": null, "children_spec": []}'
    spec = pytree.tree_structure([{"a": 1}])
    text = '[1, {"type": "builtins.list", "context": "null", "children_spec": [{"type": "builtins.dict", "context": '
    text += f'"[\\"a\\"]", "children_spec": [{leaf}]}}]}}]'
    assert pytree.treespec_dumps(spec) == text
    ordered, counted = collections.OrderedDict(d=6), collections.defaultdict(int, e=(7, None))
    for tree in (1, [1, (2,)], collections.deque([5], maxlen=2), ordered, counted, collections.defaultdict(None, a=1)):
        spec = pytree.tree_structure(tree)
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    for refused in (
        lambda: pytree.treespec_dumps(pytree.tree_structure(Pair(1, 2))),
        lambda: pytree.treespec_loads(text.replace("builtins.list", "other.Class")),
        lambda: pytree.treespec_loads(pytree.treespec_dumps(pytree.tree_structure(counted)).replace('"int"', '"none"')),
    ):
        with pytest.raises(NotImplementedError):
            refused()


def test_a_class_can_become_a_node_of_trees() -> None:
    class Box:
        def __init__(self, content: Any) -> None:
            self.content = content

    pytree.register_pytree_node(Box, lambda box: ([box.content], None), lambda parts, _: Box(*parts))
    try:
        assert pytree.tree_map(lambda x: x + 1, Box(1)).content == 2
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Box, lambda box: ([], None), lambda parts, _: Box(0))
    finally:
        del pytree.SUPPORTED_NODES[Box]


def test_memory_goes_to_other_libraries_and_back() -> None:
    from vesta.utils.dlpack import from_dlpack, to_dlpack

    x = vesta.arange(3.0)
    assert from_dlpack(to_dlpack(x)).data_ptr() == x.data_ptr()


def test_the_timer_takes_indented_statements() -> None:
    from vesta.utils.benchmark import Timer

    timer = Timer(
        """
        y = x + 1
        assert y.sum() == 8
        """,
        setup="""
            x = vesta.ones(n)
            x[0] = 1
        """,
        global_setup="""
            n = 4
        """,
    )
    assert timer.timeit(2).number_per_run == 2
    assert timer.stmt == "y = x + 1\nassert y.sum() == 8"


def test_statements_are_timed() -> None:
    from vesta.utils.benchmark import Measurement, Timer

    clock = iter(range(10**6))
    timer = Timer("calls.append(1)", globals={"calls": []}, timer=lambda: float(next(clock)), label="adding")
    found = timer.timeit(50)  # each block takes one tick
    assert found.number_per_run == 50 and found.times == [0.02] and found.median == found.mean == 0.02
    blocks = timer.blocked_autorange(min_run_time=5.0)
    assert blocks.raw_times == [1.0] * 5 and blocks.iqr == 0 and not blocks.has_warnings
    (merged,) = Measurement.merge([blocks, blocks])
    assert len(merged.raw_times) == 10
    assert repr(found).splitlines()[:2] == ["<vesta.utils.benchmark.Measurement of adding>", "  Median: 20.00 ms"]
    spread = Measurement(1, [1.0, 2.0, 3.0, 4.0], timer)
    assert spread.median == 2.5 and spread.iqr == 1.5 and spread.has_warnings
    threads = vesta.get_num_threads()
    seen: list[int] = []
    Timer("seen.append(vesta.get_num_threads())", globals={"seen": seen}, num_threads=2).timeit(1)
    assert set(seen) == {2} and vesta.get_num_threads() == threads
    quick = Timer("x + x", "x = torch.ones(4)").adaptive_autorange(min_run_time=0.001, max_run_time=0.05)
    assert 0 < quick.median < 0.05
    with pytest.raises(ValueError, match="expected statements in Python"):
        Timer("x", language="c++")
