"""What is recorded and how it is stored and read back."""
