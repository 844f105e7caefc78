"""A script that outlives the launcher by a moment: it reads worker ids from standard input and, when that ends, kills
what is left.

Standard input is a pipe whose other end only the launcher holds, so its end means that the launcher is gone, for
whatever reason. A line ``+123`` adds the process group of worker 123, ``-123`` removes it. It runs as a script, without
Vesta.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Follows the launcher until it is gone, then kills the groups that it did not remove."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    groups = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
