"""``vesta.as_torch``: what PyTorch has and Vesta has not, what exists for PyTorch programs only, restored behaviour."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import vesta
from as_torch_programs import RUN, program, run

NAMES = Path(vesta.__file__).parent / "as_torch" / "names.txt"


def test_what_is_missing_can_be_imported_and_refuses(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        from typing import Optional, Union
        import torch, torch.fx, torch.onnx, torch._inductor.compile_fx, torch.ao.quantization.quantize_fx
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.quantization import quantize_dynamic
        from torch.utils.cpp_extension import load

        class Mine(torch.export.UnflattenedModule):
            def __init__(self, *args):
                super().__init__()

        def annotated(x: Optional[torch.export.Dim], y: Union[torch.export.Dim, int] = 0) -> torch.export.Dim: ...

        print(isinstance(1, torch.export.Dim), isinstance(torch.nn.ReLU(), (torch.nn.Linear, torch.export.Dim)))
        print(issubclass(Mine, torch.export.UnflattenedModule), torch.ones(1).dtype == torch.float8_e4m3fn)
        uses = (make_fx, quantize_dynamic, load, Mine, torch.onnx.export, torch.export.export)
        for use in uses:
            try:
                use("anything")
            except NotImplementedError as error:
                print(error)
        try:
            list(torch.export.Dim)
        except NotImplementedError:
            print("no values")
        """,
    )
    lines = out.splitlines()
    assert lines.pop() == "no values"
    assert lines[:2] == ["False False", "True False"]
    assert lines[2:] == [
        "torch.fx.experimental.proxy_tensor.make_fx is not available: Vesta records programs as graphs, but has not "
        "this part of it.",
        "torch.quantization.quantize_dynamic is not available: Vesta has no quantized values; use float16 or bfloat16.",
        "torch.utils.cpp_extension.load is not available: extensions are compiled against PyTorch's headers; Vesta's "
        "are another library's.",
        "torch.export.UnflattenedModule is not available: Vesta does not record programs; save a state_dict() instead.",
        "torch.onnx.export is not available: Vesta does not record programs, which an ONNX file needs.",
        "torch.export.export is not available: Vesta does not record programs; save a state_dict() instead.",
    ]


def test_every_module_of_pytorch_can_be_imported() -> None:
    code = """
        import importlib, sys
        import vesta.as_torch
        vesta.as_torch.install()
        skipped = ("torch.distributed.launch",)
        for line in open(sys.argv[1], encoding="utf-8"):
            name = line.partition(":")[0].strip()
            if "._" in name or name.startswith(skipped):
                continue
            module = importlib.import_module(name)
            for entry in line.partition(":")[2].split():
                getattr(module, entry.partition("@")[0])
        print("ok")
    """
    assert run(*RUN, "-c", textwrap.dedent(code), str(NAMES)).endswith("ok\n")


def test_refusals_have_reasons() -> None:
    from vesta.as_torch import missing

    for name in missing.REASONS:
        home, _, own = name.rpartition(".")
        assert name in missing.names() or own in missing.names()[home], name
        assert not missing.REASONS[name].endswith(".") and len(missing.REASONS[name]) > 20
    refused = missing.refused("torch.jit.export_opnames")
    with pytest.raises(NotImplementedError, match="torch.jit.export_opnames is not available: Vesta does not compile"):
        refused()
    assert refused.__refuses__ and refused.anything.__refuses__ and refused[int] is refused
    assert not hasattr(refused, "__nothing__")


def test_compilers_return_what_they_are_given(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch, torch._dynamo, torch._inductor.config
        layer = torch.nn.Linear(2, 2)
        assert torch.jit.script(layer) is layer and torch.compile(repr) is repr
        assert torch.jit.trace(layer, torch.ones(1, 2)) is layer and torch.jit.freeze(layer.eval()) is layer

        @torch.compile(mode="max-autotune", fullgraph=True)
        def double(x):
            return 2 * x

        @torch.jit.script
        def triple(x: torch.Tensor) -> torch.Tensor:
            return 3 * x

        class Scripted(torch.jit.ScriptModule):
            @torch.jit.script_method
            def forward(self, x):
                return -x

            @torch.jit.ignore
            def ignored(self): ...

            @torch.jit.unused
            def unused(self): ...

        @torch.compiler.disable
        def quadruple(x):
            return 4 * x

        torch._dynamo.config.suppress_errors = True
        torch._dynamo.config.cache_size_limit = 64
        torch._inductor.config.triton.cudagraphs = True
        torch._C._jit_set_profiling_executor(False)
        torch._C._log_api_usage_once("here")
        assert torch._dynamo.config.cache_size_limit == 64 and not torch._dynamo.config.verbose
        assert not torch.jit.is_scripting() and not torch.compiler.is_compiling() and not torch.onnx.is_in_onnx_export()
        torch.fx.wrap("len")
        torch._dynamo.reset()
        x = torch.ones(1)
        print(double(x), triple(x), Scripted()(x), quadruple(x), torch.jit.wait(torch.jit.fork(double, x)))
        """,
    )
    assert out == "tensor([2.]) tensor([3.]) tensor([-1.]) tensor([4.]) tensor([2.])\n"


def test_operators_of_a_program(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch

        @torch.library.custom_op("mine::scale", mutates_args=())
        def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
            return x * factor

        @scale.register_fake
        def _(x, factor):
            return torch.empty_like(x)

        def setup(ctx, inputs, output):
            ctx.factor = inputs[1]

        scale.register_autograd(lambda ctx, g: (10 * g * ctx.factor, None), setup_context=setup)
        x = torch.ones(2, requires_grad=True)
        torch.ops.mine.scale(x, 3.0).sum().backward()
        library = torch.library.Library("other", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: 2 * x, "CPU")
        library.impl("twice", lambda x: 1 / 0, "Meta")
        print(x.grad, torch.ops.other.twice(torch.ones(1)), torch.ops.aten.add.Tensor(torch.ones(1), torch.ones(1)))
        print(hasattr(torch.ops, "torchvision"), hasattr(torch.ops.torchvision, "nms"))
        try:
            torch.ops.load_library("extension.so")
        except OSError as error:
            print(error)
        """,
    )
    assert out.splitlines() == [
        "tensor([30., 30.]) tensor([2.]) tensor([2.])",
        "True False",
        "load_library: expected no extension of PyTorch, got extension.so. Vesta cannot load it.",
    ]


def test_fakes_of_operators_of_an_extension_are_accepted(tmp_path: Path) -> None:
    """As torchvision declares them when it is imported: its extension, which defines the operators, is not there."""
    out = program(
        tmp_path,
        """
        import torch, torch._custom_ops

        @torch._custom_ops.impl_abstract("elsewhere::nms")
        def old(dets, scores, threshold): ...

        @torch.library.register_fake("elsewhere::roi_align")
        def new(input, rois): ...

        print(old.__name__, new.__name__, hasattr(torch.ops.elsewhere, "nms"))
        for name in ("no operator", 3):
            try:
                torch.library.register_fake(name, old)
            except (RuntimeError, ValueError) as error:
                print(error)
        """,
    )
    assert out.splitlines() == [
        "old new False",
        "register_fake: expected the name of an operator, got 'no operator', which is not defined.",
        "register_fake: expected an operator or its name, got int.",
    ]


# ---- docs/differences.md: what raises in Vesta and is computed here ---------------------------------------------


def test_losses_broadcast_with_a_warning(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch, warnings
        warnings.simplefilter("error")
        loss = torch.nn.MSELoss()
        print(loss(torch.ones(2), torch.tensor([1, 3])))  # integers are promoted, without a warning
        x = torch.ones(2, 1, requires_grad=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = torch.nn.functional.mse_loss(x, torch.tensor([1.0, 3.0]))
        value.backward()
        print(value, x.grad.flatten(), caught[0].message, len(caught), caught[0].filename == __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                loss(torch.ones(2), torch.ones(3))
            except RuntimeError as error:
                print(error)
        """,
    )
    lines = out.splitlines()
    assert lines[0] == "tensor(2.)" and lines[1].startswith("tensor(2., grad_fn=")
    assert "tensor([-1., -1.]) Using a target size (torch.Size([2])) that is different to the input size" in lines[1]
    assert lines[1].endswith(" 1 True") and "broadcast" in lines[2]


@pytest.mark.parametrize("workers", [0, 1])
def test_stop_iteration_of_a_dataset_ends_the_pass(workers: int, tmp_path: Path) -> None:
    out = program(
        tmp_path,
        f"""
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Short(Dataset):
            def __len__(self):
                return 10
            def __getitem__(self, i):
                if i == 4:
                    raise StopIteration
                return float(i)

        if __name__ == "__main__":
            print([batch.tolist() for batch in DataLoader(Short(), batch_size=2, num_workers={workers})])
        """,
    )
    assert out == "[[0.0, 1.0], [2.0, 3.0]]\n"


def test_a_loader_draws_from_the_programs_generators(tmp_path: Path) -> None:
    """Samples go on with the program's random numbers, and leave them where the last sample did."""
    out = program(
        tmp_path,
        """
        import random
        import numpy, torch
        from torch.utils.data import DataLoader, Dataset

        class Noise(Dataset):
            def __len__(self):
                return 3
            def __getitem__(self, i):
                return numpy.random.rand(), random.random()

        numpy.random.seed(7), random.seed(7)
        want = [(numpy.random.rand(), random.random()) for _ in range(4)]
        numpy.random.seed(7), random.seed(7)
        have = [(a.item(), b.item()) for a, b in DataLoader(Noise())]
        print(have == want[:3], (numpy.random.rand(), random.random()) == want[3])
        """,
    )
    assert out == "True True\n"


def test_the_same_parameter_twice_is_a_warning(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch, warnings
        p = torch.nn.Parameter(torch.ones(1))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            optimizer = torch.optim.SGD([p, p], lr=0.25)
        p.grad = torch.ones(1)
        optimizer.step()
        print(p.detach(), caught[0].message)
        """,
    )
    assert out.startswith("tensor([0.5000]) optimizer contains a parameter group with duplicate parameters")


def test_autocast_to_integers_is_off_with_a_warning(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch, warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autocast("cpu", dtype=torch.int32):
                print((torch.ones(2, 2) @ torch.ones(2, 2)).dtype, torch.is_autocast_enabled("cpu"))
        print(str(caught[0].message).splitlines()[0])
        """,
    )
    first = "In CPU autocast, but the target dtype is not supported. Disabling autocast."
    assert out.splitlines() == ["torch.float32 False", first]


def test_what_libraries_ask_when_they_are_imported(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch
        from torch.distributed.tensor import DTensor, Replicate, Shard
        from torch._dynamo import OptimizedModule
        from torch.fx.node import Target
        from torch.distributions import constraints
        print([getattr(torch, name).is_available() for name in ("xpu", "mps", "mtia")], torch.xpu.device_count())
        print(torch.finfo(torch.float8_e4m3fn).max, torch.iinfo(torch.uint16).max, torch.finfo(torch.float16).bits)
        print(Shard(0) == Shard(0) != Replicate(), Replicate().is_replicate(), isinstance(torch.ones(1), DTensor))
        print(torch._C._nn._parse_to("cpu", torch.float64), torch.torch is torch)
        layer = torch.nn.Linear(1, 1)
        layer.compile(mode="default")
        print(isinstance(layer, OptimizedModule), callable(torch.ops.aten._nothing.default))
        """,
    )
    assert out.splitlines() == [
        "[False, False, False] 0",
        "448.0 65535 16",
        "True True False",
        "(device(type='cpu'), torch.float64, False, None) True",
        "False True",
    ]


def test_operations_follow_pytorch_where_they_would_raise(tmp_path: Path) -> None:
    """Each line was compared with PyTorch 2.15."""
    out = program(
        tmp_path,
        """
        import torch, warnings
        warnings.simplefilter("error")

        def warned(run):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = run()
            return len(caught), result

        # an out of another shape
        x, y = torch.zeros(3, 3), torch.zeros(4)
        n, r = warned(lambda: torch.add(torch.ones(2), 1, out=x))
        print(n, r.tolist(), r is x)
        n, r = warned(lambda: torch.sum(torch.ones(2, 3), 0, out=y))
        print(n, r.tolist(), r is y)
        outs = torch.ones(3), torch.ones(4, dtype=torch.long)
        n, r = warned(lambda: torch.sort(torch.tensor([2.0, 1.0]), out=outs))
        print(n, r.values.tolist(), r.indices.tolist())
        x = torch.tensor([1.0, 2.0, 3.0])
        for operand in (x, x[:1]):  # an operand in the memory of out
            try:
                torch.add(operand, torch.tensor([[10.0], [20.0]]), out=x)
            except (RuntimeError, ValueError):
                print("refused", x.tolist())
        # a number that the dtype does not hold
        i = torch.ones(2, dtype=torch.int8)
        print((i + 300).tolist(), (i * 300).tolist(), (300 - i).tolist(), (i // 300).tolist(), (i & 300).tolist())
        print((torch.ones((), dtype=torch.int8) + 300).item(), (torch.ones(2, dtype=torch.uint8) * -1).tolist())
        print(torch.ones(2, dtype=torch.int8).add_(300).tolist(), (torch.ones(2, dtype=torch.int32) + 2**31).tolist())
        mask = i > 0
        for refused in (lambda: i**300, lambda: torch.where(mask, i, 300), lambda: i.masked_fill(mask, 300),
                        lambda: i.clone().fill_(300), lambda: torch.full((2,), 300, dtype=torch.int8),
                        lambda: torch.tensor([300], dtype=torch.int8), lambda: torch.add(i, i, alpha=300)):
            try:
                print(refused())
            except (RuntimeError, ValueError, OverflowError):
                print("refused")
        # deprecated forms
        x = torch.ones(2, 3, requires_grad=True)
        n, r = warned(lambda: torch.where(torch.tensor([1, 0, 2], dtype=torch.uint8), x, -x))
        r.sum().backward()
        print(n, r.tolist(), x.grad.tolist())
        print(x[..., ...].shape, x[..., 0, ...].shape, x[[1.0, 0.5]].shape)
        n, r = warned(lambda: torch.tensor(3.0).mT)
        print(n, r)
        print(torch.arange(0, 3, 0.5, dtype=torch.int64).tolist())
        # probabilities outside of their interval
        print(torch.distributions.ContinuousBernoulli(torch.tensor([1.5, 0.25])).probs.tolist())
        """,
    )
    assert out.splitlines() == [
        "1 [2.0, 2.0] True",
        "1 [2.0, 2.0, 2.0] True",
        "2 [1.0, 2.0] [1, 0]",
        *["refused [1.0, 2.0, 3.0]"] * 2,
        "[45, 45] [44, 44] [43, 43] [0, 0] [0, 0]",
        "45 [255, 255]",
        "[45, 45] [-2147483647, -2147483647]",
        *["refused"] * 7,
        "1 [[1.0, -1.0, 1.0], [1.0, -1.0, 1.0]] [[1.0, -1.0, 1.0], [1.0, -1.0, 1.0]]",
        "torch.Size([2, 3]) torch.Size([2]) torch.Size([2, 3])",
        "1 tensor(3.)",
        "[0, 0, 0, 0, 0, 0]",
        "[0.9999998807907104, 0.25]",
    ]


def test_negative_numbers_wrap_into_unsigned_dtypes(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch
        x, mask = torch.zeros(2, dtype=torch.uint8), torch.tensor([True, False])
        for v in (-1, -255, -256, -1.0):
            y = x.clone()
            def write(y=y): y[0] = v; return y
            for call in (lambda: x.clone().fill_(v), lambda: torch.full((2,), v, dtype=torch.uint8), write,
                         lambda: torch.tensor([v], dtype=torch.uint8), lambda: x.masked_fill(mask, v),
                         lambda: x.index_fill(0, torch.tensor([0]), v), lambda: torch.full_like(x, v)):
                try:
                    print(call().tolist(), end=" ")
                except (RuntimeError, ValueError):
                    print("refused", end=" ")
            print()
        for bad in (float("nan"), float("inf")):
            try:
                print(torch.arange(5)[[bad]])
            except (RuntimeError, ValueError) as error:
                print("refused")
        """,
    )
    assert out.splitlines() == [
        "[255, 255] [255, 255] [255, 0] [255] [255, 0] [255, 0] [255, 255] ",
        "[1, 1] [1, 1] [1, 0] [1] [1, 0] [1, 0] [1, 1] ",
        *["refused " * 7] * 2,
        *["refused"] * 2,
    ]


def test_modes_and_kernels_of_attention_are_there(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch, torch.nn.functional as F
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        from torch.overrides import TorchFunctionMode, has_torch_function, resolve_name

        class Names(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                print(resolve_name(func))
                return func(*args, **(kwargs or {}))

        q = torch.ones(1, 1, 3, 4)
        with Names(), sdpa_kernel(SDPBackend.MATH):
            F.gelu(q) + torch.ones(3, 1)
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 3, 3)
        print(flex_attention(q, q, q, block_mask=mask).shape, has_torch_function is F.has_torch_function)
        print(TorchFunctionMode.__module__, torch.legacy_contiguous_format)
        """,
    )
    assert out.splitlines() == [
        "torch.nn.functional.gelu",
        "torch.ones",
        "torch.Tensor.add",
        "torch.Size([1, 1, 3, 4]) True",
        "torch.overrides torch.contiguous_format",
    ]


def test_errors_have_the_names_of_pytorchs(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import pickle, torch
        kinds = []
        for wrong in (
            lambda: torch.ones(2) + torch.ones(3), lambda: torch.ones(2, dtype=torch.int64).mean(),
            lambda: torch.ones(2).item(), lambda: torch.linalg.cholesky(-torch.eye(2)),
        ):
            try:
                wrong()
            except RuntimeError as error:
                again = pickle.loads(pickle.dumps(error))
                kinds.append((type(error).__name__, type(again) is type(error), str(again) == str(error)))
        print(*kinds, sep="\\n")
        missing = torch.nn.Linear(2, 2).load_state_dict({"bias": torch.zeros(2)}, strict=False)
        print(missing)
        with torch.autograd.set_multithreading_enabled(False):
            torch.ones(1, requires_grad=True).sum().backward()
        """,
    )
    assert out.splitlines() == [
        *["('RuntimeError', True, True)"] * 3,
        "('_LinAlgError', True, True)",
        "_IncompatibleKeys(missing_keys=['weight'], unexpected_keys=[])",
    ]


def test_losses_and_layers_written_like_pytorchs_run(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch, torch.nn as nn, torch.nn.functional as F, warnings
        from torch.nn import _reduction as _Reduction
        from torch.optim.optimizer import required
        warnings.simplefilter("ignore")
        print(_Reduction.legacy_get_string(None, False), _Reduction.legacy_get_string(False, None),
              F._Reduction.get_enum("sum"), _Reduction.legacy_get_enum(True, True), F._get_softmax_dim("softmax", 4, 3))
        try:
            _Reduction.get_enum("max")
        except ValueError as error:
            print(error)

        class Scaled(nn.ConvTranspose2d):
            def forward(self, input, output_size=None):
                padding = self._output_padding(
                    input, output_size, self.stride, self.padding, self.kernel_size, 2, self.dilation
                )
                return F.conv_transpose2d(input, self.weight * 0, None, self.stride, self.padding, padding)

        print(Scaled(1, 1, 3, stride=2)(torch.ones(1, 1, 4, 4), [10, 9]).shape, required)
        layer = nn.Linear(2, 2)
        print(torch.equal(layer._call_impl(torch.ones(1, 2)), layer(torch.ones(1, 2))))
        print(torch.get_num_interop_threads())
        """,
    )
    assert out.splitlines() == [
        "none sum 2 1 1",
        "max is not a valid value for reduction",
        "torch.Size([1, 1, 10, 9]) <required parameter>",
        "True",
        "1",
    ]


def test_printed_tensors_name_the_steps_of_pytorch(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import re, torch, torch.nn as nn, torch.nn.functional as F
        x = torch.rand(4, 3, requires_grad=True)
        for y in (
            nn.Linear(3, 2)(x), nn.Linear(3, 2, bias=False)(x), x @ x.T, x.sum(), x.mean(0), F.gelu(x), x.norm(),
            x.square(), x.clamp(0, 1), (x - 1).square().mean(), F.max_pool2d(x.view(1, 1, 4, 3), 2), x / 2,
        ):
            print(*re.findall("grad_fn=<(.*)Backward", repr(y)), end=" ")
        """,
    )
    assert out.split() == "Addmm Mm Mm Sum Mean Gelu LinalgVectorNorm Pow Clamp Mean MaxPool2DWithIndices Div".split()


def test_steps_of_several_ops_have_the_name_of_pytorchs(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import re, torch, torch.nn as nn, torch.nn.functional as F
        x = torch.rand(4, 3, requires_grad=True)
        image, labels, layer = x.view(1, 1, 4, 3), torch.tensor([0, 1, 2, 0]), nn.Linear(3, 2)
        for y in (
            F.mse_loss(x, x.detach()), F.mse_loss(x, x.detach(), reduction="none"), F.cross_entropy(x, labels),
            F.cross_entropy(x, labels, label_smoothing=0.1), F.cross_entropy(image, torch.zeros(1, 4, 3).long()),
            F.nll_loss(x, labels), F.binary_cross_entropy(x, x.detach()), F.smooth_l1_loss(x, x.detach()),
            F.binary_cross_entropy_with_logits(x, x.detach()), F.huber_loss(x, x.detach()),
            x.std(), x.var(0), torch.stack([x, x]), x.max(), x.t(), x.split(2)[0], x.split([1, 3])[1], x.unbind(1)[0],
            x.unsqueeze(0).squeeze(0), x.clamp(0), 1 - x, 1 / x, 2**x, x.roll(1), x.tril(), x.repeat(1, 2),
            F.avg_pool2d(image, 2), F.adaptive_avg_pool2d(image, 2), F.interpolate(image, scale_factor=2),
            F.interpolate(image, scale_factor=2, mode="bilinear"), torch.cdist(x, x), x.topk(2)[0],
            layer(x.view(2, 2, 3)), layer(x.view(2, 2, 3).transpose(0, 1)), layer(x)[0].dot(torch.ones(2)),
        ):
            print(*re.findall("grad_fn=<(.*)Backward(.)", repr(y))[0], sep="", end=" ")
        loss = F.mse_loss(x, x.detach())
        print(type(loss.grad_fn).__name__, loss.grad_fn.name(), repr(loss.grad_fn)[:18])
        """,
    )
    named = (
        "MseLoss0 MseLoss0 NllLoss0 Add0 NllLoss2D0 NllLoss0 BinaryCrossEntropy0 SmoothL1Loss0 "
        "BinaryCrossEntropyWithLogits0 HuberLoss0 Std0 Var0 Stack0 Max1 T0 Split0 SplitWithSizes0 Unbind0 "
        "Squeeze1 Clamp1 Rsub1 Mul0 Pow2 Roll0 Tril0 Repeat0 "
        "AvgPool2D0 AdaptiveAvgPool2D0 UpsampleNearest2D0 UpsampleBilinear2D0 Cdist0 Topk0 "
        "UnsafeView0 Add0 Dot0 MseLossBackward0 MseLossBackward0 <MseLossBackward0 "
    )
    assert out.split() == named.split()


def test_keys_of_the_dispatcher_turn_autocast_off(tmp_path: Path) -> None:
    out = program(
        tmp_path,
        """
        import torch
        from torch import DispatchKeySet

        Key = torch._C.DispatchKey
        keys = torch._C.DispatchKeySet(Key.AutocastCPU) | DispatchKeySet(Key.AutocastXPU)
        print(keys, Key.CPU, keys.has(Key.CPU), keys - DispatchKeySet(Key.AutocastXPU), keys.highestPriorityTypeId())
        x = torch.ones(2, 2)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            with torch._C._ExcludeDispatchKeyGuard(keys):
                print((x @ x).dtype)
            print((x @ x).dtype)
            guard = torch._C._ExcludeDispatchKeyGuard(DispatchKeySet("AutocastCPU"))
            with guard, guard:
                pass
            print((x @ x).dtype)
        try:
            torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(Key.AutogradCPU))
        except NotImplementedError as error:
            print(error)
        """,
    )
    assert out.splitlines() == [
        "DispatchKeySet(AutocastCPU, AutocastXPU) DispatchKey.CPU False DispatchKeySet(AutocastCPU) "
        "DispatchKey.AutocastXPU",
        "torch.float32",
        "torch.bfloat16",
        "torch.bfloat16",
        "_ExcludeDispatchKeyGuard: expected keys of autocast, got AutogradCPU. Vesta has no such step to leave out.",
    ]


def test_a_compiled_module_holds_the_module(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import copy, pickle
        import torch
        from torch._dynamo.eval_frame import OptimizedModule

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer, self.size = torch.nn.Linear(2, 2), 2
            def forward(self, x, scale=1):
                return scale * self.layer(x)
            def twice(self, x):
                return 2 * self(x)

        net = Net()
        compiled = torch.compile(net, mode="reduce-overhead")
        x = torch.ones(1, 2)
        assert type(compiled) is OptimizedModule and compiled._orig_mod is net and not isinstance(compiled, Net)
        assert list(compiled.state_dict()) == ["_orig_mod.layer.weight", "_orig_mod.layer.bias"]
        assert torch.equal(compiled(x, scale=3), 3 * net(x)) and torch.equal(compiled.twice(x), 2 * net(x))
        assert compiled.size == 2 and compiled.layer is net.layer
        compiled.size = 3
        assert net.size == 3
        compiled.eval()
        assert not net.training and not net.layer.training and not compiled.training
        compiled.train()
        assert net.training and list(compiled.parameters())[0] is net.layer.weight
        seen = []
        net.register_forward_hook(lambda *_: seen.append("inner"))
        compiled.register_forward_hook(lambda *_: seen.append("outer"))
        compiled(x)
        assert seen == ["inner", "outer"], seen
        del compiled.size
        assert not hasattr(net, "size") and not hasattr(compiled, "size")
        assert torch.compile(dynamic=True)(net)._orig_mod is net
        assert torch.compile(disable=True)(net) is net
        assert repr(compiled).splitlines()[:2] == ["OptimizedModule(", "  (_orig_mod): Net("]
        relu = torch.compile(torch.nn.ReLU())
        for other in (copy.deepcopy(relu), pickle.loads(pickle.dumps(relu))):
            assert type(other) is OptimizedModule and type(other._orig_mod) is torch.nn.ReLU
            assert torch.equal(other(-x), 0 * x)
        assert len(torch.compile(torch.nn.Sequential(torch.nn.ReLU()))) == 1
        """,
    )


def test_transformed_functions_see_plain_tensors(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import torch
        from torch._C._functorch import get_unwrapped, is_batchedtensor, is_gradtrackingtensor

        def square(x):
            assert not is_batchedtensor(x) and not is_gradtrackingtensor(x)
            assert torch._C._functorch.maybe_get_bdim(x) == torch._C._functorch.maybe_get_level(x) == -1
            return x * x

        assert torch.vmap(torch.func.grad(square))(torch.ones(3)).tolist() == [2.0] * 3
        try:
            get_unwrapped(torch.ones(2))
        except RuntimeError as error:
            assert str(error) == "No wrappers present!"
        from torch._C._functorch import _add_batch_dim
        try:
            _add_batch_dim(torch.ones(2), 0, 1)
        except NotImplementedError as error:
            assert "torch._C._functorch._add_batch_dim is not available" in str(error)
        """,
    )


def test_what_libraries_import_from_inside(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import typing
        import torch
        from torch._jit_internal import _copy_to_script_wrapper

        def later(x: torch.futures.Future[torch.Tensor]) -> torch.jit.Future[int]: ...

        assert typing.get_args(torch.futures.Future[int]) == (int,) and _copy_to_script_wrapper(later) is later
        assert isinstance(torch.cuda._initialized, bool) and torch.cuda._initialized == torch.cuda.is_initialized()
        torch._assert_async(torch.tensor(True))
        torch._assert_async(torch.tensor([2.0]), "no")
        for bad, message in ((torch.tensor(0), "no zero"), (torch.ones(2), "ambiguous"), (torch.ones(0), "ambiguous")):
            try:
                torch._assert_async(bad, "no zero")
            except RuntimeError as error:
                assert message in str(error), error
            else:
                raise AssertionError
        """,
    )


def test_tensors_are_keys_by_identity_and_weakly(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import gc
        import torch
        from torch.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary

        a, b = torch.ones(2), torch.ones(2)
        table = WeakTensorKeyDictionary({a: 1})
        table[b] = 2
        table[a] += 10
        assert table[a] == 11 and table[b] == 2 and len(table) == 2 and torch.ones(2) not in table and 3 not in table
        assert [key is a for key in table] == [True, False] and table.pop(a) == 11 and a not in table
        other = table.copy()
        other[a] = 5
        assert len(other | {a: 1}) == 2 and a not in table and [r() is b for r in table.keyrefs()] == [True]
        del other
        ref = TensorWeakRef(b)
        assert ref() is b
        del b
        gc.collect()
        assert ref() is None and len(table) == 0 and isinstance(table, WeakIdKeyDictionary)
        """,
    )
