"""Test cases as data: events with times in, expected results beside them, in YAML.

A case stands in a file beside the rules (``brute-force.cases.yaml``) or in a rule's document, under
``cases``. ``shape`` says what may stand there, ``loading`` reads it with the places of its parts,
``running`` runs it through the test kit, ``comparing`` holds what was found against what is
expected, and ``coverage`` tells what of a rule no case takes. ``docs/test-cases.md`` is for
authors.
"""
