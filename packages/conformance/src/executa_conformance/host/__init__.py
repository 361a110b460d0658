"""A host under test: the scripted plugins that it runs, its adapter, and the checks."""
