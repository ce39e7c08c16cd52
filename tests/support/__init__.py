"""What several tests share; README.md says what lies where."""
