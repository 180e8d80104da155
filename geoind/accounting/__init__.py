"""What reports cost together: levels that hold up to a probability delta, and mechanisms made for many reports."""
