local look, spend, refuse = {}, {}, {}
