"""The checkpoint as files: who holds it, how far it has come, what is wrong with it."""
