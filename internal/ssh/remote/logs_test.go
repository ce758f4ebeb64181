package remote_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

// A log that is longer than the output of a script can be is cut at its beginning: the end has the cause of a failure.
func TestLogsHaveTheNewestLines(t *testing.T) {
	s, h := sandbox(t, "")
	library, scripts := readScripts(t, "logs")
	s.RunLocally(library, "root="+s.Root+"\n", scripts)
	var log strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&log, "line %d %s\n", i, strings.Repeat("x", 200))
	}
	s.WriteFile("/run/slipway/bootstrap/log", log.String())
	text, err := h.Logs(t.Context(), "bootstrap", remote.MaxLogLines)
	if err != nil || len(text) > 1<<20 || !strings.HasSuffix(log.String(), string(text)) || len(text) < 900_000 {
		t.Errorf("%d bytes, the end %.40q, %v", len(text), text[max(len(text)-40, 0):], err)
	}
}

// The containerd that Slipway installed is no container runtime of the host.
func TestFactsOfContainerd(t *testing.T) {
	s, h := sandbox(t, claim)
	runtime := func() string {
		f, err := h.Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f.ContainerRuntime
	}
	s.WriteFile("/is-active/containerd.service", "")
	s.WriteFile("/is-active/docker.service", "")
	if got := runtime(); got != "containerd,docker" {
		t.Errorf("before: %q", got)
	}
	s, h = sandbox(t, claim)
	record(t, h)
	b := sshtest.WriteBundle(t, map[string][]byte{"bin/kubelet": []byte("k"), "cni/bridge": []byte("c")})
	if err := h.InstallBundle(t.Context(), b, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.PrepareNode(t.Context(), b, remote.NodeSettings{}); err != nil {
		t.Fatal(err)
	}
	s.WriteFile("/is-active/containerd.service", "")
	if got := runtime(); got != "" {
		t.Errorf("its own: %q", got)
	}
}
