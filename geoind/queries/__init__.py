"""Private questions to third parties: what is near me, without telling where."""
