package manager_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// recorder stands between a manager and the API server, and remembers what the manager writes in the namespace of the clusters,
// and which Secrets it reads there.
type recorder struct {
	kubeconfig string

	mu sync.Mutex
	// asked are method, path and body.
	asked []string
}

func newRecorder(t *testing.T, server *apiserver.Server) *recorder {
	t.Helper()
	r := &recorder{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	target, err := url.Parse(server.Config.Host)
	must(t, err)
	transport, err := rest.TransportFor(server.Config)
	must(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }, Transport: transport, FlushInterval: -1,
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		r.note(q, body)
		proxy.ServeHTTP(w, q)
	}))
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["c"] = &clientcmdapi.Cluster{Server: front.URL}
	cfg.AuthInfos["u"] = &clientcmdapi.AuthInfo{Impersonate: rbac.User}
	cfg.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	cfg.CurrentContext = "x"
	must(t, clientcmd.WriteToFile(*cfg, r.kubeconfig))
	return r
}

func (r *recorder) note(q *http.Request, body []byte) {
	if !strings.Contains(q.URL.Path, "/namespaces/default/") || q.Method == http.MethodGet && !strings.Contains(q.URL.Path, "/secrets/") {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q.Method+" "+q.URL.Path+" "+string(body))
}

// mentions returns the requests that name something, in short.
func (r *recorder) mentions(text string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, a := range r.asked {
		if strings.Contains(a, text) {
			out = append(out, a[:min(len(a), 300)])
		}
	}
	return out
}

// createFleetOf creates the simulated cluster of examples/fleet.yaml under another name, with the watch label on what a person
// would label: the Cluster, its infrastructure and control plane, and the MachineDeployment.
func createFleetOf(t *testing.T, c client.Client, namespace, name, filter string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "fleet.yaml"))
	must(t, err)
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	must(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "fleet", name)), 0o600))
	objects, err := readObjects(namespace, path)
	must(t, err)
	for _, o := range objects {
		if filter != "" && !strings.HasSuffix(o.GetKind(), "Template") {
			o.SetLabels(map[string]string{clusterv1.WatchLabel: filter})
		}
		eventually(t, "create "+o.GetKind()+" "+o.GetName(), func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), o)) })
	}
}

func untilAvailable(t *testing.T, c client.Client, namespace, name string) {
	t.Helper()
	eventually(t, "Cluster "+name+" is available", func() error {
		cluster := &clusterv1.Cluster{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, cluster); err != nil {
			return err
		}
		if available := condition.Set(cluster.Status.Conditions).Get(clusterv1.AvailableCondition); available == nil || available.Status != "True" {
			return fmt.Errorf("%+v", available)
		}
		return nil
	})
}

// machinesOf returns the names of the Machines in a Cluster.
func machinesOf(t *testing.T, c client.Client, cluster string) []string {
	t.Helper()
	list := &clusterv1.MachineList{}
	must(t, c.List(t.Context(), list, client.InNamespace("default")))
	var out []string
	for _, m := range list.Items {
		if m.Spec.ClusterName == cluster {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return out
}

// lonely is a Machine that no one has made.
func lonely(name, cluster, filter string, labels map[string]string) *clusterv1.Machine {
	data := name
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}}
	m.Spec = clusterv1.MachineSpec{ClusterName: cluster, Bootstrap: clusterv1.Bootstrap{DataSecretName: &data},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.slipway.dev", Kind: "LocalMachine", Name: name}}
	if filter != "" {
		m.Labels = map[string]string{clusterv1.WatchLabel: filter}
	}
	return m
}

// TestTwoManagers: two managers with a filter each work in one namespace, in which there is a third cluster besides. None
// writes what is not its own, or connects to it; what they create is theirs again; nothing is there twice.
func TestTwoManagers(t *testing.T) { // PA-02, CT-09, MS-03
	server := apiserver.Start(t, apiserver.Options{})
	c := newClient(t, server)
	amber, birch := newRecorder(t, server), newRecorder(t, server)
	startProcessOver(t, server, amber.kubeconfig, rbac.Rights{}, "--watch-filter", "amber")
	createFleetOf(t, c, "default", "cedar", "")
	createFleetOf(t, c, "default", "amber", "amber")
	second := startProcessOver(t, server, birch.kubeconfig, rbac.Rights{}, "--watch-filter", "birch")
	createFleetOf(t, c, "default", "birch", "birch")
	// One that looks as if it were of the deployment, and one with the label in a Cluster without it.
	must(t, c.Create(t.Context(), lonely("cedar-stray", "amber", "", map[string]string{clusterv1.MachineDeploymentNameLabel: "amber-workers"})))
	must(t, c.Create(t.Context(), lonely("cedar-lost", "cedar", "amber", nil)))
	for _, name := range []string{"amber", "birch"} {
		untilAvailable(t, c, "default", name)
		if got := machinesOf(t, c, name); len(slices.DeleteFunc(got, func(m string) bool { return m == "cedar-stray" })) != 1 {
			t.Errorf("Machines of %s: %v, want one", name, got)
		}
	}
	for _, o := range sweep(t, c, "default") {
		name := o.GetName()
		if slices.Contains([]string{"Machine", "MachineSet", "LocalMachine", "KubeadmConfig"}, o.GetKind()) && !strings.HasPrefix(name, "cedar") {
			if cluster, _, _ := strings.Cut(name, "-"); o.GetLabels()[clusterv1.WatchLabel] != cluster {
				t.Errorf("%s %s has the labels %v", o.GetKind(), name, o.GetLabels())
			}
		}
		if strings.HasPrefix(name, "cedar") && (len(o.GetFinalizers()) > 0 || o.Object["status"] != nil && o.GetKind() != "Cluster") {
			t.Errorf("%s %s was touched: %v", o.GetKind(), name, o.Object)
		}
	}
	hidesAMachine(t, c)
	must(t, c.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "birch"}}))
	eventually(t, "a cluster goes", func() error {
		if left := machinesOf(t, c, "birch"); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
	for who, names := range map[*recorder][]string{amber: {"birch", "cedar"}, birch: {"amber", "cedar"}} {
		for _, name := range names {
			if got := who.mentions(name); len(got) > 0 {
				t.Errorf("%d requests about %s, such as\n%s", len(got), name, strings.Join(got[:min(len(got), 5)], "\n"))
			}
		}
	}
	if len(amber.mentions("amber")) == 0 || len(birch.mentions("birch")) == 0 {
		t.Error("the recorders have seen nothing: they prove nothing")
	}
	// The webhooks are at the manager that started last; when it has ended, the other one takes them.
	second.stop()
	eventually(t, "webhooks answer", func() error { return c.Create(t.Context(), lonely("amber-late", "amber", "amber", nil)) })
}

// hidesAMachine takes the label from a Machine: its MachineSet says so and makes no other in its place.
func hidesAMachine(t *testing.T, c client.Client) {
	t.Helper()
	name := machinesOf(t, c, "amber")[0]
	label := func(value string) {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, clusterv1.WatchLabel, value)
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		must(t, c.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	said := func(want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("the MachineSet misses the Machine: %t", want), func() error {
			list := &clusterv1.MachineSetList{}
			if err := c.List(t.Context(), list, client.InNamespace("default"), client.MatchingLabels{clusterv1.ClusterNameLabel: "amber"}); err != nil {
				return err
			}
			up := condition.Set(list.Items[0].Status.Conditions).Get(clusterv1.ScalingUpCondition)
			if strings.Contains(up.Message, "without the label "+clusterv1.WatchLabel) != want {
				return fmt.Errorf("%+v", up)
			}
			return nil
		})
	}
	label("null")
	said(true)
	label(`"amber"`)
	said(false)
	if got := machinesOf(t, c, "amber"); len(got) != 2 {
		t.Errorf("Machines %v, want the one and the stray", got)
	}
}

// TestNamespaces: a manager that is limited to namespaces reconciles, and connects to, what is there alone.
func TestNamespaces(t *testing.T) { // PA-02, CT-09
	server := apiserver.Start(t, apiserver.Options{})
	c := newClient(t, server)
	for _, name := range []string{"one", "two"} {
		must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	startProcess(t, server, "--namespace", "one")
	createFleetOf(t, c, "two", "outside", "")
	createFleetOf(t, c, "one", "inside", "")
	untilAvailable(t, c, "one", "inside")
	for _, o := range sweep(t, c, "two") {
		if len(o.GetFinalizers()) > 0 || len(o.GetOwnerReferences()) > 0 || o.GetKind() == "Machine" {
			t.Errorf("%s %s was touched: %v", o.GetKind(), o.GetName(), o.Object)
		}
	}
}

// TestDisabledProviders: what the operator has disabled leaves its objects alone, whatever the core writes to them.
func TestDisabledProviders(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t)}) // those of the provider, too: it ran here before
	c := newClient(t, server)
	config := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(config, []byte("apiVersion: config.slipway.dev/v1alpha1\nkind: Configuration\nproviders: {disabled: [infrastructure-local]}\n"), 0o600))
	startProcess(t, server, "--config", config)
	createFleetOf(t, c, "default", "inside", "")
	eventually(t, "the hosted provider has its object and the core owns both", func() error {
		plane, network := &hostedv1.HostedControlPlane{}, &infrav1.LocalCluster{}
		key := client.ObjectKey{Namespace: "default", Name: "inside"}
		if err := errors.Join(c.Get(t.Context(), key, plane), c.Get(t.Context(), key, network)); err != nil {
			return err
		}
		if len(plane.Status.Conditions) == 0 || len(network.OwnerReferences) == 0 {
			return fmt.Errorf("conditions %v, owners %v", plane.Status.Conditions, network.OwnerReferences)
		}
		if len(network.Finalizers) > 0 || len(network.Status.Conditions) > 0 {
			t.Errorf("the LocalCluster was reconciled: %v, %v", network.Finalizers, network.Status.Conditions)
		}
		return nil
	})
}
