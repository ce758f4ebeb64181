package variables

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Definitions are the variables that a class defines, inline and through extensions, with their schemas compiled.
type Definitions struct {
	byName map[string]*definition
	order  []*definition
}

// NewDefinitions returns the definitions of a class's status.
func NewDefinitions(list []clusterv1.ClusterClassStatusVariable) *Definitions {
	return newDefinitions(list, nil)
}

// newDefinitions takes over what was compiled for definitions that are the same as before.
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

// classesKept is for how many classes Schemas holds definitions.
const classesKept = 256

// Schemas holds the definitions of classes, so that their schemas and rules are compiled once and not for each value. Those of
// classes that were not used for the longest time are dropped.
type Schemas struct {
	mu      sync.Mutex
	classes *lru.Cache // types.UID → classDefinitions
}

type classDefinitions struct {
	resourceVersion string
	definitions     *Definitions
}

// NewSchemas returns an empty store.
func NewSchemas() *Schemas { return &Schemas{classes: lru.New(classesKept)} }

// Of returns the definitions of a class, as its status has them.
func (s *Schemas) Of(class *clusterv1.ClusterClass) *Definitions {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, _ := s.get(class.UID)
	if known.definitions != nil && known.resourceVersion == class.ResourceVersion && class.ResourceVersion != "" {
		return known.definitions
	}
	definitions := newDefinitions(class.Status.Variables, known.definitions)
	s.classes.Add(class.UID, classDefinitions{resourceVersion: class.ResourceVersion, definitions: definitions})
	return definitions
}

func (s *Schemas) get(uid types.UID) (classDefinitions, bool) {
	found, ok := s.classes.Get(uid)
	if !ok {
		return classDefinitions{}, false
	}
	return found.(classDefinitions), true
}
