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
				`spec.infrastructure.templateRef.kind: Invalid value: "Cluster": must be the kind of a template: its name ends with Template`,
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
			want: []string{`spec.workers.machineDeployments[0].naming.template: Invalid value: "{{ .cluster.name }}_x": makes names that are not valid, such as "example_x": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`}},

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
			want: []string{"spec.upgrade.external: Forbidden: cannot be set together with kubernetesVersions: both say which versions an upgrade goes through"}},

		// Patches.
		"patch without a name": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].Name = "" }, want: []string{"spec.patches[0].name: Required value: a patch needs a name"}},
		"patch of a name that is taken": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].Name = "inline" },
			want: []string{`spec.patches[0].name: Invalid value: "inline": is what definitions of variables in the class are called; choose another`}},
		"two patches of one name": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[1].Name = "inline-patch" }, want: []string{`spec.patches[1].name: Duplicate value: "inline-patch"`}},
		"enabledIf that is none": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].EnabledIf = "{{ nothing }}" },
			want: []string{`spec.patches[0].enabledIf: Invalid value: "{{ nothing }}": the template cannot be read: template: value:1: function "nothing" not defined`}},
		"external and definitions": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].External = r.New.Spec.Patches[1].External },
			want: []string{"spec.patches[0]: Forbidden: external and definitions cannot be set together; divide the patch"}},
		"neither": {change: func(_ *testing.T, r *classRequest) { r.New.Spec.Patches[0].Definitions = nil },
			want: []string{"spec.patches[0]: Required value: one of definitions and external must be set"}},
		"external without the gate": {change: func(_ *testing.T, r *classRequest) { r.RuntimeSDK = false },
			want: []string{"spec.patches[1].external: Forbidden: can be set only when the feature gate RuntimeSDK is on"}},
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
			want: []string{first + `.machineDeploymentClass.names[0]: Invalid value: "b*g": may have one *, at its beginning or at its end`}},
		"unknown operation":     {change: patchOf(`{op: move, path: /spec/template/spec/a}`), want: []string{one + `.op: Unsupported value: "move": supported values: "add", "replace", "remove"`}},
		"path elsewhere":        {change: patchOf(`{op: remove, path: /metadata/name}`), want: []string{one + `.path: Invalid value: "/metadata/name": must begin with /spec/: patches change the spec of a template`}},
		"addition at an index":  {change: patchOf(`{op: add, path: /spec/template/spec/a/1, value: x}`), want: []string{one + `.path: Invalid value: "/spec/template/spec/a/1": may have 0 (the first) or - (after the last) as the index of an array`}},
		"removal of an index":   {change: patchOf(`{op: remove, path: /spec/template/spec/a/0}`), want: []string{one + `.path: Invalid value: "/spec/template/spec/a/0": must not have the index of an array: only additions to arrays are possible`}},
		"removal with a value":  {change: patchOf(`{op: remove, path: /spec/template/spec/a, value: x}`), want: []string{one + ": Forbidden: value and valueFrom cannot be set for a removal"}},
		"no value":              {change: patchOf(`{op: add, path: /spec/template/spec/a}`), want: []string{one + ": Required value: one of value and valueFrom must be set"}},
		"two values":            {change: patchOf(`{op: add, path: /spec/template/spec/a, value: x, valueFrom: {variable: size}}`), want: []string{one + ": Forbidden: value and valueFrom cannot be set together"}},
		"no source":             {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {}}`), want: []string{one + ".valueFrom: Required value: one of variable and template must be set"}},
		"two sources":           {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {variable: size, template: x}}`), want: []string{one + ".valueFrom: Forbidden: variable and template cannot be set together"}},
		"unknown variable":      {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {variable: none.x}}`), want: []string{one + `.valueFrom.variable: Invalid value: "none.x": variable none is not defined in spec.variables`}},
		"unknown builtin":       {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {variable: builtin.cluster.color}}`), want: []string{one + `.valueFrom.variable: Invalid value: "builtin.cluster.color": is no part of the variable builtin`}},
		"path of a variable":    {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {variable: "size["}}`), want: []string{one + `.valueFrom.variable: Invalid value: "size[": "size[" is not the path of a variable: an index is not a whole number in brackets, for example [0]`}},
		"template that is none": {change: patchOf(`{op: add, path: /spec/template/spec/a, valueFrom: {template: "{{ env 1 }}"}}`), want: []string{one + `.valueFrom.template: Invalid value: "{{ env 1 }}": the template cannot be read: template: value:1: function "env" not defined`}},

		// Changes, with Clusters of the class.
		"another kind of infrastructure": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Infrastructure.TemplateRef.APIVersion, r.New.Spec.Patches = "other.example.com/v1", nil
		}, want: []string{"spec.infrastructure.templateRef: Forbidden: cannot be changed from ClusterTemplate.i.example.com to ClusterTemplate.other.example.com: what exists of Clusters stays of its kind"}},
		"another version of infrastructure": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Infrastructure.TemplateRef.APIVersion, r.New.Spec.Patches = "i.example.com/v1beta3", nil
		}},
		"another kind of control plane": {update: true, change: func(_ *testing.T, r *classRequest) { r.New.Spec.ControlPlane.TemplateRef.Kind = "OtherTemplate" },
			want: []string{"spec.controlPlane.templateRef: Forbidden: cannot be changed from PlaneTemplate.c.example.com to OtherTemplate.c.example.com: what exists of Clusters stays of its kind"}},
		"another kind of control plane machines": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.ControlPlane.MachineInfrastructure.TemplateRef.Kind, r.New.Spec.Patches = "OtherTemplate", nil
		}, want: []string{"spec.controlPlane.machineInfrastructure.templateRef: Forbidden: cannot be changed from MachineTemplate.i.example.com to OtherTemplate.i.example.com: what exists of Clusters stays of its kind"}},
		"another kind of workers' bootstrap": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Workers.MachineDeployments[0].Bootstrap.TemplateRef.Kind = "OtherTemplate"
		}},
		"another kind of workers": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Workers.MachineDeployments[0].Infrastructure.TemplateRef.Kind = "OtherTemplate"
			r.New.Spec.Workers.MachinePools[0].Infrastructure.TemplateRef.Kind = "OtherTemplate"
			r.New.Spec.Patches = nil
		}, want: []string{
			"spec.workers.machineDeployments[0].infrastructure.templateRef: Forbidden: cannot be changed from MachineTemplate.i.example.com to OtherTemplate.i.example.com: what exists of Clusters stays of its kind",
			"spec.workers.machinePools[0].infrastructure.templateRef: Forbidden: cannot be changed from PoolTemplate.i.example.com to OtherTemplate.i.example.com: what exists of Clusters stays of its kind",
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
			"spec.workers.machineDeployments[big].healthCheck: Forbidden: cannot be removed: Cluster ns/c1 has it turned on for MachineDeployment md1 and defines none of its own",
			"spec.controlPlane.healthCheck: Forbidden: cannot be removed: Cluster ns/c1 has it turned on and defines none of its own",
		}},
		"a version in use goes": {update: true, change: func(_ *testing.T, r *classRequest) { r.New.Spec.KubernetesVersions = []string{"v1.37.0"} },
			want: []string{`spec.kubernetesVersions: Invalid value: ["v1.37.0"]: must contain v1.36.1+build.1: Cluster ns/c1 has it`}},
		"a variable in use goes": {update: true, change: func(_ *testing.T, r *classRequest) {
			r.New.Spec.Variables, r.New.Spec.Patches = nil, nil
		}, want: []string{"spec.variables[size]: Forbidden: cannot be removed: Cluster ns/c1 sets it; make it optional and without a default here, then remove it there, first"}},
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
		"templates of patch " + class.Spec.Patches[0].Name + " read variable nowhere, which is not defined in spec.variables: it has no value there",
		"enabledIf of patch external-patch has no effect: its extension decides what it changes",
	}
	if diff := cmp.Diff(want, warnClass(classRequest{New: class})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDeletion(t *testing.T) { // CC-07
	class := new(read[clusterv1.ClusterClass](t, full))
	if got := refuseTopologyDeletion(class, nil); got != "" {
		t.Errorf("a class that no one uses: %s", got)
	}
	var users []clusterv1.Cluster
	for _, name := range []string{"b", "a", "c", "d", "e", "f"} {
		users = append(users, clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "other"}})
	}
	const rest = ": delete them, or give them another class first"
	if got, want := refuseTopologyDeletion(class, users[:2]), "ClusterClass full is used by Clusters other/a, other/b"+rest; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := refuseTopologyDeletion(class, users), "ClusterClass full is used by Clusters other/a, other/b, other/c, other/d, other/e and 1 more"+rest; got != want {
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
	want := []string{"Cluster ns/c1: its value of variable size is not allowed by this class any more; its topology waits until the value is corrected"}
	if diff := cmp.Diff(want, warnClass(r)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	r.New.Spec.Variables[0].Schema.OpenAPIV3Schema.Maximum = nil
	if got := warnClass(r); got != nil {
		t.Errorf("an unchanged schema: %v", got)
	}
}

func reconciled(t testing.TB) *clusterv1.ClusterClass {
	class := new(read[clusterv1.ClusterClass](t, full))
	class.Status.ObservedGeneration = 1
	class.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterClassVariablesReadyCondition, Status: "True"}}
	class.Status.Variables = variables.MergeDefinitions([]variables.Source{{From: "inline", List: class.Spec.Variables}})
	return class
}

func TestTopology(t *testing.T) { // CL-33, CL-34, CL-35, CL-36, CL-37, CL-38, TP-17, TP-18
	type request = TopologyRequest
	version := func(text string) func(*request) { return func(r *request) { r.New.Spec.Topology.Version = text } }
	noVersions := func(r *request) { r.Class.Spec.KubernetesVersions = nil }
	both := func(changes ...func(*request)) func(*request) {
		return func(r *request) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	for name, c := range map[string]struct {
		change   func(*request)
		update   bool
		want     []string
		warnings []string
	}{
		"valid":         {},
		"valid, update": {update: true},
		"being deleted": {update: true, change: func(r *request) { r.New.DeletionTimestamp, r.Class = new(metav1.Now()), nil }},
		"negative replicas": {update: true, change: func(r *request) {
			r.New.Spec.Topology.ControlPlane.Replicas = new(int32(-1))
			r.New.Spec.Topology.Workers.MachineDeployments[0].Replicas = new(int32(-2))
			r.New.Spec.Topology.Workers.MachinePools[0].Replicas = new(int32(-3))
		}, want: []string{
			"spec.topology.controlPlane.replicas: Invalid value: -1: must be 0 or more",
			"spec.topology.workers.machineDeployments[0].replicas: Invalid value: -2: must be 0 or more",
			"spec.topology.workers.machinePools[0].replicas: Invalid value: -3: must be 0 or more",
		}},
		"no class": {change: func(r *request) { r.New.Spec.Topology.ClassRef.Name = "" },
			want: []string{"spec.topology.classRef.name: Required value: a topology needs a ClusterClass"}},
		"class missing": {change: func(r *request) { r.Class = nil },
			warnings: []string{"ClusterClass ns/full does not exist; nothing of the Cluster is created until it does (\"kubectl get clusterclasses -n ns\" lists those that there are)"}},
		"class missing, update": {update: true, change: func(r *request) { r.Class = nil },
			want: []string{`spec.topology.classRef: Invalid value: "ns/full": ClusterClass does not exist: the topology can be changed once it does`}},
		"class not reconciled": {change: func(r *request) { r.Class.Generation = 2; r.New.Spec.Topology.Variables = nil },
			warnings: []string{"the variables of ClusterClass ns/full are not known yet; those of the Cluster are checked and defaulted once they are"}},
		"replicas of a control plane without nodes": {change: func(r *request) {
			r.Class.Spec.ControlPlane.TemplateRef = clusterv1.ClusterClassTemplateReference{APIVersion: "controlplane.slipway.dev/v1alpha1", Kind: "HostedControlPlaneTemplate", Name: "p"}
			r.New.Spec.Topology.ControlPlane.Replicas = new(int32(1))
		}, warnings: []string{"spec.topology.controlPlane.replicas: the control planes of ClusterClass full have no nodes, so that this has no effect; remove it"}},
		"they were there": {update: true, change: func(r *request) {
			r.Class.Spec.ControlPlane.TemplateRef = clusterv1.ClusterClassTemplateReference{APIVersion: "controlplane.slipway.dev/v1alpha1", Kind: "HostedControlPlaneTemplate", Name: "p"}
			r.New.Spec.Topology.ControlPlane.Replicas, r.Old.Spec.Topology.ControlPlane.Replicas = new(int32(1)), new(int32(1))
		}},
		"paused, class not reconciled": {change: func(r *request) {
			r.Class.Generation, r.New.Spec.Topology.Variables, r.New.Spec.Paused = 2, nil, new(true)
		}},
		"topology comes": {update: true, change: func(r *request) { r.Old.Spec.Topology = clusterv1.Topology{} },
			want: []string{"spec.topology.classRef: Forbidden: cannot be set on a Cluster that exists without a topology: create a new Cluster, or set the annotation unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check after its objects were prepared for that"}},
		"topology comes, allowed": {update: true, change: func(r *request) {
			r.Old.Spec.Topology = clusterv1.Topology{}
			r.New.Annotations = map[string]string{clusterv1.ClusterTopologyUnsafeUpdateClassNameAnnotation: ""}
		}},

		// Versions.
		"no version":    {change: version(""), want: []string{"spec.topology.version: Required value: a topology needs a Kubernetes version, for example v1.36.3"}},
		"not a version": {change: version("vnext"), want: []string{`spec.topology.version: Invalid value: "vnext": must be a semantic version with a leading v, for example v1.36.3`}},
		"version that the class does not have": {change: version("v1.36.9"),
			want: []string{`spec.topology.version: Unsupported value: "v1.36.9": supported values: "v1.35.2", "v1.35.4", "v1.36.1+build.1", "v1.36.1+build.2", "v1.37.0"`}},
		"upgrade":       {update: true, change: version("v1.37.0")},
		"another build": {update: true, change: version("v1.36.1+build.2")},
		"downgrade":     {update: true, change: version("v1.35.4"), want: []string{`spec.topology.version: Invalid value: "v1.35.4": must not be older than v1.36.1+build.1, which the Cluster has: Kubernetes cannot be downgraded`}},
		"older patch":   {update: true, change: both(noVersions, version("v1.36.0")), want: []string{`spec.topology.version: Invalid value: "v1.36.0": must not be older than v1.36.1+build.1, which the Cluster has: Kubernetes cannot be downgraded`}},
		"another major": {update: true, change: both(noVersions, version("v2.36.1")), want: []string{`spec.topology.version: Invalid value: "v2.36.1": must not be older than v1.36.1+build.1, which the Cluster has: Kubernetes cannot be downgraded`}},
		"two minors":    {update: true, change: both(noVersions, version("v1.38.0")), want: []string{`spec.topology.version: Invalid value: "v1.38.0": must be at most one minor version newer than v1.36.1+build.1; to go further, the ClusterClass needs kubernetesVersions or an extension that plans upgrades`}},
		"two minors, planned": {update: true, change: both(version("v1.38.0"), func(r *request) {
			r.Class.Spec.KubernetesVersions = append(r.Class.Spec.KubernetesVersions, "v1.38.0")
		})},
		"two minors, extension": {update: true, change: both(noVersions, version("v1.38.0"), func(r *request) { r.Class.Spec.Upgrade.External.GenerateUpgradePlanExtension = "p.ext" })},
		"while upgrading": {update: true, change: both(version("v1.37.0"), func(r *request) { r.Upgrading = []string{"Plane p", "MachineDeployment md1"} }),
			want: []string{"spec.topology.version: Forbidden: cannot be changed while the Cluster is upgraded to v1.36.1+build.1: waiting for Plane p, MachineDeployment md1" + unchecked}},
		"while a hook is pending": {update: true, change: both(version("v1.37.0"), func(r *request) {
			r.Old.Annotations = map[string]string{"runtime.cluster.x-k8s.io/pending-hooks": "AfterClusterUpgrade,AfterControlPlaneUpgrade"}
		}), want: []string{"spec.topology.version: Forbidden: cannot be changed before the upgrade to v1.36.1+build.1 is over, with what extensions do after it (hook AfterClusterUpgrade); condition TopologyReconciled shows what is waited for" + unchecked}},
		"unsafe": {update: true, change: both(version("v1.30.0"), func(r *request) {
			r.Upgrading, r.New.Annotations = []string{"Plane p"}, map[string]string{clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation: ""}
		}), warnings: []string{"the change of the version from v1.36.1+build.1 to v1.30.0 is not checked, because of the annotation unsafe.topology.cluster.x-k8s.io/disable-update-version-check; remove it afterwards"}},

		// Parts.
		"concurrency": {change: func(r *request) {
			r.New.Annotations = map[string]string{clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation: "0"}
		},
			want: []string{`metadata.annotations[topology.cluster.x-k8s.io/upgrade-concurrency]: Invalid value: "0": must be a whole number, 1 or more`}},
		"no such class of workers": {change: func(r *request) {
			r.New.Spec.Topology.Workers.MachineDeployments[0].Class, r.New.Spec.Topology.Workers.MachinePools[0].Class = "x", "y"
		}, want: []string{
			`spec.topology.workers.machineDeployments[0].class: Invalid value: "x": ClusterClass full has no such class of MachineDeployments; it has: big, gpu-small`,
			`spec.topology.workers.machinePools[0].class: Invalid value: "y": ClusterClass full has no such class of MachinePools; it has: pool`,
		}},
		"health checks without a definition": {change: func(r *request) {
			r.Class.Spec.ControlPlane.HealthCheck = clusterv1.ControlPlaneClassHealthCheck{}
			r.Class.Spec.Workers.MachineDeployments[0].HealthCheck = clusterv1.MachineDeploymentClassHealthCheck{}
		}, want: []string{
			"spec.topology.controlPlane.healthCheck.enabled: Forbidden: can be true only where the topology or the class defines the health check",
			"spec.topology.workers.machineDeployments[0].healthCheck.enabled: Forbidden: can be true only where the topology or the class defines the health check",
		}},
		"health check of a control plane without Machines": {change: func(r *request) {
			r.Class.Spec.ControlPlane.MachineInfrastructure.TemplateRef = clusterv1.ClusterClassTemplateReference{}
		}, want: []string{"spec.topology.controlPlane.healthCheck: Forbidden: can be set only where the class has controlPlane.machineInfrastructure: without it the control plane has no Machines"}},
		"autoscaler": {change: func(r *request) {
			r.New.Spec.Topology.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMaxSizeAnnotation: "5"}
		}, want: []string{"spec.topology.workers.machineDeployments[0].replicas: Forbidden: cannot be set together with the annotations of the autoscaler, which sets them; remove it or the annotations"}},
		"autoscaler of the class": {change: func(r *request) {
			r.Class.Spec.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMaxSizeAnnotation: "5"}
		}, want: []string{"spec.topology.workers.machineDeployments[0].replicas: Forbidden: cannot be set together with the annotations of the autoscaler, which sets them; remove it or the annotations"}},
		"autoscaler, class missing": {change: func(r *request) {
			r.Class = nil
			r.New.Spec.Topology.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMaxSizeAnnotation: "5"}
		},
			want:     []string{"spec.topology.workers.machineDeployments[0].replicas: Forbidden: cannot be set together with the annotations of the autoscaler, which sets them; remove it or the annotations"},
			warnings: []string{"ClusterClass ns/full does not exist; nothing of the Cluster is created until it does (\"kubectl get clusterclasses -n ns\" lists those that there are)"}},
		"limits of the autoscaler that are no numbers": {change: func(r *request) {
			r.New.Spec.Topology.Workers.MachineDeployments[0].Replicas = nil
			r.New.Spec.Topology.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMaxSizeAnnotation: "many"}
			r.New.Spec.Topology.Workers.MachinePools[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "1.5"}
		}, want: []string{
			`spec.topology.workers.machineDeployments[0].metadata.annotations[cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size]: Invalid value: "many": must be a whole number`,
			`spec.topology.workers.machinePools[0].metadata.annotations[cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size]: Invalid value: "1.5": must be a whole number`,
		}},
		"annotations that steer controllers": {update: true, change: func(r *request) {
			for _, topology := range []*clusterv1.Topology{&r.New.Spec.Topology, &r.Old.Spec.Topology} {
				topology.Workers.MachinePools[0].Metadata.Annotations = map[string]string{clusterv1.PausedAnnotation: "", clusterv1.AutoscalerMinSizeAnnotation: "x"} // stay
			}
			r.New.Spec.Topology.ControlPlane.Metadata.Annotations = map[string]string{
				clusterv1.PausedAnnotation: "", "controlplane.slipway.dev/quiesce": "Stopped/1", "controlplane.cluster.x-k8s.io/skip-kube-proxy": "", "team": "a",
			}
			r.New.Spec.Topology.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.ManagedByAnnotation: ""}
		}, want: []string{
			"spec.topology.controlPlane.metadata.annotations[cluster.x-k8s.io/paused]: Forbidden: cannot be set by a topology, because it steers the controllers of the object that has it: set it on that object",
			"spec.topology.controlPlane.metadata.annotations[controlplane.slipway.dev/quiesce]: Forbidden: cannot be set by a topology, because it steers the controllers of the object that has it: set it on that object",
			"spec.topology.workers.machineDeployments[0].metadata.annotations[cluster.x-k8s.io/managed-by]: Forbidden: cannot be set by a topology, because it steers the controllers of the object that has it: set it on that object",
		}},
		"variables": {change: func(r *request) { r.New.Spec.Topology.Variables[0].Value.Raw = []byte(`"x"`) },
			want: []string{`spec.topology.variables[size].value: Invalid value: "x": in body must be of type integer: "string"`}},

		// Rebase.
		"another class": {update: true, change: func(r *request) {
			r.OldClass = r.Class.DeepCopy()
			r.New.Spec.Topology.ClassRef.Name, r.Class.Name = "next", "next"
		}},
		"another class that does not fit": {update: true, change: func(r *request) {
			r.OldClass = r.Class.DeepCopy()
			r.New.Spec.Topology.ClassRef.Name, r.Class.Name, r.Class.Spec.ControlPlane.TemplateRef.Kind = "next", "next", "OtherTemplate"
		}, want: []string{"spec.topology.classRef: Forbidden: ClusterClass ns/next does not fit: spec.controlPlane.templateRef: Forbidden: cannot be changed from PlaneTemplate.c.example.com to OtherTemplate.c.example.com: what exists of Clusters stays of its kind"}},
		"another class that does not have the version": {update: true, change: func(r *request) {
			r.OldClass = r.Class.DeepCopy()
			r.New.Spec.Topology.ClassRef.Name, r.Class.Name, r.Class.Spec.KubernetesVersions = "next", "next", []string{"v1.37.0"}
		}, want: []string{`spec.topology.version: Unsupported value: "v1.36.1+build.1": supported values: "v1.37.0"`}},
		"the class lost the version": {update: true, change: func(r *request) { r.Class.Spec.KubernetesVersions = []string{"v1.37.0"} }},
		"another class, the last one is gone": {update: true, change: func(r *request) { r.New.Spec.Topology.ClassRef.Name = "next" },
			want: []string{"spec.topology.classRef: Forbidden: cannot be changed while ClusterClass ns/full, which the Cluster has, does not exist: whether the new one fits cannot be told"}},
		"the same class, its namespace written": {update: true, change: func(r *request) { r.New.Spec.Topology.ClassRef.Namespace = "ns" }},
	} {
		t.Run(name, func(t *testing.T) {
			r := TopologyRequest{New: new(read[clusterv1.Cluster](t, user)), Class: reconciled(t)}
			if c.update {
				r.Old = r.New.DeepCopy()
			}
			r.Definitions = variables.NewDefinitions(r.Class.Status.Variables)
			if c.change != nil {
				c.change(&r)
			}
			v := ValidateTopology(r)
			if diff := cmp.Diff(c.want, texts(v.Errors)); diff != "" {
				t.Errorf("errors (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(c.warnings, v.Warnings); diff != "" {
				t.Errorf("warnings (-want +got)\n%s", diff)
			}
			for _, warning := range v.Warnings {
				if len(warning) > 256 {
					t.Errorf("the API server cuts the warning, it has %d bytes: %s", len(warning), warning)
				}
			}
		})
	}
}

func TestDefaultTopology(t *testing.T) { // TP-17
	r := TopologyRequest{New: new(read[clusterv1.Cluster](t, user)), Class: reconciled(t)}
	r.Definitions = variables.NewDefinitions(r.Class.Status.Variables)
	r.New.Spec.Topology.Variables = nil
	topology, changed := defaultTopology(r)
	if !changed || len(topology.Variables) != 1 || string(topology.Variables[0].Value.Raw) != "3" {
		t.Errorf("got %v %t", topology, changed)
	}
	if len(r.New.Spec.Topology.Variables) != 0 {
		t.Error("the request was changed")
	}
	r.Class.Status.ObservedGeneration = 0
	if _, changed := defaultTopology(r); changed {
		t.Error("variables of an earlier generation of the class are used")
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
