# Tests the units under a booted systemd: test_booted_systemd.py runs this script as a service, as root, in a container.
# The log of the script ends with the check that failed.
set -euxo pipefail
PS4='+ line $LINENO: '

fails() { if "$@"; then return 1; fi; }

become() { # UNIT STATE: waits until the unit has this state
    for _ in {1..300}; do
        [[ $(systemctl is-active "$1") == "$2" ]] && return
        sleep 0.1
    done
    return 1
}

property() { systemctl show --property "$1" --value "$2"; }

holds_the_archive() { [[ $(cat "$1/file") == content ]]; }

: A service is active once its archive is mounted
systemctl start gompfs@corpus
holds_the_archive /mnt/corpus
[[ $(property StatusText gompfs@corpus) == "/srv/gompfs/corpus.gomp is mounted at /mnt/corpus" ]]
first=$(property MainPID gompfs@corpus)
systemctl restart gompfs@corpus
fails test "$first" = "$(property MainPID gompfs@corpus)"
holds_the_archive /mnt/corpus

: A service stops even if its mount is in use
cd /mnt/corpus
systemctl stop gompfs@corpus
cd /
fails mountpoint -q /mnt/corpus
[[ $(property Result gompfs@corpus) == success ]]

: A service that cannot start says why, and is not restarted
fails systemctl start gompfs@missing
[[ $(property StatusText gompfs@missing) == "/srv/gompfs/missing.gomp: No such file or directory" ]]
head -c 100 /srv/gompfs/corpus.gomp >/srv/gompfs/damaged.gomp
fails systemctl start gompfs@damaged
[[ $(property StatusText gompfs@damaged) == "/srv/gompfs/damaged.gomp: "* ]]
sleep 2
for unit in gompfs@missing gompfs@damaged; do
    [[ $(property ActiveState $unit) == failed && $(property NRestarts $unit) == 0 ]]
done

: An existing mount at the mount point is kept
mount -t tmpfs none /mnt/corpus
fails systemctl start gompfs@corpus
[[ $(property StatusText gompfs@corpus) == "/mnt/corpus: something is mounted here already" ]]
umount /mnt/corpus
systemctl reset-failed

: A killed service is restarted, but not without limit
systemctl start gompfs@corpus
for _ in {1..4}; do
    kill -KILL "$(property MainPID gompfs@corpus)"
    become gompfs@corpus activating
    become gompfs@corpus active
    holds_the_archive /mnt/corpus
done
kill -KILL "$(property MainPID gompfs@corpus)"
become gompfs@corpus failed
fails grep /mnt/corpus /proc/mounts

: A mount unit
systemctl start mnt-corpus.mount
holds_the_archive /mnt/corpus
systemctl stop mnt-corpus.mount
fails mountpoint -q /mnt/corpus

: An automount is unmounted when idle, fails without its archive, and works again with it
mkdir /etc/systemd/system/mnt-corpus.automount.d
printf '[Automount]\nTimeoutIdleSec=1\n' >/etc/systemd/system/mnt-corpus.automount.d/soon.conf
systemctl daemon-reload
systemctl start mnt-corpus.automount
holds_the_archive /mnt/corpus
become mnt-corpus.mount inactive
mv /srv/gompfs/corpus.gomp /srv/gompfs/away
fails cat /mnt/corpus/file
journalctl --unit mnt-corpus.mount | grep "gompfs: /mnt/corpus: /srv/gompfs/corpus.gomp: No such file or directory"
mv /srv/gompfs/away /srv/gompfs/corpus.gomp
holds_the_archive /mnt/corpus
systemctl stop mnt-corpus.automount mnt-corpus.mount

: Entries of fstab
mkdir /mnt/{now,later}
cat >>/etc/fstab <<FSTAB
/srv/gompfs/corpus.gomp /mnt/now gompfs ro,allow_other,nofail 0 0
/srv/gompfs/corpus.gomp /mnt/later gompfs ro,noauto,x-systemd.automount 0 0
FSTAB
systemctl daemon-reload
mount /mnt/now
holds_the_archive /mnt/now
umount /mnt/now
systemctl start mnt-now.mount mnt-later.automount
holds_the_archive /mnt/now
holds_the_archive /mnt/later
