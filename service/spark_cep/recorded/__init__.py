"""Recorded events: files, folders and slices of topics, as batches for the batch runner.

:func:`~spark_cep.recorded.opening.open_events` finds the files and their schemas, and gives
:class:`~spark_cep.recorded.events.RecordedEvents`: the record types that production's decoder
reads, and the events in batches with a watermark for each. Whatever the format of a file, its
records become Avro with a schema id in front, as a topic has them, so that they are read by
production's decoder alone.
"""
