"""The command ``python -m vesta.as_torch``: runs a script, a module or a text as Python itself does."""

from __future__ import annotations

import os
import runpy
import sys
import types

from vesta.as_torch import install

USAGE = """usage: python -m vesta.as_torch [-m MODULE | -c CODE | SCRIPT | -] [ARGUMENT ...]

Runs a PyTorch program on Vesta: whatever it imports as torch is Vesta, in its child processes too.

  SCRIPT      a file, or a folder or zip file with a __main__.py; - reads the program from the standard input
  -m MODULE   runs a module as python -m does, for example torch.distributed.run
  -c CODE     runs the text CODE
"""


def _fresh_main(**names: object) -> dict[str, object]:
    """Makes an empty module ``__main__`` and returns its names; classes of the program are pickled from there."""
    main = types.ModuleType("__main__")
    main.__dict__.update({"__builtins__": __builtins__, "__spec__": None, "__annotations__": {}, **names})
    sys.modules["__main__"] = main
    return main.__dict__


def _run_file(path: str) -> None:
    with open(path, "rb") as file:
        source = file.read()
    sys.path[0] = os.path.dirname(os.path.realpath(path))
    names = _fresh_main(__file__=path, __cached__=None)
    if source[:2] == b"PK" or os.path.splitext(path)[1] == ".pyc":
        runpy.run_path(path, run_name="__main__")
    else:
        exec(compile(source, path, "exec", dont_inherit=True), names)


def main(arguments: list[str]) -> None:
    """Runs the program that the arguments name; ``sys.argv`` and ``sys.path[0]`` are as they are without this module.

    Raises:
        SystemExit: there is no program, with status 2; or the program ends so.
        FileNotFoundError: there is no such script.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="", file=sys.stdout if arguments else sys.stderr)
        raise SystemExit(0 if arguments else 2)
    kind, rest = arguments[0], arguments[1:]
    if kind in ("-m", "-c") and not rest:
        print(f"Argument expected for the {kind} option\n{USAGE}", end="", file=sys.stderr)
        raise SystemExit(2)
    install()
    if kind == "-m":
        sys.argv = rest  # runpy puts the path of the module in the first place
        sys.path[0] = os.getcwd()
        _fresh_main()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        exec(compile(rest[0], "<string>", "exec", dont_inherit=True), _fresh_main())
    elif kind == "-":
        sys.argv = arguments
        sys.path[0] = ""
        exec(compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True), _fresh_main())
    elif os.path.isdir(kind):
        sys.argv = arguments
        del sys.path[0]
        runpy.run_path(kind, run_name="__main__")
    else:
        sys.argv = arguments
        _run_file(kind)


if __name__ == "__main__":
    main(sys.argv[1:])
