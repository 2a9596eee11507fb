#!/bin/sh
# A node's pod. `node.sh serve` is the container's first process: it runs what ORDER says and tells in the container's
# log what became of it. `node.sh shell` answers questions, one a line. POSIX sh and coreutils: any image has them.

base=/roachproof/node order=/roachproof/node/order home=/roachproof/node/home

serve() {
  if ! said=$(mkdir -p "$home/store" "$home/logs" "$base/programs" 2>&1); then
    echo "roachproof failed the volume cannot be written: $said"
    exit 1
  fi
  # A kubelet that gives a volume to our group (fsGroup) lets it read and write all files: databases refuse such keys.
  chmod -R go= "$home"
  # A container that is made anew in its pod was ended by something: what ran in it stays down until it is started.
  [ -z "$ROACHPROOF_POD" ] || [ "$ROACHPROOF_POD" != "$(cat "$base/pod" 2>/dev/null)" ] || rm -f "$order"
  echo "$ROACHPROOF_POD" >"$base/pod"
  rm -f "$base/running" # of a former pod
  child='' ending=''
  trap 'ending=1; [ -z "$child" ] || kill -TERM "$child"' TERM INT
  trap '[ -z "$sleeping" ] || kill "$sleeping"' USR1 # an order came
  echo "roachproof ready"
  while [ -z "$ending" ]; do
    if [ -f "$order" ]; then
      : >"$base/idle"
      : >"$base/running"
      : >"$base/ran"
      before=$(killed_for_memory)
      sh "$order" &
      child=$!
      echo "roachproof started $child"
      [ -z "$ending" ] || kill -TERM "$child" # came before there was a child to tell
      await "$child"
      child='' by=''
      rm -f "$base/running"
      [ "$code" != 137 ] || [ "$(killed_for_memory)" = "$before" ] || by=memory
      [ -z "$ending" ] || by=pod
      # It stays while the pod is ended from outside: the next one goes on with it. Once the end is told, another may come.
      [ -n "$ending" ] || rm -f "$order"
      echo "roachproof exited $code $by"
    else
      sleep 3600 &
      sleeping=$! child=$!
      echo "$sleeping" >"$base/idle"
      # What came before there was something to end is seen here.
      [ -n "$ending" ] || [ -f "$order" ] || wait "$sleeping"
      kill -KILL "$sleeping" 2>/dev/null
      sleeping='' child=''
    fi
  done
}

killed_for_memory() { # how many processes of this container the kernel ended so far, as it had no memory for them
  grep -hs '^oom_kill ' /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control
}

await() { # a process to its end: signals that are trapped interrupt `wait`
  while :; do
    wait "$1"
    code=$?
    kill -0 "$1" 2>/dev/null || break
  done
}

runs() { # whether what was ordered runs, if anything ever was: by this Kubernetes knows whether it may evict another pod
  [ -f "$base/running" ] || [ ! -f "$base/ran" ]
}

members() { # What the node is: all processes but this container's first one and what was brought in from outside.
  for stat in /proc/[0-9]*/stat; do
    read -r line <"$stat" 2>/dev/null || continue
    rest=${line##*) }
    state=${rest%% *} rest=${rest#* }
    eval "parent_${line%% *}=${rest%% *} state_${line%% *}=$state"
    pids="$pids ${line%% *}"
  done
  read -r idle <"$base/idle" 2>/dev/null
  for pid in $pids; do
    eval "parent=\$parent_$pid state=\$state_$pid"
    [ "$pid" = 1 ] || [ "$pid" = "$idle" ] || [ "$state" = Z ] || [ "$state" = X ] && continue
    while [ "$parent" -gt 1 ]; do eval "parent=\${parent_$parent:-1}"; done
    [ "$parent" = 0 ] || echo "$pid $state"
  done
}

signalled() { # SIGNAL PATTERN: to every member, until all that live are in a state that matches
  tries=0
  while [ "$tries" -lt 400 ]; do
    tries=$((tries + 1)) left=''
    for member in $(members | tr ' ' ,); do
      case ${member#*,} in
      $2) ;;
      *)
        left="$left $member"
        kill "-$1" "${member%,*}" 2>/dev/null
        ;;
      esac
    done
    [ -n "$left" ] || return 0
    sleep 0.05
  done
  echo "still there:$left" >&2
  return 1
}

bring() { # MARK SCRIPT: a command to its end. Through files: what it leaves running would hold its pipes open.
  at=$base/run-$1
  sh -c "$2" >"$at.out" 2>"$at.err" </dev/null
  code=$?
  end_brought "$1"
  cat "$at.out"
  cat "$at.err" >&2
  return $code
}

brought() { # MARK: what a command that was brought in left running; its mark is the first of its variables
  grep -l "^ROACHPROOF_RUN=$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}

end_brought() { # MARK
  while left=$(brought "$1") && [ -n "$left" ]; do
    kill -KILL $left 2>/dev/null
    sleep 0.02
  done
}

forget_brought() { # MARK: its end, however that came
  end_brought "$1"
  rm -f "$base/run-$1".*
}

cpu() { # nanoseconds that all processes of this container have used
  if [ -f /sys/fs/cgroup/cpu.stat ]; then
    while read -r key value; do [ "$key" = usage_usec ] && echo "${value}000"; done </sys/fs/cgroup/cpu.stat
  else
    cat /sys/fs/cgroup/cpuacct/cpuacct.usage
  fi
}

limits() { # QUOTA PERIOD MEMORY
  if [ -f /sys/fs/cgroup/cpu.max ]; then
    echo "$(cat /sys/fs/cgroup/cpu.max) $(cat /sys/fs/cgroup/memory.max)"
  else
    cd /sys/fs/cgroup && echo "$(cat cpu/cpu.cfs_quota_us) $(cat cpu/cpu.cfs_period_us) $(cat memory/memory.limit_in_bytes)"
  fi
}

shell() { # NUMBER QUESTION a line; answered by NUMBER, exit code, and what it said, in base64
  while read -r number question; do
    said=$(eval "$question" 2>&1 </dev/null)
    code=$?
    printf '%s %s %s\n' "$number" "$code" "$(printf %s "$said" | base64 | tr -d '\n')"
  done
}

"$@"
