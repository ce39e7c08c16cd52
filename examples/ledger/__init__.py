"""A ledger: transfers between accounts, of which each may be refused. See README.md."""
