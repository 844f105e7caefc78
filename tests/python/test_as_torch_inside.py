"""``vesta.as_torch``: what libraries import from inside of PyTorch and call."""

from __future__ import annotations

from pathlib import Path

import pytest
from as_torch_programs import program


def test_optimizers_written_like_pytorchs_run(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import torch
        from torch.optim.adam import _fused_doc
        from torch.optim.optimizer import Optimizer, _default_to_fused_or_foreach, _get_value, _view_as_real
        from torch.optim.optimizer import _get_scalar_dtype, _params_doc, _use_grad_for_differentiable
        from torch.utils._foreach_utils import _get_fused_kernels_supported_devices, _group_tensors_by_device_and_dtype

        class Descent(Optimizer):
            def __init__(self, params, lr=0.5, differentiable=False):
                super().__init__(params, {"lr": lr, "differentiable": differentiable})

            @_use_grad_for_differentiable
            def step(self, closure=None):
                '''Goes downhill.'''
                self.recorded = torch.is_grad_enabled()
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            p.add_(p.grad, alpha=-_get_value(group["lr"]))

        p = torch.nn.Parameter(torch.ones(2))
        optimizer = Descent([p], lr=torch.tensor(0.5))
        (p * p).sum().backward()
        optimizer.step()
        assert p.tolist() == [0.0, 0.0] and not optimizer.recorded and Descent.step.__doc__ == "Goes downhill."
        q = torch.ones(2, requires_grad=True).clone()
        q.retain_grad()
        (q * q).sum().backward()
        optimizer = Descent([q], differentiable=True)
        optimizer.step()
        assert optimizer.recorded and torch.is_grad_enabled()

        assert _default_to_fused_or_foreach([p], False, use_fused=True) == (True, False)
        assert _default_to_fused_or_foreach([p], True, use_fused=True) == (False, False)
        assert _default_to_fused_or_foreach([p], False) == (False, False)
        assert "cpu" in _get_fused_kernels_supported_devices() and _get_scalar_dtype() == torch.float32
        assert _fused_doc.startswith("fused") and _params_doc.startswith("params")
        a, b, c = torch.ones(2), torch.ones(2).double(), torch.zeros(2)
        groups = _group_tensors_by_device_and_dtype([[a, b, c], [1, 2, 3], []], with_indices=True)
        (lists, places), (others, _) = groups.values()
        assert list(groups) == [(a.device, a.dtype), (a.device, b.dtype)] and places == [0, 2]
        assert lists[0][0] is a and lists[0][1] is c and lists[1:] == [[1, 3], []] and others[1] == [2]
        assert list(Optimizer._group_tensors_by_device_and_dtype([[a, b]])) == list(groups)
        process = Optimizer._process_value_according_to_param_policy
        assert process(b, a, 0, [{"params": [0]}], "exp_avg").dtype == torch.float64
        assert process(b, a, 0, [{"params": [0]}], "step") is a
        values = [torch.ones(2, dtype=torch.complex64)]
        state = [torch.zeros(2, dtype=torch.complex64)]
        _view_as_real(values, state)
        assert values[0].shape == state[0].shape == (2, 2)
        """,
    )


def test_checks_and_sizes_of_traced_programs(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import warnings
        import torch
        from torch.jit import Error, TracerWarning
        from torch.utils._python_dispatch import is_traceable_wrapper_subclass

        warnings.simplefilter("ignore", category=TracerWarning)
        torch._check(True, "text")
        for bad, kind, message in (
            (lambda: torch._check(False, "text"), RuntimeError, "text"),
            (lambda: torch._check_with(ValueError, False, lambda: "text"), ValueError, "text"),
            (lambda: torch._check_tensor_all(torch.tensor([True, False]), "text"), RuntimeError, "text"),
            (lambda: torch._check_tensor_all_with(KeyError, torch.tensor(False), "text"), KeyError, "text"),
            (lambda: torch._check_tensor_all(torch.tensor([1])), TypeError, "dtype torch.bool"),
            (lambda: torch._check_tensor_all(True), TypeError, "a tensor"),
        ):
            try:
                bad()
            except kind as error:
                assert message in str(error), error
            else:
                raise AssertionError(message)
        torch._check_tensor_all_with(KeyError, torch.ones(2, dtype=torch.bool))
        assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3] and not is_traceable_wrapper_subclass(1)
        assert torch.sym_int(2.5) == 2 and torch.sym_max(1, 2) == 2 and torch.sym_sum([1, 2]) == 3
        assert torch.sym_ite(torch.sym_not(True), 1, 2) == 2 and issubclass(Error, RuntimeError)
        assert torch.autograd._profiler_enabled() is False and torch._dynamo.mark_static_address(torch.ones(1)) is None
        t = torch.nn.init._no_grad_uniform_(torch.nn.Parameter(torch.zeros(9)), 1.0, 2.0)
        assert bool((t >= 1).all()) and t.is_leaf and torch.nn.init._no_grad_zero_(t) is t and not t.any()
        """,
    )


def test_printing_of_tensors_of_a_programs_own(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import torch
        from torch._tensor_str import PRINT_OPTS, _add_suffixes, _str_intern, _tensor_str, printoptions

        t = torch.tensor([1.25, 2.0])
        with printoptions(precision=1):
            assert PRINT_OPTS.precision == 1 and repr(t) == _str_intern(t) == "tensor([1.2, 2.0])"
        assert PRINT_OPTS.precision == 4 and _tensor_str(t, 0) == "[1.2500, 2.0000]"
        text = "Index(" + _tensor_str(torch.arange(3), 6)
        assert _add_suffixes(text, ["size=3", "sorted"], 6, False) == "Index([0, 1, 2], size=3, sorted)"
        assert _add_suffixes(text, ["size=3"], 6, True) == "Index([0, 1, 2],\\n      size=3)"
        assert not hasattr(PRINT_OPTS, "colour")
        """,
    )


def test_products_of_groups(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import torch
        from torch.nn.functional import grouped_mm
        from torch.nn.attention.flex_attention import _DEFAULT_SPARSE_BLOCK_SIZE

        assert _DEFAULT_SPARSE_BLOCK_SIZE == 128
        torch.manual_seed(0)
        ends = torch.tensor([2, 2, 5], dtype=torch.int32)
        rows, mats = torch.randn(7, 4, requires_grad=True), torch.randn(3, 4, 6, requires_grad=True)
        result = torch._grouped_mm(rows, mats, offs=ends)
        assert torch.equal(result[:2], rows[:2] @ mats[0]) and torch.equal(result[2:5], rows[2:5] @ mats[2])
        assert result.shape == (7, 6) and not result[5:].any()
        result.square().sum().backward()
        assert not mats.grad[1].any() and not rows.grad[5:].any() and rows.grad[:5].all()
        whole = grouped_mm(torch.ones(3, 2, 4), mats)
        assert torch.equal(whole, torch.ones(3, 2, 4) @ mats)
        columns = grouped_mm(torch.ones(3, 2, 4), torch.ones(4, 5), offs=ends)
        assert columns.tolist() == [[4.0] * 5] * 2
        inner = grouped_mm(torch.ones(2, 5), torch.ones(5, 3), offs=ends)
        assert inner[:, 0, 0].tolist() == [2.0, 0.0, 3.0] and inner.shape == (3, 2, 3)
        assert grouped_mm(rows.bfloat16(), mats.bfloat16(), offs=ends).dtype == torch.bfloat16
        for bad, message in (
            (dict(offs=ends.long()), "Offsets have to be int32"),
            (dict(), "Have to provide offsets"),
            (dict(offs=ends[:2]), "batch sizes have to match"),
            (dict(offs=ends, bias=torch.ones(6)), "Bias not supported yet"),
            (dict(offs=ends, out_dtype=torch.float64), "out_dtype"),
        ):
            try:
                grouped_mm(rows, mats, **bad)
            except RuntimeError as error:
                assert message in str(error), error
            else:
                raise AssertionError(message)
        for a, b, message in (
            (torch.ones(7, 3), mats, "contraction dimension"),
            (torch.ones(4), mats, "2 or 3d"),
            (rows.double(), mats.double(), "float64"),
            (rows.half(), mats, "one dtype"),
        ):
            try:
                grouped_mm(a, b, offs=ends)
            except RuntimeError as error:
                assert message in str(error), error
            else:
                raise AssertionError(message)
        """,
    )


def test_compilers_parts_can_be_imported_and_refuse(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        from torch.jit import _get_trace_graph, _unique_state_dict

        try:
            _get_trace_graph(None)
        except NotImplementedError as error:
            assert "torch.jit._get_trace_graph" in str(error)
        else:
            raise AssertionError
        """,
    )


def test_functions_are_pickled_under_pytorchs_names(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import io, pickle, torch
        import torch.nn.functional as F
        for function in (F.gelu, F.softplus, F.relu, torch.relu, torch.fft.fft, torch.linalg.inv, torch.special.entr):
            print(function.__module__, pickle.loads(pickle.dumps(function)) is function)
        file = io.BytesIO()
        torch.save(torch.nn.TransformerEncoderLayer(4, 2, 8, activation="gelu"), file)
        file.seek(0)
        print(torch.load(file, weights_only=False).activation is F.gelu)
        """,
    )
    homes = ["torch.nn.functional"] * 3 + ["torch", "torch.fft", "torch.linalg", "torch.special"]
    assert out.splitlines() == [*(f"{home} True" for home in homes), "True"]


def test_names_that_packages_on_pypi_import(tmp_path: Path) -> None:
    """Of gpytorch, zuko, nflows, opacus, tensordict, transformers, accelerate and others, found by reading them."""
    program(
        tmp_path,
        """
        import collections, torch
        from torch.distributed._tensor.experimental import implicit_replication
        from torch.nn.modules.module import _global_module_registration_hooks, _global_parameter_registration_hooks
        from torch.serialization import MAP_LOCATION
        from torch.utils import _pytree as tree
        from torch.utils.data.dataloader import _collate_fn_t

        inverse = torch.distributions.transforms._InverseTransform(torch.distributions.ExpTransform())
        assert inverse(torch.tensor(1.0)).item() == 0
        assert torch._standard_gamma(torch.ones(3)).shape == (3,)
        assert torch._cast_Long(torch.tensor([1.5])).tolist() == [1]
        assert torch._cast_Char(torch.ones(1)).dtype == torch.int8
        assert torch.dsmm(torch.eye(2).to_sparse(), torch.ones(2, 2)).tolist() == [[1, 1], [1, 1]]
        assert torch._C._get_accelerator() == torch.device("cpu") or torch.accelerator.is_available()
        assert torch._C._get_default_device() == "cpu" and not torch._C._is_torch_function_mode_enabled()
        x = torch.ones(2)
        assert torch._C._is_alias_of(x, x[1:]) and not torch._C._is_alias_of(x, torch.ones(2))
        assert torch.profiler.profiler._default_schedule_fn(3) is torch.profiler.ProfilerAction.RECORD
        assert not torch.backends.mps.is_macos_or_newer(13, 0)
        assert len(_global_parameter_registration_hooks) == 0

        class Kind(torch.Tensor):
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                with torch._C.DisableTorchFunctionSubclass():
                    return type(function(*args, **(kwargs or {})))

        assert torch.ones(2).as_subclass(Kind) + 1 is torch.Tensor

        pair = collections.namedtuple("pair", "a b")
        assert tree.tree_is_leaf(1) and not tree.tree_is_leaf([1]) and tree.is_namedtuple_instance(pair(1, 2))
        assert tree.is_structseq_instance(torch.ones(2, 2).max(0)) and not tree.is_structseq_instance((1,))
        assert tree._dict_unflatten(*tree._dict_flatten({"a": 1})) == {"a": 1}
        assert tree._list_flatten_with_keys([3])[0] == [(tree.SequenceKey(0), 3)]

        class Node:
            def __init__(self, a):
                self.a = a

        tree.register_pytree_node(
            Node,
            lambda node: ([node.a], None),
            lambda children, _: Node(*children),
            flatten_with_keys_fn=lambda node: ([(tree.GetAttrKey("a"), node.a)], None),
        )
        paths = tree.tree_flatten_with_path({"x": Node(3)})[0]
        assert [(tree.keystr(path), value) for path, value in paths] == [("['x'].a", 3)]
        """,
    )


def test_classes_and_functions_that_packages_take_from_inside(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import numpy
        import torch
        import torch.distributed.autograd
        import torch.distributed.rpc
        from functorch import FunctionalModule, FunctionalModuleWithBuffers
        from functorch import make_functional, make_functional_with_buffers
        from torch.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager, context_decorator
        from torch.utils.data._utils.worker import _generate_state

        from torch.testing._comparison import get_tolerances
        assert get_tolerances(torch.ones(1), torch.float16, rtol=None, atol=None) == (1e-3, 1e-5)
        assert get_tolerances(rtol=0.5, atol=0.25) == (0.5, 0.25)
        assert torch._guards.active_fake_mode() is None and torch._utils._get_device_module("cpu") is torch.cpu
        assert torch._utils._get_available_device_type() == ("cuda" if torch.cuda.is_available() else None)
        torch.cpu.set_device("cpu")

        y = torch.ones(2, 3, requires_grad=True)
        z = torch.ops.aten.alias.default(y)
        z.sum().backward()
        assert z is not y and z.data_ptr() == y.data_ptr() and y.grad.sum() == 6
        assert torch.ops.aten.view(y, [3, 2]).shape == (3, 2) and not torch.ops.aten.detach(y).requires_grad
        assert torch.ops.aten.unique_consecutive(torch.tensor([1, 1, 2])).tolist() == [1, 2]

        rows = torch.arange(6.0).reshape(3, 2)
        reduced = torch._segment_reduce(rows, "amax", offsets=torch.tensor([0, 2, 3]), initial=None)
        assert reduced.tolist() == [[2.0, 3.0], [4.0, 5.0]]

        assert not torch.distributed.rpc.is_available() and not torch.distributed.autograd.is_available()
        assert torch.distributed.is_available()
        from torch._dynamo.eval_frame import is_dynamo_supported
        from torch._dynamo.utils import is_compile_supported
        assert not is_dynamo_supported() and not is_compile_supported("cpu")
        assert _generate_state(2**40 + 5, 3) == numpy.random.SeedSequence([3, 5, 2**8, 0]).generate_state(4).tolist()

        linear = torch.nn.Linear(2, 3)
        run, params = make_functional(linear)
        assert type(run) is FunctionalModule and run.stateless_model.weight.is_meta
        x = torch.ones(4, 2)
        assert torch.equal(run(params, x), linear(x)) and [p.requires_grad for p in params] == [True, True]
        run, params, buffers = make_functional_with_buffers(torch.nn.BatchNorm1d(2).eval())
        assert type(run) is FunctionalModuleWithBuffers and len(buffers) == 3
        assert torch.allclose(run(params, buffers, x), x, atol=1e-4)

        log = []
        class Noted(_DecoratorContextManager):
            def __init__(self, name="plain"):
                self.name = name
            def __enter__(self):
                log.append("in " + self.name)
            def __exit__(self, *exception):
                log.append("out " + self.name)
            def clone(self):
                return type(self)(self.name)
        class Bare(_NoParamDecoratorContextManager):
            __enter__ = lambda self: log.append("in bare")
            __exit__ = lambda self, *exception: log.append("out bare")

        @Noted("it")
        def work():
            return len(log)
        assert work() == 1 and log == ["in it", "out it"]
        @Bare
        def pairs():
            yield len(log)
            yield len(log)
        log.clear()
        assert list(pairs()) == [1, 3] and log[-1] == "out bare"
        log.clear()
        assert context_decorator(lambda: Noted("once"), lambda: len(log))() == 1 and log == ["in once", "out once"]
        try:
            context_decorator(Noted("once"), len)
        except AssertionError:
            pass
        else:
            raise SystemExit("both a context manager and callable")
        """,
    )


def test_a_test_case_of_pytorchs_tests_compares_tensors(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import torch
        from torch.testing._internal.common_utils import TestCase, freeze_rng_state, make_tensor, set_default_dtype

        case = TestCase()
        case.assertEqual({"a": [torch.ones(2), 1, None, "s"]}, {"a": [torch.ones(2), 1, None, "s"]})
        case.assertEqual(torch.ones(2), [1, 1])
        case.assertEqual(torch.ones(2), torch.ones(2) + 1e-7)
        case.assertEqual(torch.ones(2), torch.ones(2) + 0.1, atol=0.2)
        case.assertEqual(torch.ones(2), torch.ones(2).double(), exact_dtype=False)
        case.assertEqual(torch.tensor(3.0), 3.0)
        for a, b in [
            (torch.ones(2), torch.zeros(2)),
            (torch.ones(2), torch.ones(2).double()),
            ({"a": 1}, {"b": 1}),
            ([1, "a"], [1, "b"]),
            ([1], [1, 2]),
            (None, 1),
        ]:
            case.assertNotEqual(a, b)
            try:
                case.assertEqual(a, b, "they differ")
            except AssertionError as error:
                assert "they differ" in str(error)
            else:
                raise SystemExit(f"{a} == {b}")
        with set_default_dtype(torch.float64):
            assert torch.ones(1).dtype == torch.float64
        with freeze_rng_state():
            first = torch.rand(3)
        assert torch.equal(torch.rand(3), first)
        assert make_tensor(3, device="cpu", dtype=torch.float32).shape == (3,)
        """,
    )


def test_states_by_the_names_of_parameters(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import torch
        from torch import nn
        from torch.distributed.checkpoint.state_dict import (
            StateDictOptions,
            get_model_state_dict,
            get_optimizer_state_dict,
            get_state_dict,
            set_model_state_dict,
            set_optimizer_state_dict,
            set_state_dict,
        )

        def build(wrap):
            model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
            model[0].bias.requires_grad_(False)
            groups = [[], []]
            for name, p in model.named_parameters():
                if p.requires_grad:
                    groups["bias" in name].append(p)
            optimizer = torch.optim.Adam([{"params": group, "lr": 0.1 * (i + 1)} for i, group in enumerate(groups)])
            return wrap(model), model, optimizer

        for wrap in (lambda model: model, torch.compile):
            model, inner, optimizer = build(wrap)
            state, kept = get_state_dict(model, optimizer)
            assert list(state)[:2] == ["0.weight", "0.bias"] and len(state) == 9
            assert [g["params"] for g in kept["param_groups"]] == [
                ["0.weight", "1.weight", "2.weight"],
                ["1.bias", "2.bias"],
            ]
            assert set(kept["state"]["1.bias"]) == {"step", "exp_avg", "exp_avg_sq"}
            assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.2] and inner[0].weight.grad is None
            trained = get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))
            assert len(trained) == 8 and "0.bias" not in trained
            for entry in kept["state"].values():
                entry["exp_avg"].fill_(3)
            kept["param_groups"][0]["lr"] = 0.7
            other, copy, theirs = build(wrap)
            result = set_state_dict(other, theirs, model_state_dict=state, optim_state_dict=kept)
            assert result.missing_keys == result.unexpected_keys == []
            assert torch.equal(copy[2].weight, inner[2].weight)
            assert [g["lr"] for g in theirs.param_groups] == [0.7, 0.2]
            assert theirs.state[copy[2].weight]["exp_avg"].tolist() == [[3.0] * 3]

        model = nn.Linear(2, 1)
        momentum = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        plain = torch.optim.SGD(model.parameters(), 0.3)
        set_optimizer_state_dict(model, plain, get_optimizer_state_dict(model, momentum))
        assert (plain.param_groups[0]["lr"], plain.param_groups[0]["momentum"]) == (0.1, 0.9)
        result = set_model_state_dict(model, {"weight": torch.ones(1, 2)}, options=StateDictOptions(strict=False))
        assert result.missing_keys == ["bias"] and model.weight.tolist() == [[1.0, 1.0]]
        for call in (
            lambda: set_model_state_dict(model, {"weight": torch.ones(1, 2)}),
            lambda: get_model_state_dict(model, options=StateDictOptions(broadcast_from_rank0=True)),
        ):
            try:
                call()
            except (RuntimeError, ValueError):
                pass
            else:
                raise SystemExit("no error")
        """,
    )


def test_tables_of_modules_are_dicts_in_trees(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import torch
        from torch.utils import _pytree

        table = torch.nn.Linear(2, 3)._parameters
        doubled = _pytree.tree_map(lambda t: t * 2, table)
        assert type(doubled) is dict and torch.equal(doubled["bias"], table["bias"] * 2)
        assert _pytree.tree_structure(table) == _pytree.tree_structure({"weight": 1, "bias": 2})
        try:
            import optree
        except ImportError:
            raise SystemExit(0)
        assert len(optree.tree_leaves(table)) == 2 and type(optree.tree_map(lambda t: t * 2, table)) is dict
        """,
    )


def test_functions_that_are_built_from_others(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import dataclasses
        import functools
        import torch
        import torch.distributed
        from torch.utils import _pytree
        from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

        a, b = torch.nn.Parameter(torch.ones(2)), torch.zeros(3)
        a.grad, b.tag = torch.full((2,), 5.0), 1
        torch.utils.swap_tensors(a, b)
        assert type(a) is torch.Tensor and a.shape == (3,) and a.grad is None and a.tag == 1 and not a.requires_grad
        assert type(b) is torch.nn.Parameter and b.tolist() == [1.0, 1.0] and b.grad.tolist() == [5.0, 5.0]
        assert b.requires_grad and not hasattr(b, "tag")
        try:
            torch.utils.swap_tensors(b * 2, a)
        except RuntimeError:
            pass
        else:
            raise SystemExit("no leaf")

        @dataclasses.dataclass
        class Pair:
            x: int
            y: int

        _pytree.register_dataclass(Pair)
        assert _pytree.tree_map(lambda v: v + 1, Pair(1, 2)) == Pair(2, 3)
        assert str(_pytree.tree_leaves_with_path(Pair(1, 2))[0][0][0]) == ".x"
        tree = {"a": [1, 2.5]}
        (_, first), (path, second) = _pytree.tree_leaves_with_path(tree)
        assert (first, second) == (1, 2.5) and _pytree.key_get(tree, path) == 2.5
        assert _pytree.arg_tree_leaves(1, b=[2]) == [1, 2]
        assert _pytree.tree_any_only(int, lambda v: v == 1, tree)
        assert not _pytree.tree_all_only(float, lambda v: v > 3, tree)
        assert _pytree.map_only(int)(str)(3) == "3" and _pytree.map_only(int)(str)(3.5) == 3.5

        x = torch.ones(3, requires_grad=True)
        policy = lambda context, op, *args, **kwargs: CheckpointPolicy.PREFER_RECOMPUTE
        contexts = functools.partial(create_selective_checkpoint_contexts, policy)
        checkpoint(lambda t: (2 * t).exp(), x, use_reentrant=False, context_fn=contexts).sum().backward()
        assert torch.allclose(x.grad, 2 * (2 * x).exp())
        norm = torch.func.replace_all_batch_norm_modules_(torch.nn.Sequential(torch.nn.BatchNorm1d(3)))[0]
        assert norm.running_mean is None and not norm.track_running_stats
        assert torch.distributed.get_debug_level() is torch.distributed.DebugLevel.OFF
        assert not torch.backends.cuda.is_flash_attention_available() and torch.distributions.utils.is_tensor_like(x)

        from torch._utils import _reorder_tensors_as, classproperty

        class Named:
            name = classproperty(lambda cls: cls.__name__)

        assert Named.name == Named().name == "Named"
        one, two = torch.ones(1), torch.ones(1).double()
        assert _reorder_tensors_as([one, two], [two, one])[0] is two
        """,
    )


def test_torchvision_finds_its_operators(tmp_path: Path) -> None:
    folder = tmp_path / "torchvision"
    (folder / "ops").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "ops" / "__init__.py").write_text("")
    (folder / "extension.py").write_text("def _assert_has_ops():\n    raise RuntimeError('no ops')\n")
    program(
        tmp_path,
        """
        import sys
        sys.path.insert(0, ".")
        import torch
        from torchvision.extension import _assert_has_ops

        _assert_has_ops()
        ops = torch.ops.torchvision
        boxes = torch.tensor([[0.0, 0, 4, 4], [0, 0, 4, 3], [10, 10, 12, 12], [0, 0, 4, 4], [3, 3, 6, 6]])
        scores = torch.tensor([0.5, 0.9, 0.1, 0.5, 0.7])
        assert ops.nms(boxes, scores, 0.5).tolist() == [1, 4, 2]
        assert ops.nms.default(boxes, scores, 0.8).tolist() == [1, 4, 0, 2]
        assert ops.nms(boxes[:0], scores[:0], 0.5).tolist() == []
        # the column's number at the middle of boxes; beyond the last column it stays, one further it is zero
        ramp = torch.arange(4.0).expand(2, 3, 4, 4).clone().requires_grad_()
        boxes = torch.tensor([[1.0, 1, 1, 3, 3], [0, 3, 0, 5, 2], [0, 10, 10, 12, 12]])
        means = ops.roi_align(ramp, boxes, 1.0, 1, 2, 1, False)
        assert means.shape == (3, 3, 1, 2) and means[:, 0, 0].tolist() == [[1.5, 2.5], [3, 0], [0, 0]]
        assert ops.roi_align(ramp, boxes, 1.0, 1, 2, 1, True)[:, 2, 0].tolist() == [[1, 2], [3, 3], [0, 0]]
        assert ops.roi_align(ramp, boxes, 1.0, 1, 1, 0, False)[:, 1].flatten().tolist() == [2, 1.5, 0]
        means.sum().backward()
        assert ramp.grad.sum().item() == 9 and ramp.grad[1, :, 2].sum((1,)).tolist() == [2, 2, 2]
        assert ops.roi_align(ramp, boxes[:0], 1.0, 2, 2, 2, False).shape == (0, 3, 2, 2)
        hot = torch.full((1, 1, 4, 4), float("inf"))  # a point that does not count reads nothing
        assert ops.roi_align(hot, boxes[2:], 1.0, 1, 2, 1, False).tolist() == [[[[0, 0]]]]
        for number, ratio, side in ((2.0, 1, 1.0), (-1.0, 1, 1.0), (float("nan"), 1, 1.0), (0.0, 0, float("inf"))):
            try:
                ops.roi_align(ramp, torch.tensor([[number, 0, 0, side, side]]), 1.0, 1, 1, ratio, False)
            except RuntimeError as error:
                assert "(rois)" in str(error)
            else:
                raise AssertionError((number, side))
        try:
            ops.roi_pool(1, 2)
        except NotImplementedError as error:
            assert "torchvision::roi_pool is not available" in str(error)

        # without a way to move, it is a convolution; a whole step moves the kernel by a pixel
        x, weight, bias = torch.rand(2, 4, 6, 7), torch.rand(6, 2, 3, 3), torch.rand(6)
        x.requires_grad_()
        sizes = (2, 1, 1, 1, 1, 1)  # strides, paddings, dilations
        plain = torch.nn.functional.conv2d(x, weight, bias, stride=(2, 1), padding=1, groups=2)
        still = torch.zeros(2, 2 * 2 * 9, *plain.shape[2:])
        ones = torch.ones(2, 2 * 9, *plain.shape[2:])
        assert torch.allclose(ops.deform_conv2d(x, weight, still, ones, bias, *sizes, 2, 2, True), plain, atol=1e-5)
        nothing = ops.deform_conv2d(x, weight, still, 0 * ones, bias, *sizes, 2, 2, True)
        assert torch.allclose(nothing, bias.view(6, 1, 1).expand_as(nothing))
        moved = torch.nn.functional.pad(x, (0, 1))[..., 1:]
        right = still.view(2, 2, 9, 2, *plain.shape[2:]).clone()
        right[:, :, :, 1] = 1
        right = right.view_as(still).requires_grad_()
        y = ops.deform_conv2d(x, weight, right, ones, bias, *sizes, 2, 2, False)
        there = torch.nn.functional.conv2d(moved, weight, bias, stride=(2, 1), padding=1, groups=2)
        assert torch.allclose(y[..., 1:-1], there[..., 1:-1], atol=1e-5)
        y.sum().backward()
        assert x.grad.abs().sum() > 0 and right.grad.abs().sum() > 0
        """,
    )


def test_records_of_hyperparameters(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    program(
        tmp_path,
        """
        import torch
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams, scalar

        writer = SummaryWriter("logs")
        for record in hparams({"lr": 0.1, "n": 3}, {"loss": torch.tensor(1.5)}):
            writer._get_file_writer().add_summary(record, 0)
        writer.close()
        assert scalar("a", torch.tensor(2.0)).value[0].simple_value == 2.0
        """,
    )
