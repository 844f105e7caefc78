"""``python -m vesta.distributed.run`` (``vestarun``): starts a program on several processes of this machine.

    vestarun --nproc-per-node 2 train.py --epochs 3
    vestarun --nnodes 2 --node-rank 0 --master-addr host0 --master-port 29500 --nproc-per-node 4 train.py

The options are torchrun's, and so are the variables that the processes find (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR,
MASTER_PORT, ...). Each line of the processes has the prefix ``[rank0]: `` on the console. When one fails, the others
are ended and its traceback is printed last. docs/differences.md lists the differences from torchrun.
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from typing import Any

from .elastic.multiprocessing.errors import ChildFailedError
from .launcher.api import SignalException, launch, say
from .launcher.config import LaunchConfig
from .launcher.rendezvous import OtherMachineFailed, RendezvousError

DEFAULT_PORT = 29500
DEFAULT_RENDEZVOUS_PORT = 29400


class env(argparse.Action):
    """An option whose default comes from the variable ``PET_NAME``."""

    def __init__(self, dest: str, default: Any = None, **kwargs: Any) -> None:
        super().__init__(dest=dest, default=os.environ.get(f"PET_{dest.upper()}", default), **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, values)


class check_env(argparse.Action):
    """A flag that the variable ``PET_NAME=1`` also sets."""

    def __init__(self, dest: str, default: bool = False, **kwargs: Any) -> None:
        given = os.environ.get(f"PET_{dest.upper()}", "0") not in ("", "0")
        super().__init__(dest=dest, const=True, default=given or default, nargs=0, **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, True)


def _comma_separated(value: str) -> list[str]:
    """Splits at commas; two commas stand for one that does not split."""
    return [part.replace("\0", ",") for part in value.replace(",,", "\0").split(",")]


#: Options with a value: name, default, type, help. Both spellings, --a-b and --a_b, are understood.
_OPTIONS: list[tuple[str, Any, Any, str]] = [
    ("nnodes", "1:1", str, "Number of machines, or MIN:MAX with --rdzv-backend c10d."),
    ("nproc-per-node", "1", str, "Processes on this machine: a number, auto, cpu or gpu."),
    ("rdzv-backend", "static", str, "How machines find each other: static (--node-rank numbers them) or c10d."),
    ("rdzv-endpoint", "", str, "c10d: HOST:PORT where they meet (29400). static: the same as --master-*."),
    ("rdzv-id", "none", str, "A name of this launch, the same on all machines."),
    ("rdzv-conf", "", str, "KEY=VALUE,...: rank; is_host; join_, last_call_, keep_alive_, exit_timeout (s)."),
    ("max-restarts", 0, int, "How often the processes are started again after a failure."),
    ("monitor-interval", 0.1, float, "Longest time in seconds between two checks of the processes."),
    ("start-method", "spawn", str, "Accepted for torchrun's sake: a process is always a fresh interpreter."),
    ("event-log-handler", "null", str, "Only null: there are no event logs."),
    ("role", "default", str, "The role of the processes."),
    ("log-dir", None, str, "Folder for log files; each launch makes its own folder in it."),
    ("log-line-prefix-template", None, str, "The prefix of each line: ${role_name} ${rank} ${local_rank} ..."),
    ("local-ranks-filter", "", str, "Only these ranks are shown on the console: 0,1,2."),
    ("duplicate-stdout-filters", [], _comma_separated, "Lines of standard output with one of these go to a file too."),
    ("duplicate-stderr-filters", [], _comma_separated, "Lines of standard error with one of these go to a file too."),
    ("node-rank", 0, int, "The number of this machine."),
    ("master-addr", "127.0.0.1", str, "Address of the first machine."),
    ("master-port", None, int, "Port on the first machine; on one machine any free one, else 29500."),
    ("local-addr", None, str, "Address of this machine for the others."),
    ("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", str, "Signals that are passed on to the processes."),
    ("shutdown-timeout", None, int, "Seconds between asking a process to end and killing it (30)."),
]
#: Flags: name, help.
_FLAGS = [
    ("standalone", "One machine, a free port, a fresh --rdzv-id."),
    ("no-python", "The program is not a Python script: execute it directly."),
    ("run-path", "Run the script (an absolute path) with runpy.run_path."),
    ("virtual-local-rank", "LOCAL_RANK is 0 everywhere and each process sees one GPU."),
]


def get_args_parser() -> argparse.ArgumentParser:
    """Returns the parser of torchrun's options."""
    parser = argparse.ArgumentParser(prog="vestarun", description="Starts a program on several processes.")
    for name, default, kind, text in _OPTIONS:
        choices = ["spawn", "fork", "forkserver"] if name == "start-method" else None
        parser.add_argument(*_spellings(name), action=env, default=default, type=kind, help=text, choices=choices)
    for name, text in _FLAGS:
        parser.add_argument(*_spellings(name), action=check_env, help=text)
    parser.add_argument("-m", "--module", action=check_env, help="The program is a module, as for python -m.")
    redirects = "Streams that go to log files only: 1 (output), 2 (errors), 3, or LOCAL_RANK:N,... "
    parser.add_argument("-r", "--redirects", action=env, default="0", help=redirects)
    parser.add_argument("-t", "--tee", action=env, default="0", help="As --redirects, and to the console too.")
    for name in ("logs-specs", "numa-binding", "print-completion"):
        parser.add_argument(*_spellings(name), default=None, help=argparse.SUPPRESS)
    parser.add_argument("training_script", help="The program, followed by its arguments.")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def _spellings(name: str) -> list[str]:
    return list(dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}")))


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> tuple[int, int]:
    """Reads ``2`` or ``2:2``."""
    try:
        least, most = (int(part) for part in (nnodes.split(":") if ":" in nnodes else (nnodes, nnodes)))
    except ValueError:
        raise ValueError(f'--nnodes: expected a number or "MIN:MAX", got {nnodes!r}.') from None
    if not 0 < least <= most:
        raise ValueError(f"--nnodes: expected 0 < MIN <= MAX, got {nnodes!r}.")
    return least, most


def determine_local_world_size(nproc_per_node: str) -> int:
    """Returns the number of processes that a number, ``auto``, ``cpu`` or ``gpu`` stands for."""
    import vesta

    if nproc_per_node in ("auto", "gpu"):
        if vesta.cuda.is_available():
            return vesta.cuda.device_count()
        if nproc_per_node == "gpu":
            raise ValueError("--nproc-per-node gpu: expected a CUDA device, got none. Use --nproc-per-node cpu.")
    if nproc_per_node in ("auto", "cpu"):
        return vesta.get_num_threads()
    try:
        count = int(nproc_per_node)
    except ValueError:
        count = 0
    if count < 1:
        raise ValueError(f"--nproc-per-node: expected a positive number, auto, cpu or gpu, got {nproc_per_node!r}.")
    return count


def _streams_by_rank(option: str, value: str, nproc: int) -> dict[int, int]:
    """Reads ``3`` or ``0:1,1:2`` into streams by local rank."""
    try:
        if ":" not in value:
            found = dict.fromkeys(range(nproc), int(value))
        else:
            found = {int(rank): int(streams) for rank, streams in (part.split(":") for part in value.split(","))}
    except ValueError:
        found = {0: -1}
    if not all(0 <= streams <= 3 for streams in found.values()):
        raise ValueError(f"--{option}: expected 0, 1, 2, 3 or LOCAL_RANK:N,..., got {value!r}.")
    if any(not 0 <= rank < nproc for rank in found):
        raise ValueError(f"--{option}: expected local ranks from 0 to {nproc - 1}, got {value!r}.")
    return found


def _ranks(value: str) -> set[int] | None:
    try:
        return {int(part) for part in value.split(",")} if value else None
    except ValueError:
        raise ValueError(
            "--local_ranks_filter must be a comma-separated list of integers e.g. --local_ranks_filter=0,1,2"
        ) from None


def _parse_endpoint(endpoint: str) -> tuple[str, int | None]:
    """Reads HOST:PORT, HOST and [V6]:PORT."""
    host, colon, port = endpoint.rpartition(":")
    if not colon or endpoint.endswith("]"):
        host, port = endpoint, ""
    if port and not port.isdigit():
        raise ValueError(f"--rdzv-endpoint: expected HOST:PORT, got {endpoint!r}.")
    return host.strip("[]") or "127.0.0.1", int(port) if port else None


def _master(args: argparse.Namespace, nodes: int, conf: dict[str, str]) -> tuple[str, int | None, int]:
    """Returns address, port (None: any free one) and this machine's rank."""
    if args.rdzv_backend not in ("static", "c10d"):
        raise ValueError(f"--rdzv-backend: expected static or c10d, got {args.rdzv_backend!r}.")
    node_rank = int(conf.get("rank", args.node_rank))
    if not 0 <= node_rank < nodes:
        raise ValueError(f"--node-rank: expected 0 to {nodes - 1} for --nnodes {nodes}, got {node_rank}.")
    if args.standalone and nodes > 1:
        raise ValueError(
            f"--standalone: expected one machine, got --nnodes {nodes}. Use --rdzv-backend c10d with the same "
            "--rdzv-endpoint HOST:PORT on each."
        )
    if args.standalone or args.rdzv_backend == "c10d":
        return args.local_addr or "127.0.0.1", None, 0
    if args.rdzv_endpoint:
        host, port = _parse_endpoint(args.rdzv_endpoint)
    else:
        host, port = args.master_addr.strip("[]"), args.master_port
    return host, port if port is not None or nodes == 1 else DEFAULT_PORT, node_rank


def _seconds(conf: dict[str, str], *names: str, default: float) -> float:
    """Reads a time of --rdzv-conf under the first of its names that is there."""
    given = next((name for name in names if name in conf), None)
    if given is None:
        return default
    try:
        seconds = float(conf[given])
    except ValueError:
        seconds = -1.0
    if not seconds > 0:
        raise ValueError(f"--rdzv-conf: expected seconds, got {given}={conf[given]!r}.")
    return seconds


def _flag(conf: dict[str, str], name: str) -> bool | None:
    words = {"1": True, "true": True, "t": True, "yes": True, "y": True}
    words.update({"0": False, "false": False, "f": False, "no": False, "n": False})
    if name not in conf:
        return None
    if conf[name].lower() not in words:
        raise ValueError(f"--rdzv-conf: expected true or false, got {name}={conf[name]!r}.")
    return words[conf[name].lower()]


def _set_rendezvous(config: LaunchConfig, args: argparse.Namespace, conf: dict[str, str]) -> None:
    """Sets how several machines find each other (c10d); without it their number is fixed."""
    if args.rdzv_backend != "c10d" or args.standalone or config.max_nodes == 1:
        if config.min_nodes != config.max_nodes:
            raise ValueError(
                f"--nnodes: expected a fixed number, got {args.nnodes!r}. For MIN:MAX machines use --rdzv-backend c10d "
                "--rdzv-endpoint HOST:PORT."
            )
        return
    config.rdzv_host, port = _parse_endpoint(args.rdzv_endpoint or "localhost")
    config.rdzv_port = DEFAULT_RENDEZVOUS_PORT if port is None else port
    if not 0 < config.rdzv_port < 2**16:
        raise ValueError(f"--rdzv-endpoint: expected a port from 1 to 65535, got {args.rdzv_endpoint!r}.")
    config.rdzv_is_host = _flag(conf, "is_host")
    config.local_addr = args.local_addr
    config.join_timeout = _seconds(conf, "join_timeout", "timeout", default=config.join_timeout)
    config.last_call_timeout = _seconds(conf, "last_call_timeout", default=config.last_call_timeout)
    config.keep_alive_timeout = _seconds(conf, "keep_alive_timeout", default=config.keep_alive_timeout)
    config.exit_timeout = _seconds(conf, "exit_timeout", "close_timeout", default=config.exit_timeout)


def config_from_args(args: argparse.Namespace) -> tuple[LaunchConfig, list[str]]:
    """Returns the configuration of the launch, and the command of a process."""
    least, most = parse_min_max_nnodes(args.nnodes)
    if args.max_restarts < 0:
        raise ValueError(f"--max-restarts: expected 0 or more, got {args.max_restarts}.")
    for name in ("logs_specs", "numa_binding", "print_completion"):
        if getattr(args, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')}: vestarun does not have it.")
    if args.event_log_handler != "null":
        raise ValueError(f"--event-log-handler: expected null, got {args.event_log_handler!r}.")
    timeout = args.shutdown_timeout
    if timeout is None:
        timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
    if timeout < 0:
        raise ValueError(f"--shutdown-timeout: expected 0 or more, got {timeout}.")
    nproc = determine_local_world_size(args.nproc_per_node)
    conf = dict(part.partition("=")[::2] for part in args.rdzv_conf.split(",") if part)
    address, port, node_rank = _master(args, most, conf)
    config = LaunchConfig(
        min_nodes=least,
        max_nodes=most,
        nproc_per_node=nproc,
        run_id=str(uuid.uuid4()) if args.standalone else args.rdzv_id,
        role=args.role,
        node_rank=node_rank,
        master_addr=address,
        master_port=port or None,
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        shutdown_timeout=timeout,
        log_dir=args.log_dir,
        redirects=_streams_by_rank("redirects", args.redirects, nproc),
        tee=_streams_by_rank("tee", args.tee, nproc),
        local_ranks_filter=_ranks(args.local_ranks_filter),
        log_line_prefix_template=args.log_line_prefix_template or os.getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"),
        duplicate_stdout_filters=args.duplicate_stdout_filters,
        duplicate_stderr_filters=args.duplicate_stderr_filters,
        signals_to_handle=args.signals_to_handle,
        virtual_local_rank=args.virtual_local_rank,
    )
    config.signals()
    _set_rendezvous(config, args, conf)
    return config, _command(args)


def _command(args: argparse.Namespace) -> list[str]:
    """Returns the command line of a process."""
    rest = [*getattr(args, "extra_args", []), *args.training_script_args]
    if args.no_python and args.module:
        raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
    python = [os.getenv("PYTHON_EXEC", sys.executable), "-u"]
    if args.run_path:
        if not os.path.isabs(args.training_script):
            raise ValueError(f"--run-path: expected an absolute path, got {args.training_script!r}.")
        program = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
        return [*python, "-c", program, args.training_script, *rest]
    if args.no_python:
        return [args.training_script, *rest]
    return [*python, *(["-m"] if args.module else []), args.training_script, *rest]


def run(args: argparse.Namespace) -> None:
    """Launches the program of the arguments; raises ``ChildFailedError`` or ``SignalException``."""
    config, command = config_from_args(args)
    if config.nproc_per_node > 1 and "OMP_NUM_THREADS" not in os.environ:
        threads = config.threads_per_worker()
        say(
            f"OMP_NUM_THREADS is {threads} for each of {config.nproc_per_node} processes: this machine's cores, "
            "divided. Set it to choose."
        )
    launch(config, command, name=args.training_script)


def main(args: list[str] | None = None) -> int:
    """Runs the command: returns 0, 1 after a failure, 2 for wrong arguments, 128 + N after signal N."""
    return execute(parse_args(args))


def execute(parsed: argparse.Namespace) -> int:
    """Runs the launch and reports; returns the exit code."""
    try:
        run(parsed)
    except ChildFailedError as error:
        print(error, file=sys.stderr, flush=True)
        return 1
    except (RendezvousError, OtherMachineFailed) as error:
        say(f"{error}")
        return 1
    except SignalException as error:
        say(f"ended by {error.sigval.name}.")
        return 128 + int(error.sigval)
    except BrokenPipeError:  # nobody reads our output any more: end like a program that SIGPIPE ends
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        return 141
    except (ValueError, OSError) as error:
        print(f"vestarun: error: {error}", file=sys.stderr, flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
