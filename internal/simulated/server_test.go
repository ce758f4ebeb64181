package simulated_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/simulated"
)

func TestObjects(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	c := clientOf(t, w.start(t, "one"))
	if _, err := c.CoreV1().Nodes().Create(ctx, node("n1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if v, err := c.Discovery().ServerVersion(); err != nil || v.GitVersion != version || v.Minor != "36" {
		t.Errorf("its version is %v %v", v, err)
	}
	maps := c.CoreV1().ConfigMaps("default")
	created, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watching, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	again := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	if _, err := maps.Create(ctx, again, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the same again: %v", err)
	}
	patched, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"k":"2"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if patched.Data["k"] != "2" || patched.ResourceVersion == created.ResourceVersion {
		t.Errorf("patched: %v", patched)
	}
	created.Data["k"] = "3"
	if _, err := maps.Update(ctx, created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of what was read before a change: %v", err)
	}
	if _, err := maps.Apply(ctx, applycorev1.ConfigMap("a", "default").WithData(map[string]string{"k": "4"}), metav1.ApplyOptions{FieldManager: "m"}); !apierrors.IsConflict(err) {
		t.Errorf("applying a field that somebody else owns: %v", err)
	}
	if _, err := maps.Apply(ctx, applycorev1.ConfigMap("a", "default").WithData(map[string]string{"k": "4"}), metav1.ApplyOptions{FieldManager: "m", Force: true}); err != nil {
		t.Errorf("applying with force: %v", err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []watch.EventType
	for e := range watching.ResultChan() {
		if got = append(got, e.Type); e.Type == watch.Deleted {
			break
		}
	}
	if len(got) != 3 || got[0] != watch.Modified || got[1] != watch.Modified {
		t.Errorf("the watch told %v", got)
	}
	if _, err := c.CoreV1().ConfigMaps("nowhere").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("in a namespace that does not exist: %v", err)
	}
}

func TestEviction(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	c := clientOf(t, w.start(t, "one"))
	if _, err := c.CoreV1().Nodes().Create(ctx, node("n1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	app := map[string]string{"app": "a"}
	pods := c.CoreV1().Pods("default")
	for _, name := range []string{"p1", "p2"} {
		if _, err := pods.Create(ctx, pod(name, "n1", app), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	available := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &available, Selector: &metav1.LabelSelector{MatchLabels: app},
	}}
	if _, err := c.PolicyV1().PodDisruptionBudgets("default").Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one disruption is allowed", func() bool {
		b, err := c.PolicyV1().PodDisruptionBudgets("default").Get(ctx, "b", metav1.GetOptions{})
		return err == nil && b.Status.DisruptionsAllowed == 1
	})
	evict := func(name string) error {
		return pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}})
	}
	if err := evict("p1"); err != nil {
		t.Fatalf("the first: %v", err)
	}
	if err := evict("p2"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the second: %v, want 429", err)
	}
	eventually(t, "the evicted pod is gone", func() bool {
		_, err := pods.Get(ctx, "p1", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// Objects of one cluster are not those of another, and neither are their authorities.
func TestIsolation(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	one := w.start(t, "one")
	w.ca = authority(t)
	two := w.start(t, "two")
	if _, err := clientOf(t, one).CoreV1().Nodes().Create(ctx, node("n1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := clientOf(t, two).CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("the other cluster has %v %v", list, err)
	}
	stranger := rest.CopyConfig(two)
	stranger.CertData, stranger.KeyData = one.CertData, one.KeyData
	if _, err := clientOf(t, stranger).CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a certificate of the other cluster: %v", err)
	}
	mistaken := rest.CopyConfig(two)
	mistaken.CAData = one.CAData
	if _, err := clientOf(t, mistaken).CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil || apierrors.IsUnauthorized(err) {
		t.Errorf("a client that trusts the other authority: %v", err)
	}
}

func TestAccess(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	admin := w.start(t, "one")
	address := strings.TrimPrefix(admin.Host, "https://")
	nobody := rest.AnonymousClientConfig(admin)
	if _, err := clientOf(t, nobody).CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("without a certificate: %v", err)
	}
	for _, path := range []string{"/livez", "/readyz", "/version"} {
		if err := clientOf(t, nobody).Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Error(); err != nil {
			t.Errorf("%s without a certificate: %v", path, err)
		}
	}
	root := func(config *rest.Config) (string, error) {
		text, err := clientOf(t, config).Discovery().RESTClient().Get().AbsPath("/").DoRaw(ctx)
		return string(text), err
	}
	if _, err := root(nobody); !apierrors.IsUnauthorized(err) {
		t.Errorf("the root without a certificate: %v", err)
	}
	for _, path := range []string{"/apis/apps/v1", "/openapi/v2"} { // the second is there when it was asked for
		if _, err := clientOf(t, admin).Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if text, err := root(admin); err != nil || !strings.Contains(text, `"`+path+`"`) {
			t.Errorf("the root does not list %s: %s, %v", path, text, err)
		}
	}
	kubeadm := clientOf(t, access(t, address, w.ca, w.ca, "kubernetes-admin", "kubeadm:cluster-admins"))
	user := clientOf(t, access(t, address, w.ca, w.ca, "jane"))
	if _, err := user.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without a role: %v", err)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}}
	if _, err := kubeadm.RbacV1().Roles("default").Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "jane"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane"}},
		RoleRef:  rbacv1.RoleRef{Kind: "Role", APIGroup: rbacv1.GroupName, Name: "reader"}}
	if _, err := kubeadm.RbacV1().RoleBindings("default").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := user.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("a user with a role: %v", err)
	}
	if _, err := user.CoreV1().ConfigMaps("kube-system").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("beyond the role: %v", err)
	}
	if _, err := user.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("giving itself more: %v", err)
	}
}

// Of several authorities the first signs, and the clients of all are trusted.
func TestTwoAuthorities(t *testing.T) { // CP-15
	w := newWorld(t, t.TempDir())
	old, next, foreign := w.ca, authority(t), authority(t)
	spec := w.spec(t, "one")
	spec.CACert, spec.CAKey = slices.Concat(next.CertPEM, old.CertPEM), next.KeyPEM
	if err := w.Start("one", spec); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		authority, signer pki.Pair
		want              func(error) bool
	}{
		"of the old one":     {next, old, func(err error) bool { return err == nil }},
		"of the new one":     {next, next, func(err error) bool { return err == nil }},
		"of another":         {next, foreign, apierrors.IsUnauthorized},
		"who trusts the old": {old, old, func(err error) bool { return err != nil && strings.Contains(err.Error(), "x509") }},
	} {
		client := clientOf(t, access(t, spec.Address, tc.authority, tc.signer, "kubernetes-admin", "system:masters"))
		if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !tc.want(err) {
			t.Errorf("a client %s: %v", name, err)
		}
	}
}

// The rest of a cluster: pods run, end, and go with their node; namespaces empty themselves.
func TestBehaviour(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	c := clientOf(t, w.start(t, "one"))
	if _, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := c.CoreV1().Pods("app")
	for _, n := range []string{"n1", "n2"} {
		if _, err := c.CoreV1().Nodes().Create(ctx, node(n), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*corev1.Pod{pod("ends", "n1", nil), pod("stays", "n2", nil), pod("unbound", "", nil)} {
		if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	phase := func(name string) corev1.PodPhase {
		p, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return corev1.PodPhase(apierrors.ReasonForError(err))
		}
		return p.Status.Phase
	}
	is := func(name string, want corev1.PodPhase) {
		t.Helper()
		eventually(t, name+" is "+string(want), func() bool { return phase(name) == want })
	}
	is("ends", corev1.PodRunning)
	is("stays", corev1.PodRunning)
	if got := phase("unbound"); got != corev1.PodPending {
		t.Errorf("a pod of no node is %s", got)
	}
	if err := pods.Delete(ctx, "ends", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	is("ends", corev1.PodPhase(metav1.StatusReasonNotFound))
	if err := c.CoreV1().Nodes().Delete(ctx, "n2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	is("stays", corev1.PodPhase(metav1.StatusReasonNotFound))
	if _, err := pods.Create(ctx, pod("late", "n2", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	is("late", corev1.PodPhase(metav1.StatusReasonNotFound))

	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"test.slipway.dev/hold"}}}
	if _, err := c.CoreV1().ConfigMaps("app").Create(ctx, held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.CoreV1().Namespaces().Delete(ctx, "app", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := c.CoreV1().ConfigMaps("app").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("in a namespace that is going: %v", err)
	}
	if _, err := c.CoreV1().ConfigMaps("app").Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() bool {
		_, err := c.CoreV1().Namespaces().Get(ctx, "app", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if got := phase("unbound"); got != corev1.PodPhase(metav1.StatusReasonNotFound) {
		t.Errorf("in a namespace that is gone a pod is %s", got)
	}
}

// No one ends a pod on a node whose kubelet is not well.
func TestKubeletNotWell(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	c := clientOf(t, w.start(t, "one"))
	n := node("n1")
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	if _, err := c.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := c.CoreV1().Pods("default")
	if _, err := pods.Create(ctx, pod("p", "n1", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(ctx, "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p, err := pods.Get(ctx, "p", metav1.GetOptions{})
	if err != nil || p.DeletionTimestamp.IsZero() {
		t.Fatalf("it waits for its kubelet: %v %v", p, err)
	}
	n, err = c.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Status.Conditions[0].Status = corev1.ConditionTrue
	if _, err := c.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the kubelet that is well again ends it", func() bool {
		_, err := pods.Get(ctx, "p", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestRestart(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	admin := w.start(t, "one")
	spec := w.Status("one").Spec
	if _, err := clientOf(t, admin).CoreV1().Nodes().Create(ctx, node("n1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	notes := w.Notes(spec.Cluster)
	if err := notes.Set("n1", []byte("text")); err != nil {
		t.Fatal(err)
	}
	w.end()
	ca := w.ca
	w = newWorld(t, w.dir)
	w.ca = ca
	if st := w.Status("one"); !st.Exists || st.Running {
		t.Errorf("before it is started again: %+v", st)
	}
	if err := w.Start("one", spec); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(t, admin).CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart, with the same kubeconfig: %v", err)
	}
	if got := string(w.Notes(spec.Cluster).Get("n1")); got != "text" {
		t.Errorf("the note is %q", got)
	}
}

func TestFaults(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	admin := w.start(t, "one")
	other := clientOf(t, w.start(t, "two"))
	told := make(chan string, 100)
	defer w.Subscribe(func(name string) { told <- name })()
	c := clientOf(t, admin)
	answers := func() bool {
		_, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil
	}
	if !answers() {
		t.Fatal("it does not answer")
	}
	watching, err := c.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.SetFaults("one", simulated.Faults{Down: -1})
	for range watching.ResultChan() { // ends, as the connection does
	}
	if answers() || w.Status("one").Ready {
		t.Error("it answers though it is to be unreachable")
	}
	if _, err := other.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("the other cluster: %v", err)
	}
	w.SetFaults("one", simulated.Faults{})
	if !w.Status("one").Ready {
		t.Error("it is not ready though nothing is wrong any more")
	}
	eventually(t, "it answers again", answers)

	w.SetFaults("one", simulated.Faults{Down: 50 * time.Millisecond})
	eventually(t, "it answers when the time is over", answers)
	for range 3 { // unreachable, reachable, unreachable; and then reachable by itself
		<-told
	}
	<-told

	w.SetFaults("one", simulated.Faults{Slow: 30 * time.Millisecond})
	begin := time.Now()
	if !answers() || time.Since(begin) < 30*time.Millisecond {
		t.Errorf("slow: an answer after %s", time.Since(begin))
	}

	w.SetFaults("one", simulated.Faults{Status: http.StatusTeapot})
	_, err = c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || !strings.Contains(fmt.Sprint(err), "an annotation makes") {
		t.Errorf("errors: %v", err)
	}
	if _, err := other.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("the other cluster: %v", err)
	}
	w.SetFaults("one", simulated.Faults{})
	if !answers() {
		t.Error("it answers with errors though nothing is wrong any more")
	}
}

// 100 clusters come and go, and nothing of them is left.
func TestNothingLeaks(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	cycle := func(name string) {
		admin := w.start(t, name)
		c := clientOf(t, admin)
		if _, err := c.CoreV1().Nodes().Create(ctx, node("n1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		watching, err := c.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		<-watching.ResultChan()
		if err := w.Remove(name); err != nil {
			t.Fatal(err)
		}
		for range watching.ResultChan() { // ends with its cluster
		}
		utilnet.CloseIdleConnectionsFor(c.CoreV1().RESTClient().(*rest.RESTClient).Client.Transport)
	}
	cycle("first")
	before := runtime.NumGoroutine()
	for i := range 100 {
		cycle(fmt.Sprintf("c%d", i))
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+5 })
	files, err := os.ReadDir(w.dir)
	if err != nil && !os.IsNotExist(err) || len(files) > 0 {
		t.Errorf("files are left: %v %v", files, err)
	}
	if st := w.Status("c7"); st.Exists || st.Running {
		t.Errorf("a removed cluster is %+v", st)
	}
	w.start(t, "c7") // its name and port are free again
}

func TestReserve(t *testing.T) {
	w := newWorld(t, t.TempDir())
	a, err := w.Reserve("a")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.Reserve("a"); err != nil || again != a {
		t.Errorf("asked again: %d, then %d %v", a, again, err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	spec := w.spec(t, "a")
	spec.Address = taken.Addr().String()
	if f := fault.As(w.Start("a", spec)); f == nil || f.Reason != "AddressNotFree" {
		t.Errorf("at an address of somebody else: %v", f)
	}
	spec.CAKey = nil
	if f := fault.As(w.Start("a", spec)); f == nil {
		t.Errorf("without a key: %v", f)
	}
}

// Services have addresses, though no one listens there.
func TestServices(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	c := clientOf(t, w.start(t, "one"))
	seen := map[string]bool{}
	for _, name := range []string{"a", "b"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": name}}}
		s, err := c.CoreV1().Services("default").Create(ctx, s, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Spec.ClusterIP == "" || s.Spec.Ports[0].NodePort < 30000 || seen[s.Spec.ClusterIP] {
			t.Errorf("service %s has address %s and port %d", name, s.Spec.ClusterIP, s.Spec.Ports[0].NodePort)
		}
		seen[s.Spec.ClusterIP] = true
	}
	dns := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "dns"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.10", Ports: []corev1.ServicePort{{Port: 53}}}}
	if _, err := c.CoreV1().Services("default").Create(ctx, dns, metav1.CreateOptions{}); err != nil {
		t.Errorf("an address that is asked for: %v", err)
	}
}
