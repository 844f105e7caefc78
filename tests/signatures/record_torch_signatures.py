"""Records the signatures of an installed PyTorch: ``python tests/signatures/record_torch_signatures.py``.

Needs an environment with PyTorch (Linux) and PyYAML. What a parser of PyTorch's takes is told, in this order, by

1. the generator of its Python bindings, which comes with it (``torchgen``), from the operators' schemas and the list of
   deprecated forms;
2. for bindings written by hand, the text that their parser is made of, as it stands in the library ``torch_python``;
3. for functions and constructors written in Python, ``inspect.signature``;
4. for what has no parser (``Tensor.item``), the type stubs.

The texts of 1 must stand in the library too. Then every function and method of 1 and 2 is called with arguments that
cannot be right: the error lists the forms that the parser knows (but for deprecated ones), or the number of arguments
that it takes. What differs is an error.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torchgen
from notation import (
    FACTORY_OPTIONS,
    MODULES,
    TABLE,
    Forms,
    Overload,
    Parameter,
    overload_of_function,
    overloads_of_class,
    parse_overload,
    surface,
    type_of_annotation,
    write_table,
)
from torch._jit_internal import boolean_dispatched
from torchgen.gen import parse_native_yaml
from torchgen.packaged.autograd import gen_python_functions as bindings

#: Public functions that are no part of the library's surface: the compiler's, and what PyTorch is built with.
NOT_RECORDED = re.compile(
    "classproperty|compiled_with_cxx11_abi|fork|get_file_path|has_torch_function.*|import_ir_module.*|init_num_threads"
    "|ipu|is_vulkan_available|merge_type_from_type_comment|mtia|new|parse_.*|prepare_.*|profiler_.*|sym_.*"
    "|thread_safe_generator|unify_type_list|wait|xpu|.*_(ipu|xla)_.*"
)

#: Types of PyTorch's parser in the words of the notation.
TYPES = {
    "int64_t": "int",
    "SymInt": "int",
    "DeviceIndex": "int",
    "double": "float",
    "IntArrayRef": "int[]",
    "SymIntArrayRef": "int[]",
    "ArrayRef<double>": "float[]",
    "TensorList": "Tensor[]",
    "ScalarList": "Scalar[]",
    "c10::List<::std::optional<Tensor>>": "Tensor?[]",
    "ScalarType": "dtype",
    "Layout": "layout",
    "Device": "device",
    "MemoryFormat": "memory_format",
    "c10::string_view": "str",
    "std::string_view": "str",
    "PyObject*": "any",
}

DEFAULTS = {
    "at::Reduction::Mean": "1",
    "c10::MemoryFormat::Contiguous": "torch.contiguous_format",
    "contiguous_format": "torch.contiguous_format",
}


# ---- from the parser's text to the notation ----


def type_of(text: str) -> str:
    """Returns the notation's type for a type of the parser: ``int[2]`` for ``SymIntArrayRef[2]``."""
    stem, size, optional = re.fullmatch(r"(.*?)(?:\[(\d+)\])?(\?)?", text).groups("")  # type: ignore[union-attr]
    known = TYPES.get(stem, stem)
    return known.replace("[]", f"[{size}]") + optional


def default_of(text: str) -> str:
    """Returns Python text for a default of the parser."""
    if text.startswith("{"):
        return repr(ast.literal_eval(f"({text[1:-1]},)"))
    return repr(ast.literal_eval(text)) if text.startswith('"') else DEFAULTS.get(text, text)


def translate(text: str) -> Overload:
    """Reads what a parser is made of: ``max(Tensor input, Tensor other, *, Tensor out=None)``."""
    text = text[text.index("(") :]
    raw = parse_overload(text.removesuffix("|deprecated"))
    parameters = tuple(
        replace(p, type=type_of(p.type), default=None if p.default is None else default_of(p.default))
        for p in raw.parameters
        if p.name != "out"
    )
    options = {p.name for p in parameters if p.keyword_only} & FACTORY_OPTIONS
    factory = options == FACTORY_OPTIONS
    if factory:
        parameters = tuple(p for p in parameters if p.name not in FACTORY_OPTIONS)
    out = any(p.name == "out" for p in raw.parameters)
    return Overload(parameters, out, factory, text.endswith("|deprecated"))


def join_generators(overloads: Iterable[Overload]) -> tuple[Overload, ...]:
    """Makes one of two overloads that differ in a required ``generator``, which may be None: together they take what
    one with an optional generator takes. Drops what is there twice.
    """
    kept = list(dict.fromkeys(overloads))
    for overload in list(kept):
        generator = next((p for p in overload.parameters if p.name == "generator" and p.default is None), None)
        if generator is None or not generator.type.endswith("?"):
            continue
        without = tuple(p for p in overload.parameters if p is not generator)
        twin = next((o for o in kept if o.parameters == without), None)
        if twin is not None:
            joined = tuple(replace(p, default="None") if p is generator else p for p in overload.parameters)
            kept[kept.index(twin)] = replace(overload, parameters=joined, out=overload.out or twin.out)
            kept.remove(overload)
    return tuple(kept)


# ---- the sources ----


def generated_texts() -> dict[str, dict[str, list[str]]]:
    """Returns, by module and name, what the generated parsers are made of."""
    packaged = Path(torchgen.__file__).parent / "packaged"
    native = packaged / "ATen" / "native"
    parsed = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml"))
    functions = [f for f in parsed.native_functions if bindings.should_generate_py_binding(f)]
    modules = {
        "torch": bindings.is_py_torch_function,
        "Tensor": bindings.is_py_variable_method,
        "nn": bindings.is_py_nn_function,
        "fft": bindings.is_py_fft_function,
        "linalg": bindings.is_py_linalg_function,
        "special": bindings.is_py_special_function,
    }
    texts: dict[str, dict[str, list[str]]] = {}
    deprecated = str(packaged / "autograd" / "deprecated.yaml")
    for module, belongs in modules.items():
        pairs = bindings.load_signatures(functions, deprecated, method=module == "Tensor")
        texts[module] = {
            str(name): [group.signature.signature_str() for group in bindings.group_overloads(of_name)]
            for name, of_name in bindings.group_filter_overloads(pairs, belongs).items()
        }
    return texts


class Library:
    """The texts in the library ``torch_python`` that look like what a parser is made of."""

    def __init__(self) -> None:
        self.content = (Path(torch.__file__).parent / "lib" / "libtorch_python.so").read_bytes()
        self.texts: dict[str, list[str]] = {}
        for found in re.finditer(rb"[\x20-\x7e]{4,}(?=\0)", self.content):
            text = found.group().decode()
            match = re.fullmatch(r"([A-Za-z]\w*)\(.*\)(\|deprecated)?", text)
            if match and "Storage src" not in text:  # that is a method of storages
                self.texts.setdefault(match[1], []).append(text)

    def holds(self, text: str) -> bool:
        """Whether a parser is made of ``text``; the end of another text may be it. Without parameters there is none."""
        name, _, parameters = text.partition("(")
        return parameters == ")" or text in self.texts.get(name, ()) or text.encode() + b"\0" in self.content


def stubs(path: str, of_class: str = "") -> dict[str, tuple[Overload, ...]]:
    """Returns the functions of a type stub, or the methods of a class of it."""
    tree: Any = ast.parse((Path(torch.__file__).parent / "_C" / path).read_text())
    if of_class:
        tree = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == of_class)
    found: dict[str, tuple[Overload, ...]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args]
            defaults: list[Any] = [None] * (len(every) - len(arguments.defaults)) + arguments.defaults
            positional = [parameter_of_stub(*pair, False) for pair in zip(every, defaults)][1 if of_class else 0 :]
            by_name = [parameter_of_stub(*pair, True) for pair in zip(arguments.kwonlyargs, arguments.kw_defaults)]
            found[node.name] = (*found.get(node.name, ()), Overload((*positional, *by_name)))
    return found


def parameter_of_stub(argument: ast.arg, default: ast.expr | None, keyword_only: bool) -> Parameter:
    """Returns a parameter of a type stub, whose types have underscores in front: ``_int``."""
    annotation = ast.unparse(argument.annotation).lstrip("_") if argument.annotation else ""
    text = None if default is None else ast.unparse(default)
    return Parameter(argument.arg, type_of_annotation(annotation), text, keyword_only)


# ---- what a parser itself says ----

MANY_ARGUMENTS = [object()] * 40


def shape(overload: Overload) -> tuple[Any, ...]:
    """Returns names and kinds of an overload's parameters."""
    return tuple((p.name, p.keyword_only) for p in overload.parameters)


def disagreement(function: Any, texts: list[str]) -> str | None:
    """Calls a function with arguments that cannot be right and returns how the error differs from ``texts``.

    Returns None if it agrees, and an empty text if it says nothing about signatures.
    """
    shown = [parse_overload(text[text.index("(") :]) for text in texts if not text.endswith("|deprecated")]
    try:
        function(*MANY_ARGUMENTS)
        return "takes anything"
    except (TypeError, RuntimeError) as error:
        message = str(error)
    listed = re.findall(r"^ \* (\(.*\))$", message, re.MULTILINE) or re.findall(r"but expected (\(.*\))$", message)
    if listed:
        told = {shape(parse_overload(text)) for text in listed}
        expected = {shape(overload) for overload in shown}
        return None if told == expected else f"the parser lists {listed}"
    counts = re.search(r"takes (?:from \d+ to )?(\d+|no) (?:positional )?arguments?", message)
    if counts and len(shown) == 1:
        most = sum(not p.keyword_only for p in shown[0].parameters)
        return None if counts[1] == (str(most) if most else counts[1]) else f"the parser takes {counts[1]} arguments"
    return ""


# ---- the table ----


class Recorder:
    """The forms of PyTorch's public names."""

    def __init__(self) -> None:
        self.generated = generated_texts()
        self.library = Library()
        self.function_stubs = {**stubs("__init__.pyi"), **stubs("_VariableFunctions.pyi")}
        self.method_stubs = stubs("__init__.pyi", "TensorBase")
        self.functions: dict[str, tuple[Overload, ...]] = {}
        self.methods: dict[str, tuple[Overload, ...]] = {}
        self.others: dict[str, list[str]] = {}
        self.checked = 0
        self.unchecked: list[str] = []
        self.wrong: list[str] = []
        self.unknown: list[str] = []

    def parsed(self, name: str, function: Any, texts: list[str]) -> tuple[Overload, ...]:
        """Returns the overloads that a parser's texts say, once the parser was asked."""
        self.wrong += [f"{name}: not in the library: {text}" for text in texts if not self.library.holds(text)]
        told = disagreement(function, texts)
        if told is None:
            self.checked += 1
        elif told:
            self.wrong.append(f"{name}: {told}, the texts are {texts}")
        else:
            self.unchecked.append(name)
        return join_generators(translate(text) for text in texts)

    def builtin(self, name: str, function: Any, module: str) -> tuple[Overload, ...]:
        """Returns the overloads of a function of a C module, under the name that it has there."""
        texts = self.generated[module].get(function.__name__)
        if not texts:
            both = hasattr(torch.Tensor, function.__name__)
            texts = self.library.texts.get(function.__name__, [])
            texts = [text for text in texts if not both or "(Tensor input" in text]
        if texts:
            return self.parsed(name, function, texts)
        if function.__name__ not in self.function_stubs:
            self.unknown.append(name)
        return self.function_stubs.get(function.__name__, ())

    def python(self, function: Any, method: bool = False) -> tuple[Overload, ...]:
        """Returns the overload of a function written in Python; none if it is there only to raise."""
        function = boolean_dispatched.get(function, {"if_false": function})["if_false"]
        if function in boolean_dispatched:
            return self.python(function, method)
        if "is now removed" in inspect.getsource(inspect.unwrap(function)):
            return ()
        overload = overload_of_function(function, method)
        return (overload,) if overload.says_something else ()

    def add_function(self, name: str, function: Any, module: str) -> None:
        """Records a public function."""
        if inspect.isfunction(function):
            found = self.python(function)
        elif inspect.isbuiltin(function):
            found = self.builtin(name, function, module)
        else:
            return
        if found:
            self.functions[name] = found

    def add_method(self, name: str) -> None:
        """Records a public method of Tensor."""
        method = inspect.getattr_static(torch.Tensor, name)
        if inspect.isfunction(method):
            found = self.python(method, method=True)
        elif inspect.ismethoddescriptor(method):
            texts = self.generated["Tensor"].get(name)
            texts = texts or [text for text in self.library.texts.get(name, []) if "(Tensor input" not in text]
            if texts:
                found = self.parsed(f"Tensor.{name}", getattr(torch.zeros(1), name), texts)
            else:
                found = self.method_stubs.get(name, ())
                if not found:
                    self.unknown.append(f"Tensor.{name}")
        else:
            return
        if found:
            self.methods[name] = found

    def add_class(self, name: str, kind: type) -> None:
        """Records the constructor of a public class."""
        found = overloads_of_class(kind)
        if found:
            self.functions[name] = found

    def add_module(self, path: str) -> None:
        """Records the functions and classes of a module."""
        module = importlib.import_module(f"torch.{path}".rstrip("."))
        names = {n: value for n, value in surface(module).items() if not NOT_RECORDED.fullmatch(n)}
        for name, value in names.items():
            full = f"{path}.{name}".lstrip(".")
            if isinstance(value, type):
                self.add_class(full, value)
            elif path != "nn.functional":
                self.add_function(full, value, path if path in self.generated else "torch")
            elif getattr(torch._C._nn, getattr(value, "__name__", ""), None) is value:
                self.add_function(full, value, "nn")
            elif value is getattr(torch, name, None) or getattr(value, "__module__", "") == module.__name__:
                self.add_function(full, value, "torch")
        shown = {name for name in dir(module) if not name.startswith("_")}
        shown |= {found.name for found in pkgutil.iter_modules(getattr(module, "__path__", ())) if found.name[0] != "_"}
        self.others[path] = [name for name in shown if f"{path}.{name}".lstrip(".") not in self.functions]

    def record(self) -> dict[str, Forms]:
        """Records every public name."""
        for path in MODULES:
            self.add_module(path)
        for name in dir(torch.Tensor):
            if not name.startswith("_") and not NOT_RECORDED.fullmatch(name):
                self.add_method(name)
        self.others["Tensor"] = [n for n in dir(torch.Tensor) if not n.startswith("_") and n not in self.methods]
        names = {*self.functions, *self.methods}
        return {name: Forms(self.functions.get(name, ()), self.methods.get(name, ())) for name in names}


def main() -> int:
    """Writes the table and says what could not be recorded."""
    parser = argparse.ArgumentParser(description="Records PyTorch's signatures.")
    parser.add_argument("--out", type=Path, default=TABLE)
    out = parser.parse_args().out
    recorder = Recorder()
    table = recorder.record()
    write_table(table, recorder.others, torch.__version__.partition("+")[0], out)
    print(f"{len(table)} names; {recorder.checked} parsers agree with their texts")
    print(f"not recorded, no signature known: {' '.join(recorder.unknown)}")
    print(f"{len(recorder.unchecked)} parsers do not tell: {' '.join(recorder.unchecked)}")
    print("\n".join(recorder.wrong), file=sys.stderr)
    return 1 if recorder.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
