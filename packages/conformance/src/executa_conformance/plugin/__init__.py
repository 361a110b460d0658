"""``check plugin``: a process, a scripted host with its nexus, and the checks of a plugin."""
