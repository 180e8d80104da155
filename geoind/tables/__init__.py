"""The one way a table is obfuscated."""
