package foreign

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/test/foreign/provider"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 2 * time.Minute

// world is a management cluster with Slipway's manager and the provider, seen from one story.
type world struct {
	*testing.T
	client.Client
	provider *provider.Provider
	server   *apiserver.Server
	manager  *managerProcess
	// namespace of the story.
	namespace string
	// until ends all waits, where it is set: those of objects that were changed together.
	until time.Time
}

func newScheme(t *testing.T) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// start starts everything; it ends with the test.
func start(t *testing.T) *world {
	t.Helper()
	crds := append(apiserver.CRDs(t), volumeAttachments())
	for _, k := range provider.Kinds() {
		crds = append(crds, k.CRD())
	}
	srv := apiserver.Start(t, apiserver.Options{Objects: crds})
	w := &world{T: t, Client: srv.Client(t, newScheme(t)), server: srv}
	w.must(manager.Install(t.Context(), srv.Config, rbac.Rights{}))
	w.manager = w.newManager()
	w.manager.start(w)
	t.Cleanup(func() { w.manager.stop(w) })
	mgr, err := ctrl.NewManager(srv.Config, ctrlmanager.Options{
		Scheme: newScheme(t), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}, &corev1.Node{}}}},
	})
	w.must(err)
	access, err := clientcmd.LoadFromFile(srv.Kubeconfig)
	w.must(err)
	w.must(clientcmdapi.FlattenConfig(access))
	kubeconfig, err := clientcmd.Write(*access)
	w.must(err)
	w.provider, err = provider.Add(mgr, kubeconfig, provider.Kinds()...)
	w.must(err)
	testkit.RunBackground(t, mgr.Start)
	return w
}

// in is the world of a story.
func (w *world) in(t *testing.T) *world {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "foreign-"}}
	if err := w.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &world{T: t, Client: w.Client, provider: w.provider, server: w.server, manager: w.manager, namespace: ns.Name}
}

// check plays one check of the table.
func (w *world) check(name string, f func(*world)) {
	w.Helper()
	if !w.Run(name, func(t *testing.T) {
		part := *w
		part.T = t
		f(&part)
	}) {
		w.FailNow()
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		err := w.Create(w.Context(), o)
		for deadline := time.Now().Add(patience); apierrors.IsInternalError(err) && time.Now().Before(deadline); err = w.Create(w.Context(), o) {
			<-time.After(100 * time.Millisecond) // webhooks are not served yet
		}
		w.must(err)
	}
}

// eventually polls until f says of an object that was just read what is wrong no more.
func (w *world) eventually(o client.Object, f func() string) {
	w.Helper()
	problem, deadline := "", time.Now().Add(patience)
	if !w.until.IsZero() {
		deadline = w.until
	}
	for last := false; !last; {
		last = time.Now().After(deadline)
		err := w.Get(w.Context(), client.ObjectKeyFromObject(o), o)
		if err == nil {
			if problem = f(); problem == "" {
				return
			}
		} else {
			problem = err.Error()
		}
		select {
		case <-w.Context().Done():
			w.Fatal(w.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	w.Fatalf("%T %s: %s", o, client.ObjectKeyFromObject(o), problem)
}

// gone waits until objects do not exist.
func (w *world) gone(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		for deadline := time.Now().Add(patience); ; {
			err := w.Get(w.Context(), client.ObjectKeyFromObject(o), o)
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				break
			}
			if time.Now().After(deadline) {
				w.Fatalf("%T %s still exists: %v", o, client.ObjectKeyFromObject(o), o)
			}
			<-time.After(50 * time.Millisecond)
		}
	}
}

// change patches an object as it is now, and its status.
func change[O client.Object](w *world, o O, f func(O)) {
	w.Helper()
	w.must(w.Get(w.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	f(o)
	after := o.DeepCopyObject().(client.Object)
	w.must(w.Patch(w.Context(), o, client.MergeFrom(before)))
	err := w.Status().Patch(w.Context(), after, client.MergeFrom(before))
	if before.GetDeletionTimestamp() != nil {
		err = client.IgnoreNotFound(err) // the first patch let it go
	}
	w.must(err)
}

// conditioned is an object with conditions.
type conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
}

// says returns what is wrong with a condition; want is the beginning of "Status Reason: Message", parts are in the message.
func says(o conditioned, conditionType, want string, parts ...string) string {
	c := meta.FindStatusCondition(o.GetConditions(), conditionType)
	if c == nil {
		return "no condition " + conditionType
	}
	got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	for _, part := range parts {
		if !strings.Contains(c.Message, part) {
			return fmt.Sprintf("%s is %q, want %q in it", conditionType, got, part)
		}
	}
	if !strings.HasPrefix(got, want) {
		return fmt.Sprintf("%s is %q, want %q", conditionType, got, want)
	}
	return ""
}

// saying waits for a condition.
func (w *world) saying(o conditioned, conditionType, want string, parts ...string) {
	w.Helper()
	w.eventually(o, func() string { return says(o, conditionType, want, parts...) })
}

// unless is a problem where something is not so.
func unless(ok bool, problem string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(problem, args...)
}

// owned says what is wrong with the owner of a provider's object.
func owned(o client.Object, owner client.Object, kind, cluster string) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.UID == owner.GetUID() && ref.Kind == kind && ref.APIVersion == clusterv1.GroupVersion.String() {
			return unless(o.GetLabels()[clusterv1.ClusterNameLabel] == cluster, "label %q", o.GetLabels()[clusterv1.ClusterNameLabel])
		}
	}
	return fmt.Sprintf("owners are %v, want %s %s", o.GetOwnerReferences(), kind, owner.GetName())
}

func isTrue(b *bool) bool { return b != nil && *b }

// annotated returns an object with an annotation.
func annotated(u *unstructured.Unstructured, annotation string) *unstructured.Unstructured {
	u.SetAnnotations(map[string]string{annotation: "true"})
	return u
}

// volumeAttachments is what a workload cluster has, and the management cluster that stands in for it here has not.
func volumeAttachments() client.Object {
	k := provider.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttachment"}}
	crd := k.CRD()
	crd.Labels, crd.Annotations = nil, map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, for a test"}
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	return crd
}

// role gives the manager rights on the provider's own group.
func role() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "foreign-provider", Labels: map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{provider.OwnGroup}, Resources: []string{"*"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}}},
	}
}
