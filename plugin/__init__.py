"""The pytest plugin: hooks only; logic lives in the modules beside it."""
