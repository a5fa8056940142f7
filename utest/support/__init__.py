"""Parts that several tests share: builders of records, doubles of routers and generators, rigs of real ones."""
