package firstboot

// pullHint is the first place that containerd of a node without a way out asks for an image. Nothing listens there, which it
// learns at once, and the error of the Pod ends with this address. An error of the registry itself, where one can be
// reached in the cluster's network, is reported in its stead.
const pullHint = "http://127.0.0.1:1/this-node-has-no-internet/use-slipway-image-load"

// offline makes the error of a pull say what to do. Files of the bootstrap data come later: what they say of all registries
// replaces it, and what they say of one registry comes first. An image of a node that says something of all registries keeps it.
// Nothing is written to a folder that is mounted into the machine.
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
