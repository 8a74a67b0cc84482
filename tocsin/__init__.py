"""Tocsin turns the passage of time into ordinary events.

`tocsin.client` is the only import promised to other projects. This file imports nothing, so that
`tocsin --help` stays quick.
"""
