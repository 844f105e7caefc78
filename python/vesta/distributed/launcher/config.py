"""The configuration of a launch: the options of ``python -m vesta.distributed.run`` as fields."""

from __future__ import annotations

import signal
import socket
import string
from dataclasses import dataclass, field

import vesta

DEFAULT_PREFIX = "[rank${rank}]: "


@dataclass
class LaunchConfig:
    """The configuration of a launch; its fields are the options of ``python -m vesta.distributed.run``.

    ``master_port`` None: a free port of this machine, a new one for each attempt. ``redirects`` and ``tee`` map local
    ranks to 1 (standard output), 2 (standard error) or 3 (both).
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    run_id: str = "none"
    role: str = "default"
    node_rank: int = 0
    master_addr: str = "127.0.0.1"
    master_port: int | None = None
    max_restarts: int = 0
    monitor_interval: float = 0.1
    shutdown_timeout: float = 30.0
    log_dir: str | None = None
    redirects: dict[int, int] = field(default_factory=dict)
    tee: dict[int, int] = field(default_factory=dict)
    local_ranks_filter: set[int] | None = None
    log_line_prefix_template: str | None = None
    duplicate_stdout_filters: list[str] = field(default_factory=list)
    duplicate_stderr_filters: list[str] = field(default_factory=list)
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    virtual_local_rank: bool = False
    rdzv_host: str | None = None  # where the machines meet (c10d); None: ``node_rank`` and ``master_*`` are enough
    rdzv_port: int = 29400
    rdzv_is_host: bool | None = None  # None: this machine serves the store if ``rdzv_host`` is its name
    local_addr: str | None = None
    join_timeout: float = 600.0  # seconds until the machines of an attempt have come
    last_call_timeout: float = 30.0  # seconds without another machine after which min_nodes are enough
    keep_alive_timeout: float = 30.0  # seconds without a heartbeat after which a machine is lost
    exit_timeout: float = 300.0  # seconds that a finished machine waits for the others

    def threads_per_worker(self) -> int:
        """Returns this machine's cores (those that the process may use) divided among the processes, at least 1."""
        return max(1, vesta.get_num_threads() // self.nproc_per_node)

    def prefix(self, rank: int, local_rank: int) -> bytes:
        """Returns the prefix of each line of a worker on the console."""
        template = self.log_line_prefix_template
        if template is None:
            template = DEFAULT_PREFIX
        values = {"role_name": self.role, "rank": rank, "local_rank": local_rank, "hostname": socket.gethostname()}
        return string.Template(template).safe_substitute(values).encode()

    def signals(self) -> list[signal.Signals]:
        """Returns the signals that are passed on to the workers."""
        names = [name.strip() for name in self.signals_to_handle.split(",") if name.strip()]
        unknown = [name for name in names if name not in signal.Signals.__members__]
        if unknown:
            raise ValueError(f"--signals-to-handle: expected names like SIGTERM, got {', '.join(unknown)}.")
        return [signal.Signals[name] for name in names]
