"""The way of a reverse call through the host: correlate, gate, budget, nexus."""
