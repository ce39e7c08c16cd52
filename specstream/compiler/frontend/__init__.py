"""From the text of a function to a tree with its names resolved and its shorthands written out."""
