"""The command line."""

from geoind.cli.program import command_parsers, main

__all__ = ["command_parsers", "main"]
