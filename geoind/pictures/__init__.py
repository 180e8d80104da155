"""How does a value look: pictures of cells for matplotlib and folium, cards for notebooks, and HTML pages."""
