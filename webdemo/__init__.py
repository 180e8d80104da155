"""The map demo: see and feel what epsilon means."""
