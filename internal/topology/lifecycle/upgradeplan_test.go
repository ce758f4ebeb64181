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
		journey  PlanInput
		versions []string
		want     UpgradePlan
		message  string
	}{
		"workers skip":   {"", PlanInput{"v1.29.0", "v1.29.0", "v1.33.0"}, list, UpgradePlan{minors(30, 33), []string{"v1.32.0", "v1.33.0"}}, ""},
		"newest patches": {"", PlanInput{"v1.29.0", "", "v1.31.1"}, []string{"v1.30.1", "v1.30.12", "v1.30.9", "v1.31.1", "v1.31.2"}, UpgradePlan{[]string{"v1.30.12", "v1.31.1"}, nil}, ""},
		"newest build":   {"", PlanInput{"v1.29.0", "", "v1.31.1"}, []string{"v1.30.1+b2", "v1.30.1+b10", "v1.31.1"}, UpgradePlan{[]string{"v1.30.1+b10", "v1.31.1"}, nil}, ""},
		"workers lag":    {"they take the version of the control plane first", PlanInput{"v1.32.0", "v1.29.0", "v1.33.0"}, list, UpgradePlan{[]string{"v1.33.0"}, []string{"v1.32.0", "v1.33.0"}}, ""},
		"far behind":     {"", PlanInput{"v1.32.0", "v1.27.0", "v1.33.0"}, list, UpgradePlan{[]string{"v1.33.0"}, []string{"v1.32.0", "v1.33.0"}}, ""},
		"workers last":   {"the control plane is there", PlanInput{"v1.33.0", "v1.32.0", "v1.33.0"}, list, UpgradePlan{nil, []string{"v1.33.0"}}, ""},
		"long":           {"", PlanInput{"v1.24.0", "v1.24.0", "v1.34.0"}, list, UpgradePlan{minors(25, 34), []string{"v1.27.0", "v1.30.0", "v1.33.0", "v1.34.0"}}, ""},
		"another build":  {"", PlanInput{"v1.31.0+b2", "v1.31.0+b2", "v1.31.0+b1"}, []string{"v1.31.0+b1", "v1.31.0+b2"}, UpgradePlan{[]string{"v1.31.0+b1"}, []string{"v1.31.0+b1"}}, ""},
		"no list":        {"", PlanInput{"v1.31.4", "v1.30.0", "v1.32.1"}, nil, UpgradePlan{[]string{"v1.32.1"}, []string{"v1.32.1"}}, ""},
		"no list, far": {
			"", PlanInput{"v1.31.4", "", "v1.33.1"}, nil, UpgradePlan{},
			"an upgrade from v1.31.4 to v1.33.1 passes v1.32; upgrade one minor version at a time, or list in spec.kubernetesVersions of ClusterClass c the versions that upgrades may pass",
		},
		"not listed": {
			"", PlanInput{"v1.31.4", "", "v1.32.1"}, []string{"v1.32.0"}, UpgradePlan{},
			"spec.kubernetesVersions of ClusterClass c does not list v1.32.1; add it, or set spec.topology.version to a listed version",
		},
		"gap": {
			"", PlanInput{"v1.31.4", "", "v1.33.1"}, []string{"v1.31.5", "v1.33.1"}, UpgradePlan{},
			"spec.kubernetesVersions of ClusterClass c lists no version of v1.32, which an upgrade from v1.31.4 to v1.33.1 has to pass; add one",
		},
		"older": {
			"", PlanInput{"v1.31.4", "", "v1.31.3"}, nil, UpgradePlan{},
			"spec.topology.version v1.31.3 is older than v1.31.4, which the control plane has; set it to this version or a newer one",
		},
		"major": {
			"", PlanInput{"v1.31.4", "", "v2.0.0"}, nil, UpgradePlan{},
			"an upgrade from v1.31.4 to v2.0.0 passes a major version, which is not supported; set spec.topology.version to a version of v1",
		},
		"unreadable": {"", PlanInput{"latest", "", "v1.31.3"}, nil, UpgradePlan{}, `version "latest" of the control plane is not a semantic version; correct it`},
	} {
		t.Run(name, func(t *testing.T) {
			make := func() (UpgradePlan, error) { return anyMinor(tc.journey, "c") }
			if tc.versions != nil {
				make = func() (UpgradePlan, error) { return listed(tc.journey, "c", tc.versions) }
			}
			got, err := make()
			checkRoute(t, got, err, tc.want, tc.message)
		})
	}
}

func checkRoute(t *testing.T, got UpgradePlan, err error, want UpgradePlan, message string) {
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
	up := PlanInput{"v1.29.0", "v1.29.0", "v1.33.0"}
	all := minors(30, 33)
	builds := PlanInput{"v1.31.0+b1", "v1.31.0+b1", "v1.31.0+b3"}
	for name, tc := range map[string]struct {
		reason  string
		journey PlanInput
		answer  UpgradePlan
		want    UpgradePlan
		message string // after the name of the handler
	}{
		"complete":       {"", up, UpgradePlan{all, all}, UpgradePlan{all, all}, ""},
		"workers empty":  {"the fewest steps", up, UpgradePlan{all, nil}, UpgradePlan{all, []string{"v1.32.0", "v1.33.0"}}, ""},
		"builds":         {"", builds, UpgradePlan{[]string{"v1.31.0+b2", "v1.31.0+b3"}, []string{"v1.31.0+b2", "v1.31.0+b3"}}, UpgradePlan{[]string{"v1.31.0+b2", "v1.31.0+b3"}, []string{"v1.31.0+b2", "v1.31.0+b3"}}, ""},
		"current first":  {"workers may take the version that the control plane has", PlanInput{"v1.32.0", "v1.31.0", "v1.33.0"}, UpgradePlan{[]string{"v1.33.0"}, []string{"v1.32.0", "v1.33.0"}}, UpgradePlan{[]string{"v1.33.0"}, []string{"v1.32.0", "v1.33.0"}}, ""},
		"workers only":   {"", PlanInput{"v1.33.0", "v1.32.0", "v1.33.0"}, UpgradePlan{nil, []string{"v1.33.0"}}, UpgradePlan{nil, []string{"v1.33.0"}}, ""},
		"nothing":        {"", up, UpgradePlan{}, UpgradePlan{}, "controlPlaneUpgrades ends with v1.29.0, not with the target v1.33.0"},
		"gap":            {"", up, UpgradePlan{[]string{"v1.30.0", "v1.32.0", "v1.33.0"}, nil}, UpgradePlan{}, "controlPlaneUpgrades leaves out a minor version between v1.30.0 and v1.32.0"},
		"falls":          {"", up, UpgradePlan{[]string{"v1.30.0", "v1.31.1", "v1.31.0", "v1.32.0", "v1.33.0"}, nil}, UpgradePlan{}, "controlPlaneUpgrades has v1.31.0 after v1.31.1, which is not older"},
		"twice":          {"", up, UpgradePlan{[]string{"v1.30.0", "v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0"}, nil}, UpgradePlan{}, "controlPlaneUpgrades has v1.30.0 after v1.30.0, which is not older"},
		"beyond":         {"", up, UpgradePlan{minors(30, 34), nil}, UpgradePlan{}, "controlPlaneUpgrades ends with v1.34.0, not with the target v1.33.0"},
		"no version":     {"", up, UpgradePlan{[]string{"next"}, nil}, UpgradePlan{}, `controlPlaneUpgrades version "next" is not a Kubernetes version`},
		"long":           {"", up, UpgradePlan{[]string{strings.Repeat("9", 300)}, nil}, UpgradePlan{}, `controlPlaneUpgrades version "` + strings.Repeat("9", 64) + `…" is not a Kubernetes version`},
		"not needed":     {"", PlanInput{"v1.33.0", "v1.32.0", "v1.33.0"}, UpgradePlan{[]string{"v1.33.0"}, nil}, UpgradePlan{}, "controlPlaneUpgrades has versions, and the control plane has the target v1.33.0"},
		"workers skew":   {"", up, UpgradePlan{all, []string{"v1.33.0"}}, UpgradePlan{}, "workersUpgrades leaves workers at v1.29.0 while the control plane gets v1.33.0, more than three minor versions later"},
		"workers ahead":  {"", up, UpgradePlan{all, []string{"v1.31.5", "v1.33.0"}}, UpgradePlan{}, "workersUpgrades leaves workers at v1.29.0 while the control plane gets v1.33.0, more than three minor versions later"},
		"workers aside":  {"", PlanInput{"v1.30.0", "v1.30.0", "v1.32.0"}, UpgradePlan{minors(31, 32), []string{"v1.31.5", "v1.32.0"}}, UpgradePlan{}, "workersUpgrades has v1.31.5 where the control plane does not have or pass it"},
		"builds swapped": {"", builds, UpgradePlan{[]string{"v1.31.0+b2", "v1.31.0+b4", "v1.31.0+b3"}, []string{"v1.31.0+b4", "v1.31.0+b2", "v1.31.0+b3"}}, UpgradePlan{}, "workersUpgrades has v1.31.0+b2 where the control plane does not have or pass it"},
		"no workers":     {"", PlanInput{"v1.32.0", "", "v1.33.0"}, UpgradePlan{[]string{"v1.33.0"}, []string{"v1.33.0"}}, UpgradePlan{}, "workersUpgrades has versions, and no worker has to be upgraded"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := validatePlanResponse(tc.journey, "h.x", tc.answer)
			if tc.message != "" {
				tc.message = "the upgrade plan of handler h.x cannot be used: " + tc.message
			}
			checkRoute(t, got, err, tc.want, tc.message)
		})
	}
}
