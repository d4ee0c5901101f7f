"""The public contracts: Avro schemas of the output records and the JSON Schema of rules.

A package only so that a wheel carries the files; nothing else belongs here.
"""
