"""Stand-ins for resource plug-ins of the Pulumi engine, used only where the genuine plug-in is not installed."""
