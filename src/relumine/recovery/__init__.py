"""`recover`: samples → prepared rows → search → signs → judge → Recovery."""
