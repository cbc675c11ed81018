"""Measurements and studies, run from the root of the repository: python -m benchmarks.alpha.

A package and not a mere folder: pysbd installs a package of this name, which would be found first.
"""
