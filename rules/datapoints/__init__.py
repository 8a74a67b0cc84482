"""The data lane: datapoints from JetStream to Postgres, in order per owner, each exactly once.

Guarantee: a datapoint that the server has acknowledged to its producer is in `datapoint` once, and the newest one of
its series in `current_value`, or it is a dead letter with the reason. Datapoints of one owner are taken one after
the other in the order of their arrival, whoever takes them.
"""
