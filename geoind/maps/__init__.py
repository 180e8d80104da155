"""Pages with maps that need no network."""
