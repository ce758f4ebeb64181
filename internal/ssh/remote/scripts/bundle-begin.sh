# Finds out which files of a bundle are on the host. Input after the parameters: lines of hash, size, mode and path.
read_parameters
[ ${#digest} = 64 ] || fail "no digest"
preparing
lock 120
[ -z "$claim" ] || recorded "$claim" || exit 3
bundles=$state/bundles
to=$bundles/$digest
list=$state/files.begin
receive $list
# The users of earlier nodes could change the bundle, and link its directories to others. A bundle has no links.
for path in $bundles "$to"; do [ ! -L "$path" ] || rm -f "$path"; done
[ ! -d "$to" ] || find "$to" -path "$to/preload" -prune -o -type l -exec rm -f {} +
verified=
if [ -e "$to/complete" ]; then
	if [ "$(sha256sum <"$to/SHA256SUMS" | cut -d ' ' -f 1)" = "$digest" ] && (cd "$to" && sha256sum -c SHA256SUMS >/dev/null 2>&1); then
		touch "$to/complete"
		verified=true
		if [ -d "$to/preload" ] || [ "$(cat $node/imported 2>/dev/null)" = "$digest" ] || [ ! -x "$to/bin/containerd" ] || [ ! -e "$to/images/node.tar" ]; then
			rm -f $list
			echo COMPLETE=true
			exit 0
		fi
	else
		rm -rf "$to/complete" "$to/preload"
	fi
fi
mkdir -p "$to" || fail "$to cannot be created"
chmod 755 $state $bundles "$to"
while read -r hash size mode path; do
	mkdir -p "$to/${path%/*}" && chmod 755 "$to/${path%/*}"
	if [ ! -f "$to/$path" ]; then
		for other in $bundles/*; do
			[ -e "$other/complete" ] && [ -f "$other/$path" ] && [ "$(stat -c %s "$other/$path")" = "$size" ] || continue
			! ln "$other/$path" "$to/$path" 2>/dev/null || break
		done
	fi
	# An interrupted upload may have completed the file.
	if [ ! -f "$to/$path" ] && [ -f "$to/$path.part" ] && [ "$(stat -c %s "$to/$path.part")" = "$size" ]; then
		mv "$to/$path.part" "$to/$path"
	fi
	[ -f "$to/$path" ] || continue
	if [ -n "$verified" ] || [ "$(sha256sum <"$to/$path" | cut -d ' ' -f 1)" = "$hash" ]; then
		echo "PRESENT=$path"
	else
		rm -f "$to/$path"
	fi
done <$list
rm -f $list
exit 0
