"""The stand-in for model providers: Anthropic's Messages, OpenAI's Responses and Chat Completions.

Real agent CLIs work against it, with no account and no money. What its model says is a function of
the conversation that a request carries, so a session that is resumed goes on where it was. `actor`
is that model; a test sets a script instead. One module an API turns requests into a Conversation
and a Reply into the provider's own JSON and events; nothing else knows an API.
"""
