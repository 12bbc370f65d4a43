"""pagein inside a program that calls a provider by an SDK: each model call goes through the engine, without a gateway.

client = pagein.wrap(anthropic.Anthropic(), session="fix-login")
"""
