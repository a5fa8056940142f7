"""Who is cabled to whom: testbed files, and the processes of the benches that Linerate starts itself."""
