"""What is wrong with a day of orders, by four rules: see README.md."""
