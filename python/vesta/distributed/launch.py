"""``python -m vesta.distributed.launch``: the older name of ``vesta.distributed.run``.

It passes ``--local-rank=N`` to the program unless ``--use-env`` is given; new programs read the variable LOCAL_RANK.
"""

from __future__ import annotations

import sys

from . import run as _run


def main(args: list[str] | None = None) -> int:
    """Runs the command: the arguments of ``vesta.distributed.run``, and ``--use-env``."""
    parser = _run.get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true", help="LOCAL_RANK instead of --local-rank.")
    parsed = parser.parse_args(args)
    parsed.extra_args = [] if parsed.use_env else ["--local-rank=${local_rank}"]
    return _run.execute(parsed)


if __name__ == "__main__":
    sys.exit(main())
