"""Places of positions: the part of a document or statement, and the names that may stand there."""
