"""A nexus under test, over HTTP: the scene that its checks get, and the checks."""
