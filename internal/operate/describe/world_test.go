package describe_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/operate/describe"
)

const (
	infraGroup     = "infrastructure.example.com"
	bootstrapGroup = "bootstrap.example.com"
	planeGroup     = "controlplane.example.com"
)

func n(v int32) *int32 { return &v }

func ref(group, kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind, Name: name}
}

func cond(kind, status, reason, message string, age time.Duration) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now().Add(-age))}
}

func meta(name string, owner *metav1.OwnerReference, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "demo"}}
	for i := 0; i+1 < len(labels); i += 2 {
		m.Labels[labels[i]] = labels[i+1]
	}
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return m
}

func owner(kind, name string) *metav1.OwnerReference {
	yes := true
	return &metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: name, UID: "u", Controller: &yes}
}

func machine(m metav1.ObjectMeta, infra string, conditions ...metav1.Condition) clusterv1.Machine {
	return clusterv1.Machine{
		ObjectMeta: m,
		Spec: clusterv1.MachineSpec{
			ClusterName:       "demo",
			InfrastructureRef: ref(infraGroup, infra, m.Name),
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: ref(bootstrapGroup, "ExampleConfig", m.Name)},
		},
		Status: clusterv1.MachineStatus{Conditions: conditions},
	}
}

func healthy(age time.Duration) []metav1.Condition {
	return []metav1.Condition{
		cond("Ready", "True", "Ready", "", age),
		cond("Available", "True", "Available", "", age),
		cond("UpToDate", "True", "UpToDate", "", age),
	}
}

func provider(ref describe.Ref, spec, status map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": ref.Group + "/v1", "kind": ref.Kind,
		"metadata": map[string]any{"namespace": "default", "name": ref.Name},
	}}
	if spec != nil {
		u.Object["spec"] = spec
	}
	if status != nil {
		u.Object["status"] = status
	}
	return u
}

func raw(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-02T11:58:00Z"}
}

// world is a cluster with one of everything: a control plane with a machine, a deployment, a pool with machines
// in three states, a machine on its own that is being deleted, providers of both contract versions, and a
// reference to an object that does not exist.
func world() describe.Snapshot {
	yes := true
	s := describe.Snapshot{
		Cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"},
			Spec: clusterv1.ClusterSpec{
				Paused:            &yes,
				InfrastructureRef: ref(infraGroup, "ExampleCluster", "demo"),
				ControlPlaneRef:   ref(planeGroup, "ExampleControlPlane", "demo"),
			},
			Status: clusterv1.ClusterStatus{
				Conditions: []metav1.Condition{
					cond("InfrastructureReady", "True", "Ready", "", 5*time.Minute),
					cond("Available", "False", "NotAvailable", "* WorkersAvailable:\n  * MachinePool pool: 2 available replicas, at least 3 required", 3*time.Minute),
					cond("Paused", "True", "Paused", "Cluster spec.paused is set to true", time.Minute),
				},
				ControlPlane: &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: n(1), Replicas: n(1), AvailableReplicas: n(1), ReadyReplicas: n(1), UpToDateReplicas: n(1)},
				Workers:      &clusterv1.WorkersStatus{DesiredReplicas: n(6), Replicas: n(6), AvailableReplicas: n(4), ReadyReplicas: n(4), UpToDateReplicas: n(5)},
				//lint:ignore SA1019 the deprecated conditions are what --v1beta2=false shows
				Deprecated: &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{
					{Type: "Ready", Status: "False", Severity: "Info", Reason: "WaitingForWorkers", Message: "waiting for a machine", LastTransitionTime: metav1.NewTime(now().Add(-3 * time.Minute))},
				}}},
			},
		},
		Objects:      map[describe.Ref]*unstructured.Unstructured{},
		Missing:      map[describe.Ref]string{},
		ResourceSets: []string{"storage"},
	}
	deployment(&s)
	pool(&s)
	providers(&s)
	return s
}

func deployment(s *describe.Snapshot) {
	s.Deployments = []clusterv1.MachineDeployment{{
		ObjectMeta: meta("md", nil),
		Spec: clusterv1.MachineDeploymentSpec{Replicas: n(2), Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
			InfrastructureRef: ref(infraGroup, "ExampleMachineTemplate", "md"),
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: ref(bootstrapGroup, "ExampleConfigTemplate", "md")},
		}}},
		Status: clusterv1.MachineDeploymentStatus{Replicas: n(2), AvailableReplicas: n(2), ReadyReplicas: n(2), UpToDateReplicas: n(2),
			Conditions: []metav1.Condition{cond("Available", "True", "Available", "", 4*time.Minute)}},
	}}
	s.Sets = []clusterv1.MachineSet{{
		ObjectMeta: meta("md-1", owner("MachineDeployment", "md")),
		Spec:       clusterv1.MachineSetSpec{Replicas: n(2)},
		Status:     clusterv1.MachineSetStatus{Replicas: n(2), AvailableReplicas: n(2), ReadyReplicas: n(2), UpToDateReplicas: n(2)},
	}}
	s.Machines = append(s.Machines,
		machine(meta("cp-0", nil, clusterv1.MachineControlPlaneLabel, ""), "ExampleMachine", healthy(4*time.Minute)...),
		machine(meta("md-1-a", owner("MachineSet", "md-1")), "ExampleMachine", healthy(4*time.Minute)...),
		machine(meta("md-1-b", nil, clusterv1.MachineSetNameLabel, "md-1"), "ExampleMachine", healthy(2*time.Minute)...),
	)
}

func pool(s *describe.Snapshot) {
	s.Pools = []clusterv1.MachinePool{{
		ObjectMeta: meta("pool", nil),
		Spec: clusterv1.MachinePoolSpec{Replicas: n(3), Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
			InfrastructureRef: ref(infraGroup, "ExamplePool", "pool"),
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: ref(bootstrapGroup, "ExampleConfig", "pool")},
		}}},
		Status: clusterv1.MachinePoolStatus{Replicas: n(3), AvailableReplicas: n(2), ReadyReplicas: n(2), UpToDateReplicas: n(2),
			Conditions: []metav1.Condition{cond("Available", "False", "NotAvailable", "2 available replicas, at least 3 required (spec.replicas is 3)", 3*time.Minute)}},
	}}
	gone := machine(meta("z-single", nil), "ExampleMachine",
		cond("Ready", "False", "Deleting", "", time.Minute),
		cond("Deleting", "True", "DrainingNode", "Drain not completed yet:\n* Pod default/web: waits for its PodDisruptionBudget", time.Minute))
	at := metav1.NewTime(now().Add(-time.Minute))
	gone.DeletionTimestamp = &at
	s.Machines = append(s.Machines,
		machine(meta("pool-a", owner("MachinePool", "pool")), "ExampleMachine", healthy(2*time.Minute)...),
		machine(meta("pool-b", owner("MachinePool", "pool")), "ExampleMachine", healthy(time.Minute)...),
		machine(meta("pool-c", owner("MachinePool", "pool")), "ExampleMachine",
			cond("Ready", "False", "NotReady", "* InfrastructureReady: the container has no image", 3*time.Minute),
			cond("Available", "False", "NotReady", "", 3*time.Minute),
			cond("UpToDate", "False", "NotUpToDate", "", 3*time.Minute)),
		gone,
	)
}

func providers(s *describe.Snapshot) {
	for _, m := range s.Machines {
		infra := raw("Ready", "True", "Ready", "")
		if m.Name == "pool-c" {
			infra = raw("Ready", "False", "ImageMissing", "the container has no image: build one")
		}
		put(s, describe.Ref{Group: infraGroup, Kind: "ExampleMachine", Name: m.Name}, nil, map[string]any{"conditions": []any{infra}})
		put(s, describe.Ref{Group: bootstrapGroup, Kind: "ExampleConfig", Name: m.Name}, nil, map[string]any{"conditions": []any{raw("Ready", "True", "Ready", "")}})
	}
	put(s, describe.Ref{Group: infraGroup, Kind: "ExampleCluster", Name: "demo"}, nil, map[string]any{
		"conditions": []any{map[string]any{"type": "Ready", "status": "False", "severity": "Warning", "reason": "Old", "message": "v1beta1 form", "lastTransitionTime": "2026-01-02T11:00:00Z"}},
		"v1beta2":    map[string]any{"conditions": []any{raw("Ready", "True", "Ready", "")}},
	})
	put(s, describe.Ref{Group: planeGroup, Kind: "ExampleControlPlane", Name: "demo"}, map[string]any{
		"replicas": int64(1),
		"machineTemplate": map[string]any{"spec": map[string]any{"infrastructureRef": map[string]any{
			"apiGroup": infraGroup, "kind": "ExampleMachineTemplate", "name": "cp"}}},
	}, map[string]any{
		"replicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1), "upToDateReplicas": int64(1),
		"conditions": []any{raw("Available", "True", "Available", "")},
	})
	for _, name := range []string{"cp", "md"} {
		put(s, describe.Ref{Group: infraGroup, Kind: "ExampleMachineTemplate", Name: name}, nil, nil)
	}
	put(s, describe.Ref{Group: bootstrapGroup, Kind: "ExampleConfigTemplate", Name: "md"}, nil, nil)
	put(s, describe.Ref{Group: bootstrapGroup, Kind: "ExampleConfig", Name: "pool"}, nil, map[string]any{"conditions": []any{raw("Ready", "True", "Ready", "")}})
	put(s, describe.Ref{Group: "addons.cluster.x-k8s.io", Kind: "ClusterResourceSet", Name: "storage"}, nil, nil)
	s.Missing[describe.Ref{Group: infraGroup, Kind: "ExamplePool", Name: "pool"}] = "does not exist"
}

func put(s *describe.Snapshot, ref describe.Ref, spec, status map[string]any) {
	s.Objects[ref] = provider(ref, spec, status)
}
