# Finds out which files of a bundle are on the host. Input after the parameters: lines of hash, size, mode and path.
digest=
while IFS= read -r line; do
	[ -n "$line" ] || break
	case $line in
	DIGEST=*) digest=${line#*=} ;;
	esac
done
[ ${#digest} = 64 ] || fail "no digest"
bundles=$state/bundles
to=$bundles/$digest
if [ -e "$to/complete" ]; then
	touch "$to/complete"
	echo COMPLETE=true
	exit 0
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
	if [ "$(sha256sum <"$to/$path" | cut -d ' ' -f 1)" = "$hash" ]; then
		echo "PRESENT=$path"
	else
		rm -f "$to/$path"
	fi
done
exit 0
