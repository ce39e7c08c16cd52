"""How fast pipelines are: beside their vertices as separate engines, and beside one function."""
