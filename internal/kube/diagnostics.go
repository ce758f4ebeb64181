package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Reasons of the faults for kinds that cannot be read.
const (
	reasonNoSuchKind = "NoSuchKind"
	reasonNotServed  = "VersionNotServed"
	reasonWrongName  = "CRDNamedWrongly"
	reasonForbidden  = "Forbidden"
)

const (
	// syncTimeout is how long the first read of a kind waits for the cache before the API server is called to determine
	// the cause.
	syncTimeout = 3 * time.Second
	// refusalTTL is how long the determined cause is reused for other objects of the kind. If there is no cause, it is
	// also how long read waits for the cache once more.
	refusalTTL = 10 * time.Second
)

// readProblem is the reason why a kind could not be read, and how long it is reused.
type readProblem struct {
	err   error
	until time.Time
}

// WithDiagnostics makes r determine why a kind cannot be read, instead of only waiting for the cache. Package watches
// calls it for the references of each controller, so that conditions report the cause. mapper has the served kinds;
// live bypasses the cache. A kind that can be read costs no request.
func (r *References) WithDiagnostics(mapper apimeta.RESTMapper, live client.Reader) *References {
	r.mapper, r.live = mapper, live
	return r
}

// served returns an error if a kind is not served in the version that the label of its CRD names.
func (r *References) served(crd string, contractVersion contract.Version, kind schema.GroupVersionKind) error {
	if r.mapper == nil || r.isSynced(kind) {
		return nil
	}
	_, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if !apimeta.IsNoMatchError(err) {
		return err
	}
	plural := strings.TrimSuffix(crd, "."+kind.Group)
	others, _ := r.mapper.KindsFor(schema.GroupVersionResource{Group: kind.Group, Resource: plural})
	if text := misspelled(kind.GroupKind(), others); text != "" {
		return fault.New(fault.Invalid, reasonNoSuchKind, "%s", text).From(err)
	}
	var versions []string
	for _, other := range others {
		versions = append(versions, other.Version)
	}
	if len(versions) == 0 {
		return fault.New(fault.Transient, reasonNotServed, "kind %s of group %s is not served yet", kind.Kind, kind.Group).From(err)
	}
	slices.Sort(versions)
	return fault.New(fault.Invalid, reasonNotServed, "the label %s of CRD %s names version %s, which is not served; set it to one of: %s",
		contractVersion.Label(), crd, kind.Version, strings.Join(versions, ", ")).From(err)
}

// Misspelled returns a message with the kind that was probably meant instead of a kind that is not served: a kind with
// the same plural. It returns an empty string if there is none. `slipway describe cluster` calls it, too.
func Misspelled(mapper apimeta.RESTMapper, kind schema.GroupKind) string {
	resource, _ := apimeta.UnsafeGuessKindToResource(kind.WithVersion(""))
	others, _ := mapper.KindsFor(resource)
	return misspelled(kind, others)
}

func misspelled(kind schema.GroupKind, served []schema.GroupVersionKind) string {
	for _, other := range served {
		if other.Kind != kind.Kind {
			return fmt.Sprintf("group %s has no kind %s; did you mean %s?", kind.Group, kind.Kind, other.Kind)
		}
	}
	return ""
}

// exists reports whether an object exists, in any version of its kind. [References.GetReferenced] calls it for an
// object that is being deleted.
func (r *References) exists(ctx context.Context, kind schema.GroupKind, key client.ObjectKey) (bool, error) {
	mapping, err := r.mapper.RESTMapping(kind)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.live.Get(ctx, key, o)
	return err == nil, client.IgnoreNotFound(err)
}

// read reads from the cache. If the cache does not sync in time, it may never sync; the API server is then called to
// determine the cause. [References.Get] and [References.List] call it.
func (r *References) read(ctx context.Context, u *unstructured.Unstructured, namespace string, do func(context.Context) error) error {
	kind := u.GroupVersionKind()
	if r.live == nil || r.isSynced(kind) {
		return do(ctx)
	}
	if err := r.refused(kind); err != nil {
		return err
	}
	err := withTimeout(ctx, syncTimeout, do)
	if isTimeout(err) && ctx.Err() == nil {
		if refused := r.explain(ctx, kind, namespace); refused != nil {
			return refused
		}
		err = withTimeout(ctx, refusalTTL, do) // it can be read, but the cache is slow
	}
	if isTimeout(err) {
		return fault.New(fault.Unreachable, "CacheNotFilled", "kind %s of group %s is still being read", kind.Kind, kind.Group).From(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced[kind] = true
	return err
}

func withTimeout(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := do(limited)
	if err != nil && limited.Err() != nil {
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}

func isTimeout(err error) bool {
	return err != nil && (apierrors.IsTimeout(err) || fault.KindOf(err) == fault.Unreachable)
}

// explain lists one object of a kind from the API server, and returns the error, if any, as the cause.
func (r *References) explain(ctx context.Context, kind schema.GroupVersionKind, namespace string) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		err = fault.New(fault.Invalid, reasonForbidden,
			"this manager has no right to list and watch kind %s of group %s; grant it with a ClusterRole that has the label cluster.x-k8s.io/aggregate-to-manager=true",
			kind.Kind, kind.Group).From(err)
	default:
		err = fmt.Errorf("listing %s: %w", kind.GroupKind(), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals[kind] = readProblem{err: err, until: time.Now().Add(refusalTTL)}
	return err
}

func (r *References) refused(kind schema.GroupVersionKind) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.refusals[kind]; time.Now().Before(f.until) {
		return f.err
	}
	return nil
}

func (r *References) isSynced(kind schema.GroupVersionKind) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.synced[kind]
}

// QuickstartAlternative returns the end of a message about a kind (or its plural) that is not installed; empty if there
// is no replacement. It is for the Docker kinds in the quick start of the Cluster API book, whose provider is rarely
// installed. References and `slipway describe cluster` call it.
func QuickstartAlternative(kind, group string) string {
	if group != "infrastructure.cluster.x-k8s.io" || !strings.HasPrefix(strings.ToLower(kind), "docker") {
		return ""
	}
	return ", or use the Local kinds, which create machines as containers on this host (`slipway docs clusterctl`)"
}
