"""`python -m isoglot` is the command line (for torchrun)."""

from isoglot.cli import main

main()
