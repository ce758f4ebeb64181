# Verifies the uploaded files of a bundle, and removes all but the two newest bundles and the one in use. Input after
# the parameters: lines of hash, size, mode and path.
read_parameters
[ ${#digest} = 64 ] || fail "no digest"
preparing
lock 120
[ -z "$claim" ] || recorded "$claim" || exit 3
bundles=$state/bundles
to=$bundles/$digest
[ -d "$to" ] || fail "the upload of the bundle did not begin"
list=$state/files.finish
receive $list
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
done <$list
rm -f $list
[ -z "$damaged" ] || exit 1
mv "$to/SHA256SUMS.draft" "$to/SHA256SUMS"
[ "$(sha256sum <"$to/SHA256SUMS" | cut -d ' ' -f 1)" = "$digest" ] || fail "the digest of the bundle does not match its files"
if [ "$(cat /sys/fs/selinux/enforce 2>/dev/null)" = 1 ]; then
	chcon -R -t bin_t "$to/bin" "$to/cni" && chcon -R -t lib_t "$to/lib" || fail "the programs cannot be labelled for SELinux"
fi
stamps "$to" >"$to/stamps"

# Container images are unpacked by containerd in a directory of the bundle, so that preparing a node only moves them. Where
# this does not work, they are imported when the node is prepared.
preload() {
	images=$to/preload.draft work=/run/slipway/preload
	rm -rf "$images" $work
	mkdir -p "$images" $work || return 1
	cat >$work/config.toml <<-END
		version = 3
		root = "$images"
		state = "$work/state"
		disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt"]
		[grpc]
		  address = "$work/sock"
		[plugins."io.containerd.metadata.v1.bolt"]
		  content_sharing_policy = "shared"
	END
	timeout -k 10 300 "$to/bin/containerd" --config $work/config.toml --log-level error >/dev/null 2>&1 </dev/null 9>&- &
	daemon=$!
	tries=0
	until "$to/bin/ctr" -a $work/sock version >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] && kill -0 $daemon 2>/dev/null || { stop_daemon; return 1; }
		sleep 0.1
	done
	for archive in "$to"/images/*.tar; do
		"$to/bin/ctr" -a $work/sock -n k8s.io images import --local --snapshotter overlayfs "$archive" >/dev/null 2>&1 || { stop_daemon; return 1; }
	done
	stop_daemon || return 1
	rm -rf "$to/preload" && mv "$images" "$to/preload"
}
# Stops containerd, and fails if it had to be killed, because its databases may be incomplete then.
stop_daemon() {
	kill $daemon 2>/dev/null
	tries=0
	while kill -0 $daemon 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] || { kill -9 $daemon 2>/dev/null; return 1; }
		sleep 0.1
	done
}
if [ -x "$to/bin/containerd" ] && [ -e "$to/images/node.tar" ] && [ ! -d "$to/preload" ]; then
	runtime=
	[ ! -e /run/containerd ] || runtime=true
	preload || rm -rf "$to/preload.draft"
	[ -n "$runtime" ] || rm -rf /run/containerd
	rm -rf /run/slipway/preload
	rmdir /run/slipway 2>/dev/null
fi
touch "$to/complete"
sync "$to/complete" 2>/dev/null

# Uploads that were never finished, and anything else.
for other in $bundles/*; do
	[ -e "$other/complete" ] && is_digest "${other##*/}" || [ "$other" = "$to" ] || rm -rf "$other"
done
used=$(readlink $state/current 2>/dev/null)
number=0
(cd $bundles && ls -t -- */complete) | while IFS= read -r marker; do
	other=${marker%/complete}
	is_digest "$other" || continue
	number=$((number + 1))
	[ $number -gt 2 ] && [ "$bundles/$other" != "$used" ] || continue
	rm -rf "${bundles:?}/$other"
done
exit 0
