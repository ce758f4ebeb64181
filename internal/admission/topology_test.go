package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology/variables"
)

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
			warnings: []string{"ClusterClass ns/full does not exist; create it, or the Cluster remains without objects (\"kubectl get clusterclasses -n ns\" lists the existing classes)"}},
		"class missing, update": {update: true, change: func(r *request) { r.Class = nil },
			want: []string{`spec.topology.classRef: Invalid value: "ns/full": ClusterClass does not exist: create it, then change the topology`}},
		"class not reconciled": {change: func(r *request) { r.Class.Generation = 2; r.New.Spec.Topology.Variables = nil },
			warnings: []string{"the variables of ClusterClass ns/full are not reconciled yet; the variables of the Cluster are validated and defaulted after that"}},
		"replicas of a control plane without nodes": {change: func(r *request) {
			r.Class.Spec.ControlPlane.TemplateRef = clusterv1.ClusterClassTemplateReference{APIVersion: "controlplane.slipway.dev/v1alpha1", Kind: "HostedControlPlaneTemplate", Name: "p"}
			r.New.Spec.Topology.ControlPlane.Replicas = new(int32(1))
		}, warnings: []string{"spec.topology.controlPlane.replicas has no effect, because control planes of ClusterClass full have no nodes; remove it"}},
		"they were there": {update: true, change: func(r *request) {
			r.Class.Spec.ControlPlane.TemplateRef = clusterv1.ClusterClassTemplateReference{APIVersion: "controlplane.slipway.dev/v1alpha1", Kind: "HostedControlPlaneTemplate", Name: "p"}
			r.New.Spec.Topology.ControlPlane.Replicas, r.Old.Spec.Topology.ControlPlane.Replicas = new(int32(1)), new(int32(1))
		}},
		"paused, class not reconciled": {change: func(r *request) {
			r.Class.Generation, r.New.Spec.Topology.Variables, r.New.Spec.Paused = 2, nil, new(true)
		}},
		"topology comes": {update: true, change: func(r *request) { r.Old.Spec.Topology = clusterv1.Topology{} },
			want: []string{"spec.topology.classRef: Forbidden: cannot be set on an existing Cluster without a topology: create a new Cluster, or set the annotation unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check after you have prepared its objects"}},
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
		"downgrade":     {update: true, change: version("v1.35.4"), want: []string{`spec.topology.version: Invalid value: "v1.35.4": must not be older than v1.36.1+build.1, the current version: Kubernetes cannot be downgraded`}},
		"older patch":   {update: true, change: both(noVersions, version("v1.36.0")), want: []string{`spec.topology.version: Invalid value: "v1.36.0": must not be older than v1.36.1+build.1, the current version: Kubernetes cannot be downgraded`}},
		"another major": {update: true, change: both(noVersions, version("v2.36.1")), want: []string{`spec.topology.version: Invalid value: "v2.36.1": must have the major version of v1.36.1+build.1, the current version`}},
		"two minors":    {update: true, change: both(noVersions, version("v1.38.0")), want: []string{`spec.topology.version: Invalid value: "v1.38.0": must be at most one minor version newer than v1.36.1+build.1; to go further, the ClusterClass needs kubernetesVersions or an extension that plans upgrades`}},
		"two minors, planned": {update: true, change: both(version("v1.38.0"), func(r *request) {
			r.Class.Spec.KubernetesVersions = append(r.Class.Spec.KubernetesVersions, "v1.38.0")
		})},
		"two minors, extension": {update: true, change: both(noVersions, version("v1.38.0"), func(r *request) { r.Class.Spec.Upgrade.External.GenerateUpgradePlanExtension = "p.ext" })},
		"while upgrading": {update: true, change: both(version("v1.37.0"), func(r *request) { r.Upgrading = []string{"Plane p", "MachineDeployment md1"} }),
			want: []string{"spec.topology.version: Forbidden: cannot be changed while the Cluster is upgrading to v1.36.1+build.1: waiting for Plane p, MachineDeployment md1" + disableCheckHint}},
		"while a hook is pending": {update: true, change: both(version("v1.37.0"), func(r *request) {
			r.Old.Annotations = map[string]string{"runtime.cluster.x-k8s.io/pending-hooks": "AfterClusterUpgrade,AfterControlPlaneUpgrade"}
		}), want: []string{"spec.topology.version: Forbidden: cannot be changed before the upgrade to v1.36.1+build.1 is complete, including hook AfterClusterUpgrade; see condition TopologyReconciled" + disableCheckHint}},
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
			"spec.topology.controlPlane.healthCheck.enabled: Forbidden: can be true only if the topology or the class defines the health check",
			"spec.topology.workers.machineDeployments[0].healthCheck.enabled: Forbidden: can be true only if the topology or the class defines the health check",
		}},
		"health check of a control plane without Machines": {change: func(r *request) {
			r.Class.Spec.ControlPlane.MachineInfrastructure.TemplateRef = clusterv1.ClusterClassTemplateReference{}
		}, want: []string{"spec.topology.controlPlane.healthCheck: Forbidden: can be set only if the class has controlPlane.machineInfrastructure: without it the control plane has no Machines"}},
		"autoscaler": {change: func(r *request) {
			r.New.Spec.Topology.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMaxSizeAnnotation: "5"}
		}, want: []string{"spec.topology.workers.machineDeployments[0].replicas: Forbidden: cannot be set together with the annotations of the autoscaler, which sets replicas; remove one of them"}},
		"autoscaler of the class": {change: func(r *request) {
			r.Class.Spec.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMaxSizeAnnotation: "5"}
		}, want: []string{"spec.topology.workers.machineDeployments[0].replicas: Forbidden: cannot be set together with the annotations of the autoscaler, which sets replicas; remove one of them"}},
		"autoscaler, class missing": {change: func(r *request) {
			r.Class = nil
			r.New.Spec.Topology.Workers.MachineDeployments[0].Metadata.Annotations = map[string]string{clusterv1.AutoscalerMaxSizeAnnotation: "5"}
		},
			want:     []string{"spec.topology.workers.machineDeployments[0].replicas: Forbidden: cannot be set together with the annotations of the autoscaler, which sets replicas; remove one of them"},
			warnings: []string{"ClusterClass ns/full does not exist; create it, or the Cluster remains without objects (\"kubectl get clusterclasses -n ns\" lists the existing classes)"}},
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
			"spec.topology.controlPlane.metadata.annotations[cluster.x-k8s.io/paused]: Forbidden: cannot be set by a topology, because it controls how controllers treat the object: set it on the object itself",
			"spec.topology.controlPlane.metadata.annotations[controlplane.slipway.dev/quiesce]: Forbidden: cannot be set by a topology, because it controls how controllers treat the object: set it on the object itself",
			"spec.topology.workers.machineDeployments[0].metadata.annotations[cluster.x-k8s.io/managed-by]: Forbidden: cannot be set by a topology, because it controls how controllers treat the object: set it on the object itself",
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
		}, want: []string{"spec.topology.classRef: Forbidden: ClusterClass ns/next is not compatible with the current one: spec.controlPlane.templateRef: Forbidden: cannot be changed from PlaneTemplate.c.example.com to OtherTemplate.c.example.com, because existing objects of Clusters cannot change their kind"}},
		"another class that does not have the version": {update: true, change: func(r *request) {
			r.OldClass = r.Class.DeepCopy()
			r.New.Spec.Topology.ClassRef.Name, r.Class.Name, r.Class.Spec.KubernetesVersions = "next", "next", []string{"v1.37.0"}
		}, want: []string{`spec.topology.version: Unsupported value: "v1.36.1+build.1": supported values: "v1.37.0"`}},
		"the class lost the version": {update: true, change: func(r *request) { r.Class.Spec.KubernetesVersions = []string{"v1.37.0"} }},
		"another class, the last one is gone": {update: true, change: func(r *request) { r.New.Spec.Topology.ClassRef.Name = "next" },
			want: []string{"spec.topology.classRef: Forbidden: cannot be changed while the current ClusterClass ns/full does not exist, because the new one cannot be compared with it"}},
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
			v := validateManagedTopology(r)
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
	cluster := new(read[clusterv1.Cluster](t, user))
	cluster.Spec.Topology.Variables = nil
	r := Request{New: cluster, Gates: Gates{ClusterTopology: true}, Related: RelatedObjects{Class: reconciled(t)}}
	r.Related.Definitions = variables.NewDefinitions(r.Related.Class.Status.Variables)
	out, changed := Default(r)
	values := out.(*clusterv1.Cluster).Spec.Topology.Variables
	if !changed || len(values) != 1 || string(values[0].Value.Raw) != "3" {
		t.Errorf("got %v %t", values, changed)
	}
	if len(cluster.Spec.Topology.Variables) != 0 {
		t.Error("the request was changed")
	}
	r.Related.Class.Status.ObservedGeneration = 0
	if _, changed := Default(r); changed {
		t.Error("variables of an earlier generation of the class are used")
	}
}
