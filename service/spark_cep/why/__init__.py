"""Why a rule did, or did not, match the events of one key.

:func:`~spark_cep.why.run.why` runs one rule over records with the batch runner, that is with
production's decoder, key groups and matcher. Between key group and matcher the key's events are
handed over one by one, and what the engine remembers is compared before and after each
(:mod:`~spark_cep.why.watched`). So a verdict is the engine's own. The parts of conditions are
conditions of their own in the same plan, which the same programs answer
(:mod:`~spark_cep.why.parts`, :mod:`~spark_cep.why.probes`).
"""
