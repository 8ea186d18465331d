# The first process of a sealed program (see sealed.py): sealed.sh ROOT HOME USER COMMAND...
# It stays root and waits, because the kernel forgets "die with your parent" in a process that changes its user.
set -eu
root=$1 home=$2 user=$3
shift 3

mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$home" "$root$(chroot "$root" getent passwd "$user" | cut -d: -f6)"

chroot --userspec="$user" "$root" "$@" &
child=$!
trap 'kill -TERM "$child"' TERM
while :; do
    status=0
    wait "$child" || status=$?
    # A signal interrupts wait; only when the program is gone is its status the answer.
    kill -0 "$child" 2>/dev/null || exit "$status"
done
