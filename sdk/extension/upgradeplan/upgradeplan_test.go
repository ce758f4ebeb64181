package upgradeplan_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/extensiontest"
	"github.com/slipwayhq/slipway/sdk/extension/upgradeplan"
)

// journey is "control plane, workers, target".
func journey(text string) *hooksv1.GenerateUpgradePlanRequest {
	part := strings.Split(text, " ")
	if part[1] == "-" {
		part[1] = ""
	}
	return &hooksv1.GenerateUpgradePlanRequest{
		FromControlPlaneKubernetesVersion: part[0], FromWorkersKubernetesVersion: part[1], ToKubernetesVersion: part[2],
	}
}

func steps(text string) []hooksv1.UpgradeStep {
	var out []hooksv1.UpgradeStep
	for v := range strings.FieldsSeq(text) {
		out = append(out, hooksv1.UpgradeStep{Version: v})
	}
	return out
}

func text(steps []hooksv1.UpgradeStep) string {
	var out []string
	for _, s := range steps {
		out = append(out, s.Version)
	}
	return strings.Join(out, " ")
}

// UP-01: the newest version of each minor version on the way, and for the workers as many steps or the caller's choice.
func TestPlanner(t *testing.T) {
	versions := []string{"v1.32.1", "nightly", "v1.31.9", "v1.31.10", "v1.33.0", "v1.33.2", "v1.30.4", "v1.34.0", "v2.31.0"}
	cases := map[string]struct {
		reason, journey string
		every           bool
		plane, workers  string
	}{
		"several":       {"newest by number, not by text", "v1.30.0 v1.30.0 v1.33.0", false, "v1.31.10 v1.32.1 v1.33.0", ""},
		"every worker":  {"with each step", "v1.30.0 v1.30.0 v1.33.0", true, "v1.31.10 v1.32.1 v1.33.0", "v1.31.10 v1.32.1 v1.33.0"},
		"workers late":  {"they begin where the control plane is", "v1.31.9 v1.30.4 v1.33.2", true, "v1.32.1 v1.33.2", "v1.31.9 v1.32.1 v1.33.2"},
		"no workers":    {"they need no steps", "v1.31.9 - v1.32.1", true, "v1.32.1", ""},
		"one minor":     {"nothing between", "v1.32.0 v1.32.0 v1.33.0", false, "v1.33.0", ""},
		"patch":         {"of the same minor version", "v1.33.0 v1.33.0 v1.33.2", false, "v1.33.2", ""},
		"plane is done": {"only workers are left", "v1.33.2 v1.33.0 v1.33.2", true, "", "v1.33.2"},
		"done":          {"nothing", "v1.33.2 v1.33.2 v1.33.2", true, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := upgradeplan.Planner{EveryWorker: tc.every, Versions: func(context.Context, *clusterv1.Cluster) ([]string, error) { return versions, nil }}
			x, err := extension.New(extension.OnErr("plan", hooksv1.GenerateUpgradePlan, p.Generate))
			if err != nil {
				t.Fatal(err)
			}
			in := journey(tc.journey)
			out := extensiontest.Twice[hooksv1.GenerateUpgradePlanResponse](t, x, "plan", in)
			extensiontest.Plan(t, in, out)
			got := [...]string{string(out.Status), text(out.ControlPlaneUpgrades), text(out.WorkersUpgrades)}
			if d := cmp.Diff([...]string{"Success", tc.plane, tc.workers}, got); d != "" {
				t.Errorf("%s (-want +got):\n%s%s", tc.reason, d, out.Message)
			}
		})
	}
}

// UP-01: where there is no plan, the message says what is missing.
func TestPlannerFails(t *testing.T) {
	cases := map[string]struct{ journey, want string }{
		"gap":      {"v1.30.0 - v1.33.0", "there is no version of v1.32, which an upgrade from v1.30.0 to v1.33.0 has to pass"},
		"target":   {"v1.30.0 - v1.31.7", "v1.31.7 is not one of the versions that clusters may get"},
		"back":     {"v1.33.0 - v1.31.0", "there is no way from v1.33.0 to v1.31.0"},
		"major":    {"v1.33.0 - v2.0.0", "there is no way"},
		"no text":  {"x - v1.33.0", `the version of the control plane, "x", is no version`},
		"no text2": {"v1.30.0 - x", `the requested version, "x", is no version`},
		"workers":  {"v1.30.0 x v1.31.0", `the version of the workers, "x", is no version`},
	}
	for name, tc := range cases {
		p := upgradeplan.Planner{EveryWorker: true, Versions: func(context.Context, *clusterv1.Cluster) ([]string, error) {
			return []string{"v1.31.0", "v1.33.0"}, nil
		}}
		if err := p.Generate(t.Context(), journey(tc.journey), &hooksv1.GenerateUpgradePlanResponse{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: want %q, got %v", name, tc.want, err)
		}
	}
	broken := upgradeplan.Planner{Versions: func(context.Context, *clusterv1.Cluster) ([]string, error) { return nil, errors.New("no registry") }}
	if err := broken.Generate(t.Context(), journey("v1.30.0 - v1.31.0"), &hooksv1.GenerateUpgradePlanResponse{}); err == nil || !strings.Contains(err.Error(), "no registry") {
		t.Errorf("got %v", err)
	}
}

// UP-02: the rules of a plan.
func TestCheck(t *testing.T) {
	cases := map[string]struct{ journey, plane, workers, want string }{
		"good":                  {"v1.29.0 v1.29.0 v1.33.0", "v1.30.0 v1.31.0 v1.32.0 v1.33.0", "v1.32.0 v1.33.0", ""},
		"workers left out":      {"v1.29.0 v1.29.0 v1.33.0", "v1.30.0 v1.31.0 v1.32.0 v1.33.0", "", ""},
		"another build":         {"v1.30.0+a - v1.30.0+b", "v1.30.0+b", "", ""},
		"nothing":               {"v1.30.0 - v1.30.0", "", "", ""},
		"gap":                   {"v1.29.0 - v1.31.0", "v1.31.0", "", "controlPlaneUpgrades leaves out a minor version between v1.29.0 and v1.31.0"},
		"falls":                 {"v1.29.0 - v1.30.0", "v1.30.1 v1.30.0", "", "controlPlaneUpgrades has v1.30.0 after v1.30.1"},
		"twice":                 {"v1.29.0 - v1.30.0", "v1.30.0 v1.30.0", "", "has v1.30.0 after v1.30.0"},
		"short":                 {"v1.29.0 - v1.31.0", "v1.30.0", "", "ends with v1.30.0, not with the requested version"},
		"empty":                 {"v1.29.0 - v1.30.0", "", "", "controlPlaneUpgrades ends with v1.29.0"},
		"too many":              {"v1.30.0 - v1.30.0", "v1.31.0", "", "controlPlaneUpgrades has versions, and v1.30.0 is the requested one"},
		"no version":            {"v1.29.0 - v1.30.0", "soon", "", `a version of controlPlaneUpgrades, "soon", is no version`},
		"no workers":            {"v1.29.0 - v1.30.0", "v1.30.0", "v1.30.0", "there are no workers"},
		"workers done":          {"v1.29.0 v1.30.0 v1.30.0", "v1.30.0", "v1.31.0", "workersUpgrades has versions, and v1.30.0 is the requested one"},
		"workers behind":        {"v1.29.0 v1.29.0 v1.33.0", "v1.30.0 v1.31.0 v1.32.0 v1.33.0", "v1.33.0", "leaves the workers at v1.29.0 while the control plane gets v1.33.0"},
		"workers elsewhere":     {"v1.29.0 v1.29.0 v1.31.0", "v1.30.0 v1.31.0", "v1.30.1 v1.31.0", "has v1.30.1 where the control plane does not have or pass it"},
		"workers are a version": {"v1.29.0 x v1.30.0", "v1.30.0", "v1.30.0", `the version that workersUpgrades start from, "x"`},
	}
	for name, tc := range cases {
		err := upgradeplan.Check(journey(tc.journey), &hooksv1.GenerateUpgradePlanResponse{ControlPlaneUpgrades: steps(tc.plane), WorkersUpgrades: steps(tc.workers)})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: want %q, got %v", name, tc.want, err)
		}
	}
	if err := upgradeplan.Check(journey("v1.29.0 - x"), &hooksv1.GenerateUpgradePlanResponse{}); err == nil {
		t.Error("a target that is no version")
	}
}
