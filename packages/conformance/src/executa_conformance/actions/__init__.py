"""A runtime of durable actions under test, over HTTP: its scene, its checks, and the plugin that
it has to serve."""
