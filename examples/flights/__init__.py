"""A year of departures from New York through Spark and two operators: see README.md."""
