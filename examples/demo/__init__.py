"""The demo: broker, registry and the real job on this machine, fed with a stream whose results are
known beforehand.

``python -m examples.demo`` starts everything as child processes below one folder, produces the
stream in waves, shows what arrives in the output topics, compares it with what is expected, and
stops everything again. The stages, in the order in which they are used:

* ``stream`` and ``scenes``: what is produced, as plain values
* ``expected``: what must come out, computed from the rules' definitions and not by the engine
* ``servers``, ``job``: the child processes
* ``live_page``: the page of ``spark-cep watch`` beside them
* ``feed``: the stream into Kafka, wave by wave
* ``arrivals``, ``metrics``: what comes out, and how far the job is
* ``lines``, ``screen``, ``summary``: all of it for people
* ``run``: one demo from start to end
"""
