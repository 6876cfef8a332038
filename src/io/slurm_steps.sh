# SPDX-License-Identifier: Apache-2.0
# The shell functions in the scripts that plan_to_slurm_steps writes; CMake makes a string of them.
#
# Before them a script sets `plan`, a word that identifies the plan, and `steps`, one step per line:
#   V|node        a node to be vacated
#   H|node        a node that jobs leave, and that receives none
#   E|job|nodes   a job that is requeued to make room, and where it runs
#   M|job|nodes   a job that moves, largest first
#   W|job|nodes   a pending job, which starts in the end
# After them it calls `main`.

wait_s=${GPUSCHED_WAIT_S:-900}
poll_s=${GPUSCHED_POLL_S:-5}
mark="gpusched:$plan" # the reason of drained nodes, and the end of the AdminComment of held jobs
drained='' left_out='' gone='' approved='' requeued='' idle=''

say() { printf '%s\n' "$*"; }
stop() {
  say "stopped: $*" >&2
  say "To go on: sh $0. To open the nodes and release held jobs: sh $0 undo." >&2
  exit 1
}
ask() { # <question...>
  say "$@"
  [ -z "${GPUSCHED_YES:-}" ] || return 0
  printf 'y: go on, anything else: stop. '
  read -r answer || answer=''
  [ "$answer" = y ]
}
counted_list() { printf '%s (%s)' "$#" "$*"; } # <job...>
of_kind() { printf '%s\n' "$steps" | awk -F'|' -v kind="$1" '$1 == kind { print $2 }'; }
in_list() { case " $2 " in *" $1 "*) ;; *) return 1 ;; esac; }

s() { ${SCONTROL:-scontrol} "$@"; }
# A field at the start of a line of $record: users write free text elsewhere.
field() { printf '%s\n' "$record" | sed -n "s/^ *$1=\([^ ]*\).*/\1/p" | head -n 1; }
see_node() { # returns 1 if the node was removed
  record=$(s show node "$1" 2>&1) || case $record in
    *"not found"*) return 1 ;;
    *) stop "node $1: $record" ;;
  esac
}
see_job() { # sets state, reason, on
  record=$(s show job "$1" 2>&1) || case $record in
    *"Invalid job id"*) record="JobState=gone" ;;
    *) stop "job $1: $record" ;;
  esac
  state=$(field JobState) reason=$(field 'JobState=[^ ]* Reason')
  on=$(s show hostnames "$(field NodeList)" 2>/dev/null | sed '/^(null)$/d; /^$/d' | sort | tr '\n' ',')
}
drain() { # <node>: with the mark, unless it is drained already
  see_node "$1" || { gone="$gone $1" && say "node $1 is gone" && return; }
  case $(field State) in *DRAIN*) return 0 ;; esac
  s update NodeName="$1" State=DRAIN Reason="$mark" || stop "node $1 was not drained"
  drained="$drained $1"
  say "drained $1"
}
resume() { # <node>: if this plan drained it
  see_node "$1" || { say "node $1 is gone" && return; }
  [ "$(field Reason)" = "$mark" ] || return 0
  s update NodeName="$1" State=RESUME || stop "node $1 was not resumed"
  say "resumed $1"
}
vacated() { for node in $(of_kind V); do in_list "$node" "$gone" || printf '%s\n' "$node"; done; }
see_jobs() { jobs=$(${SQUEUE:-squeue} -h -w "$1" -o %i) || stop "node $1: squeue failed"; } # <node>; sets jobs
leave_out() { # <node> <reason>
  ! in_list "$1" "$left_out" || return 0
  left_out="$left_out $1"
  say "left out: node $1: $2"
  resume "$1"
}
# Whether a job stays where it is, because one of its nodes was left out.
stays() { # <nodes of the job>
  for node in $(printf '%s' "$1" | tr ',' ' '); do ! in_list "$node" "$left_out" || return 0; done
  return 1
}
# A job that stays keeps all its nodes: the others on them would be requeued for nothing.
leave_out_shared() {
  more=1
  while [ -n "$more" ]; do
    more=''
    for step in $(printf '%s\n' "$steps" | grep '^M'); do
      other=${step#M|} its=$(printf '%s' "${step##*|}" | tr ',' ' ')
      stays "${step##*|}" || continue
      for node in $(vacated); do
        in_list "$node" "$its" && ! in_list "$node" "$left_out" || continue
        leave_out "$node" "job ${other%%|*} stays there and on other nodes"
        more=1
      done
    done
  done
}
comment() { printf '%s\n' "$record" | sed -n 's/^ *AdminComment=\(.*[^ ]\) *$/\1/p' | head -n 1; }
release() { # <job>: if this plan holds it, and its comment is as it was
  see_job "$1"
  before=$(comment)
  case $before in *"$mark") ;; *) return 0 ;; esac
  [ "$state/$(field Priority)" != PENDING/0 ] || { s release "$1" && say "released $1"; } || stop "job $1 was not released"
  before=${before%"$mark"}
  s update JobId="$1" AdminComment="${before% }" || say "job $1 keeps the AdminComment $mark"
}
wait_for() { # <job> <state>: or until it has ended; returns 1 after $wait_s
  end=$(($(date +%s) + wait_s))
  while see_job "$1"; [ "$state" != "$2" ]; do
    case $state in gone | COMPLETED | CANCELLED* | FAILED | TIMEOUT | OUT_OF_MEMORY | DEADLINE) return 0 ;; esac
    [ "$(date +%s)" -lt "$end" ] || return 1
    sleep "$poll_s"
  done
}
runs_on() { # <job> <nodes>: also sets state, reason, on
  see_job "$1"
  [ "$state" = RUNNING ] && [ "$on" = "$(printf '%s\n' "$2" | tr ',' '\n' | sort | tr '\n' ',')" ]
}
judge() { # <job> <nodes>; sets `why`: why it cannot be requeued from there, or nothing
  why=''
  if ! runs_on "$1" "$2"; then
    why="is $state${on:+ on ${on%,}}; the plan takes it from $2"
  else
    [ "$(field Requeue)" = 1 ] || why='cannot be requeued'
  fi
}
# Requeues a job that was approved, and holds it. Returns 1 if it was left alone.
requeue() { # <job> <nodes>
  in_list "$1" "$approved" || return 1
  judge "$1" "$2"
  [ -z "$why" ] || { say "left alone: job $1 $why" && return 1; }
  before=$(comment)
  s update JobId="$1" AdminComment="${before:+$before }$mark" && s requeuehold "$1" ||
    { say "left alone: job $1 was not requeued" && release "$1" && return 1; }
  requeued="$requeued $1"
  say "requeued $1 from $2"
  wait_for "$1" PENDING || stop "job $1 is $state, and was requeued"
}
note() { # <job>: adds it to `idle`, unless it has started
  case $state in
  RUNNING | CONFIGURING | COMPLETING | COMPLETED) ;;
  PENDING) idle="$idle $1 (PENDING: $reason)" ;;
  *) idle="$idle $1 ($state)" ;;
  esac
}
undo() {
  for node in $(of_kind V) $(of_kind H); do resume "$node"; done
  for job in $(of_kind M) $(of_kind E); do release "$job"; done
}
# Ends the run if the plan makes room for pending jobs, none of which waits for room any more.
end_if_none_waits() {
  idle=''
  [ -n "$(of_kind W)" ] || return 0
  for job in $(of_kind W); do
    see_job "$job"
    case $state/$(field Priority) in
    PENDING/0) ;; # held
    PENDING/*) idle='' && return 0 ;;
    esac
    note "$job"
  done
  undo
  [ -z "$idle" ] || stop "this run has requeued nothing, because none of the jobs waits for room that the plan makes room for:$idle"
  say "Nothing is requeued: the jobs have started that the plan makes room for."
  exit 0
}
run() {
  printf '%s\n' "$steps" | grep -q '|' || { say "The plan has no steps." && exit 0; }
  end_if_none_waits
  for node in $(of_kind V) $(of_kind H); do drain "$node"; done
  [ -z "$gone" ] || [ -n "$(vacated)" ] || stop "the nodes to be vacated are not in this cluster"
  for node in $(vacated); do
    see_jobs "$node"
    for job in $jobs; do
      nodes=$(printf '%s\n' "$steps" | awk -F'|' -v job="$job" '/^[EM]/ && $2 == job { print $3 }')
      if [ -z "$nodes" ]; then
        leave_out "$node" "job $job is not in the plan"
      elif judge "$job" "$nodes" && [ -n "$why" ] && [ "$state" != COMPLETING ]; then
        case ",$on" in *",$node,"*) leave_out "$node" "job $job $why" ;; esac
      fi
    done
  done
  leave_out_shared
  evictions=''
  for step in $(printf '%s\n' "$steps" | grep '^[EM]'); do
    job=${step#?|} nodes=${step##*|} job=${job%|*}
    case $step in M*) ! stays "$nodes" || continue ;; esac
    judge "$job" "$nodes"
    # A job that an interrupted run holds is released below. It may then start where it was.
    case $why,$step$(comment) in
    ,*) ;;
    *,E*"$mark") [ "$(field Requeue)" = 1 ] || continue ;;
    *,M*"$mark") continue ;;
    *) say "left alone: job $job $why" && continue ;;
    esac
    approved="$approved $job"
    case $step in E*) evictions="$evictions $job" ;; esac
  done
  [ -z "$approved" ] ||
    ask "Jobs to be requeued: $(counted_list $approved). They start again, from their last checkpoint if they write" \
      "any, where and when Slurm decides.${evictions:+ Of them, to make room: $(counted_list $evictions); these may wait.}" || {
    for node in $drained; do resume "$node"; done
    stop "not approved; nothing has been requeued"
  }
  end_if_none_waits # any more after the question
  for job in $(of_kind M) $(of_kind E); do release "$job"; done # of a run that was interrupted
  while IFS='|' read -r kind job nodes <&3; do
    [ "$kind" != E ] || requeue "$job" "$nodes" || :
    [ "$kind" = M ] || continue
    ! stays "$nodes" || continue
    requeue "$job" "$nodes" || continue
    release "$job"
    wait_for "$job" RUNNING && { say "job $job is $state${on:+ on ${on%,}}" && note "$job" && continue; }
    say "After $wait_s s job $job is $state: $reason"
    ask "Its nodes are opened again, so that it starts." || stop "job $job waits"
    for node in $(printf '%s' "$nodes" | tr ',' ' '); do leave_out "$node" "job $job needs it"; done
    leave_out_shared
    wait_for "$job" RUNNING || stop "job $job is $state: $reason"
    note "$job"
  done 3<<END
$(printf '%s\n' "$steps" | sort -s -t '|' -k 1,1)
END
  finish
}
finish() { # looks at the end
  for node in $(of_kind H); do resume "$node"; done
  free='' full=''
  for job in $(of_kind W); do
    wait_for "$job" RUNNING || :
    note "$job"
  done
  for job in $(of_kind E); do
    release "$job"
    in_list "$job" "$requeued" || continue
    see_job "$job"
    [ "$state" = PENDING ] || note "$job"
  done
  for job in $(of_kind M); do
    see_job "$job"
    [ "$state" = PENDING ] || continue
    wait_for "$job" RUNNING || :
    note "$job"
  done
  for node in $(vacated); do
    see_jobs "$node"
    [ -z "$jobs" ] || in_list "$node" "$left_out" || leave_out "$node" "it still has jobs"
    if in_list "$node" "$left_out"; then full="$full $node"; else free="$free $node"; fi
  done
  [ -z "$free" ] || say "Vacated, drained until sh $0 undo:$free"
  [ -z "$full" ] || say "Not vacated:$full"
  [ -z "$idle" ] || say "Jobs that do not run:$idle"
  [ -n "$full$idle" ] || { say "The plan is carried out." && exit 0; }
  [ -n "$free" ] || [ -z "$full" ] || exit 1
  say "The plan is carried out in part."
  exit 3
}
wrong() {
  say "$*" >&2
  exit 2
}
main() {
  usage="usage: sh $0 [run | undo]"
  case $wait_s in '' | *[!0-9]* | 0* | ??????????*) wrong "GPUSCHED_WAIT_S: '$wait_s' is not a whole number above 0" ;; esac
  case $poll_s in '' | .* | *[!0-9.]* | *.*.*) wrong "GPUSCHED_POLL_S: '$poll_s' is not a number of seconds" ;; esac
  case ${1:-run} in run | undo) ;; *) wrong "'$1' is not expected; $usage" ;; esac
  [ $# -lt 2 ] || wrong "$1: '$2' is not expected; $usage"
  "${1:-run}"
}
