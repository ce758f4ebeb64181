package rotate

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/workload"
)

var began = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// party is one end of a connection: what it trusts, and what it shows. A node, a kubeconfig, or the API server.
type party struct {
	trusts []byte
	shows  *x509.Certificate
}

// accepts reports whether the party trusts what the other one shows.
func (p party) accepts(other party) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.trusts)
	_, err := other.shows.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: began, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

// talks reports why the two cannot speak to each other.
func talks(a, b party) error { return errors.Join(a.accepts(b), b.accepts(a)) }

// world is a cluster whose controllers do what they are told when the test says so.
type world struct {
	t      *testing.T
	client client.Client
	now    time.Time
	names  int
	// api is how the control plane runs, nodes by the name of their Machine.
	api   party
	nodes map[string]party
	// fail is called before (true) and after every write of the rotation; an error ends it there.
	fail func(before bool) error
}

func newWorld(t *testing.T, change ...func(*snapshot)) *world {
	t.Helper()
	w := &world{t: t, now: began, nodes: map[string]party{}, fail: func(bool) error { return nil }}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, hostedv1.AddToScheme} {
		must(t, add(scheme))
	}
	s := fresh(t)
	for _, c := range change {
		c(&s)
	}
	objects := []client.Object{s.Cluster, s.Secret, s.Plane}
	for i := range s.Deployments {
		objects = append(objects, &s.Deployments[i])
	}
	for i := range s.Sets {
		objects = append(objects, &s.Sets[i])
	}
	for i := range s.Pools {
		objects = append(objects, &s.Pools[i])
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&hostedv1.HostedControlPlane{}, &clusterv1.MachineDeployment{}, &clusterv1.MachinePool{}).Build()
	w.plane()
	for _, m := range s.Machines {
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		must(t, w.client.Create(t.Context(), &m))
		w.join(m.Name)
	}
	return w
}

// fresh is a settled cluster: a MachineDeployment of two and a MachinePool of two.
func fresh(t *testing.T) snapshot {
	t.Helper()
	meta := func(name string, labels ...string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u-" + "1", Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}, CreationTimestamp: metav1.NewTime(began)}
		for i := 0; i < len(labels); i += 2 {
			m.Labels[labels[i]] = labels[i+1]
		}
		return m
	}
	data, err := secrets.Generate(secrets.CA, secrets.KeyOptions{}, began)
	must(t, err)
	s := snapshot{Now: began,
		Cluster: &clusterv1.Cluster{ObjectMeta: meta("demo")},
		Secret:  secrets.NewSecret(client.ObjectKey{Namespace: "ns", Name: "demo"}, secrets.CA, secrets.Owner{}, data),
		Plane:   &hostedv1.HostedControlPlane{ObjectMeta: meta("demo")},
	}
	s.Secret.OwnerReferences = nil
	s.Cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "demo"}
	s.Plane.Status.Authority = secrets.Fingerprint(s.Secret)
	s.Plane.Status.Conditions = []metav1.Condition{{Type: hostedv1.AvailableCondition, Status: metav1.ConditionTrue}}
	s.Deployments = []clusterv1.MachineDeployment{{ObjectMeta: meta("md")}}
	s.Deployments[0].Spec.Replicas = ptr.To[int32](2)
	s.Deployments[0].Status = clusterv1.MachineDeploymentStatus{Replicas: ptr.To[int32](2), UpToDateReplicas: ptr.To[int32](2), AvailableReplicas: ptr.To[int32](2)}
	s.Sets = []clusterv1.MachineSet{{ObjectMeta: meta("md-1", clusterv1.MachineDeploymentNameLabel, "md")}}
	s.Pools = []clusterv1.MachinePool{{ObjectMeta: meta("mp")}}
	s.Pools[0].Spec.Replicas = ptr.To[int32](2)
	s.Pools[0].Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachinePool", Name: "mp"}
	s.Pools[0].Status = clusterv1.MachinePoolStatus{Replicas: ptr.To[int32](2), UpToDateReplicas: ptr.To[int32](2), AvailableReplicas: ptr.To[int32](2)}
	for _, m := range []metav1.ObjectMeta{
		meta("md-1-a", clusterv1.MachineDeploymentNameLabel, "md", clusterv1.MachineSetNameLabel, "md-1"),
		meta("md-1-b", clusterv1.MachineDeploymentNameLabel, "md", clusterv1.MachineSetNameLabel, "md-1"),
		meta("mp-a", clusterv1.MachinePoolNameLabel, "mp"), meta("mp-b", clusterv1.MachinePoolNameLabel, "mp"),
	} {
		s.Machines = append(s.Machines, clusterv1.Machine{ObjectMeta: m})
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) order() Rotator {
	return Rotator{Operation: progress.Operation{Now: func() time.Time { return w.now }, Client: interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.guarded(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.guarded(func() error { return c.Delete(ctx, o, opts...) })
		},
	})}}
}

func (w *world) run(begun bool) *run {
	return &run{Rotator: w.order(), cluster: client.ObjectKey{Namespace: "ns", Name: "demo"}, begun: begun}
}

func (w *world) guarded(write func() error) error {
	if err := w.fail(true); err != nil {
		return err
	}
	return errors.Join(write(), w.fail(false))
}

func (w *world) get(o client.Object, name string) {
	w.t.Helper()
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, o))
}

func (w *world) secret() *corev1.Secret {
	s := &corev1.Secret{}
	w.get(s, "demo-ca")
	return s
}

// signed is a certificate of the authority that the Secret has now.
func (w *world) signed() *x509.Certificate {
	s := w.secret()
	ca, err := pki.ParsePair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	must(w.t, err)
	leaf, err := ca.Issue(pki.Leaf{User: "x", Names: []string{"x"}, Client: true}, began)
	must(w.t, err)
	return leaf.Cert
}

// plane restarts the control plane with what the Secret has.
func (w *world) plane() {
	s := w.secret()
	w.api = party{trusts: s.Data[corev1.TLSCertKey], shows: w.signed()}
	p := &hostedv1.HostedControlPlane{}
	w.get(p, "demo")
	p.Status.Authority = secrets.Fingerprint(s)
	must(w.t, w.client.Status().Update(w.t.Context(), p))
}

// join bootstraps the node of a Machine: the API server signs its certificate, with the authority that it runs with, and says what to trust.
func (w *world) join(machine string) {
	leaf := w.api.shows // what signed that signs everything
	w.nodes[machine] = party{trusts: w.api.trusts, shows: leaf}
}

func (w *world) machines() []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	must(w.t, w.client.List(w.t.Context(), list))
	return list.Items
}

// roll replaces one Machine of the MachineDeployment that is out of date, and one of the pool that was deleted.
func (w *world) roll() {
	d := &clusterv1.MachineDeployment{}
	w.get(d, "md")
	sets := &clusterv1.MachineSetList{}
	must(w.t, w.client.List(w.t.Context(), sets))
	slices.SortFunc(sets.Items, func(a, b clusterv1.MachineSet) int { return strings.Compare(b.Name, a.Name) })
	current := sets.Items[0].Name
	if sets.Items[0].CreationTimestamp.Time.Before(d.Spec.Rollout.After.Time) && !w.now.Before(d.Spec.Rollout.After.Time) {
		w.names++
		current = fmt.Sprintf("md-set-%05d", w.names)
		set := sets.Items[0].DeepCopy()
		set.Name, set.ResourceVersion, set.CreationTimestamp = current, "", metav1.NewTime(w.now)
		must(w.t, w.client.Create(w.t.Context(), set))
	}
	ofPool := 0
	for _, m := range w.machines() {
		if set := m.Labels[clusterv1.MachineSetNameLabel]; set != "" && set != current {
			w.create(map[string]string{clusterv1.MachineDeploymentNameLabel: "md", clusterv1.MachineSetNameLabel: current})
			w.remove(m)
			break
		} else if set == "" && m.DeletionTimestamp.IsZero() {
			ofPool++
		} else if set == "" {
			w.remove(m)
		}
	}
	if ofPool < 2 {
		w.create(map[string]string{clusterv1.MachinePoolNameLabel: "mp"})
	}
}

func (w *world) create(labels map[string]string) {
	w.names++
	labels[clusterv1.ClusterNameLabel] = "demo"
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("new-%d", w.names), Labels: labels, Finalizers: []string{clusterv1.MachineFinalizer}}}
	must(w.t, w.client.Create(w.t.Context(), m))
	w.join(m.Name)
}

func (w *world) remove(m clusterv1.Machine) {
	if m.DeletionTimestamp.IsZero() {
		must(w.t, w.client.Delete(w.t.Context(), &m))
		w.get(&m, m.Name)
	}
	m.Finalizers = nil
	must(w.t, w.client.Update(w.t.Context(), &m))
	delete(w.nodes, m.Name)
}

// kubeconfig is an administrator's, as it is now.
func (w *world) kubeconfig() party {
	s := w.secret()
	data, err := secrets.Issue(secrets.Access{Cluster: "demo", Endpoint: clusterv1.APIEndpoint{Host: "::1", Port: 1}}, s, secrets.KeyOptions{}, began)
	must(w.t, err)
	cfg, err := workload.ParseKubeconfig(data["value"], policy.Configuration{})
	must(w.t, err)
	cert, err := pki.ParseCert(cfg.CertData)
	must(w.t, err)
	return party{trusts: cfg.CAData, shows: cert}
}

var errKilled = errors.New("killed")

// TestRotationKilledAnywhere: at every moment of a rotation, whenever it is killed and run again, and in whatever order the others act, all
// nodes and the API server trust each other, and so do the kubeconfigs of this phase and the one before. In the end the old authority is refused.
func TestRotationKilledAnywhere(t *testing.T) { // CP-15
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		w.fail = func(before bool) error {
			if r.IntN(4) == 0 {
				return errKilled
			}
			return nil
		}
		old := w.kubeconfig()
		access := map[Phase]party{}
		phases, kills, done := []Phase{phaseNone}, 0, false
		one := w.run(false)
		for n := 0; !done; n++ {
			if n > 5000 {
				t.Fatalf("seed %d: it does not end: %v", seed, phases)
			}
			w.now = w.now.Add(300 * time.Millisecond)
			var err error
			switch r.IntN(4) {
			case 0:
				w.plane()
			case 1:
				w.roll()
			default:
				done, _, err = one.step(t.Context())
			}
			if errors.Is(err, errKilled) {
				kills++
			} else if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			state, err := read(w.secret())
			must(t, err)
			if r.IntN(3) == 0 { // either the same process sees an error, or another one begins
				if one = w.run(state.Phase != phaseNone); len(phases) > 1 && state.Phase == phaseNone {
					done = true
				}
			}
			if phases[len(phases)-1] != state.Phase {
				phases = append(phases, state.Phase)
			}
			for name, node := range w.nodes {
				if err := talks(node, w.api); err != nil {
					t.Fatalf("seed %d, %s: node of Machine %s: %v", seed, state.Phase, name, err)
				}
			}
			if secrets.Fingerprint(w.secret()) != w.planeStatus() {
				continue // the kubeconfig of a phase is given out when it is in effect
			}
			access[state.Phase] = w.kubeconfig()
			before := map[Phase]Phase{phaseTrustBoth: phaseNone, phaseNewSigns: phaseTrustBoth, phaseNewOnly: phaseNewSigns, phaseNone: phaseNewSigns}[state.Phase]
			for _, p := range []Phase{state.Phase, before} {
				if k, ok := access[p]; ok && talks(k, w.api) != nil {
					t.Fatalf("seed %d: a kubeconfig of phase %s does not work in phase %s: %v", seed, p, state.Phase, talks(k, w.api))
				}
			}
		}
		if want := []Phase{phaseNone, phaseTrustBoth, phaseNewSigns, phaseNewOnly, phaseNone}; !slices.Equal(phases, want) {
			t.Errorf("seed %d: phases %v", seed, phases)
		}
		if kills == 0 {
			t.Errorf("seed %d: it was never killed", seed)
		}
		if w.api.accepts(old) == nil || old.accepts(w.api) == nil || len(w.nodes) != 4 {
			t.Errorf("seed %d: the old kubeconfig still works, or nodes are missing: %d", seed, len(w.nodes))
		}
		if data := w.secret().Data; len(data) != 2 {
			t.Errorf("seed %d: the Secret keeps %d keys", seed, len(data))
		}
	}
}

func (w *world) planeStatus() string {
	p := &hostedv1.HostedControlPlane{}
	w.get(p, "demo")
	return p.Status.Authority
}
