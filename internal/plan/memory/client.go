package memory

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// errNotSupported is returned for requests that no controller of the simulation sends. A controller that begins to send
// one needs an implementation here.
var errNotSupported = errors.New("this request is not simulated")

// Client writes to the API and immediately reads its own writes. It implements client.Client for the controllers that
// `slipway plan` runs, and for the change that is proposed.
type Client struct {
	*Reader
	// sub is the subresource to write.
	sub string
}

var (
	_ client.Client            = &Client{}
	_ client.SubResourceClient = subresource{}
)

// Client returns a client whose reads are transformed as in a cache; nil: not transformed.
func (a *API) Client(transform toolscache.TransformFunc) *Client {
	return &Client{Reader: a.Reader(transform)}
}

func (c *Client) Scheme() *runtime.Scheme { return c.api.scheme }

func (c *Client) RESTMapper() meta.RESTMapper { return c.api.Mapper() }

func (c *Client) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, c.api.scheme)
}

func (c *Client) IsObjectNamespaced(o runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(o, c.api.scheme, c.api.Mapper())
}

func (c *Client) Status() client.SubResourceWriter { return c.SubResource(statusSubresource) }

func (c *Client) SubResource(name string) client.SubResourceClient {
	return subresource{Client{Reader: c.Reader, sub: name}}
}

// begin parses a request. The lock must be held.
func (c *Client) begin(o client.Object, by string, dryRun []string) (write, *object, error) {
	gvk, err := apiutil.GVKForObject(o, c.api.scheme)
	if err != nil {
		return write{}, nil, err
	}
	if c.sub != "" && c.sub != statusSubresource {
		return write{}, nil, fmt.Errorf("%s of %s: %w", c.sub, gvk.Kind, errNotSupported)
	}
	k, err := c.api.kindOf(gvk)
	if err != nil {
		return write{}, nil, err
	}
	w := write{kind: k, key: client.ObjectKeyFromObject(o), fieldManager: by, subresource: c.sub, dryRun: len(dryRun) > 0}
	return w, c.api.objects[k.gvk.GroupKind()][w.key], nil
}

func (w write) notFound() error { return apierrors.NewNotFound(w.resource(), w.key.Name) }

func (c *Client) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	options := (&client.CreateOptions{}).ApplyOptions(opts)
	next, err := c.api.unstructuredOf(o)
	if err != nil {
		return err
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	w, _, err := c.begin(o, options.FieldManager, options.DryRun)
	if err != nil {
		return err
	}
	stored, err := c.api.create(ctx, w, next)
	if err != nil {
		return err
	}
	return c.copyResult(stored, o)
}

func (c *Client) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	options := (&client.UpdateOptions{}).ApplyOptions(opts)
	next, err := c.api.unstructuredOf(o)
	if err != nil {
		return err
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	w, old, err := c.begin(o, options.FieldManager, options.DryRun)
	if err != nil {
		return err
	}
	return c.replace(ctx, replacement{w, old, next}, o)
}

// replacement is a stored object and its new content. The writes of a [Client] create it.
type replacement struct {
	write write
	old   *object
	next  *unstructured.Unstructured
}

// replace stores an object that was derived from a previously read one. The lock must be held.
func (c *Client) replace(ctx context.Context, r replacement, out client.Object) error {
	w, old, next := r.write, r.old, r.next
	if old == nil {
		return w.notFound()
	}
	if v := next.GetResourceVersion(); v != "" && v != old.content.GetResourceVersion() {
		return apierrors.NewConflict(w.resource(), w.key.Name, errors.New("the object was changed since it was read"))
	}
	if uid := next.GetUID(); uid != "" && uid != old.content.GetUID() {
		return apierrors.NewConflict(w.resource(), w.key.Name, errors.New("another object has the name"))
	}
	stored, err := c.api.put(ctx, w, old, next)
	if err != nil {
		return err
	}
	return c.copyResult(stored, out)
}

func (c *Client) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	options := (&client.PatchOptions{}).ApplyOptions(opts)
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	w, old, err := c.begin(o, options.FieldManager, options.DryRun)
	if err != nil {
		return err
	}
	if patch.Type() == types.ApplyPatchType {
		w.force = options.Force != nil && *options.Force
		return c.apply(ctx, replacement{write: w, old: old}, data, o)
	}
	if old == nil {
		return w.notFound()
	}
	if patch.Type() != types.MergePatchType {
		return fmt.Errorf("%s: %w", patch.Type(), errNotSupported)
	}
	next, err := merged(old.content, data)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return c.replace(ctx, replacement{w, old, next}, o)
}

// apply performs a server-side apply. The lock must be held.
func (c *Client) apply(ctx context.Context, r replacement, data []byte, out client.Object) error {
	w, old := r.write, r.old
	wanted := &unstructured.Unstructured{}
	if err := wanted.UnmarshalJSON(data); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	before := empty(w.kind.gvk)
	before.SetNamespace(w.key.Namespace)
	before.SetName(w.key.Name)
	if old != nil {
		before = old.content
	} else if w.subresource != "" || wanted.GetUID() != "" {
		return w.notFound()
	}
	if v := wanted.GetResourceVersion(); v != "" && v != before.GetResourceVersion() {
		return apierrors.NewConflict(w.resource(), w.key.Name, errors.New("the object was changed since it was read"))
	}
	if uid := wanted.GetUID(); uid != "" && uid != before.GetUID() {
		return apierrors.NewConflict(w.resource(), w.key.Name, errors.New("another object has the name"))
	}
	manager, err := w.kind.manager(w.subresource)
	if err != nil {
		return err
	}
	settled, err := manager.Apply(before, wanted, w.fieldManager, w.force)
	if err != nil {
		return err
	}
	w.applied = true
	next := settled.(*unstructured.Unstructured).DeepCopy()
	var stored *unstructured.Unstructured
	if old == nil {
		stored, err = c.api.create(ctx, w, next)
	} else {
		stored, err = c.api.put(ctx, w, old, next)
	}
	if err != nil {
		return err
	}
	return c.copyResult(stored, out)
}

func (c *Client) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	w, old, err := c.begin(o, "", options.DryRun)
	if err != nil {
		return err
	}
	if old == nil {
		return w.notFound()
	}
	return c.api.remove(ctx, w, old, options.Preconditions)
}

// DeleteAllOf implements client.Client. No controller calls it.
func (c *Client) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errNotSupported
}

// Apply implements client.Client. Controllers apply with Patch.
func (c *Client) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errNotSupported
}

// copyResult copies the stored object into the object of the request.
func (c *Client) copyResult(stored *unstructured.Unstructured, out client.Object) error {
	gvk, err := apiutil.GVKForObject(out, c.api.scheme)
	if err != nil {
		return err
	}
	o, err := shaped(stored, form{kind: gvk, shape: shapeOf(out)}, c.api.scheme)
	if err != nil {
		return err
	}
	return into(o, out, o != client.Object(stored)) // any other form was created only for this response
}

// subresource writes the status.
type subresource struct{ c Client }

func (s subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errNotSupported
}

func (s subresource) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errNotSupported
}

func (s subresource) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	return s.c.Update(ctx, o, &options.UpdateOptions)
}

func (s subresource) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	return s.c.Patch(ctx, o, patch, &options.PatchOptions)
}

func (s subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errNotSupported
}

// WriteAsSystem writes a complete object including its status on behalf of a simulated component, without admission or
// field tracking. It creates the object if it does not exist. Package world calls it for Nodes and for the objects of
// providers.
func (a *API) WriteAsSystem(next *unstructured.Unstructured, by string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, err := a.kindOf(next.GroupVersionKind())
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(next)
	_, err = a.put(context.Background(), write{kind: k, key: key, fieldManager: by, bySystem: true}, a.objects[k.gvk.GroupKind()][key], next)
	return err
}

// Remove deletes an object on behalf of a simulated component. It succeeds if the object does not exist. Package world
// calls it for garbage collection and for Nodes.
func (a *API) Remove(gvk schema.GroupVersionKind, key client.ObjectKey, by string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, err := a.kindOf(gvk)
	if err != nil {
		return err
	}
	old := a.objects[k.gvk.GroupKind()][key]
	if old == nil {
		return nil
	}
	return a.remove(context.Background(), write{kind: k, key: key, fieldManager: by}, old, nil)
}
