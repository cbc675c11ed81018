"""Runs on several machines whose network or power fails: network namespaces of one machine."""
