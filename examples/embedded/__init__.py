"""A Kafka broker and a schema registry as child processes, without Docker.

For the demo, the tests and the benchmarks. Each server keeps all of its state below the folder that
it is given, listens on the loopback interface alone and dies with the process that started it, even
when that one is killed.
"""

from examples.embedded.broker import EmbeddedBroker, Listener
from examples.embedded.cluster import EmbeddedCluster
from examples.embedded.process import ChildProcess
from examples.embedded.registry import EmbeddedRegistry

__all__ = ["ChildProcess", "EmbeddedBroker", "EmbeddedCluster", "EmbeddedRegistry", "Listener"]
