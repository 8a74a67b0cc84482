"""The metrics of a process and of the instance, served for Prometheus.

Guarantee: serving metrics never stalls or fails the service. While Postgres is unreachable the
response has `tocsin_database_up 0` and the metrics of the process itself. The metrics of the
database are read at most once a second and served for at most ten.
"""
