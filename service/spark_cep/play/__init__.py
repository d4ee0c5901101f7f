"""A page on which a rule is tried: its text, events, and what the events do to it, step by step.

The model is pure functions over plain data. :class:`~spark_cep.play.trial.Trial` is what the page
shows: a rule's text, schemas and a table of events. :func:`~spark_cep.play.running.played` runs it
as a test case (:mod:`spark_cep.cases`), so by production's decoder, key groups and matcher, and
asks :mod:`spark_cep.why` for the account of each key; the result is what the page draws.
:mod:`~spark_cep.play.files.opening` and :mod:`~spark_cep.play.files.sharing` read and write files.
:class:`~spark_cep.play.worker.Worker` does all that in a process of its own, for so long and no
longer. :mod:`spark_cep.play.page` is the page itself, and alone needs a web server.
"""
