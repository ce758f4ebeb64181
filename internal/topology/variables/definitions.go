package variables

import (
	"sync"

	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Definitions holds the variables that a class defines, inline and through extensions, with their compiled schemas. The
// webhooks of Clusters and ClusterClasses, the topology controller and `slipway create cluster` default and validate
// values with it.
type Definitions struct {
	byName map[string]*definition
	order  []*definition
}

// NewDefinitions returns the definitions in the status of a class, for callers that need them once. The webhook of
// ClusterClasses and package clusterctl/template call it.
func NewDefinitions(list []clusterv1.ClusterClassStatusVariable) *Definitions {
	return newDefinitions(list, nil)
}

// newDefinitions reuses the compiled form of unchanged definitions.
func newDefinitions(list []clusterv1.ClusterClassStatusVariable, before *Definitions) *Definitions {
	out := &Definitions{byName: make(map[string]*definition, len(list)), order: make([]*definition, 0, len(list))}
	for _, variable := range list {
		d := newDefinition(variable)
		if before != nil {
			if known := before.byName[d.name]; known != nil && known.isSame(d) {
				d = known
			}
		}
		if out.byName[d.name] == nil {
			out.order = append(out.order, d)
		}
		out.byName[d.name] = d
	}
	return out
}

// maxClasses is the maximum number of classes in Schemas.
const maxClasses = 256

// Schemas is an LRU cache of the definitions of classes, so that their schemas and rules are not compiled for each
// value. The webhooks have one, and the topology controller has another.
type Schemas struct {
	mu      sync.Mutex
	classes *lru.Cache // types.UID → classDefinitions
}

// classDefinitions are the definitions of a class at one resourceVersion.
type classDefinitions struct {
	resourceVersion string
	definitions     *Definitions
}

// NewSchemas returns an empty cache. The webhooks and package topology call it, each once.
func NewSchemas() *Schemas { return &Schemas{classes: lru.New(maxClasses)} }

// Of returns the definitions in the status of a class.
func (s *Schemas) Of(class *clusterv1.ClusterClass) *Definitions {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, _ := s.classes.Get(class.UID)
	known, _ := found.(classDefinitions)
	if known.definitions != nil && known.resourceVersion == class.ResourceVersion && class.ResourceVersion != "" {
		return known.definitions
	}
	definitions := newDefinitions(class.Status.Variables, known.definitions)
	s.classes.Add(class.UID, classDefinitions{resourceVersion: class.ResourceVersion, definitions: definitions})
	return definitions
}
