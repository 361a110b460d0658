"""The models behind the stub: one interface, an offline model, and ways to script or break one."""
