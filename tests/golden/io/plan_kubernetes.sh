steps() {
  # Nothing may start on the nodes to be vacated.
  cordon n0
  # Nor, until all have moved, on those from which pods move.
  cordon n7
  evict default spot-9
  move 0 ml train-0 n0 n5  # GPU 2 3
  finish_wave 0
  move 1 default web-1 n0 n6  # GPU 1
  move 1 default cpu-0 n7 n6
  finish_wave 1
  release n7
  placed ml train-8 n5  # GPU 0
  placed default cpu-1 n5
}

main "$@"
