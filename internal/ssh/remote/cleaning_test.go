package remote_test

import (
	"os"
	"testing"

	"github.com/slipwayhq/slipway/test/sshtest"
)

// makeDirectory creates a directory of the host.
func makeDirectory(t *testing.T, s *sshtest.Server, path string) {
	t.Helper()
	if err := os.MkdirAll(s.Path(path), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestNamesWithLineBreaks checks that the name of a Pod's file never names another file of the host.
func TestNamesWithLineBreaks(t *testing.T) {
	s, h := sandbox(t, claim)
	for _, file := range []string{"/etc/shadow", "/root/.ssh/authorized_keys"} {
		s.WriteFile(file, "before")
	}
	makeDirectory(t, s, "/var/lib/kubelet") // as a package of the kubelet leaves it
	s.WriteFile("/etc/cni/net.d/odd\nname", "before")
	record(t, h)
	attacks := []string{
		"/var/lib/kubelet/pods/1/volumes/x\n" + s.Path("/etc/shadow"),
		"/var/lib/kubelet/pods/1/volumes/x\ncontent " + s.Path("/etc/shadow"),
		"/var/lib/kubelet/pods/1/volumes/x\n" + s.Path("/root/.ssh/authorized_keys"),
		"/var/lib/kubelet/pods/1/volumes/\x01" + s.Path("/etc/shadow"),
		"/var/lib/kubelet/pods/1/volumes/\n\n\\ ",
	}
	for _, file := range attacks {
		s.WriteFile(file, "attack")
	}
	s.WriteFile("/etc/cni/net.d/new", "node")
	reset(t, h)
	for _, file := range []string{"/etc/shadow", "/root/.ssh/authorized_keys", "/etc/cni/net.d/odd\nname", "/var/lib/kubelet"} {
		if !exists(s, file) {
			t.Errorf("%q was there before", file)
		}
	}
	if exists(s, "/var/lib/kubelet/pods") || exists(s, "/etc/cni/net.d/new") {
		t.Error("what Pods wrote remains")
	}
	// Which entries with line breaks were there before is not known, so they are reported.
	s.WriteFile("/etc/cni/net.d/second\nodd", "node")
	if left, err := h.Reset(t.Context()); err != nil || len(left) != 1 || left[0].Kind != "content" {
		t.Errorf("cleaning: %v %v", left, err)
	}
}
