package cluster

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/policy"
)

// Nodes that the host cannot have are refused before anything is written: newcomer 5, and its mistakes 6 and 10.
func TestNodesThatTheHostCannotHave(t *testing.T) {
	h := nodeHost{allowed: policy.Default(), processors: 2, hasImage: func(image string) bool { return image == "slipway.dev/node:v1.36.3" }}
	h.allowed.Nodes.MemoryMiB = 8192
	for name, tc := range map[string]struct{ variable, value, want string }{
		"an image":            {"nodeImage", `"slipway.dev/node:v1.36.3"`, ""},
		"the usual image":     {"nodeImage", `""`, ""},
		"an absent image":     {"nodeImage", `"slipway.dev/node:nope"`, "image slipway.dev/node:nope is not on this host"},
		"an image of others":  {"nodeImage", `"evil:v1"`, "ask the operator to allow it in nodes.images"},
		"resources":           {"nodeResources", `{"cpus": 2, "memoryMiB": 4096}`, ""},
		"too many processors": {"nodeResources", `{"cpus": 64}`, "--set nodeResources.cpus=64: this host has 2 processors"},
		"control plane":       {"controlPlaneResources", `{"cpus": 64}`, "this host has 2 processors"},
		"too much memory":     {"nodeResources", `{"memoryMiB": 16384}`, "nodes.memoryMiB"},
		"something else":      {"podSecurity", `"baseline"`, ""},
	} {
		got := h.denialReason([]clusterv1.ClusterVariable{{Name: tc.variable, Value: apiextensionsv1.JSON{Raw: []byte(tc.value)}}})
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
