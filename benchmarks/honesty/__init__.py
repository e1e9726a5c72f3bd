"""A laboratory of honesty: nasty problems, what `recover` claims about them, and what is true."""
