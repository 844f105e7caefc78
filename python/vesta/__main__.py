"""Facts about the installation: ``python -m vesta --cmake-prefix``."""

from __future__ import annotations

import argparse

import vesta


def main() -> None:
    """Prints what the options ask for."""
    parser = argparse.ArgumentParser(prog="python -m vesta", description=__doc__)
    parser.add_argument("--version", action="store_true", help="the version")
    parser.add_argument(
        "--cmake-prefix",
        action="store_true",
        help="the folder in which CMake finds the package: cmake -DCMAKE_PREFIX_PATH=$(python -m vesta --cmake-prefix)",
    )
    options = parser.parse_args()
    if not any(vars(options).values()):
        parser.print_help()
    if options.version:
        print(vesta.__version__)
    if options.cmake_prefix:
        print(vesta.utils.cmake_prefix_path)


if __name__ == "__main__":
    main()
