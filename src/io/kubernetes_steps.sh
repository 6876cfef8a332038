# SPDX-License-Identifier: Apache-2.0
# The shell functions in the scripts that plan_to_kubernetes_steps writes; CMake makes a string of them.
#
# Before them a script sets the variables `plan`, a word that identifies the plan, and `nodes`. After them it
# defines `steps`, which calls cordon, evict, move, finish_wave, release and placed, and calls `main`.

state=${GPUSCHED_STATE:-$0.state}
wait_s=${GPUSCHED_WAIT_S:-600}
poll_s=${GPUSCHED_POLL_S:-5}
looking='' # not empty: steps only check whether their pods are there

# In jsonpath, the controller among an object's owners.
controller='.metadata.ownerReferences[?(@.controller==true)]'

k() { ${KUBECTL:-kubectl} "$@"; }
stop() {
  printf 'stopped: %s\nTo go on: sh %s. To remove the cordons: sh %s undo.\n' "$*" "$0" "$0" >&2
  exit 1
}
note() { printf '%s\n' "$*" >>"$state"; }
noted() { grep -Fqx -e "$*" "$state"; }
# The rest of the first line of the state that begins with these words.
rest_of() {
  awk -v words="$* " 'index($0, words) == 1 { print substr($0, length(words) + 1); exit }' "$state"
}

ask() { # <reason to stop>
  [ -z "${GPUSCHED_YES:-}" ] || return 0
  printf 'Press Enter to go on (GPUSCHED_YES=1 does not ask). '
  read -r _ || stop "$1"
}

# Runs a command and keeps its output in $answer. While a disruption budget refuses (429), or the server is
# busy or does not answer, it runs the command again. Returns 1 for other errors, with the error in $answer.
call() { # <subject> <command...>
  about=$1
  shift
  pause=$poll_s end=$(($(date +%s) + wait_s))
  while :; do
    answer=$("$@" 2>"$state.error") && return 0
    answer=$(tail -n 1 "$state.error")
    case $(cat "$state.error") in
    # First, because a name in them may look like a temporary error.
    *"(NotFound)"* | *"(Conflict)"* | *"(Forbidden)"*) return 1 ;;
    *TooManyRequests* | *"too many requests"* | *ServiceUnavailable* | *imeout* | *"timed out"* | *EOF*) ;;
    *"connection refused"* | *"was refused"* | *"connection reset"*) ;;
    *) return 1 ;;
    esac
    [ "$(date +%s)" -lt "$end" ] || stop "$about, for $wait_s s: $answer"
    echo "$about: $answer Again in $pause s."
    sleep "$pause"
    pause=$((pause * 2 > 30 ? 30 : pause * 2))
  done
}

# Checks whether a pod is on its node in the plan, and whether its disruption budget allows its eviction now,
# by a dry run of the API server. A pod that moves twice is checked once.
look() { # <namespace> <pod> [node]
  case $looked in *" $1/$2 "*) return 0 ;; esac
  looked="$looked$1/$2 " all=$((all + 1))
  if ! call "pod $1/$2" k -n "$1" get pod "$2" -o 'jsonpath={.spec.nodeName}|{.metadata.uid}'; then
    case $answer in *NotFound*) echo "pod $1/$2 is gone" ;; *) stop "pod $1/$2: $answer" ;; esac
  elif [ -n "${3:-}" ] && [ "${answer%%|*}" != "$3" ]; then
    answer=${answer%%|*}
    echo "pod $1/$2 is on ${answer:-no node}, and the plan takes it from $3"
  else
    there=$((there + 1))
    if ! delete_by_eviction "$1" "$2" "${answer#*|}" '"dryRun":["All"],' >/dev/null 2>"$state.error"; then
      case $(cat "$state.error") in
      *TooManyRequests*)
        refused=$((refused + 1))
        echo "pod $1/$2: its disruption budget allows no eviction now: $(tail -n 1 "$state.error")"
        ;;
      esac
    fi
  fi
}
look_at_all() {
  looking=1 looked=' ' all=0 there=0 refused=0
  steps
  looking=''
  context=$(k config current-context 2>/dev/null || echo 'not known')
  echo "Context $context: $there of $all pods are where the plan takes them from."
  [ "$refused" -eq 0 ] || echo "Disruption budgets allow no eviction of $refused of them now."
}

cordon() { # <node>
  [ -z "$looking" ] || return 0
  noted "cordoned $1" || noted "was cordoned $1" && return
  if ! noted "cordoning $1"; then
    call "node $1" k get node "$1" -o 'jsonpath={.spec.unschedulable}' || stop "node $1: $answer"
    [ "$answer" != true ] || { note "was cordoned $1" && return; }
    note "cordoning $1" # before it happens: undo must know it
  fi
  call "node $1" k cordon "$1" || stop "node $1: $answer"
  note "cordoned $1"
  echo "cordoned $1"
}

release() { # <node>: only where this script cordoned it
  [ -z "$looking" ] || return 0
  noted "released $1" || noted "was cordoned $1" && return
  if call "node $1" k uncordon "$1"; then
    echo "uncordoned $1"
  else
    case $answer in *NotFound*) echo "node $1 is gone" ;; *) stop "node $1: $answer" ;; esac
  fi
  note "released $1"
}

# The pods of a controller that are not terminating, in $pods: uid|name|node|ready, one per line.
owned() { # <namespace> <uid of the controller>
  fields='{.metadata.deletionTimestamp}|{.metadata.uid}|{.metadata.name}|{.spec.nodeName}'
  is_ready='{.status.conditions[?(@.type=="Ready")].status}'
  end_of_line='{"\n"}'
  call "pods of namespace $1" k -n "$1" get pods \
    -o "jsonpath={range .items[*]}{$controller.uid}|$fields|$is_ready$end_of_line{end}" ||
    stop "pods of namespace $1: $answer"
  pods=$(printf '%s\n' "$answer" |
    awk -F'|' -v owner="$2" '$1 == owner && $2 == "" { print $3 "|" $4 "|" $5 "|" $6 }')
}
ready() { printf '%s\n' "$pods" | grep -c '|True$' || :; }

# The number of pods that a controller wants now, in $replicas: empty if unknown, 0 if it is gone, has ended
# or is another one.
wanted_replicas() { # <namespace> <uid of the controller> <kind/name>
  fields='{.metadata.uid}|{.spec.replicas}|{.spec.parallelism}|{.spec.completions}|{.status.succeeded}'
  fields="$fields|{.spec.suspend}|"'{.status.conditions[?(@.status=="True")].type}'
  if ! call "$3 in namespace $1" k -n "$1" get "$3" -o "jsonpath=$fields"; then
    case $answer in
    *NotFound*) replicas=0 ;;
    *) replicas='' ;; # a kind that may not be read
    esac
    return
  fi
  replicas=$(printf '%s\n' "$answer" | awk -F'|' -v uid="$2" '
    $1 != uid || $6 == "true" || $7 ~ /(^| )(Complete|Failed)( |$)/ { print 0; exit }
    $2 != "" { print $2; exit }
    $3 != "" { left = $4 == "" ? $3 : $4 - $5; print left < $3 ? left : $3 }')
}

delete_by_eviction() { # <namespace> <pod> <uid> [further options]
  {
    printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":"%s","name":"%s"},' "$1" "$2"
    printf '"deleteOptions":{%s"preconditions":{"uid":"%s"}}}' "${4:-}" "$3"
  } | k create --raw "/api/v1/namespaces/$1/pods/$2/eviction" -f -
}

# Looks a pod up and records it, so that after an interruption no other pod with its name replaces it. Returns
# 1 if it is gone.
look_up() { # <step>, <namespace>, <pod>; sets uid, node, owner, kind
  if [ -z "$(rest_of "pod $1 $2/$3")" ]; then
    fields="{.metadata.uid}|{.spec.nodeName}|{$controller.uid}|{$controller.kind}/{$controller.name}"
    if ! call "pod $2/$3" k -n "$2" get pod "$3" -o "jsonpath=$fields"; then
      case $answer in *NotFound*) return 1 ;; esac
      stop "pod $2/$3: $answer"
    fi
    note "pod $1 $2/$3 $answer"
  fi
  IFS='|' read -r uid node owner kind <<EOF
$(rest_of "pod $1 $2/$3")
EOF
  [ -n "$owner" ] || [ -n "${GPUSCHED_BARE_PODS:-}" ] ||
    stop "pod $2/$3 has no controller that would recreate it;" \
      "GPUSCHED_BARE_PODS=1 evicts it anyway, and it is lost"
  case $kind in
  Job/*)
    echo "pod $2/$3: its eviction counts as a failure of $kind, up to its backoffLimit," \
      "unless its podFailurePolicy ignores DisruptionTarget"
    ;;
  esac
}

take_off() { # <step> <namespace> <pod> <uid>
  if ! call "pod $2/$3" delete_by_eviction "$2" "$3" "$4"; then
    case $answer in
    *NotFound* | *Conflict* | *"Precondition failed"*) echo "pod $2/$3 is gone already" ;;
    *) stop "pod $2/$3: $answer" ;;
    esac
  fi
  note "done $1 $2/$3"
}

evict() { # <namespace> <pod>
  [ -z "$looking" ] || { look "$1" "$2"; return 0; }
  noted "done eviction $1/$2" && return
  if ! look_up eviction "$1" "$2"; then
    echo "pod $1/$2 is gone already"
    note "void eviction $1/$2"
    note "done eviction $1/$2"
    return
  fi
  take_off eviction "$1" "$2" "$uid"
  echo "evicted $1/$2"
}

move() { # <wave> <namespace> <pod> <from> <to>
  [ -z "$looking" ] || { look "$2" "$3" "$4"; return 0; }
  noted "done wave-$1 $2/$3" && return
  if ! look_up "wave-$1" "$2" "$3"; then
    echo "pod $2/$3 is gone already"
    if grep -q "^done wave-.* $2/$3\$" "$state"; then
      echo "wave $1: the plan moves its replacement on, to $5, but not every replacement has the name" \
        "of the pod before it. Later steps may lack the room that the plan counts on."
      ask "wave $1: the replacement of $2/$3 is not moved on"
    fi
    note "void wave-$1 $2/$3"
    note "done wave-$1 $2/$3"
    return
  fi
  if [ "$node" != "$4" ]; then
    echo "left alone: $2/$3 is on ${node:-no node}, and the plan takes it from $4"
    note "void wave-$1 $2/$3"
    note "done wave-$1 $2/$3"
    return
  fi
  if [ -n "$owner" ]; then
    if [ -z "$(rest_of "before $1 $2 $owner")" ]; then
      owned "$2" "$owner"
      note "before $1 $2 $owner $(ready) $kind $(printf '%s\n' "$pods" | cut -d'|' -f1 | tr '\n' ',')"
    fi
    noted "want $1 $2 $owner $5 $3" || note "want $1 $2 $owner $5 $3"
  fi
  take_off "wave-$1" "$2" "$3" "$uid"
  echo "evicted $2/$3 from $4: kube-scheduler chooses where its replacement starts," \
    "and cannot be told that the plan wants $5"
}

# Waits until every controller has as many ready pods as before the wave, and reports the nodes of the
# replacements.
finish_wave() { # <wave>
  [ -z "$looking" ] || return 0
  noted "finished wave-$1" && return
  before=$(grep "^before $1 " "$state" || :)
  elsewhere='' limit=$(($(date +%s) + wait_s))
  [ -z "$before" ] || while read -r _ _ space owner count kind known <&3; do
    while :; do
      owned "$space" "$owner"
      [ "$(ready)" -lt "$count" ] || break
      wanted_replicas "$space" "$owner" "$kind"
      if [ -n "$replicas" ] && [ "$replicas" -lt "$count" ]; then
        echo "wave $1: $kind in namespace $space wants $replicas pods now, and had $count that were ready:" \
          "it was scaled down, or has ended"
        count=$replicas
        continue
      fi
      [ "$(date +%s)" -lt "$limit" ] ||
        stop "wave $1: after $wait_s s $(ready) of $count pods of $kind in namespace $space are ready"
      sleep "$poll_s"
    done
    here=$(printf '%s\n' "$pods" |
      awk -F'|' -v known=",$known" 'NF > 1 && !index(known, "," $1 ",") { print $3 }' | sort | tr '\n' ' ')
    wanted=$(awk -v wave="$1" -v owner="$owner" \
      '$1 == "want" && $2 == wave && $4 == owner { print $5 }' "$state" | sort | tr '\n' ' ')
    echo "wave $1: $kind in namespace $space: new pods on: ${here}(the plan wants: $wanted)"
    [ "$here" = "$wanted" ] || elsewhere="$elsewhere $space/$kind"
  done 3<<EOF
$before
EOF
  if [ -n "$elsewhere" ]; then
    echo "wave $1: not where the plan wants them:$elsewhere." \
      "Later steps may lack the room that the plan counts on."
    ask "wave $1: replacements are elsewhere than planned"
  fi
  note "finished wave-$1"
}

placed() { # <namespace> <pod> <node>
  [ -z "$looking" ] || return 0
  noted "placed $1/$2" && return
  limit=$(($(date +%s) + wait_s))
  while :; do
    if ! call "pod $1/$2" k -n "$1" get pod "$2" -o 'jsonpath={.spec.nodeName}'; then
      case $answer in *NotFound*) ;; *) stop "pod $1/$2: $answer" ;; esac
      echo "$1/$2: there is no pod of this name now; the plan has room for it on $3"
      break
    fi
    [ -z "$answer" ] || { echo "$1/$2 is on $answer (the plan wants $3)" && break; }
    [ "$(date +%s)" -lt "$limit" ] || stop "after $wait_s s $1/$2 is on no node; the plan wants $3"
    sleep "$poll_s"
  done
  note "placed $1/$2"
}

undo() {
  [ -e "$state" ] || { echo "nothing to undo: there is no $state" && return; }
  for node in $(awk '$1 == "cordoning" { print $2 }' "$state"); do
    release "$node"
  done
  echo "$(grep -c '^done ' "$state" || :) pods that were evicted stay where they are now."
  rm -f "$state" "$state.error"
}

main() {
  case ${1:-run} in
  run)
    [ -e "$state" ] || note "plan $plan"
    noted "plan $plan" || {
      echo "error: $state belongs to another plan: undo that first, or set GPUSCHED_STATE" >&2
      exit 2
    }
    if ! noted looked; then
      look_at_all
      [ $((2 * there)) -ge "$all" ] || {
        echo "Another cluster, or an old plan? Nothing has been changed."
        ask "most pods of the plan are gone or elsewhere"
      }
      [ "$refused" -eq 0 ] || {
        echo "It would wait for each of them, $wait_s s at most, and then stop with the plan half done." \
          "Nothing has been changed."
        ask "disruption budgets allow no eviction of $refused pods of the plan"
      }
      note looked
    fi
    steps
    rm -f "$state.error"
    all=$(grep -c '^done ' "$state" || :) void=$(grep -c '^void ' "$state" || :)
    stay=${nodes:+ These nodes stay cordoned until sh $0 undo: $nodes.}
    if [ "$void" -eq 0 ]; then
      echo "The plan is carried out.$stay"
    elif [ "$void" -lt "$all" ]; then
      echo "The plan is carried out except for $void of $all steps: their pods were gone or elsewhere.$stay"
    else
      echo "Nothing of the plan was carried out: the pods of all $all steps were gone or elsewhere.$stay" >&2
      exit 3
    fi
    ;;
  check)
    look_at_all
    rm -f "$state.error"
    [ "$there" -eq "$all" ] && [ "$refused" -eq 0 ] || exit 3
    ;;
  undo) undo ;;
  *) echo "usage: sh $0 [run | check | undo]" >&2 && exit 2 ;;
  esac
}
