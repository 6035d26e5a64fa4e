"""Who sends this request? Verification of credentials."""
