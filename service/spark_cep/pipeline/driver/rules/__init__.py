"""Which rules each batch runs under, and what other systems are told of them."""
