"""``spark-cep lsp``: the answers of :mod:`spark_cep.language` over the Language Server Protocol."""
