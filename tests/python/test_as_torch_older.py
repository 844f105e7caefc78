"""Programs for PyTorch under vesta.as_torch: keys of the dispatcher, functorch, files of compiled modules."""

from __future__ import annotations

from pathlib import Path

from as_torch_programs import program


def test_sets_of_keys_are_bits(tmp_path: Path) -> None:
    """Each key's function and backend has a bit; every function of a set goes with every backend."""
    program(
        tmp_path,
        """
        import torch

        Key, Set = torch._C.DispatchKey, torch._C.DispatchKeySet
        for name, bits in (("CPU", 65537), ("CUDA", 65538), ("Meta", 98304), ("AutogradCPU", 68719476737),
                           ("Python", 268435456), ("AutocastCUDA", 140737488355328), ("Undefined", 0)):
            assert Set(Key.__members__[name]).raw_repr() == bits, name
        both = Set(Key.AutogradCPU) | Set(Key.CUDA)
        assert repr(both) == "DispatchKeySet(CPU, CUDA, AutogradCPU, AutogradCUDA)" and both.has(Key.CPU)
        assert both.highestPriorityTypeId() == Key.AutogradCUDA and Set.from_raw_repr(both.raw_repr()) == both
        assert repr(Set(Key.AutocastCPU) | Set(Key.ADInplaceOrView)) == "DispatchKeySet(ADInplaceOrView, AutocastCPU)"
        assert repr(both.remove(Key.CPU)) == "DispatchKeySet(AutogradCPU, AutogradCUDA)"
        assert repr(both - Set(Key.AutogradCUDA)) == "DispatchKeySet(CPU, CUDA)" and not both.has(Key.Undefined)
        """,
    )


def test_functorch_is_an_old_name(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import functorch, torch
        from functorch import combine_state_for_ensemble, grad, make_functional, make_functional_with_buffers, vmap

        x, layer = torch.ones(1, 2), torch.nn.Linear(2, 3)
        run, params = make_functional(layer)
        assert torch.equal(run(params, x), layer(x)) and params[0] is not layer.weight and params[0].requires_grad
        assert not make_functional(layer, disable_autograd_tracking=True)[1][0].requires_grad
        layer.weight.data.zero_()
        assert not torch.equal(run(params, x), layer(x))
        norm = torch.nn.BatchNorm1d(2).eval()
        run, params, buffers = make_functional_with_buffers(norm)
        assert len(params) == 2 and len(buffers) == 3 and torch.equal(run(params, buffers, x), norm(x))
        run, params, buffers = combine_state_for_ensemble([torch.nn.Linear(2, 3) for _ in range(4)])
        assert params[0].shape == (4, 3, 2) and vmap(run, (0, 0, None))(params, buffers, x).shape == (4, 1, 3)
        assert grad(lambda v: v * v)(torch.tensor(3.0)) == 6 and functorch.jvp is torch.func.jvp
        for call in (lambda: make_functional(norm), lambda: combine_state_for_ensemble([]),
                     lambda: combine_state_for_ensemble([norm, layer])):
            try:
                call()
            except RuntimeError:
                continue
            raise AssertionError
        """,
    )


def test_a_compiled_module_in_a_file(tmp_path: Path) -> None:
    program(
        tmp_path,
        """
        import io, torch

        layer, stream = torch.nn.Linear(2, 2), io.BytesIO()
        torch.save(torch.compile(layer), stream)
        stream.seek(0)
        loaded = torch.load(stream, weights_only=False)
        assert type(loaded) is type(torch.compile(layer)) and torch.equal(loaded(torch.ones(2)), layer(torch.ones(2)))
        """,
    )
