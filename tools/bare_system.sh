# A minimal Debian in a folder, for tools/fresh_systems and tools/release to source. Needs root and debootstrap; fetches
# packages from this machine's mirrors. Must run in a private mount namespace (`private_namespace`).

# Starts the calling script again in a private mount namespace: mounts end with the process, and no other process sees
# them. Arguments: those of the script.
private_namespace() {
    if [[ ${IN_NAMESPACE:-} != "$$" ]]; then
        exec unshare --mount --propagation private env IN_NAMESPACE="$$" "$0" "$@"
    fi
}

# Makes a copy of the bare system of the suite $1 at $3. The folder $2 caches bare systems.
make_bare_system() {
    local suite=$1 cache=$2 root=$3 device name major minor
    mkdir -p "$cache"
    [[ -d $cache/base-$suite ]] || debootstrap --variant=minbase "$suite" "$cache/base-$suite"
    if mountpoint -q "$root"; then umount --recursive --lazy "$root"; fi # of a call before
    rm -rf --one-file-system "$root"
    cp -a "$cache/base-$suite" "$root"

    # The mirrors, certificates and indexes that this machine uses.
    cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
    echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"
    if [[ -e ${PIP_CERT:=/etc/ssl/certs/ca-certificates.crt} ]]; then cp -L "$PIP_CERT" "$root/etc/certificates.crt"; fi
    {
        echo "[global]"
        if [[ -e $root/etc/certificates.crt ]]; then echo "cert = /etc/certificates.crt"; fi
        cat /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" 2>/dev/null | grep -v -E '^(\[|cert)' || true
    } >"$root/etc/pip.conf"

    mount --bind "$root" "$root" # the root of a mount, as fusermount3 wants it for an automatic unmount
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount -t fusectl fusectl "$root/sys/fs/fuse/connections"
    mount -t tmpfs -o mode=755 devices "$root/dev"
    for device in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0" "fuse 10 229"; do
        read -r name major minor <<<"$device"
        mknod -m 666 "$root/dev/$name" c "$major" "$minor"
    done
    ln -s /proc/self/fd "$root/dev/fd"
    ln -s /proc/self/fd/1 "$root/dev/stdout"
    ln -s /proc/self/fd/2 "$root/dev/stderr"
    mkdir -m 1777 "$root/dev/shm"
    mkdir "$root/dev/pts"
    mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    if [[ -d /opt/wheels ]]; then mkdir -p "$root/opt/wheels" && mount --bind -o ro /opt/wheels "$root/opt/wheels"; fi
}

# Runs the command line $3 in the system at $1 as $2: root or user.
run_in() {
    local root=$1 user=$2 home=/root
    if [[ $user == user ]]; then home=/home/user; fi
    chroot "$root" env -i HOME=$home PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin TERM=dumb LC_ALL=C.UTF-8 \
        setpriv $([[ $user == root ]] || echo --reuid=1000 --regid=1000 --init-groups) \
        bash -euo pipefail -c "cd ~/gompfs 2>/dev/null || cd; $3"
}
