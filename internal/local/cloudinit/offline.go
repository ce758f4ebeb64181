package cloudinit

// pullHint is the mirror that containerd of a node without internet access tries first for an image. Nothing listens on
// this address, so the attempt fails at once, and the error of the Pod ends with the address. If a registry in the
// cluster's network can be reached, its own error is reported instead.
const pullHint = "http://127.0.0.1:1/this-node-has-no-internet/use-slipway-image-load"

// offline adds the hint to errors of image pulls. Files of the bootstrap data are written later: their default for all
// registries replaces the hint, and their settings for a single registry take precedence. A default in the node image
// is left unchanged. Nothing is written to a directory that is mounted into the machine.
const offline = `hint() {
	at=/etc/containerd/certs.d
	[ -d /etc/containerd/ ] && [ ! -e $at/_default ] || return 0
	for folder in /etc/containerd/ $at; do
		[ ! -e $folder ] || [ "$(stat -Lc %d $folder)" = "$(stat -Lc %d /etc/)" ] || return 0
	done
	mkdir -p $at/_default
	cat >$at/_default/hosts.toml <<-'END'
		[host."` + pullHint + `"]
		  capabilities = ["pull", "resolve"]
		  override_path = true
	END
}
hint
`
