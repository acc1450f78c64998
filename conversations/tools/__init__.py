"""Tools that need the thread, one file each. toolbox.registry.discover imports them all."""
