"""How often servers look whether a replica is to be moved or made anew."""

FAST_PACE = {"COCKROACH_SCAN_INTERVAL": "10s"}
"""Makes a server look through all its replicas in 10 s. By default that takes 10 minutes, and never more than a second
a replica.

Not in less: stores of v26.1 tell each other every 10 s how many replicas they have (``gossip.StoresInterval``), and
sooner only once it changed by five at least and by a tenth. Looking through them more often, all stores give replicas
to the one that had too few when it last said so, and the next time take them away again. (Those of 2021 say it every
60 s, and at the latest after three changes.)
"""
