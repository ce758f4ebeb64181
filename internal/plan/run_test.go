package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipwayhq/slipway/test/testkit"
)

const demo = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo, namespace: default}
spec:
  infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalCluster, name: demo}
  controlPlaneRef: {apiGroup: controlplane.slipway.dev, kind: HostedControlPlane, name: demo}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalCluster
metadata: {name: demo, namespace: default}
spec: {}
---
apiVersion: controlplane.slipway.dev/v1alpha1
kind: HostedControlPlane
metadata: {name: demo, namespace: default}
spec: {version: v1.36.3}
---
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalMachineTemplate
metadata: {name: demo, namespace: default}
spec: {template: {spec: {}}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {name: demo, namespace: default}
spec: {template: {spec: {verbosity: 1}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: md, namespace: default}
spec:
  clusterName: demo
  replicas: 2
  template:
    spec:
      clusterName: demo
      version: v1.36.3
      bootstrap: {configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: demo}}
      infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalMachineTemplate, name: demo}
`

// text is a plan in a few words.
func text(p *Plan) string {
	var b strings.Builder
	for _, r := range p.Refused {
		fmt.Fprintf(&b, "refused %s %s: %s\n", r.Kind, r.Name, r.Message)
	}
	for _, o := range p.Objects {
		if o.Verb == Update {
			for _, f := range o.Fields {
				fmt.Fprintf(&b, "update %s %s %s: %v -> %v\n", o.Kind, o.Name, f.Path, f.From, f.To)
			}
			continue
		}
		fmt.Fprintf(&b, "%s %s %s\n", o.Verb, o.Kind, o.Name)
	}
	for _, r := range p.Rollouts {
		fmt.Fprintf(&b, "%s %s: created %d, deleted %v, kept %v\n", r.Kind, r.Name, r.Created, r.Deleted, r.Kept)
		for _, s := range r.Steps {
			fmt.Fprintf(&b, "  created %d, deleted %v\n", s.Created, s.Deleted)
		}
	}
	for _, h := range p.Hooks {
		fmt.Fprintf(&b, "hook %s of %s: %v\n", h.Hook, h.Cluster, h.Handlers)
	}
	for _, w := range p.Waits {
		for _, one := range w.Waits {
			fmt.Fprintf(&b, "waits %s %s: %s\n", w.Kind, w.Object, one.Message)
		}
		for _, one := range w.Errors {
			fmt.Fprintf(&b, "fails %s %s: %s\n", w.Kind, w.Object, one)
		}
	}
	fmt.Fprintf(&b, "touched %v, not %d; under way %d, settled %t\n", p.Clusters, p.Untouched, p.UnderWay, p.Settled)
	return b.String()
}

// replace returns demo with a text replaced.
func replace(t *testing.T, pairs ...string) string {
	t.Helper()
	out := demo
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(out, pairs[i]) {
			t.Fatalf("the manifest has no %q", pairs[i])
		}
		out = strings.Replace(out, pairs[i], pairs[i+1], 1)
	}
	return out
}

// A plan is what the controllers do on a copy of the world, here of one cluster.
func TestRun(t *testing.T) {
	_, rest := run(t, snapshot(t), Change{Apply: read(t, demo)})
	cases := map[string]struct {
		reason string
		change func(*testing.T) Change
	}{
		"nothing":    {"what is applied again changes nothing", func(t *testing.T) Change { return Change{Apply: read(t, demo)} }},
		"scale up":   {"the Machines that are there stay", applied("replicas: 2", "replicas: 4")},
		"scale down": {"the Machine that goes is named", applied("replicas: 2", "replicas: 1")},
		"rollout":    {"each step is one of the strategy", applied("      version: v1.36.3", "      version: v1.36.2", "replicas: 2", "replicas: 5")},
		"skew":       {"what a preflight check holds is a wait", applied("      version: v1.36.3", "      version: v1.37.0")},
		"metadata":   {"labels are written in place", applied("  template:\n    spec:\n      cluster", "  template:\n    metadata: {labels: {a: b}}\n    spec:\n      cluster")},
		"paused":     {"nothing comes of a change of a paused Cluster", applied("spec:\n", "spec:\n  paused: true\n", "replicas: 2", "replicas: 4")},
		"template": {"another template is another machine", applied(
			"kind: LocalMachineTemplate\nmetadata: {name: demo,", "kind: LocalMachineTemplate\nmetadata: {name: other,",
			"LocalMachineTemplate, name: demo}", "LocalMachineTemplate, name: other}")},
		"refused": {"what comes after a refusal is still tried, as kubectl does", applied(
			"clusterName: demo\n  replicas: 2", "clusterName: other\n  replicas: 2")},
		"unknown kind": {"a kind that is not installed", func(t *testing.T) Change {
			return Change{Apply: read(t, "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: x, namespace: default}\n")}
		}},
		"delete":  {"the Cluster takes all with it", func(t *testing.T) Change { return Change{Delete: read(t, demo)[:1]} }},
		"upgrade": {"control plane and workers", applied("spec: {version: v1.36.3}", "spec: {version: v1.36.4}", "      version: v1.36.3", "      version: v1.36.4")},
		"second": {"the other cluster is not touched", func(t *testing.T) Change {
			return Change{Apply: read(t, strings.NewReplacer("name: demo", "name: second", "clusterName: demo", "clusterName: second", "name: md", "name: more").Replace(demo))}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, _ := run(t, rest, tc.change(t))
			testkit.CompareGolden(t, "testdata/"+strings.ReplaceAll(name, " ", "-")+".txt", "# "+tc.reason+"\n"+text(p))
		})
	}
}

func applied(pairs ...string) func(*testing.T) Change {
	return func(t *testing.T) Change { return Change{Apply: read(t, replace(t, pairs...))} }
}

// The same is asked twice, and answered in the same words: names, order and times.
func TestRunIsDeterministic(t *testing.T) {
	var want *Plan
	for range 5 {
		p, _ := run(t, snapshot(t), Change{Apply: read(t, replace(t, "replicas: 2", "replicas: 12"))})
		if want == nil {
			want = p
		}
		if diff := cmp.Diff(want, p, cmpopts.IgnoreUnexported(Step{})); diff != "" {
			t.Fatalf("(-first +now):\n%s", diff)
		}
	}
}

// The snapshot is the caller's.
func TestRunChangesNothing(t *testing.T) {
	_, rest := run(t, snapshot(t), Change{Apply: read(t, demo)})
	before, _ := json.Marshal(rest)
	change := Change{Apply: read(t, replace(t, "replicas: 2", "replicas: 1"))}
	asked, _ := json.Marshal(change)
	run(t, rest, change)
	if after, _ := json.Marshal(rest); string(after) != string(before) {
		t.Error("the snapshot was changed")
	}
	if after, _ := json.Marshal(change); string(after) != string(asked) {
		t.Error("the change was changed")
	}
}

// A run that does not come to rest says so.
func TestRunIsBounded(t *testing.T) {
	o := options(t)
	o.Limits.Reconciliations = 20
	p, _, err := Run(t.Context(), o, snapshot(t), Change{Apply: read(t, demo)})
	if err != nil || p.Settled {
		t.Fatalf("%v, settled %t", err, p.Settled)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Run(ctx, options(t), snapshot(t), Change{}); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any more: %v", err)
	}
}

// What is still to be done before the change is not of the change.
func TestUnderWay(t *testing.T) {
	p, _ := run(t, snapshot(t, read(t, demo)...), Change{Apply: read(t, demo)[5:]})
	if p.UnderWay == 0 || len(p.Rollouts) != 0 {
		t.Errorf("%d under way\n%s", p.UnderWay, text(p))
	}
}
