"""RDF as values: terms, graphs, formats, container listings. Pure; no I/O."""
