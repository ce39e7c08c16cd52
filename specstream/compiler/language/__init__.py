"""What the oracle and native code agree on: numbers, texts, exceptions, and what is refused."""
