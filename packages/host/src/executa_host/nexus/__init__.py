"""Where a host's nexus comes from: over HTTP, in this process, or either with less granted."""
