package webhook_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// wholeClass is written as for the reference implementation, with everything that a class may have.
const wholeClass = `
metadata: {name: whole, namespace: default}
spec:
  availabilityGates: [{conditionType: Audited}]
  infrastructure:
    templateRef: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalClusterTemplate, name: c}
    naming: {template: "{{ .cluster.name }}-{{ .random }}"}
  controlPlane:
    metadata: {labels: {tier: control}, annotations: {note: text}}
    templateRef: {apiVersion: controlplane.slipway.dev/v1alpha1, kind: HostedControlPlaneTemplate, name: p}
    machineInfrastructure: {templateRef: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachineTemplate, name: m}}
    naming: {template: "{{ .cluster.name }}-plane-{{ .random }}"}
    deletion: {nodeDrainTimeoutSeconds: 60, nodeVolumeDetachTimeoutSeconds: 60, nodeDeletionTimeoutSeconds: 60}
    readinessGates: [{conditionType: Scanned}]
    healthCheck:
      checks: {nodeStartupTimeoutSeconds: 600, unhealthyNodeConditions: [{type: Ready, status: Unknown, timeoutSeconds: 300}]}
      remediation: {triggerIf: {unhealthyLessThanOrEqualTo: 33%}}
  workers:
    machineDeployments:
    - class: default
      metadata: {labels: {tier: work}}
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfigTemplate, name: b}}
      infrastructure: {templateRef: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachineTemplate, name: m}}
      failureDomain: a
      naming: {template: "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"}
      deletion: {order: Oldest, nodeDrainTimeoutSeconds: 60}
      minReadySeconds: 5
      readinessGates: [{conditionType: Scanned}]
      rollout: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}}
      healthCheck:
        checks: {unhealthyNodeConditions: [{type: Ready, status: "False", timeoutSeconds: 300}]}
        remediation: {maxInFlight: 20%, triggerIf: {unhealthyInRange: "[1-5]"}}
    machinePools:
    - class: pool
      bootstrap: {templateRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfigTemplate, name: b}}
      infrastructure: {templateRef: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachinePoolTemplate, name: m}}
      failureDomains: [a, b]
      naming: {template: "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}"}
      deletion: {nodeDrainTimeoutSeconds: 60}
      minReadySeconds: 5
  kubernetesVersions: [v1.35.4, v1.36.3, v1.37.2]
  variables:
  - name: disk
    required: true
    schema:
      openAPIV3Schema:
        type: object
        default: {}
        x-metadata: {labels: {ui: large}}
        properties:
          size: {type: integer, minimum: 1, maximum: 100, default: 20, x-kubernetes-validations: [{rule: self >= oldSelf, message: disks cannot shrink, reason: FieldValueForbidden}]}
          kind: {type: string, enum: [ssd, hdd], default: ssd}
          mounts: {type: array, maxItems: 5, items: {type: string, maxLength: 20, pattern: "^/"}}
          tags: {type: object, maxProperties: 3, additionalProperties: {type: string, maxLength: 20}}
          port: {x-kubernetes-int-or-string: true}
        x-kubernetes-validations: [{rule: "!has(self.mounts) || self.mounts.all(m, m != '/')", messageExpression: "'the root cannot be mounted'", fieldPath: .mounts}]
  - {name: image, required: false, schema: {openAPIV3Schema: {type: string, format: uri, maxLength: 200}}}
  patches:
  - name: disks
    description: sets the disks
    enabledIf: "{{ gt .disk.size 1 }}"
    definitions:
    - selector: {apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachineTemplate, matchResources: {controlPlane: true, machineDeploymentClass: {names: ["def*"]}}}
      jsonPatches:
      - {op: add, path: /spec/template/spec/labels, valueFrom: {template: "size: {{ .disk.size | quote }}\nname: {{ .builtin.cluster.name | upper }}"}}
      - {op: add, path: /spec/template/spec/kind, valueFrom: {variable: disk.kind}}
  - {name: outside, external: {generatePatchesExtension: g.ext, validateTopologyExtension: v.ext, discoverVariablesExtension: d.ext, settings: {a: b}}}
`

func raw(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

func wholeClassOf(t *testing.T) *clusterv1.ClusterClass {
	t.Helper()
	class := &clusterv1.ClusterClass{}
	if err := yaml.UnmarshalStrict([]byte(wholeClass), class); err != nil {
		t.Fatal(err)
	}
	return class
}

func classCluster(name string) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: named(name)}
	c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "whole"}, Version: "1.35.4"}
	c.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "md", Class: "default"}}
	return c
}

// refusedWith checks the message of a refusal.
func refusedWith(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s:\ngot  %v\nwant %s", what, err, want)
	}
}

// TestTopologies: the rules of classes and topologies reach the API server, with what they read of other objects.
func TestTopologies(t *testing.T) {
	w := newWorld(t, admission.Gates{ClusterTopology: true, RuntimeSDK: true})
	class := wholeClassOf(t)
	if err := w.client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Run("not reconciled", func(t *testing.T) { testUnreconciled(t, w) })
	reconcileClass(t, w, class)
	for name, test := range map[string]func(*testing.T, *world){
		"classes": testClassRules, "clusters": testClusterRules, "versions": testVersionRules, "older API": testClassV1Beta1,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
	t.Run("deletion", func(t *testing.T) { testClassDeletion(t, w) })
}

// reconcileClass does what the controller does.
func reconcileClass(t *testing.T, w *world, class *clusterv1.ClusterClass) {
	t.Helper()
	class.Status.ObservedGeneration = class.Generation
	class.Status.Variables = variables.MergeDefinitions([]variables.Source{{From: clusterv1.VariableDefinitionFromInline, List: class.Spec.Variables}})
	class.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.ClusterClassVariablesReadyCondition, Status: "True", Reason: "VariablesReady", LastTransitionTime: metav1.Now(),
	}}
	if err := w.client.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
}

func testUnreconciled(t *testing.T, w *world) { // CL-35
	missing := classCluster("missing")
	missing.Spec.Topology.ClassRef.Name = "none"
	for _, cluster := range []*clusterv1.Cluster{missing, classCluster("early")} {
		if err := w.client.Create(t.Context(), cluster); err != nil {
			t.Errorf("%s: %v", cluster.Name, err)
		}
		if cluster.Spec.Topology.Version != "v1.35.4" || len(cluster.Spec.Topology.Variables) != 0 {
			t.Errorf("%s: %+v", cluster.Name, cluster.Spec.Topology)
		}
	}
	missing.Spec.Topology.ControlPlane.Metadata.Labels = map[string]string{"a": "b"}
	refusedWith(t, "a change while the class is missing", w.client.Update(t.Context(), missing),
		`spec.topology.classRef: Invalid value: "default/none": ClusterClass does not exist: create it, then change the topology`)
}

func testClassRules(t *testing.T, w *world) { // CC-08, CC-09, CC-10, CC-11, CC-12, CC-13
	type class = clusterv1.ClusterClass
	for name, c := range map[string]struct {
		change func(*class)
		want   string
	}{
		"CC-09": {func(c *class) { c.Spec.KubernetesVersions = []string{"v1.33.1", "v1.36.3"} }, "spec.kubernetesVersions[1]: Invalid value: \"v1.36.3\": must be at most one minor version newer than v1.33.1: add the versions between them"},
		"CC-10": {func(c *class) { c.Spec.Infrastructure.Naming.Template = "{{ .x }}" }, "spec.infrastructure.naming.template: Invalid value"},
		"CC-11": {func(c *class) { c.Spec.Patches[0].Definitions[0].JSONPatches[0].Path = "/metadata/labels" }, "spec.patches[0].definitions[0].jsonPatches[0].path: Invalid value: \"/metadata/labels\": must begin with /spec/"},
		"CC-12": {func(c *class) { c.Spec.Variables[1].Schema.OpenAPIV3Schema.Default.Raw = []byte("1") }, `spec.variables[1].schema.openAPIV3Schema.default: Invalid value: "int64":  in body must be of type uri: "int64"`},
		"CC-13": {func(c *class) { c.Spec.Variables[1].Name = "a.b" }, `spec.variables[1].name: Invalid value: "a.b": must not contain a dot, because it separates fields in paths of variables`},
		"HC-05": {func(c *class) { c.Spec.ControlPlane.HealthCheck.Checks.NodeStartupTimeoutSeconds = new(int32(5)) }, "spec.controlPlane.healthCheck.checks.nodeStartupTimeoutSeconds: Invalid value: 5: must be at least 30, or 0 to turn the check off"},
	} {
		bad := wholeClassOf(t)
		bad.Name = "bad"
		bad.Spec.Variables[1].Schema.OpenAPIV3Schema.Default = raw(`"https://x"`)
		c.change(bad)
		refusedWith(t, name, w.client.Create(t.Context(), bad), c.want)
	}
	current := &class{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "whole"}, current); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*class)
		want   string
	}{
		"CC-08 kind":     {func(c *class) { c.Spec.ControlPlane.TemplateRef.Kind = "OtherTemplate" }, "spec.controlPlane.templateRef: Forbidden: cannot be changed from HostedControlPlaneTemplate.controlplane.slipway.dev"},
		"CC-08 use":      {func(c *class) { c.Spec.Workers, c.Spec.Patches = clusterv1.WorkersClass{}, nil }, "spec.workers.machineDeployments[default]: Forbidden: cannot be removed: Cluster default/early uses it for MachineDeployment md"},
		"CC-08 versions": {func(c *class) { c.Spec.KubernetesVersions = []string{"v1.36.3"} }, "must contain v1.35.4, the version of Cluster default/early"},
	} {
		changed := current.DeepCopy()
		c.change(changed)
		refusedWith(t, name, w.client.Update(t.Context(), changed), c.want)
	}
}

func testClusterRules(t *testing.T, w *world) { // TP-17, CL-33, CL-36
	good := classCluster("good")
	good.Spec.Topology.Workers.MachineDeployments[0].Variables.Overrides = []clusterv1.ClusterVariable{{Name: "disk", Value: *raw(`{"kind":"hdd"}`)}}
	if err := w.client.Create(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	if v := good.Spec.Topology.Variables; len(v) != 1 || string(v[0].Value.Raw) != `{"kind":"ssd","size":20}` {
		t.Errorf("defaulted to %v", v)
	}
	if v := good.Spec.Topology.Workers.MachineDeployments[0].Variables.Overrides; string(v[0].Value.Raw) != `{"kind":"hdd","size":20}` {
		t.Errorf("the override is defaulted to %s", v[0].Value.Raw)
	}
	for name, c := range map[string]struct{ value, want string }{
		"schema": {`{"size": 101}`, "spec.topology.variables[disk].value.size: Invalid value: 101: size in body should be less than or equal to 100"},
		"CEL":    {`{"mounts": ["/"]}`, "the root cannot be mounted"},
		"field":  {`{"color": 1}`, `spec.topology.variables[disk].value.color: Invalid value: "color": field is not in the schema of the variable; remove it`},
	} {
		bad := classCluster("bad")
		bad.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "disk", Value: *raw(c.value)}}
		refusedWith(t, name, w.client.Create(t.Context(), bad), c.want)
	}
	good.Spec.Topology.Variables[0].Value = *raw(`{"size":10}`)
	refusedWith(t, "a rule about a change", w.client.Update(t.Context(), good), "spec.topology.variables[disk].value.size: Forbidden: disks cannot shrink")
	other := classCluster("other")
	other.Spec.Topology.Workers.MachineDeployments[0].Class = "none"
	refusedWith(t, "class of workers", w.client.Create(t.Context(), other), `spec.topology.workers.machineDeployments[0].class: Invalid value: "none": ClusterClass whole has no such class of MachineDeployments`)
	early := &clusterv1.Cluster{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "early"}, early); err != nil {
		t.Fatal(err)
	}
	early.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation: "many"}
	refusedWith(t, "concurrency", w.client.Update(t.Context(), early), `metadata.annotations[topology.cluster.x-k8s.io/upgrade-concurrency]: Invalid value: "many": must be a whole number, 1 or more`)
}

func testVersionRules(t *testing.T, w *world) { // CL-34
	plane := &hostedv1.HostedControlPlane{ObjectMeta: named("plane")}
	plane.Spec.Version = "v1.35.4"
	cluster := classCluster("upgrades")
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "plane"}
	for _, o := range []client.Object{plane, cluster} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Spec.Topology.Version = "v1.36.3"
	if err := w.client.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Spec.Topology.Version = "v1.37.2"
	refusedWith(t, "the control plane follows first", w.client.Update(t.Context(), cluster),
		"spec.topology.version: Forbidden: cannot be changed while the Cluster is upgrading to v1.36.3: waiting for HostedControlPlane plane")
	cluster.Spec.Topology.Version = "v1.35.4"
	refusedWith(t, "downgrade", w.client.Update(t.Context(), cluster), "must not be older than v1.36.3, the current version: Kubernetes cannot be downgraded")
	cluster.Annotations = map[string]string{clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation: ""}
	if err := w.client.Update(t.Context(), cluster); err != nil {
		t.Errorf("unsafe: %v", err)
	}
}

func testClassV1Beta1(t *testing.T, w *world) { // CC-11
	class := &clusterv1beta1.ClusterClass{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "whole"}, class); err != nil {
		t.Fatal(err)
	}
	class.ObjectMeta, class.Status = named("older"), clusterv1beta1.ClusterClassStatus{}
	bad := class.DeepCopy()
	bad.Spec.Patches[0].Name = "inline"
	refusedWith(t, "v1beta1", w.client.Create(t.Context(), bad), `spec.patches[0].name: Invalid value: "inline"`)
	if err := w.client.Create(t.Context(), class); err != nil {
		t.Errorf("a class in v1beta1: %v", err)
	}
}

func testClassDeletion(t *testing.T, w *world) { // CC-07
	class := &clusterv1.ClusterClass{ObjectMeta: named("whole")}
	err := w.client.Delete(t.Context(), class)
	if !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	refusedWith(t, "deletion", err, "ClusterClass whole is used by Clusters default/early, default/good, default/upgrades: delete them, or change their class first")
	for _, name := range []string{"early", "good", "upgrades"} {
		if err := w.client.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: named(name)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.client.Delete(t.Context(), class); err != nil {
		t.Errorf("no Cluster uses the class any more: %v", err)
	}
}
