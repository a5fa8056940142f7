"""Studies: variants of a router measured in randomised blocks, compared with a baseline and with published figures."""
