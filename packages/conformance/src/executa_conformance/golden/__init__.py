"""``check golden``: the golden lines, and parsers in any language that read them.

The lines are data, in ``lines/``, with their own README.
"""
