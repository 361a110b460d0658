"""Contenders in processes of their own.

Each contender's client runs in a process that nothing else runs in, so that CPU time and
memory are its own and no library pays for another one's imports. `parent` is the end that
suites use, `child` the program at the other end, `registry` the list of contenders.
"""
