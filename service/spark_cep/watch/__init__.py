"""A running job as others see it: the records that it reads and writes, its pages, its checkpoint.

:mod:`~spark_cep.watch.pages` asks the job's pages, :mod:`~spark_cep.watch.overrides` writes what
operators decide. :class:`~spark_cep.watch.job_watch.JobWatch` holds the newest of all that for the
page of ``spark-cep watch``, within bounds. :mod:`~spark_cep.watch.job_feeds` opens the feeds that
fill it, each read by one thread of :class:`~spark_cep.watch.readers.Readers` for all open pages.
:mod:`spark_cep.watch.page` is the page itself, and alone needs a web server.
"""
