"""What the operating system gives: processes and their identity, signals, namespaces, SSH, stolen CPU time."""
