"""The schema of the PostgreSQL engine as numbered migrations, as in ``storage/migrations``."""
