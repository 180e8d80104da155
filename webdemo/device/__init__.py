"""geoind on the device: the JavaScript module and how its files are made."""
