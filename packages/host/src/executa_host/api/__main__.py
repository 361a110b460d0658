"""``python -m executa_host.api FILE`` writes the OpenAPI document of this version."""

import sys
from pathlib import Path

from executa_host.api.openapi import write

write(Path(sys.argv[1]))
