"""The one way to read what people write: YAML or JSON, with the place of every value.

Settings and rules are both documents. ``reading`` turns text into plain data and remembers where
each part stands (``places``); a pydantic model says what may stand where (``shapes``), and what it
finds wrong becomes problems that name the place, what was found and what is allowed
(``model_errors``). ``nearest`` guesses what a misspelt name was meant to be, and ``durations``
reads the one type of value that all documents have.
"""
