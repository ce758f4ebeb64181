package hooks

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Response is the interface of all responses. A response that can request to be called again also implements
// [RetryResponse].
type Response = hooksv1.ResponseObject

// RetryResponse is the response of a blocking hook, which blocks if retryAfterSeconds is greater than 0.
type RetryResponse = hooksv1.RetryResponseObject

// Tag groups hooks in the documentation.
type Tag string

// The tags of the hooks in the documentation.
const (
	TagDiscovery Tag = "Discovery"
	TagLifecycle Tag = "Lifecycle Hooks"
	TagTopology  Tag = "Topology Mutation Hook"
	TagUpgrade   Tag = "Chained Upgrade Hook"
	TagInPlace   Tag = "In-Place Update Hooks"
)

// Hook is one version of one hook.
type Hook struct {
	ID
	Tag Tag
	// Summary describes in one sentence when the hook is called.
	Summary string
	// Description is Markdown that describes the purpose of the hook, and the requirements for its handlers.
	Description string
	// Singleton hooks have one handler in an extension, and no handler name in their path.
	Singleton bool
	// NewRequest and NewResponse return empty objects, with apiVersion and kind unset.
	NewRequest  func() runtime.Object
	NewResponse func() Response
	// Deprecation is nil if the version is not deprecated.
	Deprecation *Deprecation
}

// Blocking reports whether a handler can block the caller with retryAfterSeconds.
func (h Hook) Blocking() bool {
	_, ok := h.NewResponse().(RetryResponse)
	return ok
}

// Request returns an empty request with apiVersion and kind.
func (h Hook) Request() runtime.Object {
	request := h.NewRequest()
	h.StampRequest(request)
	return request
}

// StampRequest sets apiVersion and kind in a request of the hook.
func (h Hook) StampRequest(request runtime.Object) {
	request.GetObjectKind().SetGroupVersionKind(schemaKind(h.ID, h.RequestKind()))
}

// StampResponse sets apiVersion and kind in a response of the hook.
func (h Hook) StampResponse(response runtime.Object) {
	response.GetObjectKind().SetGroupVersionKind(schemaKind(h.ID, h.ResponseKind()))
}

// Catalog is an immutable set of hooks.
type Catalog struct {
	hooks     map[ID]Hook
	versions  map[Name][]string // newest first
	requests  map[reflect.Type]ID
	responses map[reflect.Type]ID
	steps     map[Name]map[string]Conversion // by the newer version
}

// New returns a catalog of the hooks. It returns an error for duplicate or incomplete hooks, for deprecations that
// violate the deprecation policy, and for versions of a hook without a conversion between them.
func New(hooks []Hook, conversions ...Conversion) (*Catalog, error) {
	c := &Catalog{
		hooks: map[ID]Hook{}, versions: map[Name][]string{}, requests: map[reflect.Type]ID{},
		responses: map[reflect.Type]ID{}, steps: map[Name]map[string]Conversion{},
	}
	for _, h := range hooks {
		if err := c.add(h); err != nil {
			return nil, fmt.Errorf("hook %s: %w", h.ID, err)
		}
	}
	for name := range c.versions {
		slices.SortFunc(c.versions[name], func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	}
	for _, h := range hooks {
		if h.Deprecation != nil {
			if err := h.Deprecation.checkReplacement(h.ID, c.versions[h.Name]); err != nil {
				return nil, fmt.Errorf("hook %s: %w", h.ID, err)
			}
		}
	}
	for _, step := range conversions {
		if err := c.connect(step); err != nil {
			return nil, err
		}
	}
	return c, c.complete()
}

func (c *Catalog) add(h Hook) error {
	stability, ok := StabilityOf(h.Version)
	switch {
	case !ok:
		return fmt.Errorf("%q is not a version", h.Version)
	case h.Group == "" || h.ID.Hook == "":
		return fmt.Errorf("group and name are required")
	case h.NewRequest == nil || h.NewResponse == nil:
		return fmt.Errorf("request and response are required")
	}
	if _, twice := c.hooks[h.ID]; twice {
		return fmt.Errorf("it is there twice")
	}
	if h.Deprecation != nil {
		if err := h.Deprecation.check(stability); err != nil {
			return err
		}
	}
	request, response := reflect.TypeOf(h.NewRequest()), reflect.TypeOf(h.NewResponse())
	if other, taken := c.requests[request]; taken {
		return fmt.Errorf("its request is that of %s", other)
	}
	if other, taken := c.responses[response]; taken {
		return fmt.Errorf("its response is that of %s", other)
	}
	c.hooks[h.ID], c.requests[request], c.responses[response] = h, h.ID, h.ID
	c.versions[h.Name] = append(c.versions[h.Name], h.Version)
	return nil
}

// Hook returns one version of a hook.
func (c *Catalog) Hook(id ID) (Hook, bool) {
	h, ok := c.hooks[id]
	return h, ok
}

// Newest returns the newest version of a hook.
func (c *Catalog) Newest(name Name) (Hook, bool) {
	versions := c.versions[name]
	if len(versions) == 0 {
		return Hook{}, false
	}
	return c.Hook(ID{Name: name, Version: versions[0]})
}

// Versions lists the versions of a hook, newest first.
func (c *Catalog) Versions(name Name) []string { return slices.Clone(c.versions[name]) }

// All lists all hooks, sorted by group, name and version, the newest version first.
func (c *Catalog) All() []Hook {
	out := make([]Hook, 0, len(c.hooks))
	for _, h := range c.hooks {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.ID.Hook, b.ID.Hook),
			version.CompareKubeAwareVersionStrings(b.Version, a.Version))
	})
	return out
}

// OfRequest returns the hook of a request, by its Go type.
func (c *Catalog) OfRequest(request runtime.Object) (Hook, bool) {
	return c.Hook(c.requests[reflect.TypeOf(request)])
}

// OfResponse returns the hook of a response, by its Go type.
func (c *Catalog) OfResponse(response runtime.Object) (Hook, bool) {
	return c.Hook(c.responses[reflect.TypeOf(response)])
}
