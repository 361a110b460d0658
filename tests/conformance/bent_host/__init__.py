"""A host that is wrong in one chosen way: the project's own, bent between it and the kit.

`adapter` stands where the kit starts a host. It runs the real one and changes what passes: lines
of the adapter protocol, requests to nexus, and, through `wire` around each plugin, lines on stdio.
Which change a plugin gets is decided by the name of the check that it is for (`faults`).
"""
