"""Pictures of cells for matplotlib and folium, HTML cards for notebooks, and HTML pages."""
