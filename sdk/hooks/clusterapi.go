package hooks

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Group of all hooks of Cluster API.
const Group = "hooks.runtime.cluster.x-k8s.io"

// Discovery asks an extension for its handlers (RT-06).
var Discovery = v1alpha1("Discovery")

// ClusterAPI returns the hooks of Cluster API v1.14 in every version there is: the list to make a catalog of, alone or
// with more.
func ClusterAPI() []Hook {
	return slices.Concat(discovery(), lifecycle(), upgrades(), topology(), inPlace())
}

// Default returns the catalog of [ClusterAPI].
func Default() *Catalog {
	c, err := New(ClusterAPI())
	if err != nil {
		panic(err) // the list is a constant of this package, and its test makes a catalog of it
	}
	return c
}

func v1alpha1(hook string) ID {
	return ID{Name: Name{Group: Group, Hook: hook}, Version: hooksv1.GroupVersion.Version}
}

// request and answer make the constructors of a hook's Go types.
func request[T any, P object[T]]() func() runtime.Object {
	return func() runtime.Object { return P(new(T)) }
}

func answer[T any, P response[T]]() func() Response {
	return func() Response { return P(new(T)) }
}

func discovery() []Hook {
	return []Hook{{
		ID: Discovery, Tag: TagDiscovery, Singleton: true,
		Summary: "Asks an extension which handlers it has.",
		Description: "Called when an ExtensionConfig is created or changed, and from time to time after that. The response lists " +
			"every handler with its name, the hook and version it serves, its timeout and its failure policy.\n\n" +
			"- Names are DNS labels (RFC 1123), each used once.\n" +
			"- A timeout is 0 to 30 seconds; 10 where it is left out.\n" +
			"- One wrong handler makes the whole response invalid.\n" +
			"- Libraries for extensions answer this hook by themselves.",
		NewRequest: request[hooksv1.DiscoveryRequest](), NewResponse: answer[hooksv1.DiscoveryResponse](),
	}}
}

func lifecycle() []Hook {
	return []Hook{
		{
			ID: v1alpha1("BeforeClusterCreate"), Tag: TagLifecycle,
			Summary: "Called before the objects of a new cluster's topology are created.",
			Description: "The Cluster exists, nothing below it does. " + blocks("the topology is not created") +
				ofTopology +
				"- The request holds the Cluster.",
			NewRequest:  request[hooksv1.BeforeClusterCreateRequest](),
			NewResponse: answer[hooksv1.BeforeClusterCreateResponse](),
		},
		{
			ID: v1alpha1("AfterControlPlaneInitialized"), Tag: TagLifecycle,
			Summary: "Called once, when a cluster's control plane answers for the first time.",
			Description: "A place to install what the cluster needs before its workers arrive. " + informs + ofTopology +
				"- The request holds the Cluster.",
			NewRequest:  request[hooksv1.AfterControlPlaneInitializedRequest](),
			NewResponse: answer[hooksv1.AfterControlPlaneInitializedResponse](),
		},
		{
			ID: v1alpha1("BeforeClusterDelete"), Tag: TagLifecycle,
			Summary: "Called when the deletion of a cluster was asked for, before anything of it is deleted.",
			Description: "A place to move away or clean up what the cluster holds elsewhere. " +
				blocks("nothing is deleted") + ofTopology +
				"- The request holds the Cluster.",
			NewRequest:  request[hooksv1.BeforeClusterDeleteRequest](),
			NewResponse: answer[hooksv1.BeforeClusterDeleteResponse](),
		},
	}
}

func upgrades() []Hook {
	const plan = "- The request holds the Cluster, the versions before and after, and the steps that are still to come."
	return []Hook{
		{
			ID: v1alpha1("BeforeClusterUpgrade"), Tag: TagLifecycle,
			Summary: "Called once before an upgrade begins, when the version in the topology was changed.",
			Description: "Called once for the whole upgrade, however many versions it passes. " +
				blocks("no object gets the new version") + ofTopology + plan,
			NewRequest:  request[hooksv1.BeforeClusterUpgradeRequest](),
			NewResponse: answer[hooksv1.BeforeClusterUpgradeResponse](),
		},
		{
			ID: v1alpha1("BeforeControlPlaneUpgrade"), Tag: TagLifecycle,
			Summary: "Called before the control plane gets its next version.",
			Description: "Called for every version that the upgrade passes, the first time after BeforeClusterUpgrade let it go on. " +
				blocks("the control plane keeps its version") + ofTopology + plan,
			NewRequest:  request[hooksv1.BeforeControlPlaneUpgradeRequest](),
			NewResponse: answer[hooksv1.BeforeControlPlaneUpgradeResponse](),
		},
		{
			ID: v1alpha1("AfterControlPlaneUpgrade"), Tag: TagLifecycle,
			Summary: "Called when all of the control plane runs its next version.",
			Description: "Called for every version that the upgrade passes. " +
				blocks("neither the workers nor the control plane get another version") + ofTopology + plan,
			NewRequest:  request[hooksv1.AfterControlPlaneUpgradeRequest](),
			NewResponse: answer[hooksv1.AfterControlPlaneUpgradeResponse](),
		},
		{
			ID: v1alpha1("BeforeWorkersUpgrade"), Tag: TagLifecycle,
			Summary: "Called before the workers get their next version.",
			Description: "Called for the versions that workers have to run on the way, and for the last one. " +
				blocks("the workers keep their version") + ofTopology + plan,
			NewRequest:  request[hooksv1.BeforeWorkersUpgradeRequest](),
			NewResponse: answer[hooksv1.BeforeWorkersUpgradeResponse](),
		},
		{
			ID: v1alpha1("AfterWorkersUpgrade"), Tag: TagLifecycle,
			Summary: "Called when all workers run their next version.",
			Description: "Called for the versions that workers have to run on the way, and for the last one, before AfterClusterUpgrade. " +
				blocks("the upgrade does not go on") + ofTopology + plan,
			NewRequest:  request[hooksv1.AfterWorkersUpgradeRequest](),
			NewResponse: answer[hooksv1.AfterWorkersUpgradeResponse](),
		},
		{
			ID: v1alpha1("AfterClusterUpgrade"), Tag: TagLifecycle,
			Summary: "Called when control plane and workers run the version of the topology.",
			Description: "The last call of an upgrade. " + blocks("the next upgrade does not begin") + ofTopology +
				"- The request holds the Cluster and the version it has now.",
			NewRequest:  request[hooksv1.AfterClusterUpgradeRequest](),
			NewResponse: answer[hooksv1.AfterClusterUpgradeResponse](),
		},
		{
			ID: v1alpha1("GenerateUpgradePlan"), Tag: TagUpgrade,
			Summary: "Asks which versions an upgrade has to pass on its way.",
			Description: "Called when a cluster shall skip minor versions. The response lists versions for the control plane, and may list " +
				"some for the workers; without, the fewest steps that the version skew allows are taken.\n\n" +
				"- Versions rise, end with the version asked for, and leave out no minor version of the control plane.\n" +
				"- Workers can only run versions that the control plane runs or passes.",
			NewRequest:  request[hooksv1.GenerateUpgradePlanRequest](),
			NewResponse: answer[hooksv1.GenerateUpgradePlanResponse](),
		},
	}
}

func topology() []Hook {
	return []Hook{
		{
			ID: v1alpha1("DiscoverVariables"), Tag: TagTopology,
			Summary: "Asks which variables a ClusterClass patch takes.",
			Description: "Called when a ClusterClass is created or changed. The response holds the variables with their schemas; users set " +
				"them in spec.topology.variables of their Clusters.",
			NewRequest:  request[hooksv1.DiscoverVariablesRequest](),
			NewResponse: answer[hooksv1.DiscoverVariablesResponse](),
		},
		{
			ID: v1alpha1("GeneratePatches"), Tag: TagTopology,
			Summary: "Asks for the patches of the templates that a cluster is made from.",
			Description: "Called every time the objects of a cluster are computed from its ClusterClass: fast and without side effects, and " +
				"with the same answer to the same question.\n\n" +
				"- The request holds all templates, the variables of the cluster and those of each template.\n" +
				"- The response holds JSON patches or JSON merge patches, each with the uid of the template it is for.\n" +
				"- Patches change the spec of a template only.",
			NewRequest: request[hooksv1.GeneratePatchesRequest](), NewResponse: answer[hooksv1.GeneratePatchesResponse](),
		},
		{
			ID: v1alpha1("ValidateTopology"), Tag: TagTopology,
			Summary: "Asks whether the templates may be used as they are after all patches.",
			Description: "Called after GeneratePatches of all extensions. A response of status Failure stops the cluster from being changed; " +
				"its message reaches the user.\n\n" +
				"- The request holds all templates, the variables of the cluster and those of each template.",
			NewRequest:  request[hooksv1.ValidateTopologyRequest](),
			NewResponse: answer[hooksv1.ValidateTopologyResponse](),
		},
	}
}

func inPlace() []Hook {
	const spec = "- Objects come without their status.\n- Patches cover the spec only; what no extension covers leads to new machines."
	return []Hook{
		{
			ID: v1alpha1("CanUpdateMachine"), Tag: TagInPlace,
			Summary: "Asks which changes of a Machine an extension can carry out without replacing it.",
			Description: "The request holds the Machine, its infrastructure machine and its bootstrap config as they are and as they shall " +
				"be. The response holds a patch for each object with the changes that the extension takes over.\n\n" +
				spec,
			NewRequest:  request[hooksv1.CanUpdateMachineRequest](),
			NewResponse: answer[hooksv1.CanUpdateMachineResponse](),
		},
		{
			ID: v1alpha1("CanUpdateMachineSet"), Tag: TagInPlace,
			Summary: "Asks which changes of a MachineSet an extension can carry out without replacing its Machines.",
			Description: "The request holds the MachineSet and the templates it refers to, as they are and as they shall be. The response " +
				"holds a patch for each object with the changes that the extension takes over.\n\n" + spec,
			NewRequest:  request[hooksv1.CanUpdateMachineSetRequest](),
			NewResponse: answer[hooksv1.CanUpdateMachineSetResponse](),
		},
		{
			ID: v1alpha1("UpdateMachine"), Tag: TagInPlace,
			Summary: "Carries out the update of a Machine that stays.",
			Description: "Called again and again until the update is done or has failed: start it, say with retryAfterSeconds when to ask " +
				"again, and answer with retryAfterSeconds 0 when it is done.\n\n" +
				"- The same call may come twice; the second must do no harm.",
			NewRequest: request[hooksv1.UpdateMachineRequest](), NewResponse: answer[hooksv1.UpdateMachineResponse](),
		},
	}
}

const (
	ofTopology = "- Called for Clusters with a topology (spec.topology) only.\n"
	informs    = "Its answer holds nothing back, but the call is repeated until it succeeds.\n\n"
)

// blocks says what waits while a handler answers with retryAfterSeconds.
func blocks(what string) string {
	return "While a handler answers with retryAfterSeconds, " + what + ".\n\n"
}
