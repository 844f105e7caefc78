"""einops, opt_einsum and tensorboardX on Vesta's tensors, against the same calls on NumPy arrays."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import vesta

ARRAY = np.random.default_rng(0).normal(size=(2, 3, 4, 6))


def test_a_wrong_name_is_refused() -> None:
    with pytest.raises(ValueError, match="register: expected names of einops, opt_einsum, tensorboardX, got 'keras'"):
        vesta.adapters.register("keras")


class TestEinops:
    """Row 22 of tests/EXCEPTIONS.md."""

    @pytest.fixture(autouse=True)
    def library(self) -> Any:
        self.einops = pytest.importorskip("einops")
        assert "einops" in vesta.adapters.register("einops")

    @pytest.mark.parametrize(
        ("function", "pattern", "sizes"),
        [
            ("rearrange", "a b c d -> a (c d) b", {}),
            ("rearrange", "b c (h p) (w q) -> b (h w) (c p q)", {"p": 2, "q": 3}),
            ("rearrange", "a ... -> ... a", {}),
            ("rearrange", "a b c d -> a b c d 1", {}),
            ("repeat", "a b c d -> a b new c d", {"new": 5}),
            ("repeat", "a b c d -> (a 2) b (c k) d", {"k": 3}),
        ],
    )
    def test_shapes(self, function: str, pattern: str, sizes: dict[str, int]) -> None:
        call = getattr(self.einops, function)
        result = call(vesta.tensor(ARRAY), pattern, **sizes)
        assert np.array_equal(result.numpy(), call(ARRAY, pattern, **sizes))

    @pytest.mark.parametrize("reduction", ["min", "max", "sum", "mean", "prod"])
    def test_reductions(self, reduction: str) -> None:
        got = self.einops.reduce(vesta.tensor(ARRAY), "b c (h 2) w -> c h", reduction)
        want = self.einops.reduce(ARRAY, "b c (h 2) w -> c h", reduction)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)

    @pytest.mark.parametrize("reduction", ["any", "all"])
    def test_reductions_of_bools(self, reduction: str) -> None:
        got = self.einops.reduce(vesta.tensor(ARRAY > 0.5), "b c h w -> b h", reduction)
        assert np.array_equal(got.numpy(), self.einops.reduce(ARRAY > 0.5, "b c h w -> b h", reduction))

    def test_lists_packs_and_sums(self) -> None:
        """A list is stacked; pack and unpack are inverse; einsum is Vesta's; gradients flow."""
        x = vesta.tensor(ARRAY, requires_grad=True)
        stacked = self.einops.rearrange([x[0], x[1]], "n a b c -> n (a b c)")
        assert np.array_equal(stacked.detach().numpy(), ARRAY.reshape(2, -1))
        packed, shapes = self.einops.pack([x, x[..., 0]], "a b *")
        first, second = self.einops.unpack(packed, shapes, "a b *")
        assert first.shape == x.shape and second.shape == (2, 3, 4)
        self.einops.einsum(first, second, "a b c d, a b c -> d").sum().backward()
        want = 2 * ARRAY[..., 0] + ARRAY[..., 1:].sum(-1)
        np.testing.assert_allclose(x.grad[..., 0].numpy(), want, rtol=1e-12)
        assert self.einops.parse_shape(x, "a b _ d") == {"a": 2, "b": 3, "d": 6}

    def test_a_parameter_and_a_wrong_pattern(self) -> None:
        assert self.einops.rearrange(vesta.nn.Parameter(vesta.ones(2, 3)), "a b -> b a").shape == (3, 2)
        with pytest.raises(self.einops.EinopsError, match="rearrange"):
            self.einops.rearrange(vesta.ones(2, 3), "a b c -> a")

    def test_layers(self) -> None:
        """The layers are modules: parameters, containers, pickles."""
        from vesta.adapters import einops as layers

        model = vesta.nn.Sequential(
            layers.Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2),
            layers.EinMix("b t i -> b t o", weight_shape="i o", bias_shape="o", i=12, o=5),
            layers.Reduce("b t o -> b o", "mean"),
        )
        model = pickle.loads(pickle.dumps(model))
        x = vesta.tensor(ARRAY, dtype=vesta.float32)
        got = model(x)
        patches = self.einops.rearrange(ARRAY, "b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2)
        weight, bias = (p.detach().numpy() for p in (model[1].weight, model[1].bias))
        np.testing.assert_allclose(got.detach().numpy(), (patches @ weight + bias).mean(1), rtol=1e-4, atol=1e-5)
        got.sum().backward()
        assert model[1].weight.grad is not None and len(list(model.parameters())) == 2


class TestOptEinsum:
    """Row 22 of tests/EXCEPTIONS.md."""

    @pytest.fixture(autouse=True)
    def library(self) -> Any:
        self.opt_einsum = pytest.importorskip("opt_einsum")
        assert vesta.adapters.register("opt_einsum") == ("opt_einsum",)

    @pytest.mark.parametrize(
        "equation", ["ab,bc,cd->ad", "ab,bc->ca", "ab,cb,cd->", "ab,bc,cd,da->bd", "ab,bc,ce->eab"]
    )
    def test_contractions(self, equation: str) -> None:
        generator = np.random.default_rng(1)
        arrays = [generator.normal(size=(4,) * len(term)) for term in equation.split("->")[0].split(",")]
        got = self.opt_einsum.contract(equation, *(vesta.tensor(array) for array in arrays))
        assert isinstance(got, vesta.Tensor)
        np.testing.assert_allclose(got.numpy(), np.einsum(equation, *arrays), rtol=1e-10)

    def test_expressions_and_gradients(self) -> None:
        """A compiled expression takes tensors; parameters get gradients; a letter beyond the alphabet is renamed."""
        call = self.opt_einsum.contract_expression("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5))
        weight = vesta.nn.Parameter(vesta.ones(3, 4))
        call(vesta.ones(2, 3), weight, vesta.ones(4, 5)).sum().backward()
        assert weight.grad.tolist() == [[10.0] * 4] * 3
        letters = "".join(self.opt_einsum.get_symbol(i) for i in (60, 61, 62))
        got = self.opt_einsum.contract(f"{letters[:2]},{letters[1:]}->{letters[0]}{letters[2]}", weight, weight.T)
        assert got.tolist() == [[4.0] * 3] * 3


class TestTensorboardX:
    """Row 22 of tests/EXCEPTIONS.md."""

    @pytest.fixture(autouse=True)
    def library(self) -> Any:
        self.tensorboard = pytest.importorskip("tensorboardX")
        assert vesta.adapters.register("tensorboardX") == vesta.adapters.register("tensorboardX") == ("tensorboardX",)

    def written(self, folder: Any, turn: Any) -> list[Any]:
        """Returns what is in the log that a writer makes of tensors or arrays, without the times."""
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.record_writer import RecordWriter

        values = []
        monkeypatch = pytest.MonkeyPatch()
        monkeypatch.setattr(RecordWriter, "write", lambda self, data: values.append(data))
        with monkeypatch.context(), self.tensorboard.SummaryWriter(str(folder)) as writer:
            writer.add_scalar("scalar", turn(ARRAY.mean()), 3)
            writer.add_scalars("scalars", {"a": turn(ARRAY[0, 0, 0, 0]), "b": turn(ARRAY[0, 0, 0, 1])})
            writer.add_histogram("histogram", turn(ARRAY), bins="auto")
            writer.add_image("image", turn(ARRAY[0]))
            writer.add_images("images", turn(ARRAY[:, :3]))
            writer.add_pr_curve("curve", turn(ARRAY.ravel() > 0), turn(np.abs(ARRAY.ravel()) / 9))
            writer.add_mesh("mesh", turn(ARRAY[..., :3].reshape(1, -1, 3)))
            writer.add_embedding(turn(ARRAY.reshape(6, 24)), global_step=1)
        monkeypatch.undo()
        found = []
        for data in values:
            event = Event.FromString(data)
            event.wall_time = 0
            found.append(event.SerializeToString())
        return sorted(found)  # each writer has a thread

    def test_a_log_of_tensors_is_that_of_their_arrays(self, tmp_path: Any) -> None:
        of_tensors = self.written(tmp_path / "a", lambda a: vesta.tensor(a).requires_grad_(np.asarray(a).dtype != bool))
        of_arrays = self.written(tmp_path / "b", np.asarray)
        assert len(of_tensors) > 8 and of_tensors == of_arrays

    def test_bfloat16_and_lists(self) -> None:
        from tensorboardX import summary

        make_np = summary.make_np
        assert make_np(vesta.tensor([1.5], dtype=vesta.bfloat16)).tolist() == [1.5]
        assert make_np([vesta.tensor(1.0), 2]).tolist() == [1, 2] and make_np(3.0) == 3
