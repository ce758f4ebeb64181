package lifecycle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipwayhq/slipway/internal/fault"
)

func TestRoutes(t *testing.T) { // TP-25, TP-26
	list := minors(20, 40)
	for name, tc := range map[string]struct {
		reason   string
		journey  Journey
		versions []string
		want     Route
		message  string
	}{
		"workers skip":   {"", Journey{"v1.29.0", "v1.29.0", "v1.33.0"}, list, Route{minors(30, 33), []string{"v1.32.0", "v1.33.0"}}, ""},
		"newest patches": {"", Journey{"v1.29.0", "", "v1.31.1"}, []string{"v1.30.1", "v1.30.12", "v1.30.9", "v1.31.1", "v1.31.2"}, Route{[]string{"v1.30.12", "v1.31.1"}, nil}, ""},
		"newest build":   {"", Journey{"v1.29.0", "", "v1.31.1"}, []string{"v1.30.1+b2", "v1.30.1+b10", "v1.31.1"}, Route{[]string{"v1.30.1+b10", "v1.31.1"}, nil}, ""},
		"workers lag":    {"they take the version of the control plane first", Journey{"v1.32.0", "v1.29.0", "v1.33.0"}, list, Route{[]string{"v1.33.0"}, []string{"v1.32.0", "v1.33.0"}}, ""},
		"far behind":     {"", Journey{"v1.32.0", "v1.27.0", "v1.33.0"}, list, Route{[]string{"v1.33.0"}, []string{"v1.32.0", "v1.33.0"}}, ""},
		"workers last":   {"the control plane is there", Journey{"v1.33.0", "v1.32.0", "v1.33.0"}, list, Route{nil, []string{"v1.33.0"}}, ""},
		"long":           {"", Journey{"v1.24.0", "v1.24.0", "v1.34.0"}, list, Route{minors(25, 34), []string{"v1.27.0", "v1.30.0", "v1.33.0", "v1.34.0"}}, ""},
		"another build":  {"", Journey{"v1.31.0+b2", "v1.31.0+b2", "v1.31.0+b1"}, []string{"v1.31.0+b1", "v1.31.0+b2"}, Route{[]string{"v1.31.0+b1"}, []string{"v1.31.0+b1"}}, ""},
		"no list":        {"", Journey{"v1.31.4", "v1.30.0", "v1.32.1"}, nil, Route{[]string{"v1.32.1"}, []string{"v1.32.1"}}, ""},
		"no list, far": {
			"", Journey{"v1.31.4", "", "v1.33.1"}, nil, Route{},
			"an upgrade from v1.31.4 to v1.33.1 passes v1.32; upgrade one minor version at a time, or list in spec.kubernetesVersions of ClusterClass c the versions that upgrades may pass",
		},
		"not listed": {
			"", Journey{"v1.31.4", "", "v1.32.1"}, []string{"v1.32.0"}, Route{},
			"spec.kubernetesVersions of ClusterClass c does not list v1.32.1; add it, or set spec.topology.version to a listed version",
		},
		"gap": {
			"", Journey{"v1.31.4", "", "v1.33.1"}, []string{"v1.31.5", "v1.33.1"}, Route{},
			"spec.kubernetesVersions of ClusterClass c lists no version of v1.32, which an upgrade from v1.31.4 to v1.33.1 has to pass; add one",
		},
		"older": {
			"", Journey{"v1.31.4", "", "v1.31.3"}, nil, Route{},
			"spec.topology.version v1.31.3 is older than v1.31.4, which the control plane has; set it to this version or a newer one",
		},
		"major": {
			"", Journey{"v1.31.4", "", "v2.0.0"}, nil, Route{},
			"an upgrade from v1.31.4 to v2.0.0 passes a major version, which is not supported; set spec.topology.version to a version of v1",
		},
		"unreadable": {"", Journey{"latest", "", "v1.31.3"}, nil, Route{}, `version "latest" of the control plane is not a semantic version; correct it`},
	} {
		t.Run(name, func(t *testing.T) {
			make := func() (Route, error) { return anyMinor(tc.journey, "c") }
			if tc.versions != nil {
				make = func() (Route, error) { return listed(tc.journey, "c", tc.versions) }
			}
			got, err := make()
			checkRoute(t, got, err, tc.want, tc.message)
		})
	}
}

func checkRoute(t *testing.T, got Route, err error, want Route, message string) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	text := ""
	if err != nil {
		text = fault.UserMessage(err)
	}
	if text != message {
		t.Errorf("error %q, want %q", text, message)
	}
	if err != nil && fault.KindOf(err) != fault.Invalid {
		t.Errorf("error of kind %s", fault.KindOf(err))
	}
}

func TestAnsweredPlans(t *testing.T) { // UP-01, UP-02
	up := Journey{"v1.29.0", "v1.29.0", "v1.33.0"}
	all := minors(30, 33)
	builds := Journey{"v1.31.0+b1", "v1.31.0+b1", "v1.31.0+b3"}
	for name, tc := range map[string]struct {
		reason  string
		journey Journey
		answer  Route
		want    Route
		message string // after the name of the handler
	}{
		"complete":       {"", up, Route{all, all}, Route{all, all}, ""},
		"workers empty":  {"the fewest steps", up, Route{all, nil}, Route{all, []string{"v1.32.0", "v1.33.0"}}, ""},
		"builds":         {"", builds, Route{[]string{"v1.31.0+b2", "v1.31.0+b3"}, []string{"v1.31.0+b2", "v1.31.0+b3"}}, Route{[]string{"v1.31.0+b2", "v1.31.0+b3"}, []string{"v1.31.0+b2", "v1.31.0+b3"}}, ""},
		"current first":  {"workers may take the version that the control plane has", Journey{"v1.32.0", "v1.31.0", "v1.33.0"}, Route{[]string{"v1.33.0"}, []string{"v1.32.0", "v1.33.0"}}, Route{[]string{"v1.33.0"}, []string{"v1.32.0", "v1.33.0"}}, ""},
		"workers only":   {"", Journey{"v1.33.0", "v1.32.0", "v1.33.0"}, Route{nil, []string{"v1.33.0"}}, Route{nil, []string{"v1.33.0"}}, ""},
		"nothing":        {"", up, Route{}, Route{}, "controlPlaneUpgrades ends with v1.29.0, not with the target v1.33.0"},
		"gap":            {"", up, Route{[]string{"v1.30.0", "v1.32.0", "v1.33.0"}, nil}, Route{}, "controlPlaneUpgrades leaves out a minor version between v1.30.0 and v1.32.0"},
		"falls":          {"", up, Route{[]string{"v1.30.0", "v1.31.1", "v1.31.0", "v1.32.0", "v1.33.0"}, nil}, Route{}, "controlPlaneUpgrades has v1.31.0 after v1.31.1, which is not older"},
		"twice":          {"", up, Route{[]string{"v1.30.0", "v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0"}, nil}, Route{}, "controlPlaneUpgrades has v1.30.0 after v1.30.0, which is not older"},
		"beyond":         {"", up, Route{minors(30, 34), nil}, Route{}, "controlPlaneUpgrades ends with v1.34.0, not with the target v1.33.0"},
		"no version":     {"", up, Route{[]string{"next"}, nil}, Route{}, `controlPlaneUpgrades version "next" is not a Kubernetes version`},
		"long":           {"", up, Route{[]string{strings.Repeat("9", 300)}, nil}, Route{}, `controlPlaneUpgrades version "` + strings.Repeat("9", 64) + `…" is not a Kubernetes version`},
		"not needed":     {"", Journey{"v1.33.0", "v1.32.0", "v1.33.0"}, Route{[]string{"v1.33.0"}, nil}, Route{}, "controlPlaneUpgrades has versions, and the control plane has the target v1.33.0"},
		"workers skew":   {"", up, Route{all, []string{"v1.33.0"}}, Route{}, "workersUpgrades leaves workers at v1.29.0 while the control plane gets v1.33.0, more than three minor versions later"},
		"workers ahead":  {"", up, Route{all, []string{"v1.31.5", "v1.33.0"}}, Route{}, "workersUpgrades leaves workers at v1.29.0 while the control plane gets v1.33.0, more than three minor versions later"},
		"workers aside":  {"", Journey{"v1.30.0", "v1.30.0", "v1.32.0"}, Route{minors(31, 32), []string{"v1.31.5", "v1.32.0"}}, Route{}, "workersUpgrades has v1.31.5 where the control plane does not have or pass it"},
		"builds swapped": {"", builds, Route{[]string{"v1.31.0+b2", "v1.31.0+b4", "v1.31.0+b3"}, []string{"v1.31.0+b4", "v1.31.0+b2", "v1.31.0+b3"}}, Route{}, "workersUpgrades has v1.31.0+b2 where the control plane does not have or pass it"},
		"no workers":     {"", Journey{"v1.32.0", "", "v1.33.0"}, Route{[]string{"v1.33.0"}, []string{"v1.33.0"}}, Route{}, "workersUpgrades has versions, and no worker has to be upgraded"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := answered(tc.journey, "h.x", tc.answer)
			if tc.message != "" {
				tc.message = "the upgrade plan of handler h.x cannot be used: " + tc.message
			}
			checkRoute(t, got, err, tc.want, tc.message)
		})
	}
}
