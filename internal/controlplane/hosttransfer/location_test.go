package hosttransfer

import "testing"

// The address is published in a ConfigMap and stored in a file: without a password.
func TestDockerAddress(t *testing.T) {
	for host, want := range map[string]string{
		"":                           "",
		"unix:///run/docker.sock":    "unix:///run/docker.sock",
		"tcp://10.0.0.1:2376":        "tcp://10.0.0.1:2376",
		"tcp://me:secret@10.0.0.1":   "tcp://me@10.0.0.1",
		"ssh://me@host.example":      "ssh://me@host.example",
		"a host that cannot be \x7f": "a host that cannot be \x7f",
	} {
		if got := DockerAddress(func(string) string { return host }); got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
	}
}
