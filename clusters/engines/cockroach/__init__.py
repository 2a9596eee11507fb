"""The subject: CockroachDB."""
