"""No deadline for Hypothesis here: how fast a machine is says nothing about the protocol."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
