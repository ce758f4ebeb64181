package foreign

import (
	"io"
	"net"
	"net/url"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// gateway is an address of an API server that can be taken away and given back.
type gateway struct {
	address, target string

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
}

func (w *world) newGateway() *gateway {
	w.Helper()
	target, err := url.Parse(w.server.Config.Host)
	w.must(err)
	g := &gateway{address: "127.0.0.1:0", target: target.Host}
	g.open(w)
	w.Cleanup(g.close)
	return g
}

func (g *gateway) open(w *world) {
	w.Helper()
	l, err := net.Listen("tcp", g.address)
	w.must(err)
	g.mu.Lock()
	g.listener, g.address = l, l.Addr().String()
	g.mu.Unlock()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go g.relay(in)
		}
	}()
}

func (g *gateway) relay(in net.Conn) {
	out, err := net.Dial("tcp", g.target)
	if err != nil {
		_ = in.Close()
		return
	}
	g.mu.Lock()
	g.conns = append(g.conns, in, out)
	g.mu.Unlock()
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = in.Close(), out.Close()
		}()
	}
}

func (g *gateway) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.listener.Close()
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}

// connectionStory has a workload cluster whose API server stops, and returns.
func (w *world) connectionStory(f family) {
	g := w.newGateway()
	p := w.newCluster(f)
	secret := w.kubeconfigOf(p.Cluster)
	access, err := clientcmd.Load(secret.Data["value"])
	w.must(err)
	for _, c := range access.Clusters {
		c.Server = "https://" + g.address
	}
	secret.Data["value"], err = clientcmd.Write(*access)
	w.must(err)
	c, m := p.Cluster, w.newMachine(f, "m")
	w.create(secret, c, p.infra, p.plane, m, f.machine.New(w.namespace, "m"))
	w.saying(m, "Ready", "True")
	w.check("84 a provider connects beside the core", func(w *world) {
		w.saying(c, "RemoteConnectionProbe", "True")
		cfg, err := clientcmd.RESTConfigFromKubeConfig(w.kubeconfig(c).Data["value"])
		w.must(err)
		workload, err := client.New(cfg, client.Options{})
		w.must(err)
		w.must(workload.Get(w.Context(), client.ObjectKeyFromObject(w.node(m)), &corev1.Node{}))
	})
	w.check("83 an API server that stops and returns is missed, and harms no Machine", func(w *world) {
		g.close()
		w.saying(c, "RemoteConnectionProbe", "False")
		node, uid := m.Status.NodeRef.Name, m.UID
		w.stays(m)
		if m.Status.NodeRef.Name != node || m.UID != uid || m.Status.Phase != "Running" {
			w.Errorf("Machine %s, Node %q, phase %s", m.UID, m.Status.NodeRef.Name, m.Status.Phase)
		}
		g.open(w)
		w.saying(c, "RemoteConnectionProbe", "True")
		w.saying(m, "Ready", "True")
		w.stays(w.node(m))
	})
}

// besideStory has foreign infrastructure beside Slipway's own providers.
func (w *world) besideStory(f family) {
	w.check("36 a simulated HostedControlPlane works with a foreign InfraCluster, which takes no endpoint from it", func(w *world) {
		w.in(w.T).hosted(f)
	})
	w.check("36 a KubeadmConfig joins machines to a foreign control plane", func(w *world) { w.in(w.T).joined(f) })
}

func (w *world) hosted(f family) {
	p := w.newCluster(f)
	c, infra := p.Cluster, annotated(p.infra, provider.HandsOff)
	plane := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"version": "v1.36.3", "backend": map[string]any{"simulated": map[string]any{}}}}}
	plane.SetGroupVersionKind(schema.GroupVersionKind{Group: "controlplane.slipway.dev", Version: "v1alpha1", Kind: "HostedControlPlane"})
	plane.SetNamespace(w.namespace)
	plane.SetName("c")
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "controlplane.slipway.dev", Kind: "HostedControlPlane", Name: "c"}
	w.create(c, infra, plane)
	w.provisioned(f, infra, true)
	w.saying(c, "Available", "True")
	w.saying(c, "RemoteConnectionProbe", "True")
	if !c.Spec.ControlPlaneEndpoint.IsValid() {
		w.Errorf("endpoint %v", c.Spec.ControlPlaneEndpoint)
	}
	w.must(w.Delete(w.Context(), c))
	w.gone(plane)
}

func (w *world) joined(f family) {
	c := w.up(f).Cluster
	config := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"format": "cloud-config"}}}}}
	config.SetGroupVersionKind(schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfigTemplate"})
	config.SetNamespace(w.namespace)
	config.SetName("t")
	replicas := int32(1)
	d := &clusterv1.MachineDeployment{ObjectMeta: w.meta("d")}
	d.Spec.ClusterName, d.Spec.Replicas, d.Spec.Template.Spec = "c", &replicas, f.machineSpec("t", "t")
	d.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: config.GroupVersionKind().Group, Kind: config.GetKind(), Name: "t"}
	w.create(w.authorityOf(c), config, template(w, f.machineTemplate, "t"), d)
	w.saying(d, "Available", "True")
	for _, m := range w.machinesOf(clusterv1.MachineDeploymentNameLabel, "d") {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: m.Name}}
		w.eventually(s, func() string { return unless(len(s.Data["value"]) > 0, "no bootstrap data") })
	}
}
