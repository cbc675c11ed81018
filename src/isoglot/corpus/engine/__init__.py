"""The resumable task engine of prepare, knowledge extraction and linking, and pair counting."""
