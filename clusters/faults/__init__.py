"""Disturbances of what is being measured: context managers that prove they bit and always undo themselves."""
