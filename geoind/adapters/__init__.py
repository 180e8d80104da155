"""One file per engine; imported by the user, never by the core."""
