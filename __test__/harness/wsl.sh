#!/bin/sh
# Builds the two sides of wsl.ts and holds them until its standard input ends.
#
#   wsl.sh windows   in a network namespace of its own, which becomes the Windows side
#   wsl.sh linux     called by the former in further namespaces, which become the side of pi
#
# Everything it needs comes in variables from wsl.ts. The last line out is `ready WINDOWS-PID LINUX-PID`.
set -eu
PATH=$PATH:/usr/sbin:/sbin

windows() {
  ip link set lo up
  # Not the range of the other side, where the model listens: no port is open on both sides by chance.
  echo 20000 29999 > /proc/sys/net/ipv4/ip_local_port_range
  unshare --mount --net sh "$0" linux
}

on_windows() {
  nsenter --target "$PPID" --net "$@"
}

network() {
  ip link set lo up
  ip link add eth0 type veth peer name wsl0 address "$GATEWAY_MAC" netns "$PPID"
  # The gateway's own address comes and goes, another one stays: far hosts are reached by way of it also while it is silent.
  on_windows ip link set wsl0 up
  on_windows ip addr add "$WINDOWS_IP/20" dev wsl0
  on_windows ip addr add "$GATEWAY/20" dev wsl0
  on_windows ip addr add "$FAR_HOST/32" dev wsl0
  ip link set eth0 up
  ip addr add "$LINUX_IP/20" dev eth0
  # Known for good, so that a silent gateway drops packets as a firewall does instead of missing in ARP.
  ip neigh add "$GATEWAY" lladdr "$GATEWAY_MAC" dev eth0 nud permanent
  ip route add default via "$GATEWAY"
  # Of a type that veth has brought along; not every kernel has dummy interfaces.
  if [ -n "$MIRRORED" ]; then ip link add loopback0 type veth peer name loopback1; fi
}

# A root folder like this machine's with other /etc, /sys and drives; below /mnt, which it does without.
files() {
  root=/mnt
  drives=$root$AUTOMOUNT_ROOT
  mount -t tmpfs -o mode=755 tmpfs $root
  for entry in /*; do
    case $entry in /etc | /mnt | /sys | "$AUTOMOUNT_ROOT") continue ;; esac
    if [ -h "$entry" ]; then
      cp -P "$entry" $root
    elif [ -d "$entry" ]; then
      mkdir "$root$entry"
      mount --rbind "$entry" "$root$entry"
    fi
  done
  mount --bind "$BOX/version" $root/proc/version

  mkdir $root/sys
  mount -t sysfs sysfs $root/sys # the interfaces of this network namespace

  mkdir $root/etc $root/.etc
  mount --rbind /etc $root/.etc
  (cd $root/etc && ln -s ../.etc/* .)
  rm -f $root/etc/wsl.conf
  cp "$BOX/wsl.conf" $root/etc/wsl.conf

  mkdir -p "$drives"
  mount --bind "$BOX/drives" "$drives"
  if [ "$PI_CWD" != "$PROJECT" ]; then mount --bind "$PROJECT" "$root$PI_CWD"; fi
}

linux() {
  network
  files
  # Whoever enters the namespaces takes over the root and the working folder of the process that stays here.
  exec chroot /mnt sh -c 'cd "$PI_CWD" && echo "ready $0 $$" && exec cat' "$PPID"
}

"$1"
