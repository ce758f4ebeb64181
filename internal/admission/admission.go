package admission

import (
	"reflect"

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

// Gates holds the feature gates that admission depends on. The manager sets it.
type Gates struct {
	ClusterTopology                bool
	KubeadmBootstrapFormatIgnition bool
	MachineTaintPropagation        bool
	RuntimeSDK                     bool
}

// Request is a write request for an object. Package manager/webhook creates it from an admission review.
type Request struct {
	New     runtime.Object // the object to be written; a pointer to a type of the storage version
	Old     runtime.Object // the existing object; nil on create
	DryRun  bool           // nothing will be stored
	Gates   Gates
	Policy  policy.Configuration // operator's policy; zero denies only token issuers and copying cluster credentials
	Related RelatedObjects       // state of other objects
	// KubernetesVersions returns the versions that hosted control planes can run; if nil, only the version of this
	// build.
	KubernetesVersions func() []string
}

// RelatedObjects holds the state of other objects on which rules depend: for managed topologies, the scale subresource
// and IPAddresses. Package manager/webhook reads them.
type RelatedObjects struct {
	// Scaled is the control plane whose scale subresource is written.
	Scaled *controlplanev1.KubeadmControlPlane
	// Claim is the claim that a new IPAddress references; nil if it does not exist.
	Claim *ipamv1.IPAddressClaim
	// ReplicasOwner is the topology that will overwrite the replicas set through the scale subresource; nil if there is
	// none.
	ReplicasOwner *ReplicasOwner
	// RunsOnHost is set if the control plane of a topology runs on the host of the manager.
	RunsOnHost bool
	// Class of a Cluster; nil if it does not exist. Definitions has its variables.
	Class       *clusterv1.ClusterClass
	Definitions *variables.Definitions
	// OldClass is the previous class of the Cluster, if the class changes.
	OldClass *clusterv1.ClusterClass
	// Upgrading lists the parts of a Cluster that do not run its version yet, if the version changes.
	Upgrading []string
	// Users holds the Clusters that use a ClusterClass.
	Users []clusterv1.Cluster
}

// ReplicasOwner is a topology that sets the replicas of a MachineDeployment. The warning about a write of the scale
// subresource names it.
type ReplicasOwner struct {
	Cluster, Topology string // names of the Cluster, and of the MachineDeployment in its topology
	Replicas          int32
}

// Response is the response to a Request, which is admitted if there are no errors. Package manager/webhook converts it
// into the response of an admission review.
type Response struct {
	Errors   field.ErrorList
	Warnings []string
}

func (v *Response) refuse(errs ...*field.Error) { v.Errors = append(v.Errors, errs...) }

// Default returns the new object with defaults, and whether they changed it. The mutating webhook and `slipway plan`
// call it. The defaults are those of Cluster API and must stay. The object in the request is not modified. The webhook
// is only called for objects that lack a default by the CEL expression of their kind in package manager/webhook
// (kinds.go). A further default needs a term there.
func Default(r Request) (runtime.Object, bool) {
	out := r.New.DeepCopyObject()
	switch object := out.(type) {
	case *clusterv1.Cluster:
		defaultCluster(r, object)
	case *clusterv1.Machine:
		defaultClusterLabel(object, object.Spec.ClusterName)
		defaultMachineSpec(&object.Spec)
	case *clusterv1.MachineDeployment:
		defaultMachineDeployment(r, object)
	case *clusterv1.MachineSet:
		defaultMachineSet(r, object)
	case *clusterv1.MachinePool:
		defaultMachinePool(r, object)
	case *clusterv1.MachineHealthCheck:
		defaultMachineHealthCheck(object)
	case *addonsv1.ClusterResourceSet:
		if object.Spec.Strategy == "" {
			object.Spec.SetTypedStrategy(addonsv1.ClusterResourceSetStrategyApplyOnce)
		}
	case *runtimev1.ExtensionConfig:
		defaultExtensionConfig(object)
	case *bootstrapv1.KubeadmConfigTemplate:
		if old, ok := r.Old.(*bootstrapv1.KubeadmConfigTemplate); ok && isTopologyDryRun(r) {
			alignDefaults(&object.Spec.Template.Spec, &old.Spec.Template.Spec)
		}
	case *controlplanev1.KubeadmControlPlane:
		defaultKubeadmControlPlane(object)
	case *controlplanev1.KubeadmControlPlaneTemplate:
		defaultKubeadmControlPlaneTemplate(r, object)
	}
	if reflect.DeepEqual(out, r.New) {
		return r.New, false
	}
	return out, true
}

// Validate validates the new object; Default must be called first. Unknown kinds are admitted. The validating webhook
// and `slipway plan` call it. The webhook is only called for updates of the fields that package manager/webhook lists
// for the kind (kinds.go); a rule on a further field needs an entry there.
func Validate(r Request) Response {
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
		return Response{Errors: validateKubeadmConfig(r, &object.Spec, field.NewPath("spec"))}
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
		return Response{Errors: validateManager(r)}
	case *localv1.SSHHost:
		return validateSSHHost(r, object)
	case *localv1.SSHCluster:
		return validateSSHCluster(r, object)
	case *localv1.SSHMachine:
		return validateSSHMachine(r, object)
	case *localv1.LocalClusterTemplate, *localv1.LocalMachineTemplate, *localv1.LocalMachinePoolTemplate,
		*localv1.SSHClusterTemplate, *localv1.SSHMachineTemplate, *hostedv1.HostedControlPlaneTemplate:
		return validateOwnTemplate(r)
	}
	return Response{}
}

// warnTopology warns about kinds that only managed topologies use, while these are turned off. Manifests with these
// kinds remain valid.
const warnTopology = "the feature gate ClusterTopology is disabled in this manager (--feature-gates=ClusterTopology=true), so that nothing uses a "

// warnOnCreation admits everything, and returns a warning on create.
func warnOnCreation(r Request, warning string) Response {
	if r.Old != nil {
		return Response{}
	}
	return Response{Warnings: []string{warning}}
}
