"""Durable actions and sessions: work that outlives connections, processes and crashes."""
