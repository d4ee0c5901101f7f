"""Programs that show spark-cep at work, and the servers that they and the tests start."""
