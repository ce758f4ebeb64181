package hooks

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Conversion converts between two adjacent versions of a hook. Two rules of the Runtime SDK make this possible: every
// request can be represented in the older version, and every response in the newer one.
type Conversion struct {
	Hook Name
	// Newer and Older are adjacent: no version of the hook in the catalog is between them.
	Newer, Older string
	// RequestDown converts a request of the newer version into one of the older version.
	RequestDown func(in, out runtime.Object) error
	// ResponseUp converts a response of the older version into one of the newer version.
	ResponseUp func(in, out Response) error
}

// object is a pointer to T that implements runtime.Object.
type object[T any] interface {
	*T
	runtime.Object
}

// response is a pointer to T that implements Response.
type response[T any] interface {
	*T
	Response
}

// RequestDown adapts a typed function for [Conversion.RequestDown].
func RequestDown[N, O any, NP object[N], OP object[O]](f func(in NP, out OP) error) func(in, out runtime.Object) error {
	return func(in, out runtime.Object) error {
		newer, ok := in.(NP)
		older, ok2 := out.(OP)
		if !ok || !ok2 {
			return fmt.Errorf("converting a request: have %T and %T, want %T and %T", in, out, NP(nil), OP(nil))
		}
		return f(newer, older)
	}
}

// ResponseUp adapts a typed function for [Conversion.ResponseUp].
func ResponseUp[O, N any, OP response[O], NP response[N]](f func(in OP, out NP) error) func(in, out Response) error {
	return func(in, out Response) error {
		older, ok := in.(OP)
		newer, ok2 := out.(NP)
		if !ok || !ok2 {
			return fmt.Errorf("converting a response: have %T and %T, want %T and %T", in, out, OP(nil), NP(nil))
		}
		return f(older, newer)
	}
}

func (c *Catalog) connect(step Conversion) error {
	versions := c.versions[step.Hook]
	newer, older := slices.Index(versions, step.Newer), slices.Index(versions, step.Older)
	switch {
	case newer < 0 || older < 0:
		return fmt.Errorf("conversion of %s from %s to %s: no such version in the catalog", step.Hook, step.Newer,
			step.Older)
	case older != newer+1:
		return fmt.Errorf("conversion of %s from %s to %s: they are not neighbours", step.Hook, step.Newer, step.Older)
	case step.RequestDown == nil || step.ResponseUp == nil:
		return fmt.Errorf("conversion of %s from %s to %s: both directions are required", step.Hook, step.Newer,
			step.Older)
	}
	if c.steps[step.Hook] == nil {
		c.steps[step.Hook] = map[string]Conversion{}
	}
	if _, twice := c.steps[step.Hook][step.Newer]; twice {
		return fmt.Errorf("conversion of %s from %s to %s is there twice", step.Hook, step.Newer, step.Older)
	}
	c.steps[step.Hook][step.Newer] = step
	return nil
}

// complete returns an error if adjacent versions have no conversion.
func (c *Catalog) complete() error {
	for name, versions := range c.versions {
		for i, newer := range versions[:len(versions)-1] {
			if _, ok := c.steps[name][newer]; !ok {
				return fmt.Errorf("hook %s: no conversion connects %s and %s", name, newer, versions[i+1])
			}
		}
	}
	return nil
}

// path returns the conversions from the newer version down to the older one.
func (c *Catalog) path(newer, older ID) ([]Conversion, error) {
	versions := c.versions[newer.Name]
	from, to := slices.Index(versions, newer.Version), slices.Index(versions, older.Version)
	if newer.Name != older.Name || from < 0 || to < 0 || to < from {
		return nil, fmt.Errorf("no conversion from %s down to %s", newer, older)
	}
	var steps []Conversion
	for _, v := range versions[from:to] {
		steps = append(steps, c.steps[newer.Name][v])
	}
	return steps, nil
}

// Down converts the request to the given version of the same hook, which is the same or an older one. The result has
// apiVersion and kind. The request is not modified, and shares memory with the result.
func (c *Catalog) Down(request runtime.Object, to ID) (runtime.Object, error) {
	h, ok := c.OfRequest(request)
	if !ok {
		return nil, fmt.Errorf("%T is not a request of any hook in the catalog", request)
	}
	steps, err := c.path(h.ID, to)
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return request, nil
	}
	current := request
	for _, step := range steps {
		older := c.hooks[ID{Name: h.Name, Version: step.Older}]
		out := older.NewRequest()
		if err := step.RequestDown(current, out); err != nil {
			return nil, fmt.Errorf("converting %s to %s: %w", h.RequestKind(), older.APIVersion(), err)
		}
		older.StampRequest(out)
		current = out
	}
	return current, nil
}

// Up converts in, a response of the same or an older version of the hook, and stores the result in out, with the
// apiVersion and kind of its version.
func (c *Catalog) Up(in, out Response) error {
	older, ok := c.OfResponse(in)
	newer, ok2 := c.OfResponse(out)
	if !ok || !ok2 {
		return fmt.Errorf("%T and %T are not both responses of hooks in the catalog", in, out)
	}
	steps, err := c.path(newer.ID, older.ID)
	if err != nil {
		return err
	}
	current := in
	for _, step := range slices.Backward(steps) {
		next := c.hooks[ID{Name: newer.Name, Version: step.Newer}]
		target := out
		if step.Newer != newer.Version {
			target = next.NewResponse()
		}
		if err := step.ResponseUp(current, target); err != nil {
			return fmt.Errorf("converting %s to %s: %w", newer.ResponseKind(), next.APIVersion(), err)
		}
		current = target
	}
	if len(steps) == 0 {
		assign(out, in)
	}
	newer.StampResponse(out)
	return nil
}

func schemaKind(id ID, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: kind}
}
