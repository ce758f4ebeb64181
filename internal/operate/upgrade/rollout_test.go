package upgrade_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
)

func now() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 5, time.UTC) }

func world(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, controlplanev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func deployment(change func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "md"}}
	change(d)
	return d
}

func TestParse(t *testing.T) { // CX-17
	for name, tc := range map[string]struct {
		args string
		want []upgrade.RolloutResource
		err  string
	}{
		"short":        {"md/a", []upgrade.RolloutResource{{Kind: upgrade.MachineDeployment, Name: "a"}}, ""},
		"several":      {"machinedeployment/a kcp/b", []upgrade.RolloutResource{{Kind: upgrade.MachineDeployment, Name: "a"}, {Kind: upgrade.KubeadmControlPlane, Name: "b"}}, ""},
		"kind first":   {"md a b", []upgrade.RolloutResource{{Kind: upgrade.MachineDeployment, Name: "a"}, {Kind: upgrade.MachineDeployment, Name: "b"}}, ""},
		"group":        {"machinedeployments.cluster.x-k8s.io/a", []upgrade.RolloutResource{{Kind: upgrade.MachineDeployment, Name: "a"}}, ""},
		"nothing":      {"", nil, "name what rolls out"},
		"no name":      {"md", nil, "write md/NAME"},
		"empty name":   {"md/", nil, "is not KIND/NAME"},
		"mixed":        {"md a kcp/b", nil, "is no name"},
		"another kind": {"machine/a", nil, "machinedeployment (md), kubeadmcontrolplane (kcp)"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := upgrade.ParseResource(strings.Fields(tc.args), upgrade.Changeable())
			if tc.err != "" {
				wants(t, err, fault.Invalid, tc.err)
			} else if d := cmp.Diff(tc.want, got); d != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}

func wants(t *testing.T, err error, kind fault.Kind, text string) {
	t.Helper()
	if fault.KindOf(err) != kind || !strings.Contains(fault.UserMessage(err), text) {
		t.Errorf("error %v (%s), want one of kind %s with %q", err, fault.UserMessage(err), kind, text)
	}
}

// CX-17: restart sets spec.rollout.after; pause and resume are a field of a MachineDeployment, an annotation of a control plane.
func TestChanges(t *testing.T) {
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cp", Annotations: map[string]string{"other": "kept"}}}
	c := world(t, deployment(func(*clusterv1.MachineDeployment) {}), kcp)
	ctx := t.Context()
	for _, r := range []upgrade.RolloutResource{{Kind: upgrade.MachineDeployment, Name: "md"}, {Kind: upgrade.KubeadmControlPlane, Name: "cp"}} {
		wants(t, upgrade.Resume(ctx, c, "team", r), fault.Invalid, "is not paused")
		if err := upgrade.Restart(ctx, c, "team", r, now()); err != nil {
			t.Fatal(err)
		}
		if err := upgrade.Pause(ctx, c, "team", r); err != nil {
			t.Fatal(err)
		}
		wants(t, upgrade.Pause(ctx, c, "team", r), fault.Invalid, "is paused already")
		wants(t, upgrade.Restart(ctx, c, "team", r, now()), fault.Invalid, "resume it first")
		wants(t, upgrade.Restart(ctx, c, "other", r, now()), fault.Gone, `in namespace "other"`)
	}
	d, p := &clusterv1.MachineDeployment{}, &controlplanev1.KubeadmControlPlane{}
	read := func() {
		t.Helper()
		if err := c.Get(ctx, client.ObjectKey{Namespace: "team", Name: "md"}, d); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "team", Name: "cp"}, p); err != nil {
			t.Fatal(err)
		}
	}
	read()
	for _, after := range []metav1.Time{d.Spec.Rollout.After, p.Spec.Rollout.After} {
		if !after.Equal(&metav1.Time{Time: now().Truncate(time.Second)}) {
			t.Errorf("rollout after %s, want %s", after, now())
		}
	}
	if d.Spec.Paused == nil || !*d.Spec.Paused || p.Annotations[clusterv1.PausedAnnotation] != "true" || p.Annotations["other"] != "kept" {
		t.Errorf("spec.paused %v, annotations %v", d.Spec.Paused, p.Annotations)
	}
	for _, r := range []upgrade.RolloutResource{{Kind: upgrade.MachineDeployment, Name: "md"}, {Kind: upgrade.KubeadmControlPlane, Name: "cp"}} {
		if err := upgrade.Resume(ctx, c, "team", r); err != nil {
			t.Fatal(err)
		}
		wants(t, upgrade.Restart(ctx, c, "team", r, now().Add(-time.Minute)), fault.Invalid, "remove spec.rollout.after")
	}
	*p = controlplanev1.KubeadmControlPlane{}
	read()
	if _, paused := p.Annotations[clusterv1.PausedAnnotation]; paused || *d.Spec.Paused || p.Annotations["other"] != "kept" {
		t.Errorf("spec.paused %v, annotations %v", *d.Spec.Paused, p.Annotations)
	}
}

// set is the MachineSet of md that was created so long before now, with its Machines.
func set(before time.Duration, replicas int32) *clusterv1.MachineSet {
	return &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "md-" + before.String(), CreationTimestamp: metav1.NewTime(now().Add(-before)),
			Labels: map[string]string{clusterv1.MachineDeploymentNameLabel: "md"},
		},
		Status: clusterv1.MachineSetStatus{Replicas: &replicas},
	}
}

// CX-17: straight after a change, Machines still say that they are up to date; status does not believe them.
func TestStatusBeforeMachinesAreJudged(t *testing.T) {
	n := func(i int32) *int32 { return &i }
	d := deployment(func(d *clusterv1.MachineDeployment) {
		d.Generation, d.Spec.Replicas, d.Spec.Rollout.After = 2, n(3), metav1.NewTime(now())
		d.Status = clusterv1.MachineDeploymentStatus{ObservedGeneration: 2, Replicas: n(3), UpToDateReplicas: n(3), AvailableReplicas: n(3)}
	})
	for name, tc := range map[string]struct {
		sets []client.Object
		want int32
	}{
		"none yet": {[]client.Object{set(time.Hour, 3)}, 0},
		"one of 3": {[]client.Object{set(time.Hour, 2), set(-time.Second, 1)}, 1},
		"over":     {[]client.Object{set(-time.Second, 3)}, 3},
	} {
		got, err := upgrade.ReadRollout(t.Context(), world(t, append(tc.sets, d.DeepCopy())...), "team", upgrade.RolloutResource{Kind: upgrade.MachineDeployment, Name: "md"}, now().Add(time.Minute))
		if err != nil || got.UpToDate != tc.want || got.Done() != (tc.want == 3) {
			t.Errorf("%s: %+v, %v; want %d up to date", name, got, err, tc.want)
		}
	}
}

// The controller writes at the same time: what it wrote is read, and the change is made again.
func TestConflict(t *testing.T) {
	failed := false
	c := interceptor.NewClient(world(t, deployment(func(*clusterv1.MachineDeployment) {})), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if !failed {
				failed = true
				return apierrors.NewConflict(schema.GroupResource{Resource: "machinedeployments"}, o.GetName(), errors.New("modified"))
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	if err := upgrade.Pause(t.Context(), c, "team", upgrade.RolloutResource{Kind: upgrade.MachineDeployment, Name: "md"}); err != nil || !failed {
		t.Error(err)
	}
}

// CX-17: what is said of a rollout, in the order in which it happens.
func TestStatus(t *testing.T) {
	n := func(i int32) *int32 { return &i }
	status := func(generation int64, replicas, upToDate, available int32) func(*clusterv1.MachineDeployment) {
		return func(d *clusterv1.MachineDeployment) {
			d.Generation, d.Spec.Replicas = 2, n(3)
			d.Status = clusterv1.MachineDeploymentStatus{ObservedGeneration: generation, Replicas: n(replicas), UpToDateReplicas: n(upToDate), AvailableReplicas: n(available)}
		}
	}
	condition := func(kind, message string) func(*clusterv1.MachineDeployment) {
		return func(d *clusterv1.MachineDeployment) {
			d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Message: message})
		}
	}
	for name, tc := range map[string]struct {
		changes      []func(*clusterv1.MachineDeployment)
		want, paused string
		done         bool
	}{
		"old":        {[]func(*clusterv1.MachineDeployment){status(1, 3, 3, 3)}, "Waiting for the spec of machinedeployment \"md\" to be observed...", "", false},
		"begun":      {[]func(*clusterv1.MachineDeployment){status(2, 4, 1, 3), condition("RollingOut", "* template x does not exist\n* more")}, "1 of 3 machines are up to date... (template x does not exist)", "", false},
		"old ones":   {[]func(*clusterv1.MachineDeployment){status(2, 4, 3, 3)}, "1 old machines are pending termination...", "", false},
		"starting":   {[]func(*clusterv1.MachineDeployment){status(2, 3, 3, 2)}, "2 of 3 updated machines are available...", "", false},
		"over":       {[]func(*clusterv1.MachineDeployment){status(2, 3, 3, 3)}, "machinedeployment \"md\" successfully rolled out", "", true},
		"by spec":    {[]func(*clusterv1.MachineDeployment){status(2, 3, 1, 3), func(d *clusterv1.MachineDeployment) { yes := true; d.Spec.Paused = &yes }}, "1 of 3", "spec.paused", false},
		"by cluster": {[]func(*clusterv1.MachineDeployment){status(2, 3, 1, 3), condition("Paused", "")}, "1 of 3", "spec.paused of its Cluster", false},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(func(d *clusterv1.MachineDeployment) {
				for _, change := range tc.changes {
					change(d)
				}
			})
			got, err := upgrade.ReadRollout(t.Context(), world(t, d, set(0, 3)), "team", upgrade.RolloutResource{Kind: upgrade.MachineDeployment, Name: "md"}, now())
			if err != nil || !strings.Contains(got.String(), tc.want) || got.Done() != tc.done || got.Paused != tc.paused {
				t.Errorf("got %q, done %v, paused %q, %v; want %q, %v, %q", got, got.Done(), got.Paused, err, tc.want, tc.done, tc.paused)
			}
		})
	}
}
