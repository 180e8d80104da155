"""How does a value look: pictures of cells for matplotlib and folium, and small cards for notebooks."""
