package encryptionkeys

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// settled is a cluster with keys that are in effect.
func settled() snapshot {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "c"}
	keys := componentconfig.KeySet{Current: componentconfig.NewKeys()}
	s := snapshot{
		Cluster: &clusterv1.Cluster{ObjectMeta: meta, Spec: clusterv1.ClusterSpec{ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "c"}}},
		Plane:  &hostedv1.HostedControlPlane{ObjectMeta: meta},
		Secret: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-encryption"}, Data: keys.Data()},
	}
	s.Plane.Spec.Encryption = &hostedv1.Encryption{}
	s.Plane.Status.EncryptionKeys = keys.Fingerprint()
	return s
}

// keysOf are the keys of the Secret.
func (s snapshot) keysOf() componentconfig.KeySet {
	keys, err := componentconfig.ParseKeys(s.Secret.Data)
	if err != nil {
		panic(err)
	}
	return keys
}

func rotated(s *snapshot)   { s.Secret.Data = s.keysOf().Rotated().Data() }
func inEffect(s *snapshot)  { s.Plane.Status.EncryptionKeys = s.keysOf().Fingerprint() }
func forgotten(s *snapshot) { s.Secret.Data = s.keysOf().WithoutFormer().Data() }

func TestDecide(t *testing.T) {
	wait := step{Wait: "HostedControlPlane c restarts with the keys of Secret c-encryption"}
	for name, tc := range map[string]struct {
		changes []func(*snapshot)
		want    step
		begun   bool
		says    string // of the error
	}{
		"nothing under way":      {nil, step{Action: actionDone}, false, ""},
		"new keys":               {[]func(*snapshot){rotated}, wait, true, ""},
		"new keys in effect":     {[]func(*snapshot){rotated, inEffect}, step{Action: actionRewrite}, true, ""},
		"old keys forgotten":     {[]func(*snapshot){rotated, inEffect, forgotten}, wait, true, ""},
		"done":                   {[]func(*snapshot){rotated, inEffect, forgotten, inEffect}, step{Action: actionDone}, false, ""},
		"once more":              {[]func(*snapshot){rotated, inEffect, forgotten, inEffect, rotated}, wait, true, ""},
		"encryption off again":   {[]func(*snapshot){func(s *snapshot) { s.Plane.Spec.Encryption = nil }}, step{Action: actionDone}, false, ""},
		"no encryption":          {[]func(*snapshot){func(s *snapshot) { s.Plane.Spec.Encryption, s.Secret = nil, nil }}, step{}, false, "set spec.encryption of HostedControlPlane c"},
		"no Secret":              {[]func(*snapshot){func(s *snapshot) { s.Secret = nil }}, step{}, false, "Secret c-encryption does not exist"},
		"nothing ever encrypted": {[]func(*snapshot){func(s *snapshot) { s.Plane.Spec.Encryption, s.Plane.Status.EncryptionKeys = nil, "" }}, step{}, false, "is not and was not encrypted, although Secret c-encryption exists"},
		"paused":                 {[]func(*snapshot){func(s *snapshot) { s.Cluster.Spec.Paused = new(true) }}, step{}, false, "remove spec.paused"},
		"paused control plane":   {[]func(*snapshot){func(s *snapshot) { s.Plane.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }}, step{}, false, "remove annotation cluster.x-k8s.io/paused"},
		"being deleted":          {[]func(*snapshot){func(s *snapshot) { now := metav1.Now(); s.Cluster.DeletionTimestamp = &now }}, step{}, false, "is being deleted"},
		"simulated":              {[]func(*snapshot){func(s *snapshot) { s.Plane.Spec.Backend.Simulated = &hostedv1.SimulatedBackend{} }}, step{}, false, "is simulated"},
		"half a Secret":          {[]func(*snapshot){func(s *snapshot) { delete(s.Secret.Data, "aesgcm") }}, step{}, false, "aesgcm has 0; restore it from a backup"},
		"other keys": {[]func(*snapshot){func(s *snapshot) {
			s.Plane.Status.Conditions = []metav1.Condition{{Type: hostedv1.EncryptionKeysAvailableCondition, Status: metav1.ConditionFalse, Message: "Secret c-encryption has other keys"}}
		}}, step{}, false, "has other keys"},
	} {
		s := settled()
		for _, change := range tc.changes {
			change(&s)
		}
		got, err := decide(s)
		if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
		if s.UnderWay() != tc.begun {
			t.Errorf("%s: under way %t", name, s.UnderWay())
		}
	}
}

// world is a cluster with stored objects, each encrypted with the keys of a fingerprint.
type world struct {
	t      *testing.T
	client client.Client
	stored map[string]string
	// fail is called before (true) and after every write to the Secret, and every rewriting.
	fail func(before bool) error
}

func newWorld(t *testing.T) *world {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, hostedv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := settled()
	w := &world{t: t, fail: func(bool) error { return nil }, stored: map[string]string{"a": s.Plane.Status.EncryptionKeys, "b": s.Plane.Status.EncryptionKeys}}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(s.Cluster, s.Plane, s.Secret).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.around(func() error { return c.Patch(ctx, o, p, opts...) })
		},
	}).Build()
	return w
}

// around fails before or after what is done.
func (w *world) around(do func() error) error {
	if err := w.fail(true); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.fail(false)
}

// order is one whose control plane restarts, as far as its data lets it, whenever it is read how far it is.
func (w *world) order() Rotator {
	return Rotator{Operation: progress.Operation{Client: following{w.client, w}, Interval: time.Nanosecond}, Rewrite: func(context.Context, client.ObjectKey) (int, error) {
		return len(w.stored), w.around(func() error {
			current, _, _ := strings.Cut(w.plane().Status.EncryptionKeys, ",")
			for name := range w.stored {
				w.stored[name] = current
			}
			return nil
		})
	}}
}

func (w *world) plane() *hostedv1.HostedControlPlane {
	p := &hostedv1.HostedControlPlane{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// following plays the control plane: it follows the Secret after it was read once.
type following struct {
	client.Client
	w *world
}

func (f following) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := f.Client.Get(ctx, key, o, opts...)
	if secret, ok := o.(*corev1.Secret); ok && err == nil {
		f.w.follow(secret)
	}
	return err
}

// follow has the control plane restart with the keys of the Secret. It is an error where they do not open everything that is stored.
func (w *world) follow(secret *corev1.Secret) {
	keys, err := componentconfig.ParseKeys(secret.Data)
	if err != nil {
		w.t.Fatal(err)
	}
	p := w.plane()
	for name, with := range w.stored {
		if !slices.Contains(strings.Split(keys.Fingerprint(), ","), with) {
			w.t.Fatalf("object %s is encrypted with keys that are gone", name)
		}
	}
	if !componentconfig.KeysSuffice(p.Status.EncryptionKeys, keys.Fingerprint(), keys.Rewritten != "") {
		w.t.Fatalf("the control plane does not start: its data needs %s, and the Secret has %s", p.Status.EncryptionKeys, keys.Fingerprint())
	}
	p.Status.EncryptionKeys = keys.Fingerprint()
	w.stored["new-with-"+p.Status.EncryptionKeys] = strings.Split(p.Status.EncryptionKeys, ",")[0]
	if err := w.client.Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// rotate runs the verb until it is done, however often it is killed.
func (w *world) rotate() (runs int) {
	cluster := &clusterv1.Cluster{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, cluster); err != nil {
		w.t.Fatal(err)
	}
	before := w.plane().Status.EncryptionKeys
	for runs = 1; ; runs++ {
		p, err := w.order().Prepare(w.t.Context(), cluster)
		if err != nil {
			w.t.Fatal(err)
		}
		if runs > 1 && !p.UnderWay && w.plane().Status.EncryptionKeys != before { // done, and the answer was lost
			return runs
		}
		if err := w.order().Run(w.t.Context(), "ns", p); err == nil {
			return runs
		} else if !errors.Is(err, errKilled) {
			w.t.Fatal(err)
		}
		if runs > 10 {
			w.t.Fatal("it does not end")
		}
	}
}

var errKilled = errors.New("killed")

// A rotation that is killed before or after any of its steps is continued by the next run, and at no time is anything encrypted with keys
// that the Secret does not have.
func TestRotationKilledAnywhere(t *testing.T) { // H8
	for at := range 8 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			w, n := newWorld(t), 0
			before := w.plane().Status.EncryptionKeys
			w.fail = func(bool) error {
				if n++; n == at {
					return errKilled
				}
				return nil
			}
			runs := w.rotate()
			after := w.plane().Status.EncryptionKeys
			if left := slices.Collect(maps.Values(w.stored)); slices.Contains(left, before) || strings.Contains(after, before) || strings.Contains(after, ",") {
				t.Errorf("%s before, %s after, and objects with %v", before, after, left)
			}
			if killed := at > 0 && at <= 6; killed != (runs > 1) {
				t.Errorf("%d runs", runs)
			}
		})
	}
}

// What cannot be written once more keeps the old keys.
func TestRewritingFails(t *testing.T) {
	w := newWorld(t)
	o := w.order()
	o.Rewrite = func(context.Context, client.ObjectKey) (int, error) {
		return 1, fault.New(fault.Invalid, reasonNotRewritten, "no")
	}
	if err := o.Run(t.Context(), "ns", Plan{Cluster: "c"}); fault.As(err) == nil || fault.As(err).Reason != reasonNotRewritten {
		t.Errorf("got %v", err)
	}
	if keys := w.plane().Status.EncryptionKeys; !strings.Contains(keys, ",") {
		t.Errorf("the control plane runs with %s alone", keys)
	}
}

func TestPlan(t *testing.T) {
	s := settled()
	rotated(&s)
	inEffect(&s)
	got := strings.Join(planOf(s).Lines(), "\n")
	for _, want := range []string{"restarts in place [done]", "stored objects [under way]", "3. remove the old keys: the control plane restarts in place [to do]", "retain a backup of Secret c-encryption"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}
