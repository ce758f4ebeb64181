package hosted

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

var planeRequest = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "p"}}

// connectedTo returns a controller of one control plane whose workload cluster is the API server, and the controller's queue.
func connectedTo(t *testing.T, server *apiserver.Server) (*controller, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	file, err := clientcmd.LoadFromFile(server.Kubeconfig)
	must(t, err)
	must(t, clientcmdapi.FlattenConfig(file))
	kubeconfig, err := clientcmd.Write(*file)
	must(t, err)
	c := cluster()
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "p"}
	mgmt := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(c, plane(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig},
	}).Build()
	clusters, err := workload.New(workload.Config{Management: mgmt, Watched: addons.Watched()})
	must(t, err)
	testkit.RunBackground(t, clusters.Start)
	ctl := &controller{client: mgmt, backends: backends(processes{}), workloads: clusters, inspect: func(ctx context.Context, _ *rest.Config, p addons.Params) (addons.State, error) {
		return addons.Inspect(ctx, server.Config, p)
	}}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	must(t, clusters.Changed(Name, ctl.requestsForConnection).Start(t.Context(), queue))
	_, err = clusters.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
	must(t, err)
	return ctl, queue
}

// enqueued waits for a request.
func enqueued(t *testing.T, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); queue.Len() == 0; <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the control plane is not enqueued")
		}
	}
	got, _ := queue.Get()
	queue.Done(got)
	if got != planeRequest {
		t.Fatalf("enqueued %v", got)
	}
}

func addon(name string) (metav1.ObjectMeta, *metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"k8s-app": name}
	return metav1.ObjectMeta{Namespace: "kube-system", Name: name}, &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name}}},
	}
}

func newDeployment(namespace, name string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.ObjectMeta, d.Spec.Selector, d.Spec.Template = addon(name)
	d.Namespace = namespace
	return d
}

// A change of the add-ons in the workload cluster is said at once.
func TestAddonsFollowTheWorkloadCluster(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	apps := kubernetes.NewForConfigOrDie(server.Config).AppsV1()
	proxy := &appsv1.DaemonSet{}
	proxy.ObjectMeta, proxy.Spec.Selector, proxy.Spec.Template = addon("kube-proxy")
	proxy, err := apps.DaemonSets("kube-system").Create(t.Context(), proxy, metav1.CreateOptions{})
	must(t, err)
	dns, err := apps.Deployments("kube-system").Create(t.Context(), newDeployment("kube-system", "coredns"), metav1.CreateOptions{})
	must(t, err)
	for _, namespace := range []string{"kube-system", "default"} {
		_, err := apps.Deployments(namespace).Create(t.Context(), newDeployment(namespace, "another"), metav1.CreateOptions{})
		must(t, err)
	}
	ctl, queue := connectedTo(t, server)
	enqueued(t, queue) // now that the workload cluster is connected
	ctl.addons.Begin("ns.p")

	at := now
	seen := func() addons.State {
		t.Helper()
		s := running(t, func(s *snapshot) { s.Now, s.Process.Local = at, "127.1.2.3:6443" })
		must(t, ctl.watchAddons(t.Context(), s))
		s.Addons = ctl.addons.Get(nameOf(s.Plane))
		for _, q := range decide(s).Reads {
			s, err = ctl.readRequested(t.Context(), s, q)
			must(t, err)
		}
		return s.Addons.State
	}
	until := func(want addons.State) {
		t.Helper()
		for got := seen(); got != want; got = seen() {
			enqueued(t, queue)
			at = at.Add(changedMaxAge)
		}
	}
	until(addons.State{NoNodes: true})
	changes := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ctl.addons.Begin("ns.p") < want && time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		}
		if got := ctl.addons.Begin("ns.p"); got != want {
			t.Fatalf("%d changes, want %d: each of the two add-ons, and nothing else concerns the control plane", got, want)
		}
	}
	changes(2) // both were seen as they are; else the watches would begin with what they become
	proxy.Status.DesiredNumberScheduled, proxy.Status.NumberAvailable, proxy.Status.ObservedGeneration = 1, 1, proxy.Generation
	_, err = apps.DaemonSets("kube-system").UpdateStatus(t.Context(), proxy, metav1.UpdateOptions{})
	must(t, err)
	dns.Status.Replicas, dns.Status.ReadyReplicas, dns.Status.AvailableReplicas = 1, 1, 1
	dns.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	_, err = apps.Deployments("kube-system").UpdateStatus(t.Context(), dns, metav1.UpdateOptions{})
	must(t, err)
	until(addons.State{})
	changes(4)
}

// What changes while the add-ons are read is read again, after a moment.
func TestAddonsThatChangeWhileTheyAreRead(t *testing.T) {
	ctl := &controller{backends: backends(processes{})}
	ctl.inspect = func(context.Context, *rest.Config, addons.Params) (addons.State, error) {
		ctl.addons.Changed("ns.p")
		return addons.State{NoNodes: true}, nil
	}
	s := running(t, func(s *snapshot) { s.Process.Local = "127.1.2.3:6443" })
	_, err := ctl.readRequested(t.Context(), s, inspectAddons{})
	must(t, err)
	s.Addons = ctl.addons.Get(nameOf(s.Plane))
	if p := decide(s); len(p.Reads) > 0 || p.Recheck != changedMaxAge {
		t.Errorf("at once: %v, again in %s", p.Reads, p.Recheck)
	}
	s.Now = s.Now.Add(changedMaxAge)
	if diff := cmp.Diff([]any{inspectAddons{}}, []any{decide(s).Reads[0]}); diff != "" {
		t.Error(diff)
	}
	ctl.addons.Forget("ns.p")
	ctl.addons.Changed("ns.p")
	if got := ctl.addons.Get("ns.p"); got != (addons.Reading{}) {
		t.Errorf("of a control plane that is gone: %+v", got)
	}
}

// A connection enqueues the control planes that have add-ons, and no other.
func TestConnections(t *testing.T) {
	withPlane := func(change func(*hostedv1.HostedControlPlane)) []reconcile.Request {
		c, p := cluster(), plane()
		c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "p"}
		change(p)
		ctl := &controller{client: fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(c, p).Build(), backends: backends(processes{})}
		maps.Copy(ctl.backends, simulatedBackend(&simulation{}))
		return ctl.requestsForConnection(t.Context(), client.ObjectKeyFromObject(c))
	}
	if diff := cmp.Diff([]reconcile.Request{planeRequest}, withPlane(func(*hostedv1.HostedControlPlane) {})); diff != "" {
		t.Error(diff)
	}
	if got := withPlane(func(p *hostedv1.HostedControlPlane) { p.Spec.Backend.Simulated = &hostedv1.SimulatedBackend{} }); got != nil {
		t.Errorf("simulated: %v", got)
	}
	if got := withPlane(func(p *hostedv1.HostedControlPlane) { p.Name = "other" }); got != nil {
		t.Errorf("of another name: %v", got)
	}
}

// The state of add-ons is read again when it is old, sooner where it is not what it should be.
func TestAddonsAreReadAgain(t *testing.T) {
	calls, state := 0, addons.State{Problem: "x"}
	ctl := &controller{backends: backends(processes{}), inspect: func(context.Context, *rest.Config, addons.Params) (addons.State, error) { calls++; return state, nil }}
	at := func(d time.Duration) snapshot {
		s := running(t, func(s *snapshot) { s.Now, s.Process.Local = now.Add(d), "127.1.2.3:6443" })
		s.Addons = ctl.addons.Get(nameOf(s.Plane))
		if p := decide(s); len(p.Reads) > 0 {
			answered, err := ctl.readRequested(t.Context(), s, p.Reads[0])
			if err != nil || len(decide(answered).Reads) > 0 {
				t.Fatalf("asked again: %v", err)
			}
			return answered
		}
		return s
	}
	if s := at(0); calls != 1 || s.Addons.Problem != "x" || decide(s).Recheck != unhealthyMaxAge {
		t.Errorf("%d calls, %+v", calls, s.Addons)
	}
	state = addons.State{}
	if at(unhealthyMaxAge - time.Second); calls != 1 {
		t.Error("read again too soon")
	}
	if s := at(unhealthyMaxAge); calls != 2 || s.Addons.Problem != "" || decide(s).Recheck != healthyMaxAge {
		t.Errorf("%d calls, %+v", calls, s.Addons)
	}
	if at(unhealthyMaxAge + healthyMaxAge - time.Second); calls != 2 {
		t.Error("read again too soon")
	}
	ctl.inspect = func(context.Context, *rest.Config, addons.Params) (addons.State, error) {
		return addons.State{}, errors.New("x")
	}
	if s := at(unhealthyMaxAge + healthyMaxAge); s.Addons.Err == "" {
		t.Error("an error is not said")
	}
}
