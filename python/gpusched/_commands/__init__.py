"""What the commands of the console script do: each takes the parsed arguments and returns the exit code."""
