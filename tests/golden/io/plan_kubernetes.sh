#!/bin/sh
# 1 evictions, 3 moves in 2 waves, 2 placements; vacates 1 nodes.
set -eu

evict() {  # namespace, pod
  printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":"%s","name":"%s"}}' "$1" "$2" |
    kubectl create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f -
}
confirm() {
  printf '%s Press Enter to go on. ' "$1"
  read -r _
}

# Nothing may start on the nodes to be vacated.
kubectl cordon n0

# Evictions.
evict default spot-9

# Wave 0.
evict ml train-0  # n0 -> n5, GPU 2 3
confirm 'Wave 0 is done when all replacements run where they should.'

# Wave 1.
evict default web-1  # n0 -> n6, GPU 1
evict default cpu-0  # n7 -> n6
confirm 'Wave 1 is done when all replacements run where they should.'

# Pending pods that now have room.
# ml train-8 -> n5, GPU 0
# default cpu-1 -> n5
