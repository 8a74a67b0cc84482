"""Handlers of the resources below `/v1`, one file for each."""
