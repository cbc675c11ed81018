"""The demo (`run`, `jobs`), and the testbed as a prepared corpus for demo, recipes and studies."""
