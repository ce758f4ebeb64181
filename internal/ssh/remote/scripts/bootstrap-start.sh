# Starts bootstrap data as a unit of systemd. Input after the parameters: the data as a shell script.
read_parameters
[ -n "$claim" ] && [ "$timeout" -gt 0 ] || fail "no claim or timeout"
lock 45
recorded "$claim" || exit 3
if [ -e $node/started ]; then
	[ "$(cat $node/started)" != "$claim" ] || exit 0
	exit 3
fi
mkdir -p $run && chmod 700 $run || fail "$run cannot be created"
receive $run/data.draft
mv $run/data.draft $run/data || fail "the bootstrap data cannot be stored"
# What the data changes: files and users that are there are saved, others are deleted by cleaning.
: >$node/backups
number=0
save() {
	number=$((number + 1))
	cp -a "$1" $node/backup.$number && echo "$number $1" >>$node/backups || fail "$1 cannot be saved"
}
printf '%s' "$users" >$run/users
: >$node/users
: >$node/passwords
while read -r name home; do
	case $name in '' | -* | *[!A-Za-z0-9._-]*) continue ;; esac
	if id -u "$name" >/dev/null 2>&1; then
		awk -F : -v name="$name" '$1 == name {print $1 ":" $2 ":" $8}' /etc/shadow >>$node/passwords 2>/dev/null
		home=$(getent passwd "$name" | cut -d : -f 6)
		if [ -e "$home/.ssh/authorized_keys" ]; then save "$home/.ssh/authorized_keys"; else remember "$home/.ssh/authorized_keys"; fi
		continue
	fi
	[ ! -e "$home" ] || home=
	echo "$name $home" >>$node/users
done <$run/users
printf '%s' "$groups" >$run/groups
: >$node/groups
while read -r name; do
	case $name in '' | -* | *[!A-Za-z0-9._-]*) continue ;; esac
	getent group "$name" >/dev/null || echo "$name" >>$node/groups
done <$run/groups
# The topmost directory that is created for a path.
created() {
	top=$1
	while parent=${top%/*} && [ -n "$parent" ] && [ ! -e "$parent" ]; do top=$parent; done
	printf '%s\n' "$top"
}
: >$node/parents
: >$node/directories
: >$node/modes
printf '%s' "$directories" >$run/directories
while IFS= read -r dir; do
	if [ -d "$dir" ]; then
		echo "$(stat -L -c '%a %u:%g' "$dir") $dir" >>$node/modes
	elif [ ! -e "$dir" ] && [ ! -L "$dir" ]; then
		created "$dir" >>$node/directories
	fi
done <$run/directories
printf '%s' "$masked" >$run/masked
: >$node/stopped
while IFS= read -r unit; do ! systemctl is-active --quiet "$unit" 2>/dev/null || printf '%s\n' "$unit" >>$node/stopped; done <$run/masked
printf '%s' "$files" >$run/files
while IFS= read -r file; do
	if installed "$file"; then
		:
	elif [ -d "$file" ] && [ ! -L "$file" ]; then
		: # A file cannot replace it.
	elif [ -e "$file" ] || [ -L "$file" ]; then
		save "$file"
	else
		remember "$file"
		parent=${file%/*}
		while [ -n "$parent" ] && [ ! -e "$parent" ]; do
			printf '%s\n' "$parent" >>$node/parents
			parent=${parent%/*}
		done
	fi
done <$run/files
# The script appends to these files; the second one only if it exists.
if [ ! -e /etc/default/kubelet ]; then
	remember /etc/default/kubelet
elif ! installed /etc/default/kubelet; then
	cp -p /etc/default/kubelet $node/default-kubelet
fi
if [ -e /etc/sysconfig/kubelet ] && ! installed /etc/sysconfig/kubelet; then
	save /etc/sysconfig/kubelet
fi
rm -f $run/users $run/groups $run/files $run/directories $run/masked $run/exit $run/failure /run/cluster-api/bootstrap-success.complete

# The unit runs this script. It deletes the data in any case.
cat >$run/run <<'END'
#!/bin/sh
run=/run/slipway/bootstrap node=/var/lib/slipway/node
umask 022
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin:/var/lib/slipway/current/bin
export PATH
cd /
# The data writes its sections to files, which are secret like the data.
trap 'rm -f $run/data /run/slipway/step-*.sh' EXIT
enabled() { systemctl list-unit-files --state=enabled --no-legend --no-pager 2>/dev/null | awk '{print $1}' | sort; }
enabled >$run/enabled
# The log is in memory. Beyond 8 MiB, only its last MiB is kept.
limit() {
	[ "$(stat -c %s $run/log)" -gt 8388608 ] || return 0
	tail -c 1048576 $run/log >$run/log.end && cat $run/log.end >$run/log
	rm -f $run/log.end
}
(umask 077; while sleep 2; do limit; done) </dev/null >/dev/null 2>&1 &
timeout -k 10 "$2" /bin/sh $run/data >>$run/log 2>&1 </dev/null
code=$?
kill $! 2>/dev/null
(umask 077; limit)
rm -f $run/data /run/slipway/step-*.sh
enabled | grep -vFx -f $run/enabled >$node/enabled
if [ -e /run/cluster-api/bootstrap-success.complete ]; then
	(umask 077; printf '%s\n' "$1" >$node/bootstrapped.draft && mv $node/bootstrapped.draft $node/bootstrapped)
elif [ $code = 124 ]; then
	echo timeout >$run/failure
fi
echo $code >$run/exit
END
: >$run/log
chmod 600 $run/log
printf '%s\n' "$claim" >$node/started.draft && mv $node/started.draft $node/started
systemctl reset-failed slipway-bootstrap.service 2>/dev/null
systemd-run --quiet --unit=slipway-bootstrap --collect --property=Type=exec /bin/sh $run/run "$claim" "$timeout" 9>&- && exit 0
systemctl is-active --quiet slipway-bootstrap.service && exit 0
systemd-run --quiet --unit=slipway-bootstrap /bin/sh $run/run "$claim" "$timeout" 9>&- && exit 0
rm -f $node/started $run/data
fail "the unit cannot be started"
