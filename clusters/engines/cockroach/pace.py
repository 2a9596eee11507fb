"""What makes servers fit for short tests on few cores."""

FAST_PACE = {"COCKROACH_SCAN_INTERVAL": "10s"}
"""Makes a server look through all its replicas in 10 s. By default that takes 10 minutes, and never more than a second
a replica.

Not in less: stores of v26.1 tell each other every 10 s how many replicas they have (``gossip.StoresInterval``), and
sooner only once it changed by five at least and by a tenth. Looking through them more often, all stores give replicas
to the one that had too few when it last said so, and the next time take them away again. (Those of 2021 say it every
60 s, and at the latest after three changes.)
"""

FAST_SETTINGS = {"sql.stats.automatic_collection.enabled": "false"}
"""Cluster settings, where the cluster is our own: servers read no tables for statistics by themselves.

On two cores, with the small and busy tables of a short test, that takes much of their CPU time, at moments of their own
choice. What is large is analysed once it is loaded.
"""
