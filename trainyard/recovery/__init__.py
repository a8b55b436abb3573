"""What a killed run made without having told the state: how it is found, and how it gets into the state."""
