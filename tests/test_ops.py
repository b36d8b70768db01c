import pytest

from solver import FUSED, SPLIT, Op, OpKind, ProblemError, Stage
from solver.stage import Stage as StageClass


def test_an_op_is_written_and_read_in_torch_letters() -> None:
    for kind in OpKind:
        op = Op(12, kind, 345)
        assert str(op) == repr(op) == f"12{kind.name}345"
        assert Op.parse(str(op)) == op


@pytest.mark.parametrize(
    "text", ["", "F", "2F", "F0", "2f0", "2R0", "-1F0", "2F0 ", "2F0\n", "2F-1", "02F0", "2F00", "٢F٠", "9" * 12 + "F0"]
)
def test_text_that_is_no_op_is_refused(text: str) -> None:
    with pytest.raises(ProblemError, match="such as 2F0"):
        Op.parse(text)


def test_ops_sort_by_stage_kind_and_microbatch() -> None:
    ops = [Op.parse(t) for t in ("1F0", "0B0", "0F1", "0F0")]
    assert [str(op) for op in sorted(ops)] == ["0F0", "0F1", "0B0", "1F0"]


@pytest.mark.parametrize("recipe", [FUSED, SPLIT])
def test_a_recipe_is_consistent(recipe) -> None:
    assert len(recipe.kinds) == len(recipe.times)
    assert recipe.kinds[0] == OpKind.F
    assert recipe.gradient in recipe.kinds
    assert {k for arc in recipe.arcs for k in arc} == set(recipe.kinds)
    assert all(hold.opens in recipe.kinds and hold.closes in recipe.kinds for hold in recipe.holds)
    assert str(recipe) == recipe.name


def test_a_stage_refuses_wrong_numbers_by_their_key() -> None:
    with pytest.raises(ProblemError, match=r"time\.backward: must not be negative"):
        Stage.fused(1, -2)
    with pytest.raises(ProblemError, match=r"memory\.gradient_until_weight_grad: must be a finite"):
        Stage.split(1, 1, 1, 0, 1, float("nan"))
    with pytest.raises(ProblemError, match="a fused stage has 2 times and 1 sizes, got 1 and 1"):
        StageClass(FUSED, (1,), (1,))  # type: ignore[arg-type]


def test_stages_add_and_divide() -> None:
    # times 1+3 and 2+4, activation 1+2, static 5+6; halves of it: 2, 3, 1.5, 5.5
    both = Stage.fused(1, 2, 1, 5) + Stage.fused(3, 4, 2, 6)
    assert both == Stage.fused(4, 6, 3, 11)
    assert both / 2 == Stage.fused(2, 3, "1.5", "5.5")
    # A fused and a split stage merge to a fused one: B = I + W = 3 + 4, activation = both holds = 1 + 2 (rule 12)
    assert Stage.fused(1, 1) + Stage.split(2, 3, 4, 1, 2, 7) == Stage.fused(3, 8, 4)


def test_split_becomes_fused_and_never_back() -> None:
    assert Stage.split(2, 3, 4, 1, 2, 7, 5).as_recipe(FUSED) == Stage.fused(2, 7, 3, 5)
    assert Stage.split(2, 3, 4).as_recipe(SPLIT) == Stage.split(2, 3, 4)
    with pytest.raises(ProblemError, match="no known halves"):
        Stage.fused(1, 2).as_recipe(SPLIT)


def test_a_stage_knows_its_times_and_its_activation() -> None:
    stage = Stage.split(2, 3, 4, 1, 2, 7)
    assert [stage.time(kind) for kind in OpKind] == [2, None, 3, 4]
    assert stage.activation == 3  # what opens at F: 1 + 2
