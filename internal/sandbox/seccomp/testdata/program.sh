set -eu -o pipefail
seq 1000 | sort -rn | awk '{ s += $1 } END { print s }' | grep -q 500500
diff <(printf 'a\nb\n') <(printf 'a\nb\n')
sleep 0.01 & wait $!
mkfifo p; (echo through > p) & read -r word < p; [ "$word" = through ]
dd if=/dev/zero of=f bs=1k count=64 2>/dev/null; tar cf f.tar f; gzip f.tar; cp -a f g; rm f; touch -d yesterday g; sync
trap 'echo caught >/dev/null' USR1; kill -USR1 $$
(ulimit -n 64; nice -n 1 true); timeout 5 true; date >/dev/null; ls -l >/dev/null; id >/dev/null; df . >/dev/null
find . -name g -exec stat {} + >/dev/null
! unshare -U true 2>/dev/null
! mount -t tmpfs none . 2>/dev/null
echo bash is fine
