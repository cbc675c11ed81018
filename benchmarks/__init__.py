"""Studies and measurements, each a module to run: `python -m benchmarks.NAME`."""
