package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step of an injection.
const patience = 10 * time.Minute

// apiVersions has the API version of each kind that the rows use.
func apiVersions() map[string]string {
	const (
		core, addons          = "cluster.x-k8s.io/v1beta2", "addons.cluster.x-k8s.io/v1beta2"
		bootstrap, plane      = "bootstrap.cluster.x-k8s.io/v1beta2", "controlplane.cluster.x-k8s.io/v1beta2"
		local, hosted         = "infrastructure.slipway.dev/v1alpha1", "controlplane.slipway.dev/v1alpha1"
		runtime, foo, fooCP   = "runtime.cluster.x-k8s.io/v1beta2", "infrastructure.foo.dev/v1", "controlplane.foo.dev/v1"
		crd, roles, baz, none = "apiextensions.k8s.io/v1", "rbac.authorization.k8s.io/v1", "infrastructure.baz.dev/v1", "v1"
	)
	return map[string]string{
		"Cluster": core, "ClusterClass": core, "Machine": core, "MachineDeployment": core, "MachineSet": core, "MachinePool": core, "MachineHealthCheck": core,
		"ClusterResourceSet": addons, "KubeadmConfig": bootstrap, "KubeadmConfigTemplate": bootstrap, "KubeadmControlPlane": plane,
		"LocalCluster": local, "LocalMachine": local, "LocalMachineTemplate": local, "HostedControlPlane": hosted, "ExtensionConfig": runtime,
		"FooCluster": foo, "FooMachine": foo, "FooMachinePool": foo, "GoneCluster": foo, "BarCluster": foo, "FooControlPlane": fooCP, "BazCluster": baz,
		"CustomResourceDefinition": crd, "ClusterRoleBinding": roles, "Secret": none, "ConfigMap": none, "Namespace": none,
	}
}

// newObject returns an empty object of a kind.
func newObject(kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersions()[kind])
	u.SetKind(kind)
	return u
}

// world is a management cluster of `slipway up` with all providers.
type world struct {
	client.Client
	// dir is the data directory; elsewhere is one without a manager.
	dir, elsewhere string
	page           page
	// turns limits the explanations at a time.
	turns chan struct{}
	// networks are the address ranges of clusters of containers; nil: there are none.
	networks *networks
	binary   string
	// env is added to the environment of the management cluster.
	env []string
}

// startWorld starts the management cluster and the page until the test ends.
func startWorld(t *testing.T) *world {
	t.Helper()
	temp, err := os.MkdirTemp("", "slipway-test-") // sockets need short paths
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	return startWorldIn(t, temp)
}

// startWorldIn starts a management cluster in a folder, with variables in the environment of its processes.
func startWorldIn(t *testing.T, folder string, env ...string) *world {
	t.Helper()
	binary, err := apiserver.Binary()
	must(t, err)
	w := &world{dir: filepath.Join(folder, "data"), elsewhere: filepath.Join(folder, "other"), turns: make(chan struct{}, 3), binary: binary, env: env}
	t.Cleanup(func() {
		if t.Failed() {
			logEnd(t, filepath.Join(w.dir, "slipway.log"))
		}
		if out, err := w.run("down", "--delete"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	if out, err := w.run("up", "--detach", "--listen", "127.0.0.1:0"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig())
	must(t, err)
	config.QPS, config.Burst = 200, 400
	w.Client, err = client.New(config, client.Options{Scheme: scheme.Scheme})
	must(t, err)
	for _, o := range foreignKinds(t) {
		w.create(t, o)
	}
	w.page = startPage(t, w.dir)
	return w
}

// run runs a command of the program for the data directory, and returns its output.
func (w *world) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.binary, append(args, "--data-dir", w.dir)...)
	cmd.Env = append(os.Environ(), w.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (w *world) kubeconfig() string { return filepath.Join(w.dir, "kubeconfig") }

func logEnd(t *testing.T, path string) {
	text, _ := os.ReadFile(path)
	t.Logf("the end of %s:\n%s", path, text[max(0, len(text)-4<<10):])
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until f returns no error.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err = f(); err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(300 * time.Millisecond):
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// create creates an object; it is retried until the manager's webhooks are there.
func (w *world) create(t testing.TB, o client.Object) {
	t.Helper()
	eventually(t, fmt.Sprintf("create %s %s", o.GetObjectKind().GroupVersionKind().Kind, o.GetName()), func() error {
		err := client.IgnoreAlreadyExists(w.Create(t.Context(), o.DeepCopyObject().(client.Object)))
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			t.Fatal(err)
		}
		return err
	})
}

// decode returns the objects of a manifest.
func decode(t testing.TB, manifest string) (out []*unstructured.Unstructured) {
	t.Helper()
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(u)
		if errors.Is(err, io.EOF) {
			return out
		}
		must(t, err)
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

// namespace is the namespace of one fault.
type namespace struct {
	*world
	*testing.T
	name string
}

func (w *world) newNamespace(t *testing.T, id string) *namespace {
	n := &namespace{w, t, strings.ToLower(id)}
	w.create(t, &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: n.name}})
	return n
}

// must fails the test for an error.
func (n *namespace) must(err error) { n.Helper(); must(n.T, err) }

// apply creates the objects of a manifest with the fields of changes, which are merge patches by kind.
func (n *namespace) apply(manifest string, changes ...string) {
	n.Helper()
	for _, o := range decode(n, manifest) {
		o.SetNamespace(n.name)
		for i := 0; i+1 < len(changes); i += 2 {
			if kind, name, _ := strings.Cut(changes[i], " "); kind == o.GetKind() && (name == "" || name == o.GetName()) {
				above := map[string]any{}
				n.must(yaml.Unmarshal([]byte(changes[i+1]), &above))
				o.Object = merged(o.Object, above)
			}
		}
		n.create(n, o)
	}
}

// merged returns the fields of a with those of b on top.
func merged(a, b map[string]any) map[string]any {
	for key, value := range b {
		above, isMap := value.(map[string]any)
		below, _ := a[key].(map[string]any)
		if isMap && below != nil {
			a[key] = merged(below, above)
			continue
		}
		a[key] = value
	}
	return a
}

// file reads a manifest of the repository.
func (n *namespace) file(parts ...string) string {
	n.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, parts...)...))
	n.must(err)
	return string(text)
}

// get reads an object.
func (n *namespace) get(kind, name string) *unstructured.Unstructured {
	n.Helper()
	o := newObject(kind)
	eventually(n, "read "+kind+" "+name, func() error {
		return n.Get(n.Context(), client.ObjectKey{Namespace: n.name, Name: name}, o)
	})
	return o
}

// list reads the objects of a kind that exist for long, sorted by name, once there are as many as wanted.
func (n *namespace) list(kind string, want int) (out []unstructured.Unstructured) {
	n.Helper()
	eventually(n, fmt.Sprintf("%d of kind %s", want, kind), func() error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersions()[kind])
		list.SetKind(kind + "List")
		if err := n.List(n.Context(), list, client.InNamespace(n.name)); err != nil {
			return err
		}
		if len(list.Items) < want {
			return fmt.Errorf("%d exist", len(list.Items))
		}
		out = list.Items
		return nil
	})
	return out
}

// patch changes an object with a merge patch in YAML.
func (n *namespace) patch(kind, name, patch string) {
	n.Helper()
	eventually(n, "patch "+kind+" "+name, func() error { return n.tryPatch(kind, name, patch) })
}

func (n *namespace) tryPatch(kind, name, patch string) error {
	o := newObject(kind)
	o.SetNamespace(n.name)
	o.SetName(name)
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(patch), &fields); err != nil {
		return err
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return n.Patch(n.Context(), o, client.RawPatch(types.MergePatchType, data))
}

// annotate sets an annotation.
func (n *namespace) annotate(kind, name, key, value string) {
	n.Helper()
	n.patch(kind, name, fmt.Sprintf("{metadata: {annotations: {%q: %q}}}", key, value))
}

// remove deletes an object.
func (n *namespace) remove(kind, name string) {
	n.Helper()
	o := newObject(kind)
	o.SetNamespace(n.name)
	o.SetName(name)
	eventually(n, "delete "+kind+" "+name, func() error { return client.IgnoreNotFound(n.Delete(n.Context(), o)) })
}

// workload returns a client of a workload cluster.
func (n *namespace) workload(cluster string) client.Client {
	n.Helper()
	secret := &corev1.Secret{}
	var c client.Client
	eventually(n, "connect to Cluster "+cluster, func() error {
		if err := n.Get(n.Context(), client.ObjectKey{Namespace: n.name, Name: cluster + "-kubeconfig"}, secret); err != nil {
			return err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
		if err != nil {
			return err
		}
		c, err = client.New(config, client.Options{Scheme: scheme.Scheme})
		return err
	})
	return c
}

// machine waits until a Machine of the namespace has a healthy Node, and returns its name and the name of the Node.
func (n *namespace) machine() (name, node string) {
	n.Helper()
	eventually(n, "a Machine has a Node", func() error {
		for _, m := range n.list("Machine", 1) {
			ref, _, _ := unstructured.NestedString(m.Object, "status", "nodeRef", "name")
			if ref != "" && isTrue(m, "NodeHealthy") {
				name, node = m.GetName(), ref
				return nil
			}
		}
		return errors.New("none has")
	})
	return name, node
}

// isTrue reports whether a condition is True.
func isTrue(u unstructured.Unstructured, conditionType string) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if fields, _ := c.(map[string]any); fields["type"] == conditionType {
			return fields["status"] == "True"
		}
	}
	return false
}

// await waits until a condition of an object is True.
func (n *namespace) await(kind, name, conditionType string) {
	n.Helper()
	eventually(n, kind+" "+name+" is "+conditionType, func() error {
		if o := n.get(kind, name); !isTrue(*o, conditionType) {
			return fmt.Errorf("%v", o.Object["status"])
		}
		return nil
	})
}

// fleet creates the simulated cluster of examples/fleet.yaml.
func (n *namespace) fleet(changes ...string) {
	n.Helper()
	n.apply(n.file("examples", "fleet.yaml"), changes...)
}

// spire creates the simulated cluster of examples/fleet-kubeadm.yaml, waits for its control plane, and returns the names of
// its Machines, which are those of the LocalMachines, too.
func (n *namespace) spire() (machines []string) {
	n.Helper()
	n.apply(n.file("examples", "fleet-kubeadm.yaml"), "MachineDeployment", "{spec: {replicas: 0}}")
	eventually(n, "the control plane is ready", func() error {
		o := n.get("KubeadmControlPlane", "spire")
		if ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas"); ready != 3 || !isTrue(*o, "EtcdClusterHealthy") {
			return fmt.Errorf("%d ready", ready)
		}
		return nil
	})
	for _, m := range n.list("Machine", 3) {
		machines = append(machines, m.GetName())
	}
	return machines
}

// topology creates the ClusterClass simulated and, if wanted, a Cluster of it.
func (n *namespace) topology(withCluster bool) {
	n.Helper()
	n.apply(n.file("config", "classes", "simulated.yaml"))
	if withCluster {
		n.managed()
		n.await("Cluster", "top", "TopologyReconciled")
	}
}

// managed creates a Cluster of the ClusterClass simulated.
func (n *namespace) managed() {
	n.Helper()
	n.apply(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: top}, spec: {
  clusterNetwork: {pods: {cidrBlocks: [10.244.0.0/16]}, services: {cidrBlocks: [10.96.0.0/16]}},
  topology: {classRef: {name: simulated}, version: v1.36.3, variables: [{name: startupDelay, value: 1s}],
    workers: {machineDeployments: [{class: default-worker, name: workers, replicas: 1}]}}}}`)
}

// blockEviction creates a Pod on a Node of a workload cluster, and a PodDisruptionBudget that does not allow its eviction.
func (n *namespace) blockEviction(c client.Client, node string) {
	n.Helper()
	meta := metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"}}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta}
	one := intOrString(1)
	budget.Spec.MinAvailable, budget.Spec.Selector = &one, &metav1.LabelSelector{MatchLabels: meta.Labels}
	for _, o := range []client.Object{pod, budget} {
		eventually(n, "create in the workload cluster", func() error { return client.IgnoreAlreadyExists(c.Create(n.Context(), o)) })
	}
	eventually(n, "the budget is counted", func() error {
		err := c.Get(n.Context(), client.ObjectKeyFromObject(budget), budget)
		if err == nil && budget.Status.CurrentHealthy != 1 {
			err = fmt.Errorf("%+v", budget.Status)
		}
		return err
	})
}

// attachVolume attaches a volume to a Node of a workload cluster.
func (n *namespace) attachVolume(c client.Client, node string) {
	n.Helper()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-data-0"}}
	volume.Spec = corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: quantity("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "vol-1"}},
	}
	name := volume.Name
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-4711"}}
	attachment.Spec = storagev1.VolumeAttachmentSpec{Attacher: "csi.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}
	for _, o := range []client.Object{volume, attachment} {
		eventually(n, "create in the workload cluster", func() error { return client.IgnoreAlreadyExists(c.Create(n.Context(), o)) })
	}
	n.patchNode(c, node, true, `{"status":{"volumesAttached":[{"name":"kubernetes.io/csi/csi.example.com^vol-1","devicePath":""}]}}`)
}

// patchNode changes a Node of a workload cluster, or its status.
func (n *namespace) patchNode(c client.Client, name string, status bool, patch string) {
	n.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	eventually(n, "patch Node "+name, func() error {
		if status {
			return c.Status().Patch(n.Context(), node, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
		}
		return c.Patch(n.Context(), node, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// status responds with an HTTP status to every request.
func status(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// deleteNode deletes a Node of a workload cluster.
func (n *namespace) deleteNode(c client.Client, name string) {
	n.Helper()
	eventually(n, "delete Node "+name, func() error {
		return client.IgnoreNotFound(c.Delete(n.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	})
}
