"""Where everything is put together and run: no rule of Solid lives here."""
