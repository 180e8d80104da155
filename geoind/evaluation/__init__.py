"""The comparison of the literature, reproduced and generalised."""
