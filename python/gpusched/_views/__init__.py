"""Results as people and other libraries see them: tables, frames, HTML, graphs, words."""
