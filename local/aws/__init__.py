"""AWS on one machine: moto in server mode, what we add to it, its state across restarts, and the inventory of what a stack left behind."""
