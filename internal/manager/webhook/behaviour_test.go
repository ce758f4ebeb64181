package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func machine(name string) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: named(name)}
	m.Spec.ClusterName = "c"
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: "x",
	}
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "infrastructure.slipway.dev", Kind: "LocalMachine", Name: "x",
	}
	return m
}

func healthCheck(name string) *clusterv1.MachineHealthCheck {
	return &clusterv1.MachineHealthCheck{ObjectMeta: named(name), Spec: clusterv1.MachineHealthCheckSpec{
		ClusterName: "c", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
	}}
}

func resourceSet(name string) *addonsv1.ClusterResourceSet {
	return &addonsv1.ClusterResourceSet{ObjectMeta: named(name), Spec: addonsv1.ClusterResourceSetSpec{
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Resources:       []addonsv1.ResourceRef{{Kind: "ConfigMap", Name: "cm"}},
	}}
}

func pool(name string) *clusterv1.MachinePool {
	p := &clusterv1.MachinePool{ObjectMeta: named(name)}
	p.Spec.ClusterName = "c"
	p.Spec.Template.Spec = machine("").Spec
	return p
}

// CL-30, CL-31, CL-32, MA-27, MP-15, HC-05, HC-12, RS-01, RS-04, KB-26, IA-09: the rules reach the API server, with messages for users.
func testAdmission(t *testing.T, w *world) {
	cluster := &clusterv1.Cluster{ObjectMeta: named("nothing"), Spec: clusterv1.ClusterSpec{Paused: new(true)}}
	topology := &clusterv1.Cluster{ObjectMeta: named("topology"), Spec: clusterv1.ClusterSpec{
		Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "k"}, Version: "v1.36.3"},
	}}
	long := &clusterv1.Cluster{ObjectMeta: named(strings.Repeat("a", 64))}
	long.Spec.InfrastructureRef = machine("").Spec.InfrastructureRef
	unversioned := machine("unversioned")
	unversioned.Spec.Version = "v1"
	latest := pool("latest")
	latest.Spec.Template.Spec.Version = "latest"
	twice := &bootstrapv1.KubeadmConfig{ObjectMeta: named("twice")}
	twice.Spec.Files = []bootstrapv1.File{{Path: "/a", Content: "a"}, {Path: "/a", Content: "b"}}
	address := &ipamv1.IPAddress{ObjectMeta: named("address"), Spec: ipamv1.IPAddressSpec{
		Address: "10.0.0", Prefix: new(int32(24)),
		ClaimRef: ipamv1.IPAddressClaimReference{Name: "c"},
		PoolRef:  ipamv1.IPPoolReference{APIGroup: "example.org", Kind: "Pool", Name: "p"},
	}}
	backwards := healthCheck("backwards")
	backwards.Spec.Remediation.TriggerIf.UnhealthyInRange = "[5-1]"
	everywhere := resourceSet("everywhere")
	everywhere.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"a": "b c"}}
	for name, tt := range map[string]struct {
		object client.Object
		want   string
	}{
		"HC-05": {backwards, "spec.remediation.triggerIf.unhealthyInRange"},
		"RS-01": {everywhere, "spec.clusterSelector"},
		"CL-30": {long, "metadata.name"},
		"CL-31": {cluster, "infrastructureRef or controlPlaneRef must be set"},
		"CL-32": {topology, "the feature gate ClusterTopology is disabled in this manager: start it with --feature-gates=ClusterTopology=true"},
		"MA-27": {unversioned, "v1.36.3"},
		"MP-15": {latest, "spec.template.spec.version"},
		"KB-26": {twice, `spec.files[1].path: Duplicate value: "/a"`},
		"IA-09": {address, "must be an IP address"},
	} {
		err := w.client.Create(t.Context(), tt.object)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: want an Invalid error with %q, got %v", name, tt.want, err)
		}
	}
	m := machine("defaults")
	m.Spec.Version = "1.36.3"
	if err := w.client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if m.Spec.Version != "v1.36.3" || *m.Spec.Deletion.NodeDeletionTimeoutSeconds != 10 ||
		m.Labels[clusterv1.ClusterNameLabel] != "c" {
		t.Errorf("MA-27: defaults are missing: %+v", m)
	}
	p := pool("defaults")
	if err := w.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if *p.Spec.Replicas != 1 || *p.Spec.Template.Spec.MinReadySeconds != 0 {
		t.Errorf("MP-15: defaults are missing: %+v", p.Spec)
	}
	check, set := healthCheck("defaults"), resourceSet("defaults")
	for _, o := range []client.Object{check, set} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if check.Labels[clusterv1.ClusterNameLabel] != "c" || *check.Spec.Checks.NodeStartupTimeoutSeconds != 600 || set.Spec.Strategy != "ApplyOnce" {
		t.Errorf("HC-12, RS-04: defaults are missing: %+v, %+v", check, set)
	}
	m.Spec.ClusterName = "other"
	if err := w.client.Update(t.Context(), m); !apierrors.IsInvalid(err) {
		t.Errorf("MA-27: the cluster's name may be changed: %v", err)
	}
}

// The API server calls only when a rule or a default depends on the change.
func testCalls(t *testing.T, w *world) {
	p := pool("calls")
	p.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	p.Spec.Replicas = new(int32(2))
	p.Spec.Template.Spec.MinReadySeconds = new(int32(0))
	p.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(10))
	steps := []struct {
		reason           string
		write            func() error
		mutate, validate int
	}{
		{"created with all defaults", func() error { return w.client.Create(t.Context(), p) }, 0, 1},
		{"scaled", func() error { p.Spec.Replicas = new(int32(3)); return w.client.Update(t.Context(), p) }, 0, 0},
		{"a finalizer", func() error { p.Finalizers = []string{"a/b"}; return w.client.Update(t.Context(), p) }, 0, 0},
		{"provider IDs", func() error { p.Spec.ProviderIDList = []string{"x"}; return w.client.Update(t.Context(), p) }, 0, 0},
		{"status", func() error { p.Status.Replicas = new(int32(3)); return w.client.Status().Update(t.Context(), p) }, 0, 0},
		{"a version", func() error { p.Spec.Template.Spec.Version = "v1.36.3"; return w.client.Update(t.Context(), p) }, 0, 1},
		{"a version without v", func() error { p.Spec.Template.Spec.Version = "1.36.3"; return w.client.Update(t.Context(), p) }, 1, 0},
		{"no replicas", func() error { p.Spec.Replicas = nil; return w.client.Update(t.Context(), p) }, 1, 0},
		{"the finalizer goes", func() error { p.Finalizers = nil; return w.client.Update(t.Context(), p) }, 0, 0},
		{"deleted", func() error { return w.client.Delete(t.Context(), p) }, 0, 0},
	}
	for _, step := range steps {
		mutate, validate := w.calls.of("/mutate"), w.calls.of("/validate")
		if err := step.write(); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		mutate, validate = w.calls.of("/mutate")-mutate, w.calls.of("/validate")-validate
		if mutate != step.mutate || validate != step.validate {
			t.Errorf("%s: %d calls for defaults, want %d; %d for validation, want %d",
				step.reason, mutate, step.mutate, validate, step.validate)
		}
	}
}

const oldCluster = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: old, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [172.31.128.0/17]}}
  infrastructureRef: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalCluster, name: old}
  controlPlaneRef: {apiVersion: controlplane.slipway.dev/v1alpha1, kind: HostedControlPlane, name: old}
`

const oldConfig = `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: old, namespace: default}
spec:
  template:
    spec:
      joinConfiguration:
        nodeRegistration:
          kubeletExtraArgs: {node-labels: "a=b"}
        discovery: {timeout: 90s}
      diskSetup:
        partitions: [{device: /dev/x, layout: false}]
      files: [{path: /etc/x, content: text}]
`

// Z-06: what kubectl explain, kubectl get and kubectl's short names are made from.
func testExplain(t *testing.T, w *world) {
	d, err := discovery.NewDiscoveryClientForConfig(w.server.Config)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := d.ServerResourcesForGroupVersion("cluster.x-k8s.io/v1beta2")
	if err != nil {
		t.Fatal(err)
	}
	short := map[string][]string{}
	for _, r := range resources.APIResources {
		short[r.Name] = r.ShortNames
	}
	if diff := cmp.Diff([]string{"mp"}, short["machinepools"]); diff != "" {
		t.Errorf("short names (-want +got):\n%s", diff)
	}
	if _, ok := short["machinepools/scale"]; !ok {
		t.Error("machinepools cannot be scaled")
	}
	paths, err := d.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	document, err := paths["apis/cluster.x-k8s.io/v1beta2"].Schema("application/json")
	if err != nil {
		t.Fatal(err)
	}
	var openapi struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal(document, &openapi); err != nil {
		t.Fatal(err)
	}
	if openapi.Components.Schemas["io.x-k8s.cluster.v1beta2.Cluster"].Properties["spec"].Description == "" {
		t.Error("kubectl explain cluster.spec has no description")
	}
	table := &metav1.Table{}
	err = d.RESTClient().Get().AbsPath("/apis/infrastructure.slipway.dev/v1alpha1/localmachinepools").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(table)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	want := []string{"Name", "Cluster", "MachinePool", "Ready", "Replicas", "Provider ID", "Paused", "Age"}
	if diff := cmp.Diff(want, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// Z-06, IC-01, IM-01, IP2-01, CP-01: defaults and rules of our own kinds, which the API server checks by itself.
func testOwnKinds(t *testing.T, w *world) {
	before := w.calls.of("/validate")
	lc := &localv1.LocalCluster{ObjectMeta: named("own")}
	lm := &localv1.LocalMachine{ObjectMeta: named("own")}
	hcp := &hostedv1.HostedControlPlane{ObjectMeta: named("own"), Spec: hostedv1.HostedControlPlaneSpec{Version: "v1.36.3"}}
	for _, object := range []client.Object{lc, lm, hcp} {
		if err := w.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if lc.Spec.Backend.Container == nil || lm.Spec.Backend.Container == nil ||
		lm.Spec.Backend.Container.BootstrapTimeoutSeconds != 300 {
		t.Errorf("defaults are missing: %+v, %+v", lc.Spec, lm.Spec)
	}
	settings := hostedv1.HostedControlPlaneSettings{
		Backend:                 hostedv1.Backend{Process: &hostedv1.ProcessBackend{}},
		Addons:                  hostedv1.Addons{ImageRepository: "slipway.dev"},
		CertificateValidityDays: 365,
	}
	if diff := cmp.Diff(settings, hcp.Spec.HostedControlPlaneSettings); diff != "" {
		t.Errorf("defaults of the control plane (-want +got):\n%s", diff)
	}
	if calls := w.calls.of("/validate") - before; calls != 1 { // flags of components are no matter of a schema
		t.Errorf("a webhook was called %d times, want once, for the HostedControlPlane", calls)
	}
	refused(t, w, hcp, "cannot be set", func() { // CP-01
		value := "/secrets#unix:///run/etcd.sock"
		hcp.Spec.APIServer.ExtraArgs = []hostedv1.Arg{{Name: "etcd-servers-overrides", Value: &value}}
	})
	testSecurity(t, w, hcp)
	refused(t, w, lc, "cannot be changed: create a new cluster", func() {
		lc.Spec.Backend.Container.Network.Subnet = "172.31.0.0/16"
	})
	for _, id := range []string{"slipway:///a", "slipway:///../networks/x", "aws:///i-1"} {
		refused(t, w, lm, "must be what the controller sets", func() { lm.Spec.ProviderID = id })
	}
	lm.Spec.ProviderID = "slipway:///slipway-default-a-0a1b2c3d"
	if err := w.client.Update(t.Context(), lm); err != nil {
		t.Fatal(err)
	}
	refused(t, w, lm, "providerID cannot be changed", func() { lm.Spec.ProviderID = "slipway:///slipway-default-b-0a1b2c3d" })
	refused(t, w, lm, "create a new machine", func() { lm.Spec.Backend.Container.Image = "other" })
	refused(t, w, hcp, "leading v", func() { hcp.Spec.Version = "1.36.3" })
	refused(t, w, hcp, "together", func() { hcp.Spec.ControlPlaneEndpoint.Host = "h" })
	for subnet, want := range map[string]string{
		"172.31.0.1/16": "no host bits", "172.31.0.0/24": "between /8 and /20", "fd00:0000::/64": "IPv4", "172.31.0.0/16": "",
	} {
		object := &localv1.LocalCluster{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-", Namespace: "default"}}
		object.Spec.Backend.Container = &localv1.ContainerCluster{Network: localv1.ContainerNetwork{Subnet: subnet}}
		err := w.client.Create(t.Context(), object)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("subnet %s: want %q, got %v", subnet, want, err)
		}
	}
	testManagedBy(t, w, lc, lm, &localv1.LocalMachinePool{ObjectMeta: named("own")})
	union := parse(t, `{apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachine,
		metadata: {name: union, namespace: default}, spec: {backend: {}}}`)
	if err := w.client.Create(t.Context(), union); err == nil {
		t.Error("a machine of no backend was accepted")
	}
}

// IC-07: what another system manages stays that way; nothing but the removal is a call.
func testManagedBy(t *testing.T, w *world, lc *localv1.LocalCluster, lm *localv1.LocalMachine, lmp *localv1.LocalMachinePool) {
	if err := w.client.Create(t.Context(), lmp); err != nil {
		t.Fatal(err)
	}
	before := w.calls.of("/validate")
	for _, object := range []client.Object{lc, lm, lmp} {
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		for _, value := range []string{"terraform", ""} {
			object.SetAnnotations(map[string]string{clusterv1.ManagedByAnnotation: value, "example.org/a": value})
			if err := w.client.Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, w, object, "create it without the annotation", func() { object.SetAnnotations(nil) })
	}
	if calls := w.calls.of("/validate") - before; calls != 3 {
		t.Errorf("the webhooks were called %d times, want 3", calls)
	}
}

// testSecurity: CP-01: what files of kube-apiserver are made from.
func testSecurity(t *testing.T, w *world, hcp *hostedv1.HostedControlPlane) {
	t.Helper()
	for says, s := range map[string]hostedv1.Security{
		"controlPlanes.issuers": {Authentication: &hostedv1.Authentication{JWT: []hostedv1.JWTAuthenticator{{ // the API server would connect to it
			Issuer:        hostedv1.JWTIssuer{URL: "https://issuer.example", Audiences: []string{"demo"}},
			ClaimMappings: hostedv1.ClaimMappings{Username: hostedv1.PrefixedClaimOrExpression{Expression: "claims.sub"}},
		}}}},
		"secretbox": {Encryption: &hostedv1.Encryption{Provider: "kms"}},
		"may not be more than 256": {Audit: &hostedv1.Audit{Policy: &hostedv1.AuditPolicy{
			Rules: []hostedv1.AuditRule{{Level: "None", Users: []string{strings.Repeat("a", 257)}}},
		}}},
	} {
		refused(t, w, hcp, says, func() { hcp.Spec.APIServer, hcp.Spec.Security = hostedv1.Component{}, s })
	}
	hcp.Spec.Security = hostedv1.Security{Audit: &hostedv1.Audit{}, Encryption: &hostedv1.Encryption{}}
	if err := w.client.Update(t.Context(), hcp); err != nil || hcp.Spec.Audit == nil || hcp.Spec.Encryption.Provider != "secretbox" {
		t.Errorf("audit and encryption with defaults: %v, %+v", err, hcp.Spec.Security)
	}
}

// refused changes an object and wants the API server to refuse that with a message.
func refused(t *testing.T, w *world, object client.Object, want string, change func()) {
	t.Helper()
	change()
	err := w.client.Update(t.Context(), object)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("want an Invalid error with %q, got %v", want, err)
	}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
}

// IM-09, IP2-10, IC-06, IM-08, IP2-09, KB-28: changes of templates, for real and as a question.
func testTemplates(t *testing.T, w *world) {
	template := &localv1.LocalMachineTemplate{ObjectMeta: named("template")}
	template.Spec.Template.Spec.Backend.Container = &localv1.ContainerMachine{Image: "a"}
	config := &bootstrapv1.KubeadmConfigTemplate{ObjectMeta: named("template")}
	config.Spec.Template.Spec.PreKubeadmCommands = []string{"a"}
	for _, object := range []client.Object{template, config} {
		if err := w.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	config.Spec.Template.Spec.PreKubeadmCommands = []string{"b"}
	if err := w.client.Update(t.Context(), config); err != nil {
		t.Errorf("KB-28: %v", err)
	}
	refused(t, w, template, "create a new template", func() { template.Spec.Template.Spec.Backend.Container.Image = "b" })
	question := parse(t, `{apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachineTemplate,
		metadata: {name: template, namespace: default, annotations: {topology.cluster.x-k8s.io/dry-run: ""}},
		spec: {template: {spec: {backend: {container: {image: c}}}}}}`)
	apply := func(opts ...client.ApplyOption) error {
		opts = append(opts, client.FieldOwner("test"), client.ForceOwnership)
		return w.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(question.DeepCopy()), opts...)
	}
	if err := apply(client.DryRunAll); err != nil {
		t.Errorf("IM-09: a question is refused: %v", err)
	}
	if err := apply(); !apierrors.IsInvalid(err) {
		t.Errorf("IM-09: a change is not refused: %v", err)
	}
	template.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")} // IM-10
	template.Status.NodeInfo = localv1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}
	if err := w.client.Status().Update(t.Context(), template); err != nil {
		t.Errorf("IM-10: %v", err)
	}
}
