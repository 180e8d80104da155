// placeholder during probing
