"""Starting a TRex server where a testbed asks for it: its configuration, its process, its end."""
