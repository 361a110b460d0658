"""HTTP sides that are wrong in one way: the project's own, behind a relay that bends one thing.

`relay` passes requests on; what it changes is a `Bend`. `nexus_bends` and `actions_bends` hold one
for each check.
"""
