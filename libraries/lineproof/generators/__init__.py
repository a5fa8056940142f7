"""Traffic generators. A generator knows nothing of routers."""
