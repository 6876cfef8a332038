# SPDX-License-Identifier: Apache-2.0
# The shell functions in the scripts that plan_to_kubernetes_steps writes; CMake makes a string of them.
#
# Before them a script sets `plan`, a word that identifies the plan, and `steps`, one step per line:
#   V|node                    a node to be vacated
#   H|node                    a node that pods leave, and that receives none
#   E|namespace/pod           an eviction
#   M|namespace/pod|from|to   a move, in the order of waves
#   W|namespace/pod|node      a pending pod, which starts in the end
# After them it calls `main`.

wait_s=${GPUSCHED_WAIT_S:-600}
poll_s=${GPUSCHED_POLL_S:-5}
lease_s=${GPUSCHED_LEASE_S:-60}
at_once=${GPUSCHED_AT_ONCE:-5}
lease_namespace=${GPUSCHED_NAMESPACE:-default}
skip='' held='' lease='' cordoned='' all_moves=0 closed=''
umask 077
tmp=$(mktemp -d)

say() { printf '%s\n' "$*"; }
counted() { if [ "$1" = 1 ]; then say "1 $2"; else say "$1 $2s"; fi; } # <number> <noun>
k() { ${KUBECTL:-kubectl} --request-timeout=20s "$@"; }
stop() {
  say "stopped: $*" >&2
  offer >&2
  exit 1
}
offer() {
  [ "$action" != check ] || return 0 # it cordons nothing
  say "To go on: sh $0. Without a node: sh $0 skip NODE. To remove the cordons: sh $0 undo [NODE...]." \
    "To plan the rest again, undo, then: gpusched kube snapshot -o now.json &&" \
    "gpusched consolidate now.json --last PLAN.json -o next.json"
}

prompt() { # <text>: sets answer
  printf '%s' "$1"
  read -r reply || reply=''
  renewed=0 && renew # another copy may have taken the lock meanwhile
  answer=$reply
}
# Asks before anything is evicted. Returns 0 for "go on" and 1 for "leave those nodes out".
ask() { # <answer that GPUSCHED_YES=1 gives> <meaning of the answer s, or nothing> <question...>
  yes=$1 other=${2:+s: $2, }
  shift 2
  say "$@"
  if [ -n "${GPUSCHED_YES:-}" ]; then answer=$yes; else prompt "y: go on, ${other}anything else: stop. "; fi
  case $answer$other in
  y*) return 0 ;;
  ss:*) return 1 ;;
  *) unwind && stop "not approved; this run has evicted nothing" ;;
  esac
}

# Runs a command and keeps its output in $answer, again while the server is busy or does not answer. Returns 1
# for other errors, with the error in $answer.
call() { # <subject> <command...>
  about=$1
  shift
  end=$(($(date +%s) + wait_s))
  while :; do
    answer=$("$@" 2>"$tmp/error") && return 0
    answer=$(tail -n 1 "$tmp/error")
    case $(cat "$tmp/error") in
    # First, because a name in them may look like a temporary error.
    *"(NotFound)"* | *"(Conflict)"* | *"(Forbidden)"* | *"(AlreadyExists)"* | *"disruption budget"*) return 1 ;;
    *TooManyRequests* | *"too many requests"* | *ServiceUnavailable* | *imeout* | *"timed out"* | *EOF*) ;;
    *"connection refused"* | *"was refused"* | *"connection reset"* | *"connection lost"* | *"leader changed"*) ;;
    *"no route to host"* | *"network is unreachable"* | *BadGateway*) ;;
    *) return 1 ;;
    esac
    [ "$(date +%s)" -lt "$end" ] || stop "$about: $answer"
    sleep "$poll_s"
  done
}

# ---- The lock: a Lease, which only its holder renews. It also keeps, for a later run, how many pods of each
# owner were ready and which budgets were broken before the first eviction.

lease_fields='jsonpath={.metadata.resourceVersion}|{.spec.holderIdentity}|{.metadata.annotations.gpusched/plan}'
lease_fields="$lease_fields|{.metadata.creationTimestamp}|{.metadata.annotations.gpusched/before}"
create_lease() {
  printf '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"gpusched","namespace":"%s",
    "annotations":{"gpusched/plan":"%s"}},"spec":{"holderIdentity":"%s"}}' "$lease_namespace" "$plan" "$me" |
    k create -f - -o "$lease_fields"
}
patch_lease() { # <holder> [annotation]: in a file, because the annotation may be longer than an argument
  printf '{"metadata":{"resourceVersion":"%s"%s},"spec":{"holderIdentity":"%s","renewTime":"%s"}}' "$lease" \
    "${2:+,\"annotations\":{\"gpusched/before\":\"$2\"\}}" "$1" "$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)" >"$tmp/patch"
  call "the lock" k -n "$lease_namespace" patch lease gpusched --type merge -o "$lease_fields" --patch-file "$tmp/patch"
}
read_lease() {
  IFS='|' read -r lease holder lease_plan started before <<END
$answer
END
}
lock() {
  me="$(uname -n)-$$-$(date +%s)" seen='' end_of_wait=$(($(date +%s) + lease_s))
  until call "the lock" create_lease; do
    case $answer in *"(AlreadyExists)"*) ;; *) stop "the lock, Lease $lease_namespace/gpusched: $answer" ;; esac
    call "the lock" k -n "$lease_namespace" get lease gpusched -o "$lease_fields" || continue
    read_lease
    if [ -n "$holder" ] && [ "$lease" = "$seen" ] && [ "$(date +%s)" -ge "$end_of_wait" ]; then
      holder='' # it died: nothing has renewed the lease for $lease_s
    fi
    if [ -z "$holder" ] && [ "$lease_plan" = "$plan" ]; then
      patch_lease "$me" && break
    elif [ -z "$holder" ]; then
      k -n "$lease_namespace" delete --raw "/apis/coordination.k8s.io/v1/namespaces/$lease_namespace/leases/gpusched" -f - \
        >/dev/null 2>&1 <<END || :
{"preconditions":{"resourceVersion":"$lease"}}
END
    elif [ -n "$seen" ] && [ "$lease" != "$seen" ]; then
      stop "$holder carries out plan $lease_plan now"
    else
      [ -n "$seen" ] || say "waiting up to $lease_s s: does $holder still run?"
      seen=$lease
      sleep "$poll_s"
    fi
  done
  read_lease
  held=1 renewed=$(date +%s)
}
renew() {
  [ $(($(date +%s) - renewed)) -ge $((lease_s / 4)) ] || return 0
  until patch_lease "$me"; do # a lost answer leaves a newer version than $lease
    call "the lock" k -n "$lease_namespace" get lease gpusched -o "$lease_fields" || stop "the lock: $answer"
    read_lease
    [ "$holder" = "$me" ] || { held='' && stop "$holder took the lock"; }
  done
  read_lease
  renewed=$(date +%s)
}
leave() {
  [ -z "$held" ] || patch_lease '' || :
  rm -rf "$tmp"
}
pause() {
  sleep "$poll_s"
  renew
}

# ---- What is there now: one line per node, pod and disruption budget. The field before the labels of a pod has a "!"
# if the pod has constraints that the script does not judge, and a "~" if it has local data or is protected.

parts='{{define "expressions"}}{{range .}}&{{.key}} {{.operator}}{{range .values}} {{.}}{{end}}{{end}}{{end}}
{{- define "requests"}}{{range $k, $v := .resources.requests}}{{$k}}={{$v}},{{end}}{{end}}
{{- define "labels"}}{{range $k, $v := .metadata.labels}}{{$k}}={{$v}},{{end}}{{end}}
{{- define "is"}}{{range $k, $v := .}}&{{$k}} In {{$v}}{{end}}{{end}}
{{- define "selector"}}{{template "is" .matchLabels}}{{template "expressions" .matchExpressions}}{{end}}
{{- define "ready"}}{{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{end}}'
lines="$parts"'{{range .items}}{{if eq .kind "Node"}}N|{{.metadata.name}}|{{.spec.unschedulable}}|{{template "ready" .}}|
{{- range $k, $v := .status.allocatable}}{{$k}}={{$v}},{{end}}|{{template "labels" .}}|
{{- range .spec.taints}}{{if ne .effect "PreferNoSchedule"}}{{.key}}~{{.value}}~{{.effect}},{{end}}{{end}}|
{{- with .metadata.annotations}}{{with index . "gpusched/plan"}}{{.}}{{end}}{{end}}|
  {{- .metadata.uid}}|{{.metadata.resourceVersion}}
{{- else if eq .kind "PodDisruptionBudget"}}D|{{.metadata.namespace}}/{{.metadata.name}}|
  {{- if lt .status.currentHealthy .status.desiredHealthy}}broken{{end}}|{{.status.disruptionsAllowed}}|
  {{- with .spec.selector}}{{template "selector" .}}{{end}}
{{- else}}P|{{.metadata.namespace}}/{{.metadata.name}}|{{.metadata.uid}}|
{{- .spec.nodeName}}|{{.status.phase}}|{{.metadata.deletionTimestamp}}|{{.metadata.creationTimestamp}}|
{{- range .metadata.ownerReferences}}{{if .controller}}{{.kind}}/{{.name}}/{{.uid}}{{end}}{{end}}|
{{- template "ready" .}}|{{range .spec.containers}} +{{template "requests" .}}{{end}} ^{{template "requests" .spec}}
{{- range .spec.initContainers}} {{if .restartPolicy}}*{{else}}^{{end}}{{template "requests" .}}{{end}} %
{{- range $k, $v := .spec.overhead}}{{$k}}={{$v}},{{end}}|{{template "is" .spec.nodeSelector}}|
{{- range .spec.tolerations}}{{.key}}~{{.operator}}~{{.value}}~{{.effect}},{{end}}|
{{- range .spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms}};
{{- template "expressions" .matchExpressions}}{{template "expressions" .matchFields}}{{end}}|
{{- range .spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution}};{{.topologyKey}}^
{{- range $k, $v := .}}{{if eq $k "namespaceSelector"}}*{{end}}{{end}}{{range .namespaces}}{{.}},{{end}}^{{template "selector" .labelSelector}}{{end}}|
{{- range .spec.topologySpreadConstraints}}{{if eq .whenUnsatisfiable "DoNotSchedule"}};
{{- .maxSkew}}^{{.topologyKey}}^{{template "selector" .labelSelector}}{{end}}{{end}}|
{{- range .spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution}}!{{end}}
{{- range .spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution}}
{{- if .namespaceSelector}}!{{end}}{{end}}{{range .spec.resourceClaims}}!{{end}}
{{- range .spec.volumes}}{{range $k, $v := .}}{{if eq $k "persistentVolumeClaim" "ephemeral"}}!{{end}}
  {{- if eq $k "emptyDir" "hostPath"}}~{{end}}{{end}}{{end}}
  {{- range $k, $v := .metadata.annotations}}{{if eq (print $k "=" $v)
  "cluster-autoscaler.kubernetes.io/safe-to-evict=false" "karpenter.sh/do-not-disrupt=true"}}~@{{end}}{{end}}
{{- if ne .spec.schedulerName "default-scheduler"}}!{{end}}
{{- range .spec.containers}}{{range .ports}}{{if .hostPort}}!{{end}}{{end}}{{end}}|
{{- template "labels" .}}|{{range .spec.schedulingGates}}gated{{end}}{{end}}{{"\n"}}{{end}}'
list() { # <kinds> [further arguments]: the lines, in $tmp/lines
  fetch() { k get "$@" -o "go-template=$lines" >"$tmp/answer"; }
  call "the $1" fetch "$@" || stop "the $1: $answer"
  sed 's/<no value>//g' "$tmp/answer" >"$tmp/lines"
  grep '^N' "$tmp/lines" >"$tmp/nodes" || :
}
look() {
  list nodes,pods,poddisruptionbudgets --all-namespaces
  grep -v '^N' "$tmp/lines" >"$tmp/pods" || :
}
broken_budgets() { awk -F'|' '$1 == "D" && $3 != "" { print "B|" $2 }' "$tmp/pods"; }

# What to do next, of the plan, of what is there, and of what this run remembers:
#   R|uid|time    refused; not again before that time        L|uid    evicted, or left where it is
#   O|uid|ready|namespace|kind/name|bound  an owner: so many of its pods were ready and on nodes before
#   G|uid         a pod that is not in the plan, and that leaves its node as well
# It answers `facts`: the pods of the plan, pods on nodes to be vacated that are not in the plan, and owners;
# `next`, the first that applies: wait for replacements, evict, no room, wait for others, done;
# `returnable`: a node of the plan that would take a replacement that has no room; `left`: pods per node of the plan.
view_program='
function milli(q,  unit) {
  if (q in cache) return cache[q]
  unit = q; sub(/^[-+]?[0-9.]+/, "", unit)
  return cache[q] = unit == "m" ? q + 0 : unit in scale ? q * scale[unit] * 1000 : q * 1000
}
function set_labels(id, text,  x, n, i, e) {
  n = split(text, x, ",")
  for (i = 1; i < n; ++i) {
    e = index(x[i], "="); label[id, substr(x[i], 1, e - 1)] = substr(x[i], e + 1)
    if (id ~ /^#/) kind_with[x[i], ++kinds_with[x[i]]] = id # a kind of pods
  }
}
function request(text, want,  n, i, m, j, group, part, kind, name, amount, init, beside, over) {
  split("", want); n = split(text, group, " ")
  for (i = 1; i <= n; ++i) {
    kind = substr(group[i], 1, 1); m = split(substr(group[i], 2), part, ",")
    for (j = 1; j < m; ++j) {
      name = part[j]; sub(/=.*/, "", name); amount = milli(substr(part[j], length(name) + 2))
      if (kind == "+" || kind == "*") want[name] += amount
      if (kind == "*") beside[name] += amount # a sidecar runs beside later init containers
      else if (kind == "%") over[name] += amount
      else if (kind == "^" && amount + beside[name] > init[name]) init[name] = amount + beside[name]
    }
  }
  for (name in init) if (init[name] > want[name] + 0) want[name] = init[name]
  for (name in over) want[name] += over[name]
  want["pods"] = 1000
}
function has(id, expression,  e, n, i, there, value) {
  n = split(expression, e, " "); there = (id, e[1]) in label
  if (n == 2 && e[2] ~ /In$/) e[n = 3] = "" # the empty value
  value = there ? label[id, e[1]] "" : ""
  if (e[2] == "Exists") return there
  if (e[2] == "DoesNotExist") return !there
  if (e[2] == "Gt") return there && value + 0 > e[3] + 0
  if (e[2] == "Lt") return there && value + 0 < e[3] + 0
  for (i = 3; i <= n; ++i) if (there && value == e[i] "") return e[2] == "In"
  return e[2] == "NotIn"
}
function all_of(id, text,  x, n, i) {
  n = split(text, x, "&")
  for (i = 2; i <= n; ++i) if (!has(id, x[i])) return 0
  return 1
}
function eligible(p, node,  key, x, n, i, good) {
  if (selector[p] affinity[p] == "") return 1
  key = selector[p] "|" affinity[p] SUBSEP node
  if (key in cache) return cache[key]
  n = split(affinity[p], x, ";"); good = n < 2
  for (i = 2; i <= n && !good; ++i) good = x[i] != "" && all_of(node, x[i])
  return cache[key] = good && all_of(node, selector[p])
}
function tolerates(p, node,  t, x, l, y, n, m, i, j, good) {
  n = split(taint[node], t, ",")
  for (i = 1; i < n; ++i) {
    split(t[i], x, "~"); good = 0; m = split(tolerations[p], l, ",")
    for (j = 1; j < m; ++j) {
      split(l[j], y, "~")
      if ((y[4] == "" || y[4] == x[3]) && (y[1] == "" || y[1] == x[1]) && (y[2] == "Exists" || y[3] == x[2]))
        good = 1
    }
    if (!good) return 0
  }
  return 1
}
# The kinds of pods (equal in namespace and labels) that a selector matches.
function matching(text, found,  x, e, n, i, j, k) {
  split("", found); split(text, x, "&"); n = split(x[2], e, " ")
  if (e[2] == "In" && n > 2) { # most selectors name a label of few pods
    for (j = 3; j <= n; ++j) for (i = 1; i <= kinds_with[e[1] "=" e[j]]; ++i)
      if (all_of(k = kind_with[e[1] "=" e[j], i], text)) found[k]
  } else for (k in space_of_kind) if (all_of(k, text)) found[k]
}
function in_spaces(list, own, other) {
  return list ~ /[*]/ ? 1 : list == "" ? own == other : index("," list, "," other ",") > 0
}
# Which kinds of pods the terms of anti-affinity apply to.
function match_terms(  g, x, y, n, i, k, found) {
  for (g in term) {
    n = split(term[g], x, ";")
    for (i = 2; i <= n; ++i) {
      split(x[i], y, "^"); matching(y[3], found)
      for (k in found) if (in_spaces(y[2], space_of_group[g], space_of_kind[k])) {
        avoids[g, ++avoids_count[g]] = k; avoids_in[g, avoids_count[g]] = y[1]
        avoided_by[k, ++avoided_by_count[k]] = g; avoided_by_in[k, avoided_by_count[k]] = y[1]
      }
    }
  }
}
# How many pods of a kind, or with the same terms, each domain of a topology has.
function count_in(group, topology,  i, at, key) {
  if ((group, topology) in counted) return
  counted[group, topology] = 0
  for (i = 1; i <= members[group]; ++i) {
    at = place[member[group, i]]; if (!((at, topology) in label)) continue
    key = group SUBSEP topology SUBSEP label[at, topology]
    if (!tally[key]++) domain[group, topology, ++counted[group, topology]] = label[at, topology]
  }
}
function close_nodes(topology, value,  node, i) {
  if (!(topology in is_listed)) {
    is_listed[topology]
    for (node in ready) if ((node, topology) in label)
      node_in[topology, label[node, topology], ++nodes_in[topology, label[node, topology]]] = node
  }
  for (i = 1; i <= nodes_in[topology, value]; ++i) closed[node_in[topology, value, i]]
}
function close_domains(group, topology, p, own,  i, value) {
  count_in(group, topology); own = own && (place[p], topology) in label
  for (i = 1; i <= counted[group, topology]; ++i) {
    value = domain[group, topology, i]
    if (own && tally[group, topology, value] == 1 && label[place[p], topology] == value) continue
    close_nodes(topology, value)
  }
}
function count_spread(p, y, key,  found, k, i, q, node) {
  for (node in ready) if ((node, y[2]) in label && eligible(p, node)) spread_in[key, label[node, y[2]]] += 0
  matching(y[3], found)
  for (k in found) if (space_of_kind[k] == space[p]) for (i = 1; i <= members[k]; ++i)
    if (!leaving[q = member[k, i]] && (place[q], y[2]) in label) ++spread_in[key, label[place[q], y[2]]]
}
# The nodes that are closed to p by anti-affinity, of its own and of others, and by topology spread, in `closed`.
function forbid(p,  x, y, n, i, g, k, key, node, own, self, least, count) {
  split("", closed); g = terms[p]; k = pod_kind[p]
  for (i = 1; i <= avoids_count[g]; ++i) close_domains(avoids[g, i], avoids_in[g, i], p, avoids[g, i] == k)
  for (i = 1; i <= avoided_by_count[k]; ++i) close_domains(avoided_by[k, i], avoided_by_in[k, i], p, avoided_by[k, i] == g)
  n = split(spread[p], x, ";")
  for (i = 2; i <= n; ++i) {
    split(x[i], y, "^"); key = space[p] "|" x[i] "|" selector[p] "|" affinity[p]; self = all_of(k, y[3])
    if (!(key in cache)) { cache[key] = 1; count_spread(p, y, key) }
    own = self && !leaving[p] && (place[p], y[2]) in label ? label[place[p], y[2]] : SUBSEP
    least = -1; split("", count)
    for (node in ready) if ((node, y[2]) in label && eligible(p, node)) {
      g = label[node, y[2]]
      if (!(g in count)) { count[g] = spread_in[key, g] - (g == own); if (least < 0 || count[g] < least) least = count[g] }
    }
    for (node in ready)
      if (!((node, y[2]) in label) || count[label[node, y[2]]] + self - least > y[1]) closed[node]
  }
}
function slots_on(p, node, want,  r, n, least) {
  if (!open[node] || !eligible(p, node) || !tolerates(p, node)) return 0
  least = 999999
  for (r in want) if (want[r] > 0) { n = int(free[node, r] / want[r]); if (n < least) least = n }
  return least < 1 ? 0 : least
}
# How many places of size `want` a pending pod may take.
function places_of(q, want,  need, r, n, most) {
  request(requests[q], need); most = 1
  for (r in want) if (want[r] > 0 && (n = need[r] / want[r]) > most) most = n
  return most == int(most) ? most : int(most) + 1
}
# On how many places of open nodes p may start; only on the target of the plan if p is not judged.
function slots(p, to,  key, node, want, n, q, alone, sum) {
  key = shape[p] SUBSEP (judged[p] ? "*" : to)
  if (!(key in places)) {
    request(requests[p], want); places[key] = hosts[key] = 0
    for (node in ready) if ((judged[p] || node == to) && (n = slots_on(p, node, want))) {
      fit[key, node] = n; places[key] += n; ++hosts[key]
    }
    for (q in newcomer) { n = places_of(q, want); places[key] -= n; hosts[key] -= n }
  }
  alone = anti[p] spread[p] != ""; sum = alone ? hosts[key] : places[key]
  if (alone || avoided_by_count[pod_kind[p]]) forbid(p); else split("", closed)
  closed[place[p]]
  for (node in closed) if ((key, node) in fit) sum -= alone ? 1 : fit[key, node]
  return sum
}
# Whether twice as many pods as were chosen, and one more like p, have room.
function has_double_room(p, to,  want, sum, i) {
  request(requests[p], want)
  for (i = 1; i <= batch; ++i) sum += places_of(chosen[i], want)
  return slots(p, to) >= 2 * sum + 2
}
function gpus_of(p,  want, r, sum) {
  request(requests[p], want)
  for (r in want) if (r ~ /gpu|\/mig-/) sum += want[r] / 1000
  return sum + 0
}
function size_of(p,  want, r, sum) {
  request(requests[p], want)
  for (r in want) sum += index(r, "/") ? want[r] * 1000000 : r == "cpu" ? want[r] : 0
  return sum
}
BEGIN {
  FS = "|"
  n = split("k M G T P E", units, " ")
  for (i = d = b = 1; i <= n; ++i) { scale[units[i]] = d *= 1000; scale[units[i] "i"] = b *= 1024 }
  scale["Ki"] = 1024
}
$1 == "V" { vacate[$2]; order[++nodes] = $2 }
$1 == "E" { step[++steps] = $2; kind[steps] = "E"; victim[$2] }
$1 == "W" { served[++n_served] = $2 }
$1 == "M" { step[++steps] = $2; kind[steps] = "M"; from[steps] = $3; to[steps] = $4 }
$1 == "R" { retry_at[$2] = $3 }
$1 == "L" { is_done[$2] }
$1 == "G" { added[$2] }
$1 == "O" {
  if (!($2 in before) || $3 + 0 < before[$2]) before[$2] = $3 + 0
  about[$2] = $4 "/" $5; placed[$2] = $6
}
$1 == "N" {
  ready[$2]; open[$2] = $3 != "true" && $4 == "True"; taint[$2] = $7; mark[$2] = $8
  label[$2, "metadata.name"] = $2; set_labels($2, $6)
  n = split($5, x, ",")
  for (i = 1; i < n; ++i) {
    e = index(x[i], "="); free[$2, substr(x[i], 1, e - 1)] = milli(substr(x[i], e + 1))
  }
}
$1 == "D" { budget_of[$2] = $5; allowed[$2] = $4 }
$1 == "P" && $5 != "Succeeded" && $5 != "Failed" {
  p = $2; uid[p] = $3; leaving[p] = $6 != ""; created[p] = $7; requests[p] = $10; selector[p] = $11
  tolerations[p] = $12; affinity[p] = $13; anti[p] = $14; spread[p] = $15; judged[p] = $16 !~ /!/; needs_approval[p] = $16 ~ /~/
  if ($16 ~ /@/) guarded[p]
  space[p] = p; sub(/\/.*/, "", space[p])
  shape[p] = $10 "|" $11 "|" $12 "|" $13
  k = space[p] "|" $17
  if (!(k in kind_id)) { kind_id[k] = "#" ++kinds; space_of_kind["#" kinds] = space[p]; set_labels("#" kinds, $17) }
  pod_kind[p] = kind_id[k]
  if ($14 != "") {
    k = space[p] "|" $14
    if (!(k in group_of)) { group_of[k] = "%" ++groups; space_of_group["%" groups] = space[p]; term["%" groups] = $14 }
    terms[p] = group_of[k]
  }
  n = split($8, o, "/"); owner[p] = o[3]; controller[p] = n ? o[1] "/" o[2] : ""
  stays[p] = o[1] == "DaemonSet" || o[1] == "Node" # neither drain nor this script takes them
  if ($4 != "") {
    place[p] = $4; request($10, want); for (r in want) free[$4, r] -= want[r]
    member[pod_kind[p], ++members[pod_kind[p]]] = p
    if (anti[p] != "") member[terms[p], ++members[terms[p]]] = p
  } else if ($18 == "") pending[p]
  if (!leaving[p] && owner[p] != "") {
    bound_pods[owner[p]] += $4 != ""; pending_pods[owner[p]] += $4 == ""; ready_pods[owner[p]] += $9 == "True"
  }
}
END {
  for (i = 1; i <= steps; ++i) planned[step[i], from[i]] = i
  for (p in place) if (place[p] in vacate && !stays[p] && !leaving[p] && !index(" " skip " ", " " place[p] " ")) {
    if ((p, place[p]) in planned || p in victim) continue
    # Before the first eviction, it came after the plan was made. Its controller must replace it alone.
    if (uid[p] in added || nothing_evicted && judged[p] && !needs_approval[p] &&
        controller[p] ~ /^(ReplicaSet|StatefulSet|ReplicationController)\//) {
      added[uid[p]]; step[++steps] = p; kind[steps] = "M"; from[steps] = place[p]
    } else if (question == "facts") print "unplanned|" p "|" place[p]
  }
  if (question == "facts") {
    for (b in budget_of) {
      space[b] = b; sub(/\/.*/, "", space[b]); matching(budget_of[b], found)
      for (k in found) if (space_of_kind[k] == space[b] && (budgets[k]++ || allowed[b] < 1)) kept[k] # two refuse, too
    }
    for (i = 1; i <= steps; ++i) if (!((p = step[i]) in is_reported)) {
      if (uid[p] in added && place[p] != from[i]) continue # its own step is below
      is_reported[p]
      if (!(p in place) || kind[i] == "M" && place[p] != from[i]) print "elsewhere|" p "|" from[i] "|" place[p]
      else if (!(uid[p] in is_done) && !index(" " skip " ", " " place[p] " "))
        print "there|" p "|" place[p] "|" uid[p] "|" controller[p] "|" gpus_of(p) "|" (uid[p] in added) "|" (pod_kind[p] in kept) "|" (p in guarded)
    }
    for (i = 1; i <= nodes; ++i) if (!(order[i] in ready)) print "missing|" order[i]
    for (i = 1; i <= n_served; ++i) {
      p = served[i]
      print "served|" p "|" (!(p in place) && p in uid && !leaving[p] ? "" : p in place ? "on " place[p] : "gone")
    }
    for (p in victim) if (p in place) { --ready_pods[owner[p]]; --bound_pods[owner[p]] }
    for (i = 1; i <= steps; ++i) {
      p = step[i]; u = owner[p]
      if (kind[i] == "E" || !(p in place) || u == "" || u in is_printed) continue
      is_printed[u]; print "O|" u "|" ready_pods[u] "|" space[p] "|" controller[p] "|" bound_pods[u]
    }
    exit
  }
  for (i = 1; i <= nodes; ++i) {
    skipped[order[i]] = index(" " skip " ", " " order[i] " ") > 0
    if (!skipped[order[i]]) open[order[i]] = 0 # also if it was uncordoned meanwhile
  }
  for (p in place) if (place[p] in vacate && !stays[p]) ++pods_on[place[p]]
  if (question == "left") {
    for (i = 1; i <= nodes; ++i) if (order[i] in ready) print order[i] "|" pods_on[order[i]] + 0 "|" skipped[order[i]]
    exit
  }
  match_terms()
  if (question == "returnable") {
    for (p in pending) if (owner[p] in before) for (i = 1; i <= nodes; ++i) {
      v = order[i]; if (mark[v] == "" || skipped[v]) continue
      open[v] = 1; request(requests[p], want); place[p] = ""; forbid(p)
      if (!(v in closed) && slots_on(p, v, want) && (best == "" || pods_on[v] > pods_on[best])) best = v
    }
    print best; exit
  }
  for (u in before) {
    if (ready_pods[u] < before[u]) lacks_ready[u]
    if (bound_pods[u] >= placed[u]) continue
    print "wait|" (pending_pods[u] ? "pending" : "missing") "|" u "|" about[u] "|" bound_pods[u] + 0 "|" placed[u]; exit
  }
  for (i = 1; i <= steps; ++i) { # what is left to evict, and where it is
    p = step[i]
    if (!(p in place) || leaving[p] || uid[p] in is_done || created[p] > started && !(uid[p] in added)) continue
    if (kind[i] == "M" && (place[p] != from[i] || (from[i] in vacate ? skipped[from[i]] : !all_moves))) continue
    if (p in seen) continue
    seen[p]; ++count; size = kind[i] == "E" ? 1e16 : from[i] in vacate ? size_of(p) : 1e15 - i
    if (!(size in equals)) { # the largest first: few sizes, in order
      for (j = ++sizes; j > 1 && size > ordered[j - 1]; --j) ordered[j] = ordered[j - 1]
      ordered[j] = size
    }
    equal[size, ++equals[size]] = i
  }
  for (j = 1; j <= sizes; ++j) for (i = 1; i <= equals[ordered[j]]; ++i) todo[++n_todo] = equal[ordered[j], i]
  for (p in pending) if (!(owner[p] in before)) { place[p] = ""; if (slots(p, "") > 0) fits[p]; delete place[p] }
  for (p in fits) newcomer[p]
  split("", places)
  for (i = 1; i <= count; ++i) {
    s = todo[i]; p = step[s]
    if (kind[s] == "M" && slots(p, to[s]) < 1) { if (!no_room) no_room = s; blocked[place[p]] }
  }
  for (i = 1; i <= count && batch < at_once; ++i) {
    s = todo[i]; p = step[s]; u = owner[p] == "" ? uid[p] : owner[p]
    if (kind[s] == "M" && place[p] in blocked || retry_at[uid[p]] > now || u in lacks_ready || u in used) continue
    # Later ones of a batch need twice the room, and the first keeps it: others may take some meanwhile.
    if (kind[s] == "M" && batch && (!first_move || anti[p] spread[p] != "" || !has_double_room(p, to[s]) ||
        !has_double_room(step[first_move], to[first_move]))) continue
    if (!batch) first_move = kind[s] == "M" && anti[p] spread[p] == "" ? s : 0
    used[u]; chosen[++batch] = p
    print "evict|" kind[s] "|" p "|" uid[p] "|" place[p] "|" to[s] "|" (place[p] in vacate)
    if (kind[s] == "M" && !(place[p] in vacate)) exit # one at a time: its node closes for it
  }
  if (batch) exit
  for (p in place) if (leaving[p] && !(("-" uid[p]) in is_done) && (no_room || place[p] in vacate && !skipped[place[p]] && !stays[p])) {
    print "wait|leaving|-" uid[p] "|" p "|" place[p]; exit
  }
  if (no_room) { p = step[no_room]; print "full|" uid[p] "|" p "|" place[p]; exit }
  if (count) {
    p = step[todo[1]]
    print "wait|" (retry_at[uid[p]] > now ? "refused" : "unready") "|" uid[p] "|" p "|" place[p]; exit
  }
  for (u in lacks_ready) { print "wait|short|" u "|" about[u] "|" ready_pods[u] + 0 "|" before[u]; exit }
  print "done"
}'
view() { # <question>
  printf '%s\n' "$steps" | cat - "$tmp/memo" "$tmp/nodes" "$tmp/pods" |
    awk -v question="$1" -v skip="$skip" -v started="$started" -v all_moves="$all_moves" -v at_once="$at_once" \
      -v nothing_evicted="$nothing_evicted" -v now="$(date +%s)" "$view_program"
}
remember() { printf '%s\n' "$*" >>"$tmp/memo"; }
rows() { awk -F'|' -v kind="$1" '$1 == kind && (text = '"$2"') != "" { print text }' "$tmp/facts"; } # <kind> <text>
sorted() { sort -u | tr '\n' ' '; }
names() { say "$1" | cut -d'|' -f1 | sorted; }
nodes() { printf '%s\n' "$steps" | awk -F'|' -v kind="$1" '$1 == kind { print $2 }'; }
in_steps() { printf '%s\n' "$steps" | grep -qxF "$1|$2"; }

# ---- Cordons. The mark on a node says which plan cordoned it, and whether it was cordoned before.

cordon() { # <node...>: in one call those that are there, each only if it is as it was seen
  renew
  tries=0 said=''
  while :; do
    : >"$tmp/cordons"
    names=''
    while IFS='|' read -r node closed mark uid version <&4; do
      case $mark in
      '')
        [ -n "$node" ] || continue
        names="$names $node"
        {
          printf -- '---\n{"apiVersion":"v1","kind":"Node","spec":{"unschedulable":true},"metadata":{"name":"%s",' "$node"
          printf '"uid":"%s","resourceVersion":"%s",' "$uid" "$version"
          printf '"annotations":{"gpusched/plan":"%s %s"}}}\n' "$plan" "${closed:-false}"
        } >>"$tmp/cordons"
        ;;
      "$plan "*) [ "$closed" = true ] || give_up "$node" 'it was uncordoned meanwhile' ;;
      *) stop "node $node belongs to plan ${mark%% *}; undo that first" ;;
      esac
    done 4<<END
$(awk -F'|' -v of=" $* " '$1 == "N" && index(of, " " $2 " ") { print $2 "|" $3 "|" $8 "|" $9 "|" $10 }' "$tmp/nodes")
END
    [ -n "$names" ] || break
    said=${said:-$names} cordoned="$cordoned$names" tries=$((tries + 1))
    call "the nodes" k apply --server-side --force-conflicts --validate=false --field-manager=gpusched \
      -f "$tmp/cordons" && break
    # Another change came between, or the node was removed.
    [ "$tries" -lt 10 ] && grep -q 'has been modified\|uid mismatch\|(NotFound)\|(Conflict)' "$tmp/error" || stop "the nodes: $answer"
    list nodes
  done
  [ -z "$said" ] || say "cordoned$said"
}
# Among these nodes, or among all if none is named, those that this plan marked: `true` if cordoned before.
marked() { # <true or false> [node...]
  was=$1
  shift
  awk -F'|' -v mark="$plan $was" -v of=" $* " '
    $8 == mark && (of == "  " || index(of, " " $2 " ")) { print $2 }' "$tmp/nodes" | tr '\n' ' '
}
release() { # [node...]: as they were before the plan
  [ $# -gt 0 ] || return 0
  list nodes
  for node in "$@"; do cut -d'|' -f2 "$tmp/nodes" | grep -qxF "$node" || say "node $node is gone"; done
  change='{"metadata":{"annotations":{"gpusched/plan":null}}'
  for was in true false; do
    names=$(marked "$was" "$@")
    [ -n "$names" ] || continue
    [ "$was" = true ] && spec='' || spec=',"spec":{"unschedulable":null}'
    call "the nodes" k patch node $names --type merge -p "$change$spec}" ||
      case $answer in *"(NotFound)"*) ;; *) stop "the nodes: $answer" ;; esac
    if [ "$was" = true ]; then say "cordoned, as before: ${names% }"; else say "uncordoned ${names% }"; fi
  done
}
give_up() { # <node> <reason>
  say "left out: node $1: $2"
  skip="$skip $1"
  release "$1"
}
unwind() { [ -z "$cordoned" ] || release $cordoned; }

# ---- Approvals, all before the first eviction.

facts() {
  look
  view facts >"$tmp/facts"
  found=$(rows there '$7 ? "" : 1' | grep -c . || :)
  all=$((found + $(grep -c '^elsewhere' "$tmp/facts" || :)))
  rows elsewhere '"pod " $2 " is " ($4 == "" ? "gone" : "on " $4) ", not on the node of the plan " $3'
  say "Where the plan takes them from: $found of $(counted "$all" pod)."
}
leave_out() { # <reason> <pod|node|uid...>
  printf '%s\n' "$2" | cut -d'|' -f3 | sed 's/^/L|/' >>"$tmp/memo"
  for node in $(printf '%s\n' "$2" | cut -d'|' -f2 | sorted); do
    ! in_steps V "$node" || give_up "$node" "$1"
  done
  view facts >"$tmp/facts"
}
# Asks about the pods with this property; if they are not approved, their nodes are left out for the reason.
approve_those() { # <condition> <answer that GPUSCHED_YES=1 gives> <question> <reason>
  those=$(rows there "$1"' ? $2 "|" $3 "|" $4 : ""')
  [ -z "$those" ] || ask "$2" 'skip their nodes' "$3: $(names "$those")" || leave_out "$4" "$those"
}
approve() {
  unplanned=$(rows unplanned '$2 "|" $3 "|"')
  if [ -n "$unplanned" ]; then
    ask y '' "Not in the plan; no ReplicaSet or StatefulSet replaces them, or they have local data, a protecting annotation," \
      "or constraints that this script does not judge. Their nodes are left out: $(names "$unplanned")"
    leave_out 'it has pods that are not in the plan' "$unplanned"
  fi
  [ -n "${GPUSCHED_BARE_PODS:-}" ] ||
    approve_those '$5 == ""' s 'Without a controller, lost when evicted (GPUSCHED_BARE_PODS=1)' 'a pod there would be lost'
  approve_those '$9' s 'An annotation protects them from eviction' 'a pod there is protected'
  approve_those '$8' y "Disruption budgets allow no eviction now; each is tried for $wait_s s, then its node is given up" \
    'a disruption budget refuses'
  nodes E >"$tmp/make_room"
  room=$(rows there '$2' | grep -cxFf "$tmp/make_room" || :)
  pods=$(rows there '$2 "/" $5 "/" $6' | awk -F/ -v room="$room" '
    function counted(number, noun) { return number " " noun (number == 1 ? "" : "s") }
    $3 != "" { owners[$1, $3, $4] }
    { spaces[$1]; gpus += $NF; jobs += $3 == "Job" }
    END {
      for (i in spaces) ++s; for (i in owners) ++o
      if (!NR) exit
      print "Evicts " counted(NR, "pod") (o ? " of " counted(o, "owner") : "") " in " counted(s, "namespace") ", " \
        counted(gpus, "GPU") ". kube-scheduler chooses the nodes of"
      print "replacements, which may differ from the plan."
      if (jobs) print "Pods of Jobs, which count it as a failure unless their podFailurePolicy ignores DisruptionTarget: " jobs "."
      if (room) print "Pods that make room, with no place planned for their replacements: " room "."
    }')
  added=$(rows there '$7 ? $2 : ""' | sorted)
  [ -z "$added" ] || pods="$pods
Of them, not in the plan, because they started on these nodes since: $added"
  [ -z "$pods" ] || ask y '' "$pods"
}

# ---- Carrying it out.

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
    $3 != "" { left = $4 == "" ? $3 : $4 - $5; print (left < $3 ? left : $3) }')
}
record() {
  if [ -z "$before" ]; then
    known=$({ grep '^O' "$tmp/facts" || :; rows there '$7 ? "G|" $4 : ""'; broken_budgets; } | tr '\n' ';')
    patch_lease "$me" ";$known" || { error=$answer && unwind && stop "the lock: $error"; }
    read_lease
    remember_before
  fi
}
remember_before() {
  printf '%s\n' "$before" | tr ';' '\n' >>"$tmp/memo"
  nothing_evicted=1
  [ -z "$before" ] || nothing_evicted=0
}
delete_by_eviction() { # <namespace/pod> <uid>
  printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":"%s","name":"%s"},
    "deleteOptions":{"preconditions":{"uid":"%s"}}}' "${1%%/*}" "${1#*/}" "$2" |
    k create --raw "/api/v1/namespaces/${1%%/*}/pods/${1#*/}/eviction" -f -
}
evict() { # <kind> <namespace/pod> <uid> <node> <target> <vacates its node>
  case "$1 $skip " in "M "*" $4 "*) return ;; esac # given up since the look
  renew
  [ "$1$6" != M0 ] || { cordon "$4" && closed=$4; }
  if call "pod $2" delete_by_eviction "$2" "$3"; then
    remember "L|$3"
    since=$(date +%s)
    say "evicted $2 from $4${5:+ (the plan wants $5)}"
  else
    case $answer in
    *NotFound* | *Conflict* | *"Precondition failed"*) remember "L|$3" && say "pod $2 is gone already" ;;
    *"disruption budget"*)
      [ "$late" = 0 ] || { drop "$3" "$2" "$4" "refused for $wait_s s" && return; }
      remember "R|$3|$(($(date +%s) + 2 * ${poll_s%.*}))"
      say "set aside: $2: $answer"
      ;;
    *) drop "$3" "$2" "$4" "$answer" ;;
    esac
  fi
}
drop() { # <uid> <pod> <node> <reason>
  remember "L|$1"
  if in_steps V "$3"; then give_up "$3" "pod $2: $4"; else say "left alone: pod $2: $4"; fi
}
# Replacements do not start: says why, and gives back a node of the plan that has room for them.
trouble() { # <what it waits for>
  say "After $wait_s s: $1."
  stuck=$1
  k get pods --all-namespaces --field-selector=status.phase=Pending -o 'go-template={{range .items}}{{$p := .}}
    {{- range .metadata.ownerReferences}}{{$o := .uid}}{{range $p.status.conditions}}
    {{- if eq .type "PodScheduled"}}{{$o}} pending: {{$p.metadata.namespace}}/{{$p.metadata.name}}: {{
    or .message "bound, not running"}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}' |
    while read -r uid line; do ! grep -q "^O|$uid|" "$tmp/memo" || say "$line"; done
  printf '%s\n' "$steps" | cat - "$tmp/memo" "$tmp/pods" | awk -F'|' -v started="$started" '
    $1 == "M" { target[$4] } $1 == "O" { ours[$2] } $1 == "P" { split($8, o, "/") }
    $1 == "P" && $7 > started && $4 in target && !(o[3] in ours) { print "took room: " $2 " on " $4 }'
  [ "$stuck" != "$returned" ] || return 1 # others took the room of the node that was given back
  spare=$(view returnable)
  [ -n "$spare" ] || return 1
  answer=s
  [ -n "${GPUSCHED_YES:-}" ] || prompt "s: leave out node $spare, w: wait on, anything else: stop. "
  case $answer in
  s) give_up "$spare" 'replacements get their room back' && returned=$stuck ;;
  w) ;;
  *) stop "$1" ;;
  esac
  since=$(date +%s)
}
carry_out() {
  since=$(date +%s) returned=''
  while :; do
    look
    view next >"$tmp/next"
    if [ -n "$closed" ] && ! grep -q '^wait|[pm]' "$tmp/next"; then
      # The move from a node that stays has ended: the node opens, unless it stays closed to the end.
      in_steps H "$closed" || release "$closed"
      closed=''
      continue
    fi
    while IFS='|' read -r what a b c d e f <&3; do
      late=$(($(date +%s) - since >= wait_s))
      case $what/$a in
      evict/*) evict "$a" "$b" "$c" "$d" "$e" "$f" ;;
      full/*) drop "$a" "$b" "$c" "no open node takes it now" ;;
      wait/missing)
        wanted_replicas "${c%%/*}" "$b" "${c#*/}"
        if [ -n "$replicas" ] && [ "$replicas" -lt "$e" ]; then
          say "$c wants $(counted "$replicas" pod) now, and had $e"
          remember "O|$b|$replicas|${c%%/*}|${c#*/}|$replicas"
        elif [ "$late" = 1 ]; then
          trouble "$c has $d of $(counted "$e" pod)" || return 0
        else
          pause
        fi
        ;;
      wait/*)
        if [ "$late" = 0 ]; then
          pause
        else
          case $a in
          pending | short) trouble "$c has $d of $(counted "$e" pod) ready" || return 0 ;;
          *) drop "$b" "$c" "$d" "$a for $wait_s s" ;;
          esac
        fi
        ;;
      done/) return 0 ;;
      esac
    done 3<"$tmp/next"
  done
}
# Ends the run if the plan makes room for pending pods, none of which is pending any more.
end_if_none_waits() {
  [ -n "$(nodes W)" ] || return 0
  look
  [ -z "$(view facts | awk -F'|' '$1 == "served" && $3 == ""')" ] || return 0
  say "Nothing is evicted: no pod is pending that the plan makes room for:" \
    "$(view facts | awk -F'|' '$1 == "served" { print $2 " (" $3 ")" }' | sorted)"
  release $(marked true) $(marked false)
  steps=$(printf '%s\n' "$steps" | grep '^W')
  carry_out # waits for the replacements of a run that was interrupted
  finish
}
# Looks at the end: what is empty, what is pending, which budgets are broken that were not.
finish() {
  look
  view left >"$tmp/left"
  release $(nodes H)
  for node in $(awk -F'|' '$2 > 0 && !$3 { print $1 }' "$tmp/left"); do
    give_up "$node" 'it still has pods'
  done
  late=$(($(date +%s) + wait_s)) bad=''
  for step in $(printf '%s\n' "$steps" | grep '^W' || :); do
    pod=${step#W|} wants=${step##*|}
    pod=${pod%|*}
    while :; do
      call "pod $pod" k -n "${pod%%/*}" get pod "${pod#*/}" -o 'jsonpath={.spec.nodeName}' || { say "pending pod $pod: $answer" && bad=1 && break; }
      [ -n "$answer" ] || [ "$(date +%s)" -ge "$late" ] || { pause && continue; }
      say "$pod is on ${answer:-no node} (the plan wants $wants)"
      [ -n "$answer" ] || bad=1
      break
    done
  done
  while look; do
    new=$(broken_budgets | grep -vxFf "$tmp/memo" || :)
    [ -n "$new" ] && [ "$(date +%s)" -lt "$late" ] || break
    pause
  done
  view left >"$tmp/left"
  free=$(awk -F'|' '!$3 && !$2 { print $1 }' "$tmp/left" | sorted)
  full=$(awk -F'|' '$3 || $2 { print $1 }' "$tmp/left" | sorted)
  waits=$(view next | awk -F'|' '$2 ~ /pending|missing|short/ { print $4 " (" $5 " of " $6 ")" }')
  [ -z "$free" ] || say "Vacated, cordoned until sh $0 undo: $free"
  [ -z "$full" ] || say "Not vacated: $full"
  [ -z "$waits" ] || say "Replacements that are not ready: $waits"
  [ -z "$new" ] || say "Disruption budgets that are broken now: $(say "$new" | cut -d'|' -f2 | sorted)"
  if [ -z "$full$waits$new$bad" ]; then say "The plan is carried out."; exit 0; fi
  offer
  [ -n "$free" ] || [ "$nothing_evicted$(nodes V)" = 0 ] || exit 1
  say "The plan is carried out in part."
  exit 3
}
run() {
  printf '%s\n' "$steps" | grep -q '|' || { say 'The plan has no steps.' && exit 0; }
  # Moves from nodes that stay are for pending pods. To empty nodes, they would cost evictions for little:
  # kube-scheduler need not use the room that they make for the pods that need it.
  [ -n "$(nodes V)" ] && [ -z "$(nodes W)" ] || all_moves=1
  remember_before
  say "Context $(k config current-context 2>/dev/null || say 'not known')."
  list nodes
  end_if_none_waits
  wanted=''
  for node in $(nodes V) $([ "$all_moves" = 0 ] || nodes H); do
    case " $skip " in *" $node "*) ;; *) wanted="$wanted $node" ;; esac
  done
  cordon $wanted # before the pods are listed, so that few pods reach these nodes
  facts
  lost=$(rows missing '$2' | sorted)
  [ -z "$lost" ] || say "Nodes that are gone: $lost"
  [ -z "$lost" ] || [ "$lost" != "$(nodes V | sorted)" ] || { unwind && stop "the nodes to be vacated are not in this cluster"; }
  approve
  end_if_none_waits # any more after the questions
  record
  carry_out
  finish
}
wrong() {
  say "$*" >&2
  exit 2
}
main() {
  action=${1:-run}
  trap leave EXIT
  trap 'offer >&2; exit 130' INT HUP TERM
  : >"$tmp/memo"
  started='' before='' nothing_evicted=0 usage="usage: sh $0 [run | check | skip NODE... | undo [NODE...]]"
  for number in "wait_s $wait_s" "lease_s $lease_s" "at_once $at_once"; do
    case ${number#* } in
    '' | *[!0-9]* | 0* | ??????????*) wrong "${number%% *}: '${number#* }' is not a whole number above 0" ;;
    esac
  done
  case $poll_s in '' | .* | *[!0-9.]* | *.*.*) wrong "poll_s: '$poll_s' is not a number of seconds" ;; esac
  [ $# -eq 0 ] || shift
  case $action in
  run | check) [ $# -eq 0 ] || wrong "$action: '$1' is not expected; $usage" ;;
  skip)
    [ $# -gt 0 ] || wrong 'skip: name the nodes'
    for node in "$@"; do in_steps V "$node" || wrong "skip: the plan does not vacate a node '$node'"; done
    ;;
  undo)
    for node in "$@"; do in_steps V "$node" || in_steps H "$node" || wrong "undo: the plan cordons no node '$node'"; done
    ;;
  *) wrong "'$action' is not expected; $usage" ;;
  esac
  # Later calls wait for a server that does not answer. The first one tells a wrong address or context at once.
  ${KUBECTL:-kubectl} --request-timeout=5s get --raw /version >/dev/null 2>"$tmp/error" ||
    grep -q '(Forbidden)' "$tmp/error" || stop "the API server cannot be reached: $(tail -n 1 "$tmp/error")"
  [ "$action" = check ] || lock
  case $action in
  check)
    nothing_evicted=1
    facts
    odd="$(rows elsewhere 1)$(rows missing 1)$(rows unplanned 1)$(rows there '$7 ? 1 : ""')$(rows served '$3')"
    budget=$(rows there '$8 ? $2 : ""' | sorted)
    rows missing '"node " $2 " is not in this cluster"'
    rows served '$3 == "" ? "" : "pod " $2 " is " $3 ", not pending"'
    rows unplanned '"pod " $2 " on " $3 " is not in the plan"'
    rows there '$7 ? "pod " $2 " on " $3 " is not in the plan" : ""'
    [ -z "$budget" ] || say "Disruption budgets allow no eviction now: $budget"
    [ -z "$odd$budget" ] || exit 3
    ;;
  undo)
    list nodes
    release ${*:-$(marked true) $(marked false)}
    [ $# -gt 0 ] || { k -n "$lease_namespace" delete lease gpusched >/dev/null && held=''; }
    ;;
  *)
    for node in "$@"; do give_up "$node" 'as told'; done
    run
    ;;
  esac
}
