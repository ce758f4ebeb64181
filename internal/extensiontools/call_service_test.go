package extensiontools_test

import (
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

const base = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"

// RT-26: an extension behind a Service is called through the proxy of a real API server, by the verb `extension call` and at
// the path that `kubectl create --raw` uses.
func TestThroughService(t *testing.T) {
	x := hooktest.Start(t, hooktest.Options{At: net.JoinHostPort(ownAddress(t), "0"), Prefix: "/prefix"})
	response := &hooksv1.BeforeClusterCreateResponse{}
	response.APIVersion, response.Kind = "hooks.runtime.cluster.x-k8s.io/v1alpha1", "BeforeClusterCreateResponse"
	response.Status, response.Message = hooksv1.ResponseStatusSuccess, "hello"
	x.Handle(hooktest.Handler("greet", "BeforeClusterCreate"), hooktest.Respond(response))
	server, c := clusterWith(t, x)

	raw, err := kubernetes.NewForConfigOrDie(server.Config).CoreV1().RESTClient().Post().
		AbsPath("/api/v1/namespaces/team/services/https:svc:443/proxy/prefix" + base + "discovery").
		Body([]byte(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryRequest"}`)).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(raw), `"kind":"DiscoveryResponse"`) || !strings.Contains(string(raw), `"name":"greet"`) {
		t.Errorf("create --raw: %s, %v", raw, err)
	}
	o := extensiontools.CallOptions{
		Handler: "greet", Request: []byte("cluster: {metadata: {name: demo, namespace: team}}"), Now: time.Now, Config: server.Config,
	}
	result, err := extensiontools.Call(t.Context(), c, o)
	if err != nil || result.Response.GetMessage() != "hello" || result.Object != "Cluster team/demo" {
		t.Fatalf("got %+v, %v", result, err)
	}
	sent := x.Bodies(base + "beforeclustercreate/greet")
	if len(sent) != 1 || !strings.Contains(string(sent[0]), `"name":"demo"`) {
		t.Errorf("the extension was sent %s", sent)
	}
	if err := c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "pod"}}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	_, err = extensiontools.Call(t.Context(), c, o)
	if fault.KindOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "HTTP 503 Service Unavailable") {
		t.Errorf("nobody is behind the Service, and the failure policy Ignore hides no error: %v", err)
	}
}

// clusterWith is an API server with the extension behind Service svc in namespace team, discovered as "inside".
func clusterWith(t *testing.T, x *hooktest.Extension) (*apiserver.Server, client.Client) {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "team", Name: name} }
	at := x.Listener.Addr().(*net.TCPAddr)
	pod := &corev1.Pod{ObjectMeta: meta("pod"), Spec: corev1.PodSpec{
		AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	config := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "inside"}}
	config.Spec.ClientConfig.Service = runtimev1.ServiceReference{Namespace: "team", Name: "svc", Path: "/prefix"}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
		&corev1.ServiceAccount{ObjectMeta: meta("default")},
		&corev1.Service{ObjectMeta: meta("svc"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "hooks", Port: 443}}}},
		pod,
	}
	server := apiserver.Start(t, apiserver.Options{Objects: append(objects, apiserver.CRDs(t, "ExtensionConfig")...)})
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := server.Client(t, scheme)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	pod.Status.PodIPs, pod.Status.PodIP = []corev1.PodIP{{IP: at.IP.String()}}, at.IP.String()
	must(c.Status().Update(t.Context(), pod))
	must(c.Create(t.Context(), &corev1.Endpoints{ObjectMeta: meta("svc"), Subsets: []corev1.EndpointSubset{{ // deprecated, and what the proxy reads
		Addresses: []corev1.EndpointAddress{{IP: at.IP.String(), TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "team", Name: "pod"}}},
		Ports:     []corev1.EndpointPort{{Name: "hooks", Port: int32(at.Port)}},
	}}}))
	must(c.Create(t.Context(), config))
	config.Status.Handlers = []runtimev1.ExtensionHandler{{
		Name: "greet.inside", TimeoutSeconds: 10, FailurePolicy: "Ignore",
		RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
	}}
	must(c.Status().Update(t.Context(), config))
	return server, c
}

// ownAddress is an address of this machine that an API server may proxy to: it refuses loopback addresses. What is sent to
// an own address does not leave the machine.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no IPv4 address besides the loopback address; a bridge of Docker is enough")
	return ""
}
