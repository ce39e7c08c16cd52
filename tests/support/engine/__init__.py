"""What is done to engines: submitting, going back, interrupting, closing, crashing."""
