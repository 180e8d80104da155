"""The finite world: mechanisms as matrices between sites, priors, and what can be computed from them."""
