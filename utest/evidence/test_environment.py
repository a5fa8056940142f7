"""What an environment record says of the machine that runs the tests."""

from __future__ import annotations

import pytest

from lineproof.evidence.environment import executor_facts


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"type": "local"}),
        ({"CI": "true"}, {"type": "ci", "name": "CI"}),
        (
            {
                "GITLAB_CI": "true",
                "CI": "true",
                "CI_JOB_NAME": "sla",
                "CI_PIPELINE_ID": "7",
                "CI_JOB_URL": "https://ci.example/7",
            },
            {"type": "gitlab", "buildName": "sla #7", "buildUrl": "https://ci.example/7"},
        ),
    ],
)
def test_what_started_the_run_is_read_from_the_environment(given: dict[str, str], expected: dict[str, str]) -> None:
    assert expected.items() <= executor_facts(given).items()
