"""The figures that results draw of themselves, and what all figures share; `gpusched.plotting` is the public part."""
