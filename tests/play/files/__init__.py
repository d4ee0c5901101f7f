"""Files that a trial is made from, and those that it is shared as."""
