"""The game between a user and an adversary who knows the mechanism, as a linear program."""
