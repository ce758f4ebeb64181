package admission

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/topology/variables"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Gates are the feature gates that admission depends on.
type Gates struct {
	ClusterTopology                bool
	KubeadmBootstrapFormatIgnition bool
	MachineTaintPropagation        bool
	RuntimeSDK                     bool
}

// Request is a write that a client requests.
type Request struct {
	New    runtime.Object // what it should be; a pointer to a type of the stored version
	Old    runtime.Object // what it is; nil when it is created
	DryRun bool           // nothing will be stored
	Gates  Gates
	Policy policy.Configuration // what the operator allows; the zero value: everything but issuers of tokens and copies of the credentials of clusters
	Facts  Facts                // about other objects
	// KubernetesVersions returns those that hosted control planes can run; nil: that of this build.
	KubernetesVersions func() []string
}

// Facts are what rules read of other objects: those of managed topologies, of the scale subresource and of IPAddresses.
type Facts struct {
	// Scaled is the control plane whose scale subresource is written.
	Scaled *controlplanev1.KubeadmControlPlane
	// Claim is the one that a new IPAddress is for; nil: it does not exist.
	Claim *ipamv1.IPAddressClaim
	// SetBack is who sets the replicas back that the scale subresource is to have; nil: no one is known.
	SetBack *SetBack
	// OnHost says that the control plane of a topology is to run on the host of the manager.
	OnHost bool
	// Class of a Cluster; nil: it does not exist. Definitions are its variables.
	Class       *clusterv1.ClusterClass
	Definitions *variables.Definitions
	// OldClass is the one that the Cluster had, where it gets another.
	OldClass *clusterv1.ClusterClass
	// Upgrading says which parts of a Cluster do not run its version yet, where that changes.
	Upgrading []string
	// Users are the Clusters of a ClusterClass.
	Users []clusterv1.Cluster
}

// SetBack is a topology that has the number of replicas of a MachineDeployment.
type SetBack struct {
	Cluster, Topology string // names of the Cluster, and of the MachineDeployment in its topology
	Replicas          int32
}

// Verdict is the answer to a Request: admitted when there are no errors.
type Verdict struct {
	Errors   field.ErrorList
	Warnings []string
}

// Default returns the new object with its defaults, and whether that differs from the request. The request is not
// changed. Kinds without such defaults are returned as they are.
func Default(r Request) (runtime.Object, bool) {
	switch object := r.New.(type) {
	case *clusterv1.Cluster:
		return defaultCluster(r, object)
	case *clusterv1.Machine:
		return defaultMachine(object)
	case *clusterv1.MachineDeployment:
		old, _ := r.Old.(*clusterv1.MachineDeployment)
		return defaultMachineDeployment(object, old)
	case *clusterv1.MachineSet:
		old, _ := r.Old.(*clusterv1.MachineSet)
		return defaultMachineSet(object, old)
	case *clusterv1.MachinePool:
		old, _ := r.Old.(*clusterv1.MachinePool)
		return defaultMachinePool(object, old)
	case *clusterv1.MachineHealthCheck:
		return defaultMachineHealthCheck(object)
	case *addonsv1.ClusterResourceSet:
		return defaultClusterResourceSet(object)
	case *runtimev1.ExtensionConfig:
		return defaultExtensionConfig(object)
	case *bootstrapv1.KubeadmConfigTemplate:
		return defaultKubeadmConfigTemplate(r, object)
	case *controlplanev1.KubeadmControlPlane:
		return defaultKubeadmControlPlane(object)
	case *controlplanev1.KubeadmControlPlaneTemplate:
		return defaultKubeadmControlPlaneTemplate(r, object)
	}
	return r.New, false
}

// Validate says whether the new object may be written; run Default first. Kinds that are not known here are admitted.
func Validate(r Request) Verdict {
	switch object := r.New.(type) {
	case *clusterv1.Cluster:
		return validateCluster(r, object)
	case *clusterv1.Machine:
		return validateMachine(r, object)
	case *clusterv1.MachineDeployment:
		return validateMachineDeployment(r, object)
	case *clusterv1.MachineSet:
		return validateMachineSet(r, object)
	case *clusterv1.MachinePool:
		return validateMachinePool(r, object)
	case *clusterv1.MachineDrainRule:
		return validateMachineDrainRule(object)
	case *clusterv1.MachineHealthCheck:
		return validateMachineHealthCheck(r, object)
	case *addonsv1.ClusterResourceSet:
		return validateClusterResourceSet(r, object)
	case *addonsv1.ClusterResourceSetBinding:
		return validateClusterResourceSetBinding(r, object)
	case *bootstrapv1.KubeadmConfig:
		return Verdict{Errors: validateKubeadmConfig(r, &object.Spec, field.NewPath("spec"))}
	case *bootstrapv1.KubeadmConfigTemplate:
		return validateKubeadmConfigTemplate(r, object)
	case *autoscalingv1.Scale:
		return validateScale(r, object)
	case *controlplanev1.KubeadmControlPlane:
		return validateKubeadmControlPlane(r, object)
	case *controlplanev1.KubeadmControlPlaneTemplate:
		return validateKubeadmControlPlaneTemplate(r, object)
	case *clusterv1.ClusterClass:
		return validateClusterClass(r, object)
	case *runtimev1.ExtensionConfig:
		return validateExtensionConfig(r, object, hooks.Default())
	case *ipamv1.IPAddress:
		return validateIPAddress(r, object)
	case *ipamv1.IPAddressClaim:
		return validateIPAddressClaim(r, object)
	case *hostedv1.HostedControlPlane:
		return validateHostedControlPlane(r, object)
	case *hostedv1.EtcdSnapshotPolicy:
		return validateEtcdSnapshotPolicy(r, object)
	case *localv1.LocalMachinePool:
		return validateLocalMachinePool(r, object)
	case *localv1.LocalCluster, *localv1.LocalMachine:
		return Verdict{Errors: validateManager(r)}
	case *localv1.LocalClusterTemplate, *localv1.LocalMachineTemplate, *localv1.LocalMachinePoolTemplate,
		*hostedv1.HostedControlPlaneTemplate:
		return validateOwnTemplate(r)
	}
	return Verdict{}
}
