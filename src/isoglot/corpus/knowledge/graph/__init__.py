"""`isoglot knowledge graph`: knowledge graphs to the tables that linking reads."""
