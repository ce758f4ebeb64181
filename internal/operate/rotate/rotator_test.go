package rotate

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

func (w *world) cluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{}
	w.get(c, "demo")
	return c
}

// What is not a rotation's business is refused before anything is changed.
func TestPrepare(t *testing.T) { // CP-15
	pair := another(t, "")
	for name, tc := range map[string]struct {
		change func(*snapshot)
		given  bool
		want   string
	}{
		"ours":                     {func(*snapshot) {}, false, ""},
		"ours, and a new one":      {func(*snapshot) {}, true, ""},
		"a user's":                 {func(s *snapshot) { s.Secret.Type = corev1.SecretTypeTLS }, false, "provide the new authority with --certificate and --key"},
		"a user's, and a new one":  {func(s *snapshot) { s.Secret.Type = corev1.SecretTypeTLS }, true, ""},
		"under way":                {in(t, phaseTrustBoth, false), false, ""},
		"under way, and a new one": {in(t, phaseTrustBoth, false), true, "to another authority is in progress: run the command without --certificate"},
		"a KubeadmControlPlane":    {func(s *snapshot) { s.Cluster.Spec.ControlPlaneRef.Kind = "KubeadmControlPlane" }, false, "kubeadm supports one authority at a time"},
		"another control plane":    {func(s *snapshot) { s.Cluster.Spec.ControlPlaneRef.Kind = "OtherControlPlane" }, false, "its kind is \"OtherControlPlane\""},
	} {
		w := newWorld(t, tc.change)
		before := w.secret()
		order := w.order()
		if tc.given {
			order.NewCA = &pair
		}
		p, err := order.Prepare(t.Context(), w.cluster())
		switch {
		case tc.want == "" && (err != nil || len(p.Steps) != 5 || p.UnderWay() != strings.HasPrefix(name, "under way") || p.Problem != ""):
			t.Errorf("%s: %+v, %v", name, p, err)
		case tc.want != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if w.secret().ResourceVersion != before.ResourceVersion {
			t.Errorf("%s: the Secret was changed", name)
		}
	}
}

// The same command line continues what it has begun.
func TestGivenAgain(t *testing.T) {
	w := newWorld(t)
	pair := another(t, "")
	order := w.order()
	order.NewCA = &pair
	for _, phase := range []Phase{phaseNone, phaseTrustBoth, phaseNewSigns, phaseNewOnly} {
		p, err := order.Prepare(t.Context(), w.cluster())
		if err != nil || p.Phase != phase || p.New == nil || p.New.SHA256 != certificate(pair.Cert).SHA256 {
			t.Fatalf("%s: %+v, %v", phase, p, err)
		}
		s, err := order.read(t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo"})
		must(t, err)
		must(t, order.act(t.Context(), s, install{phase}))
	}
}

// The authority that a person brings is the one that is installed, with what else the Secret has.
func TestInstallGiven(t *testing.T) {
	w := newWorld(t, func(s *snapshot) { s.Secret.Type, s.Secret.Data["mine"] = corev1.SecretTypeTLS, []byte("x") })
	pair := another(t, "")
	r := w.run(false)
	r.NewCA = &pair
	if _, _, err := r.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := w.secret().Data
	if string(data[nextKey]) != string(pair.KeyPEM) || !strings.HasSuffix(string(data[corev1.TLSCertKey]), string(pair.FirstCertPEM())) || string(data["mine"]) != "x" {
		t.Errorf("%s", data[corev1.TLSCertKey])
	}
}

// Two commands at once install one authority: the second is refused by the API server, and continues with the first one's.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	first, second := w.run(false), w.run(false)
	stale, err := second.read(t.Context(), second.cluster)
	must(t, err)
	if _, _, err := first.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	installed := w.secret()
	if err := second.act(t.Context(), stale, install{phaseNone}); fault.KindOf(err) != fault.Conflict && !apierrors.IsConflict(err) {
		t.Errorf("the second: %v", err)
	}
	w.plane()
	if _, _, err := second.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := w.secret()
	if string(now.Data[corev1.TLSCertKey]) != string(installed.Data[corev1.TLSCertKey]) || now.ResourceVersion == installed.ResourceVersion {
		t.Error("the second has not continued with what the first installed")
	}
}

// A restart is written where it stays: in the topology, if that says when the MachineDeployment was restarted last. It is later than the
// MachineSets, whatever the clock here says.
func TestRestart(t *testing.T) {
	made := began.Add(-time.Hour)
	topology := func(after time.Time) func(*snapshot) {
		return func(s *snapshot) {
			s.Deployments[0].Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] = "workers"
			s.Cluster.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "other"}, {Name: "workers"}}
			s.Cluster.Spec.Topology.Workers.MachineDeployments[1].Rollout.After = metav1.NewTime(after)
			s.Sets[0].CreationTimestamp = metav1.NewTime(made)
		}
	}
	for name, tc := range map[string]struct {
		change               func(*snapshot)
		topology, deployment time.Time
	}{
		"no topology":              {func(s *snapshot) { s.Sets[0].CreationTimestamp = metav1.NewTime(made) }, time.Time{}, began},
		"the clock here is behind": {func(s *snapshot) { s.Sets[0].CreationTimestamp = metav1.NewTime(began.Add(time.Minute)) }, time.Time{}, began.Add(61 * time.Second)},
		"topology without time":    {topology(time.Time{}), time.Time{}, began},
		"topology with time":       {topology(made), began, time.Time{}},
	} {
		w := newWorld(t, tc.change)
		s, err := w.order().read(t.Context(), client.ObjectKey{Namespace: "ns", Name: "demo"})
		must(t, err)
		must(t, w.order().act(t.Context(), s, restart{"md"}))
		d := &clusterv1.MachineDeployment{}
		w.get(d, "md")
		var inTopology time.Time
		if all := w.cluster().Spec.Topology.Workers.MachineDeployments; len(all) > 0 {
			inTopology = all[1].Rollout.After.Time
		}
		if !d.Spec.Rollout.After.Time.Equal(tc.deployment) || !inTopology.Equal(tc.topology) {
			t.Errorf("%s: MachineDeployment %v, topology %v", name, d.Spec.Rollout.After, inTopology)
		}
	}
}

// When the time to wait is over, the error says that the command continues; an interruption is told as one.
func TestOver(t *testing.T) {
	w := newWorld(t, in(t, phaseTrustBoth, false), behindPlane)
	p, err := w.order().Prepare(t.Context(), w.cluster())
	must(t, err)
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if err := w.order().Run(late, "ns", p); fault.KindOf(err) != fault.Transient || !strings.Contains(err.Error(), "run the command again to continue it") {
		t.Errorf("%v", err)
	}
	gone, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := w.order().Run(gone, "ns", p); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
