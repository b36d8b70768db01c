"""Every study that is committed says how it was made, and its tables are those of its records."""

import re
from pathlib import Path

import pytest

from benchmarks.records import read_records
from benchmarks.tables import markdown, table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
STUDIES = sorted(path.parent for path in RESULTS.glob("*/README.md"))
SHOWN = [
    (study, *command)
    for study in STUDIES
    for command in re.findall(r"^minbubble table (\S+) --table (\S+)$", (study / "README.md").read_text(), re.MULTILINE)
]


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.name)
def test_a_study_says_what_a_reader_needs(study):
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}-[a-z0-9-]+", study.name)
    text = (study / "README.md").read_text()
    for part in ("Question", "Command", "Machine", "Threats"):
        assert part in text, part


@pytest.mark.parametrize(("study", "records", "name"), SHOWN, ids=lambda value: getattr(value, "name", value))
def test_a_table_shown_is_that_of_the_records(study, records, name):
    assert markdown(table(read_records([study / records]), name)) in (study / "README.md").read_text()


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*/*.jsonl")), ids=lambda path: path.parent.name)
def test_no_record_breaks_a_rule_but_a_cap(path):
    for record in read_records([path]):
        assert set(record.get("violations", [])) <= {"memory over cap"}
        assert not (record["solver"] and record.get("violations")), "what a search found is within its cap"
