"""The continuous world: noise with a density, and how mechanisms are put together."""
