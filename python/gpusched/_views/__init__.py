"""Results in other forms: text tables, pandas and Arrow, HTML, networkx."""
