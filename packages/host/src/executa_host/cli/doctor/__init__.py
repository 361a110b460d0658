"""`executa doctor`: what is wrong with a plugin, and what to do about it.

`command` runs the `examination`, an ordered list of checks that stops at the first failure.
`evidence` is what a host saw, `pitfalls` what that means, `probe` talks to a plugin without a
host where one gives no answer, `trial` picks a call that may be made.
"""
