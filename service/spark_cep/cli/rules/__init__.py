"""``spark-cep rules``: the rules of a running job, and of a checkpoint."""
