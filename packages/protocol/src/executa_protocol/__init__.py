"""The Executa wire: what a host and a plugin say to each other, without the I/O."""
