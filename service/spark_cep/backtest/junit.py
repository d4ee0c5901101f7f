"""The expectations of a back-test as a JUnit file, which CI systems show."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from spark_cep.backtest.expectations import ExpectationVerdict


def junit(verdicts: Sequence[ExpectationVerdict], name: str, seconds: float) -> str:
    """The text of the file: a case for each expectation."""
    failed = sum(each.failed for each in verdicts)
    totals = {"tests": str(len(verdicts)), "failures": str(failed), "errors": "0"}
    totals["time"] = f"{seconds:.3f}"
    root = Element("testsuites", totals)
    suite = SubElement(root, "testsuite", {"name": name, **totals})
    for each in verdicts:
        case = SubElement(suite, "testcase", {"classname": name, "name": each.title})
        if each.failed:
            SubElement(case, "failure", {"message": each.wrong or ""})
        elif each.warning:
            SubElement(case, "system-out").text = each.wrong
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"
