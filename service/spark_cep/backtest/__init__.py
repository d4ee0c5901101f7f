"""Rules run over recorded events, by production's decoder, key groups and matcher.

:class:`~spark_cep.backtest.replay.Replay` runs them; :mod:`~spark_cep.backtest.report` counts what
is found, :mod:`~spark_cep.backtest.result_files` writes it, and
:mod:`~spark_cep.backtest.expectations` holds it against what is expected.
"""
