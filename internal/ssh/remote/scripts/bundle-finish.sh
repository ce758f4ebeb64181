# Verifies the uploaded files of a bundle, and removes all but the two newest bundles and the one in use. Input after
# the parameters: lines of hash, size, mode and path.
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
damaged=
: >"$to/SHA256SUMS.draft"
while read -r hash size mode path; do
	printf '%s  %s\n' "$hash" "$path" >>"$to/SHA256SUMS.draft"
	if [ -f "$to/$path.part" ]; then
		if [ "$(sha256sum <"$to/$path.part" | cut -d ' ' -f 1)" = "$hash" ]; then
			mv "$to/$path.part" "$to/$path"
		else
			rm -f "$to/$path.part"
		fi
	fi
	if [ ! -f "$to/$path" ]; then
		echo "DAMAGED=$path"
		damaged=true
		continue
	fi
	chown 0:0 "$to/$path" && chmod "$mode" "$to/$path"
done
[ -z "$damaged" ] || exit 1
mv "$to/SHA256SUMS.draft" "$to/SHA256SUMS"
[ "$(sha256sum <"$to/SHA256SUMS" | cut -d ' ' -f 1)" = "$digest" ] || fail "the digest of the bundle does not match its files"
if [ "$(cat /sys/fs/selinux/enforce 2>/dev/null)" = 1 ]; then
	chcon -R -t bin_t "$to/bin" "$to/cni" && chcon -R -t lib_t "$to/lib" || fail "the programs cannot be labelled for SELinux"
fi
touch "$to/complete"
sync "$to/complete" 2>/dev/null

used=$(readlink $state/current 2>/dev/null)
number=0
for marker in $(ls -t $bundles/*/complete); do
	other=${marker%/complete}
	number=$((number + 1))
	[ $number -gt 2 ] && [ "$other" != "$used" ] || continue
	rm -rf "$other"
done
exit 0
