"""Creating pods: their names, their initial resources, and the write that creates them."""
