package hooks

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Group is the API group of all Cluster API hooks.
const Group = "hooks.runtime.cluster.x-k8s.io"

// Discovery is the hook that returns the handlers of an extension.
var Discovery = v1alpha1("Discovery")

// ClusterAPI returns the hooks of Cluster API v1.14 in all versions, to create a catalog with them and optionally with
// others.
func ClusterAPI() []Hook {
	return slices.Concat(discovery(), lifecycle(), upgrades(), topology(), inPlace())
}

// Default returns the catalog of [ClusterAPI].
func Default() *Catalog {
	c, err := New(ClusterAPI())
	if err != nil {
		panic(err) // the list is constant, and covered by a test
	}
	return c
}

func v1alpha1(hook string) ID {
	return ID{Name: Name{Group: Group, Hook: hook}, Version: hooksv1.GroupVersion.Version}
}

// request and answer return the constructors of a hook's Go types.
func request[T any, P object[T]]() func() runtime.Object {
	return func() runtime.Object { return P(new(T)) }
}

func answer[T any, P response[T]]() func() Response {
	return func() Response { return P(new(T)) }
}

// of returns the hook for a function of the API module, whose arguments are its request and its response. The name of
// the request type is the name of the hook with the suffix "Request".
func of[Q, A any, QP object[Q], AP response[A]](tag Tag, _ func(QP, AP), summary, description string) Hook {
	return Hook{
		ID: v1alpha1(strings.TrimSuffix(reflect.TypeFor[Q]().Name(), "Request")), Tag: tag,
		Summary: summary, Description: description, NewRequest: request[Q, QP](), NewResponse: answer[A, AP](),
	}
}

func discovery() []Hook {
	return []Hook{{
		ID: Discovery, Tag: TagDiscovery, Singleton: true,
		Summary: "Asks an extension which handlers it has.",
		Description: "Called when an ExtensionConfig is created or changed, when a handler turns out not to be served (HTTP 404), and from " +
			"time to time after that. The response lists " +
			"every handler with its name, the hook and version it serves, its timeout and its failure policy.\n\n" +
			"- Names are DNS labels (RFC 1123), each used once.\n" +
			"- A timeout is 0 to 30 seconds; 10 where it is left out.\n" +
			"- One wrong handler makes the whole response invalid.\n" +
			"- Handlers of one hook are called in the order of their names, whatever their order in the response.\n" +
			"- Libraries for extensions answer this hook by themselves.",
		NewRequest: request[hooksv1.DiscoveryRequest](), NewResponse: answer[hooksv1.DiscoveryResponse](),
	}}
}

func lifecycle() []Hook {
	return []Hook{
		of(TagLifecycle, hooksv1.BeforeClusterCreate,
			"Called before the objects of a new cluster's topology are created.",
			"The Cluster exists, nothing below it does. "+blocks("the topology is not created")+
				ofTopology+
				"- The request holds the Cluster."),
		of(TagLifecycle, hooksv1.AfterControlPlaneInitialized,
			"Called once, when a cluster's control plane answers for the first time.",
			"A place to install what the cluster needs before its workers arrive. "+informs+ofTopology+
				"- The request holds the Cluster."),
		of(TagLifecycle, hooksv1.BeforeClusterDelete,
			"Called when the deletion of a cluster was requested, before anything of it is deleted.",
			"A place to move away or clean up what the cluster holds elsewhere. "+
				blocks("nothing is deleted")+ofTopology+
				"- The request holds the Cluster."),
	}
}

func upgrades() []Hook {
	const plan = "- The request holds the Cluster, the versions before and after, and the steps that are still to come."
	const done = "- The request holds the Cluster, the version that the control plane has now, and the steps that are still to come."
	return []Hook{
		of(TagLifecycle, hooksv1.BeforeClusterUpgrade,
			"Called once before an upgrade begins, when the version in the topology was changed.",
			"Called once for the whole upgrade, however many versions it passes. "+
				blocks("no object gets the new version")+ofTopology+plan),
		of(TagLifecycle, hooksv1.BeforeControlPlaneUpgrade,
			"Called before the control plane gets its next version.",
			"Called for every version that the upgrade passes, the first time after BeforeClusterUpgrade let it go on. "+
				blocks("the control plane keeps its version")+ofTopology+plan),
		of(TagLifecycle, hooksv1.AfterControlPlaneUpgrade,
			"Called when all of the control plane runs its next version.",
			"Called for every version that the upgrade passes. "+
				blocks("neither the workers nor the control plane get another version")+ofTopology+done),
		of(TagLifecycle, hooksv1.BeforeWorkersUpgrade,
			"Called before the workers get their next version.",
			"Called for the versions that workers have to run on the way, and for the last one. "+
				blocks("the workers keep their version, and the control plane gets no other")+ofTopology+plan),
		of(TagLifecycle, hooksv1.AfterWorkersUpgrade,
			"Called when all workers run their next version.",
			"Called for the versions that workers have to run on the way, and for the last one, before AfterClusterUpgrade. "+
				blocks("neither the control plane's next version nor AfterClusterUpgrade follows")+ofTopology+done),
		of(TagLifecycle, hooksv1.AfterClusterUpgrade,
			"Called when control plane and workers run the version of the topology.",
			"The last call of an upgrade. "+blocks("the next upgrade does not begin")+ofTopology+
				"- The request holds the Cluster and the version it has now."),
		of(TagUpgrade, hooksv1.GenerateUpgradePlan,
			"Asks which versions an upgrade has to pass on its way.",
			"Called for every upgrade of a cluster whose ClusterClass names the handler, several times while it is under way. The "+
				"response lists versions for the control plane, and may list "+
				"some for the workers; without, the fewest steps that the version skew allows are taken.\n\n"+
				"- Versions rise, or are another build of the same patch version, end with the requested version, and leave out no "+
				"minor version of the control plane.\n"+
				"- Workers can only run versions that the control plane runs or passes."),
	}
}

func topology() []Hook {
	return []Hook{
		of(TagTopology, hooksv1.DiscoverVariables,
			"Asks which variables a ClusterClass patch takes.",
			"Called when a ClusterClass is created or changed. The response holds the variables with their schemas; users set "+
				"them in spec.topology.variables of their Clusters."),
		of(TagTopology, hooksv1.GeneratePatches,
			"Asks for the patches of the templates that a cluster is made from.",
			"Called every time the objects of a cluster are computed from its ClusterClass: fast and without side effects, and "+
				"with the same answer to the same question.\n\n"+
				"- The request holds all templates, the variables of the cluster and those of each template.\n"+
				"- The response holds JSON patches or JSON merge patches, each with the uid of the template it is for.\n"+
				"- Patches change the spec of a template, and the labels and annotations of its metadata."),
		of(TagTopology, hooksv1.ValidateTopology,
			"Asks whether the templates may be used as they are after all patches.",
			"Called after GeneratePatches of all extensions. A response of status Failure stops the cluster from being changed; "+
				"its message reaches the user.\n\n"+
				"- The request holds all templates, the variables of the cluster and those of each template."),
	}
}

func inPlace() []Hook {
	const spec = "- Objects come without their status.\n- Patches cover the spec only; what no extension covers leads to new machines."
	return []Hook{
		of(TagInPlace, hooksv1.CanUpdateMachine,
			"Asks which changes of a Machine an extension can carry out without replacing it.",
			"The request holds the Machine, its infrastructure machine and its bootstrap config as they are and as they shall "+
				"be. The response holds a patch for each object with the changes that the extension takes over.\n\n"+
				spec),
		of(TagInPlace, hooksv1.CanUpdateMachineSet,
			"Asks which changes of a MachineSet an extension can carry out without replacing its Machines.",
			"The request holds the MachineSet and the templates it refers to, as they are and as they shall be. The response "+
				"holds a patch for each object with the changes that the extension takes over.\n\n"+spec),
		of(TagInPlace, hooksv1.UpdateMachine,
			"Carries out the update of a Machine that stays.",
			"Called repeatedly until the update is done or has failed: start it, say with retryAfterSeconds when to ask "+
				"again, and answer with retryAfterSeconds 0 when it is done. Status Failure says that the update has failed.\n\n"+
				"- The same call may come twice; the second must do no harm."),
	}
}

const (
	ofTopology = "- Called for Clusters with a topology (spec.topology) only.\n"
	informs    = "Its answer holds nothing back, but the call is repeated until it succeeds.\n\n"
)

// blocks describes what a handler blocks with retryAfterSeconds.
func blocks(what string) string {
	return "While a handler answers with retryAfterSeconds, " + what + ".\n\n"
}
