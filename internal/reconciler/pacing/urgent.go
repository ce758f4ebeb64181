package pacing

import (
	"reflect"
	"slices"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// Urgent lists the status changes of one kind that are written at once, because other programs wait for them. The
// driver (package reconciler) compares each change with it.
type Urgent struct {
	// Kind is an empty object of the kind.
	Kind client.Object
	// Fields are status fields: every change is urgent.
	Fields []string
	// Replaced are status fields: a change is urgent unless it sets the field for the first time.
	Replaced []string
	// Conditions are urgent when they become True or stop being True.
	Conditions []string
	// Reported are conditions that start as True unless something is wrong. They are urgent in the same way, but not when
	// they are reported for the first time.
	Reported []string
	// Shared means that several controllers write the status. A field that a change does not contain belongs to another
	// controller.
	Shared bool
	// Replicas makes it urgent that the last replica becomes available, or that the last surplus replica is gone.
	Replicas bool
}

// urgentChanges returns the urgent changes of every kind. Add a field or condition if a controller or another program
// waits for it; each addition costs writes, which test/simulation counts. For each kind, changes of the Paused
// condition are urgent, too.
func urgentChanges() []Urgent {
	return []Urgent{
		{Kind: &clusterv1.Cluster{}, Shared: true, Fields: []string{"initialization", "failureDomains"},
			Conditions: []string{clusterv1.ClusterAvailableCondition, clusterv1.ClusterTopologyReconciledCondition}},
		{Kind: &clusterv1.ClusterClass{}, Fields: []string{"variables", "observedGeneration"},
			Conditions: []string{clusterv1.ClusterClassVariablesReadyCondition}},
		{Kind: &clusterv1.Machine{}, Fields: []string{"nodeRef"}, // other controllers read the spec instead of initialization
			Conditions: []string{clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition},
			Reported:   []string{clusterv1.MachineUpToDateCondition}},
		{Kind: &clusterv1.MachineSet{}, Replicas: true},
		{Kind: &clusterv1.MachineDeployment{}, Conditions: []string{clusterv1.MachineDeploymentAvailableCondition}, Replicas: true},
		{Kind: &clusterv1.MachinePool{}, Fields: []string{"initialization"}, Conditions: []string{clusterv1.AvailableCondition},
			Replicas: true},
		{Kind: &clusterv1.MachineHealthCheck{}, Fields: []string{"currentHealthy", "remediationsAllowed"}},
		{Kind: &runtimev1.ExtensionConfig{}, Fields: []string{"handlers"}},
		{Kind: &bootstrapv1.KubeadmConfig{}, Fields: []string{"initialization", "dataSecretName"},
			Conditions: []string{bootstrapv1.KubeadmConfigReadyCondition}},
		{Kind: &controlplanev1.KubeadmControlPlane{}, Fields: []string{"initialization"}, Replaced: []string{"versions"},
			Conditions: []string{controlplanev1.KubeadmControlPlaneAvailableCondition}, Replicas: true},
		{Kind: &hostedv1.HostedControlPlane{}, Fields: []string{"initialization", "version", "addonsHash", "quiesced"},
			Replaced: []string{"encryptionKeys"}, Conditions: []string{hostedv1.AvailableCondition}},
		{Kind: &hostedv1.EtcdSnapshotPolicy{}, Fields: []string{"clusters", "lastSnapshotTime"},
			Conditions: []string{hostedv1.ReadyCondition}},
		{Kind: &infrav1.LocalCluster{}, Fields: []string{"initialization", "failureDomains", "network"},
			Conditions: []string{clusterv1.ReadyCondition}},
		{Kind: &infrav1.LocalMachine{}, Fields: []string{"initialization", "interruptible"},
			Conditions: []string{clusterv1.ReadyCondition}},
		{Kind: &infrav1.SSHHost{}, Fields: []string{"state", "confirmedClaimID", "record"}, Conditions: []string{infrav1.AvailableCondition}},
		{Kind: &infrav1.SSHCluster{}, Fields: []string{"initialization", "failureDomains"}, Conditions: []string{clusterv1.ReadyCondition}},
		{Kind: &infrav1.SSHMachine{}, Fields: []string{"initialization", "hostRef", "interruptible"}, Conditions: []string{clusterv1.ReadyCondition}},
		{Kind: &infrav1.LocalMachinePool{}, Fields: []string{"initialization", "ready", "infrastructureMachineKind"},
			Conditions: []string{clusterv1.ReadyCondition}},
	}
}

// UrgentOf returns the urgent changes of the kind of an object. reconciler.NewReconciler calls it once for each
// controller.
func UrgentOf(o client.Object) Urgent {
	for _, u := range urgentChanges() {
		if reflect.TypeOf(u.Kind) == reflect.TypeOf(o) {
			return u
		}
	}
	return Urgent{}
}

// Includes reports whether a change from one status to another, in the form of unstructured objects, is urgent. The
// driver calls it to decide whether to defer a write of the status.
func (u Urgent) Includes(have, want map[string]any) bool {
	changed := func(field string) bool {
		_, sets := want[field]
		return (sets || !u.Shared) && !reflect.DeepEqual(have[field], want[field])
	}
	replaced := func(field string) bool { return have[field] != nil && changed(field) }
	flipped := func(t string) bool {
		after := conditionStatus(want, t)
		return after != "" && (conditionStatus(have, t) == "True") != (after == "True")
	}
	flippedAgain := func(t string) bool { return conditionStatus(have, t) != "" && flipped(t) }
	return slices.ContainsFunc(u.Fields, changed) || slices.ContainsFunc(u.Replaced, replaced) ||
		flipped(clusterv1.PausedCondition) || slices.ContainsFunc(u.Conditions, flipped) ||
		slices.ContainsFunc(u.Reported, flippedAgain) || u.Replicas && isComplete(have, want)
}

// isComplete reports whether the last replica became available or the last surplus replica is gone.
func isComplete(have, want map[string]any) bool {
	available, changed := want["availableReplicas"], !reflect.DeepEqual(want["availableReplicas"], have["availableReplicas"])
	none := available == nil || len(have) == 0 && reflect.DeepEqual(available, 0.0)
	return changed && !none && reflect.DeepEqual(available, want["replicas"])
}

// conditionStatus returns the status of the condition with this type, or an empty string.
func conditionStatus(status map[string]any, conditionType string) string {
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == conditionType {
			s, _ := c["status"].(string)
			return s
		}
	}
	return ""
}
