"""``executa check`` and ``python -m executa_conformance``: the options and the commands."""
