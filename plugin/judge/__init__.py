"""Evidence and checks in, verdict out: no I/O, no pytest, no clock."""
