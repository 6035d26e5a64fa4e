"""The benchmark: how fast is Podstead compared with its peers, in one run on one machine?

Run it as `python -m bench` from the checkout. The main modules are `cases` (the requests),
`servers` and `peers` (what is compared), `rounds` (the order of measuring) and `report` (the
results). Beside it there are `counting` (instructions), `walks` (functions entered), `profiling`,
`growth` and `workers`, each a command of its own.
"""
