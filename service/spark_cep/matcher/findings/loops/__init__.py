"""The compiled loops of :mod:`spark_cep.matcher.findings`."""
