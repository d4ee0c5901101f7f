"""Where a position is: the part of a document or statement, and the names that may stand there."""
