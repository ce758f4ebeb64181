package topology

import (
	"sync"

	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology/patch"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// maxClasses is the maximum number of classes in the cache, our choice to limit memory.
const maxClasses = 256

// Compiled is the compiled form of a ClusterClass, which is shared by all its Clusters. The topology controller reads
// it from [Classes] in each reconciliation.
type Compiled struct {
	Variables *variables.Definitions
	// Program holds the patches; Err is set if they are invalid.
	Program *patch.Program
	Err     error
}

// Classes is an LRU cache of compiled ClusterClasses. The topology controller has one, and reads the class of the
// Cluster from it in each reconciliation, so that a class is compiled once after each change.
type Classes struct {
	schemas *variables.Schemas

	mu    sync.Mutex
	known *lru.Cache // types.UID → compiledPatches
}

// compiledPatches are the patches of a class at one resourceVersion. [Classes.Of] compiles others when it changes.
type compiledPatches struct {
	resourceVersion string
	program         *patch.Program
	err             error
}

// NewClasses returns an empty cache. The topology controller creates one cache, when it is added to the manager.
func NewClasses() *Classes {
	return &Classes{schemas: variables.NewSchemas(), known: lru.New(maxClasses)}
}

// Of returns the compiled form of a class. It compiles the patches again if the resourceVersion of the class differs
// from the cached one or is empty.
func (c *Classes) Of(class *clusterv1.ClusterClass) Compiled {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, _ := c.known.Get(class.UID)
	patches, ok := last.(compiledPatches)
	if !ok || patches.resourceVersion != class.ResourceVersion || class.ResourceVersion == "" {
		program, err := patch.Compile(class)
		patches = compiledPatches{class.ResourceVersion, program, err}
		c.known.Add(class.UID, patches)
	}
	return Compiled{Variables: c.schemas.Of(class), Program: patches.program, Err: patches.err}
}
