"""One file a tool. toolbox.registry.discover imports them all."""
