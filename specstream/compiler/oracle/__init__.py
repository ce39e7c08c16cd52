"""From the checked syntax tree to plain Python with machine numbers, and what runs it."""
