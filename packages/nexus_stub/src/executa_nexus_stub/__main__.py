"""Runs the stub: ``python -m executa_nexus_stub``."""

import sys

from executa_nexus_stub.command import main

sys.exit(main())
