"""The benchmark: how fast is Podstead compared with its peers, in one run on one machine?

Run it as `python -m bench` from the checkout. The main modules are `cases` (the requests),
`servers` (what is compared), `rounds` (the order of measuring) and `report` (the results).
"""
