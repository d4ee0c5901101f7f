"""A stream of everything at once that a writer could do to the job: :mod:`.stream`.

``python -m tests.hostile`` (``make test-hostile``) is the long run, ``tests/e2e/test_hostile.py`` a
short one.
"""
