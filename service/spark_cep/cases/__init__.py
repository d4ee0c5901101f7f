"""Test cases as data: events with times in, expected results beside them, in YAML.

A case stands in a file beside the rules (``brute-force.cases.yaml``) or in a rule's document, under
``cases``. ``document`` says what may stand there and reads it with the places of its parts,
``running`` runs it through the test kit and holds what was found against what is expected,
``coverage`` tells what of a rule no case takes, and ``writing`` makes cases of events that were
seen. ``docs/test-cases.md`` is for authors.
"""
