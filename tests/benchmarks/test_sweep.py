import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from benchmarks.cli import cli, run
from benchmarks.executors import Pool, dask_cluster, slurm_cluster
from benchmarks.records import RecordFile, read_records
from benchmarks.runner import Sweep, default_jobs, run_task
from benchmarks.suite import load_suite
from benchmarks.sweep import LiveDisplay
from solver import ProblemError

SUITE = """
name = "small"
schedules = ["1f1b", "chimera", "optimum"]
memory_caps = [1, 2, "none"]
placements = ["linear", "bidirectional"]
problems = [
    { name = "two", microbatches = 3, devices = { count = 2 }, time = { forward = 1, backward = 2 } },
    { name = "three", microbatches = 4, devices = { count = 3 }, time = { forward = 2, backward = 3 } },
]
[[solver]]
time_limit = 60
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SUITE)
    return path


def comparable(records):
    """What must not depend on when and how often a sweep was stopped: all but times."""
    return {record["key"]: {k: v for k, v in record.items() if k != "wall_time"} for record in records}


@pytest.fixture
def undisturbed(suite):
    return comparable(json.loads(json.dumps([run_task(task) for task in load_suite(str(suite))[1]])))


def test_a_record_says_what_was_found_on_what_by_what(suite, undisturbed):
    tasks = load_suite(str(suite))[1]
    by_text = {str(task): undisturbed[task.key] for task in tasks}
    # 2 devices, F 1, B 2, cap 1: one micro-batch at a time, 3 x 2 x 3 = 18.
    best = by_text["two, linear, cap 1, minbubble"]
    assert (best["makespan"], best["status"], best["gap"], best["violations"]) == (18, "OPTIMAL", 0, [])
    assert (best["memory_cap"], best["peak_activations"], best["recipe"]) == ([1, 1], 1.0, "fused")
    assert {"python", "ortools", "minbubble", "cpu", "cores"} <= best["environment"].keys()
    # 1F1B needs two activations on device 0: under a cap of 1 its record is marked, not lost.
    assert by_text["two, cap 1, 1f1b"]["violations"] == ["memory over cap"]
    # Chimera needs an even number of devices.
    odd = by_text["three, cap none, chimera"]
    assert odd["status"] == "NOT_APPLICABLE"
    assert "even" in odd["reason"]


def run_sweep(suite, output, *arguments):
    return CliRunner().invoke(cli, ["sweep", str(suite), "-o", str(output), *arguments], standalone_mode=False)


def test_the_command_records_everything_and_runs_nothing_twice(suite, undisturbed, tmp_path):
    output = tmp_path / "r.jsonl"
    first = run_sweep(suite, output, "--jobs", "2")
    assert first.return_value == 0, first.output
    assert comparable(read_records([output])) == undisturbed
    before = output.read_bytes()
    output.write_bytes(before + b'{"key": "torn')
    again = run_sweep(suite, output)
    assert "dropped a torn last line" in again.output
    assert f"{len(undisturbed)} of {len(undisturbed)} tasks are on record" in again.output
    assert output.read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes standard output")
def test_a_sweep_needs_no_standard_output(suite, undisturbed, tmp_path):
    start = "from benchmarks.cli import main; main()"
    shell = f'"{sys.executable}" -c "{start}" sweep small.toml -o r.jsonl --jobs 2 >&-'
    process = subprocess.run(shell, shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert comparable(read_records([tmp_path / "r.jsonl"])) == undisturbed


@pytest.mark.skipif(os.name == "nt", reason="has no such pipes")
def test_a_pipe_takes_no_records(suite, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert run(["sweep", str(suite), "-o", str(tmp_path / "pipe")]) == 2
    assert capsys.readouterr().err == f"minbubble: {tmp_path / 'pipe'}: is no regular file\n"


def kill_at_random_moments(suite, output, kills, seed):
    """Start the sweep, kill -9 it after a few more records or a moment later, ``kills`` times; then let it end."""
    chance = random.Random(seed)
    start = "from benchmarks.cli import main; main()"
    command = [sys.executable, "-c", start, "sweep", str(suite), "-o", str(output), "--jobs", "2"]
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = output.read_bytes().count(b"\n") if output.exists() else 0
        more, deadline = lines + chance.choice([0, 1, 2]), time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if (output.read_bytes().count(b"\n") if output.exists() else 0) >= more:
                break
            time.sleep(0.005)
        time.sleep(chance.random() * (0.05 if more > lines else 1.5))
        process.send_signal(chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT]))
        process.wait()
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_sweep_killed_and_resumed_has_the_records_of_an_undisturbed_one(kills, suite, undisturbed, tmp_path):
    output = tmp_path / "r.jsonl"
    kill_at_random_moments(suite, output, kills, seed=kills)
    lines = output.read_text().splitlines()
    assert len(lines) == len(undisturbed), "nothing is lost or repeated"
    assert comparable(map(json.loads, lines)) == undisturbed


def test_a_dead_process_does_not_end_the_sweep(suite, undisturbed, tmp_path):
    pool = Pool(2)
    killed = []

    def kill_once(task, record):
        if not killed:
            killed.append(next(iter(pool._pool._processes)))
            os.kill(killed[0], signal.SIGKILL)

    with RecordFile(tmp_path / "r.jsonl") as file:
        sweep = Sweep(file, pool, kill_once)
        sweep.run(load_suite(str(suite))[1])
    assert killed
    assert sweep.failed == []
    assert comparable(read_records([tmp_path / "r.jsonl"])) == undisturbed


def test_dask_loses_a_worker_and_the_sweep_completes(suite, undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: the cluster is not tried")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", local_directory=str(tmp_path)
    )
    killed = []

    def kill_a_worker(task, record):
        if not killed:
            killed.append(cluster.workers[0].process.pid)
            os.kill(killed[0], signal.SIGKILL)

    with cluster, RecordFile(tmp_path / "r.jsonl") as file:
        sweep = Sweep(file, dask_cluster(cluster.scheduler_address), kill_a_worker)
        sweep.run(load_suite(str(suite))[1])
    assert killed
    assert sweep.failed == []
    assert comparable(read_records([tmp_path / "r.jsonl"])) == undisturbed


def test_submitit_runs_tasks_as_jobs(suite, undisturbed, tmp_path):
    pytest.importorskip("submitit", reason="submitit is not installed: jobs are not tried")
    tasks = load_suite(str(suite))[1][:2]
    with RecordFile(tmp_path / "r.jsonl") as file:
        sweep = Sweep(file, slurm_cluster(2, 1, 5, str(tmp_path / "logs"), cluster="local"), lambda task, record: None)
        sweep.run(tasks)
    assert sweep.failed == []
    assert comparable(read_records([tmp_path / "r.jsonl"])) == {task.key: undisturbed[task.key] for task in tasks}


def test_a_bug_in_one_task_is_told_and_the_others_recorded(suite, tmp_path, monkeypatch):
    from concurrent.futures import Future

    class Here:
        ahead = 1

        def submit(self, function, task):
            future = Future()
            with contextlib.suppress(ZeroDivisionError):
                if task.schedule == "chimera":
                    future.set_exception(ZeroDivisionError("a bug"))
                    raise ZeroDivisionError
                future.set_result(function(task))
            return future

        def stop(self):
            pass

    tasks = load_suite(str(suite))[1]
    with RecordFile(tmp_path / "r.jsonl") as file:
        sweep = Sweep(file, Here(), lambda task, record: None)
        sweep.run(tasks)
    bad = [task for task in tasks if task.schedule == "chimera"]
    assert [reason for _, reason in sweep.failed] == ["ZeroDivisionError: a bug"] * len(bad)
    assert len(file.done) == len(tasks) - len(bad)


def test_jobs_and_threads_do_not_oversubscribe_the_cores(suite, monkeypatch):
    monkeypatch.setattr("benchmarks.runner.available_cores", lambda: 8)
    suite.write_text(SUITE + "workers = 3\n")
    assert default_jobs(load_suite(str(suite))[1]) == 2


@pytest.mark.parametrize("executor", ["cloud", "slurm"])
def test_an_executor_that_is_not_there_is_one_line(executor, suite, tmp_path):
    result = run_sweep(suite, tmp_path / "r.jsonl", "--executor", executor)
    assert result.exception is not None
    assert len(str(getattr(result.exception, "message", result.exception)).splitlines()) == 1


def test_a_dask_scheduler_that_does_not_answer_is_named():
    pytest.importorskip("distributed", reason="Dask is not installed: the cluster is not tried")
    with pytest.raises(ProblemError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        dask_cluster("tcp://127.0.0.1:9", timeout=0.5)


def test_the_live_display_says_what_is_proven_open_and_running():
    from io import StringIO

    from rich.console import Console
    from rich.progress import Progress, TextColumn

    console = Console(file=StringIO(), force_terminal=True, width=200)
    with Progress(TextColumn("{task.description}", markup=False), console=console) as bar:
        display = LiveDisplay(bar, total=3, done=0)
        display.recorded("first", {"makespan": 33, "status": "OPTIMAL", "gap": 0.0, "wall_time": 0.5})
        display.recorded("second", {"makespan": 60, "status": "FEASIBLE", "gap": 0.05, "wall_time": 60.0})
        display.running(["third", "fourth"])
        (row,) = bar.tasks
    assert (row.completed, row.total) == (2, 3)
    assert row.description == "1 proven, 1 open (largest gap 5.00%), 2 running: third"
    assert "second: makespan 60, FEASIBLE, gap 5.00% in 60.00 s" in console.file.getvalue()
