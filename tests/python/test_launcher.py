"""``python -m vesta.distributed.run``: arguments, variables, output, failures, signals, no process left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sanitized import with_plain_signals
from vesta.distributed import run as run_module
from vesta.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from vesta.distributed.launcher.output import LineRelay, last_traceback

LAUNCH = [sys.executable, "-m", "vesta.distributed.run"]
PACKAGE = Path(run_module.__file__).absolute().parents[2]
LIMIT = 90  # seconds; whatever takes this long, even on a busy machine, hangs


def clean_environment(**more: str) -> dict[str, str]:
    """Returns this process's environment without the variables that a launcher sets or reads."""
    drop = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS")
    kept = {k: v for k, v in os.environ.items() if k not in drop and not k.startswith(("PET_", "TORCHELASTIC"))}
    return {**kept, **more}


def script(folder: Path, text: str) -> str:
    """Writes a program and returns its path."""
    path = folder / "program.py"
    path.write_text("import json, os, signal, subprocess, sys, time\nRANK = int(os.environ['RANK'])\n" + text)
    return str(path)


def launch(*words: object, **environment: str) -> subprocess.CompletedProcess:
    """Runs the launcher to its end."""
    return subprocess.run(
        [*LAUNCH, *map(str, words)], capture_output=True, text=True, timeout=LIMIT, env=clean_environment(**environment)
    )


def gone(pid: int, seconds: float = 20.0) -> bool:
    """Waits until a process (not necessarily a child) has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


@contextlib.contextmanager
def running(*words: object, until: str, copies: int) -> Iterator[tuple[subprocess.Popen, list[int]]]:
    """Starts the launcher, waits for ``copies`` lines "UNTIL pid pid...", and yields it with all those ids."""
    process = subprocess.Popen([*LAUNCH, *map(str, words)], stdout=subprocess.PIPE, text=True, env=clean_environment())
    pids: list[int] = []
    try:
        assert process.stdout is not None
        for _ in range(copies):
            line = process.stdout.readline()
            assert until in line, line
            pids += [int(word) for word in line.partition(until)[2].split()]
        yield process, pids
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def records(done: subprocess.CompletedProcess) -> dict[int, dict]:
    """Reads the JSON that each rank printed, by the rank of its line's prefix."""
    lines = [re.fullmatch(r"\[rank(\d+)\]: (\{.*\})", line) for line in done.stdout.splitlines()]
    return {int(match[1]): json.loads(match[2]) for match in lines if match}


SHOW = "print(json.dumps({'argv': sys.argv[1:], 'file': sys.argv[0], **os.environ}))\n"


# ---- arguments and variables


def test_each_process_finds_its_variables(tmp_path: Path) -> None:
    done = launch("--nproc-per-node=3", "--max-restarts=2", "--role=trainer", script(tmp_path, SHOW), "--lr", "-1", "x")
    assert done.returncode == 0, done.stderr
    found = records(done)
    assert sorted(found) == [0, 1, 2]
    for rank, values in found.items():
        assert values["argv"] == ["--lr", "-1", "x"]
        for name in ("RANK", "LOCAL_RANK", "ROLE_RANK"):
            assert values[name] == str(rank)
        for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"):
            assert values[name] == "3"
        assert (values["GROUP_RANK"], values["GROUP_WORLD_SIZE"], values["ROLE_NAME"]) == ("0", "1", "trainer")
        assert (values["TORCHELASTIC_RESTART_COUNT"], values["TORCHELASTIC_MAX_RESTARTS"]) == ("0", "2")
        assert values["TORCHELASTIC_RUN_ID"] == "none"
        assert values["MASTER_ADDR"] == "127.0.0.1"
    assert len({values["MASTER_PORT"] for values in found.values()}) == 1


@pytest.mark.differs
def test_cores_are_divided_among_the_processes(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    done = launch("--nproc_per_node", 2, script(tmp_path, SHOW))
    threads = {values["OMP_NUM_THREADS"] for values in records(done).values()}
    assert len(threads) == 1
    assert 1 <= int(threads.pop()) <= max(1, cores // 2)
    assert "OMP_NUM_THREADS is" in done.stderr
    done = launch("--nproc_per_node", 2, script(tmp_path, SHOW), OMP_NUM_THREADS="7")
    assert {values["OMP_NUM_THREADS"] for values in records(done).values()} == {"7"}
    assert done.stderr == ""


def test_two_machines_divide_the_ranks(tmp_path: Path) -> None:
    common = ["--nnodes=2", "--nproc-per-node=2", "--master_addr=10.0.0.1", "--master-port=29611"]
    for node in (0, 1):
        found = records(launch(*common, "--node-rank", node, script(tmp_path, SHOW)))
        assert sorted(found) == [2 * node, 2 * node + 1]
        for values in found.values():
            assert (values["WORLD_SIZE"], values["LOCAL_WORLD_SIZE"], values["GROUP_RANK"]) == ("4", "2", str(node))
            assert (values["MASTER_ADDR"], values["MASTER_PORT"]) == ("10.0.0.1", "29611")
    found = records(launch("--nnodes=2", "--rdzv-endpoint=[fe80::1]:77", "--rdzv_conf=rank=1", script(tmp_path, SHOW)))
    assert (found[1]["MASTER_ADDR"], found[1]["MASTER_PORT"]) == ("fe80::1", "77")


class Machines:
    """Launchers that meet at one endpoint of this machine, each with its own options."""

    def __init__(self, *common: object) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.common = ["--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{self.port}", "--rdzv-id=job", *common]
        self.launchers: list[subprocess.Popen] = []

    def __enter__(self) -> Machines:
        return self

    def start(self, *words: object) -> subprocess.Popen:
        command = [*LAUNCH, *map(str, self.common), *map(str, words)]
        pipe = subprocess.PIPE
        environment = clean_environment(OMP_NUM_THREADS="1")
        self.launchers.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment))
        return self.launchers[-1]

    def ends(self) -> list[subprocess.CompletedProcess]:
        """Waits for all; returns the exit status and output of each."""
        found = []
        for p in self.launchers:
            out, err = p.communicate(timeout=LIMIT)
            found.append(subprocess.CompletedProcess(p.args, p.returncode, out, err))
        return found

    def __exit__(self, *_: object) -> None:
        for p in self.launchers:
            if p.poll() is None:
                p.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    p.communicate(timeout=LIMIT)


def test_machines_meet_and_number_themselves(tmp_path: Path) -> None:
    with Machines("--nnodes=2") as machines:
        for nproc in (2, 1):
            machines.start(f"--nproc-per-node={nproc}", script(tmp_path, SHOW))
        done = machines.ends()
    assert [d.returncode for d in done] == [0, 0], done
    found = {rank: values for d in done for rank, values in records(d).items()}
    assert sorted(found) == [0, 1, 2]
    for rank, values in found.items():
        assert values["RANK"] == values["ROLE_RANK"] == str(rank)
        assert (values["WORLD_SIZE"], values["GROUP_WORLD_SIZE"]) == ("3", "2")
        assert values["TORCHELASTIC_USE_AGENT_STORE"] == "True" and values["TORCHELASTIC_RUN_ID"] == "job"
    assert len({(v["MASTER_ADDR"], v["MASTER_PORT"]) for v in found.values()}) == 1
    sizes = {v["GROUP_RANK"]: v["LOCAL_WORLD_SIZE"] for v in found.values()}
    assert sorted(sizes) == ["0", "1"] and sorted(sizes.values()) == ["1", "2"]


def test_a_name_that_leads_to_itself_is_passed_on(tmp_path: Path) -> None:
    """Other machines can resolve the name, while on the machine itself it may resolve to 127.0.1.1."""
    name = socket.gethostname()
    with contextlib.suppress(OSError), Machines("--nnodes=2") as machines:
        socket.getaddrinfo(name, None)
        machines.common[1] = f"--rdzv-endpoint={name}:{machines.port}"
        program = "import vesta, vesta.distributed as dist\ndist.init_process_group(); dist.barrier()\n" + SHOW
        for _ in range(2):
            machines.start(script(tmp_path, program))
        done = machines.ends()
        assert [d.returncode for d in done] == [0, 0], done
        for d in done:
            for values in records(d).values():
                assert not values["MASTER_ADDR"].startswith("127."), values["MASTER_ADDR"]


def test_as_many_machines_as_come_are_enough(tmp_path: Path) -> None:
    with Machines("--nnodes=1:4", "--rdzv-conf=last_call_timeout=2") as machines:
        for _ in range(2):
            machines.start(script(tmp_path, SHOW))
        done = machines.ends()
    found = {rank: values for d in done for rank, values in records(d).items()}
    assert sorted(found) == [0, 1] and found[0]["WORLD_SIZE"] == "2", done


FAILS_ONCE = """
import vesta, vesta.distributed as dist
dist.init_process_group()
t = vesta.ones(1)
dist.all_reduce(t)
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and RANK == 1:
    raise ValueError("once")
dist.all_reduce(t)
print("sum", t.item())
"""


def test_machines_begin_anew_together(tmp_path: Path) -> None:
    with Machines("--nnodes=2", "--max-restarts=1") as machines:
        for _ in range(2):
            machines.start(script(tmp_path, FAILS_ONCE))
        done = machines.ends()
    assert [d.returncode for d in done] == [0, 0], done
    assert [d.stdout.count("sum 4.0") for d in done] == [1, 1]
    assert sum("ValueError: once" in d.stderr for d in done) >= 1
    assert all("restart 1 of 1" in d.stderr for d in done)


def test_a_failure_on_one_machine_ends_the_others(tmp_path: Path) -> None:
    with Machines("--nnodes=2") as machines:
        for _ in range(2):
            machines.start(script(tmp_path, "sys.exit(3) if RANK == 1 else time.sleep(60)"))
        done = machines.ends()
    assert [d.returncode for d in done] == [1, 1], done
    failed, other = sorted(done, key=lambda d: "another machine" in d.stderr)
    assert "exitcode  : 3" in failed.stderr
    assert re.search(r"failure on another machine\. .*: rank 1 exited with code 3\.", other.stderr), other.stderr


@pytest.mark.differs
def test_a_machine_that_is_lost_is_replaced(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "print('up', flush=True)\n"
        "import vesta, vesta.distributed as dist\n"
        "dist.init_process_group()\n"
        "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0': dist.recv(vesta.ones(1))\n"
        "dist.barrier(); print('whole', flush=True)\n",
    )
    with Machines("--nnodes=2", "--max-restarts=2", "--rdzv-conf=keep_alive_timeout=6") as machines:
        machines.start(program)
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:  # it serves the rendezvous, so it must not be the one that is lost
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", machines.port), 1):
                break
            time.sleep(0.05)
        lost = machines.start(program)
        assert lost.stdout is not None
        lost.stdout.readline()
        lost.kill()
        machines.start(program)
        done = machines.ends()
    assert [d.returncode for d in done] == [0, -signal.SIGKILL, 0], done
    assert "whole" in done[0].stdout and "whole" in done[2].stdout


def test_all_end_when_the_meeting_point_is_lost(tmp_path: Path) -> None:
    with Machines("--nnodes=2", "--max-restarts=1") as machines:
        first = machines.start(script(tmp_path, "print('up', flush=True); time.sleep(60)"))
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", machines.port), 1):
                break
            time.sleep(0.05)
        second = machines.start(script(tmp_path, "print('up', flush=True); time.sleep(60)"))
        assert second.stdout is not None
        second.stdout.readline()
        first.kill()
        begin = time.monotonic()
        done = machines.ends()
    assert done[1].returncode == 1 and time.monotonic() - begin < 40, done
    assert "is gone (--rdzv-endpoint); without it no round begins" in done[1].stderr, done[1].stderr


def test_who_waits_for_other_machines_ends(tmp_path: Path) -> None:
    program = script(tmp_path, SHOW)
    with Machines("--nnodes=3", "--rdzv-conf=join_timeout=2") as machines:
        machines.start(program)
        (done,) = machines.ends()
    assert done.returncode == 1
    assert "expected 3 machines, 1 came (--nnodes, --rdzv-id job) within 2 s" in done.stderr
    with Machines("--nnodes=2", "--rdzv-conf=join_timeout=2,is_host=0") as machines:
        machines.start(program)
        (done,) = machines.ends()
    assert done.returncode == 1 and "no rendezvous at localhost:" in done.stderr, done
    with Machines("--nnodes=2") as machines:
        waiting = machines.start(program)
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:  # once it listens, its handlers are installed
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", machines.port), 1):
                break
            time.sleep(0.05)
        waiting.send_signal(signal.SIGTERM)
        (done,) = machines.ends()
    assert done.returncode == 128 + signal.SIGTERM and "ended by SIGTERM" in done.stderr


def test_who_only_noticed_a_loss_is_not_the_cause(tmp_path: Path) -> None:
    done = launch(
        "--nproc-per-node=2",
        script(
            tmp_path,
            "import vesta, vesta.distributed as dist\ndist.init_process_group()\n"
            "if RANK == 1: sys.exit(5)\ndist.all_reduce(vesta.ones(1))\n",
        ),
    )
    assert done.returncode == 1 and "has left the group" in done.stderr
    cause = done.stderr.rpartition("Root Cause")[2]
    assert "exitcode  : 5" in cause and "rank 1 exited with code 5 after" in done.stderr, done.stderr


def test_modules_programs_and_run_path(tmp_path: Path) -> None:
    path = script(tmp_path, SHOW)
    found = records(
        launch("--nproc-per-node=2", "-m", "program", "a", PYTHONPATH=os.pathsep.join([str(tmp_path), str(PACKAGE)]))
    )
    assert [found[r]["argv"] for r in (0, 1)] == [["a"], ["a"]]
    found = records(launch("--run-path", path, "b"))
    assert (found[0]["argv"], found[0]["file"]) == (["b"], path)
    done = launch("--no-python", "--nproc-per-node=2", "/bin/sh", "-c", "echo $RANK of $WORLD_SIZE at ${local_rank}")
    assert sorted(done.stdout.splitlines()) == ["[rank0]: 0 of 2 at 0", "[rank1]: 1 of 2 at 1"]


def test_the_older_launcher_passes_the_rank_as_an_argument(tmp_path: Path) -> None:
    old = [sys.executable, "-m", "vesta.distributed.launch", "--nproc_per_node=2"]
    for words, want in (([], "--local-rank={}"), (["--use-env"], "--use-env")):
        done = subprocess.run(
            [*old, *words, script(tmp_path, SHOW), "--use-env"], capture_output=True, text=True, timeout=LIMIT
        )
        found = records(done)
        assert [found[r]["argv"][0] for r in (0, 1)] == [want.format(r) for r in (0, 1)]


def test_variables_give_defaults(tmp_path: Path) -> None:
    found = records(launch(script(tmp_path, SHOW), PET_NPROC_PER_NODE="2", PET_STANDALONE="1", PET_RDZV_ID="no"))
    assert sorted(found) == [0, 1]
    assert len(found[0]["TORCHELASTIC_RUN_ID"]) == 36  # --standalone makes its own id


def test_one_gpu_for_each_process_as_device_0(tmp_path: Path) -> None:
    path = script(tmp_path, SHOW)
    found = records(launch("--nproc-per-node=2", "--virtual-local-rank", path, CUDA_VISIBLE_DEVICES="5, 7"))
    assert [(found[r]["LOCAL_RANK"], found[r]["CUDA_VISIBLE_DEVICES"]) for r in (0, 1)] == [("0", "5"), ("0", "7")]


BAD = {
    "--nproc-per-node=0": "--nproc-per-node: expected a positive number, auto, cpu or gpu, got '0'.",
    "--nproc-per-node=many": "got 'many'",
    "--nnodes=1:4": "For MIN:MAX machines use --rdzv-backend c10d",
    "--nnodes=4:1 --rdzv-backend=c10d": "expected 0 < MIN <= MAX",
    "--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=h:0": "expected a port from 1 to 65535",
    "--nnodes=2 --rdzv-backend=c10d --rdzv-conf=join_timeout=soon": "expected seconds, got join_timeout='soon'",
    "--nnodes=2 --rdzv-backend=c10d --rdzv-conf=is_host=maybe": "expected true or false, got is_host='maybe'",
    "--nnodes=x": 'expected a number or "MIN:MAX"',
    "--nnodes=2 --node-rank=2": "--node-rank: expected 0 to 1 for --nnodes 2, got 2.",
    "--nnodes=2 --standalone": "--standalone: expected one machine",
    "--rdzv-backend=etcd": "expected static or c10d, got 'etcd'",
    "--rdzv-endpoint=h:port --nnodes=2": "expected HOST:PORT",
    "--max-restarts=-1": "--max-restarts: expected 0 or more",
    "--redirects=4": "expected 0, 1, 2, 3 or LOCAL_RANK:N",
    "--tee=3:1": "expected local ranks from 0 to 0",
    "--local-ranks-filter=a": "must be a comma-separated list of integers",
    "--signals-to-handle=SIGNAL": "expected names like SIGTERM, got SIGNAL",
    "--no-python -m": "Don't use both",
    "--run-path": "expected an absolute path",
    "--event-log-handler=console": "expected null",
    "--numa-binding=node": "vestarun does not have it",
}


@pytest.mark.parametrize("words", BAD)
def test_wrong_arguments_are_named(words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(BAD[words])):
        run_module.config_from_args(run_module.parse_args([*words.split(), "program.py"]))


def test_a_program_that_is_not_there() -> None:
    done = launch("--no-python", "--nproc-per-node=2", "./no_such_program")
    assert done.returncode == 2
    assert "no_such_program" in done.stderr and "Traceback" not in done.stderr


# ---- output


def test_logs_go_where_they_are_told(tmp_path: Path) -> None:
    path = script(tmp_path, "print('out', RANK); print('err', RANK, file=sys.stderr)\n")
    logs = tmp_path / "logs"
    done = launch("--nproc-per-node=3", "--log-dir", logs, "-r", "0:3,1:2", "-t", "2:1", "--rdzv-id=job", path)
    assert done.returncode == 0, done.stderr
    (folder,) = logs.iterdir()
    assert folder.name.startswith("job_")
    written = {str(p.relative_to(folder / "attempt_0")): p.read_text() for p in folder.rglob("*.log")}
    expected = {"0/stdout.log": "out 0\n", "0/stderr.log": "err 0\n", "1/stderr.log": "err 1\n"}
    assert written == {**expected, "2/stdout.log": "out 2\n"}
    assert sorted(done.stdout.splitlines()) == ["[rank1]: out 1", "[rank2]: out 2"]
    assert "[rank2]: err 2" in done.stderr and "err 0" not in done.stderr and "err 1" not in done.stderr


def test_prefix_filter_and_lines_without_end(tmp_path: Path) -> None:
    path = script(tmp_path, "sys.stdout.write('[rank%d]: mine\\nits apple' % RANK)\n")
    done = launch("--nproc-per-node=2", "--local-ranks-filter=1", path)
    assert done.stdout == "[rank1]: mine\n[rank1]: its apple\n"
    words = ["--log-line-prefix-template", "${role_name}-${local_rank}/${rank}|", "--role=r", "--nproc-per-node=2"]
    filters = ["--duplicate-stdout-filters=apple", "--log-dir", tmp_path / "logs"]
    done = launch(*words, *filters, path)
    assert sorted(done.stdout.splitlines())[0] == "r-0/0|[rank0]: mine"
    assert next((tmp_path / "logs").rglob("filtered_stdout.log")).read_text() == "its apple\n" * 2


def test_nobody_reads_the_output(tmp_path: Path) -> None:
    path = script(tmp_path, "print(os.getpid(), flush=True)\nwhile True: print('x' * 100)\n")
    process = subprocess.Popen([*LAUNCH, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        pid = int(process.stdout.readline().split()[-1])
        process.stdout.close()
        _, errors = process.communicate(timeout=LIMIT)
        assert process.returncode == 141, errors
        assert gone(pid)
    finally:
        process.kill()
        process.wait()


def test_the_last_traceback_is_found_with_its_chain() -> None:
    raised = b"Traceback (most recent call last):\n  File x\nValueError: 1\n"
    chain = raised + b"\nDuring handling of the above exception, another exception occurred:\n\n" + raised
    assert last_traceback((b"noise\n" + raised + b"noise\n" + chain).split(b"\n")) == chain.decode()
    assert last_traceback([b"nothing"]) == ""


def test_a_prefix_of_the_worker_is_not_part_of_its_traceback() -> None:
    read, write = os.pipe()
    os.write(write, b"[rank3]: Traceback (most recent call last):\n[rank3]:   File x\n[rank3]: ValueError: 1")
    os.close(write)
    relay = LineRelay(read, None, b"[rank3]: ", None)
    while relay.pump():
        pass
    relay.close()
    assert relay.last_traceback() == "Traceback (most recent call last):\n  File x\nValueError: 1\n"


# ---- failures

FAIL = """
print('pid', os.getpid(), flush=True)
if RANK == 1:
    time.sleep(0.3)
    raise RuntimeError('it went wrong')
time.sleep(600)
"""


@pytest.mark.differs
def test_the_first_failure_ends_all_and_is_told_last(tmp_path: Path) -> None:
    start = time.monotonic()
    done = launch("--nproc-per-node=3", script(tmp_path, FAIL))
    assert time.monotonic() - start < 60
    assert done.returncode == 1
    pids = [int(line.split()[-1]) for line in done.stdout.splitlines()]
    assert len(pids) == 3 and all(gone(pid) for pid in pids)
    assert "vestarun: rank 1 exited with code 1 after" in done.stderr
    assert "rank 0 ended by the launcher (SIGTERM), rank 2 ended by the launcher (SIGTERM)." in done.stderr
    report = done.stderr.partition("program.py FAILED")[2]
    assert "<NO_OTHER_FAILURES>" in report
    assert re.search(r"rank +: 1 \(local_rank: 1\)\n +exitcode +: 1 \(pid: \d+\)\n", report)
    assert re.search(r"RuntimeError: it went wrong\n=+\n$", report)


def test_who_raised_first_is_the_cause_though_it_exits_later(tmp_path: Path) -> None:
    text = """
flag = sys.argv[1]
try:
    if RANK == 1:
        raise KeyError('the cause')
    while not os.path.exists(flag): time.sleep(0.005)
    raise ConnectionError('rank 1 is gone')
except Exception:
    import traceback
    traceback.print_exc()
    if RANK == 1:
        time.sleep(0.05)
        open(flag, 'w').close()
        time.sleep(0.15)
    os._exit(3)
"""
    done = launch("--nproc-per-node=2", script(tmp_path, text), tmp_path / "flag")
    assert done.returncode == 1
    cause = done.stderr.partition("Root Cause")[2]
    assert "KeyError: 'the cause'" in cause and "ConnectionError" not in cause
    assert "vestarun: rank 1 " in done.stderr


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT"])
def test_a_signal_is_named(tmp_path: Path, name: str) -> None:
    path = script(tmp_path, f"if RANK == 0: os.kill(os.getpid(), signal.{name})\ntime.sleep(600)\n")
    done = launch("--nproc-per-node=2", path, ASAN_OPTIONS=with_plain_signals()["ASAN_OPTIONS"])
    assert done.returncode == 1
    assert f"vestarun: rank 0 killed by {name} after" in done.stderr
    assert f"exitcode  : -{int(signal.Signals[name])} (pid: " in done.stderr and f"({name})" in done.stderr


def test_record_writes_what_the_report_shows(tmp_path: Path) -> None:
    text = """
from vesta.distributed.elastic.multiprocessing.errors import record
@record
def main():
    raise ValueError('recorded')
sys.stderr = open(os.devnull, 'w')
main()
"""
    outer = tmp_path / "outer.json"
    done = launch(script(tmp_path, text), TORCHELASTIC_ERROR_FILE=str(outer))
    assert done.returncode == 1
    assert "in main" in done.stderr and "ValueError: recorded" in done.stderr
    assert json.loads(outer.read_text())["message"]["message"] == "ValueError: recorded"
    assert json.loads(outer.read_text())["message"]["errorCode"] == 1


def test_record_keeps_results_exits_and_exceptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    assert record(lambda x, y: x + y)(1, y=2) == 3
    assert record(lambda: sys.exit(0))() is None
    with pytest.raises(SystemExit):
        record(lambda: sys.exit(4))()
    assert not (tmp_path / "error.json").exists()
    with pytest.raises(ZeroDivisionError):
        record(lambda: 1 / 0)()
    failure = ProcessFailure(0, 17, 1, str(tmp_path / "error.json"))
    assert "ZeroDivisionError" in failure.text()
    assert abs(failure.timestamp - time.time()) < 60
    error = ChildFailedError("job", {0: failure, 1: ProcessFailure(1, 18, -9, "none")})
    assert error.get_first_failure() == (0, failure)
    assert str(error).index("Signal 9 (SIGKILL) received by PID 18") < str(error).index("ZeroDivisionError")


def test_restarts_until_it_works(tmp_path: Path) -> None:
    text = """
attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])
print('attempt', attempt, os.environ['MASTER_PORT'], flush=True)
if RANK == attempt: sys.exit(9)
if attempt < 2: time.sleep(600)
"""
    done = launch("--nproc-per-node=2", "--max-restarts=3", script(tmp_path, text))
    assert done.returncode == 0, done.stderr
    assert "rank 0 exited with code 9" in done.stderr and "restart 1 of 3." in done.stderr
    assert "rank 1 exited with code 9" in done.stderr and "restart 2 of 3." in done.stderr
    assert sum("attempt 2" in line for line in done.stdout.splitlines()) == 2
    done = launch("--max-restarts=1", script(tmp_path, "sys.exit(5)"))
    assert done.returncode == 1 and "no restart left" in done.stderr


# ---- signals, and no process left behind

STAY = """
child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])
def on_term(number, frame):
    print('asked to end', flush=True)
    sys.exit(0)
if 'polite' in sys.argv: signal.signal(signal.SIGTERM, on_term)
if 'deaf' in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if 'usr1' in sys.argv: signal.signal(signal.SIGUSR1, lambda n, f: print('usr1', flush=True))
print('ready', os.getpid(), child.pid, flush=True)
if 'end' in sys.argv: sys.exit(0)
while True: time.sleep(600)
"""


@pytest.mark.differs
def test_a_signal_is_passed_on(tmp_path: Path) -> None:
    with running("--nproc-per-node=2", script(tmp_path, STAY), "polite", until="ready", copies=2) as (process, pids):
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read().count("asked to end") == 2
        assert process.wait(LIMIT) == 128 + signal.SIGTERM
        assert all(gone(pid) for pid in pids)


@pytest.mark.differs
def test_other_signals_only_pass_through(tmp_path: Path) -> None:
    words = ["--signals-to-handle=SIGUSR1,SIGTERM,SIGINT", script(tmp_path, STAY), "usr1"]
    with running(*words, until="ready", copies=1) as (process, pids):
        process.send_signal(signal.SIGUSR1)
        assert "usr1" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 128 + signal.SIGINT
        assert all(gone(pid) for pid in pids)


def test_who_does_not_listen_is_killed(tmp_path: Path) -> None:
    words = ["--nproc-per-node=2", "--shutdown-timeout=1", script(tmp_path, STAY), "deaf"]
    with running(*words, until="ready", copies=2) as (process, pids):
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 128 + signal.SIGTERM
        assert all(gone(pid) for pid in pids)


def test_nobody_outlives_a_launcher_that_is_killed(tmp_path: Path) -> None:
    with running("--nproc-per-node=2", script(tmp_path, STAY), "deaf", until="ready", copies=2) as (process, pids):
        process.kill()
        process.wait()
        assert len(pids) == 4
        assert all(gone(pid) for pid in pids)


def test_what_a_finished_process_leaves_is_ended(tmp_path: Path) -> None:
    done = launch("--nproc-per-node=2", script(tmp_path, STAY), "end")
    assert done.returncode == 0, done.stderr
    pids = [int(word) for line in done.stdout.splitlines() for word in line.partition("ready")[2].split()]
    assert len(pids) == 4 and all(gone(pid) for pid in pids)


def test_no_file_is_left(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = launch("--nproc-per-node=2", script(tmp_path, "pass"), TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    assert not list(temporary.iterdir())
