"""Who is cabled to whom: testbed files, and the processes of the testbeds that Lineproof starts itself."""
