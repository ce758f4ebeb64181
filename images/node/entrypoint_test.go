package node

import (
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// functions are the functions of the entrypoint without the commands that make a node.
func functions(t *testing.T) string {
	t.Helper()
	text, err := fs.ReadFile(Sources, "rootfs/usr/lib/slipway/entrypoint")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), "\nmemory_limit() {")
	rest, _, ends := strings.Cut(rest, "\n# What a node in a container needs of the kubelet")
	if !begins || !ends {
		t.Fatal("the entrypoint has another shape")
	}
	return "set -eu\nmemory_limit() {" + rest + "\n"
}

// What a node may not use is reserved, whatever the host has; a node without limits reserves nothing.
func TestReserved(t *testing.T) {
	cases := map[string]struct{ reason, limits, want string }{
		"both":     {"1 GiB and a twentieth of a processor", "memory_limit() { echo 1073741824; }; cpu_limit() { echo 50; }", `^systemReserved: \{memory: \d+Ki, cpu: \d+m\}\n$`},
		"memory":   {"1 GiB", "memory_limit() { echo 1073741824; }; cpu_limit() { :; }", `^systemReserved: \{memory: \d+Ki\}\n$`},
		"cpu":      {"a twentieth of a processor", "memory_limit() { :; }; cpu_limit() { echo 50; }", `^systemReserved: \{cpu: \d+m\}\n$`},
		"neither":  {"no limit", "memory_limit() { :; }; cpu_limit() { :; }", `^$`},
		"too much": {"more than the host has, as cgroup v1 says where there is no limit", "memory_limit() { echo 9223372036854771712; }; cpu_limit() { echo 100000000; }", `^$`},
	}
	for name, tc := range cases {
		out, err := exec.Command("/bin/sh", "-c", functions(t)+tc.limits+"\nreserved").CombinedOutput()
		if err != nil || !regexp.MustCompile(tc.want).Match(out) {
			t.Errorf("%s (%s): got %q, %v", name, tc.reason, out, err)
		}
	}
}

func TestPodsGetASeccompProfile(t *testing.T) {
	out, err := exec.Command("/bin/sh", "-c", functions(t)+"seccomp").CombinedOutput()
	if err != nil || string(out) != "seccompDefault: true\n" {
		t.Errorf("got %q, %v", out, err)
	}
}
