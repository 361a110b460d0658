"""The floor: answers every line with its start, as long as the line says, and blocks meanwhile.

A line begins with eight digits of its number and eight of the answer's length.
"""

import os

READ = 65_536


def main() -> None:
    line = b""
    while data := os.read(0, READ):
        line += data
        if line.endswith(b"\n"):
            rest = memoryview(line[: int(line[8:16]) - 1] + b"\n")
            while rest:
                rest = rest[os.write(1, rest) :]
            line = b""


if __name__ == "__main__":
    main()
