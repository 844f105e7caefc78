"""Parameters computed from others, pruned, fused, replaced in a call; sequences; what a load reports."""

from __future__ import annotations

import copy
import pickle

import pytest
import vesta
from vesta import nn
from vesta.nn.modules import module as modules
from vesta.nn.utils import parametrizations, parametrize, prune, rnn, stateless


class Doubled(nn.Module):
    def forward(self, x: vesta.Tensor) -> vesta.Tensor:
        return x * 2

    def right_inverse(self, y: vesta.Tensor) -> vesta.Tensor:
        return y / 2


def test_a_parametrized_tensor_is_computed_when_it_is_read() -> None:
    layer = nn.Linear(2, 3)
    before = layer.weight.tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == before  # right_inverse kept the value
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert type(layer).__name__ == "ParametrizedLinear" and parametrize.is_parametrized(layer, "weight")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    layer(vesta.ones(1, 2)).sum().backward()
    assert layer.parametrizations.weight.original.grad.tolist() == [[2.0, 2.0]] * 3
    layer.weight = vesta.full((3, 2), 4.0)
    assert layer.parametrizations.weight.original.tolist() == [[2.0, 2.0]] * 3
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    twin = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight.tolist() == [[4.0, 4.0]] * 3 and "weight" in layer._parameters
    assert twin.weight.tolist() == [[4.0, 4.0]] * 3 and parametrize.is_parametrized(twin)
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(twin)


def test_parametrizations_are_chained_and_checked() -> None:
    layer = nn.Linear(2, 2)
    with vesta.no_grad():
        layer.weight.fill_(1.0)
    for _ in range(2):
        parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == [[2.0, 2.0]] * 2  # the second one does not keep the value, as in PyTorch
    wider = type("Wider", (nn.Module,), {"forward": lambda self, x: vesta.cat([x, x])})
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", wider())
    assert parametrize.register_parametrization(nn.Linear(2, 2), "weight", wider(), unsafe=True).weight.shape == (4, 2)
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element 'w'"):
        parametrize.register_parametrization(nn.Linear(2, 2), "w", Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization on bias"):
        parametrize.remove_parametrizations(layer, "bias")
    moved = parametrize.transfer_parametrizations_and_params(layer, nn.Linear(2, 2))
    assert moved.weight.tolist() == layer.weight.tolist()


def test_weight_norm_in_both_forms() -> None:
    vesta.manual_seed(0)
    for dim in (0, 1, None):
        new, old = nn.Linear(3, 4), nn.Linear(3, 4)
        old.load_state_dict(new.state_dict())
        weight = new.weight.tolist()
        parametrizations.weight_norm(new, dim=dim)
        with pytest.warns(FutureWarning, match="deprecated"):
            nn.utils.weight_norm(old, dim=dim)
        assert list(old.state_dict()) == ["bias", "weight_g", "weight_v"]
        x = vesta.randn(2, 3)
        assert vesta.allclose(old(x), new(x)) and vesta.allclose(new.weight, vesta.tensor(weight))
        new.load_state_dict({**old.state_dict(), "weight_g": old.weight_g.detach() * 2})  # older checkpoints
        assert vesta.allclose(new.weight, vesta.tensor(weight) * 2)
        nn.utils.remove_weight_norm(old)
        assert sorted(old.state_dict()) == ["bias", "weight"] and not old._forward_pre_hooks
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        nn.utils.remove_weight_norm(old)


def test_spectral_norm_in_both_forms() -> None:
    vesta.manual_seed(0)
    for layer in (nn.Linear(3, 4), nn.Conv2d(2, 3, 3), nn.ConvTranspose2d(2, 3, 3)):
        for norm, name in ((parametrizations.spectral_norm, None), (nn.utils.spectral_norm, "weight_orig")):
            other = norm(copy.deepcopy(layer), n_power_iterations=20)
            other(vesta.randn(2, 3) if isinstance(layer, nn.Linear) else vesta.randn(1, 2, 5, 5)).sum().backward()
            dim = 1 if isinstance(layer, nn.ConvTranspose2d) else 0
            matrix = other.weight.detach().transpose(0, dim).flatten(1)
            gram = matrix @ matrix.t()
            v = vesta.ones(gram.size(0))
            for _ in range(200):
                v = gram @ v
                v = v / vesta.norm(v)
            assert abs(float((gram @ v).dot(v)) ** 0.5 - 1) < 1e-2
            if name:
                assert {name, "weight_u", "weight_v"} < set(other.state_dict())
                nn.utils.remove_spectral_norm(other)
                assert sorted(other.state_dict()) == sorted(layer.state_dict())


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
@pytest.mark.parametrize("trivialized", [True, False])
def test_orthogonal_by_reflections(shape: tuple[int, int], trivialized: bool) -> None:
    layer = parametrizations.orthogonal(
        nn.Linear(shape[1], shape[0], dtype=vesta.float64), use_trivialization=trivialized
    )

    def is_orthogonal(w: vesta.Tensor) -> bool:
        tall = w if shape[0] > shape[1] else w.mT
        return bool(vesta.allclose(tall.mT @ tall, vesta.eye(3, dtype=vesta.float64)))

    assert is_orthogonal(layer.weight)
    wanted = nn.init.orthogonal_(vesta.empty(shape, dtype=vesta.float64))
    layer.weight = wanted
    assert vesta.allclose(layer.weight, wanted)
    (layer.weight * vesta.randn(shape, dtype=vesta.float64)).sum().backward()
    with vesta.no_grad():
        layer.parametrizations.weight.original -= 0.1 * layer.parametrizations.weight.original.grad
    assert is_orthogonal(layer.weight) and not vesta.allclose(layer.weight, wanted)


def test_pruning_keeps_what_is_pruned() -> None:
    layer = nn.Linear(4, 3)
    with vesta.no_grad():
        layer.weight.copy_(vesta.arange(12.0).view(3, 4) + 1)
    prune.l1_unstructured(layer, "weight", amount=0.25)
    assert (layer.weight == 0).tolist()[0] == [True, True, True, False]
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_mask"] and prune.is_pruned(layer)
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)  # of the rows that are left, the least: the first
    assert (layer.weight == 0).sum(1).tolist() == [4, 0, 0]
    prune.l1_unstructured(layer, "weight", amount=2)
    assert (layer.weight == 0).sum(1).tolist() == [4, 2, 0]
    layer(vesta.ones(1, 4)).sum().backward()
    assert layer.weight_orig.grad.tolist()[0] == [0.0] * 4
    prune.remove(layer, "weight")
    assert sorted(layer.state_dict()) == ["bias", "weight"] and not prune.is_pruned(layer)
    assert (layer.weight == 0).sum(1).tolist() == [4, 2, 0] and isinstance(layer.weight, nn.Parameter)
    with pytest.raises(ValueError, match="has to be pruned before"):
        prune.remove(layer, "weight")
    with pytest.raises(ValueError, match="amount=1.5 should either be"):
        prune.random_unstructured(layer, "weight", 1.5)
    with pytest.raises(ValueError, match="smaller than the number of parameters"):
        prune.random_unstructured(layer, "weight", 13)
    assert sorted(layer.state_dict()) == ["bias", "weight"]  # a failure changes nothing


def test_pruning_of_several_together_and_by_masks() -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    with vesta.no_grad():
        model[0].weight.fill_(1.0)
        model[1].weight.fill_(2.0)
    prune.global_unstructured([(layer, "weight") for layer in model], prune.L1Unstructured, amount=3)
    assert int((model[0].weight == 0).sum()) == 3 and int((model[1].weight == 0).sum()) == 0
    prune.custom_from_mask(model[1], "weight", vesta.tensor([[1, 0], [0, 1]]))
    assert model[1].weight.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    assert prune.RandomUnstructured(2).prune(vesta.ones(5)).sum().item() == 3
    assert int((prune.random_structured(nn.Linear(4, 3), "weight", 2, 1).weight == 0).sum()) == 6


def test_batch_normalization_is_fused() -> None:
    vesta.manual_seed(0)
    for conv, transpose in ((nn.Conv2d(3, 4, 3, bias=False), False), (nn.ConvTranspose2d(3, 4, 3), True)):
        bn = nn.BatchNorm2d(4)
        for _ in range(3):
            bn(vesta.randn(2, 4, 5, 5) * 3 + 1)
        nn.init.uniform_(bn.weight)
        nn.init.uniform_(bn.bias)
        x = vesta.randn(2, 3, 6, 6)
        fused = nn.utils.fuse_conv_bn_eval(conv.eval(), bn.eval(), transpose)
        assert vesta.allclose(fused(x), bn(conv(x)), atol=1e-5)
    linear, bn = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4, affine=False).eval()
    bn.running_mean.normal_()
    x = vesta.randn(5, 3)
    assert vesta.allclose(nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-5)
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        nn.utils.fuse_linear_bn_eval(linear.train(), bn)


def test_a_call_with_other_tensors() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(2, 2, bias=False)
            self.b = nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight
            self.register_buffer("shift", vesta.zeros(2))

        def forward(self, x: vesta.Tensor) -> vesta.Tensor:
            return self.b(self.a(x)) + self.shift

    model, weight = Tied(), (vesta.eye(2) * 3).requires_grad_()
    kept = model.a.weight
    x = vesta.ones(1, 2)
    assert stateless.functional_call(model, {"a.weight": weight, "shift": vesta.ones(2)}, x).tolist() == [[10.0, 10.0]]
    only = stateless.functional_call(model, ({"a.weight": weight}, {"b.weight": vesta.eye(2)}), (x,), tie_weights=False)
    assert only.tolist() == [[3.0, 3.0]]
    only.sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0]] * 2 and model.a.weight is kept and model.b.weight is kept
    with pytest.raises(ValueError, match="which are tied"):
        stateless.functional_call(model, {"a.weight": weight, "b.weight": vesta.eye(2)}, x)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\): a.weight, b.weight, shift"):
        stateless.functional_call(model, {}, x, strict=True)
    with pytest.raises(AttributeError):
        stateless.functional_call(model, {"c.weight": weight}, x)
    stateless.functional_call(model, {"a.scale": weight}, x)  # an attribute for the time of the call
    assert model.a.weight is kept and not hasattr(model.a, "scale")


def test_sequences_are_packed_and_padded() -> None:
    vesta.manual_seed(0)
    parts = [vesta.randn(length, 3) for length in (2, 4, 1, 4)]
    packed = rnn.pack_sequence(parts, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [4, 3, 2, 2] and packed.sorted_indices.tolist() == [1, 3, 0, 2]
    for own, part in zip(rnn.unpack_sequence(packed), parts):
        assert own.tolist() == part.tolist()
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=7.0, total_length=5)
    assert lengths.tolist() == [2, 4, 1, 4] and padded.shape == (4, 5, 3) and bool((padded[2, 1:] == 7).all())
    left = rnn.pad_sequence([vesta.tensor([1, 2]), vesta.tensor([3])], True, 9, padding_side="left")
    assert left.tolist() == [[1, 2], [9, 3]]
    batch = rnn.pad_sequence(parts).requires_grad_()
    rnn.pack_padded_sequence(batch, vesta.tensor([2, 4, 1, 4]), enforce_sorted=False).data.sum().backward()
    with pytest.raises(RuntimeError, match="batch_size=4"):  # PyTorch drops the two that have no length
        rnn.pack_padded_sequence(batch, vesta.tensor([2, 4]), enforce_sorted=False)
    assert batch.grad[..., 0].sum(0).tolist() == [2.0, 4.0, 1.0, 4.0]
    assert packed.double().data.dtype == vesta.float64 and packed.to(vesta.float32) is packed
    for lengths, message in (
        ([1, 2], "sorted in decreasing order"),
        ([2, 0], "greater than 0"),
        ([2], "equal to batch_size"),
    ):
        with pytest.raises(RuntimeError, match=message):
            rnn.pack_padded_sequence(vesta.ones(2, 2), lengths)
    with pytest.raises(ValueError, match="total_length"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_a_load_tells_the_nearest_names() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    state = dict(model.state_dict())
    state["0.wieght"] = state.pop("0.weight")
    with pytest.raises(RuntimeError, match='"0.weight" may be "0.wieght" of the checkpoint'):
        model.load_state_dict(state)
    report = model.load_state_dict(state, strict=False)
    assert repr(report) == "_IncompatibleKeys(missing_keys=['0.weight'], unexpected_keys=['0.wieght'])"
    assert 'missing "0.weight": the nearest name in the checkpoint is "0.wieght"' in str(report)
    assert str(model.load_state_dict(model.state_dict())) == "<All keys matched successfully>"
    state = {**model.state_dict(), "0.weight": vesta.zeros(3, 2)}
    with pytest.raises(
        RuntimeError, match=r"size mismatch for 0.weight: .* 0 is Linear\(in_features=2, out_features=2"
    ):
        model.load_state_dict(state)


def test_hooks_see_what_is_registered() -> None:
    seen: list[tuple[str, str]] = []

    def note(kind: str):
        return lambda module, name, value: seen.append((kind, name))

    handles = [
        modules.register_module_parameter_registration_hook(note("parameter")),
        modules.register_module_buffer_registration_hook(note("buffer")),
        modules.register_module_module_registration_hook(note("module")),
    ]
    nn.Sequential(nn.BatchNorm1d(1, affine=False))
    for handle in handles:
        handle.remove()
    nn.Linear(1, 1)
    tracked = [("buffer", name) for name in ("running_mean", "running_var", "num_batches_tracked")]
    assert seen == [("parameter", "weight"), ("parameter", "bias"), *tracked, ("module", "0")]


def test_a_layer_without_initial_values() -> None:
    layer = nn.utils.skip_init(nn.Linear, 3, 2)
    assert layer.weight.shape == (2, 3) and layer.weight.requires_grad
    vesta.manual_seed(0)
    first = nn.Linear(3, 2).weight.tolist()
    vesta.manual_seed(0)
    nn.utils.skip_init(nn.Linear, 3, 2)
    assert nn.Linear(3, 2).weight.tolist() == first  # nothing was drawn for the other one


def test_backward_hooks_of_other_outputs_than_tensors() -> None:
    """As in PyTorch: a warning, and the hooks are not called; gradients are what they are."""
    seen: list[str] = []
    layer = nn.Linear(2, 2)
    packed = type("Packed", (nn.Module,), {"forward": lambda self, x: {"y": layer(x)}})()
    packed.register_full_backward_hook(lambda *_: seen.append("called"))
    x = vesta.ones(1, 2, requires_grad=True)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple"):
        packed(x)["y"].sum().backward()
    assert not seen and x.grad.tolist() == [layer.weight.detach().sum(0).tolist()]


def test_functional_call_leaves_no_attribute_that_the_class_has() -> None:
    class Scaled(vesta.nn.Module):
        scale = 5

        def forward(self, x):
            return x * self.scale

    m = Scaled()
    assert vesta.func.functional_call(m, {"scale": vesta.tensor(3.0)}, (vesta.tensor(2.0),)).item() == 6
    assert "scale" not in vars(m) and m.scale == 5
