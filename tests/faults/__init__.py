"""Faults: the whole job is disturbed, and must have written what it would have written anyway.

``python -m tests.faults`` (``make test-faults``) is the long run, ``test_faults.py`` a short one.
"""
