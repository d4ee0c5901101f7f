"""librdkafka's C interface: many messages at a time, with no object of Python's for one."""
