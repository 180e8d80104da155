"""Who may still report: the ledger, its database, and the same report for the same place."""
