package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/topology/variables"
)

func read[T any](t testing.TB, text string) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// full is a class that uses everything.
const full = `
metadata: {name: full, namespace: ns, generation: 1}
spec:
  infrastructure:
    templateRef: {apiVersion: i.example.com/v1beta2, kind: ClusterTemplate, name: c}
    naming: {template: "{{ .cluster.name }}-infra-{{ .random }}"}
  controlPlane:
    templateRef: {apiVersion: c.example.com/v1beta2, kind: PlaneTemplate, name: p}
    machineInfrastructure: {templateRef: {apiVersion: i.example.com/v1beta2, kind: MachineTemplate, name: m}}
    metadata: {labels: {a: b}}
    healthCheck: {checks: {nodeStartupTimeoutSeconds: 60}}
  workers:
    machineDeployments:
    - class: big
      bootstrap: {templateRef: {apiVersion: b.example.com/v1beta2, kind: ConfigTemplate, name: b}}
      infrastructure: {templateRef: {apiVersion: i.example.com/v1beta2, kind: MachineTemplate, name: m}}
      healthCheck: {checks: {nodeStartupTimeoutSeconds: 60}}
      naming: {template: "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}-{{ .random }}"}
    - class: gpu-small
      bootstrap: {templateRef: {apiVersion: b.example.com/v1beta2, kind: ConfigTemplate, name: b}}
      infrastructure: {templateRef: {apiVersion: i.example.com/v1beta2, kind: MachineTemplate, name: m}}
    machinePools:
    - class: pool
      bootstrap: {templateRef: {apiVersion: b.example.com/v1beta2, kind: ConfigTemplate, name: b}}
      infrastructure: {templateRef: {apiVersion: i.example.com/v1beta2, kind: PoolTemplate, name: m}}
      naming: {template: "{{ .cluster.name }}-{{ .machinePool.topologyName }}-{{ .random }}"}
  kubernetesVersions: [v1.35.2, v1.35.4, v1.36.1+build.1, v1.36.1+build.2, v1.37.0]
  variables:
  - {name: size, required: true, schema: {openAPIV3Schema: {type: integer, default: 3}}}
  patches:
  - name: inline-patch
    enabledIf: "{{ gt .size 1 }}"
    definitions:
    - selector: {apiVersion: i.example.com/v1beta2, kind: MachineTemplate, matchResources: {controlPlane: true, machineDeploymentClass: {names: [big, "gpu-*", "*-small", "*"]}}}
      jsonPatches:
      - {op: add, path: /spec/template/spec/n, valueFrom: {variable: size}}
      - {op: add, path: /spec/template/spec/list/-, valueFrom: {template: "{{ .builtin.cluster.name }}"}}
      - {op: add, path: /spec/template/spec/list/0, valueFrom: {variable: builtin.machineDeployment.version}}
      - {op: replace, path: /spec/template/spec/x, value: {a: 1}}
      - {op: remove, path: /spec/template/spec/y}
    - selector: {apiVersion: i.example.com/v1beta2, kind: PoolTemplate, matchResources: {machinePoolClass: {names: [pool]}}}
      jsonPatches: [{op: remove, path: /spec/template/spec/y}]
    - selector: {apiVersion: i.example.com/v1beta2, kind: ClusterTemplate, matchResources: {infrastructureCluster: true}}
      jsonPatches: [{op: remove, path: /spec/template/spec/y}]
  - {name: external-patch, external: {generatePatchesExtension: g.ext, validateTopologyExtension: v.ext, discoverVariablesExtension: d.ext}}
`

// user is a Cluster of the class.
const user = `
metadata: {name: c1, namespace: ns}
spec:
  topology:
    classRef: {name: full}
    version: v1.36.1+build.1
    controlPlane: {healthCheck: {enabled: true}}
    variables: [{name: size, value: 2}]
    workers:
      machineDeployments: [{name: md1, class: big, replicas: 2, healthCheck: {enabled: true}}]
      machinePools: [{name: mp1, class: pool}]
`

func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// patchOf replaces the changes of the first patch.
func patchOf(change string) func(*testing.T, *classRequest) {
	return func(t *testing.T, r *classRequest) {
		r.New.Spec.Patches[0].Definitions[0].JSONPatches = []clusterv1.JSONPatch{read[clusterv1.JSONPatch](t, change)}
	}
}

// selectorOf replaces the selector of the first patch.
func selectorOf(selector string) func(*testing.T, *classRequest) {
	return func(t *testing.T, r *classRequest) {
		r.New.Spec.Patches[0].Definitions[0].Selector = read[clusterv1.PatchSelector](t, selector)
	}
}

func TestClass(t *testing.T) { // CC-08, CC-09, CC-10, CC-11, CC-14
	const first, one = "spec.patches[0].definitions[0].selector.matchResources", "spec.patches[0].definitions[0].jsonPatches[0]"
	for name, c := range map[string]struct {
		change func(*testing.T, *classRequest)
		update bool
		want   []string
	}{
		"everything":        {},
		"everything, again": {update: true},
		"kind of no template": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Infrastructure.TemplateRef.Kind = "Cluster" },
			want: []string{
				`spec.infrastructure.templateRef.kind: Invalid value: "Cluster": must be the kind of a template, which ends with Template`,
				"spec.patches[0].definitions[2].selector.matchResources.infrastructureCluster: Invalid value: true: selects no template of i.example.com/v1beta2 ClusterTemplate in the class",
			}},
		"label": {change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.ControlPlane.Metadata.Labels = map[string]string{"a": "b c"}
		},
			want: []string{"spec.controlPlane.metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"}},
		"two classes of one name": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Workers.MachineDeployments[1].Class = "big" },
			want: []string{
				`spec.workers.machineDeployments[1].class: Duplicate value: "big"`,
				`spec.patches[0].definitions[0].selector.matchResources.machineDeploymentClass.names[1]: Invalid value: "gpu-*": selects no template of i.example.com/v1beta2 MachineTemplate in the class`,
				`spec.patches[0].definitions[0].selector.matchResources.machineDeploymentClass.names[2]: Invalid value: "*-small": selects no template of i.example.com/v1beta2 MachineTemplate in the class`,
			}},
		"health check without machines": {change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.ControlPlane.MachineInfrastructure.TemplateRef = clusterv1.ClusterClassTemplateReference{}
			r.New.Spec.Patches = nil
		}, want: []string{"spec.controlPlane.healthCheck: Forbidden: can be set only with machineInfrastructure: without it the control plane has no Machines"}},

		// Names.
		"name template that is none": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Infrastructure.Naming.Template = "{{ .cluster" },
			want: []string{`spec.infrastructure.naming.template: Invalid value: "{{ .cluster": is not a template: template: name:1: unclosed action`}},
		"name template with another variable": {change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.ControlPlane.Naming.Template = "{{ .machineDeployment.topologyName }}"
		}, want: []string{`spec.controlPlane.naming.template: Invalid value: "{{ .machineDeployment.topologyName }}": cannot be rendered: template: name:1:21: executing "name" at <.machineDeployment.topologyName>: map has no entry for key "machineDeployment"`}},
		"name template that makes no names": {change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Workers.MachineDeployments[0].Naming.Template = "{{ .cluster.name }}_x"
		},
			want: []string{`spec.workers.machineDeployments[0].naming.template: Invalid value: "{{ .cluster.name }}_x": generates invalid names, such as "example_x": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}},

		// Versions.
		"version that is none": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.KubernetesVersions = []string{"1.36.1"} },
			want: []string{`spec.kubernetesVersions[0]: Invalid value: "1.36.1": must be a semantic version with a leading v, for example v1.36.3`}},
		"versions out of order": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.KubernetesVersions = []string{"v1.36.1", "v1.35.4"} },
			want: []string{`spec.kubernetesVersions[1]: Invalid value: "v1.35.4": must be newer than v1.36.1, which is before it`}},
		"versions with a gap": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.KubernetesVersions = []string{"v1.34.1", "v1.36.1"} },
			want: []string{`spec.kubernetesVersions[1]: Invalid value: "v1.36.1": must be at most one minor version newer than v1.34.1: add the versions between them`}},
		"a version twice": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.KubernetesVersions = []string{"v1.34.1", "v1.34.1"} },
			want: []string{`spec.kubernetesVersions[1]: Duplicate value: "v1.34.1"`}},
		"builds of a version have no order": {change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.KubernetesVersions = []string{"v1.36.1+build.2", "v1.36.1+build.1", "v1.36.1"}
		}},
		"the same build twice": {change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.KubernetesVersions = []string{"v1.36.1+build.2", "v1.36.1+build.1", "v1.36.1+build.2"}
		}, want: []string{`spec.kubernetesVersions[2]: Duplicate value: "v1.36.1+build.2"`}},
		"versions and an extension": {change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Upgrade.External.GenerateUpgradePlanExtension = "x.ext"
		},
			want: []string{"spec.upgrade.external: Forbidden: cannot be set together with kubernetesVersions: both define the versions that an upgrade passes"}},

		// Patches.
		"patch without a name": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].Name = "" }, want: []string{"spec.patches[0].name: Required value: a patch needs a name"}},
		"patch of a name that is taken": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].Name = "inline" },
			want: []string{`spec.patches[0].name: Invalid value: "inline": is reserved for variable definitions in the class; choose another name`}},
		"two patches of one name": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[1].Name = "inline-patch" }, want: []string{`spec.patches[1].name: Duplicate value: "inline-patch"`}},
		"enabledIf that is none": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].EnabledIf = "{{ nothing }}" },
			want: []string{`spec.patches[0].enabledIf: Invalid value: "{{ nothing }}": the template cannot be read: template: value:1: function "nothing" not defined`}},
		"external and definitions": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].External = r.New.Spec.Patches[1].External },
			want: []string{"spec.patches[0]: Forbidden: external and definitions cannot be set together; split the patch"}},
		"neither": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].Definitions = nil },
			want: []string{"spec.patches[0]: Required value: one of definitions and external must be set"}},
		"external without the gate": {change: func(_ *testing.T, r *classRequest) { r.RuntimeSDK = false },
			want: []string{"spec.patches[1].external: Forbidden: requires the feature gate RuntimeSDK"}},
		"external that does nothing": {change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Patches[1].External = &clusterv1.ExternalPatchDefinition{}
		},
			want: []string{"spec.patches[1].external: Required value: one of generatePatchesExtension and validateTopologyExtension must be set"}},
		"external with enabledIf": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[1].EnabledIf = "true" }},
		"no changes": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].Definitions[1].JSONPatches = nil },
			want: []string{"spec.patches[0].definitions[1].jsonPatches: Required value: a definition needs at least one change"}},
		"selector of nothing": {change: selectorOf(`{apiVersion: i.example.com/v1beta2, kind: MachineTemplate}`),
			want: []string{first + ": Required value: must select infrastructureCluster, controlPlane, or classes of workers by name"}},
		"selector of another version": {change: selectorOf(`{apiVersion: i.example.com/v1, kind: MachineTemplate, matchResources: {controlPlane: true, machineDeploymentClass: {names: [big]}}}`),
			want: []string{
				first + ".controlPlane: Invalid value: true: selects no template of i.example.com/v1 MachineTemplate in the class",
				first + `.machineDeploymentClass.names[0]: Invalid value: "big": selects no template of i.example.com/v1 MachineTemplate in the class`,
			}},
		"selector of a class that is not there": {change: selectorOf(`{apiVersion: i.example.com/v1beta2, kind: MachineTemplate, matchResources: {machineDeploymentClass: {names: [none]}, machinePoolClass: {names: [none]}}}`),
			want: []string{
				first + `.machineDeploymentClass.names[0]: Invalid value: "none": selects no template of i.example.com/v1beta2 MachineTemplate in the class`,
				first + `.machinePoolClass.names[0]: Invalid value: "none": selects no template of i.example.com/v1beta2 MachineTemplate in the class`,
			}},
		"selector with a star in the middle": {change: selectorOf(`{apiVersion: i.example.com/v1beta2, kind: MachineTemplate, matchResources: {machineDeploymentClass: {names: ["b*g"]}}}`),
			want: []string{first + `.machineDeploymentClass.names[0]: Invalid value: "b*g": may have one *, at the beginning or the end`}},
		"unknown operation":     {change: patchOf(`{op: move, path: /spec/template/spec/a}`), want: []string{one + `.op: Unsupported value: "move": supported values: "add", "replace", "remove"`}},
		"path elsewhere":        {change: patchOf(`{op: remove, path: /metadata/name}`), want: []string{one + `.path: Invalid value: "/metadata/name": must begin with /spec/: patches change the spec of a template`}},
		"addition at an index":  {change: patchOf(`{op: add, path: /spec/template/spec/a/1, value: x}`), want: []string{one + `.path: Invalid value: "/spec/template/spec/a/1": an array index must be 0 (the first) or - (after the last)`}},
		"removal of an index":   {change: patchOf(`{op: remove, path: /spec/template/spec/a/0}`), want: []string{one + `.path: Invalid value: "/spec/template/spec/a/0": must not have an array index: only additions to arrays are possible`}},
		"removal with a value":  {change: patchOf(`{op: remove, path: /spec/template/spec/a, value: x}`), want: []string{one + ": Forbidden: value and valueFrom cannot be set for a removal"}},
		"no value":              {change: patchOf(`{op: add, path: /spec/template/spec/a}`), want: []string{one + ": Required value: one of value and valueFrom must be set"}},
		"two values":            {change: patchOf(`{op: add, path: /spec/template/spec/a, value: x, valueFrom: {variable: size}}`), want: []string{one + ": Forbidden: value and valueFrom cannot be set together"}},
		"no source":             {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {}}`), want: []string{one + ".valueFrom: Required value: one of variable and template must be set"}},
		"two sources":           {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {variable: size, template: x}}`), want: []string{one + ".valueFrom: Forbidden: variable and template cannot be set together"}},
		"unknown variable":      {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {variable: none.x}}`), want: []string{one + `.valueFrom.variable: Invalid value: "none.x": variable none is not defined in spec.variables`}},
		"unknown builtin":       {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {variable: builtin.cluster.color}}`), want: []string{one + `.valueFrom.variable: Invalid value: "builtin.cluster.color": is not a part of the variable builtin`}},
		"path of a variable":    {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {variable: "size["}}`), want: []string{one + `.valueFrom.variable: Invalid value: "size[": "size[" is not the path of a variable: an index is not a whole number in brackets, for example [0]`}},
		"template that is none": {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {template: "{{ env 1 }}"}}`), want: []string{one + `.valueFrom.template: Invalid value: "{{ env 1 }}": the template cannot be read: template: value:1: function "env" not defined`}},

		// Changes, with Clusters of the class.
		"another kind of infrastructure": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Infrastructure.TemplateRef.APIVersion, r.New.Spec.Patches = "other.example.com/v1", nil
		}, want: []string{"spec.infrastructure.templateRef: Forbidden: cannot be changed from ClusterTemplate.i.example.com to ClusterTemplate.other.example.com, because existing objects of Clusters cannot change their kind"}},
		"another version of infrastructure": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Infrastructure.TemplateRef.APIVersion, r.New.Spec.Patches = "i.example.com/v1beta3", nil
		}},
		"another kind of control plane": {update: true, change: func(_ *testing.T, r *classRequest) { r.New.Spec.ControlPlane.TemplateRef.Kind = "OtherTemplate" },
			want: []string{"spec.controlPlane.templateRef: Forbidden: cannot be changed from PlaneTemplate.c.example.com to OtherTemplate.c.example.com, because existing objects of Clusters cannot change their kind"}},
		"another kind of control plane machines": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.ControlPlane.MachineInfrastructure.TemplateRef.Kind, r.New.Spec.Patches = "OtherTemplate", nil
		}, want: []string{"spec.controlPlane.machineInfrastructure.templateRef: Forbidden: cannot be changed from MachineTemplate.i.example.com to OtherTemplate.i.example.com, because existing objects of Clusters cannot change their kind"}},
		"another kind of workers' bootstrap": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Workers.MachineDeployments[0].Bootstrap.TemplateRef.Kind = "OtherTemplate"
		}},
		"another kind of workers": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Workers.MachineDeployments[0].Infrastructure.TemplateRef.Kind = "OtherTemplate"
			r.New.Spec.Workers.MachinePools[0].Infrastructure.TemplateRef.Kind = "OtherTemplate"
			r.New.Spec.Patches = nil
		}, want: []string{
			"spec.workers.machineDeployments[0].infrastructure.templateRef: Forbidden: cannot be changed from MachineTemplate.i.example.com to OtherTemplate.i.example.com, because existing objects of Clusters cannot change their kind",
			"spec.workers.machinePools[0].infrastructure.templateRef: Forbidden: cannot be changed from PoolTemplate.i.example.com to OtherTemplate.i.example.com, because existing objects of Clusters cannot change their kind",
		}},
		"a class in use goes": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Workers, r.New.Spec.Patches = clusterv1.WorkersClass{}, nil
		}, want: []string{
			"spec.workers.machineDeployments[big]: Forbidden: cannot be removed: Cluster ns/c1 uses it for MachineDeployment md1",
			"spec.workers.machinePools[pool]: Forbidden: cannot be removed: Cluster ns/c1 uses it for MachinePool mp1",
		}},
		"a class that no one uses goes": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Workers, r.New.Spec.Patches, r.Users = clusterv1.WorkersClass{}, nil, nil
		}},
		"health checks in use go": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.ControlPlane.HealthCheck = clusterv1.ControlPlaneClassHealthCheck{}
			r.New.Spec.Workers.MachineDeployments[0].HealthCheck = clusterv1.MachineDeploymentClassHealthCheck{}
		}, want: []string{
			"spec.workers.machineDeployments[big].healthCheck: Forbidden: cannot be removed: Cluster ns/c1 enables it for MachineDeployment md1 and does not define its own",
			"spec.controlPlane.healthCheck: Forbidden: cannot be removed: Cluster ns/c1 enables it and does not define its own",
		}},
		"a version in use goes": {update: true, change: func(_ *testing.T, r *classRequest) { r.New.Spec.KubernetesVersions = []string{"v1.37.0"} },
			want: []string{`spec.kubernetesVersions: Invalid value: ["v1.37.0"]: must contain v1.36.1+build.1, the version of Cluster ns/c1`}},
		"a variable in use goes": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Variables, r.New.Spec.Patches = nil, nil
		}, want: []string{"spec.variables[size]: Forbidden: cannot be removed: Cluster ns/c1 sets it; make it optional without a default in the class first, then remove it from the Cluster"}},
		"a variable in use for some Machines goes": {update: true, change: func(t *testing.T, r *classRequest) {
			r.New.Spec.Variables, r.New.Spec.Patches = nil, nil
			r.Old.Spec.Variables[0].Schema.OpenAPIV3Schema.Default, r.Old.Spec.Variables[0].Required = nil, nil
			topology := &r.Users[0].Spec.Topology
			topology.Workers.MachinePools[0].Variables.Overrides, topology.Variables = topology.Variables, nil
		}, want: []string{"spec.variables[size]: Forbidden: cannot be removed: Cluster ns/c1 sets it; remove it there first"}},
		"a variable that no Cluster sets goes": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Variables, r.New.Spec.Patches, r.Users[0].Spec.Topology.Variables = nil, nil, nil
		}},
		"a variable in use that an extension defines, too": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Variables, r.New.Spec.Patches = nil, nil
			r.Old.Status.Variables = []clusterv1.ClusterClassStatusVariable{{Name: "size",
				Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{From: "inline"}, {From: "external-patch"}}}}
		}},
		"an autoscaler comes": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "1"}
		}, want: []string{"spec.workers.machineDeployments[big].metadata.annotations: Forbidden: cannot have the autoscaler's limits: Cluster ns/c1 sets replicas of MachineDeployment md1; remove them there first"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := classRequest{New: new(read[clusterv1.ClusterClass](t, full)), RuntimeSDK: true}
			if c.update {
				r.Old, r.Users = r.New.DeepCopy(), []clusterv1.Cluster{read[clusterv1.Cluster](t, user)}
			}
			if c.change != nil {
				c.change(t, &r)
			}
			if diff := cmp.Diff(c.want, texts(validateClass(r))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) { // CC-11
	class := new(read[clusterv1.ClusterClass](t, full))
	if got := warnClass(classRequest{New: class}); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	class.Spec.Patches[1].EnabledIf = "true"
	class.Spec.Patches[0].EnabledIf = "{{ if .nowhere }}{{ .builtin.cluster.name }}{{ end }}"
	want := []string{
		"templates of patch " + class.Spec.Patches[0].Name + " read variable nowhere, which is not defined in spec.variables and therefore has no value",
		"enabledIf of patch external-patch has no effect, because the patch is external",
	}
	if diff := cmp.Diff(want, warnClass(classRequest{New: class})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDeletion(t *testing.T) { // CC-07
	class := new(read[clusterv1.ClusterClass](t, full))
	if got := refuseClassDeletion(class, nil); got != "" {
		t.Errorf("a class that no one uses: %s", got)
	}
	var users []clusterv1.Cluster
	for _, name := range []string{"b", "a", "c", "d", "e", "f"} {
		users = append(users, clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "other"}})
	}
	const rest = ": delete them, or change their class first"
	if got, want := refuseClassDeletion(class, users[:2]), "ClusterClass full is used by Clusters other/a, other/b"+rest; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := refuseClassDeletion(class, users), "ClusterClass full is used by Clusters other/a, other/b, other/c, other/d, other/e and 1 more"+rest; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// reconciled is the class with its variables known.
// A Cluster whose value a changed schema does not allow is named in a warning.
func TestWarnsOfUsers(t *testing.T) { // CC-11
	class := new(read[clusterv1.ClusterClass](t, full))
	r := classRequest{New: class.DeepCopy(), Old: class, Users: []clusterv1.Cluster{read[clusterv1.Cluster](t, user), read[clusterv1.Cluster](t, user)}}
	r.Users[1].Name, r.Users[1].Spec.Topology.Variables[0].Value.Raw = "fits", []byte("1")
	r.New.Spec.Variables[0].Schema.OpenAPIV3Schema.Maximum = new(int64(1))
	want := []string{"Cluster ns/c1: the class no longer allows the value of variable size; its topology is not reconciled until the value is corrected"}
	if diff := cmp.Diff(want, warnClass(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r.New.Spec.Variables[0].Schema.OpenAPIV3Schema.Maximum = nil
	if got := warnClass(r); got != nil {
		t.Errorf("an unchanged schema: %v", got)
	}
}

// TestBuiltinPaths: what patches may refer to.
func TestBuiltinPaths(t *testing.T) { // TP-16
	for text, want := range map[string]bool{
		"builtin": true, "builtin.cluster.topology.classRef.name": true, "builtin.cluster.network.pods[0]": true, "builtin.controlPlane.replicas": true,
		"builtin.cluster.metadata.labels.x": true, "builtin.machinePool.bootstrap.configRef.name": true,
		"builtin.cluster.network.ipFamily": false, "builtin.cluster[0]": false, "builtin.none": false, "builtin.cluster.name.x": false,
	} {
		path, err := variables.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := variables.IsBuiltin(path); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
