"""`executa dev`: a plugin that is being written, tried at a prompt and started anew on change.

`command` puts it together; `session` keeps the plugin, `commands` does what is typed, `lines`
gets it from a terminal or a pipe, `show` says what happens, `changes` watches the source.
"""
