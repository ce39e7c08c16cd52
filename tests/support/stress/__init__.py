"""The programs of make stress-files, stress-pipelines and stress-spark."""
