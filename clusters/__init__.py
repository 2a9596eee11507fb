"""Everything that can be a cluster: topologies, engines, substrates and faults."""
