"""The command line: what it prints, its exit codes, and that no mistake in the input shows a traceback."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchmarks import cli
from benchmarks.solving import PLACEMENT_NAMES
from solver import Placement, Problem, Stage, Workload, load_problem
from solver.placement import CHUNKED, PLACEMENTS

SUITES = Path(__file__).parent.parent / "benchmarks" / "suites"


def started(*arguments, **options):
    command = [sys.executable, "-c", "from benchmarks.cli import main; main()", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **{**pipes, **options})


# solve


def test_flags_know_every_placement():
    assert tuple(PLACEMENTS) == PLACEMENT_NAMES
    assert set(CHUNKED) < set(PLACEMENTS)


def test_solve_json_has_the_promised_keys(minbubble):
    code, out, _ = minbubble("solve", "--memory-cap", "4", "--json")
    answer = json.loads(out)
    assert code == 0
    promised = "name status minimize objective lower_bound gap proof makespan span bubble_ratio peak_memory wall_time"
    assert {*promised.split(), "schedule", "problem"} == set(answer)
    # 1F1B is optimal at 4 activations: (M + P - 1)(F + B) = 11 x 3; the devices work 8 x 3 of it: idle 9/33
    assert (answer["status"], answer["makespan"], answer["objective"]) == ("OPTIMAL", 33, 33)
    assert answer["bubble_ratio"] == pytest.approx(9 / 33)
    assert answer["minimize"] == ["makespan"]
    assert len(answer["schedule"]) == 4 * 8 * 2
    assert set(answer["schedule"][0]) == {"op", "device", "start", "end"}


def test_solve_prints_summary_proof_and_timeline(minbubble):
    code, out, err = minbubble("solve", "--devices", 2, "--microbatches", 2)
    assert (code, err) == (0, "")
    for text in ("2 devices, 2 micro-batches, linear", "OPTIMAL", "makespan      9", "is optimal", "0 | F0"):
        assert text in out


def test_several_metrics_and_limits(minbubble):
    # least memory at makespan 33 = (8 + 3) x 3: the cap-3 optimum is 39, so the largest device must hold 4
    code, out, _ = minbubble("solve", "--minimize", "makespan,peak_memory", "--json")
    assert (code, json.loads(out)["objective"]) == (0, [33, 4])
    code, out, _ = minbubble("solve", "--minimize", "peak_memory", "--subject-to", "makespan=39", "--json")
    assert (code, json.loads(out)["objective"]) == (0, 3)


def test_no_schedule_is_exit_code_1(minbubble):
    # 32 < (8 + 3) x 3
    code, out, _ = minbubble("solve", "--subject-to", "makespan=32")
    assert code == 1
    assert "INFEASIBLE" in out
    code, out, _ = minbubble("solve", "--subject-to", "makespan=32", "--json")
    answer = json.loads(out)
    assert (code, answer["makespan"], answer["schedule"]) == (1, None, [])


def test_chunks_share_a_device_share(minbubble):
    # P=4, V=2, chunk times 1/2 and 1: work bound 8 x 3, head 3 x 1/2, tail 3 x 1 -> 28.5
    code, out, _ = minbubble("solve", "--placement", "looped", "--chunks", 2, "--json")
    assert (code, json.loads(out)["makespan"]) == (0, 28.5)


def test_a_file_and_what_flags_change_in_it(minbubble, tmp_path):
    path = tmp_path / "plan.toml"
    Workload.uniform(devices=4, microbatches=8, name="plan").problem(Placement.linear(4)).save(path)
    code, out, _ = minbubble("solve", path, "--memory-cap", "3", "--json")
    # ceil(8/3) P (F+B) + (r-1)(F+B), r = 8 - 3 x 2 = 2: 3 x 12 + 3 = 39
    assert (code, json.loads(out)["makespan"], json.loads(out)["name"]) == (0, 39, "plan")
    code, _, err = minbubble("solve", path, "--forward", "2")
    assert code == 2
    assert "--forward is for a model without a file" in err


def test_standard_input(tmp_path):
    text = '{"microbatches": 1, "devices": {"count": 1}, "time": {"forward": 1, "backward": 2}}'
    process = started("solve", "-", "--json", stdin=subprocess.PIPE)
    out, _ = process.communicate(text)
    assert json.loads(out)["makespan"] == 3


@pytest.mark.parametrize("suffix", ["json", "toml"])
def test_what_solve_writes_verify_accepts(minbubble, tmp_path, suffix):
    path = tmp_path / f"best.{suffix}"
    code, _, _ = minbubble("solve", "--latency", "1/3", "--input-grad", "0.1", "--weight-grad", "1", "-o", path)
    assert code == 0
    code, out, _ = minbubble("verify", path)
    assert code == 0
    assert out.startswith("valid: makespan")


MISTAKES = {
    "unknown command": (["slove"], "no such command 'slove'; did you mean solve?"),
    "unknown flag": (["solve", "--device", "3"], "(see minbubble solve --help)"),
    "no value": (["solve", "--chunks"], "Option '--chunks' requires an argument"),
    "no shell": (["completion"], "Missing argument"),
    "no devices": (["solve", "--devices", "0"], "--devices: must be a whole number of at least 1, got 0"),
    "text": (["solve", "--forward", "fast"], "--forward: must be a finite number, got 'fast'"),
    "NaN": (["solve", "--latency", "nan"], "--latency: must be a finite number"),
    "negative": (["solve", "--backward", "-1"], "--backward: must not be negative"),
    "cap": (["solve", "--memory-cap", "0.5"], "--memory-cap: device 0 needs 1 for"),
    "half a split": (["solve", "--input-grad", "1"], "--weight-grad: is required beside input_grad"),
    "missing file": (["solve", "/no/such.toml"], "/no/such.toml: cannot be read: No such file or directory"),
    "unknown metric": (["solve", "--minimize", "speed"], "unknown metric 'speed'"),
    "limit without value": (["solve", "--subject-to", "makespan"], "--subject-to takes METRIC=VALUE"),
    "limit that is text": (["solve", "--subject-to", "makespan=soon"], "subject_to.makespan: must be a finite number"),
    "limit twice": (["solve", "--subject-to", "makespan=40,makespan=39"], "makespan is limited twice"),
    "time limit": (["solve", "--time-limit", "nan"], "must be a number of seconds"),
    "chunks of a line": (["solve", "--chunks", "2"], "--chunks is for --placement looped and wave"),
    "suffix": (["solve", "-o", "best.yaml"], "best.yaml: the suffix must be"),
    "folder": (["solve", "-o", "/no/such/best.json"], "/no/such/best.json: cannot be written"),
    "unknown schedule": (["compare", "--only", "2f2b"], "2f2b: no such schedule; known are naive, gpipe"),
    "no schedule left": (["compare", "--only", "1f1b", "--except", "1f1b"], "--only and --except together leave no"),
    "no schedule in it": (["verify", SUITES / "zb-1.5b.toml"], "problem: is missing"),
    "plan without problem": (["verify", "plan.csv"], "plan.csv: a PyTorch plan has no times"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_exit_code_2_and_no_traceback(case, minbubble):
    arguments, message = MISTAKES[case]
    code, out, err = minbubble(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("minbubble: ")
    assert len(err.splitlines()) == 1


def test_a_bare_command_shows_the_help():
    out, err = started().communicate()
    assert "Commands:" in out + err


@pytest.mark.skipif(os.name == "nt", reason="needs a shell that closes standard output")
@pytest.mark.parametrize("arguments", ["solve --devices 2 --microbatches 2", "compare --only gpipe", "--help"])
def test_closed_standard_output_is_no_traceback(arguments):
    shell = f'"{sys.executable}" -c "from benchmarks.cli import main; main()" {arguments} >&-'
    process = subprocess.run(shell, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")


def test_ctrl_c_prints_the_best_so_far(tmp_path):
    # times without any pattern, both directions, tight memory: far from proven in the seconds that pass here
    stages = [Stage.fused(31 + 17 * s % 23, 47 + 29 * s % 31, 3 + s % 4) for s in range(8)]
    Problem.of(Placement.bidirectional(8), 48, stages, latency=7, memory_cap=21).save(tmp_path / "hard.toml")
    pty = pytest.importorskip("pty")
    here, there = pty.openpty()
    process = started("solve", tmp_path / "hard.toml", "--workers", "1", stderr=there)
    os.close(there)
    shown = b""
    while b"bound " not in shown:  # the live line: the search has begun
        shown += os.read(here, 1 << 16)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    threading.Thread(target=drain, args=(here,), daemon=True).start()
    out, _ = process.communicate(timeout=60)
    assert "(stopped by hand)" in out
    assert "0 | " in out
    assert process.returncode == 0


def drain(terminal):
    """Read what is still shown, so that the command can go on."""
    with contextlib.suppress(OSError):
        while os.read(terminal, 1 << 16):
            pass


def test_a_reader_that_leaves_is_no_error():
    process = started("completion", "bash", env={**os.environ, "PYTHONUNBUFFERED": "1"})
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == cli.SIGPIPE_EXIT


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line():
    command = [sys.executable, "-c", "from benchmarks.cli import main; main()", "completion", "bash"]
    with open("/dev/full", "w") as full:
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert process.returncode == 2
    assert process.stderr == "minbubble: output: No space left on device\n"


# the command itself


def test_help_imports_nothing_heavy():
    code = """
import sys
from benchmarks.cli import run
assert run(["--help"]) == 0
heavy = {"numpy", "networkx", "ortools", "pandas", "matplotlib", "rich", "pydantic", "torch", "solver", "baselines"}
found = heavy & set(sys.modules)
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_teaches_with_examples(command, minbubble):
    code, out, _ = minbubble(command, "--help")
    assert code == 0
    assert "Example" in out
    assert f"minbubble {command}" in out


def test_help_lists_every_command(minbubble):
    _, out, _ = minbubble("--help")
    assert all(f"  {name} " in out for name in cli.COMMANDS)


def test_version_and_completion(minbubble):
    assert minbubble("--version")[1].startswith("minbubble")
    for shell in ("bash", "zsh", "fish"):
        code, out, _ = minbubble("completion", shell)
        assert code == 0
        assert "_MINBUBBLE_COMPLETE" in out


def test_tab_completes_commands():
    environment = {
        **os.environ,
        "_MINBUBBLE_COMPLETE": "bash_complete",
        "COMP_WORDS": "minbubble com",
        "COMP_CWORD": "1",
    }
    out, _ = started(env=environment).communicate()
    assert {"plain,compare", "plain,completion"} <= set(out.split())


# verify


@pytest.fixture
def schedule(tmp_path, minbubble):
    """A written schedule of two micro-batches on two devices, to be tampered with."""
    path = tmp_path / "best.json"
    minbubble("solve", "--devices", "2", "--microbatches", "2", "--memory-cap", "2", "-o", path)
    return path


def tampered(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def test_verify_prints_every_violation_and_the_timeline(schedule, minbubble):
    def change(data):
        entries = {entry["op"]: entry for entry in data["schedule"]}
        entries["0B0"]["device"] = 1
        data["schedule"].remove(entries["1F1"])

    code, out, _ = minbubble("verify", tampered(schedule, change))
    assert code == 1
    assert "missing op: 1F1" in out
    assert "wrong device: 0B0" in out
    assert "0 | " in out
    code, out, _ = minbubble("verify", schedule, "--json")
    answer = json.loads(out)
    assert (code, answer["valid"]) == (1, False)
    assert {"missing op", "wrong device"} <= {v["rule"] for v in answer["violations"]}


MALFORMED = {
    "op": (lambda d: d["schedule"][0].update(op="xF0"), "schedule[0].op: an op is written"),
    "start": (lambda d: d["schedule"][1].update(start="soon"), "schedule[1].start: must be a finite number"),
    "end": (lambda d: d["schedule"][1].pop("end"), "schedule[1].end: is missing"),
    "entry": (lambda d: d["schedule"].insert(0, 3), "schedule[0]: must be an object"),
    "schedule": (lambda d: d.update(schedule=4), "schedule: must be a list"),
    "problem": (lambda d: d["problem"].pop("time"), "problem.time: is required and missing"),
    "no problem": (lambda d: d.pop("problem"), "problem: is missing; give the problem file too (--problem FILE)"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_schedules_are_one_line(case, schedule, minbubble):
    change, message = MALFORMED[case]
    code, out, err = minbubble("verify", tampered(schedule, change))
    assert (code, out) == (2, "")
    assert err.startswith(f"minbubble: {schedule}: {message}")
    assert len(err.splitlines()) == 1


def test_verify_by_another_problem(schedule, minbubble, tmp_path):
    Workload.uniform(devices=2, microbatches=2).problem(Placement.linear(2), memory_cap=1).save(tmp_path / "small.toml")
    code, out, _ = minbubble("verify", schedule, "--problem", tmp_path / "small.toml")
    # 9 = (2 + 1) x 3 needs both micro-batches on device 0 at once
    assert code == 1
    assert "memory over cap" in out


def test_every_suite_is_a_problem():
    for path in SUITES.glob("*.toml"):
        problem = load_problem(path)
        assert problem.name == path.stem


# a terminal


def on_a_terminal(columns, *arguments, **environment):
    """What a command shows on a terminal that is ``columns`` wide."""
    pty = pytest.importorskip("pty")
    here, there = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), **environment}
    command = [sys.executable, "-c", "from benchmarks.cli import main; main()", *arguments]
    process = subprocess.Popen(command, stdout=there, stderr=there, env=env)
    os.close(there)
    shown = b""
    try:
        while part := os.read(here, 1 << 16):
            shown += part
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(here)
    assert process.wait() == 0
    return shown.decode()


def test_a_wide_terminal_shows_colours_unless_told_not_to():
    colour = re.compile(r"\x1b\[3\dm")
    assert colour.search(on_a_terminal(140, "solve", "--memory-cap", "2"))
    assert not colour.search(on_a_terminal(140, "solve", "--memory-cap", "2", NO_COLOR="1"))


def test_a_narrow_terminal_cuts_no_cell():
    shown = on_a_terminal(60, "compare", "--only", "1f1b,chimera")
    assert "bidirectional  chimera" in shown
    assert "…" not in shown


def test_progress_is_live_on_a_terminal():
    shown = on_a_terminal(140, "solve", "--memory-cap", "2")
    assert "best" in shown
    assert "bound" in shown
