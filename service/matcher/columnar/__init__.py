"""The matcher: many keys and rules at once, as arrays, in a compiled loop.

* ``kernel``: the compiled loop; ``tables``: plans as the arrays that it reads;
* ``matcher``: one run over numbered events and keys; ``events``, ``keys``: which these are;
* ``snapshot``: all that as bytes.
"""
