package manager_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// only are the sets of these names.
func only(names ...providerset.Name) []providerset.Set {
	return providerset.Without(providerset.Others(names...)...)
}

// witness is a proxy before an API server, for the ServiceAccount of a manager, that remembers what is watched and written.
type witness struct {
	kubeconfig string

	mu   sync.Mutex
	seen map[string]bool
	// refused are requests that the rights do not cover.
	refused map[string]bool
}

// resources of a request: its group and its plural, with the subresource.
var resourcePath = regexp.MustCompile(`^/(?:api/v1|apis/([^/]+)/[^/]+)(?:/namespaces/[^/]+)?/([a-z]+)(?:/[^/]+(/[a-z]+)?)?$`)

func newWitness(t *testing.T, server *apiserver.Server, account string) *witness {
	t.Helper()
	w := &witness{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), seen: map[string]bool{}, refused: map[string]bool{}}
	target, err := url.Parse(server.Config.Host)
	must(t, err)
	transport, err := rest.TransportFor(server.Config)
	must(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }, Transport: transport, FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error { w.note(r); return nil },
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["c"] = &clientcmdapi.Cluster{Server: front.URL}
	cfg.AuthInfos["u"] = &clientcmdapi.AuthInfo{Impersonate: "system:serviceaccount:" + rbac.Namespace + ":" + account}
	cfg.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	cfg.CurrentContext = "x"
	must(t, clientcmd.WriteToFile(*cfg, w.kubeconfig))
	return w
}

func (w *witness) note(r *http.Response) {
	parts := resourcePath.FindStringSubmatch(r.Request.URL.Path)
	if parts == nil {
		return
	}
	what := strings.TrimSuffix(parts[2]+parts[3]+"."+parts[1], ".")
	line := "write " + what
	if r.Request.Method == http.MethodGet {
		line = "read " + what
		if r.Request.URL.Query().Get("watch") == "true" {
			line = "watch " + what
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[line] = true
	if r.StatusCode == http.StatusForbidden {
		w.refused[line] = true
	}
}

func (w *witness) lines(verb string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for line := range w.seen {
		if what, ok := strings.CutPrefix(line, verb+" "); ok {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// Each provider runs alone beside a core of others, with its own rights, and watches and writes nothing that is not its own.
func TestEachProviderAlone(t *testing.T) {
	cases := map[providerset.Name]struct{ watched, written []string }{
		providerset.BootstrapKubeadm: {watched: []string{
			"clusters.cluster.x-k8s.io", "kubeadmconfigs.bootstrap.cluster.x-k8s.io",
			"machinepools.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "secrets",
		}},
		providerset.ControlPlaneHosted: {watched: []string{
			"clusters.cluster.x-k8s.io", "etcdsnapshotpolicies.controlplane.slipway.dev",
			"hostedcontrolplanes.controlplane.slipway.dev", "machines.cluster.x-k8s.io", "secrets",
		}},
		providerset.InfrastructureLocal: {watched: []string{
			"clusters.cluster.x-k8s.io", "localclusters.infrastructure.slipway.dev", "localmachinepools.infrastructure.slipway.dev",
			"localmachines.infrastructure.slipway.dev", "localmachinetemplates.infrastructure.slipway.dev",
			"machinepools.cluster.x-k8s.io", "machines.cluster.x-k8s.io",
		}},
	}
	for name, tc := range cases {
		t.Run(string(name), func(t *testing.T) {
			server := apiserver.Start(t, apiserver.Options{})
			c := newClient(t, server)
			rights := rbac.Rights{Sets: only(name)}
			w := newWitness(t, server, rbac.RoleOf(name))
			startProcessOver(t, server, w.kubeconfig, rights, "--providers", string(name))
			eventually(t, "its CRDs are installed before those of the core", func() error { return exactly(t, c, providerset.CRDs(rights.Sets)) })
			must(t, crds.Install(t.Context(), c, crds.Options{Sets: only(providerset.Core)})) // of someone else
			eventually(t, "its controllers watch", func() error {
				if diff := cmp.Diff(tc.watched, w.lines("watch")); diff != "" {
					return fmt.Errorf("watched (-want +got):\n%s", diff)
				}
				return nil
			})
			written := []string{ // the review is a question, which everyone may ask and which is not stored
				"customresourcedefinitions.apiextensions.k8s.io", "secrets", "selfsubjectaccessreviews.authorization.k8s.io",
				"validatingwebhookconfigurations.admissionregistration.k8s.io",
			}
			if name == providerset.BootstrapKubeadm { // the only one of these with defaults
				written = slices.Insert(written, 1, "mutatingwebhookconfigurations.admissionregistration.k8s.io")
			}
			if diff := cmp.Diff(written, w.lines("write")); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.refused) > 0 {
				t.Errorf("the rights do not cover %v", w.refused)
			}
			configurations := &admissionregistrationv1.ValidatingWebhookConfigurationList{}
			must(t, c.List(t.Context(), configurations))
			if n := len(configurations.Items); n != 1 || configurations.Items[0].Name != rights.Sets[0].ValidatingWebhookName() {
				t.Errorf("%d webhook configurations, want %s alone: %v", n, rights.Sets[0].ValidatingWebhookName(), configurations.Items)
			}
		})
	}
}

// exactly reports CRDs of Cluster API's and our groups that are there and should not be, and the reverse.
func exactly(t *testing.T, c client.Client, want []string) error {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := c.List(t.Context(), list); err != nil {
		return err
	}
	var got []string
	for _, crd := range list.Items {
		if !strings.HasPrefix(crd.Name, "foo") {
			got = append(got, crd.Name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("CRDs (-want +got):\n%s", diff)
	}
	return nil
}

// The core alone brings a Cluster up whose infrastructure and control plane are someone else's, which the test plays: Machines
// of a MachineDeployment are cloned from a foreign template, and follow what the provider reports.
func TestCoreAlone(t *testing.T) {
	objects := []client.Object{anyKindOfInfra("FooCluster"), anyKindOfInfra("FooMachine"), anyKindOfInfra("FooMachineTemplate"), anyKindOfInfra("FooControlPlane")}
	server := apiserver.Start(t, apiserver.Options{Objects: objects})
	c := newClient(t, server)
	rights := rbac.Rights{Sets: only(providerset.Core)}
	w := newWitness(t, server, rbac.RoleOf(providerset.Core))
	startProcessOver(t, server, w.kubeconfig, rights, "--providers", "cluster-api")
	foreign := func(kind string, content map[string]any) {
		o := &unstructured.Unstructured{Object: content}
		o.SetAPIVersion(infraGroup + "/v1")
		o.SetKind(kind)
		o.SetNamespace("default")
		o.SetName("alone")
		must(t, c.Create(t.Context(), o))
	}
	done := map[string]any{"provisioned": true, "controlPlaneInitialized": true}
	endpoint := map[string]any{"host": "127.0.0.1", "port": int64(1)}
	foreign("FooCluster", map[string]any{"spec": map[string]any{"controlPlaneEndpoint": endpoint}, "status": map[string]any{"initialization": done}})
	foreign("FooControlPlane", map[string]any{"spec": map[string]any{"version": "v1.36.3"}, "status": map[string]any{"initialization": done, "version": "v1.36.3"}})
	foreign("FooMachineTemplate", map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"size": "small"}}}})
	kubeconfig, err := os.ReadFile(server.Kubeconfig)
	must(t, err)
	must(t, c.Create(t.Context(), &corev1.Secret{Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "alone"}}}))
	for _, o := range clusterOfOthers() {
		eventually(t, "create "+o.GetName(), func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), o)) })
	}
	machines := &unstructured.UnstructuredList{}
	machines.SetAPIVersion(infraGroup + "/v1")
	machines.SetKind("FooMachineList")
	eventually(t, "the Machine is cloned from the foreign template", func() error {
		if err := c.List(t.Context(), machines); err != nil || len(machines.Items) != 1 {
			return fmt.Errorf("%d FooMachines, %w", len(machines.Items), err)
		}
		return nil
	})
	made := &machines.Items[0]
	must(t, c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Spec: corev1.NodeSpec{ProviderID: "foo://worker"}}))
	must(t, c.Patch(t.Context(), made, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"providerID":"foo://worker"},"status":{"initialization":{"provisioned":true}}}`))))
	eventually(t, "the Machine has its Node", func() error {
		list := &clusterv1.MachineList{}
		if err := c.List(t.Context(), list); err != nil || len(list.Items) != 1 || list.Items[0].Status.NodeRef.Name != "worker" {
			return fmt.Errorf("%+v, %w", list.Items, err)
		}
		cluster := &clusterv1.Cluster{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "alone"}, cluster); err != nil {
			return err
		}
		if available := condition.Set(cluster.Status.Conditions).Get(clusterv1.ClusterControlPlaneInitializedCondition); available == nil || available.Status != "True" {
			return fmt.Errorf("%+v", cluster.Status)
		}
		return nil
	})
	must(t, exactly(t, c, providerset.CRDs(rights.Sets)))
	for _, verb := range []string{"watch", "read", "write"} {
		for _, line := range w.lines(verb) {
			if strings.Contains(line, "slipway.dev") || strings.Contains(line, "kubeadm") {
				t.Errorf("the core alone: %s %s", verb, line)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.refused) > 0 {
		t.Errorf("the rights do not cover %v", w.refused)
	}
}

func clusterOfOthers() []client.Object {
	ref := func(kind string) clusterv1.ContractVersionedObjectReference {
		return clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: kind, Name: "alone"}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"}}
	cluster.Spec.InfrastructureRef, cluster.Spec.ControlPlaneRef = ref("FooCluster"), ref("FooControlPlane")
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"}}
	md.Spec.ClusterName, md.Spec.Replicas = "alone", new(int32(1))
	md.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: "alone", Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: new("none")}, InfrastructureRef: ref("FooMachineTemplate"),
	}
	return []client.Object{cluster, md}
}
