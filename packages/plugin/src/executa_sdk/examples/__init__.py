"""Plugins to read and to run: ``python -m executa_sdk.examples.notebook``.

Those of the repository's folder ``examples``, which is where they are written; here they come
along with the package, so that a host without a clone has something to show.
"""
