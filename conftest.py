"""Loads the plugin and, through it, the fixture modules; nothing else."""

pytest_plugins = ["plugin", "plugin.micro"]
