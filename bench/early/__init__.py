"""Early results: how much sooner than final ones, how often revised, and what they cost."""
