"""JUnit files."""

from __future__ import annotations

from spark_cep.junit import JUnitCase, JUnitSuite, junit_text


def test_counts_times_and_details() -> None:
    """Totals are those of the cases, and each case has what is known of it."""
    one = JUnitSuite(
        "one.cases.yaml",
        [
            JUnitCase("rule", "good", seconds=0.25),
            JUnitCase("rule", "bad", "failure", "1 < 2", "found\n1", 0.5),
            JUnitCase("rule", "broken", "error", "no such column", "at 3", 0.125),
        ],
        0.875,
    )
    two = JUnitSuite("two", [JUnitCase("two", "warned", text="not found"), JUnitCase("two", "")], 1)
    assert junit_text([one, two]).split("?>\n")[1] == (
        """\
<testsuites tests="5" failures="1" errors="1" time="1.875">
  <testsuite name="one.cases.yaml" tests="3" failures="1" errors="1" time="0.875">
    <testcase classname="rule" name="good" time="0.250" />
    <testcase classname="rule" name="bad" time="0.500">
      <failure message="1 &lt; 2">found
1</failure>
    </testcase>
    <testcase classname="rule" name="broken" time="0.125">
      <error message="no such column">at 3</error>
    </testcase>
  </testsuite>
  <testsuite name="two" tests="2" failures="0" errors="0" time="1.000">
    <testcase classname="two" name="warned">
      <system-out>not found</system-out>
    </testcase>
    <testcase classname="two" name="" />
  </testsuite>
</testsuites>
"""
    )
