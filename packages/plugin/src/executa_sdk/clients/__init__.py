"""Clients for the host's services, each written once for every way to reach the host."""
