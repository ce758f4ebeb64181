package encryptionkeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
	"github.com/slipwayhq/slipway/internal/redact"
)

const (
	// pageSize is the page size of list requests, and parallel the maximum number of concurrent writes.
	pageSize, parallel = 500, 8
	// perSecond is the maximum number of requests per second.
	perSecond = 400
	// maxNamedFailures is the maximum number of failed objects in an error, and maxMessageLength the maximum length of
	// each message in bytes.
	maxNamedFailures, maxMessageLength = 5, 300
	// limitPause is the delay before a retry after a rate limit, and limitTries the maximum number of attempts.
	limitPause, limitTries = time.Second, 120
	// eventsGroup is skipped, because it shares its storage with the Events of the core group.
	eventsGroup = "events.k8s.io"
)

// RewriteAll makes the API server rewrite every object that is not stored with the current key, and returns the number
// of objects that it checked. `slipway rotate encryption` passes it to the [Rotator]. It sends empty patches: an object
// that is already stored with the current key is not written, and watches receive no events. It includes every
// resource, not only those that are encrypted now, because others may have been encrypted before.
func RewriteAll(ctx context.Context, config *rest.Config) (n int, err error) {
	defer func() {
		switch refused := (apierrors.APIStatus)(nil); {
		case err == nil, fault.As(err) != nil:
		case errors.As(err, &refused): // an error of the workload cluster, not of the management cluster
			err = fault.New(fault.Transient, reasonNotRewritten, "the workload cluster fails, so the old keys are retained: %s; correct the problem and run the command again", redact.Clip(err.Error(), maxMessageLength)).From(err)
		default:
			err = fault.New(fault.Unreachable, reasonUnreachable, "the workload cluster is unreachable: run the command again to continue").From(err)
		}
	}()
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.WarningHandler = perSecond, perSecond, rest.NoWarnings{}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	resources, err := storedResources(ctx, config)
	if err != nil {
		return 0, err
	}
	r := rewriter{client: objects}
	for _, resource := range resources {
		if err := r.rewriteResource(ctx, resource); err != nil {
			return r.objects, err
		}
	}
	if len(r.failed) > 0 {
		slices.Sort(r.failed)
		more := ""
		if n := r.failures - maxNamedFailures; n > 0 {
			more = fmt.Sprintf("\n* and %d more", n)
		}
		return r.objects, fault.New(fault.Invalid, reasonNotRewritten,
			"objects could not be rewritten, so the old keys are retained: correct or delete these objects, and run the command again:\n* %s%s",
			strings.Join(r.failed, "\n* "), more)
	}
	return r.objects, nil
}

// storedResources returns the resources that the API server itself stores: those that support list and patch, each in
// its newest version that is not served by an aggregated API server.
func storedResources(ctx context.Context, config *rest.Config) ([]schema.GroupVersionResource, error) {
	elsewhere, err := aggregated(ctx, config)
	if err != nil {
		return nil, err
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := api.ServerGroupsAndResources()
	var partly *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &partly) {
		for version, cause := range partly.Groups {
			if !elsewhere[version] {
				return nil, fmt.Errorf("reading the resources of %s: %w", version, cause)
			}
		}
	} else if err != nil {
		return nil, fmt.Errorf("reading the resources of the workload cluster: %w", err)
	}
	slices.SortStableFunc(lists, func(a, b *metav1.APIResourceList) int {
		return apiversion.CompareKubeAwareVersionStrings(versionOf(b), versionOf(a))
	})
	var out []schema.GroupVersionResource
	known := map[schema.GroupResource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || elsewhere[version] || version.Group == eventsGroup {
			continue
		}
		for _, r := range list.APIResources {
			resource := version.WithResource(r.Name)
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "patch") && !known[resource.GroupResource()] {
				known[resource.GroupResource()] = true
				out = append(out, resource)
			}
		}
	}
	return out, nil
}

// versionOf returns the version of a resource list without its group.
func versionOf(list *metav1.APIResourceList) string {
	return list.GroupVersion[strings.Index(list.GroupVersion, "/")+1:]
}

// aggregated returns the group versions that are served by aggregated API servers.
func aggregated(ctx context.Context, config *rest.Config) (map[schema.GroupVersion]bool, error) {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	services := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	list, err := c.Resource(services).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing APIServices: %w", err)
	}
	out := map[schema.GroupVersion]bool{}
	for _, item := range list.Items {
		spec, _ := item.Object["spec"].(map[string]any)
		group, _ := spec["group"].(string)
		version, _ := spec["version"].(string)
		if spec["service"] != nil {
			out[schema.GroupVersion{Group: group, Version: version}] = true
		}
	}
	return out, nil
}

// rewriter rewrites objects, and records failures.
type rewriter struct {
	client metadata.Interface

	mu      sync.Mutex
	objects int
	// failures counts the objects that could not be written; failed describes some of them.
	failures int
	failed   []string
}

// rewriteResource rewrites all objects of a resource. Objects that are created in the meantime already use the new key.
func (r *rewriter) rewriteResource(ctx context.Context, resource schema.GroupVersionResource) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := r.client.Resource(resource).List(ctx, options)
		if expired := (apierrors.APIStatus)(nil); apierrors.IsResourceExpired(err) && errors.As(err, &expired) {
			// The continue token has expired. The API server returns another one to continue inconsistently, or none to
			// start again.
			options.Continue = expired.Status().Continue
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		group, ctx := fault.NewGroup(ctx)
		group.SetLimit(parallel)
		for i := range list.Items {
			group.Go(func() error { return r.rewriteObject(ctx, resource, &list.Items[i]) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// rewriteObject rewrites an object. rewriteResource calls it on several goroutines at once. An error that it returns
// ends the rewrite; objects that the API server rejects are only recorded.
func (r *rewriter) rewriteObject(ctx context.Context, resource schema.GroupVersionResource, o *metav1.PartialObjectMetadata) error {
	err := write(ctx, r.client.Resource(resource).Namespace(o.Namespace), o)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects++
	var refused apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Status().Code < 500:
		if r.failures++; len(r.failed) == maxNamedFailures {
			return nil
		}
		r.failed = append(r.failed, fmt.Sprintf("%s %s: %s", resource.GroupResource(), (types.NamespacedName{Namespace: o.Namespace, Name: o.Name}), redact.Clip(err.Error(), maxMessageLength)))
		return nil
	}
	return fmt.Errorf("rewriting %s %s/%s: %w", resource.GroupResource(), o.Namespace, o.Name, err)
}

// write sends an empty patch for an object. It succeeds if the object was deleted or changed by another client; because
// a webhook may return such an error for another reason, the object is read to check. Rate limits, such as those of
// EventRateLimit, are retried; an object that exceeds the limit each time is reported as failed.
func write(ctx context.Context, c metadata.ResourceInterface, o *metav1.PartialObjectMetadata) (err error) {
	for try := range limitTries {
		if try > 0 && pause.Sleep(ctx, limitPause) != nil {
			return err
		}
		if _, err = c.Patch(ctx, o.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{}); !apierrors.IsTooManyRequests(err) {
			break
		}
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return err
	}
	now, getErr := c.Get(ctx, o.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(getErr):
		return nil
	case getErr != nil:
		return getErr
	case now.UID != o.UID || now.ResourceVersion != o.ResourceVersion:
		return nil
	}
	return err
}
