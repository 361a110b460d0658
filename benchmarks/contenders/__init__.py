"""One module for each contender, or family of contenders: how it is opened and asked.

They import what they measure at the top: the registry loads a module only in the driver
that runs it, and only where its packages are installed.
"""
