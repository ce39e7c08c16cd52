"""Events out of order, and early results of them."""
