"""Consumers of a host's trace events: logs, metrics and spans; each costs nothing until used."""
