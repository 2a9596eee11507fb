"""What people see: reads evidence and verdicts only."""
