"""Plays one side of a transcript again: the host's against a plugin, or the plugin's to a host.

`launches` cuts a transcript into processes, `player` is the game without I/O, `comparing` says
what counts as the same. `as_host` and `as_plugin` speak over pipes, `driving` makes a host of
ours make the recorded calls.
"""
