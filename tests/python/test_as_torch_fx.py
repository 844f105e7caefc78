"""``torch.fx`` of ``vesta.as_torch``: programs as graphs, as PyTorch records, prints, changes and runs them."""

from __future__ import annotations

import textwrap
from pathlib import Path

from as_torch_programs import program

SETTING = """
import copy, io, math, operator, pickle
import torch, torch.fx as fx, torch.nn as nn

def told(function, *args):
    try:
        function(*args)
        print("nothing")
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""


def _lines(folder: Path, text: str) -> list[str]:
    return program(folder, SETTING + textwrap.dedent(text)).splitlines()


def test_graph_and_code_of_a_module(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(4))
                self.register_buffer("shift", torch.zeros(2))
                self.mask = torch.ones(2)
                self.layers = nn.Sequential(nn.Linear(4, 2), nn.Tanh())

            def forward(self, x: torch.Tensor, y=None, *, scale: float = 2.0):
                first, second = (x * self.weight).chunk(2, dim=-1)
                x = self.layers(torch.cat([second, first], -1)) + self.shift
                x += 1
                return {"a": (x * self.mask, x.size(0)), "b": [x.mean(dim=(0,)), math.sqrt(4.0)]}

        net = Net()
        traced = fx.symbolic_trace(net)
        traced.graph.lint()
        print(traced.graph)
        print(traced.code)
        x = torch.randn(3, 4)
        print(type(traced).__name__, torch.equal(traced(x)["a"][0], net(x)["a"][0]), traced(x)["b"][1])
        traced(x)["a"][0].sum().backward()
        print(list(traced.state_dict()), net.weight.grad is not None)
        """,
    )
    assert out == [
        "graph():",
        "    %x : torch.Tensor [num_users=1] = placeholder[target=x]",
        "    %y : [num_users=0] = placeholder[target=y](default=None)",
        "    %scale : float [num_users=0] = placeholder[target=scale](default=2.0)",
        "    %weight : [num_users=1] = get_attr[target=weight]",
        "    %mul : [num_users=1] = call_function[target=operator.mul](args = (%x, %weight), kwargs = {})",
        "    %chunk : [num_users=2] = call_method[target=chunk](args = (%mul, 2), kwargs = {dim: -1})",
        "    %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%chunk, 0), kwargs = {})",
        "    %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%chunk, 1), kwargs = {})",
        "    %cat : [num_users=1] = call_function[target=torch.cat](args = ([%getitem_1, %getitem], -1), kwargs = {})",
        "    %layers_0 : [num_users=1] = call_module[target=layers.0](args = (%cat,), kwargs = {})",
        "    %layers_1 : [num_users=1] = call_module[target=layers.1](args = (%layers_0,), kwargs = {})",
        "    %shift : [num_users=1] = get_attr[target=shift]",
        "    %add : [num_users=1] = call_function[target=operator.add](args = (%layers_1, %shift), kwargs = {})",
        "    %add_1 : [num_users=3] = call_function[target=operator.add](args = (%add, 1), kwargs = {})",
        "    %mask : [num_users=1] = get_attr[target=mask]",
        "    %mul_1 : [num_users=1] = call_function[target=operator.mul](args = (%add_1, %mask), kwargs = {})",
        "    %size : [num_users=1] = call_method[target=size](args = (%add_1, 0), kwargs = {})",
        "    %mean : [num_users=1] = call_method[target=mean](args = (%add_1,), kwargs = {dim: (0,)})",
        "    return {'a': (mul_1, size), 'b': [mean, 2.0]}",
        "",
        "",
        "",
        "def forward(self, x : torch.Tensor, y = None, scale : float = 2.0):",
        "    weight = self.weight",
        "    mul = x * weight;  x = weight = None",
        "    chunk = mul.chunk(2, dim = -1);  mul = None",
        "    getitem = chunk[0]",
        "    getitem_1 = chunk[1];  chunk = None",
        "    cat = torch.cat([getitem_1, getitem], -1);  getitem_1 = getitem = None",
        '    layers_0 = getattr(self.layers, "0")(cat);  cat = None',
        '    layers_1 = getattr(self.layers, "1")(layers_0);  layers_0 = None',
        "    shift = self.shift",
        "    add = layers_1 + shift;  layers_1 = shift = None",
        "    add_1 = add + 1;  add = None",
        "    mask = self.mask",
        "    mul_1 = add_1 * mask;  mask = None",
        "    size = add_1.size(0)",
        "    mean = add_1.mean(dim = (0,));  add_1 = None",
        "    return {'a': (mul_1, size), 'b': [mean, 2.0]}",
        "    ",
        "Net True 2.0",
        "['weight', 'shift', 'mask', 'layers.0.weight', 'layers.0.bias'] True",
    ]


def test_changing_a_graph(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        traced = fx.symbolic_trace(lambda x, y: torch.relu(x + y) * torch.add(x, y))
        graph, named = traced.graph, {node.name: node for node in traced.graph.nodes}
        print([(n.op, n.name, n.args, [u.name for u in n.users]) for n in graph.nodes])
        named["add"].target = torch.sub
        with graph.inserting_after(named["relu"]):
            late = graph.call_function(torch.sigmoid, (named["relu"],))
            early = graph.call_function(torch.neg, (named["relu"],))
        named["relu"].replace_all_uses_with(late, delete_user_cb=lambda user: user is named["mul"])
        print([node.name for node in graph.nodes], [node.name for node in reversed(graph.nodes)][:2])
        print(named["x"] < late, early < late, len(graph.nodes), graph.find_nodes(op="call_function", target=torch.neg))
        traced.recompile()
        print(traced(torch.tensor([1.0]), torch.tensor([2.0])))
        print(graph.eliminate_dead_code(), early in list(graph.nodes))
        told(graph.erase_node, named["x"])
        held = fx.symbolic_trace(lambda x: torch.cat([x, x]))
        told(list(held.graph.nodes)[1].args[0].append, 1)
        other = fx.Graph()
        other.call_function(torch.relu, (named["x"],))
        told(other.lint)
        named["x"].append(named["mul"])
        told(graph.lint)
        told(graph.create_node, "step", "x")
        told(graph.call_module, "nothing")
        graph = fx.Graph()
        x = graph.placeholder("x")
        graph.output((graph.call_method("view", (x, -1)), [graph.call_function(torch.sin, (x,))]))
        print(fx.GraphModule({}, graph)(torch.zeros(1, 2)))
        """,
    )
    assert out == [
        "[('placeholder', 'x', (), ['add', 'add_1']), ('placeholder', 'y', (), ['add', 'add_1']), "
        "('call_function', 'add', (x, y), ['relu']), ('call_function', 'relu', (add,), ['mul']), "
        "('call_function', 'add_1', (x, y), ['mul']), ('call_function', 'mul', (relu, add_1), ['output']), "
        "('output', 'output', (mul,), [])]",
        "['x', 'y', 'add', 'relu', 'neg', 'sigmoid', 'add_1', 'mul', 'output'] ['output', 'mul']",
        "True True 9 [neg]",
        "tensor([1.5000])",
        "True False",
        "RuntimeError Tried to erase Node x but it still had 2 users in the graph: {add: None, add_1: None}!",
        "TypeError 'immutable_list' object does not support mutation. If you are attempting to modify the kwargs or "
        "args of a torch.fx.Node object,",
        "RuntimeError Argument 'x' of Node 'relu' does not belong to this Graph, but was used as an argument! If you "
        "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values",
        "RuntimeError Argument 'sigmoid' of Node 'mul' was used before it has been defined! Please check that Nodes in "
        "the graph are topologically ordered",
        "AssertionError op 'step' is not in _legal_ops",
        "AttributeError <lambda> has no attribute `nothing`",
        "(tensor([0., 0.]), [tensor([[0., 0.]])])",
    ]


def test_copies_and_files(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()).eval())
        x = torch.randn(4, 2)
        for made in (copy.deepcopy(traced), copy.copy(traced), pickle.loads(pickle.dumps(traced))):
            print(made.code == traced.code, torch.equal(made(x), traced(x)), made.training)
        file = io.BytesIO()
        torch.save(traced, file)
        file.seek(0)
        print(torch.equal(torch.load(file, weights_only=False)(x), traced(x)))
        print(traced.print_readable(print_output=False))
        traced.add_submodule("more.deep", nn.ReLU())
        print([name for name, _ in traced.named_modules()])
        traced.delete_all_unused_submodules()
        print([name for name, _ in traced.named_modules()])
        """,
    )
    assert out == [
        *["True True False"] * 3,
        "True",
        "class Sequential(torch.nn.Module):",
        "    def forward(self, input):",
        "        input_1 = input",
        '        _0 = getattr(self, "0")(input_1);  input_1 = None',
        '        _1 = getattr(self, "1")(_0);  _0 = None',
        "        return _1",
        "",
        "['', '0', '1', 'more', 'more.deep']",
        "['', '0', '1']",
    ]


def test_interpreters_and_transformers(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        class Cosines(fx.Interpreter):
            def call_function(self, target, args, kwargs):
                return super().call_function(torch.cos if target is torch.sin else target, args, kwargs)

        class Change(fx.Transformer):
            def call_method(self, target, args, kwargs):
                return self.call_function(torch.abs, args, kwargs) if target == "neg" else None

        traced = fx.symbolic_trace(lambda x, y=1.5: torch.sin(x).neg() + y)
        x = torch.zeros(2)
        print(fx.Interpreter(traced).run(x), Cosines(traced).run(x, 0.0), fx.Interpreter(traced).boxed_run([x, 1.0]))
        print(Change(traced).transform().code)
        try:
            fx.Interpreter(traced).run("text")
        except TypeError as error:
            print(str(error).splitlines()[-1])
        from torch.fx.passes.shape_prop import ShapeProp
        ShapeProp(traced).propagate(x)
        print([(n.name, n.meta["tensor_meta"].shape) for n in traced.graph.nodes if "tensor_meta" in n.meta])
        """,
    )
    assert out == [
        "tensor([1.5000, 1.5000]) tensor([-1., -1.]) tensor([1., 1.])",
        "",
        "",
        "",
        "def forward(self, x, y = 1.5):",
        "    sin = torch.sin(x);  x = None",
        "    abs_1 = torch.abs(sin);  sin = None",
        "    add = abs_1 + y;  abs_1 = y = None",
        "    return add",
        "    ",
        "While executing %sin : [num_users=1] = call_function[target=torch.sin](args = (%x,), kwargs = {})",
        "[('x', torch.Size([2])), ('sin', torch.Size([2])), ('neg', torch.Size([2])), ('add', torch.Size([2])), "
        "('output', torch.Size([2]))]",
    ]


def test_tracers_of_a_program(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        @fx.wrap
        def kept(x, n):
            return x * n if n > 1 else x

        fx.wrap("len")

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(2, 2)
                self.bn = nn.BatchNorm1d(2)

            def forward(self, x):
                return kept(self.bn(self.lin(x)), 3) + len(x)

        class Whole(fx.Tracer):
            def is_leaf_module(self, module, name):
                return isinstance(module, Block)

        class Marking(fx.Tracer):
            def create_proxy(self, kind, target, args, kwargs, *rest, **named):
                proxy = super().create_proxy(kind, target, args, kwargs, *rest, **named)
                proxy.node.meta["kind"] = kind
                return proxy

        net = nn.Sequential(Block())
        print([n.target for n in Whole().trace(net).nodes if n.op == "call_module"])
        graph = Marking().trace(net)
        print([(n.name, n.meta.get("kind"), list(n.meta.get("nn_module_stack", ()))) for n in graph.nodes])
        x = torch.randn(3, 2)
        print(torch.equal(fx.GraphModule(net, graph)(x), net(x)), len([1, 2]))

        def choice(x, flag, mask=None):
            return x + 1 if flag else x - 1

        def checked(x):
            torch._assert(x.shape[0] == 2, "two rows")
            return x

        told(fx.symbolic_trace(checked), torch.zeros(1))
        traced = fx.symbolic_trace(choice, concrete_args={"flag": True, "mask": None})
        print(traced(torch.zeros(1), True))
        told(traced, torch.zeros(1), False)
        told(traced, torch.zeros(1), True, 1)
        told(fx.symbolic_trace, lambda x: x["a"], {"x": {"a": fx.PH}})
        """,
    )
    assert out == [
        "['0']",
        "[('input_1', 'placeholder', []), ('_0_lin', 'call_module', ['0', '0.lin']), "
        "('_0_bn', 'call_module', ['0', '0.bn']), ('kept', 'call_function', ['0']), "
        "('len_1', 'call_function', ['0']), ('add', 'call_function', ['0']), ('output', None, [])]",
        "True 2",
        "AssertionError two rows",
        "tensor([1.])",
        "AssertionError flag has been specialized to have value True but got another value",
        "AssertionError mask has been specialized to have value None but got another value",
        "NotImplementedError symbolic_trace: PH is not available inside of a value (concrete_args['x']).",
    ]


def test_what_cannot_be_recorded(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        for function in (
            lambda x: x if x.sum() > 0 else -x, lambda x: [part for part in x], lambda x: len(x),
            lambda x: torch.zeros(2)[int(x)], lambda x: x.add({x: 1}),
        ):
            told(fx.symbolic_trace, function)
        told(fx.GraphModule, {}, fx.symbolic_trace(nn.Linear(1, 1)).graph)
        """,
    )
    assert out[0] == "TraceError symbolically traced variables cannot be used as inputs to control flow"
    assert out[1].startswith("TraceError Proxy object cannot be iterated. This can be attempted when the Proxy is used")
    assert out[2].startswith("RuntimeError 'len' is not supported in symbolic tracing by default.")
    assert out[3].startswith("TypeError int() argument must be")
    assert out[4] == "RuntimeError Keys for dictionaries used as an argument cannot contain a Node. Got key: x"
    assert out[5] == ("RuntimeError Node weight referenced target weight but that target was not provided in ``root``!")


def test_types_and_values_in_code(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        from typing import Dict, List, Optional
        def f(x: List[torch.Tensor], y: Optional[int] = None, *xs, **named) -> Dict[str, torch.Tensor]:
            return x[0], torch.float64, torch.device("cpu"), float("inf"), 1j, slice(1, y), torch.Size([1]), ..., xs[0]
        traced = fx.symbolic_trace(f)
        print(traced.code.strip())
        print(traced([1], 2, 3)[2:])
        """,
    )
    assert out == [
        "def forward(self, x : typing_List[torch.Tensor], y : typing_Union[int,NoneType] = None, *xs, **named):",
        "    _xs = xs",
        "    _named = named",
        "    getitem = x[0];  x = None",
        "    getitem_1 = _xs[0];  _xs = None",
        "    return (getitem, torch.float64, device(type='cpu'), inf, complex(0.0, 1.0), slice(1, y, None), (1,), "
        "Ellipsis, getitem_1)",
        "(device(type='cpu'), inf, 1j, slice(1, 2, None), (1,), Ellipsis, 3)",
    ]


def test_patterns_are_replaced(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        from torch.fx.subgraph_rewriter import replace_pattern_with_filters

        def f(x, w):
            a = torch.cat([x, w]).sum()
            b = torch.cat([w, x]).sum()
            return torch.max(a) + b, torch.relu(x + 1) * torch.relu(x + 2)

        traced = fx.symbolic_trace(f)
        found = fx.replace_pattern(traced, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.dot(a, b))
        print(len(found), found[0].anchor)
        few = lambda match, graph, pattern: match.placeholder_nodes[1] == 2
        done = replace_pattern_with_filters(
            traced, lambda x, c: torch.relu(x + c), lambda x, c: torch.sigmoid(x * c), [few])
        print(len(done), done[0].replacements)
        traced.graph.lint()
        print(traced.code.strip())
        print(len(fx.replace_pattern(traced, lambda x: torch.relu(x + 5), lambda x: x)))
        twice = fx.symbolic_trace(lambda x: (torch.neg(x) + 1, torch.neg(x)))
        print(len(fx.replace_pattern(twice, lambda x: torch.neg(x) + 1, lambda x: x)))
        held = fx.symbolic_trace(lambda x: (lambda y: y + y.sum())(torch.neg(x)))
        print(len(fx.replace_pattern(held, lambda x: torch.neg(x).sum(), lambda x: x)))
        told(fx.replace_pattern, twice, lambda x: torch.neg(x), lambda x, y: x)
        """,
    )
    assert out == [
        "2 sum_1",
        "1 [mul_1, sigmoid]",
        "def forward(self, x, w):",
        "    dot = torch.dot(x, w)",
        "    max_1 = torch.max(dot);  dot = None",
        "    dot_1 = torch.dot(w, x);  w = None",
        "    add = max_1 + dot_1;  max_1 = dot_1 = None",
        "    add_1 = x + 1",
        "    relu = torch.relu(add_1);  add_1 = None",
        "    mul_1 = x * 2;  x = None",
        "    sigmoid = torch.sigmoid(mul_1);  mul_1 = None",
        "    mul = relu * sigmoid;  relu = sigmoid = None",
        "    return (add, mul)",
        "0",
        "1",
        "0",
        "RuntimeError replace_pattern: expected a replacement with 1 inputs, as the pattern has, got 2.",
    ]


def test_normalizations_are_taken_in(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        from torch.fx.experimental.optimization import fuse, remove_dropout
        layers = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Dropout(), nn.Flatten(), nn.Linear(12, 2), nn.BatchNorm1d(2)
        net = nn.Sequential(*layers)
        for module in net:
            if hasattr(module, "running_var"):
                nn.init.uniform_(module.running_var, 0.5, 2.0)
                nn.init.normal_(module.weight)
        net.eval()
        x = torch.randn(2, 2, 4, 4)
        small = remove_dropout(fuse(net))
        print([n.target for n in small.graph.nodes if n.op == "call_module"])
        print(torch.allclose(small(x), net(x), atol=1e-5))
        """,
    )
    assert out == ["['0', '3', '4']", "True"]


def test_code_of_numbers_and_private_functions(tmp_path: Path) -> None:
    """A negative base has parentheses; what only a private module defines is named where programs find it."""
    out = _lines(
        tmp_path,
        """
        traced = fx.symbolic_trace(lambda x: (-2.0) ** x)
        print(traced(torch.tensor([2.0, 3.0])).tolist())
        graph = fx.Graph()
        graph.output(graph.call_function(getattr, (5, "real")))
        print(fx.GraphModule(nn.Module(), graph)())
        code = fx.symbolic_trace(lambda x: (torch.einsum("i,i", x, x), torch.norm(x), torch.linalg.norm(x))).code
        print("torch.einsum(" in code, "torch.norm(" in code, "torch.linalg.norm(" in code, "torch._" in code)
        """,
    )
    assert out == ["[4.0, -8.0]", "5", "True True True False"]


def test_places_of_insertion(tmp_path: Path) -> None:
    """``inserting_before`` counts from the call on; places of other graphs, and beyond the arguments, are refused."""
    out = _lines(
        tmp_path,
        """
        graph, other = fx.Graph(), fx.Graph()
        x = graph.placeholder("x")
        relu = graph.call_function(torch.relu, (x,))
        graph.inserting_before(relu)
        graph.call_function(torch.neg, (x,))
        with graph.inserting_after(relu):
            graph.call_function(torch.abs, (x,))
        graph.call_function(torch.sin, (x,))
        print([node.name for node in graph.nodes])
        told(other.inserting_before, x)
        told(other.inserting_after, x)
        told(relu.insert_arg, 7, 5)
        told(other.output_node)
        """,
    )
    assert out == [
        "['x', 'neg', 'sin', 'relu', 'abs_1']",
        "AssertionError Node to insert before is not in graph.",
        "AssertionError Node to insert after is not in graph.",
        "AssertionError insert_args index must be between 0 and len(self.args), got 7",
        "AssertionError Expected output node, got none",
    ]


def test_arguments_of_nodes_are_trees(tmp_path: Path) -> None:
    out = _lines(
        tmp_path,
        """
        from torch.utils._pytree import tree_map
        graph = fx.Graph()
        x = graph.placeholder("x")
        node = graph.call_function(torch.cat, ([x, x],), {"d": {"a": x}})
        print(tree_map(lambda taken: taken.name, (node.args, node.kwargs)))
        print(type(tree_map(str, node.kwargs["d"])).__name__, type(tree_map(str, node.args[0])).__name__)
        """,
    )
    assert out == ["((['x', 'x'],), {'d': {'a': 'x'}})", "immutable_dict immutable_list"]


def test_threads_trace_one_after_the_other(tmp_path: Path) -> None:
    """What other threads run meanwhile is not recorded, and calls of modules are afterwards what they were."""
    out = _lines(
        tmp_path,
        """
        import threading

        layer, call = nn.Linear(2, 2), nn.Module.__call__
        inside, go_on, errors = threading.Event(), threading.Event(), []

        class Waiting(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = layer

            def forward(self, x):
                inside.set()
                assert go_on.wait(60)
                return self.layer(x)

        def trace(module, names):
            try:
                names.append([node.name for node in fx.symbolic_trace(module).graph.nodes])
            except Exception as error:
                errors.append(error)

        names = []
        threads = [threading.Thread(target=trace, args=(module, names)) for module in (Waiting(), nn.Sequential(layer))]
        threads[0].start()
        assert inside.wait(60)
        threads[1].start()
        print(type(layer(torch.ones(1, 2))).__name__, type(layer.weight).__name__)
        go_on.set()
        for thread in threads:
            thread.join()
        print(names, errors, nn.Module.__call__ is call)
        """,
    )
    assert out == ["Tensor Parameter", "[['x', 'layer', 'output'], ['input_1', '_0', 'output']] [] True"]
