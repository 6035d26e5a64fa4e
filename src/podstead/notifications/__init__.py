"""Who hears of which change, and when? Delivery of the change log; channels are made on top."""
