"""Column vectors: values of many events side by side, their types in memory, bytes and hashes.

Everything compiled stands on this package. ``compilation`` says how loops are compiled; the loops
themselves live in folders named ``loops``, here and elsewhere.
"""
