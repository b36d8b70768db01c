from fractions import Fraction

import pytest

from benchmarks.suite import SUITES, cap_of, fingerprint, load_suite, placement_of
from solver import Placement, ProblemError, Workload

PROBLEM = "{ microbatches = 2, devices = { count = 2 }, time = { forward = 1, backward = 2 } }"


def suite_file(tmp_path, text):
    path = tmp_path / "suite.toml"
    path.write_text(text)
    return str(path)


def test_the_grid_is_every_combination_once(tmp_path):
    text = f"""
        name = "grid"
        problems = [{PROBLEM}]
        schedules = ["gpipe", "optimum"]
        microbatches = [2, 3]
        placements = ["linear", "wave:2"]
        memory_caps = ["1x", "none"]
        [[solver]]
        [[solver]]
        name = "textbook"
        textbook = true
    """
    suite, tasks = load_suite(suite_file(tmp_path, text))
    # gpipe has its own placement and no solver: 2 M x 2 caps. The optimum: 2 M x 2 placements x 2 caps x 2 solvers.
    assert sum(task.schedule == "gpipe" for task in tasks) == 4
    assert len(tasks) == 4 + 16
    assert len({task.key for task in tasks}) == len(tasks)
    assert suite.solver[1].textbook


def test_the_key_is_of_the_content_not_of_the_suites_name(tmp_path):
    text = 'problems = [%s]\nschedules = ["optimum"]\n[[solver]]\nseed = %d\n'
    keys = [
        load_suite(suite_file(tmp_path, f'name = "{name}"\n' + text % (PROBLEM, seed)))[1][0].key
        for name, seed in (("a", 0), ("b", 0), ("b", 1))
    ]
    assert keys[0] == keys[1] != keys[2]


def test_a_task_builds_its_problem(tmp_path):
    text = f'name = "x"\nproblems = [{PROBLEM}]\nschedules = ["optimum"]\nmicrobatches = [5]\n'
    text += 'placements = ["looped:2"]\nmemory_caps = ["1.5x"]\n'
    problem = load_suite(suite_file(tmp_path, text))[1][0].build()
    assert problem.microbatches == 5
    assert problem.placement == Placement.looped(2, 2)
    # The model holds 2 activations a micro-batch: 1.5 times that on each device.
    assert problem.memory_cap == (Fraction(3), Fraction(3))


def test_caps_and_placements_are_read():
    problem = Workload.uniform(4, 8, activation=3).problem(Placement.linear(4))
    assert cap_of("0.5x", problem) == 6
    assert cap_of("7", problem) == 7
    assert cap_of("none", problem) is None
    with pytest.raises(ProblemError, match="unknown placement 'ring'"):
        placement_of("ring", 4)


def test_fingerprints_ignore_names_only():
    one = Workload.uniform(2, 2, name="a").problem(Placement.linear(2))
    same = Workload.uniform(2, 2, name="b").problem(Placement.linear(2))
    other = Workload.uniform(2, 3, name="a").problem(Placement.linear(2))
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "x"', "problems: field required"),
        ("name = 3", "name"),
        (f'name = "x"\nproblems = [{PROBLEM}]\nschedules = ["2f2b"]', "2f2b"),
        (f'name = "x"\nproblems = [{PROBLEM}]\nschedules = []', "schedules"),
        (f'name = "x"\nproblems = [{PROBLEM}]\nschedules = ["optimum"]\nseeds = 3', "seeds"),
        ('name = "x"\nproblems = ["nowhere.toml"]\nschedules = ["optimum"]', "nowhere.toml: cannot be read"),
        (f'name = "x"\nproblems = [{PROBLEM}]\nschedules = ["optimum"]\n[[solver]]\nengine = "magic"', "solver.engine"),
        (
            f'name = "x"\nproblems = [{PROBLEM}]\nschedules = ["optimum"]\n[[solver]]\nwithout = ["luck"]',
            "solver.without",
        ),
        (f'name = "x"\nproblems = [{PROBLEM}]\nschedules = ["optimum"]\n[[solver]]\ntime_limit = -1', "time_limit"),
    ],
)
def test_a_wrong_suite_is_one_line_with_file_and_key(text, message, tmp_path):
    with pytest.raises(ProblemError) as caught:
        load_suite(suite_file(tmp_path, text))
    assert message in str(caught.value)
    assert "suite.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", sorted((SUITES / "grids").glob("*.toml")), ids=lambda path: path.stem)
def test_every_suite_that_comes_along_loads_by_name(path):
    suite, tasks = load_suite(path.stem)
    assert suite.name == path.stem
    assert suite.question
    assert tasks
