"""`python -m trainyard`."""

from trainyard.cli import main

main()
