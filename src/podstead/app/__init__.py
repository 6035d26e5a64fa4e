"""Where all parts are connected and run; this layer contains no rules of Solid."""
