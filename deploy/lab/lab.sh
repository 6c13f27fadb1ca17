#!/usr/bin/env bash
# The whole road on one machine: two real BIRDs (an eBGP top-of-rack router and another node over iBGP), the agent with the
# manifests of deploy/examples, and a VPP: the one that VPP_BIN names, else the simulated one.
#
#   deploy/lab/lab.sh PEREGRINE          show peers, routes and VPP's state as they change; keys to try things out
#   ONCE=1 deploy/lab/lab.sh PEREGRINE   print the final tables; exit 0 only if every expected route arrived
#
# Everything lives in namespaces (network, mount, process) that vanish with the script, and in one temporary folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH=$PATH:/usr/sbin:/sbin

if [ "${1:-}" != --inside ]; then
    peregrine=$(realpath "${1:?usage: lab.sh PEREGRINE}")
    if [ "$(id -u)" != 0 ]; then
        echo "The lab makes network namespaces, which needs root: sudo env \"PATH=\$PATH\" make run (the PATH finds your own Rust)" >&2
        exit 1
    fi
    if [ -n "${VPP_BIN:-}" ] && ! { [ -f "$VPP_BIN" ] && [ -x "$VPP_BIN" ]; }; then
        echo "VPP_BIN=$VPP_BIN is no program. Name VPP's binary, such as /usr/bin/vpp, or leave VPP_BIN out for the simulated one." >&2
        exit 1
    fi
    lab=$(mktemp -d "${TMPDIR:-/tmp}/peregrine-lab.XXXXXX")
    trap 'rm -rf "$lab"' EXIT
    # The namespaces end with this script, and all processes in them, however it ends.
    status=0
    unshare --net --mount --pid --fork --kill-child --mount-proc --propagation private \
        "${BASH_SOURCE[0]}" --inside "$lab" "$peregrine" || status=$?
    exit $status
fi

lab=$2 peregrine=$3
once=${ONCE:-}
cd "$lab"
declare -A pids

# --- the network: three hosts on one link -------------------------------------------------------------------------

build_network() {
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    ip link set lo up
    ip link add br0 type bridge
    ip link set br0 up
    local name address
    while read -r name address; do
        ip netns add "$name"
        ip -n "$name" link set lo up
        ip link add "v-$name" type veth peer name eth0 netns "$name"
        ip link set "v-$name" master br0 up
        # A read-only /proc/sys only costs a second of duplicate address detection.
        ip netns exec "$name" sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.eth0.accept_dad=0 2>/dev/null || true
        ip -n "$name" addr add "192.0.2.$address/24" dev eth0
        ip -n "$name" addr add "2001:db8:1::$address/64" dev eth0 nodad
        ip -n "$name" link set eth0 up
    done <<'HOSTS'
node-a 1
node-b 2
tor 254
HOSTS
}

# --- the neighbours -----------------------------------------------------------------------------------------------

bird_conf() { # host's last octet, AS number, IPv4 routes, IPv6 routes
    local octet=$1 asn=$2 route
    echo "log stderr all; router id 192.0.2.$octet; protocol device { }"
    echo "protocol static static4 { ipv4;"
    for route in $3; do echo "  route $route blackhole;"; done
    echo "}"
    echo "protocol static static6 { ipv6;"
    for route in $4; do echo "  route $route blackhole;"; done
    echo "}"
    local timers="hold time 9; keepalive time 3; connect delay time 1; connect retry time 1; error wait time 1, 2;"
    echo "protocol bgp node_a_v4 { local 192.0.2.$octet as $asn; neighbor 192.0.2.1 as 64512; $timers"
    echo "  ipv4 { import all; export where source = RTS_STATIC; next hop self; }; }"
    echo "protocol bgp node_a_v6 { local 2001:db8:1::$octet as $asn; neighbor 2001:db8:1::1 as 64512; $timers"
    echo "  ipv6 { import all; export where source = RTS_STATIC; next hop self; }; }"
}

start_bird() { # host
    rm -f "$1.ctl"
    ip netns exec "$1" bird -f -c "$1.conf" -s "$1.ctl" -P "$1.pid" >>"$1.log" 2>&1 </dev/null &
    pids[$1]=$!
}

birdc_on() { # host, command
    local host=$1
    shift
    birdc -s "$lab/$host.ctl" "$@" | tail -n +2
}

# --- VPP and the agent --------------------------------------------------------------------------------------------

start_vpp() {
    rm -f vpp.sock
    if [ -n "${VPP_BIN:-}" ]; then
        cat >startup.conf <<VPP
unix { nodaemon nosyslog nobanner cli-listen $lab/cli.sock runtime-dir $lab log $lab/vpp-cli.log exec $lab/uplink.vpp }
api-segment { prefix peregrine-lab }
socksvr { socket-name $lab/vpp.sock }
statseg { socket-name $lab/stats.sock size 64M }
memory { main-heap-size 1G main-heap-page-size 4k }
buffers { buffers-per-numa 2048 page-size 4k }
${VPP_PLUGINS:+plugins { path $VPP_PLUGINS \}}
VPP
        cat >uplink.vpp <<VPP
create loopback interface
set interface state loop0 up
set interface ip address loop0 192.0.2.1/24
set interface ip address loop0 2001:db8:1::1/64
VPP
        ip netns exec node-a "$VPP_BIN" -c startup.conf >>vpp.log 2>&1 </dev/null &
    else
        ip netns exec node-a "$peregrine" vpp-sim --socket "$lab/vpp.sock" --control "$lab/vpp-control.sock" \
            --interface host-eth0=192.0.2.1/24,2001:db8:1::1/64 >>vpp.log 2>&1 </dev/null &
    fi
    pids[vpp]=$!
}

start_agent() {
    rm -f peregrine.sock
    ip netns exec node-a "$peregrine" agent --config "$lab/agent.yaml" >>agent.log 2>&1 </dev/null &
    pids[agent]=$!
}

stop() { # name, signal
    kill "-$2" "${pids[$1]}" 2>/dev/null || true
    wait "${pids[$1]}" 2>/dev/null || true
}

ask() { "$peregrine" "$@" --socket "$lab/peregrine.sock"; }

vpp_routes() { # what VPP itself says, not what the agent thinks
    if [ -n "${VPP_BIN:-}" ]; then
        local vppctl=${VPPCTL:-$(dirname "$VPP_BIN")/vppctl} family
        for family in ip ip6; do "$vppctl" -s "$lab/cli.sock" show "$family" fib; done | tr -d '\r'
    else
        "$peregrine" vpp-sim --show "$lab/vpp-control.sock"
    fi
}

# The routes that the agent put into VPP, a line each, from VPP's own answer.
own_routes() {
    if [ -n "${VPP_BIN:-}" ]; then
        # The prefixes of the RIB, each with the adjacencies that VPP resolves it to, outermost last.
        vpp_routes | awk -v "wanted=$(ask routes loc-rib all | grep -oE '[0-9a-f.:]+/[0-9]+' | paste -sd' ')" '
            function tell() { if (prefix in ours) printf "%-22s%s\n", prefix, how == "" ? " drop" : how; how = "" }
            BEGIN { split(wanted, list, " "); for (at in list) ours[list[at]] = 1 }
            /^[^ ]/ { tell(); prefix = $1 }
            match($0, /via [^ ]+ [a-z]+[0-9]+/) { how = how " " substr($0, RSTART, RLENGTH) }
            END { tell() }'
        return
    fi
    vpp_routes | awk -F'"' '
        $2 == "paths"     { kind = through = via = "" }
        $2 == "kind"      { kind = $4 }
        $2 == "interface" { through = " " $4 }
        $2 == "next_hop"  { via = " " $4 }
        $2 == "prefix"    { prefix = $4 }
        $2 == "source" && $4 == "peregrine" { own[++count] = sprintf("%-22s%s%s%s", prefix, kind, through, via) }
        $2 == "table_id" && length($1) == 6 { gsub(/[^0-9]/, "", $3); for (at = 1; at <= count; at++) print own[at] ($3 == 0 ? "" : "  (table " $3 ", the pods'"'"' own)"); count = 0 }'
}

# --- what has to be true in the end -------------------------------------------------------------------------------

tor_routes="203.0.113.0/24 198.51.100.0/24 2001:db8:f000::/36"
node_b_routes="10.244.2.0/26 10.245.2.0/26 fd00:10:244:2::/122"
our_blocks4="10.244.1.0/26 10.245.1.0/26"
our_blocks6="fd00:10:244:1::/122"

missing() { # one line for each thing that has not arrived yet
    local prefix host state
    state=$(vpp_routes 2>&1) || { echo "VPP does not answer"; return; }
    for prefix in $tor_routes $node_b_routes; do
        grep -qF -- "$prefix" <<<"$state" || echo "$prefix is not in VPP"
    done
    for host in tor node-b; do
        for prefix in $our_blocks4 $our_blocks6; do
            birdc_on "$host" show route "$prefix" 2>/dev/null | grep -qF "$prefix" || echo "$prefix is not in the BIRD on $host"
        done
    done
}

tables() {
    echo "── peers"
    ask peers || true
    echo "── routes"
    ask routes || true
    ask routes loc-rib ipv6-unicast || true
    echo "── VPP objects"
    ask vpp || true
    echo "── the agent's routes, as VPP tells them"
    own_routes || true
    echo "── our blocks at the top-of-rack BIRD"
    birdc_on tor show route protocol node_a_v4 || true
    birdc_on tor show route protocol node_a_v6 || true
}

# Uptimes and ages change all the time; they are no news.
without_clocks() { sed -E 's/[0-9]+(ms|[smhd])([0-9]+[smh])*//g; s/[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?//g; s/ +/ /g'; }

await() { # seconds, command that prints what is missing
    local deadline=$((SECONDS + $1)) left
    shift
    while left=$("$@") && [ -n "$left" ]; do
        if [ $SECONDS -ge "$deadline" ]; then
            echo "$left"
            return 1
        fi
        read -r -t 0.2 <> <(:) || true
    done
}

# --- keys ---------------------------------------------------------------------------------------------------------

extra=0
help() {
    cat <<'KEYS'

  a  announce one more route in the top-of-rack BIRD     w  withdraw it
  k  kill the top-of-rack BIRD, or start it again         r  restart the agent (kill -9)
  v  restart VPP with an empty state                      b  take away one of our blocks, or give it back
  t  show the tables now                                  q  leave
KEYS
    echo "  From another terminal: nsenter -t \$(pgrep -nf 'lab.sh --inside') -a; then birdc -s $lab/tor.ctl, $peregrine peers --socket $lab/peregrine.sock"
    echo "  Manifests to edit: $lab/manifests   Logs: $lab/*.log"
}

press() {
    case $1 in
        a) extra=$((extra + 1)); reconfigure_tor ;;
        w) [ "$extra" -gt 0 ] && extra=$((extra - 1)); reconfigure_tor ;;
        k)
            if kill -0 "${pids[tor]}" 2>/dev/null; then echo "killing BIRD on tor"; stop tor KILL; else echo "starting BIRD on tor"; start_bird tor; fi
            ;;
        r) echo "killing the agent and starting it again"; stop agent KILL; start_agent ;;
        v) echo "restarting VPP"; stop vpp KILL; start_vpp ;;
        b)
            local block=$lab/manifests/blocks.yaml
            if [ -e "$block" ]; then echo "removing blocks.yaml"; mv "$block" "$lab/blocks.away"; else echo "putting blocks.yaml back"; mv "$lab/blocks.away" "$block"; fi
            ;;
        t) tables ;;
        q) return 1 ;;
        *) help ;;
    esac
}

reconfigure_tor() {
    local routes="203.0.113.0/24 198.51.100.0/24" number
    for number in $(seq 1 "$extra"); do routes+=" 198.18.$number.0/24"; done
    echo "BIRD on tor now announces: $routes"
    bird_conf 254 65000 "$routes" "2001:db8:f000::/36" >tor.conf
    birdc_on tor configure >/dev/null || true
}

# --- the show -----------------------------------------------------------------------------------------------------

cp -r "$here/../examples/manifests" manifests
sed -e "s|/etc/peregrine/manifests|$lab/manifests|; s|/var/run/vpp/vpp-api.sock|$lab/vpp.sock|; s|/var/run/peregrine/peregrine.sock|$lab/peregrine.sock|; s|/var/lib/peregrine|$lab/state|" \
    "$here/../examples/agent.yaml" >agent.yaml
[ -z "${VPP_BIN:-}" ] || sed -i 's/uplink: host-eth0/uplink: loop0/' agent.yaml
bird_conf 254 65000 "203.0.113.0/24 198.51.100.0/24" "2001:db8:f000::/36" >tor.conf
bird_conf 2 64512 "10.244.2.0/26 10.245.2.0/26" "fd00:10:244:2::/122" >node-b.conf
build_network
start_bird tor
start_bird node-b
start_vpp
start_agent

if [ -n "$once" ]; then
    if left=$(await 60 missing); then
        tables
        echo
        echo "BIRD's routes are in VPP, and our blocks are in both BIRDs."
        exit 0
    fi
    tables
    echo
    echo "After 60 seconds:"
    echo "$left"
    echo "── the end of agent.log"
    tail -n 30 agent.log
    echo "── the end of vpp.log"
    tail -n 30 vpp.log
    exit 1
fi

# Everything at first, and then the lines that came (+) and went (-), below the heading of their table.
changes() { # before, after: both without clocks
    diff -U 1000 <(printf '%s\n' "$1") <(printf '%s\n' "$2") | awk '
        NR <= 3 { next }
        { line = substr($0, 2) }
        line ~ /^──/ { heading = line; told = 0; next }
        /^[-+]/ { if (!told) { print heading; told = 1 }; print substr($0, 1, 1) " " line }' || true
}

help
shown=""
while true; do
    now=$(tables 2>&1)
    plain=$(without_clocks <<<"$now")
    if [ -z "$shown" ]; then
        printf '\n\033[1m%s\033[0m\n%s\n' "$(date +%T) as it is now" "$now"
    elif [ "$plain" != "$shown" ]; then
        printf '\n\033[1m%s\033[0m\n%s\n' "$(date +%T) what changed (t shows everything)" "$(changes "$shown" "$plain")"
    fi
    shown=$plain
    if [ ! -t 0 ]; then
        sleep 1
    elif read -r -s -n 1 -t 1 key; then
        press "$key" || break
    fi
done
echo "The lab is gone."
