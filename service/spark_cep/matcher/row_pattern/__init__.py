"""The machine of MATCH_RECOGNIZE: a plan and the rows of many keys in, matches out.

**An attempt** looks for a match that begins at one row. Its *threads* run the program
(:mod:`spark_cep.compiler.row_pattern.program`) side by side, one row at a time, and stand in the
order of preference. A thread that reaches DONE is the match so far: the threads behind it are
dropped, those before it live on and may still replace it. When none is left, the match is *final*,
which is no earlier and no later than any next row stops making a difference, where a variable that
may come is taken to be possible, whatever its condition says. The next attempt begins where AFTER
MATCH SKIP says, and goes through the rows that are already there.

**Final.** A match waits for the rows that its measures read (``NEXT``). A condition does so unless
it is decided without them, by one of the parts that its top-level ANDs and ORs join. A match holds
back whatever its key puts out behind it. What only the end of the partition decides (``$``, a
greedy loop that nothing ends) waits for ``close``, which no job calls, or for WITHIN: when that
time from an attempt's first row has passed, its threads are dropped, and the match so far is final;
without one, that is a timeout. Its conditions never read rows beyond that time.

**Bounds.** Threads that nothing ahead can tell apart are one
(:mod:`spark_cep.compiler.row_pattern.distinction`). An attempt with more rows or threads than
``Limits`` allow is given up and reported; the search goes on at one of the rows behind its first.

How the rows are cut into calls makes no difference. State is arrays; rows that nothing can read any
more are dropped. ``tests.reference.row_pattern`` is the same a row at a time, in plain Python: the
compiled form has to give its answers.
"""
