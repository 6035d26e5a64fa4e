"""The benchmark: how fast is Podstead beside its peers, measured in one run on one machine?

Run as `python -m bench` from the checkout. It reads top to bottom as: `cases` (what is asked),
`servers` (who is asked), `rounds` (asking in turn), `report` (what came out).
"""
