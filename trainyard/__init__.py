"""The command line: bring the platform and its jobs up, look at them, take them down."""
