"""Container images made on this machine, where no registry can be reached: controllers from their binaries, the trainer from Debian."""
