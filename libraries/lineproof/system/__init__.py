"""Access to the operating system: process identity, signals, namespaces, threads, SSH, CPU steal."""
