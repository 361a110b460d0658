"""Conformance checks for plugins and hosts over stdio, and for the HTTP sides."""
