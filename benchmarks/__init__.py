"""Benchmarks of the wire, the host and the SDK. `python -m benchmarks` runs them."""
