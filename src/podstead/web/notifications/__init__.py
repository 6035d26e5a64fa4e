"""How are notifications subscribed to and received over HTTP?"""
