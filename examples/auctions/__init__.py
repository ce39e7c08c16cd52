"""How long the auctions of a site have been open, on average: see README.md."""
