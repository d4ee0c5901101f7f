"""The page of ``spark-cep watch``: what a job reads, holds and finds, as it happens."""
