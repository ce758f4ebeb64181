package webhook

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// kind describes the webhooks of one kind. Package admission contains the rules themselves: if a rule or a default
// depends on a further field, add the field here, because otherwise updates of it are not validated. The webhook
// configurations ([configurations]) and the [reviewer] are created from it.
type kind struct {
	resource schema.GroupVersionResource
	object   runtime.Object // an empty one

	// lacks is a CEL expression that is true if a default is missing. It is empty if the kind has no
	// defaults.
	lacks string

	// touched are CEL paths of the fields that validation depends on, without the leading "object". An update
	// that changes none of them is not validated. The paths use optional selection, because any field may be
	// missing.
	touched []string

	// deletes is true if a deletion may be rejected.
	deletes bool

	// scales is true if the operator can limit the replicas of the kind.
	scales bool

	// scaled is a CEL expression for replica counts that must also be validated for the scale subresource. It
	// is empty if there are none.
	scaled string

	// wrong is a CEL expression for invalid values of a field that changes often. An update is validated if
	// it is true. It is empty if there are none.
	wrong string

	// updated is true if only updates are validated.
	updated bool
}

// CEL expressions that several kinds share.
const (
	lacksClusterLabel = `object.metadata.?labels[?'cluster.x-k8s.io/cluster-name'] != object.?spec.?clusterName`
	lacksV            = `.?version.orValue('v').startsWith('v')`
	templateOfMachine = `object.?spec.?template.?spec`
	lacksSelector     = `(!object.?spec.?selector.?matchLabels.hasValue() && !object.?spec.?selector.?matchExpressions.hasValue())`
	timeout           = `.?deletion.?nodeDeletionTimeoutSeconds.hasValue()`
	negativeReplicas  = `object.?spec.?replicas.orValue(0) < 0`
	wholeSpec         = `.?spec`
	strategy          = `object.?spec.?rollout.?strategy`

	// unmanaged is true if the annotation of an external system that manages the object is removed.
	unmanaged = `oldObject.metadata` + managedBy + ` && !object.metadata` + managedBy
	managedBy = `.?annotations[?'` + clusterv1.ManagedByAnnotation + `'].hasValue()`

	// restored is true for a change in a version that differs from the storage version, because parts of the
	// object may come from the conversion annotation.
	restored = `request.requestKind.version != request.kind.version && (object.?spec != oldObject.?spec || object.?status != oldObject.?status)`

	// topologyDryRun is true for a dry-run apply of the topology controller. Defaulting then aligns the new
	// object with the old one.
	topologyDryRun = `oldObject != null && request.?dryRun.orValue(false) && object.metadata.?annotations[?'` + clusterv1.TopologyDryRunAnnotation + `'].hasValue()`

	// otherTopology is true if the topology is new or changes, because its class may have defaults for
	// missing variables.
	otherTopology = `object.?spec.?topology.hasValue() && (oldObject == null || object.spec.topology != oldObject.?spec.?topology.orValue({}))`
)

// specRules returns a kind without defaults whose whole spec is validated.
func specRules(resource schema.GroupVersionResource, object runtime.Object) kind {
	return kind{resource: resource, object: object, touched: []string{wholeSpec}}
}

// kinds returns all kinds with admission rules.
func kinds() []kind {
	return slices.Concat(coreKinds(), addedKinds(), controlPlaneKinds(), ownKinds())
}

// kindsOf returns the kinds of one provider. The configurations and the [reviewer] contain these kinds.
func kindsOf(set providerset.Set) []kind {
	return slices.DeleteFunc(kinds(), func(k kind) bool { return !set.Contains(k.name()) })
}

// coreKinds returns the kinds of the core provider.
func coreKinds() []kind {
	return []kind{
		{
			resource: clusterv1.GroupVersion.WithResource("clusters"),
			object:   &clusterv1.Cluster{},
			lacks:    `!object.?spec.?topology` + lacksV + ` || ` + otherTopology,
			touched: []string{
				`.?spec.?clusterNetwork`, `.?spec.?controlPlaneRef`, `.?spec.?infrastructureRef`, `.?spec.?topology`,
				`.metadata.?annotations[?'` + clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation + `']`,
			},
		},
		{
			resource: clusterv1.GroupVersion.WithResource("clusterclasses"),
			object:   &clusterv1.ClusterClass{},
			touched:  []string{wholeSpec},
			deletes:  true,
		},
		{
			resource: clusterv1.GroupVersion.WithResource("machines"),
			object:   &clusterv1.Machine{},
			lacks:    lacksClusterLabel + ` || !object.?spec` + lacksV + ` || !object.?spec` + timeout,
			touched: []string{
				`.?spec.?clusterName`, `.?spec.?bootstrap`, `.?spec.?version`, `.?spec.?taints`,
				`.?metadata.?labels[?'cluster.x-k8s.io/control-plane']`, `.?metadata.?labels[?'cluster.x-k8s.io/pool-name']`,
			},
		},
		{
			resource: clusterv1.GroupVersion.WithResource("machinedeployments"),
			scales:   true,
			scaled:   `true`, // the topology of the Cluster may revert them
			object:   &clusterv1.MachineDeployment{},
			lacks: lacksClusterLabel + ` || !object.?spec.?replicas.hasValue()` +
				` || object.?spec.?selector.?matchLabels[?'cluster.x-k8s.io/cluster-name'] != object.?spec.?clusterName` +
				` || object.?spec.?template.?metadata.?labels[?'cluster.x-k8s.io/cluster-name'] != object.?spec.?clusterName` +
				` || !` + strategy + `.?type.hasValue() || ` + strategy + `.?type.orValue('') == 'RollingUpdate'` +
				` && (!` + strategy + `.?rollingUpdate.?maxSurge.hasValue() || !` + strategy + `.?rollingUpdate.?maxUnavailable.hasValue())` +
				` || !` + templateOfMachine + lacksV + ` || !` + templateOfMachine + timeout,
			touched: []string{
				wholeSpec, `.metadata.?annotations[?'` + clusterv1.AutoscalerMinSizeAnnotation + `']`,
				`.metadata.?annotations[?'` + clusterv1.AutoscalerMaxSizeAnnotation + `']`,
				`.metadata.?annotations[?'` + clusterv1.MachineSetSkipPreflightChecksAnnotation + `']`,
			},
		},
		{
			resource: clusterv1.GroupVersion.WithResource("machinesets"),
			scales:   true,
			wrong:    negativeReplicas,
			object:   &clusterv1.MachineSet{},
			lacks: lacksClusterLabel + ` || !object.?spec.?replicas.hasValue() || !object.?spec.?deletion.?order.hasValue()` +
				` || ` + lacksSelector + ` || !` + templateOfMachine + lacksV + ` || !` + templateOfMachine + timeout,
			touched: []string{
				`.?spec.?clusterName`, `.?spec.?selector`, `.?spec.?machineNaming`, `.?spec.?template`, `.metadata.?annotations`,
			},
		},
		{
			resource: clusterv1.GroupVersion.WithResource("machinepools"),
			scales:   true,
			wrong:    negativeReplicas,
			object:   &clusterv1.MachinePool{},
			lacks: lacksClusterLabel + ` || !object.?spec.?replicas.hasValue()` +
				` || !` + templateOfMachine + `.?minReadySeconds.hasValue()` +
				` || !` + templateOfMachine + lacksV + ` || !` + templateOfMachine + timeout,
			touched: []string{
				`.?spec.?clusterName`, `.?spec.?template.?metadata`, `.?spec.?template.?spec.?bootstrap`,
				`.?spec.?template.?spec.?version`, `.?spec.?template.?spec.?taints`, `.metadata.?annotations`,
			},
		},
		{
			resource: clusterv1.GroupVersion.WithResource("machinehealthchecks"),
			object:   &clusterv1.MachineHealthCheck{},
			lacks:    lacksClusterLabel + ` || !object.?spec.?checks.?nodeStartupTimeoutSeconds.hasValue()`,
			touched:  []string{wholeSpec},
		},
		{
			resource: addonsv1.GroupVersion.WithResource("clusterresourcesets"),
			object:   &addonsv1.ClusterResourceSet{},
			lacks:    `!object.?spec.?strategy.hasValue()`,
			touched:  []string{wholeSpec},
		},
		{
			resource: addonsv1.GroupVersion.WithResource("clusterresourcesetbindings"),
			object:   &addonsv1.ClusterResourceSetBinding{},
			touched:  []string{`.?spec.?clusterName`},
		},
		specRules(clusterv1.GroupVersion.WithResource("machinedrainrules"), &clusterv1.MachineDrainRule{}),
	}
}

// addedKinds returns the kinds of the other Cluster API groups, without the control plane.
func addedKinds() []kind {
	return []kind{
		specRules(bootstrapv1.GroupVersion.WithResource("kubeadmconfigs"), &bootstrapv1.KubeadmConfig{}),
		{
			resource: bootstrapv1.GroupVersion.WithResource("kubeadmconfigtemplates"),
			object:   &bootstrapv1.KubeadmConfigTemplate{},
			lacks:    topologyDryRun,
			touched:  []string{wholeSpec},
		},
		{
			resource: runtimev1.GroupVersion.WithResource("extensionconfigs"),
			object:   &runtimev1.ExtensionConfig{},
			lacks: `!object.?spec.?namespaceSelector.hasValue()` +
				` || (object.?spec.?clientConfig.?service.hasValue() && !object.?spec.?clientConfig.?service.?port.hasValue())`,
			touched: []string{wholeSpec, `.metadata.?labels`, `.metadata.?annotations`},
		},
		specRules(ipamv1.GroupVersion.WithResource("ipaddresses"), &ipamv1.IPAddress{}),
		specRules(ipamv1.GroupVersion.WithResource("ipaddressclaims"), &ipamv1.IPAddressClaim{}),
	}
}

// lacksSurge returns a CEL expression that is true if the rollout strategy of a control plane lacks a
// default.
func lacksSurge(spec string) string {
	const s = `.?rollout.?strategy`
	return `!` + spec + s + `.?type.hasValue() || ` + spec + s + `.?type.orValue('') == 'RollingUpdate'` +
		` && !` + spec + s + `.?rollingUpdate.?maxSurge.hasValue()`
}

// controlPlaneKinds returns the kinds of the provider control-plane-kubeadm.
func controlPlaneKinds() []kind {
	return []kind{
		{
			resource: controlplanev1.GroupVersion.WithResource("kubeadmcontrolplanes"),
			scales:   true,
			// Zero or an even number of etcd members. The rules read whether etcd is external.
			scaled:  `object.?spec.?replicas.orValue(0) % 2 == 0`,
			object:  &controlplanev1.KubeadmControlPlane{},
			lacks:   `!object.?spec.?replicas.hasValue() || !object.?spec` + lacksV + ` || ` + lacksSurge(`object.?spec`),
			touched: []string{wholeSpec},
		},
		{
			resource: controlplanev1.GroupVersion.WithResource("kubeadmcontrolplanetemplates"),
			object:   &controlplanev1.KubeadmControlPlaneTemplate{},
			lacks:    lacksSurge(templateOfMachine) + ` || ` + topologyDryRun,
			touched:  []string{wholeSpec},
		},
	}
}

// ownKinds returns the kinds of Slipway's own groups.
func ownKinds() []kind {
	return []kind{
		{
			resource: localv1.GroupVersion.WithResource("localclusters"),
			object:   &localv1.LocalCluster{},
			wrong:    unmanaged,
			updated:  true,
		},
		{
			resource: localv1.GroupVersion.WithResource("localmachines"),
			object:   &localv1.LocalMachine{},
			wrong:    unmanaged,
			updated:  true,
		},
		{
			resource: localv1.GroupVersion.WithResource("localmachinepools"),
			object:   &localv1.LocalMachinePool{},
			wrong:    unmanaged,
			touched:  []string{`.?spec.?template.?metadata`},
		},
		specRules(localv1.GroupVersion.WithResource("localclustertemplates"), &localv1.LocalClusterTemplate{}),
		specRules(localv1.GroupVersion.WithResource("localmachinetemplates"), &localv1.LocalMachineTemplate{}),
		specRules(localv1.GroupVersion.WithResource("localmachinepooltemplates"), &localv1.LocalMachinePoolTemplate{}),
		specRules(localv1.GroupVersion.WithResource("sshhosts"), &localv1.SSHHost{}),
		{
			resource: localv1.GroupVersion.WithResource("sshclusters"),
			object:   &localv1.SSHCluster{},
			wrong:    unmanaged,
			touched:  []string{wholeSpec},
		},
		{
			resource: localv1.GroupVersion.WithResource("sshmachines"),
			object:   &localv1.SSHMachine{},
			wrong:    unmanaged,
			touched:  []string{`.?spec.?hostSelector`},
		},
		specRules(localv1.GroupVersion.WithResource("sshclustertemplates"), &localv1.SSHClusterTemplate{}),
		specRules(localv1.GroupVersion.WithResource("sshmachinetemplates"), &localv1.SSHMachineTemplate{}),
		{
			resource: hostedv1.GroupVersion.WithResource("hostedcontrolplanes"),
			object:   &hostedv1.HostedControlPlane{},
			touched: []string{
				`.?spec.?version`, `.?spec.?apiServer`, `.?spec.?controllerManager`, `.?spec.?scheduler`, `.?spec.?etcd`,
				`.?spec.?audit`, `.?spec.?encryption`, `.?spec.?authentication`, `.?spec.?podSecurity`, `.?spec.?hardening`,
			},
		},
		specRules(hostedv1.GroupVersion.WithResource("hostedcontrolplanetemplates"), &hostedv1.HostedControlPlaneTemplate{}),
		specRules(hostedv1.GroupVersion.WithResource("etcdsnapshotpolicies"), &hostedv1.EtcdSnapshotPolicy{}),
	}
}
