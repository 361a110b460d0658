"""This host behind the adapter protocol of the conformance kit: JSON lines on stdin and stdout.

``python -m executa_host.adapter`` lets the kit tell the host to start a plugin, to invoke, to
cancel and to stop (docs/conformance/host-adapter.md). It knows nothing of the checks.
"""
